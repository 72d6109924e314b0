// Package agentdb reads openclaw-agent.sqlite, the sessions of one agent in the SQLite era (spec/sqlite-store.md; table
// and column names as of OpenClaw 2026.8.2, schema 19, and 2026.9.6, schema 23).
//
// The file's name says nothing: file-era releases make one too, without sessions in it. [Detect] looks at the version
// stamp and the tables. Schemas 4 to 13 keep a session in session_entries and sessions, 14 and later in session_nodes
// and session_windows. Columns are asked for by name, so that additions do no harm; a newer schema is read as far as
// the columns that are used here still stand.
//
// Reading goes through [oc/store/sqlfile] and leaves no trace. What is read comes from one snapshot.
package agentdb

import (
	"context"
	"errors"
	"fmt"
	"os"

	"oc/store/sqlfile"
)

// Era is the shape of a database's session tables.
type Era string

// The eras.
const (
	Entries Era = "entries" // schema 4 to 13, the early betas
	Nodes   Era = "nodes"   // schema 14 and later
)

// Schemas that oc knows from the first to the last column, and the first and last that it has a description of.
const (
	oldest = 4
	newest = 23
)

// Newest is the schema of 2026.9.6, the newest that oc knows.
const Newest = newest

// Schema is what a database says of itself.
type Schema struct {
	UserVersion int    // PRAGMA user_version
	AppVersion  string // the release that stamped it; "" unknown
	AgentID     string // whose sessions they are; "" unknown
	Role        string // "agent"
	Era         Era
	Known       bool // 19 or 23: what 2026.8.2 and 2026.9.6 write
	Newer       bool // later than 23: read as far as it can be
}

// ErrNoSessions is the answer for a database that holds no sessions: that of a file-era release, or another one.
var ErrNoSessions = errors.New("no session store")

// ErrOdd is the answer for a database that is none of a file-era release and
// yet has no session tables: it was altered, or something else has its name.
var ErrOdd = errors.New("its tables are not those that OpenClaw makes at this schema")

// A Foreign is a newer database in which a column that oc needs is not there.
type Foreign struct {
	Path          string
	Version       int
	Table, Column string
}

func (e *Foreign) Error() string {
	return fmt.Sprintf("the sessions of %s have schema %d, which oc cannot read: %s has no column %s; a newer oc may", e.Path, e.Version, e.Table, e.Column)
}

// DB is an agent's database within one snapshot.
type DB struct {
	tx     *sqlfile.Tx
	path   string
	schema Schema
}

// Read calls f with one snapshot of the database at path. As with [sqlfile.Read], f may be called again from the start
// if the file changed while it was read without a lock. The error is ErrNoSessions, ErrOdd, a *Foreign, a *sqlfile.Error or f's.
func Read(ctx context.Context, path string, f func(db *DB) error) error {
	return sqlfile.Read(ctx, path, func(tx *sqlfile.Tx) error {
		db, err := Within(tx, path)
		if err != nil {
			return err
		}
		return f(db)
	})
}

// Within is the database at path in a snapshot that is there already. The errors are those of Read.
func Within(tx *sqlfile.Tx, path string) (*DB, error) {
	db := &DB{tx: tx, path: path}
	if err := db.detect(); err != nil {
		return nil, err
	}
	return db, nil
}

// Detect tells what a database is. The errors are those of Read.
func Detect(ctx context.Context, path string) (s Schema, err error) {
	err = Read(ctx, path, func(db *DB) error {
		s = db.schema
		return nil
	})
	return s, err
}

// Count is the number of rows of the session table, removed and hidden ones included. The errors are those of Read.
func Count(ctx context.Context, path string) (n int, err error) {
	err = Read(ctx, path, func(db *DB) error {
		c, _, err := db.tx.Int("SELECT count(*) FROM " + db.table() + " NOT INDEXED")
		n = int(c)
		return err
	})
	return n, err
}

// Schema is what the database says of itself.
func (db *DB) Schema() Schema { return db.schema }

// Mode is how the file was opened.
func (db *DB) Mode() sqlfile.Mode { return db.tx.Mode() }

func (db *DB) detect() error {
	if info, err := os.Stat(db.path); err == nil && info.Size() == 0 && db.tx.Mode() == sqlfile.Immutable {
		return fmt.Errorf("%s is empty: %w", db.path, ErrNoSessions)
	}
	v, err := db.tx.UserVersion()
	if err != nil {
		return err
	}
	db.schema = Schema{UserVersion: int(v), Known: v == 19 || v == newest, Newer: v > newest}
	switch {
	case v == 0 || v == 1: // a new one, or one of a file-era release
		return fmt.Errorf("%s (schema %d): %w", db.path, v, ErrNoSessions)
	case v < oldest:
		return fmt.Errorf("%s (schema %d): %w", db.path, v, ErrOdd)
	}
	nodes, err := db.tx.HasTable("session_nodes")
	if err != nil {
		return err
	}
	if db.schema.Era = Nodes; !nodes {
		for _, table := range []string{"session_entries", "sessions"} {
			has, err := db.tx.HasTable(table)
			if err != nil {
				return err
			}
			if !has {
				return fmt.Errorf("%s (schema %d): %w", db.path, v, ErrOdd)
			}
		}
		db.schema.Era = Entries
	}
	if err := db.need(db.table(), "session_key", db.idColumn(), "entry_json", "updated_at"); err != nil {
		return err
	}
	return db.readMeta()
}

func (db *DB) readMeta() error {
	cols, err := db.tx.Columns("schema_meta")
	if err != nil || !cols["meta_key"] || !cols["role"] || !cols["agent_id"] || !cols["app_version"] {
		return err
	}
	return db.tx.Each("SELECT role, agent_id, app_version FROM schema_meta WHERE meta_key = 'primary'", func(r *sqlfile.Row) error {
		db.schema.Role, db.schema.AgentID, db.schema.AppVersion = r.Text(0), r.Text(1), r.Text(2)
		return nil
	})
}

func (db *DB) need(table string, columns ...string) error {
	has, err := db.tx.Columns(table)
	if err != nil {
		return err
	}
	for _, c := range columns {
		if !has[c] {
			return &Foreign{db.path, db.schema.UserVersion, table, c}
		}
	}
	return nil
}

func (db *DB) table() string {
	if db.schema.Era == Entries {
		return "session_entries"
	}
	return "session_nodes"
}

func (db *DB) windows() string {
	if db.schema.Era == Entries {
		return "sessions"
	}
	return "session_windows"
}

func (db *DB) idColumn() string {
	if db.schema.Era == Entries {
		return "session_id"
	}
	return "current_session_id"
}

// selected writes the column, or a null where the table has none of that name.
func selected(has map[string]bool, column string) string {
	if has[column] {
		return column
	}
	return "NULL"
}
