package commands

import (
	"context"
	"fmt"

	"oc/awareness"
	"oc/commands/term"
	"oc/store/span"
)

// deltas is the whole log after a sequence, by session.
type deltas struct {
	*signals
	after int64
	last  int64 // the last sequence that the log gave to anyone
	all   []awareness.Changes
	sight *sight // nil: all sessions
}

// showAllChanges answers status --all-sessions --changes-since.
func (c *Call) showAllChanges(ctx context.Context, s *signals) error {
	d := &deltas{signals: s, after: c.Int("changes-since")}
	var err error
	if d.sight, err = c.sight(s.cfg, nil); err != nil {
		return err
	}
	came, err := s.look(ctx, d.collect)
	if err != nil {
		return err
	}
	if c.JSON() {
		if err := c.Document(d.document); err != nil {
			return err
		}
	} else {
		d.text(c)
	}
	d.sight.tell(c)
	return c.waited(came)
}

func (d *deltas) collect(snap *awareness.Snapshot) (bool, error) {
	d.all, d.last = nil, 0
	d.sight.again()
	agent := d.call.String("agent")
	if err := snap.Heads(func(h awareness.Head) error {
		d.last = max(d.last, h.Version)
		return nil
	}); err != nil {
		return false, err
	}
	if d.after > d.last { // deleted sessions had their sequences too
		st, err := snap.Stats(d.call.Now().UnixMilli())
		if err != nil {
			return false, err
		}
		d.last = max(d.last, st.Last)
	}
	err := snap.AllChanges(d.after, awareness.PageSize, func(ch awareness.Changes) error {
		if agent != "" && ch.AgentID != agent || !d.sight.hears(ch.SessionKey, ch.AgentID) {
			return nil
		}
		for ch.Truncated {
			more, err := snap.Changes(ch.SessionKey, ch.AgentID, ch.Next(d.after), awareness.PageSize)
			if err != nil {
				return err
			}
			ch.Events, ch.Truncated = append(ch.Events, more.Events...), more.Truncated
		}
		d.all = append(d.all, ch)
		return nil
	})
	return len(d.all) > 0, err
}

func (d *deltas) advice() string {
	if d.schema.None {
		return doUnknown
	}
	advice := doNothing
	for _, ch := range d.all {
		if ch.Gap {
			return doRefresh
		}
		advice = doReconcile
	}
	if d.after > d.last {
		return doLookAgain
	}
	return advice
}

// next is the sequence to ask after next time.
func (d *deltas) next() int64 {
	next := d.last
	for _, ch := range d.all {
		next = max(next, ch.Next(0))
	}
	return next
}

func (d *deltas) document(p *span.Printer) error {
	p.Object()
	p.Key("stateVersion").Int(d.last)
	p.Key("changesSince").Int(d.after)
	p.Key("aheadOfHead").Bool(d.after > d.last)
	p.Key("count").Int(int64(len(d.all)))
	p.Key("sessions").Array()
	for _, ch := range d.all {
		p.Object()
		p.Key("sessionKey").String(ch.SessionKey)
		p.Key("agentId").String(ch.AgentID)
		p.Key("stateVersion").Int(ch.Version)
		printChanges(p, ch)
		p.End()
	}
	p.End()
	p.Key("next").Object()
	p.Key("do").String(d.advice())
	p.Key("changesSince").Int(d.next())
	p.End()
	d.sight.print(p)
	d.print(p)
	p.End()
	return nil
}

func (d *deltas) text(c *Call) {
	for _, ch := range d.all {
		c.Out.Printf("%s (agent %s), version %d\n", c.Out.Paint(term.Bold, keyWord(ch.SessionKey)), keyWord(ch.AgentID), ch.Version)
		if ch.Gap {
			c.Out.Printf("  history gap: refresh the whole session\n")
		}
		eventTable(c, ch.Events, false)
		c.Out.Printf("\n")
	}
	var todo string
	switch d.advice() {
	case doRefresh:
		todo = fmt.Sprintf("refresh the sessions with a history gap, reconcile the others, then go on from %d", d.next())
	case doReconcile:
		todo = fmt.Sprintf("reconcile these events of %s, then go on from %d", counted(len(d.all)), d.next())
	case doLookAgain:
		todo = fmt.Sprintf("ahead of head: the last sequence of the log is %d; refresh what you know and go on from there", d.last)
	case doUnknown:
		todo = "no awareness data: nothing can be told; refresh what you know when in doubt"
	default:
		todo = "nothing changed, as far as was recorded"
	}
	c.next(todo)
}
