package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oc/maintenance"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/agentdb"
	"oc/store/row"
	"oc/store/span"
	"oc/store/sqlfile"
)

// rowsFix tells whether oc mends a check in a database.
func rowsFix(c Code) bool {
	return agentdb.Fault(c).Mends() || c == RunDead || c == RunContradictory
}

// mendDatabase makes and applies the plan for the database of a target; nil where there is nothing to be done. All of it is one transaction,
// in which each fault is looked for once more. seen are the databases that were mended already.
func mendDatabase(ctx context.Context, o Options, t store.Target, w *maintenance.Worker, dry bool, seen map[string]bool) *Mended {
	o.Only = slices.DeleteFunc(slices.Clone(o.Only), func(c Code) bool { return !rowsFix(c) })
	if len(o.Only) == 0 {
		return nil
	}
	o.Targets, o.State, o.Deep = nil, false, false
	first := newExam(ctx, o).visit(t)
	if first.database == nil || seen[first.database.Path] {
		return nil
	}
	path := first.database.Path
	seen[path] = true
	out := &Mended{Agent: t.Agent, Store: path}
	plan := func(tx *sqlfile.Tx) (*maintenance.Plan, []journal.Step, error) {
		r := &databaseRepair{now: o.Now.UnixMilli()}
		x := newExam(ctx, o)
		s := x.visit(t)
		x.sites = []*site{s}
		if s.database == nil {
			return nil, nil, fmt.Errorf("%s: %w", path, journal.ErrChanged)
		}
		if err := x.look(); err != nil {
			return nil, nil, err
		}
		var err error
		if r.flaws, err = audited(ctx, path); err != nil {
			return nil, nil, err
		}
		to, err := agentdb.NewWriter(tx, path, r.now)
		if err != nil {
			return nil, nil, err
		}
		out.Findings, out.Left = nil, nil
		for _, f := range x.report.Findings {
			if !rowsFix(f.Code) || f.Remedy != Safe && f.Remedy != Preview {
				continue
			}
			if err := r.take(to, f); err != nil {
				out.Left = append(out.Left, Left{f, err.Error()})
			} else {
				out.Findings = append(out.Findings, f)
			}
		}
		p := &maintenance.Plan{Agent: t.Agent, Store: path, Now: o.Now, Actions: r.actions}
		if len(r.actions) == 0 {
			return p, nil, nil
		}
		return p, []journal.Step{maintenance.Rows(path, r.change(path))}, nil
	}
	// Nobody is kept out while there is nothing to be done.
	out.Done = &maintenance.Done{}
	out.Done.Plan, _, out.Err = maintenance.PlanDatabase(ctx, path, plan)
	if !dry && out.Err == nil && len(out.Findings) > 0 {
		out.Done, out.Err = w.ApplyDatabase(ctx, path, plan)
	}
	var unfit *maintenance.Unfit
	if errors.As(out.Err, &unfit) {
		return leaveAll(ctx, o, t, out)
	}
	if out.Err == nil && len(out.Findings)+len(out.Left) == 0 {
		return nil
	}
	return out
}

// leaveAll leaves everything in a database that is not one that oc changes; nil where nothing is wrong in it.
func leaveAll(ctx context.Context, o Options, t store.Target, out *Mended) *Mended {
	x := newExam(ctx, o)
	x.sites = []*site{x.visit(t)}
	if err := x.look(); err != nil {
		return out
	}
	for _, f := range x.report.Findings {
		if f.Remedy == Safe || f.Remedy == Preview {
			out.Left = append(out.Left, Left{f, out.Err.Error()})
		}
	}
	out.Findings, out.Err, out.Done = nil, nil, nil
	if len(out.Left) == 0 {
		return nil
	}
	return out
}

// audited are the flaws of a database.
func audited(ctx context.Context, path string) (flaws []agentdb.Flaw, err error) {
	err = agentdb.Read(ctx, path, func(db *agentdb.DB) (err error) {
		flaws, err = db.Audit(false)
		return err
	})
	return flaws, err
}

// A databaseRepair puts one transaction together.
type databaseRepair struct {
	now     int64
	flaws   []agentdb.Flaw // all that were found
	actions []maintenance.Action
	mends   []agentdb.Flaw
	puts    []edited
}

// An edited row is one that gets another value.
type edited struct {
	key      string
	was, val []byte
}

// take adds what mends a finding; the error says why it is left.
func (r *databaseRepair) take(to *agentdb.Writer, f Finding) error {
	if f.Code == RunDead || f.Code == RunContradictory {
		return r.endRun(to, f)
	}
	i := slices.IndexFunc(r.flaws, func(x agentdb.Flaw) bool {
		return Code(x.Fault) == f.Code && x.Key == f.Key && x.ID == f.ID && slices.Equal(x.Said, f.Evidence)
	})
	if i < 0 {
		return agentdb.ErrGone
	}
	flaw := r.flaws[i]
	if err := to.Mendable(&flaw); err != nil {
		return err
	}
	r.mends = append(r.mends, flaw)
	a := maintenance.Action{Kind: maintenance.PutRow, Key: f.Key, Rule: maintenance.Rule(f.Code), Applies: true}
	switch flaw.Fault {
	case agentdb.RowDoubted:
		a.Reason = "it is marked as looked at: " + strings.Join(f.Evidence, "; ")
	case agentdb.ColumnsDiffer, agentdb.LineageDiffers:
		a.Reason = "its columns follow its JSON: " + strings.Join(f.Evidence, "; ")
	case agentdb.NoWindow:
		a.Reason = "its conversation begins anew, empty: " + strings.Join(f.Evidence, "; ")
	case agentdb.BrokenIndex:
		a.Kind, a.Key, a.Reason = maintenance.Remake, or(f.Key, f.ID), "OpenClaw makes it anew when it opens the database: "+strings.Join(f.Evidence, "; ")
	case agentdb.OrphanIndex:
		a.Kind, a.Key, a.Reason = maintenance.Remake, f.ID, "the conversation is gone: "+strings.Join(f.Evidence, "; ")
	}
	r.actions = append(r.actions, a)
	return nil
}

// endRun writes down that a run is over, as it does for files.
func (r *databaseRepair) endRun(to *agentdb.Writer, f Finding) error {
	e, ok, err := to.DB().Entry(f.Key)
	if err == nil && !ok {
		err = agentdb.ErrGone
	}
	if err != nil {
		return err
	}
	grown := 0.0
	if id, ok := e.Text(row.SessionID); ok {
		size, err := to.DB().Size(id)
		if err != nil {
			return err
		}
		grown = float64(size.Last)
	}
	updated, _ := e.Updated()
	changes, said := endOf(&e, max(grown, updated))
	val := row.Edit(e.Val, changes...)
	r.puts = append(r.puts, edited{f.Key, bytes.Clone(e.Val), val})
	r.actions = append(r.actions, maintenance.Action{
		Kind: maintenance.PutRow, Key: f.Key, Rule: maintenance.Rule(f.Code), Reason: said + ": " + strings.Join(f.Evidence, "; "), Bytes: int64(len(val)), Value: val, Applies: true,
	})
	return nil
}

// endOf is how a row says that its run is over: done where it says when it ended, else failed at its last sign of life.
func endOf(e *row.Entry, last float64) (changes []row.Change, said string) {
	started, known := e.Stamp(row.StartedAt)
	ended, has := e.Stamp(row.EndedAt)
	status, said := "done", "it ended"
	if !has || known && ended < started {
		status, said = "failed", "its run is dead"
		if ended = last; known {
			ended = max(ended, started)
		}
	}
	changes = []row.Change{{Name: row.Status.String(), Val: span.Quote(nil, status)}}
	if status == "failed" && ended > 0 {
		changes = append(changes, row.Change{Name: row.EndedAt.String(), Val: span.AppendFloat(nil, float64(int64(ended)))})
	}
	return changes, said
}

// change is the transaction. What is not as it was planned for is journal.ErrChanged.
func (r *databaseRepair) change(path string) func(*sqlfile.Tx) error {
	return func(tx *sqlfile.Tx) error {
		to, err := agentdb.NewWriter(tx, path, r.now)
		if err != nil {
			return err
		}
		if len(r.mends) > 0 {
			if err := to.Mend(r.mends); errors.Is(err, agentdb.ErrGone) {
				return fmt.Errorf("%w: %w", journal.ErrChanged, err)
			} else if err != nil {
				return err
			}
		}
		for _, p := range r.puts {
			e, ok, err := to.DB().Entry(p.key)
			if err != nil {
				return err
			}
			if !ok || !bytes.Equal(e.Val, p.was) {
				return fmt.Errorf("%w: the row %s", journal.ErrChanged, p.key)
			}
			if err := to.Put(p.key, p.val); err != nil {
				return err
			}
		}
		return nil
	}
}
