package maintenance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"oc/maintenance/journal"
	"oc/store"
	"oc/store/sqlfile"
)

// PruneRuns takes runs of cron jobs out of the shared database, those that [store.CronHistory.Over] names, in one
// transaction and as a run that can be taken back. What hangs on a task goes with it, as in OpenClaw 2026.9.6. The run is
// nil where there is nothing to do.
//
// Hold should be set. The error is a *Quarantined, that of a newer schema, which is journal.ErrRefused, journal.ErrChanged where a row is
// not as it was listed, a *sqlfile.Error, lock.ErrBusy or Hold's; all is then as before.
func (w *Worker) PruneRuns(ctx context.Context, path string, over []store.CronRun) (r *journal.Run, failed error) {
	if len(over) == 0 {
		return nil, nil
	}
	release, err := w.hold()
	if err != nil {
		return nil, err
	}
	defer func() { failed = errors.Join(failed, release()) }()
	if why, err := store.Quarantine(ctx, w.Config.StateDir, path); err != nil {
		return nil, err
	} else if why != "" {
		return nil, &Quarantined{path, why}
	}
	if err := changeable(ctx, path); err != nil {
		return nil, err
	}
	j, err := w.stateJournal()
	if err != nil {
		return nil, err
	}
	if _, err := w.finish(ctx, j); err != nil {
		return nil, fmt.Errorf("finish an earlier run: %w", err)
	}
	facts, err := json.Marshal(Facts{Command: w.Command, Store: path, Rows: len(over)})
	if err != nil {
		return nil, err
	}
	step := journal.Step{Kind: journal.Rows, Phase: journal.Swap, Path: realStore(path), Rows: &journal.Table{
		Ties:   []string{"task_id", "owner_id"},
		Change: func(tx *sqlfile.Tx) error { return dropRuns(tx, over) },
	}}
	return j.Apply(ctx, journal.Plan{Facts: facts, Steps: []journal.Step{step}, Purge: w.Purge})
}

// dropRuns deletes the rows, each if it still is the one that was listed.
func dropRuns(tx *sqlfile.Tx, over []store.CronRun) error {
	bound, err := tx.HasTable("execution_owner_lifecycle_bindings")
	if err != nil {
		return err
	}
	told, err := tx.HasTable("task_delivery_state")
	if err != nil {
		return err
	}
	for _, r := range over {
		var n int64
		switch r.Kept {
		case store.RunLogTable:
			n, err = tx.Exec("DELETE FROM "+store.RunLogTable+" WHERE rowid = ?1 AND store_key = ?2 AND job_id = ?3 AND seq = ?4", r.Row, r.Store, r.Job, r.ID)
		case store.RunTaskTable:
			if told {
				_, err = tx.Exec("DELETE FROM task_delivery_state WHERE task_id = ?1", r.ID)
			}
			if err == nil && bound {
				_, err = tx.Exec("DELETE FROM execution_owner_lifecycle_bindings WHERE owner_kind = 'task' AND owner_id = ?1", r.ID)
			}
			if err == nil {
				n, err = tx.Exec("DELETE FROM "+store.RunTaskTable+" WHERE task_id = ?1 AND runtime = 'cron' AND source_id = ?2 AND status NOT IN ('queued', 'running', 'lost')", r.ID, r.Job)
			}
		}
		if err != nil {
			return err
		}
		if n != 1 {
			return fmt.Errorf("%w: run %s of job %s", journal.ErrChanged, r.ID, r.Job)
		}
	}
	return nil
}
