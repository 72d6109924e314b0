package agentdb

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"oc/store/row"
	"oc/store/span"
	"oc/store/sqlfile"
)

// Size is how much there is of one window: one transcript. Times are epoch milliseconds, 0 for none.
type Size struct {
	Events   int64 // rows, the header included
	Bytes    int64 // as JSON lines
	Messages int64
	First    int64 // when the first message was written
	Last     int64 // and the last
	Cold     bool  // the events lie in a cold archive
}

// Window is one transcript of a session: the current one, or one that a reset or an expiry left behind.
type Window struct {
	SessionID string
	Key       string // of the session that owns it
	Previous  string // the window before it
	Reason    string // why it was begun; mostly ""
	CreatedAt int64
	UpdatedAt int64
	// TranscriptAt is when the transcript last grew, as the window says.
	TranscriptAt int64
	Current      bool // the session's current one; another session may share it
	Size         Size
}

// Archive is a deleted or reset transcript that is kept in the database until it is a file.
type Archive struct {
	SessionID string
	Key       string // of the session
	Name      string // of its file in the artifact directory
	Reason    string // "deleted" or "reset"
	Bytes     int64  // as stored
	CreatedAt int64
	Published bool // the file was written
}

// Cold is a transcript that was moved out of the event table (schema 20 and later): it is the only copy.
type Cold struct {
	SessionID  string
	Generation string
	Name       string // of its file in the folder cold of the artifact directory
	SHA256     string
	Events     int64
	RawBytes   int64
	Bytes      int64
	LastSeq    int64
	ArchivedAt int64
	InDatabase bool // the bytes are in the database, not yet in the file
}

// The bytes of an event without loading it: of a compressed one its stated length, of another what is there.
const eventBytes = "octet_length(event_json)"

func (db *DB) eventBytes() (string, error) {
	has, err := db.tx.Columns("transcript_events")
	if err != nil {
		return "", err
	}
	if has["event_utf8_bytes"] {
		return "CASE WHEN event_json IS NULL THEN event_utf8_bytes ELSE " + eventBytes + " END", nil
	}
	return eventBytes, nil
}

// sizes measures every window.
func (db *DB) sizes() (map[string]Size, error) { return db.measure("", nil) }

// Size measures one window; the zero Size if there is nothing of it.
func (db *DB) Size(sessionID string) (Size, error) {
	m, err := db.measure(" WHERE session_id = ?1", []any{sessionID})
	return m[sessionID], err
}

func (db *DB) measure(where string, args []any) (map[string]Size, error) {
	all := map[string]Size{}
	bytes, err := db.eventBytes()
	if err != nil {
		return nil, err
	}
	if has, err := db.tx.HasTable("transcript_events"); err != nil {
		return nil, err
	} else if has {
		err = db.tx.Each("SELECT session_id, count(*), sum("+bytes+") + count(*) FROM transcript_events"+where+" GROUP BY session_id", func(r *sqlfile.Row) error {
			var s Size
			s.Events, _ = r.Int(1)
			s.Bytes, _ = r.Int(2)
			all[r.Text(0)] = s
			return nil
		}, args...)
		if err != nil {
			return nil, err
		}
	}
	if has, err := db.tx.Columns("transcript_event_identities"); err != nil {
		return nil, err
	} else if has["event_type"] && has["created_at"] {
		and := " WHERE event_type = 'message'"
		if where != "" {
			and = where + " AND event_type = 'message'"
		}
		err = db.tx.Each("SELECT session_id, count(*), min(created_at), max(created_at) FROM transcript_event_identities"+and+" GROUP BY session_id", func(r *sqlfile.Row) error {
			s := all[r.Text(0)]
			s.Messages, _ = r.Int(1)
			s.First, _ = r.Int(2)
			s.Last, _ = r.Int(3)
			all[r.Text(0)] = s
			return nil
		}, args...)
		if err != nil {
			return nil, err
		}
	}
	cold, err := db.cold(where, args)
	if err != nil {
		return nil, err
	}
	for _, c := range cold {
		s := all[c.SessionID]
		// raw_bytes counts the line breaks between the events, Size one behind each.
		s.Events, s.Bytes, s.Cold = c.Events, c.RawBytes+1, true
		all[c.SessionID] = s
	}
	return all, nil
}

// Windows are the transcripts of a session, the newest first: those it owns, and its current one, whoever owns that.
func (db *DB) Windows(key string) ([]Window, error) {
	table := db.windows()
	has, err := db.tx.Columns(table)
	if err != nil || !has["session_id"] || !has["session_key"] {
		return nil, err
	}
	current, _, err := db.tx.Text("SELECT "+db.idColumn()+" FROM "+db.table()+" WHERE session_key = ?1", key)
	if err != nil {
		return nil, err
	}
	var all []Window
	err = db.tx.Each("SELECT session_id, session_key, "+selected(has, "previous_session_id")+", "+selected(has, "reason")+", "+
		selected(has, "created_at")+", "+selected(has, "updated_at")+", "+selected(has, "transcript_updated_at")+" FROM "+table+
		" WHERE session_key = ?1 OR session_id = ?2 ORDER BY 6 DESC, session_id", func(r *sqlfile.Row) error {
		w := Window{SessionID: r.Text(0), Key: r.Text(1), Previous: r.Text(2), Reason: r.Text(3)}
		w.CreatedAt, _ = r.Int(4)
		w.UpdatedAt, _ = r.Int(5)
		w.TranscriptAt, _ = r.Int(6)
		w.Current = w.SessionID == current
		all = append(all, w)
		return nil
	}, key, current)
	for i := range all {
		if err == nil {
			all[i].Size, err = db.Size(all[i].SessionID)
		}
	}
	return all, err
}

// Entry is the row of a session, with all that is in it; false if there is none or OpenClaw does not read it. It is of a database with nodes.
func (db *DB) Entry(key string) (e row.Entry, ok bool, err error) {
	err = db.tx.Each("SELECT entry_json, current_session_id, updated_at FROM session_nodes WHERE session_key = ?1", func(r *sqlfile.Row) error {
		if e, err = row.New(key, r.Bytes(0)); err != nil {
			return nil // unreadable, as one that is no object
		}
		id, _ := e.Text(row.SessionID)
		at, has := span.Float(e.Raw(row.UpdatedAt))
		updated, _ := r.Int(2)
		ok = id != "" && id == r.Text(1) && has && at == float64(updated)
		return nil
	}, key)
	return e, ok, err
}

// Owner is the key of the session that owns a window; "" where there is no such window.
func (db *DB) Owner(sessionID string) (string, error) {
	has, err := db.tx.Columns(db.windows())
	if err != nil || !has["session_key"] {
		return "", err
	}
	key, _, err := db.tx.Text("SELECT session_key FROM "+db.windows()+" WHERE session_id = ?1", sessionID)
	return key, err
}

// Grown is when the transcript of a window last changed, in epoch milliseconds; 0 where that is not known.
func (db *DB) Grown(sessionID string) (int64, error) {
	has, err := db.tx.Columns(db.windows())
	if err != nil || !has["transcript_updated_at"] {
		return 0, err
	}
	at, _, err := db.tx.Int("SELECT transcript_updated_at FROM "+db.windows()+" WHERE session_id = ?1", sessionID)
	return at, err
}

// Archives are the archived transcripts of a session key that the database holds, the oldest first.
func (db *DB) Archives(key string) ([]Archive, error) {
	return db.archives("session_key = ?1", key)
}

// FindArchives are those that a word means, the oldest first: the key of a session, its id, or the name of an archive.
func (db *DB) FindArchives(word string) ([]Archive, error) {
	return db.archives("session_key = ?1 OR session_id = ?1 OR archive_name = ?1", word)
}

func (db *DB) archives(where, word string) ([]Archive, error) {
	has, err := db.tx.HasTable("session_transcript_archives")
	if err != nil || !has {
		return nil, err
	}
	if err := db.need("session_transcript_archives", "session_id", "session_key", "archive_name", "reason", "archive_blob", "created_at", "published_at"); err != nil {
		return nil, err
	}
	var all []Archive
	err = db.tx.Each(`SELECT session_id, archive_name, reason, octet_length(archive_blob), created_at, published_at, session_key
		FROM session_transcript_archives WHERE `+where+` ORDER BY created_at, session_id, generation`, func(r *sqlfile.Row) error {
		a := Archive{SessionID: r.Text(0), Key: r.Text(6), Name: r.Text(1), Reason: r.Text(2), Published: !r.Null(5)}
		a.Bytes, _ = r.Int(3)
		a.CreatedAt, _ = r.Int(4)
		all = append(all, a)
		return nil
	}, word)
	return all, err
}

// ArchiveBytes are the bytes of an archived transcript as they are stored, compressed or not, held against their sum.
func (db *DB) ArchiveBytes(sessionID, name string) ([]byte, error) {
	const table = "session_transcript_archives"
	if err := db.need(table, "session_id", "archive_name", "archive_blob", "archive_sha256"); err != nil {
		return nil, err
	}
	var blob []byte
	want := ""
	err := db.tx.Each("SELECT archive_blob, archive_sha256 FROM "+table+" WHERE session_id = ?1 AND archive_name = ?2", func(r *sqlfile.Row) error {
		blob, want = r.Bytes(0), r.Text(1)
		return nil
	}, sessionID, name)
	if sum := sha256.Sum256(blob); err == nil && hex.EncodeToString(sum[:]) != want {
		err = fmt.Errorf("archive %s in %s: its bytes are not those that were archived", name, db.path)
	}
	return blob, err
}

// Cold says where the transcript of a window was moved to; nil if it was not.
func (db *DB) Cold(sessionID string) (*Cold, error) {
	all, err := db.cold(" WHERE session_id = ?1", []any{sessionID})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

func (db *DB) cold(where string, args []any) ([]Cold, error) {
	const table = "session_transcript_cold_archives"
	has, err := db.tx.HasTable(table)
	if err != nil || !has {
		return nil, err
	}
	if err := db.need(table, "session_id", "generation", "archive_name", "archive_sha256", "event_count", "raw_bytes", "archive_bytes", "last_seq", "archived_at", "storage", "archive_blob"); err != nil {
		return nil, err
	}
	var all []Cold
	err = db.tx.Each(`SELECT session_id, generation, archive_name, archive_sha256, event_count, raw_bytes, archive_bytes, last_seq, archived_at, storage
		FROM session_transcript_cold_archives`+where, func(r *sqlfile.Row) error {
		c := Cold{SessionID: r.Text(0), Generation: r.Text(1), Name: r.Text(2), SHA256: r.Text(3), InDatabase: r.Text(9) == "sqlite"}
		c.Events, _ = r.Int(4)
		c.RawBytes, _ = r.Int(5)
		c.Bytes, _ = r.Int(6)
		c.LastSeq, _ = r.Int(7)
		c.ArchivedAt, _ = r.Int(8)
		all = append(all, c)
		return nil
	}, args...)
	return all, err
}
