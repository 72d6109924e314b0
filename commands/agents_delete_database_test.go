package commands

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oc/fixtures"
)

// vaulted adds an agent to a state whose sessions are in a database, the last row only in its log, and the database of the state that knows it.
func vaulted(t *testing.T, state string) (dir string) {
	t.Helper()
	s := fixtures.State{Agents: []fixtures.Agent{{
		ID: "vault", Era: fixtures.SQLiteEra, PageSize: 512,
		Sessions: []fixtures.Session{
			{Key: "agent:vault:main", Updated: fixtures.Now - fixtures.Day, Talk: fixtures.Talk("v-1", fixtures.Now-fixtures.Day).User("one").Assistant("two")},
			{Key: "agent:vault:explicit:old", Updated: fixtures.Now - 9*fixtures.Day},
		},
		Files: []fixtures.File{{Name: "v-0.jsonl.deleted.2026-09-01T10-00-00.000Z.zst", Data: "x"}, {Name: "../agent/models.json", Data: "{}"}},
	}}}
	if err := s.Write(state); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(state, "agents", "vault")
	logged(t, filepath.Join(dir, "agent", "openclaw-agent.sqlite"), "UPDATE session_nodes SET label = 'logged' WHERE session_key = 'agent:vault:explicit:old'")
	shared := filepath.Join(state, "state", "openclaw.sqlite")
	if err := os.MkdirAll(filepath.Dir(shared), 0o700); err != nil {
		t.Fatal(err)
	}
	db := made[*sql.DB](t)(sql.Open("sqlite", shared))
	for _, text := range []string{
		"CREATE TABLE IF NOT EXISTS agent_databases (agent_id TEXT NOT NULL, path TEXT NOT NULL, schema_version INTEGER NOT NULL, last_seen_at INTEGER NOT NULL, size_bytes INTEGER, PRIMARY KEY (agent_id, path)) STRICT",
		"INSERT INTO agent_databases VALUES ('main', 'agents/main/agent/openclaw-agent.sqlite', 23, 1, 1)",
		"INSERT INTO agent_databases VALUES ('vault', 'agents/vault/agent/openclaw-agent.sqlite', 23, 2, 2)",
		fmt.Sprintf("INSERT INTO agent_databases VALUES ('vault', '%s/agents/vault/agent/openclaw-agent.sqlite', 23, 3, NULL)", state),
	} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	longOver(t, state)
	return dir
}

// logged changes a database so that the change is in its log alone, as after a crash.
func logged(t *testing.T, path, statement string) {
	t.Helper()
	db := made[*sql.DB](t)(sql.Open("sqlite", path+"?_pragma=wal_autocheckpoint(0)"))
	before := made[[]byte](t)(os.ReadFile(path))
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
	log := made[[]byte](t)(os.ReadFile(path + "-wal"))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{path: before, path + "-wal": log} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// An agent whose sessions are in a database goes as one whose sessions are in files: its directory, its database with the log that it has, and
// the rows by which the state knows that; and all of it comes back.
func TestAgentsDeleteADatabase(t *testing.T) {
	state, _, env := lived(t)
	dir := vaulted(t, state)
	before, shared := everything(t, state, "vault"), tables(t, filepath.Join(state, "state", "openclaw.sqlite"))
	whole := tree(t, state)
	if a := ocRun(t, state, env, "--state-dir", state, "agents", "delete", "vault", "--dry-run", "--json"); a.exit != ExitDone || tree(t, state) != whole {
		t.Fatalf("dry run: exit %d: %s", a.exit, a.errout)
	}
	a := ocRun(t, state, env, "--state-dir", state, "agents", "delete", "vault", "--yes", "--json")
	if a.exit != ExitDone {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	doc := a.doc(t)
	want(t, "rows", dig(doc, "committed", "rows"), 2.0)
	want(t, "via", dig(doc, "via"), "local")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is there: %v", err)
	}
	want(t, "registered", len(tables(t, filepath.Join(state, "state", "openclaw.sqlite"))["agent_databases"]), 1)
	if back := ocRun(t, state, env, "--state-dir", state, "undo"); back.exit != ExitDone {
		t.Fatalf("undo: exit %d: %s", back.exit, back.errout)
	}
	want(t, "the agent after undo", everything(t, state, "vault"), before)
	want(t, "the shared database after undo", fmt.Sprint(tables(t, filepath.Join(state, "state", "openclaw.sqlite"))), fmt.Sprint(shared))
}

// A log never comes back beside another database than its own.
func TestALogStaysAwayFromAnotherDatabase(t *testing.T) {
	state, _, env := lived(t)
	dir := vaulted(t, state)
	path := filepath.Join(dir, "agent", "openclaw-agent.sqlite")
	if a := ocRun(t, state, env, "--state-dir", state, "agents", "delete", "vault", "--yes"); a.exit != ExitDone {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	back := ocRun(t, state, env, "--state-dir", state, "undo")
	if back.exit != ExitFailed || !strings.Contains(back.out+back.errout, "another one by now") {
		t.Errorf("undo: exit %d: %s%s", back.exit, back.out, back.errout)
	}
	if _, err := os.Lstat(path + "-wal"); !os.IsNotExist(err) {
		t.Errorf("the log is back: %v", err)
	}
	want(t, "the new database", string(made[[]byte](t)(os.ReadFile(path))), "new")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if back := ocRun(t, state, env, "--state-dir", state, "undo"); back.exit != ExitDone {
		t.Errorf("undo again: exit %d: %s%s", back.exit, back.out, back.errout)
	}
	want(t, "rows", len(tables(t, path)["session_nodes"]), 2)
}

func TestAgentsDeleteADatabaseRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(t *testing.T, state, dir string)
		exit int
		says string
	}{
		"another agent uses it": {func(t *testing.T, state, dir string) {
			config := fmt.Sprintf(`{"agents": {"entries": {"work": {"default": true}, "main": {"agentDir": %q}, "vault": {}}}}`, filepath.Join(dir, "agent"))
			if err := os.WriteFile(filepath.Join(state, "openclaw.json"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
		}, ExitRefused, "main"},
		"a process has it open": {func(t *testing.T, state, _ string) {
			db := made[*sql.DB](t)(sql.Open("sqlite", filepath.Join(state, "state", "openclaw.sqlite")))
			defer db.Close() //nolint:errcheck // of a test
			for _, text := range []string{
				"CREATE TABLE IF NOT EXISTS agent_database_leases (lease_id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, path TEXT NOT NULL, owner_pid INTEGER NOT NULL, owner_start_time INTEGER, opened_at INTEGER NOT NULL) STRICT",
				fmt.Sprintf("INSERT INTO agent_database_leases VALUES ('l', 'vault', '/d', %d, NULL, 1)", os.Getppid()),
			} {
				if _, err := db.Exec(text); err != nil {
					t.Fatal(err)
				}
			}
		}, ExitBusy, "has the database of agent vault open"},
		"a session was written just now": {func(t *testing.T, _, dir string) {
			logged(t, filepath.Join(dir, "agent", "openclaw-agent.sqlite"), fmt.Sprintf("UPDATE session_windows SET updated_at = %d WHERE session_key = 'agent:vault:main'", fixtures.Now-1000))
		}, ExitRefused, "agent:vault:main"},
		"a newer schema": {func(t *testing.T, state, _ string) {
			db := made[*sql.DB](t)(sql.Open("sqlite", filepath.Join(state, "agents/vault/agent/openclaw-agent.sqlite")))
			defer db.Close() //nolint:errcheck // of a test
			if _, err := db.Exec("PRAGMA user_version = 24"); err != nil {
				t.Fatal(err)
			}
		}, ExitRefused, "24"},
	} {
		t.Run(name, func(t *testing.T) {
			state, _, env := lived(t)
			c.harm(t, state, vaulted(t, state))
			before := tree(t, state)
			a := ocRun(t, state, env, "--state-dir", state, "agents", "delete", "vault", "--yes")
			if a.exit != c.exit || !strings.Contains(a.errout, c.says) {
				t.Errorf("exit %d, want %d: %s", a.exit, c.exit, a.errout)
			}
			if tree(t, state) != before {
				t.Error("something changed")
			}
		})
	}
}

// In a database elsewhere the sessions are deleted as sessions delete does it, and the agent's directory goes.
func TestAgentsDeleteInADatabaseElsewhere(t *testing.T) {
	state, _, env := lived(t)
	dir := vaulted(t, state)
	away := filepath.Join(state, "..", "away", "agent")
	for _, dir := range []string{away, filepath.Join(filepath.Dir(away), "sessions")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, suffix := range []string{"", "-wal"} {
		if err := os.Rename(filepath.Join(dir, "agent", "openclaw-agent.sqlite"+suffix), filepath.Join(away, "openclaw-agent.sqlite"+suffix)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(away, "openclaw-agent.sqlite")
	config := fmt.Sprintf(`{"agents": {"entries": {"work": {"default": true}, "vault": {"agentDir": %q}}}}`, filepath.Clean(away))
	if err := os.WriteFile(filepath.Join(state, "openclaw.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	before, rows := everything(t, state, "vault"), fmt.Sprint(tables(t, path))
	a := ocRun(t, state, env, "--state-dir", state, "agents", "delete", "vault", "--yes", "--json")
	if a.exit != ExitDone || !strings.Contains(a.errout, "its directory") {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	want(t, "sessions that are left", len(tables(t, path)["session_nodes"]), 0)
	want(t, "archives", len(names(t, filepath.Join(filepath.Dir(away), "sessions"))), 1)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is there: %v", err)
	}
	if back := ocRun(t, state, env, "--state-dir", state, "undo"); back.exit != ExitDone {
		t.Fatalf("undo: exit %d: %s", back.exit, back.errout)
	}
	want(t, "the agent after undo", everything(t, state, "vault"), before)
	want(t, "the database after undo", fmt.Sprint(tables(t, path)), rows)
}

// Through a gateway as well: what 2026.9.6 does with the directory, the database, the configuration and the rows of the state comes back, and the
// row by which it knows the agent for deleted goes, without which it would not work for it again.
func TestAgentsDeleteADatabaseThroughAGateway(t *testing.T) {
	state, _, env := lived(t)
	dir := vaulted(t, state)
	file, shared := filepath.Join(state, "openclaw.json"), filepath.Join(state, "state", "openclaw.sqlite")
	config := `{"agents": {"entries": {"main": {"default": true}, "vault": {}}}}`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	exec := func(path string, statements ...string) {
		t.Helper()
		db := made[*sql.DB](t)(sql.Open("sqlite", path))
		defer db.Close() //nolint:errcheck // of a test
		for _, text := range statements {
			if _, err := db.Exec(text); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
	exec(
		shared,
		"CREATE TABLE agent_deletion_journal (agent_id TEXT PRIMARY KEY, operation_id TEXT NOT NULL DEFAULT '', cleanup_completed INTEGER NOT NULL DEFAULT 0) STRICT",
		"CREATE TABLE cron_jobs (store_key TEXT NOT NULL, job_id TEXT NOT NULL, agent_id TEXT, PRIMARY KEY (store_key, job_id)) STRICT",
		"INSERT INTO cron_jobs VALUES ('s', 'j1', 'vault'), ('s', 'j2', 'main')",
	)
	files, known := kept(t, dir), fmt.Sprint(tables(t, shared))
	rows := fmt.Sprint(tables(t, filepath.Join(dir, "agent", "openclaw-agent.sqlite")))
	f := fake(t, "2026.9.6", state, func(fakeCall) fakeEnd {
		exec(
			shared, "DELETE FROM agent_databases WHERE agent_id = 'vault'", "DELETE FROM cron_jobs WHERE agent_id = 'vault'",
			"INSERT INTO agent_deletion_journal VALUES ('vault', 'op', 1)", "INSERT INTO cron_jobs VALUES ('s', 'j3', 'main')",
		)
		payload, _ := frameOf(t, "2026.9.6", "agents.delete")
		if err := errors.Join(os.RemoveAll(dir), os.WriteFile(file, []byte(`{"agents": {"entries": {"main": {"default": true}}}}`), 0o600)); err != nil {
			t.Error(err)
		}
		return fakeEnd{payload: payload}
	})
	a := ocRun(t, state, f.env(env), "--state-dir", state, "agents", "delete", "vault", "--yes", "--json")
	if a.exit != ExitDone {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	doc := a.doc(t)
	want(t, "via", dig(doc, "via"), "gateway")
	want(t, "rows", dig(doc, "committed", "rows"), 2.0)
	run, _ := dig(doc, "undo", "run").(string)
	if back := ocRun(t, state, env, "--state-dir", state, "undo", run); back.exit != ExitDone {
		t.Fatalf("undo: exit %d: %s%s", back.exit, back.out, back.errout)
	}
	now := kept(t, dir)
	same(t, "files after undo", now, files)
	want(t, "rows after undo", fmt.Sprint(tables(t, filepath.Join(dir, "agent", "openclaw-agent.sqlite"))), rows)
	want(t, "the configuration after undo", string(made[[]byte](t)(os.ReadFile(file))), config)
	exec(shared, "DELETE FROM cron_jobs WHERE job_id = 'j3'")
	want(t, "what the state knows after undo", fmt.Sprint(tables(t, shared)), known)
}
