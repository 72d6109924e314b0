package commands

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/store/sqlfile"
)

// What 2026.8.2 and 2026.9.6 printed for the cleanup of databases that they had made. A dry run leaves everything as it is; what is enforced
// leaves as many sessions as OpenClaw left, and comes back row by row in every table.
func TestCleanupOfDatabasesAsOpenClaw(t *testing.T) {
	for _, name := range []string{"2026.8.2-migrated", "2026.9.6-migrated", "2026.9.6-cleanup"} {
		var c struct {
			Now  json.Number
			Runs []struct {
				Args []string
				Now  json.Number
				JSON json.RawMessage
			}
		}
		readJSON(t, golden+"/sqlite/"+name+".json", &c)
		cleanups := 0
		for _, r := range c.Runs {
			line := strings.Join(r.Args, " ")
			if !strings.Contains(line, "cleanup") {
				continue
			}
			cleanups++
			root := t.TempDir()
			state := filepath.Join(root, ".openclaw")
			unpack(t, golden+"/sqlite/"+name+".tar.gz", state)
			path := filepath.Join(state, "agents", "main", "agent", "openclaw-agent.sqlite")
			rows, before := tables(t, path), tree(t, state)
			now := r.Now.String()
			if now == "" {
				now = c.Now.String()
			}
			env := quiet(t, 0)
			env["HOME"], env["OC_NOW"] = root, now
			a := ocRun(t, root, env, r.Args...)
			if a.exit != ExitDone {
				t.Fatalf("%s: exit %d: %s", line, a.exit, a.errout)
			}
			var want, got map[string]any
			if err := json.Unmarshal([]byte(strings.ReplaceAll(string(r.JSON), "@STATE@", state)), &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(a.out), &got); err != nil {
				t.Fatal(err)
			}
			budget := want["diskBudget"].(map[string]any) // sizes are those of the moment
			for k := range budget {
				if k != "maxBytes" && k != "highWaterBytes" && k != "overBudget" {
					delete(budget, k)
				}
			}
			if want["dryRun"] == false {
				delete(want["unreferencedArtifacts"].(map[string]any), "scannedFiles")
			}
			if d := differs(want, got, "$"); d != "" {
				t.Errorf("%s: %s", line, d)
			}
			if want["dryRun"] == true {
				if tree(t, state) != before {
					t.Errorf("%s: a rehearsal changed the tree", line)
				}
				continue
			}
			if cmp.Equal(rows, tables(t, path)) {
				t.Errorf("%s: nothing was changed", line)
			}
			if a := ocRun(t, root, env, "undo"); a.exit != ExitDone {
				t.Fatalf("undo: exit %d: %s", a.exit, a.errout)
			}
			if d := cmp.Diff(rows, tables(t, path)); d != "" {
				t.Errorf("%s, taken back: %s", line, d)
			}
		}
		if cleanups == 0 {
			t.Errorf("%s: nothing was compared", name)
		}
	}
}

// Sessions that are deleted from a database take what is theirs alone, and leave an archive; by hand too, and all of it comes back.
func TestDeleteFromDatabases(t *testing.T) {
	const (
		scratch = "agent:main:explicit:scratch-1"
		job     = "agent:main:cron:job-1"
		run     = "agent:main:cron:job-1:run:00000004-1111-4222-8333-000000000004"
		shared  = "00000004-1111-4222-8333-000000000004"
	)
	for _, name := range []string{"migrated-19", "migrated-23"} {
		for _, c := range []struct {
			line     string
			gone     []string
			archives int
			window   string // of the shared transcript: its owner afterwards; "" where it is gone
		}{
			{"sessions delete " + scratch + " --yes", []string{scratch}, 1, run},
			{"sessions delete " + job + " --yes", []string{job}, 0, run},
			{"sessions delete " + run + " --yes", []string{run}, 0, job},
			{"sessions delete " + job + " " + run + " --yes", []string{job, run}, 1, ""},
			{"sessions cleanup --older-than 35d --include-protected", []string{"agent:main:explicit:old-1", "agent:main:subagent:00000050-1111-4222-8333-000000000050"}, 2, run},
			{"sessions cleanup --kind explicit --empty", []string{"agent:main:explicit:missing-1"}, 0, run},
		} {
			state, path, env := migrated(t, name)
			before := tables(t, path)
			args := append(strings.Fields(c.line), "--state-dir", state)
			if a := ocRun(t, state, env, args...); a.exit != ExitDone {
				t.Fatalf("%s, %s: exit %d: %s", name, c.line, a.exit, a.errout)
			}
			after := tables(t, path)
			if n := len(before["session_nodes"]) - len(after["session_nodes"]); n != len(c.gone) {
				t.Errorf("%s, %s: %d rows went, want %d", name, c.line, n, len(c.gone))
			}
			for _, key := range c.gone {
				for table, rows := range after {
					if table == "session_transcript_archives" {
						continue
					}
					for _, row := range rows {
						if strings.Contains(row, "string "+key+"|") {
							t.Errorf("%s, %s: left in %s: %s", name, c.line, table, row)
						}
					}
				}
			}
			owner := ""
			for _, row := range after["session_windows"] {
				if strings.HasPrefix(row, "string "+shared+"|") {
					owner = strings.TrimPrefix(strings.Split(row, "|")[1], "string ")
				}
			}
			if owner != c.window {
				t.Errorf("%s, %s: the shared transcript is of %q, want %q", name, c.line, owner, c.window)
			}
			files, _ := filepath.Glob(filepath.Join(state, "agents", "main", "sessions", "*.deleted.*.zst"))
			if len(files) != c.archives || len(after["session_transcript_archives"]) != c.archives {
				t.Errorf("%s, %s: %d files and %d rows of archives, want %d", name, c.line, len(files), len(after["session_transcript_archives"]), c.archives)
			}
			if a := ocRun(t, state, env, "undo", "--state-dir", state); a.exit != ExitDone {
				t.Fatalf("%s, %s, undo: exit %d: %s", name, c.line, a.exit, a.errout)
			}
			if d := cmp.Diff(before, tables(t, path)); d != "" {
				t.Errorf("%s, %s, taken back: %s", name, c.line, d)
			}
			if files, _ = filepath.Glob(filepath.Join(state, "agents", "main", "sessions", "*.deleted.*.zst")); len(files) > 0 {
				t.Errorf("%s, %s: archives are left: %v", name, c.line, files)
			}
		}
	}
}

// What must not be changed is not: the reason is told, with the exit status, and every byte stays.
func TestDatabasesThatAreNotCleaned(t *testing.T) {
	for name, c := range map[string]struct {
		sql  string
		exit int
		says string
	}{
		"newer schema":      {"PRAGMA user_version = 24", ExitRefused, "schema is 24"},
		"older schema":      {"PRAGMA user_version = 22", ExitRefused, "schema is 22"},
		"trigger":           {"CREATE TRIGGER odd AFTER DELETE ON session_nodes BEGIN SELECT 1; END", ExitRefused, "trigger odd"},
		"two stamps":        {"UPDATE schema_meta SET schema_version = 21", ExitRefused, "stamps"},
		"column that fills": {"ALTER TABLE session_windows ADD COLUMN odd TEXT NOT NULL DEFAULT 'x'", ExitRefused, "session_windows.odd"},
	} {
		state, path, env := migrated(t, "migrated-23")
		err := sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error { _, err := tx.Exec(c.sql); return err })
		if err != nil {
			t.Fatal(err)
		}
		before := tree(t, state)
		for _, line := range []string{"sessions cleanup", "sessions delete agent:main:explicit:scratch-1 --yes"} {
			a := ocRun(t, state, env, append(strings.Fields(line), "--state-dir", state)...)
			if a.exit != c.exit || !strings.Contains(a.errout, c.says) {
				t.Errorf("%s, %s: exit %d: %s", name, line, a.exit, a.errout)
			}
			if now := tree(t, state); now != before {
				t.Errorf("%s, %s: something was changed", name, line)
			}
		}
	}
	// Two names of one file.
	state, path, env := migrated(t, "migrated-23")
	if err := os.Link(path, path+".other"); err != nil {
		t.Fatal(err)
	}
	rows := tables(t, path)
	if a := ocRun(t, state, env, "sessions", "delete", "agent:main:explicit:scratch-1", "--yes", "--state-dir", state); a.exit != ExitRefused || !strings.Contains(a.errout, "2 names") {
		t.Errorf("a hard link: exit %d: %s", a.exit, a.errout)
	}
	if d := cmp.Diff(rows, tables(t, path)); d != "" {
		t.Error(d)
	}
}

// One bad row is a finding, and the others are cleaned: a row whose JSON and columns disagree, and one whose key is not canonical.
func TestCleanupOfDatabaseWithBadRows(t *testing.T) {
	state, path, env := migrated(t, "migrated-23")
	err := sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
		_, err := tx.Exec("UPDATE session_nodes SET updated_at = updated_at - 1 WHERE session_key = 'agent:main:explicit:old-1'")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	a := ocRun(t, state, env, "sessions", "cleanup", "--json", "--state-dir", state)
	if a.exit != ExitDone || !strings.Contains(a.errout, "agent:main:explicit:old-1") {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	rows := fmt.Sprint(tables(t, path)["session_nodes"])
	if !strings.Contains(rows, "explicit:old-1") || strings.Contains(rows, "subagent:00000050") {
		t.Errorf("%s", rows)
	}
}

// The databases of all agents are cleaned by one command, and come back by one undo.
func TestCleanupOfDatabasesIsOneCommand(t *testing.T) {
	root := t.TempDir()
	state := filepath.Join(root, ".openclaw")
	unpack(t, golden+"/sqlite/2026.9.6-cleanup.tar.gz", state)
	env := quiet(t, 0)
	env["HOME"], env["OC_NOW"] = root, "1796052342747"
	all := func() (rows []any) {
		for _, agent := range []string{"main", "work"} {
			rows = append(rows, tables(t, filepath.Join(state, "agents", agent, "agent", "openclaw-agent.sqlite")))
		}
		return rows
	}
	before := all()
	for _, line := range []string{"sessions cleanup --all-agents --enforce", "undo"} {
		if a := ocRun(t, root, env, strings.Fields(line)...); a.exit != ExitDone {
			t.Fatalf("oc %s: exit %d: %s", line, a.exit, a.errout)
		}
		if same := cmp.Equal(before, all()); same != (line == "undo") {
			t.Errorf("after oc %s the rows are as before: %v", line, same)
		}
	}
}

// A row that OpenClaw would not take as it stands is named and skipped, and the rest of the cleanup is done.
func TestCleanupSkipsARowThatDoesNotFit(t *testing.T) {
	state, path, env := migrated(t, "migrated-23")
	const old, odd = "agent:main:explicit:old-1", "agent:main:explicit:Old-1"
	db := made[*sql.DB](t)(sql.Open("sqlite", path))
	for _, table := range []string{"session_nodes", "session_windows"} {
		if _, err := db.Exec("UPDATE "+table+" SET session_key = ?1 WHERE session_key = ?2", odd, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	a := ocRun(t, state, env, "--state-dir", state, "--offline", "--json", "sessions", "cleanup", "--enforce")
	if a.exit != ExitDone || !strings.Contains(a.errout, odd) || !strings.Contains(a.errout, "canonical") {
		t.Errorf("exit %d: %s", a.exit, a.errout)
	}
	doc := a.doc(t)
	want(t, "pruned", dig(doc, "pruned"), 1.0)
	want(t, "archived", dig(doc, "archived"), 0.0)
	for _, row := range tables(t, path)["session_nodes"] {
		if strings.Contains(row, odd) && strings.Contains(row, "age-retention") {
			t.Errorf("it was changed: %s", row)
		}
	}
}
