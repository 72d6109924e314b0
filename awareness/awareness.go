// Package awareness reads and writes OpenClaw's signal log: the record of what others did to a session, kept in the
// state database that all agents share.
//
// Four nouns (spec/awareness.md, releases 2026.7.2-beta.1 to 2026.9.6):
//
//   - an [Event] says that a session changed; its sequence is the session's version;
//   - a [Cursor] says how much of a target's log a watcher has seen; it is the pure state machine of the log;
//   - a [Notice] is the one line that a watcher is told when it falls behind;
//   - [Changes] are the events after a version, which is how a watcher catches up.
//
// [Read] gives one snapshot, [Update] one short immediate transaction. Neither makes or alters a table: the database is
// OpenClaw's. [Init] makes one for other harnesses where OpenClaw has none and would have none.
//
// Recording is best effort: an event that is not there does not prove that nothing happened. Sequences are shared by all
// sessions, so that missing numbers mean nothing; only the pruned watermark tells of lost history.
package awareness

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"oc/store/sqlfile"
)

// Limits of OpenClaw's log (spec/awareness.md 2.1, 2.5, 5.1).
const (
	Retention = 30 * 24 * time.Hour // of events by their time, and of cursors by their last change
	MaxRows   = 50_000              // events that a prune leaves
	PageSize  = 200                 // events in one answer
	maxSkew   = 24 * time.Hour      // how far back an event may date itself
)

// Path is where the state database of a state directory is (spec/awareness.md 1.1).
func Path(stateDir string) string { return filepath.Join(stateDir, "state", "openclaw.sqlite") }

// Snapshot is one read transaction on the state database. It is valid inside the function that got it.
type Snapshot struct {
	tx     *sqlfile.Tx // nil where there is no database
	path   string
	schema Schema
	cols   map[string]map[string]bool // by table
	global bool                       // it says that it is the shared database
}

// Read calls f with a snapshot of the database at path, whose files stay as they were. Where there is no database, or an
// empty one, f gets a snapshot that is empty: see [Schema.None].
//
// f may be called again from the start, if the file changed under it: it must begin by forgetting what it collected.
//
// Errors are those of [sqlfile.Read], a [*SchemaError], or f's own.
func Read(ctx context.Context, path string, f func(s *Snapshot) error) error {
	var ours error
	err := sqlfile.Read(ctx, path, func(tx *sqlfile.Tx) error {
		ours = nil
		s := &Snapshot{tx: tx, path: path}
		if err := s.check(); err != nil {
			return err
		}
		ours = f(s)
		return ours
	})
	if ours == nil && errors.Is(err, fs.ErrNotExist) {
		return f(&Snapshot{path: path, schema: Schema{None: true}})
	}
	return err
}

// Schema is what the database is.
func (s *Snapshot) Schema() Schema { return s.schema }

// Path is the file that was asked for.
func (s *Snapshot) Path() string { return s.path }
