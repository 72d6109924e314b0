package agentdb

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"oc/store/span"
	"oc/store/sqlfile"
	"oc/transcript"
)

// Versions of the headers that the two releases write.
const (
	header19 = 3
	header23 = 4
)

// ErrCold is a transcript that was moved into a cold archive, which OpenClaw brings back when the session is used again.
var ErrCold = errors.New("its transcript lies in a cold archive; OpenClaw brings it back when the session is used, and then it can be changed")

// ErrShared is a transcript that another session's row owns.
var ErrShared = errors.New("another session owns its transcript")

// Window makes sure that a transcript can be written to: that its window is there, belongs to the session, has its events in the database, and
// begins with a header, which names the directory cwd if it has to be written. The error is ErrCold, ErrShared or one of the database.
func (w *Writer) Window(key, id, cwd string) error {
	owner, there, err := w.db.tx.Text("SELECT session_key FROM session_windows WHERE session_id = ?1", id)
	if err != nil {
		return err
	}
	if there && owner != key {
		return fmt.Errorf("%w: %s", ErrShared, owner)
	}
	if cold, err := w.db.Cold(id); err != nil || cold != nil {
		return errors.Join(err, coldError(cold))
	}
	if !there {
		_, err := w.db.tx.Exec("INSERT INTO session_windows (session_id, session_key, session_scope, created_at, updated_at) VALUES (?1, ?2, 'conversation', ?3, ?3)", id, key, w.now)
		if err != nil {
			return err
		}
	}
	if n, _, err := w.db.tx.Int("SELECT count(*) FROM (SELECT 1 FROM transcript_events WHERE session_id = ?1 LIMIT 1)", id); err != nil || n > 0 {
		return err
	}
	version := header23
	if w.db.schema.UserVersion < newest {
		version = header19
	}
	line := fmt.Appendf(nil, `{"type":"session","version":%d,"id":`, version)
	line = append(span.Quote(line, id), `,"timestamp":`...)
	line = append(span.Quote(line, Stamp(w.now)), `,"cwd":`...)
	_, err = w.Append(id, append(span.Quote(line, cwd), '}'))
	return err
}

func coldError(c *Cold) error {
	if c == nil {
		return nil
	}
	return ErrCold
}

// Stamp is a time in epoch milliseconds as it stands in the rows of a transcript.
func Stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// Append adds an event, one JSON object, to the end of a transcript whose window is there. It stands uncompressed, which OpenClaw reads as
// well. Where the branch that OpenClaw has made of the transcript is up to date and the event goes on where it ends, it is kept so; else it
// is marked to be made anew. seq is the number of the event.
func (w *Writer) Append(id string, line []byte) (seq int64, err error) {
	e, err := transcript.Parse(line)
	if err != nil {
		return 0, fmt.Errorf("event of session %s: %w", id, err)
	}
	last, any, err := w.db.tx.Int("SELECT max(seq) FROM transcript_events WHERE session_id = ?1", id)
	if err != nil {
		return 0, err
	}
	if any {
		seq = last + 1
	}
	at := w.now
	if t, ok := EventTime(e.Stamp); ok {
		at = t
	}
	if err := w.insert(id, seq, line, at); err != nil {
		return 0, err
	}
	if err := w.identify(id, seq, &e, at); err != nil {
		return 0, err
	}
	if err := w.follow(id, seq, &e, at); err != nil {
		return 0, err
	}
	if _, err := w.db.tx.Exec("INSERT INTO transcript_rewrite_watermarks (session_id, generation, updated_at) VALUES (?1, ?2, ?3) ON CONFLICT (session_id) DO NOTHING", id, generation(), w.now); err != nil {
		return 0, err
	}
	return seq, w.touch(id, at)
}

// EventTime is when an event says that it was written, in epoch milliseconds.
func EventTime(stamp []byte) (ms int64, ok bool) {
	if f, is := span.Float(stamp); is {
		return int64(f), true
	}
	t, err := time.Parse(time.RFC3339Nano, textOf(stamp))
	return t.UnixMilli(), err == nil
}

func generation() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// insert writes a row of a transcript as it is.
func (w *Writer) insert(id string, seq int64, line []byte, at int64) (err error) {
	if w.db.schema.UserVersion < newest {
		_, err = w.db.tx.Exec("INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES (?1, ?2, ?3, ?4)", id, seq, string(line), at)
	} else {
		_, err = w.db.tx.Exec("INSERT INTO transcript_events (session_id, seq, event_json, created_at, event_utf8_bytes) VALUES (?1, ?2, ?3, ?4, ?5)", id, seq, string(line), at, int64(len(line)))
	}
	return err
}

// identify writes what OpenClaw finds a row by. One whose id another row has is not found by it, as with OpenClaw's import.
func (w *Writer) identify(id string, seq int64, e *transcript.Entry, at int64) error {
	event := trimmed(span.Member(e.Raw, "id"))
	if event == nil {
		return nil
	}
	var kind, parent any
	if s, ok := span.Text(span.Member(e.Raw, "type")); ok {
		kind = s
	}
	if s, ok := span.Text(span.Member(e.Raw, "parentId")); ok {
		parent = s
	}
	sent := trimmed(span.Member(e.Message, "idempotencyKey"))
	if sent != nil {
		taken, _, err := w.db.tx.Int("SELECT count(*) FROM transcript_event_identities WHERE session_id = ?1 AND message_idempotency_key = ?2", id, sent)
		if err != nil {
			return err
		}
		if taken > 0 {
			sent = nil
		}
	}
	_, err := w.db.tx.Exec(`INSERT INTO transcript_event_identities (session_id, event_id, seq, event_type, parent_id, message_idempotency_key, created_at)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (session_id, event_id) DO NOTHING`, id, event, seq, kind, parent, sent, at)
	return err
}

// branch is how far OpenClaw has come in making the active branch of a transcript.
type branch struct {
	until          int64 // the last event that it covers; -1 for none
	leaf           any   // the id of its last row: a string, or nil
	rows, messages int64
}

// branchOf reads it. ok is false where it is not there, or to be made anew.
func (w *Writer) branchOf(id string) (b branch, ok bool, err error) {
	err = w.db.tx.Each(`SELECT indexed_seq, leaf_event_id, active_event_count, active_message_count FROM session_transcript_index_state AS s
		WHERE session_id = ?1 AND needs_rebuild = 0 AND NOT EXISTS (SELECT 1 FROM session_transcript_active_events AS a WHERE a.session_id = ?1 AND a.context_eligible IS NULL)`, func(r *sqlfile.Row) error {
		b.until, _ = r.Int(0)
		b.leaf = r.Value(1)
		b.rows, _ = r.Int(2)
		b.messages, _ = r.Int(3)
		ok = true
		return nil
	}, id)
	return b, ok, err
}

// follow takes a new row into the active branch, or marks that to be made anew. Rows with a message are left to OpenClaw, which also makes
// them searchable.
func (w *Writer) follow(id string, seq int64, e *transcript.Entry, at int64) error {
	b, ok, err := w.branchOf(id)
	if err != nil {
		return err
	}
	parent := any(nil)
	if e.Parent.OK() {
		parent = string(e.Parent.ID)
	}
	if !ok && seq == 0 {
		b, ok = branch{until: -1}, true
	}
	plain := e.Kind == transcript.Header || e.Kind > transcript.Message && e.Kind <= transcript.Reset && e.Message == nil && !e.Side && parent == b.leaf && (b.leaf != nil || b.rows == 0)
	if !ok || !plain || b.until != seq-1 {
		return w.Stale(id)
	}
	if b.until = seq; e.Kind != transcript.Header {
		if _, err := w.db.tx.Exec("INSERT INTO session_transcript_active_events (session_id, active_position, event_seq, message_position, context_eligible) VALUES (?1, ?2, ?3, NULL, 1)", id, b.rows, seq); err != nil {
			return err
		}
		b.rows++
		b.leaf = string(e.ID)
	}
	return w.upsert("session_transcript_index_state", "session_id", []column{
		{"session_id", id},
		{"indexed_seq", b.until},
		{"leaf_event_id", b.leaf},
		{"needs_rebuild", int64(0)},
		{"active_event_count", b.rows},
		{"active_message_count", b.messages},
		{"updated_at", at},
	}, nil)
}

// Stale marks what OpenClaw has derived from a transcript to be made anew, which it does when it opens the database.
func (w *Writer) Stale(id string) error {
	_, err := w.db.tx.Exec(`INSERT INTO session_transcript_index_state (session_id, indexed_seq, leaf_event_id, needs_rebuild, active_event_count, active_message_count, updated_at)
		VALUES (?1, -1, NULL, 1, 0, 0, ?2) ON CONFLICT (session_id) DO UPDATE SET needs_rebuild = 1, updated_at = excluded.updated_at`, id, w.now)
	return err
}

// Unprogress takes away the card that shows how far the work of a session is, as a reset does.
func (w *Writer) Unprogress(key string) error {
	has, err := w.db.tx.HasTable("session_progress_cards")
	if err == nil && has {
		_, err = w.db.tx.Exec("DELETE FROM session_progress_cards WHERE session_key = ?1", key)
	}
	return err
}

// touch moves the times of a transcript that has changed; the time of its last change always grows.
func (w *Writer) touch(id string, at int64) error {
	_, err := w.db.tx.Exec(`UPDATE session_windows SET updated_at = ?2,
		transcript_updated_at = max(?3, coalesce(transcript_updated_at, -1) + 1, coalesce(transcript_observed_at, -1) + 1) WHERE session_id = ?1`, id, at, w.now)
	return err
}

// Leaf is the id of the row that the next event of a transcript hangs on; "" for none.
func (w *Writer) Leaf(id string) (string, error) {
	b, ok, err := w.branchOf(id)
	if err != nil {
		return "", err
	}
	last, _, err := w.db.tx.Int("SELECT max(seq) FROM transcript_events WHERE session_id = ?1", id)
	if err != nil {
		return "", err
	}
	if leaf, is := b.leaf.(string); ok && is && b.until == last {
		return leaf, nil
	}
	tree := transcript.Tree{Rules: transcript.DatabaseRules}
	err = w.db.Events(id, func(e Event) error {
		if entry, err := transcript.Parse(e.Line); err == nil {
			tree.Add(&entry, transcript.Place{Line: int(e.Seq) + 1, Size: len(e.Line)})
		}
		return nil
	})
	return tree.AppendTo(), err
}
