package maintenance

import (
	"time"

	"oc/store/agentdb"
	"oc/store/row"
	"oc/store/span"
	"oc/transcript/compaction"
)

// A Cutting is what becomes of a transcript in a database when it is compacted: a row with a summary behind it, or some of its rows alone.
type Cutting struct {
	Line   []byte               // the row of the compaction; nil where nothing is summarised, and while it is not written yet
	Trim   *compaction.Trimming // of the transcript, where rows go
	Grown  int64                // when the transcript had last changed as it was read, in epoch milliseconds
	Reason string
	Tokens int // of the context then, where Known
	Known  bool

	Next string                                                     // the id under which the session goes on in a new transcript; "": in its own
	Rows func(from *agentdb.DB, each func(line []byte) error) error // of that transcript, read from the one so far; nil while they are not known yet
}

// Cut plans to compact the transcript of a session in a database, as sessions.compact of 2026.9.6 does: nothing is copied beside it, and what
// the row counted of it goes. With Next the session goes on in a new transcript, and the one so far stays as it is, an earlier one of the session: the
// row says so as 2026.9.6 has it when the engine of a plugin goes on in another transcript after a compaction (it has given up
// truncateAfterCompaction itself). The error is a *NoRow, or a *Denied: for an archived session, a transcript that another session owns or that lies
// in a cold archive, and one that was written since.
func Cut(s *Snapshot, key string, how Cutting, now time.Time) (*Plan, error) {
	i, err := s.index(key)
	if err != nil {
		return nil, err
	}
	r := &s.Rows[i]
	switch {
	case r.IsSet(row.ArchivedAt):
		return nil, &Denied{key, "it is archived; restore it first"}
	case r.stuck != "":
		return nil, &Denied{key, r.stuck}
	}
	d := verbDraft(s, now)
	if !d.idle(i) {
		return d.plan(), nil
	}
	if float64(how.Grown) != r.Written {
		return nil, &Denied{key, "its transcript was written while it was read; try again"}
	}
	if how.Next != "" {
		how.goOn(d, i)
		return d.plan(), nil
	}
	kind, write := Append, func(w *agentdb.Writer) error {
		if err := w.Window(key, r.ID, ""); err != nil {
			return err
		}
		_, err := w.Append(r.ID, how.Line)
		return err
	}
	if how.Trim != nil {
		kind, write = Trim, func(w *agentdb.Writer) error {
			if err := w.Window(key, r.ID, ""); err != nil {
				return err
			}
			return w.Trim(r.ID, how.Trim)
		}
	}
	d.transcript(i, kind, how.Reason, write)
	d.put(i, row.Edit(r.Val, how.changes(d, r)...), "%s", how.Reason)
	return d.plan(), nil
}

// goOn plans the new transcript, and the row that has it. The window of a transcript is there before its rows, and its times are those of the row.
func (how *Cutting) goOn(d *draft, i int) {
	r := &d.s.Rows[i]
	changes := append(
		how.changes(d, r),
		row.Change{Name: row.SessionID.String(), Val: span.Quote(nil, how.Next)},
		row.Change{Name: row.SessionStartedAt.String(), Val: d.touched(r).Val},
		row.Change{Name: "previousSessionId", Val: span.Quote(nil, r.ID)},
		row.Change{Name: row.UsageFamilySessionIDs.String(), Val: []byte(family(r, how.Next))},
	)
	if key, _ := r.Text(row.UsageFamilyKey); key == "" {
		changes = append(changes, row.Change{Name: row.UsageFamilyKey.String(), Val: span.Quote(nil, r.Key)})
	}
	val := row.Edit(r.Val, changes...)
	d.put(i, val, "%s, in a new transcript", how.Reason)
	rows, next := how.Rows, how.Next
	d.transcript(i, Append, "the transcript that the session goes on in: the summary, and what is kept", func(w *agentdb.Writer) error {
		err := rows(w.DB(), func(line []byte) error {
			_, err := w.Append(next, line)
			return err
		})
		if err != nil {
			return err
		}
		return w.Put(r.Key, val)
	})
}

// changes are those of the row.
func (how *Cutting) changes(d *draft, r *Row) []row.Change {
	changes := []row.Change{d.touched(r)}
	for _, name := range []string{"inputTokens", "outputTokens", "cacheRead", "cacheWrite", "estimatedCostUsd", "contextBudgetStatus"} {
		changes = append(changes, row.Change{Name: name})
	}
	set := func(f row.Field, raw []byte) { changes = append(changes, row.Change{Name: f.String(), Val: raw}) }
	if how.Trim != nil {
		for _, name := range append([]string{"totalTokens", "totalTokensFresh", "totalTokensVersion"}, boundToClients...) {
			changes = append(changes, row.Change{Name: name})
		}
		return changes
	}
	changes = append(changes, row.Change{Name: "transcriptByteCompactionLatch"})
	count, _ := r.Number(row.CompactionCount)
	set(row.CompactionCount, d.stampOf(max(count, 0)+1))
	if how.Known {
		set(row.TotalTokens, d.stampOf(float64(how.Tokens)))
		set(row.TotalTokensFresh, []byte("true"))
		set(row.TotalTokensVersion, []byte("1"))
	} else {
		set(row.TotalTokensFresh, []byte("false"))
		set(row.TotalTokensVersion, nil)
	}
	return changes
}
