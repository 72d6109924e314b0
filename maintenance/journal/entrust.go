package journal

import (
	"errors"
	"fmt"

	"oc/store/sqlfile"
)

// Keeper is a Resolver that knows which rows of a database a delegated run may change.
type Keeper interface {
	Resolver
	// Keep says which rows a step of the kind Rows, with a Hook, is about. without are ties of rows that shall not come back after all.
	Keep(s Step) (choose sqlfile.Choice, without []string, err error)
}

func (j *Journal) keeper(s *Step) (choose sqlfile.Choice, without []string, err error) {
	k, ok := j.resolver.(Keeper)
	if !ok || s.Hook == "" {
		return nil, nil, fmt.Errorf("%w: which rows of %s are meant is not known", ErrRefused, s.Path)
	}
	return k.Keep(*s)
}

// keepRows saves the rows that somebody else is about to change.
func (j *Journal) keepRows(r *Run, s *Step) error {
	choose, _, err := j.keeper(s)
	if err != nil {
		return err
	}
	return j.writeRows(r, s, r.rowsFile(s), func(kept sqlfile.Recording) (sqlfile.Changed, error) {
		return sqlfile.Keep(j.calling(), s.Path, kept, choose)
	})
}

// settleRows puts in the place of what was saved what of it was changed. differs is false where nothing was.
func (j *Journal) settleRows(r *Run, s *Step) (differs bool, err error) {
	choose, without, err := j.keeper(s)
	if err != nil {
		return false, err
	}
	kept, end, err := j.saved(r, s)
	if err != nil {
		return false, err
	}
	if kept == nil {
		return false, fmt.Errorf("%s: %w: it is gone", r.rowsFile(s), ErrDamaged)
	}
	path := r.rowsFile(s)
	t := *s.Rows
	s.Rows = &t
	err = j.writeRows(r, s, path+".new", func(rec sqlfile.Recording) (sqlfile.Changed, error) {
		return kept.Settle(j.calling(), s.Path, rec, without, choose)
	})
	if err = errors.Join(err, end()); errors.Is(err, sqlfile.ErrOther) {
		return true, nil // the other upgraded it: an undo will say so, and all that was saved stays
	}
	if err != nil {
		return false, err
	}
	return s.Rows.Changed != (sqlfile.Changed{}), j.fs.Rename(path+".new", path)
}
