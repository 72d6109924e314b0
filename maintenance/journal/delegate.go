package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Attributor is a Resolver that knows, in a file which others write too, what a delegated run has changed.
type Attributor interface {
	Resolver
	// Attribute returns what the file of a step would hold now but for the run: now, with the run's own changes taken back. before is what it
	// held when the run was saved.
	Attribute(s Step, before, now []byte) ([]byte, error)
}

// Save copies what the files of a plan hold, before somebody else changes them: a gateway. Steps are Replace, Remove and RemoveDir, what may
// become of each file, and Rows of a database, which a Keeper names; there are no second names among the copies, because the other may write into a file. The run is Delegated until
// Settle looks at what became of it. The caller holds the journal's Lock from before Save to after Settle, so that a run which is found
// Delegated is one whose process has ended.
//
// The errors are those of Apply; all files are as before, and nothing is kept, whatever it returns.
func (j *Journal) Save(ctx context.Context, p Plan) (r *Run, err error) {
	r = &Run{}
	steps := slices.Clone(p.Steps)
	slices.SortStableFunc(steps, func(a, b Step) int { return int(a.Phase - b.Phase) })
	if err := j.check(steps); err != nil {
		return r, fmt.Errorf("save for the gateway: %w", err)
	}
	defer j.remember()()
	defer j.within(ctx)()
	release, err := j.Lock(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := j.pending(); err != nil {
		return r, err
	}
	if err := j.own(j.runs()); err != nil {
		return r, err
	}
	if err := j.tidy(); err != nil {
		return r, err
	}
	draft := j.draft(p)
	for i := range steps {
		if err := j.look(&steps[i]); err != nil {
			return r, err
		}
		if steps[i].Kind != Rows {
			steps[i].Temp = tempName(steps[i].final())
		}
	}
	if err := j.lookFolders(draft, steps); err != nil {
		return r, err
	}
	vaults, err := j.choose(draft, steps)
	if err != nil {
		return r, err
	}
	place(steps, vaults)
	if err := j.write(draft); err != nil {
		return r, j.roomError(err, j.base)
	}
	j.copying = true
	err = j.stage(ctx, draft, steps, vaults)
	j.copying = false
	for i := range steps {
		if err == nil && steps[i].Kind == Rows {
			err = j.keepRows(draft, &steps[i])
		}
	}
	if err == nil {
		draft.State, draft.Steps = Delegated, steps
		err = j.roomError(j.write(draft), j.base)
	}
	if err != nil {
		draft.State, draft.Steps = Planned, nil
		return r, errors.Join(err, j.clear(draft))
	}
	return draft, nil
}

// Settle looks at the files of a delegated run, and writes down what became of them as what the run did; from then on it is Done, and undo
// compares with that. made are files that the other made (Create), or gave another name (Move, with its stamp in Before). A run of which
// nothing came is cleared away; changed is false then.
func (j *Journal) Settle(ctx context.Context, r *Run, made []Step) (changed bool, err error) {
	defer j.remember()()
	defer j.within(ctx)()
	release, err := j.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, release()) }()
	return j.settleRun(r, made)
}

func (j *Journal) settleRun(r *Run, made []Step) (changed bool, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write down what became of run %s: %w", r.ID, err)
		}
	}()
	var news *pack
	defer func() {
		if news != nil {
			_ = news.f.Close()
		}
	}()
	keep := func(content func(io.Writer) error) (s *Saved, sum digest, err error) {
		vault := slices.IndexFunc(r.Vaults, func(v Vault) bool { return v.Dir == vaultIn(j.base, r.ID) })
		if news == nil {
			if news, err = j.newPack(r.Vaults[vault].Dir, newPack); err != nil {
				return nil, sum, err
			}
		}
		offset, length, sum, err := news.add(content)
		return &Saved{Vault: vault, Offset: offset, Length: length, Late: true}, sum, err
	}
	var steps []Step
	for i := range r.Steps {
		s := r.Steps[i]
		now, err := j.fs.Lstat(s.Path)
		if err != nil {
			return false, err
		}
		switch {
		case s.Kind == Rows && now.Type == Absent: // it is gone with all of them
		case s.Kind == Rows:
			if differs, err := j.settleRows(r, &s); err != nil || !differs {
				if err != nil {
					return false, err
				}
				continue
			}
		case now.Type == Absent && s.Kind == Replace:
			s.Kind, s.Hook, s.Phase, s.After = Remove, "", Clear, Stamp{}
		case now.Type == Absent:
			s.After = Stamp{}
		case s.Kind != Replace || now.Type != Plain:
			continue // it stays, or is somebody else's by now
		default:
			if differs, err := j.settleReplaced(r, &s, now, keep); err != nil || !differs {
				if err != nil {
					return false, err
				}
				continue
			}
		}
		steps = append(steps, s)
	}
	for _, s := range made {
		at := s.Path
		if s.Kind == Move {
			at = s.To
		}
		now, err := j.fs.Lstat(at)
		if err != nil {
			return false, err
		}
		if now.Type != Plain || j.inside(at) != nil || j.inside(s.Path) != nil {
			continue
		}
		s.Temp, s.After = tempName(s.final()), now
		if s.Kind == Create {
			s.Phase, s.Before = Place, Stamp{Type: Absent}
			sum, err := j.sum(at, io.Discard)
			if err != nil {
				return false, err
			}
			s.After.SHA256 = sum.hex()
		} else {
			s.Phase, s.Before = Clear, now
		}
		steps = append(steps, s)
	}
	if len(steps) == 0 {
		return false, j.clear(r)
	}
	if news != nil {
		at := news.at
		err := news.close()
		news = nil
		if err != nil {
			return false, err
		}
		for i := range r.Vaults {
			if r.Vaults[i].Dir == vaultIn(j.base, r.ID) {
				r.Vaults[i].Bytes += at
			}
		}
		r.Saved += at
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return int(a.Phase - b.Phase) })
	if err := j.check(steps); err != nil {
		return false, err
	}
	for i := range r.Folders {
		now, err := j.fs.Lstat(r.Folders[i].Path)
		if err != nil {
			return false, err
		}
		r.Folders[i].After = now.MTime
	}
	was := r.Steps
	r.State, r.Steps = Done, steps
	if err := j.write(r); err != nil {
		r.State, r.Steps = Delegated, was
		return false, err
	}
	return true, nil
}

// settleReplaced notes what a file holds now, and what of that is the run's. differs is false when nothing is.
func (j *Journal) settleReplaced(r *Run, s *Step, now Stamp, keep func(func(io.Writer) error) (*Saved, digest, error)) (differs bool, err error) {
	if now.Same(s.Before) {
		return false, nil
	}
	var current bytes.Buffer
	sum, err := j.sum(s.Path, &current)
	if err != nil {
		return false, err
	}
	if sum.hex() == s.Before.SHA256 {
		return false, nil
	}
	s.After = now
	s.After.Size, s.After.SHA256 = sum.size, sum.hex()
	attributor, ok := j.resolver.(Attributor)
	if s.Hook == "" || !ok {
		return true, nil
	}
	var before bytes.Buffer
	if err := j.oldBytes(r, s)(&before); err != nil {
		return false, err
	}
	but, err := attributor.Attribute(*s, before.Bytes(), current.Bytes())
	if err != nil { // damaged since: undo will say so, and the full copy stays
		s.New = nil
		return true, nil //nolint:nilerr
	}
	if bytes.Equal(but, current.Bytes()) {
		return false, nil
	}
	write := func(b []byte) func(io.Writer) error {
		return func(w io.Writer) error { _, err := w.Write(b); return err }
	}
	if s.New, _, err = keep(write(current.Bytes())); err != nil {
		return false, err
	}
	if bytes.Equal(but, before.Bytes()) { // nobody else wrote: it comes back whole, with its time
		return true, nil
	}
	if s.Old, sum, err = keep(write(but)); err != nil {
		return false, err
	}
	// Its time is not that of the file before: others wrote since.
	s.Before.Size, s.Before.SHA256, s.Before.MTime = sum.size, sum.hex(), 0
	return true, nil
}

// made holds, by folder of runs, when this process made its latest one there.
var made sync.Map

// draft is the manifest of a run that begins. Two runs of one process are never of the same millisecond: what they did is taken back in
// the order of their times.
func (j *Journal) draft(p Plan) *Run {
	id := uuid.New()
	now := j.now()
	if v, ok := made.Load(j.runs()); ok {
		if last := v.(time.Time); !now.After(last) && last.Sub(now) < time.Second {
			now = last.Add(time.Millisecond)
		}
	}
	now = now.Truncate(time.Millisecond)
	made.Store(j.runs(), now)
	return &Run{
		Version: version, ID: fmt.Sprintf("%s-%x", stampOf(now), id[:4]), State: Planned, Created: now.UnixMilli(),
		Purge: p.Purge, Roots: j.roots, Facts: p.Facts,
	}
}

// oldPack is the pack in which saved bytes of a file are.
func (s *Saved) pack(dir string) string {
	if s.Late {
		return filepath.Join(dir, newPack)
	}
	return filepath.Join(dir, oldPack)
}
