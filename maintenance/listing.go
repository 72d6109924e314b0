package maintenance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"oc/store/jsonfile"
)

var (
	blobDir  = regexp.MustCompile(`^[a-f0-9]{2}$`)
	blobName = regexp.MustCompile(`^[a-f0-9]{64}\.txt$`)
	uuidText = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
	blobTemp = regexp.MustCompile(`^[a-f0-9]{64}\.txt\.(?:\d+\.)?` + uuidText + `\.tmp$`)
	tempTail = regexp.MustCompile(`^(?i:\.(?:\d+\.)?` + uuidText + `\.tmp)$`)
)

// isStoreTemp tells whether a name is that of a store's temporary file.
func isStoreTemp(name, store string) bool {
	tail, ok := strings.CutPrefix(name, store)
	return ok && tempTail.MatchString(tail)
}

// list reads the directory once, and the folders of skill prompts.
func (s *Snapshot) list(ctx context.Context) error {
	base := filepath.Base(s.Store)
	s.names, s.prompts, s.odd = map[string]int{}, map[string]int{}, map[string]bool{}
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the directory of transcripts: %w", err)
	}
	for _, d := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if d.IsDir() {
			s.odd[d.Name()] = true
			continue
		}
		info, err := d.Info()
		if err != nil {
			continue // gone since: somebody else works here
		}
		link := info.Mode()&fs.ModeSymlink != 0
		if !link && !info.Mode().IsRegular() {
			s.odd[d.Name()] = true
			continue
		}
		f := File{Base: d.Name(), Info: info, direct: !link}
		f.Item = jsonfile.Item{Name: jsonfile.NameOf(d.Name(), base), Path: filepath.Join(s.Dir, d.Name()), Size: info.Size(), ModTime: info.ModTime(), Link: link}
		s.names[f.Base] = len(s.Files)
		s.Files = append(s.Files, f)
	}
	s.listPrompts()
	return nil
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
		if !d.IsDir() || !blobDir.MatchString(d.Name()) {
			continue
		}
		dir := filepath.Join(root, d.Name())
		blobs, err := os.ReadDir(dir)
		if err != nil {
			s.Problems = append(s.Problems, fmt.Sprintf("the skill prompts cannot be listed: %v", err))
		}
		for _, b := range blobs {
			isBlob := blobName.MatchString(b.Name())
			if !b.Type().IsRegular() || !isBlob && !blobTemp.MatchString(b.Name()) {
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
