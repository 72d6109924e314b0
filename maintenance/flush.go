package maintenance

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"oc/maintenance/journal"
	"oc/store/row"
)

// A Flush is what a session's memory gets, and where.
type Flush struct {
	Path    string                // of the notes of the day, in a directory that the Worker has as Notes
	Info    fs.FileInfo           // of the notes as they were read; nil where there were none
	Content func(io.Writer) error // all of them afterwards; nil: nothing was worth a note
}

// FlushMemory plans to write down what a session's conversation should leave behind, and what its row says of that: when, and in which
// cycle of compactions, as OpenClaw's flush does (spec/transcript.md 4, release 2026.7.35). Nothing else of the session changes, and it
// does not count as used. The error is a *NoRow, or a *Denied: for an archived session, and for notes that are no file.
func FlushMemory(s *Snapshot, key string, how Flush, now time.Time) (*Plan, error) {
	i, err := s.index(key)
	if err != nil {
		return nil, err
	}
	m := Mend(s, now)
	r := &s.Rows[i]
	if r.IsSet(row.ArchivedAt) {
		return nil, &Denied{key, "it is archived; restore it first"}
	}
	if !m.d.idle(i) {
		return m.Plan(), nil
	}
	if how.Content != nil {
		switch info, err := os.Lstat(how.Path); {
		case errors.Is(err, fs.ErrNotExist) && how.Info == nil:
			m.Create(how.Path, 0, how.Content, ByHand, "the notes of the day begin")
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			return nil, &Denied{key, fmt.Sprintf("its notes, %s, are no file but lead elsewhere", how.Path)}
		case how.Info == nil || !os.SameFile(info, how.Info) || info.Size() != how.Info.Size() || !info.ModTime().Equal(how.Info.ModTime()):
			return nil, fmt.Errorf("%s was written while it was read: %w", how.Path, journal.ErrChanged)
		default:
			m.Replace(how.Path, info, how.Content, ByHand, "notes are put behind those of the day")
			m.d.files[len(m.d.files)-1].Place = true
		}
	}
	count, _ := r.Number(row.CompactionCount)
	changes := []row.Change{
		{Name: row.MemoryFlushAt.String(), Val: m.d.stampOf(m.d.now)},
		{Name: row.MemoryFlushCompactionCount.String(), Val: m.d.stampOf(max(count, 0))},
		{Name: row.MemoryFlushFailureCount.String(), Val: []byte("0")},
		{Name: row.MemoryFlushLastFailedAt.String()},
		{Name: row.MemoryFlushLastFailureError.String()},
	}
	m.Edit(key, ByHand, "its memory is flushed", changes...)
	return m.Plan(), nil
}

// notesDir is a directory of notes as runs name it; "" where it is none that oc would follow: it must be called memory, and be a directory
// itself, since what a run says is not to be trusted with others.
func notesDir(dir string) string {
	if filepath.Base(dir) != "memory" || !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || realDir(dir) != dir {
		return ""
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}
