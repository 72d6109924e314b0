//go:build unix

package doctor

import (
	"io/fs"
	"syscall"
)

// names is how many names a file has; 0 where that is not known.
func names(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // of another size elsewhere
	}
	return 0
}

// owner is the user that a file belongs to; -1 where that is not known.
func owner(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
