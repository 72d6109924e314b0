package commands

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"oc/awareness"
	"oc/store"
	"oc/store/span"
)

const momentHelp = "a time: 2h or 3d ago, 2026-09-21, 2026-09-21T14:00:00Z, or milliseconds since 1970"

func awarenessLog() *Command {
	return &Command{
		Name:  "log",
		Short: "the events that were recorded, the newest last",
		Long: "Shows the events of the signal log, of all sessions or of some. Kinds that oc does not know are shown like others. Numbers that are missing mean nothing: all sessions " +
			"share one sequence, and a repeated event uses up a number.",
		Flags: []Flag{
			{Name: "session", Value: "KEY", Help: "only those of this session"},
			{Name: "agent", Value: "ID", Help: "only those of this agent's sessions"},
			{Name: "kind", Value: "KIND", Repeatable: true, Help: "only those of this kind, or of one of these, whichever it is", Choices: awareness.Kinds(), Takes: "a kind such as " + awareness.GoalChanged, Check: isWord},
			{Name: "actor", Value: "TYPE", Help: "only those that such an actor caused", Choices: []string{"human", "agent", "system"}, Takes: "a type of actor such as human", Check: isWord},
			{Name: "actor-id", Value: "ID", Help: "only those that this actor caused, such as a session key"},
			{Name: "since", Value: "TIME", Help: "only those at this time or later", Takes: momentHelp, Check: isMoment},
			{Name: "until", Value: "TIME", Help: "only those before this time", Takes: momentHelp, Check: isMoment},
			{Name: "limit", Value: "N|all", Default: "100", Help: "how many to show, the newest", Takes: `a positive whole number or "all", for example --limit 25`, Check: IsCountOrAll},
		},
		Examples: []Example{
			{"oc awareness log --session main --kind goal_changed", "when the goal of the main session changed"},
			{"oc awareness log --actor agent --since 2026-09-21 --json", "what agents did since that day"},
		},
		Exits: []int{ExitBusy},
		Run:   showLog,
	}
}

func isWord(s string) bool { return strings.TrimSpace(s) != "" }

func showLog(ctx context.Context, c *Call) error {
	s, err := c.signals()
	if err != nil {
		return err
	}
	var asked *subject
	if c.Given("session") {
		if asked, err = c.subject(ctx, s.cfg, c.String("session"), c.String("agent")); err != nil {
			return err
		}
	}
	now := c.Now()
	f := awareness.Filter{
		AgentID: c.String("agent"), Kinds: c.Strings("kind"), ActorType: c.String("actor"), ActorID: c.String("actor-id"),
		Newest: true,
	}
	f.Since, _ = parseMoment(c.String("since"), now)
	f.Until, _ = parseMoment(c.String("until"), now)
	f.Limit, _ = c.CountOrAll("limit")
	var events []awareness.Event
	var total int64
	err = s.read(ctx, func(snap *awareness.Snapshot) (err error) {
		events = nil
		if asked != nil {
			if f.SessionKey, err = asked.logged(snap); err != nil {
				return err
			}
		}
		if total, err = snap.CountEvents(f); err != nil {
			return err
		}
		return snap.Events(f, func(e awareness.Event) error {
			events = append(events, e)
			return nil
		})
	})
	if err != nil {
		return err
	}
	slices.Reverse(events)
	if c.JSON() {
		return c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("count").Int(int64(len(events)))
			p.Key("totalCount").Int(total)
			p.Key("hasMore").Bool(int64(len(events)) < total)
			p.Key("events").Array()
			for _, e := range events {
				printRecord(p, e)
			}
			p.End()
			s.print(p)
			p.End()
			return nil
		})
	}
	if len(events) == 0 {
		c.Out.Printf("No event was recorded%s.\n", c.filtered("session", "agent", "kind", "actor", "actor-id", "since", "until"))
		return nil
	}
	eventTable(c, events, f.SessionKey == "")
	if int64(len(events)) < total {
		c.Notef("%d older ones are not shown; give --limit all to see them", total-int64(len(events)))
	}
	return nil
}

// filtered ends a line about an empty answer, where one of the flags may be why.
func (c *Call) filtered(flags ...string) string {
	if slices.ContainsFunc(flags, c.Given) {
		return " that the filters let through"
	}
	return ""
}

// logged is the key under which the log has the session, whoever's it is.
func (s *subject) logged(snap *awareness.Snapshot) (string, error) {
	if s.row != nil {
		return s.key, nil
	}
	if n, err := snap.CountEvents(awareness.Filter{SessionKey: s.word}); n > 0 || err != nil {
		return s.word, err
	}
	agent := s.flag
	if agent == "" {
		agent = s.l.cfg.DefaultAgent()
	}
	return store.StoredKey(s.l.cfg, agent, s.word), nil
}

// printRecord prints an event with the session that it is about.
func printRecord(p *span.Printer, e awareness.Event) {
	p.Object()
	p.Key("sessionKey").String(e.SessionKey)
	p.Key("agentId").String(e.AgentID)
	if e.SessionID != "" {
		p.Key("sessionId").String(e.SessionID)
	}
	printEvent(p, e)
	p.End()
}

// isMoment is the Check of flags that take a time.
func isMoment(s string) bool {
	_, ok := parseMoment(s, time.UnixMilli(0))
	return ok
}

// parseMoment reads a time: a duration before now, a day or a time with its zone, or milliseconds since 1970.
func parseMoment(s string, now time.Time) (ms int64, ok bool) {
	s = strings.TrimSpace(s)
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
		return ms, ms > 0 && ms <= maxSafe
	}
	if d, err := parseDuration(s); err == nil {
		return now.Add(-d).UnixMilli(), true
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return at.UnixMilli(), true
		}
	}
	return 0, false
}
