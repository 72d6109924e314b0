package journal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Recovery is what became of a run that was cut short.
type Recovery struct {
	Run      *Run
	Did      string    // WasCleared and so on, in words for people
	Why      string    // one sentence
	Outcomes []Outcome // of a rollback or an undo
}

// What Recover does with a run.
const (
	WasCleared    = "cleared"
	WasRolledBack = "rolled back"
	WasFinished   = "finished"
	WasStopped    = "stopped"
	WasUndone     = "undone"
	WasSettled    = "settled"
)

// Recover closes every run of these roots that was cut short, oldest first: the package comment says how. Runs of other roots are left to
// who opens a journal for them. With none it creates nothing, not even a lock. Errors of one run do not keep it from the next; a run
// whose manifest is refused stays as it is.
func (j *Journal) Recover(ctx context.Context) (recoveries []Recovery, err error) {
	return j.recoverAll(ctx, func(State) bool { return true })
}

// Reconcile is Recover for who must not touch a file of the state, because a gateway lives: it closes runs that were handed to one, and
// clears away those that have not begun. ErrUnfinished when another is left.
func (j *Journal) Reconcile(ctx context.Context) (recoveries []Recovery, err error) {
	recoveries, err = j.recoverAll(ctx, func(s State) bool { return s == Delegated || s == Planned })
	if err == nil {
		err = j.pending()
	}
	return recoveries, err
}

func (j *Journal) recoverAll(ctx context.Context, which func(State) bool) (recoveries []Recovery, err error) {
	if j.pending() == nil {
		return nil, nil
	}
	defer j.remember()()
	release, err := j.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := j.tidy(); err != nil {
		return nil, err
	}
	runs, _ := j.List()
	for i := range runs {
		if !runs[i].Unfinished() || !which(runs[i].State) || !slices.ContainsFunc(runs[i].Roots, j.touches) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return recoveries, err
		}
		r, e := j.Load(runs[i].ID)
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		rec, e := j.recover(ctx, r)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("recover run %s: %w", r.ID, e))
			continue
		}
		recoveries = append(recoveries, rec)
	}
	return recoveries, err
}

func (j *Journal) recover(ctx context.Context, r *Run) (rec Recovery, err error) {
	defer j.within(ctx)()
	unlock, err := j.lockDirs(ctx, r.Steps)
	if err != nil {
		return Recovery{Run: r}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	for i := range r.Steps {
		if r.State == Applying && r.Steps[i].Kind == Replace {
			if err := j.finishTrade(&r.Steps[i]); err != nil {
				return Recovery{Run: r}, err
			}
		}
	}
	rec, err = j.fate(r)
	if err != nil {
		return rec, err
	}
	switch rec.Did {
	case WasCleared:
		return rec, j.clear(r)
	case WasSettled:
		changed, err := j.settleRun(r, nil)
		if err == nil && !changed {
			rec.Did, rec.Why = WasCleared, rec.Why+", and nothing had changed"
		}
		return rec, err
	case WasRolledBack:
		begun := slices.IndexFunc(r.Steps, func(s Step) bool { return s.Phase == Clear })
		if begun < 0 {
			begun = len(r.Steps)
		}
		return rec, j.rollBack(r, r.Steps[:begun], rec.Why)
	}
	if err := j.sweep(r); err != nil {
		return rec, err
	}
	switch rec.Did {
	case WasUndone:
		rec.Outcomes, err = j.undo(ctx, r)
		return rec, err
	case WasFinished:
		return rec, j.forward(ctx, r, nil)
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		if done, err := j.stands(r, s); err != nil {
			return rec, err
		} else if !done {
			s.Skipped = rec.Why
		}
	}
	r.Why = rec.Why
	return rec, j.finish(r)
}

// fate is what is to be done with a run that was cut short, seen by looking.
func (j *Journal) fate(r *Run) (Recovery, error) {
	switch r.State {
	case Planned:
		return Recovery{r, WasCleared, "it was cut short before it changed anything", nil}, nil
	case Delegated:
		return Recovery{r, WasSettled, "it was handed to a gateway, and oc did not hear what became of it", nil}, nil
	case Undoing:
		return Recovery{r, WasUndone, "its undo was cut short", nil}, nil
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Phase == Clear {
			break
		}
		if done, err := j.stands(r, s); err != nil {
			return Recovery{Run: r}, err
		} else if !done {
			return Recovery{r, WasRolledBack, "it was cut short before the new stores stood, and what it was planned for may have passed", nil}, nil
		}
	}
	switch {
	case r.Purge:
		return Recovery{r, WasStopped, "it was cut short, and what a purging run removes cannot be brought back; the next plan finds it again", nil}, nil
	case !j.kept(r):
		return Recovery{r, WasStopped, "it was cut short, and its saved bytes are gone", nil}, nil
	}
	return Recovery{r, WasFinished, "it was cut short when the new stores stood already", nil}, nil
}

// Foresee returns what Recover would do, and does nothing.
func (j *Journal) Foresee() (all []Recovery, err error) {
	defer j.remember()()
	runs, _ := j.List()
	for i := range runs {
		if !runs[i].Unfinished() || !slices.ContainsFunc(runs[i].Roots, j.touches) {
			continue
		}
		r, e := j.Load(runs[i].ID)
		var rec Recovery
		if e == nil {
			rec, e = j.fate(r)
		}
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		all = append(all, rec)
	}
	return all, err
}

// stands says whether a step is done, by looking at the disk.
func (j *Journal) stands(r *Run, s *Step) (bool, error) {
	for _, path := range []string{s.Path, s.final()} {
		if err := j.reach(path); err != nil {
			return false, err
		}
	}
	now, err := j.fs.Lstat(s.Path)
	if err != nil {
		return false, err
	}
	switch s.Kind {
	case Create, Replace:
		if s.Kind == Replace && now.Same(s.Before) {
			return false, nil
		}
		return j.holds(s.Path, now, s.After)
	case Move:
		to, err := j.fs.Lstat(s.To)
		return now.Type == Absent && to.alike(s.Before), err
	case Rows:
		return j.rowsStand(r, s)
	case Chmod:
		return now.Type == s.After.Type && now.Mode == s.After.Mode, nil
	}
	return now.Type == Absent, nil
}

// kept says whether all saved bytes are where the manifest says, as far as can be seen without unpacking them.
func (j *Journal) kept(r *Run) bool {
	ends := map[string]int64{}
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Old == nil {
			continue
		}
		dir := r.Vaults[s.Old.Vault].Dir
		if s.Old.Link > 0 {
			ends[linkName(dir, s.Old.Link)] = 0
			continue
		}
		pack := s.Old.pack(dir)
		ends[pack] = max(ends[pack], s.Old.Offset+s.Old.Length)
	}
	for path, end := range ends {
		if now, err := j.fs.Lstat(path); err != nil || now.Type != Plain || now.Size < end {
			return false
		}
	}
	return true
}

// tidy removes manifests that were being written when oc was killed: their runs have done nothing, or have an older manifest.
func (j *Journal) tidy() error {
	names, err := j.fs.ReadDir(j.runs())
	if err != nil && !missing(err) {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".tmp") {
			if err := j.fs.Remove(filepath.Join(j.runs(), name)); err != nil && !missing(err) {
				return err
			}
		}
	}
	return nil
}
