//go:build unix

package config

import (
	"io/fs"
	"syscall"
)

// links is the number of names that a file has; 0 where that is not known.
func links(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink) //nolint:unconvert // its type differs between systems
	}
	return 0
}
