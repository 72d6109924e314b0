package transcript

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// heavy writes the transcript of S9: short lines, and one of n bytes before the
// last of them.
func heavy(t testing.TB, rows, n, behind int) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "big.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	w := bufio.NewWriterSize(f, 1<<20)
	_, _ = fmt.Fprintln(w, head)
	parent := "null"
	for i := range rows {
		if i == rows-behind {
			_, _ = fmt.Fprintf(w, `{"type":"message","id":"big","parentId":%q,"message":{"role":"user","content":[{"type":"image","mimeType":"image/jpeg","data":"/9j/%s"}]}}`+"\n",
				parent, strings.Repeat("QUJD", n/4))
			parent = "big"
		}
		id := fmt.Sprintf("%08x", i)
		_, _ = fmt.Fprintln(w, line(id, parent, "assistant", strings.Repeat("some words ", 200)))
		parent = id
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return f
}

func BenchmarkHeavyTail(b *testing.B) {
	f := heavy(b, 150_000, 80<<20, 10)
	info, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/1e6, "MB")
	b.ReportAllocs()
	for b.Loop() {
		t, err := ReadTail(f, info.Size(), TailLimits{Messages: 20})
		if err != nil || len(t.Rows) != 20 {
			b.Fatal(err, len(t.Rows))
		}
	}
}

func BenchmarkHeavyScan(b *testing.B) {
	f := heavy(b, 150_000, 80<<20, 10)
	info, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Seek(0, 0); err != nil {
			b.Fatal(err)
		}
		s := Scanner{Tree: &Tree{}, Report: func(f Finding) { b.Fatal(f) }}
		if err := s.Read(f, func(*Row) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// rows is a transcript of n rows of about 400 bytes in a chain, made as it is read.
type rows struct {
	n, at int
	rest  string
}

func (r *rows) Read(b []byte) (int, error) {
	if r.rest == "" {
		if r.at > r.n {
			return 0, io.EOF
		}
		r.rest = head + "\n"
		if r.at > 0 {
			parent := "null"
			if r.at > 1 {
				parent = fmt.Sprintf("%08x", uint32(r.at-1)*2654435761)
			}
			r.rest = line(fmt.Sprintf("%08x", uint32(r.at)*2654435761), parent, "assistant", strings.Repeat("some words ", 24)) + "\n"
		}
		r.at++
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// What a row costs in memory when everything about it is looked at: live is what stands at the end, of which the garbage of growing is no
// part. The promise is 64 bytes.
func BenchmarkRowMemory(b *testing.B) {
	const n = 1_000_000
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	live := uint64(0)
	for b.Loop() {
		before := heap()
		s := Scanner{Tree: &Tree{}, Report: func(f Finding) { b.Fatal(f) }}
		if err := s.Read(&rows{n: n}, func(*Row) error { return nil }); err != nil {
			b.Fatal(err)
		}
		live = heap() - before
		runtime.KeepAlive(&s)
	}
	b.ReportMetric(float64(live)/n, "live-B/row")
}

// At no moment does a tree hold more than 64 bytes a row, also not while its
// table of ids is made anew; beside that, a page of each list.
func TestRowMemory(t *testing.T) {
	const n, spare = 300_000, pageLen*int(unsafe.Sizeof(node{})+unsafe.Sizeof(sym{})) + textPage
	tree := Tree{}
	table, most := 0, 0.0
	s := Scanner{Tree: &tree, Report: func(f Finding) { t.Fatal(f) }}
	err := s.Read(&rows{n: n}, func(r *Row) error {
		held := 4 * cap(tree.ids.table)
		if cap(tree.ids.table) != table {
			held += 4 * table // the old one stood beside it
			table = cap(tree.ids.table)
		} else if r.Line%1000 != 0 {
			return nil
		}
		for _, p := range tree.nodes.pages {
			held += cap(p) * int(unsafe.Sizeof(node{}))
		}
		for _, p := range tree.ids.syms.pages {
			held += cap(p) * int(unsafe.Sizeof(sym{}))
		}
		for _, p := range tree.ids.text {
			held += cap(p)
		}
		for _, p := range tree.ids.marks.pages {
			held += cap(p) * 4
		}
		if r.Line > 10_000 {
			most = max(most, float64(held-spare)/float64(r.Line))
		}
		return nil
	})
	if err != nil || tree.Len() != n {
		t.Fatal(err, tree.Len())
	}
	if most > 64 || most < 32 {
		t.Errorf("%.1f bytes a row", most)
	}
}
