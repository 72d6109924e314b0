package commands

import (
	"context"
	"fmt"
	"slices"

	"oc/awareness"
	"oc/commands/term"
	"oc/gateway"
	"oc/store/span"
)

func awarenessNotices() *Command {
	return &Command{
		Name:  "notices",
		Args:  "[WATCHER]",
		Short: "what a watcher is to be told, and acknowledge it",
		Long: "Shows the notices that are pending for a watcher, word for word as its model reads them, and how many events stand behind each. Without WATCHER it is OC_SESSION, else the " +
			"default agent's main session.\n\n" +
			"With --ack the watcher has seen what its notices vouch for: the events up to when each was made. For what came since there is a new notice. The queue itself is in the " +
			"memory of the gateway, so one that lives may still deliver a notice that was acknowledged here.",
		Flags: []Flag{
			{Name: "ack", Help: "move the watcher's cursors to what its notices vouch for"},
			{Name: "target", Value: "KEY", Help: "only the notice about this session"},
		},
		Examples: []Example{
			{"oc awareness notices agent:main:main", "what the main session is to be told"},
			{"oc awareness notices --ack --json", "mark the notices of your own session, OC_SESSION, as seen"},
		},
		Exits: []int{ExitBusy, ExitRefused},
		Run:   showNotices,
	}
}

// noticeList is what one watcher is to be told.
type noticeList struct {
	*signals
	watcher string
	pending []awareness.Watch  // as they were before an acknowledgement
	acked   []string           // targets
	again   []awareness.Notice // for what came since
}

func showNotices(ctx context.Context, c *Call) error {
	s, err := c.signals()
	if err != nil {
		return err
	}
	word := c.Arg(0)
	if len(c.Args) == 0 {
		word = c.ownSession(s.cfg)
	}
	watcher, err := c.subject(ctx, s.cfg, word, "")
	if err != nil {
		return err
	}
	var target *subject
	if c.Given("target") {
		if target, err = c.subject(ctx, s.cfg, c.String("target"), ""); err != nil {
			return err
		}
	}
	n := &noticeList{signals: s}
	world := s.world(ctx, true)
	look := func(snap *awareness.Snapshot) (err error) {
		n.pending, n.acked, n.again = nil, nil, nil
		f := awareness.WatchFilter{Pending: true}
		if n.watcher, err = watcher.end(snap); err != nil {
			return err
		}
		if f.Target, err = target.end(snap); err != nil {
			return err
		}
		f.Watcher = n.watcher
		return snap.Watches(f, world, c.Now().UnixMilli(), func(w awareness.Watch) error {
			n.pending = append(n.pending, w)
			return nil
		})
	}
	if err := s.read(ctx, look); err != nil {
		if c.Bool("ack") {
			return s.refused(ctx, err)
		}
		return err
	}
	if c.Bool("ack") && len(n.pending) > 0 {
		err := s.change(ctx, world, func(e *awareness.Edit) (err error) {
			if err := look(&e.Snapshot); err != nil {
				return err
			}
			for _, w := range n.pending {
				if !slices.Contains(w.Findings, awareness.NoStore) && !slices.Contains(w.Findings, awareness.OtherStore) {
					n.acked = append(n.acked, w.Target)
				}
			}
			n.again, err = e.Ack(n.watcher, n.acked...)
			return err
		})
		if err != nil {
			return err
		}
		if o := c.owner(ctx, s.cfg); len(n.acked) > 0 && o.Life != gateway.None {
			c.Notef("%s: what it has in its queue may still be delivered", ownerWords(o))
		}
	}
	if c.JSON() {
		if err := c.Document(n.document); err != nil {
			return err
		}
	} else {
		n.text(c)
	}
	return c.tell(s.unread)
}

func (n *noticeList) document(p *span.Printer) error {
	p.Object()
	p.Key("watcher").String(n.watcher)
	p.Key("pending").Array()
	for _, w := range n.pending {
		printWatch(p, w)
	}
	p.End()
	p.Key("acknowledged").Array()
	for _, w := range n.pending {
		for _, target := range n.acked {
			if target == w.Target {
				p.Object()
				p.Key("target").String(target)
				p.Key("from").Int(w.Seen)
				p.Key("to").Int(w.Notified)
				p.End()
			}
		}
	}
	p.End()
	p.Key("notices").Array() // that stand now
	if n.acked == nil {
		for _, w := range n.pending {
			notice, _ := w.Notice()
			printNotice(p, notice)
		}
	}
	for _, notice := range n.again {
		printNotice(p, notice)
	}
	p.End()
	n.print(p)
	p.End()
	return nil
}

func (n *noticeList) text(c *Call) {
	if len(n.pending) == 0 {
		c.Out.Printf("Nothing is pending for %s.\n", n.watcher)
		return
	}
	for _, w := range n.pending {
		notice, _ := w.Notice()
		c.Out.Printf("%s\n", notice.Text())
		line := fmt.Sprintf("behind by %d, up to version %d", w.Behind, w.Material)
		if w.State == awareness.Dormant {
			line += "; dormant: OpenClaw does not tell it (oc awareness watches says why)"
		}
		c.Out.Printf("%s\n", term.Styled(term.Wrap(line, c.Out.Width(), "  ")))
	}
	if c.Bool("ack") {
		c.Out.Printf("\nAcknowledged: %d of %d.\n", len(n.acked), len(n.pending))
		for _, again := range n.again {
			c.Out.Printf("More came since: %s\n", again.Text())
		}
	}
}
