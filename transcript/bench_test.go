package transcript

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
