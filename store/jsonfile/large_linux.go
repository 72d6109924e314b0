package jsonfile

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// large asks for large pages behind a text that is about to be read: of many
// megabytes half the time goes into page faults otherwise. It is a wish, which
// the kernel may first have to make room for: a smaller text is read faster
// without.
func large(text []byte) {
	const page, worth = 2 << 20, 16 << 20
	if len(text) < worth {
		return
	}
	from := int(-uintptr(unsafe.Pointer(unsafe.SliceData(text))) & (page - 1))
	_ = unix.Madvise(text[from:from+(len(text)-from)&^(page-1)], unix.MADV_HUGEPAGE)
}
