package commands

import (
	"context"
	"fmt"

	"oc/awareness"
	"oc/commands/term"
	"oc/store/span"
)

func awarenessStats() *Command {
	return &Command{
		Name:  "stats",
		Short: "the signal log in figures",
		Long: "Shows how many events, sessions and watches there are, of which kinds, how old they are, and what the retention of 30 days and 50,000 events would remove. An upgrade, a quarantine " +
			"or a schema that oc does not know is said.",
		Examples: []Example{{"oc awareness stats", "how full the log is"}},
		Exits:    []int{ExitBusy},
		Run:      showStats,
	}
}

func (s *signals) stats(ctx context.Context) (st awareness.Stats, err error) {
	err = s.read(ctx, func(snap *awareness.Snapshot) (err error) {
		st, err = snap.Stats(s.call.Now().UnixMilli())
		return err
	})
	return st, err
}

func showStats(ctx context.Context, c *Call) error {
	s, err := c.signals()
	if err != nil {
		return err
	}
	st, err := s.stats(ctx)
	if err != nil {
		return err
	}
	if c.JSON() {
		return c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("events").Int(st.Events)
			p.Key("sessions").Int(st.Sessions)
			p.Key("watches").Int(st.Watches)
			p.Key("pendingWatches").Int(st.Pending)
			p.Key("upstreamLinks").Int(st.Links)
			p.Key("lastSequence").Int(st.Last)
			stamp(p, "oldestAt", st.Oldest)
			stamp(p, "newestAt", st.Newest)
			p.Key("undated").Int(st.Events - st.Dated)
			p.Key("kinds").Object()
			for _, k := range st.Kinds {
				p.Key(k.Kind).Int(k.Events)
			}
			p.End()
			p.Key("retention").Object()
			p.Key("maxAgeMs").Int(awareness.Retention.Milliseconds())
			p.Key("maxEvents").Int(awareness.MaxRows)
			p.Key("aged").Int(st.Aged)
			p.Key("excess").Int(st.Excess)
			p.Key("watches").Int(st.Expired)
			p.End()
			s.print(p)
			p.End()
			return nil
		})
	}
	facts := []term.Fact{
		{Label: "Signal log", Value: s.line()},
		{Label: "Quarantine", Value: s.quarantine, Style: term.Red},
		{Label: "Events", Value: fmt.Sprintf("%s of %s, of %s; the last sequence is %d", term.Count(st.Events), term.Count(awareness.MaxRows), plural(int(st.Sessions), "session", "sessions"), st.Last)},
		{Label: "Oldest", Value: momentAgo(st.Oldest, c.nowMs())},
		{Label: "Newest", Value: momentAgo(st.Newest, c.nowMs())},
		{Label: "Watches", Value: fmt.Sprintf("%s, of which %s pending", term.Count(st.Watches), term.Count(st.Pending))},
		{Label: "Upstream", Value: plural(int(st.Links), "link of an adopted session", "links of adopted sessions")},
		{Label: "Next prune", Value: fmt.Sprintf("removes %s events for their age, %s for their number, %s watches", term.Count(st.Aged), term.Count(st.Excess), term.Count(st.Expired))},
	}
	if s.schema.None {
		facts = facts[:1]
	}
	c.Out.Facts(facts...)
	if len(st.Kinds) > 0 {
		c.Out.Printf("\n")
		t := c.Out.Table(term.Column{Head: "Kind", Cut: term.End}, term.Column{Head: "Events", Right: true}, term.Column{Head: "Told to watchers"})
		for _, k := range st.Kinds {
			t.Row(k.Kind, term.Count(k.Events), map[bool]string{true: "yes", false: "no"}[awareness.Notifies(k.Kind)])
		}
		t.End()
	}
	return nil
}

func momentAgo(ms int64, now float64) string {
	if ms <= 0 {
		return term.Unknown
	}
	return fmt.Sprintf("%s (%s)", term.Time(ms), ageOf(float64(ms), now))
}

func awarenessSweep() *Command {
	return &Command{
		Name:  "sweep",
		Short: "tell pending notices anew, as after a restart",
		Long: "Does what OpenClaw does when it starts, after the notices in its memory were lost: everything that is pending is gathered into one notice for each watch, and what is past the " +
			"retention is removed. It is refused beside a gateway that lives.",
		Examples: []Example{{"oc awareness sweep", "one notice for each watch that is behind"}},
		Exits:    []int{ExitBusy, ExitRefused},
		Run:      sweepLog,
	}
}

func sweepLog(ctx context.Context, c *Call) error {
	s, err := c.signals()
	if err != nil {
		return err
	}
	var swept awareness.Swept
	err = s.upkeep(ctx, "sweep", func() (err error) {
		swept, err = awareness.Sweep(ctx, s.path, s.options(s.world(ctx, true)))
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON() {
		if err := c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("notices").Array()
			for _, n := range swept.Notices {
				printNotice(p, n)
			}
			p.End()
			p.Key("dormant").Int(swept.Dormant)
			printPruned(p, swept.Pruned)
			s.print(p)
			p.End()
			return nil
		}); err != nil {
			return err
		}
		return c.tell(s.unread)
	}
	for _, n := range swept.Notices {
		c.Out.Printf("For %s: %s\n", n.Watcher, n.Text())
	}
	c.Out.Printf("Notices that stand: %d. Pending watches with nobody to tell: %d.\n", len(swept.Notices), swept.Dormant)
	prunedText(c, swept.Pruned, "Removed")
	return c.tell(s.unread)
}

func awarenessPrune() *Command {
	return &Command{
		Name:  "prune",
		Short: "remove events and watches that are past the retention",
		Long: "Removes events older than 30 days, the oldest beyond 50,000, and watches that nothing moved for 30 days, and notes for each session up to where its history is gone, so that " +
			"readers learn of the gap. OpenClaw does the same once an hour; it is refused beside a gateway that lives. This is no run that oc undo could take back.",
		Flags:    []Flag{{Name: "dry-run", Help: "say what would go, and change nothing"}},
		Examples: []Example{{"oc awareness prune --dry-run", "what a prune would remove"}},
		Exits:    []int{ExitBusy, ExitRefused},
		Run:      pruneLog,
	}
}

func pruneLog(ctx context.Context, c *Call) error {
	s, err := c.signals()
	if err != nil {
		return err
	}
	var gone awareness.Pruned
	verb := "Removed"
	if c.Bool("dry-run") {
		verb = "Would remove"
		st, err := s.stats(ctx)
		if err != nil {
			return err
		}
		gone = awareness.Pruned{Aged: st.Aged, Excess: st.Excess, Cursors: st.Expired}
	} else if err := s.upkeep(ctx, "prune", func() error {
		return awareness.Update(ctx, s.path, s.options(awareness.World{}), func(e *awareness.Edit) (err error) {
			gone, err = e.Prune()
			return err
		})
	}); err != nil {
		return err
	}
	if c.JSON() {
		return c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("dryRun").Bool(c.Bool("dry-run"))
			printPruned(p, gone)
			s.print(p)
			p.End()
			return nil
		})
	}
	prunedText(c, gone, verb)
	return nil
}

func prunedText(c *Call, n awareness.Pruned, verb string) {
	c.Out.Printf("%s %s for their age, %s for their number, %s.\n", verb, plural(int(n.Aged), "event", "events"), term.Count(n.Excess), plural(int(n.Cursors), "watch", "watches"))
}

// upkeep does what the owner of the log does. Where there is none there is nothing to do.
func (s *signals) upkeep(ctx context.Context, verb string, f func() error) error {
	if err := s.read(ctx, func(*awareness.Snapshot) error { return nil }); err != nil {
		return s.refused(ctx, err)
	}
	if s.schema.None {
		return nil
	}
	if err := s.alone(ctx, verb); err != nil {
		return err
	}
	return s.refused(ctx, f())
}
