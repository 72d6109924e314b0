package agentdb

import (
	"errors"
	"slices"
	"strings"

	"oc/store/sqlfile"
)

// Transcripts are the windows of every session, without their sizes, and what else has events: a window whose session
// is gone has no Key. They are sorted by session id.
func (db *DB) Transcripts() (all []Window, err error) {
	seen := map[string]bool{}
	take := func(w Window) {
		if !seen[w.SessionID] {
			seen[w.SessionID] = true
			all = append(all, w)
		}
	}
	current := map[string]string{} // session id -> key
	err = db.tx.Each("SELECT session_key, "+db.idColumn()+" FROM "+db.table()+" NOT INDEXED", func(r *sqlfile.Row) error {
		current[r.Text(1)] = r.Text(0)
		return nil
	})
	if err != nil {
		return nil, err
	}
	table := db.windows()
	has, err := db.tx.Columns(table)
	if err != nil {
		return nil, err
	}
	if has["session_id"] && has["session_key"] {
		err = db.tx.Each("SELECT session_id, session_key, "+selected(has, "reason")+", "+selected(has, "created_at")+", "+selected(has, "updated_at")+" FROM "+table, func(r *sqlfile.Row) error {
			w := Window{SessionID: r.Text(0), Key: r.Text(1), Reason: r.Text(2)}
			w.CreatedAt, _ = r.Int(3)
			w.UpdatedAt, _ = r.Int(4)
			if key, ok := current[w.SessionID]; ok {
				w.Current = true
				if w.Key == "" {
					w.Key = key
				}
			}
			take(w)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for id, key := range current {
		take(Window{SessionID: id, Key: key, Current: true})
	}
	if has, err := db.tx.HasTable("transcript_events"); err != nil {
		return nil, err
	} else if has {
		err = db.tx.Each("SELECT DISTINCT session_id FROM transcript_events", func(r *sqlfile.Row) error {
			take(Window{SessionID: r.Text(0)})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	cold, err := db.cold("", nil)
	if err != nil {
		return nil, err
	}
	for _, c := range cold {
		take(Window{SessionID: c.SessionID})
	}
	slices.SortFunc(all, func(a, b Window) int { return strings.Compare(a.SessionID, b.SessionID) })
	return all, nil
}

// Waiting are the archived transcripts that are in the database alone, of every session, the oldest first; with their
// keys.
func (db *DB) Waiting() (all []Archive, keys []string, err error) {
	const table = "session_transcript_archives"
	has, err := db.tx.HasTable(table)
	if err != nil || !has {
		return nil, nil, err
	}
	if err := db.need(table, "session_id", "session_key", "archive_name", "reason", "archive_blob", "created_at", "published_at"); err != nil {
		return nil, nil, err
	}
	err = db.tx.Each("SELECT session_id, session_key, archive_name, reason, octet_length(archive_blob), created_at FROM "+table+
		" WHERE published_at IS NULL ORDER BY created_at, session_id", func(r *sqlfile.Row) error {
		a := Archive{SessionID: r.Text(0), Name: r.Text(2), Reason: r.Text(3)}
		a.Bytes, _ = r.Int(4)
		a.CreatedAt, _ = r.Int(5)
		all, keys = append(all, a), append(keys, r.Text(1))
		return nil
	})
	return all, keys, err
}

// Filed are the transcripts whose bytes are, or may be, in files: the cold ones, and the archived ones.
func (db *DB) Filed() (cold []Cold, archives []Archive, err error) {
	if cold, err = db.cold("", nil); err != nil {
		return nil, nil, err
	}
	const table = "session_transcript_archives"
	has, err := db.tx.Columns(table)
	if err != nil || !has["archive_name"] || !has["archive_blob"] || !has["published_at"] {
		return cold, nil, err
	}
	err = db.tx.Each("SELECT session_id, archive_name, octet_length(archive_blob), published_at FROM "+table, func(r *sqlfile.Row) error {
		a := Archive{SessionID: r.Text(0), Name: r.Text(1), Published: !r.Null(3)}
		a.Bytes, _ = r.Int(2)
		archives = append(archives, a)
		return nil
	})
	return cold, archives, err
}

// Sweep calls f for the events of the windows whose session ids lie from first to last, cold ones included, in the
// order of session ids and of writing. Their times are not read, and a Line lasts until f returns. A cold archive that
// cannot be read is one event with its *ColdError as Damage. Like [DB.Events] it may give something void.
func (db *DB) Sweep(first, last string, f func(sessionID string, e Event) error) error {
	has, err := db.tx.Columns("transcript_events")
	if err != nil {
		return err
	}
	if len(has) > 0 {
		if err := db.need("transcript_events", "session_id", "seq", "event_json"); err != nil {
			return err
		}
		query := "SELECT seq, event_json, NULL, " + selected(has, "event_zstd") + ", " + selected(has, "event_utf8_bytes") + ", session_id FROM transcript_events WHERE session_id >= ?1 AND session_id <= ?2 ORDER BY session_id, seq"
		var room []byte
		err := db.tx.Each(query, func(r *sqlfile.Row) error {
			return f(r.Text(5), readEvent(r, &room))
		}, first, last)
		if err != nil {
			return err
		}
	}
	cold, err := db.cold(" WHERE session_id >= ?1 AND session_id <= ?2 ORDER BY session_id", []any{first, last})
	if err != nil {
		return err
	}
	for i := range cold {
		id := cold[i].SessionID
		err := db.coldEvents(&cold[i], func(e Event) error { return f(id, e) })
		var lost *ColdError
		if errors.As(err, &lost) {
			err = f(id, Event{Damage: lost}) // the others are sound
		}
		if err != nil {
			return err
		}
	}
	return nil
}
