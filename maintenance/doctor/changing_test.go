package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oc/config"
	"oc/fixtures"
	"oc/store"
	"oc/store/lock"
)

// A transcript that grows, and an index that is replaced, while they are
// looked at: no failure, and nothing worse than notes.
func TestChangingWhileRead(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	index := fixtures.Store(state, "main")
	path := filepath.Join(filepath.Dir(index), "t1.jsonl")
	rows := func(n int64) string {
		return fmt.Sprintf(`{"agent:main:main": {"sessionId": "t1", "updatedAt": %d}}`, n)
	}
	put(t, index, rows(1789999000000))
	put(t, path, lines(six()...))
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	at := now.Add(-1)
	stop, ended := make(chan bool), make(chan error, 1)
	go func() {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			ended <- err
			return
		}
		defer f.Close()
		parent := "e"
		for i := 0; ; i++ {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			id := fmt.Sprint("w", i)
			line := said(id, parent, "user", text(id+strings.Repeat("x", 3000))) + "\n"
			parent = id
			for _, half := range []string{line[:1000], line[1000:]} {
				if _, err := f.WriteString(half); err != nil {
					ended <- err
					return
				}
			}
			os.Chtimes(path, at, at) //nolint:errcheck // the clock of the test is not the disk's
			temp := index + ".new"
			if err := os.WriteFile(temp, []byte(rows(1789999000000+int64(i))), 0o600); err != nil {
				ended <- err
				return
			}
			if err := os.Rename(temp, index); err != nil {
				ended <- err
				return
			}
		}
	}()
	changed := 0
	for range 40 {
		r := examined(t, state)
		for _, f := range r.Findings {
			if f.Severity != Info && f.Code != TranscriptLarge { // on a slow machine it grows and grows
				t.Errorf("%s %s: %v", f.Severity, f.Code, f.Evidence)
			}
		}
		changed += len(found(r, TranscriptChanged))
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if changed == 0 {
		t.Error("no reading met a write: the test proves nothing")
	}
}

// A canceled examination ends with the error of its context.
func TestCanceled(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	if _, err := fixtures.S2(state, fixtures.Now); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{StateDir: state, Cwd: state, Home: state})
	if err != nil {
		t.Fatal(err)
	}
	targets, err := store.Targets(c, store.Pick{All: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Examine(ctx, Options{Config: c, Targets: targets, State: true, Machine: lock.Local(), Now: now}); err == nil {
		t.Errorf("it went on: %+v", r)
	}
}

// Benchmarks the ends of transcripts, and all of them.
func BenchmarkExamine(b *testing.B) {
	state := filepath.Join(b.TempDir(), "state")
	if err := (fixtures.Bench{Rows: 2000, Talks: true}).Write(state); err != nil {
		b.Fatal(err)
	}
	c, err := config.Load(config.Options{StateDir: state, Cwd: state, Home: state})
	if err != nil {
		b.Fatal(err)
	}
	targets, err := store.Targets(c, store.Pick{All: true})
	if err != nil {
		b.Fatal(err)
	}
	for _, deep := range []bool{false, true} {
		b.Run(fmt.Sprintf("deep=%t", deep), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := Examine(b.Context(), Options{Config: c, Targets: targets, State: true, Deep: deep, Machine: lock.Local(), Now: now})
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(r.Size.Bytes)
			}
		})
	}
}
