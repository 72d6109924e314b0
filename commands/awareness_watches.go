package commands

import (
	"context"
	"strings"

	"oc/awareness"
	"oc/commands/term"
	"oc/store/span"
)

func awarenessWatches() *Command {
	return &Command{
		Name:  "watches",
		Short: "who watches whom, and how far each is behind",
		Long: "Shows every watch: whether somebody asked for it or a group's main session has it by itself, what the watcher has seen, how many events it has yet to hear of, and what is odd " +
			"about it. A dormant watch is one whose watcher is told nothing, whatever happens.",
		Flags: []Flag{
			{Name: "watcher", Value: "KEY", Help: "only those of this watcher"},
			{Name: "target", Value: "KEY", Help: "only those of this target"},
			{Name: "pending", Help: "only those with something that was not acknowledged"},
		},
		Examples: []Example{
			{"oc awareness watches", "all of them"},
			{"oc awareness watches --target main --json", "who watches the main session"},
		},
		Exits: []int{ExitBusy},
		Run:   showWatches,
	}
}

func showWatches(ctx context.Context, c *Call) error {
	s, err := c.signals()
	if err != nil {
		return err
	}
	var ends [2]*subject
	for i, flag := range []string{"watcher", "target"} {
		if c.Given(flag) {
			if ends[i], err = c.subject(ctx, s.cfg, c.String(flag), ""); err != nil {
				return err
			}
		}
	}
	world := s.world(ctx, true)
	var all []awareness.Watch
	err = s.read(ctx, func(snap *awareness.Snapshot) (err error) {
		all = nil
		f := awareness.WatchFilter{Pending: c.Bool("pending")}
		if f.Watcher, err = ends[0].end(snap); err != nil {
			return err
		}
		if f.Target, err = ends[1].end(snap); err != nil {
			return err
		}
		return snap.Watches(f, world, c.Now().UnixMilli(), func(w awareness.Watch) error {
			all = append(all, w)
			return nil
		})
	})
	if err != nil {
		return err
	}
	switch {
	case c.JSON():
		if err := c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("count").Int(int64(len(all)))
			p.Key("watches").Array()
			for _, w := range all {
				printWatch(p, w)
			}
			p.End()
			s.print(p)
			p.End()
			return nil
		}); err != nil {
			return err
		}
	case len(all) == 0:
		c.Out.Printf("Nobody watches a session%s.\n", c.filtered("watcher", "target", "pending"))
	default:
		watchTable(c, all)
	}
	return c.tell(s.unread)
}

// end is the key of one end of a watch: that of a session, or of a watch whose ends are gone. A nil subject is any.
func (s *subject) end(snap *awareness.Snapshot) (string, error) {
	if s == nil {
		return "", nil
	}
	if s.row != nil {
		return s.key, nil
	}
	exact := false
	for _, f := range []awareness.WatchFilter{{Watcher: s.word}, {Target: s.word}} {
		if err := snap.Watches(f, awareness.World{}, 0, func(awareness.Watch) error {
			exact = true
			return nil
		}); err != nil {
			return "", err
		}
	}
	if exact {
		return s.word, nil
	}
	return s.logged(snap)
}

func printWatch(p *span.Printer, w awareness.Watch) {
	p.Object()
	p.Key("watcher").String(w.Watcher)
	p.Key("target").String(w.Target)
	p.Key("provenance").String(provenance(w.Cursor))
	p.Key("state").String(string(w.State))
	p.Key("findings").Array()
	for _, f := range w.Findings {
		p.String(string(f))
	}
	p.End()
	p.Key("lastSeenSequence").Int(w.Seen)
	p.Key("notifiedSequence").Int(w.Notified)
	p.Key("materialSequence").Int(w.Material)
	p.Key("head").Int(w.Head)
	p.Key("behind").Int(w.Behind)
	optional(p, "storePath", w.Store)
	if p.Key("updatedAt"); w.Undated {
		p.Null()
	} else {
		p.Int(w.Updated)
	}
	if p.Key("expiresAt"); w.Undated {
		p.Null()
	} else {
		at, _ := w.Expires()
		p.Int(at)
	}
	if p.Key("notice"); !w.Pending() {
		p.Null()
	} else {
		n, _ := w.Notice()
		printNotice(p, n)
	}
	p.End()
}

func printNotice(p *span.Printer, n awareness.Notice) {
	p.Object()
	p.Key("watcher").String(n.Watcher)
	p.Key("target").String(n.Target)
	p.Key("changesSince").Int(n.Since)
	p.Key("text").String(n.Text())
	p.Key("wakes").Bool(n.Wakes())
	p.End()
}

func provenance(c awareness.Cursor) string {
	if c.Ambient {
		return "ambient-group"
	}
	return "explicit"
}

func watchTable(c *Call, all []awareness.Watch) {
	now := c.nowMs()
	t := c.Out.Table(
		term.Column{Head: "State", Style: stateStyle}, term.Column{Head: "Watcher", Cut: term.Middle, Min: 14}, term.Column{Head: "Target", Cut: term.Middle, Min: 14},
		term.Column{Head: "Why", Drop: 2}, term.Column{Head: "Seen", Right: true}, term.Column{Head: "Head", Right: true}, term.Column{Head: "Behind", Right: true},
		term.Column{Head: "Expires", Right: true, Drop: 3}, term.Column{Head: "Notes"},
	)
	found := map[awareness.Finding]bool{}
	for _, w := range all {
		for _, f := range w.Findings {
			found[f] = true
		}
	}
	number := map[awareness.Finding]string{} // what is odd is told below, once
	for _, f := range watchFindings {
		if found[f.name] {
			number[f.name] = decimal(int64(len(number) + 1))
		}
	}
	for _, w := range all {
		var notes []string
		for _, f := range w.Findings {
			notes = append(notes, number[f])
		}
		expires := term.Unknown
		if at, known := w.Expires(); known {
			if expires = term.Age(int64(now) - at); at < int64(now) {
				expires = "due"
			}
		}
		t.Row(string(w.State), w.Watcher, w.Target, strings.TrimSuffix(provenance(w.Cursor), "-group"), decimal(w.Seen), decimal(w.Head), decimal(w.Behind), expires, strings.Join(notes, ", "))
	}
	t.End()
	if len(found) == 0 {
		return
	}
	c.Out.Printf("\n")
	for _, f := range watchFindings {
		if n := number[f.name]; n != "" {
			c.Out.Printf("%s\n", term.Styled(term.Wrap(n+" "+string(f.name)+": "+f.means, c.Out.Width(), "  ")))
		}
	}
}

func stateStyle(s string) term.Style {
	switch awareness.State(s) {
	case awareness.Pending:
		return term.Yellow
	case awareness.Dormant:
		return term.Red
	}
	return term.Plain
}

// watchFindings are what people read about what is odd.
var watchFindings = []struct {
	name  awareness.Finding
	means string
}{
	{awareness.NoStore, "it does not say which database its watcher is in, as it was made before 2026.9.6, which tells such a watcher nothing"},
	{awareness.OtherStore, "its watcher now lives in another database than it says, and is told nothing"},
	{awareness.AmbiguousWatcher, "the watcher's key names no agent, so that it is nobody's in particular and nobody is told"},
	{awareness.WatcherGone, "the watcher has no entry in a store any more"},
	{awareness.AmbiguousTarget, "several agents have a session under the target's key, and the watch does not say whose it means"},
	{awareness.TargetGone, "the target has no entry in a store any more"},
	{awareness.SelfWatch, "a session that watches itself"},
	{awareness.Disordered, "its versions are in an order that OpenClaw never makes"},
	{awareness.AheadOfLog, "it has seen more than was ever recorded: the database may be an older copy"},
	{awareness.Expired, "nothing moved it for 30 days, and the next prune removes it"},
}
