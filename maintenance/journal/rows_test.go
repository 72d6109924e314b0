package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"oc/store/sqlfile"
)

// database makes one with sessions of a few rows each.
func database(t testing.TB, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(`
		CREATE TABLE nodes (session_key TEXT PRIMARY KEY, entry TEXT);
		CREATE TABLE events (session_key TEXT REFERENCES nodes ON DELETE CASCADE, seq INTEGER, json TEXT, PRIMARY KEY (session_key, seq));
		CREATE TABLE archives (session_key TEXT PRIMARY KEY, blob BLOB);
		INSERT INTO nodes VALUES ('a', 'A'), ('b', 'B'), ('c', 'C');
		INSERT INTO events SELECT session_key, n, entry || n FROM nodes, (SELECT 1 AS n UNION SELECT 2)`)
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// It is made once: a file is copied faster.
var (
	once     sync.Once
	template []byte
)

// rowsOf is all that a database holds.
func rowsOf(t testing.TB, path string) string {
	t.Helper()
	var b strings.Builder
	err := sqlfile.Read(context.Background(), path, func(tx *sqlfile.Tx) error {
		b.Reset()
		for _, q := range []string{
			"SELECT 'node', rowid, session_key, entry FROM nodes ORDER BY 3", "SELECT 'event', rowid, session_key, seq, json FROM events ORDER BY 3, 4",
			"SELECT 'archive', rowid, session_key, CAST(blob AS TEXT) FROM archives ORDER BY 3",
		} {
			err := tx.Each(q, func(r *sqlfile.Row) error {
				fmt.Fprintln(&b, r)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func without1(key string) *Table {
	return &Table{Ties: []string{"session_key"}, Change: func(tx *sqlfile.Tx) error {
		_, err := tx.Exec("INSERT INTO archives VALUES (?, ?)", key, []byte(strings.Repeat(key, 50)))
		if err == nil {
			_, err = tx.Exec("DELETE FROM nodes WHERE session_key = ?", key)
		}
		return err
	}}
}

// rowScene is a database, and a plan that deletes two of its sessions in two transactions, beside files.
func rowScene(t testing.TB, base string) (db string, plan Plan) {
	t.Helper()
	db = filepath.Join(base, "agent", "a.sqlite")
	put(t, filepath.Join(base, "agent", "old.jsonl"), "old", 0o600, time.Hour)
	once.Do(func() {
		path := filepath.Join(t.TempDir(), "a.sqlite")
		database(t, path)
		template, _ = os.ReadFile(path)
	})
	if err := os.WriteFile(db, template, 0o600); err != nil {
		t.Fatal(err)
	}
	archive := func(key string) Step {
		return Step{Kind: Create, Phase: Place, Path: filepath.Join(base, "agent", key+".deleted.zst"), Tie: key, Content: func(w io.Writer) error {
			_, err := io.WriteString(w, strings.Repeat(key, 50))
			return err
		}}
	}
	return db, Plan{Steps: []Step{
		archive("a"), archive("b"),
		{Kind: Rows, Phase: Swap, Path: db, Rows: without1("a")},
		{Kind: Rows, Phase: Swap, Path: db, Rows: without1("b")},
		{Kind: Remove, Phase: Clear, Path: filepath.Join(base, "agent", "old.jsonl")},
	}}
}

func rowJournal(t testing.TB, base string, fs FS) *Journal {
	t.Helper()
	j, err := Open(Options{Base: base, Now: func() time.Time { return t0 }, Wait: time.Second, FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// files are what stands beside the database.
func files(t testing.TB, base string) string {
	t.Helper()
	var b strings.Builder
	for name, v := range tree(t, filepath.Join(base, "agent")) {
		if !strings.HasPrefix(name, "a.sqlite") {
			fmt.Fprintln(&b, name, v)
		}
	}
	return strings.Join(sortedLines(b.String()), "\n")
}

func sortedLines(s string) []string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		for k := i; k > 0 && lines[k] < lines[k-1]; k-- {
			lines[k], lines[k-1] = lines[k-1], lines[k]
		}
	}
	return lines
}

func TestRows(t *testing.T) {
	base := t.TempDir()
	db, plan := rowScene(t, base)
	rows, beside := rowsOf(t, db), files(t, base)
	j := rowJournal(t, base, nil)
	r, err := j.Apply(context.Background(), plan)
	if err != nil {
		t.Fatal(err)
	}
	if want := (sqlfile.Changed{Added: 1, Removed: 3}); r.State != Done || r.Steps[2].Rows.Changed != want || r.Saved == 0 {
		t.Errorf("%+v, changed %+v", r, r.Steps[2].Rows)
	}
	if now := rowsOf(t, db); strings.Contains(now, "node 1 a") || strings.Contains(now, "A1") || !strings.Contains(now, "C") {
		t.Errorf("left:\n%s", now)
	}
	if _, err := os.Stat(db + "-wal"); !os.IsNotExist(err) {
		t.Errorf("the log is not written back: %v", err)
	}
	changed := rowsOf(t, db)
	_, outcomes, err := j.Undo(context.Background(), r.ID, UndoOptions{DryRun: true})
	if err != nil || len(outcomes) != 5 || outcomes[1].Rows != 4 || rowsOf(t, db) != changed {
		t.Errorf("rehearsed: %+v %v", outcomes, err)
	}
	if _, outcomes, err = j.Undo(context.Background(), r.ID, UndoOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, o := range outcomes {
		if o.Result != Restored {
			t.Errorf("%+v", o)
		}
	}
	if got := rowsOf(t, db); got != rows {
		t.Errorf("have\n%swant\n%s", got, rows)
	}
	if got := files(t, base); got != beside {
		t.Errorf("have\n%s\nwant\n%s", got, beside)
	}
	if left, _ := os.ReadDir(filepath.Join(base, ".oc", "undo")); len(left) > 0 {
		t.Errorf("saved bytes are left: %v", left)
	}
}

// A session that somebody made anew stays, and so does the archive of the old one; the rest comes back, and a second undo has no more to do.
func TestRowsChangedSince(t *testing.T) {
	base := t.TempDir()
	db, plan := rowScene(t, base)
	j := rowJournal(t, base, nil)
	r, err := j.Apply(context.Background(), plan)
	if err != nil {
		t.Fatal(err)
	}
	err = sqlfile.Write(context.Background(), db, time.Second, func(tx *sqlfile.Tx) error {
		_, err := tx.Exec("INSERT INTO nodes VALUES ('a', 'another')")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r, outcomes, err := j.Undo(context.Background(), r.ID, UndoOptions{})
	if err != nil {
		t.Fatal(err)
	}
	results := map[string]Result{}
	for _, o := range outcomes {
		results[fmt.Sprint(o.Step, " ", filepath.Base(o.Path))] = o.Result
	}
	want := map[string]Result{
		"0 a.deleted.zst": Conflict, "1 b.deleted.zst": Restored, "2 a.sqlite": Conflict, "3 a.sqlite": Restored, "4 old.jsonl": Restored,
	}
	if fmt.Sprint(results) != fmt.Sprint(want) || r.State != Done {
		t.Errorf("have %v, want %v", results, want)
	}
	now := rowsOf(t, db)
	if !strings.Contains(now, "another") || strings.Contains(now, "A1") || !strings.Contains(now, "B1") || !strings.Contains(now, "{[archive") {
		t.Errorf("%s", now)
	}
	// Once it is out of the way, the rest can come back.
	err = sqlfile.Write(context.Background(), db, time.Second, func(tx *sqlfile.Tx) error {
		_, err := tx.Exec("DELETE FROM nodes WHERE session_key = 'a'")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if r, _, err = j.Undo(context.Background(), r.ID, UndoOptions{}); err != nil || r.State != Undone {
		t.Fatalf("%v %+v", err, r)
	}
	if now := rowsOf(t, db); !strings.Contains(now, "A1") || strings.Contains(now, "{[archive") {
		t.Errorf("%s", now)
	}
}

// A batch that finds other rows than were planned for takes those before it back.
func TestRowsRolledBack(t *testing.T) {
	base := t.TempDir()
	db, plan := rowScene(t, base)
	rows, beside := rowsOf(t, db), files(t, base)
	plan.Steps[3].Rows.Change = func(tx *sqlfile.Tx) error {
		if _, err := tx.Exec("DELETE FROM nodes WHERE session_key = 'c'"); err != nil {
			return err
		}
		return ErrChanged
	}
	for _, purge := range []bool{false, true} {
		plan.Purge = purge
		j := rowJournal(t, base, nil)
		r, err := j.Apply(context.Background(), plan)
		if !errors.Is(err, ErrChanged) || r.State != RolledBack {
			t.Fatalf("%v %+v", err, r)
		}
		if rowsOf(t, db) != rows || files(t, base) != beside {
			t.Errorf("purge %v: not as before", purge)
		}
	}
}

// Purged, nothing is kept when the run is done.
func TestRowsPurged(t *testing.T) {
	base := t.TempDir()
	db, plan := rowScene(t, base)
	plan.Purge = true
	j := rowJournal(t, base, nil)
	r, err := j.Apply(context.Background(), plan)
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Join(base, ".oc", "undo")); len(left) > 0 || r.Saved != 0 || strings.Contains(rowsOf(t, db), "A1") {
		t.Errorf("%v %+v", left, r)
	}
	if _, _, err := j.Undo(context.Background(), r.ID, UndoOptions{}); !errors.Is(err, ErrNoBytes) {
		t.Errorf("got %v", err)
	}
}

// A database with another name, or with a link for a log, is not written.
func TestRowsRefused(t *testing.T) {
	for name, spoil := range map[string]func(db string) error{
		"two names":  func(db string) error { return os.Link(db, db+".2") },
		"log a link": func(db string) error { return os.Symlink("/dev/null", db+"-wal") },
		"a link": func(db string) error {
			return errors.Join(os.Rename(db, db+".real"), os.Symlink(db+".real", db))
		},
	} {
		base := t.TempDir()
		db, plan := rowScene(t, base)
		if err := spoil(db); err != nil {
			t.Fatal(err)
		}
		if _, err := rowJournal(t, base, nil).Apply(context.Background(), plan); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := os.ReadDir(filepath.Join(base, ".oc", "runs")); len(left) > 0 {
			t.Errorf("%s: %v", name, left)
		}
	}
}

// Killed at every operation on a file, or with an error at it, applying and undoing: what is found after the next Recover is the state before or
// the state after, whole; and what is done can be taken back.
func TestRowsFaults(t *testing.T) {
	full := errors.New("input/output error")
	for _, injected := range []error{nil, full} {
		for _, undoing := range []bool{false, true} {
			base := inMemory(t)
			killed := 0
			for n := 1; ; n++ {
				if err := os.RemoveAll(base); err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(base, 0o700); err != nil {
					t.Fatal(err)
				}
				db, plan := rowScene(t, base)
				before := rowsOf(t, db) + files(t, base)
				id := ""
				after := ""
				if undoing {
					r, err := rowJournal(t, base, nil).Apply(context.Background(), plan)
					if err != nil {
						t.Fatal(err)
					}
					id, after = r.ID, rowsOf(t, db)+files(t, base)
				}
				faults := &Faults{FS: OS(), At: n, Err: injected}
				where := fmt.Sprintf("undoing %v, error %v, operation %d", undoing, injected, n)
				stopped := stops(func() {
					j := rowJournal(t, base, faults)
					if undoing {
						_, _, _ = j.Undo(context.Background(), id, UndoOptions{})
					} else {
						_, _ = j.Apply(context.Background(), plan)
					}
				})
				if faults.Count() < n {
					break
				}
				if stopped {
					killed++
				}
				j := rowJournal(t, base, nil)
				if _, err := j.Recover(context.Background()); err != nil {
					t.Fatalf("%s: %v", where, err)
				}
				now := rowsOf(t, db) + files(t, base)
				runs, errs := j.List()
				if len(errs) > 0 || len(runs) > 1 {
					t.Fatalf("%s: %v %+v", where, errs, runs)
				}
				if len(runs) == 1 && runs[0].State == Done {
					if undoing && injected == nil && now != after {
						t.Fatalf("%s: not as after:\n%s", where, now)
					}
					if _, _, err := j.Undo(context.Background(), runs[0].ID, UndoOptions{}); err != nil {
						t.Fatalf("%s: %v", where, err)
					}
					now = rowsOf(t, db) + files(t, base)
				}
				if now != before {
					t.Fatalf("%s: not as before:\n%s\nwas\n%s", where, now, before)
				}
			}
			if injected == nil && killed < 20 {
				t.Errorf("only %d kills", killed)
			}
		}
	}
}

// inMemory is a directory on a file system that makes things durable at once, where there is one.
func inMemory(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "oc-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// stops says whether f was stopped as by a kill.
func stops(f func()) (stopped bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(Stopped); !ok {
				panic(p)
			}
			stopped = true
		}
	}()
	f()
	return false
}
