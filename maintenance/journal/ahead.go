package journal

import (
	"path/filepath"
)

// built says how far a removed file was made before its turn.
type built int

const (
	unseen built = iota
	looked       // it was looked at, and is made in its turn if at all
	ready        // it has its bytes under its temporary name, durably
)

// most files are made ahead at once: so many temporary names may stand at a time.
const most = 512

// prepare makes the files that come back next under their temporary names and makes all of them durable together: thousands of files that are
// synced one by one take minutes on a slow disk. No file gets its name before its bytes are durable, just as when they are made one by one.
// What cannot be made is left to its turn, which says why.
func (j *Journal) prepare(r *Run, from int) {
	if !r.Steps[from].returns() {
		return
	}
	var next []*Step
	for i := from; i >= 0 && len(next) < most && r.Steps[i].Phase == r.Steps[from].Phase; i-- {
		if s := &r.Steps[i]; s.returns() {
			next = append(next, s)
		}
	}
	for _, s := range next {
		s.ahead = looked
	}
	if len(next) < j.together {
		return
	}
	dirs := map[uint64]string{} // one of each file system
	var made []*Step
	for _, s := range next {
		dir := filepath.Dir(s.Path)
		if j.reach(s.Path) != nil {
			continue
		}
		at, err := j.fs.Lstat(dir)
		if err != nil || at.Type != Folder {
			continue
		}
		if now, err := j.fs.Lstat(s.Path); err != nil || now.Type != Absent {
			continue
		}
		if j.produceLike(s.Temp, j.oldBytes(r, s), s.Before, false) == nil {
			made = append(made, s)
			dirs[at.Dev] = dir
		}
	}
	for _, dir := range dirs {
		if j.fs.SyncFS(dir) != nil {
			for _, s := range made {
				_ = j.fs.Remove(s.Temp) // else it is made anew over this one
			}
			return
		}
	}
	for _, s := range made {
		s.ahead = ready
	}
}

// returns says that the step's file is to be unpacked, and was not looked at yet.
func (s *Step) returns() bool {
	return s.ahead == unseen && s.Kind == Remove && s.Undo == Wanted && s.Skipped == "" && s.Before.Type == Plain && s.Old != nil && s.Old.Link == 0
}

// forget removes what was made ahead and did not come into its place.
func (j *Journal) forget(r *Run) {
	for i := range r.Steps {
		if s := &r.Steps[i]; s.ahead == ready {
			_ = j.fs.Remove(s.Temp)
		}
		r.Steps[i].ahead = unseen
	}
}
