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
	"oc/store/agentdb"
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
// does not count as used. In a database the row has memoryFlush in their place (release 2026.9.6); those of schema 19 keep what 2026.9.6 reads as
// well. The error is a *NoRow, or a *Denied: for an archived session, and for notes that are no file.
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
	m.d.put(i, row.Edit(r.Val, flushed(s, r, m.d)...), "its memory is flushed")
	return m.Plan(), nil
}

// flushed is what the row says of it.
func flushed(s *Snapshot, r *Row, d *draft) []row.Change {
	count, _ := r.Number(row.CompactionCount)
	cycle := d.stampOf(max(count, 0))
	if s.Schema >= agentdb.Newest {
		changes := []row.Change{{Name: row.MemoryFlush.String(), Val: fmt.Appendf(nil, `{"kind":"succeeded","compactionCount":%s}`, cycle)}}
		for _, f := range []row.Field{
			row.MemoryFlushAt, row.MemoryFlushCompactionCount, row.MemoryFlushContextHash, row.MemoryFlushFailureCount, row.MemoryFlushLastFailedAt,
			row.MemoryFlushLastFailureError,
		} {
			changes = append(changes, row.Change{Name: f.String()})
		}
		return changes
	}
	return []row.Change{
		{Name: row.MemoryFlush.String()},
		{Name: row.MemoryFlushAt.String(), Val: d.stampOf(d.now)},
		{Name: row.MemoryFlushCompactionCount.String(), Val: cycle},
		{Name: row.MemoryFlushFailureCount.String(), Val: []byte("0")},
		{Name: row.MemoryFlushLastFailedAt.String()},
		{Name: row.MemoryFlushLastFailureError.String()},
	}
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
