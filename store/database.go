package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"oc/config"
	"oc/store/agentdb"
	"oc/store/sqlfile"
)

// A Database is what a database file of OpenClaw says of itself, and where its bytes are.
type Database struct {
	Path       string
	Role       string // "agent", or "state" for the one that all agents share
	Agent      string // whose sessions it has; "" of the shared one
	Schema     int
	App        string // the release that stamped it; "" unknown
	Newer      bool   // than oc knows: it is read as far as it is understood
	Sessions   bool   // it holds session tables; one of a file-era release does not
	Quarantine string // why OpenClaw refuses to open it; "" for no reason

	File, Log int64     // bytes of the file, and of its write-ahead log
	Written   time.Time // when either was last written
	Mode      sqlfile.Mode
	Shape     sqlfile.Shape
	Tables    []sqlfile.Table
	Weight    *agentdb.Weight // nil where it has no session tables

	Lost     []string // cold files and published archives that it counts on and that are not there
	Problems []error  // what could not be read; the rest was
}

// newestState is the schema of the shared database of 2026.9.6, the newest that oc knows (spec/sqlite-store.md 1.1).
const newestState = 18

// Databases are the files that hold, or would hold, the sessions of a target: those that are there.
func Databases(t Target) (paths []string) {
	for _, path := range t.Databases {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			paths = append(paths, path)
		}
	}
	return paths
}

// Examine looks at a database in one snapshot, and names so many of its largest sessions. It changes nothing and takes
// no lock that a writer would feel; the larger the file, the longer it takes, because it looks at every page. What part
// of it is damaged is among the Problems. The error is that of a file that cannot be opened at all: fs.ErrNotExist or a
// *sqlfile.Error.
func Examine(ctx context.Context, c *config.Config, path string, largest int) (*Database, error) {
	d := &Database{Path: path}
	var err error
	if d.File, d.Log, err = sqlfile.Sizes(path); err != nil {
		return nil, err
	}
	for _, name := range []string{path, path + "-wal"} {
		if info, err := os.Stat(name); err == nil && info.ModTime().After(d.Written) {
			d.Written = info.ModTime()
		}
	}
	if d.File == 0 && d.Log == 0 {
		return d, &Damage{Path: path, Reason: "it is empty"}
	}
	var cold []agentdb.Cold
	var archives []agentdb.Archive
	err = sqlfile.Read(ctx, path, func(tx *sqlfile.Tx) error {
		d.Problems, d.Tables, d.Weight, cold, archives = nil, nil, nil, nil, nil
		d.Mode = tx.Mode()
		var err error
		if d.Shape, err = tx.Shape(); err != nil {
			return err
		}
		if err := d.stamps(tx); err != nil {
			return err
		}
		if d.Tables, err = tx.Tables(); err != nil {
			if err := d.damaged(err); err != nil {
				return err
			}
		}
		if d.Role == "state" {
			return nil
		}
		db, err := agentdb.Within(tx, path)
		if errors.Is(err, agentdb.ErrNoSessions) {
			return nil
		}
		if err == nil {
			d.Sessions = true
			if d.Weight, err = db.Weigh(largest); err == nil {
				cold, archives, err = db.Filed()
			}
		}
		if err != nil {
			return d.damaged(err)
		}
		return nil
	})
	if err != nil {
		return d, err
	}
	d.Lost = lost(path, cold, archives)
	if d.Quarantine, err = Quarantine(ctx, c.StateDir, path); err != nil {
		d.Problems = append(d.Problems, err)
	}
	return d, nil
}

// Stamps reads no more of a database than what it says it is. The error is fs.ErrNotExist or a *sqlfile.Error.
func Stamps(ctx context.Context, path string) (*Database, error) {
	d := &Database{Path: path}
	err := sqlfile.Read(ctx, path, func(tx *sqlfile.Tx) error {
		d.Problems = nil
		return d.stamps(tx)
	})
	return d, err
}

// damaged keeps an error that spoils a part, and hands on one that spoils all.
func (d *Database) damaged(err error) error {
	var odd *agentdb.Foreign
	if errors.Is(err, sqlfile.ErrCorrupt) || errors.Is(err, agentdb.ErrOdd) || errors.As(err, &odd) {
		d.Problems = append(d.Problems, err)
		return nil
	}
	return err
}

// stamps reads both stamps of the version (spec/sqlite-store.md 1.2).
func (d *Database) stamps(tx *sqlfile.Tx) error {
	v, err := tx.UserVersion()
	if err != nil {
		return err
	}
	d.Schema, d.Role = int(v), "agent"
	has, err := tx.Columns("schema_meta")
	if err != nil || !has["meta_key"] || !has["role"] || !has["schema_version"] {
		return err
	}
	return tx.Each("SELECT role, schema_version, agent_id, app_version FROM schema_meta WHERE meta_key = 'primary'", func(r *sqlfile.Row) error {
		if d.Agent, d.App = r.Text(2), r.Text(3); r.Text(0) == "global" {
			d.Role = "state"
		}
		d.Newer = d.Role == "state" && d.Schema > newestState || d.Role == "agent" && d.Schema > agentdb.Newest
		if stamped, ok := r.Int(1); ok && stamped != v {
			d.Problems = append(d.Problems, fmt.Errorf("%s: its header says schema %d, its content %d: an update of it did not end", d.Path, v, stamped))
		}
		return nil
	})
}

// lost are the files that a database counts on and that are not there.
func lost(path string, cold []agentdb.Cold, archives []agentdb.Archive) (names []string) {
	dir := config.ArtifactDir(path)
	gone := func(name string) {
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			names = append(names, name)
		}
	}
	for _, c := range cold {
		if !c.InDatabase {
			gone(filepath.Join(dir, "cold", filepath.Base(c.Name)))
		}
	}
	for _, a := range archives {
		if a.Published && a.Bytes == 0 { // what is in the database too is not lost
			gone(filepath.Join(dir, filepath.Base(a.Name)))
		}
	}
	return names
}

// CheckDatabase runs the engine's own check of a database on a private copy, and says what it found; nothing for a sound
// one. Where there is no room for the copy the error is a *sqlfile.Error with sqlfile.ErrNoRoom.
func CheckDatabase(ctx context.Context, path string) (said []string, err error) {
	err = sqlfile.ReadCopy(ctx, path, func(tx *sqlfile.Tx) (err error) {
		said, err = tx.Check(20)
		return err
	})
	if errors.Is(err, sqlfile.ErrCorrupt) || errors.Is(err, sqlfile.ErrNotDatabase) {
		return append(said, err.Error()), nil
	}
	return said, err
}
