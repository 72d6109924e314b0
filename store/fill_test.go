package store_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"oc/store"
	"oc/transcript"
)

// On every recorded tree a Fill has the messages that the context has, in its order, at its cost.
func TestFillIsTheContext(t *testing.T) {
	file, err := os.Open("../transcript/testdata/context-trees.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cases := bufio.NewScanner(file)
	cases.Buffer(nil, 1<<24)
	n, spoken := 0, 0
	for ; cases.Scan(); n++ {
		var c struct {
			Name  string
			Lines []string
		}
		if err := json.Unmarshal(cases.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(c.Lines, "\n") + "\n"
		var tree transcript.Tree
		s := transcript.Scanner{Tree: &tree}
		if err := s.Read(strings.NewReader(text), func(*transcript.Row) error { return nil }); err != nil {
			t.Fatal(err)
		}
		want, err := tree.Context(transcript.Load(bytes.NewReader([]byte(text))))
		if err != nil {
			t.Fatal(err)
		}
		f, err := copied(t, "copy.jsonl", text).Fill(t.Context())
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		if len(f.Rows) != len(want.Messages) {
			t.Errorf("%s: %d messages, want %d", c.Name, len(f.Rows), len(want.Messages))
			continue
		}
		tokens, pressure := 0, 0
		for i, m := range want.Messages {
			if f.Rows[i].Offset != m.Offset {
				t.Errorf("%s: message %d at byte %d, want %d", c.Name, i, f.Rows[i].Offset, m.Offset)
			}
			tokens += transcript.Tokens(m.Role, m.Raw)
			pressure += transcript.Pressure(m.Role, m.Raw)
			spoken++
		}
		if e := transcript.EstimateContext(want.Messages); f.Total != tokens || f.Pressure != pressure || f.Estimate != int(e.Tokens) || f.Hidden != want.Hidden {
			t.Errorf("%s: %d tokens, %d in all, pressure %d, %d hidden; want %d, %v, %d, %d", c.Name, f.Total, f.Estimate, f.Pressure, f.Hidden, tokens, e, pressure, want.Hidden)
		}
		sum := 0
		for _, part := range store.FillParts {
			sum += f.Tokens[part]
		}
		if sum != f.Total {
			t.Errorf("%s: the parts are %d of %d", c.Name, sum, f.Total)
		}
	}
	if n == 0 || spoken == 0 || cases.Err() != nil {
		t.Errorf("%d trees, %d messages, %v", n, spoken, cases.Err())
	}
}
