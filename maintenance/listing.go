package maintenance

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"oc/store/jsonfile"
	"oc/store/lazy"
)

var (
	blobDir  = lazy.Regexp(`^[a-f0-9]{2}$`)
	blobName = lazy.Regexp(`^[a-f0-9]{64}\.txt$`)
	uuidText = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
	blobTemp = lazy.Regexp(`^[a-f0-9]{64}\.txt\.(?:\d+\.)?` + uuidText + `\.tmp$`)
	tempTail = lazy.Regexp(`^(?i:\.(?:\d+\.)?` + uuidText + `\.tmp)$`)
)

// isStoreTemp tells whether a name is that of a store's temporary file.
func isStoreTemp(name, store string) bool {
	tail, ok := strings.CutPrefix(name, store)
	return ok && tempTail().MatchString(tail)
}

// list reads the directory once, and the folders of skill prompts.
func (s *Snapshot) list(ctx context.Context) error {
	s.prompts, s.odd = map[string]int{}, map[string]bool{}
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the directory of transcripts: %w", err)
	}
	s.listed = namesOf(entries)
	s.names = make(map[string]int, len(entries))
	s.Files = s.look(ctx, entries)
	if err := ctx.Err(); err != nil {
		return err
	}
	there := s.Files[:0]
	for i := range s.Files {
		switch f := &s.Files[i]; {
		case f.Info == nil && !entries[i].IsDir(): // gone since: somebody else works here
		case !f.direct && !f.Link:
			s.odd[entries[i].Name()] = true
		default:
			s.names[f.Base] = len(there)
			s.sidecars = s.sidecars || f.Class == jsonfile.Sidecar
			there = append(there, *f)
		}
	}
	s.Files = there
	s.listPrompts()
	return nil
}

// namesOf is a sum of the names in a directory, but for those that come and go while a store is written.
func namesOf(entries []fs.DirEntry) [32]byte {
	h := sha256.New()
	for _, e := range entries {
		if name := e.Name(); !strings.HasSuffix(name, ".lock") && !strings.HasSuffix(name, ".tmp") {
			h.Write(append([]byte(name), 0)) //nolint:errcheck // it never fails
		}
	}
	return [32]byte(h.Sum(nil))
}

// still tells whether the store is the file that it was, and the names beside it are those that they were.
func (s *Snapshot) still() bool {
	now, err := os.Stat(s.Store)
	if err != nil || s.Info == nil || !os.SameFile(now, s.Info) || now.Size() != s.Info.Size() || !now.ModTime().Equal(s.Info.ModTime()) {
		return false
	}
	entries, err := os.ReadDir(s.Dir)
	return err == nil && namesOf(entries) == s.listed
}

// look asks what the entries of the directory are, on all processors: most of
// the time of a plan goes by in the system. What is gone, or a directory, has
// no Info.
func (s *Snapshot) look(ctx context.Context, entries []fs.DirEntry) []File {
	files := make([]File, len(entries))
	base := filepath.Base(s.Store)
	look := func(i int) {
		d, f := entries[i], &files[i]
		if d.IsDir() {
			return
		}
		info, err := d.Info()
		if err != nil {
			return
		}
		link := info.Mode()&fs.ModeSymlink != 0
		*f = File{Base: d.Name(), Info: info, direct: info.Mode().IsRegular()}
		f.Item = jsonfile.Item{Name: jsonfile.NameOf(d.Name(), base), Path: s.in(d.Name()), Size: info.Size(), ModTime: info.ModTime(), Link: link}
	}
	n := min(runtime.GOMAXPROCS(0), 4)
	var all sync.WaitGroup
	for k := range n {
		all.Go(func() {
			for i := k * len(entries) / n; i < (k+1)*len(entries)/n && ctx.Err() == nil; i++ {
				look(i)
			}
		})
	}
	all.Wait()
	return files
}

// in is the path of a name in the directory.
func (s *Snapshot) in(name string) string {
	if strings.HasSuffix(s.Dir, string(filepath.Separator)) {
		return s.Dir + name
	}
	return s.Dir + string(filepath.Separator) + name
}

// transcriptOf is the path of a session's transcript in the directory.
func (s *Snapshot) transcriptOf(id string) string {
	var room [64]byte
	if i, ok := s.names[string(append(append(room[:0], id...), ".jsonl"...))]; ok {
		return s.Files[i].Path
	}
	return filepath.Join(s.Dir, id+".jsonl") // a bad id may lead elsewhere
}

// local is the name of a clean path in the directory; ok is false elsewhere.
func (s *Snapshot) local(path string) (name string, ok bool) {
	at := strings.LastIndexByte(path, filepath.Separator)
	if at < 0 || len(s.Dir) != at && at+1 != len(s.Dir) || path[:len(s.Dir)] != s.Dir {
		return "", false
	}
	return path[at+1:], true
}

// listPrompts adds the blobs of skill prompts. What cannot be read there is
// left alone.
func (s *Snapshot) listPrompts() {
	root := filepath.Join(s.Dir, "skills-prompts", "sha256")
	folders, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Problems = append(s.Problems, fmt.Sprintf("the skill prompts cannot be listed: %v", err))
	}
	for _, d := range folders {
		if !d.IsDir() || !blobDir().MatchString(d.Name()) {
			continue
		}
		dir := filepath.Join(root, d.Name())
		blobs, err := os.ReadDir(dir)
		if err != nil {
			s.Problems = append(s.Problems, fmt.Sprintf("the skill prompts cannot be listed: %v", err))
		}
		for _, b := range blobs {
			isBlob := blobName().MatchString(b.Name())
			if !b.Type().IsRegular() || !isBlob && !blobTemp().MatchString(b.Name()) {
				continue
			}
			info, err := b.Info()
			if err != nil {
				continue
			}
			f := File{Base: b.Name(), Info: info, blob: true}
			f.Item = jsonfile.Item{Name: jsonfile.Name{Class: jsonfile.Prompt}, Path: filepath.Join(dir, b.Name()), Size: info.Size(), ModTime: info.ModTime()}
			if isBlob {
				s.prompts[b.Name()[:64]] = len(s.Files)
			}
			s.Files = append(s.Files, f)
		}
	}
}
