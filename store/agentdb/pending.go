package agentdb

import "oc/store/sqlfile"

// A Pending is an input that OpenClaw has accepted for a session and not yet put into its transcript (release 2026.9.6).
type Pending struct {
	ID         string
	State      string // "queued", "interrupted" or "cancelled"
	AcceptedAt int64  // epoch milliseconds
	Message    []byte // raw JSON
}

// maxPending is how long the JSON of an input may be to be read, in bytes; one above it comes without.
const maxPending = 1 << 20

// Pending are the inputs that wait for a window of a session, the newest limit of them, the oldest first, and how many there are. known is
// false where the database has no such inputs, as those of older releases.
func (db *DB) Pending(key, sessionID string, limit int) (list []Pending, total int, known bool, err error) {
	has, err := db.tx.Columns("session_pending_inputs")
	if err != nil || !has["message_json"] || !has["session_key"] || !has["session_id"] {
		return nil, 0, false, err
	}
	where := " FROM session_pending_inputs WHERE session_key = ?1 AND session_id = ?2"
	if has["consumed_event_id"] {
		where += " AND consumed_event_id IS NULL"
	}
	err = db.tx.Each("SELECT input_id, state, accepted_at, CASE WHEN length(CAST(message_json AS BLOB)) <= ?4 THEN message_json END, count(*) OVER ()"+where+" ORDER BY seq DESC LIMIT ?3", func(r *sqlfile.Row) error {
		p := Pending{ID: r.Text(0), State: r.Text(1), Message: r.Bytes(3)}
		p.AcceptedAt, _ = r.Int(2)
		n, _ := r.Int(4)
		total = int(n)
		list = append([]Pending{p}, list...)
		return nil
	}, key, sessionID, int64(limit), int64(maxPending))
	return list, total, true, err
}
