package awareness

import (
	"math"

	"oc/store/span"
	"oc/store/sqlfile"
)

// Kinds of event that OpenClaw records (spec/awareness.md 2.3). Others are kept and shown.
const (
	Created            = "created"
	HumanDirectMessage = "human_direct_message"
	UpstreamMissing    = "upstream_missing"
	GoalChanged        = "goal_changed"
	ChildSpawned       = "child_spawned"
	RunCompleted       = "run_completed"
	RunFailed          = "run_failed"
	Compacted          = "compacted"
	Adopted            = "adopted"
)

// Kinds are those that OpenClaw records, in the order of spec/awareness.md 2.3.
func Kinds() []string {
	return []string{Created, HumanDirectMessage, UpstreamMissing, GoalChanged, ChildSpawned, RunCompleted, RunFailed, Compacted, Adopted}
}

// Notifies says whether events of that kind are told to watchers. The others are only logged.
func Notifies(kind string) bool {
	return kind == HumanDirectMessage || kind == UpstreamMissing || kind == GoalChanged
}

// notifying is Notifies in SQL.
const notifying = "kind IN ('" + HumanDirectMessage + "', '" + UpstreamMissing + "', '" + GoalChanged + "')"

// Event is one entry of the log. Empty strings are fields that it does not have.
type Event struct {
	Sequence   int64
	SessionKey string
	SessionID  string
	AgentID    string
	Kind       string
	ActorType  string // "human", "agent" or "system"; others are kept
	ActorID    string
	RunID      string
	OccurredAt int64 // ms since 1970
	Undated    bool  // what is stored is not a time
	Summary    string
	Payload    Payload
}

// Payload is what OpenClaw shows of an event's payload, and all that oc reads of it (spec/awareness.md 5.3).
type Payload struct {
	Outcome string // "error", "timeout" or "cancelled"
	Channel string
	Turns   int64 // 0 is none
}

// reduce takes the shown fields out of a payload. What is no object has none.
func reduce(raw []byte) (p Payload) {
	if span.KindOf(raw) != span.Object || span.Valid(raw) != nil {
		return p
	}
	switch s, _ := span.Text(span.Member(raw, "outcome")); s {
	case "error", "timeout", "cancelled":
		p.Outcome = s
	}
	p.Channel, _ = span.Text(span.Member(raw, "channel"))
	if f, ok := span.Float(span.Member(raw, "turns")); ok && f >= 1 && f == math.Trunc(f) && f < 1<<53 {
		p.Turns = int64(f)
	}
	return p
}

const eventColumns = "sequence, session_key, session_id, agent_id, kind, actor_type, actor_id, run_id, occurred_at, summary, payload_json"

func scanEvent(r *sqlfile.Row) (e Event) {
	e.Sequence, _ = r.Int(0)
	for i, to := range []*string{&e.SessionKey, &e.SessionID, &e.AgentID, &e.Kind, &e.ActorType, &e.ActorID, &e.RunID} {
		*to = text(r, i+1)
	}
	var dated bool
	e.OccurredAt, dated = r.Int(8)
	e.Undated = !dated
	e.Summary = text(r, 9)
	e.Payload = reduce(r.Bytes(10))
	return e
}

// text is a column as text, even if a table that is not STRICT holds bytes there.
func text(r *sqlfile.Row, i int) string { return string(r.Bytes(i)) }

// number is a column as a whole number, 0 if it holds none: watermarks, where OpenClaw reads it so.
func number(r *sqlfile.Row, i int) int64 {
	n, _ := r.Int(i)
	return n
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}
