package commands

import (
	"context"
	"fmt"
	"strings"

	"oc/awareness"
	"oc/commands/term"
	"oc/config"
	"oc/gateway"
	"oc/maintenance"
	"oc/store"
	"oc/store/row"
	"oc/store/span"
)

func status() *Command {
	return &Command{
		Name:  "status",
		Short: "the state at a glance, or one session and what changed about it",
		Long: "Shows whether a gateway seems to live and how that is known, every agent with its era, rows and bytes against the limits, the sessions that say they are running with a " +
			"verdict and its evidence, and the newest sessions. Everything is read from files, processes and the kernel; no connection is made. With --live the gateway is asked too: how it is, " +
			"which sessions have a run at this moment, and where their answers go. With --as only the sessions that are named keep to what it may see; rows and bytes are of all.\n\n" +
			"With --watch it is a screen that follows the files until q or ctrl-c: sizes against limits, running sessions, notices.\n\n" +
			"With --session it shows one session, and with --changes-since what its signal log has recorded after a version, the oldest 200 events first. It says whether nothing " +
			"changed, whether to reconcile these events, or whether there is a history gap, so that only a refresh of the whole session helps. Looking marks nothing as read. With " +
			"--wait it returns as soon as there is an event, so that a script can wait for other sessions.",
		Flags: changesFlags,
		Examples: []Example{
			{"oc status", "the state of the default installation"},
			{"oc status --watch", "the state as it goes on"},
			{"oc status --live", "and what the gateway says of itself"},
			{"oc status --session main --changes-since 12", "what happened to a session since version 12"},
			{"oc status --changes-since 12 --wait 30s --json", "wait for the next event of your own session, OC_SESSION"},
			{"oc status --all-sessions --changes-since 0", "the whole signal log, by session"},
		},
		Exits: []int{ExitBusy, ExitNothing},
		Run:   showStatus,
	}
}

// standing is what status and the bare oc show.
type standing struct {
	cfg     *config.Config
	owner   gateway.Ownership
	agents  []agentFacts
	running []runFacts
	newest  []*store.Row
	l       *listing
	signals *signals
	stats   awareness.Stats
	unheard error // why the signal log could not be read
	past    []maintenance.Past

	vitals *vitals // nil: the gateway was not asked
}

type runFacts struct {
	row *store.Row
	gateway.Judgement
}

const newestShown = 5

func (c *Call) survey(ctx context.Context) (*standing, error) {
	cfg, err := c.load()
	if err != nil {
		return nil, err
	}
	s := &standing{cfg: cfg, owner: c.owner(ctx, cfg), agents: c.surveyAgents(ctx, cfg), l: &listing{cfg: cfg, now: c.nowMs(), several: true}}
	if s.l.acp, err = store.ReadACP(ctx, cfg.StateDir); err != nil {
		c.Warnf("which sessions run under ACP is unknown: %v", err)
	}
	for _, a := range s.agents {
		if a.err == nil {
			s.l.opened = append(s.l.opened, a.sessions)
		}
	}
	if s.l.sight, err = c.sight(cfg, s.l.opened); err != nil {
		return nil, err
	}
	for _, o := range s.l.opened {
		for i := range o.Rows {
			r := &o.Rows[i]
			if !s.l.sight.lists(r) {
				continue
			}
			s.newest = append(s.newest, r)
			if status, _ := r.Text(row.Status); status == "running" {
				s.running = append(s.running, runFacts{r, judge(ctx, c, r, s.owner)})
			}
		}
	}
	store.Sort(s.newest, store.ByUpdated)
	s.newest = s.newest[:min(len(s.newest), newestShown)]
	var wrong []error
	s.past, wrong = (&maintenance.Worker{Config: cfg, Now: c.Now}).Past("")
	for _, err := range wrong {
		c.Warnf("the runs of oc: %v", err)
	}
	s.signals = &signals{call: c, cfg: cfg, path: awareness.Path(cfg.StateDir), quiet: true}
	if s.stats, s.unheard = s.signals.stats(ctx); s.unheard != nil {
		c.Warnf("the signal log: %v", s.unheard)
	}
	return s, nil
}

func showStatus(ctx context.Context, c *Call) error {
	if changes, err := c.asksForChanges(); err != nil {
		return err
	} else if changes {
		return showChanges(ctx, c)
	}
	if c.Bool("watch") {
		return watchStatus(ctx, c)
	}
	s, err := c.survey(ctx)
	if err != nil {
		return err
	}
	if c.Bool("live") {
		s.vitals = c.vitals(ctx, s.cfg, "", s.l.sight)
	}
	if c.JSON() {
		return s.answer(c)
	}
	out := c.Out
	out.Facts(
		term.Fact{Label: "State", Value: s.cfg.StateDir},
		term.Fact{Label: "Configuration", Value: s.configLine()},
		term.Fact{Label: "Gateway", Value: s.gatewayLine(), Style: gatewayStyle(s.owner.Life)},
		term.Fact{Label: "Signal log", Value: s.signalLine()},
		term.Fact{Label: "Undo", Value: s.undoLine()},
	)
	for _, e := range s.owner.Evidence {
		if e.Points != gateway.None || c.Bool("verbose") {
			says := e.Says
			if e.Path != "" {
				says = e.Path + ": " + says
			}
			reasons(out, "  ", []string{says})
		}
	}
	out.Printf("\n")
	agentTable(c, s.agents)
	if len(s.running) > 0 {
		out.Printf("\nSessions that say they are running:\n")
		for _, r := range s.running {
			out.Printf("  %s  %s\n", out.Paint(verdictStyle(r.Word), string(r.Word)), keyWord(r.row.Key))
			reasons(out, "    ", r.Evidence)
		}
	}
	if len(s.newest) > 0 {
		out.Printf("\nNewest sessions:\n")
		t := out.Table(term.Column{Head: "Kind"}, term.Column{Head: "Key", Cut: term.Middle, Min: 28}, term.Column{Head: "Age", Right: true, Style: futureStyle}, term.Column{Head: "Tokens (ctx %)", Right: true})
		for _, r := range s.newest {
			v := r.View(s.l.acp)
			t.Row(v.Kind, keyWord(r.Key), ageOf(r.Updated, s.l.now), tokensCell(r, v))
		}
		t.End()
	}
	if s.vitals != nil {
		s.vitals.text(c)
	}
	return s.remarks(c)
}

// remarks tells what the answer leaves out; it is a partial one where an agent or the signal log could not be read.
func (s *standing) remarks(c *Call) error {
	err := c.agentRemarks(s.cfg, s.agents)
	s.l.sight.tell(c)
	if s.vitals != nil && s.vitals.err != nil {
		return s.vitals.err
	}
	if err == nil && s.unheard != nil {
		return Status(ExitFailed)
	}
	return err
}

func (s *standing) configLine() string {
	line := s.cfg.ConfigFile
	switch {
	case s.cfg.Broken:
		line += " (cannot be read: defaults are used)"
	case len(s.cfg.Warnings) > 0:
		line += fmt.Sprintf(" (%d warnings)", len(s.cfg.Warnings))
	}
	return line
}

func (s *standing) gatewayLine() string {
	o := s.owner
	switch o.Life {
	case gateway.None:
		return "none seems to live here"
	case gateway.Alive:
		parts := []string{"lives"}
		if o.Role != "" && o.Role != "gateway" {
			parts[0] = o.Role + " lives"
		}
		if o.PID != 0 {
			parts = append(parts, fmt.Sprintf("process %d", o.PID))
		}
		if o.Port != 0 {
			parts = append(parts, fmt.Sprintf("port %d", o.Port))
		}
		if !o.Since.IsZero() {
			parts = append(parts, "since "+term.Time(o.Since.UnixMilli()))
		}
		return strings.Join(parts, ", ")
	}
	return term.Unknown + ": one may live"
}

// signalLine is the signal log in a line, where there is one.
func (s *standing) signalLine() string {
	switch {
	case s.unheard != nil:
		return term.Unknown + ": " + s.unheard.Error()
	case s.signals.schema.None:
		return ""
	}
	return fmt.Sprintf("%s of %s, %s, %s with a pending notice", plural(int(s.stats.Events), "event", "events"), plural(int(s.stats.Sessions), "session", "sessions"), plural(int(s.stats.Watches), "watch", "watches"), term.Count(s.stats.Pending))
}

// undoable are the runs of oc in this state that can be taken back, the bytes saved for that, and how many runs were cut short.
func (s *standing) undoable() (runs, cut int, saved int64) {
	for i := range s.past {
		p := &s.past[i]
		saved += p.Saved
		switch {
		case p.Unfinished():
			cut++
		case p.Possible() == "":
			runs++
		}
	}
	return runs, cut, saved
}

// undoLine is what oc undo can take back, in a line, where there is something.
func (s *standing) undoLine() string {
	runs, cut, saved := s.undoable()
	switch {
	case cut > 0:
		return fmt.Sprintf("%s can be taken back, %s cut short: the next change or oc undo closes it; %s saved", plural(runs, "run", "runs"), plural(cut, "was", "were"), term.Bytes(saved))
	case runs > 0 || saved > 0:
		return fmt.Sprintf("%s can be taken back, %s saved (oc undo --list)", plural(runs, "run", "runs"), term.Bytes(saved))
	}
	return ""
}

func gatewayStyle(l gateway.Life) term.Style {
	switch l {
	case gateway.Alive:
		return term.Green
	case gateway.Maybe:
		return term.Yellow
	}
	return term.Plain
}

func verdictStyle(w gateway.Word) term.Style {
	switch w {
	case gateway.Live:
		return term.Green
	case gateway.ProbablyDead:
		return term.Red
	}
	return term.Yellow
}

func (s *standing) document(p *span.Printer) error {
	p.Object()
	p.Key("stateDir").String(s.cfg.StateDir)
	p.Key("config").Object()
	p.Key("path").String(s.cfg.ConfigFile)
	p.Key("broken").Bool(s.cfg.Broken)
	p.Key("warnings").Array()
	for _, w := range s.cfg.Warnings {
		p.String(w.String())
	}
	p.End()
	p.End()
	runs, cut, saved := s.undoable()
	p.Key("undo").Object()
	p.Key("runs").Int(int64(runs))
	p.Key("cutShort").Int(int64(cut))
	p.Key("savedBytes").Int(saved)
	p.End()
	o := s.owner
	p.Key("gateway").Object()
	p.Key("life").String(string(o.Life))
	number(p, "pid", o.PID)
	number(p, "port", o.Port)
	optional(p, "role", o.Role)
	if p.Key("since"); o.Since.IsZero() {
		p.Null()
	} else {
		p.Int(o.Since.UnixMilli())
	}
	p.Key("evidence").Array()
	for _, e := range o.Evidence {
		p.Object()
		p.Key("kind").String(string(e.Kind))
		p.Key("points").String(string(e.Points))
		if e.Path != "" {
			p.Key("path").String(e.Path)
		}
		if e.PID != 0 {
			p.Key("pid").Int(int64(e.PID))
		}
		if e.Port != 0 {
			p.Key("port").Int(int64(e.Port))
		}
		p.Key("says").String(e.Says)
		p.End()
	}
	p.End()
	p.End()
	p.Key("awareness").Object()
	if s.unheard != nil {
		p.Key("error").String(s.unheard.Error())
	} else {
		p.Key("events").Int(s.stats.Events)
		p.Key("lastSequence").Int(s.stats.Last)
		p.Key("watches").Int(s.stats.Watches)
		p.Key("pendingWatches").Int(s.stats.Pending)
		s.signals.print(p)
	}
	p.End()
	p.Key("agents").Array()
	for i := range s.agents {
		s.agents[i].print(p)
	}
	p.End()
	p.Key("running").Array()
	for _, r := range s.running {
		p.Object()
		p.Key("key").String(r.row.Key)
		p.Key("agentId").String(r.row.Store().Agent)
		p.Key("verdict").String(string(r.Word))
		p.Key("evidence").Array()
		for _, why := range r.Evidence {
			p.String(why)
		}
		p.End()
		p.End()
	}
	p.End()
	p.Key("newest").Array()
	for _, r := range s.newest {
		s.l.row(p, r)
		p.End()
	}
	p.End()
	if s.vitals != nil {
		s.vitals.print(p)
	}
	s.l.sight.print(p)
	agentFailures(s.agents).print(p)
	p.End()
	return nil
}

// number prints a number that is 0 where it is not known.
func number(p *span.Printer, name string, n int) {
	if p.Key(name); n == 0 {
		p.Null()
	} else {
		p.Int(int64(n))
	}
}

// ago puts an age into words: "5m ago", "in 2d", "at an unknown time".
func ago(age string) string {
	switch {
	case age == term.Unknown:
		return "at an unknown time"
	case strings.HasPrefix(age, "in "), age == "now":
		return age
	}
	return age + " ago"
}

// answer gives the state as one document.
func (s *standing) answer(c *Call) error {
	if err := c.Document(s.document); err != nil {
		return err
	}
	return s.remarks(c)
}

// glance is the bare oc: the state in five lines, and what to do next.
func glance(ctx context.Context, c *Call) error {
	s, err := c.survey(ctx)
	if err != nil {
		return err
	}
	if c.JSON() {
		return s.answer(c)
	}
	rows, bytes, eras := 0, int64(0), map[store.Era]int{}
	for _, a := range s.agents {
		rows += len(a.sessions.Rows)
		bytes += a.usage.Total()
		eras[a.sessions.Era]++
	}
	var words []string
	for _, e := range []struct {
		era  store.Era
		says string
	}{{store.FileEra, "in the file era"}, {store.SQLiteEra, "in the SQLite era"}, {store.NoEra, "without a store"}} {
		if n := eras[e.era]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, e.says))
		}
	}
	running := fmt.Sprint(len(s.running))
	stuck := 0
	for _, r := range s.running {
		if r.Word != gateway.Live {
			stuck++
		}
	}
	if stuck > 0 {
		running += fmt.Sprintf(", of which %d do not seem to be", stuck)
	}
	last := "none"
	if len(s.newest) > 0 {
		last = fmt.Sprintf("%s, %s", keyWord(s.newest[0].Key), ago(ageOf(s.newest[0].Updated, s.l.now)))
	}
	c.Out.Facts(
		term.Fact{Label: "State", Value: s.cfg.StateDir},
		term.Fact{Label: "Gateway", Value: s.gatewayLine(), Style: gatewayStyle(s.owner.Life)},
		term.Fact{Label: "Sessions", Value: fmt.Sprintf("%s, %s on disk", term.Count(int64(rows)), term.Bytes(bytes))},
		term.Fact{Label: "Agents", Value: fmt.Sprintf("%d: %s", len(s.agents), strings.Join(words, ", "))},
		term.Fact{Label: "Running", Value: running},
		term.Fact{Label: "Newest", Value: last},
	)
	others := 0
	for _, a := range s.agents {
		if o := a.sessions.Other; o != nil {
			others++
		}
	}
	next := "oc sessions lists them, oc status shows more, oc help has every command"
	switch {
	case rows == 0 && (others > 0 || len(agentFailures(s.agents)) > 0):
		next = "oc agents list says which stores there are"
	case rows == 0:
		next = "no session was found here; name another state with --state-dir DIR, or see oc help"
	case stuck > 0:
		next = "oc sessions --stuck --all-agents lists those that do not seem to run; oc status says why"
	}
	c.Out.Printf("\n")
	c.next(next)
	return s.remarks(c)
}
