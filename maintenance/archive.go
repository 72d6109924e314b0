package maintenance

import (
	"time"

	"oc/store/row"
)

// Archive plans to put sessions aside: archivedAt is set where it is not, and
// pinnedAt goes, as with OpenClaw's sessions.patch (release 2026.7.35; 2026.9.6
// notes besides that a person did it).
// Transcripts stay where they are. The error is a *NoRow.
func Archive(s *Snapshot, keys []string, now time.Time) (*Plan, error) {
	d := verbDraft(s, now)
	if err := d.putAside(keys); err != nil {
		return nil, err
	}
	return d.plan(), nil
}

// putAside marks rows as archived.
func (d *draft) putAside(keys []string) error {
	for _, key := range keys {
		i, err := d.s.index(key)
		if err != nil {
			return err
		}
		r := &d.s.Rows[i]
		if r.IsSet(row.ArchivedAt) && !r.IsSet(row.PinnedAt) || !d.idle(i) {
			continue
		}
		d.put(i, row.Edit(r.Val, d.aside(r)...), "it was named to be archived")
	}
	return nil
}

// aside is what the row of a session says once a person has put it aside.
func (d *draft) aside(r *Row) []row.Change {
	changes := []row.Change{d.touched(r), {Name: row.PinnedAt.String()}}
	if !r.IsSet(row.ArchivedAt) {
		changes = append(changes, row.Change{Name: row.ArchivedAt.String(), Val: d.stampOf(d.now)})
		changes = append(changes, d.s.reasoned("manual")...)
	}
	return changes
}
