package commands

import (
	"context"

	"oc/awareness"
	"oc/store/span"
)

func awarenessWatch() *Command {
	return &Command{
		Name:  "watch",
		Args:  "WATCHER TARGET",
		Short: "have one session watch another from now on",
		Long: "Registers an explicit watch from the target's present version on, or keeps the one that is there. WATCHER must be a key that names its agent (agent:ID:...). What happens to " +
			"TARGET from then on, and was not done by WATCHER, is told to it by OpenClaw, or shown by oc awareness notices.",
		Flags:    []Flag{{Name: "agent", Value: "ID", Help: "the agent that TARGET belongs to, where its key does not say it"}},
		Examples: []Example{{"oc awareness watch agent:main:main agent:work:main", "tell the main session what happens to the other agent's"}},
		Exits:    []int{ExitBusy, ExitRefused},
		Run:      addWatch,
	}
}

func addWatch(ctx context.Context, c *Call) error {
	s, err := c.signals()
	if err != nil {
		return err
	}
	watcher, err := c.subject(ctx, s.cfg, c.Arg(0), "")
	if err != nil {
		return err
	}
	target, err := c.subject(ctx, s.cfg, c.Arg(1), c.String("agent"))
	if err != nil {
		return err
	}
	for _, end := range []*subject{watcher, target} {
		if err := end.nameable(); err != nil {
			return err
		}
	}
	world := s.world(ctx, false)
	var kept bool
	var made awareness.Watch
	err = s.change(ctx, world, func(e *awareness.Edit) error {
		from, err := watcher.end(&e.Snapshot)
		if err != nil {
			return err
		}
		if err := target.settle(&e.Snapshot); err != nil {
			return err
		}
		before, err := e.Cursor(from, target.key)
		if err != nil {
			return err
		}
		kept = before.Exists
		if _, err := e.Watch(from, target.key, target.agent); err != nil {
			return err
		}
		return e.Watches(awareness.WatchFilter{Watcher: from, Target: target.key}, world, c.Now().UnixMilli(), func(w awareness.Watch) error {
			made = w
			return nil
		})
	})
	if err != nil {
		return err
	}
	if c.JSON() {
		if err := c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("created").Bool(!kept)
			p.Key("watch")
			printWatch(p, made)
			s.print(p)
			p.End()
			return nil
		}); err != nil {
			return err
		}
	} else {
		verb := "now watches"
		if kept {
			verb = "already watched"
		}
		c.Out.Printf("%s %s %s; it has seen version %d of %d.\n", made.Watcher, verb, made.Target, made.Seen, made.Head)
	}
	for _, f := range made.Findings {
		for _, known := range watchFindings {
			if known.name == f {
				c.Warnf("the watch is %s, %s: %s", made.State, f, known.means)
			}
		}
	}
	for _, end := range []*subject{watcher, target} {
		if end.row == nil && s.schema.App != awareness.App { // other harnesses have no stores
			c.Notef("no store has %s; the watch is kept for 30 days, whether it comes or not", end.word)
		}
	}
	return nil
}
