package gateway

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"oc/store/lock"
)

// ErrOwned says that a gateway, or another oc, owns the state.
var ErrOwned = errors.New("somebody else owns the state")

// SQLite's lock bytes: pending, reserved, and 510 for readers. Whoever holds
// them all for writing is in an exclusive transaction.
const (
	lockFirst = 0x40000000
	lockSize  = 512
)

// HoldLifecycle takes the mutex of OpenClaw 2026.8.2 and 2026.9.6, so that no
// gateway starts on the state while oc writes to it (spec/sqlite-store.md 4.2),
// until release is called. It does not wait: ErrOwned when somebody has it. The
// file is made where no gateway ever ran, as OpenClaw makes it, and stays. The
// kernel drops the lock when the process ends, however it ends.
//
// Nothing else in the process may open the file meanwhile: closing it again
// would drop the lock. Owner does not, and tells oc's own lock from others' on
// Linux.
func HoldLifecycle(w Where) (release func() error, err error) {
	db := w.StateDB
	if db == "" {
		db = filepath.Join(w.StateDir, "state", "openclaw.sqlite")
	}
	name := "gateway-lifecycle." + hash(resolve(db)) + ".lock.sqlite"
	uid := w.UID
	if owner := ownerUID(w.StateDir); owner >= 0 {
		uid = owner // its gateway runs as that user, whoever calls oc
	}
	dir := filepath.Join(w.LockRoot, suffixed("openclaw-state-locks", uid))
	path := filepath.Join(dir, name)
	if err := makeDir(dir, uid, w.UID); err != nil {
		return nil, fmt.Errorf("keep gateways out of %s: %w", w.StateDir, err)
	}
	// Asked first, because opening a file that this process has locked and
	// closing it again would drop the lock.
	if p := lock.ProbeSQLite(path); p.State == lock.Locked {
		return nil, fmt.Errorf("keep gateways out of %s: %w: process %d holds %s; try again when it is done", w.StateDir, ErrOwned, p.PID, path)
	}
	for range 3 {
		f, err := openLock(path, uid, w.UID)
		if err != nil {
			return nil, fmt.Errorf("keep gateways out of %s: %w", w.StateDir, err)
		}
		switch err := lockFile(f); {
		case errors.Is(err, ErrOwned):
			f.Close()
			return nil, fmt.Errorf("keep gateways out of %s: %w: it holds %s; try again when it is done", w.StateDir, ErrOwned, path)
		case err != nil:
			f.Close()
			return nil, fmt.Errorf("keep gateways out of %s: lock %s: %w", w.StateDir, path, err)
		}
		mine, err1 := f.Stat()
		there, err2 := os.Lstat(path)
		if err1 == nil && err2 == nil && os.SameFile(mine, there) {
			return f.Close, nil
		}
		f.Close() // somebody put another file in its place
	}
	return nil, fmt.Errorf("keep gateways out of %s: %s is replaced again and again", w.StateDir, path)
}

// makeDir makes the directory of lock files, for the user whose gateway uses it.
func makeDir(dir string, uid, me int) error {
	err := os.Mkdir(dir, 0o700)
	switch {
	case err == nil && uid != me:
		return os.Chown(dir, uid, -1)
	case err == nil || !errors.Is(err, fs.ErrExist):
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	return nil
}

// openLock opens the lock file, and makes it if need be.
func openLock(path string, uid, me int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|noFollow, 0)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|noFollow, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return os.OpenFile(path, os.O_RDWR|noFollow, 0)
		}
		if err == nil && uid != me {
			err = f.Chown(uid, -1)
		}
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a plain file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
