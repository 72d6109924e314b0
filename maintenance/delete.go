package maintenance

import "time"

// Delete plans to take sessions out of the store: their transcripts become
// .deleted archives and their trajectories go, as OpenClaw does it for
// sessions.delete (spec/maintenance.md 2.7 and 2.8, release 2026.7.35), except
// what another row needs too. The snapshot must have been taken for
// Alone(keys...). The error is a *NoRow.
func Delete(s *Snapshot, keys []string, now time.Time) (*Plan, error) {
	for _, key := range keys {
		if _, err := s.index(key); err != nil {
			return nil, err
		}
	}
	d := verbDraft(s, now, keys...)
	d.decide()
	return d.plan(), nil
}

// named drops the rows that were asked for by their keys.
func (d *draft) named() {
	for _, key := range d.p.Keys {
		if i, ok := d.s.byKey[key]; ok && d.gone[i] == "" && d.idle(i) {
			d.drop(i, ByHand, "it was named to be deleted")
			d.elsewhere(&d.s.Rows[i])
		}
	}
}
