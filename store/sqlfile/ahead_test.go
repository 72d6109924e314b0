package sqlfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLogAhead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "db.sqlite")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := LogAhead(path); !errors.Is(err, ErrNotDatabase) {
		t.Errorf("an empty file: %v", err)
	}
	if err := LogAhead(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	write := func(sql string) {
		t.Helper()
		if err := Write(context.Background(), path, time.Second, func(tx *Tx) error { _, err := tx.Exec(sql); return err }); err != nil {
			t.Fatal(err)
		}
	}
	write("CREATE TABLE t (x)")
	if err := LogAhead(path); err != nil {
		t.Fatal(err)
	}
	err := Write(context.Background(), path, time.Second, func(tx *Tx) error {
		if _, err := tx.Exec("INSERT INTO t VALUES (1)"); err != nil {
			return err
		}
		if _, err := os.Stat(path + "-wal"); err != nil {
			t.Errorf("it has no log while it is written: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	write("INSERT INTO t VALUES (2)")
	err = Read(context.Background(), path, func(tx *Tx) error {
		if n, _, err := tx.Int("SELECT count(*) FROM t"); n != 2 || err != nil {
			t.Errorf("%d rows: %v", n, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d files are left", len(left))
	}
}

func TestTurn(t *testing.T) {
	began := time.Now()
	w := newTurn(context.Background(), 60*time.Millisecond)
	seen := map[time.Duration]bool{}
	for last := time.Duration(0); w.wait(); last = time.Since(began) {
		seen[(time.Since(began)-last)/time.Microsecond] = true
		if w.pause > longestPause {
			t.Fatalf("it would pause for %v", w.pause)
		}
	}
	if took := time.Since(began); took < 59*time.Millisecond {
		t.Errorf("it gave up after %v", took)
	}
	if len(seen) < 3 {
		t.Errorf("pauses %v", seen)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if newTurn(ctx, time.Hour).wait() {
		t.Error("it waits though nobody does")
	}
}
