package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"oc/awareness"
	"oc/config"
	"oc/gateway"
	"oc/store"
	"oc/store/row"
	"oc/store/span"
)

// The flags of status that ask for one session and for what happened to it.
var changesFlags = []Flag{
	{Name: "session", Value: "KEY", Help: "the status of this session; with --changes-since, else OC_SESSION, else the default agent's main session"},
	{Name: "agent", Value: "ID", Help: "the agent that the session belongs to, where its key does not say it"},
	{Name: "changes-since", Value: "N", Help: "the events of its signal log after version N", Takes: "a version: a whole number from 0 to 9007199254740991", Check: IsWhole},
	{Name: "all-sessions", Help: "with --changes-since, those of all sessions; N is then a sequence of the whole log"},
	{Name: "wait", Value: "DURATION", Help: "wait that long for an event; exit 7 when none came", Takes: "a duration such as 30s or 5m", Check: IsDuration},
	watchFlag, liveFlag, asFlag,
}

// asksForChanges tells whether status is about sessions rather than about the whole state.
func (c *Call) asksForChanges() (bool, error) {
	since, all := c.Given("changes-since"), c.Bool("all-sessions")
	switch {
	case c.Bool("watch") && (since || all || c.Given("session")):
		return false, Usagef("--watch shows the whole state; --changes-since N --wait DURATION waits for the events of a session")
	case all && c.Given("session"):
		return false, Usagef("--all-sessions and --session exclude each other; give one of them")
	case all && !since:
		return false, Usagef("--all-sessions goes with --changes-since N")
	case c.Given("wait") && !since:
		return false, Usagef("--wait goes with --changes-since N: it waits for an event after version N")
	case c.Bool("live") && since:
		return false, Usagef("--live and --changes-since exclude each other: the signal log is read from disk; give one of them")
	case c.Given("session") && strings.TrimSpace(c.String("session")) == "":
		return false, Usagef("--session takes the key of a session")
	case c.Given("agent") && !since && !c.Given("session"):
		return false, Usagef("--agent goes with --session KEY or --changes-since N; oc agents list shows agents")
	}
	return since || c.Given("session"), nil
}

// showChanges answers status --session and status --changes-since.
func showChanges(ctx context.Context, c *Call) error {
	s, err := c.signals()
	if err != nil {
		return err
	}
	if c.Bool("all-sessions") {
		return c.showAllChanges(ctx, s)
	}
	word := c.subjectWord(s.cfg)
	a := &delta{signals: s, asked: c.Given("changes-since"), after: c.Int("changes-since")}
	if a.subject, err = c.subject(ctx, s.cfg, word, c.String("agent")); err != nil {
		return err
	}
	if a.l.sight, err = c.sight(s.cfg, a.l.opened); err != nil {
		return err
	}
	if err := a.visible(s.cfg); err != nil {
		return err
	}
	look := func(snap *awareness.Snapshot) (bool, error) {
		if err := a.settle(snap); err != nil {
			return false, err
		}
		a.Changes, err = snap.Changes(a.key, a.agent, a.after, awareness.PageSize)
		return len(a.Events) > 0 || a.Gap, err
	}
	came, err := s.look(ctx, look)
	if err != nil {
		return err
	}
	if c.Given("wait") { // the session may have moved on meanwhile
		now, err := c.subject(ctx, s.cfg, word, c.String("agent"))
		if err != nil {
			return err
		}
		now.l.sight = a.l.sight
		a.row, a.l, a.failed = now.row, now.l, now.failed
	}
	if err := a.gather(ctx, c); err != nil {
		return err
	}
	if c.Bool("live") {
		a.vitals = c.vitals(ctx, s.cfg, a.key, a.l.sight)
	}
	if c.JSON() {
		if err := c.Document(a.document); err != nil {
			return err
		}
	} else {
		a.text(c)
	}
	if a.vitals != nil && a.vitals.err != nil {
		return a.vitals.err
	}
	if a.row != nil {
		c.remark(a.row.Store())
	} else if elsewhere := store.Elsewhere(ctx, s.cfg, cmp.Or(c.String("agent"), s.cfg.DefaultAgent()), a.l.opened, word); len(elsewhere) > 0 {
		at := elsewhere[0].Store()
		c.Warnf("%s is not in a store that is in use, but in %s (agent %s, %s era)", elsewhere[0].Key, at.Path, at.Agent, at.Era)
	}
	if err := c.tell(a.failed); err != nil {
		return err
	}
	return c.waited(came)
}

// look reads once or, under --wait, until f is content or the time is over; came is what f said last.
func (s *signals) look(ctx context.Context, f func(*awareness.Snapshot) (bool, error)) (came bool, err error) {
	once := func(snap *awareness.Snapshot) (bool, error) {
		came, err = f(snap)
		s.schema = snap.Schema()
		return came, err
	}
	if s.call.Given("wait") {
		limited, stop := context.WithTimeout(ctx, s.call.Duration("wait"))
		defer stop()
		err := awareness.Wait(limited, s.path, 0, once)
		switch {
		case err == nil:
			s.remark(ctx)
			return came, nil
		case ctx.Err() != nil:
			return false, fmt.Errorf("wait for an event in %s: %w", s.path, ctx.Err())
		case !errors.Is(err, context.DeadlineExceeded):
			return false, s.blame(ctx, err)
		}
		// What is there when the time is over is the answer.
	}
	err = s.read(ctx, func(snap *awareness.Snapshot) error {
		_, err := once(snap)
		return err
	})
	return came, err
}

// waited ends an answer: exit 7 where --wait was given and nothing came.
func (c *Call) waited(came bool) error {
	if !c.Given("wait") || came {
		return nil
	}
	c.Notef("nothing came within %s", c.String("wait"))
	return Status(ExitNothing)
}

// subject is the session that a question is about. The stores know it, or the log does, or nobody.
type subject struct {
	l      *listing
	failed failures   // stores that may have it
	row    *store.Row // nil: no store has it
	word   string     // as it was asked for
	flag   string     // --agent
	key    string
	agent  string
	known  bool // the log has heard of it
}

// visible is an error where the session is not for the one that asks.
func (s *subject) visible(cfg *config.Config) error {
	if s.row != nil {
		return s.l.sight.reads(s.row)
	}
	agent := cmp.Or(s.flag, cfg.DefaultAgent())
	if id, _, ok := row.Parse(s.word); ok {
		agent = id
	}
	key := store.StoredKey(cfg, agent, s.word)
	return s.l.sight.allows(store.Sighted{Key: key, Agent: agent}, key)
}

// subjectWord is the session that is meant where none is named.
func (c *Call) subjectWord(cfg *config.Config) string {
	switch {
	case c.Given("session"):
		return c.String("session")
	case c.Given("agent"):
		return store.StoredKey(cfg, c.String("agent"), "main")
	}
	return c.ownSession(cfg)
}

// ownSession is the session that oc speaks for: OC_SESSION, else the default agent's main session.
func (c *Call) ownSession(cfg *config.Config) string {
	return cmp.Or(strings.TrimSpace(c.Env("OC_SESSION")), store.StoredKey(cfg, cfg.DefaultAgent(), "main"))
}

// subject looks a word up in the stores. Only those that can have it are opened. flag is what --agent says.
func (c *Call) subject(ctx context.Context, cfg *config.Config, word, flag string) (*subject, error) {
	s := &subject{l: &listing{cfg: cfg, now: c.nowMs()}, word: strings.TrimSpace(word), flag: flag}
	if s.word == "" {
		return nil, Usagef("the key of a session is blank")
	}
	agent, _, qualified := row.Parse(word)
	switch {
	case s.flag != "":
		agent = s.flag
	case !qualified:
		agent = ""
	}
	for _, t := range storesOf(cfg, agent) {
		found, err := store.Open(ctx, cfg, t)
		if s.failed.add(found, err); err != nil {
			continue
		}
		s.l.opened = append(s.l.opened, found)
	}
	found := store.Find(cfg, cmp.Or(s.flag, cfg.DefaultAgent()), s.l.opened, s.word)
	switch len(found) {
	case 0:
	case 1:
		s.row, s.key, s.agent = found[0], found[0].Key, found[0].View(nil).Agent
	default:
		var all []string
		for _, r := range found {
			all = append(all, fmt.Sprintf("%s (agent %s)", r.Key, r.View(nil).Agent))
		}
		return nil, Usagef("%q means %d sessions: %s; give the key of one, or --agent ID", word, len(found), strings.Join(all, ", "))
	}
	return s, nil
}

// storesOf are the stores of one agent, configured or only on disk; of all configured ones where none is named.
func storesOf(cfg *config.Config, agent string) []store.Target {
	all, _ := store.Targets(cfg, store.Pick{All: true}) // only --agent can be unknown
	if agent == "" {
		return all
	}
	if its, err := store.Targets(cfg, store.Pick{Agent: agent}); err == nil {
		return its
	}
	id := config.NormalizeAgentID(agent)
	return slices.DeleteFunc(append(all, store.StrangerTargets(cfg)...), func(t store.Target) bool { return t.Agent != id })
}

// settle finds the session in the log, where no store has it: deleted ones are still there, and bare keys such as global.
func (s *subject) settle(snap *awareness.Snapshot) error {
	if s.row != nil {
		h, err := snap.Head(s.key, s.agent)
		s.known = h.SessionKey != ""
		return err
	}
	cfg := s.l.cfg
	stored := store.StoredKey(cfg, cmp.Or(s.flag, cfg.DefaultAgent()), s.word)
	s.known = false
	for _, key := range []string{s.word, stored, row.Canonical(s.word)} {
		var agents []string
		if s.flag != "" {
			agents = []string{s.flag, config.NormalizeAgentID(s.flag)}
		} else if id, _, ok := row.Parse(key); ok {
			agents = []string{row.AgentID(id)}
		} else if err := snap.Heads(func(h awareness.Head) error {
			if h.SessionKey == key {
				agents = append(agents, h.AgentID)
			}
			return nil
		}); err != nil {
			return err
		} else if len(agents) > 1 {
			return Usagef("the log has %q of %d agents: %s; say whose with --agent ID", key, len(agents), strings.Join(agents, ", "))
		}
		for _, agent := range agents {
			h, err := snap.Head(key, agent)
			if err != nil {
				return err
			}
			if h.SessionKey != "" {
				s.key, s.agent, s.known = key, agent, true
				return nil
			}
		}
	}
	s.key, s.agent = stored, cfg.DefaultAgent()
	if id, _, ok := row.Parse(stored); ok {
		s.agent = row.AgentID(id)
	}
	if s.flag != "" {
		s.agent = config.NormalizeAgentID(s.flag)
	}
	return nil
}

// delta is what happened to one session, and how it is.
type delta struct {
	*signals
	*subject
	awareness.Changes
	asked bool  // for changes
	after int64 // the version asked about
	view  store.View
	run   *gateway.Judgement

	vitals *vitals // nil: the gateway was not asked
}

// gather adds what the session's own row tells.
func (a *delta) gather(ctx context.Context, c *Call) (err error) {
	if a.row == nil {
		return nil
	}
	if a.l.acp, err = store.ReadACP(ctx, a.l.cfg.StateDir); err != nil {
		c.Warnf("which sessions run under ACP is unknown: %v", err)
	}
	a.view = a.row.View(a.l.acp)
	if status, _ := a.row.Text(row.Status); status == "running" {
		j := judge(ctx, c, a.row, c.owner(ctx, a.l.cfg))
		a.run = &j
	}
	return nil
}

// What a reader has to do about an answer.
const (
	doNothing   = "nothing-changed"
	doReconcile = "reconcile"
	doRefresh   = "refresh"
	doLookAgain = "ahead-of-head" // the version is not one that the session ever had
	doUnknown   = "unknown"       // there is no log, or neither a store nor the log knows the session
)

// advice is what to do, as JSON has it.
func (a *delta) advice() string {
	switch {
	case a.schema.None:
		return doUnknown
	case a.Gap:
		return doRefresh
	case len(a.Events) > 0:
		return doReconcile
	case a.row == nil && !a.known:
		return doUnknown
	case a.AheadOfHead:
		return doLookAgain
	}
	return doNothing
}

// document has OpenClaw's members of a session status first (spec/awareness.md 5.3), then oc's own.
func (a *delta) document(p *span.Printer) error {
	p.Object()
	p.Key("ok").Bool(true)
	p.Key("sessionKey").String(a.key)
	p.Key("agentId").String(a.agent)
	p.Key("changedModel").Bool(false)
	p.Key("stateVersion").Int(a.Version)
	if a.asked {
		printChanges(p, a.Changes)
		p.Key("changesSince").Int(a.after)
		p.Key("aheadOfHead").Bool(a.AheadOfHead)
		p.Key("logOnly").Array()
		for _, e := range a.Events {
			if !awareness.Notifies(e.Kind) {
				p.Int(e.Sequence)
			}
		}
		p.End()
		p.Key("next").Object()
		p.Key("do").String(a.advice())
		p.Key("changesSince").Int(a.next())
		p.End()
	}
	if p.Key("session"); a.row == nil {
		p.Null()
	} else {
		a.session(p)
	}
	if a.vitals != nil {
		a.vitals.print(p)
	}
	a.l.sight.print(p)
	a.print(p)
	a.failed.print(p)
	p.End()
	return nil
}

// next is the version to ask after next time.
func (a *delta) next() int64 {
	switch {
	case a.Truncated:
		return a.Changes.Next(a.after)
	case a.AheadOfHead && len(a.Events) == 0:
		return a.Version
	}
	return max(a.Version, a.after, a.Changes.Next(a.after)) // events beyond the head are damage, and are told once all the same
}

// session prints the row as lists have it, and what its run and its usage are.
func (a *delta) session(p *span.Printer) {
	a.l.row(p, a.row)
	p.Key("run").Object()
	if a.run != nil {
		p.Key("verdict").String(string(a.run.Word))
		p.Key("evidence").Array()
		for _, why := range a.run.Evidence {
			p.String(why)
		}
		p.End()
	}
	fields(p, a.row, row.StartedAt, row.EndedAt, row.RuntimeMs, row.AbortedLastRun)
	p.End()
	p.Key("usage").Object()
	fields(p, a.row, row.InputTokens, row.OutputTokens, row.CacheRead, row.CacheWrite, row.EstimatedCostUSD, row.CompactionCount)
	p.End()
	p.End()
}

// printChanges prints stateChanges as OpenClaw does.
func printChanges(p *span.Printer, ch awareness.Changes) {
	p.Key("stateChanges").Object()
	p.Key("events").Array()
	for _, e := range ch.Events {
		p.Object()
		printEvent(p, e)
		p.End()
	}
	p.End()
	p.Key("truncated").Bool(ch.Truncated)
	p.Key("earliestAvailableSequence").Int(ch.Earliest)
	p.Key("historyGap").Bool(ch.Gap)
	p.End()
}

// printEvent prints the members of an event that a session status shows, and leaves the object open.
func printEvent(p *span.Printer, e awareness.Event) {
	p.Key("sequence").Int(e.Sequence)
	p.Key("kind").String(e.Kind)
	p.Key("actorType").String(e.ActorType)
	if p.Key("occurredAt"); e.Undated {
		p.Null()
	} else {
		p.Int(e.OccurredAt)
	}
	p.Key("summary").String(e.Summary)
	if e.ActorID != "" {
		p.Key("actorId").String(e.ActorID)
	}
	if e.RunID != "" {
		p.Key("runId").String(e.RunID)
	}
	if e.Payload != (awareness.Payload{}) {
		p.Key("payload").Object()
		if e.Payload.Outcome != "" {
			p.Key("outcome").String(e.Payload.Outcome)
		}
		if e.Payload.Channel != "" {
			p.Key("channel").String(e.Payload.Channel)
		}
		if e.Payload.Turns > 0 {
			p.Key("turns").Int(e.Payload.Turns)
		}
		p.End()
	}
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
