package sqlfile

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// resolve follows symlinks, as SQLite does: the side files lie beside the real file.
func resolve(path string) (string, error) {
	if strings.ContainsRune(path, 0) || path == "" {
		return "", &Error{Path: path, Doing: "open", Detail: "not a file name", Err: fs.ErrInvalid}
	}
	real, err := filepath.Abs(path)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if to := dangling(path); to != "" { // a disk that is not there, say: nobody knows what is on it
			return "", &Error{Path: path, Doing: "open", Detail: "a link on the way leads to " + to + ", which does not exist"}
		}
	}
	return real, wrap(path, "open", err)
}

// dangling is where the link leads, of the last that is there on the way to path, if that does not exist.
func dangling(path string) (to string) {
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
			continue
		}
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return ""
		}
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		to, _ = os.Readlink(at)
		return to
	}
}

// fileID says which file it is, whatever its name.
type fileID struct{ dev, ino uint64 }

// side is what stat says of a file; the zero value is a file that is not there.
type side struct {
	exists bool
	id     fileID
	size   int64
	mtime  time.Time
}

// files is a database and what lies beside it at one moment.
type files struct {
	path               string
	main, wal, shm, jr side
	hot                bool // jr would have to be played back
}

func look(path string) (files, error) {
	f := files{path: path}
	for _, p := range []struct {
		at     *side
		suffix string
	}{{&f.main, ""}, {&f.wal, "-wal"}, {&f.shm, "-shm"}, {&f.jr, "-journal"}} {
		info, err := os.Stat(path + p.suffix)
		switch {
		case p.suffix != "" && errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return f, beside(p.suffix, err)
		case !info.Mode().IsRegular():
			return f, beside(p.suffix, errNotRegular)
		}
		*p.at = side{exists: true, id: identify(path+p.suffix, info), size: info.Size(), mtime: info.ModTime()}
	}
	if f.jr.size > 0 {
		hot, err := isHot(path + "-journal")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return f, beside("-journal", err)
		}
		f.hot = hot
	}
	return f, nil
}

var errNotRegular = errors.New("not a regular file")

// sideError is what is wrong with a file beside the database, not with the database itself.
type sideError struct {
	suffix string
	error
}

func (e *sideError) Unwrap() error { return e.error }

func beside(suffix string, err error) error {
	if suffix == "" {
		return err
	}
	return &sideError{suffix, err}
}

// isHot tells a journal with a header from one that was finished by blanking it.
func isHot(journal string) (bool, error) {
	file, err := os.Open(journal)
	if err != nil {
		return false, err
	}
	defer file.Close()
	var head [8]byte
	n, _ := file.ReadAt(head[:], 0)
	return n == len(head) && head != [8]byte{}, nil
}

// wholeLog says whether a write-ahead log begins as one: magic number, page size and the checksum over both.
func wholeLog(wal string) bool {
	file, err := os.Open(wal)
	if err != nil {
		return false
	}
	defer file.Close()
	var head [32]byte
	if _, err := io.ReadFull(file, head[:]); err != nil {
		return false
	}
	magic, size := binary.BigEndian.Uint32(head[:]), binary.BigEndian.Uint32(head[8:])
	if magic&^1 != 0x377f0682 || size < 512 || size > 65536 || size&(size-1) != 0 {
		return false
	}
	var order binary.ByteOrder = binary.LittleEndian
	if magic&1 == 1 {
		order = binary.BigEndian
	}
	var a, b uint32
	for i := 0; i < 24; i += 8 {
		a += order.Uint32(head[i:]) + b
		b += order.Uint32(head[i+4:]) + a
	}
	return a == binary.BigEndian.Uint32(head[24:]) && b == binary.BigEndian.Uint32(head[28:])
}

// same says whether the files still are what they were, else errMoved. The -shm says nothing about content.
func (f files) same() error {
	now, err := look(f.path)
	if err != nil || !now.equal(f) {
		return errMoved
	}
	return nil
}

// equal says whether two looks saw the same content.
func (f files) equal(g files) bool {
	return f.path == g.path && f.main == g.main && f.wal.size == g.wal.size && f.hot == g.hot &&
		(f.wal.size == 0 || f.wal == g.wal) && (!f.hot || f.jr == g.jr)
}

// A file system may stamp everything that happens within a tick alike.
const tick = 20 * time.Millisecond

// settle waits until a change could not hide behind the stamps that were seen.
func (f files) settle(ctx context.Context) error {
	newest := f.main.mtime
	for _, s := range []side{f.wal, f.jr} {
		if s.mtime.After(newest) {
			newest = s.mtime
		}
	}
	age := time.Since(newest)
	if age < 0 || age > tick { // a stamp in the future tells nothing, and waiting would not help
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(tick - age):
		return f.same()
	}
}
