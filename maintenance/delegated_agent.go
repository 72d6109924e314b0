package maintenance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"oc/gateway"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/jsonfile"
	"oc/store/sqlfile"
)

// DelegateDatabase is [Worker.Delegate] for a change that takes a database away with the directory that it is in. Before the call everything
// goes into a run: the rows that the state's shared database has of the agent, and a copy of each file, the database with its log as they are
// at one moment. What became of the rows is written down afterwards, so that an undo takes out those that
// are new, too: as long as 2026.9.6 knows an agent for deleted, it does not work for it.
func (w *Worker) DelegateDatabase(ctx context.Context, t store.Target, path string, keys []string, make func(*Database) (*Plan, []journal.Step, error), g Delegation) (d *Done, err error) {
	j, err := w.journalOf(path)
	if err != nil {
		return nil, err
	}
	d = &Done{}
	release, err := j.Lock(ctx)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, release()) }()
	if d.Recovered, err = j.Reconcile(ctx); err != nil {
		return d, fmt.Errorf("close an earlier run, which only oc undo can do with the gateway stopped: %w", err)
	}
	for try := 1; ; try++ {
		d.Plan, _, err = PlanDatabase(ctx, path, func(tx *sqlfile.Tx) (*Plan, []journal.Step, error) {
			of, err := TakeDatabase(ctx, tx, w.Config, t, path, Alone(keys...), w.Now())
			if err != nil {
				return nil, nil, err
			}
			of.Governed = g.ByHand
			d.Snapshot = of.Snapshot
			return make(of)
		})
		if err != nil || d.Plan.Empty() && !g.Anyway {
			return d, err
		}
		if w.Purge || len(d.Plan.Protected) > 0 {
			break
		}
		if err = w.saveWhole(ctx, j, d, path, g); err == nil {
			break
		}
		if !errors.Is(err, journal.ErrChanged) || ctx.Err() != nil {
			return d, err
		}
		if try == planTries {
			return d, &Changed{path}
		}
		time.Sleep(planPause)
	}
	said := g.Call(ctx, d.Snapshot, d.Plan)
	var failed *gateway.Error
	if errors.As(said, &failed) && failed.Sent {
		return d, said
	}
	ctx = context.WithoutCancel(ctx)
	if err := errors.Join(said, w.settleWhole(ctx, j, d, path, keys)); err != nil {
		return d, err
	}
	return d, w.expire(ctx, j, d)
}

// agentHook is of the step of the database that all agents share; its payload is the agent.
const agentHook = "agent"

// ofAgent names what the database that all agents share has of one, and 2026.9.6 takes out or adds when it deletes it.
func ofAgent(payload []byte) (sqlfile.Choice, []string, error) {
	var agent string
	if err := json.Unmarshal(payload, &agent); err != nil {
		return nil, nil, fmt.Errorf("%w: which agent was to go cannot be read: %w", journal.ErrRefused, err)
	}
	return func(tx *sqlfile.Tx, _ []string, rows func(table, where string, args ...any) error) error {
		for _, of := range []struct{ table, column, where string }{
			{registered, "agent_id", "agent_id = ?1"},
			{"agent_deletion_journal", "agent_id", "agent_id = ?1"},
			{"agent_provenance", "agent_id", "agent_id = ?1"},
			{"cron_jobs", "agent_id", "agent_id = ?1"},
			{"cron_job_scratch", "job_id", "job_id IN (SELECT job_id FROM cron_jobs WHERE agent_id = ?1)"},
		} {
			has, err := tx.Columns(of.table)
			if err != nil {
				return err
			}
			if of.table == "cron_job_scratch" && has[of.column] {
				if jobs, err := tx.Columns("cron_jobs"); err != nil || !jobs["agent_id"] {
					return err
				}
			}
			if !has[of.column] {
				continue
			}
			if err := rows(of.table, of.where, agent); err != nil {
				return err
			}
		}
		return nil
	}, nil, nil
}

// saveWhole copies the files of a plan into a run, the database and its log as they were at one moment: neither was written meanwhile. The index
// of the log is made anew by whoever opens it.
func (w *Worker) saveWhole(ctx context.Context, j *journal.Journal, d *Done, path string, g Delegation) error {
	var steps []journal.Step
	looked := map[string]journal.Stamp{}
	for i := range d.Plan.Actions {
		a := &d.Plan.Actions[i]
		step := journal.Step{Kind: journal.Remove, Phase: journal.Clear, Path: realPath(a.Target)}
		switch {
		case a.Kind == RemoveDir:
			step.Kind = journal.RemoveDir
		case a.Kind != Remove || strings.HasSuffix(a.Target, "-shm"):
			continue
		default:
			info, err := os.Lstat(a.Target)
			if err != nil {
				return fmt.Errorf("%w: %w", journal.ErrChanged, err)
			}
			stamp := journal.StampOf(info)
			if step.Expect = &stamp; ofDatabase(a.Target, path) {
				step.Phase, looked[a.Target] = journal.Swap, stamp
			}
		}
		steps = append(steps, step)
	}
	steps = append(steps, w.besides(g, Home(w.Config, path))...)
	if shared := store.StateDatabase(w.Config.StateDir); !isGone(shared) {
		agent, err := json.Marshal(d.Plan.Agent)
		if err != nil {
			return err
		}
		steps = append(steps, journal.Step{Kind: journal.Rows, Phase: journal.Swap, Path: realStore(shared), Hook: agentHook, Payload: agent, Rows: &journal.Table{}})
	}
	f := w.facts(d.Plan)
	f.Via = "gateway"
	facts, err := json.Marshal(f)
	if err != nil {
		return err
	}
	r, err := j.Save(ctx, journal.Plan{Facts: facts, Steps: steps})
	if err != nil {
		return err
	}
	for name, was := range looked {
		info, err := os.Lstat(name)
		if err != nil || !journal.StampOf(info).Same(was) {
			_, e := j.Settle(ctx, r, nil) // nothing came of it yet, so it is cleared away
			return errors.Join(fmt.Errorf("%s is being written: %w", name, journal.ErrChanged), e)
		}
	}
	d.Run = r
	return nil
}

// settleWhole reads what is there afterwards and closes the runs with that.
func (w *Worker) settleWhole(ctx context.Context, j *journal.Journal, d *Done, path string, keys []string) error {
	h := &Handed{Before: len(d.Snapshot.Rows)}
	d.Handed = h
	gone := isGone(path)
	left := map[string]bool{}
	if !gone {
		_, _, err := PlanDatabase(ctx, path, func(tx *sqlfile.Tx) (*Plan, []journal.Step, error) {
			of, err := TakeDatabase(ctx, tx, w.Config, store.Target{Agent: d.Plan.Agent}, path, Alone(), w.Now())
			if err == nil {
				clear(left)
				for i := range of.Rows {
					left[of.Rows[i].Key] = true
				}
			}
			return &Plan{}, nil, err
		})
		if err != nil {
			d.Plan.Problems = append(d.Plan.Problems, fmt.Sprintf("what became of it cannot be read: %v", err))
			for i := range d.Snapshot.Rows {
				left[d.Snapshot.Rows[i].Key] = true
			}
		}
	}
	h.After = len(left)
	for i := range d.Snapshot.Rows {
		switch key := d.Snapshot.Rows[i].Key; {
		case !left[key]:
			h.Dropped = append(h.Dropped, key)
			if !slices.Contains(keys, key) {
				h.Unplanned = append(h.Unplanned, Unplanned{Key: key, Covered: gone && d.Run != nil})
			}
		case slices.Contains(keys, key):
			h.NotDone = append(h.NotDone, key)
		}
	}
	for i := range d.Plan.Actions {
		if a := &d.Plan.Actions[i]; a.Kind == Remove && a.Applies && isGone(a.Target) {
			h.Gone++
			if a.Class != jsonfile.Temp && a.Class != jsonfile.Lock {
				h.Freed += a.Bytes
			}
			if d.Run != nil {
				h.Covered++
			}
		}
	}
	if d.Run == nil {
		return nil
	}
	facts := FactsOf(d.Run, "")
	facts.Rows, facts.Files = len(h.Dropped), h.Gone
	if said, e := json.Marshal(facts); e == nil {
		d.Run.Facts = said
	}
	changed, err := j.Settle(ctx, d.Run, nil)
	if err == nil && !changed {
		d.Run = nil
	}
	return err
}

// besides are the steps for files that the gateway writes too, where they lie below the journal's home.
func (w *Worker) besides(g Delegation, home string) (steps []journal.Step) {
	for _, path := range g.Besides {
		path = realPath(path)
		if at, err := os.Lstat(path); err == nil && at.Mode().IsRegular() && within(path, home) {
			steps = append(steps, journal.Step{Kind: journal.Replace, Phase: journal.Place, Path: path})
		}
	}
	return steps
}
