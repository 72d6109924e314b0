package commands

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"oc/config"
	"oc/fixtures"
	"oc/store"
)

// The hot paths at three sizes: go test ./commands -bench . -benchtime 5x

var sizes = []int{500, 10_000, 100_000}

func large(b *testing.B, rows int) string {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "state")
	if err := (fixtures.Bench{Rows: rows}).Write(dir); err != nil {
		b.Fatal(err)
	}
	return dir
}

func benchmark(b *testing.B, line string) {
	for _, rows := range sizes {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			dir := large(b, rows)
			b.ReportAllocs()
			for b.Loop() {
				exit := Main(context.Background(), Process{
					Args: strings.Fields(line), Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: os.Stderr,
					Environ: []string{"HOME=" + dir, "OPENCLAW_STATE_DIR=" + dir}, Dir: dir, Now: time.Now,
				})
				if exit != 0 {
					b.Fatalf("%s: exit %d", line, exit)
				}
			}
		})
	}
}

func BenchmarkListJSON(b *testing.B) { benchmark(b, "sessions --limit all --json") }
func BenchmarkListText(b *testing.B) { benchmark(b, "sessions --limit all") }
func BenchmarkShow(b *testing.B)     { benchmark(b, "sessions show main --json") }

// BenchmarkOpen parses a store, and reports the memory that a row keeps.
func BenchmarkOpen(b *testing.B) {
	for _, rows := range sizes {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			dir := large(b, rows)
			cfg, err := config.Load(config.Options{Env: func(string) string { return "" }, Cwd: dir, Home: dir, StateDir: dir})
			if err != nil {
				b.Fatal(err)
			}
			targets, err := store.Targets(cfg, store.Pick{})
			if err != nil {
				b.Fatal(err)
			}
			var before, after runtime.MemStats
			var s *store.Sessions
			for b.Loop() {
				if s, err = store.Open(context.Background(), cfg, targets[0]); err != nil || len(s.Rows) < rows {
					b.Fatal(len(s.Rows), err)
				}
			}
			s = nil
			runtime.GC()
			runtime.ReadMemStats(&before)
			if s, err = store.Open(context.Background(), cfg, targets[0]); err != nil {
				b.Fatal(err)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc)-float64(len(s.Text)))/float64(len(s.Rows)), "B/row")
			runtime.KeepAlive(s)
		})
	}
}
