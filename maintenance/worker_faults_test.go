package maintenance

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"syscall"
	"testing"

	"oc/maintenance/journal"
)

// A kill, or an error, at every operation of a cleanup: the store parses at once, no row loses the transcript that it had, and either the
// next cleanup or undo brings the new or the old state, exactly.
func TestFaultsOfACleanup(t *testing.T) {
	errs := []struct {
		name string
		err  error
	}{{"kill", nil}, {"EIO", syscall.EIO}, {"ENOSPC", syscall.ENOSPC}, {"EACCES", syscall.EACCES}}
	for _, c := range []struct {
		name   string
		orders Orders
		make   func(*testing.T) (*recipe, int64)
	}{
		{"everything", Orders{FixMissing: true, FixDMScope: true}, func(t *testing.T) (*recipe, int64) { return mixture(t), now }},
		{"archives", Orders{}, nil},
		{"budget-entries", Orders{}, nil},
		{"skills-prompts", Orders{}, nil},
		{"fix-missing-repair", Orders{FixMissing: true}, nil},
		{"orphans", Orders{}, nil},
		{"trajectory-sidecars", Orders{}, nil},
	} {
		if c.make == nil {
			c.make = func(t *testing.T) (*recipe, int64) { return recordedRecipe(t, c.name) }
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, at := c.make(t)
			clean := settle(t, r, at, c.orders)
			before := clean.everything(false)
			f := &journal.Faults{FS: quick{journal.OS()}}
			all, err := clean.apply(clean.worker(f, 0))
			if err != nil || all[0].Run == nil {
				t.Fatalf("%v %+v", err, all)
			}
			after, total := clean.fresh(), f.Count()
			if total < 30 {
				t.Errorf("only %d operations", total)
			}
			for _, e := range errs {
				for n := 1; n <= total; n++ {
					p := settle(t, r, at, c.orders)
					p.fault(before, after, e.err, n)
					if t.Failed() {
						t.Fatalf("%s at operation %d of %d", e.name, n, total)
					}
				}
			}
			t.Logf("%d operations, each with a kill, EIO, ENOSPC and EACCES", total)
		})
	}
}

// The same at every operation of taking a cleanup back: the store is whole at any moment, and taking it back once more brings the old
// state, exactly.
func TestFaultsOfAnUndo(t *testing.T) {
	r, at := mixture(t), now
	orders := Orders{FixMissing: true, FixDMScope: true}
	clean := settle(t, r, at, orders)
	before := clean.everything(false)
	done := func(p *place) {
		if all, err := p.apply(p.worker(nil, 0)); err != nil || all[0].Run == nil {
			t.Fatalf("%v %+v", err, all)
		}
	}
	undo := func(p *place, f *journal.Faults) error {
		past, problems := p.worker(f, 1000).Past(p.targets()[0].Index)
		if len(problems) > 0 {
			return problems[0]
		}
		_, _, err := past[len(past)-1].Undo(context.Background(), false)
		return err
	}
	done(clean)
	count := &journal.Faults{FS: quick{journal.OS()}}
	if err := undo(clean, count); err != nil || count.Count() < 50 {
		t.Fatalf("%d operations: %v", count.Count(), err)
	}
	if d := unlike(clean.everything(false), before); d != "" {
		t.Fatal(d)
	}
	for name, fault := range map[string]error{"kill": nil, "EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EACCES": syscall.EACCES} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= count.Count(); n++ {
				p := settle(t, r, at, orders)
				done(p)
				had := p.having()
				var err error
				killed := stopping(func() { err = undo(p, &journal.Faults{FS: quick{journal.OS()}, At: n, Err: fault}) })
				if killed != (fault == nil) {
					t.Errorf("killed: %t, %v", killed, err)
				}
				if why := p.whole(had); why != "" {
					t.Errorf("right after: %s", why)
				}
				p.takeBack()
				if d := unlike(p.everything(false), before); d != "" {
					t.Errorf("after another undo:\n%s", d)
				}
				if t.Failed() {
					t.Fatalf("operation %d of %d", n, count.Count())
				}
			}
		})
	}
}

// fault cleans with one operation going wrong.
func (p *place) fault(before, after map[string]string, fault error, n int) {
	p.t.Helper()
	had, paths := p.having(), p.everything(false)
	if d := unlike(paths, before); d != "" {
		p.t.Fatalf("laid out otherwise: %s", d)
	}
	w := p.worker(&journal.Faults{FS: quick{journal.OS()}, At: n, Err: fault}, 0)
	var all []*Done
	var skipped []Skip
	var err error
	killed := stopping(func() { all, err = p.apply(w) })
	if killed != (fault == nil) {
		p.t.Errorf("killed: %v", killed)
	}
	if why := p.whole(had); why != "" {
		p.t.Errorf("right after: %s", why)
	}
	if !killed {
		p.told(all, err, before, after)
		skipped = all[0].Skipped
	}
	// What comes next: the next cleanup, or undo, or the one after the other.
	if n%2 == 0 {
		if _, err := p.apply(p.worker(nil, 1000)); err != nil {
			p.t.Errorf("the next cleanup: %v", err)
		}
		if why := p.whole(had); why != "" {
			p.t.Errorf("after the next cleanup: %s", why)
		}
		got := p.fresh()
		if d := unlike(got, p.without(after, before, got, skipped)); d != "" {
			p.t.Errorf("after the next cleanup:\n%s", d)
		}
		if again := p.rehearse()[0]; !again.Empty() {
			p.t.Errorf("planned once more: %+v", again.Actions)
		}
	}
	p.takeBack()
	if d := unlike(p.everything(false), before); d != "" {
		p.t.Errorf("after the undo:\n%s", d)
	}
}

// told holds what a cleanup with an error said against what it did.
func (p *place) told(all []*Done, err error, before, after map[string]string) {
	p.t.Helper()
	d := all[len(all)-1]
	switch {
	case err == nil && len(d.Skipped) == 0:
		if diff := unlike(p.fresh(), after); diff != "" {
			p.t.Errorf("it says that all is done, and:\n%s", diff)
		}
	case err == nil:
		for _, s := range d.Skipped {
			if s.Action == nil || s.Reason == "" || s.Action.Kind == Rewrite || s.Action.Place {
				p.t.Errorf("skipped: %+v", s)
			}
			name, _ := filepath.Rel(p.root, s.Action.Target)
			if got := p.everything(false)[name]; got != before[name] {
				p.t.Errorf("it says that %s is as before, but it is %.100s", name, got)
			}
		}
	case d.Run == nil || d.Run.State != journal.Applying && d.Run.State != journal.Done:
		if diff := unlike(p.everything(false), before); diff != "" {
			p.t.Errorf("it failed (%v), and something changed:\n%s", err, diff)
		}
	}
}

// without is the state after a cleanup that left some files as they are, and told it. The next one does what a rule still asks for: the others
// stay as before.
func (p *place) without(after, before, got map[string]string, skipped []Skip) map[string]string {
	after = maps.Clone(after)
	for _, s := range skipped {
		from, _ := filepath.Rel(p.root, s.Action.Target)
		to, _ := filepath.Rel(p.root, s.Action.To)
		if _, there := got[from]; there {
			delete(after, to)
			after[from] = before[from]
		}
	}
	return after
}

// stopping says whether act was stopped.
func stopping(act func()) (killed bool) {
	defer func() {
		if x := recover(); x != nil {
			if _, ours := x.(journal.Stopped); !ours {
				panic(fmt.Sprint(x))
			}
			killed = true
		}
	}()
	act()
	return false
}
