package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// small files that are replaced are read again at the last moment.
const small = 1 << 20

// do does one step, or sees that it is done. ErrChanged: the file is neither what the plan found nor what it wants.
func (j *Journal) do(r *Run, s *Step) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", s.name(), err)
		}
	}()
	for _, path := range []string{s.Path, s.final()} {
		if err := j.reach(path); err != nil {
			return err
		}
	}
	now, err := j.fs.Lstat(s.Path)
	if err != nil {
		return err
	}
	switch s.Kind {
	case Create:
		return j.doCreate(r, s, now)
	case Replace:
		return j.doReplace(r, s, now)
	case Move:
		done, err := j.move(s, s.Path, s.To, now)
		if err == nil && !done {
			err = fmt.Errorf("%w: the new name is taken", ErrChanged)
			if !now.alike(s.Before) {
				err = fmt.Errorf("%w: %s", ErrChanged, difference(now, s.Before))
			}
		}
		return err
	case Remove, RemoveDir:
		switch {
		case now.Type == Absent:
			return nil
		case !now.Same(s.Before):
			return fmt.Errorf("%w: %s", ErrChanged, difference(now, s.Before))
		}
		return j.fs.Remove(s.Path)
	case Rows:
		return j.doRows(r, s)
	case Chmod:
		switch {
		case now.Type != s.Before.Type || now.Ino != s.Before.Ino || now.Mode != s.Before.Mode && now.Mode != s.Mode:
			return fmt.Errorf("%w: %s", ErrChanged, "another file, or another mode")
		case now.Mode == s.Mode:
			return nil
		}
		return j.fs.Chmod(s.Path, s.Mode)
	}
	return fmt.Errorf("%w: unknown kind", ErrRefused)
}

func (j *Journal) doCreate(r *Run, s *Step, now Stamp) error {
	if now.Type != Absent {
		if done, err := j.holds(s.Path, now, s.After); done || err != nil {
			return err
		}
		return fmt.Errorf("%w: it exists", ErrChanged)
	}
	like := s.After
	like.UID, like.GID = -1, -1
	if os.Geteuid() == 0 { // under sudo, what is made belongs to whose directory it is
		dir, err := j.fs.Lstat(filepath.Dir(s.Path))
		if err != nil {
			return err
		}
		like.UID, like.GID = dir.UID, dir.GID
	}
	if err := j.build(s.Temp, j.newBytes(r, s), like); err != nil {
		return err
	}
	return j.settle(s.Temp, s.Path)
}

func (j *Journal) newBytes(r *Run, s *Step) func(io.Writer) error {
	return func(w io.Writer) error {
		if s.New == nil {
			return fmt.Errorf("%w: its new bytes are gone", ErrDamaged)
		}
		return j.unpack(filepath.Join(r.Vaults[s.New.Vault].Dir, newPack), *s.New, s.After, w)
	}
}

// settle gives a new file its name, which must be free.
func (j *Journal) settle(temp, path string) error {
	err := j.fs.Move(temp, path)
	if err != nil {
		_ = j.fs.Remove(temp)
	}
	return err
}

func (j *Journal) doReplace(r *Run, s *Step, now Stamp) error {
	if !now.Same(s.Before) {
		if done, err := j.holds(s.Path, now, s.After); done || err != nil {
			return err
		}
		return fmt.Errorf("%w: %s", ErrChanged, difference(now, s.Before))
	}
	like := s.Before
	like.MTime = s.Time
	return j.swap(s.Path, s.Temp, j.newBytes(r, s), like, now, s.Before.SHA256)
}

// swap replaces a file that is still as now says, and holds the bytes of sum where that is known.
func (j *Journal) swap(path, temp string, content func(io.Writer) error, like, now Stamp, sum string) error {
	if err := j.build(temp, content, like); err != nil {
		return err
	}
	err := func() error {
		again, err := j.fs.Lstat(path)
		if err != nil {
			return err
		}
		if !again.Same(now) {
			return fmt.Errorf("%w: %s", ErrChanged, difference(again, now))
		}
		if sum != "" && now.Size <= small {
			if same, err := j.holds(path, again, Stamp{Size: now.Size, SHA256: sum}); err != nil {
				return err
			} else if !same {
				return fmt.Errorf("%w: its bytes are others", ErrChanged)
			}
		}
		return j.fs.Rename(temp, outName(temp))
	}()
	if err != nil {
		_ = j.fs.Remove(temp)
		return err
	}
	return j.trade(outName(temp), path, now)
}

// outName is the name of a new file that is whole, and of what comes out when it goes in: a file of this name is never half written.
func outName(temp string) string {
	dir, base := filepath.Split(temp)
	parts := strings.Split(base, ".")
	if n := len(parts); n > 3 {
		return dir + strings.Join(slices.Delete(parts, n-3, n-2), ".") // without the number of the process, as OpenClaw may have it, too
	}
	return temp + ".tmp"
}

// trade puts a new file in the place of one that is still as now says, and loses nothing that somebody else puts there at the very moment:
// the two change names, and what came out is looked at. Where a file system cannot do that, the new file replaces what is there. What
// stays under the name out after an error is looked at by sweep.
func (j *Journal) trade(out, path string, now Stamp) error {
	fresh, err := j.fs.Lstat(out)
	if err != nil {
		return err
	}
	err = j.fs.Exchange(out, path)
	if errors.Is(err, errors.ErrUnsupported) {
		return j.fs.Rename(out, path)
	}
	if err != nil {
		return errors.Join(err, j.fs.Remove(out))
	}
	came, err := j.fs.Lstat(out)
	if err != nil {
		return err
	}
	if !came.Same(now) {
		return errors.Join(fmt.Errorf("%w: %s", ErrChanged, difference(came, now)), j.giveBack(out, path, func(s Stamp) (bool, error) { return s.Same(fresh), nil }))
	}
	return j.fs.Remove(out)
}

// giveBack undoes a trade: what came out goes in again, and the new file goes. What was put there since stays: it is newer.
func (j *Journal) giveBack(out, path string, ours func(Stamp) (bool, error)) error {
	if err := j.fs.Exchange(out, path); err != nil {
		return err
	}
	came, err := j.fs.Lstat(out)
	if err != nil {
		return err
	}
	if mine, err := ours(came); err != nil {
		return err
	} else if mine {
		return j.fs.Remove(out)
	}
	return j.fs.Rename(out, path)
}

// finishTrade ends a trade that was cut short: what is neither what the file held before the run nor what the run wrote is somebody's, and
// came out of the path.
func (j *Journal) finishTrade(s *Step) error {
	out := outName(s.Temp)
	if err := j.reach(out); err != nil {
		return err
	}
	ours := func(is Stamp) (bool, error) {
		if is.Same(s.Before) {
			return true, nil
		}
		mine, err := j.holds(out, is, s.After)
		if err == nil && !mine && s.Before.SHA256 != "" {
			mine, err = j.holds(out, is, s.Before)
		}
		return mine, err
	}
	is, err := j.fs.Lstat(out)
	if err != nil || is.Type == Absent {
		return err
	}
	if mine, err := ours(is); err != nil {
		return err
	} else if mine {
		return j.fs.Remove(out)
	}
	err = j.giveBack(out, s.Path, ours)
	if missing(err) {
		return j.fs.Move(out, s.Path)
	}
	return err
}

// move gives the file of s at from the name to, or sees that it has it. done is false when the names do not stand as before or after.
func (j *Journal) move(s *Step, from, to string, now Stamp) (done bool, err error) {
	var taken error
	if now.alike(s.Before) {
		// It replaces nothing: whether the name is free need not be asked first.
		taken = j.fs.Move(from, to)
		if taken == nil || !errors.Is(taken, fs.ErrExist) && (!otherDevice(taken) || s.Temp == "") {
			return taken == nil, taken
		}
	}
	there, err := j.fs.Lstat(to)
	if err != nil {
		return false, err
	}
	switch {
	case now.Type == Absent:
		return there.alike(s.Before), nil
	case !now.alike(s.Before):
		return false, nil
	case there.Type == Absent && otherDevice(taken):
		if err := j.copy(s, from, to); err != nil {
			return false, err
		}
	default:
		// Between two file systems there is a moment with both: finish only what is the same to the byte.
		if !there.alike(s.Before) {
			return false, nil
		}
		if same, err := j.equal(from, to, now, there); err != nil || !same {
			return false, err
		}
	}
	// The copy is durable before the original goes.
	if err := j.fs.SyncDir(filepath.Dir(to)); err != nil {
		return false, err
	}
	again, err := j.fs.Lstat(from)
	if err != nil {
		return false, err
	}
	if !again.Same(now) {
		return false, fmt.Errorf("%w: it was written while it was copied", ErrChanged)
	}
	return true, j.fs.Remove(from)
}

func (j *Journal) copy(s *Step, from, to string) error {
	temp := s.tempIn(to)
	if s.Before.Type == Link {
		return j.relink(s, temp, to)
	}
	err := j.build(temp, func(w io.Writer) error {
		sum, err := j.sum(from, w)
		if err == nil && sum.size != s.Before.Size {
			err = fmt.Errorf("%w: it was written while it was copied", ErrChanged)
		}
		return err
	}, s.Before)
	if err != nil {
		return err
	}
	return j.settle(temp, to)
}

// relink makes the symbolic link that a step found.
func (j *Journal) relink(s *Step, temp, path string) error {
	if err := j.fs.Remove(temp); err != nil && !missing(err) {
		return err
	}
	if err := j.fs.Symlink(string(s.Before.Target), temp); err != nil {
		return err
	}
	if err := j.dress(temp, s.Before); err != nil {
		_ = j.fs.Remove(temp)
		return err
	}
	return j.settle(temp, path)
}

func (j *Journal) equal(a, b string, sa, sb Stamp) (bool, error) {
	if sa.Type == Link {
		ta, err := j.fs.Readlink(a)
		if err != nil {
			return false, err
		}
		tb, err := j.fs.Readlink(b)
		return ta == tb, err
	}
	if sa.Type != Plain || sb.Type != Plain || sa.Ino == sb.Ino && sa.Dev == sb.Dev && sa.Ino != 0 {
		return false, nil
	}
	sum, err := j.sum(a, io.Discard)
	if err != nil {
		return false, err
	}
	return j.holds(b, sb, Stamp{Size: sum.size, SHA256: sum.hex()})
}
