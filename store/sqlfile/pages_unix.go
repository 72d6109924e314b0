//go:build unix

package sqlfile

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mapped is the database file at path, which no lock of this process is on: closing it would drop that.
func mapped(path string) (*pages, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() < 512 || int64(int(info.Size())) != info.Size() {
		return nil, errPages
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	p, err := asPages(b)
	if err != nil {
		_ = syscall.Munmap(b) // nothing was written to it
		return nil, err
	}
	return p, nil
}

// forget gives up the memory that the pages read so far take; they can be read again.
func (p *pages) forget() { _ = unix.Madvise(p.b, unix.MADV_DONTNEED) } // it saves memory, or does not

func (p *pages) close() { _ = syscall.Munmap(p.b) }
