package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oc/store"
)

// What is beyond the limit goes, the newest stay, and undo brings every row back.
func TestCronRunsPrune(t *testing.T) {
	root := t.TempDir()
	path := store.StateDatabase(root)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "openclaw.json"), []byte(`{cron: {runLog: {keepLines: 3}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	alterDB(t, path, "PRAGMA user_version = 18",
		"CREATE TABLE task_runs (task_id TEXT NOT NULL PRIMARY KEY, runtime TEXT NOT NULL, source_id TEXT, child_session_key TEXT, run_id TEXT, status TEXT NOT NULL, created_at INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER, last_event_at INTEGER, error TEXT, terminal_summary TEXT, detail_json TEXT) STRICT",
		"CREATE TABLE task_delivery_state (task_id TEXT NOT NULL PRIMARY KEY, last_notified_event_at INTEGER, FOREIGN KEY (task_id) REFERENCES task_runs(task_id) ON DELETE CASCADE) STRICT",
		"WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i+1 FROM n WHERE i < 8) INSERT INTO task_runs SELECT 't' || i, 'cron', 'water', NULL, NULL, 'succeeded', i * 1000, i * 1000, i * 1000 + 500, NULL, NULL, 'run ' || i, '{\"kind\":\"cron-run\",\"status\":\"ok\"}' FROM n",
		"INSERT INTO task_delivery_state VALUES ('t1', 7), ('t8', 9)")
	a := at(t, root, "cron", "runs", "water")
	if a.exit != ExitDone || !strings.Contains(a.out, "8 runs of 1 job.") || !strings.Contains(a.errout, "5 runs are beyond") {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	was := at(t, root, "cron", "runs", "--json").out
	before := tree(t, root)
	if a := at(t, root, "cron", "runs", "--prune", "--dry-run"); a.exit != ExitDone || !strings.Contains(a.out, "5 runs would go") || tree(t, root) != before {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	if a := at(t, root, "cron", "runs", "--prune"); a.exit != ExitDone || !strings.Contains(a.out, "5 runs taken out. Take it back with: oc undo ") {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	now := at(t, root, "cron", "runs")
	if !strings.Contains(now.out, "3 runs of 1 job.") || !strings.Contains(now.out, "run 8") || strings.Contains(now.out, "run 5") {
		t.Errorf("%s%s", now.out, now.errout)
	}
	if a := at(t, root, "cron", "runs", "--prune"); a.exit != ExitDone || !strings.Contains(a.out, "Nothing to do") {
		t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	if a := at(t, root, "undo"); a.exit != ExitDone {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	if got := at(t, root, "cron", "runs", "--json").out; got != was {
		t.Errorf("after undo:\n%s\nbefore:\n%s", got, was)
	}
	alterDB(t, path, "PRAGMA user_version = 40", "CREATE TABLE schema_meta (meta_key TEXT, role TEXT, schema_version INTEGER, agent_id TEXT, app_version TEXT)", "INSERT INTO schema_meta VALUES ('primary', 'global', 40, NULL, 'x')")
	if a := at(t, root, "cron", "runs", "--prune"); a.exit != ExitRefused || !strings.Contains(a.errout, "newer than oc knows") {
		t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
}

// cronRunRows make the table of runs of cron jobs as of schema 18, with so many of one job.
func cronRunRows(n int) []string {
	return []string{
		"PRAGMA user_version = 18",
		"CREATE TABLE task_runs (task_id TEXT NOT NULL PRIMARY KEY, runtime TEXT NOT NULL, source_id TEXT, child_session_key TEXT, run_id TEXT, status TEXT NOT NULL, created_at INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER, last_event_at INTEGER, error TEXT, terminal_summary TEXT, detail_json TEXT) STRICT",
		"CREATE INDEX idx_task_runs_ended ON task_runs(ended_at)",
		fmt.Sprintf("WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i+1 FROM n WHERE i < %d) INSERT INTO task_runs SELECT 't' || i, 'cron', 'water', NULL, NULL, 'succeeded', i * 1000, i * 1000, i * 1000 + 500, NULL, NULL, 'run ' || i, '{\"kind\":\"cron-run\",\"status\":\"ok\"}' FROM n", n),
	}
}
