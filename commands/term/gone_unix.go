//go:build unix

package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// Gone tells whether nobody can read any more what is written here: the other end of a pipe is closed. One that writes only now and
// then would not find out.
func (o *Out) Gone() bool {
	file, ok := o.screen.(*os.File)
	if !ok || file == nil {
		return false
	}
	ends := []unix.PollFd{{Fd: int32(file.Fd())}}
	n, err := unix.Poll(ends, 0)
	return err == nil && n > 0 && ends[0].Revents&unix.POLLERR != 0
}
