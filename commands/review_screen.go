package commands

import (
	"context"
	"fmt"
	"strings"

	"oc/commands/term"
	"oc/store"
	"oc/store/row"
	"oc/transcript/visible"
)

// deciding is a person who decides about sessions.
type deciding struct {
	call     *Call
	l        *listing
	all      []candidate
	screen   *term.Screen
	redactor *visible.Redactor
	looked   map[int]*store.Detail

	at   int  // what is shown
	sure bool // the last question is asked
}

// run shows candidate by candidate, until all that was decided is to be done, or nothing is.
func (d *deciding) run(ctx context.Context) (apply bool, err error) {
	for {
		if !d.sure {
			if err := d.look(ctx); err != nil {
				return false, err
			}
		}
		if _, _, err := d.screen.Show(0, d.body, d.foot); err != nil {
			return false, Failf("draw the session: %w", err)
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("nothing was changed: %w", ctx.Err())
		case <-d.screen.Resized:
		case key, ok := <-d.screen.Keys:
			if !ok {
				return false, nil
			}
			if key == term.CtrlC {
				return false, &Error{Exit: ExitInterrupted, Err: fmt.Errorf("interrupted: nothing was changed")}
			}
			if done, apply := d.press(key); done {
				return apply, nil
			}
		}
	}
}

// press does what a key says.
func (d *deciding) press(key term.Key) (done, apply bool) {
	if d.sure {
		if d.sure = false; key == "y" || key == "Y" {
			return true, true
		}
		return false, false
	}
	switch key {
	case "q", "Q", term.Esc:
		return true, false
	case "k":
		d.decide(toKeep)
	case "a":
		d.decide(toArchive)
	case "d":
		d.decide(toDelete)
	case "u":
		d.all[d.at].decision = undecided
	case term.Right, term.Down, " ":
		d.at = min(d.at+1, len(d.all)-1)
	case term.Left, term.Up, "b":
		d.at = max(d.at-1, 0)
	case term.Enter:
		if d.count(toArchive)+d.count(toDelete) == 0 {
			return true, false
		}
		d.sure = true
	}
	return false, false
}

// decide goes on to the next one; after the last one the last question is asked.
func (d *deciding) decide(what decision) {
	d.all[d.at].decision = what
	if d.at < len(d.all)-1 {
		d.at++
	} else if d.count(toArchive)+d.count(toDelete) > 0 {
		d.sure = true
	}
}

func (d *deciding) count(what decision) (n int) {
	for i := range d.all {
		if d.all[i].decision == what {
			n++
		}
	}
	return n
}

// look reads the two ends of the transcript that is shown.
func (d *deciding) look(ctx context.Context) error {
	if d.looked[d.at] != nil {
		return nil
	}
	found, err := store.Details(ctx, []*store.Row{d.all[d.at].row}, store.Want{Glance: true, Bytes: true})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		found = []store.Detail{{Err: err}}
	}
	d.looked[d.at] = &found[0]
	return nil
}

func (d *deciding) body(o *term.Out) {
	if d.sure {
		o.Printf("%s\n\n", o.Paint(term.Bold, "That is all of it"))
		for _, line := range []struct {
			n    int
			says string
		}{{d.count(toArchive), "to archive"}, {d.count(toDelete), "to delete; transcripts become archives"}, {d.count(toKeep), "to keep"}, {d.count(undecided), "undecided, and kept"}} {
			o.Printf("  %s %s\n", term.Pad(term.Count(int64(line.n)), 6, true), line.says)
		}
		after := "oc undo takes it back."
		switch {
		case d.call.Bool("purge"):
			after = "Nothing is saved: it cannot be taken back."
		case d.call.Bool("dry-run"):
			after = "A dry run: the plan is shown and nothing is changed."
		}
		o.Printf("\n%s\n", after)
		return
	}
	x, found := &d.all[d.at], d.looked[d.at]
	r := x.row
	first := visible.ShowLine(found.Glimpse.FirstUser)
	first, longer := visible.Cut(d.redactor.Show(first), 600)
	if longer {
		first += "…"
	}
	last := found.Glimpse.Preview
	if found.Glimpse.Speaker != "" && last != "" {
		last = found.Glimpse.Speaker + ": " + last
	}
	size := fmt.Sprintf("%s of transcript, %s in the store", term.Bytes(found.Bytes), term.Bytes(r.Bytes()))
	if found.Err != nil {
		size, first = "the transcript cannot be read: "+found.Err.Error(), term.Unknown
	} else if !found.Glimpse.Messages && found.Glimpse.Whole {
		first = "no message is in it"
	}
	what := term.Plain
	if x.decision == toDelete {
		what = term.Red
	}
	label, _ := r.Text(row.Label)
	o.Printf("%s\n\n", o.Paint(term.Bold, fmt.Sprintf("Session %d of %d", d.at+1, len(d.all))))
	o.Facts(
		term.Fact{Label: "Title", Value: d.redactor.Show(titleOf(r, found.Glimpse)), Style: term.Bold},
		term.Fact{Label: "Session", Value: r.Key},
		term.Fact{Label: "Label", Value: d.redactor.Show(label)},
		term.Fact{Label: "Kind", Value: r.View(d.l.acp).Kind + ", agent " + r.Store().Agent},
		term.Fact{Label: "Written", Value: ago(ageOf(r.Updated, d.l.now))},
		term.Fact{Label: "Size", Value: size},
		term.Fact{Label: "First prompt", Value: first},
		term.Fact{Label: "Said last", Value: d.redactor.Show(last)},
		term.Fact{Label: "Why", Value: strings.Join(x.why, "; ")},
		term.Fact{Label: "Decision", Value: or(string(x.decision), "none yet"), Style: what},
	)
}

func (d *deciding) foot(o *term.Out) {
	if d.sure {
		o.Printf("%s\n", o.Paint(term.Bold, "y does it   any other key goes back   ctrl-c changes nothing"))
		return
	}
	o.Printf("%s\n", o.Paint(term.Dim, fmt.Sprintf("archive %d, delete %d, keep %d, of %d", d.count(toArchive), d.count(toDelete), d.count(toKeep), len(d.all))))
	o.Printf("%s\n", o.Paint(term.Bold, "k keep  a archive  d delete  u undo this   arrows move   enter ends  q leaves"))
}
