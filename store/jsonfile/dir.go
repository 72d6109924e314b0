package jsonfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// An Item is a file in a sessions directory.
type Item struct {
	Name
	Path    string
	Size    int64 // bytes; of the link itself where it is one
	ModTime time.Time
	Link    bool // a symbolic link; it is not followed
}

// List lists the files of a sessions directory by name, those of the folders
// for prompts and cold archives included, and no other subfolders. What is
// neither a file nor a link is left out. A directory that is not there is
// empty; problems below it are returned beside what could be read.
func List(dir, store string) (items []Item, problems []error) {
	add := func(path string, n Name, info fs.FileInfo) {
		if link := info.Mode()&fs.ModeSymlink != 0; link || info.Mode().IsRegular() {
			items = append(items, Item{n, path, info.Size(), info.ModTime(), link})
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		problems = append(problems, err)
	}
	for _, d := range entries {
		path := filepath.Join(dir, d.Name())
		if d.IsDir() {
			class := map[string]Class{"skills-prompts": Prompt, "cold": Archive}[d.Name()]
			if class == "" {
				continue
			}
			err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				info, err := d.Info()
				if err == nil {
					add(p, Name{Class: class}, info)
				}
				return nil
			})
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				problems = append(problems, err)
			}
			continue
		}
		info, err := d.Info()
		if err != nil {
			continue // gone since: somebody else works here
		}
		add(path, NameOf(d.Name(), store), info)
	}
	return items, problems
}
