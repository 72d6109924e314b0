//go:build unix

package sqlfile

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

var spareTemp = []string{"/tmp", "/var/tmp"}

// claim locks a directory of this user's, which the system undoes when the process ends. An error says that somebody
// else has it, or that it is not one, or gone.
func claim(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	f := os.NewFile(uintptr(fd), dir)
	info, err := f.Stat()
	if err == nil && int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		err = os.ErrPermission
	}
	if err == nil {
		if e := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); e != nil {
			err = &os.PathError{Op: "lock", Path: dir, Err: e}
		}
	}
	if err == nil { // it may have been swept before it was locked
		var now os.FileInfo
		if now, err = os.Lstat(dir); err == nil && !os.SameFile(info, now) {
			err = os.ErrNotExist
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
