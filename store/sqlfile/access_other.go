//go:build !unix

package sqlfile

// denied says why a file may not be read; nil if that is not known.
func denied(string) error { return nil }

func unwritable(string) bool { return false }
