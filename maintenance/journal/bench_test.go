package journal

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// 10,000 transcripts of 3 KB: half of them removed, half archived, with a store of 10 MB, on a real disk.
func BenchmarkApply(b *testing.B) {
	line := strings.Repeat(`{"type":"message","text":"hello there"}`+"\n", 75)
	for b.Loop() {
		b.StopTimer()
		base := b.TempDir()
		store := filepath.Join(base, "sessions.json")
		put(b, store, strings.Repeat(line, 3500), 0o600, time.Hour)
		plan := Plan{Steps: []Step{{Kind: Replace, Phase: Swap, Path: store, Hook: "rows", Content: text(strings.Repeat(line, 3000))}}}
		for i := range 10000 {
			s := Step{Kind: Remove, Phase: Clear, Path: filepath.Join(base, fmt.Sprintf("%05d.jsonl", i))}
			if i%2 == 0 {
				s.Kind, s.To = Move, s.Path+".deleted.x"
			}
			put(b, s.Path, line, 0o600, time.Hour)
			plan.Steps = append(plan.Steps, s)
		}
		j := open(b, base, OS())
		b.StartTimer()
		r, err := j.Apply(bg, plan)
		if err != nil || r.Skipped > 0 {
			b.Fatal(err)
		}
		b.StopTimer()
		b.ReportMetric(float64(r.Saved), "saved-bytes")
		began := time.Now()
		if _, _, err := j.Undo(bg, r.ID, UndoOptions{}); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "undo-ms")
		b.StartTimer()
	}
}

// Memory is flat in the bytes of a file: 200 MB are saved, replaced and brought back in less than 40.
func TestMemoryIsFlat(t *testing.T) {
	base := scratch(t)
	path, other := filepath.Join(base, "big.jsonl"), filepath.Join(base, "big2.jsonl")
	chunk := []byte(noise(1, 1<<20))
	big := func(w io.Writer) error {
		for range 200 {
			if _, err := w.Write(chunk); err != nil {
				return err
			}
		}
		return nil
	}
	for _, p := range []string{path, other} {
		f, err := os.Create(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := big(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	var most uint64
	f := &Faults{FS: quick{OS()}, Watch: func(op, _ string) {
		if op == "fsync" || op == "remove" || op == "fsync-dir" {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
		}
	}}
	runtime.GC()
	j := open(t, base, f)
	r, err := j.Apply(bg, Plan{Steps: []Step{
		{Kind: Replace, Phase: Swap, Path: path, Content: func(w io.Writer) error { return big(w) }},
		{Kind: Remove, Phase: Clear, Path: other},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := j.Undo(bg, r.ID, UndoOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d MB", most>>20)
	if most > 40<<20 {
		t.Errorf("%d bytes of memory", most)
	}
}
