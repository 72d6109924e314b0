package awareness

import "oc/store/sqlfile"

// Head is the state of one session's log.
type Head struct {
	SessionKey string
	AgentID    string
	Version    int64 // of its last event
	Pruned     int64 // the last event that retention has removed; 0 if none
	UpdatedAt  int64 // ms since 1970
}

// Head is that of one session, by its exact key; all zero if the log does not know it.
func (s *Snapshot) Head(key, agent string) (h Head, err error) {
	ok, err := s.need(heads)
	if !ok {
		return h, err
	}
	err = s.tx.Each(selectHeads+` WHERE session_key = ?1 AND agent_id = ?2`, func(r *sqlfile.Row) error {
		h = scanHead(r)
		return nil
	}, key, agent)
	return h, err
}

// Heads calls f for every session that the log knows, by key, then agent. Heads outlive their events.
func (s *Snapshot) Heads(f func(Head) error) error {
	ok, err := s.need(heads)
	if !ok {
		return err
	}
	return s.tx.Each(selectHeads+` ORDER BY session_key, agent_id`, func(r *sqlfile.Row) error { return f(scanHead(r)) })
}

const selectHeads = `SELECT session_key, agent_id, last_sequence, pruned_max_sequence, updated_at FROM ` + heads

func scanHead(r *sqlfile.Row) Head {
	return Head{text(r, 0), text(r, 1), number(r, 2), number(r, 3), number(r, 4)}
}

// Changes are what happened to one session after a version.
type Changes struct {
	SessionKey  string
	AgentID     string
	Version     int64   // of the session's last event, 0 if there never was one
	Events      []Event // oldest first, at most PageSize
	Truncated   bool    // there are more: ask again after the last of these
	Earliest    int64   // the oldest event still there; behind the head if all are gone; 0 if there never was one
	Gap         bool    // events after the version are gone: only a refresh of the whole session helps
	AheadOfHead bool    // the version is one that the session never had
}

// Next is the version to ask after for the events that follow.
func (c Changes) Next(after int64) int64 {
	if n := len(c.Events); n > 0 {
		return c.Events[n-1].Sequence
	}
	return after
}

// Changes are the events of a session after a version, which itself is not among them; limit is clamped to 1..PageSize.
// Keys are compared exactly. Looking moves no cursor (spec/awareness.md 5.1).
func (s *Snapshot) Changes(key, agent string, after int64, limit int) (Changes, error) {
	c := Changes{SessionKey: key, AgentID: agent, Events: []Event{}}
	ok, err := s.need(events, heads)
	if err != nil {
		return c, err
	}
	if !ok {
		c.AheadOfHead = after > 0
		return c, nil
	}
	limit = min(max(limit, 1), PageSize)
	head, err := s.Head(key, agent)
	if err != nil {
		return c, err
	}
	err = s.tx.Each(`SELECT `+eventColumns+` FROM `+events+`
		WHERE session_key = ?1 AND agent_id = ?2 AND sequence > ?3 ORDER BY sequence LIMIT ?4`,
		func(r *sqlfile.Row) error {
			if len(c.Events) == limit {
				c.Truncated = true
				return nil
			}
			c.Events = append(c.Events, scanEvent(r))
			return nil
		}, key, agent, after, limit+1)
	if err != nil {
		return c, err
	}
	first, some, err := s.tx.Int(`SELECT sequence FROM `+events+`
		WHERE session_key = ?1 AND agent_id = ?2 ORDER BY sequence LIMIT 1`, key, agent)
	if err != nil {
		return c, err
	}
	c.Version = head.Version
	switch {
	case some:
		c.Earliest = first
	case head.Version > 0:
		c.Earliest = head.Version + 1
	}
	c.Gap = after < head.Pruned
	c.AheadOfHead = after > head.Version
	return c, nil
}

// AllChanges calls f for every session that has events after a version, or has lost some, by key, then agent. No session
// is ahead of its head here: see [Stats.Last].
func (s *Snapshot) AllChanges(after int64, limit int, f func(Changes) error) error {
	ok, err := s.need(events, heads)
	if !ok {
		return err
	}
	return s.tx.Each(`SELECT session_key, agent_id FROM `+heads+` WHERE last_sequence > ?1 OR pruned_max_sequence > ?1
		UNION SELECT session_key, agent_id FROM `+events+` WHERE sequence > ?1 ORDER BY 1, 2`,
		func(r *sqlfile.Row) error {
			c, err := s.Changes(text(r, 0), text(r, 1), after, limit)
			if err != nil {
				return err
			}
			c.AheadOfHead = false
			return f(c)
		}, after)
}
