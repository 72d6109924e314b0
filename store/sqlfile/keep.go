package sqlfile

import (
	"context"
	"encoding/binary"
	"encoding/json"

	"github.com/klauspost/compress/zstd"
)

// Keep saves rows that somebody else is about to change, as [Record] saves those that it changes: what is saved can be restored once they are gone,
// and [Saved.Settle] sees what became of them. The file is only read, beside whoever writes. choose names the rows; those of full-text tables are not
// saved. It is called again where what was read was void: what was written of that stays in front, and the trailer does not know it.
func Keep(ctx context.Context, path string, rec Recording, choose Choice) (kept Changed, err error) {
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
		if err := choose(tx, nil, r.take); err != nil {
			return err
		}
		return r.flush(false)
	})
	if err != nil {
		return kept, err
	}
	kept.Removed = r.end.Before
	return kept, r.seal(kept, rec.Ready)
}

// seal writes the trailer.
func (r *recorder) seal(c Changed, ready func() error) error {
	r.end.Tables, r.end.Changed = r.list, c
	text, err := json.Marshal(r.end)
	if err != nil {
		return err
	}
	text = binary.BigEndian.AppendUint64(text, uint64(len(text)))
	if err := r.write(append(text, endMark...)); err != nil || ready == nil {
		return err
	}
	return ready()
}

// take saves rows of a table as they are, each once.
func (r *recorder) take(table, where string, args ...any) error {
	return r.pick(table, where, args, func(t *imaged, rowid int64, vals []any) error {
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
		r.buf = imageOf(r.buf, vals)
		r.end.Before++
		return nil
	})
}
