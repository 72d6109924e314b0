package store

import (
	"os"
	"path/filepath"
	"strings"

	"oc/config"
	"oc/store/jsonfile"
	"oc/store/span"
)

// An Import is a run in which OpenClaw moved sessions of files into databases
// (spec/sqlite-store.md 5.2).
type Import struct {
	Manifest string
	Agents   []string
	Done     bool // it came to its end
	Restored bool // the files were put back for a downgrade
}

// Imports are the runs that a state remembers, by file name. A manifest that
// cannot be read is one that did not end.
func Imports(stateDir string) (runs []Import) {
	paths, _ := filepath.Glob(filepath.Join(stateDir, "session-sqlite-migration-runs", "*.json"))
	for _, path := range paths {
		if strings.Contains(filepath.Base(path), ".failure.") {
			continue
		}
		run := Import{Manifest: path}
		if text, err := os.ReadFile(path); err == nil && span.Valid(text) == nil {
			run.Done = isSet(span.Member(text, "completedAt"))
			run.Restored = isSet(span.Member(text, "restore"))
			span.Items(span.Member(text, "targets"), 0, func(target []byte) error { //nolint:errcheck // valid
				if id, ok := span.Text(span.Member(target, "agentId")); ok {
					run.Agents = append(run.Agents, id)
				}
				return nil
			})
		}
		runs = append(runs, run)
	}
	return runs
}

// imported adds up the originals that an import has put away beside the
// sessions directory.
func imported(artifacts string) (a Amount) {
	entries, _ := os.ReadDir(filepath.Join(filepath.Dir(artifacts), "session-sqlite-import-archive"))
	for _, d := range entries {
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			a.Files++
			a.Bytes += info.Size()
		}
	}
	return a
}

// Transcripts counts the transcripts in the directory of an agent that has no
// store: they are sessions that no list shows.
func (s *Sessions) Transcripts() (n int) {
	items, _ := jsonfile.List(s.Dir(), config.StoreFile)
	for _, it := range items {
		if it.Class == jsonfile.Live {
			n++
		}
	}
	return n
}
