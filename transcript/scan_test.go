package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"
)

// found lists findings as "code line byte".
func found(t testing.TB, s string) (list []string) {
	t.Helper()
	sc := Scanner{Tree: &Tree{}, Report: func(f Finding) {
		list = append(list, fmt.Sprintf("%s %d %d", f.Code, f.At.Line, f.Byte))
	}}
	if err := sc.Read(strings.NewReader(s), func(*Row) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return list
}

// S10 of field-reports.md, and what else can be wrong with a line.
func TestFindingsOfLines(t *testing.T) {
	a, b := line("a", "null", "user", "hi"), line("bb", "a", "assistant", "yo")
	two := lines(head, a)
	n := len(two)
	for _, c := range []struct {
		name, file string
		want       []string
	}{
		{"clean", lines(head, a, b), nil},
		{"NULs at the end", two + strings.Repeat("\x00", 284), []string{fmt.Sprintf("nul-tail 3 %d", n)}},
		{"cut last line", two + b[:40], []string{fmt.Sprintf("torn-tail 3 %d", n+40)}},
		{"no last line break", two + b, []string{fmt.Sprintf("no-final-break 3 %d", n+len(b))}},
		{"blank and NUL in the middle", two + "\n\x00\x00\n" + b + "\n", []string{fmt.Sprintf("nul 4 %d", n+1)}},
		{"CR LF and mark", "\xef\xbb\xbf" + strings.ReplaceAll(lines(head, a, b), "\n", "\r\n"), []string{
			"bom 1 0", fmt.Sprintf("crlf 1 %d", 3+len(head)),
		}},
		{"lone surrogate escape", lines(head, line("a", "null", "user", "x\\ud83dx")), nil},
		{"raw control character", lines(head, a, `{"type":"custom","id":"c","parentId":"a","data":"`+"\x01"+`"}`), []string{
			fmt.Sprintf("not-json 3 %d", n+len(`{"type":"custom","id":"c","parentId":"a","data":"`)),
		}},
		{"half UTF-8", lines(head, strings.Replace(a, "hi", "\xed\x95", 1)), []string{
			fmt.Sprintf("bad-utf8 2 %d", len(head)+1+strings.Index(a, "hi")),
		}},
		{"not an object", lines(head, `[1]`, a), []string{fmt.Sprintf("not-object 2 %d", len(head)+1)}},
		{"no header", lines(a), []string{"no-header 0 0"}},
		{"empty", "", []string{"no-header 0 0"}},
		{"late header", lines(a, head), []string{fmt.Sprintf("late-header 2 %d", len(a)+1)}},
		{"second header", lines(head, head), []string{fmt.Sprintf("second-header 2 %d", len(head)+1)}},
		{"header without id", lines(`{"type":"session","version":3}`, a), []string{"bad-header 1 0"}},
		{"old version", lines(strings.Replace(head, ":3", ":2", 1), a), []string{"old-version 1 0"}},
		{"new version", lines(strings.Replace(head, ":3", ":9", 1), a), []string{"new-version 1 0"}},
		{"no message", lines(head, `{"type":"message","id":"a","parentId":null}`), []string{fmt.Sprintf("no-message 2 %d", len(head)+1)}},
		{"null role", lines(head, `{"type":"message","id":"a","parentId":null,"message":{"role":null}}`), []string{fmt.Sprintf("bad-role 2 %d", len(head)+1)}},
		{"no id", lines(head, `{"type":"label","parentId":null}`), []string{fmt.Sprintf("no-id 2 %d", len(head)+1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, found(t, c.file)); d != "" {
				t.Error(d)
			}
		})
	}
}

// S11 of field-reports.md.
func TestFindingsOfLinks(t *testing.T) {
	compaction := func(id, parent string) string {
		return fmt.Sprintf(`{"type":"compaction","id":%q,"parentId":%q,"summary":"s","firstKeptEntryId":"a","tokensBefore":1}`, id, parent)
	}
	codes := func(rows ...string) (list []string) {
		for _, f := range found(t, lines(append([]string{head}, rows...)...)) {
			list = append(list, strings.Join(strings.Fields(f)[:2], " "))
		}
		return list
	}
	a, b := line("a", "null", "user", "one"), line("b", "a", "assistant", "two")
	for _, c := range []struct {
		name string
		rows []string
		want []string
	}{
		{"parent that is nowhere", []string{a, line("b", "zz", "user", "x")}, []string{"orphan-parent 3"}},
		{"two compactions, one continued", []string{a, b, compaction("k", "b"), compaction("m", "b"), line("d", "m", "user", "x")}, []string{"dead-compaction 4"}},
		{"two branches", []string{a, b, line("c", "b", "user", "x"), line("d", "b", "user", "y"), line("e", "c", "assistant", "z")}, nil},
		{"same row twice", []string{a, b, b}, []string{"duplicate-same 4"}},
		{"same id, other row", []string{a, b, line("b", "a", "assistant", "other")}, []string{"duplicate-other 4"}},
		{"circle", []string{line("a", "b", "user", "x"), line("b", "a", "user", "y")}, []string{"cycle 2", "cycle 3"}},
		{"own parent", []string{line("a", "a", "user", "x"), b}, []string{"cycle 2"}},
		{"two roots", []string{a, line("b", "null", "user", "x")}, []string{"second-root 3"}},
		{"leaf to nowhere", []string{a, `{"type":"leaf","id":"l","parentId":"a","targetId":"zz"}`}, []string{"invalid-leaf 3"}},
		{"kept row that is nowhere", []string{a, strings.Replace(compaction("k", "a"), `"a","tok`, `"zz","tok`, 1)}, []string{"first-kept-unknown 3"}},
		{"label of nothing", []string{a, `{"type":"label","id":"x","parentId":"a","targetId":"zz","label":"n"}`}, []string{"label-target 3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, codes(c.rows...)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestReachable(t *testing.T) {
	tree, _ := scan(t, lines(head, line("a", "null", "user", "1"), line("b", "zz", "user", "2"), line("c", "b", "assistant", "3")))
	if got := tree.Messages(); got != (Counts{Stored: 3, Active: 2}) {
		t.Errorf("got %+v", got)
	}
	if d := cmp.Diff([]string{"a", "c"}, tree.Tips()); d != "" {
		t.Error(d)
	}
}

// The rules of a database: resets, and parents that are not there.
func TestDatabaseRules(t *testing.T) {
	run := func(rows ...string) (ids []string) {
		tree, byLine := Tree{Rules: DatabaseRules}, map[int]string{}
		err := (&Scanner{Tree: &tree}).Rows(func(yield func([]byte) error) error {
			for _, r := range rows {
				if err := yield([]byte(r)); err != nil {
					return err
				}
			}
			return nil
		}, func(r *Row) error { byLine[r.Line] = string(r.ID); return nil })
		if err != nil {
			t.Fatal(err)
		}
		branch, _ := tree.Branch()
		for _, p := range branch {
			ids = append(ids, byLine[p.Line])
		}
		return ids
	}
	a, b := line("a", "null", "user", "1"), line("b", "a", "assistant", "2")
	reset := `{"type":"reset","id":"r","parentId":"b","reason":"daily","firstKeptEntryId":"b"}`
	for _, c := range []struct {
		name string
		rows []string
		want []string
	}{
		{"stale parent goes to the leaf", []string{head, a, b, line("c", "zz", "user", "3")}, []string{"a", "b", "c"}},
		{"row behind a reset that points before it", []string{head, a, b, reset, line("c", "a", "user", "3")}, []string{"a", "b", "r", "c"}},
		{"leaf row behind a reset that points before it", []string{
			head, a, b, reset, line("c", "r", "user", "3"), `{"type":"leaf","id":"l","parentId":"c","targetId":"a"}`,
		}, []string{"a", "b", "r", "c"}},
		{"leaf row within the reset", []string{
			head, a, b, reset, line("c", "r", "user", "3"), line("d", "c", "user", "4"), `{"type":"leaf","id":"l","parentId":"d","targetId":"c"}`,
		}, []string{"a", "b", "r", "c"}},
		{"second root is no root", []string{head, a, b, reset, line("c", "null", "user", "3")}, []string{"a", "b", "r", "c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, run(c.rows...)); d != "" {
				t.Error(d)
			}
		})
	}
}

// Version 1: rows follow each other, and a compaction names a record by number.
func TestVersionOne(t *testing.T) {
	s := lines(`{"type":"session","id":"s"}`, line("a", "null", "user", "1"), `{"type":"note"}`, line("a", "zz", "assistant", "2"),
		`{"type":"message","message":{"role":"user","content":"3"}}`,
		`{"type":"compaction","summary":"s","firstKeptEntryIndex":3}`, line("b", "null", "user", "4"))
	c := contextOf(t, s)
	var got []string
	for _, m := range c.Messages {
		got = append(got, fmt.Sprint(m.Role, " ", m.Line))
	}
	if d := cmp.Diff([]string{"compactionSummary 6", "assistant 4", "user 5", "user 7"}, got); d != "" {
		t.Error(d)
	}
}

func TestHistory(t *testing.T) {
	a, b := line("a", "null", "user", "1"), line("b", "a", "assistant", "2")
	compaction := `{"type":"compaction","id":"k","parentId":"b","summary":"s","firstKeptEntryId":"k","tokensBefore":1}`
	reset := `{"type":"reset","id":"r","parentId":"k","reason":"idle","firstKeptEntryId":"b"}`
	for _, c := range []struct {
		rows []string
		want []int
		kept int
	}{
		{[]string{head, a, b, compaction}, []int{2, 3, 4}, 0},
		{[]string{head, a, b, compaction, reset, line("c", "r", "user", "3")}, []int{3, 4, 5, 6}, 2},
		{[]string{head}, nil, 0},
		{nil, nil, 0},
	} {
		tree := Tree{Rules: DatabaseRules}
		if err := (&Scanner{Tree: &tree}).Read(strings.NewReader(strings.Join(c.rows, "\n")), func(*Row) error { return nil }); err != nil {
			t.Fatal(err)
		}
		rows, kept := tree.History()
		var got []int
		for _, p := range rows {
			got = append(got, p.Line)
		}
		if d := cmp.Diff(c.want, got); d != "" || kept != c.kept {
			t.Error(d, kept)
		}
	}
}

// What a reset keeps: users, assistants, and results of calls that are kept.
func TestContextAfterReset(t *testing.T) {
	rows := []string{
		head, line("a", "null", "user", "1"), line("b", "a", "assistant", "2"),
		`{"type":"message","id":"c","parentId":"b","message":{"role":"assistant","content":[{"type":"toolCall","id":"t1","name":"x","arguments":{}}]}}`,
		`{"type":"message","id":"d","parentId":"c","message":{"role":"toolResult","toolCallId":"t1","content":[]}}`,
		`{"type":"message","id":"e","parentId":"d","message":{"role":"toolResult","toolCallId":"t9","content":[]}}`,
		`{"type":"custom_message","id":"f","parentId":"e","customType":"n","content":"x","display":true}`,
		`{"type":"reset","id":"r","parentId":"f","reason":"idle","firstKeptEntryId":"b"}`,
		line("g", "r", "user", "3"),
	}
	s := lines(rows...)
	tree := Tree{Rules: DatabaseRules}
	if err := (&Scanner{Tree: &tree}).Read(strings.NewReader(s), func(*Row) error { return nil }); err != nil {
		t.Fatal(err)
	}
	c, err := tree.Context(Load(strings.NewReader(s)))
	if err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, m := range c.Messages {
		roles = append(roles, m.Role)
	}
	if d := cmp.Diff([]string{"assistant", "assistant", "toolResult", "user"}, roles); d != "" || c.Hidden != 3 {
		t.Error(d, c.Hidden)
	}
}

// rowsOf lists what a scan gives out.
func rowsOf(r io.Reader) (list []string, err error) {
	err = (&Scanner{}).Read(r, func(r *Row) error {
		list = append(list, fmt.Sprint(r.Line, r.Offset, r.Size, r.Break, r.Blank, r.Err, string(r.Raw)))
		return nil
	})
	return list, err
}

type pieces struct {
	s    string
	next func() int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.s == "" {
		return 0, io.EOF
	}
	n := min(max(p.next(), 1), len(b), len(p.s))
	copy(b, p.s[:n])
	p.s = p.s[n:]
	return n, nil
}

var lineParts = []string{head, "\n", "\r\n", "\r", "\x00", " ", "{", "}", `{"type":"x"}`, "\xef\xbb\xbf", "é", "\xed", "[1]", `"`, line("a", "null", "user", "hi")}

func TestAnyChunksGiveTheSameRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom(lineParts), 0, 40).Draw(t, "text"), "")
		want, err := rowsOf(strings.NewReader(s))
		if err != nil {
			t.Fatal(err)
		}
		size := rapid.IntRange(1, 50)
		got, err := rowsOf(&pieces{s, func() int { return size.Draw(t, "n") }})
		if err != nil || cmp.Diff(want, got) != "" {
			t.Fatal(err, cmp.Diff(want, got))
		}
		var joined strings.Builder
		offset := int64(0)
		_ = (&Scanner{}).Read(strings.NewReader(s), func(r *Row) error {
			joined.WriteString(s[offset:r.Offset])
			joined.Write(r.Raw)
			joined.WriteString(s[r.Offset+int64(r.Size) : r.Offset+int64(r.Size+r.Break)])
			offset = r.Offset + int64(r.Size+r.Break)
			return nil
		})
		if joined.String() != s {
			t.Fatalf("rows do not add up: %q of %q", joined.String(), s)
		}
	})
}

func TestReadErrors(t *testing.T) {
	bad := errors.New("bad disk")
	_, err := rowsOf(io.MultiReader(strings.NewReader(head+"\n{"), iotest.ErrReader(bad)))
	if !errors.Is(err, bad) || !strings.Contains(err.Error(), fmt.Sprint("byte ", len(head)+2)) {
		t.Errorf("got %v", err)
	}
	n := 0
	if err := (&Scanner{}).Read(strings.NewReader("1\n2\n3\n"), func(*Row) error { n++; return ErrStop }); err != nil || n != 1 {
		t.Errorf("stop: %v after %d rows", err, n)
	}
}

func TestDecompress(t *testing.T) {
	s := lines(head, line("a", "null", "user", "hi"))
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, s)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, raw, lines string }{{"plain", s, s}, {"zstd", b.String(), s}, {"short", "{}", "{}"}, {"empty", "", ""}} {
		r, err := Decompress(strings.NewReader(c.raw))
		if err != nil {
			t.Fatal(err)
		}
		want, _ := rowsOf(strings.NewReader(c.lines))
		got, err := rowsOf(r)
		if err != nil || cmp.Diff(want, got) != "" {
			t.Error(c.name, err, cmp.Diff(want, got))
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	r, err := Decompress(strings.NewReader(b.String()[:b.Len()/2]))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rowsOf(r); err == nil {
		t.Error("a cut archive was read without an error")
	}
}

// big is a transcript of n bytes or more, made while it is read.
type big struct {
	n    int64
	buf  bytes.Buffer
	rows int
}

func (g *big) Read(b []byte) (int, error) {
	for g.buf.Len() == 0 {
		if g.n <= 0 {
			return 0, io.EOF
		}
		if g.rows == 0 {
			g.buf.WriteString(head + "\n")
		}
		parent := "null"
		if g.rows > 0 {
			parent = fmt.Sprintf("%08x", g.rows-1)
		}
		g.buf.WriteString(line(fmt.Sprintf("%08x", g.rows), parent, "assistant", strings.Repeat("some words of prose ", 120)) + "\n")
		g.rows++
		g.n -= int64(g.buf.Len())
	}
	return g.buf.Read(b)
}

func TestScanMemory(t *testing.T) {
	const rows = 200_000
	tree := Tree{}
	short := func() func() []byte {
		i := 0
		return func() []byte {
			i++
			return fmt.Appendf(nil, `{"type":"custom","id":"%08x","parentId":"%08x"}`, i, i-1)
		}
	}()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	err := (&Scanner{Tree: &tree}).Rows(func(yield func([]byte) error) error {
		for range rows {
			if err := yield(short()); err != nil {
				return err
			}
		}
		return nil
	}, func(*Row) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if per := float64(after.HeapAlloc-before.HeapAlloc) / rows; per > 100 {
		t.Errorf("%.0f bytes a row", per)
	} else {
		t.Logf("%.0f bytes a row", per)
	}
	runtime.KeepAlive(&tree)
}

func BenchmarkScan(b *testing.B) {
	var all bytes.Buffer
	_, _ = io.Copy(&all, &big{n: 32 << 20})
	b.SetBytes(int64(all.Len()))
	b.ReportAllocs()
	for b.Loop() {
		sc := Scanner{Tree: &Tree{}, Report: func(f Finding) { b.Fatal(f) }}
		if err := sc.Read(bytes.NewReader(all.Bytes()), func(*Row) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

func TestLongLine(t *testing.T) {
	const n = 20 << 20
	s := head + "\n" + `{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":[{"type":"image","data":"` +
		strings.Repeat("A", n) + `"}]}}` + "\n"
	sc := Scanner{Tree: &Tree{}}
	started := time.Now()
	if err := sc.Read(strings.NewReader(s), func(*Row) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := sc.Stats().Longest; got.Line != 2 || got.Size < n || sc.Tree.Len() != 1 {
		t.Errorf("longest %+v, %d rows", got, sc.Tree.Len())
	}
	if d := time.Since(started); d > 20*time.Second {
		t.Errorf("took %v", d)
	}
}

// A row that is nested without end is a row like any other.
func TestDeepRow(t *testing.T) {
	const n = 1_000_000
	deep := strings.Repeat("[", n) + strings.Repeat("]", n)
	s := lines(head, `{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":`+deep+`}}`,
		`{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[{"type":"toolCall","name":"x","arguments":`+deep+`}]}}`)
	c := contextOf(t, s)
	if len(c.Messages) != 2 {
		t.Fatalf("%d messages", len(c.Messages))
	}
	EstimateContext(c.Messages)
	PromptPressure(c.Messages, "", "")
}
