package maintenance

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oc/maintenance/journal"
	"oc/store/span"
)

// Over random stores, files and policies: what a dry run says is what is applied and what is counted; what is protected or said to be active
// stays; a second cleanup plans nothing; undo brings the tree back, byte for byte and time for time.
func TestRandomCleanups(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		drawState(rt, t, root)
		p := &place{t: t, root: root, now: propertyNow, orders: drawOrders(rt)}
		index := p.targets()[0].Index
		before, dry := p.everything(true), p.rehearse()[0]
		rows := rowsOf(t, index)
		all, err := p.apply(p.worker(nil, 0))
		if err != nil {
			rt.Fatal(err)
		}
		d := all[0]
		if why := unlikePlans(dry, d.Plan); why != "" {
			rt.Fatalf("dry run and run differ: %s", why)
		}
		if dry.Empty() != (d.Run == nil) || len(d.Skipped) > 0 {
			rt.Fatalf("empty %v, run %+v, skipped %+v", dry.Empty(), d.Run, d.Skipped)
		}
		// The actions, carried out on paper, are what is on disk.
		want := maps.Clone(before)
		facts, freed := Facts{}, int64(0)
		for _, a := range dry.Actions {
			name, _ := filepath.Rel(root, a.Target)
			to, _ := filepath.Rel(root, a.To)
			switch {
			case !a.Applies:
			case a.Kind == DropRow:
				delete(rows, a.Key)
				facts.Rows++
			case a.Kind == PutRow:
				rows[a.Key] = string(a.Value)
				facts.Rows++
			case a.Kind == Move:
				want[to] = want[name]
				delete(want, name)
				facts.Files++
			case a.Kind == Remove:
				delete(want, name)
				facts.Files++
				freed += a.Bytes
			}
		}
		store, _ := filepath.Rel(root, index)
		got := p.everything(true)
		if diff := unlike(timeless(got, store), timeless(want, store)); diff != "" {
			rt.Fatalf("not as planned:\n%s", diff)
		}
		left := rowsOf(t, index)
		if diff := unlike(left, rows); diff != "" {
			rt.Fatalf("rows:\n%s", diff)
		}
		for _, x := range dry.Protected {
			if _, there := left[x.Key]; x.Key != "" && !there {
				rt.Fatalf("%s is protected (%s) and gone", x.Key, x.Rule)
			}
			if name, _ := filepath.Rel(root, x.Target); x.Target != "" && got[name] == "" {
				rt.Fatalf("%s is protected (%s) and gone", x.Target, x.Rule)
			}
		}
		if d.Run != nil {
			f := FactsOf(d.Run, filepath.Join(root, ".openclaw"))
			if f.Rows != facts.Rows || f.Files != facts.Files || f.Store != index || f.Agent != "main" {
				rt.Fatalf("the manifest says %+v, the actions %+v in %s", f, facts, index)
			}
			if is, _ := d.Freed(); is != freed {
				rt.Fatalf("%d bytes are said to be freed, the actions freed %d", is, freed)
			}
			steps := 0
			for _, s := range d.Run.Steps {
				if s.Kind != journal.Replace {
					steps++
				}
			}
			if steps != facts.Files || d.Run.State != journal.Done {
				rt.Fatalf("%d steps for %d files, %s", steps, facts.Files, d.Run.State)
			}
		}
		if again, err := p.apply(p.worker(nil, 1000)); err != nil || !again[0].Plan.Empty() || again[0].Run != nil {
			rt.Fatalf("a second cleanup: %v %+v", err, again[0])
		}
		p.takeBack()
		if diff := unlike(p.everything(true), before); diff != "" {
			rt.Fatalf("after the undo:\n%s", diff)
		}
	})
}

// timeless is a tree without the bytes and time of a store, and without the times of directories.
func timeless(all map[string]string, store string) map[string]string {
	out := map[string]string{}
	for name, v := range all {
		if strings.HasPrefix(v, "dir ") {
			v = "dir"
		}
		if name == store {
			v = strings.Join(strings.Fields(v)[:3], " ")
		}
		out[name] = v
	}
	return out
}

// rowsOf are the rows of a store by key.
func rowsOf(t *testing.T, index string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range span.Members(text) {
		out[m.Name] = string(m.Val)
	}
	return out
}
