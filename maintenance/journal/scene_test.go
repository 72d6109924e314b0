package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var t0 = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// tree is all of a directory but oc's own: for every name its type, mode, owner, time, links, and bytes or target.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == own {
			return filepath.SkipDir
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		s := StampOf(info)
		rest := ""
		switch s.Type {
		case Plain:
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rest = string(b)
		case Link:
			if rest, err = os.Readlink(path); err != nil {
				return err
			}
		case Folder:
			s.MTime, s.Links = 0, 0
		}
		name, _ := filepath.Rel(dir, path)
		if name == "." {
			return nil // the test's own
		}
		all[name] = fmt.Sprintf("%s %o %d:%d %d links=%d %s", s.Type, s.Mode, s.UID, s.GID, s.MTime, s.Links, rest)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// folderTimes are the times that tree leaves out.
func folderTimes(t testing.TB, dir string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == own {
			return filepath.SkipDir
		}
		if d.IsDir() && path != dir {
			info, err := d.Info()
			if err != nil {
				return err
			}
			all[path] = info.ModTime().UnixNano()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// without takes the times of files that a run writes out of a tree: they are of the moment.
func without(all map[string]string, names ...string) map[string]string {
	all = maps.Clone(all)
	for _, name := range names {
		if v, ok := all[name]; ok {
			f := strings.SplitN(v, " ", 5)
			f[3] = "now"
			all[name] = strings.Join(f, " ")
		}
	}
	return all
}

func diff(got, want map[string]string) string {
	var b strings.Builder
	names := map[string]bool{}
	for n := range got {
		names[n] = true
	}
	for n := range want {
		names[n] = true
	}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		if got[n] != want[n] {
			fmt.Fprintf(&b, "%s\n  have %.200q\n  want %.200q\n", n, got[n], want[n])
		}
	}
	return b.String()
}

func put(t testing.TB, path, content string, mode fs.FileMode, age time.Duration) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	at := t0.Add(-age).Add(123456789)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// scene is a state directory and a plan that uses every kind of step.
func scene(t testing.TB, base string) (plan func() Plan) {
	t.Helper()
	d := filepath.Join(base, "agents", "main", "sessions")
	in := func(name string) string { return filepath.Join(d, name) }
	put(t, in("sessions.json"), `{"a":1,"b":2}`, 0o640, time.Hour)
	put(t, in("b.jsonl"), strings.Repeat("line of b\n", 400), 0o600, 48*time.Hour)
	put(t, in("c.jsonl"), "line of c\n", 0o644, 72*time.Hour)
	put(t, in("empty.jsonl"), "", 0o400, 72*time.Hour)
	put(t, in("twice.jsonl"), "has two names\n", 0o600, 80*time.Hour)
	put(t, in("keep.jsonl"), "untouched\n", 0o600, time.Minute)
	put(t, in("gone/d.jsonl"), "in a directory that goes\n", 0o600, 90*time.Hour)
	for _, err := range []error{
		os.Link(in("twice.jsonl"), in("twice.other")),
		os.Symlink("../elsewhere.jsonl", in("link.jsonl")),
		os.Chmod(in("gone"), 0o750),
		OS().Chtimes(in("link.jsonl"), t0.Add(-time.Hour).UnixNano()),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return func() Plan { return scenePlan(base) }
}

func scenePlan(base string) Plan {
	in := func(name string) string { return filepath.Join(base, "agents", "main", "sessions", name) }
	{
		return Plan{
			Facts: json.RawMessage(`{"command":"sessions cleanup","agent":"main"}`),
			Steps: []Step{
				{Kind: Move, Phase: Clear, Path: in("b.jsonl"), To: in("b.jsonl.deleted.2026-11-30T12-00-00.000Z")},
				{Kind: Remove, Phase: Clear, Path: in("c.jsonl")},
				{Kind: Remove, Phase: Clear, Path: in("empty.jsonl")},
				{Kind: Remove, Phase: Clear, Path: in("twice.jsonl")},
				{Kind: Remove, Phase: Clear, Path: in("link.jsonl")},
				{Kind: Remove, Phase: Clear, Path: in("gone/d.jsonl")},
				{Kind: RemoveDir, Phase: Clear, Path: in("gone")},
				{Kind: Replace, Phase: Swap, Path: in("sessions.json"), Content: text(`{"a":1}`)},
				{Kind: Create, Phase: Place, Path: in("e.jsonl"), Content: text("new transcript\n")},
				{Kind: Chmod, Phase: Place, Path: in("keep.jsonl"), Mode: 0o400},
			},
		}
	}
}

// written are the files of the scene whose time is the moment of the run.
var written = []string{"agents/main/sessions/sessions.json", "agents/main/sessions/e.jsonl"}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// quick is the real FS without its waits: what tests with thousands of runs use. The order of durability has its own test.
type quick struct{ FS }

type quickFile struct{ File }

func (quickFile) Sync() error { return nil }

func (q quick) SyncDir(string) error { return nil }
func (q quick) SyncFS(string) error  { return nil }

func (q quick) Create(name string, mode fs.FileMode) (File, error) {
	f, err := q.FS.Create(name, mode)
	if err != nil {
		return nil, err
	}
	return quickFile{f}, nil
}

func open(t testing.TB, base string, f FS) *Journal {
	t.Helper()
	if f == nil {
		f = quick{OS()}
	}
	j, err := Open(Options{Base: base, Now: func() time.Time { return t0 }, FS: f})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// stopping calls act and says whether it was stopped by Faults.
func stopping(act func()) (stopped bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(Stopped); !ok {
				panic(p)
			}
			stopped = true
		}
	}()
	act()
	return false
}

// leftovers are the temporary files in a tree, and the vaults and runs in its .oc.
func leftovers(t testing.TB, base string) (temps, vaults []string) {
	t.Helper()
	err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, ".tmp") {
			temps = append(temps, path)
		}
		if filepath.Base(filepath.Dir(path)) == "undo" && filepath.Base(filepath.Dir(filepath.Dir(path))) == own {
			vaults = append(vaults, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return temps, vaults
}

func TestApplyAndUndo(t *testing.T) {
	base := t.TempDir()
	plan := scene(t, base)
	before, times := tree(t, base), folderTimes(t, base)
	j := open(t, base, nil)
	r, err := j.Apply(context.Background(), plan())
	if err != nil {
		t.Fatal(err)
	}
	if r.State != Done || r.Skipped != 0 || r.Total != 10 || r.Saved <= 0 {
		t.Fatalf("run: %+v", r)
	}
	after := tree(t, base)
	d := "agents/main/sessions/"
	for _, gone := range []string{"b.jsonl", "c.jsonl", "empty.jsonl", "twice.jsonl", "link.jsonl", "gone", "gone/d.jsonl"} {
		if _, ok := after[d+gone]; ok {
			t.Errorf("%s is still there", gone)
		}
	}
	if after[d+"b.jsonl.deleted.2026-11-30T12-00-00.000Z"] != before[d+"b.jsonl"] {
		t.Error("the moved file is not what it was")
	}
	if got := after[d+"sessions.json"]; !strings.HasPrefix(got, "file 640 ") || !strings.HasSuffix(got, `{"a":1}`) {
		t.Errorf("store: %s", got)
	}
	if got := after[d+"e.jsonl"]; !strings.HasPrefix(got, "file 600 ") || !strings.HasSuffix(got, "new transcript\n") {
		t.Errorf("created: %s", got)
	}
	if temps, vaults := leftovers(t, base); len(temps) != 0 || len(vaults) != 1 {
		t.Errorf("temporary files %v, vaults %v", temps, vaults)
	}

	// A second journal reads the run, rehearses the undo, and takes it back.
	j = open(t, base, nil)
	list, errs := j.List()
	if len(list) != 1 || len(errs) != 0 || list[0].ID != r.ID || list[0].Total != 10 || list[0].Saved != r.Saved || list[0].Steps != nil {
		t.Fatalf("list: %+v %v", list, errs)
	}
	_, rehearsed, err := j.Undo(context.Background(), r.ID, UndoOptions{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(tree(t, base), after); d != "" {
		t.Fatalf("a rehearsal changed the tree:\n%s", d)
	}
	u, done, err := j.Undo(context.Background(), r.ID, UndoOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := fmt.Sprint(rehearsed), fmt.Sprint(done); a != b {
		t.Errorf("rehearsed\n%s\ndone\n%s", a, b)
	}
	if len(done) != 10 || u.State != Undone || u.Back != 10 {
		t.Errorf("undo: %v %+v", done, u)
	}
	if d := diff(tree(t, base), before); d != "" {
		t.Errorf("after the undo:\n%s", d)
	}
	if got := folderTimes(t, base); !maps.Equal(got, times) {
		t.Errorf("times of directories: %v, want %v", got, times)
	}
	if temps, vaults := leftovers(t, base); len(temps) != 0 || len(vaults) != 0 {
		t.Errorf("temporary files %v, vaults %v", temps, vaults)
	}
	if _, _, err := j.Undo(context.Background(), r.ID, UndoOptions{}); !errors.Is(err, ErrClosed) {
		t.Errorf("a second undo: %v", err)
	}
}

func noise(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}
