package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// matrix runs act once for every operation that it does, with a fault there, and counts. prepare makes a fresh state.
func matrix(t *testing.T, errs map[string]error, one func(t *testing.T, f *Faults) (ended bool)) {
	t.Helper()
	for name, fault := range errs {
		for _, stay := range []bool{false, true} {
			if stay && name != "EIO" {
				continue
			}
			label := name
			if stay {
				label += " from there on"
			}
			total := 0
			for n := 1; ; n++ {
				f := &Faults{FS: quick{OS()}, At: n, Err: fault, Stay: stay}
				ended := one(t, f)
				if t.Failed() {
					t.Fatalf("%s at operation %d", label, n)
				}
				if total = n - 1; ended {
					break
				}
			}
			t.Logf("%-24s %4d operations", label, total)
			if total < 50 {
				t.Errorf("%s: only %d operations", label, total)
			}
		}
	}
}

var allFaults = map[string]error{"kill": nil, "EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EACCES": syscall.EACCES}

// sides holds a tree against the old and the new one: whole, or step by step where steps of a finished run were skipped.
func sides(t *testing.T, got, before, after map[string]string, r *Run) (old, fresh bool) {
	t.Helper()
	// How many names a file has depends on whether its saved name is there.
	got, before, after = oneName(got), oneName(before), oneName(after)
	if diff(got, before) == "" {
		return true, false
	}
	if diff(without(got, written...), after) == "" {
		return false, true
	}
	if r == nil || r.State != Done || r.Skipped == 0 {
		t.Errorf("neither old nor new:\n--- to old\n%s--- to new\n%s", diff(got, before), diff(without(got, written...), after))
		return false, false
	}
	// What was skipped is as before, what was not is as after.
	want := map[string]string{}
	for k, v := range after {
		want[k] = v
	}
	for _, s := range r.Steps {
		if s.Skipped == "" {
			continue
		}
		if s.Phase != Clear {
			t.Errorf("skipped: %s", s.name())
		}
		for _, path := range []string{s.Path, s.final()} {
			name := rel(r, path)
			delete(want, name)
			if v, ok := before[name]; ok {
				want[name] = v
			}
		}
	}
	if _, ok := want["agents/main/sessions/gone/d.jsonl"]; ok {
		want["agents/main/sessions/gone"] = before["agents/main/sessions/gone"]
	}
	if d := diff(without(got, written...), want); d != "" {
		t.Errorf("skipped %d steps, and:\n%s", r.Skipped, d)
	}
	return false, false
}

func oneName(all map[string]string) map[string]string {
	all = maps.Clone(all)
	for name, v := range all {
		all[name] = anyLinks.ReplaceAllString(v, "")
	}
	return all
}

var anyLinks = regexp.MustCompile(` links=\d+`)

func rel(r *Run, path string) string {
	name, _ := filepath.Rel(r.Roots[0], path)
	return name
}

// states are the tree of the scene before and after its plan.
func states(t *testing.T) (before, after map[string]string) {
	t.Helper()
	base := t.TempDir()
	plan := scene(t, base)
	before = tree(t, base)
	if _, err := open(t, base, nil).Apply(context.Background(), plan()); err != nil {
		t.Fatal(err)
	}
	return before, without(tree(t, base), written...)
}

func scratch(t testing.TB) string {
	t.Helper()
	// In memory where the system has a place for that: ext4 waits for the disk when a file is replaced.
	if base, err := os.MkdirTemp("/dev/shm", "oc-journal-"); err == nil {
		t.Cleanup(func() { os.RemoveAll(base) })
		return base
	}
	return t.TempDir()
}

func TestFaultsInApply(t *testing.T) {
	before, after := states(t)
	for _, purge := range []bool{false, true} {
		t.Run(fmt.Sprintf("purge=%t", purge), func(t *testing.T) {
			matrix(t, allFaults, func(t *testing.T, f *Faults) bool {
				base := scratch(t)
				plan := scene(t, base)()
				plan.Purge = purge
				defer os.RemoveAll(base)
				j := open(t, base, f)
				var r *Run
				var err error
				stopped := stopping(func() { r, err = j.Apply(context.Background(), plan) })
				if f.Count() < f.At {
					if err != nil {
						t.Error(err)
					}
					return true
				}
				if f.Err != nil && !stopped && err == nil && r.State != Done {
					t.Errorf("no error, and the run is %q", r.State)
				}
				if err != nil && !errors.Is(err, f.Err) {
					t.Errorf("error %v, want %v", err, f.Err)
				}
				if err != nil && r.State != Applying && r.State != Planned {
					// Rolled back on the spot.
					if old, _ := sides(t, tree(t, base), before, after, nil); !old {
						t.Errorf("after %v the files are not as before", err)
					}
				}
				if stopped {
					// Whatever moment it was, the store is whole, and what it names is there.
					parses(t, base)
				}

				j = open(t, base, nil)
				recs, err := j.Recover(context.Background())
				if err != nil {
					t.Error(err)
				}
				if len(recs) > 1 {
					t.Errorf("%d recoveries", len(recs))
				}
				if again, err := j.Recover(context.Background()); len(again) != 0 || err != nil {
					t.Errorf("a second recovery: %v %v", again, err)
				}
				for _, rec := range recs {
					for _, o := range rec.Outcomes {
						if o.Result == Conflict || o.Result == Lost {
							t.Errorf("outcome %+v", o)
						}
					}
					r = rec.Run
				}
				if r != nil && r.State == Done {
					if r, err = j.Load(r.ID); err != nil {
						t.Error(err)
						return false
					}
				}
				old, _ := sides(t, tree(t, base), before, after, r)
				if temps, _ := leftovers(t, filepath.Join(base, "agents")); len(temps) > 0 {
					t.Errorf("left: %v", temps)
				}

				// Old or new or between: an undo brings back the old, a rerun the new.
				runs, errs := j.List()
				if len(errs) > 0 {
					t.Error(errs)
				}
				for _, run := range runs {
					if run.State != Done || run.Purge {
						continue
					}
					if _, _, err := j.Undo(context.Background(), run.ID, UndoOptions{}); err != nil {
						t.Error(err)
					}
					if d := diff(tree(t, base), before); d != "" {
						t.Errorf("after the undo:\n%s", d)
					}
					old = true
				}
				if old {
					if _, err := j.Apply(context.Background(), scenePlan(base)); err != nil {
						t.Error(err)
					}
					if d := diff(oneName(without(tree(t, base), written...)), oneName(after)); d != "" {
						t.Errorf("after a rerun:\n%s", d)
					}
					if temps, vaults := leftovers(t, base); len(temps) > 0 || len(vaults) > 1 && f.Err == nil {
						t.Errorf("left: %v %v", temps, vaults)
					}
				}
				return false
			})
		})
	}
}

// parses holds that the store is one of the two, and every transcript that it names exists.
func parses(t *testing.T, base string) {
	t.Helper()
	d := filepath.Join(base, "agents/main/sessions")
	b, err := os.ReadFile(filepath.Join(d, "sessions.json"))
	if err != nil {
		t.Error(err)
	}
	switch string(b) {
	case `{"a":1,"b":2}`:
		if _, err := os.Stat(filepath.Join(d, "b.jsonl")); err != nil {
			t.Errorf("the old store names what is gone: %v", err)
		}
	case `{"a":1}`:
		if _, err := os.Stat(filepath.Join(d, "e.jsonl")); err != nil {
			t.Errorf("the new store names what is not there: %v", err)
		}
	default:
		t.Errorf("the store holds %q", b)
	}
}

func TestFaultsInUndo(t *testing.T) {
	for name, together := range map[string]int{"one by one": 16, "together": 1} {
		t.Run(name, func(t *testing.T) { faultsInUndo(t, together) })
	}
}

func faultsInUndo(t *testing.T, together int) {
	before, _ := states(t)
	matrix(t, allFaults, func(t *testing.T, f *Faults) bool {
		base := scratch(t)
		defer os.RemoveAll(base)
		r, err := open(t, base, nil).Apply(context.Background(), scene(t, base)())
		if err != nil {
			t.Fatal(err)
		}
		at := open(t, base, f)
		at.together = together
		stopped := stopping(func() { _, _, err = at.Undo(context.Background(), r.ID, UndoOptions{}) })
		if f.Count() < f.At {
			if err != nil {
				t.Error(err)
			}
			return true
		}
		parses(t, base)
		j := open(t, base, nil)
		recs, rerr := j.Recover(context.Background())
		if rerr != nil {
			t.Error(rerr)
		}
		for _, rec := range recs {
			if !stopped && f.Err == nil {
				t.Errorf("recovered: %+v", rec)
			}
		}
		if run, err := j.Load(r.ID); err != nil {
			t.Error(err)
		} else if run.State == Done {
			_, outcomes, err := j.Undo(context.Background(), r.ID, UndoOptions{})
			if err != nil {
				t.Error(err)
			}
			for _, o := range outcomes {
				if o.Result == Conflict || o.Result == Lost {
					t.Errorf("outcome %+v", o)
				}
			}
		}
		if d := diff(tree(t, base), before); d != "" {
			t.Errorf("after the undo:\n%s", d)
		}
		if temps, _ := leftovers(t, filepath.Join(base, "agents")); len(temps) > 0 {
			t.Errorf("left: %v", temps)
		}
		return false
	})
}

// A second fault in the recovery from the first, and a third recovery without one.
func TestFaultsInRecover(t *testing.T) {
	before, after := states(t)
	const stride = 7
	tried := 0
	for n := 1; ; n += stride {
		ended := false
		for m := 1; ; m++ {
			base := scratch(t)
			plan := scene(t, base)()
			first := &Faults{FS: quick{OS()}, At: n}
			if !stopping(func() { _, _ = open(t, base, first).Apply(context.Background(), plan) }) {
				ended = true
				break
			}
			second := &Faults{FS: quick{OS()}, At: m}
			stopped := stopping(func() { _, _ = open(t, base, second).Recover(context.Background()) })
			tried++
			j := open(t, base, nil)
			if _, err := j.Recover(context.Background()); err != nil {
				t.Error(err)
			}
			sides(t, tree(t, base), before, after, nil)
			if temps, _ := leftovers(t, filepath.Join(base, "agents")); len(temps) > 0 {
				t.Errorf("left: %v", temps)
			}
			if t.Failed() {
				t.Fatalf("killed at %d, and its recovery at %d", n, m)
			}
			os.RemoveAll(base)
			if !stopped {
				break
			}
		}
		if ended {
			break
		}
	}
	t.Logf("%d pairs of kills", tried)
	if tried < 300 {
		t.Errorf("only %d pairs", tried)
	}
}

// What must be durable is made so in time: the manifest before the first step, new files before they get their name, and the names that
// the new store needs before the store.
func TestOrderOfDurability(t *testing.T) {
	base := t.TempDir()
	plan := scene(t, base)()
	var log []string
	f := &Faults{FS: OS(), Watch: func(op, name string) { log = append(log, op+" "+name) }}
	r, err := open(t, base, f).Apply(context.Background(), plan)
	if err != nil {
		t.Fatal(err)
	}
	d := filepath.Join(base, "agents/main/sessions")
	last := -1
	for _, want := range []string{
		"fsync " + filepath.Join(base, ".oc/undo", r.ID, "old.zst"),
		"fsync " + filepath.Join(base, ".oc/undo", r.ID, "new.zst"),
		"fsync-dir " + filepath.Join(base, ".oc/undo", r.ID),
		"fsync " + filepath.Join(base, ".oc/runs", r.ID+".json.tmp"),
		"rename " + filepath.Join(base, ".oc/runs", r.ID+".json"),
		"fsync-dir " + filepath.Join(base, ".oc/runs"),
		"fsync " + filepath.Join(d, "e.jsonl.*.tmp"),
		"move " + filepath.Join(d, "e.jsonl"),
		"chmod " + filepath.Join(d, "keep.jsonl"),
		"fsync-dir " + d,
		"fsync " + filepath.Join(d, "sessions.json.*.tmp"),
		"exchange " + filepath.Join(d, "sessions.json"),
		"fsync-dir " + d,
		"move " + filepath.Join(d, "b.jsonl.deleted.2026-11-30T12-00-00.000Z"),
		"remove " + filepath.Join(d, "c.jsonl"),
		"remove " + filepath.Join(d, "gone"),
		"fsync-dir " + d,
		"fsync " + filepath.Join(base, ".oc/runs", r.ID+".json.tmp"),
		"fsync-dir " + filepath.Join(base, ".oc/runs"),
	} {
		at := -1
		for i := last + 1; i < len(log); i++ {
			if ok, _ := filepath.Match(want, log[i]); ok {
				at = i
				break
			}
		}
		if at < 0 {
			t.Fatalf("no %q after operation %d of\n%s", want, last, strings.Join(log, "\n"))
		}
		last = at
	}
	t.Logf("%d operations for %d steps", len(log), len(plan.Steps))
}

// Bytes that are made durable together are so before the first of their files has its name.
func TestTogetherIsDurable(t *testing.T) {
	base := scratch(t)
	r, err := open(t, base, nil).Apply(bg, scene(t, base)())
	if err != nil {
		t.Fatal(err)
	}
	written, synced, fsyncs := 0, 0, 0
	f := &Faults{FS: quick{OS()}}
	f.Watch = func(op, name string) {
		temp := strings.HasSuffix(name, ".tmp") && !strings.Contains(name, ".oc") && !strings.Contains(name, "sessions.json")
		switch {
		case op == "create" && temp:
			written++
		case op == "fsync" && temp:
			fsyncs++
		case op == "syncfs":
			synced = written
		case op == "move" && strings.HasSuffix(name, "c.jsonl") && synced != written:
			t.Errorf("%s has its name when %d of %d files are durable", name, synced, written)
		}
	}
	j := open(t, base, f)
	j.together = 1
	if _, _, err := j.Undo(bg, r.ID, UndoOptions{}); err != nil {
		t.Fatal(err)
	}
	if synced < 2 || fsyncs > 1 {
		t.Errorf("%d files together, %d alone", synced, fsyncs)
	}
}
