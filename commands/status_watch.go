package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"oc/awareness"
	"oc/commands/term"
	"oc/store"
)

// watchFlag shows the state as it goes on.
var watchFlag = Flag{Name: "watch", Help: "a screen that is kept current, until q or ctrl-c"}

const (
	watchPoll   = 2 * time.Second        // without events: some file systems tell of none
	watchSettle = 200 * time.Millisecond // a burst of changes is one
)

// A watched is the screen of status --watch.
type watched struct {
	call   *Call
	screen *term.Screen
	said   bytes.Buffer // what a survey said on standard error

	now      *standing
	err      error // of the last look, which leaves now as it was
	at       time.Time
	notices  []awareness.Watch
	warnings []string
	first    int // line at the top
	live     bool
}

// watchStatus draws the state anew whenever files of it change.
func watchStatus(ctx context.Context, c *Call) error {
	if c.JSON() {
		return Usagef("--watch draws a screen and has no --json; oc status --json tells the state once, and --changes-since N --wait waits for an event")
	}
	if c.Bool("live") {
		return Usagef("--watch reads files and asks no gateway; leave out --live")
	}
	w := &watched{call: c}
	quiet := *c // what goes wrong is a line of the screen
	quiet.Err = term.New(&w.said, &w.said, term.Options{Env: c.Env, Prompt: true})
	if err := w.look(ctx, &quiet); err != nil { // before the screen is taken: it may be that there is nothing to see
		return err
	}
	screen, err := c.Out.Screen(c.Stdin)
	if errors.Is(err, term.ErrNoScreen) {
		return Usagef("--watch draws a screen: %w", err)
	} else if err != nil {
		return Failf("take over the terminal: %w", err)
	}
	w.screen = screen
	err = w.run(ctx, &quiet)
	return errors.Join(err, screen.Close())
}

func (w *watched) run(ctx context.Context, quiet *Call) error {
	var events <-chan fsnotify.Event
	var lost <-chan error
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		defer watcher.Close()
		events, lost = watcher.Events, watcher.Errors
	}
	follow := func() {
		if watcher == nil {
			return
		}
		w.live = true
		for _, dir := range w.folders() {
			err := watcher.Add(dir)
			w.live = w.live && (err == nil || errors.Is(err, fs.ErrNotExist)) // one that is not there yet is followed when it is
		}
	}
	follow()
	tick := time.NewTicker(watchPoll)
	defer tick.Stop()
	for {
		if err := w.draw(); err != nil {
			return Failf("draw the state: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case key, ok := <-w.screen.Keys:
			if !ok {
				return nil
			}
			_, rows := w.screen.Size()
			switch key {
			case "q", "Q", term.CtrlC, term.Esc:
				return nil
			case term.Up, "k":
				w.first--
			case term.Down, "j":
				w.first++
			case term.PageUp:
				w.first -= rows / 2
			case term.PageDown, " ":
				w.first += rows / 2
			}
			w.first = max(0, w.first)
			continue
		case <-w.screen.Resized:
			continue
		case <-events:
			w.settle(ctx, events)
		case <-lost:
		case <-tick.C:
		}
		began := time.Now()
		if err := w.look(ctx, quiet); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			w.err = err
		}
		follow()
		// A state that takes long to read is read less often than half of the time.
		tick.Reset(max(watchPoll, 2*time.Since(began)))
	}
}

// settle waits until a burst of changes is over. What happens meanwhile is one change.
func (w *watched) settle(ctx context.Context, events <-chan fsnotify.Event) {
	end := time.After(watchSettle)
	for {
		select {
		case <-events:
		case <-end:
			return
		case <-ctx.Done():
			return
		}
	}
}

// folders are those in which something may happen.
func (w *watched) folders() (all []string) {
	add := func(dir string) {
		if dir != "" && !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	add(w.now.cfg.StateDir)
	add(filepath.Dir(w.now.signals.path))
	for _, a := range w.now.agents {
		add(a.usage.Directory)
		if a.sessions.Path != "" {
			add(filepath.Dir(a.sessions.Path))
		}
	}
	return all
}

// look reads the state.
func (w *watched) look(ctx context.Context, quiet *Call) error {
	w.said.Reset()
	s, err := quiet.survey(ctx)
	if err != nil {
		return err
	}
	w.now, w.err, w.at, w.notices = s, nil, w.call.Now(), nil
	if s.unheard == nil && s.stats.Pending > 0 {
		world := s.signals.world(ctx, true)
		err := s.signals.read(ctx, func(snap *awareness.Snapshot) error {
			w.notices = nil
			return snap.Watches(awareness.WatchFilter{Pending: true}, world, w.at.UnixMilli(), func(n awareness.Watch) error {
				if s.l.sight.hears(n.Watcher, "") && s.l.sight.hears(n.Target, "") {
					w.notices = append(w.notices, n)
				}
				return nil
			})
		})
		if err != nil {
			quiet.Warnf("the notices: %v", err)
		}
	}
	for _, f := range agentFailures(s.agents) {
		quiet.Warnf("%v", f.err)
	}
	w.warnings = strings.Split(strings.TrimSpace(w.said.String()), "\n")
	if w.warnings[0] == "" {
		w.warnings = nil
	}
	return nil
}

func (w *watched) draw() error {
	lines, seen, err := w.screen.Show(w.first, w.body, w.foot)
	w.first = max(0, min(w.first, lines-seen))
	return err
}

func (w *watched) body(o *term.Out) {
	s := w.now
	o.Facts(
		term.Fact{Label: "State", Value: s.cfg.StateDir},
		term.Fact{Label: "Gateway", Value: s.gatewayLine(), Style: gatewayStyle(s.owner.Life)},
		term.Fact{Label: "Signal log", Value: s.signalLine()},
		term.Fact{Label: "Undo", Value: s.undoLine()},
	)
	o.Printf("\n")
	w.sizes(o)
	o.Printf("\n%s\n", o.Paint(term.Bold, "Running"))
	if len(s.running) == 0 {
		o.Printf("  none\n")
	}
	for _, r := range s.running {
		why := ""
		if len(r.Evidence) > 0 && r.Word != "live" {
			why = "  " + r.Evidence[0]
		}
		o.Printf("  %s  %s  %s%s\n", o.Paint(verdictStyle(r.Word), term.Pad(string(r.Word), 13, false)), ageOf(r.row.Updated, s.l.now), keyWord(r.row.Key), o.Paint(term.Dim, why))
	}
	if len(w.notices) > 0 || s.stats.Pending > 0 {
		o.Printf("\n%s\n", o.Paint(term.Bold, "Notices that nobody has taken in"))
	}
	for _, n := range w.notices {
		o.Printf("  %s is behind %s by %s\n", keyWord(n.Watcher), keyWord(n.Target), plural(int(n.Behind), "event", "events"))
	}
	if len(s.newest) > 0 {
		o.Printf("\n%s\n", o.Paint(term.Bold, "Newest"))
	}
	for _, r := range s.newest {
		o.Printf("  %s  %s  %s\n", term.Pad(ageOf(r.Updated, s.l.now), 4, true), term.Pad(r.View(s.l.acp).Kind, 11, false), keyWord(r.Key))
	}
	if len(w.warnings) > 0 {
		o.Printf("\n")
	}
	for _, line := range w.warnings {
		o.Printf("%s\n", o.Paint(term.Yellow, line))
	}
}

// sizes are rows and bytes against their limits, with a gauge of whichever is nearer.
func (w *watched) sizes(o *term.Out) {
	room := max(10, min(30, o.Width()-58))
	t := o.Table(term.Column{Head: "Agent", Cut: term.End, Min: 8}, term.Column{Head: "Era", Drop: 2}, term.Column{Head: "Rows", Right: true}, term.Column{Head: "Size", Right: true},
		term.Column{Head: "Of the limit", Drop: 1, Style: gaugeStyle})
	for _, a := range w.now.agents {
		rows := a.limits.rowsOf(len(a.sessions.Rows))
		if a.err != nil {
			rows = term.Unknown
		} else if a.sessions.Era == store.NoEra {
			rows = "-"
		}
		name := a.id
		if !a.configured {
			name += " *"
		}
		t.Row(name, string(a.sessions.Era), rows, a.limits.bytesOf(a.usage.Total()), gauge(a.full(), room))
	}
	t.End()
}

// full is the share of its limits that an agent uses, of rows or of bytes, whichever is more; NaN where there are none.
func (a *agentFacts) full() float64 {
	share := math.NaN()
	if !a.limits.known {
		return share
	}
	for _, x := range [][2]float64{{float64(len(a.sessions.Rows)), float64(a.limits.rows)}, {float64(a.usage.Total()), float64(a.limits.bytes)}} {
		if x[1] > 0 && !(share > x[0]/x[1]) {
			share = x[0] / x[1]
		}
	}
	return share
}

// gauge draws a share, "[####----] 52%".
func gauge(share float64, room int) string {
	if math.IsNaN(share) {
		return "no limit"
	}
	n := int(min(1, share) * float64(room))
	return fmt.Sprintf("[%s%s] %.0f%%", strings.Repeat("#", n), strings.Repeat("-", room-n), 100*share)
}

// gaugeStyle marks what is nearly full, and what is over.
func gaugeStyle(cell string) term.Style {
	var percent float64
	if _, err := fmt.Sscanf(cell[strings.LastIndex(cell, " ")+1:], "%f%%", &percent); err != nil {
		return term.Plain
	}
	switch {
	case percent > 100:
		return term.Red
	case percent >= 80:
		return term.Yellow
	}
	return term.Plain
}

func (w *watched) foot(o *term.Out) {
	how := "looks every " + watchPoll.String()
	if w.live {
		how = "follows the files"
	}
	if w.err != nil {
		o.Printf("%s\n", o.Paint(term.Red, fmt.Sprintf("cannot be read now, this is as of %s: %v", w.at.Format(time.TimeOnly), w.err)))
	}
	o.Printf("%s\n", o.Paint(term.Dim, fmt.Sprintf("%s  %s  arrows scroll  q quits", w.at.Format(time.TimeOnly), how)))
}
