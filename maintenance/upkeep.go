package maintenance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"oc/maintenance/journal"
	"oc/store"
	"oc/store/sqlfile"
)

// An Upkeep is what keeping a database in shape does to it: nothing that it holds changes.
type Upkeep struct {
	Path                  string
	FileBefore, LogBefore int64 // bytes
	File, Log             int64 // bytes afterwards
	Rows                  int64 // of all tables, before and afterwards
	Room                  []Room
}

// Freed is how many bytes there are fewer on the disk.
func (u *Upkeep) Freed() int64 { return u.FileBefore + u.LogBefore - u.File - u.Log }

// Room is what a change needs while it is made, and what a file system has.
type Room struct {
	Dir        string
	Need, Free int64 // bytes; Free -1: unknown
}

// A NoRoom is a file system that is too full for what is to be done.
type NoRoom struct {
	Path string
	Room Room
}

func (e *NoRoom) Error() string {
	return fmt.Sprintf("%s: this needs %d bytes in %s, which has %d free; make room there, or set SQLITE_TMPDIR if it is the directory for temporary files", e.Path, e.Room.Need, e.Room.Dir, e.Room.Free)
}

// Unwrap makes it a journal.ErrNoRoom.
func (e *NoRoom) Unwrap() error { return journal.ErrNoRoom }

// An Unsound is a database that does not pass SQLite's check.
type Unsound struct {
	Path string
	Said []string
}

func (e *Unsound) Error() string {
	return fmt.Sprintf("%s does not pass SQLite's check: %s; keep a copy of it and restore a backup, or let openclaw doctor --fix rebuild what is derived", e.Path, e.Said[0])
}

// RoomFor is the room that a vacuum of the database takes, directories of one file system added up.
func RoomFor(path string) (all []Room, err error) {
	need, err := sqlfile.VacuumRoom(path)
	if err != nil {
		return nil, err
	}
	disk := journal.OS()
	byDevice := map[uint64]int{}
	for _, dir := range slices.Sorted(maps.Keys(need)) {
		at, err := disk.Lstat(realDir(dir))
		if err != nil {
			return nil, err
		}
		if i, ok := byDevice[at.Dev]; ok && at.Dev != 0 {
			all[i].Need += need[dir]
			continue
		}
		r := Room{Dir: dir, Need: need[dir], Free: -1}
		if free, _, err := disk.Space(dir); err == nil {
			r.Free = free
		}
		byDevice[at.Dev] = len(all)
		all = append(all, r)
	}
	return all, nil
}

// Checkpoint writes the log of a database back into it, see sqlfile.Checkpoint. See Vacuum for the errors.
func (w *Worker) Checkpoint(ctx context.Context, path string) (*Upkeep, error) {
	return w.upkeep(ctx, path, sqlfile.Checkpoint)
}

// Vacuum writes a database anew without its free pages, see sqlfile.Vacuum. It is checked before and afterwards: it must
// be sound, and hold as many rows in every table, under the same schema.
//
// Hold should be set. The errors are an *Unsound, a *NoRoom, a *sqlfile.Error, one that is
// journal.ErrRefused, or Hold's; all is then as before.
func (w *Worker) Vacuum(ctx context.Context, path string) (*Upkeep, error) {
	room, err := RoomFor(path)
	if err != nil {
		return nil, err
	}
	for _, r := range room {
		if r.Free >= 0 && r.Free < r.Need {
			return nil, &NoRoom{path, r}
		}
	}
	u, err := w.upkeep(ctx, path, sqlfile.Vacuum)
	if u != nil {
		u.Room = room
	}
	return u, err
}

type upkeeping func(ctx context.Context, path string, wait time.Duration) error

// stock is what is in a database: nothing of it may change.
type stock struct {
	version int64
	schema  map[string]string // of each object, the statement that makes it
	rows    map[string]int64  // of each table
}

func (s *stock) total() (n int64) {
	for _, rows := range s.rows {
		n += rows
	}
	return n
}

func (s *stock) same(path string, now *stock) error {
	if s.version == now.version && maps.Equal(s.schema, now.schema) && maps.Equal(s.rows, now.rows) {
		return nil
	}
	return fmt.Errorf("%s holds something else than before: somebody else wrote to it meanwhile, or it is damaged; compare it with a backup", path)
}

// inventory checks a database and counts what is in it.
func inventory(ctx context.Context, path string) (s *stock, err error) {
	err = sqlfile.Read(ctx, path, func(tx *sqlfile.Tx) error {
		s = &stock{schema: map[string]string{}, rows: map[string]int64{}}
		var err error
		if s.version, err = tx.UserVersion(); err != nil {
			return err
		}
		said, err := tx.Check(1)
		if err != nil {
			return err
		}
		if len(said) > 0 {
			return &Unsound{path, said}
		}
		var tables []string
		err = tx.Each("SELECT type, name, coalesce(sql, ''), rootpage FROM sqlite_master", func(r *sqlfile.Row) error {
			s.schema[r.Text(0)+" "+r.Text(1)] = r.Text(2)
			if root, _ := r.Int(3); root > 0 && r.Text(0) == "table" {
				tables = append(tables, r.Text(1))
			}
			return nil
		})
		for _, name := range tables {
			if err != nil {
				break
			}
			s.rows[name], _, err = tx.Int(`SELECT count(*) FROM "` + strings.ReplaceAll(name, `"`, `""`) + `"`)
		}
		return err
	})
	return s, err
}

func (w *Worker) upkeep(ctx context.Context, path string, do upkeeping) (u *Upkeep, failed error) {
	if err := ownName(path); err != nil {
		return nil, err
	}
	release, err := w.hold()
	if err != nil {
		return nil, err
	}
	defer func() { failed = errors.Join(failed, release()) }()
	if why, err := store.Quarantine(ctx, w.Config.StateDir, path); err != nil {
		return nil, err
	} else if why != "" {
		return nil, fmt.Errorf("%s: %w: OpenClaw has put it in quarantine (%s); give openclaw doctor --fix first", path, journal.ErrRefused, why)
	}
	if d, err := store.Stamps(ctx, path); err != nil {
		return nil, err
	} else if d.Newer {
		return nil, fmt.Errorf("%s: %w: it has schema %d, newer than oc knows; use a newer oc", path, journal.ErrRefused, d.Schema)
	}
	u = &Upkeep{Path: path}
	if u.FileBefore, u.LogBefore, err = sqlfile.Sizes(path); err != nil {
		return nil, err
	}
	before, err := inventory(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := do(ctx, path, w.Wait); err != nil {
		return nil, err
	}
	after, err := inventory(ctx, path)
	if err == nil {
		err = before.same(path, after)
	}
	if err != nil {
		return nil, err
	}
	u.Rows = before.total()
	u.File, u.Log, err = sqlfile.Sizes(path)
	return u, err
}

// ownName refuses a database of which another name would change too, or that is none.
func ownName(path string) error {
	disk := journal.OS()
	for _, beside := range []string{"", "-wal", "-shm", "-journal"} {
		at, err := disk.Lstat(path + beside)
		switch {
		case err != nil:
			return err
		case at.Type == journal.Absent:
		case at.Type != journal.Plain:
			return fmt.Errorf("%s: %w: it is a %s", path+beside, journal.ErrRefused, at.Type)
		case at.Links > 1:
			return fmt.Errorf("%s: %w: it has %d names, and would change under all of them", path+beside, journal.ErrRefused, at.Links)
		}
	}
	return nil
}
