package gateway

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

const noFollow = 0

// lockFile takes the lock that SQLite takes.
func lockFile(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, lockSize, 0, &windows.Overlapped{Offset: lockFirst})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrOwned
	}
	return err
}
