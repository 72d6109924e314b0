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
	return changing(ctx, path, wait, writePragmas, "PRAGMA synchronous(FULL)", "another process has it open and did not finish in time", func(tx *Tx) error {
		tx.open = false // nothing is to be rolled back
		tx.turn = newTurn(ctx, wait)
		return f(tx)
	})
}
