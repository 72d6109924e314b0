package awareness

import (
	"bufio"
	"fmt"
	"testing"
	"time"
)

// full is a log with as many events as a prune leaves, for 500 sessions and a busy one.
func full(b *testing.B) string {
	path := state(b, "empty.2026.9.6")
	script(b, path, fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO session_state_events SELECT i, 'run-terminal:' || i, CASE WHEN i %% 2 THEN '%s' ELSE 'agent:main:s' || (i %% 500) END, NULL, 'main',
		'run_completed', 'system', NULL, 'run-' || i, %d + i, 'child run completed', NULL FROM n`, MaxRows, child, t0),
		`INSERT INTO session_state_heads SELECT session_key, agent_id, max(sequence), 0, 0 FROM session_state_events GROUP BY 1, 2`)
	time.Sleep(50 * time.Millisecond) // until its stamps can be trusted
	return path
}

func BenchmarkChanges(b *testing.B) {
	path := full(b)
	b.ReportAllocs()
	for b.Loop() {
		read(b, path, func(s *Snapshot) error {
			c, err := s.Changes(child, "main", 30_000, PageSize)
			if len(c.Events) != PageSize {
				b.Fatal(len(c.Events))
			}
			return err
		})
	}
}

// BenchmarkChangesBesideWriter is the same while another process commits 100 times a second.
func BenchmarkChangesBesideWriter(b *testing.B) {
	path := full(b)
	cmd := childProcess(b, "commit", path)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	said := bufio.NewScanner(out)
	if !said.Scan() || said.Text() != "ready" {
		b.Fatal(said.Text())
	}
	var slowest time.Duration
	for b.Loop() {
		begun := time.Now()
		read(b, path, func(s *Snapshot) error {
			c, err := s.Changes(child, "main", 30_000, PageSize)
			if len(c.Events) != PageSize {
				b.Fatal(len(c.Events))
			}
			return err
		})
		slowest = max(slowest, time.Since(begun))
	}
	in.Close()
	said.Scan()
	commit, err := time.ParseDuration(said.Text())
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(slowest.Microseconds())/1000, "ms/slowest-read")
	b.ReportMetric(float64(commit.Microseconds())/1000, "ms/slowest-commit")
}

func BenchmarkAllChanges(b *testing.B) {
	path := full(b)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		read(b, path, func(s *Snapshot) error {
			n = 0
			return s.AllChanges(30_000, PageSize, func(Changes) error { n++; return nil })
		})
		if n != 251 {
			b.Fatal(n)
		}
	}
}

func BenchmarkStats(b *testing.B) {
	path := full(b)
	for b.Loop() {
		read(b, path, func(s *Snapshot) error { _, err := s.Stats(t0); return err })
	}
}

func BenchmarkAppend(b *testing.B) {
	path := full(b)
	for b.Loop() {
		update(b, path, t0, func(e *Edit) error { _, err := e.Append(sample("x")); return err })
	}
}

// BenchmarkAppendTogether is four processes that each append in a loop, on a database of the kind that OpenClaw makes and
// on one that Init makes.
func BenchmarkAppendTogether(b *testing.B) {
	b.Run("wal", func(b *testing.B) {
		path := full(b)
		if out, err := childProcess(b, "wal", path).CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		appendTogether(b, path)
	})
	b.Run("rollback", func(b *testing.B) { appendTogether(b, full(b)) })
}

func appendTogether(b *testing.B, path string) {
	const each = 200
	for b.Loop() {
		done := make(chan error)
		begun := time.Now()
		for i := range 4 {
			cmd := childProcess(b, "append", path, fmt.Sprint("w", i), fmt.Sprint(each))
			go func() { done <- cmd.Run() }()
		}
		for range 4 {
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(4*each/time.Since(begun).Seconds(), "events/s")
	}
	read(b, path, func(s *Snapshot) error {
		n, err := s.CountEvents(Filter{After: MaxRows})
		if n == 0 || n%(4*each) != 0 {
			b.Errorf("%d events", n)
		}
		return err
	})
}
