package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"
)

// stampOf begins a run's id, so that ids sort by time; years that no id has room for are cut.
func stampOf(t time.Time) string {
	t = t.UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		t = time.Unix(0, 0).UTC()
	}
	return t.Format("20060102-150405")
}

// keeps says whether the bytes of the file must be kept: of a replaced file even when purging, until the run is done.
func (s *Step) keeps(purge bool) bool {
	return s.Before.Type == Plain && (s.Kind == Replace || s.Kind == Remove && !purge)
}

func (s *Step) writes() bool { return s.Kind == Create || s.Kind == Replace }

// choose decides in which vault of the run the old bytes of each step go. New bytes go to the base's.
func (j *Journal) choose(r *Run, steps []Step) (vaults []int, err error) {
	devs := map[string]uint64{}
	dev := func(dir string) (uint64, error) {
		if d, ok := devs[dir]; ok {
			return d, nil
		}
		s, err := j.fs.Lstat(dir)
		devs[dir] = s.Dev
		return s.Dev, err
	}
	home, err := dev(j.base)
	if err != nil {
		return nil, err
	}
	vault := func(place string, d uint64) int {
		dir := vaultIn(place, r.ID)
		i := slices.IndexFunc(r.Vaults, func(v Vault) bool { return v.Dir == dir })
		if i < 0 {
			i = len(r.Vaults)
			r.Vaults = append(r.Vaults, Vault{Dir: dir, Dev: d})
		}
		return i
	}
	going := map[string]bool{}
	for i := range steps {
		if steps[i].Kind == RemoveDir {
			going[steps[i].Path] = true
		}
	}
	vaults = make([]int, len(steps))
	for i := range steps {
		s := &steps[i]
		if s.writes() {
			vault(j.base, home)
		}
		if !s.keeps(r.Purge) && s.Kind != Rows { // a transaction can be rolled back until the run is done, when purging, too
			continue
		}
		place, d := j.base, home
		if at, err := dev(filepath.Dir(s.Path)); err != nil {
			return nil, err
		} else if at != home {
			// The outermost directory of that file system that stays; none: the bytes cross over to the base.
			root, _ := j.root(s.Path)
			for dir := filepath.Dir(s.Path); ; dir = filepath.Dir(dir) {
				if there, err := dev(dir); err != nil {
					return nil, err
				} else if there == at {
					place, d = dir, at
				}
				if going[dir] {
					place, d = j.base, home
				}
				if dir == root || !under(dir, root) {
					break
				}
			}
		}
		vaults[i] = vault(place, d)
	}
	return vaults, nil
}

// stage writes the vaults: all that files held and all that they shall hold, durably, before any is touched.
func (j *Journal) stage(ctx context.Context, r *Run, steps []Step, vaults []int) (err error) {
	for v := range r.Vaults {
		if err := j.mkdir(r.Vaults[v].Dir); err != nil {
			return fmt.Errorf("make %s: %w", r.Vaults[v].Dir, j.roomError(err, r.Vaults[v].Dir))
		}
		if err := j.stageVault(ctx, r, v, steps, vaults); err != nil {
			return j.roomError(err, r.Vaults[v].Dir)
		}
		r.Saved += r.Vaults[v].Bytes
	}
	if j.copying {
		return nil
	}
	return j.roomForNew(steps)
}

func (j *Journal) roomError(err error, dir string) error {
	if noRoom(err) {
		return fmt.Errorf("%w: %w", &RoomError{Dir: dir, Purge: j.purging}, err)
	}
	return err
}

func (j *Journal) stageVault(ctx context.Context, r *Run, v int, steps []Step, vaults []int) error {
	dir := r.Vaults[v].Dir
	var olds, news *pack
	defer func() {
		for _, p := range []*pack{olds, news} {
			if p != nil {
				_ = p.f.Close()
			}
		}
	}()
	ready := func(p **pack, name string) (err error) {
		if *p == nil {
			*p, err = j.newPack(dir, name)
		}
		return err
	}
	links := 0
	for i := range steps {
		s := &steps[i]
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.keeps(r.Purge) && vaults[i] == v {
			// Another name of the file costs nothing and brings the very file back. A purge has no room for more.
			if (s.Before.Links > 1 || r.Purge) && !j.copying {
				err := j.fs.Link(s.Path, linkName(dir, links+1))
				if err == nil {
					links++
					s.Old = &Saved{Vault: v, Link: links}
					continue
				}
				if !noLinks(err) {
					return fmt.Errorf("save %s: %w", s.Path, err)
				}
			}
			if err := ready(&olds, oldPack); err != nil {
				return err
			}
			if err := j.save(s, v, olds); err != nil {
				return fmt.Errorf("save %s: %w", s.Path, err)
			}
		}
	}
	if dir == vaultIn(j.base, r.ID) && !j.copying {
		for i := range steps {
			s := &steps[i]
			if !s.writes() {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := ready(&news, newPack); err != nil {
				return err
			}
			offset, length, sum, err := news.add(s.content)
			if err != nil {
				return fmt.Errorf("prepare %s: %w", s.Path, err)
			}
			s.New = &Saved{Vault: v, Offset: offset, Length: length}
			s.After.Size, s.After.SHA256 = sum.size, sum.hex()
		}
	}
	for _, p := range []**pack{&olds, &news} {
		if *p == nil {
			continue
		}
		r.Vaults[v].Bytes += (*p).at
		err := (*p).close()
		*p = nil
		if err != nil {
			return fmt.Errorf("save into %s: %w", dir, err)
		}
	}
	return j.fs.SyncDir(dir)
}

func (s *Step) content(w io.Writer) error {
	if s.Content == nil {
		return nil // an empty file
	}
	return s.Content(w)
}

// save packs a file, and makes sure that it was not written meanwhile.
func (j *Journal) save(s *Step, v int, p *pack) error {
	offset, length, sum, err := p.add(func(w io.Writer) error {
		f, err := j.fs.Open(s.Path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	})
	if err != nil {
		return err
	}
	now, err := j.fs.Lstat(s.Path)
	if err != nil {
		return err
	}
	if !now.Same(s.Before) || sum.size != s.Before.Size || s.Before.SHA256 != "" && s.Before.SHA256 != sum.hex() {
		return fmt.Errorf("%w: it was written while it was read", ErrChanged)
	}
	s.Before.SHA256 = sum.hex()
	s.Old = &Saved{Vault: v, Offset: offset, Length: length}
	return nil
}

// roomForNew makes sure that the new files fit beside the old ones.
func (j *Journal) roomForNew(steps []Step) error {
	need := map[uint64]int64{}
	where := map[uint64]string{}
	at := map[string]Stamp{}
	for i := range steps {
		s := &steps[i]
		dir := filepath.Dir(s.final())
		if !s.writes() && s.Kind != Move {
			continue
		}
		d, ok := at[dir]
		if !ok {
			var err error
			if d, err = j.fs.Lstat(dir); err != nil {
				return err
			}
			at[dir] = d
		}
		switch {
		case s.writes():
			need[d.Dev] += s.After.Size
			where[d.Dev] = dir
		case s.Before.Dev != d.Dev && s.Before.Type == Plain:
			need[d.Dev] += s.Before.Size
			where[d.Dev] = dir
		}
	}
	for dev, bytes := range need {
		if err := j.room(where[dev], bytes); err != nil {
			return err
		}
	}
	return nil
}

// build makes a new file, durably but for its name, that looks like like: mode, owner where the system has one, time unless it is 0.
func (j *Journal) build(temp string, content func(io.Writer) error, like Stamp) error {
	return j.produceLike(temp, content, like, true)
}

func (j *Journal) produceLike(temp string, content func(io.Writer) error, like Stamp, durable bool) error {
	f, err := j.create(temp)
	if err != nil {
		return err
	}
	err = content(f)
	if err == nil {
		err = j.dress(temp, like)
	}
	if err == nil && durable {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = j.fs.Remove(temp)
	}
	return err
}

// dress gives a file of oc's own owner, mode (after the owner, whose change clears setuid) and, unless 0, time.
func (j *Journal) dress(path string, like Stamp) error {
	now, err := j.fs.Lstat(path)
	if err != nil {
		return err
	}
	if like.UID >= 0 && (now.UID != like.UID || now.GID != like.GID) {
		err := j.fs.Chown(path, like.UID, like.GID)
		if j.taking && now.UID == like.UID && errors.Is(err, fs.ErrPermission) {
			// Better with another group than not at all: only its members could give it that one.
			j.strayed, err = fmt.Sprintf("it has the group %d, and had %d: oc may not give it that one; chgrp it as a member of that group, or as root", now.GID, like.GID), nil
		}
		if err != nil {
			return err
		}
	}
	if now.Type != Link && now.Mode != like.Mode {
		if err := j.fs.Chmod(path, like.Mode); err != nil {
			return err
		}
	}
	if like.MTime != 0 {
		return j.fs.Chtimes(path, like.MTime)
	}
	return nil
}
