package agentdb

import (
	"strconv"

	"oc/store/sqlfile"
)

// Since calls f for the events of a window with a number above after, the newest of them at most where limit is above 0, in the order
// of writing. Those that were moved to a cold archive are not looked at: nothing is added to them any more.
func (db *DB) Since(sessionID string, after int64, limit int, f func(Event) error) error {
	return db.hot("WHERE session_id = ?1 AND seq > ?2"+newestOf("transcript_events", limit)+" ORDER BY seq", f, sessionID, after)
}

// Trajectory is Since for what the runs of a window left in trajectory_runtime_events.
func (db *DB) Trajectory(sessionID string, after int64, limit int, f func(Event) error) error {
	const table = "trajectory_runtime_events"
	has, err := db.tx.Columns(table)
	if err != nil || len(has) == 0 {
		return err
	}
	if err := db.need(table, "session_id", "seq", "event_json"); err != nil {
		return err
	}
	query := "SELECT seq, event_json, " + selected(has, "created_at") + " FROM " + table + " WHERE session_id = ?1 AND seq > ?2" + newestOf(table, limit) + " ORDER BY seq"
	return db.tx.Each(query, func(r *sqlfile.Row) error {
		e := Event{Line: r.Bytes(1)}
		e.Seq, _ = r.Int(0)
		e.CreatedAt, _ = r.Int(2)
		return f(e)
	}, sessionID, after)
}

func newestOf(table string, limit int) string {
	if limit <= 0 {
		return ""
	}
	return " AND seq > (SELECT max(seq) FROM " + table + " WHERE session_id = ?1) - " + strconv.Itoa(limit)
}
