package commands

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/store"
)

// databaseChange is a command that changes the databases of [harmable].
type databaseChange struct {
	name   string
	args   []string
	shared bool // the database that all agents share, and it alone
	clean  bool // nothing but the pages of the file: no row changes
}

const (
	harmScratch  = "agent:main:explicit:scratch-1"
	harmArchived = "agent:main:explicit:archived-1"
	harmTelegram = "agent:main:telegram:direct:777"
	harmGroup    = "agent:main:telegram:group:-100123"
)

var databaseChanges = []databaseChange{
	{name: "cleanup", args: []string{"sessions", "cleanup"}},
	{name: "delete", args: []string{"sessions", "delete", harmScratch, "--yes"}},
	{name: "archive", args: []string{"sessions", "archive", harmScratch}},
	{name: "restore", args: []string{"sessions", "restore", harmArchived}},
	{name: "reset", args: []string{"sessions", "reset", harmTelegram}},
	{name: "patch", args: []string{"sessions", "patch", harmTelegram, "--label", "x"}},
	{name: "compact", args: []string{"sessions", "compact", harmGroup, "--keep-recent-tokens", "10"}},
	{name: "compact to lines", args: []string{"sessions", "compact", harmGroup, "--max-lines", "4"}},
	{name: "undo", args: []string{"undo"}},
	{name: "doctor --fix", args: []string{"doctor", "--fix", "columns-differ", "--yes"}},
	{name: "checkpoint", args: []string{"db", "checkpoint", "--store", "{database}"}, clean: true},
	{name: "vacuum", args: []string{"db", "vacuum", "--store", "{database}"}, clean: true},
	{name: "prune", args: []string{"cron", "runs", "--prune"}, shared: true},
}

// harmable is a state with a recorded database, in which a run of oc can be taken back and a row has columns that are not as its JSON, and with
// a shared one of which runs of cron jobs are to go.
func harmable(t *testing.T) (state, path, shared string, env map[string]string) {
	t.Helper()
	state, path, env = migrated(t, "migrated-23")
	shared = store.StateDatabase(state)
	if err := os.MkdirAll(filepath.Dir(shared), 0o700); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(state, "openclaw.json")
	raw := made[[]byte](t)(os.ReadFile(config))
	write(t, config, strings.Replace(string(raw), "{", `{"cron":{"runLog":{"keepLines":3}},`, 1))
	alterDB(t, shared, cronRunRows(800)...)
	alterDB(t, path, "UPDATE session_nodes SET label = 'Door' WHERE session_key = 'agent:main:explicit:old-1'")
	if a := ocRun(t, state, env, "--state-dir", state, "sessions", "delete", "agent:main:explicit:missing-1", "--yes"); a.exit != ExitDone {
		t.Fatal(a.errout)
	}
	return state, path, shared, env
}

func (c *databaseChange) line(state, database string) []string {
	all := []string{"--state-dir", state}
	for _, word := range c.args {
		all = append(all, strings.ReplaceAll(word, "{database}", database))
	}
	return all
}

func (c *databaseChange) database(path, shared string) string {
	if c.shared {
		return shared
	}
	return path
}

// apart are the lines that one of two trees has and the other has not.
func apart(before, now string) string {
	var all []string
	for i, a := range []string{before, now} {
		b := []string{now, before}[i]
		for _, line := range strings.Split(a, "\n") {
			if !strings.Contains("\n"+b+"\n", "\n"+line+"\n") {
				all = append(all, []string{"- ", "+ "}[i]+line)
			}
		}
	}
	return strings.Join(all, "\n")
}

// Unharmed, each of them changes something and ends well: the tests below would prove nothing else.
func TestDatabaseChanges(t *testing.T) {
	for _, c := range databaseChanges {
		state, path, shared, env := harmable(t)
		before := tables(t, c.database(path, shared))
		a := ocRun(t, state, env, c.line(state, c.database(path, shared))...)
		if same := cmp.Equal(before, tables(t, c.database(path, shared))); a.exit != ExitDone && a.exit != ExitFindings || same != c.clean {
			t.Errorf("%s: exit %d, the rows are as before: %t: %s%s", c.name, a.exit, same, a.out, a.errout)
		}
	}
}

// Somebody who has a database locked is waited for, not for ever, and named; nothing is changed, and once he is done it goes on.
func TestDatabaseLocked(t *testing.T) {
	for _, c := range databaseChanges {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			state, path, shared, env := harmable(t)
			db, err := sql.Open("sqlite", c.database(path, shared))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			db.SetMaxOpenConns(1)
			before := ownless(t, state) // this process looks at no file of it while it has the lock: closing it would drop the lock
			if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
				t.Fatal(err)
			}
			line := c.line(state, c.database(path, shared))
			begun := time.Now()
			a := ocProcess(t, env, line...)
			if took := time.Since(begun); a.exit != ExitBusy || took < 3*time.Second || took > 30*time.Second {
				t.Errorf("exit %d after %s: %s%s", a.exit, took, a.out, a.errout)
			}
			if holder := fmt.Sprintf("process %d holds it", os.Getpid()); !strings.Contains(a.errout, holder) || strings.Count(a.errout, holder) > 1 {
				t.Errorf("without %q, or twice: %s", holder, a.errout)
			}
			if _, err := db.Exec("ROLLBACK"); err != nil {
				t.Fatal(err)
			}
			db.Close()
			if now := ownless(t, state); now != before {
				t.Errorf("something was changed: %s", apart(before, now))
			}
			if a := ocProcess(t, env, line...); a.exit != ExitDone && a.exit != ExitFindings {
				t.Errorf("afterwards: exit %d: %s%s", a.exit, a.out, a.errout)
			}
		})
	}
}

// A disk that is full to the last byte: the reason is told, every row stays, nothing of a transaction lies about, and with room it goes on.
func TestDatabaseOnAFullDisk(t *testing.T) {
	for _, c := range databaseChanges {
		t.Run(c.name, func(t *testing.T) {
			made, path, shared, env := harmable(t)
			disk := mounted(t, t.TempDir(), "tmpfs", 0, "size=16m")
			state := filepath.Join(disk, "state")
			if err := os.CopyFS(state, os.DirFS(made)); err != nil {
				t.Fatal(err)
			}
			database := filepath.Join(state, strings.TrimPrefix(c.database(path, shared), made))
			line := c.line(state, database)
			filler := filepath.Join(disk, "filler")
			fill(t, filler)
			before, rows := ownless(t, state), tables(t, database)
			a := ocRun(t, state, env, line...)
			if a.exit != ExitFailed || !strings.Contains(a.errout, "room") && !strings.Contains(a.errout, "no space left") && !strings.Contains(a.errout, "full") {
				t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
			}
			if d := cmp.Diff(rows, tables(t, database)); d != "" {
				t.Errorf("rows were changed: %s", d)
			}
			// SQLite leaves a log that is empty, and the beginning of the memory that goes with it.
			for _, line := range strings.Split(apart(before, ownless(t, state)), "\n") {
				f := strings.Fields(line)
				if line != "" && !(f[0] == "+" && (strings.HasSuffix(f[1], "-wal") && f[4] == "0" || strings.HasSuffix(f[1], "-shm") && f[4] == "3")) {
					t.Errorf("something was changed: %s", line)
				}
			}
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			if a := ocRun(t, state, env, line...); a.exit != ExitDone && a.exit != ExitFindings {
				t.Errorf("with room: exit %d: %s%s", a.exit, a.out, a.errout)
			}
		})
	}
}

// spoilPages overwrites pages of a table or an index: its leaves, or its root where it is one page.
func spoilPages(t *testing.T, path, name string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	if err := db.QueryRow("PRAGMA page_size").Scan(&size); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query("SELECT pageno FROM dbstat WHERE name = ?1 AND pagetype = 'leaf'", name)
	if err != nil {
		t.Fatal(err)
	}
	var pages []int64
	for rows.Next() {
		var page int64
		if err := rows.Scan(&page); err != nil {
			t.Fatal(err)
		}
		pages = append(pages, page)
	}
	rows.Close()
	db.Close()
	if len(pages) == 0 {
		t.Fatalf("%s has no page", name)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, page := range pages {
		at := (page - 1) * size
		if page == 1 {
			t.Fatal("not the first page")
		}
		if _, err := f.WriteAt([]byte(strings.Repeat("\xa5", int(size))), at); err != nil {
			t.Fatal(err)
		}
	}
}

// A database of which pages are damaged, one in quarantine and one that a newer release has upgraded are refused with the reason, and every byte
// stays as it is.
func TestDatabaseHarmed(t *testing.T) {
	quarantine := func(t *testing.T, state, path string) {
		if err := os.MkdirAll(filepath.Join(state, "state"), 0o700); err != nil {
			t.Fatal(err)
		}
		alterDB(t, filepath.Join(state, "state", "openclaw-quarantine.sqlite"), "CREATE TABLE quarantined_databases (path TEXT PRIMARY KEY, reason TEXT)", "INSERT INTO quarantined_databases VALUES ('"+path+"', 'bad page')")
	}
	page := func(agent, shared string) func(t *testing.T, state, path string) {
		return func(t *testing.T, state, path string) {
			if path == store.StateDatabase(state) {
				agent = shared
			}
			spoilPages(t, path, agent)
		}
	}
	for _, h := range []struct {
		name  string
		harm  func(t *testing.T, state, path string)
		says  string
		exits map[string]int // where it is not a refusal: ExitDone for a change that does not meet the harm
	}{
		{"a newer schema", func(t *testing.T, state, path string) {
			if path == store.StateDatabase(state) {
				alterDB(t, path, "PRAGMA user_version = 40", "CREATE TABLE schema_meta (meta_key TEXT, role TEXT, schema_version INTEGER, agent_id TEXT, app_version TEXT)", "INSERT INTO schema_meta VALUES ('primary', 'global', 40, NULL, 'x')")
				return
			}
			alterDB(t, path, "PRAGMA user_version = 40", "UPDATE schema_meta SET schema_version = 40")
		}, "schema", map[string]int{"undo": ExitFailed, "doctor --fix": ExitFindings}},
		{"a quarantine", quarantine, "quarantine", nil},
		{"damaged rows", page("session_nodes", "task_runs"), "damaged", map[string]int{"doctor --fix": ExitFindings}},
		{"a damaged index", page("idx_agent_session_nodes_updated_at", "idx_task_runs_ended"), "", map[string]int{"doctor --fix": ExitDone}},
		{"damaged transcripts", page("transcript_events", "task_runs"), "", map[string]int{"archive": ExitDone, "patch": ExitDone, "restore": ExitDone, "undo": ExitDone, "doctor --fix": ExitDone}},
		{"no database", func(t *testing.T, _, path string) { write(t, path, strings.Repeat("text ", 999)) }, "not an SQLite database", map[string]int{"doctor --fix": ExitFindings}},
	} {
		for _, c := range databaseChanges {
			t.Run(h.name+" "+c.name, func(t *testing.T) {
				state, path, shared, env := harmable(t)
				h.harm(t, state, c.database(path, shared))
				before := ownless(t, state)
				a := ocRun(t, state, env, c.line(state, c.database(path, shared))...)
				exit, ok := h.exits[c.name]
				if !ok {
					exit = ExitRefused
				}
				said := a.errout
				if exit == ExitFindings {
					said += at(t, state, "doctor").out + a.out
				}
				if a.exit != exit || exit != ExitDone && !strings.Contains(said, h.says) {
					t.Errorf("exit %d, want %d, or without %q: %s%s", a.exit, exit, h.says, a.out, a.errout)
				}
				if exit == ExitDone {
					return
				}
				if now := ownless(t, state); now != before {
					t.Errorf("something was changed: %s", apart(before, now))
				}
			})
		}
	}
}
