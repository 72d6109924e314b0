//go:build unix

package doctor

import "syscall"

// nonblock keeps an open of a pipe from waiting for a writer.
const nonblock = syscall.O_NONBLOCK
