package sqlfile

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// Recording says where a [Record] keeps what its rows were.
type Recording struct {
	W    io.Writer // gets the saved rows; [Open] reads them
	Ties []string  // columns, in whatever table: rows that share a text in one of them come back together or not at all

	// Ready is called when all is written and nothing is committed: it makes what was written durable. Its error undoes the transaction.
	Ready func() error
}

// Changed counts what a transaction left otherwise than it was, in rows; those that its triggers and foreign keys changed are among them, and
// those of full-text tables are not.
type Changed struct {
	Added, Altered, Removed int64
}

// Record is [Write] that first keeps every row as it was that f changes, in whatever table, by triggers and by foreign keys too. What full-text
// tables make of their rows is not kept, but the rows are.
//
// Saved is a stream of blocks of a megabyte and a trailer that says what they hold; without the trailer nothing was committed.
// The database must be UTF-8, as OpenClaw's are.
func Record(ctx context.Context, path string, wait time.Duration, rec Recording, f func(tx *Tx) error) (changed Changed, err error) {
	err = Write(ctx, path, wait, func(tx *Tx) error {
		r, err := tx.record(rec)
		if err != nil {
			return err
		}
		if err := f(tx); err != nil {
			return err
		}
		if changed, err = r.finish(); err != nil {
			return err
		}
		if rec.Ready != nil {
			return rec.Ready()
		}
		return nil
	})
	return changed, err
}

// The stream: blocks, the trailer as JSON, its length and the mark.
const (
	blockSize   = 1 << 20
	endMark     = "ocrows1\n"
	endSize     = 8 + len(endMark)
	formVersion = 1
)

type trailer struct {
	Version int       `json:"version"`
	Schema  int64     `json:"schema"` // the file's PRAGMA user_version
	Tables  []*imaged `json:"tables"`
	Blocks  []block   `json:"blocks"`
	Before  int64     `json:"before"` // rows that were there
	After   int64     `json:"after"`  // rows that are there now
	Changed Changed   `json:"changed"`
	Witness []witness `json:"witness,omitempty"`
}

type block struct {
	At     int64 `json:"at"`
	Length int64 `json:"length"`
	Raw    int64 `json:"raw"` // bytes when unpacked
	Sum    mark  `json:"sum"`
	After  bool  `json:"after,omitempty"` // of rows as they are now
}

// A witness is a row that tells whether the transaction was committed.
type witness struct {
	Table  int    `json:"table"`
	Key    []byte `json:"key"`
	Before *mark  `json:"before,omitempty"` // nil: not there
	After  *mark  `json:"after,omitempty"`
}

// witnesses is how many rows are asked, and candidates among how many they are looked for.
const (
	witnesses  = 8
	candidates = 256
)

type recorder struct {
	tx       *Tx
	w        io.Writer
	ties     []string
	known    map[string]*imaged
	list     []*imaged
	buf      []byte
	image    []byte
	at       int64
	enc      *zstd.Encoder
	end      trailer
	early    []witness // of the first rows that were changed
	err      error
	panicked any
}

// Of a row in a block: what it is, the table's number, the rowid, its values. A row as it is now has the mark of its values, and of those
// only the key and the ties.

func (tx *Tx) record(rec Recording) (*recorder, error) {
	hooks, ok := tx.conn.(sqlite.HookRegisterer)
	if !ok {
		return nil, errors.New("the database driver tells nothing of changes")
	}
	if enc, _, err := tx.Text("PRAGMA encoding"); err != nil || enc != "UTF-8" {
		return nil, cmp.Or(err, error(&Error{Path: tx.path, Doing: "write", Detail: "its texts are " + enc + ", and OpenClaw's are UTF-8"}))
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	r := &recorder{tx: tx, w: rec.W, ties: rec.Ties, enc: enc}
	r.end.Version = formVersion
	if r.end.Schema, err = tx.UserVersion(); err != nil {
		return nil, err
	}
	if r.known, err = tx.tables(r.ties); err != nil {
		return nil, err
	}
	tx.recorder = r
	hooks.RegisterPreUpdateHook(r.hook)
	return r, nil
}

// learn looks for tables that the transaction made.
func (r *recorder) learn() error {
	all, err := r.tx.tables(r.ties)
	for name, t := range all {
		if _, ok := r.known[name]; !ok {
			r.known[name] = t
		}
	}
	return err
}

// hook is called by the engine, within a statement: what goes wrong here is told when the statement is over.
func (r *recorder) hook(d sqlite.SQLitePreUpdateData) {
	defer func() {
		if p := recover(); p != nil {
			r.panicked = p
		}
	}()
	if r.err == nil && r.panicked == nil && d.DatabaseName == "main" {
		r.err = r.note(&d)
	}
}

func (r *recorder) note(d *sqlite.SQLitePreUpdateData) error {
	t, known := r.known[d.TableName]
	switch {
	case !known:
		return fmt.Errorf("the table %s changes, and was not there before", d.TableName)
	case t == nil:
		return nil
	case t.odd != "":
		return fmt.Errorf("rows of %s cannot be saved: %s", d.TableName, t.odd)
	case d.Count() != len(t.Columns):
		return fmt.Errorf("rows of %s have %d columns, and the table has %d", d.TableName, d.Count(), len(t.Columns))
	case !t.Rowids:
		return fmt.Errorf("rows of %s cannot be saved: they have no rowids", d.TableName)
	}
	if t.touched == nil {
		t.number, t.touched = len(r.list), map[int64]byte{}
		r.list = append(r.list, t)
	}
	if d.Op != lib.SQLITE_INSERT {
		was, seen := t.touched[d.OldRowID]
		if !seen {
			was = wasThere
			if err := r.keep(t, d); err != nil {
				return err
			}
		}
		t.touched[d.OldRowID] = was &^ isThere
	}
	if d.Op != lib.SQLITE_DELETE {
		t.touched[d.NewRowID] |= isThere
		if len(r.early) < candidates && t.touched[d.NewRowID]&wasThere == 0 {
			r.early = append(r.early, witness{Table: t.number, Key: binary.AppendVarint(nil, d.NewRowID)})
		}
	}
	return nil
}

// keep saves a row as it is before its first change.
func (r *recorder) keep(t *imaged, d *sqlite.SQLitePreUpdateData) (err error) {
	if len(r.buf) >= blockSize {
		if err := r.flush(false); err != nil {
			return err
		}
	}
	r.buf = binary.AppendUvarint(r.buf, uint64(t.number))
	r.buf = binary.AppendVarint(r.buf, d.OldRowID)
	from := len(r.buf)
	if r.buf, err = handleOf(d).appendOld(r.buf, len(t.Columns)); err != nil {
		return err
	}
	r.end.Before++
	if len(r.early) < candidates {
		vals, _, err := cutValues(r.buf[from:], len(t.Columns))
		if err != nil {
			return err
		}
		m := markOf(r.buf[from:])
		r.early = append(r.early, witness{Table: t.number, Key: imageOf(nil, t.key(d.OldRowID, vals)), Before: &m})
	}
	return nil
}

// flush ends the block.
func (r *recorder) flush(after bool) error {
	if len(r.buf) == 0 {
		return nil
	}
	packed := r.enc.EncodeAll(r.buf, nil)
	r.end.Blocks = append(r.end.Blocks, block{At: r.at, Length: int64(len(packed)), Raw: int64(len(r.buf)), Sum: markOf(r.buf), After: after})
	r.buf = r.buf[:0]
	return r.write(packed)
}

func (r *recorder) write(b []byte) error {
	n, err := r.w.Write(b)
	r.at += int64(n)
	return err
}

// told gives what went wrong in the hook.
func (r *recorder) told() error {
	if p := r.panicked; p != nil {
		r.panicked = nil
		panic(p)
	}
	return r.err
}

// finish saves what the changed rows are now, and the trailer.
func (r *recorder) finish() (Changed, error) {
	r.tx.conn.(sqlite.HookRegisterer).RegisterPreUpdateHook(nil)
	r.tx.recorder = nil
	var c Changed
	if err := r.told(); err != nil {
		return c, err
	}
	if err := r.flush(false); err != nil {
		return c, err
	}
	for _, t := range r.list {
		plain := int64(1)
		if t.Virtual != "" {
			plain = 0
		}
		for _, rowid := range slices.Sorted(maps.Keys(t.touched)) {
			switch t.touched[rowid] {
			case wasThere:
				c.Removed += plain
				continue
			case 0:
				continue // came and went
			case wasThere | isThere:
				c.Altered += plain
			default:
				c.Added += plain
			}
			if err := r.now(t, rowid); err != nil {
				return c, err
			}
		}
	}
	if err := r.flush(true); err != nil {
		return c, err
	}
	if err := r.bear(); err != nil {
		return c, err
	}
	r.end.Tables, r.end.Changed = r.list, c
	text, err := json.Marshal(r.end)
	if err != nil {
		return c, err
	}
	text = binary.BigEndian.AppendUint64(text, uint64(len(text)))
	return c, r.write(append(text, endMark...))
}

// now saves a row as the transaction leaves it: its mark, and by what it is known and tied.
func (r *recorder) now(t *imaged, rowid int64) error {
	vals, found, err := t.at(r.tx, rowid)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("a row of %s that was just written cannot be found", t.Name)
	}
	if len(r.buf) >= blockSize {
		if err := r.flush(true); err != nil {
			return err
		}
	}
	r.image = imageOf(r.image[:0], vals)
	m := markOf(r.image)
	r.buf = binary.AppendUvarint(r.buf, uint64(t.number))
	r.buf = append(r.buf, m[:]...)
	r.buf = imageOf(r.buf, t.key(rowid, vals))
	for _, c := range t.Ties {
		r.buf = appendValue(r.buf, vals[c])
	}
	r.end.After++
	return nil
}

// bear chooses rows that are not as they were.
func (r *recorder) bear() error {
	for _, w := range r.early {
		t := r.list[w.Table]
		if w.Before == nil {
			rowid, _ := binary.Varint(w.Key)
			vals, found, err := t.at(r.tx, rowid)
			if err != nil {
				return err
			}
			if !found {
				continue
			}
			w.Key = imageOf(nil, t.key(rowid, vals))
			// Not new where it only got another rowid.
			if slices.ContainsFunc(r.early, func(o witness) bool { return o.Before != nil && o.Table == w.Table && bytes.Equal(o.Key, w.Key) }) {
				continue
			}
		}
		m, err := t.markAt(r.tx, w.Key)
		if err != nil {
			return err
		}
		if w.After = m; same(w.Before, w.After) {
			continue
		}
		if r.end.Witness = append(r.end.Witness, w); len(r.end.Witness) == witnesses {
			break
		}
	}
	return nil
}

func same(a, b *mark) bool { return a == b || a != nil && b != nil && *a == *b }

// markAt is the mark of the row of a packed key, nil where there is none.
func (t *imaged) markAt(tx *Tx, key []byte) (*mark, error) {
	vals, _, err := cutValues(key, max(1, len(t.Key)))
	if err != nil {
		return nil, err
	}
	_, row, found, err := t.find(tx, vals)
	if err != nil || !found {
		return nil, err
	}
	m := markOf(imageOf(nil, row))
	return &m, nil
}
