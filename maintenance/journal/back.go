package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Result says what taking a step back came to.
type Result string

const (
	Restored Result = "restored"
	Already  Result = "already as before"
	Merged   Result = "merged"   // by the Resolver, or row by row, perhaps with conflicts
	Conflict Result = "conflict" // changed since: left alone
	Lost     Result = "lost"     // its saved bytes are damaged: left alone
)

// Outcome is what became of one step when its run was taken back.
type Outcome struct {
	Step   int // index in Run.Steps
	Kind   Kind
	Path   string // as the file was called before the run
	Result Result
	Reason string   // of Conflict and Lost
	Notes  []string // conflicts that the Resolver names, and what came back otherwise than it was
	Partly bool     // something was held back: the step can be taken back again
	Rows   int64    // of a database, that came back
}

// Resolver knows what is in the files of steps with a Hook.
type Resolver interface {
	// Merge returns what a replaced file shall hold when its run is taken back although the file was changed since. It gets what the file
	// held before the run, what the run wrote, and what it holds now; after a kill, now may never have been what the run wrote. It is asked
	// as well when files that the run moved or removed are away still. An error leaves the file alone, and becomes the reason of the conflict.
	Merge(s Step, v Versions) (Merging, error)
}

// Versions are what a file held and holds.
type Versions struct {
	Before, After, Now []byte
	Away               map[string]bool // files that the run moved or removed and that are not back, by their paths before it
	Placed             map[string]bool // files that the run put in place before this one named them, and whether they were written since
}

// Merging is what a Resolver came to.
type Merging struct {
	Bytes     []byte   // that the file shall hold; nil leaves it alone
	Conflicts []string // told to the user
	Partly    bool     // more would come back if what is away were back
	Held      []string // of what was placed: what the file goes on naming, so that it stays
}

// taking is how steps are taken back.
type taking struct {
	dry  bool
	dirs map[string]bool // when dry: directories that would be back by now
	back map[string]bool // when dry: files that would be
	ties map[string]bool // what rows that were changed since are tied to
	held map[string]bool // placed files that what was written since names
}

// besideAnother says that a file belongs to a database which the run took away too, and that there is another one in its place: with the log of
// the one before it would be read wrongly. The database goes first, and comes back last.
func (j *Journal) besideAnother(r *Run, s *Step) (bool, error) {
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		database, ok := strings.CutSuffix(s.Path, suffix)
		if !ok || !slices.ContainsFunc(r.Steps, func(o Step) bool { return o.Path == database && o.Kind == Remove && o.Skipped == "" }) {
			continue
		}
		now, err := j.fs.Lstat(database)
		return err == nil && now.Type != Absent && !slices.ContainsFunc(r.Steps, func(o Step) bool { return o.Path == database && now.alike(o.Before) }), err
	}
	return false, nil
}

// placed are the files of earlier steps that what this one writes may name, and whether they are not as the run left them.
func (j *Journal) placed(r *Run, i int) (map[string]bool, error) {
	placed := map[string]bool{}
	for k := range r.Steps[:i] {
		s := &r.Steps[k]
		if s.Phase != Place || s.Kind != Move && s.Kind != Create || s.Skipped != "" || s.Undo == Back {
			continue
		}
		now, err := j.fs.Lstat(s.final())
		if err != nil {
			return nil, err
		}
		same := s.Kind == Move && now.alike(s.Before)
		if s.Kind == Create {
			if same, err = j.holds(s.final(), now, s.After); err != nil {
				return nil, err
			}
		}
		placed[s.final()] = now.Type != Absent && !same
	}
	return placed, nil
}

// away are the files of later steps that do not stand under the names that they had before the run.
func (j *Journal) away(r *Run, i int, how taking) (map[string]bool, error) {
	away := map[string]bool{}
	for k := i + 1; k < len(r.Steps); k++ {
		s := &r.Steps[k]
		if s.Kind != Move && s.Kind != Remove || how.back[s.Path] {
			continue
		}
		now, err := j.fs.Lstat(s.Path)
		if err != nil {
			return nil, err
		}
		if now.Type == Absent {
			away[s.Path] = true
		}
	}
	return away, nil
}

// back takes one step back, if its file is as the run left it. It may be called any number of times.
func (j *Journal) back(r *Run, i int, how taking) (o Outcome, err error) {
	s := &r.Steps[i]
	o = Outcome{Step: i, Kind: s.Kind, Path: s.Path}
	j.taking, j.strayed = true, ""
	defer func() {
		j.taking = false
		if j.strayed != "" && err == nil {
			o.Notes = append(o.Notes, j.strayed)
		}
		if err != nil {
			err = fmt.Errorf("take back %s: %w", s.name(), err)
		}
	}()
	if s.Skipped != "" {
		o.Result = Already
		return o, nil
	}
	for _, path := range []string{s.Path, s.final()} {
		if err := j.reach(path); err != nil {
			return o, err
		}
	}
	if s.Kind == Replace && !how.dry {
		if err := j.finishTrade(s); err != nil {
			return o, err
		}
	}
	now, err := j.fs.Lstat(s.Path)
	if err != nil {
		return o, err
	}
	conflict := func(why string) (Outcome, error) {
		o.Result, o.Reason = Conflict, why
		return o, nil
	}
	// act does the change unless it is a rehearsal.
	act := func(f func() error) (Outcome, error) {
		o.Result = Restored
		if how.dry {
			return o, nil
		}
		return o, f()
	}
	if how.held[s.final()] || s.Tie != "" && how.ties[s.Tie] {
		return conflict("what names it was changed since, and stays")
	}
	if s.Kind == Move || s.Kind == Remove || s.Kind == RemoveDir {
		dir := filepath.Dir(s.Path)
		if at, err := j.fs.Lstat(dir); err != nil {
			return o, err
		} else if at.Type == Absent && !how.dirs[dir] {
			return conflict("its directory is gone")
		}
	}
	switch s.Kind {
	case Rows:
		return j.backRows(r, s, o, how)
	case Create:
		if now.Type == Absent {
			o.Result = Already
			return o, nil
		}
		if ours, err := j.holds(s.Path, now, s.After); err != nil {
			return o, err
		} else if !ours {
			return conflict("it was changed since")
		}
		return act(func() error { return j.fs.Remove(s.Path) })

	case Replace:
		return j.backReplace(r, s, now, o, how)

	case Move:
		to, err := j.fs.Lstat(s.To)
		if err != nil {
			return o, err
		}
		switch {
		case to.Type == Absent && now.Type == s.Before.Type: // written since or not, it has its name
			o.Result = Already
			return o, nil
		case to.Type == Absent:
			return conflict(fmt.Sprintf("%s is gone", s.To))
		case !to.alike(s.Before):
			return conflict(fmt.Sprintf("%s was changed since", s.To))
		case now.Type != Absent:
			if same, err := j.equal(s.To, s.Path, to, now); err != nil {
				return o, err
			} else if !same || now.MTime != s.Before.MTime {
				return conflict("something else has its name")
			}
		}
		return act(func() error {
			done, err := j.move(s, s.To, s.Path, to)
			if err == nil && !done {
				err = ErrChanged
			}
			return err
		})

	case Remove:
		if now.Type != Absent {
			if now.alike(s.Before) {
				o.Result = Already
				return o, nil
			}
			return conflict("something else has its name")
		}
		if other, err := j.besideAnother(r, s); err != nil {
			return o, err
		} else if other {
			return conflict("its database is another one by now, which would be spoilt by it")
		}
		if s.Before.Type == Link {
			return act(func() error { return j.relink(s, s.Temp, s.Path) })
		}
		if s.Old == nil {
			return conflict("its bytes were not saved")
		}
		return j.lost(act(func() error {
			if s.Old.Link > 0 {
				link := linkName(r.Vaults[s.Old.Vault].Dir, s.Old.Link)
				err := j.fs.Move(link, s.Path)
				if missing(err) {
					err = fmt.Errorf("%s: %w: it is gone", link, ErrDamaged)
				}
				return err
			}
			if s.ahead != ready {
				if err := j.build(s.Temp, j.oldBytes(r, s), s.Before); err != nil {
					return err
				}
			}
			s.ahead = looked
			return j.settle(s.Temp, s.Path)
		}))

	case RemoveDir:
		switch now.Type {
		case Folder:
			o.Result = Already
			return o, nil
		case Absent:
		default:
			return conflict("something else has its name")
		}
		if how.dirs != nil {
			how.dirs[s.Path] = true
		}
		return act(func() error {
			if err := j.fs.Remove(s.Temp); err != nil && !missing(err) {
				return err
			}
			if err := j.fs.Mkdir(s.Temp, 0o700); err != nil {
				return err
			}
			like := s.Before
			like.MTime = 0 // what comes back into it would change it
			if err := j.dress(s.Temp, like); err != nil {
				_ = j.fs.Remove(s.Temp)
				return err
			}
			return j.settle(s.Temp, s.Path)
		})

	default: // Chmod
		switch {
		case now.Type != s.Before.Type:
			return conflict("it is gone, or another file")
		case now.Mode == s.Before.Mode:
			o.Result = Already
			return o, nil
		case now.Mode != s.After.Mode:
			return conflict("its mode was changed since")
		}
		return act(func() error { return j.fs.Chmod(s.Path, s.Before.Mode) })
	}
}

// lost makes damaged saved bytes an outcome: the other files come back all the same.
func (j *Journal) lost(o Outcome, err error) (Outcome, error) {
	if errors.Is(err, ErrDamaged) {
		o.Result, o.Reason = Lost, err.Error()
		return o, nil
	}
	return o, err
}

func (j *Journal) oldBytes(r *Run, s *Step) func(io.Writer) error {
	return func(w io.Writer) error { return j.unpack(s.Old.pack(r.Vaults[s.Old.Vault].Dir), *s.Old, s.Before, w) }
}

func (j *Journal) backReplace(r *Run, s *Step, now Stamp, o Outcome, how taking) (Outcome, error) {
	if now.alike(s.Before) && now.Mode == s.Before.Mode {
		o.Result = Already
		return o, nil
	}
	ours, err := j.holds(s.Path, now, s.After)
	if err != nil {
		return o, err
	}
	var away, placed map[string]bool
	if s.Hook != "" && j.resolver != nil {
		if away, err = j.away(r, o.Step, how); err == nil {
			placed, err = j.placed(r, o.Step)
		}
		if err != nil {
			return o, err
		}
	}
	if ours && (len(away) > 0 || slices.Contains(slices.Collect(maps.Values(placed)), true)) { // it is as the run left it, but what it names is not
		rehearsed, err := j.merge(r, s, now, o, taking{dry: true}, away, placed)
		if err != nil {
			return o, err
		}
		ours = !rehearsed.Partly
	}
	if !ours {
		return j.merge(r, s, now, o, how, away, placed)
	}
	if s.Old == nil {
		o.Result, o.Reason = Conflict, "its bytes were not saved"
		return o, nil
	}
	o.Result = Restored
	if how.dry {
		return o, nil
	}
	if s.Old.Link == 0 {
		return j.lost(o, j.swap(s.Path, s.Temp, j.oldBytes(r, s), s.Before, now, s.After.SHA256))
	}
	// The saved name stays while the name in the vault is one of two: rename does nothing to two names of one file.
	if err := j.fs.Link(linkName(r.Vaults[s.Old.Vault].Dir, s.Old.Link), s.Temp); err != nil {
		return o, err
	}
	if err := j.fs.Rename(s.Temp, s.Path); err != nil {
		_ = j.fs.Remove(s.Temp)
		return o, err
	}
	return o, nil
}

// merge asks the Resolver about a file that was changed since the run, or that names what is away.
func (j *Journal) merge(r *Run, s *Step, now Stamp, o Outcome, how taking, away, placed map[string]bool) (Outcome, error) {
	o.Result, o.Reason = Conflict, "it was changed since"
	switch {
	case now.Type != Plain:
		o.Reason = "it is gone, or another kind of file"
		return o, nil
	case s.Hook == "" || j.resolver == nil || s.Old == nil || s.New == nil:
		return o, nil
	}
	var before, after, current bytes.Buffer
	var err error
	if s.Old.Link > 0 {
		_, err = j.sum(linkName(r.Vaults[s.Old.Vault].Dir, s.Old.Link), &before)
	} else {
		err = j.oldBytes(r, s)(&before)
	}
	if err == nil {
		err = j.newBytes(r, s)(&after)
	}
	if err != nil {
		return j.lost(o, err)
	}
	sum, err := j.sum(s.Path, &current)
	if err != nil {
		return o, err
	}
	m, err := j.resolver.Merge(*s, Versions{before.Bytes(), after.Bytes(), current.Bytes(), away, placed})
	o.Notes, o.Partly = m.Conflicts, m.Partly
	for _, path := range m.Held {
		if how.held != nil {
			how.held[path] = true
		}
	}
	if err != nil {
		o.Reason = err.Error()
		return o, nil
	}
	if m.Bytes == nil {
		if len(m.Conflicts) > 0 {
			o.Reason = strings.Join(m.Conflicts, "; ")
		}
		return o, nil
	}
	o.Result, o.Reason = Merged, ""
	if how.dry || bytes.Equal(m.Bytes, current.Bytes()) {
		return o, nil
	}
	like := now
	like.MTime = 0
	return o, j.swap(s.Path, s.Temp, func(w io.Writer) error {
		_, err := w.Write(m.Bytes)
		return err
	}, like, now, sum.hex())
}
