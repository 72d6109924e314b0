package sqlfile

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

// use is how this process has a file open. Uses of one kind go together, different ones wait for each other; only
// writing is for one alone.
type use int

const (
	lockless use = iota // opened and closed without locks: immutable, or being copied
	locking             // SQLite's locks matter: closing another descriptor would drop them
	writing             // likewise, and changing the file
)

// place is a file that this process has open.
type place struct {
	id   fileID
	kind use
	n    int

	mu   sync.Mutex // held while SQLite opens or closes the file: a close may drop the locks of one that is half open
	held *os.File   // the database itself, under a shared lock
	shm  *os.File
}

var (
	placesMu sync.Mutex
	places   = map[fileID]*place{}
)

// enter waits until the file may be used so; errLocked after patience.
func enter(ctx context.Context, id fileID, kind use) (*place, error) {
	for waited := time.Duration(0); ; waited += time.Millisecond {
		placesMu.Lock()
		p := places[id]
		if p == nil {
			p = &place{id: id, kind: kind}
			places[id] = p
		}
		if p.n == 0 || p.kind == kind && kind != writing {
			p.kind = kind
			p.n++
			placesMu.Unlock()
			return p, nil
		}
		placesMu.Unlock()
		if waited > patience {
			return nil, errLocked
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

func (p *place) leave() {
	placesMu.Lock()
	defer placesMu.Unlock()
	if p.n--; p.n > 0 {
		return
	}
	for _, f := range []*os.File{p.held, p.shm} {
		if f != nil {
			f.Close()
		}
	}
	delete(places, p.id)
}

// Where SQLite locks (its unix file layer): the byte by which a waiting writer keeps new readers away, the readers'
// range of the database, and the byte of the -shm that every connection holds.
const (
	pendingByte = 0x40000000
	sharedFirst = 0x40000002
	sharedSize  = 510
	aliveByte   = 128
)

// open runs f, which locks the file and lets SQLite open it.
func (p *place) open(f func() (*Tx, error)) (*Tx, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return f()
}

func (p *place) close(tx *Tx) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tx.close()
}

// lock takes the shared lock that every reader of a database has: as long as it is held the last writer to close
// leaves its -wal where it is, and nobody changes the kind of the journal.
func (p *place) lock(path string) error {
	if p.held == nil {
		f, err := os.Open(path)
		if err != nil {
			return wrap(path, "read", err)
		}
		p.held = f
	}
	if err := lockShared(p.held, pendingByte, 1); err != nil {
		return err
	}
	err := lockShared(p.held, sharedFirst, sharedSize)
	if e := unlock(p.held, pendingByte, 1); err == nil {
		err = e
	}
	return err
}

// alone says whether no other process has the -shm in use.
func (p *place) alone(path string) (bool, error) {
	if p.shm == nil {
		f, err := os.Open(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return false, errMoved
		case err != nil:
			return false, errUnusable
		}
		p.shm = f
	}
	taken, err := isLocked(p.shm, aliveByte, 1)
	return !taken, err
}

// rollbackKind says whether the database says of itself that it has a rollback journal and no write-ahead log.
func (p *place) rollbackKind() (bool, error) {
	var versions [2]byte
	_, err := p.held.ReadAt(versions[:], 18)
	return versions == [2]byte{1, 1}, err
}
