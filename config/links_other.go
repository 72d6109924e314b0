//go:build !unix

package config

import "io/fs"

// links is the number of names that a file has; 0 where that is not known.
func links(fs.FileInfo) uint64 { return 0 }
