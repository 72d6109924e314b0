package awareness

import (
	"cmp"
	"slices"

	"oc/store/sqlfile"
)

// Stats is the log in figures.
type Stats struct {
	Events   int64
	Sessions int64 // that the log knows, with or without events
	Watches  int64
	Pending  int64 // watches with something not acknowledged
	Links    int64 // adopted sessions
	Last     int64 // the last sequence given to anyone; deleted and refused events have theirs too
	Oldest   int64 // ms since 1970, of the events that have a time
	Newest   int64
	Dated    int64 // how many events have a time; Oldest and Newest mean nothing if none
	Kinds    []KindCount
	Aged     int64 // events that the next prune removes for their age
	Excess   int64 // and for their number, at most
	Expired  int64 // watches that the next prune removes
}

// KindCount is how many events there are of a kind.
type KindCount struct {
	Kind   string
	Events int64
}

// Stats adds up the log. now is in ms since 1970.
func (s *Snapshot) Stats(now int64) (Stats, error) {
	var st Stats
	ok, err := s.need(events, heads, cursors)
	if !ok {
		return st, err
	}
	cutoff := now - Retention.Milliseconds()
	err = s.tx.Each(`SELECT count(*), count(t), min(t), max(t), count(*) FILTER (WHERE t < ?1), max(sequence)
		FROM (SELECT sequence, CASE WHEN typeof(occurred_at) = 'integer' THEN occurred_at END AS t FROM `+events+`)`,
		func(r *sqlfile.Row) error {
			st.Events, st.Dated, st.Oldest, st.Newest, st.Aged, st.Last = number(r, 0), number(r, 1), number(r, 2), number(r, 3), number(r, 4), number(r, 5)
			return nil
		}, cutoff)
	if err != nil {
		return st, err
	}
	st.Excess = max(0, st.Events-st.Aged-MaxRows)
	err = s.tx.Each(`SELECT kind, count(*) FROM `+events+` GROUP BY kind`, func(r *sqlfile.Row) error {
		st.Kinds = append(st.Kinds, KindCount{text(r, 0), number(r, 1)})
		return nil
	})
	if err != nil {
		return st, err
	}
	slices.SortFunc(st.Kinds, func(a, b KindCount) int { return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Kind, b.Kind)) })
	rows := func(to *int64, sql string, args ...any) {
		if err == nil {
			*to, _, err = s.tx.Int(sql, args...)
		}
	}
	rows(&st.Sessions, `SELECT count(*) FROM `+heads)
	const real = ` WHERE substr(watcher_session_key, 1, 20) <> '` + sentinel + `'`
	rows(&st.Watches, `SELECT count(*) FROM `+cursors+real)
	rows(&st.Pending, `SELECT count(*) FROM `+cursors+real+` AND material_sequence > last_seen_sequence`)
	rows(&st.Expired, `SELECT count(*) FROM `+cursors+real+` AND typeof(updated_at) = 'integer' AND updated_at < ?1`, cutoff)
	if len(s.cols[links]) > 0 {
		rows(&st.Links, `SELECT count(*) FROM `+links)
	}
	if s.cols["sqlite_sequence"]["seq"] && s.cols["sqlite_sequence"]["name"] {
		var last int64
		rows(&last, `SELECT max(seq) FROM sqlite_sequence WHERE name = '`+events+`'`)
		st.Last = max(st.Last, last)
	}
	return st, err
}
