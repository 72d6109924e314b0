package sqlfile

import (
	"errors"
	"io"
	"os"
)

// LogAhead gives a database that nobody has open a write-ahead log from its next change on, as OpenClaw's have
// (spec/awareness.md 1.2): writers then wait for each other's changes in memory, not on the disk. It is for files that
// only processes of one machine have.
//
// Errors are [ErrNotDatabase], or the file system's.
func LogAhead(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return wrap(path, "write", err)
	}
	defer f.Close()
	const magic = "SQLite format 3\x00"
	var head [20]byte
	switch _, err := io.ReadFull(f, head[:]); {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return wrap(path, "write", err)
	case string(head[:len(magic)]) != magic:
		return &Error{Path: path, Doing: "write", Kind: ErrNotDatabase, Detail: "it does not begin as one"}
	}
	// The versions that a writer and a reader of the file must know: 1 is a rollback journal, 2 a log.
	if _, err := f.WriteAt([]byte{2, 2}, 18); err != nil {
		return wrap(path, "write", err)
	}
	return wrap(path, "write", f.Sync())
}
