package transcript

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What OpenClaw's session manager wrote, step by step, is what the tree of the
// rows before says: each row hangs on the row that the tree would append to, but
// for those that the program had moved to by a call that writes nothing.
func TestAppendAsSessionManager(t *testing.T) {
	moved := map[string]string{
		"branch-with-summary #5": "branch() before it",
		"branch-with-summary #6": "resetLeaf() before it",
		"fork-from #5":           "branch() before it",
	}
	broken := map[string]int{"append-after-truncated-last-line": 1}
	met := 0
	for _, c := range golden[struct {
		Name     string
		Expected []struct {
			After string
			Files int
			Lines []json.RawMessage
		}
		RawFirstFile struct {
			KeyOrder        [][]string
			EndsWithNewline bool
		}
	}](t, "writer.jsonl") {
		for _, step := range c.Expected {
			if step.Files == 0 { // nothing is written before the first answer
				if len(step.Lines) > 0 {
					t.Errorf("%s, %s: lines without a file", c.Name, step.After)
				}
				continue
			}
			var rows []string
			for _, raw := range step.Lines {
				var cut string
				if json.Unmarshal(raw, &cut) == nil { // a line that is no row is recorded as a text
					raw = []byte(cut)
				}
				rows = append(rows, string(raw))
			}
			tree, bad := Tree{}, 0
			report := func(f Finding) {
				if f.Code == NotJSON {
					bad++
				} else if f.Code != SecondRoot {
					t.Errorf("%s, %s: %+v", c.Name, step.After, f)
				}
			}
			tree.Report = report
			before := ""
			s := Scanner{Tree: &tree, Report: report}
			err := s.Read(strings.NewReader(lines(rows...)), func(r *Row) error {
				if r.Err != nil || r.Kind == Header {
					return nil
				}
				if why, ok := moved[c.Name+" "+string(r.ID)]; ok {
					if met++; string(r.Parent.ID) == before {
						t.Errorf("%s: %s hangs on %q after all: %s", c.Name, r.ID, before, why)
					}
				} else if string(r.Parent.ID) != before {
					t.Errorf("%s, %s: %s hangs on %q, not on %q", c.Name, step.After, r.ID, r.Parent.ID, before)
				}
				if before = tree.AppendTo(); before != string(r.ID) || tree.Leaf() != before {
					t.Errorf("%s, %s: after %s the leaf is %q and %q", c.Name, step.After, r.ID, tree.Leaf(), before)
				}
				return nil
			})
			if err != nil || bad != broken[c.Name] {
				t.Errorf("%s, %s: %v, %d broken lines", c.Name, step.After, err, bad)
			}
		}
		// The order of members is what the shape of a row is told by.
		for i, order := range c.RawFirstFile.KeyOrder {
			if len(order) > 0 && order[0] != "type" {
				t.Errorf("%s: row %d begins with %s", c.Name, i, order[0])
			}
		}
		if !c.RawFirstFile.EndsWithNewline {
			t.Errorf("%s: a file without a final line break", c.Name)
		}
	}
	if met != len(moved) {
		t.Errorf("%d of %d moves met", met, len(moved))
	}
}

// The recorded cases are all here, as many as were recorded.
func TestRecordedCases(t *testing.T) {
	want := map[string]int{
		"context-trees": 38, "writer": 6, "usage-normalize": 11, "token-estimates": 26, "string-chars": 10, "context-estimates": 7,
		"visible/silent-token": 67, "visible/history": 280, "visible/history-2026.8.2": 6,
	}
	got := map[string]int{}
	for name := range want {
		dir, file, within := strings.Cut(name, "/")
		path := "testdata/" + name + ".jsonl"
		if within {
			path = dir + "/testdata/" + file + ".jsonl"
		}
		got[name] = len(bytes.Split(bytes.TrimSpace(read(t, path)), []byte{'\n'}))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
