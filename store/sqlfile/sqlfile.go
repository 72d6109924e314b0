// Package sqlfile opens SQLite files. It is the only room that does.
//
// OpenClaw keeps its sessions in databases that a gateway may be writing, that a crash may have left with a write-ahead
// log, or that lie in a directory where nothing can be created. [Read] gives one snapshot of such a file and leaves the
// file, its -wal, its -shm and its directory exactly as they were (rules 1 and 2 of the design; spec/sqlite-store.md
// 4.3, measured with SQLite 3.54):
//
//   - no -wal, or an empty one: opened as immutable, then checked to be still the same file without a log;
//   - a -wal and a -shm: opened read-only over a read-only shared memory, beside whoever writes;
//   - a -wal without a usable -shm, or a hot -journal: a private copy;
//   - a database of the rollback-journal kind that keeps changing: read-only under SQLite's lock, which makes no side file.
//
// A private copy is made in the directory for temporary files, or where that lies within the state, in another. On Linux
// the copy has no name while it is filled, and loses it again as soon as SQLite has it open; in between, while SQLite
// reads the log, it stands as oc-read-<digits>/copy.sqlite. A process that is killed then (elsewhere: while it copies)
// leaves that behind, and the next copy that is made in the same place removes it. Where files can have no name, as on
// Windows, it stands until the read is over and is not removed by others. A copy without a name is kept open for a
// minute, for the next read of the same files while they do not change, and ends with the process.
//
// [Write] changes an existing file in one immediate transaction. It never creates one.
//
// POSIX locks belong to the process: closing any descriptor of a file drops all its locks. This room therefore knows
// which files the process has open and how, and lets uses that would break each other's locks wait for each other.
// Nobody else may open a database file while it is in use here.
package sqlfile

import (
	"context"
	"errors"
	"time"
)

// Mode is how a file was opened.
type Mode int

const (
	Immutable    Mode = iota // there was no log: the file alone, unlocked, checked afterwards
	SharedMemory             // beside the writers, over their -wal and -shm
	PrivateCopy              // a copy in the temporary directory, already unlinked
	Locked                   // a database without a write-ahead log that kept changing: under SQLite's own read lock
	Writing                  // opened by Write
)

func (m Mode) String() string {
	switch m {
	case Immutable:
		return "immutable"
	case SharedMemory:
		return "shared memory"
	case PrivateCopy:
		return "private copy"
	case Locked:
		return "locked"
	case Writing:
		return "writing"
	}
	return "unknown"
}

// Cost is what it took to get a snapshot.
type Cost struct {
	Attempts int   // times the file was opened, 1 if it held still
	Copied   int64 // bytes copied to the temporary directory

	odd bool // the pages were no good for Parts
}

// How long a read waits for a file that is locked, and how often it tries one that does not hold still.
const (
	patience = 2 * time.Second
	maxMoved = 30
	maxPause = 50 * time.Millisecond
)

// Read calls f with one read transaction on one snapshot of the database at path, whose symlinks are followed.
//
// If the file changed under an unlocked read, what f saw is void and f is called again from the start: it must begin
// by forgetting what it collected. Its errors count only if the snapshot held. One who cannot start over, because
// what was read has already left the process, asks [Tx.Still] before letting go of a batch.
//
// Errors are an [*Error] for the file (errors.Is: [ErrBusy], [ErrCorrupt], [ErrNotDatabase], [ErrNoRoom],
// fs.ErrNotExist, fs.ErrPermission), the context's error, or f's own.
func Read(ctx context.Context, path string, f func(tx *Tx) error) error {
	return read(ctx, path, readOnce, f)
}

// ReadCopy is Read from a private copy, whatever lies beside the file: for a look that takes so long that a writer would
// feel it, or that is to be of nothing that others have open. [CopyRoom] says beforehand what that takes.
func ReadCopy(ctx context.Context, path string, f func(tx *Tx) error) error {
	return read(ctx, path, func(ctx context.Context, real, path string, _ int, cost *Cost, f func(*Tx) error) error {
		was, err := look(real)
		if err != nil {
			return wrap(path, "read", err)
		}
		return readCopy(ctx, was, path, cost, f)
	}, f)
}

type attempt func(ctx context.Context, real, path string, moved int, cost *Cost, f func(*Tx) error) error

func read(ctx context.Context, path string, once attempt, f func(tx *Tx) error) error {
	real, err := resolve(path)
	if err != nil {
		return err
	}
	defer faultsPanic()()
	var cost Cost
	var waited time.Duration
	moved := 0
	for pause := time.Millisecond; ; pause = min(2*pause, maxPause) {
		cost.Attempts++
		began := time.Now() // how long a lock kept us waiting; no time that anyone is told
		err := once(ctx, real, path, moved, &cost, f)
		switch {
		case again(err) && ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errMoved):
			if moved++; moved == maxMoved {
				return busy(path, "read", "it kept changing while it was read; try again")
			}
		case errors.Is(err, errLocked):
			if waited += time.Since(began) + pause; waited > patience {
				return busy(path, "read", "another process keeps it locked; try again, or see who has it open")
			}
		default:
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// again says whether a read that ended so is to be tried once more.
func again(err error) bool { return errors.Is(err, errMoved) || errors.Is(err, errLocked) }

func busy(path, doing, detail string) error {
	return &Error{Path: path, Doing: doing, Kind: ErrBusy, Detail: detail}
}

// readOnce tries the way that fits what lies beside the file now.
func readOnce(ctx context.Context, real, path string, moved int, cost *Cost, f func(*Tx) error) error {
	was, err := look(real)
	if err != nil {
		return wrap(path, "read", err)
	}
	if moved >= 3 && !was.wal.exists {
		err := readLocked(ctx, was, path, cost, f)
		if !errors.Is(err, errUnusable) {
			return err
		}
	}
	switch {
	case was.hot:
		return readCopy(ctx, was, path, cost, f)
	case was.wal.size == 0:
		return readImmutable(ctx, was, path, cost, f)
	case was.shm.exists:
		err := readShared(ctx, was, path, cost, f)
		if errors.Is(err, errUnusable) {
			return readCopy(ctx, was, path, cost, f)
		}
		return err
	}
	return readCopy(ctx, was, path, cost, f)
}

func readImmutable(ctx context.Context, was files, path string, cost *Cost, f func(*Tx) error) error {
	p, err := enter(ctx, was.main.id, lockless)
	if err != nil {
		return err
	}
	defer p.leave()
	if err := was.settle(ctx); err != nil {
		return err
	}
	tx, err := begin(ctx, uri(was.path, "mode=ro", "immutable=1", readPragmas), path, Immutable, cost, "BEGIN")
	if err == nil {
		tx.still, tx.real, tx.odd = was.same, was.path, &cost.odd
		defer tx.close() // should f panic
		err = f(tx)
		tx.close()
	}
	if moved := was.same(); moved != nil {
		return moved
	}
	return err
}

func readShared(ctx context.Context, was files, path string, cost *Cost, f func(*Tx) error) error {
	p, err := enter(ctx, was.main.id, locking)
	if err != nil {
		return err
	}
	defer p.leave()
	var now files
	var alone bool
	tx, err := p.open(func() (*Tx, error) {
		if err := p.lock(was.path); err != nil {
			return nil, err
		}
		// The lock that is held now keeps the last writer from removing its log. Without a log, SQLite would make one.
		if now, err = look(was.path); err != nil {
			return nil, wrap(path, "read", err)
		}
		if now.main.id != was.main.id || !now.wal.exists || !now.shm.exists || now.hot {
			return nil, errMoved
		}
		if alone, err = p.alone(was.path + "-shm"); err != nil {
			return nil, err
		}
		// Beside a writer SQLite's own read mark guards the snapshot. Without one it reads the log unguarded.
		if alone {
			if !wholeLog(was.path + "-wal") { // SQLite would wait ten seconds for it to become one
				return nil, errUnusable
			}
			if err := now.settle(ctx); err != nil {
				return nil, err
			}
		}
		return begin(ctx, uri(was.path, "mode=ro", "readonly_shm=1", readPragmas), path, SharedMemory, cost, "BEGIN")
	})
	if err != nil {
		return err
	}
	if alone {
		tx.still = now.same
	}
	defer p.close(tx) // should f panic
	err = f(tx)
	p.close(tx)
	if moved := tx.still(); moved != nil {
		return moved
	}
	return err
}

func readLocked(ctx context.Context, was files, path string, cost *Cost, f func(*Tx) error) error {
	p, err := enter(ctx, was.main.id, locking)
	if err != nil {
		return err
	}
	defer p.leave()
	tx, err := p.open(func() (*Tx, error) {
		if err := p.lock(was.path); err != nil {
			return nil, err
		}
		// Under this lock nobody can change the kind of its journal.
		if rollback, err := p.rollbackKind(); err != nil || !rollback {
			return nil, errUnusable
		}
		return begin(ctx, uri(was.path, "mode=ro", readPragmas), path, Locked, cost, "BEGIN")
	})
	if err != nil {
		return err
	}
	defer p.close(tx) // should f panic
	err = f(tx)
	p.close(tx)
	return err
}

// Write calls f with one immediate transaction on the existing database at path, foreign keys on, and commits it if f
// returns nil. It waits up to wait for another writer, then gives [ErrBusy]. It creates no database, and fails with
// fs.ErrNotExist where there is none; the side files are SQLite's own affair.
func Write(ctx context.Context, path string, wait time.Duration, f func(tx *Tx) error) error {
	return write(ctx, path, wait, writePragmas, f)
}

func write(ctx context.Context, path string, wait time.Duration, pragmas string, f func(tx *Tx) error) error {
	return changing(ctx, path, wait, pragmas, "BEGIN IMMEDIATE", "another writer did not finish in time", func(tx *Tx) error {
		tx.broken = breaking(ctx)
		if err := f(tx); err != nil {
			return err
		}
		tx.turn = newTurn(ctx, wait)
		return tx.commit()
	})
}

// changing calls f with the existing database open for writing and begun with a statement. It waits up to wait for whoever has it locked; late is
// what it says of them then.
func changing(ctx context.Context, path string, wait time.Duration, pragmas, begin, late string, f func(tx *Tx) error) error {
	real, err := resolve(path)
	if err != nil {
		return err
	}
	defer faultsPanic()()
	was, err := look(real)
	if err != nil {
		return wrap(path, "write", err)
	}
	tooLate := func() error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return busy(path, "write", late)
	}
	waited, cancel := context.WithTimeout(ctx, max(wait, time.Millisecond))
	p, err := enter(waited, was.main.id, writing)
	cancel()
	if err != nil {
		return tooLate()
	}
	defer p.leave()
	t := newTurn(ctx, wait)
	var tx *Tx
	for {
		tx, err = beginIn(ctx, t, uri(real, "mode=rw", pragmas), path, Writing, &Cost{Attempts: 1}, begin)
		if !errors.Is(err, errLocked) {
			break
		}
		if !t.wait() { // it can be locked already while it is opened
			return tooLate()
		}
	}
	if err != nil {
		return err
	}
	defer tx.close()
	err = f(tx)
	if errors.Is(err, errLocked) {
		return tooLate()
	}
	return err
}
