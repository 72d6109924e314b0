package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// UndoOptions narrow and rehearse an undo.
type UndoOptions struct {
	Only   func(Step) bool // nil: all steps
	DryRun bool            // say what would happen; nothing is written, not even a lock
}

// Undo takes back a run that is done: names, bytes, modes, owners and times of its files come back, the last step first, so that a
// store never names what is not there. What is not as the run left it stays, and the Outcome says so. An undo that is cut short by a kill
// is finished by Recover; one that fails stops there, and can be given again. When all is back the saved bytes are given up.
//
// Errors: ErrUnknown, ErrRefused, ErrUnfinished (call Recover), ErrClosed, ErrNoBytes, lock.ErrBusy, those of ctx and of the system;
// outcomes come with it for what was done until then.
func (j *Journal) Undo(ctx context.Context, id string, o UndoOptions) (r *Run, outcomes []Outcome, err error) {
	defer j.remember()()
	defer j.within(ctx)()
	if !o.DryRun {
		if err := j.own(j.home()); err != nil {
			return nil, nil, err
		}
		// Asking for a run that is not there makes no lock.
		if _, err := j.read(id, false); err != nil {
			return nil, nil, err
		}
		release, err := j.Lock(ctx)
		if err != nil {
			return nil, nil, err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	if r, err = j.Load(id); err != nil {
		return nil, nil, err
	}
	switch {
	case r.Unfinished():
		return r, nil, fmt.Errorf("undo run %s: %w", id, ErrUnfinished)
	case r.State != Done:
		return r, nil, fmt.Errorf("undo run %s: %w: it is %s already; to do it again, give its command again", id, ErrClosed, r.State)
	case r.Purge:
		return r, nil, fmt.Errorf("undo run %s: %w: it was made with --purge", id, ErrNoBytes)
	case r.Expired:
		return r, nil, fmt.Errorf("undo run %s: %w: they have expired", id, ErrNoBytes)
	}
	wanted := 0
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Undo == NotTaken && s.Skipped == "" && (o.Only == nil || o.Only(*s)) {
			s.Undo = Wanted
			wanted++
		}
	}
	if !o.DryRun {
		unlock, e := j.lockDirs(ctx, r.Steps)
		if e != nil {
			return r, nil, e
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	if wanted == 0 || o.DryRun {
		outcomes, err = j.takeBack(ctx, r, taking{dry: true, dirs: map[string]bool{}, back: map[string]bool{}})
		for i := range r.Steps {
			if r.Steps[i].Undo == Wanted {
				r.Steps[i].Undo = NotTaken
			}
		}
		return r, outcomes, err
	}
	if err := j.roomForOld(r); err != nil {
		return r, nil, fmt.Errorf("undo run %s: nothing was changed: %w", id, err)
	}
	r.State = Undoing
	if err := j.write(r); err != nil {
		return r, nil, err
	}
	outcomes, err = j.undo(ctx, r)
	return r, outcomes, err
}

// roomForOld makes sure that what is wanted fits beside what is there, and the manifest, which is written anew.
func (j *Journal) roomForOld(r *Run) error {
	need, where := map[uint64]int64{}, map[uint64]string{}
	seen := map[string]Stamp{}
	look := func(dir string) (Stamp, error) {
		if at, ok := seen[dir]; ok {
			return at, nil
		}
		at, err := j.fs.Lstat(dir)
		if err == nil {
			seen[dir] = at
		}
		return at, err
	}
	add := func(dir string, size int64) error {
		at, err := look(dir)
		if err == nil && at.Type == Folder {
			need[at.Dev] += (size + block - 1) / block * block
			where[at.Dev] = cmp.Or(where[at.Dev], dir)
		}
		return err
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Undo != Wanted || s.Before.Type != Plain || s.Kind != Move && (s.Old == nil || s.Old.Link > 0) {
			continue
		}
		if s.Kind == Move {
			from, err := look(filepath.Dir(s.To))
			if err != nil {
				return err
			}
			to, err := look(filepath.Dir(s.Path))
			if err != nil {
				return err
			}
			if from.Dev == to.Dev {
				continue // a name takes no room
			}
		}
		dir := filepath.Dir(s.Path)
		for at, err := look(dir); err == nil && at.Type == Absent && dir != filepath.Dir(dir); at, err = look(dir) {
			dir = filepath.Dir(dir) // the run removed it
		}
		if err := add(dir, s.Before.Size); err != nil {
			return err
		}
	}
	manifest, err := j.fs.Lstat(j.manifest(r.ID))
	if err == nil {
		err = add(j.runs(), manifest.Size+int64(len(r.Steps))*undoMark)
	}
	if err != nil {
		return err
	}
	for dev, size := range need {
		err := j.room(where[dev], size)
		var short *RoomError
		if errors.As(err, &short) {
			short.Undo = true
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	block    = 4096 // what a file takes is counted in these
	undoMark = 16   // bytes that a step's line grows by when it is taken back
)

// undo takes back the steps that are wanted, and closes the run when nothing is left of it.
func (j *Journal) undo(ctx context.Context, r *Run) ([]Outcome, error) {
	untouched := map[string]bool{}
	for _, f := range r.Folders {
		if now, err := j.fs.Lstat(f.Path); err == nil && now.MTime == f.After {
			untouched[f.Path] = true
		}
	}
	wanted := 0
	for i := range r.Steps {
		if r.Steps[i].Undo == Wanted {
			wanted++
		}
	}
	outcomes, err := j.takeBack(ctx, r, taking{})
	if err != nil {
		err = fmt.Errorf("after %d of %d steps, and what is back stays: %w", len(outcomes), wanted, err)
		if noRoom(err) {
			err = fmt.Errorf("%w; %s", err, undoRemedy)
		}
	}
	left := 0
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Undo == Wanted {
			s.Undo = NotTaken
		}
		if s.Undo == NotTaken && s.Skipped == "" {
			left++
		}
	}
	r.State = Done
	if err == nil && left == 0 {
		r.State, r.Expired, r.Saved = Undone, true, 0
		// A directory in which nothing else happened gets its own time back, too.
		for _, f := range r.Folders {
			if untouched[f.Path] {
				if now, e := j.fs.Lstat(f.Path); e == nil && now.Type == Folder {
					err = errors.Join(err, j.fs.Chtimes(f.Path, f.Before))
				}
			}
		}
	}
	if e := j.write(r); e != nil {
		return outcomes, errors.Join(err, e)
	}
	if r.Expired {
		_ = j.discard(r) // tried again when the run is expired by name
	}
	return outcomes, err
}

// takeBack goes through the wanted steps from the last to the first. A phase is durable before the one before it begins.
func (j *Journal) takeBack(ctx context.Context, r *Run, how taking) ([]Outcome, error) {
	var outcomes []Outcome
	dirty := map[string]bool{}
	phase := Clear
	how.held, how.ties = map[string]bool{}, map[string]bool{}
	if !how.dry {
		defer j.forget(r)
	}
	for i := len(r.Steps) - 1; i >= 0; i-- {
		s := &r.Steps[i]
		if s.Undo != Wanted {
			continue
		}
		if err := ctx.Err(); err != nil {
			return outcomes, fmt.Errorf("undo of run %s was stopped; give it again: %w", r.ID, err)
		}
		if s.Phase != phase {
			if err := j.syncAll(dirty); err != nil {
				return outcomes, err
			}
			phase = s.Phase
		}
		if !how.dry {
			j.prepare(r, i)
		}
		o, err := j.back(r, i, how)
		if err != nil {
			return outcomes, err
		}
		outcomes = append(outcomes, o)
		done := o.Result != Conflict && o.Result != Lost && !o.Partly
		if how.dry {
			how.back[s.Path] = done
			continue
		}
		if done {
			s.Undo = Back
		}
		dirty[filepath.Dir(s.Path)], dirty[filepath.Dir(s.final())] = true, true
	}
	return outcomes, j.syncAll(dirty)
}

// rollBack takes back what a run has begun, and closes it.
func (j *Journal) rollBack(r *Run, begun []Step, why string) error {
	for i := range begun {
		begun[i].Undo = Wanted
	}
	outcomes, err := j.takeBack(context.Background(), r, taking{})
	kept := false
	for i := range begun {
		if begun[i].Undo == Wanted {
			begun[i].Undo = NotTaken
		}
	}
	for _, o := range outcomes {
		if o.Result == Conflict && (o.Kind == Replace || o.Kind == Rows) || o.Result == Lost || o.Partly {
			kept = true // what is in the vault may be the only copy
		}
	}
	if err == nil {
		err = j.sweep(r)
	}
	if err != nil {
		return err
	}
	r.State, r.Why = RolledBack, why
	if !kept {
		r.Expired, r.Saved = true, 0
	}
	if err := j.write(r); err != nil {
		r.State = Applying
		return err
	}
	if !kept {
		_ = j.discard(r)
	}
	return nil
}

// sweep removes the temporary files that a run which was cut short may have left.
func (j *Journal) sweep(r *Run) error {
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Temp == "" || s.Kind == Chmod || s.Kind == Rows {
			continue
		}
		if s.Kind == Replace {
			if err := j.finishTrade(s); err != nil {
				return fmt.Errorf("look at %s: %w", outName(s.Temp), err)
			}
		}
		names := []string{s.Temp}
		if s.Kind == Move {
			names = append(names, s.tempIn(s.Path))
		}
		for _, name := range names {
			if err := j.reach(name); err != nil {
				return err
			}
			if err := j.fs.Remove(name); err != nil && !missing(err) {
				return fmt.Errorf("remove %s: %w", name, err)
			}
		}
	}
	return nil
}
