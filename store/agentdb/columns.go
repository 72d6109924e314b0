package agentdb

import (
	"strings"

	"oc/store/row"
	"oc/store/span"
	"oc/store/sqlfile"
)

// Columns are what a row has beside its JSON, or as a projection of it. Times are epoch milliseconds, 0 for none.
type Columns struct {
	SessionID    string // current_session_id
	Status       string
	Bytes        int64 // of the JSON in the table, with what a listing leaves out of it
	Valid        int   // entry_valid: -1 refused, 0 not looked at, 1 accepted; 1 where the schema has no such column
	CreatedAt    int64
	PinnedAt     int64
	ArchivedAt   int64
	Visibility   []byte // raw, from the JSON; nil for the default, shared
	CreatedActor []byte // raw, from the JSON; nil for none
	Owner        *Owner
	Participants []Participant
}

// Owner is who answers for a session; the columns are the authority for it, not the JSON.
type Owner struct {
	Actor      Actor
	AssignedBy *Actor
	AssignedAt *int64 // epoch milliseconds
}

// Actor is a human, an agent or a system.
type Actor struct{ Type, ID string }

// Participant is somebody who spoke in a session: a kind of identity as a JSON object, and the id within it.
type Participant struct {
	Namespace []byte
	ID        string
}

// Print writes the members that OpenClaw's list prints of these columns, in its order: visibility, createdActor, owner,
// participants and participantCount (spec/sqlite-store.md 3.1, release 2026.9.6).
func (c *Columns) Print(p *span.Printer) {
	if p.Key("visibility"); c.Visibility == nil {
		p.String("shared")
	} else {
		p.Raw(c.Visibility)
	}
	if c.CreatedActor != nil {
		p.Key("createdActor").Raw(c.CreatedActor)
	}
	if o := c.Owner; o != nil {
		p.Key("owner").Object()
		o.Actor.print(p, "actor")
		if o.AssignedBy != nil {
			o.AssignedBy.print(p, "assignedBy")
		}
		if o.AssignedAt != nil {
			p.Key("assignedAt").Int(*o.AssignedAt)
		}
		p.End()
	}
	if len(c.Participants) == 0 {
		return
	}
	p.Key("participants").Array()
	for _, who := range c.Participants {
		p.Object()
		p.Key("identity").Object()
		_, _ = span.Each(who.Namespace, 0, func(key, val []byte) error { // checked when it was read
			if name, _ := span.Text(key); name != "id" {
				p.Key(name).Raw(val)
			}
			return nil
		})
		p.Key("id").String(who.ID)
		p.End()
		p.End()
	}
	p.End()
	p.Key("participantCount").Int(int64(len(c.Participants)))
}

func (a *Actor) print(p *span.Printer, key string) {
	p.Key(key).Object()
	p.Key("type").String(a.Type)
	p.Key("id").String(a.ID)
	p.End()
}

// actor is an actor of two columns; nil unless both say something.
func actor(kind, id string) *Actor {
	switch id = span.Trim(id); kind {
	case "human", "agent", "system":
		if id != "" {
			return &Actor{strings.Clone(kind), strings.Clone(id)}
		}
	}
	return nil
}

func owner(r *sqlfile.Row, at int) *Owner {
	who := actor(r.Text(at), r.Text(at+1))
	if who == nil {
		return nil
	}
	o := &Owner{Actor: *who, AssignedBy: actor(r.Text(at+2), r.Text(at+3))}
	if ms, ok := r.Int(at + 4); ok {
		o.AssignedAt = &ms
	}
	return o
}

// fromEntry takes what the list prints beside the columns from the JSON.
func (c *Columns) fromEntry(e *row.Entry) {
	if raw := e.Raw(row.Visibility); span.KindOf(raw) != span.Null {
		c.Visibility = raw
	}
	c.CreatedActor = e.Raw(row.CreatedActor)
}

// participants reads everybody who took part, by session key, in OpenClaw's order. One whose identity cannot be read is
// left out and reported.
func (db *DB) participants(skip func(key, reason string)) (map[string][]Participant, error) {
	const table = "session_participants"
	has, err := db.tx.Columns(table)
	if err != nil || !has["session_key"] || !has["identity_namespace"] || !has["actor_id"] || !has["first_prompted_at"] {
		return nil, err // before schema 18 they were keyed otherwise
	}
	all := map[string][]Participant{}
	err = db.tx.Each(`SELECT session_key, identity_namespace, actor_id FROM session_participants
		ORDER BY session_key, first_prompted_at, actor_id, identity_namespace`, func(r *sqlfile.Row) error {
		key, namespace := r.Text(0), r.Bytes(1)
		if span.Valid(namespace) != nil || span.KindOf(span.Member(namespace, "type")) != span.String {
			skip(key, "a participant of the session has no readable identity")
			return nil
		}
		all[key] = append(all[key], Participant{namespace, r.Text(2)})
		return nil
	})
	return all, err
}
