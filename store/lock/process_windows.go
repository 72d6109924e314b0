package lock

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

const nonblock = 0

const (
	queryLimited     = 0x1000 // PROCESS_QUERY_LIMITED_INFORMATION
	stillActive      = 259
	invalidParameter = syscall.Errno(87)
)

// Process knows life only: OpenClaw writes no start times here.
func (local) Process(pid int) Process {
	p := Process{PID: pid, Life: Gone}
	if pid <= 0 {
		return p
	}
	h, err := syscall.OpenProcess(queryLimited, false, uint32(pid))
	if err != nil {
		switch {
		case errors.Is(err, invalidParameter):
		case errors.Is(err, syscall.ERROR_ACCESS_DENIED):
			p.Life = Alive
		default:
			p.Life = Dark
		}
		return p
	}
	defer syscall.CloseHandle(h)
	var code uint32
	if syscall.GetExitCodeProcess(h, &code) != nil {
		p.Life = Dark
	} else if code == stillActive {
		p.Life = Alive
	}
	return p
}

func (local) Boot() time.Time { return time.Time{} }

func (local) Elsewhere(dir string) (why string, kernel bool) {
	if shared(dir, driveType) {
		return fmt.Sprintf("%s is on a shared file system", dir), false
	}
	return "", false
}

func driveType(root string) uint32 {
	name, err := windows.UTF16PtrFromString(root)
	if err != nil {
		return 0 // unknown
	}
	return windows.GetDriveType(name)
}

func containers() inner { return nil }
