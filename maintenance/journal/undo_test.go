package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"oc/store/lock"
)

var bg = context.Background()

// What was touched after a run is left alone and told; the rest comes back, and the run stays open for it.
func TestUndoLeavesWhatChanged(t *testing.T) {
	base := scratch(t)
	plan := scene(t, base)
	before := tree(t, base)
	j := open(t, base, nil)
	r, err := j.Apply(bg, plan())
	if err != nil {
		t.Fatal(err)
	}
	d := filepath.Join(base, "agents/main/sessions")
	put(t, filepath.Join(d, "sessions.json"), `{"a":1,"z":9}`, 0o600, 0)        // the gateway wrote
	put(t, filepath.Join(d, "c.jsonl"), "someone else's\n", 0o600, 0)           // the name is taken
	put(t, filepath.Join(d, "e.jsonl"), "new transcript\nand more\n", 0o600, 0) // went on
	put(t, filepath.Join(d, "b.jsonl.deleted.2026-11-30T12-00-00.000Z"), "", 0o600, 0)
	if err := os.Chmod(filepath.Join(d, "keep.jsonl"), 0o644); err != nil {
		t.Fatal(err)
	}
	now := tree(t, base)
	_, outcomes, err := j.Undo(bg, r.ID, UndoOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Result{}
	for _, o := range outcomes {
		name, _ := filepath.Rel(d, o.Path)
		got[name] = o.Result
		if (o.Result == Conflict) != (o.Reason != "") {
			t.Errorf("%+v", o)
		}
	}
	want := map[string]Result{
		"sessions.json": Conflict, "c.jsonl": Conflict, "e.jsonl": Conflict, "b.jsonl": Conflict, "keep.jsonl": Conflict,
		"empty.jsonl": Restored, "twice.jsonl": Restored, "link.jsonl": Restored, "gone": Restored, "gone/d.jsonl": Restored,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("outcomes %v\nwant %v", got, want)
	}
	after := tree(t, base)
	for name, result := range want {
		name = "agents/main/sessions/" + name
		if result == Conflict && after[name] != now[name] {
			t.Errorf("%s was overwritten", name)
		}
		if result == Restored && after[name] != before[name] {
			t.Errorf("%s: %s, want %s", name, after[name], before[name])
		}
	}
	// Out of the way, the rest comes back with a second undo.
	for _, name := range []string{"c.jsonl", "e.jsonl"} {
		if err := os.Remove(filepath.Join(d, name)); err != nil {
			t.Fatal(err)
		}
	}
	u, outcomes, err := j.Undo(bg, r.ID, UndoOptions{Only: func(s Step) bool { return filepath.Base(s.Path) == "c.jsonl" || s.Kind == Create }})
	if err != nil || len(outcomes) != 2 || u.State != Done || u.Back != 7 {
		t.Errorf("%v %v %+v", err, outcomes, u)
	}
	if got := tree(t, base)["agents/main/sessions/c.jsonl"]; got != before["agents/main/sessions/c.jsonl"] {
		t.Errorf("c.jsonl: %s", got)
	}
	if fi, err := os.Stat(filepath.Join(base, own, "undo", r.ID)); err != nil || !fi.IsDir() {
		t.Errorf("the saved bytes of what is not back are gone: %v", err)
	}
}

type rows struct{ seen []string }

func (m *rows) Merge(s Step, v Versions) (Merging, error) {
	m.seen = []string{s.Hook, string(s.Payload), string(v.Before), string(v.After), string(v.Now)}
	switch now := string(v.Now); {
	case strings.Contains(now, "refuse"):
		return Merging{Conflicts: []string{"row b was made again"}}, nil
	case strings.Contains(now, "broken"):
		return Merging{}, errors.New("the store does not parse")
	}
	return Merging{Bytes: []byte(`{"a":1,"b":2,"z":9}`), Conflicts: []string{"row q stays"}}, nil
}

func TestUndoMerges(t *testing.T) {
	for _, c := range []struct {
		now, want string
		result    Result
		reason    string
	}{
		{`{"a":1,"z":9}`, `{"a":1,"b":2,"z":9}`, Merged, ""},
		{`{"refuse":1}`, `{"refuse":1}`, Conflict, "row b was made again"},
		{`broken`, `broken`, Conflict, "the store does not parse"},
	} {
		for _, linked := range []bool{false, true} {
			base := scratch(t)
			store := filepath.Join(base, "sessions.json")
			put(t, store, `{"a":1,"b":2}`, 0o640, time.Hour)
			if linked {
				if err := os.Link(store, store+".other"); err != nil {
					t.Fatal(err)
				}
			}
			m := &rows{}
			j, err := Open(Options{Base: base, Now: func() time.Time { return t0 }, FS: quick{OS()}, Resolver: m})
			if err != nil {
				t.Fatal(err)
			}
			r, err := j.Apply(bg, Plan{Steps: []Step{{
				Kind: Replace, Phase: Swap, Path: store, Content: text(`{"a":1}`), Hook: "rows", Payload: []byte(`{"dropped":["b"]}`),
			}}})
			if err != nil {
				t.Fatal(err)
			}
			if linked {
				if b, _ := os.ReadFile(store + ".other"); string(b) != `{"a":1,"b":2}` {
					t.Errorf("written through a hard link: %s", b)
				}
			}
			put(t, store, c.now, 0o600, 0)
			for _, dry := range []bool{true, false} {
				_, outcomes, err := j.Undo(bg, r.ID, UndoOptions{DryRun: dry})
				if err != nil || len(outcomes) != 1 || outcomes[0].Result != c.result || outcomes[0].Reason != c.reason {
					t.Errorf("%s: %v %+v", c.now, err, outcomes)
				}
				want := c.want
				if dry {
					want = c.now
				}
				if b, _ := os.ReadFile(store); string(b) != want {
					t.Errorf("%s, dry %t: the store holds %s", c.now, dry, b)
				}
				if want := []string{"rows", `{"dropped":["b"]}`, `{"a":1,"b":2}`, `{"a":1}`, c.now}; !slices.Equal(m.seen, want) {
					t.Errorf("the resolver saw %q, want %q", m.seen, want)
				}
			}
		}
	}
}

// A frame that is damaged costs its own file only.
func TestDamagedBytes(t *testing.T) {
	base := scratch(t)
	var plan Plan
	for i := range 3 {
		path := filepath.Join(base, fmt.Sprintf("f%d", i))
		put(t, path, strings.Repeat(fmt.Sprint("text ", i, "\n"), 100), 0o600, time.Hour)
		plan.Steps = append(plan.Steps, Step{Kind: Remove, Phase: Clear, Path: path})
	}
	before := tree(t, base)
	j := open(t, base, nil)
	r, err := j.Apply(bg, plan)
	if err != nil {
		t.Fatal(err)
	}
	pack := filepath.Join(base, own, "undo", r.ID, oldPack)
	b, err := os.ReadFile(pack)
	if err != nil {
		t.Fatal(err)
	}
	b[r.Steps[1].Old.Offset+r.Steps[1].Old.Length/2] ^= 0x55
	if err := os.WriteFile(pack, b, 0o600); err != nil {
		t.Fatal(err)
	}
	u, outcomes, err := j.Undo(bg, r.ID, UndoOptions{})
	if err != nil || len(outcomes) != 3 || outcomes[1].Result != Lost || outcomes[0].Result != Restored || outcomes[2].Result != Restored {
		t.Errorf("%v %+v", err, outcomes)
	}
	delete(before, "f1")
	if d := diff(tree(t, base), before); d != "" {
		t.Error(d)
	}
	if u.State != Done {
		t.Errorf("state %s", u.State)
	}
	if err := os.Remove(pack); err != nil {
		t.Fatal(err)
	}
	if _, outcomes, err = j.Undo(bg, r.ID, UndoOptions{}); err != nil || len(outcomes) != 1 || outcomes[0].Result != Lost {
		t.Errorf("without the pack: %v %+v", err, outcomes)
	}
}

func TestRefusals(t *testing.T) {
	base := scratch(t)
	plan := scene(t, base)
	j := open(t, base, nil)
	if r, err := j.Apply(bg, Plan{}); err != nil || r.ID != "" {
		t.Errorf("an empty plan: %v %+v", err, r)
	}
	if _, err := os.Lstat(filepath.Join(base, own)); !os.IsNotExist(err) {
		t.Error("an empty plan made .oc")
	}
	for _, id := range []string{"", "nonsense", "../../x", "20261130-120000-00000000"} {
		if _, _, err := j.Undo(bg, id, UndoOptions{}); !errors.Is(err, ErrUnknown) {
			t.Errorf("undo %q: %v", id, err)
		}
		if _, err := j.Expire(bg, id); !errors.Is(err, ErrUnknown) {
			t.Errorf("expire %q: %v", id, err)
		}
	}
	if recs, err := j.Recover(bg); recs != nil || err != nil {
		t.Errorf("nothing to recover: %v %v", recs, err)
	}
	if _, err := os.Lstat(filepath.Join(base, own)); !os.IsNotExist(err) {
		t.Error("asking made .oc")
	}

	p := plan()
	p.Purge = true
	r, err := j.Apply(bg, p)
	if err != nil || r.Saved != 0 || r.State != Done {
		t.Fatalf("%v %+v", err, r)
	}
	if _, vaults := leftovers(t, base); len(vaults) != 0 {
		t.Errorf("purged, and saved: %v", vaults)
	}
	if _, _, err := j.Undo(bg, r.ID, UndoOptions{}); !errors.Is(err, ErrNoBytes) {
		t.Errorf("undo of a purge: %v", err)
	}
	if got, err := j.Load(r.ID); err != nil || !got.Purge {
		t.Errorf("%v %+v", err, got)
	}

	// While an earlier run is open nothing new begins.
	base = scratch(t)
	scene(t, base)
	f := &Faults{FS: quick{OS()}, At: 90}
	if !stopping(func() { _, _ = open(t, base, f).Apply(bg, scenePlan(base)) }) {
		t.Fatal("it was not stopped")
	}
	j = open(t, base, nil)
	if _, err := j.Apply(bg, scenePlan(base)); !errors.Is(err, ErrUnfinished) {
		t.Errorf("apply: %v", err)
	}
	runs, _ := j.List()
	if len(runs) != 1 || !runs[0].Unfinished() {
		t.Fatalf("%+v", runs)
	}
	if _, _, err := j.Undo(bg, runs[0].ID, UndoOptions{}); !errors.Is(err, ErrUnfinished) {
		t.Errorf("undo: %v", err)
	}
	if _, err := j.Expire(bg, runs[0].ID); !errors.Is(err, ErrUnfinished) {
		t.Errorf("expire: %v", err)
	}
	release, err := lock.Dir(bg, base, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Recover(bg); !errors.Is(err, lock.ErrBusy) {
		t.Errorf("recover beside another oc: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
}

// Each file changed between plan and apply stops the run before anything happens.
func TestChangedSincePlan(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"grown":   func(p string) error { return os.WriteFile(p, []byte("more than before\n"), 0o600) },
		"touched": func(p string) error { return os.Chtimes(p, t0, t0) },
		"gone":    os.Remove,
		"replaced": func(p string) error {
			return errors.Join(os.WriteFile(p+"2", []byte("sam\n"), 0o600), os.Chtimes(p+"2", t0.Add(-time.Hour), t0.Add(-time.Hour)), os.Rename(p+"2", p))
		},
		"a link": func(p string) error { return errors.Join(os.Remove(p), os.Symlink("x", p)) },
		"a dir":  func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) },
	} {
		for _, kind := range []Kind{Remove, Replace, Move} {
			base := scratch(t)
			path := filepath.Join(base, "f")
			put(t, path, "one\n", 0o600, time.Hour)
			expect, err := OS().Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			before := tree(t, base)
			s := Step{Kind: kind, Path: path, Expect: &expect, Content: text("two\n")}
			if kind == Move {
				s.To = path + ".moved"
			}
			_, err = open(t, base, nil).Apply(bg, Plan{Steps: []Step{s}})
			if !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s, %s: %v", kind, name, err)
			}
			if d := diff(tree(t, base), before); d != "" {
				t.Errorf("%s, %s: %s", kind, name, d)
			}
		}
	}
}

// A file that changes while the run is at work: before the stores stand all is rolled back, later it is skipped.
func TestChangedMeanwhile(t *testing.T) {
	for _, c := range []struct {
		when, file string
		state      State
	}{
		{"e.jsonl", "sessions.json", RolledBack},
		{"sessions.json", "c.jsonl", Done},
		{"sessions.json", "b.jsonl", Done},
		{"sessions.json", "sessions.json", RolledBack}, // in the very moment
	} {
		base := scratch(t)
		plan := scene(t, base)()
		d := filepath.Join(base, "agents/main/sessions")
		f := &Faults{FS: quick{OS()}}
		f.Watch = func(op, name string) {
			if (op == "move" || op == "exchange") && name == filepath.Join(d, c.when) {
				put(t, filepath.Join(d, c.file), "someone wrote\n", 0o600, 0)
			}
		}
		r, err := open(t, base, f).Apply(bg, plan)
		if r.State != c.state || (c.state == RolledBack) != errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v, %s", c.file, err, r.State)
		}
		if b, err := os.ReadFile(filepath.Join(d, c.file)); err != nil || string(b) != "someone wrote\n" {
			t.Errorf("%s: %q %v", c.file, b, err)
		}
		if c.state == Done && (r.Skipped != 1 || !slices.ContainsFunc(r.Steps, func(s Step) bool {
			return filepath.Base(s.Path) == c.file && strings.Contains(s.Skipped, "changed since")
		})) {
			t.Errorf("%s: %+v", c.file, r)
		}
		if c.state == RolledBack {
			if _, err := os.Lstat(filepath.Join(d, "e.jsonl")); !os.IsNotExist(err) {
				t.Error("what was placed is still there")
			}
			if _, err := os.Lstat(filepath.Join(d, "c.jsonl")); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestCancelled(t *testing.T) {
	before, after := states(t)
	seen := map[State]int{}
	for n := range 11 {
		base := scratch(t)
		plan := scene(t, base)()
		ctx, cancel := context.WithCancel(bg)
		if n == 0 {
			cancel()
		}
		plan.Progress = func(done, total int) {
			if done == n {
				cancel()
			}
		}
		j := open(t, base, nil)
		r, err := j.Apply(ctx, plan)
		if n < 10 && !errors.Is(err, context.Canceled) || n == 10 && err != nil {
			t.Errorf("cancelled after step %d: %v", n, err)
		}
		seen[r.State]++
		if _, err := j.Recover(bg); err != nil {
			t.Error(err)
		}
		if old, _ := sides(t, tree(t, base), before, after, nil); old != (n < 4) {
			t.Errorf("cancelled after step %d: old %t", n, old)
		}
		cancel()
	}
	if seen[Applying] == 0 || seen[RolledBack] == 0 || seen[Done] == 0 {
		t.Errorf("states %v", seen)
	}
}

func TestExpiry(t *testing.T) {
	now := t0
	base := scratch(t)
	j, err := Open(Options{Base: base, Now: func() time.Time { return now }, FS: quick{OS()}})
	if err != nil {
		t.Fatal(err)
	}
	run := func(at time.Time, age time.Duration) string {
		t.Helper()
		now = at
		path := filepath.Join(base, "f")
		put(t, path, strings.Repeat("bytes\n", 1000), 0o600, 0)
		r, err := j.Apply(bg, Plan{Steps: []Step{{Kind: Remove, Phase: Clear, Path: path}}})
		if err != nil {
			t.Fatal(err)
		}
		written := time.Now().Add(-age)
		if err := os.Chtimes(j.manifest(r.ID), written, written); err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	week := 7 * 24 * time.Hour
	old := run(t0.Add(-8*24*time.Hour), 8*24*time.Hour)
	young := run(t0.Add(-6*24*time.Hour), 6*24*time.Hour)
	future := run(t0.Add(time.Hour), 8*24*time.Hour)
	hasty := run(t0.Add(-365*24*time.Hour), 23*time.Hour) // the user's clock jumped: the disk knows better
	ahead := run(t0.Add(-8*24*time.Hour), -48*time.Hour)
	now = t0
	ids, freed, err := j.ExpireOlder(bg, week)
	if err != nil || !slices.Equal(ids, []string{old}) || freed <= 0 {
		t.Errorf("expired %v, %d bytes, %v; want %s", ids, freed, err, old)
	}
	if ids, _, err := j.ExpireOlder(bg, week); err != nil || len(ids) != 0 {
		t.Errorf("again: %v %v", ids, err)
	}
	if _, _, err := j.Undo(bg, old, UndoOptions{}); !errors.Is(err, ErrNoBytes) {
		t.Errorf("undo of an expired run: %v", err)
	}
	runs, errs := j.List()
	if len(runs) != 5 || len(errs) != 0 {
		t.Errorf("%v %v", runs, errs)
	}
	for _, r := range runs {
		if (r.ID == old) != r.Expired || (r.Saved == 0) != r.Expired {
			t.Errorf("%+v", r)
		}
	}
	for _, id := range []string{young, future, hasty, ahead} {
		if freed, err := j.Expire(bg, id); err != nil || freed <= 0 {
			t.Errorf("by name: %d %v", freed, err)
		}
	}
	if _, vaults := leftovers(t, base); len(vaults) != 0 {
		t.Errorf("left: %v", vaults)
	}
}

// A disk that fills up in the middle of an undo: it says how far it came and what to do, and what is back stays.
func TestUndoRunsOutOfRoom(t *testing.T) {
	said := 0
	for at := 1; ; at++ {
		base := scratch(t)
		r, err := open(t, base, nil).Apply(bg, scene(t, base)())
		if err != nil {
			t.Fatal(err)
		}
		f := &Faults{FS: quick{OS()}, At: at, Err: syscall.ENOSPC}
		_, outcomes, err := open(t, base, f).Undo(bg, r.ID, UndoOptions{})
		if f.Count() < at {
			break
		}
		if err == nil || !strings.Contains(err.Error(), " of 10 steps") {
			continue // before the first step, or after the last
		}
		said++
		if want := fmt.Sprintf("after %d of 10 steps, and what is back stays", len(outcomes)); !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), undoRemedy) {
			t.Errorf("operation %d: %v; want %q", at, err, want)
		}
	}
	if said < 10 {
		t.Errorf("it failed in the middle %d times only", said)
	}
}

// Foresee says what Recover does next, and does nothing.
func TestForesee(t *testing.T) {
	seen := map[string]bool{}
	for at := 1; ; at++ {
		base := scratch(t)
		f := &Faults{FS: quick{OS()}, At: at}
		plan := scene(t, base)()
		if !stopping(func() { _, _ = open(t, base, f).Apply(bg, plan) }) {
			break
		}
		cut := tree(t, base)
		j := open(t, base, nil)
		said, err := j.Foresee()
		if d := diff(tree(t, base), cut); err != nil || d != "" {
			t.Fatalf("operation %d: %v %s", at, err, d)
		}
		did, err := j.Recover(bg)
		if err != nil || len(said) != len(did) {
			t.Fatalf("operation %d: %v %v %v", at, said, did, err)
		}
		for i := range did {
			seen[did[i].Did] = true
			if did[i].Did != said[i].Did || did[i].Run.ID != said[i].Run.ID {
				t.Errorf("operation %d: said %q, did %q", at, said[i].Did, did[i].Did)
			}
		}
	}
	if !seen[WasCleared] || !seen[WasRolledBack] || !seen[WasFinished] {
		t.Errorf("seen %v", seen)
	}
}
