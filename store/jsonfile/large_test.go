package jsonfile

import (
	"bytes"
	"testing"
)

// Whatever is asked for behind a text, it is read as it is.
func TestReadLargeText(t *testing.T) {
	for _, size := range []int{0, 1, 2 << 20, 16<<20 - 1, 16 << 20, 16<<20 + 4097, 21<<20 + 1} {
		want := bytes.Repeat([]byte("0123456789abcdef\n"), size/17+1)[:size]
		got, err := readAll(bytes.NewReader(want), int64(size))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %d read, %v", size, len(got), err)
		}
	}
}
