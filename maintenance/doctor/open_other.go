//go:build !unix

package doctor

// nonblock is for pipes, which have no names here.
const nonblock = 0
