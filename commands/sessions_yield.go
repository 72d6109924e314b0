package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"oc/awareness"
	"oc/commands/term"
	"oc/gateway"
	"oc/store"
	"oc/store/row"
	"oc/store/span"
)

func sessionsYield() *Command {
	return &Command{
		Name:  "yield",
		Short: "wait for what happens next to a session's sub-agents and watches",
		Long: "Gives the next thing that a session has been waiting for: a sub-agent that ends its run, with what it said last; an event of a session that it watches; a notice that is pending for it. It " +
			"comes as soon as it happens, over the events of the gateway and the signal log; where no gateway runs, or with --offline, from the signal log alone. Exit 7 when nothing came, and at " +
			"once when there is nothing to wait for: no sub-agent at work and no watch.\n\n" +
			"Looking marks nothing as read: a pending notice is given again until oc awareness notices --ack or the session's own next turn has seen it. A sub-agent that had ended before is not waited " +
			"for; it is among children, and oc subagents list shows it.",
		Flags: []Flag{
			{Name: "wait", Value: "DURATION", Default: "30s", Takes: "a duration such as 30s or 5m, or 0", Check: IsDuration, Help: "wait that long; 0 looks and does not wait"},
			{Name: "as", Value: "KEY", Takes: "the key of a session", Check: isSomething, Help: "the session that waits; else OC_SESSION, else the default agent's main session"},
		},
		Examples: []Example{
			{"oc sessions yield --wait 5m", "until the first sub-agent of the main session is done"},
			{"oc sessions yield --as agent:ops:main --json", "the same for another session, as a document"},
		},
		Exits: append(liveExits, ExitNothing),
		Run:   yield,
	}
}

// settling is how long a piece of news waits for a fuller one about the same run: the end of a task comes before what was said.
const settling = 300 * time.Millisecond

// longestTold is how much of a sub-agent's last message is kept, in bytes.
const longestTold = 64 << 10

// news is what a gateway tells of a session that may be a sub-agent.
type news struct {
	task
	said  string // its last message
	why   string // it failed
	at    int64  // ms since 1970; 0: unknown
	spoke bool   // the end of a conversation's run, rather than of a task
}

// newsOf reads an event of the gateway; ok is false for those that say nothing of sub-agents.
func newsOf(e gateway.Event) (n news, ok bool) {
	switch e.Name {
	case "task":
		t := span.Member(e.Payload, "task")
		n = news{task: taskOf(t), said: cmp.Or(textIn(t, "terminalSummary"), textIn(t, "progressSummary")), why: textIn(t, "error")}
		n.at, _ = span.Int(span.Member(t, "endedAt"))
		ok = n.child != "" && n.child != n.owner
	case "chat":
		n = news{task: task{run: textIn(e.Payload, "runId"), child: textIn(e.Payload, "sessionKey"), owner: textIn(e.Payload, "spawnedBy")}, why: textIn(e.Payload, "errorMessage"), spoke: true}
		message := span.Member(e.Payload, "message")
		n.at, _ = span.Int(span.Member(message, "timestamp"))
		var texts []string
		for _, p := range parts(message) {
			if p.aside == "" {
				texts = append(texts, p.text)
			}
		}
		n.said = strings.Join(texts, "\n")
		switch textIn(e.Payload, "state") {
		case "final":
			// Without a message the run is not over: it was put behind another one (spec/gateway.md 3).
			n.status, ok = "completed", message != nil
		case "error":
			n.status, ok = "failed", true
		case "aborted":
			n.status, ok = "cancelled", true
		}
	}
	if len(n.said) > longestTold {
		n.said = strings.ToValidUTF8(n.said[:longestTold], "") + "…"
	}
	return n, ok
}

// yielding is one wait.
type yielding struct {
	*signals
	g        *live // nil: there is no gateway to hear
	key      string
	children []task // as the gateway has them
	its      map[string]bool
	watches  int
	watched  bool // that number is known
	from     int64

	run     *news
	events  []awareness.Event
	notices []awareness.Notice
}

func (y *yielding) came() bool { return y.run != nil || len(y.events) > 0 || len(y.notices) > 0 }

func yield(ctx context.Context, c *Call) error {
	s, err := c.signals()
	if err != nil {
		return err
	}
	s.quiet = true
	y := &yielding{signals: s, its: map[string]bool{}}
	told := make(chan news, 256)
	if err := y.meet(ctx, c, told); err != nil {
		return err
	}
	if y.g != nil {
		defer y.g.Close()
	}
	if err := y.begin(ctx, c); err != nil {
		return err
	}
	idle := y.watched && y.watches == 0 && !y.working()
	if !y.came() && !idle && c.Duration("wait") > 0 {
		if err := y.wait(ctx, c.Duration("wait"), told); err != nil {
			return err
		}
	}
	if c.JSON() {
		if err := c.Document(y.document); err != nil {
			return err
		}
	} else {
		y.text(c)
	}
	switch {
	case y.came():
		return nil
	case idle && y.g == nil && y.schema.None:
		c.Notef("nothing to wait for: no gateway was asked, and %s holds no signal log", y.path)
	case idle:
		c.Notef("nothing to wait for: %s has no sub-agent at work and watches nothing", y.key)
	default:
		c.Notef("nothing came within %s", c.String("wait"))
	}
	return Status(ExitNothing)
}

// meet finds the gateway, where there is one, and the session that waits.
func (y *yielding) meet(ctx context.Context, c *Call, told chan news) error {
	if !c.Bool("offline") {
		g, err := c.live(ctx, y.cfg, func(e gateway.Event) {
			if n, ok := newsOf(e); ok {
				select {
				case told <- n:
				default: // a flood; what was told first is what is wanted
				}
			}
		}, gateway.Read)
		if err == nil {
			y.g = g
			if y.key, err = g.speaker(ctx); err != nil {
				_ = g.Close()
			}
			return err
		}
		var failed *gateway.Error
		o, _ := c.gateway(y.cfg)
		if !errors.As(err, &failed) || failed.Fault != gateway.NoListener || !o.Target.Local {
			return err
		}
		c.Notef("no gateway listens at %s: the signal log alone is watched", failed.Host)
	}
	word := cmp.Or(strings.TrimSpace(c.String("as")), c.ownSession(y.cfg))
	agent, _, ok := row.Parse(word)
	if !ok {
		agent = y.cfg.DefaultAgent()
	}
	y.key = store.StoredKey(y.cfg, agent, word)
	return nil
}

// begin takes down what there is: the sub-agents, the watches, and what is pending already.
func (y *yielding) begin(ctx context.Context, c *Call) error {
	if y.g != nil {
		all, _, err := y.g.tasks(ctx)
		if err != nil {
			return err
		}
		now := c.nowMs()
		for _, t := range all {
			if t.owner == y.key && t.child != "" && t.child != t.owner && (!t.ended() || now-float64(t.touched) < 30*60*1000) {
				y.children = append(y.children, t)
				y.its[t.child] = true
			}
		}
		if !y.g.options.Target.Local {
			return nil // the log of another machine cannot be read
		}
	}
	err := y.read(ctx, func(snap *awareness.Snapshot) error {
		stats, err := snap.Stats(c.Now().UnixMilli())
		if err != nil {
			return err
		}
		y.from, y.watches, y.watched = stats.Last, 0, true
		return y.pending(snap, nil)
	})
	if err != nil && y.g != nil {
		c.Warnf("the signal log is not watched: %v", err)
		return nil
	}
	return err
}

// pending gathers the notices that wait for the session, and the sessions that it watches.
func (y *yielding) pending(snap *awareness.Snapshot, targets map[string]bool) error {
	y.notices, y.watches = nil, 0
	return snap.Watches(awareness.WatchFilter{Watcher: y.key}, awareness.World{}, 0, func(w awareness.Watch) error {
		y.watches++
		if targets != nil {
			targets[w.Target] = true
		}
		if n, ok := w.Notice(); ok && w.State == awareness.Pending {
			y.notices = append(y.notices, n)
		}
		return nil
	})
}

func (y *yielding) working() bool {
	for _, t := range y.children {
		if !t.ended() {
			return true
		}
	}
	return false
}

// wait is over when something came, or the time is.
func (y *yielding) wait(ctx context.Context, most time.Duration, told <-chan news) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	over := time.NewTimer(most)
	defer over.Stop()
	type found struct {
		events  []awareness.Event
		notices []awareness.Notice
		err     error
	}
	logged := make(chan found, 1)
	if y.watched {
		go func() {
			var f found
			look := &yielding{signals: y.signals, key: y.key}
			f.err = awareness.Wait(ctx, y.path, 0, func(snap *awareness.Snapshot) (bool, error) {
				targets := map[string]bool{}
				if err := look.pending(snap, targets); err != nil {
					return false, err
				}
				f.events, f.notices = nil, look.notices
				err := snap.Events(awareness.Filter{After: y.from}, func(e awareness.Event) error {
					if targets[e.SessionKey] && e.ActorID != y.key {
						f.events = append(f.events, e)
					}
					return nil
				})
				return len(f.events)+len(f.notices) > 0, err
			})
			logged <- f
		}()
	}
	var gone <-chan struct{}
	if y.g != nil {
		gone = y.g.Done()
	}
	var settled <-chan time.Time
	for {
		select {
		case n := <-told:
			if n.owner == y.key {
				y.its[n.child] = true
			}
			if !y.its[n.child] || !n.ended() {
				continue
			}
			if y.run == nil || n.spoke {
				y.run = &n
			}
			if n.spoke {
				return nil
			}
			settled = time.After(settling)
		case f := <-logged:
			switch {
			case f.err != nil && ctx.Err() != nil:
				continue
			case f.err != nil && y.g == nil:
				return y.blame(ctx, f.err)
			case f.err != nil:
				y.call.Warnf("the signal log is not watched any more: %v", f.err)
				continue
			}
			y.events, y.notices = f.events, f.notices
			if y.g == nil {
				return nil
			}
			settled = time.After(settling)
		case <-settled:
			return nil
		case <-gone:
			if y.came() {
				return nil
			}
			if err := y.g.Err(); err != nil {
				return gatewayError(err)
			}
			return Busyf("the gateway at %s went away; try again", y.g.host())
		case <-over.C:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("wait for what happens to %s: %w", y.key, ctx.Err())
		}
	}
}

func (y *yielding) text(c *Call) {
	out := c.Out
	if n := y.run; n != nil {
		style := term.Green
		if n.status != "completed" {
			style = term.Red
		}
		out.Printf("%s  %s\n", out.Paint(style, n.status), out.Paint(term.Bold, n.child))
		if n.why != "" {
			reasons(out, "  ", []string{n.why})
		}
		if n.said != "" {
			out.Printf("%s\n", term.Styled(paragraphs(n.said, out.Width())))
		}
	}
	if len(y.events) > 0 {
		eventTable(c, y.events, true)
	}
	for _, n := range y.notices {
		out.Printf("%s\n", n.Text())
	}
}

func (y *yielding) document(p *span.Printer) error {
	p.Object()
	p.Key("session").String(y.key)
	p.Key("came").Bool(y.came())
	if p.Key("run"); y.run == nil {
		p.Null()
	} else {
		p.Object()
		p.Key("sessionKey").String(y.run.child)
		optional(p, "runId", y.run.run)
		p.Key("status").String(y.run.status)
		optional(p, "reply", y.run.said)
		optional(p, "error", y.run.why)
		stamp(p, "endedAt", y.run.at)
		p.End()
	}
	p.Key("events").Array()
	for _, e := range y.events {
		p.Object()
		p.Key("sessionKey").String(e.SessionKey)
		printEvent(p, e)
		p.End()
	}
	p.End()
	p.Key("notices").Array()
	for _, n := range y.notices {
		printNotice(p, n)
	}
	p.End()
	if p.Key("children"); y.g == nil {
		p.Null()
	} else {
		p.Array()
		for _, t := range y.children {
			p.Object()
			p.Key("taskId").String(t.id)
			p.Key("sessionKey").String(t.child)
			optional(p, "runId", t.run)
			optional(p, "title", t.title)
			p.Key("status").String(t.status)
			p.End()
		}
		p.End()
	}
	if p.Key("watches"); y.watched {
		p.Int(int64(y.watches))
	} else {
		p.Null()
	}
	if y.g != nil {
		y.g.print(p)
	} else {
		p.Key("via").String("local")
	}
	y.signals.print(p)
	p.End()
	return nil
}
