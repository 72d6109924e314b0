package maintenance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oc/maintenance/journal"
	"oc/store"
	"oc/store/agentdb"
	"oc/store/row"
	"oc/store/sqlfile"
)

// takeSessions reads the sessions of the database at path for a change of single ones: all rows without their two large members, those with the
// given keys whole, and when their transcripts were last written.
func takeSessions(ctx context.Context, tx *sqlfile.Tx, t store.Target, path string, keys []string, now time.Time) (*Snapshot, error) {
	s := &Snapshot{Agent: t.Agent, Store: path, Dir: agentdb.ArtifactDir(path), Taken: now}
	of, err := agentdb.NewWriter(tx, path, 0)
	if err != nil {
		return nil, err
	}
	db := of.DB()
	s.Schema = db.Schema().UserVersion
	l, err := db.List(agentdb.Options{})
	if err != nil {
		return nil, err
	}
	s.Skipped, s.Rows, s.byKey = l.Skipped, make([]Row, len(l.Rows)), make(map[string]int, len(l.Rows))
	for i := range l.Rows {
		r := Row{Entry: l.Rows[i].Entry, ID: l.Rows[i].Columns.SessionID, runtime: -1}
		if slices.Contains(keys, r.Key) {
			if err := r.whole(db, path); err != nil {
				return nil, err
			}
		}
		r.Updated, r.HasTime = r.Entry.Updated()
		s.Rows[i], s.byKey[r.Key] = r, i
	}
	return s, s.list(ctx)
}

// whole reads what a change of a row needs to know of it.
func (r *Row) whole(db *agentdb.DB, path string) error {
	e, ok, err := db.Entry(r.Key)
	if err != nil || !ok {
		return errors.Join(err, &NoRow{path, r.Key})
	}
	r.Entry = e
	grown, err := db.Grown(r.ID)
	if err != nil {
		return err
	}
	r.Written = float64(grown)
	r.stuck, err = stuck(db, r.Key, r.ID)
	return err
}

// stuck says why the transcript of a session cannot be changed; "" where it can.
func stuck(db *agentdb.DB, key, id string) (string, error) {
	cold, err := db.Cold(id)
	if err != nil {
		return "", err
	}
	if cold != nil {
		return agentdb.ErrCold.Error(), nil
	}
	if owner, err := db.Owner(id); err != nil || owner != "" && owner != key {
		return "another session owns its transcript: " + owner, err
	}
	return "", nil
}

// A sessionsPlan makes the plan for some sessions of a database, and what it was made from.
type sessionsPlan struct {
	s *Snapshot
	p *Plan
}

func (x *sessionsPlan) make(ctx context.Context, t store.Target, path string, keys []string, now func() time.Time, make func(*Snapshot) (*Plan, error)) func(*sqlfile.Tx) (*Plan, []journal.Step, error) {
	return func(tx *sqlfile.Tx) (*Plan, []journal.Step, error) {
		var err error
		if x.s, err = takeSessions(ctx, tx, t, path, keys, now()); err != nil {
			return nil, nil, err
		}
		if x.p, err = make(x.s); err != nil || x.p.Empty() {
			return x.p, nil, err
		}
		s, p := x.s, x.p
		steps, _, err := stepsOf(s, p) // files beside the rows, such as notes: they stand when the rows are committed
		return p, append(steps, Rows(path, func(tx *sqlfile.Tx) error { return s.change(tx, p, now()) })), err
	}
}

// PlanSessions plans a change of the sessions with the given keys in the database at path, and changes nothing. The errors are those of
// PlanDatabase and of make.
func PlanSessions(ctx context.Context, t store.Target, path string, keys []string, now func() time.Time, make func(*Snapshot) (*Plan, error)) (*Done, error) {
	var x sessionsPlan
	_, _, err := PlanDatabase(ctx, path, x.make(ctx, t, path, keys, now, make))
	if err != nil {
		return nil, err
	}
	return &Done{Snapshot: x.s, Plan: x.p}, nil
}

// ApplySessions plans such a change and applies it, in one transaction, in which the rows are first held against what the plan was made from.
// The errors are those of ApplyDatabase and of make.
func (w *Worker) ApplySessions(ctx context.Context, t store.Target, path string, keys []string, make func(*Snapshot) (*Plan, error)) (*Done, error) {
	var x sessionsPlan
	d, err := w.ApplyDatabase(ctx, path, x.make(ctx, t, path, keys, w.Now, make))
	if d != nil {
		d.Snapshot = x.s
	}
	return d, err
}

// change does what a plan says, in one transaction.
func (s *Snapshot) change(tx *sqlfile.Tx, p *Plan, now time.Time) error {
	to, err := agentdb.NewWriter(tx, s.Store, now.UnixMilli())
	if err != nil {
		return err
	}
	if err := s.stands(to.DB(), p); err != nil {
		return err
	}
	for i := range p.Actions {
		if a := &p.Actions[i]; a.Applies && a.write != nil {
			if err := a.write(to); err != nil {
				return err
			}
		}
	}
	return nil
}

// stands holds the rows that a plan changes against those that it was made from.
func (s *Snapshot) stands(db *agentdb.DB, p *Plan) error {
	for i := range p.Actions {
		key := p.Actions[i].Key
		if key == "" {
			continue
		}
		now, there, err := db.Entry(key)
		if err != nil {
			return err
		}
		was, known := s.Row(key)
		if there != known || there && string(now.Val) != string(was.Val) {
			return fmt.Errorf("the row of %s is another one by now: %w", key, journal.ErrChanged)
		}
		if !there {
			continue
		}
		grown, err := db.Grown(was.ID)
		if err != nil {
			return err
		}
		if float64(grown) != was.Written {
			return fmt.Errorf("the transcript of %s was written meanwhile: %w", key, journal.ErrChanged)
		}
	}
	return nil
}

// reasoned is the reason for which a session is archived; releases before 2026.9.6 have none.
func (s *Snapshot) reasoned(reason string) []row.Change {
	if s.Schema < 23 {
		return nil
	}
	return []row.Change{{Name: row.ArchiveReason.String(), Val: []byte(`"` + reason + `"`)}}
}
