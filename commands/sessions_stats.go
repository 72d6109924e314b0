package commands

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"oc/commands/term"
	"oc/maintenance"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/span"
)

func sessionsStats() *Command {
	return &Command{
		Name:  "stats",
		Short: "tokens and cost by day, model, agent, kind and session",
		Long: "Adds up what models used, as it is recorded with each answer in the transcripts: live ones and those that were put away, with history that no session names. " +
			"Where both eras hold sessions, what only the one has that OpenClaw does not read is counted apart; --both-eras adds it to the rest. " +
			"An answer counts once, however many archives, checkpoints, forks and imports repeat it. What was counted is said, and what could not be. Cost is what OpenClaw recorded, in US " +
			"dollars; an answer without a price is counted as such and never as free. What transcripts held that oc itself removed comes from the sums that were kept with the run, on a line of its own.\n\n" +
			"A session whose row says another cost than its transcript adds up to is named. With --bytes it says instead where the space goes.",
		Flags: []Flag{
			{Name: "by", Value: "WHAT", Repeatable: true, Help: "only this list, or these", Choices: []string{"day", "model", "agent", "kind", "session"}},
			{Name: "since", Value: "TIME", Help: "only answers at this time or later", Takes: momentHelp, Check: isMoment},
			{Name: "until", Value: "TIME", Help: "only answers before this time", Takes: momentHelp, Check: isMoment},
			{Name: "tz", Value: "ZONE", Help: "the time zone of days, without it the local one", Takes: "a time zone such as Europe/Vienna or UTC", Check: isZone},
			{Name: "limit", Value: "N|all", Default: "20", Help: "how many models and sessions to show, the costliest", Takes: `a positive whole number or "all", for example --limit 25`, Check: IsCountOrAll},
			anyAgentFlag, allAgentsFlag, storeFlag, bothErasFlag,
			{Name: "kind", Value: "KIND", Repeatable: true, Help: "only sessions of this kind, or of one of these", Choices: kinds},
			{Name: "csv", Help: "comma-separated values instead of tables"},
			asFlag,
			{Name: "bytes", Help: "where the space goes instead: fields of rows, kinds of content, images, repeated messages"},
		},
		Examples: []Example{
			{"oc sessions stats --since 30d", "a month by day, model, agent, kind and session"},
			{"oc sessions stats --by day --tz UTC --csv", "a table for a spreadsheet"},
			{"oc sessions stats --bytes", "what fills the disk"},
		},
		Run: statsOfSessions,
	}
}

func isZone(s string) bool {
	_, err := time.LoadLocation(s)
	return err == nil && s != ""
}

// spending is what stats answers.
type spending struct {
	*store.Spending
	call    *Call
	lib     *library
	volumes []*store.Volume
	zone    *time.Location
	removed *removed // nil where it is not known of which sessions
	wrong   []store.Mismatch
	missing int // sessions without a transcript
	sight   *sight
}

// removed is what runs of oc have kept of transcripts that they removed.
type removed struct {
	files int
	maintenance.Usage
}

func statsOfSessions(ctx context.Context, c *Call) error {
	if c.Bool("csv") && c.JSON() {
		return Usagef("--csv and --json exclude each other; give one of them")
	}
	lib, err := c.library(ctx)
	if err != nil {
		return err
	}
	seen, err := c.sight(lib.cfg, lib.Stores)
	if err != nil {
		return err
	}
	kinds := c.Strings("kind")
	volumes := lib.chosen(kinds, seen)
	both := c.Bool("both-eras")
	wanted := func(r *store.Row) bool {
		return (both || !r.Store().Beside) && seen.sees(r) && (len(kinds) == 0 || slices.Contains(kinds, r.ListKind()))
	}
	total := int64(0)
	for _, v := range volumes {
		total += max(v.Bytes, 0)
	}
	p := c.Progress("counting")
	var done atomic.Int64
	progress := func(bytes, _ int64) { p.Set(done.Add(bytes), total) }
	if c.Bool("bytes") {
		other := len(volumes)
		if !both {
			volumes = slices.DeleteFunc(volumes, (*store.Volume).Beside)
		}
		other -= len(volumes)
		w, err := store.Weigh(ctx, volumes, lib.Stores, wanted, progress)
		if p.Done(); err != nil {
			return err
		}
		return c.showWeight(lib, seen, volumes, other, w)
	}
	q := store.Count{Zone: time.Local, Both: both, Done: progress}
	q.Since, _ = parseMoment(c.String("since"), c.Now())
	q.Until, _ = parseMoment(c.String("until"), c.Now())
	if c.Given("tz") {
		if q.Zone, err = time.LoadLocation(c.String("tz")); err != nil {
			return Usagef("--tz: %w", err)
		}
	}
	s := &spending{call: c, lib: lib, volumes: volumes, zone: q.Zone, sight: seen}
	s.Spending, err = q.Run(ctx, volumes)
	if p.Done(); err != nil {
		return err
	}
	lib.Problems = append(lib.Problems, s.Failed...)
	s.wrong = s.Mismatches()
	s.missing = lib.withoutTranscript(wanted)
	if !c.Given("kind") && seen == nil { // a run does not say of which kind the session was, or whose
		s.removed = c.removedUsage(lib, q.Since, q.Until)
	}
	switch {
	case c.JSON():
		err = c.Document(s.document)
	case c.Bool("csv"):
		err = s.csv()
	default:
		s.text()
	}
	if err != nil {
		return err
	}
	seen.tell(c)
	return lib.end(c)
}

// withoutTranscript counts the sessions whose transcript is nowhere: what they used is not known.
func (l *library) withoutTranscript(wanted func(*store.Row) bool) (n int) {
	has := map[*store.Row]bool{}
	for _, v := range l.Volumes {
		if v.Row != nil && v.Reason == store.Current {
			has[v.Row] = true
		}
	}
	for _, s := range l.Stores {
		for i := range s.Rows {
			if r := &s.Rows[i]; !has[r] && wanted(r) {
				n++
			}
		}
	}
	return n
}

// removedUsage adds up what runs of oc noted of transcripts before they removed them, unless they were brought back.
func (c *Call) removedUsage(l *library, since, until int64) *removed {
	r := &removed{}
	w := &maintenance.Worker{Config: l.cfg, Now: c.Now, Wait: patience}
	seen := map[string]bool{}
	for _, s := range l.Stores {
		past, _ := w.Past(s.Place().Store) // what cannot be read is told by oc undo --list
		for i := range past {
			p := &past[i]
			if seen[p.Home+"\x00"+p.ID] || p.State != journal.Done {
				continue
			}
			run, err := p.Journal.Load(p.ID)
			if err != nil {
				continue
			}
			seen[p.Home+"\x00"+p.ID] = true
			for j := range run.Steps {
				st := &run.Steps[j]
				var facts struct{ Usage *maintenance.Usage }
				if st.Kind != journal.Remove || st.Skipped != "" || st.Undo != journal.NotTaken || json.Unmarshal(st.Facts, &facts) != nil || facts.Usage == nil {
					continue
				}
				u := facts.Usage
				if since > 0 && u.Last < since || until > 0 && u.First >= until {
					continue
				}
				r.files++
				r.Answers += u.Answers
				r.Input, r.Output, r.CacheRead, r.CacheWrite, r.Cost = r.Input+u.Input, r.Output+u.Output, r.CacheRead+u.CacheRead, r.CacheWrite+u.CacheWrite, r.Cost+u.Cost
				if r.First == 0 || u.First > 0 && u.First < r.First {
					r.First = u.First
				}
				r.Last = max(r.Last, u.Last)
			}
		}
	}
	return r
}

// lists are the groups that are asked for; limited tells whether there are more of them.
func (s *spending) lists(limited bool) (all []list) {
	asked := s.call.Strings("by")
	n, every := s.call.CountOrAll("limit")
	for _, l := range []list{{"day", "Day", s.Days, 0}, {"model", "Model", s.Models, 0}, {"agent", "Agent", s.Agents, 0}, {"kind", "Kind", s.Kinds, 0}, {"session", "Session", s.Sessions, 0}} {
		if len(asked) > 0 && !slices.Contains(asked, l.by) {
			continue
		}
		if limited && !every && (l.by == "model" || l.by == "session") && int64(len(l.groups)) > n {
			l.more = len(l.groups) - int(n)
			l.groups = l.groups[:n]
		}
		all = append(all, l)
	}
	return all
}

// A list is the groups of one kind.
type list struct {
	by, head string
	groups   []store.Group
	more     int
}

func (s *spending) document(p *span.Printer) error {
	p.Object()
	p.Key("timeZone").String(s.zoneName())
	p.Key("totals").Object()
	printSpent(p, &s.Total)
	p.End()
	for _, l := range s.lists(true) {
		p.Key(map[string]string{"day": "days", "model": "models", "agent": "agents", "kind": "kinds", "session": "sessions"}[l.by]).Array()
		for i := range l.groups {
			g := &l.groups[i]
			p.Object()
			if p.Key(l.by); g.Name == "" {
				p.Null()
			} else {
				p.String(g.Name)
			}
			if l.by == "session" {
				p.Key("agentId").String(g.Volume.Agent)
				p.Key("sessionId").String(g.Volume.ID)
				p.Key("era").String(eraOf(g.Eras))
			}
			printSpent(p, &g.Spent)
			p.End()
		}
		p.End()
	}
	s.printCoverage(p)
	p.Key("mismatches").Array()
	for _, m := range s.wrong {
		p.Object()
		p.Key("key").String(m.Row.Key)
		p.Key("agentId").String(m.Row.Store().Agent)
		p.Key("storedCostUsd").Float(m.Stored)
		p.Key("computedCostUsd").Float(m.Computed)
		p.End()
	}
	p.End()
	s.sight.print(p)
	s.lib.printProblems(p)
	p.End()
	return nil
}

func printSpent(p *span.Printer, s *store.Spent) {
	p.Key("answers").Int(int64(s.Answers))
	p.Key("silentAnswers").Int(int64(s.Silent))
	p.Key("inputTokens").Float(s.Input)
	p.Key("outputTokens").Float(s.Output)
	p.Key("cacheReadTokens").Float(s.CacheRead)
	p.Key("cacheWriteTokens").Float(s.CacheWrite)
	p.Key("totalTokens").Float(s.Tokens())
	if p.Key("costUsd"); s.Priced == 0 {
		p.Null()
	} else {
		p.Float(cents(s.Cost))
	}
	p.Key("withoutPrice").Int(int64(s.Answers - s.Priced))
	stamp(p, "firstAt", s.First)
	stamp(p, "lastAt", s.Last)
}

// eraOf is the era of what is counted together, or "both".
func eraOf(eras []store.Era) string {
	if len(eras) > 1 {
		return "both"
	}
	return string(eras[0])
}

// cents takes away what adding fractions has left behind the tenth digit.
func cents(usd float64) float64 {
	f, _ := strconv.ParseFloat(strconv.FormatFloat(usd, 'f', 10, 64), 64)
	return f
}

func (s *spending) printCoverage(p *span.Printer) {
	p.Key("coverage").Object()
	p.Key("transcripts").Int(int64(len(s.volumes)))
	p.Key("transcriptsWithUsage").Int(int64(s.Used))
	p.Key("bytes").Int(s.Bytes)
	p.Key("unreadTranscripts").Int(int64(len(s.Unread)))
	p.Key("sessionsWithoutTranscript").Int(int64(s.missing))
	p.Key("repeatedAnswers").Int(int64(s.Repeats))
	p.Key("answersOutside").Int(int64(s.Outside))
	p.Key("answersWithoutTime").Int(int64(s.Untimed))
	p.Key("onlyInOtherEra").Object()
	printSpent(p, &s.Other)
	p.Key("includedInTotals").Bool(s.call.Bool("both-eras"))
	p.End()
	if p.Key("removedByOc"); s.removed == nil {
		p.Null()
	} else {
		p.Object()
		p.Key("transcripts").Int(int64(s.removed.files))
		p.Key("answers").Int(int64(s.removed.Answers))
		p.Key("totalTokens").Float(s.removed.Input + s.removed.Output + s.removed.CacheRead + s.removed.CacheWrite)
		p.Key("costUsd").Float(cents(s.removed.Cost))
		p.Key("includedInTotals").Bool(false)
		p.End()
	}
	p.End()
}

func (s *spending) csv() error {
	w := csv.NewWriter(s.call.Out)
	w.Write([]string{"by", "name", "answers", "inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "totalTokens", "costUsd", "withoutPrice", "first", "last"}) //nolint:errcheck // kept
	whole := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	row := func(by, name string, g *store.Spent) {
		cost := ""
		if g.Priced > 0 && !math.IsInf(g.Cost, 0) {
			cost = whole(cents(g.Cost))
		}
		w.Write([]string{ //nolint:errcheck // kept
			by, name, strconv.Itoa(g.Answers), whole(g.Input), whole(g.Output), whole(g.CacheRead), whole(g.CacheWrite), whole(g.Tokens()), cost,
			strconv.Itoa(g.Answers - g.Priced), s.moment(g.First), s.moment(g.Last),
		})
	}
	for _, l := range s.lists(false) {
		for i := range l.groups {
			row(l.by, cell(l.groups[i].Name), &l.groups[i].Spent)
		}
	}
	row("total", "", &s.Total)
	w.Flush()
	return w.Error()
}

// cell keeps a name of somebody else's from being a formula in a spreadsheet, and from leaving its line.
func cell(name string) string {
	if name == "" {
		return term.Unknown
	}
	if strings.ContainsAny(name[:1], "=+-@\t\r") {
		name = "'" + name
	}
	return term.Escape(name)
}

func (s *spending) moment(ms int64) string {
	if ms <= 0 {
		return ""
	}
	return time.UnixMilli(ms).In(s.zone).Format(time.RFC3339)
}

// zoneName is the name of the zone of days; of the local one, what it is called now.
func (s *spending) zoneName() string {
	if s.zone != time.Local {
		return s.zone.String()
	}
	name, _ := s.call.Now().In(s.zone).Zone()
	return name
}

// money is a sum in US dollars for people.
func money(s *store.Spent) string {
	switch {
	case s.Priced == 0 && s.Answers > 0:
		return term.Unknown
	case s.Priced < s.Answers:
		return dollars(s.Cost) + "+"
	}
	return dollars(s.Cost)
}

// dollars is a sum to the cent; what no bill can be is shown short.
func dollars(x float64) string {
	switch {
	case math.IsInf(x, 0):
		return term.Unknown
	case math.Abs(x) >= 1e12:
		return fmt.Sprintf("$%.3g", x)
	}
	return fmt.Sprintf("$%.2f", x)
}
