//go:build unix

package sqlfile

import (
	"io/fs"
	"path/filepath"
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

// unwritable says whether this user may not write a file, or may make none beside it, which the engine needs as well.
func unwritable(path string) bool {
	const writable = 2
	return syscall.Access(path, writable) != nil || syscall.Access(filepath.Dir(path), writable) != nil
}
