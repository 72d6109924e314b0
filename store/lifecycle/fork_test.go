package lifecycle

import (
	"bufio"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"oc/store/row"
	"oc/transcript"
)

// Which parents OpenClaw's new sessions begin with, and with what of them: the active branch, if somebody has answered on it or a leaf row
// has moved it. oc makes no children itself; that it knows their rows shows that it reads the same branch.
func TestForkAsOpenClaw(t *testing.T) {
	file, err := os.Open("testdata/fork.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decisions, files := 0, 0
	in := bufio.NewScanner(file)
	for in.Buffer(nil, 1<<20); in.Scan(); {
		var c struct {
			Kind, Name  string
			ParentEntry json.RawMessage
			Lines       []string
			Expected    struct {
				Status       string
				ParentTokens *float64
				Lines        []json.RawMessage
			}
		}
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.Kind == "decision" {
			decisions++
			e, err := row.New("agent:main:main", c.ParentEntry)
			if err != nil {
				t.Fatal(err)
			}
			f := ForkOf(&e, 0)
			if f.Copies != (c.Expected.Status == "fork") || f.Known != (c.Expected.ParentTokens != nil) || f.Known && f.Tokens != *c.Expected.ParentTokens {
				t.Errorf("%s: %+v", c.Name, f)
			}
			continue
		}
		files++
		text := strings.Join(c.Lines, "\n") + "\n"
		var tree transcript.Tree
		if err := (&transcript.Scanner{Tree: &tree}).Read(strings.NewReader(text), func(*transcript.Row) error { return nil }); err != nil {
			t.Fatal(err)
		}
		branch, _ := tree.Branch()
		var rows []any
		answered := tree.Flags().LeafControl
		for _, at := range branch {
			raw := text[at.Offset : at.Offset+int64(at.Size)]
			var v any
			if err := json.Unmarshal([]byte(raw), &v); err != nil {
				t.Fatal(err)
			}
			rows, answered = append(rows, v), answered || strings.Contains(raw, `"role":"assistant"`)
		}
		if !answered {
			rows = nil
		}
		var want []any
		for _, raw := range c.Expected.Lines[1:] {
			var v map[string]any
			if err := json.Unmarshal(raw, &v); err != nil {
				t.Fatal(err)
			}
			if v["type"] == "leaf" {
				if v["targetId"] != tree.Leaf() {
					t.Errorf("%s: the leaf is %s, want %v", c.Name, tree.Leaf(), v["targetId"])
				}
				continue
			}
			want = append(want, v)
		}
		if !reflect.DeepEqual(rows, want) {
			t.Errorf("%s: %v, want %v", c.Name, rows, want)
		}
	}
	if decisions != 4 || files != 3 {
		t.Errorf("%d decisions, %d files", decisions, files)
	}
}

// A number that the row calls stale counts only beside what the transcript tells, and the greater of both does.
func TestForkOfStale(t *testing.T) {
	for _, c := range []struct {
		row     string
		counted float64
		want    Fork
	}{
		{`{"totalTokens":150000,"totalTokensFresh":false}`, 0, Fork{Copies: true}},
		{`{"totalTokens":150000,"totalTokensFresh":false}`, 5, Fork{Tokens: 150000, Known: true}},
		{`{"totalTokens":5,"totalTokensFresh":false}`, 100001, Fork{Tokens: 100001, Known: true}},
		{`{"totalTokens":-1}`, 0, Fork{Copies: true}},
		{`{"totalTokens":"x"}`, 7, Fork{Copies: true}},
	} {
		e, err := row.New("agent:main:main", []byte(c.row))
		if err != nil {
			t.Fatal(err)
		}
		if got := ForkOf(&e, c.counted); got != c.want {
			t.Errorf("%s, %v: %+v, want %+v", c.row, c.counted, got, c.want)
		}
	}
}
