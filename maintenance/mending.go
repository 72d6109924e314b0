package maintenance

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"oc/store/jsonfile"
	"oc/store/row"
)

// A Mending is a plan of repairs in the making: changes of single rows and
// files of one store, or of files beside it. Of several changes of one row all
// are kept; of one file there is at most one change, and a second is refused
// by Plan's journal. Nothing is looked at again: what a change is for must
// have been found in the snapshot, or with the FileInfo that is given.
type Mending struct {
	d    *draft
	puts map[string]int // actions by the key of their row
}

// Mend begins the repair of what a snapshot shows.
func Mend(s *Snapshot, now time.Time) *Mending {
	return &Mending{newDraft(Alone(), s, now), map[string]int{}}
}

// Snapshot is what is mended.
func (m *Mending) Snapshot() *Snapshot { return m.d.s }

// Busy says why a row must be left as it is: somebody works on it, or may. It
// is "" where nobody does.
func (m *Mending) Busy(r *Row) string {
	if by := m.d.inUse(r); by != "" {
		return m.d.sentence(by, r)
	}
	return ""
}

// Value is a row as the plan leaves it, raw; nil where there is none.
func (m *Mending) Value(key string) []byte {
	if i, ok := m.puts[key]; ok {
		return m.d.puts[i].Value
	}
	if r, ok := m.d.s.Row(key); ok && m.d.gone[m.d.s.byKey[key]] == "" {
		return r.Val
	}
	return nil
}

// Edit changes members of a row; all else in it keeps its bytes. A row that the
// store does not have begins as an empty one and stands last.
func (m *Mending) Edit(key string, rule Rule, reason string, changes ...row.Change) {
	val := m.Value(key)
	if val == nil {
		val = []byte("{\n  }")
	}
	m.Put(key, row.Edit(val, changes...), rule, reason)
}

// Put writes a row, which may be new.
func (m *Mending) Put(key string, val []byte, rule Rule, reason string) {
	if i, ok := m.puts[key]; ok {
		a := &m.d.puts[i]
		if a.Value, a.Bytes = val, int64(len(val)); a.Reason != reason {
			a.Reason += "; " + reason
		}
		return
	}
	if _, known := m.d.s.byKey[key]; !known {
		m.d.added++
	}
	m.puts[key] = len(m.d.puts)
	m.d.puts = append(m.d.puts, Action{Kind: PutRow, Key: key, Rule: rule, Reason: reason, Bytes: int64(len(val)), Value: val, Applies: true, file: -1})
}

// Retire takes a row out of the store, because others have all that it says,
// what was changed of it in this plan too.
func (m *Mending) Retire(key string, rule Rule, reason string) {
	if i, ok := m.puts[key]; ok {
		m.d.puts = slices.Delete(m.d.puts, i, i+1)
		delete(m.puts, key)
		for k, j := range m.puts {
			if j > i {
				m.puts[k] = j - 1
			}
		}
	}
	if i, ok := m.d.s.byKey[key]; ok && m.d.gone[i] == "" {
		m.d.dropFor(i, rule, reason)
	}
}

// Remove takes a file away; its bytes are in the undo.
func (m *Mending) Remove(path string, info fs.FileInfo, rule Rule, reason string) {
	m.act(Action{Kind: Remove, Target: path, Rule: rule, Reason: reason, info: info})
}

// Chmod gives a file or directory the permissions mode.
func (m *Mending) Chmod(path string, info fs.FileInfo, mode fs.FileMode, rule Rule, reason string) {
	m.act(Action{Kind: Chmod, Target: path, Mode: mode, Rule: rule, Reason: reason, info: info})
}

// Replace gives a file what content writes, which is called before anything
// changes and may stream from the file itself. Mode and owner stay; the old
// bytes are in the undo. While a transcript is replaced its lock is held.
func (m *Mending) Replace(path string, info fs.FileInfo, content func(io.Writer) error, rule Rule, reason string) {
	m.act(Action{Kind: Replace, Target: path, Content: content, Rule: rule, Reason: reason, info: info})
}

// Create makes a file that is not there, for its owner alone.
func (m *Mending) Create(path string, bytes int64, content func(io.Writer) error, rule Rule, reason string) {
	m.d.files = append(m.d.files, Action{Kind: Create, Target: path, Content: content, Rule: rule, Reason: reason, Bytes: bytes, Class: jsonfile.Other, Applies: true, file: -1})
}

func (m *Mending) act(a Action) {
	a.Applies, a.file, a.Bytes = true, -1, a.info.Size()
	if !a.info.IsDir() {
		a.Class = jsonfile.NameOf(filepath.Base(a.Target), filepath.Base(m.d.s.Store)).Class
	}
	m.d.files = append(m.d.files, a)
}

// Note says something about the plan that is no change.
func (m *Mending) Note(format string, args ...any) {
	m.d.notes = append(m.d.notes, fmt.Sprintf(format, args...))
}

// Plan is what has come together.
func (m *Mending) Plan() *Plan { return m.d.plan() }
