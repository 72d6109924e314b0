package awareness

import (
	"errors"
	"fmt"
	"strings"

	"oc/store/span"
	"oc/store/sqlfile"
)

// Versions of the state database's schema that are known to hold the log (spec/awareness.md 1.4).
const (
	oldest = 2  // 2026.7.2-beta.1
	newest = 18 // 2026.9.6
)

// The tables of the log.
const (
	events  = "session_state_events"
	heads   = "session_state_heads"
	cursors = "session_watch_cursors"
	links   = "session_upstream_links"
)

// required are the columns that every known version has. The order in which a table has them differs.
var required = map[string]string{
	events:  "sequence dedupe_key session_key session_id agent_id kind actor_type actor_id run_id occurred_at summary payload_json",
	heads:   "session_key agent_id last_sequence pruned_max_sequence updated_at",
	cursors: "watcher_session_key target_session_key last_seen_sequence notified_sequence material_sequence updated_at",
	links: "session_key agent_id catalog_id host_id thread_id upstream_kind upstream_ref_json last_marker_json " +
		"last_scanned_at created_at updated_at",
}

// Schema is what the database is (spec/awareness.md 1.4, 1.5).
type Schema struct {
	None       bool   // there is no database, or none of the log's tables in it
	Version    int64  // the effective version: the file's, or the later one that its content has during an update
	App        string // the release that last wrote the schema; empty in the oldest
	Newer      bool   // later than oc knows: read by its columns, never written
	Provenance bool   // cursors say whether they are ambient
	Stores     bool   // cursors say which agent database their watcher lives in
}

// Label describes a version that oc does not know, for people; empty for one that it does.
func (s Schema) Label() string {
	switch {
	case s.Newer:
		return fmt.Sprintf("schema %d is newer than oc knows (%d): read by its column names, never written", s.Version, newest)
	case !s.None && s.Version < oldest:
		return fmt.Sprintf("schema %d is not one that OpenClaw released with a signal log: read by its column names, never written", s.Version)
	}
	return ""
}

// owned says that a cursor belongs to one agent database, and that a row which names none is dormant. Release 2026.9.6
// reads a file of 2026.8.2 that way before it has added the column (spec/awareness.md 1.4, 3.2).
func (s Schema) owned() bool { return s.Stores || s.Version >= newest }

var (
	// ErrSchema is a database that does not hold the log as oc knows it.
	ErrSchema = errors.New("not a state database that oc can use")
	// ErrNone is a change where there is no database.
	ErrNone = errors.New("there is no awareness data")
	// ErrNewer is a change to a database of a version that oc does not write.
	ErrNewer = errors.New("schema is not one that oc writes")
)

// SchemaError says what is wrong with which database.
type SchemaError struct {
	Path   string
	Reason string
	Kind   error // ErrSchema, ErrNone, ErrNewer or ErrQuarantined
}

func (e *SchemaError) Error() string { return e.Path + ": " + e.Kind.Error() + ": " + e.Reason }

// Unwrap gives the kind.
func (e *SchemaError) Unwrap() error { return e.Kind }

// check learns the version and that the file is a state database. Tables are checked when they are used, so that damage
// to one leaves the others readable.
func (s *Snapshot) check() error {
	if err := s.columns(); err != nil {
		return err
	}
	v, err := s.version()
	if err != nil {
		return err
	}
	s.schema = Schema{
		Version: v, Newer: v > newest, None: true,
		Provenance: s.cols[cursors]["provenance"], Stores: s.cols[cursors]["watcher_store_path"],
	}
	for table := range required {
		s.schema.None = s.schema.None && len(s.cols[table]) == 0
	}
	if err := s.meta(); err != nil {
		return err
	}
	if s.schema.None && s.schema.Newer {
		return &SchemaError{s.path, fmt.Sprintf("schema %d is newer than oc knows and has no signal log where oc looks for it", v), ErrSchema}
	}
	return nil
}

// columns learns those of all tables in question at once: a change holds the lock meanwhile. What views and virtual tables
// compute is not to be trusted.
func (s *Snapshot) columns() error {
	s.cols = map[string]map[string]bool{}
	return s.tx.Each(`SELECT m.name, i.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS i
		WHERE m.type = 'table' AND m.rootpage > 0 AND m.name IN (?1, ?2, ?3, ?4, 'schema_meta', 'config_machine_state', 'sqlite_sequence')`,
		func(r *sqlfile.Row) error {
			table := r.Text(0)
			if s.cols[table] == nil {
				s.cols[table] = map[string]bool{}
			}
			s.cols[table][r.Text(1)] = true
			return nil
		}, events, heads, cursors, links)
}

// version is the larger of the file's and of its content's, which an update may have raised first.
func (s *Snapshot) version() (int64, error) {
	v, err := s.tx.UserVersion()
	cols := s.cols["config_machine_state"]
	if err != nil || !cols["state_key"] || !cols["value_json"] {
		return v, err
	}
	raw, _, err := s.tx.Text(`SELECT value_json FROM config_machine_state WHERE state_key = 'state.schema.contentVersion'`)
	if n, ok := span.Int([]byte(strings.TrimSpace(raw))); ok {
		v = max(v, n)
	}
	return v, err
}

// meta learns who made the database, and that it is the shared one.
func (s *Snapshot) meta() error {
	cols := s.cols["schema_meta"]
	if !cols["meta_key"] || !cols["role"] {
		return nil
	}
	app := "NULL"
	if cols["app_version"] {
		app = "app_version"
	}
	return s.tx.Each(`SELECT role, `+app+` FROM schema_meta WHERE meta_key = 'primary'`, func(r *sqlfile.Row) error {
		s.schema.App = r.Text(1)
		role := r.Text(0)
		if s.global = role == "global"; !s.global {
			return &SchemaError{s.path, fmt.Sprintf("it says that its role is %q, not \"global\"", role), ErrSchema}
		}
		return nil
	})
}

// need checks that the tables have the columns that oc reads. It is false where there is no log at all.
func (s *Snapshot) need(tables ...string) (bool, error) {
	if s.schema.None {
		return false, nil
	}
	for _, table := range tables {
		cols := s.cols[table]
		if len(cols) == 0 {
			return false, &SchemaError{s.path, "table " + table + " is missing", ErrSchema}
		}
		for name := range strings.FieldsSeq(required[table]) {
			if !cols[name] {
				return false, &SchemaError{s.path, "table " + table + " has no column " + name, ErrSchema}
			}
		}
	}
	return true, nil
}
