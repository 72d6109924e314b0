//go:build unix

package gateway

import (
	"os"
	"syscall"
)

var errNotDir error = syscall.ENOTDIR

func ownerUID(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
