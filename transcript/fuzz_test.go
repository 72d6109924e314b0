package transcript

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// FuzzScan reads anything: the rows add up to the text, and everything that is
// asked of the tree ends.
func FuzzScan(f *testing.F) {
	f.Add(lines(head, line("a", "null", "user", "hi"), line("b", "a", "assistant", "yo")), false)
	for _, c := range golden[treeCase](f, "context-trees.jsonl") {
		f.Add(c.file(), len(c.Name)%2 == 0)
	}
	f.Add("\xef\xbb\xbf{}\r\n\x00\n[", true)
	f.Fuzz(func(t *testing.T, s string, database bool) {
		tree := Tree{}
		if database {
			tree.Rules = DatabaseRules
		}
		next := int64(0)
		sc := Scanner{Tree: &tree, Report: func(fd Finding) {
			if fd.Byte < 0 || fd.Byte > int64(len(s)) {
				t.Fatalf("%s at byte %d of %d", fd.Code, fd.Byte, len(s))
			}
		}}
		err := sc.Read(strings.NewReader(s), func(r *Row) error {
			if string(r.Raw) != s[r.Offset:r.Offset+int64(r.Size)] || r.Offset-next > 3 || r.Offset < next {
				t.Fatalf("row at %d of %d bytes behind %d", r.Offset, r.Size, next)
			}
			next = r.Offset + int64(r.Size+r.Break)
			return nil
		})
		if err != nil || next != int64(len(s)) && s != "" {
			t.Fatalf("%v, %d of %d bytes", err, next, len(s))
		}
		seen := map[Place]bool{}
		rows, _ := tree.Branch()
		for _, p := range rows {
			if seen[p] {
				t.Fatalf("line %d twice on the branch", p.Line)
			}
			seen[p] = true
		}
		c, err := tree.Context(Load(strings.NewReader(s)))
		if err != nil {
			t.Fatal(err)
		}
		EstimateContext(c.Messages)
		SumTokens(c.Messages)
		PromptPressure(c.Messages, "", "")
		tree.Tips()
		tree.Messages()
		if _, err := Glance(strings.NewReader(s), int64(len(s))); err != nil {
			t.Fatal(err)
		}
	})
}

// Random links of all kinds: every walk ends, and a branch leads from child to
// parent.
func TestRandomTrees(t *testing.T) {
	kinds := []string{"message", "custom", "label", "opaque", "leaf", "compaction", "reset", "session"}
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "zz"})
		ref := func(name string) string {
			switch rapid.IntRange(0, 9).Draw(t, name) {
			case 0:
				return ""
			case 1:
				return fmt.Sprintf(`,"%s":null`, name)
			case 2:
				return fmt.Sprintf(`,"%s":7`, name)
			}
			return fmt.Sprintf(`,"%s":%q`, name, id.Draw(t, name+" id"))
		}
		var rows []string
		for range rapid.IntRange(0, 25).Draw(t, "rows") {
			row := fmt.Sprintf(`{"type":%q,"id":%q%s%s%s%s`, rapid.SampledFrom(kinds).Draw(t, "kind"), id.Draw(t, "id"),
				ref("parentId"), ref("targetId"), ref("appendParentId"), ref("firstKeptEntryId"))
			if rapid.Bool().Draw(t, "side") {
				row += `,"appendMode":"side"`
			}
			rows = append(rows, row+`,"message":{"role":"user","content":"x"}}`)
		}
		s := lines(rows...)
		tree := Tree{Rules: rapid.SampledFrom([]Rules{FileRules, DatabaseRules}).Draw(t, "rules")}
		if err := (&Scanner{Tree: &tree, Report: func(Finding) {}}).Read(strings.NewReader(s), func(*Row) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if branch, _ := tree.Branch(); len(branch) > tree.Len() {
			t.Fatal("a branch longer than the tree")
		}
		if c := tree.Messages(); c.Active > c.Stored {
			t.Fatalf("%+v", c)
		}
		if _, err := tree.Context(Load(strings.NewReader(s))); err != nil {
			t.Fatal(err)
		}
		for _, tip := range tree.Tips() {
			if rows, _ := tree.BranchTo(tip); len(rows) > tree.Len() {
				t.Fatal(tip)
			}
		}
	})
}
