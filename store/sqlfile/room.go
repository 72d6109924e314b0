package sqlfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The names that a copy has, in a directory oc-read-<digits> that is locked by the process that made it.
const (
	roomPrefix = "oc-read-"
	copyName   = "copy.sqlite"
)

// room is a directory for a copy.
type room struct {
	dir  string
	lock *os.File // as long as it is open, nobody takes the directory for a leftover; nil where that is not known
}

// makeRoom makes a directory for a copy of the database, and removes those that killed processes left.
func makeRoom(database string) (*room, error) {
	base, err := roomBase(database)
	if err != nil {
		return nil, err
	}
	sweep(base)
	for try := 0; ; try++ {
		dir, err := os.MkdirTemp(base, roomPrefix)
		if err != nil {
			return nil, err
		}
		lock, err := claim(dir)
		if err == nil {
			return &room{dir, lock}, nil
		}
		if try == 10 { // somebody else's sweep may be quicker than we are, but not always
			os.Remove(dir)
			return nil, err
		}
	}
}

// clear removes the directory; again is no mistake.
func (r *room) clear() error {
	if r.lock != nil {
		defer r.lock.Close()
	}
	return empty(r.dir)
}

// empty removes a directory with what a copy puts there, and nothing else.
func empty(dir string) error {
	for _, suffix := range []string{"", "-wal", "-journal", "-shm"} {
		os.Remove(filepath.Join(dir, copyName+suffix))
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// sweep removes the copies of this user's processes that were killed while they made one.
func sweep(base string) {
	d, err := os.Open(base)
	if err != nil {
		return
	}
	names, _ := d.Readdirnames(-1)
	d.Close()
	for _, name := range names {
		digits, ours := strings.CutPrefix(name, roomPrefix)
		if !ours || digits == "" || strings.Trim(digits, "0123456789") != "" {
			continue
		}
		dir := filepath.Join(base, name)
		if lock, err := claim(dir); err == nil && lock != nil {
			empty(dir) // what cannot be removed stays
			lock.Close()
		}
	}
}

// roomBase is the directory for temporary files. A read changes nothing in the state, so that if this lies within it,
// another is chosen.
func roomBase(database string) (string, error) {
	tree := stateTree(database)
	for i, dir := range append([]string{os.TempDir()}, spareTemp...) {
		dir, err := filepath.Abs(dir)
		real := dir
		if err == nil {
			real, err = filepath.EvalSymlinks(dir)
		}
		if err != nil {
			if i == 0 {
				return "", err
			}
			continue
		}
		if rel, err := filepath.Rel(tree, real); err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%s, the directory for temporary files, lies within %s, where a read changes nothing", os.TempDir(), tree)
}

// stateTree is the state directory that the database belongs to, by the places that OpenClaw gives to its databases,
// <state>/agents/<agent>/agent and <state>/state/openclaw*; of others the directory they are in.
func stateTree(database string) string {
	dir := filepath.Dir(database)
	up := filepath.Dir(dir)
	switch agents := filepath.Dir(up); {
	case filepath.Base(agents) == "agents":
		return filepath.Dir(agents)
	case filepath.Base(dir) == "state" && strings.HasPrefix(filepath.Base(database), "openclaw"):
		return up
	}
	return dir
}

// CopyRoom says where a private copy of a database would be made, and how many bytes it takes.
func CopyRoom(path string) (dir string, bytes int64, err error) {
	real, err := resolve(path)
	if err != nil {
		return "", 0, err
	}
	was, err := look(real)
	if err != nil {
		return "", 0, wrap(path, "read", err)
	}
	dir, err = roomBase(real)
	return dir, copyBytes(was), err
}

func copyBytes(was files) int64 {
	if was.hot {
		return was.main.size + was.jr.size
	}
	return was.main.size + was.wal.size
}

// noRoom is the error of a copy that cannot be made. What it comes from is told but not handed on: that a directory for
// temporary files is missing must not be taken for a database that is.
func noRoom(path string, was files, err error) error {
	return &Error{
		Path: path, Doing: "read", Kind: ErrNoRoom,
		Detail: fmt.Sprintf("a copy is needed to read it: %v; set TMPDIR to a directory with room for %d MB that can be written to", err, copyBytes(was)>>20+1),
	}
}
