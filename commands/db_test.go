package commands

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"oc/fixtures"
)

// demoTree is a copy of the demo state, and the path of the database in it.
func demoTree(t *testing.T) (root, database string) {
	t.Helper()
	root = t.TempDir()
	if err := fixtures.Demo().Write(root); err != nil {
		t.Fatal(err)
	}
	return root, filepath.Join(root, "agents", "main", "agent", "openclaw-agent.sqlite")
}

// bloat leaves free pages in a database and a log beside it, as a gateway that was killed does; the returned function ends
// the connection that keeps the log there.
func bloat(t *testing.T, path string) {
	t.Helper()
	side := filepath.Join(t.TempDir(), "side.sqlite")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=wal_autocheckpoint(0)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	for _, s := range []string{"CREATE TABLE junk (b BLOB)", "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i+1 FROM n WHERE i < 200) INSERT INTO junk SELECT randomblob(2000) FROM n", "PRAGMA wal_checkpoint(TRUNCATE)", "DROP TABLE junk"} {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	// What is on the disk now is what a kill would leave.
	for _, tail := range []string{"", "-wal", "-shm"} {
		copyTo(t, path+tail, side+tail)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tail := range []string{"", "-wal", "-shm"} {
		copyTo(t, side+tail, path+tail)
	}
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func sessionsOf(t *testing.T, root string) string {
	t.Helper()
	a := at(t, root, "sessions", "list", "--json", "--limit", "all")
	if a.exit != ExitDone {
		t.Fatal(a.errout)
	}
	return a.out
}

// db status says what is there, as text and as a document, checks a copy, and leaves no trace.
func TestDBStatus(t *testing.T) {
	root, path := demoTree(t)
	bloat(t, path)
	before := tree(t, root)
	a := at(t, root, "db", "status", "--check")
	for _, want := range []string{"The database of agent main", "23, stamped by 2026.9.6", "Check   sound", "transcript_events", "agent:main:main", "delivery"} {
		if a.exit != ExitDone || !strings.Contains(a.out, want) {
			t.Errorf("exit %d, without %q:\n%s%s", a.exit, want, a.out, a.errout)
		}
	}
	if !strings.Contains(a.errout, "checking a private copy in") || !strings.Contains(a.errout, "are free there") {
		t.Errorf("the room is not said first: %s", a.errout)
	}
	a = at(t, root, "db", "status", "--json", "--limit", "1000")
	var doc struct {
		Databases []struct {
			Path, Role, AgentID string
			Schema              int
			Bytes, WalBytes     int64
			FreePages           int64
			PageSize, Pages     int64
			Tables              []struct{ Bytes int64 }
			Holds               struct{ Sessions int }
			LargestSessions     []struct{ Key *string }
		}
	}
	if err := json.Unmarshal([]byte(a.out), &doc); err != nil || a.exit != ExitDone || len(doc.Databases) != 1 {
		t.Fatalf("exit %d %v: %s%s", a.exit, err, a.out, a.errout)
	}
	d, total := doc.Databases[0], int64(0)
	for _, x := range d.Tables {
		total += x.Bytes
	}
	if d.Role != "agent" || d.Schema != 23 || d.WalBytes == 0 || d.FreePages < 100 || d.Holds.Sessions != 14 || total+d.FreePages*d.PageSize > d.Pages*d.PageSize || len(d.LargestSessions) != 15 {
		t.Errorf("%+v, the tables have %d", d, total)
	}
	if now := tree(t, root); now != before {
		t.Errorf("something was changed:\n%s", now)
	}
}

// What is wrong with a database is told, and gives the exit status of its kind.
func TestDBStatusBadInput(t *testing.T) {
	for name, x := range map[string]struct {
		spoil func(t *testing.T, root, path string)
		exit  int
		says  string
	}{
		"none": {func(t *testing.T, _, path string) { os.Remove(path) }, ExitFailed, "there is no database here"},
		"text": {func(t *testing.T, _, path string) { os.WriteFile(path, []byte(strings.Repeat("text ", 999)), 0o600) }, ExitFailed, "not an SQLite database"},
		"cut":  {func(t *testing.T, _, path string) { os.Truncate(path, 3000) }, ExitFailed, "is damaged"},
		"newer": {func(t *testing.T, _, path string) {
			alterDB(t, path, "PRAGMA user_version = 40", "UPDATE schema_meta SET schema_version = 40")
		}, ExitFindings, "schema 40, newer than oc knows"},
		"index": {func(t *testing.T, _, path string) {
			var page int64
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if err := db.QueryRow("SELECT pageno FROM dbstat WHERE name = 'idx_agent_session_nodes_updated_at' AND pagetype = 'leaf' LIMIT 1").Scan(&page); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt(make([]byte, 500), (page-1)*512+8); err != nil {
				t.Fatal(err)
			}
		}, ExitFindings, "does not pass SQLite's check"},
		"references": {func(t *testing.T, _, path string) {
			alterDB(t, path, "PRAGMA foreign_keys = 0", "DELETE FROM session_windows WHERE session_key = 'agent:main:main'")
		}, ExitFindings, "refers to one of session_windows that is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			root, path := demoTree(t)
			x.spoil(t, root, path)
			a := at(t, root, "db", "status", "--check", "--store", path)
			if a.exit != x.exit || !strings.Contains(a.errout, x.says) {
				t.Errorf("exit %d, not %d, or without %q: %s", a.exit, x.exit, x.says, a.errout)
			}
		})
	}
}

func alterDB(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// A checkpoint takes the log in, a vacuum the free pages out; the sessions are as before.
func TestDBCheckpointAndVacuum(t *testing.T) {
	root, path := demoTree(t)
	want := sessionsOf(t, root)
	bloat(t, path)
	size := func(tail string) int64 {
		info, err := os.Stat(path + tail)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	before := tree(t, root)
	for _, what := range []string{"checkpoint", "vacuum"} {
		if a := at(t, root, "db", what, "--dry-run"); a.exit != ExitDone || !strings.Contains(a.out, "nothing was changed") || tree(t, root) != before {
			t.Fatalf("%s: exit %d: %s%s", what, a.exit, a.out, a.errout)
		}
	}
	fat := size("")
	if a := at(t, root, "db", "checkpoint"); a.exit != ExitDone || size("-wal") != 0 || size("") < fat-4096 || !strings.Contains(a.out, "sound") {
		t.Errorf("exit %d, %d bytes and a log of %d: %s%s", a.exit, size(""), size("-wal"), a.out, a.errout)
	}
	if got := sessionsOf(t, root); got != want {
		t.Errorf("after the checkpoint: %s", got)
	}
	a := at(t, root, "db", "vacuum", "--json")
	if a.exit != ExitDone || size("") > fat-200*1900 || size("-wal") != 0 || !strings.Contains(a.out, `"sound": true`) || !strings.Contains(a.errout, "this takes") {
		t.Errorf("exit %d, %d of %d bytes: %s%s", a.exit, size(""), fat, a.out, a.errout)
	}
	if got := sessionsOf(t, root); got != want {
		t.Errorf("after the vacuum: %s", got)
	}
	if a := at(t, root, "db", "status", "--check"); a.exit != ExitDone {
		t.Errorf("exit %d: %s", a.exit, a.errout)
	}
}

// What must not be written to is not.
func TestDBVacuumRefusals(t *testing.T) {
	for name, x := range map[string]struct {
		spoil func(t *testing.T, root, path string) (end func())
		exit  int
		says  string
	}{
		"a second name": {func(t *testing.T, root, path string) func() {
			if err := os.Link(path, filepath.Join(root, "twin")); err != nil {
				t.Fatal(err)
			}
			return nil
		}, ExitRefused, "2 names"},
		"newer": {func(t *testing.T, _, path string) func() {
			alterDB(t, path, "PRAGMA user_version = 40", "UPDATE schema_meta SET schema_version = 40")
			return nil
		}, ExitRefused, "newer than oc knows"},
		"damaged": {func(t *testing.T, _, path string) func() {
			alterDB(t, path, "PRAGMA foreign_keys = 0", "UPDATE session_windows SET session_key = 'agent:main:nobody'")
			return nil
		}, ExitRefused, "does not pass SQLite's check"},
		"quarantined": {func(t *testing.T, root, path string) func() {
			if err := os.MkdirAll(filepath.Join(root, "state"), 0o700); err != nil {
				t.Fatal(err)
			}
			alterDB(t, filepath.Join(root, "state", "openclaw-quarantine.sqlite"), "CREATE TABLE quarantined_databases (path TEXT PRIMARY KEY, reason TEXT)", "INSERT INTO quarantined_databases VALUES ('"+path+"', 'bad page')")
			return nil
		}, ExitRefused, "quarantine"},
		"a reader": {func(t *testing.T, _, path string) func() {
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec("UPDATE session_nodes SET label = 'x'"); err != nil {
				t.Fatal(err)
			}
			return func() { tx.Rollback(); db.Close() }
		}, ExitBusy, "busy"},
	} {
		t.Run(name, func(t *testing.T) {
			root, path := demoTree(t)
			if end := x.spoil(t, root, path); end != nil {
				defer end()
			}
			was, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			a := at(t, root, "db", "vacuum")
			if a.exit != x.exit || !strings.Contains(a.errout, x.says) {
				t.Errorf("exit %d, not %d, or without %q: %s", a.exit, x.exit, x.says, a.errout)
			}
			if now, err := os.ReadFile(path); err != nil || string(now) != string(was) {
				t.Errorf("it was changed: %v", err)
			}
		})
	}
}
