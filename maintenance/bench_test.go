package maintenance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"oc/config"
	"oc/maintenance/journal"
	"oc/store"
)

// big lays out rows with a transcript each, spread over 40 days.
func big(tb testing.TB, rows int) (*config.Config, time.Time) {
	tb.Helper()
	root := tb.TempDir()
	dir := filepath.Join(root, ".openclaw", "agents", "main", "sessions")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	now := time.UnixMilli(1790000000000)
	var text strings.Builder
	text.WriteString("{")
	for i := range rows {
		id := fmt.Sprintf("%08x-1111-4111-8111-111111111111", i)
		age := time.Duration(i%3456) * 1000 * time.Second
		if i > 0 {
			text.WriteString(",")
		}
		fmt.Fprintf(&text, "\n  \"agent:main:explicit:%s\": {\n    \"sessionId\": \"%s\",\n    \"updatedAt\": %d,\n    \"sessionFile\": \"%s\",\n    \"model\": \"gpt-5.5\",\n    \"pad\": \"%s\"\n  }",
			id, id, now.Add(-age).UnixMilli(), filepath.Join(dir, id+".jsonl"), strings.Repeat("p", 1300))
		path := filepath.Join(dir, id+".jsonl")
		if err := os.WriteFile(path, []byte(conversationText(id, 4, 20)), 0o600); err != nil {
			tb.Fatal(err)
		}
		at := now.Add(-age - time.Hour)
		if err := os.Chtimes(path, at, at); err != nil {
			tb.Fatal(err)
		}
	}
	text.WriteString("\n}")
	if err := os.WriteFile(filepath.Join(dir, config.StoreFile), []byte(text.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
	c, err := config.Load(config.Options{Cwd: root, Home: root})
	if err != nil {
		tb.Fatal(err)
	}
	return c, now
}

func dryRun(tb testing.TB, c *config.Config, now time.Time, o Orders) (*Plan, *Snapshot) {
	tb.Helper()
	p, _, err := ReadPolicy(c, o)
	if err != nil {
		tb.Fatal(err)
	}
	targets, err := store.Targets(c, store.Pick{})
	if err != nil {
		tb.Fatal(err)
	}
	s, err := Take(context.Background(), c, targets[0], p, alive{}, now)
	if err != nil {
		tb.Fatal(err)
	}
	return Make(p, s, now), s
}

// Ten thousand rows and transcripts fit in memory many times over.
func TestMemoryOfTenThousandRows(t *testing.T) {
	c, now := big(t, 10_000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	plan, s := dryRun(t, c, now, Orders{})
	runtime.ReadMemStats(&after)
	// OpenClaw 2026.7.35: 7.4 s and 402 MiB (spec/maintenance.md 7).
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 100 {
		t.Errorf("a plan of 10,000 rows allocated %d MiB", used)
	}
	if n := plan.Summary(true).AfterCount; n != defaultMaxEntries || len(s.Rows) != 10_000 {
		t.Errorf("%d of %d rows stay", n, len(s.Rows))
	}
}

// What is held does not grow with the size of files: transcripts of a gigabyte are planned and archived like small ones, and an archive of
// 96 MB is summed up, saved and removed in pieces.
func TestMemoryIsFlatInFiles(t *testing.T) {
	c, now := big(t, 40)
	targets, err := store.Targets(c, store.Pick{})
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := ReadPolicy(c, Orders{})
	if err != nil {
		t.Fatal(err)
	}
	p.MaxEntries, p.MaxDiskBytes, p.HighWaterBytes = 5, 1<<50, 1<<49
	plan := func() (*Plan, uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := Take(context.Background(), c, targets[0], p, alive{}, now)
		if err != nil {
			t.Fatal(err)
		}
		made := Make(p, s, now)
		runtime.ReadMemStats(&after)
		return made, after.TotalAlloc - before.TotalAlloc
	}
	plan() // the first one warms up
	small, few := plan()
	dir := filepath.Dir(targets[0].Index)
	for i := range 40 {
		path := filepath.Join(dir, fmt.Sprintf("%08x-1111-4111-8111-111111111111.jsonl", i))
		info, err := os.Stat(path)
		if err == nil {
			err = errors.Join(os.Truncate(path, 1<<30), os.Chtimes(path, info.ModTime(), info.ModTime()))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	large, many := plan()
	if len(large.Actions) != len(small.Actions) || len(large.Actions) != 2*35+1 || many > few+few/4 {
		t.Errorf("%d actions in %d bytes, and with large files %d in %d", len(small.Actions), few, len(large.Actions), many)
	}

	f, err := os.Create(filepath.Join(dir, "old.jsonl.deleted.2020-01-01T00-00-00.000Z"))
	if err != nil {
		t.Fatal(err)
	}
	line := []byte(conversationText("old", 400, 5000))
	for range 96 << 20 / len(line) {
		if _, err := f.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var most uint64
	w := &Worker{Config: c, Machine: alive{}, Now: func() time.Time { return now }, FS: &journal.Faults{FS: quick{journal.OS()}, Watch: func(op, _ string) {
		if op == "write" || op == "remove" {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
		}
	}}}
	runtime.GC()
	d, err := w.Apply(context.Background(), targets[0], p, func(s *Snapshot) (*Plan, error) { return Make(p, s, s.Taken), nil })
	if err != nil || len(d.Skipped) > 0 || d.Run.Freed < 90<<20 || d.Run.Total != 35+1+1 {
		t.Fatalf("%v %+v", err, d.Run)
	}
	t.Logf("a plan takes %d bytes, %d with large files; applying takes %d MB", few, many, most>>20)
	if most > 32<<20 {
		t.Errorf("applying took %d bytes", most)
	}
}

// A budget measures every row.
func BenchmarkDryRunWithABudget(b *testing.B) {
	c, now := big(b, 10_000)
	p, _, err := ReadPolicy(c, Orders{})
	if err != nil {
		b.Fatal(err)
	}
	p.MaxDiskBytes, p.HighWaterBytes = 1<<20, 800<<10
	targets, err := store.Targets(c, store.Pick{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s, err := Take(context.Background(), c, targets[0], p, alive{}, now)
		if err != nil {
			b.Fatal(err)
		}
		Make(p, s, now)
	}
}

func BenchmarkDryRun(b *testing.B) {
	for _, n := range []int{500, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, now := big(b, n)
			b.ReportAllocs()
			for b.Loop() {
				dryRun(b, c, now, Orders{})
			}
		})
	}
}

// A cleanup that archives all transcripts but those of 500 rows, on a real disk, and what taking it back takes.
func BenchmarkApply(b *testing.B) {
	c, now := big(b, 10_000)
	p, _, err := ReadPolicy(c, Orders{})
	if err != nil {
		b.Fatal(err)
	}
	targets, err := store.Targets(c, store.Pick{})
	if err != nil {
		b.Fatal(err)
	}
	at := func() time.Time { return now }
	w := &Worker{Config: c, Machine: alive{}, Now: at, Command: "cleanup"}
	b.ReportAllocs()
	for b.Loop() {
		w.Group = ""
		d, err := w.Apply(context.Background(), targets[0], p, func(s *Snapshot) (*Plan, error) { return Make(p, s, now), nil })
		if err != nil || len(d.Skipped) > 0 || d.Run.Total != 9_501 {
			b.Fatal(err, d.Skipped, d.Run)
		}
		b.StopTimer()
		began := time.Now()
		j, err := w.Journal(targets[0].Index)
		if err == nil {
			_, _, err = j.Undo(context.Background(), d.Run.ID, journal.UndoOptions{})
		}
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "undo-ms")
		b.StartTimer()
	}
}
