package maintenance

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"oc/config"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/agentdb"
	"oc/store/sqlfile"
)

// Rows is a step that changes the sessions of a database: change is one transaction of it, and its error, journal.ErrChanged where the rows are
// not as they were planned for, takes the whole run back. Steps of one database are done in their order.
func Rows(database string, change func(tx *sqlfile.Tx) error) journal.Step {
	return journal.Step{Kind: journal.Rows, Phase: journal.Swap, Path: realStore(database), Rows: &journal.Table{
		Change: change, Ties: agentdb.Ties(), Derived: agentdb.Remade(), Stale: agentdb.Stale(),
	}}
}

// A Quarantined is a database that OpenClaw refuses to open.
type Quarantined struct{ Path, Reason string }

func (e *Quarantined) Error() string {
	return fmt.Sprintf("%s: OpenClaw has put this database in quarantine (%s), so oc does not change it: give openclaw doctor --fix first", e.Path, e.Reason)
}

// An Unfit is a database that oc reads and does not change. It is an agentdb.ErrUnfit.
type Unfit struct {
	Path string
	Err  error
}

func (e *Unfit) Error() string {
	return fmt.Sprintf("%s: this database is not changed: %v", e.Path, e.Err)
}

func (e *Unfit) Unwrap() error { return e.Err }

// ApplyDatabase plans a change of the sessions in the database at path and applies it: [Worker.Apply] for the SQLite era. Hold
// should be set. make gets one snapshot of a database that is fit to be changed, and gives the plan and its steps: [Rows], files to Create
// before them with the session id as Tie, files to Remove after them. It is called again when the rows have changed meanwhile.
//
// The error is a *Quarantined, an *Unfit, a *sqlfile.Error, a *Changed, or one of Apply's; all is then as before, unless Done.Halfway.
func (w *Worker) ApplyDatabase(ctx context.Context, path string, make func(tx *sqlfile.Tx) (*Plan, []journal.Step, error)) (d *Done, failed error) {
	j, err := w.journalOf(path)
	if err != nil {
		return nil, err
	}
	d = &Done{}
	release, err := w.hold()
	if err != nil {
		return d, err
	}
	defer func() { failed = errors.Join(failed, release()) }()
	if err := w.recover(ctx, j, d, path); err != nil {
		return d, err
	}
	if why, err := store.Quarantine(ctx, w.Config.StateDir, path); err != nil {
		return d, err
	} else if why != "" {
		return d, &Quarantined{path, why}
	}
	for try := 1; ; try++ {
		var steps []journal.Step
		if d.Plan, steps, err = PlanDatabase(ctx, path, make); err != nil || len(steps) == 0 {
			return d, err
		}
		err := w.runDatabase(ctx, j, d, steps)
		if !errors.Is(err, journal.ErrChanged) {
			return d, err
		}
		if try == 2 {
			return d, &Changed{path}
		}
	}
}

// PlanDatabase makes a plan of one snapshot of a database that is fit to be changed.
func PlanDatabase(ctx context.Context, path string, make func(tx *sqlfile.Tx) (*Plan, []journal.Step, error)) (p *Plan, steps []journal.Step, err error) {
	err = sqlfile.Read(ctx, path, func(tx *sqlfile.Tx) (err error) {
		if err := agentdb.Fit(tx, ""); err != nil {
			if errors.Is(err, agentdb.ErrUnfit) {
				err = &Unfit{path, err}
			}
			return err
		}
		p, steps, err = make(tx)
		return err
	})
	return p, steps, err
}

func (w *Worker) runDatabase(ctx context.Context, j *journal.Journal, d *Done, steps []journal.Step) (err error) {
	release, err := j.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	of := map[string]*Action{}
	for i := range d.Plan.Actions {
		if a := &d.Plan.Actions[i]; a.Target != "" {
			of[realPath(a.Target)] = a
		}
	}
	// Every step looks once more whether the database is fit: somebody may have upgraded it.
	for i := range steps {
		if steps[i].Kind != journal.Rows || steps[i].Path != realStore(d.Plan.Store) {
			continue
		}
		table := *steps[i].Rows
		change := table.Change
		table.Change = func(tx *sqlfile.Tx) error {
			if err := agentdb.Fit(tx, ""); errors.Is(err, agentdb.ErrUnfit) {
				return &Unfit{steps[i].Path, err}
			} else if err != nil {
				return err
			}
			return change(tx)
		}
		steps[i].Rows = &table
	}
	if err := w.run(ctx, j, d, steps, of); err != nil {
		return err
	}
	return w.expire(ctx, j, d)
}

// journalOf is the journal for a database: that of the state which it is in.
func (w *Worker) journalOf(path string) (*journal.Journal, error) {
	return w.journal(Home(w.Config, path), filepath.Dir(realStore(path)), config.ArtifactDir(realStore(path)))
}

// stateJournal is the journal for what the agents of a state share. It is the state's own, wherever their stores are.
func (w *Worker) stateJournal() (*journal.Journal, error) {
	return w.journal(realDir(w.Config.StateDir))
}

// databaseDirs are the directories of the databases of all agents.
func databaseDirs(c *config.Config) (dirs []string) {
	for _, id := range c.StoreAgents() {
		for _, path := range c.DatabasePaths(id) {
			if dir := filepath.Dir(path); !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir, config.ArtifactDir(path))
			}
		}
	}
	return dirs
}
