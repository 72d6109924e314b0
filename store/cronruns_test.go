package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oc/store"
)

// The tables as the releases make them, without what no history needs (2026.7.35 and 2026.9.6).
const (
	runLogs = `CREATE TABLE cron_run_logs (store_key TEXT NOT NULL, job_id TEXT NOT NULL, seq INTEGER NOT NULL, ts INTEGER NOT NULL, status TEXT, error TEXT, summary TEXT,
		diagnostics_summary TEXT, delivery_status TEXT, delivery_error TEXT, delivered INTEGER, session_id TEXT, session_key TEXT, run_id TEXT, run_at_ms INTEGER, duration_ms INTEGER,
		next_run_at_ms INTEGER, model TEXT, provider TEXT, total_tokens INTEGER, entry_json TEXT NOT NULL, created_at INTEGER NOT NULL, PRIMARY KEY (store_key, job_id, seq))`
	taskRuns = `CREATE TABLE task_runs (task_id TEXT NOT NULL PRIMARY KEY, runtime TEXT NOT NULL, source_id TEXT, child_session_key TEXT, run_id TEXT, status TEXT NOT NULL, created_at INTEGER NOT NULL,
		started_at INTEGER, ended_at INTEGER, last_event_at INTEGER, error TEXT, terminal_summary TEXT, detail_json TEXT) STRICT`
	cronJobs = `CREATE TABLE cron_jobs (store_key TEXT NOT NULL, job_id TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (store_key, job_id))`
)

func stateWith(t *testing.T, statements ...string) string {
	t.Helper()
	root := t.TempDir()
	path := store.StateDatabase(root)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return root
}

// Runs of every release come out of one list, the newest first; the columns win over the JSON; damage is told.
func TestCronRunsOfEveryRelease(t *testing.T) {
	root := stateWith(
		t, runLogs, taskRuns, cronJobs,
		`INSERT INTO cron_jobs VALUES ('/s', 'a', 'Water the beds')`,
		`INSERT INTO cron_run_logs (store_key, job_id, seq, ts, status, summary, duration_ms, session_key, entry_json, created_at) VALUES
			('/s', 'a', 1, 1000, 'ok', 'from the column', 250, 'agent:main:cron:a', '{"ts":1,"jobId":"a","action":"finished","status":"error","summary":"from the JSON","runAtMs":750}', 1),
			('/s', 'a', 2, 3000, NULL, NULL, NULL, NULL, '{"ts":3000,"jobId":"a","action":"finished","status":"error","error":"no","deliveryStatus":"not-delivered"}', 1),
			('/s', 'b', 1, 2000, 'ok', NULL, NULL, NULL, '{"ts":', 1)`,
		`INSERT INTO task_runs VALUES
			('t1', 'cron', 'a', 'agent:main:cron:a:run:x', 'r1', 'succeeded', 3900, 3950, 4000, 4000, NULL, 'done', '{"kind":"cron-run","status":"ok","storeKey":"/s","durationMs":50,"sessionId":"s1"}'),
			('t2', 'cron', 'a', NULL, NULL, 'failed', 4900, NULL, NULL, 5000, 'broke', NULL, NULL),
			('t3', 'cron', 'a', NULL, NULL, 'running', 6000, NULL, NULL, NULL, NULL, NULL, NULL),
			('t4', 'cron', 'a', NULL, NULL, 'lost', 6000, NULL, NULL, NULL, NULL, NULL, NULL),
			('t5', 'acp', 'a', NULL, NULL, 'succeeded', 6000, NULL, 7000, NULL, NULL, NULL, NULL)`,
	)
	dir := filepath.Join(root, "cron", "runs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	lines := `{"ts":500,"jobId":"a","action":"finished","status":"skipped","error":"off"}` + "\n\n" + `{"ts":600,"jobId":"other","action":"finished"}` + "\n" + `{"ts":700,"jobId":"a","action":"started"}` + "\n{broken\n"
	if err := os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := store.CronRuns(context.Background(), root, "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range h.Runs {
		got = append(got, fmt.Sprintf("%d %s %s %s/%s %d %v", r.At, r.Job, r.Status, r.Error, r.Summary, r.Duration, r.Quiet))
	}
	want := []string{"5000 a failed broke/ -1 true", "4000 a ok /done 50 false", "3000 a error no/ -1 false", "1000 a ok /from the column 250 false", "500 a skipped off/ -1 false"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(h.Problems) != 2 || h.Names["a"] != "Water the beds" {
		t.Errorf("%v %v", h.Problems, h.Names)
	}
	if h, err := store.CronRuns(context.Background(), root, "b"); err != nil || len(h.Runs) != 0 || len(h.Problems) != 1 {
		t.Errorf("%+v %v", h, err)
	}
	if h, err := store.CronRuns(context.Background(), t.TempDir(), ""); err != nil || len(h.Runs) != 0 {
		t.Errorf("%+v %v", h, err)
	}
	if err := os.WriteFile(store.StateDatabase(root), []byte(strings.Repeat("no database ", 400)), 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err := store.CronRuns(context.Background(), root, ""); err == nil || len(h.Runs) != 1 {
		t.Errorf("%+v %v", h, err)
	}
}

// Of every class the newest stay, and only so many; what is over and what stays are all there is.
func TestOverKeepsTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &store.CronHistory{Runs: rapid.SliceOf(rapid.Custom(func(t *rapid.T) store.CronRun {
			n := rapid.Int64Range(1, 99).Draw(t, "n")
			return store.CronRun{
				Job: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "job"), Kept: rapid.SampledFrom([]string{store.RunLogTable, store.RunTaskTable, store.RunLogFile}).Draw(t, "kept"),
				At: rapid.Int64Range(0, 20).Draw(t, "at"), Row: n, ID: fmt.Sprint(n), Quiet: rapid.Bool().Draw(t, "quiet"),
			}
		})).Draw(t, "runs")}
		keep := rapid.IntRange(0, 5).Draw(t, "keep")
		type class struct {
			kept, job string
			quiet     bool
		}
		total, gone, oldest := map[class]int{}, map[class]int{}, map[class]int64{}
		for _, r := range h.Runs {
			total[class{r.Kept, r.Job, r.Quiet}]++
		}
		for _, r := range h.Over(keep) {
			k := class{r.Kept, r.Job, r.Quiet}
			gone[k]++
			oldest[k] = max(oldest[k], r.At)
		}
		for k, n := range total {
			want := max(0, n-max(keep, 1))
			if k.kept == store.RunLogFile {
				want = 0
			}
			if gone[k] != want {
				t.Fatalf("%+v: %d of %d go, not %d", k, gone[k], n, want)
			}
		}
		left := map[class]int{}
		for _, r := range h.Runs { // those that stay are not older than those that go
			k := class{r.Kept, r.Job, r.Quiet}
			if k.kept == store.RunTaskTable && gone[k] > 0 && r.At > oldest[k] {
				left[k]++
			}
		}
		for k, n := range left {
			if n > max(keep, 1) {
				t.Fatalf("%+v: %d newer ones stay of %d", k, n, keep)
			}
		}
	})
}
