package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func (system) Move(from, to string) error {
	err := unix.RenamexNp(from, to, unix.RENAME_EXCL)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) {
		return moveChecked(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

func (system) Exchange(a, b string) error {
	return exchanged(a, b, unix.RenamexNp(a, b, unix.RENAME_SWAP))
}

func (system) SyncFS(string) error { return errors.ErrUnsupported }
