//go:build !linux

package jsonfile

// large would ask for large pages behind a text.
func large([]byte) {}
