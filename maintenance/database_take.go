package maintenance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"oc/config"
	"oc/store"
	"oc/store/agentdb"
	"oc/store/jsonfile"
	"oc/store/row"
	"oc/store/sqlfile"
)

// A Database is the snapshot of the sessions in one, with what only the database knows.
type Database struct {
	*Snapshot
	Schema int
	path   string
	db     *agentdb.DB
	rows   []agentdb.Row
	both   bool // the store of the file era is there, too: which of the files it needs is its business
}

// TakeDatabase looks at the sessions of a database in a snapshot of it. The errors are those of agentdb.Read.
func TakeDatabase(ctx context.Context, tx *sqlfile.Tx, c *config.Config, t store.Target, path string, p *Policy, now time.Time) (*Database, error) {
	db, err := agentdb.Within(tx, path)
	if err != nil {
		return nil, err
	}
	list, err := db.List(agentdb.Options{})
	if err != nil {
		return nil, err
	}
	s := &Snapshot{Agent: t.Agent, Store: path, Dir: config.ArtifactDir(path), Taken: now, byKey: make(map[string]int, len(list.Rows)), Rows: make([]Row, len(list.Rows))}
	s.Schema = list.Schema.UserVersion
	if s.fits, err = db.Fitting(); err != nil {
		return nil, err
	}
	d := &Database{Snapshot: s, Schema: list.Schema.UserVersion, path: path, db: db, rows: list.Rows}
	for _, x := range list.Skipped {
		s.Problems = append(s.Problems, fmt.Sprintf("the row %s is left as it is: %s", x.Key, x.Reason))
	}
	written := make(map[string]int64, len(list.Rows))
	err = tx.Each("SELECT session_id, updated_at FROM session_windows", func(r *sqlfile.Row) error {
		written[r.Text(0)], _ = r.Int(1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range list.Rows {
		r := &s.Rows[i]
		r.Entry, r.ID, r.HasTime, r.runtime = list.Rows[i].Entry, list.Rows[i].Columns.SessionID, true, -1
		r.Updated, _ = r.Number(row.UpdatedAt)
		r.Odd = r.Updated < 0 || r.inSeconds()
		r.Written = float64(written[r.ID])
		s.byKey[r.Key] = i
	}
	if p.FixMissing || p.Empty {
		if err := d.contents(tx); err != nil {
			return nil, err
		}
	}
	if p.Cron {
		s.cronJobs(ctx, c.StateDir)
	}
	if t.Index != "" {
		if _, err := os.Lstat(t.Index); err == nil {
			d.both = true
		}
	}
	items, problems := jsonfile.List(s.Dir, "")
	for _, err := range problems {
		s.Problems = append(s.Problems, err.Error())
	}
	for _, it := range items {
		s.Files = append(s.Files, File{Item: it, Base: filepath.Base(it.Path), direct: filepath.Dir(it.Path) == filepath.Clean(s.Dir) && !it.Link, blob: it.Class == jsonfile.Prompt})
	}
	return d, ctx.Err()
}

// contents tells which sessions have a message in their transcript.
func (d *Database) contents(tx *sqlfile.Tx) error {
	has := map[string]bool{}
	err := tx.Each("SELECT DISTINCT session_id FROM transcript_event_identities WHERE event_type = 'message'", func(r *sqlfile.Row) error {
		has[r.Text(0)] = true
		return nil
	})
	if err != nil {
		return err
	}
	enough := errors.New("enough")
	for i := range d.Rows {
		r := &d.Rows[i]
		r.Content = Messages
		if has[r.ID] {
			continue
		}
		r.Content = Empty
		err := d.db.Events(r.ID, func(e agentdb.Event) error {
			if isMessage(e.Line) {
				r.Content = Messages
				return enough
			}
			return nil
		})
		if err != nil && !errors.Is(err, enough) { // one that cannot be read may have messages
			r.Content = Messages
		}
	}
	return nil
}

// physical is what the database and its files take on disk, in bytes, as the budget counts it (spec/sqlite-store.md 3.3).
func (d *Database) physical() (total int64, err error) {
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(d.path + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	for i := range d.Files {
		if f := &d.Files[i]; !f.Link {
			total += f.Size
		}
	}
	return total, nil
}
