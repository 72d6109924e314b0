package maintenance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oc/config"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/jsonfile"
	"oc/store/lock"
)

// A Worker applies plans to the stores of one installation, and takes runs
// back. Every change of sessions goes through it (design "Applying"): under the
// lock of the journal, with all that goes saved first, each step verified at
// the last moment, finished or rolled back after a kill.
type Worker struct {
	Config  *config.Config
	Machine lock.Machine
	Now     func() time.Time
	Wait    time.Duration // for another oc that is at work
	Command string        // what the user asked for, for the manifest
	Group   string        // runs of one command; the first run's id where it is ""
	Purge   bool          // save nothing
	Keep    time.Duration // how long runs can be taken back; 0: DefaultKeep

	// Hold keeps gateways from starting while Apply works: gateway.HoldLifecycle, where sessions in databases are written. Who calls Apply
	// has looked for an owner before, because probes afterwards would drop the lock (spec/sqlite-store.md 4.2). nil: nothing is held, as in
	// the file era, whose gateways know no such lock.
	Hold func() (release func() error, err error)

	// HoldRows is Hold for a change that needs none itself: while it finishes a run that was cut short and changed a database. nil: not even then.
	HoldRows func() (release func() error, err error)

	// Notes is a directory of notes that the plan writes to: <workspace>/memory, its links followed; "" for none.
	Notes string

	Progress func(done, total int) // of the steps of a run; may be nil
	FS       journal.FS            // for tests; nil: the real one
}

// DefaultKeep is how long a run can be taken back.
const DefaultKeep = 7 * 24 * time.Hour

// Facts are what a run's manifest says of it for people and later commands.
type Facts struct {
	Command string   `json:"command"`
	Group   string   `json:"group,omitempty"` // the first run of the same command; "" for that run itself
	Agent   string   `json:"agent"`
	Store   string   `json:"store"`           // its path; in the manifest from the journal's home where it lies in it
	Rows    int      `json:"rows"`            // that were dropped or written
	Files   int      `json:"files"`           // that were moved or removed
	Held    []string `json:"held,omitempty"`  // transcripts that stay and are locked meanwhile, from the store's directory
	Notes   string   `json:"notes,omitempty"` // the directory of notes that it wrote to, absolute
	Via     string   `json:"via,omitempty"`   // "gateway" where one made the change; "": oc did
}

// FactsOf reads what a manifest kept in home says; the zero Facts where it says nothing.
func FactsOf(r *journal.Run, home string) (f Facts) {
	_ = json.Unmarshal(r.Facts, &f) // a manifest without them is still a run
	if f.Store != "" && !filepath.IsAbs(f.Store) {
		f.Store = filepath.Join(home, filepath.FromSlash(f.Store))
	}
	return f
}

// A Done is a plan and what came of it.
type Done struct {
	Plan      *Plan
	Snapshot  *Snapshot
	Run       *journal.Run   // nil where nothing was to be done
	Room      []*journal.Run // of a purge that changes rows too: what was removed before, for the room that a new store takes
	Skipped   []Skip         // actions that were not done after all
	Recovered []journal.Recovery
	Expired   []string // runs whose saved bytes were given up now
	Handed    *Handed  // of a change that a gateway made
}

// A Skip is an action that the disk did not allow.
type Skip struct {
	Action *Action
	Reason string
}

// Freed is what the files that went had, and Saved what of it is kept for undo,
// in bytes on disk.
func (d *Done) Freed() (freed, saved int64) {
	for _, r := range append(slices.Clone(d.Room), d.Run) {
		if r != nil {
			freed, saved = freed+r.Freed, saved+r.Saved
		}
	}
	return freed, saved
}

// Halfway says that the change was begun and is neither done nor taken back: the next one finishes it, or rolls it back.
func (d *Done) Halfway() bool { return d != nil && d.Run != nil && d.Run.State == journal.Applying }

// Changed says that the change is done.
func (d *Done) Changed() bool {
	return d != nil && d.Run != nil && d.Run.State == journal.Done && !slices.Contains(d.Room, d.Run)
}

// Changed is a store that is being changed by somebody else: it was planned
// twice, and twice it was not as planned.
type Changed struct{ Store string }

func (e *Changed) Error() string {
	return fmt.Sprintf("the session store %s keeps changing: somebody else is writing there; nothing was changed, try again", e.Store)
}

// Is makes it an ErrChanged.
func (e *Changed) Is(target error) bool { return target == journal.ErrChanged }

// Home is the directory in whose .oc the runs of a store are kept: the state,
// or the store's own where no agent of the state has that store, by whatever
// path.
func Home(c *config.Config, index string) string {
	is := func(path string) bool { return SameStore(path, index) }
	agents := c.StoreAgents()
	if slices.ContainsFunc(agents, func(id string) bool { return is(c.StorePath(id)) || slices.ContainsFunc(c.DatabasePaths(id), is) }) ||
		slices.ContainsFunc(c.DiskAgents(), func(d config.DiskAgent) bool {
			return is(d.Store) || is(filepath.Join(d.Sessions, config.StoreFile)) || d.Database != "" && is(d.Database)
		}) {
		return realDir(c.StateDir)
	}
	return realDir(filepath.Dir(index))
}

// SameStore tells whether two paths lead to one store, links of directories
// followed.
func SameStore(a, b string) bool {
	return a == b || filepath.Base(a) == filepath.Base(b) && realPath(a) == realPath(b)
}

// Journal opens the journal for a store. It touches nothing.
func (w *Worker) Journal(index string) (*journal.Journal, error) {
	return w.journal(Home(w.Config, index), filepath.Dir(realStore(index)))
}

// journal opens the one that is kept in home, for runs that touch files in dirs and, in the state's, in those of all its agents.
func (w *Worker) journal(home string, dirs ...string) (*journal.Journal, error) {
	roots := []string{home}
	add := func(dir string) {
		if dir = realDir(dir); !slices.ContainsFunc(roots, func(r string) bool { return dir == r || within(dir, r) }) {
			roots = append(roots, dir)
		}
	}
	if home == realDir(w.Config.StateDir) {
		for _, id := range w.Config.StoreAgents() {
			add(filepath.Dir(w.Config.StorePath(id)))
		}
		for _, dir := range databaseDirs(w.Config) {
			add(dir)
		}
	}
	for _, dir := range dirs {
		add(dir)
	}
	if w.Notes != "" {
		add(w.Notes)
	}
	open := func() (*journal.Journal, error) {
		slices.Sort(roots[1:])
		return journal.Open(journal.Options{Base: home, Roots: roots, Now: w.Now, Wait: w.Wait, FS: w.FS, Resolver: rowMerger{}})
	}
	j, err := open()
	if err != nil {
		return nil, err
	}
	known := len(roots)
	runs, _ := j.List() // what cannot be read is told by who needs it
	for i := range runs {
		if dir := notesDir(FactsOf(&runs[i], home).Notes); dir != "" && !runs[i].Expired {
			add(dir)
		}
	}
	if len(roots) == known {
		return j, nil
	}
	return open()
}

func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != "." && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// realDir follows the links of a directory as far as it exists.
func realDir(dir string) string {
	if r, err := filepath.EvalSymlinks(dir); err == nil {
		return r
	}
	if parent := filepath.Dir(dir); parent != dir {
		return filepath.Join(realDir(parent), filepath.Base(dir))
	}
	return dir
}

// realPath is a file's path with the links of its directory followed, not its
// own.
func realPath(path string) string {
	return filepath.Join(realDir(filepath.Dir(path)), filepath.Base(path))
}

// realStore is where a store is written: its own path, or where the link leads
// that has its name.
func realStore(index string) string {
	if real, err := filepath.EvalSymlinks(index); err == nil {
		return real
	}
	return realPath(index)
}

// Apply plans a change of the store of a target and applies it. What a killed
// run has left is finished or rolled back first. make gets the snapshot and
// returns the plan; it is called again when the store has changed meanwhile.
//
// The error is a *row.Damage, *Missing or *Astray for a store that is not fit to be
// changed, a *Changed, a *journal.RoomError, lock.ErrBusy, or one of the
// system; all is then as before, unless Done.Halfway, or a Done.Room, says
// otherwise.
func (w *Worker) Apply(ctx context.Context, t store.Target, p *Policy, make func(*Snapshot) (*Plan, error)) (d *Done, failed error) {
	j, err := w.Journal(t.Index)
	if err != nil {
		return nil, err
	}
	d = &Done{}
	if err := Reachable(w.Config, t.Index, p); err != nil {
		return d, err
	}
	release, err := w.hold()
	if err != nil {
		return d, err
	}
	defer func() { failed = errors.Join(failed, release()) }()
	if err := w.recover(ctx, j, d, t.Index); err != nil {
		return d, err
	}
	for try := 1; ; try++ {
		if err := w.plan(ctx, d, t, p, make); err != nil || d.Plan.Empty() {
			return d, err
		}
		err := w.apply(ctx, j, d)
		if !errors.Is(err, journal.ErrChanged) {
			return d, err
		}
		if try == 2 {
			return d, &Changed{t.Index}
		}
	}
}

// hold keeps gateways out until release is called, where Hold is set. Who holds defers release at once: whatever ends the work, a mistake of our own too, lets go.
func (w *Worker) hold() (release func() error, err error) {
	if w.Hold == nil {
		return func() error { return nil }, nil
	}
	return w.Hold()
}

// recover finishes what an earlier run of the journal has left.
func (w *Worker) recover(ctx context.Context, j *journal.Journal, d *Done, store string) (err error) {
	if d.Recovered, err = w.finish(ctx, j); err != nil {
		return fmt.Errorf("finish an earlier run: %w", err)
	}
	unlock(d.Recovered, Home(w.Config, store))
	return nil
}

// finish closes the runs that were cut short. While one of a database is, gateways are kept out.
func (w *Worker) finish(ctx context.Context, j *journal.Journal) (all []journal.Recovery, err error) {
	if w.Hold == nil && w.HoldRows != nil && openRows(j) {
		release, failed := w.HoldRows()
		if failed != nil {
			return nil, failed
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	return j.Recover(ctx)
}

// openRows says whether a run that was cut short changes a database.
func openRows(j *journal.Journal) bool {
	runs, _ := j.List() // what cannot be read is not finished either
	return slices.ContainsFunc(runs, func(of journal.Run) bool {
		if !of.Unfinished() {
			return false
		}
		r, err := j.Load(of.ID)
		return err == nil && slices.ContainsFunc(r.Steps, func(s journal.Step) bool { return s.Kind == journal.Rows })
	})
}

func (w *Worker) plan(ctx context.Context, d *Done, t store.Target, p *Policy, make func(*Snapshot) (*Plan, error)) (err error) {
	if d.Snapshot, err = Take(ctx, w.Config, t, p, w.Machine, w.Now()); err != nil {
		return err
	}
	d.Plan, err = make(d.Snapshot)
	return err
}

func (w *Worker) apply(ctx context.Context, j *journal.Journal, d *Done) (err error) {
	release, err := j.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := w.free(d); err != nil {
		return err
	}
	steps, of, err := stepsOf(d.Snapshot, d.Plan)
	if err != nil {
		return err
	}
	if w.Purge {
		// What no row needs goes first, and makes room for the store without the rows.
		first, rest := purgeOrder(steps, of)
		if len(first) > 0 && len(rest) > 0 {
			if err := w.run(ctx, j, d, first, of); err != nil {
				return err
			}
			if d.Run.Skipped < d.Run.Total {
				d.Room = append(d.Room, d.Run)
			}
			steps = rest
		} else {
			steps = append(first, rest...)
		}
	}
	if err := w.run(ctx, j, d, steps, of); err != nil {
		return err
	}
	return w.expire(ctx, j, d)
}

// expire gives up the saved bytes of old runs; that it cannot is told and no failure.
func (w *Worker) expire(ctx context.Context, j *journal.Journal, d *Done) (err error) {
	keep := w.Keep
	if keep == 0 {
		keep = DefaultKeep
	}
	if d.Expired, _, err = j.ExpireOlder(ctx, keep); err != nil {
		d.Plan.Problems = append(d.Plan.Problems, fmt.Sprintf("the saved bytes of old runs are still there: %v", err))
	}
	return nil
}

// facts are the words for the manifest of a plan's run.
func (w *Worker) facts(p *Plan) Facts {
	f := Facts{Command: w.Command, Group: w.Group, Agent: p.Agent, Store: p.Store, Notes: w.Notes}
	if rel, err := filepath.Rel(Home(w.Config, p.Store), realPath(p.Store)); err == nil && filepath.IsLocal(rel) {
		f.Store = filepath.ToSlash(rel)
	}
	for _, h := range p.holds {
		if rel, err := filepath.Rel(filepath.Dir(p.Store), h.path); err == nil {
			f.Held = append(f.Held, filepath.ToSlash(rel))
		}
	}
	return f
}

// run gives steps to the journal.
func (w *Worker) run(ctx context.Context, j *journal.Journal, d *Done, steps []journal.Step, of map[string]*Action) error {
	facts := w.facts(d.Plan)
	for i := range steps {
		a := of[steps[i].Path]
		switch {
		case steps[i].Kind == journal.RemoveDir, steps[i].Kind == journal.Rows:
		case a == nil || a.Kind != Rewrite:
			facts.Files++
		default:
			facts.Rows += d.Plan.changes()
		}
	}
	if slices.ContainsFunc(steps, func(s journal.Step) bool { return s.Kind == journal.Rows }) {
		facts.Rows = d.Plan.changes()
	}
	said, err := json.Marshal(facts)
	if err != nil {
		return err
	}
	d.Run, err = j.Apply(ctx, journal.Plan{Facts: said, Purge: w.Purge, Steps: steps, Progress: w.Progress, Guard: w.guard(steps, d.Plan.holds)})
	if w.Group == "" && d.Run != nil {
		w.Group = d.Run.ID // also where it failed: what it has done may be finished by the next
	}
	if err != nil {
		return err
	}
	for i := range d.Run.Steps {
		if s := &d.Run.Steps[i]; s.Skipped != "" {
			d.Skipped = append(d.Skipped, Skip{of[s.Path], s.Skipped})
		}
	}
	return nil
}

// purgeOrder parts the steps of a purge: archives, temporary files and what
// else no row names, in this order; then the rows and what goes with them.
func purgeOrder(steps []journal.Step, of map[string]*Action) (first, rest []journal.Step) {
	rank := func(s journal.Step) int {
		switch of[s.Path].Class {
		case jsonfile.Archive:
			return 0
		case jsonfile.Temp:
			return 1
		}
		return 2
	}
	for _, s := range steps {
		if s.Kind == journal.Remove && of[s.Path].Key == "" {
			first = append(first, s)
		} else {
			rest = append(rest, s)
		}
	}
	slices.SortStableFunc(first, func(a, b journal.Step) int { return rank(a) - rank(b) })
	return first, rest
}

// free looks once more, when nobody else plans, whether what the plan takes is
// in use by now: the lock of its transcript is held, or a transcript is there
// that was missing. The plan is made again then. What is written is seen by the
// stamps of the steps.
func (w *Worker) free(d *Done) error {
	s := d.Snapshot
	taken := map[string]bool{}
	for i := range d.Plan.Actions {
		a := &d.Plan.Actions[i]
		switch {
		case !a.Applies:
		case a.Kind == Move || a.Kind == Remove:
			if taken[filepath.Base(a.Target)] = true; a.Class == jsonfile.Lock && lock.Look(a.Target, w.Machine, w.Now()).State.Holds() {
				return fmt.Errorf("%s is held by now: %w", a.Target, journal.ErrChanged)
			}
		case a.Kind == Replace:
			taken[filepath.Base(a.Target)] = true
		case a.Kind == DropRow:
			r, ok := s.Row(a.Key)
			if !ok {
				continue
			}
			taken[filepath.Base(r.File)], taken[r.ID+".jsonl"] = true, true
			if a.Rule == FixMissing && r.Content == Gone && r.File != "" {
				if _, err := os.Stat(r.File); err == nil {
					return fmt.Errorf("%s is there by now: %w", r.File, journal.ErrChanged)
				}
			}
		}
	}
	reports, err := lock.Scan(s.Dir, w.Machine, w.Now())
	if err != nil {
		return err
	}
	for _, r := range reports {
		base := strings.TrimSuffix(filepath.Base(r.Path), lock.Suffix)
		stem := strings.TrimSuffix(base, ".jsonl")
		if _, known := s.heldNames[base]; !known && r.State.Holds() && (taken[base] || taken[stem+".trajectory.jsonl"] || taken[stem+".trajectory-path.json"]) {
			return fmt.Errorf("%s is locked by now: %w", strings.TrimSuffix(r.Path, lock.Suffix), journal.ErrChanged)
		}
	}
	return nil
}

// stepsOf are the plan as the journal does it: what a new store names, the store,
// what it no longer names.
func stepsOf(sn *Snapshot, p *Plan) (steps []journal.Step, of map[string]*Action, err error) {
	n := 0
	for i := range p.Actions {
		if p.Actions[i].Target != "" {
			n++
		}
	}
	steps, of = make([]journal.Step, 0, n), make(map[string]*Action, n)
	add := func(s journal.Step, a *Action) {
		steps = append(steps, s)
		of[s.Path] = a
	}
	reals := map[string]string{} // thousands of files lie in a few directories
	real := func(path string) string {
		dir := filepath.Dir(path)
		if _, ok := reals[dir]; !ok {
			reals[dir] = realDir(dir)
		}
		return filepath.Join(reals[dir], filepath.Base(path))
	}
	for i := range p.Actions {
		a := &p.Actions[i]
		if !a.Applies {
			continue
		}
		switch a.Kind {
		case Rewrite:
			s, err := storeStep(sn, p)
			if err != nil {
				return nil, nil, err
			}
			add(s, a)
		case RemoveDir:
			add(journal.Step{Kind: journal.RemoveDir, Phase: journal.Clear, Path: real(a.Target)}, a)
		case Move, Remove:
			s := journal.Step{Kind: journal.Move, Phase: a.phase(), Path: real(a.Target)}
			if a.Kind == Remove {
				s.Kind = journal.Remove
				if s.Facts, err = usageFacts(a); err != nil {
					return nil, nil, err
				}
			} else {
				s.To = real(a.To)
			}
			if f := a.File(sn); f != nil && f.Info != nil {
				stamp := journal.StampOf(f.Info)
				s.Expect = &stamp
			} else if a.info != nil {
				stamp := journal.StampOf(a.info)
				s.Expect = &stamp
			}
			add(s, a)
		case Create:
			add(journal.Step{Kind: journal.Create, Phase: journal.Place, Path: real(a.Target), Mode: 0o600, Content: a.Content}, a)
		case Replace, Chmod:
			s := journal.Step{Kind: journal.Replace, Phase: journal.Clear, Path: real(a.Target), Content: a.Content}
			switch {
			case a.Kind == Chmod:
				s.Kind, s.Mode, s.Content = journal.Chmod, a.Mode, nil
				s.Path = realDir(a.Target)
			case a.Place:
				s.Phase = journal.Swap
			}
			if a.info != nil {
				stamp := journal.StampOf(a.info)
				if s.Expect = &stamp; a.Kind == Replace && a.Class == jsonfile.Live {
					// A repair is no sign of life: only the reader that knows the file by its time is told.
					s.Time = stamp.MTime + int64(time.Millisecond)
				}
			}
			add(s, a)
		}
	}
	return steps, of, nil
}

// phase is when a file is moved: before the store is swapped where the new
// store names it, else after.
func (a *Action) phase() journal.Phase {
	switch {
	case a.Place:
		return journal.Place
	case a.Kind == Remove && a.Class == jsonfile.Store: // it goes before what it names
		return journal.Swap
	}
	return journal.Clear
}

// storeStep swaps the store, or makes it where there is none.
func storeStep(s *Snapshot, p *Plan) (journal.Step, error) {
	text := NewStore(s, p)
	write := func(out io.Writer) error {
		_, err := out.Write(text)
		return err
	}
	if s.Absent {
		return journal.Step{Kind: journal.Create, Phase: journal.Swap, Path: realPath(s.Store), Mode: 0o600, Content: write}, nil
	}
	stamp := journal.StampOf(s.Info)
	return journal.Step{Kind: journal.Replace, Phase: journal.Swap, Path: realStore(s.Store), Content: write, Expect: &stamp, Hook: rowHook}, nil
}
