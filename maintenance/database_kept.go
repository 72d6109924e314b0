package maintenance

import (
	"context"
	"encoding/json"
	"errors"

	"oc/maintenance/journal"
	"oc/store/agentdb"
	"oc/store/sqlfile"
)

// Spare saves all rows of the sessions of these keys in the database at path, before a gateway deletes them, as a run that puts them back once the
// gateway is stopped (design rule 5). The database is only read.
func (w *Worker) Spare(ctx context.Context, agent, path string, keys []string) (*journal.Run, error) {
	j, err := w.journalOf(path)
	if err != nil {
		return nil, err
	}
	facts := w.facts(&Plan{Agent: agent, Store: path})
	facts.Rows, facts.Via = len(keys), "gateway"
	said, err := json.Marshal(facts)
	if err != nil {
		return nil, err
	}
	step := Rows(path, nil)
	step.Rows.Keep = func(tx *sqlfile.Tx, rows func(table, where string, args ...any) error) error {
		return agentdb.RowsOf(tx, keys, rows)
	}
	r, err := j.Apply(ctx, journal.Plan{Facts: said, Steps: []journal.Step{step}})
	if err == nil && w.Group == "" {
		w.Group = r.ID
	}
	return r, err
}

// Unspare gives up what Spare saved, because nothing was deleted.
func (w *Worker) Unspare(ctx context.Context, path string, r *journal.Run) error {
	j, err := w.journalOf(path)
	if err != nil {
		return err
	}
	release, err := j.Lock(ctx)
	if err != nil {
		return err
	}
	_, err = j.Expire(ctx, r.ID)
	return errors.Join(err, release())
}
