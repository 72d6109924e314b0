// Package lock answers who holds a session's files, and holds them for oc.
//
// Three kinds of lock meet here. A *transcript lock* is the file
// `<transcript>.lock` that OpenClaw 2026.7.35 creates beside a JSONL file
// while it writes: it names a process, and Look says whether that process
// still holds it; Hold takes one in a form that OpenClaw respects. A *probe*
// asks the kernel who holds a SQLite lock file, without side effects. Dir is
// oc's own lock, which OpenClaw does not know.
//
// Nothing here removes a lock whose owner may live: a process that cannot be
// seen from this machine counts as one that lives.
package lock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// State says what a lock file is worth.
type State string

const (
	Free       State = "free"             // there is no lock file
	Held       State = "held"             // its process lives
	OverHold   State = "over-hold"        // its process lives and has kept it beyond its own limit: still held
	Foreign    State = "foreign"          // its process may live where this machine cannot look: held
	Fresh      State = "unreadable-fresh" // names no process, touched less than Grace ago: held, someone is writing it
	Unreadable State = "unreadable-old"   // names no process, not touched for Grace: nobody holds it
	Dead       State = "dead"             // its process is gone
	Recycled   State = "recycled"         // its process is gone and another one has its number
)

// Holds says whether a lock in this state must be respected.
func (s State) Holds() bool {
	switch s {
	case Held, OverHold, Foreign, Fresh:
		return true
	}
	return false
}

const (
	// Grace is how long a lock file that names no process is respected after
	// its last change (spec/file-store.md 5.4, release 2026.7.35).
	Grace = 30 * time.Second
	// StaleAfter is the longest hold of a lock that states no limit of its
	// own (spec/file-store.md 5.3, release 2026.7.35).
	StaleAfter = 30 * time.Minute

	maxPayload = 64 << 10    // bytes of a lock file that are read
	slack      = time.Minute // between two readings of a clock that may have been set
)

var (
	// ErrHeld is returned by Hold when another process has the transcript.
	ErrHeld = errors.New("transcript is locked")
	// ErrBusy is returned by Dir when another oc works there.
	ErrBusy = errors.New("another oc is at work")
	// ErrChanged says that a lock file is no longer the one that was looked at.
	ErrChanged = errors.New("lock file has changed")
)

// Report is what a lock file says, and what is true of it.
type Report struct {
	Path  string // of the lock file
	State State
	// Orphan: the transcript that the lock is for does not exist. Always
	// false for locks of other files.
	Orphan bool

	PID     int           // 0: the file names none
	Start   uint64        // start time of that process in clock ticks since boot; 0: not said
	Created time.Time     // zero: not said or unreadable
	MaxHold time.Duration // StaleAfter when a transcript lock does not say; 0 for other locks: no limit
	Age     time.Duration // since Created, else since the last change of the file; negative in the future

	// Fields are the members of the lock's JSON object as raw JSON, nil when
	// it is not one: OpenClaw's gateway locks say more than the fields above.
	Fields map[string]json.RawMessage
	// Evidence is one sentence a fact, in the order in which they decided.
	Evidence []string

	info fs.FileInfo
	raw  []byte
}

// Removable says that the lock exists and nobody holds it.
func (r Report) Removable() bool { return r.State != Free && !r.State.Holds() }

func (r *Report) say(format string, args ...any) {
	r.Evidence = append(r.Evidence, fmt.Sprintf(format, args...))
}
