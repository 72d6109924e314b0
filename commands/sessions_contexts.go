package commands

import (
	"context"

	"oc/commands/term"
	"oc/store"
	"oc/store/span"
)

// contexts lists how full the sessions are. One whose transcript is not there, or cannot be read, is told and passed.
func contexts(ctx context.Context, c *Call) error {
	l, err := c.gather(ctx, c.Bool("all-agents"))
	if err != nil {
		return err
	}
	if l.sight, err = c.sight(l.cfg, l.opened); err != nil {
		return err
	}
	for _, s := range l.opened {
		for i := range s.Rows {
			if r := &s.Rows[i]; l.sight.lists(r) && l.sight.reads(r) == nil {
				l.rows = append(l.rows, r)
			}
		}
	}
	store.Sort(l.rows, store.ByUpdated)
	var all []*filled
	missing, failed := 0, 0
	for _, r := range l.rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		one, err := r.Conversation(ctx)
		if err == nil && one.Missing {
			missing++
			continue
		}
		var fill *store.Fill
		if err == nil {
			fill, err = one.Fill(ctx)
		}
		if err != nil {
			failed++
			c.Warnf("%s: its transcript cannot be read: %v", r.Key, err)
			continue
		}
		x := weighed(l.cfg, r, fill, l.acp)
		x.release()
		all = append(all, x)
	}
	if c.JSON() {
		err = c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("count").Int(int64(len(all)))
			p.Key("withoutTranscript").Int(int64(missing))
			p.Key("sessions").Array()
			for _, x := range all {
				if err := x.document(p); err != nil {
					return err
				}
			}
			p.End()
			l.failed.print(p)
			p.End()
			return nil
		})
	} else {
		fillings(c, all)
	}
	if err != nil {
		return err
	}
	if missing > 0 {
		c.Notef("%s no transcript", plural(missing, "session has", "sessions have"))
	}
	for _, s := range l.opened {
		c.remark(s)
	}
	l.sight.tell(c)
	if err := c.tell(l.failed); err != nil || failed == 0 {
		return err
	}
	return Status(ExitFailed)
}

func fillings(c *Call, all []*filled) {
	if len(all) == 0 {
		c.Out.Printf("No sessions found.\n")
		return
	}
	t := c.Out.Table(term.Column{Head: "Key", Cut: term.Middle, Min: 24}, term.Column{Head: "In context", Right: true}, term.Column{Head: "Of", Right: true},
		term.Column{Head: "To compaction", Right: true}, term.Column{Head: "Compacted", Right: true}, term.Column{Head: "Findings", Right: true})
	n := func(n int) string { return term.Count(int64(n)) }
	for _, x := range all {
		window, left := term.Unknown, term.Unknown
		if x.window > 0 {
			window = n(x.window)
		}
		if x.gate.Known {
			if left = n(max(0, x.gate.Threshold-x.gate.Tokens)); x.gate.Compact {
				left = "next turn"
			}
		}
		t.Row(x.row.Key, n(x.Estimate), window, left, n(x.Compactions), n(len(x.notes)))
	}
	t.End()
}
