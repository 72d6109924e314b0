package store

import (
	"bytes"
	"context"
	"fmt"

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
