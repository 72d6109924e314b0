package maintenance

import "time"

// Review plans what a person decided session by session: the rows aside are
// archived as [Archive] does it, the rows gone are deleted as [Delete] does it,
// in one plan, so that one undo takes all of it back. The snapshot must have
// been taken for Alone(gone...). A key may stand in one of the lists only. The
// error is a *NoRow.
func Review(s *Snapshot, aside, gone []string, now time.Time) (*Plan, error) {
	for _, key := range gone {
		if _, err := s.index(key); err != nil {
			return nil, err
		}
	}
	d := verbDraft(s, now, gone...)
	d.decide()
	if err := d.putAside(aside); err != nil {
		return nil, err
	}
	return d.plan(), nil
}
