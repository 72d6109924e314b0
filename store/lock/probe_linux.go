package lock

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// The bytes that SQLite locks for reading, behind its pending and reserved
// bytes. An exclusive transaction holds them all for writing.
const (
	sharedFirst = 0x40000002
	sharedSize  = 510
)

// ProbeSQLite asks who holds an exclusive SQLite transaction on the file at
// path (spec/sqlite-store.md 4.1, releases 2026.8.2 and 2026.9.6). It takes no
// lock, creates nothing and never waits.
//
// A file on which this very process holds locks is not opened, because closing
// it would drop them: the kernel's table of locks answers then, and when the
// file may not be read. Where that table cannot be read either, probe before
// locking.
func ProbeSQLite(path string) Probe {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Probe{State: Absent}
	case err != nil:
		return Probe{State: Hidden, Says: reason(err).Error()}
	case !info.Mode().IsRegular():
		return Probe{State: Hidden, Says: "it is not a plain file"}
	}
	inode := info.Sys().(*syscall.Stat_t).Ino
	table := locks(inode)
	for _, l := range table {
		if l.pid != os.Getpid() {
			continue
		}
		if l.exclusive() {
			return Probe{State: Locked, PID: l.pid, Says: "this process holds it"}
		}
		return Probe{State: Hidden, Says: "this process has it open"}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		for _, l := range table {
			if l.exclusive() {
				return Probe{State: Locked, PID: l.pid}
			}
		}
		return Probe{State: Hidden, Says: reason(err).Error()}
	}
	defer f.Close()
	flock := syscall.Flock_t{Type: syscall.F_RDLCK, Whence: io.SeekStart, Start: sharedFirst, Len: sharedSize}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &flock); err != nil {
		return Probe{State: Hidden, Says: fmt.Sprintf("the system cannot tell who locks it: %v", err)}
	}
	if flock.Type == syscall.F_UNLCK {
		return Probe{State: Unlocked}
	}
	return Probe{State: Locked, PID: max(int(flock.Pid), 0)}
}

// Where a writer's lock is: behind the readers' of the database, or in the -shm of one with a write-ahead log.
const (
	pendingByte  = 0x40000000
	walWriteByte = 120
)

// SQLiteWriter is another process that has a write transaction on the SQLite
// file at path, whose symlinks are followed; 0 where there is none, or none
// can be seen. It opens nothing.
func SQLiteWriter(path string) (pid int) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for _, where := range []struct {
		suffix      string
		first, last uint64
	}{{"", pendingByte, sharedFirst + sharedSize - 1}, {"-shm", walWriteByte, walWriteByte}} {
		info, err := os.Stat(path + where.suffix)
		if err != nil {
			continue
		}
		for _, l := range locks(info.Sys().(*syscall.Stat_t).Ino) {
			if l.write && l.pid != os.Getpid() && l.first <= where.last && l.last >= where.first {
				return l.pid
			}
		}
	}
	return 0
}

// SQLiteUser is another process that has the SQLite file at path in use, be it
// for reading; 0 where none can be seen. It opens nothing.
func SQLiteUser(path string) (pid int) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for _, suffix := range []string{"", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			continue
		}
		for _, l := range locks(info.Sys().(*syscall.Stat_t).Ino) {
			if l.pid != os.Getpid() {
				return l.pid
			}
		}
	}
	return 0
}

// held is one line of /proc/locks.
type held struct {
	pid         int
	write       bool
	first, last uint64 // bytes, both included
}

func (h held) exclusive() bool {
	return h.write && h.first < sharedFirst+sharedSize && h.last >= sharedFirst
}

// locks returns the POSIX locks on an inode, by /proc/locks; none when it
// cannot be read. The device is not compared: stacked file systems show
// another one there, and a false hit only makes the caller careful.
func locks(inode uint64) []held {
	raw, err := os.ReadFile("/proc/locks")
	if err != nil {
		return nil
	}
	return parseLocks(raw, inode)
}

func parseLocks(raw []byte, inode uint64) (out []held) {
	for line := range bytes.Lines(raw) {
		// 1: POSIX  ADVISORY  WRITE 4711 fe:00:10144563 1073741826 1073742335
		f := bytes.Fields(line)
		if len(f) < 8 || string(f[1]) != "POSIX" {
			continue // flock, lease, or "->", a process that waits
		}
		if at := bytes.LastIndexByte(f[5], ':'); string(f[5][at+1:]) != strconv.FormatUint(inode, 10) {
			continue
		}
		pid, err1 := strconv.Atoi(string(f[4]))
		first, err2 := strconv.ParseUint(string(f[6]), 10, 64)
		last, err3 := strconv.ParseUint(string(f[7]), 10, 64)
		if string(f[7]) == "EOF" {
			last, err3 = math.MaxUint64, nil
		}
		if err1 == nil && err2 == nil && err3 == nil && pid > 0 {
			out = append(out, held{pid, string(f[3]) == "WRITE", first, last})
		}
	}
	return out
}
