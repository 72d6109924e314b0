package sqlfile

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// A Shape is how a database is laid out in its file. Pages are those of the snapshot, the log's included.
type Shape struct {
	PageSize int64 // bytes
	Pages    int64
	Free     int64  // pages that hold nothing
	Vacuum   string // how free pages leave the file: "none", "full" or "incremental"
	Ahead    bool   // it keeps a write-ahead log
}

// A Table is how much of the file belongs to a table, in bytes of whole pages. The shadow tables of a full-text index
// are counted with it.
type Table struct {
	Name    string
	Data    int64
	Indexes int64
	Unused  int64 // of both, what no row fills
}

// Bytes are those of the table and its indexes.
func (t *Table) Bytes() int64 { return t.Data + t.Indexes }

// Shape reads the header. The bytes of the file itself are its own affair: see [Sizes].
func (tx *Tx) Shape() (s Shape, err error) {
	for _, p := range []struct {
		name string
		to   *int64
	}{{"page_size", &s.PageSize}, {"page_count", &s.Pages}, {"freelist_count", &s.Free}} {
		n, ok, err := tx.Int("PRAGMA " + p.name)
		if err != nil {
			return s, err
		}
		if !ok {
			return s, fmt.Errorf("read %s: the engine gives no %s", tx.path, p.name)
		}
		*p.to = n
	}
	mode, _, err := tx.Int("PRAGMA auto_vacuum")
	if err != nil {
		return s, err
	}
	s.Vacuum = [...]string{"none", "full", "incremental"}[min(max(mode, 0), 2)]
	s.Ahead, err = tx.logsAhead()
	return s, err
}

// logsAhead looks at the header's own word: the engine calls the journal of an immutable file one of another kind.
func (tx *Tx) logsAhead() (bool, error) {
	version, _, err := tx.Text("SELECT hex(substr(data, 19, 1)) FROM sqlite_dbpage WHERE pgno = 1")
	return version == "02", err
}

// Tables measures every table by the pages of its trees, the largest first. It looks at every page of the file.
func (tx *Tx) Tables() ([]Table, error) {
	owner := map[string]string{} // of a tree: its table
	shadowed := []string{}       // virtual tables
	err := tx.Each("SELECT name, tbl_name, rootpage FROM sqlite_master WHERE type IN ('table', 'index')", func(r *Row) error {
		owner[r.Text(0)] = r.Text(1)
		if root, _ := r.Int(2); root == 0 {
			shadowed = append(shadowed, r.Text(0))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	byName := map[string]*Table{}
	err = tx.Each("SELECT name, pgsize, unused FROM dbstat('main', 1)", func(r *Row) error {
		tree := r.Text(0)
		name := cmp.Or(owner[tree], tree)
		for _, v := range shadowed {
			if strings.HasPrefix(name, v+"_") && slices.Contains(shadows, name[len(v)+1:]) {
				name = v
			}
		}
		t := byName[name]
		if t == nil {
			t = &Table{Name: name}
			byName[name] = t
		}
		bytes, _ := r.Int(1)
		unused, _ := r.Int(2)
		if t.Unused += unused; tree == cmp.Or(owner[tree], tree) {
			t.Data += bytes
		} else {
			t.Indexes += bytes
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := make([]Table, 0, len(byName))
	for _, t := range byName {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b Table) int { return cmp.Or(cmp.Compare(b.Bytes(), a.Bytes()), cmp.Compare(a.Name, b.Name)) })
	return all, nil
}

// shadows are the tables in which a full-text index keeps itself.
var shadows = []string{"data", "idx", "content", "docsize", "config"}

// Sizes are the bytes of a database file and of its log; 0 for a log that is not there. The error is the file system's
// for the database.
func Sizes(path string) (file, log int64, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, wrap(path, "read", err)
	}
	if beside, err := os.Stat(path + "-wal"); err == nil {
		log = beside.Size()
	}
	return info.Size(), log, nil
}

// Check asks the engine whether the database is sound: every page, every row, every index against its table, every
// reference. It says what it finds, at most so many lines; nothing for a sound one. A database that is too damaged to be
// checked gives one line too. It takes as long as reading all of the file a few times: do it on a copy, see [ReadCopy].
func (tx *Tx) Check(most int) (said []string, err error) {
	ask := func(query string, line func(r *Row) string) error {
		err := tx.Each(query, func(r *Row) error {
			if text := line(r); text != "" && len(said) < most {
				said = append(said, strings.Join(strings.Fields(text), " "))
			}
			return nil
		})
		if errors.Is(err, ErrCorrupt) {
			said = append(said, "SQLite gives up on it: "+corruption(err))
			return nil
		}
		return err
	}
	err = ask(fmt.Sprintf("PRAGMA integrity_check(%d)", most), func(r *Row) string {
		if text := r.Text(0); text != "ok" {
			return text
		}
		return ""
	})
	if err != nil {
		return nil, err
	}
	err = ask("PRAGMA foreign_key_check", func(r *Row) string {
		id, known := r.Int(1)
		row := fmt.Sprintf("row %d", id)
		if !known {
			row = "a row"
		}
		return fmt.Sprintf("%s of %s refers to one of %s that is not there", row, r.Text(0), r.Text(2))
	})
	return said, err
}
