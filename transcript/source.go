package transcript

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// Decompress gives the lines of r: r itself, or what it holds if it is a zstd
// stream, as archives of transcripts and rows of a database may be. The caller
// closes the result, which does not close r. Memory for decompressing is
// bounded by 128 MiB, whatever the stream asks for.
func Decompress(r io.Reader) (io.ReadCloser, error) {
	head := make([]byte, len(zstdMagic))
	n, err := io.ReadFull(r, head)
	r = io.MultiReader(bytes.NewReader(head[:n]), r)
	if err != nil || !bytes.Equal(head, zstdMagic) {
		return io.NopCloser(r), nil // the reader gets the error, if it is one
	}
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("decompress the transcript: %w", err)
	}
	return d.IOReadCloser(), nil
}

// Gather reads a source once more, from its start, and keeps the rows at these
// places: what Load is for a file, for archives that are compressed. read passes
// all rows, as a Scanner does. The result knows no other rows.
func Gather(rows []Place, read func(row func(*Row) error) error) (load func(Place) (Entry, error), err error) {
	wanted := make(map[int]bool, len(rows))
	for _, p := range rows {
		wanted[p.Line] = true
	}
	found := make(map[int]Entry, len(rows))
	err = read(func(r *Row) error {
		if !wanted[r.Line] {
			return nil
		}
		e, err := Parse(bytes.Clone(r.Raw))
		if err != nil {
			return fmt.Errorf("line %d changed: %w", r.Line, err)
		}
		found[r.Line] = e
		if len(found) == len(wanted) {
			return ErrStop
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return func(p Place) (Entry, error) {
		e, ok := found[p.Line]
		if !ok {
			return e, fmt.Errorf("line %d was not gathered", p.Line)
		}
		return e, nil
	}, nil
}
