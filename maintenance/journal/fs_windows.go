package journal

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

const noFollow = 0

// system leaves inode, owner and links unknown: Windows tells them of open files only.
func (s *Stamp) system(any) {}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func noRoom(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

func otherDevice(err error) bool { return errors.Is(err, windows.ERROR_NOT_SAME_DEVICE) }

// noLinks is true of every error: what cannot be linked is packed.
func noLinks(error) bool { return true }

func (system) Move(from, to string) error { return moveChecked(from, to) }

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
