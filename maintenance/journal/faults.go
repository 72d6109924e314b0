package journal

import (
	"io/fs"
	"sync"
)

// Faults is an FS for tests of everything that changes files: it counts the operations on the FS beneath it, and lets one of them fail,
// or stops there as a kill would. A write that fails or stops has written its first half. Reading counts as well.
type Faults struct {
	FS    FS
	At    int                   // the operation that goes wrong, counted from 1; 0: none
	Err   error                 // what it fails with; nil: it panics with Stopped, and so does every later operation
	Stay  bool                  // every operation from At on fails, not the one alone
	Watch func(op, name string) // told before each operation; may be nil

	mu      sync.Mutex
	count   int
	stopped bool
}

// Stopped is what Faults panics with.
type Stopped struct{ Op, Name string }

// Count of operations until now.
func (f *Faults) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

func (f *Faults) step(op, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		panic(Stopped{op, name})
	}
	f.count++
	if f.Watch != nil {
		f.Watch(op, name)
	}
	if f.At == 0 || f.count < f.At || f.count > f.At && !f.Stay {
		return nil
	}
	if f.Err == nil {
		f.stopped = true
		panic(Stopped{op, name})
	}
	return &fs.PathError{Op: op, Path: name, Err: f.Err}
}

func (f *Faults) Open(name string) (File, error) {
	if err := f.step("open", name); err != nil {
		return nil, err
	}
	in, err := f.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &faultyFile{in, f, name}, nil
}

func (f *Faults) Create(name string, mode fs.FileMode) (File, error) {
	if err := f.step("create", name); err != nil {
		return nil, err
	}
	in, err := f.FS.Create(name, mode)
	if err != nil {
		return nil, err
	}
	return &faultyFile{in, f, name}, nil
}

func (f *Faults) Lstat(name string) (Stamp, error) {
	if err := f.step("lstat", name); err != nil {
		return Stamp{}, err
	}
	return f.FS.Lstat(name)
}

func (f *Faults) Readlink(name string) (string, error) {
	if err := f.step("readlink", name); err != nil {
		return "", err
	}
	return f.FS.Readlink(name)
}

func (f *Faults) ReadDir(name string) ([]string, error) {
	if err := f.step("readdir", name); err != nil {
		return nil, err
	}
	return f.FS.ReadDir(name)
}

func (f *Faults) Space(dir string) (int64, int64, error) {
	if err := f.step("statfs", dir); err != nil {
		return 0, 0, err
	}
	return f.FS.Space(dir)
}

// then runs act unless the operation goes wrong.
func (f *Faults) then(op, name string, act func() error) error {
	if err := f.step(op, name); err != nil {
		return err
	}
	return act()
}

func (f *Faults) Rename(from, to string) error {
	return f.then("rename", to, func() error { return f.FS.Rename(from, to) })
}

func (f *Faults) Move(from, to string) error {
	return f.then("move", to, func() error { return f.FS.Move(from, to) })
}

func (f *Faults) Exchange(a, b string) error {
	return f.then("exchange", b, func() error { return f.FS.Exchange(a, b) })
}

func (f *Faults) Link(from, to string) error {
	return f.then("link", to, func() error { return f.FS.Link(from, to) })
}

func (f *Faults) Symlink(target, name string) error {
	return f.then("symlink", name, func() error { return f.FS.Symlink(target, name) })
}

func (f *Faults) Remove(name string) error {
	return f.then("remove", name, func() error { return f.FS.Remove(name) })
}

func (f *Faults) Mkdir(name string, mode fs.FileMode) error {
	return f.then("mkdir", name, func() error { return f.FS.Mkdir(name, mode) })
}

func (f *Faults) Chmod(name string, mode fs.FileMode) error {
	return f.then("chmod", name, func() error { return f.FS.Chmod(name, mode) })
}

func (f *Faults) Chown(name string, uid, gid int) error {
	return f.then("chown", name, func() error { return f.FS.Chown(name, uid, gid) })
}

func (f *Faults) Chtimes(name string, mtime int64) error {
	return f.then("chtimes", name, func() error { return f.FS.Chtimes(name, mtime) })
}

func (f *Faults) SyncDir(name string) error {
	return f.then("fsync-dir", name, func() error { return f.FS.SyncDir(name) })
}

func (f *Faults) SyncFS(dir string) error {
	return f.then("syncfs", dir, func() error { return f.FS.SyncFS(dir) })
}

type faultyFile struct {
	File
	f    *Faults
	name string
}

func (t *faultyFile) Read(b []byte) (int, error) {
	if err := t.f.step("read", t.name); err != nil {
		return 0, err
	}
	return t.File.Read(b)
}

func (t *faultyFile) ReadAt(b []byte, at int64) (int, error) {
	if err := t.f.step("read", t.name); err != nil {
		return 0, err
	}
	return t.File.ReadAt(b, at)
}

func (t *faultyFile) Write(b []byte) (n int, err error) {
	whole := false
	defer func() {
		if !whole {
			n, _ = t.File.Write(b[:len(b)/2])
		}
	}()
	if err := t.f.step("write", t.name); err != nil {
		return 0, err
	}
	whole = true
	return t.File.Write(b)
}

func (t *faultyFile) Sync() error {
	if err := t.f.step("fsync", t.name); err != nil {
		return err
	}
	return t.File.Sync()
}

// Close closes in any case, so that a test that stops does not run out of files.
func (t *faultyFile) Close() error {
	err := t.File.Close()
	if e := t.f.step("close", t.name); e != nil {
		return e
	}
	return err
}
