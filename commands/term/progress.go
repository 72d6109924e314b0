package term

import (
	"fmt"
	"time"
)

// Progress is a line on a terminal that says how far the work is. It is drawn over itself at most ten times a second, gives way to
// everything else that is written, and is gone when done. A nil Progress does nothing.
type Progress struct {
	out   *Out
	label string
	now   func() time.Time
	drawn time.Time
	shown bool
}

// Progress begins a progress line; it is nil where nobody would see it.
func (o *Out) Progress(label string, now func() time.Time) *Progress {
	if !o.terminal {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.progress = &Progress{out: o, label: Escape(label), now: now}
	return o.progress
}

// Set says that done of total steps are done; total is 0 when it is not known.
func (p *Progress) Set(done, total int64) {
	if p == nil {
		return
	}
	now := p.now()
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	if p.shown && now.Sub(p.drawn) < 100*time.Millisecond {
		return
	}
	text := fmt.Sprintf("%s %s", p.label, Count(done))
	if total > 0 {
		text = fmt.Sprintf("%s %s of %s (%d%%)", p.label, Count(done), Count(total), done*100/total)
	}
	fmt.Fprintf(p.out.w, "\r%s\x1b[K", CutEnd(text, p.out.width-1, p.out.ellipsis)) //nolint:errcheck // only a hint
	p.drawn, p.shown = now, true
}

// Done takes the line away.
func (p *Progress) Done() {
	if p == nil {
		return
	}
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	p.wipe()
	p.out.progress = nil
}

func (p *Progress) wipe() {
	if p.shown {
		fmt.Fprint(p.out.w, "\r\x1b[K") //nolint:errcheck // only a hint
		p.shown = false
	}
}
