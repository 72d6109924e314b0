//go:build !unix

package doctor

import "io/fs"

// names is how many names a file has; 0 where that is not known.
func names(fs.FileInfo) uint64 { return 0 }

// owner is the user that a file belongs to; -1 where that is not known.
func owner(fs.FileInfo) int { return -1 }
