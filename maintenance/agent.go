package maintenance

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"oc/store/jsonfile"
)

// A Folder is all that is in an agent's directory.
type Folder struct {
	Dir   string
	dirs  []string // the directory itself and those in it, outer ones first
	files []int    // in the snapshot
	Odd   []string // sockets, pipes and oc's own: they stay
}

// Walk reads an agent's directory and adds what is in it to the snapshot. Links
// are not followed. A directory that is not there gives an empty Folder.
func (s *Snapshot) Walk(ctx context.Context, dir string) (*Folder, error) {
	f := &Folder{Dir: dir}
	known := make(map[string]int, len(s.Files))
	for i := range s.Files {
		known[s.Files[i].Path] = i
	}
	at, err := os.Lstat(dir)
	switch {
	case dir == "", os.IsNotExist(err):
		return f, nil
	case err != nil:
		return nil, fmt.Errorf("read the directory of the agent: %w", err)
	case !at.IsDir():
		return nil, &Denied{dir, "it is a link or a file, not the agent's own directory"}
	}
	return f, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read the directory of the agent: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.IsDir() {
			if e.Name() == ".oc" {
				f.Odd = append(f.Odd, path)
				return fs.SkipDir
			}
			f.dirs = append(f.dirs, path)
			return nil
		}
		if i, ok := known[path]; ok {
			f.files = append(f.files, i)
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return nil //nolint:nilerr // gone since; the directory stays then, and that is told
		}
		link := info.Mode()&fs.ModeSymlink != 0
		if !link && !info.Mode().IsRegular() {
			f.Odd = append(f.Odd, path)
			return nil
		}
		f.files = append(f.files, len(s.Files))
		s.Files = append(s.Files, File{
			Item: jsonfile.Item{Name: jsonfile.NameOf(e.Name(), filepath.Base(s.Store)), Path: path, Size: info.Size(), ModTime: info.ModTime(), Link: link},
			Base: e.Name(), Info: info,
		})
		return nil
	})
}

// RemoveAgent plans to remove an agent from disk: its rows, given by their
// keys, and its directory with all that is in it. Where its store lies in that
// directory everything goes; in a store elsewhere its rows are deleted as
// [Delete] does it. While a session or a transcript of it is in use nothing
// goes, and the plan has that among its protected. The configuration and the
// workspace are not touched (spec/maintenance.md 5.1).
func RemoveAgent(s *Snapshot, keys []string, f *Folder, now time.Time) (*Plan, error) {
	d := verbDraft(s, now, keys...)
	inside := len(f.dirs) > 0 && within(realPath(s.Store), realDir(f.Dir))
	for _, key := range keys {
		i, err := s.index(key)
		if err != nil {
			return nil, err
		}
		d.idle(i)
	}
	d.calm(f)
	if len(d.protected) > 0 {
		return d.plan(), nil
	}
	switch {
	case inside:
		for _, key := range keys {
			d.drop(s.byKey[key], ByHand, "its agent is deleted")
		}
	case len(keys) > 0:
		d.decide()
	}
	d.empty(f)
	p := d.plan()
	if inside {
		p.Actions = slices.DeleteFunc(p.Actions, func(a Action) bool { return a.Kind == Rewrite })
	}
	p.Actions = append(p.Actions, f.removal()...)
	p.Before, p.After = d.amounts(p.Actions)
	return p, nil
}

// calm notes what of an agent's directory somebody uses.
func (d *draft) calm(f *Folder) {
	for _, i := range f.files {
		x := &d.s.Files[i]
		switch {
		case x.Held != "":
			d.leave(i, Locked, ByHand, "its transcript is locked: "+x.Held)
		case x.Class == jsonfile.Live && !x.Link && x.written() > d.now-recently && !d.s.Governed:
			d.leave(i, RecentBytes, ByHand, "it was "+lastWritten(d.now-x.written()))
		}
	}
}

// empty removes the files of an agent's directory, the store first: no row is left without its transcript.
func (d *draft) empty(f *Folder) {
	slices.SortStableFunc(f.files, func(a, b int) int { return cmp.Compare(d.s.rank(a), d.s.rank(b)) })
	for _, i := range f.files {
		d.do(Action{Kind: Remove, Rule: ByHand, Reason: "its agent is deleted", file: i})
	}
}

// removal is what removes the directories, the inner ones first.
func (f *Folder) removal() (all []Action) {
	for _, dir := range slices.Backward(f.dirs) {
		all = append(all, Action{Kind: RemoveDir, Target: dir, Rule: ByHand, Reason: "its agent is deleted", Applies: true, file: -1})
	}
	return all
}

// rank puts the store before all other files.
func (s *Snapshot) rank(i int) int {
	if s.Files[i].Path == s.Store {
		return 0
	}
	return 1
}
