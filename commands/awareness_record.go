package commands

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"oc/awareness"
	"oc/gateway"
	"oc/store/row"
	"oc/store/span"
)

// summaryChars is how long a summary may be: OpenClaw's own are far shorter, and a longer one is somebody's message.
const summaryChars = 300

func awarenessRecord() *Command {
	return &Command{
		Name:  "record",
		Args:  "TARGET",
		Short: "record an event of a session, for those who watch it",
		Long: "Appends one event to the signal log, as OpenClaw does: of events with the same dedupe key the first stays, watchers other than the actor fall behind, and what is past the " +
			"retention goes if no gateway lives. A human_direct_message is recorded only if somebody watches the session or another session made it.\n\n" +
			"A gateway that runs does not learn of it at once: it tells watchers at its next start, or when it records an event of that session itself. The summary is one short line that says what happened, " +
			"never the content of a message.",
		Flags: []Flag{
			{Name: "kind", Value: "KIND", Help: "what happened; only human_direct_message, upstream_missing and goal_changed are told to watchers", Choices: awareness.Kinds(), Takes: "a kind such as " + awareness.GoalChanged, Check: isName},
			{Name: "actor", Value: "TYPE", Help: "who did it; else human for a human_direct_message, system for others", Choices: []string{"human", "agent", "system"}},
			{Name: "actor-id", Value: "ID", Help: "which one, such as a session key; a watcher of that key is not told. For an agent it is else OC_SESSION", Takes: nameTakes, Check: isName},
			{Name: "summary", Value: "TEXT", Help: "what happened, in one short line", Takes: "one line of 1 to 300 characters", Check: isSummary},
			{Name: "dedupe-key", Value: "TEXT", Help: "do nothing if an event with this key was recorded already", Takes: nameTakes, Check: isName},
			{Name: "run-id", Value: "ID", Help: "the run that it belongs to", Takes: nameTakes, Check: isName},
			{Name: "outcome", Value: "WORD", Help: "how a run_failed ended", Choices: []string{"error", "timeout", "cancelled"}},
			{Name: "agent", Value: "ID", Help: "the agent that TARGET belongs to, where its key does not say it"},
		},
		Examples: []Example{
			{"oc awareness record main --kind goal_changed --summary 'goal changed'", "tell those who watch the main session"},
			{"oc awareness record ci --kind run_failed --summary 'job 7' --dedupe-key 7", "record a run once, whoever tells it first"},
		},
		Exits: []int{ExitBusy, ExitRefused},
		Run:   recordEvent,
	}
}

func isSummary(s string) bool { return isLine(s, summaryChars) }

// What others are to read in one line, their models too.
const nameTakes = "1 to 500 characters in one line"

func isName(s string) bool { return isLine(s, 500) }

// nameable is an error where the key of a session that no store has would not be one line in a notice.
func (s *subject) nameable() error {
	if s.row == nil && !isName(s.word) {
		return Usagef("%q is not the key of a session: a key has %s", brief(s.word), nameTakes)
	}
	return nil
}

// isLine says whether a text is one line of so many characters at most, and not blank.
func isLine(s string, most int) bool {
	return strings.TrimSpace(s) != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= most &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' })
}

// recorded is what came of a record.
type recorded struct {
	*signals
	awareness.Appended
	unwatched bool // a human's message to a session that nobody watches: not recorded
	pruned    awareness.Pruned
}

func recordEvent(ctx context.Context, c *Call) error {
	for _, must := range []string{"kind", "summary"} {
		if !c.Given(must) {
			return Usagef("oc awareness record needs --%s", must)
		}
	}
	s, err := c.signals()
	if err != nil {
		return err
	}
	target, err := c.subject(ctx, s.cfg, c.Arg(0), c.String("agent"))
	if err == nil {
		err = target.nameable()
	}
	if err != nil {
		return err
	}
	for _, f := range target.failed {
		c.Warnf("%v; the event has no session id, and its parent is not told", f.err)
	}
	in := awareness.Entry{
		Kind: c.String("kind"), ActorType: c.String("actor"), ActorID: c.String("actor-id"), RunID: c.String("run-id"), Summary: strings.TrimSpace(c.String("summary")),
		DedupeKey: c.String("dedupe-key"), Payload: awareness.Payload{Outcome: c.String("outcome")},
	}
	human := in.Kind == awareness.HumanDirectMessage
	switch {
	case in.ActorType == "" && human:
		in.ActorType = "human"
	case in.ActorType == "":
		in.ActorType = "system"
	case human && in.ActorType != "human":
		return Usagef("a human_direct_message is by a human, not --actor %s", in.ActorType)
	}
	if in.ActorID == "" && in.ActorType == "agent" {
		in.ActorID = strings.TrimSpace(c.Env("OC_SESSION"))
	}
	parent := ""
	if target.row != nil {
		in.SessionID = target.row.ID()
		parent = parentOf(&target.row.Entry)
	}
	switch in.Kind {
	case awareness.HumanDirectMessage, awareness.GoalChanged:
		if parent != "" {
			in.Watchers = []string{parent}
		}
	case awareness.ChildSpawned:
		if in.ActorID != "" {
			in.Watchers = []string{in.ActorID}
		}
	}
	r := &recorded{signals: s}
	due := false
	err = s.change(ctx, s.world(ctx, false), func(e *awareness.Edit) error {
		if err := target.settle(&e.Snapshot); err != nil {
			return err
		}
		in.SessionKey, in.AgentID = target.key, target.agent
		if human && parent == "" {
			watched, err := e.Watched(in.SessionKey)
			if r.unwatched = !watched; err != nil || !watched {
				return err
			}
		}
		if r.Appended, err = e.Append(in); err != nil {
			return err
		}
		due, err = pruneDue(&e.Snapshot, c.Now().UnixMilli())
		return err
	})
	if err != nil {
		return err
	}
	if due {
		if err := r.prune(ctx, c); err != nil {
			c.Warnf("the event is recorded, but what is past the retention is still there: %v", err)
		}
	}
	if c.JSON() {
		return c.Document(r.document)
	}
	r.text(c, in)
	return nil
}

// parentOf is the session that made another (spec/awareness.md 2.4).
func parentOf(e *row.Entry) string {
	if parent, ok := e.Text(row.SpawnedBy); ok {
		return parent
	}
	parent, _ := e.Text(row.ParentSessionKey)
	return parent
}

// pruneDue tells whether a prune has enough to do. OpenClaw prunes once an hour; oc keeps no clock between its runs, and so waits
// for an hour's worth of age, or for one event in a hundred too many.
func pruneDue(snap *awareness.Snapshot, now int64) (due bool, err error) {
	err = snap.Events(awareness.Filter{Limit: 1}, func(e awareness.Event) error {
		due = !e.Undated && e.OccurredAt < now-awareness.Retention.Milliseconds()-3_600_000
		return nil
	})
	if due || err != nil {
		return due, err
	}
	n, err := snap.CountEvents(awareness.Filter{})
	return n > awareness.MaxRows+awareness.MaxRows/100, err
}

// prune does what a gateway would, unless one may live.
func (r *recorded) prune(ctx context.Context, c *Call) error {
	if c.owner(ctx, r.cfg).Life != gateway.None {
		return nil
	}
	return awareness.Update(ctx, r.path, r.options(awareness.World{}), func(e *awareness.Edit) (err error) {
		r.pruned, err = e.Prune()
		return err
	})
}

func (r *recorded) document(p *span.Printer) error {
	p.Object()
	p.Key("recorded").Bool(!r.unwatched && !r.Duplicate)
	p.Key("duplicate").Bool(r.Duplicate)
	if p.Key("event"); r.unwatched {
		p.Null()
		p.Key("reason").String("unwatched")
	} else {
		printRecord(p, r.Event)
	}
	p.Key("notices").Array()
	for _, n := range r.Notices {
		printNotice(p, n)
	}
	p.End()
	printPruned(p, r.pruned)
	r.print(p)
	p.End()
	return nil
}

func (r *recorded) text(c *Call, in awareness.Entry) {
	switch {
	case r.unwatched:
		c.Out.Printf("Not recorded: nobody watches %s, and OpenClaw records a human's message only for those who do.\n", in.SessionKey)
		return
	case r.Duplicate:
		c.Out.Printf("Recorded before, as version %d of %s; nothing changed.\n", r.Event.Sequence, r.Event.SessionKey)
		return
	}
	c.Out.Printf("Recorded version %d of %s.\n", r.Event.Sequence, r.Event.SessionKey)
	for _, n := range r.Notices {
		c.Out.Printf("For %s: %s\n", n.Watcher, n.Text())
	}
	if !awareness.Notifies(in.Kind) {
		c.Notef("events of kind %s are only logged: no watcher is told of them", in.Kind)
	}
	if n := r.pruned.Aged + r.pruned.Excess; n > 0 {
		c.Notef("%d events past the retention were removed", n)
	}
}

func printPruned(p *span.Printer, n awareness.Pruned) {
	p.Key("pruned").Object()
	p.Key("aged").Int(n.Aged)
	p.Key("excess").Int(n.Excess)
	p.Key("watches").Int(n.Cursors)
	p.End()
}
