//go:build unix

package sqlfile

import (
	"io/fs"
	"syscall"
)

// denied says why a file may not be read; nil if it may. It does not open the file: closing it again would drop the locks that this
// process has on it.
func denied(path string) error {
	const readable = 4
	if err := syscall.Access(path, readable); err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return nil
}
