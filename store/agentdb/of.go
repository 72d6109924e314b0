package agentdb

import (
	"slices"
	"strings"

	"oc/store/sqlfile"
)

// Tables that say something of sessions and are not part of them: what OpenClaw derives of others, and notes of what it has yet to look at.
var notOf = []string{"session_transcript_fts_rows", "session_canonical_validation_pending"}

// Of are the rows of some sessions, for sqlfile.Keep.
type Of struct {
	Keys []string // of sessions of which all is meant, their transcripts too
	Rows []string // of sessions of which only what hangs on the key is meant: what a change of the row alone can touch
	IDs  []string // of transcripts that were of Keys, and may have lost their windows since
}

// Choose names to rows all that goes with the sessions when they are changed or deleted: their nodes, the windows that no other session uses, and
// what hangs on either in any table, archives of Keys too. The search index, which OpenClaw makes anew of transcripts, is left out.
func (o Of) Choose(tx *sqlfile.Tx, rows func(table, where string, args ...any) error) error {
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
	// What others refer to comes back first.
	first := []string{"session_nodes", "session_windows", "transcript_events"}
	tables = slices.DeleteFunc(tables, func(name string) bool { return slices.Contains(first, name) })
	tables = append(first, tables...)
	const own = `session_id IN (SELECT w.session_id FROM session_windows AS w WHERE w.session_key = ?1
		AND NOT EXISTS (SELECT 1 FROM session_nodes AS n WHERE n.current_session_id = w.session_id AND n.session_key <> ?1))`
	for _, key := range o.Keys {
		for _, name := range tables {
			where := own
			switch {
			case has[name] == nil:
				continue
			case !has[name].id:
				where = "session_key = ?1"
			case has[name].key && name != "session_windows":
				where = "(session_key = ?1 OR " + own + ")"
			}
			if err := rows(name, where, key); err != nil {
				return err
			}
		}
	}
	// Whom a session talks to and how it is called is known of its conversations.
	if has["session_conversations"] != nil {
		const talks = "session_id IN (SELECT session_id FROM session_windows WHERE session_key = ?1)"
		for _, key := range slices.Concat(o.Keys, o.Rows) {
			err := rows("session_conversations", talks, key)
			if err == nil {
				err = rows("conversations", "conversation_id IN (SELECT conversation_id FROM session_conversations WHERE "+talks+")", key)
			}
			if err != nil {
				return err
			}
		}
	}
	const free = `session_id = ?1 AND NOT EXISTS (SELECT 1 FROM session_windows WHERE session_id = ?1) AND NOT EXISTS (SELECT 1 FROM session_nodes WHERE current_session_id = ?1)`
	for _, id := range o.IDs {
		for _, name := range tables {
			if has[name] == nil || !has[name].id {
				continue
			}
			if err := rows(name, free, id); err != nil {
				return err
			}
		}
	}
	for _, key := range o.Rows {
		for _, name := range tables {
			if has[name] == nil || !has[name].key || name == "session_transcript_archives" {
				continue
			}
			if err := rows(name, "session_key = ?1", key); err != nil {
				return err
			}
		}
	}
	return nil
}
