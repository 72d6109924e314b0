//go:build !windows

package sqlfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

func identify(_ string, info fs.FileInfo) fileID {
	st := info.Sys().(*syscall.Stat_t)
	return fileID{uint64(st.Dev), st.Ino}
}

// lockShared sets the lock of a reader, errLocked if another process has the range for itself.
func lockShared(f *os.File, start, length int64) error {
	return setLock(f, syscall.F_RDLCK, start, length)
}

func unlock(f *os.File, start, length int64) error { return setLock(f, syscall.F_UNLCK, start, length) }

func setLock(f *os.File, kind int16, start, length int64) error {
	lock := syscall.Flock_t{Type: kind, Whence: io.SeekStart, Start: start, Len: length}
	switch err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &lock); {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES):
		return errLocked
	}
	return errUnusable
}

// isLocked says whether another process has any lock on the range.
func isLocked(f *os.File, start, length int64) (bool, error) {
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: start, Len: length}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); err != nil {
		return false, errUnusable
	}
	return lock.Type != syscall.F_UNLCK, nil
}
