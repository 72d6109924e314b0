package agentdb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oc/store/sqlfile"
)

// everything asks for all that this package can read.
func everything(path string) error {
	return Read(context.Background(), path, func(db *DB) error {
		l, err := db.List(Options{Sizes: true, Whole: true})
		if err != nil {
			return err
		}
		for i := range l.Rows {
			key, id := l.Rows[i].Key, l.Rows[i].Columns.SessionID
			_, err1 := db.Windows(key)
			_, err2 := db.Archives(key)
			_, err3 := db.Ends(id, 1000, 1000)
			err4 := db.Events(id, func(Event) error { return nil })
			err5 := db.Active(id, func(Event) error { return nil })
			if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
				return err
			}
		}
		return nil
	})
}

// A damaged file is read, or refused with a reason; nothing worse, and it stays as it is.
func TestDamagedFiles(t *testing.T) {
	good := sample(t, "migrated-23")
	if err := everything(good); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	refused := 0
	for i := range 150 {
		bad := append([]byte(nil), data...)
		switch i % 3 {
		case 0: // single bytes
			for range 1 + rnd.IntN(200) {
				bad[100+rnd.IntN(len(bad)-100)] = byte(rnd.Uint32())
			}
		case 1: // whole pages
			for range 1 + rnd.IntN(5) {
				at := 4096 * (1 + rnd.IntN(len(bad)/4096-1))
				copy(bad[at:at+4096], bad[4096*rnd.IntN(len(bad)/4096):])
			}
		case 2: // cut
			bad = bad[:rnd.IntN(len(bad))]
		}
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		old := time.Unix(1796000000, 0)
		os.Chtimes(path, old, old)
		err := everything(path)
		var where *sqlfile.Error
		switch {
		case err == nil:
		case errors.As(err, &where) && where.Path == path, errors.Is(err, ErrNoSessions):
			refused++
		default:
			t.Errorf("%d: %v", i, err)
		}
		after, err := os.ReadFile(path)
		if err != nil || string(after) != string(bad) {
			t.Errorf("%d: the file changed", i)
		}
	}
	t.Logf("%d refused", refused)
	if refused < 50 {
		t.Errorf("only %d of 150 damaged files were refused", refused)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*-*")); len(left) != 0 {
		t.Errorf("left beside the files: %v", left)
	}
}

// An index that lost its rows hides none of a listing (spec/field-reports.md S17).
func TestListWithoutItsIndex(t *testing.T) {
	path := sample(t, "migrated-23")
	var root int64
	err := sqlfile.Read(context.Background(), path, func(tx *sqlfile.Tx) (err error) {
		root, _, err = tx.Int("SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_session_nodes_1'")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := data[4096*(root-1) : 4096*root]
	clear(page)
	page[0], page[5] = 0x0a, 0x10 // an index leaf with no cells
	l, err := List(context.Background(), database(t, data), Options{})
	if err != nil || len(l.Rows) != 12 || l.Rows[0].Key != "agent:main:cron:job-1" {
		t.Error(len(l.Rows), err)
	}
	if n, err := Count(context.Background(), database(t, data)); n != 12 || err != nil {
		t.Error(n, err)
	}
}

// Rows that are only in the log are listed, with the database closed badly and with it open.
func TestListFromTheLog(t *testing.T) {
	path := sample(t, "migrated-23")
	inside := func() {
		for name, suffix := range map[string][]string{"crash": {"", "-wal", "-shm"}, "backup": {"", "-wal"}} {
			dir := filepath.Join(t.TempDir(), "agent")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, s := range suffix {
				data, err := os.ReadFile(path + s)
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, "openclaw-agent.sqlite"+s), data, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			l, err := List(context.Background(), filepath.Join(dir, "openclaw-agent.sqlite"), Options{})
			if err != nil || len(l.Rows) != 13 || l.Rows[0].Key != "agent:main:aa" {
				t.Errorf("%s: %v", name, err)
			}
			left, _ := os.ReadDir(dir)
			if len(left) != len(suffix) {
				t.Errorf("%s: %v", name, left)
			}
		}
	}
	// The copies are made while the writer still has the database open: closing it would remove the log.
	open := make(chan bool)
	done := make(chan error)
	go func() {
		done <- sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
			_, err := tx.Exec(`INSERT INTO session_nodes (session_key, current_session_id, entry_json, updated_at) VALUES ('agent:main:aa', 's', '{"sessionId":"s","updatedAt":9}', 9)`)
			if err == nil {
				_, err = tx.Exec("COMMIT")
			}
			open <- true
			<-open
			if err == nil {
				_, err = tx.Exec("BEGIN")
			}
			return err
		})
	}()
	<-open
	inside()
	open <- true
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
