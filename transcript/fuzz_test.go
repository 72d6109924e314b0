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

// links makes rows out of bytes, four for each: the type, the id, the parent and
// what else it points at.
func links(b []byte) string {
	kinds := []string{"message", "custom", "label", "opaque", "leaf", "compaction", "reset", "session", "message", "branch_summary"}
	id := func(c byte) string { return fmt.Sprintf("%q", string(rune('a'+c%13))) }
	ref := func(name string, c byte) string {
		switch c % 16 {
		case 13:
			return ""
		case 14:
			return fmt.Sprintf(`,"%s":null`, name)
		case 15:
			return fmt.Sprintf(`,"%s":7`, name)
		}
		return fmt.Sprintf(`,"%s":%s`, name, id(c%16))
	}
	var s strings.Builder
	for ; len(b) >= 4; b = b[4:] {
		fmt.Fprintf(&s, `{"type":%q,"id":%s%s%s%s%s`, kinds[int(b[0]%16)%len(kinds)], id(b[1]%13), ref("parentId", b[2]),
			ref("targetId", b[3]), ref("appendParentId", b[3]>>4), ref("firstKeptEntryId", b[3]))
		if b[0]&16 != 0 {
			s.WriteString(`,"appendMode":"side"`)
		}
		if b[0]&32 != 0 {
			s.WriteString(`,"version":3`)
		}
		s.WriteString(`,"message":{"role":"user","content":"x"}}` + "\n")
	}
	return s.String()
}

// FuzzTree links rows in every way: what is found is what a plain look at all
// rows finds, and every walk ends.
func FuzzTree(f *testing.F) {
	f.Add([]byte{39, 0, 14, 0, 0, 1, 14, 0, 0, 2, 1, 0, 4, 3, 2, 1, 5, 4, 2, 2, 0, 4, 9, 9}, false)
	f.Add([]byte{0, 1, 2, 0, 0, 2, 1, 0, 6, 3, 3, 3, 16, 4, 12, 0, 0, 1, 1, 1}, true)
	f.Fuzz(func(t *testing.T, b []byte, database bool) {
		if len(b) > 4*500 {
			return
		}
		s := links(b)
		tree := Tree{}
		if database {
			tree.Rules = DatabaseRules
		}
		told := map[Code]map[int]bool{Cycle: {}, OrphanParent: {}}
		report := func(fd Finding) {
			if told[fd.Code] != nil {
				told[fd.Code][fd.At.Line] = true
			}
		}
		if err := (&Scanner{Tree: &tree, Report: report}).Read(strings.NewReader(s), func(*Row) error { return nil }); err != nil {
			t.Fatal(err)
		}
		for i := range int32(tree.nodes.n) {
			n := tree.nodes.at(i)
			orphan := n.parent >= 0 && tree.at(n.parent) == nil
			cycle, steps := false, 0
			for up := tree.index(n.parent); up >= 0 && steps <= tree.nodes.n && !cycle; steps++ {
				cycle = up == i
				up = tree.index(tree.nodes.at(up).parent)
			}
			if told[OrphanParent][int(n.line)] != orphan || told[Cycle][int(n.line)] != cycle {
				t.Fatalf("line %d: orphan %v, cycle %v, told %v\n%s", n.line, orphan, cycle, told, s)
			}
		}
		for _, tip := range append(tree.Tips(), tree.Leaf(), tree.AppendTo()) {
			rows, _ := tree.BranchTo(tip)
			met := map[Place]bool{}
			for _, p := range rows {
				if met[p] {
					t.Fatalf("line %d twice on the way to %q\n%s", p.Line, tip, s)
				}
				met[p] = true
			}
		}
		if c := tree.Messages(); c.Active > c.Stored {
			t.Fatalf("%+v\n%s", c, s)
		}
		if rows, kept := tree.History(); kept > len(rows) {
			t.Fatalf("%d kept of %d\n%s", kept, len(rows), s)
		}
		if _, err := tree.Context(Load(strings.NewReader(s))); err != nil {
			t.Fatalf("%v\n%s", err, s)
		}
	})
}
