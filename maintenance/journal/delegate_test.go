package journal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// lines is a Resolver of stores that hold one row a line: undo brings back the lines that a run took out.
type lines struct{}

func (lines) Attribute(_ Step, before, now []byte) ([]byte, error) {
	return []byte(merged(string(before), string(now))), nil
}

func (lines) Merge(_ Step, v Versions) (Merging, error) {
	now := string(v.Now)
	for line := range strings.Lines(string(v.Before)) {
		if !strings.Contains(string(v.After), line) && !strings.Contains(now, line) {
			now += line
		}
	}
	return Merging{Bytes: []byte(now)}, nil
}

// merged is now with the lines that only before has.
func merged(before, now string) string {
	for line := range strings.Lines(before) {
		if !strings.Contains(now, line) {
			now += line
		}
	}
	return now
}

// The scene of a delegated run: a store, transcripts, one of them with two names, a directory.
func delegatedScene(t testing.TB, base string) Plan {
	t.Helper()
	in := func(name string) string { return filepath.Join(base, "sessions", name) }
	put(t, in("sessions.json"), "a\nb\nc\n", 0o640, time.Hour)
	put(t, in("b.jsonl"), strings.Repeat("line of b\n", 400), 0o600, 48*time.Hour)
	put(t, in("c.jsonl"), "line of c\n", 0o644, 72*time.Hour)
	put(t, in("stays.jsonl"), "stays\n", 0o644, 72*time.Hour)
	put(t, in("unplanned.jsonl"), "unplanned\n", 0o644, 72*time.Hour)
	put(t, in("dir/d.jsonl"), "d\n", 0o644, 72*time.Hour)
	put(t, filepath.Join(base, "openclaw.json"), "{agents: 2}\n", 0o600, time.Hour)
	if err := os.Link(in("c.jsonl"), in("c.other")); err != nil {
		t.Fatal(err)
	}
	return Plan{Facts: []byte(`{"via":"gateway"}`), Steps: []Step{
		{Kind: Remove, Phase: Clear, Path: in("b.jsonl")},
		{Kind: Remove, Phase: Clear, Path: in("c.jsonl")},
		{Kind: Remove, Phase: Clear, Path: in("stays.jsonl")},
		{Kind: Remove, Phase: Clear, Path: in("dir/d.jsonl")},
		{Kind: RemoveDir, Phase: Clear, Path: in("dir")},
		{Kind: Replace, Phase: Swap, Path: in("sessions.json"), Hook: "rows"},
		{Kind: Replace, Phase: Place, Path: filepath.Join(base, "openclaw.json")},
	}}
}

// gatewayActs takes b and c out, archives b and what was not planned, and writes the configuration; others says that it also writes a row of its own.
func gatewayActs(t testing.TB, base string, others bool) (made []Step) {
	t.Helper()
	in := func(name string) string { return filepath.Join(base, "sessions", name) }
	store := "a\n"
	if others {
		store = "a\nnew\n"
	}
	for _, err := range []error{
		os.Rename(in("b.jsonl"), in("b.jsonl.deleted.1")),
		os.Rename(in("unplanned.jsonl"), in("unplanned.jsonl.deleted.1")),
		os.Remove(in("c.jsonl")),
		os.RemoveAll(in("dir")),
		os.WriteFile(in("x.tmp"), []byte(store), 0o640),
		os.Rename(in("x.tmp"), in("sessions.json")),
		os.WriteFile(filepath.Join(base, "openclaw.json"), []byte("{agents: 1}\n"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return []Step{
		{Kind: Create, Path: in("b.jsonl.deleted.1")},
		{Kind: Move, Path: in("unplanned.jsonl"), To: in("unplanned.jsonl.deleted.1")},
		{Kind: Create, Path: in("was-never-there")},
		{Kind: Create, Path: "/etc/outside"},
	}
}

func openLines(t testing.TB, base string, f FS) *Journal {
	t.Helper()
	j := open(t, base, f)
	j.resolver = lines{}
	return j
}

func TestDelegatedIsTakenBack(t *testing.T) {
	for _, others := range []bool{false, true} {
		base := scratch(t)
		plan := delegatedScene(t, base)
		before := tree(t, base)
		j := openLines(t, base, nil)
		r, err := j.Save(bg, plan)
		if err != nil || r.State != Delegated {
			t.Fatal(r.State, err)
		}
		if d := diff(tree(t, base), before); d != "" {
			t.Fatalf("saving touched\n%s", d)
		}
		if _, err := j.Apply(bg, Plan{Steps: plan.Steps[:1]}); !errors.Is(err, ErrUnfinished) {
			t.Errorf("while a gateway is at work: %v", err)
		}
		// It writes into a file with several names, which no copy may show.
		put(t, filepath.Join(base, "sessions/stays.jsonl"), "stays and grows\n", 0o644, 0)
		put(t, filepath.Join(base, "sessions/stays.jsonl"), "stays\n", 0o644, 72*time.Hour)
		changed, err := j.Settle(bg, r, gatewayActs(t, base, others))
		if err != nil || !changed || r.State != Done {
			t.Fatal(changed, r.State, err)
		}
		after := tree(t, base)
		if _, _, err := j.Undo(bg, r.ID, UndoOptions{DryRun: true}); err != nil {
			t.Error(err)
		}
		if d := diff(tree(t, base), after); d != "" {
			t.Errorf("the rehearsal touched\n%s", d)
		}
		back, outcomes, err := j.Undo(bg, r.ID, UndoOptions{})
		if err != nil || back.State != Undone {
			t.Errorf("undo: %v, %+v", err, outcomes)
		}
		now := tree(t, base)
		if others { // what the gateway wrote itself stays
			if store, _ := os.ReadFile(filepath.Join(base, "sessions/sessions.json")); string(store) != "a\nnew\nb\nc\n" {
				t.Errorf("the store holds %q", store)
			}
			delete(now, "sessions/sessions.json")
			delete(before, "sessions/sessions.json")
		}
		if d := diff(oneName(now), oneName(before)); d != "" {
			t.Errorf("others %t: after the undo\n%s", others, d)
		}
	}
}

// A gateway that did nothing leaves no run, and one whose work nobody saw is looked at by the next oc.
func TestDelegatedIsSettledLater(t *testing.T) {
	base := scratch(t)
	plan := delegatedScene(t, base)
	before := tree(t, base)
	j := openLines(t, base, nil)
	r, err := j.Save(bg, plan)
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := j.Settle(bg, r, nil); changed || err != nil {
		t.Error(changed, err)
	}
	if runs, errs := j.List(); len(runs)+len(errs) != 0 {
		t.Errorf("%v %v", runs, errs)
	}
	if temps, vaults := leftovers(t, base); len(temps)+len(vaults) != 0 {
		t.Errorf("left: %v %v", temps, vaults)
	}

	if r, err = j.Save(bg, plan); err != nil {
		t.Fatal(err)
	}
	gatewayActs(t, base, false)
	foreseen, err := j.Foresee()
	if err != nil || len(foreseen) != 1 || foreseen[0].Did != WasSettled {
		t.Errorf("%v %+v", err, foreseen)
	}
	recs, err := j.Reconcile(bg)
	if err != nil || len(recs) != 1 || recs[0].Did != WasSettled || recs[0].Run.State != Done {
		t.Fatalf("%v %+v", err, recs)
	}
	if _, _, err := j.Undo(bg, r.ID, UndoOptions{}); err != nil {
		t.Error(err)
	}
	now := tree(t, base)
	// Archives are not known to be the gateway's any more.
	for _, name := range []string{"sessions/b.jsonl.deleted.1", "sessions/unplanned.jsonl.deleted.1", "sessions/unplanned.jsonl"} {
		delete(now, name)
		delete(before, name)
	}
	if d := diff(oneName(now), oneName(before)); d != "" {
		t.Errorf("after the undo\n%s", d)
	}
}

// Reconcile leaves what only who owns the state may finish.
func TestReconcileTouchesNothing(t *testing.T) {
	for at := 20; at < 400; at += 7 {
		base := scratch(t)
		plan := scene(t, base)()
		f := &Faults{FS: quick{OS()}, At: at}
		if !stopping(func() { _, _ = open(t, base, f).Apply(bg, plan) }) {
			break
		}
		j := open(t, base, nil)
		before := tree(t, base)
		runs, _ := j.List()
		_, err := j.Reconcile(bg)
		if applying := slices.ContainsFunc(runs, func(r Run) bool { return r.State == Applying }); applying != errors.Is(err, ErrUnfinished) || !applying && err != nil {
			t.Errorf("killed at %d: %v", at, err)
		}
		if d := diff(oneName(tree(t, base)), oneName(before)); d != "" {
			t.Errorf("killed at %d: it touched\n%s", at, d)
		}
	}
}

// Killed, or failing, at any operation of saving and settling: the files are as the gateway left them, and what it did is taken back.
func TestFaultsInDelegation(t *testing.T) {
	matrix(t, allFaults, func(t *testing.T, f *Faults) bool {
		base := scratch(t)
		plan := delegatedScene(t, base)
		defer os.RemoveAll(base)
		before := tree(t, base)
		j := openLines(t, base, f)
		var r *Run
		var err error
		acted := false
		after := before
		stopped := stopping(func() {
			if r, err = j.Save(bg, plan); err != nil {
				return
			}
			made := gatewayActs(t, base, false)
			acted, after = true, tree(t, base)
			_, err = j.Settle(bg, r, made)
		})
		if err != nil && !errors.Is(err, f.Err) {
			t.Errorf("error %v, want %v", err, f.Err)
		}
		if d := diff(tree(t, base), after); d != "" {
			t.Errorf("oc touched\n%s", d)
		}
		ended := !stopped && err == nil && f.Count() < f.At

		j = openLines(t, base, nil)
		if _, err := j.Recover(bg); err != nil {
			t.Error(err)
		}
		if again, err := j.Recover(bg); len(again) != 0 || err != nil {
			t.Errorf("a second recovery: %v %v", again, err)
		}
		if d := diff(tree(t, base), after); d != "" {
			t.Errorf("the recovery touched\n%s", d)
		}
		runs, errs := j.List()
		if len(errs) > 0 || acted && len(runs) != 1 || !acted && len(runs) != 0 {
			t.Errorf("acted %t: %v %v", acted, runs, errs)
			return ended
		}
		temps, _ := leftovers(t, filepath.Join(base, "sessions"))
		if _, vaults := leftovers(t, base); len(temps) > 0 || len(vaults) != len(runs) {
			t.Errorf("left: %v %v", temps, vaults)
		}
		if acted {
			if _, outcomes, err := j.Undo(bg, runs[0].ID, UndoOptions{}); err != nil {
				t.Errorf("%v %+v", err, outcomes)
			}
			now, want := tree(t, base), without(before)
			for _, name := range []string{"sessions/b.jsonl.deleted.1", "sessions/unplanned.jsonl.deleted.1", "sessions/unplanned.jsonl"} {
				delete(now, name)
				delete(want, name)
			}
			if d := diff(oneName(now), oneName(want)); d != "" {
				t.Errorf("after the undo\n%s", d)
			}
		}
		return ended
	})
}
