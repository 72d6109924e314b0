// Package journal keeps a run of oc on disk, so that it can be finished when it was cut short, and taken back when it is done. It knows
// files as bytes and steps, and nothing of sessions (design rules 3, 5, 6, 9, 11; spec/file-store.md 2.8 and 5.5, release 2026.7.35).
//
// # On disk
//
// Under <base>/.oc, all 0700 and 0600 and of the base's owner:
//
//	runs/<id>.json           the manifest: the whole plan, what every file was before and is to be, and how far the run came
//	undo/<id>/old.zst        what files held before, one zstd frame each
//	undo/<id>/rows-<n>       rows of a database as they were before a transaction, written and durable before it is committed
//	undo/<id>/link-<n>       a second name of a file that had several names before: it comes back as the same file
//	undo/<id>/new.zst        what files are to hold; kept after the run for steps with a Hook only
//
// What stands on another file system than the base has its undo/<id> under the outermost of the journal's roots there.
//
// # The life of a run
//
//	planned  the saved bytes are being written; no file was touched. Cut short: it is cleared away, nothing has happened.
//	delegated somebody else makes the change, a gateway, and what it may touch is saved. Cut short: what the files have become since is
//	         written down as what the run did, or it is cleared away when they are as they were.
//	applying the steps are done in the order Place, Swap, Clear. How far they came is seen by looking at the files.
//	         Cut short before the last Place or Swap: rolled back, since the plan is for a state that may have passed.
//	         Whether a transaction was committed is seen by looking at rows that it changed.
//	         Cut short later: finished, since the new stores stand already. A purging run is not finished but stopped there: what it
//	         would remove could not be brought back, and the next plan will find it again.
//	done     it can be undone, in parts too, until its saved bytes expire.
//	undoing  cut short: finished.
//	undone, rolled back: closed. An undo is not undone; the command can be given again.
//
// A Place or Swap that fails rolls the run back. A Clear that fails is skipped and told: its file is as before, and the rest goes on.
package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"oc/store/lock"
)

// For errors.Is.
var (
	ErrChanged    = errors.New("changed since it was planned")
	ErrUnfinished = errors.New("an earlier run was cut short; it has to be finished or rolled back first")
	ErrRefused    = errors.New("not followed") // a manifest, or a place, that oc did not make so
	ErrUnknown    = errors.New("no such run")
	ErrClosed     = errors.New("nothing to take back")     // undone or rolled back already
	ErrNoBytes    = errors.New("its saved bytes are gone") // purged or expired
	ErrNoRoom     = errors.New("not enough room")          // see RoomError
	ErrDamaged    = errors.New("its saved bytes are damaged")
)

// RoomError is ErrNoRoom: the file system of Dir has Free bytes, and Need were wanted; both are 0 when the disk was full while saving.
type RoomError struct {
	Dir        string
	Need, Free int64
	Purge      bool // nothing is saved already
	Undo       bool // a run is to be taken back
}

func (e *RoomError) Error() string {
	what := ""
	if e.Need > 0 {
		what = fmt.Sprintf(" (%d bytes needed, %d free)", e.Need, e.Free)
	}
	remedy := "make room, or give --purge to save nothing"
	switch {
	case e.Undo:
		return fmt.Sprintf("%s: %v for what is to come back: %d bytes are missing%s; %s", e.Dir, ErrNoRoom, e.Need-e.Free, what, undoRemedy)
	case e.Purge:
		remedy = "nothing is saved already, so make room in another way"
	}
	return fmt.Sprintf("%s: %v for what must be written before anything changes%s; %s", e.Dir, ErrNoRoom, what, remedy)
}

const undoRemedy = "make room, or give up the saved bytes of another run with oc undo --expire RUN, then give oc undo again"

// Unwrap makes errors.Is find ErrNoRoom.
func (e *RoomError) Unwrap() error { return ErrNoRoom }

// Options of Open.
type Options struct {
	Base     string           // the directory whose .oc it is: a state directory, or a store's; absolute
	Roots    []string         // the directories whose files runs may touch, absolute; none: Base
	Now      func() time.Time // the user's clock
	Wait     time.Duration    // how long to wait for another oc
	FS       FS               // nil: the real one
	Resolver Resolver         // for undo; may be nil
}

// Journal is the runs of one base directory. It is not safe for concurrent use; other processes are kept out while it writes.
type Journal struct {
	fs       FS
	base     string
	roots    []string
	now      func() time.Time
	wait     time.Duration
	resolver Resolver
	locked   bool
	call     context.Context // of the call that is under way
	purging  bool
	guard    func()          // gives the files free that Plan.Guard keeps
	copying  bool            // for a delegated run: no second names, nothing new
	taking   bool            // a step is being taken back
	strayed  string          // what it could not give its file
	together int             // from so many files on their bytes are made durable together
	safe     map[string]bool // directories that were seen to be no links, during one call
}

// Open returns the journal of o.Base. It touches nothing.
func Open(o Options) (*Journal, error) {
	j := &Journal{fs: o.FS, base: o.Base, roots: o.Roots, now: o.Now, wait: o.Wait, resolver: o.Resolver}
	j.together = 16
	if j.fs == nil {
		j.fs = OS()
	}
	if len(j.roots) == 0 {
		j.roots = []string{j.base}
	}
	for _, dir := range append([]string{j.base}, j.roots...) {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
			return nil, fmt.Errorf("open the journal: %q is not an absolute, clean path", dir)
		}
	}
	return j, nil
}

// Lock keeps other processes of oc out of the base until release is called, so that what is planned meanwhile can be applied. Apply, Undo,
// Recover and Expire lock for themselves otherwise. The error is lock.ErrBusy when another oc is at work.
func (j *Journal) Lock(ctx context.Context) (release func() error, err error) {
	if j.locked {
		return func() error { return nil }, nil
	}
	// A lock made through a link would lie, and be made, somewhere else.
	if err := j.own(j.home()); err != nil {
		return nil, err
	}
	unlock, err := lock.Dir(ctx, j.base, j.wait)
	if err != nil {
		return nil, err
	}
	defer func() {
		if !j.locked {
			err = errors.Join(err, unlock())
		}
	}()
	// Made under sudo, they would keep their own user out.
	for _, path := range []string{j.home(), filepath.Join(j.home(), "lock")} {
		if err := j.give(path); err != nil {
			return nil, fmt.Errorf("lock %s: %w", j.base, err)
		}
	}
	j.locked = true
	return func() error {
		j.locked = false
		return unlock()
	}, nil
}

func (j *Journal) home() string { return filepath.Join(j.base, own) }
func (j *Journal) runs() string { return filepath.Join(j.base, own, "runs") }

// own is oc's directory in a state or store directory.
const own = ".oc"

// own returns nil when a place of oc's is absent or as oc makes it: no link, of the right owner, closed to others.
func (j *Journal) own(path string) error {
	s, err := j.fs.Lstat(path)
	if err != nil {
		return err
	}
	return j.trusted(path, s, Folder)
}

func (j *Journal) trusted(path string, s Stamp, want Type) error {
	if s.Type == Absent {
		return nil
	}
	if s.Type != want {
		return fmt.Errorf("%s: %w: it is a %s where a %s belongs; look at it and move it away", path, ErrRefused, s.Type, want)
	}
	if s.UID < 0 {
		return nil
	}
	base, err := j.fs.Lstat(j.base)
	if err != nil {
		return err
	}
	if s.UID != os.Geteuid() && s.UID != base.UID && s.UID != 0 {
		return fmt.Errorf("%s: %w: it belongs to user %d; look at it and move it away", path, ErrRefused, s.UID)
	}
	if s.Mode&0o022 != 0 {
		return fmt.Errorf("%s: %w: others may write to it (mode %04o); look at it, then chmod go-w", path, ErrRefused, s.Mode.Perm())
	}
	return nil
}

// mkdir makes a directory of oc's, and those above it up to one that exists, durably.
func (j *Journal) mkdir(path string) error {
	s, err := j.fs.Lstat(path)
	if err != nil {
		return err
	}
	if s.Type != Absent {
		return j.trusted(path, s, Folder)
	}
	above := filepath.Dir(path)
	if above == j.base || above == path {
		if s, err := j.fs.Lstat(above); err != nil || s.Type == Absent {
			return fmt.Errorf("%s is missing", above)
		}
	} else if filepath.Base(path) != own {
		if err := j.mkdir(above); err != nil {
			return err
		}
	}
	if err := j.fs.Mkdir(path, 0o700); err != nil {
		return err
	}
	if err := j.give(path); err != nil {
		return err
	}
	return j.fs.SyncDir(above)
}

// give hands what oc made under sudo to the owner of the base.
func (j *Journal) give(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	base, err := j.fs.Lstat(j.base)
	if err != nil || base.UID <= 0 {
		return err
	}
	if now, err := j.fs.Lstat(path); err != nil || now.Type == Absent || now.UID == base.UID {
		return err
	}
	return j.fs.Chown(path, base.UID, base.GID)
}
