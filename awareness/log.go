package awareness

import (
	"strings"

	"oc/store/sqlfile"
)

// Filter chooses events. Zero fields choose all.
type Filter struct {
	SessionKey string // exact
	AgentID    string
	Kinds      []string
	ActorType  string
	ActorID    string
	RunID      string
	Since      int64 // ms since 1970: at or after; leaves out events without a time
	Until      int64 // ms since 1970: before; leaves out events without a time
	After      int64 // sequence: later ones
	Before     int64 // sequence: earlier ones
	Newest     bool  // newest first
	Limit      int64 // 0 is no limit
}

// Events calls f for the events that the filter chooses, oldest first unless it says otherwise. The next page is what
// follows After, or Before, the last sequence of this one.
func (s *Snapshot) Events(filter Filter, f func(Event) error) error {
	ok, err := s.need(events)
	if !ok {
		return err
	}
	where, args := filter.where()
	order := " ORDER BY sequence"
	if filter.Newest {
		order += " DESC"
	}
	if filter.Limit > 0 {
		order += " LIMIT ?"
		args = append(args, filter.Limit)
	}
	return s.tx.Each(`SELECT `+eventColumns+` FROM `+events+where+order, func(r *sqlfile.Row) error { return f(scanEvent(r)) }, args...)
}

// CountEvents is how many events the filter chooses, its limit aside.
func (s *Snapshot) CountEvents(filter Filter) (int64, error) {
	ok, err := s.need(events)
	if !ok {
		return 0, err
	}
	where, args := filter.where()
	n, _, err := s.tx.Int(`SELECT count(*) FROM `+events+where, args...)
	return n, err
}

func (f Filter) where() (sql string, args []any) {
	var terms []string
	term := func(sql string, arg any) {
		terms = append(terms, sql)
		args = append(args, arg)
	}
	for _, eq := range []struct{ column, value string }{
		{"session_key", f.SessionKey},
		{"agent_id", f.AgentID},
		{"actor_type", f.ActorType},
		{"actor_id", f.ActorID},
		{"run_id", f.RunID},
	} {
		if eq.value != "" {
			term(eq.column+" = ?", eq.value)
		}
	}
	if len(f.Kinds) > 0 {
		terms = append(terms, "kind IN (?"+strings.Repeat(", ?", len(f.Kinds)-1)+")")
		for _, k := range f.Kinds {
			args = append(args, k)
		}
	}
	if f.Since != 0 {
		term("typeof(occurred_at) = 'integer' AND occurred_at >= ?", f.Since)
	}
	if f.Until != 0 {
		term("typeof(occurred_at) = 'integer' AND occurred_at < ?", f.Until)
	}
	if f.After != 0 {
		term("sequence > ?", f.After)
	}
	if f.Before != 0 {
		term("sequence < ?", f.Before)
	}
	if len(terms) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(terms, " AND "), args
}
