package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"oc/store/sqlfile"
)

// Table says what a step of the kind Rows does to a database.
type Table struct {
	// Change does it, in one transaction; it is nil in a run that was loaded. An error, such as ErrChanged when the rows are not what was
	// planned for, leaves the database as it was and rolls the run back.
	Change func(tx *sqlfile.Tx) error `json:"-"`
	// Ties are the columns, in whatever table, whose texts tie rows together: when the run is taken back they come back together or not at all.
	Ties []string `json:"ties,omitempty"`
	// Derived are tables that can be made anew from others, and Stale where it is noted that they must be.
	Derived []string      `json:"derived,omitempty"`
	Stale   sqlfile.Stale `json:"stale,omitzero"`

	// What the journal found and did.
	Vault   int             `json:"vault"` // where the rows are kept
	Number  int             `json:"number"`
	Bytes   int64           `json:"bytes,omitempty"` // that they take
	Changed sqlfile.Changed `json:"changed,omitzero"`
}

// rowsFile is the file that keeps the rows of a step.
func (r *Run) rowsFile(s *Step) string {
	return filepath.Join(r.Vaults[s.Rows.Vault].Dir, "rows-"+strconv.Itoa(s.Rows.Number))
}

// lookRows refuses a database of which another name, or another file in the place of a side file, would be changed too.
func (j *Journal) lookRows(s *Step, now Stamp) error {
	for _, beside := range []string{"", "-wal", "-shm", "-journal"} {
		at := now
		if beside != "" {
			var err error
			if at, err = j.fs.Lstat(s.Path + beside); err != nil {
				return err
			}
		}
		switch {
		case at.Type == Absent && beside != "":
		case at.Type != Plain:
			return fmt.Errorf("%w: %s is a %s", ErrRefused, s.Path+beside, at.Type)
		case at.Links > 1:
			return fmt.Errorf("%w: %s has %d names, and the database would change under all of them", ErrRefused, s.Path+beside, at.Links)
		}
	}
	return nil
}

// doRows changes the rows, once.
func (j *Journal) doRows(r *Run, s *Step) (err error) {
	if done, err := j.rowsStand(r, s); done || err != nil {
		return err
	}
	if s.Rows.Change == nil {
		return fmt.Errorf("%w: its transaction cannot be done again", ErrChanged)
	}
	now, err := j.fs.Lstat(s.Path)
	if err == nil {
		err = j.lookRows(s, now)
	}
	if err != nil {
		return err
	}
	return j.writeRows(r, s, r.rowsFile(s), func(kept sqlfile.Recording) (sqlfile.Changed, error) {
		return sqlfile.Record(j.calling(), s.Path, j.wait, kept, s.Rows.Change)
	})
}

// writeRows makes a file of saved rows, durably before what they are saved for.
func (j *Journal) writeRows(r *Run, s *Step, path string, save func(sqlfile.Recording) (sqlfile.Changed, error)) (err error) {
	p := &pack{j: j, dir: filepath.Dir(path)}
	if p.f, err = j.create(path); err != nil {
		return err
	}
	closed := false
	end := func() error {
		if closed {
			return nil
		}
		closed = true
		return p.f.Close()
	}
	defer func() {
		if e := end(); err != nil {
			err = j.roomError(errors.Join(err, e, j.fs.Remove(path)), p.dir)
		}
	}()
	if err := j.give(path); err != nil {
		return err
	}
	p.w = bufio.NewWriterSize(writer(p.write), 1<<16)
	changed, err := save(sqlfile.Recording{W: p.w, Ties: s.Rows.Ties, Ready: func() error {
		err := p.w.Flush()
		if err == nil {
			err = p.f.Sync()
		}
		if err = errors.Join(err, end()); err == nil {
			err = j.fs.SyncDir(p.dir)
		}
		return err
	}})
	if err != nil {
		return err
	}
	more := p.at - s.Rows.Bytes
	s.Rows.Changed, s.Rows.Bytes = changed, p.at
	r.Vaults[s.Rows.Vault].Bytes += more
	r.Saved += more
	return nil
}

// calling is the context of the call, but for its end: a transaction is done or it is not.
func (j *Journal) calling() context.Context {
	if j.call == nil {
		return context.Background()
	}
	return context.WithoutCancel(j.call)
}

// saved opens what is kept of a step's rows; nil where they never were changed.
func (j *Journal) saved(r *Run, s *Step) (_ *sqlfile.Saved, closer func() error, err error) {
	path := r.rowsFile(s)
	at, err := j.fs.Lstat(path)
	if err != nil || at.Type == Absent {
		return nil, nil, err
	}
	f, err := j.fs.Open(path)
	if err != nil {
		return nil, nil, err
	}
	kept, err := sqlfile.Open(f, at.Size)
	if err == nil {
		return kept, f.Close, nil
	}
	_ = f.Close()
	if errors.Is(err, sqlfile.ErrUncommitted) {
		return nil, nil, nil
	}
	return nil, nil, fmt.Errorf("%s: %w: %w", path, ErrDamaged, err)
}

// rowsStand says whether the transaction was committed. Where nothing can be told it counts as done: taking it back compares every row.
func (j *Journal) rowsStand(r *Run, s *Step) (done bool, err error) {
	kept, done2, err := j.saved(r, s)
	if kept == nil || err != nil {
		return false, err
	}
	defer done2()
	err = sqlfile.Read(j.calling(), s.Path, func(tx *sqlfile.Tx) error {
		committed, known, err := kept.Committed(tx)
		done = committed || !known
		return err
	})
	return done, err
}

// backRows takes the transaction back, but for what was changed since.
func (j *Journal) backRows(r *Run, s *Step, o Outcome, how taking) (Outcome, error) {
	o.Result = Already
	kept, end, err := j.saved(r, s)
	if err != nil {
		return j.lost(o, err)
	}
	if kept == nil {
		if r.State == Undoing || r.State == Done {
			return j.lost(o, fmt.Errorf("%s: %w: it is gone", r.rowsFile(s), ErrDamaged))
		}
		return o, nil
	}
	defer end()
	now, err := j.fs.Lstat(s.Path)
	if err == nil {
		err = j.lookRows(s, now)
	}
	if errors.Is(err, ErrRefused) {
		o.Result, o.Reason = Conflict, err.Error()
		return o, nil
	}
	if err != nil {
		return o, err
	}
	back := sqlfile.Restoring{Derived: s.Rows.Derived, Stale: s.Rows.Stale}
	var did sqlfile.Restored
	if how.dry {
		did, err = kept.Rehearse(j.calling(), s.Path, back)
	} else {
		did, err = kept.Restore(j.calling(), s.Path, j.wait, back)
	}
	switch {
	case errors.Is(err, sqlfile.ErrOther):
		o.Result, o.Reason = Conflict, err.Error()
		return o, nil
	case errors.Is(err, sqlfile.ErrDamaged):
		return j.lost(o, fmt.Errorf("%s: %w: %w", r.rowsFile(s), ErrDamaged, err))
	case err != nil:
		return o, err
	}
	for tie := range did.Ties {
		if how.ties != nil {
			how.ties[tie] = true
		}
	}
	o.Rows = did.Back
	for i, c := range did.Conflicts {
		if i == maxNotes {
			o.Notes = append(o.Notes, fmt.Sprintf("and %d rows more", len(did.Conflicts)-maxNotes))
			break
		}
		o.Notes = append(o.Notes, c.Row+": "+c.Why)
	}
	switch {
	case did.Held > 0 && did.Back == 0:
		o.Result, o.Reason = Conflict, "its rows were changed since"
		if len(o.Notes) > 0 {
			o.Reason, o.Notes = o.Notes[0], o.Notes[1:]
		}
	case did.Held > 0:
		o.Result, o.Partly = Merged, true
	case did.Back > 0:
		o.Result = Restored
	}
	return o, nil
}

// maxNotes is how many rows are named that could not come back.
const maxNotes = 10

// checkRows holds what a manifest says of rows against the rules.
func checkRows(s *Step, vaults int) error {
	t := s.Rows
	if t.Vault < 0 || t.Vault >= vaults || t.Number < 1 {
		return fmt.Errorf("%w: the rows of %s are kept nowhere", ErrRefused, s.Path)
	}
	return nil
}

// place gives the rows of each step a file in their vault.
func place(steps []Step, vaults []int) {
	for i := range steps {
		if s := &steps[i]; s.Kind == Rows {
			t := *s.Rows
			t.Vault, t.Number = vaults[i], i+1
			t.Ties, t.Derived = slices.Clone(t.Ties), slices.Clone(t.Derived)
			s.Rows = &t
		}
	}
}
