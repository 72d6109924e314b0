package journal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Somebody replaces the store at the very moment at which the run does, and then the run is killed, or an operation fails, at any point:
// what was put there is never lost, and no file is left behind.
func TestNoWriteIsLost(t *testing.T) {
	for _, fault := range []error{nil, syscall.EIO} {
		met := 0
		for n := 1; ; n++ {
			base := scratch(t)
			plan := scene(t, base)()
			store := filepath.Join(base, "agents/main/sessions/sessions.json")
			theirs := filepath.Join(base, "theirs")
			put(t, theirs, `{"theirs":1}`, 0o600, 0)
			wrote := false
			f := &Faults{FS: quick{OS()}, At: n, Err: fault}
			f.Watch = func(op, name string) {
				if op == "exchange" && name == store && !wrote {
					if err := os.Rename(theirs, store); err != nil {
						t.Fatal(err)
					}
					wrote = true
				}
			}
			stopping(func() { _, _ = open(t, base, f).Apply(bg, plan) })
			if _, err := open(t, base, nil).Recover(bg); err != nil {
				t.Error(err)
			}
			if wrote {
				met++
				if b, err := os.ReadFile(store); err != nil || string(b) != `{"theirs":1}` {
					t.Errorf("%q %v", b, err)
				}
				if _, err := os.Lstat(filepath.Join(base, "agents/main/sessions/c.jsonl")); err != nil {
					t.Errorf("a file went although the store stayed: %v", err)
				}
			}
			if temps, _ := leftovers(t, filepath.Join(base, "agents")); len(temps) > 0 {
				t.Errorf("left: %v", temps)
			}
			if t.Failed() {
				t.Fatalf("%v at operation %d", fault, n)
			}
			os.RemoveAll(base)
			if f.Count() < n {
				break
			}
		}
		if met < 20 {
			t.Errorf("the moment was met %d times", met)
		}
	}
}

// plainRename is a file system that cannot exchange names.
type plainRename struct{ FS }

func (plainRename) Exchange(string, string) error { return errors.ErrUnsupported }

func TestWithoutExchange(t *testing.T) {
	base := t.TempDir()
	store := filepath.Join(base, "store")
	put(t, store, "old", 0o640, time.Hour)
	before := tree(t, base)
	j := open(t, base, plainRename{OS()})
	r, err := j.Apply(bg, Plan{Steps: []Step{{Kind: Replace, Phase: Swap, Path: store, Content: text("new")}}})
	if b, _ := os.ReadFile(store); err != nil || string(b) != "new" {
		t.Fatalf("%q %v", b, err)
	}
	if _, _, err := j.Undo(bg, r.ID, UndoOptions{}); err != nil {
		t.Fatal(err)
	}
	if d := diff(tree(t, base), before); d != "" {
		t.Error(d)
	}
}

func TestOutName(t *testing.T) {
	temp := tempName("/d/sessions.json")
	out := outName(temp)
	if out == temp || filepath.Dir(out) != "/d" || !strings.HasPrefix(out, "/d/sessions.json.") || !strings.HasSuffix(out, ".tmp") || strings.Count(out, ".") != 3 {
		t.Errorf("%s of %s", out, temp)
	}
	for _, odd := range []string{"/d/.tmp", "/d/x.tmp", "/d/...tmp"} {
		if out := outName(odd); out == odd || filepath.Dir(out) != "/d" || !strings.HasSuffix(out, ".tmp") {
			t.Errorf("%s of %s", out, odd)
		}
	}
}
