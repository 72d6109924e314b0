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
	for _, key := range keys {
		i, err := s.index(key)
		if err != nil {
			return nil, err
		}
		r := &s.Rows[i]
		if r.IsSet(row.ArchivedAt) && !r.IsSet(row.PinnedAt) || !d.idle(i) {
			continue
		}
		changes := []row.Change{d.touched(r), {Name: row.PinnedAt.String()}}
		if !r.IsSet(row.ArchivedAt) {
			changes = append(changes, row.Change{Name: row.ArchivedAt.String(), Val: d.stampOf(d.now)})
			changes = append(changes, s.reasoned("manual")...)
		}
		d.put(i, row.Edit(r.Val, changes...), "it was named to be archived")
	}
	return d.plan(), nil
}
