//go:build unix

package gateway

import (
	"errors"
	"io"
	"os"
	"syscall"
)

const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// lockFile takes the lock that SQLite takes. It is the process's, as SQLite's
// are: others see who has it.
func lockFile(f *os.File) error {
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: lockFirst, Len: lockSize}
	err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &l)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return ErrOwned
	}
	return err
}
