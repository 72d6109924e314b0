package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"oc/store/agentdb"
	"oc/transcript"
	"oc/transcript/compaction"
)

// events reads some rows of the branch again, from a database: all of them are held, which are no more than a provider gets at once.
func (f *Fill) events(ctx context.Context, from, to int, each func(i int, e *transcript.Entry) error) error {
	if from >= to {
		return nil
	}
	at := make(map[int]int, to-from)
	for i := from; i < to; i++ {
		at[f.Places[i].Line] = i
	}
	found := make(map[int][]byte, to-from)
	err := f.Of.Scan(ctx, &transcript.Scanner{}, func(r *transcript.Row) error {
		if i, want := at[r.Line]; want {
			found[i] = bytes.Clone(r.Raw)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := from; i < to; i++ {
		e, err := transcript.Parse(found[i])
		if err != nil {
			return fmt.Errorf("row %d of %s is not what it was: %w", f.Places[i].Line, f.Of, err)
		}
		if err := each(i, &e); err != nil {
			return err
		}
	}
	return nil
}

// A Following is the transcript that goes on where one in a database was compacted: its rows, the header first, are read from that in any snapshot in
// which it is as it was.
type Following struct {
	id       string
	seqs     []int64
	row      []byte // of the compaction
	header   []byte
	rotation *compaction.Rotation
	db       *agentdb.DB
}

// Following plans that transcript, with a new session id, as Successor does for files. row is what Row gave; nothing else may be asked of the
// Shortening afterwards. The error is that of a transcript that cannot be rotated.
func (x *Shortening) Following(ctx context.Context, row []byte, id string, now time.Time) (*Following, error) {
	e, err := transcript.Parse(row)
	if err != nil {
		return nil, err
	}
	f, added := &Following{id: x.Of.ID, row: row}, false
	err = agentdb.Read(ctx, x.Of.Path, func(db *agentdb.DB) (err error) {
		f.db = db
		if f.seqs, err = db.Seqs(f.id); err != nil || len(f.seqs) == 0 {
			return errors.Join(err, compaction.ErrNoCompaction)
		}
		first, err := db.Event(f.id, f.seqs[0])
		if err != nil {
			return err
		}
		f.header = compaction.Header(first.Line, id, f.id, now)
		if !added {
			added = x.tree.Add(&e, transcript.Place{Line: len(f.seqs) + 1, Offset: 1 << 47, Size: len(row)})
		}
		f.rotation, err = compaction.Rotate(x.tree, f.load)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, i := range f.rotation.Beside {
		x.beside += int(x.Branch[i].Tokens)
	}
	return f, nil
}

func (f *Following) load(at transcript.Place) (transcript.Entry, error) {
	if at.Line == len(f.seqs)+1 {
		return transcript.Parse(f.row)
	}
	if at.Line < 1 || at.Line > len(f.seqs) {
		return transcript.Entry{}, fmt.Errorf("row %d of session %s is not there any more", at.Line, f.id)
	}
	e, err := f.db.Event(f.id, f.seqs[at.Line-1])
	if err != nil {
		return transcript.Entry{}, err
	}
	return transcript.Parse(e.Line)
}

// Rows passes the rows to each, which may keep them, as they are read in db.
func (f *Following) Rows(db *agentdb.DB, each func(line []byte) error) error {
	f.db = db
	return f.rotation.Write(rowByRow(each), f.header)
}

// rowByRow takes what is written a line at a time.
type rowByRow func(line []byte) error

func (each rowByRow) Write(b []byte) (int, error) {
	return len(b), each(bytes.Clone(bytes.TrimSuffix(b, []byte{'\n'})))
}

// Grown is when a transcript in a database last changed, in epoch milliseconds; 0 where that is not known.
func (c *Conversation) Grown(ctx context.Context) (at int64, err error) {
	err = agentdb.Read(ctx, c.Path, func(db *agentdb.DB) error {
		at, err = db.Grown(c.ID)
		return err
	})
	return at, err
}

// TrimRows is Trim for a transcript in a database.
func (c *Conversation) TrimRows(ctx context.Context, n int) (t *compaction.Trimming, err error) {
	err = agentdb.Read(ctx, c.Path, func(db *agentdb.DB) error {
		t, err = db.Trim(c.ID, n)
		return err
	})
	return t, err
}
