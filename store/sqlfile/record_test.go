package sqlfile

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// recorded has what OpenClaw's agent databases have: rows that hang on others, triggers that change rows, full-text tables whose rows a trigger
// removes, numbers that are used again.
const recorded = `
CREATE TABLE nodes (session_key TEXT NOT NULL PRIMARY KEY, current_session_id TEXT NOT NULL, entry TEXT NOT NULL, valid INTEGER NOT NULL DEFAULT 0, at REAL, pin BLOB) STRICT;
CREATE TABLE windows (session_id TEXT NOT NULL PRIMARY KEY, session_key TEXT NOT NULL, UNIQUE (session_key, session_id)) STRICT;
CREATE TABLE events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, json TEXT, PRIMARY KEY (session_id, seq), FOREIGN KEY (session_id) REFERENCES windows(session_id) ON DELETE CASCADE) STRICT;
CREATE TABLE members (session_key TEXT NOT NULL REFERENCES nodes(session_key) ON DELETE CASCADE, who TEXT) STRICT;
CREATE TABLE pending (session_key TEXT PRIMARY KEY) STRICT;
CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER NOT NULL);
CREATE TABLE state (session_id TEXT PRIMARY KEY, needs_rebuild INTEGER NOT NULL DEFAULT 0);
CREATE TABLE inputs (seq INTEGER PRIMARY KEY AUTOINCREMENT, session_key TEXT) STRICT;
CREATE VIRTUAL TABLE fts USING fts5(text, session_id UNINDEXED, tokenize = 'unicode61 remove_diacritics 2');
CREATE TABLE fts_rows (id INTEGER PRIMARY KEY, session_id TEXT NOT NULL) STRICT;
CREATE TRIGGER gone AFTER DELETE ON fts_rows BEGIN DELETE FROM fts WHERE rowid = OLD.id; END;
CREATE TRIGGER born AFTER INSERT ON nodes BEGIN UPDATE nodes SET valid = 0 WHERE session_key = NEW.session_key; INSERT OR IGNORE INTO pending VALUES (NEW.session_key); END;
CREATE TRIGGER edited AFTER UPDATE OF entry ON nodes BEGIN UPDATE nodes SET valid = 0 WHERE session_key = NEW.session_key; END;
CREATE TRIGGER counted AFTER DELETE ON events BEGIN UPDATE counter SET n = n + 1; END;
INSERT INTO counter VALUES (1, 0);
PRAGMA user_version = 23;
`

var restoring = Restoring{Derived: []string{"fts", "fts_rows"}, Stale: Stale{Table: "state", Key: "session_id", Column: "needs_rebuild"}}

var recordedTies = []string{"session_key", "session_id", "current_session_id"}

func madeOf(t testing.TB, dir, sql string) string {
	t.Helper()
	path := filepath.Join(dir, "a.sqlite")
	if err := create(path, sql); err != nil {
		t.Fatal(err)
	}
	return path
}

// session makes one with a number of events.
func session(tx *Tx, key, id string, events int, odd string) error {
	exec := func(q string, args ...any) error { _, err := tx.Exec(q, args...); return err }
	err := errors.Join(
		exec("INSERT INTO nodes VALUES (?, ?, ?, 0, ?, ?)", key, id, `{"k":"`+key+odd+`"}`, 1.5, []byte{}),
		exec("INSERT INTO windows VALUES (?, ?)", id, key),
		exec("INSERT INTO members VALUES (?, 'me')", key),
		exec("INSERT INTO inputs (session_key) VALUES (?)", key),
		exec("INSERT INTO state VALUES (?, 0)", id),
		exec("UPDATE nodes SET valid = 1 WHERE session_key = ?", key),
		exec("DELETE FROM pending"),
	)
	for i := range events {
		n, _, e := tx.Int("SELECT coalesce(max(id), 0) + 1 FROM fts_rows")
		err = errors.Join(err, e,
			exec("INSERT INTO events VALUES (?, ?, ?)", id, i, strings.Repeat("x", i*7)+odd),
			exec("INSERT INTO fts (rowid, text, session_id) VALUES (?, ?, ?)", n, "word"+id+" thing "+odd, id),
			exec("INSERT INTO fts_rows VALUES (?, ?)", n, id))
	}
	return err
}

func remove(tx *Tx, key, id string) error {
	var err error
	for _, q := range []string{
		"DELETE FROM fts_rows WHERE session_id = ?2", "DELETE FROM windows WHERE session_id = ?2",
		"DELETE FROM state WHERE session_id = ?2", "DELETE FROM inputs WHERE session_key = ?1", "DELETE FROM nodes WHERE session_key = ?1",
	} {
		_, e := tx.Exec(q, key, id)
		err = errors.Join(err, e)
	}
	return err
}

type failer interface {
	Helper()
	Fatal(args ...any)
}

// create makes a database as OpenClaw does: with a write-ahead log.
func create(path, statements string) error {
	db, err := sql.Open("sqlite", uri(path, "_pragma=journal_mode(WAL)"))
	if err != nil {
		return err
	}
	_, err = db.Exec(statements)
	return errors.Join(err, db.Close())
}

// dumped is every row of every table with its rowid, but for the engine's own.
func dumped(t failer, path string) string {
	t.Helper()
	var b strings.Builder
	err := Read(context.Background(), path, func(tx *Tx) error {
		b.Reset()
		all, err := tx.tables(nil)
		if err != nil {
			return err
		}
		for _, name := range []string{"nodes", "windows", "events", "members", "pending", "counter", "state", "inputs", "fts_content", "fts_rows"} {
			tab := all[name]
			if tab == nil {
				return errors.New("no table " + name)
			}
			err := tx.Each("SELECT _rowid_, "+tab.listed()+" FROM "+name+" ORDER BY _rowid_", func(r *Row) error {
				fmt.Fprintf(&b, "%s", name)
				for _, v := range r.vals {
					fmt.Fprintf(&b, " %T:%q", v, fmt.Sprint(v))
				}
				b.WriteByte('\n')
				return nil
			})
			if err != nil {
				return err
			}
		}
		return tx.Each("SELECT rowid FROM fts WHERE fts MATCH 'thing' ORDER BY rowid", func(r *Row) error {
			n, _ := r.Int(0)
			fmt.Fprintf(&b, "found %d\n", n)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func sound(t testing.TB, path string) {
	t.Helper()
	err := Write(context.Background(), path, time.Second, func(tx *Tx) error {
		_, err := tx.Exec("INSERT INTO fts (fts) VALUES ('integrity-check')")
		ok, _, e := tx.Text("PRAGMA integrity_check")
		if ok != "ok" {
			t.Errorf("integrity: %s", ok)
		}
		return errors.Join(err, e, tx.Each("PRAGMA foreign_key_check", func(r *Row) error { return errors.New("a reference leads nowhere: " + r.Text(0)) }))
	})
	if err != nil {
		t.Error(err)
	}
}

func writeTo(t testing.TB, path string, f func(tx *Tx) error) {
	t.Helper()
	if err := Write(context.Background(), path, time.Second, f); err != nil {
		t.Fatal(err)
	}
}

func recordIn(t testing.TB, path string, f func(tx *Tx) error) *Saved {
	t.Helper()
	var b bytes.Buffer
	if _, err := Record(context.Background(), path, time.Second, Recording{W: &b, Ties: recordedTies}, f); err != nil {
		t.Fatal(err)
	}
	s, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// oddText is none that JSON could hold: it has a NUL, and is no UTF-8.
const oddText = "a\x00b\xff"

func three(t testing.TB, dir string) string {
	path := madeOf(t, dir, recorded)
	writeTo(t, path, func(tx *Tx) error {
		return errors.Join(session(tx, "a", "ida", 3, oddText), session(tx, "b", "idb", 0, ""), session(tx, "c", "idc", 5, "é"))
	})
	return path
}

// Sessions that were deleted come back row for row: with rowids, bytes that are no text, search rows, and what triggers did.
func TestRestoreDeleted(t *testing.T) {
	path := three(t, t.TempDir())
	before := dumped(t, path)
	var b bytes.Buffer
	changed, err := Record(context.Background(), path, time.Second, Recording{W: &b, Ties: recordedTies}, func(tx *Tx) error {
		return errors.Join(remove(tx, "a", "ida"), remove(tx, "c", "idc"))
	})
	if err != nil {
		t.Fatal(err)
	}
	// Events 8, search rows 8, and a node, window, member, input and state each; the counter.
	if want := (Changed{Altered: 1, Removed: 26}); changed != want {
		t.Errorf("changed %+v, want %+v", changed, want)
	}
	s, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(dumped(t, path), "ida") {
		t.Error("a is still there")
	}
	rehearsed, err := s.Rehearse(context.Background(), path, restoring)
	if err != nil {
		t.Fatal(err)
	}
	done, err := s.Restore(context.Background(), path, time.Second, restoring)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, dumped(t, path)); diff != "" {
		t.Error(diff)
	}
	if done.Back != 27+8 || done.Held != 0 || rehearsed.Back != done.Back {
		t.Errorf("%+v, rehearsed %+v", done, rehearsed)
	}
	sound(t, path)
	again, err := s.Restore(context.Background(), path, time.Second, restoring)
	if err != nil || again.Back != 0 || again.Already != done.Back || again.Held != 0 {
		t.Errorf("a second time: %+v %v", again, err)
	}
	if diff := cmp.Diff(before, dumped(t, path)); diff != "" {
		t.Error(diff)
	}
	// Triggers work again for others.
	writeTo(t, path, func(tx *Tx) error { return remove(tx, "a", "ida") })
	sound(t, path)
}

// A session that was used since stays, whole; the others come back. Numbers that were given away are no obstacle.
func TestRestoreBesideLaterChanges(t *testing.T) {
	path := three(t, t.TempDir())
	s := recordIn(t, path, func(tx *Tx) error {
		return errors.Join(remove(tx, "a", "ida"), remove(tx, "b", "idb"), remove(tx, "c", "idc"))
	})
	writeTo(t, path, func(tx *Tx) error { return session(tx, "a", "other", 4, "") }) // takes rowids and search numbers
	since := dumped(t, path)
	done, err := s.Restore(context.Background(), path, time.Second, restoring)
	if err != nil {
		t.Fatal(err)
	}
	sound(t, path)
	now := dumped(t, path)
	if strings.Contains(now, "ida") {
		t.Errorf("half of a came back:\n%s", now)
	}
	for _, line := range strings.Split(since, "\n") {
		if !strings.Contains(line, "other") {
			continue
		}
		if !strings.Contains(now, line+"\n") {
			t.Errorf("what was written since is gone: %s", line)
		}
	}
	if strings.Count(now, "events") != 4+5 {
		t.Errorf("c is not back:\n%s", now)
	}
	if len(done.Conflicts) == 0 || !done.Ties["ida"] || !done.Ties["a"] || done.Ties["idc"] || !done.Stale["idc"] {
		t.Errorf("%+v", done)
	}
	if !strings.Contains(now, `state int64:"3" string:"idc" int64:"1"`) {
		t.Errorf("the search rows of c are not said to be stale:\n%s", now)
	}
}

// A row in the way by another unique index, and a row that hangs on one that the transaction made.
func TestRestoreHindered(t *testing.T) {
	path := three(t, t.TempDir())
	s := recordIn(t, path, func(tx *Tx) error {
		return errors.Join(remove(tx, "a", "ida"), session(tx, "new", "idnew", 1, ""))
	})
	writeTo(t, path, func(tx *Tx) error {
		_, err := tx.Exec("INSERT INTO events VALUES ('idnew', 7, 'since')")
		return err
	})
	done, err := s.Restore(context.Background(), path, time.Second, restoring)
	if err != nil {
		t.Fatal(err)
	}
	sound(t, path)
	now := dumped(t, path)
	if !strings.Contains(now, "idnew") || !strings.Contains(now, "since") || !strings.Contains(now, "ida") {
		t.Errorf("want a back, and new kept, which has an event since:\n%s\n%+v", now, done)
	}
	if len(done.Conflicts) != 1 || !strings.Contains(done.Conflicts[0].Why, "refers") {
		t.Errorf("%+v", done.Conflicts)
	}
}

func TestRestoreOtherSchema(t *testing.T) {
	path := three(t, t.TempDir())
	s := recordIn(t, path, func(tx *Tx) error { return remove(tx, "a", "ida") })
	writeTo(t, path, func(tx *Tx) error { _, err := tx.Exec("PRAGMA user_version = 24"); return err })
	if _, err := s.Restore(context.Background(), path, time.Second, restoring); !errors.Is(err, ErrOther) {
		t.Errorf("got %v", err)
	}
}

// Whether a transaction was committed is seen by looking at the rows.
func TestCommitted(t *testing.T) {
	path := three(t, t.TempDir())
	for name, f := range map[string]func(tx *Tx) error{
		"delete":  func(tx *Tx) error { return remove(tx, "a", "ida") },
		"insert":  func(tx *Tx) error { return session(tx, "n", "idn", 2, "") },
		"replace": func(tx *Tx) error { _, err := tx.Exec("REPLACE INTO windows VALUES ('ida', 'z')"); return err },
		"update":  func(tx *Tx) error { _, err := tx.Exec("UPDATE nodes SET entry = 'e'"); return err },
	} {
		var b bytes.Buffer
		stop := errors.New("stop")
		_, err := Record(context.Background(), path, time.Second, Recording{W: &b, Ties: recordedTies, Ready: func() error { return stop }}, f)
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
		is := func(want bool) {
			t.Helper()
			s, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
			if err != nil {
				t.Fatal(err)
			}
			err = Read(context.Background(), path, func(tx *Tx) error {
				got, known, err := s.Committed(tx)
				if got != want || !known {
					t.Errorf("%s: committed %v %v, want %v", name, got, known, want)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
		is(false)
		b.Reset()
		if _, err := Record(context.Background(), path, time.Second, Recording{W: &b, Ties: recordedTies}, f); err != nil {
			t.Fatal(err)
		}
		is(true)
		s, _ := Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if done, err := s.Restore(context.Background(), path, time.Second, restoring); err != nil || done.Held > 0 {
			t.Fatalf("%+v %v", done, err)
		}
		is(false)
		if _, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len())-1); !errors.Is(err, ErrUncommitted) {
			t.Errorf("cut off: %v", err)
		}
	}
}

// What goes wrong within leaves the database as it was.
func TestRecordFails(t *testing.T) {
	path := three(t, t.TempDir())
	before := dumped(t, path)
	full := errors.New("full")
	_, err := Record(context.Background(), path, time.Second, Recording{W: writerFunc(func([]byte) (int, error) { return 0, full })}, func(tx *Tx) error { return remove(tx, "a", "ida") })
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	for n := 1; ; n++ {
		i := 0
		ctx := Breaking(context.Background(), func(string) error {
			if i++; i == n {
				return full
			}
			return nil
		})
		var b bytes.Buffer
		_, err := Record(ctx, path, time.Second, Recording{W: &b}, func(tx *Tx) error { return remove(tx, "a", "ida") })
		if i < n {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		if !errors.Is(err, full) {
			t.Fatalf("statement %d: %v", n, err)
		}
		if diff := cmp.Diff(before, dumped(t, path)); diff != "" {
			t.Fatalf("statement %d: %s", n, diff)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }

// Whatever a transaction does, taking it back gives the rows as they were.
func TestRestoreAnything(t *testing.T) {
	dir := t.TempDir()
	empty, err := os.ReadFile(madeOf(t, dir, recorded))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		if err := os.WriteFile(path, empty, 0o600); err != nil {
			t.Fatal(err)
		}
		names := []string{"a", "b", "c", "d", "e"}
		step := func(tx *Tx) error {
			k := rapid.SampledFrom(names).Draw(t, "key")
			ignored := func(q string, args ...any) error {
				_, err := tx.Exec(q, args...)
				if err != nil && strings.Contains(err.Error(), "constraint") {
					return nil
				}
				return err
			}
			switch rapid.IntRange(0, 7).Draw(t, "what") {
			case 0, 1:
				if err := session(tx, k, "id"+k, rapid.IntRange(0, 4).Draw(t, "events"), rapid.SampledFrom([]string{"", oddText}).Draw(t, "odd")); err != nil && !strings.Contains(err.Error(), "constraint") {
					return err
				}
				return nil
			case 2:
				return remove(tx, k, "id"+k)
			case 3:
				return ignored("UPDATE nodes SET entry = ?, at = ? WHERE session_key = ?", rapid.String().Draw(t, "entry"), rapid.Float64().Draw(t, "at"), k)
			case 4:
				return ignored("UPDATE OR IGNORE windows SET session_key = ? WHERE session_id = ?", rapid.SampledFrom(names).Draw(t, "to"), "id"+k)
			case 5:
				return ignored("REPLACE INTO nodes VALUES (?, ?, '{}', 1, NULL, NULL)", k, "id"+rapid.SampledFrom(names).Draw(t, "id"))
			case 6:
				return ignored("UPDATE nodes SET session_key = ? WHERE session_key = ?", rapid.SampledFrom(names).Draw(t, "renamed"), k)
			}
			return ignored("DELETE FROM events WHERE seq % 2 = 1")
		}
		steps := func(tx *Tx) error {
			for range rapid.IntRange(0, 8).Draw(t, "steps") {
				if err := step(tx); err != nil {
					return err
				}
			}
			return nil
		}
		if err := Write(context.Background(), path, time.Second, steps); err != nil {
			t.Fatal(err)
		}
		before := dumped(t, path)
		var b bytes.Buffer
		if _, err := Record(context.Background(), path, time.Second, Recording{W: &b, Ties: recordedTies}, steps); err != nil {
			t.Fatal(err)
		}
		s, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		done, err := s.Restore(context.Background(), path, time.Second, restoring)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, dumped(t, path)); diff != "" || done.Held > 0 {
			t.Fatalf("%+v\n%s", done, diff)
		}
	})
}
