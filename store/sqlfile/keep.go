package sqlfile

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Keep saves rows that somebody else is about to remove, as [Record] saves those that it removes: what is saved can be restored once they are
// gone, and where they are not it says so. The file is only read, beside whoever writes. choose names the rows, by a table and a condition on it,
// in an order in which they can come back; rows of full-text tables are not saved. It is called again where what was read was void: what was
// written of that stays in front, and the trailer does not know it.
func Keep(ctx context.Context, path string, rec Recording, choose func(tx *Tx, rows func(table, where string, args ...any) error) error) (kept Changed, err error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return kept, err
	}
	r := &recorder{}
	err = Read(ctx, path, func(tx *Tx) (err error) {
		r = &recorder{tx: tx, w: rec.W, ties: rec.Ties, enc: enc, at: r.at}
		r.end.Version = formVersion
		if r.end.Schema, err = tx.UserVersion(); err != nil {
			return err
		}
		if r.known, err = tx.tables(r.ties); err != nil {
			return err
		}
		if err := choose(tx, r.take); err != nil {
			return err
		}
		return r.flush(false)
	})
	if err != nil {
		return kept, err
	}
	kept.Removed = r.end.Before
	r.end.Tables, r.end.Changed = r.list, kept
	text, err := json.Marshal(r.end)
	if err != nil {
		return kept, err
	}
	text = binary.BigEndian.AppendUint64(text, uint64(len(text)))
	if err := r.write(append(text, endMark...)); err != nil {
		return kept, err
	}
	if rec.Ready != nil {
		return kept, rec.Ready()
	}
	return kept, nil
}

// take saves rows of a table as they are, each once.
func (r *recorder) take(table, where string, args ...any) error {
	t := r.known[table]
	if t == nil || t.odd != "" || !t.Rowids || t.Virtual != "" {
		why := "there is none that can be saved"
		if t != nil {
			why = cmp.Or(t.odd, why)
		}
		return fmt.Errorf("rows of %s cannot be saved: %s", table, why)
	}
	if t.touched == nil {
		t.number, t.touched = len(r.list), map[int64]byte{}
		r.list = append(r.list, t)
	}
	return r.tx.Each("SELECT _rowid_, "+t.listed()+" FROM "+quoted(t.Name)+" WHERE "+where, func(row *Row) error {
		rowid, _ := row.Int(0)
		if t.touched[rowid] != 0 {
			return nil
		}
		t.touched[rowid] = wasThere
		if len(r.buf) >= blockSize {
			if err := r.flush(false); err != nil {
				return err
			}
		}
		r.buf = binary.AppendUvarint(r.buf, uint64(t.number))
		r.buf = binary.AppendVarint(r.buf, rowid)
		for i := range t.Columns {
			r.buf = appendValue(r.buf, row.Value(i+1))
		}
		r.end.Before++
		return nil
	}, args...)
}
