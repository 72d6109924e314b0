package awareness

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"oc/store/span"
	"oc/store/sqlfile"
)

// Entry is an event to be recorded.
type Entry struct {
	SessionKey string // exact
	SessionID  string // may be empty
	AgentID    string
	Kind       string
	ActorType  string // "human", "agent" or "system"
	ActorID    string // may be empty; a watcher of that key is not told
	RunID      string // may be empty
	OccurredAt int64  // ms since 1970; 0 is now. It is kept within the last day
	Summary    string // one line, never the content of a message
	Payload    Payload
	DedupeKey  string   // of events with one key the first stays; may be empty
	Watchers   []string // who is to hear of it besides those that watch: the session's parent
}

// Appended is what came of an entry.
type Appended struct {
	Event     Event    // with its sequence; the one recorded first if it is a duplicate
	Duplicate bool     // nothing was recorded
	Notices   []Notice // for whom it is; a gateway that runs queues them only at its next start
}

// Append records an event and tells the watchers (spec/awareness.md 2.1).
func (e *Edit) Append(in Entry) (Appended, error) {
	var out Appended
	if err := in.check(); err != nil {
		return out, err
	}
	at := in.OccurredAt
	if at == 0 {
		at = e.now
	}
	at = min(max(at, e.now-maxSkew.Milliseconds()), e.now)
	inserted, err := e.tx.Exec(`INSERT INTO `+events+` (dedupe_key, session_key, session_id, agent_id, kind, actor_type, actor_id,
		run_id, occurred_at, summary, payload_json) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (dedupe_key) DO NOTHING`,
		null(in.DedupeKey), in.SessionKey, null(in.SessionID), in.AgentID, in.Kind, in.ActorType, null(in.ActorID),
		null(in.RunID), at, in.Summary, null(in.Payload.json()))
	if err != nil {
		return out, err
	}
	where, arg := `sequence = last_insert_rowid()`, []any(nil)
	if out.Duplicate = inserted == 0; out.Duplicate {
		where, arg = `dedupe_key = ?`, []any{in.DedupeKey}
	}
	err = e.tx.Each(`SELECT `+eventColumns+` FROM `+events+` WHERE `+where, func(r *sqlfile.Row) error {
		out.Event = scanEvent(r)
		return nil
	}, arg...)
	if err != nil || out.Duplicate {
		return out, err
	}
	_, err = e.tx.Exec(`INSERT INTO `+heads+` (session_key, agent_id, last_sequence, updated_at) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT (session_key, agent_id) DO UPDATE SET last_sequence = ?3, updated_at = ?4`,
		in.SessionKey, in.AgentID, out.Event.Sequence, e.now)
	if err != nil {
		return out, err
	}
	out.Notices, err = e.tell(out.Event, in.Watchers)
	return out, err
}

// tell moves the cursors of all whom an event concerns.
func (e *Edit) tell(ev Event, named []string) (notices []Notice, err error) {
	watchers := slices.Clone(named)
	if Notifies(ev.Kind) {
		err = e.tx.Each(`SELECT watcher_session_key FROM `+cursors+` WHERE target_session_key = ?1 ORDER BY 1`, func(r *sqlfile.Row) error {
			watchers = append(watchers, text(r, 0))
			return nil
		}, ev.SessionKey)
	}
	if err != nil {
		return nil, err
	}
	for i, w := range watchers {
		if slices.Contains(watchers[:min(i, len(named))], w) {
			continue
		}
		c, err := e.cursor(w, ev.SessionKey)
		if err != nil {
			return nil, err
		}
		isNamed, store := i < len(named), ""
		if isNamed {
			store = e.owner(w)
		}
		next, n, told := c.Event(ev, isNamed, store, e.now)
		if next != c {
			if err := e.put(next); err != nil {
				return nil, err
			}
		}
		if told && !e.schema.dormant(next, e.world) {
			notices = append(notices, n)
		}
	}
	return notices, nil
}

func (in *Entry) check() error {
	for _, f := range []struct {
		name, value string
		must        bool
	}{
		{"session key", in.SessionKey, true},
		{"session id", in.SessionID, false},
		{"agent id", in.AgentID, true},
		{"kind", in.Kind, true},
		{"actor type", in.ActorType, true},
		{"actor id", in.ActorID, false},
		{"run id", in.RunID, false},
		{"summary", in.Summary, true},
		{"channel", in.Payload.Channel, false},
		{"dedupe key", in.DedupeKey, false},
	} {
		if f.must && f.value == "" {
			return fmt.Errorf("record event of %q: its %s is empty", in.SessionKey, f.name)
		}
		if !utf8.ValidString(f.value) {
			return fmt.Errorf("record event of %q: its %s is not valid UTF-8", in.SessionKey, f.name)
		}
	}
	return nil
}

// json is the payload as it is stored; empty if there is none.
func (p Payload) json() string {
	b := []byte{'{'}
	member := func(name string) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(span.Quote(b, name), ':')
	}
	if p.Outcome != "" {
		member("outcome")
		b = span.Quote(b, p.Outcome)
	}
	if p.Channel != "" {
		member("channel")
		b = span.Quote(b, p.Channel)
	}
	if p.Turns > 0 {
		member("turns")
		b = strconv.AppendInt(b, p.Turns, 10)
	}
	if len(b) == 1 {
		return ""
	}
	return string(append(b, '}'))
}
