package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"oc/config"
	"oc/store/jsonfile"
	"oc/store/row"
	"oc/transcript"
)

// Usage is what the sessions of a store take on disk, in bytes.
type Usage struct {
	Store     int64 // sessions.json
	Database  int64 // openclaw-agent.sqlite; -1 where it cannot be looked at
	WAL       int64 // its -wal and -shm
	Classes   map[jsonfile.Class]Amount
	Imported  Amount // originals that an import into the database has put away
	Problems  []error
	Directory string
}

// An Amount is a number of files and their bytes.
type Amount struct {
	Files int
	Bytes int64
}

// Total is the sum of everything.
func (u *Usage) Total() int64 {
	n := max(u.Database, 0) + u.WAL + u.Imported.Bytes
	for _, a := range u.Classes {
		n += a.Bytes
	}
	return n
}

// Measure adds up the files of a target.
func Measure(t Target) *Usage {
	u := &Usage{Classes: map[jsonfile.Class]Amount{}}
	for _, path := range t.Databases {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			u.Database, u.Problems = -1, append(u.Problems, err)
			break
		}
		u.Database = info.Size()
		for _, side := range []string{"-wal", "-shm"} {
			if info, err := os.Stat(path + side); err == nil {
				u.WAL += info.Size()
			}
		}
		break
	}
	base := config.StoreFile
	if u.Directory = config.ArtifactDir(t.Index); t.Index == "" {
		u.Directory = config.ArtifactDir(t.Databases[0])
	} else {
		base = filepath.Base(t.Index)
	}
	items, problems := jsonfile.List(u.Directory, base)
	u.Problems = append(u.Problems, problems...)
	for _, it := range items {
		if isDatabase(it.Path, t.Databases) {
			continue
		}
		a := u.Classes[it.Class]
		a.Files++
		a.Bytes += it.Size
		u.Classes[it.Class] = a
	}
	u.Imported = imported(u.Directory)
	u.Store = u.Classes[jsonfile.Store].Bytes
	return u
}

func isDatabase(path string, databases []string) bool {
	for _, d := range databases {
		if path == d || path == d+"-wal" || path == d+"-shm" {
			return true
		}
	}
	return false
}

// Transcript finds the file of a row of the file era. missing is true where
// there is none; where it is looked for is told all the same.
func (r *Row) Transcript() (c jsonfile.Candidate, info os.FileInfo, missing bool) {
	return r.sessions.Place().Find(&r.Entry)
}

func glanceFile(path string, size int64) (transcript.Glimpse, error) {
	f, err := os.Open(path)
	if err != nil {
		return transcript.Glimpse{}, err
	}
	defer f.Close()
	return transcript.Glance(f, size)
}

// An Unlinked is a transcript that no row names: history, not garbage.
type Unlinked struct {
	jsonfile.Item
	Glimpse transcript.Glimpse
	Err     error    // why it could not be looked at
	Key     string   // the session whose earlier transcript it is; "" where no row says so
	Also    []string // archives of the same session id
}

// Empty tells that no message is in it.
func (u *Unlinked) Empty() bool { return u.Err == nil && u.Glimpse.Whole && !u.Glimpse.Messages }

// Unlinked lists the transcripts in the store's directory that no row of any
// store sharing that directory names, the newest first.
func (s *Sessions) Unlinked(ctx context.Context) ([]Unlinked, []error) {
	items, problems := jsonfile.List(s.Dir(), filepath.Base(s.Place().Store))
	linked, family := map[string]bool{}, map[string]string{}
	for _, o := range s.sharing(ctx, &problems) {
		place := o.Place()
		for i := range o.Rows {
			r := &o.Rows[i]
			for _, c := range place.Candidates(&r.Entry) {
				linked[c.Path] = true
			}
			for _, id := range r.Texts(row.UsageFamilySessionIDs) {
				family[id] = r.Key
			}
		}
	}
	archives := map[string][]string{}
	for _, it := range items {
		if archived(&it) {
			archives[it.Session] = append(archives[it.Session], it.Path)
		}
	}
	var out []Unlinked
	base := s.Dir()
	if r, err := filepath.EvalSymlinks(base); err == nil {
		base = r
	}
	for _, it := range items {
		if it.Class != jsonfile.Live || linked[it.Path] || linked[filepath.Join(base, filepath.Base(it.Path))] {
			continue
		}
		u := Unlinked{Item: it, Key: family[it.Session], Also: archives[it.Session]}
		if it.Link {
			u.Err = errors.New("it is a link; it was not followed")
		} else {
			u.Glimpse, u.Err = glanceFile(it.Path, it.Size)
		}
		out = append(out, u)
	}
	sortNewest(out, func(u *Unlinked) time.Time { return u.ModTime })
	return out, problems
}

// sharing lists the stores whose transcripts lie in the same directory, s
// included.
func (s *Sessions) sharing(ctx context.Context, problems *[]error) []*Sessions {
	out := []*Sessions{s}
	for _, id := range s.config.StoreAgents() {
		t := target(s.config, id)
		same := config.ArtifactDir(t.Index) == s.Dir()
		if !same || t.Index == s.Path || t.Index == s.Index {
			continue
		}
		o, err := Open(ctx, s.config, t)
		if err != nil {
			*problems = append(*problems, err)
			continue
		}
		out = append(out, o)
	}
	return out
}
