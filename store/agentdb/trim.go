package agentdb

import (
	"fmt"
	"math"

	"oc/transcript"
	"oc/transcript/compaction"
)

// Trim plans to keep n rows of a transcript, the header among them (spec/sqlite-store.md 2.5; compaction.Trim). A damaged row goes.
func (db *DB) Trim(id string, n int) (*compaction.Trimming, error) {
	return compaction.Trim(n, func(each func(*transcript.Row) error) error {
		return db.Events(id, func(e Event) error {
			r := transcript.Row{Place: transcript.Place{Line: int(e.Seq) + 1, Size: len(e.Line)}}
			if r.Err = e.Damage; r.Err == nil {
				r.Entry, r.Err = transcript.Parse(e.Line)
			}
			return each(&r)
		})
	})
}

// Trim keeps what a trimming of the transcript as it stands says, numbers it from 0 on, and gives it a new generation, as OpenClaw does. A row
// that does not change keeps its bytes, compressed or not.
func (w *Writer) Trim(id string, t *compaction.Trimming) error {
	if err := w.underive(id); err != nil {
		return err
	}
	seq, last := int64(0), int64(-1)
	gone := func(until int64) error {
		_, err := w.db.tx.Exec("DELETE FROM transcript_events WHERE session_id = ?1 AND seq > ?2 AND seq < ?3", id, last, until)
		return err
	}
	err := t.Rows(func(line int, edit func([]byte) []byte) error {
		was := int64(line - 1)
		if err := gone(was); err != nil {
			return err
		}
		if n, err := w.db.tx.Exec("UPDATE transcript_events SET seq = ?3 WHERE session_id = ?1 AND seq = ?2", id, was, seq); err != nil {
			return err
		} else if n != 1 {
			return fmt.Errorf("row %d of the transcript of session %s is not there any more", was, id)
		}
		last = was
		seq++
		return w.keep(id, seq-1, edit)
	})
	if err != nil {
		return err
	}
	if err := gone(math.MaxInt64); err != nil {
		return err
	}
	_, err = w.db.tx.Exec(`INSERT INTO transcript_rewrite_watermarks (session_id, generation, updated_at) VALUES (?1, ?2, ?3)
		ON CONFLICT (session_id) DO UPDATE SET generation = excluded.generation, updated_at = excluded.updated_at`, id, generation(), w.now)
	if err == nil {
		err = w.Stale(id)
	}
	if err == nil {
		err = w.touch(id, w.now)
	}
	return err
}

// keep changes a row that has its new number, and writes what it is found by.
func (w *Writer) keep(id string, seq int64, edit func([]byte) []byte) error {
	return w.db.hot("WHERE session_id = ?1 AND seq = ?2", func(e Event) error {
		if e.Damage != nil {
			return e.Damage
		}
		line := e.Line
		if edit != nil {
			line = edit(line)
			packed := ""
			if w.db.schema.UserVersion >= newest {
				packed = fmt.Sprintf(", event_zstd = NULL, navigation_json = NULL, event_utf8_bytes = %d", len(line))
			}
			if _, err := w.db.tx.Exec("UPDATE transcript_events SET event_json = ?3"+packed+" WHERE session_id = ?1 AND seq = ?2", id, seq, string(line)); err != nil {
				return err
			}
		}
		entry, err := transcript.Parse(line)
		if err != nil {
			return fmt.Errorf("row %d of the transcript of session %s: %w", seq, id, err)
		}
		return w.identify(id, seq, &entry, e.CreatedAt)
	}, id, seq)
}

// underive takes out what is derived from a transcript.
func (w *Writer) underive(id string) error {
	for _, table := range []string{"session_transcript_active_events", "session_transcript_index_state", "transcript_event_identities"} {
		if _, err := w.db.tx.Exec("DELETE FROM "+table+" WHERE session_id = ?1", id); err != nil {
			return err
		}
	}
	return w.unsearch(id)
}

// unsearch takes the messages of a transcript out of the search index. Since schema 22 each row of it has an owner, whose trigger does the rest.
func (w *Writer) unsearch(id string) error {
	owned, err := w.db.tx.HasTable("session_transcript_fts_rows")
	if err != nil {
		return err
	}
	table := "session_transcript_fts"
	if owned {
		table += "_rows"
	}
	_, err = w.db.tx.Exec("DELETE FROM "+table+" WHERE session_id = ?1", id)
	return err
}
