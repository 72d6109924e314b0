package agentdb

import (
	"context"
	"slices"

	"oc/transcript"
)

// Active calls f for the events of the active branch of a window, from the root to the leaf, without the header. It is
// Events in all else.
func Active(ctx context.Context, path, sessionID string, f func(Event) error) error {
	given := 0
	var generation string
	return Read(ctx, path, func(db *DB) error {
		now, err := db.Generation(sessionID)
		if err != nil {
			return err
		}
		if given > 0 && now != generation {
			return ErrRewritten
		}
		generation = now
		skip := given // a branch that was only appended to begins as it did
		return db.batches(func(give func(Event) error) error {
			return db.Active(sessionID, give)
		}, func(e Event) error {
			if skip > 0 {
				skip--
				return nil
			}
			given++
			return f(e)
		})
	})
}

// Active calls f for the events of the active branch: those of OpenClaw's own projection if it is current, else those
// that the tree of the rows gives (spec/sqlite-store.md 2.5). If no row has a place in a tree, the order of writing is
// the branch.
func (db *DB) Active(sessionID string, f func(Event) error) error {
	usable, err := db.projected(sessionID)
	if err != nil {
		return err
	}
	if usable {
		return db.hot(`JOIN session_transcript_active_events AS a USING (session_id)
			WHERE session_id = ?1 AND a.event_seq = seq ORDER BY a.active_position`, f, sessionID)
	}
	tree := transcript.Tree{Rules: transcript.DatabaseRules}
	var all []int64 // of rows that are none of a tree's
	offset := int64(0)
	err = db.Events(sessionID, func(e Event) error {
		at := transcript.Place{Line: int(e.Seq) + 1, Offset: offset, Size: len(e.Line)}
		offset += int64(len(e.Line)) + 1
		entry, err := transcript.Parse(e.Line)
		if err == nil && tree.Add(&entry, at) || err == nil && entry.Kind == transcript.Header {
			return nil
		}
		if tree.Len() == 0 {
			all = append(all, e.Seq)
		}
		return nil
	})
	if err != nil {
		return err
	}
	order := all
	if tree.Len() > 0 {
		rows, _ := tree.Branch()
		order = make([]int64, len(rows))
		for i, p := range rows {
			order[i] = int64(p.Line - 1)
		}
	}
	return db.inOrder(sessionID, order, f)
}

// projected tells whether OpenClaw's active branch is there and covers every event.
func (db *DB) projected(sessionID string) (bool, error) {
	state, err := db.tx.Columns("session_transcript_index_state")
	if err != nil || !state["needs_rebuild"] || !state["indexed_seq"] {
		return false, err
	}
	active, err := db.tx.Columns("session_transcript_active_events")
	if err != nil || !active["active_position"] || !active["event_seq"] {
		return false, err
	}
	pending := ""
	if active["context_eligible"] {
		pending = " AND NOT EXISTS (SELECT 1 FROM session_transcript_active_events WHERE session_id = ?1 AND context_eligible IS NULL)"
	}
	cold, err := db.Cold(sessionID)
	if err != nil || cold != nil {
		return false, err
	}
	n, _, err := db.tx.Int(`SELECT count(*) FROM session_transcript_index_state WHERE session_id = ?1 AND needs_rebuild = 0
		AND indexed_seq = (SELECT max(seq) FROM transcript_events WHERE session_id = ?1)`+pending, sessionID)
	return n == 1, err
}

// inOrder gives the events with these numbers, one pass if they ascend, as they do unless a row hangs below a later one.
func (db *DB) inOrder(sessionID string, order []int64, f func(Event) error) error {
	if slices.IsSorted(order) {
		at := 0
		return db.Events(sessionID, func(e Event) error {
			if at == len(order) || e.Seq != order[at] {
				return nil
			}
			at++
			return f(e)
		})
	}
	cold, err := db.Cold(sessionID)
	if err != nil {
		return err
	}
	if cold == nil {
		for _, seq := range order {
			if err := db.hot("WHERE session_id = ?1 AND seq = ?2", f, sessionID, seq); err != nil {
				return err
			}
		}
		return nil
	}
	wanted := make(map[int64]Event, len(order)) // an archive is small: OpenClaw makes none above 64 MiB
	for _, seq := range order {
		wanted[seq] = Event{}
	}
	err = db.Events(sessionID, func(e Event) error {
		if _, ok := wanted[e.Seq]; ok {
			wanted[e.Seq] = e
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, seq := range order {
		if err := f(wanted[seq]); err != nil {
			return err
		}
	}
	return nil
}
