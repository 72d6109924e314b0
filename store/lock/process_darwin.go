package lock

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const nonblock = syscall.O_NONBLOCK

// Process knows life only: OpenClaw writes no start times here.
func (local) Process(pid int) Process {
	p := Process{PID: pid, Life: Alive}
	if pid <= 0 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		p.Life = Gone
	}
	return p
}

func (local) Boot() time.Time {
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return time.Time{}
	}
	return time.Unix(tv.Unix())
}

func (local) Elsewhere(dir string) (why string, kernel bool) {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) == nil && fs.Flags&unix.MNT_LOCAL == 0 {
		return fmt.Sprintf("%s is on a shared file system", dir), false
	}
	return "", false
}

func containers() inner { return nil }
