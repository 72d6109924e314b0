package sqlfile

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// For errors.Is, of Saved.
var (
	ErrUncommitted = errors.New("the transaction was cut short before it was committed")
	ErrDamaged     = errors.New("the saved rows are damaged")
)

// Saved is what a [Record] kept.
type Saved struct {
	r   io.ReaderAt
	end trailer
}

// Open reads the trailer of what a Record wrote: size bytes. The errors are ErrUncommitted where there is none, ErrDamaged, and r's.
func Open(r io.ReaderAt, size int64) (*Saved, error) {
	if size < int64(endSize) {
		return nil, ErrUncommitted
	}
	foot := make([]byte, endSize)
	if _, err := r.ReadAt(foot, size-int64(endSize)); err != nil && err != io.EOF {
		return nil, err
	}
	n := binary.BigEndian.Uint64(foot)
	if string(foot[8:]) != endMark || n > uint64(size)-uint64(endSize) {
		return nil, ErrUncommitted
	}
	text := make([]byte, n)
	if _, err := r.ReadAt(text, size-int64(endSize)-int64(n)); err != nil && err != io.EOF {
		return nil, err
	}
	s := &Saved{r: r}
	if err := json.Unmarshal(text, &s.end); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if s.end.Version != formVersion {
		return nil, fmt.Errorf("%w: they are of version %d, and this oc knows version %d; use the oc that made them", ErrDamaged, s.end.Version, formVersion)
	}
	for i, t := range s.end.Tables {
		if t == nil || len(t.Columns) == 0 || t.Rowid >= len(t.Columns) || !within(t.Key, len(t.Columns)) || !within(t.Ties, len(t.Columns)) ||
			t.Virtual != "" && len(t.Named) != len(t.Columns)-1 {
			return nil, fmt.Errorf("%w: a table is described wrongly", ErrDamaged)
		}
		t.number = i
	}
	for _, b := range s.end.Blocks {
		if b.At < 0 || b.Length < 0 || b.Raw < 0 || b.At > size || b.Length > size-b.At {
			return nil, fmt.Errorf("%w: a block lies outside of them", ErrDamaged)
		}
	}
	return s, nil
}

func within(list []int, n int) bool {
	for _, i := range list {
		if i < 0 || i >= n {
			return false
		}
	}
	return true
}

// Changed is what the transaction did.
func (s *Saved) Changed() Changed { return s.end.Changed }

// Committed says whether the database that tx reads has seen the transaction; false too where nothing can be told, because somebody has
// changed every row that could tell, with known false.
func (s *Saved) Committed(tx *Tx) (committed, known bool, err error) {
	if len(s.end.Witness) == 0 {
		return true, true, nil // it changed nothing
	}
	if err := s.fits(tx); err != nil {
		return false, false, nil //nolint:nilerr // somebody upgraded it since
	}
	for _, w := range s.end.Witness {
		if w.Table < 0 || w.Table >= len(s.end.Tables) {
			return false, false, ErrDamaged
		}
		m, err := s.end.Tables[w.Table].markAt(tx, w.Key)
		if err != nil {
			return false, false, err
		}
		switch {
		case same(m, w.After):
			return true, true, nil
		case same(m, w.Before):
			return false, true, nil
		}
	}
	return false, false, nil
}

// fits says whether the database still has the tables that rows were saved of.
func (s *Saved) fits(tx *Tx) error {
	now, err := tx.UserVersion()
	if err != nil {
		return err
	}
	if now != s.end.Schema {
		return &Error{Path: tx.path, Doing: "take back", Kind: ErrOther, Detail: fmt.Sprintf("its schema is %d, and was %d when its rows were saved", now, s.end.Schema)}
	}
	all, err := tx.tables(nil)
	if err != nil {
		return err
	}
	for _, t := range s.end.Tables {
		is := all[t.Name]
		if is == nil {
			return &Error{Path: tx.path, Doing: "take back", Kind: ErrOther, Detail: "the table " + t.Name + " is gone"}
		}
		there := map[string]bool{}
		for _, c := range is.Columns {
			there[c] = true
		}
		for _, c := range t.Columns {
			if !there[c] {
				return &Error{Path: tx.path, Doing: "take back", Kind: ErrOther, Detail: "the column " + c + " of " + t.Name + " is gone"}
			}
		}
	}
	return nil
}

// each goes through the rows of one kind of block; rest is what follows the table's number in b.
func (s *Saved) each(after bool, f func(t *imaged, b []byte) (rest []byte, err error)) error {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<31), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer dec.Close()
	var packed, raw []byte
	for _, bl := range s.end.Blocks {
		if bl.After != after {
			continue
		}
		if int64(cap(packed)) < bl.Length {
			packed = make([]byte, bl.Length)
		}
		packed = packed[:bl.Length]
		if _, err := s.r.ReadAt(packed, bl.At); err != nil && err != io.EOF {
			return err
		}
		raw, err = dec.DecodeAll(packed, raw[:0])
		if err != nil || int64(len(raw)) != bl.Raw || markOf(raw) != bl.Sum {
			return fmt.Errorf("%w at byte %d", ErrDamaged, bl.At)
		}
		for b := raw; len(b) > 0; {
			n, used := binary.Uvarint(b)
			if used <= 0 || n >= uint64(len(s.end.Tables)) {
				return fmt.Errorf("%w at byte %d", ErrDamaged, bl.At)
			}
			if b, err = f(s.end.Tables[n], b[used:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// before goes through the rows that were there.
func (s *Saved) before(f func(t *imaged, rowid int64, vals []any) error) error {
	return s.each(false, func(t *imaged, b []byte) ([]byte, error) {
		rowid, used := binary.Varint(b)
		if used <= 0 {
			return nil, ErrDamaged
		}
		vals, rest, err := cutValues(b[used:], len(t.Columns))
		if err != nil {
			return nil, ErrDamaged
		}
		return rest, f(t, rowid, vals)
	})
}

// A left is a row as the transaction left it.
type left struct {
	t       *imaged
	mark    mark
	key     []any
	ties    []string
	matched bool // it was there before, too
	ready   bool // it is so still
	gone    bool // it was not there before, and is not now
}

// after lists the rows that the transaction left, by id.
func (s *Saved) after() (map[string]*left, error) {
	all := make(map[string]*left, s.end.After)
	err := s.each(true, func(t *imaged, b []byte) ([]byte, error) {
		l := &left{t: t}
		if len(b) < len(l.mark) {
			return nil, ErrDamaged
		}
		copy(l.mark[:], b)
		var err error
		if l.key, b, err = cutValues(b[len(l.mark):], max(1, len(t.Key))); err != nil {
			return nil, ErrDamaged
		}
		for range t.Ties {
			var v any
			if v, b, err = cutValue(b); err != nil {
				return nil, ErrDamaged
			}
			if tie, ok := v.(string); ok && tie != "" {
				l.ties = append(l.ties, tie)
			}
		}
		all[t.id(l.key)] = l
		return b, nil
	})
	return all, err
}
