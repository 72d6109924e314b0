package agentdb

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"oc/store/row"
)

// ErrGone is the answer for a fault that is not there any more.
var ErrGone = errors.New("it is not there any more")

// Mends tells whether Mend mends a fault.
func (f Fault) Mends() bool {
	switch f {
	case RowDoubted, ColumnsDiffer, LineageDiffers, NoWindow, OrphanIndex, BrokenIndex:
		return true
	}
	return false
}

// Mendable says why a flaw is not mended: the row does not stand up to what OpenClaw demands of every row. It is nil where Mend mends it, and
// may be asked of a transaction that only reads.
func (w *Writer) Mendable(f *Flaw) error {
	if !f.Mends() {
		return errors.New("what is right cannot be told from what is there")
	}
	switch {
	case f.Fault == BrokenIndex, f.Table == "session_transcript_fts_rows":
		return nil
	case f.Fault == OrphanIndex:
		// What refers to nothing could not come back: the database would not take it.
		n, _, err := w.db.tx.Int("SELECT count(*) FROM session_windows WHERE session_id = ?1", f.ID)
		if err == nil && (n == 0 || f.Table != "session_transcript_index_state") {
			err = errors.New("its rows refer to what is gone and could not be brought back; OpenClaw takes them out by itself")
		}
		return err
	}
	e, err := w.sound(f.Key)
	if err == nil {
		_, err = nodeColumns(&e)
	}
	if err == nil && f.Fault == NoWindow {
		err = w.windowable(&e)
	}
	return err
}

// windowable says why a row gets no window: something of its conversation is there and refers to the window that is not, so that the new one
// could not be taken back.
func (w *Writer) windowable(e *row.Entry) error {
	if _, err := windowColumns(e); err != nil {
		return err
	}
	id, _ := e.Text(row.SessionID)
	for _, table := range []string{"transcript_events", "session_transcript_active_events", "session_transcript_index_state"} {
		n, _, err := w.db.tx.Int("SELECT count(*) FROM "+table+" WHERE session_id = ?1", id)
		if err == nil && n > 0 {
			err = fmt.Errorf("%d rows of %s are of that conversation and refer to the window that is gone: one made anew could not be taken back; oc sessions export %s takes out what is there", n, table, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sound is a row that OpenClaw reads and that is as it demands.
func (w *Writer) sound(key string) (row.Entry, error) {
	e, ok, err := w.db.Entry(key)
	switch {
	case err != nil:
		return e, err
	case !ok:
		return e, ErrGone
	}
	return e, w.fits(&e)
}

// Mend mends flaws as Audit found them, without changing what anybody said: the JSON of a row is what its columns follow (release 2026.9.6:
// it is the record, they are for queries), a session without a window gets the empty one that an import gives it, and what is derived of a conversation is taken out or made anew by OpenClaw. The error is ErrGone
// where a flaw is not there as it was.
func (w *Writer) Mend(flaws []Flaw) error {
	there, err := w.db.Audit(false)
	if err != nil {
		return err
	}
	for i := range flaws {
		f := &flaws[i]
		if !slices.ContainsFunc(there, func(t Flaw) bool {
			return t.Fault == f.Fault && t.Key == f.Key && t.ID == f.ID && slices.Equal(t.Said, f.Said)
		}) {
			return fmt.Errorf("%s %s: %w", f.Fault, f.Key+f.ID, ErrGone)
		}
		if err := w.mend(f); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) mend(f *Flaw) error {
	switch f.Fault {
	case BrokenIndex:
		_, err := w.db.tx.Exec("UPDATE session_transcript_index_state SET needs_rebuild = 1 WHERE session_id = ?1", f.ID)
		return err
	case OrphanIndex:
		_, err := w.db.tx.Exec("DELETE FROM "+f.Table+" WHERE session_id = ?1", f.ID)
		return err
	case NoWindow:
		e, err := w.sound(f.Key)
		if err != nil {
			return err
		}
		return w.Put(f.Key, e.Val)
	case RowDoubted, ColumnsDiffer, LineageDiffers:
		e, err := w.sound(f.Key)
		if err != nil {
			return err
		}
		columns, err := nodeColumns(&e)
		if err != nil {
			return err
		}
		var sets []string
		args := []any{f.Key}
		for _, c := range columns {
			if c.name == "current_session_id" || c.name == "updated_at" {
				continue // as they are: the row is sound
			}
			args = append(args, c.value)
			sets = append(sets, fmt.Sprintf("%s = ?%d", c.name, len(args)))
		}
		if f.Fault != RowDoubted {
			if _, err := w.db.tx.Exec("UPDATE session_nodes SET "+strings.Join(sets, ", ")+" WHERE session_key = ?1", args...); err != nil {
				return err
			}
		}
		if _, err := w.db.tx.Exec("UPDATE session_nodes SET entry_valid = 1 WHERE session_key = ?1", f.Key); err != nil {
			return err
		}
		return w.certify(f.Key)
	}
	return fmt.Errorf("%s is not mended", f.Fault)
}
