package maintenance

import (
	"context"
	"slices"
	"time"

	"oc/maintenance/journal"
	"oc/store/row"
)

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

// ReviewDatabase is [Review] for sessions in a database, with the steps that do it: what is aside is archived as [Archive] does it, what is gone
// leaves as with [DeleteFromDatabase]. The error is a *NoRow.
func ReviewDatabase(ctx context.Context, d *Database, aside, gone []string) (*Plan, []journal.Step, error) {
	x := &databaseDraft{draft: newDraft(Alone(slices.Concat(gone, aside)...), d.Snapshot, d.Taken), d: d}
	for _, key := range slices.Concat(gone, aside) {
		i, err := d.index(key)
		if err != nil {
			return nil, nil, err
		}
		r := &d.Rows[i]
		switch {
		case x.gone[i] != "" || !x.idle(i):
		case slices.Contains(gone, key):
			x.drop(i, ByHand, "it was named to be deleted")
		case !r.IsSet(row.ArchivedAt) || r.IsSet(row.PinnedAt):
			x.puts = append(x.puts, Action{
				Kind: PutRow, Key: key, Rule: ByHand, Reason: "it was named to be archived", Bytes: int64(len(r.Val)), Applies: true, file: -1, shelve: x.aside(r),
			})
		}
	}
	return x.finish(ctx)
}
