package transcript

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// counted counts the bytes that are read.
type counted struct {
	io.ReaderAt
	n int64
}

func (c *counted) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(b, at)
	c.n += int64(n)
	return n, err
}

func idsOf(rows []TailRow) (ids []string) {
	for _, r := range rows {
		ids = append(ids, string(r.ID))
	}
	return ids
}

func tail(t *testing.T, s string, l TailLimits) Tail {
	t.Helper()
	got, err := ReadTail(strings.NewReader(s), int64(len(s)), l)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestTail(t *testing.T) {
	rows := []string{head}
	for i := range 50 {
		parent := "null"
		if i > 0 {
			parent = fmt.Sprintf("m%02d", i-1)
		}
		rows = append(rows, line(fmt.Sprintf("m%02d", i), parent, "user", strings.Repeat("x", 3000)))
	}
	whole := lines(rows...)
	got := tail(t, whole, TailLimits{Messages: 3})
	if d := cmp.Diff([]string{"m47", "m48", "m49"}, idsOf(got.Rows)); d != "" || got.Whole || got.Bad != 0 {
		t.Error(d, got.Whole, got.Bad)
	}
	for _, r := range got.Rows {
		if string(r.Raw) != whole[r.Offset:r.Offset+int64(r.Size)] {
			t.Errorf("row %s is not at its place", r.ID)
		}
	}
	if got := tail(t, whole, TailLimits{}); len(got.Rows) != 50 || !got.Whole || got.Start != 0 {
		t.Errorf("%d rows, whole %v", len(got.Rows), got.Whole)
	}
	if got := tail(t, whole+`{"type":"mess`, TailLimits{Messages: 1}); !got.Torn || got.Bad != 1 || len(got.Rows) != 1 {
		t.Errorf("torn: %+v", got)
	}
	crlf := tail(t, strings.ReplaceAll(lines(head, line("a", "null", "user", "hi")), "\n", "\r\n"), TailLimits{Messages: 5})
	if len(crlf.Rows) != 1 || !crlf.Whole {
		t.Errorf("CR LF: %+v", crlf)
	}
	if got := tail(t, "", TailLimits{}); len(got.Rows) != 0 || !got.Whole {
		t.Errorf("empty: %+v", got)
	}
}

func TestTailBranches(t *testing.T) {
	a, b := line("a", "null", "user", "1"), line("b", "a", "assistant", "2")
	side := []string{head, a, b}
	for i := range 10 {
		side = append(side, line(fmt.Sprintf("s%d", i), "b", "user", "side"))
	}
	side = append(side, `{"type":"leaf","id":"l","parentId":"s9","targetId":"b"}`, line("c", "l", "user", "3"))
	got := tail(t, lines(side...), TailLimits{Messages: 3})
	if d := cmp.Diff([]string{"a", "b", "c"}, idsOf(got.Rows)); d != "" {
		t.Error(d)
	}
	lost := tail(t, lines(head, a, b, `{"type":"leaf","id":"l","parentId":"b","targetId":"zz"}`), TailLimits{Messages: 3})
	if !lost.Lost || len(lost.Rows) != 0 {
		t.Errorf("leaf to nowhere: %+v", lost)
	}
}

// S9: an 8 MB line near the end costs one pass over it and no memory.
func TestTailLongLine(t *testing.T) {
	const n = 8 << 20
	long := `{"type":"message","id":"big","parentId":"a","timestamp":"2026-01-02T00:00:00.000Z","message":{"role":"toolResult","content":"` +
		strings.Repeat("A", n) + `"}}`
	rows := []string{head}
	for i := range 2000 {
		rows = append(rows, line(fmt.Sprintf("p%d", i), "null", "user", strings.Repeat("y", 1000)))
	}
	rows = append(rows, line("a", "null", "user", "1"), long, line("b", "big", "assistant", "2"))
	s := lines(rows...)
	r := &counted{ReaderAt: strings.NewReader(s)}
	got, err := ReadTail(r, int64(len(s)), TailLimits{Messages: 3})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"a", "big", "b"}, idsOf(got.Rows)); d != "" {
		t.Fatal(d)
	}
	b := got.Rows[1]
	if !b.Long || b.Size != len(long) || len(b.Raw) > 64<<10 || Role(b.Message) != "toolResult" {
		t.Errorf("long row: %v %d %d %s", b.Long, b.Size, len(b.Raw), b.Message)
	}
	if ms, ok := b.Time(); !ok || ms != 1767312000000 {
		t.Errorf("its time: %d", ms)
	}
	if r.n > n+1<<20 {
		t.Errorf("read %d bytes", r.n)
	}
}

// A tail is the end of what the whole file shows, whatever its rows point at.
func TestTailIsTheEndOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := []string{head}
		for i := range rapid.IntRange(0, 40).Draw(t, "rows") {
			parent := "null"
			if i > 0 {
				parent = fmt.Sprint("m", rapid.IntRange(max(0, i-3), i-1).Draw(t, "parent"))
			}
			rows = append(rows, line(fmt.Sprint("m", i), parent, rapid.SampledFrom([]string{"user", "assistant"}).Draw(t, "role"),
				strings.Repeat("x", rapid.SampledFrom([]int{1, 100, 4000, 30_000}).Draw(t, "size"))))
		}
		s := lines(rows...)
		n := rapid.IntRange(1, 10).Draw(t, "n")
		got, err := ReadTail(strings.NewReader(s), int64(len(s)), TailLimits{Messages: n, LongLine: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		tree := Tree{}
		var ids []string
		if err := (&Scanner{Tree: &tree}).Read(strings.NewReader(s), func(*Row) error { return nil }); err != nil {
			t.Fatal(err)
		}
		branch, _ := tree.Branch()
		for _, p := range branch[max(0, len(branch)-n):] {
			e, err := Load(strings.NewReader(s))(p)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, string(e.ID))
		}
		if d := cmp.Diff(ids, idsOf(got.Rows)); d != "" {
			t.Fatal(d)
		}
	})
}

func FuzzTail(f *testing.F) {
	f.Add(lines(head, line("a", "null", "user", "hi")), 2)
	f.Add("\n\n{}\n\x00", 1)
	f.Add(strings.Repeat("x", 300<<10)+"\n{}", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		got, err := ReadTail(strings.NewReader(s), int64(len(s)), TailLimits{Messages: n, LongLine: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got.Rows {
			if !strings.HasPrefix(s[r.Offset:], string(r.Raw)) && r.Offset > 0 {
				t.Fatalf("row at %d is not there", r.Offset)
			}
		}
	})
}
