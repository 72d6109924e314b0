package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oc/store/lock"
)

// mount gives the test a small file system of its own. It takes root, which these tests have.
func mount(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Fatalf("mount a tmpfs (these tests run as root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A disk without room for the saved bytes stops the run before its first step, and names --purge; a purging run goes through.
func TestDiskFull(t *testing.T) {
	for _, filler := range []int{0, 5 << 20, 6 << 20, 7<<20 - 64<<10, 8 << 20} {
		dir := mount(t, "size=16m")
		store := filepath.Join(dir, "d/sessions.json")
		put(t, store, noise(1, 100<<10), 0o600, time.Hour)
		plan := Plan{Steps: []Step{{Kind: Replace, Phase: Swap, Path: store, Content: text(noise(2, 50<<10))}}}
		for i := range 16 {
			path := filepath.Join(dir, fmt.Sprintf("d/f%02d", i))
			put(t, path, noise(uint64(i+3), 512<<10), 0o600, time.Hour)
			plan.Steps = append(plan.Steps, Step{Kind: Remove, Phase: Clear, Path: path})
		}
		// What is left is taken, or all but a little.
		if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, filler), 0o600); err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		before := tree(t, dir)
		j := open(t, dir, OS())
		_, err := j.Apply(bg, plan)
		if !errors.Is(err, ErrNoRoom) || !strings.Contains(err.Error(), "--purge") {
			t.Errorf("filler %d: %v", filler, err)
		}
		if d := diff(tree(t, dir), before); d != "" {
			t.Errorf("filler %d: %.1000s", filler, d)
		}
		if runs, errs := j.List(); len(runs)+len(errs) != 0 {
			t.Errorf("filler %d left %v %v", filler, runs, errs)
		}
		if temps, vaults := leftovers(t, dir); len(temps)+len(vaults) != 0 {
			t.Errorf("filler %d left %v %v", filler, temps, vaults)
		}
		plan.Purge = true
		if filler < 8<<20 {
			r, err := j.Apply(bg, plan)
			if err != nil || r.Skipped > 0 || r.Freed != 8<<20 {
				t.Errorf("purge with filler %d: %v %+v", filler, err, r)
			}
			continue
		}
		// To the last byte: what only removes can be purged all the same.
		plan.Steps = plan.Steps[1:]
		r, err := j.Apply(bg, plan)
		if err != nil || r.Skipped > 0 || r.State != Done {
			t.Errorf("purge on a full disk: %v %+v", err, r)
		}
		if runs, errs := j.List(); len(runs) != 1 || len(errs) != 0 {
			t.Errorf("a purge on a full disk is told afterwards: %v %v", runs, errs)
		}
	}
}

func TestReadOnly(t *testing.T) {
	dir := mount(t, "size=4m")
	plan := scene(t, dir)
	remount := func(flags uintptr) {
		if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, dir)
	remount(syscall.MS_RDONLY)
	if r, err := open(t, dir, OS()).Apply(bg, plan()); !errors.Is(err, syscall.EROFS) || r.ID != "" {
		t.Errorf("%v %+v", err, r)
	}
	remount(0)
	r, err := open(t, dir, OS()).Apply(bg, plan())
	if err != nil {
		t.Fatal(err)
	}
	after := tree(t, dir)
	remount(syscall.MS_RDONLY)
	j := open(t, dir, OS())
	if runs, errs := j.List(); len(runs) != 1 || len(errs) != 0 {
		t.Errorf("list: %v %v", runs, errs)
	}
	if _, outcomes, err := j.Undo(bg, r.ID, UndoOptions{DryRun: true}); err != nil || len(outcomes) != 10 {
		t.Errorf("rehearsal: %v %v", outcomes, err)
	}
	if _, _, err := j.Undo(bg, r.ID, UndoOptions{}); !errors.Is(err, syscall.EROFS) && !errors.Is(err, syscall.EACCES) {
		t.Errorf("undo: %v", err)
	}
	if d := diff(tree(t, dir), after); d != "" {
		t.Error(d)
	}
	remount(0)
	if _, _, err := j.Undo(bg, r.ID, UndoOptions{}); err != nil {
		t.Error(err)
	}
	if d := diff(tree(t, dir), before); d != "" {
		t.Error(d)
	}
}

// Agents on another file system: their bytes are saved there, and moves between the two work, wherever they are killed.
func TestTwoFileSystems(t *testing.T) {
	far := mount(t, "size=64m")
	build := func() (base, there string, plan Plan) {
		base = scratch(t)
		there, err := os.MkdirTemp(far, "")
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(base, "out"), strings.Repeat("goes out\n", 1000), 0o640, time.Hour)
		put(t, filepath.Join(there, "d/in"), "comes in\n", 0o600, 2*time.Hour)
		put(t, filepath.Join(there, "d/store"), "old", 0o600, 3*time.Hour)
		put(t, filepath.Join(there, "d/gone"), "removed\n", 0o600, 4*time.Hour)
		put(t, filepath.Join(there, "x/twice"), "two names\n", 0o600, 5*time.Hour)
		err = errors.Join(os.Link(filepath.Join(there, "x/twice"), filepath.Join(there, "d/other")),
			os.Symlink("target", filepath.Join(base, "ln")), OS().Chtimes(filepath.Join(base, "ln"), 12345), os.Mkdir(filepath.Join(base, "empty"), 0o700))
		if err != nil {
			t.Fatal(err)
		}
		plan.Steps = []Step{
			{Kind: Move, Phase: Clear, Path: filepath.Join(base, "out"), To: filepath.Join(there, "d/out")},
			{Kind: Move, Phase: Place, Path: filepath.Join(there, "d/in"), To: filepath.Join(base, "empty/in")},
			{Kind: Move, Phase: Clear, Path: filepath.Join(base, "ln"), To: filepath.Join(there, "d/ln")},
			{Kind: Replace, Phase: Swap, Path: filepath.Join(there, "d/store"), Content: text("new")},
			{Kind: Remove, Phase: Clear, Path: filepath.Join(there, "d/gone")},
			{Kind: Remove, Phase: Clear, Path: filepath.Join(there, "x/twice")},
			{Kind: RemoveDir, Phase: Clear, Path: filepath.Join(there, "x")},
		}
		return base, there, plan
	}
	both := func(base, there string) map[string]string {
		all := tree(t, base)
		for k, v := range tree(t, there) {
			all["there/"+k] = v
		}
		return all
	}
	journal := func(base, there string, f FS) *Journal {
		j, err := Open(Options{Base: base, Roots: []string{base, there}, Now: func() time.Time { return t0 }, FS: f})
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	base, there, plan := build()
	before := both(base, there)
	j := journal(base, there, OS())
	r, err := j.Apply(bg, plan)
	if err != nil || r.Skipped > 0 {
		t.Fatalf("%v %+v", err, r)
	}
	if len(r.Vaults) != 2 || r.Vaults[0].Dir != filepath.Join(base, own, "undo", r.ID) && r.Vaults[1].Dir != filepath.Join(base, own, "undo", r.ID) {
		t.Errorf("vaults %+v", r.Vaults)
	}
	if s, err := os.Lstat(filepath.Join(there, own, "undo", r.ID)); err != nil || s.Mode().Perm() != 0o700 {
		t.Errorf("the vault there: %v", err)
	}
	after := oneName(without(both(base, there), "there/d/store"))
	if after["there/d/out"] != oneName(before)["out"] || after["empty/in"] != oneName(before)["there/d/in"] || after["there/d/ln"] != oneName(before)["ln"] {
		t.Errorf("moved: %v", after)
	}
	if _, _, err := j.Undo(bg, r.ID, UndoOptions{}); err != nil {
		t.Error(err)
	}
	if d := diff(both(base, there), before); d != "" {
		t.Errorf("after the undo:\n%s", d)
	}

	stops := 0
	for _, fault := range []error{nil, syscall.EIO} {
		for n := 1; ; n++ {
			base, there, plan := build()
			f := &Faults{FS: quick{OS()}, At: n, Err: fault}
			stopping(func() { r, err = journal(base, there, f).Apply(bg, plan) })
			if f.Count() < n {
				break
			}
			stops++
			j := journal(base, there, quick{OS()})
			recs, err := j.Recover(bg)
			if err != nil {
				t.Error(err)
			}
			got := oneName(both(base, there))
			runs, _ := j.List()
			skipped := len(runs) > 0 && runs[0].Skipped > 0
			if !skipped && diff(got, oneName(before)) != "" && diff(without(got, "there/d/store"), after) != "" {
				t.Errorf("fault %v at %d, %+v: neither old nor new:\n%s---\n%s", fault, n, recs, diff(got, oneName(before)), diff(got, after))
			}
			for _, run := range runs {
				if run.State == Done {
					if _, _, err := j.Undo(bg, run.ID, UndoOptions{}); err != nil {
						t.Errorf("fault %v at %d: undo: %v", fault, n, err)
					}
					if d := diff(both(base, there), before); d != "" {
						t.Errorf("fault %v at %d: after the undo:\n%s", fault, n, d)
					}
				}
			}
			if t.Failed() {
				return
			}
			os.RemoveAll(base)
			os.RemoveAll(there)
		}
	}
	t.Logf("%d faults", stops)
}

// Under sudo, everything of oc's and every new file belongs to the owner of the state.
func TestOwners(t *testing.T) {
	base := scratch(t)
	put(t, filepath.Join(base, "d/store"), "old", 0o640, time.Hour)
	put(t, filepath.Join(base, "d/gone"), "gone", 0o604, time.Hour)
	for name, id := range map[string]int{"": 1234, "d": 1234, "d/store": 1235, "d/gone": 1236} {
		if err := os.Chown(filepath.Join(base, name), id, id); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, base)
	j := open(t, base, nil)
	r, err := j.Apply(bg, Plan{Steps: []Step{
		{Kind: Replace, Phase: Swap, Path: filepath.Join(base, "d/store"), Content: text("new")},
		{Kind: Remove, Phase: Clear, Path: filepath.Join(base, "d/gone")},
		{Kind: Create, Path: filepath.Join(base, "d/made"), Content: text("made")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	after := tree(t, base)
	for name, want := range map[string]string{"d/store": "file 640 1235:1235 ", "d/made": "file 600 1234:1234 "} {
		if !strings.HasPrefix(after[name], want) {
			t.Errorf("%s: %s, want %s", name, after[name], want)
		}
	}
	err = filepath.Walk(filepath.Join(base, own), func(path string, info os.FileInfo, err error) error {
		want := os.FileMode(0o600)
		if err == nil && info.IsDir() {
			want = 0o700
		}
		if s := StampOf(info); s.UID != 1234 || s.GID != 1234 || s.Mode != want {
			t.Errorf("%s: %d:%d %o", path, s.UID, s.GID, s.Mode)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if _, _, err := j.Undo(bg, r.ID, UndoOptions{}); err != nil {
		t.Error(err)
	}
	if d := diff(tree(t, base), before); d != "" {
		t.Error(d)
	}
}

// The test's own binary is the other process: it works on the state in OC_JOURNAL_BASE.
func TestMain(m *testing.M) {
	base := os.Getenv("OC_JOURNAL_BASE")
	if base == "" {
		os.Exit(m.Run())
	}
	j, err := Open(Options{Base: base, Now: func() time.Time { return t0 }, Wait: time.Minute})
	if err == nil {
		switch os.Getenv("OC_JOURNAL_DO") {
		case "apply":
			_, err = j.Apply(bg, manyPlan(base))
		case "append":
			for range 20 {
				if err = appendOnce(j, base, os.Getpid()); err != nil {
					break
				}
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(base, do string) *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "OC_JOURNAL_BASE="+base, "OC_JOURNAL_DO="+do)
	return c
}

const many = 300

func manyFiles(t testing.TB, base string) {
	put(t, filepath.Join(base, "sessions.json"), "old store", 0o600, time.Hour)
	for i := range many {
		put(t, filepath.Join(base, fmt.Sprintf("s%03d.jsonl", i)), strings.Repeat(fmt.Sprint("line ", i, "\n"), 50), 0o600, time.Duration(i)*time.Hour)
	}
}

func manyPlan(base string) Plan {
	p := Plan{Steps: []Step{{Kind: Replace, Phase: Swap, Path: filepath.Join(base, "sessions.json"), Content: text("new store")}}}
	for i := range many {
		s := Step{Kind: Remove, Phase: Clear, Path: filepath.Join(base, fmt.Sprintf("s%03d.jsonl", i))}
		switch i % 4 {
		case 0:
			s.Kind, s.To = Move, s.Path+".deleted.2026-11-30T12-00-00.000Z"
		case 1:
			s = Step{Kind: Create, Phase: Place, Path: filepath.Join(base, fmt.Sprintf("n%03d.jsonl", i)), Content: text(s.Path)}
			s.Content = text("new")
		}
		p.Steps = append(p.Steps, s)
	}
	return p
}

// A real SIGKILL at a random moment of a real process.
func TestKilledProcess(t *testing.T) {
	model := scratch(t)
	manyFiles(t, model)
	before := tree(t, model)
	began := time.Now()
	if out, err := child(model, "apply").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	whole := time.Since(began)
	names := []string{"sessions.json"}
	for i := range many {
		names = append(names, fmt.Sprintf("n%03d.jsonl", i))
	}
	after := without(tree(t, model), names...)
	did := map[string]int{}
	const rounds = 25
	for i := range rounds {
		base := scratch(t)
		manyFiles(t, base)
		c := child(base, "apply")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(whole * time.Duration(i) / rounds)
		if err := c.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		_ = c.Wait()
		j := open(t, base, nil)
		recs, err := j.Recover(bg)
		if err != nil || len(recs) > 1 {
			t.Errorf("%v %v", recs, err)
		}
		what := "nothing to do"
		for _, rec := range recs {
			what = rec.Did
		}
		did[what]++
		got := tree(t, base)
		old := diff(got, before) == ""
		if !old && diff(without(got, names...), after) != "" {
			t.Errorf("killed after %v, %s: neither old nor new: %.2000s", whole*time.Duration(i)/rounds, what, diff(got, before))
		}
		runs, _ := j.List()
		for _, r := range runs {
			if r.State != Done {
				continue
			}
			if _, _, err := j.Undo(bg, r.ID, UndoOptions{}); err != nil {
				t.Error(err)
			}
			if d := diff(tree(t, base), before); d != "" {
				t.Errorf("after the undo: %.2000s", d)
			}
		}
		os.RemoveAll(base)
	}
	t.Logf("%v for a run; killed: %v", whole, did)
}

// appendOnce reads a file, plans its next content and applies it, all under one lock.
func appendOnce(j *Journal, base string, who int) (err error) {
	release, err := j.Lock(bg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	path := filepath.Join(base, "store")
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	now, err := OS().Lstat(path)
	if err != nil {
		return err
	}
	_, err = j.Apply(bg, Plan{Steps: []Step{{Kind: Replace, Phase: Swap, Path: path, Expect: &now, Content: func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s%d\n", b, who)
		return err
	}}}})
	return err
}

func TestTwoProcesses(t *testing.T) {
	base := scratch(t)
	put(t, filepath.Join(base, "store"), "", 0o600, time.Hour)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if out, err := child(base, "append").CombinedOutput(); err != nil {
				t.Errorf("%v %s", err, out)
			}
		})
	}
	wg.Wait()
	b, err := os.ReadFile(filepath.Join(base, "store"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), "\n"); n != 60 {
		t.Errorf("%d lines of 60 are there", n)
	}
	runs, errs := open(t, base, nil).List()
	if len(runs) != 60 || len(errs) > 0 {
		t.Errorf("%d runs, %v", len(runs), errs)
	}
	// Who does not wait is told who works there.
	release, err := lock.Dir(bg, base, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	_, err = open(t, base, nil).Apply(bg, Plan{Steps: []Step{{Kind: Chmod, Path: filepath.Join(base, "store"), Mode: 0o640}}})
	if !errors.Is(err, lock.ErrBusy) {
		t.Errorf("%v", err)
	}
}
