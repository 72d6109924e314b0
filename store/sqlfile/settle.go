package sqlfile

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// Choice names to rows the rows that are meant, by a table and a condition on it, in an order in which they can come back. ties are the texts that
// tie the rows which were saved; none when they are to be saved.
type Choice func(tx *Tx, ties []string, rows func(table, where string, args ...any) error) error

// Settle looks at what became of rows that [Keep] saved, and writes to rec, as [Record] would have, what somebody else has changed of them since: the
// rows that are gone or others, as they were, and marks of those that are others or new. Rows tied to one of without, and to what those are tied to, are left out. The file is only
// read. Nothing has changed where Changed is zero; what was written is then to be thrown away.
func (s *Saved) Settle(ctx context.Context, path string, rec Recording, without []string, choose Choice) (changed Changed, err error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return changed, err
	}
	r := &recorder{}
	err = Read(ctx, path, func(tx *Tx) (err error) {
		r = &recorder{tx: tx, w: rec.W, ties: rec.Ties, enc: enc, at: r.at}
		r.end.Version, r.end.Schema = formVersion, s.end.Schema
		if err := s.fits(tx); err != nil {
			return err
		}
		if r.known, err = tx.tables(r.ties); err != nil {
			return err
		}
		changed, err = r.settle(s, without, choose)
		return err
	})
	if err != nil {
		return Changed{}, err
	}
	return changed, r.seal(changed, rec.Ready)
}

// is what a row is now, and whether it was so before.
type is struct {
	mark mark
	same bool
}

func (r *recorder) settle(s *Saved, without []string, choose Choice) (c Changed, err error) {
	without = slices.Clone(without)
	left := func(ties []string) bool {
		return slices.ContainsFunc(ties, func(tie string) bool { return slices.Contains(without, tie) })
	}
	tied := map[string]bool{}
	err = s.before(func(t *imaged, _ int64, vals []any) error {
		ties := t.tied(vals)
		for _, tie := range ties {
			tied[tie] = true
		}
		if left(ties) {
			without = append(without, ties...)
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	ties := slices.Sorted(maps.Keys(tied))
	var image []byte
	now := map[mark]is{}
	name := func(t *imaged, key []any) mark { return markOf([]byte(t.id(key))) }
	choice := func(each func(t *imaged, rowid int64, vals []any) error) error {
		return choose(r.tx, ties, func(table, where string, args ...any) error { return r.pick(table, where, args, each) })
	}
	err = choice(func(t *imaged, rowid int64, vals []any) error {
		image = imageOf(image[:0], vals)
		now[name(t, t.key(rowid, vals))] = is{mark: markOf(image)}
		return nil
	})
	if err != nil {
		return c, err
	}
	// Rows that were there: what is as it was is nobody's change.
	err = s.before(func(was *imaged, rowid int64, vals []any) error {
		t, err := r.table(was.Name)
		if err != nil {
			return err
		}
		if !slices.Equal(t.Columns, was.Columns) {
			return &Error{Path: r.tx.path, Doing: "look at", Kind: ErrOther, Detail: "the columns of " + t.Name + " are others"}
		}
		if left(t.tied(vals)) {
			return nil
		}
		key := t.key(rowid, vals)
		id := name(t, key)
		image = imageOf(image[:0], vals)
		m := markOf(image)
		row, there := now[id]
		if !there { // no longer among those that are meant, or gone
			at, vals, found, err := t.find(r.tx, key)
			if err != nil {
				return err
			}
			if found {
				row, there = is{mark: markOf(imageOf(nil, vals))}, true
				if row.mark != m {
					t.touched[at] = isThere
				}
			}
		}
		switch {
		case there && row.mark == m:
			row.same = true
			now[id] = row
			return nil
		case there:
			c.Altered++
		default:
			c.Removed++
		}
		if len(r.buf) >= blockSize {
			if err := r.flush(false); err != nil {
				return err
			}
		}
		r.buf = binary.AppendUvarint(r.buf, uint64(t.number))
		r.buf = binary.AppendVarint(r.buf, rowid)
		r.buf = append(r.buf, image...)
		r.end.Before++
		return nil
	})
	if err != nil {
		return c, err
	}
	if err := r.flush(false); err != nil {
		return c, err
	}
	// And those that are others now, or new.
	for _, t := range r.list {
		for _, rowid := range slices.Sorted(maps.Keys(t.touched)) {
			if err := r.now(t, rowid); err != nil {
				return c, err
			}
		}
		clear(t.touched)
	}
	err = choice(func(t *imaged, rowid int64, vals []any) error {
		if t.touched[rowid] != 0 || left(t.tied(vals)) || now[name(t, t.key(rowid, vals))].same {
			return nil
		}
		t.touched[rowid] = isThere
		return r.now(t, rowid)
	})
	if err != nil {
		return c, err
	}
	c.Added = r.end.After - c.Altered
	return c, r.flush(true)
}

// table is a table whose rows can be saved.
func (r *recorder) table(name string) (*imaged, error) {
	t := r.known[name]
	if t == nil || t.odd != "" || !t.Rowids || t.Virtual != "" {
		why := "there is none that can be saved"
		if t != nil && t.odd != "" {
			why = t.odd
		}
		return nil, fmt.Errorf("rows of %s cannot be saved: %s", name, why)
	}
	if t.touched == nil {
		t.number, t.touched = len(r.list), map[int64]byte{}
		r.list = append(r.list, t)
	}
	return t, nil
}

// pick goes through rows of a table as they are.
func (r *recorder) pick(table, where string, args []any, each func(t *imaged, rowid int64, vals []any) error) error {
	t, err := r.table(table)
	if err != nil {
		return err
	}
	return r.tx.Each("SELECT _rowid_, "+t.listed()+" FROM "+quoted(t.Name)+" WHERE "+where, func(row *Row) error {
		rowid, _ := row.Int(0)
		vals := make([]any, len(t.Columns))
		for i := range vals {
			vals[i] = row.Value(i + 1)
			if b, ok := vals[i].([]byte); ok && b == nil {
				vals[i] = []byte{}
			}
		}
		return each(t, rowid, vals)
	}, args...)
}
