package maintenance

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
)

// A Splice puts bytes in place of Cut bytes from At on. Bytes that no splice
// cuts stay as they are.
type Splice struct {
	At, Cut int64
	Put     []byte
}

// A Spliced is a text with splices in it, read without being held.
type Spliced struct {
	base   io.ReaderAt
	pieces []piece
	size   int64
}

// piece is a run of the new text: of its own bytes, or of the old text.
type piece struct {
	at   int64 // in the new text
	size int64
	from int64 // in the old text; where put is nil
	put  []byte
}

// NewSpliced lays splices over a text of size bytes. They may come in any order
// and must not overlap; those at one place keep their order.
func NewSpliced(base io.ReaderAt, size int64, splices []Splice) (*Spliced, error) {
	splices = slices.Clone(splices)
	slices.SortStableFunc(splices, func(a, b Splice) int { return cmp.Compare(a.At, b.At) })
	s := &Spliced{base: base}
	add := func(p piece) {
		if p.size > 0 {
			p.at = s.size
			s.pieces = append(s.pieces, p)
			s.size += p.size
		}
	}
	at := int64(0)
	for _, x := range splices {
		if x.At < at || x.Cut < 0 || x.At+x.Cut > size {
			return nil, fmt.Errorf("two changes of the bytes from %d on, or one behind the end at %d", x.At, size)
		}
		add(piece{size: x.At - at, from: at})
		add(piece{size: int64(len(x.Put)), put: x.Put})
		at = x.At + x.Cut
	}
	add(piece{size: size - at, from: at})
	return s, nil
}

// Size is the length of the new text in bytes.
func (s *Spliced) Size() int64 { return s.size }

// ReadAt reads the new text.
func (s *Spliced) ReadAt(b []byte, at int64) (n int, err error) {
	i := sort.Search(len(s.pieces), func(i int) bool { return s.pieces[i].at+s.pieces[i].size > at })
	for ; i < len(s.pieces) && n < len(b); i++ {
		p := &s.pieces[i]
		skip := at + int64(n) - p.at
		want := min(int64(len(b)-n), p.size-skip)
		if p.put != nil {
			n += copy(b[n:n+int(want)], p.put[skip:])
			continue
		}
		got, err := s.base.ReadAt(b[n:n+int(want)], p.from+skip)
		n += got
		if int64(got) < want {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // it has become shorter
			}
			return n, err
		}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// SplicedFile writes a file with layers of splices in it, each over what the
// one before it gives: the content of a Replace. The file is read as it is
// then, a piece at a time.
func SplicedFile(path string, layers ...[]Splice) func(io.Writer) error {
	return func(w io.Writer) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		text, size := io.ReaderAt(f), info.Size()
		for _, layer := range layers {
			s, err := NewSpliced(text, size, layer)
			if err != nil {
				return err
			}
			text, size = s, s.Size()
		}
		_, err = io.Copy(w, io.NewSectionReader(text, 0, size))
		return err
	}
}
