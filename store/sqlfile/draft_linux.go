package sqlfile

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// openNameless opens a new file without a name, in the directory where path will be; nil if that cannot be done.
func openNameless(path string) *os.File {
	fd, err := unix.Open(filepath.Dir(path), unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), path)
	if _, err := os.Stat(ownName(f)); err != nil {
		f.Close()
		return nil
	}
	return f
}

func ownName(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

func link(f *os.File, path string) error {
	if err := unix.Linkat(unix.AT_FDCWD, ownName(f), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW); err != nil {
		return &os.LinkError{Op: "link", Old: ownName(f), New: path, Err: err}
	}
	return nil
}
