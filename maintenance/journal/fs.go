package journal

import (
	"io"
	"io/fs"
	"os"
)

// FS is every way in which this room touches files: the seam at which tests make it fail or stop. No method follows a symbolic link in
// the last part of a name, except Chmod, which is not asked about links. Errors are as those of package os: *fs.PathError and the like.
type FS interface {
	Open(name string) (File, error)
	Create(name string, mode fs.FileMode) (File, error) // for writing; fails when the name exists
	Lstat(name string) (Stamp, error)                   // the zero Stamp and no error when there is no such file
	Readlink(name string) (string, error)
	ReadDir(name string) ([]string, error) // names, sorted

	Rename(from, to string) error // replaces what is there
	Move(from, to string) error   // fails when the new name exists
	Exchange(a, b string) error   // each gets the other's name, in one; errors.ErrUnsupported where that cannot be
	Link(from, to string) error
	Symlink(target, name string) error
	Remove(name string) error // a file, or an empty directory
	Mkdir(name string, mode fs.FileMode) error
	Chmod(name string, mode fs.FileMode) error
	Chown(name string, uid, gid int) error
	Chtimes(name string, mtime int64) error // nanoseconds since 1970
	SyncDir(name string) error
	SyncFS(dir string) error // of all that was written on dir's file system; errors.ErrUnsupported where the system cannot

	Space(dir string) (free, total int64, err error) // bytes of the file system that oc may still use, and all
}

// File is an open file of an FS.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.Closer
	Sync() error
}

// Stamp is what a file looked like from outside. The zero Stamp: there is no such file.
type Stamp struct {
	Type  Type        `json:"type,omitempty"`
	Size  int64       `json:"size,omitempty"`  // bytes; 0 for directories
	MTime int64       `json:"mtime,omitempty"` // nanoseconds since 1970
	Ino   uint64      `json:"ino,omitempty"`   // 0: unknown
	Dev   uint64      `json:"dev,omitempty"`   // file system; 0: unknown
	Mode  fs.FileMode `json:"mode,omitempty"`  // permissions, setuid, setgid, sticky
	UID   int         `json:"uid"`             // -1: the system has none
	GID   int         `json:"gid"`
	Links uint64      `json:"links,omitempty"` // names of the file; 0: unknown

	SHA256 string `json:"sha256,omitempty"` // of its bytes, hex; empty: not read
	Target []byte `json:"target,omitempty"` // of a symbolic link
}

// Type of a file.
type Type string

const (
	Absent Type = ""
	Plain  Type = "file"
	Folder Type = "dir"
	Link   Type = "link"  // a symbolic link
	Other  Type = "other" // device, socket, pipe: no step touches one
)

const permissions = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// StampOf is the stamp in what os.Lstat, or a directory entry's Info, says.
func StampOf(info fs.FileInfo) Stamp {
	s := Stamp{Size: info.Size(), MTime: info.ModTime().UnixNano(), Mode: info.Mode() & permissions, UID: -1, GID: -1}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		s.Type = Plain
	case mode.IsDir():
		s.Type, s.Size = Folder, 0
	case mode&fs.ModeSymlink != 0:
		s.Type = Link
	default:
		s.Type = Other
	}
	s.system(info.Sys())
	return s
}

// Same says that two stamps are of one file that was not written between: type, size, time, and inode where both know it. A directory
// is the same whatever is in it.
func (s Stamp) Same(o Stamp) bool {
	return s.alike(o) && (s.Ino == 0 || o.Ino == 0 || s.Ino == o.Ino)
}

// alike is Same for a file that may have been copied.
func (s Stamp) alike(o Stamp) bool {
	return s.Type == o.Type && (s.Type == Folder || s.Size == o.Size && s.MTime == o.MTime)
}

// OS is the real FS.
func OS() FS { return system{} }

type system struct{}

func (system) Open(name string) (File, error) {
	return file(openPlain(name))
}

func (system) Create(name string, mode fs.FileMode) (File, error) {
	return file(os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode))
}

// file keeps a nil *os.File from becoming a File that is not nil.
func file(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (system) Lstat(name string) (Stamp, error) {
	info, err := os.Lstat(name)
	if missing(err) {
		return Stamp{}, nil
	}
	if err != nil {
		return Stamp{}, err
	}
	return StampOf(info), nil
}

func (system) ReadDir(name string) ([]string, error) {
	entries, err := os.ReadDir(name)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (system) Readlink(name string) (string, error)      { return os.Readlink(name) }
func (system) Link(from, to string) error                { return os.Link(from, to) }
func (system) Symlink(target, name string) error         { return os.Symlink(target, name) }
func (system) Mkdir(name string, mode fs.FileMode) error { return os.Mkdir(name, mode) }
func (system) Chmod(name string, mode fs.FileMode) error { return os.Chmod(name, mode) }

func (system) Chown(name string, uid, gid int) error {
	if uid < 0 && gid < 0 {
		return nil
	}
	return os.Lchown(name, uid, gid)
}
