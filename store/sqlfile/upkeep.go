package sqlfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// Checkpoint writes the write-ahead log of a database back into the file and empties it, as SQLite does it. Who reads or
// writes the file is waited for, for so long, and then it is [ErrBusy] and the rest of the log stays where it is. A
// database without a log is none the worse for it.
func Checkpoint(ctx context.Context, path string, wait time.Duration) error {
	return alone(ctx, path, wait, func(tx *Tx) error {
		for {
			blocked, _, err := tx.Int("PRAGMA wal_checkpoint(TRUNCATE)")
			if err != nil && !errors.Is(err, errLocked) {
				return err
			}
			if err == nil && blocked == 0 {
				return nil
			}
			if !tx.turn.wait() {
				return errLocked
			}
		}
	})
}

// Vacuum writes a database anew without its free pages, in one transaction, and empties its log. It takes room:
// [VacuumRoom]. Who has it open is waited for, for so long, and then it is [ErrBusy] and nothing happened.
func Vacuum(ctx context.Context, path string, wait time.Duration) error {
	err := alone(ctx, path, wait, func(tx *Tx) error {
		err := tx.insist("VACUUM")
		return tx.wrap(err)
	})
	if err != nil {
		return err
	}
	return Checkpoint(ctx, path, wait)
}

// VacuumRoom says which directories a [Vacuum] of the database needs room in, and how many bytes in each: for the new
// content while it is made, and for the log that it goes through.
func VacuumRoom(path string) (need map[string]int64, err error) {
	file, log, err := Sizes(path)
	if err != nil {
		return nil, err
	}
	real, err := resolve(path)
	if err != nil {
		return nil, err
	}
	need = map[string]int64{}
	need[tempDir()] += file + log
	need[filepath.Dir(real)] += file + log
	return need, nil
}

// tempDir is where SQLite makes its temporary files on a system like Unix.
func tempDir() string {
	for _, dir := range []string{os.Getenv("SQLITE_TMPDIR"), os.Getenv("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp"} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return "."
}

// alone calls f with the existing database open for writing and no transaction begun.
func alone(ctx context.Context, path string, wait time.Duration, f func(tx *Tx) error) error {
	real, err := resolve(path)
	if err != nil {
		return err
	}
	defer faultsPanic()()
	was, err := look(real)
	if err != nil {
		return wrap(path, "write", err)
	}
	late := func() error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return busy(path, "write", "another process has it open and did not finish in time")
	}
	waited, cancel := context.WithTimeout(ctx, max(wait, time.Millisecond))
	p, err := enter(waited, was.main.id, writing)
	cancel()
	if err != nil {
		return late()
	}
	defer p.leave()
	t := newTurn(ctx, wait)
	var tx *Tx
	for {
		tx, err = beginIn(ctx, t, uri(real, "mode=rw", writePragmas), path, Writing, &Cost{Attempts: 1}, "PRAGMA synchronous(FULL)")
		if !errors.Is(err, errLocked) {
			break
		}
		if !t.wait() {
			return late()
		}
	}
	if err != nil {
		return err
	}
	defer tx.close()
	tx.open = false // nothing is to be rolled back
	tx.turn = newTurn(ctx, wait)
	if err := f(tx); errors.Is(err, errLocked) {
		return late()
	} else if err != nil {
		return err
	}
	return nil
}
