package maintenance

import (
	"fmt"
	"time"

	"oc/store/agentdb"
	"oc/store/row"
	"oc/store/span"
)

// The verbs by which people change single sessions: delete, archive, restore,
// reset, patch. Each is a pure function from a snapshot and what is asked to a
// plan of the same kind as a cleanup's, with [Alone] as the policy that the
// snapshot is taken for. A row whose transcript is locked stays as it is, and
// so does one that was written in the last five minutes unless the snapshot is
// Governed: the plan has it among its protected.

// A NoRow is a key that the store does not have, or no more.
type NoRow struct{ Store, Key string }

func (e *NoRow) Error() string {
	return fmt.Sprintf("there is no session %s in %s any more", e.Key, e.Store)
}

// verbDraft begins the plan of a change of single rows.
func verbDraft(s *Snapshot, now time.Time, keys ...string) *draft {
	return newDraft(Alone(keys...), s, now)
}

// index is the row of a key.
func (s *Snapshot) index(key string) (int, error) {
	if i, ok := s.byKey[key]; ok {
		return i, nil
	}
	return -1, &NoRow{s.Store, key}
}

// idle tells whether nobody works on a row; where somebody may, it stays.
func (d *draft) idle(i int) bool {
	by := d.inUse(&d.s.Rows[i])
	if by != "" {
		d.stay(i, by, ByHand)
	}
	return by == ""
}

// elsewhere notes that a row's transcript is not archived, because it lies
// outside of the directory of the store.
func (d *draft) elsewhere(r *Row) {
	if r.File != "" && r.Written > 0 && !within(r.File, d.s.Dir) {
		d.notes = append(d.notes, fmt.Sprintf("the transcript of %s, %s, lies outside of the directory of the store and stays as it is", r.Key, r.File))
	}
}

// put writes a row anew. Where the new bytes are the old ones nothing happens.
func (d *draft) put(i int, val []byte, format string, args ...any) {
	r := &d.s.Rows[i]
	if string(val) == string(r.Val) {
		return
	}
	d.puts = append(d.puts, d.written(r.Key, val, fmt.Sprintf(format, args...)))
}

// written is the action that writes a row, to a file or to a database.
func (d *draft) written(key string, val []byte, reason string) Action {
	a := Action{Kind: PutRow, Key: key, Rule: ByHand, Reason: reason, Bytes: int64(len(val)), Value: val, Applies: true, file: -1}
	if d.s.Schema != 0 {
		a.write = func(w *agentdb.Writer) error { return w.Put(key, val) }
	}
	return a
}

// transcript changes the transcript of a row of a database.
func (d *draft) transcript(i int, kind Kind, reason string, write func(*agentdb.Writer) error) {
	d.puts = append(d.puts, Action{Kind: kind, Key: d.s.Rows[i].Key, Rule: ByHand, Reason: reason, Applies: true, file: -1, write: write})
}

// add writes a row that is not there yet.
func (d *draft) add(key string, val []byte, reason string) {
	d.puts = append(d.puts, d.written(key, val, reason))
	d.added++
}

// touched is updatedAt after a change: now, or what it is where that lies
// ahead (spec/file-store.md 2.8).
func (d *draft) touched(r *Row) row.Change {
	return row.Change{Name: row.UpdatedAt.String(), Val: d.stampOf(max(d.now, r.Updated))}
}

func (d *draft) stampOf(ms float64) []byte { return span.AppendFloat(nil, ms) }

// Denied is a change that a session does not allow.
type Denied struct{ Key, Reason string }

func (e *Denied) Error() string { return fmt.Sprintf("the session %s: %s", e.Key, e.Reason) }
