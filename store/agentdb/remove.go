package agentdb

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"

	"oc/store/row"
	"oc/store/span"
	"oc/store/sqlfile"
)

// ErrChanged is the answer where a session is not as it was when its removal was planned.
var ErrChanged = errors.New("the session was changed since it was planned")

// A Removal is a session that is to go, and what goes with it (spec/sqlite-store.md 3.3, release 2026.9.6).
type Removal struct {
	Key    string
	Gone   []Ended           // transcripts that no other session needs
	Rehome map[string]string // transcripts that stay, by id: the session that owns them from now on
	Keeps  bool              // a transcript of it stays that no session needs, because it lies in a cold archive: its row stays as its owner
	sum    [32]byte          // of its row as it was planned
}

// An Ended is a transcript that goes.
type Ended struct {
	SessionID  string
	Generation string // of its last rewrite; "" for none
	Bytes      int64  // as JSON lines; 0 where there is no event
	state      string // how it was when it was planned
}

// ids are the transcripts that an entry names: its own, the ones before it, and those of its checkpoints.
func ids(e *row.Entry) (all []string) {
	add := func(raw []byte) {
		if s, ok := span.Text(raw); ok {
			if s = span.Trim(s); s != "" && !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	add(e.Raw(row.SessionID))
	add(span.Member(e.Val, "previousSessionId"))
	each := func(list []byte, f func(item []byte)) {
		if span.KindOf(list) == span.Array {
			_, _ = span.Items(list, 0, func(item []byte) error { f(item); return nil }) // an entry that was indexed is no damaged JSON
		}
	}
	each(span.Member(e.Val, "usageFamilySessionIds"), add)
	each(span.Member(e.Val, "compactionCheckpoints"), func(item []byte) {
		if span.KindOf(item) == span.Object {
			add(span.Member(item, "sessionId"))
			add(span.Path(item, "preCompaction", "sessionId"))
			add(span.Path(item, "postCompaction", "sessionId"))
		}
	})
	return all
}

// Removals works out what the removal of sessions takes. rows are those of a listing of the same snapshot; keys without a row are left out.
func (db *DB) Removals(rows []Row, keys []string) (all []Removal, err error) {
	going := make(map[string]bool, len(keys))
	for _, k := range keys {
		going[k] = true
	}
	byKey := make(map[string]*Row, len(rows))
	needed := map[string]string{} // by transcript: a session that needs it and stays
	need := func(id, key string) {
		if by, ok := needed[id]; !ok || key < by {
			needed[id] = key
		}
	}
	for i := range rows {
		r := &rows[i]
		if byKey[r.Key] = r; going[r.Key] {
			continue
		}
		for _, id := range ids(&r.Entry) {
			need(id, r.Key)
		}
	}
	keeps := map[string]bool{} // sessions whose every transcript stays
	sums := map[string][32]byte{}
	err = db.tx.Each("SELECT session_key, current_session_id, archived_at, pinned_at, entry_json FROM session_nodes", func(r *sqlfile.Row) error {
		key := r.Text(0)
		if going[key] {
			sums[key] = sha256.Sum256(r.Bytes(4))
			return nil
		}
		need(r.Text(1), key) // unreadable ones, too
		keeps[key] = !r.Null(2) || !r.Null(3)
		return nil
	})
	if err != nil {
		return nil, err
	}
	owned := map[string][]string{}
	there := map[string]bool{}
	err = db.tx.Each("SELECT session_id, session_key FROM session_windows ORDER BY session_id", func(r *sqlfile.Row) error {
		id, key := r.Text(0), r.Text(1)
		if there[id] = true; going[key] {
			owned[key] = append(owned[key], id)
		} else if keeps[key] {
			need(id, key)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	cold, err := db.cold("", nil)
	if err != nil {
		return nil, err
	}
	isCold := map[string]bool{}
	for i := range cold {
		isCold[cold[i].SessionID] = true
	}
	bytes, err := db.eventBytes()
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for _, key := range keys {
		r := byKey[key]
		if r == nil {
			continue
		}
		x := Removal{Key: key, Rehome: map[string]string{}, sum: sums[key]}
		for _, id := range append(ids(&r.Entry), owned[key]...) {
			mine := slices.Contains(owned[key], id)
			switch by := needed[id]; {
			case !there[id] || taken[id]:
			case by != "":
				if mine {
					x.Rehome[id] = by
				}
			case isCold[id]:
				x.Keeps = x.Keeps || mine
			default:
				taken[id] = true
				e := Ended{SessionID: id}
				if e.Generation, err = db.Generation(id); err != nil {
					return nil, err
				}
				if e.state, err = state(db.tx, id); err != nil {
					return nil, err
				}
				if e.Bytes, _, err = db.tx.Int("SELECT sum("+bytes+") + count(*) FROM transcript_events WHERE session_id = ?1", id); err != nil {
					return nil, err
				}
				x.Gone = append(x.Gone, e)
			}
		}
		all = append(all, x)
	}
	return all, nil
}

// state is what would differ if a transcript, or what hangs on it, had changed.
func state(tx *sqlfile.Tx, id string) (said string, err error) {
	err = tx.Each(`SELECT session_key, updated_at, transcript_updated_at,
		(SELECT generation FROM transcript_rewrite_watermarks WHERE session_id = ?1), (SELECT max(seq) FROM transcript_events WHERE session_id = ?1),
		(SELECT max(seq) FROM trajectory_runtime_events WHERE session_id = ?1), (SELECT count(*) FROM acp_parent_stream_events WHERE session_id = ?1)
		FROM session_windows WHERE session_id = ?1`, func(r *sqlfile.Row) error {
		for i := range 7 {
			said += fmt.Sprint(r.Value(i), " ")
		}
		return nil
	}, id)
	return said, err
}

// ArchiveName is the name of the archive of a deleted or reset transcript, at a time in epoch milliseconds (spec/sqlite-store.md 2.7).
func ArchiveName(id, reason string, at int64, generation string) string {
	if len(id) > 96 {
		sum := sha256.Sum256([]byte(id))
		id = "session-" + hex.EncodeToString(sum[:])
	}
	stamp := []byte(Stamp(at))
	for i, c := range stamp {
		if c == ':' {
			stamp[i] = '-'
		}
	}
	return id + ".jsonl." + reason + "." + string(stamp) + "." + generation + ".zst"
}

// Pack writes the events of a transcript as JSON lines, compressed. The same events give the same bytes.
func (db *DB) Pack(id string, w io.Writer) error {
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return err
	}
	err = db.Events(id, func(e Event) error {
		_, err := z.Write(append(e.Line, '\n'))
		return err
	})
	return errors.Join(err, z.Close())
}

// An Archived is the archive of a transcript that goes, for its row.
type Archived struct {
	Name      string
	Blob      []byte
	Published int64 // epoch milliseconds; 0: its file is not written yet
}

// Remove takes a session out, with the transcripts that nobody else needs; archived are theirs, by id. The error is ErrChanged where it is not as
// it was planned.
func (w *Writer) Remove(x *Removal, archived map[string]Archived) error {
	tx := w.db.tx
	var sum [32]byte
	found := false
	err := tx.Each("SELECT entry_json FROM session_nodes WHERE session_key = ?1", func(r *sqlfile.Row) error {
		sum, found = sha256.Sum256(r.Bytes(0)), true
		return nil
	}, x.Key)
	if err != nil {
		return err
	}
	if !found || sum != x.sum {
		return fmt.Errorf("%s: %w", x.Key, ErrChanged)
	}
	exec := func(query string, args ...any) {
		if err == nil {
			_, err = tx.Exec(query, args...)
		}
	}
	for i := range x.Gone {
		e := &x.Gone[i]
		now, e2 := state(tx, e.SessionID)
		if e2 != nil {
			return e2
		}
		if now != e.state {
			return fmt.Errorf("%s, transcript %s: %w", x.Key, e.SessionID, ErrChanged)
		}
		if a, ok := archived[e.SessionID]; ok {
			if err := w.archive(x.Key, e, a); err != nil {
				return err
			}
		}
		if err := w.unsearch(e.SessionID); err != nil {
			return err
		}
		exec("DELETE FROM session_transcript_active_events WHERE session_id = ?1", e.SessionID)
		exec("DELETE FROM session_transcript_index_state WHERE session_id = ?1", e.SessionID)
		exec("DELETE FROM session_windows WHERE session_id = ?1", e.SessionID)
	}
	for _, id := range slices.Sorted(maps.Keys(x.Rehome)) {
		exec("UPDATE session_windows SET session_key = ?2 WHERE session_id = ?1", id, x.Rehome[id])
	}
	if err != nil {
		return err
	}
	last, left, err := tx.Text("SELECT session_id FROM session_windows WHERE session_key = ?1 ORDER BY updated_at DESC, session_id LIMIT 1", x.Key)
	if err != nil {
		return err
	}
	if left {
		return w.clear(x.Key, last)
	}
	_, err = tx.Exec("DELETE FROM session_nodes WHERE session_key = ?1", x.Key)
	return err
}

// archive keeps a transcript that goes.
func (w *Writer) archive(key string, e *Ended, a Archived) error {
	sum := sha256.Sum256(a.Blob)
	generation := e.Generation
	if generation == "" {
		generation = hex.EncodeToString(sum[:16])
	}
	var published, tried any
	if a.Published > 0 {
		published, tried = a.Published, a.Published
	}
	_, err := w.db.tx.Exec(`INSERT INTO session_transcript_archives (session_id, generation, session_key, reason, encoding, archive_blob, archive_sha256,
		archive_name, created_at, published_at, publish_attempts, last_publish_attempt_at) VALUES (?1, ?2, ?3, 'deleted', 'zstd', ?4, ?5, ?6, ?7, ?8, ?9, ?8)`,
		e.SessionID, generation, key, a.Blob, hex.EncodeToString(sum[:]), a.Name, w.now, published, btoi(tried != nil))
	return err
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// clear takes the entry of a session out and leaves its row as the owner of the transcripts that stay.
func (w *Writer) clear(key, id string) error {
	tx := w.db.tx
	for _, table := range []string{
		"session_pending_inputs", "board_widgets", "board_tabs", "heartbeat_outcomes", "session_participants", "session_progress_cards", "session_members",
		"session_suggestions",
	} {
		if has, err := tx.Columns(table); err != nil {
			return err
		} else if has["session_key"] {
			if _, err := tx.Exec("DELETE FROM "+table+" WHERE session_key = ?1", key); err != nil {
				return err
			}
		}
	}
	has, err := tx.Columns("session_nodes")
	if err != nil {
		return err
	}
	sets := ""
	for _, c := range slices.Sorted(maps.Keys(has)) {
		switch c {
		case "session_key", "current_session_id", "entry_json", "entry_valid", "updated_at", "legacy_acp_migration_json":
		default:
			sets += ", " + c + " = NULL"
		}
	}
	_, err = tx.Exec("UPDATE session_nodes SET current_session_id = ?2, entry_json = '{}', updated_at = (SELECT updated_at FROM session_windows WHERE session_id = ?2)"+sets+" WHERE session_key = ?1", key, id)
	if err == nil { // a trigger has set it to another
		_, err = tx.Exec("UPDATE session_nodes SET entry_valid = -1 WHERE session_key = ?1", key)
	}
	if err != nil {
		return err
	}
	return w.certify(key)
}
