package maintenance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"oc/store"
	"oc/store/sqlfile"
)

// cronJobs reads which cron jobs are configured, of all their stores: table
// cron_jobs of the database that the agents of a state share (release
// 2026.7.35). Where that cannot be read Jobs stays nil, and no job counts as
// gone.
func (s *Snapshot) cronJobs(ctx context.Context, state string) {
	path := store.StateDatabase(state)
	jobs := map[string]bool{}
	err := sqlfile.Read(ctx, path, func(tx *sqlfile.Tx) error {
		clear(jobs)
		has, err := tx.HasTable("cron_jobs")
		if err != nil {
			return err
		}
		if !has {
			return errors.New("it has no table of cron jobs")
		}
		return tx.Each("SELECT job_id FROM cron_jobs", func(r *sqlfile.Row) error {
			jobs[r.Text(0)] = true
			return nil
		})
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Problems = append(s.Problems, fmt.Sprintf("the cron jobs are unknown: there is no %s", path))
	case err != nil:
		s.Problems = append(s.Problems, fmt.Sprintf("the cron jobs are unknown: %v", err))
	default:
		s.Jobs = jobs
	}
}
