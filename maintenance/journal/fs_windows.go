package journal

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// openPlain looks first: a handle of the link itself would be one of a file that is in the cloud, too, without its bytes.
func openPlain(name string) (*os.File, error) {
	if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("it is a symbolic link")}
	}
	return os.Open(name)
}

// held is what Windows says of a file that somebody has open and shares with nobody.
func held(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
}

func (system) Rename(from, to string) error {
	return persist(func() error {
		return overReadOnly(to, func() error { return os.Rename(from, to) })
	}, held, time.Sleep)
}

func (system) Remove(name string) error {
	return persist(func() error { return os.Remove(name) }, held, time.Sleep)
}

// Move leaves out the flag by which a rename replaces.
func (system) Move(from, to string) error {
	err := persist(func() error {
		f, err := windows.UTF16PtrFromString(from)
		if err != nil {
			return err
		}
		t, err := windows.UTF16PtrFromString(to)
		if err != nil {
			return err
		}
		return windows.MoveFileEx(f, t, 0)
	}, held, time.Sleep)
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// system leaves inode, owner and links unknown: Windows tells them of open files only.
func (s *Stamp) system(any) {}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func noRoom(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

func otherDevice(err error) bool { return errors.Is(err, windows.ERROR_NOT_SAME_DEVICE) }

// noLinks is true of every error: what cannot be linked is packed.
func noLinks(error) bool { return true }

func (system) SyncFS(string) error { return errors.ErrUnsupported }

func (system) Exchange(string, string) error { return errors.ErrUnsupported }

func (system) Chtimes(name string, mtime int64) error {
	t := time.Unix(0, mtime)
	return os.Chtimes(name, t, t)
}

// SyncDir has nothing to do: NTFS keeps the order of renames in its own journal.
func (system) SyncDir(string) error { return nil }

func (system) Space(dir string) (free, total int64, err error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, 0, err
	}
	var f, t uint64
	if err := windows.GetDiskFreeSpaceEx(name, &f, &t, nil); err != nil {
		return 0, 0, &fs.PathError{Op: "free space", Path: dir, Err: err}
	}
	return int64(f), int64(t), nil
}
