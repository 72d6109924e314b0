package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// Plan is what a run shall do.
type Plan struct {
	Facts json.RawMessage // the caller's words about the run, JSON
	Purge bool            // save nothing: the run cannot be undone
	Steps []Step

	Progress func(done, total int) // after each step; may be nil

	// Guard keeps others from the files, with whatever they respect. It is called when all is written down and nothing is touched yet, and
	// release when the last step is done, or when Apply returns. With its error nothing is done. nil: nothing is kept.
	Guard func() (release func(), err error)
}

// Apply does a plan and returns the run with what became of each step. A plan without steps touches nothing and returns the zero Run.
//
// Errors: ErrChanged when a file is not what the plan expects, ErrNoRoom, ErrUnfinished, ErrRefused for steps that leave the roots,
// lock.ErrBusy, and those of the system. With an error all files are as before: the run was cleared away (State Planned) or rolled
// back (RolledBack). Only when its State is Applying must Recover be called: the rollback itself failed, or ctx ended when the stores had been swapped already.
// Steps of the phase Clear that fail are no error: they are skipped, and say why.
func (j *Journal) Apply(ctx context.Context, p Plan) (r *Run, err error) {
	r = &Run{}
	if len(p.Steps) == 0 {
		return r, nil
	}
	steps := slices.Clone(p.Steps)
	slices.SortStableFunc(steps, func(a, b Step) int { return int(a.Phase - b.Phase) })
	if err := j.check(steps); err != nil {
		return r, fmt.Errorf("apply the plan: %w", err)
	}
	defer j.remember()()
	defer j.within(ctx)()
	j.purging = p.Purge
	release, err := j.Lock(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, release()) }()
	unlock, err := j.lockDirs(ctx, steps)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
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
	// Nothing is written before everything was looked at.
	if err := j.lookAll(steps); err != nil {
		return r, err
	}
	if err := j.lookFolders(draft, steps); err != nil {
		return r, err
	}
	vaults, err := j.choose(draft, steps)
	if err != nil {
		return r, err
	}
	place(steps, vaults)
	// The first manifest has no steps: it says where to clear up.
	if err := j.write(draft); err != nil {
		if noRoom(err) && p.Purge && !slices.ContainsFunc(steps, func(s Step) bool { return s.Kind != Remove && s.Kind != RemoveDir }) {
			draft.Steps = steps
			return draft, j.purgeFull(ctx, draft, p.Progress)
		}
		return r, j.roomError(err, j.base)
	}
	r = draft
	if err := j.stage(ctx, r, steps, vaults); err != nil {
		return r, errors.Join(err, j.clear(r))
	}
	r.State, r.Steps = Applying, steps
	if err := j.write(r); err != nil {
		// Which of the two manifests stands is not known. Nothing may be cleared before it is the first.
		r.State, r.Steps = Planned, nil
		err = j.roomError(err, j.base)
		if e := j.write(r); e != nil {
			return r, errors.Join(err, e)
		}
		return r, errors.Join(err, j.clear(r))
	}
	if p.Guard != nil {
		if j.guard, err = p.Guard(); err != nil {
			r.State, r.Steps = Planned, nil
			if e := j.write(r); e != nil {
				return r, errors.Join(err, e)
			}
			return r, errors.Join(err, j.clear(r))
		}
		defer j.unguard()
	}
	return r, j.forward(ctx, r, p.Progress)
}

// unguard lets others at the files again.
func (j *Journal) unguard() {
	if j.guard != nil {
		j.guard()
		j.guard = nil
	}
}

// remember begins to remember which directories are no links, until the call ends.
func (j *Journal) remember() (forget func()) {
	j.safe = map[string]bool{}
	return func() { j.safe = nil }
}

// within begins a call.
func (j *Journal) within(ctx context.Context) (over func()) {
	was := j.call
	j.call = ctx
	return func() { j.call = was }
}

// pending returns ErrUnfinished for the first run of these roots that was cut short.
func (j *Journal) pending() error {
	runs, _ := j.List() // what cannot be read is told by those who list
	for _, r := range runs {
		if r.Unfinished() && slices.ContainsFunc(r.Roots, j.touches) {
			return fmt.Errorf("run %s of %s: %w", r.ID, j.base, ErrUnfinished)
		}
	}
	return nil
}

func (j *Journal) touches(dir string) bool {
	return slices.ContainsFunc(j.roots, func(r string) bool { return r == dir || under(r, dir) || under(dir, r) })
}

// tempName follows OpenClaw's names of temporary files, which it clears away itself when they are old (spec/file-store.md 2.8, 7.35).
func tempName(path string) string {
	dir, base := filepath.Split(path)
	tail := fmt.Sprintf(".%d.%s.tmp", os.Getpid(), uuid.New())
	if most := 255 - len(tail); len(base) > most {
		base = base[:most]
	}
	return dir + base + tail
}

// tempIn is the step's temporary name in the directory of path: a move needs one at either end.
func (s *Step) tempIn(path string) string {
	return filepath.Join(filepath.Dir(path), filepath.Base(s.Temp))
}

// lookAll holds all steps against the disk and notes what it finds. On the real disk several look at a time; the error is that of the first
// step that has one all the same.
func (j *Journal) lookAll(steps []Step) error {
	for i := range steps {
		for _, path := range []string{steps[i].Path, steps[i].final()} {
			if err := j.reach(path); err != nil {
				return err
			}
		}
	}
	look := func(part []Step) error {
		for i := range part {
			if err := j.look(&part[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if j.fs != OS() {
		return look(steps)
	}
	errs := make([]error, min(runtime.GOMAXPROCS(0), 4))
	var all sync.WaitGroup
	for k := range errs {
		all.Go(func() { errs[k] = look(steps[k*len(steps)/len(errs) : (k+1)*len(steps)/len(errs)]) })
	}
	all.Wait()
	return cmp.Or(errs...)
}

// look holds a step, whose directories are no links, against the disk and notes what it finds.
func (j *Journal) look(s *Step) error {
	fail := func(why string) error { return fmt.Errorf("%s: %w: %s", s.name(), ErrChanged, why) }
	now, err := j.fs.Lstat(s.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name(), err)
	}
	if s.Expect != nil && !now.Same(*s.Expect) {
		return fail(difference(now, *s.Expect))
	}
	s.Before, s.After = now, Stamp{}
	allowed := map[Kind][]Type{
		Create: {Absent}, Replace: {Plain}, Move: {Plain, Link}, Remove: {Plain, Link}, RemoveDir: {Folder}, Chmod: {Plain, Folder},
		Rows: {Plain},
	}[s.Kind]
	if !slices.Contains(allowed, now.Type) {
		if now.Type == Absent || s.Kind == Create {
			return fail(difference(now, Stamp{Type: allowed[0]}))
		}
		return fmt.Errorf("%s: %w: it is a %s", s.name(), ErrRefused, now.Type)
	}
	if now.Type == Link {
		target, err := j.fs.Readlink(s.Path)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name(), err)
		}
		s.Before.Target = []byte(target)
	}
	switch s.Kind {
	case Create:
		s.After = Stamp{Type: Plain, Mode: s.Mode}
		if s.Mode == 0 {
			s.After.Mode = 0o600
		}
	case Replace:
		s.After = Stamp{Type: Plain, Mode: now.Mode}
	case Move:
		to, err := j.fs.Lstat(s.To)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name(), err)
		}
		if to.Type != Absent {
			return fail("the new name is taken")
		}
	case Chmod:
		s.After = s.Before
		s.After.Mode = s.Mode
	case Rows:
		if err := j.lookRows(s, now); err != nil {
			return fmt.Errorf("%s: %w", s.name(), err)
		}
		return nil
	}
	if s.Expect != nil && s.Expect.SHA256 != "" {
		sum, err := j.sum(s.Path, io.Discard)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name(), err)
		}
		if s.Before.SHA256 = sum.hex(); s.Before.SHA256 != s.Expect.SHA256 {
			return fail("its bytes are others")
		}
	}
	if s.Kind != Move || filepath.Dir(s.Path) != filepath.Dir(s.To) {
		s.Temp = tempName(s.final())
	}
	return nil
}

func difference(now, want Stamp) string {
	switch {
	case want.Type == Absent:
		return "it exists"
	case now.Type == Absent:
		return "it is gone"
	case now.Type != want.Type:
		return fmt.Sprintf("it is a %s now", now.Type)
	case now.Size != want.Size:
		return fmt.Sprintf("it has %d bytes, and had %d", now.Size, want.Size)
	case now.MTime != want.MTime:
		return "it was written"
	}
	return "it is another file"
}

// lookFolders notes the times of the directories in which names will change, and that those exist into which something is put.
func (j *Journal) lookFolders(r *Run, steps []Step) error {
	times := map[string]int64{}
	for i := range steps {
		s := &steps[i]
		dirs := []string{filepath.Dir(s.Path), filepath.Dir(s.final())}
		if s.Kind == RemoveDir {
			dirs = append(dirs, s.Path)
		}
		for _, dir := range dirs {
			if _, ok := times[dir]; ok || s.Kind == Chmod || s.Kind == Rows {
				continue
			}
			at, err := j.fs.Lstat(dir)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name(), err)
			}
			if at.Type == Absent {
				return fmt.Errorf("%s: %w: the directory %s is missing", s.name(), ErrChanged, dir)
			}
			times[dir] = at.MTime
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(times)) {
		// A root may stand right under the base, whose own times are nobody's business here.
		if j.mayHold(dir) {
			r.Folders = append(r.Folders, FolderTimes{Path: dir, Before: times[dir]})
		}
	}
	return nil
}

// clear takes away what a run has written before it touched a file.
func (j *Journal) clear(r *Run) error {
	if err := j.discard(r); err != nil {
		return fmt.Errorf("clear run %s: %w", r.ID, err)
	}
	if err := j.fs.Remove(j.manifest(r.ID)); err != nil && !missing(err) {
		return fmt.Errorf("clear run %s: %w", r.ID, err)
	}
	return nil
}

// forward does the steps. It may begin anywhere: what is done already is seen.
func (j *Journal) forward(ctx context.Context, r *Run, progress func(done, total int)) error {
	phase, dirty := Place, map[string]bool{}
	for i := range r.Steps {
		s := &r.Steps[i]
		err := ctx.Err()
		if s.Phase != phase {
			err = errors.Join(err, j.syncAll(dirty))
		}
		if err != nil && (s.Phase != Clear || phase != Clear) {
			return j.giveUp(r, r.Steps[:i], err)
		}
		if err != nil {
			return fmt.Errorf("run %s was stopped after %d of %d steps, and the next run of oc finishes it: %w", r.ID, i, len(r.Steps), err)
		}
		phase = s.Phase
		if err := j.do(r, s); err != nil {
			if phase != Clear {
				begun := r.Steps[:i+1]
				if errors.Is(err, ErrChanged) {
					begun = r.Steps[:i] // what is there is not the run's
				}
				return j.giveUp(r, begun, err)
			}
			if s.Kind == Move || s.Kind == Replace && !errors.Is(err, ErrChanged) { // half a change is none: a copy that could not become the file goes again
				_, e := j.back(r, i, taking{})
				if err = errors.Join(err, e); e != nil && s.Kind == Replace {
					return fmt.Errorf("run %s was stopped in step %d of %d, and the next run of oc finishes it: %w", r.ID, i+1, len(r.Steps), err)
				}
			}
			s.Skipped = err.Error()
		}
		dirty[filepath.Dir(s.Path)], dirty[filepath.Dir(s.final())] = true, true
		if progress != nil {
			progress(i+1, len(r.Steps))
		}
	}
	if err := j.syncAll(dirty); err != nil {
		return fmt.Errorf("run %s is done but for making it durable, which the next run of oc finishes: %w", r.ID, err)
	}
	return j.finish(r)
}

// purgeFull removes files on a disk that has no room for a manifest: it saves nothing, so that nothing depends on one, and each removal makes
// room for telling about it afterwards.
func (j *Journal) purgeFull(ctx context.Context, r *Run, progress func(done, total int)) error {
	dirty := map[string]bool{}
	for i := range r.Steps {
		s := &r.Steps[i]
		err := ctx.Err()
		if err == nil {
			err = j.do(r, s)
		}
		if err != nil {
			s.Skipped = err.Error()
		}
		dirty[filepath.Dir(s.Path)] = true
		if progress != nil {
			progress(i+1, len(r.Steps))
		}
	}
	return errors.Join(ctx.Err(), j.syncAll(dirty), j.finish(r))
}

// syncAll makes the names in some directories durable, and forgets them.
func (j *Journal) syncAll(dirty map[string]bool) error {
	for _, dir := range slices.Sorted(maps.Keys(dirty)) {
		if err := j.fs.SyncDir(dir); err != nil && !missing(err) { // a directory may have been removed since
			return fmt.Errorf("make %s durable: %w", dir, err)
		}
	}
	clear(dirty)
	return nil
}

// finish marks a run done, and gives up what it needs no longer.
func (j *Journal) finish(r *Run) error {
	j.unguard() // before the times of directories are noted
	for i := range r.Folders {
		f := &r.Folders[i]
		now, err := j.fs.Lstat(f.Path)
		if err != nil {
			return fmt.Errorf("finish run %s: %w", r.ID, err)
		}
		f.After = now.MTime
	}
	r.State = Done
	hooked := slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Hook != "" })
	if r.Purge {
		r.Saved = 0
	} else if !hooked {
		r.dropNew()
	}
	if err := j.write(r); err != nil {
		r.State = Applying
		return err
	}
	// What cannot be freed now is freed when the run expires.
	switch {
	case r.Purge:
		_ = j.discard(r)
	case !hooked:
		for i := range r.Vaults {
			_ = j.fs.Remove(filepath.Join(r.Vaults[i].Dir, newPack))
		}
	}
	return nil
}

// dropNew takes the packs of new bytes out of the sums.
func (r *Run) dropNew() {
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.New != nil {
			r.Vaults[s.New.Vault].Bytes -= s.New.Length
			r.Saved -= s.New.Length
			s.New = nil
		}
	}
}

// giveUp rolls back the steps that were begun, and returns why.
func (j *Journal) giveUp(r *Run, begun []Step, cause error) error {
	if err := j.rollBack(r, begun, cause.Error()); err != nil {
		return errors.Join(cause, fmt.Errorf("run %s could not be rolled back, and the next run of oc tries again: %w", r.ID, err))
	}
	return cause
}
