package agentdb

import (
	"slices"
	"strings"

	"oc/store/sqlfile"
)

// Tables that say something of sessions and are not part of them: what OpenClaw derives, and what it keeps beyond their end.
var notOf = []string{
	"session_transcript_fts_rows", "session_transcript_active_events", "session_transcript_index_state", "session_canonical_validation_pending", "session_transcript_archives",
}

// RowsOf names to rows all that goes with the sessions of these keys when they are deleted, for sqlfile.Keep: their nodes, the windows that no
// other session uses, and what hangs on either in any table. What is derived from transcripts OpenClaw makes anew.
func RowsOf(tx *sqlfile.Tx, keys []string, rows func(table, where string, args ...any) error) error {
	type of struct{ key, id bool }
	has := map[string]*of{}
	var tables []string
	err := tx.Each(`SELECT m.name, i.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS i
		WHERE m.type = 'table' AND m.rootpage > 0 AND i.name IN ('session_key', 'session_id') ORDER BY m.name`, func(r *sqlfile.Row) error {
		name := r.Text(0)
		if slices.Contains(notOf, name) || strings.Contains(name, "_fts") {
			return nil
		}
		if has[name] == nil {
			has[name] = &of{}
			tables = append(tables, name)
		}
		has[name].key = has[name].key || r.Text(1) == "session_key"
		has[name].id = has[name].id || r.Text(1) == "session_id"
		return nil
	})
	if err != nil {
		return err
	}
	const own = `session_id IN (SELECT w.session_id FROM session_windows AS w WHERE w.session_key = ?1
		AND NOT EXISTS (SELECT 1 FROM session_nodes AS n WHERE n.current_session_id = w.session_id AND n.session_key <> ?1))`
	for _, key := range keys {
		for _, first := range []string{"session_nodes", "session_windows"} {
			where := "session_key = ?1"
			if first == "session_windows" {
				where = own
			}
			if err := rows(first, where, key); err != nil {
				return err
			}
		}
		for _, name := range tables {
			if name == "session_nodes" || name == "session_windows" {
				continue
			}
			where := own
			if !has[name].id {
				where = "session_key = ?1"
			}
			if err := rows(name, where, key); err != nil {
				return err
			}
		}
	}
	return nil
}
