package journal

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world is a random tree and a random plan for it.
type world struct {
	files []worldFile
	steps []Step // paths relative to the root
	purge bool
}

type worldFile struct {
	name, content string
	kind          Type
	mode          fs.FileMode
	age           time.Duration
	twin          bool // has a second name
}

var modes = []fs.FileMode{0o600, 0o644, 0o400, 0o664, 0o755}

func anyWorld(t *rapid.T) world {
	w := world{purge: rapid.Bool().Draw(t, "purge")}
	dirs := []string{"a", "a/b", "c", "c/odd \xff name"}
	content := rapid.OneOf(rapid.SampledFrom([]string{"", "x\n", strings.Repeat("a long line\n", 20000)}), rapid.StringN(0, 300, -1))
	for i := range rapid.IntRange(1, 12).Draw(t, "files") {
		f := worldFile{
			name: filepath.Join(rapid.SampledFrom(dirs).Draw(t, "dir"), fmt.Sprintf("f%d", i)),
			kind: Plain, content: content.Draw(t, "content"),
			mode: rapid.SampledFrom(modes).Draw(t, "mode"),
			age:  time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "age")),
			twin: rapid.IntRange(0, 4).Draw(t, "twin") == 0,
		}
		if rapid.IntRange(0, 5).Draw(t, "link") == 0 {
			f.kind, f.twin, f.content = Link, false, "../nowhere/"+f.name
		}
		w.files = append(w.files, f)
	}
	phase := rapid.SampledFrom([]Phase{Place, Swap, Clear})
	removed := map[string]bool{}
	for i, f := range w.files {
		s := Step{Path: f.name, Phase: phase.Draw(t, "phase")}
		kinds := []Kind{"", Move, Remove}
		if f.kind == Plain {
			kinds = append(kinds, Replace, Chmod)
		}
		switch s.Kind = rapid.SampledFrom(kinds).Draw(t, "kind"); s.Kind {
		case "":
			continue
		case Move:
			s.To = filepath.Join(rapid.SampledFrom(dirs).Draw(t, "to"), fmt.Sprintf("moved%d", i))
		case Remove:
			s.Phase = Clear
			removed[f.name] = true
		case Replace:
			s.Content = text(content.Draw(t, "new"))
		case Chmod:
			s.Mode = rapid.SampledFrom(modes).Draw(t, "mode")
		}
		w.steps = append(w.steps, s)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "created") {
		w.steps = append(w.steps, Step{
			Kind: Create, Phase: rapid.SampledFrom([]Phase{Place, Swap}).Draw(t, "phase"), Mode: rapid.SampledFrom(modes).Draw(t, "mode"),
			Path: filepath.Join(rapid.SampledFrom(dirs).Draw(t, "dir"), fmt.Sprintf("new%d", i)), Content: text(content.Draw(t, "new")),
		})
	}
	// A directory goes when all that is in it is removed and nothing comes in.
	for _, d := range []string{"a/b", dirs[3]} {
		empty := true
		for _, f := range w.files {
			if filepath.Dir(f.name) == d && (!removed[f.name] || f.twin) {
				empty = false
			}
		}
		for _, s := range w.steps {
			if filepath.Dir(s.final()) == d && s.Kind != Remove {
				empty = false
			}
		}
		if empty && rapid.Bool().Draw(t, "remove dir") {
			w.steps = append(w.steps, Step{Kind: RemoveDir, Phase: Clear, Path: d})
		}
	}
	return w
}

func (w world) build(t testing.TB, root string) Plan {
	for _, d := range []string{"a/b", "c/odd \xff name"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range w.files {
		path := filepath.Join(root, f.name)
		if f.kind == Plain {
			put(t, path, f.content, f.mode, f.age)
		} else if err := os.Symlink(f.content, path); err != nil {
			t.Fatal(err)
		} else if err := OS().Chtimes(path, t0.Add(-f.age).UnixNano()); err != nil {
			t.Fatal(err)
		}
		if f.twin {
			if err := os.Link(path, path+".twin"); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := Plan{Purge: w.purge, Steps: slices.Clone(w.steps)}
	for i := range p.Steps {
		s := &p.Steps[i]
		s.Path = filepath.Join(root, s.Path)
		if s.To != "" {
			s.To = filepath.Join(root, s.To)
		}
	}
	return p
}

func (w world) written() (names []string) {
	for _, s := range w.steps {
		if s.Kind == Create || s.Kind == Replace {
			names = append(names, s.Path)
		}
	}
	return names
}

// Whatever the tree and the plan, and wherever the run is killed: afterwards the tree is the old or the new one, an undo makes it the old
// one to the byte, and a second application finds nothing that fits.
func TestRandomRuns(t *testing.T) {
	var killed, rolled, finished int
	rapid.Check(t, func(rt *rapid.T) {
		w := anyWorld(rt)
		ctx := context.Background()
		model := scratch(t)
		defer os.RemoveAll(model)
		plan := w.build(t, model)
		before, times := oneName(tree(t, model)), folderTimes(t, model)
		count := &Faults{FS: quick{OS()}}
		r, err := open(t, model, count).Apply(ctx, plan)
		if err != nil || r.Skipped > 0 {
			rt.Fatalf("apply: %v %+v", err, r)
		}
		after := without(oneName(tree(t, model)), w.written()...)
		if len(w.steps) > 0 && !w.purge {
			if _, outcomes, err := open(t, model, nil).Undo(ctx, r.ID, UndoOptions{}); err != nil || len(outcomes) != len(w.steps) {
				rt.Fatalf("undo: %v %v", err, outcomes)
			}
			if d := diff(oneName(tree(t, model)), before); d != "" {
				rt.Fatalf("after the undo:\n%s", d)
			}
			if got := folderTimes(t, model); fmt.Sprint(got) != fmt.Sprint(times) {
				rt.Fatalf("times of directories %v, want %v", got, times)
			}
		}

		base := scratch(t)
		defer os.RemoveAll(base)
		plan = w.build(t, base)
		f := &Faults{FS: quick{OS()}, At: rapid.IntRange(count.Count()/3, count.Count()).Draw(rt, "killed at")}
		if stopping(func() { _, _ = open(t, base, f).Apply(ctx, plan) }) {
			killed++
		}
		j := open(t, base, nil)
		recs, err := j.Recover(ctx)
		if err != nil {
			rt.Fatal(err)
		}
		for _, rec := range recs {
			switch rec.Run.State {
			case Done:
				finished++
			case RolledBack:
				rolled++
			}
			if rec.Run.Skipped > 0 {
				if !w.purge {
					rt.Fatalf("skipped: %+v", rec)
				}
				return // a purging run that was stopped is between the two
			}
		}
		got := oneName(tree(t, base))
		if diff(got, before) != "" && diff(without(got, w.written()...), after) != "" {
			rt.Fatalf("killed at %d, %+v: neither old nor new:\n%s---\n%s", f.At, recs, diff(got, before), diff(got, after))
		}
	})
	t.Logf("%d killed, %d rolled back, %d finished", killed, rolled, finished)
	if killed < 20 || rolled < 3 || finished < 3 {
		t.Error("that is too few to tell anything")
	}
}
