package agentdb

import (
	"fmt"
	"strings"

	"oc/store/row"
	"oc/store/span"
	"oc/store/sqlfile"
)

// A Writer changes the sessions of an agent's database within one transaction, and leaves every table as the releases 2026.8.2 (schema 19)
// and 2026.9.6 (schema 23) would: columns follow the JSON, what triggers mark for another look has been looked at, and what is derived from a
// transcript either follows it or is marked to be made anew.
type Writer struct {
	db  DB
	now int64 // epoch milliseconds
}

// NewWriter begins to write in a transaction. now, in epoch milliseconds, is what is written as the time of it. The error is one of Read, or
// an *Unwritable for a schema that oc only reads.
func NewWriter(tx *sqlfile.Tx, path string, now int64) (*Writer, error) {
	w := &Writer{DB{tx: tx, path: path}, now}
	if err := w.db.detect(); err != nil {
		return nil, err
	}
	if s := w.db.schema; !s.Known || s.Era != Nodes || s.Role != "agent" {
		return nil, &Unwritable{path, s.UserVersion}
	}
	return w, nil
}

// Unwritable is a database whose schema oc reads and does not change.
type Unwritable struct {
	Path    string
	Version int
}

func (e *Unwritable) Error() string {
	return fmt.Sprintf("%s has schema %d; oc changes databases of the schemas 19 (2026.8.2) and 23 (2026.9.6) only", e.Path, e.Version)
}

// Now is the time of the change, in epoch milliseconds.
func (w *Writer) Now() int64 { return w.now }

// DB reads what is there by now.
func (w *Writer) DB() *DB { return &w.db }

// Put writes the row of a session, new or in place of the one with its key, and what OpenClaw writes with it: the columns, the window of its
// session id, and the time at which its conversation was last seen. What stands in the JSON keeps its bytes. The error is an *Unfit, or one
// of the database.
func (w *Writer) Put(key string, val []byte) error {
	e, err := row.New(key, val)
	if err != nil {
		return &Unfit{key, "its JSON is damaged: " + err.Error()}
	}
	if err := w.fits(&e); err != nil {
		return err
	}
	node, err := nodeColumns(&e)
	if err != nil {
		return err
	}
	before, _, err := w.db.tx.Text("SELECT current_session_id FROM session_nodes WHERE session_key = ?1 AND entry_json <> '{}'", key)
	if err != nil {
		return err
	}
	if err := w.upsert("session_nodes", "session_key", append([]column{{"session_key", key}, {"entry_json", string(val)}, {"entry_valid", int64(1)}}, node...), nil); err != nil {
		return err
	}
	// Triggers make each row that is written one that nobody has looked at.
	if _, err := w.db.tx.Exec("UPDATE session_nodes SET entry_valid = 1 WHERE session_key = ?1", key); err != nil {
		return err
	}
	if err := w.putWindow(&e, before); err != nil {
		return err
	}
	if err := w.seen(&e); err != nil {
		return err
	}
	return w.certify(key)
}

// certify says that the row of a key has been looked at and is as it should be (schema 21 and later).
func (w *Writer) certify(key string) error {
	if w.db.schema.UserVersion < 21 {
		return nil
	}
	_, err := w.db.tx.Exec("DELETE FROM session_canonical_validation_pending WHERE session_key = ?1", key)
	return err
}

// upsert writes a row; what is in keep stays as it is where the row is there already.
func (w *Writer) upsert(table, key string, columns []column, keep []string) error {
	var names, places, sets []string
	var args []any
	for i, c := range columns {
		names, places, args = append(names, c.name), append(places, fmt.Sprintf("?%d", i+1)), append(args, c.value)
		kept := c.name == key
		for _, k := range keep {
			kept = kept || c.name == k
		}
		if !kept {
			sets = append(sets, c.name+" = excluded."+c.name)
		}
	}
	_, err := w.db.tx.Exec("INSERT INTO "+table+" ("+strings.Join(names, ", ")+") VALUES ("+strings.Join(places, ", ")+") ON CONFLICT ("+key+") DO UPDATE SET "+strings.Join(sets, ", "), args...)
	return err
}

// putWindow writes the window of an entry. before is the session id that its row had.
func (w *Writer) putWindow(e *row.Entry, before string) error {
	id, _ := e.Text(row.SessionID)
	columns, err := windowColumns(e)
	if err != nil {
		return err
	}
	updated, _ := span.Float(e.Raw(row.UpdatedAt))
	observed, grown, err := w.db.tx.Int("SELECT transcript_updated_at FROM session_windows WHERE session_id = ?1", id)
	if err != nil {
		return err
	}
	if !grown {
		observed = int64(updated)
	}
	from, err := w.provenance(e, id, before)
	if err != nil {
		return err
	}
	columns = append(columns, from...)
	columns = append(columns, column{"session_id", id}, column{"session_key", e.Key}, column{"reason", nil}, column{"created_at", begun(e)},
		column{"updated_at", int64(updated)}, column{"transcript_observed_at", observed})
	keep := []string{"created_at"}
	if before == id { // another row may own the window that they share
		keep = append(keep, "session_key")
	}
	return w.upsert("session_windows", "session_id", columns, keep)
}

// begun is when the first window of an entry began, in epoch milliseconds.
func begun(e *row.Entry) int64 {
	for _, f := range []row.Field{row.SessionStartedAt, row.StartedAt, row.UpdatedAt} {
		if at, ok := span.Float(e.Raw(f)); ok && at >= 0 && at < 1<<62 {
			return int64(at)
		}
	}
	return 0
}

// provenance is what a window says of where its entry comes from; what it said before is not lost.
func (w *Writer) provenance(e *row.Entry, id, before string) ([]column, error) {
	owned, plugin := int64(0), trimmed(e.Raw(row.PluginOwnerID))
	if row.Truthy(e.Raw(row.ACP)) {
		owned = 1
	}
	hook := textOf(span.Member(e.Val, "hookExternalContentSource"))
	if hook == "email" {
		hook = "webhook"
	}
	source := oneOf(hook, "gmail", "webhook")
	stands := int64(1)
	err := w.db.tx.Each(`SELECT session_entry_provenance, acp_owned, plugin_owner_id, hook_external_content_source,
		EXISTS (SELECT 1 FROM transcript_events WHERE session_id = ?1) FROM session_windows WHERE session_id = ?1`, func(r *sqlfile.Row) error {
		was, _ := r.Int(0)
		acp, _ := r.Int(1)
		events, _ := r.Int(4)
		switch {
		case was == 1:
			owned = max(owned, acp)
			if plugin == nil {
				plugin = r.Value(2)
			}
			if source == nil {
				source = r.Value(3)
			}
		case before == id || events == 1:
			stands, owned, plugin, source = 0, 0, nil, nil
		}
		return nil
	}, id)
	return []column{{"session_entry_provenance", stands}, {"acp_owned", owned}, {"plugin_owner_id", plugin}, {"hook_external_content_source", source}}, err
}

// seen moves the times of the conversation that an entry belongs to. One that is not there is not made: who writes in it does that.
func (w *Writer) seen(e *row.Entry) error {
	delivery := span.Member(e.Val, "delivery")
	context := span.Member(delivery, "context")
	channel, _ := trimmed(span.Member(context, "channel")).(string)
	to := trimmed(span.Member(context, "to"))
	if textOf(span.Member(delivery, "kind")) != "external" || channel == "" || to == nil {
		return nil
	}
	kind := "direct"
	if said := textOf(e.Raw(row.ChatTypeField)); said == "group" || said == "channel" {
		kind = said
	}
	account := row.AccountID(textOf(span.Member(context, "accountId")))
	if account == "" {
		account = "default"
	}
	thread := trimmed(span.Member(context, "threadId"))
	if n, ok := span.Float(span.Member(context, "threadId")); ok {
		thread = string(span.AppendFloat(nil, n))
	}
	id, _ := e.Text(row.SessionID)
	updated, _ := span.Float(e.Raw(row.UpdatedAt))
	var conversation, role string
	var said any
	err := w.db.tx.Each(`SELECT s.conversation_id, s.role, s.route_context_json FROM session_conversations AS s JOIN conversations AS c USING (conversation_id)
		WHERE s.session_id = ?1 AND c.channel = ?2 AND c.account_id = ?3 AND c.kind = ?4 AND c.delivery_target = ?5 AND c.thread_id IS ?6 AND s.role IN ('primary', 'participant')
		ORDER BY s.last_seen_at DESC, s.conversation_id LIMIT 1`, func(r *sqlfile.Row) error {
		conversation, role, said = r.Text(0), r.Text(1), r.Value(2)
		return nil
	}, id, span.Lower(channel), account, kind, to, thread)
	if err != nil || conversation == "" {
		return err
	}
	label := trimmed(e.Raw(row.DisplayName))
	if label == nil {
		label = trimmed(e.Raw(row.Label))
	}
	if _, err := w.db.tx.Exec("UPDATE conversations SET label = coalesce(?2, label), updated_at = ?3 WHERE conversation_id = ?1", conversation, label, int64(updated)); err != nil {
		return err
	}
	if said != nil {
		return nil // it holds only as long as the time beside it stands
	}
	_, err = w.db.tx.Exec("UPDATE session_conversations SET last_seen_at = ?4 WHERE session_id = ?1 AND conversation_id = ?2 AND role = ?3", id, conversation, role, int64(updated))
	return err
}

// fits holds an entry against what OpenClaw demands of every row, because one that is not so makes it refuse all of them (spec 2.2).
func (w *Writer) fits(e *row.Entry) error {
	fits, err := w.db.Fitting()
	if err != nil {
		return err
	}
	return fits(e)
}

// Fitting gives what says whether [Writer.Put] would take the row of an entry: the error is an *Unfit. It reads nothing afterwards.
func (db *DB) Fitting() (fits func(e *row.Entry) error, err error) {
	main, _, err := db.tx.Text("SELECT main_key FROM session_key_contract WHERE id = 1")
	if err != nil {
		return nil, err
	}
	owner := row.AgentID(db.schema.AgentID)
	return func(e *row.Entry) error {
		unfit := func(format string, args ...any) error { return &Unfit{e.Key, fmt.Sprintf(format, args...)} }
		if span.KindOf(e.Val) != span.Object {
			return unfit("its JSON is no object")
		}
		if id, _ := e.Text(row.SessionID); span.Trim(id) == "" {
			return unfit("it has no session id")
		}
		if at, ok := span.Float(e.Raw(row.UpdatedAt)); !ok || at < 0 {
			return unfit("its updatedAt is no time")
		}
		if why := notCanonical(e.Key, main); why != "" {
			return unfit("%s", why)
		}
		if agent, _, ok := row.Parse(e.Key); ok && db.schema.AgentID != "" && row.AgentID(agent) != owner {
			return unfit("its key is one of agent %s, the database that of %s", agent, db.schema.AgentID)
		}
		if to := peerInItsCase(e); to != "" {
			return unfit("its key writes %s in another case than its delivery", to)
		}
		for _, name := range []string{"parentSessionKey", "spawnedBy"} {
			if key, _ := trimmed(span.Member(e.Val, name)).(string); key != "" {
				if why := notCanonical(key, main); why != "" {
					return unfit("its %s: %s", name, why)
				}
			}
		}
		_, err := nodeColumns(e)
		if err == nil {
			_, err = windowColumns(e)
		}
		return err
	}, nil
}

// notCanonical says why a key is not one as OpenClaw writes it; "" where it is.
func notCanonical(key, main string) string {
	if canonical := row.Canonical(key); canonical != key {
		return fmt.Sprintf("the key %q is not canonical, %q is", key, canonical)
	}
	_, rest, ok := row.Parse(key)
	switch {
	case !ok && key != "global" && key != "unknown":
		return fmt.Sprintf("the key %q is not one of an agent", key)
	case rest == "main" && main != "" && main != "main":
		return fmt.Sprintf("the key %q is that of a main session, which is called %s here", key, main)
	}
	return ""
}

// peerInItsCase is the place that answers go to where the key names it in another case; "" otherwise.
func peerInItsCase(e *row.Entry) string {
	delivery := span.Member(e.Val, "delivery")
	context := span.Member(delivery, "context")
	channel, _ := trimmed(span.Member(context, "channel")).(string)
	to, _ := trimmed(span.Member(context, "to")).(string)
	if channel == "" || to == "" || textOf(span.Member(delivery, "kind")) != "external" || span.Lower(channel) != "matrix" && span.Lower(channel) != "signal" {
		return "" // keys of all others are lower case
	}
	if at := strings.IndexAny(to, "!#"); at > 0 {
		to = to[at:]
	}
	base := e.Key
	if parent, _, ok := row.Thread(base); ok {
		base = parent
	}
	if n := len(base) - len(to); n > 0 && base[n-1] == ':' && base[n:] != to && strings.EqualFold(base[n:], to) {
		return to
	}
	return ""
}
