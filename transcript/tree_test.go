package transcript

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// treeCase is one recorded answer of OpenClaw 2026.7.35 about a transcript.
type treeCase struct {
	Name           string
	NoTrailingLine bool `json:"noTrailingNewline"`
	Lines          []string
	Expected       struct {
		SessionManager struct {
			Error         any
			SessionID     string
			LeafID        *string
			BranchIDs     []string `json:"branchIds"`
			ThinkingLevel string
			Model         *struct{ Provider, ModelID string }
			Messages      []json.RawMessage
			ContextTokens struct {
				Tokens, UsageTokens, TrailingTokens float64
				LastUsageIndex                      *int
			}
		}
		LLMRoles []string `json:"llmRoles"`
	}
}

func (c treeCase) file() string {
	s := strings.Join(c.Lines, "\n")
	if !c.NoTrailingLine && s != "" {
		s += "\n"
	}
	return s
}

func golden[T any](t testing.TB, file string) (list []T) {
	t.Helper()
	f, err := os.Open("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		var c T
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		t.Fatal("no cases in " + file)
	}
	return list
}

// scan reads a transcript to its tree, with the ids of its rows by line.
func scan(t testing.TB, s string) (*Tree, map[int]string) {
	t.Helper()
	tree, byLine := &Tree{}, map[int]string{}
	err := (&Scanner{Tree: tree}).Read(strings.NewReader(s), func(r *Row) error {
		byLine[r.Line] = string(r.ID)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree, byLine
}

func TestBranchAsSessionManager(t *testing.T) {
	for _, c := range golden[treeCase](t, "context-trees.jsonl") {
		t.Run(c.Name, func(t *testing.T) {
			want := c.Expected.SessionManager
			tree, byLine := scan(t, c.file())
			rows, _ := tree.Branch()
			var got []string
			for _, r := range rows {
				got = append(got, byLine[r.Line])
			}
			for i, id := range want.BranchIDs {
				if strings.HasPrefix(id, "<gen") { // an id that OpenClaw made up
					want.BranchIDs[i] = got[i]
				}
			}
			if len(got)+len(want.BranchIDs) > 0 {
				if d := cmp.Diff(want.BranchIDs, got); d != "" {
					t.Error(d)
				}
			}
			leaf := ""
			if want.LeafID != nil {
				leaf = *want.LeafID
			}
			if !strings.HasPrefix(leaf, "<gen") && tree.Leaf() != leaf {
				t.Errorf("leaf %q, want %q", tree.Leaf(), leaf)
			}
		})
	}
}

func TestParseEscapedNames(t *testing.T) {
	e, err := Parse([]byte(`{"\u0069d":"x","typ\u0065":"message","\rother":1,"\u0070arentId":null,"m\u0065ssage":{"role":"user"}}`))
	if err != nil || string(e.ID) != "x" || e.Kind != Message || !e.Parent.Null() || Role(e.Message) != "user" {
		t.Errorf("%+v %v", e, err)
	}
}
