package awareness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"oc/store/lock"
	"oc/store/sqlfile"
)

// ErrPlace is a directory that OpenClaw uses, or would.
var ErrPlace = errors.New("OpenClaw's place")

// ErrMade is a directory in which [Init] made a signal log before.
var ErrMade = errors.New("there is one that oc made")

// Init makes a state database with nothing but a signal log in dir, for harnesses other than OpenClaw, and gives its
// path. A gateway does not start on such a database, so dir must be a place that OpenClaw neither uses nor would use:
// without openclaw.json, agents and state, and none of never, which are the places where OpenClaw would look in this
// environment. dir itself must exist. Errors are [ErrPlace], [ErrMade], or the file system's. now is in ms since 1970.
//
// The layout is that of schema 15 (2026.8.2), the last in which a watch does not belong to an agent database. As
// OpenClaw's it has a write-ahead log, unless the directory is on a file system that machines share.
func Init(ctx context.Context, dir string, never []string, now int64) (path string, err error) {
	is, err := os.Stat(dir)
	if err == nil && !is.IsDir() {
		err = &fs.PathError{Op: "open", Path: dir, Err: errors.New("it is not a directory")}
	}
	if err != nil {
		return "", fmt.Errorf("make a signal log: %w", err)
	}
	for _, p := range never {
		if other, err := os.Stat(p); err == nil && os.SameFile(is, other) || filepath.Clean(p) == filepath.Clean(dir) {
			return "", fmt.Errorf("make a signal log in %s: this is %w: it looks for its own state there; name another directory", dir, ErrPlace)
		}
	}
	if madeBefore(ctx, dir) {
		return "", fmt.Errorf("make a signal log in %s: %w: oc awareness watch and record use it", dir, ErrMade)
	}
	for _, name := range []string{"openclaw.json", "agents", "state"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return "", fmt.Errorf("make a signal log in %s: this is %w: it has %s; name another directory", dir, ErrPlace, name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("make a signal log: %w", err)
		}
	}
	// Made aside and moved whole, so that half a database is never found.
	aside, err := os.MkdirTemp(dir, ".state-*")
	if err != nil {
		return "", fmt.Errorf("make a signal log: %w", err)
	}
	defer os.RemoveAll(aside)
	file := filepath.Join(aside, filepath.Base(Path("")))
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return "", fmt.Errorf("make a signal log: %w", err)
	}
	err = sqlfile.Write(ctx, file, time.Second, func(tx *sqlfile.Tx) error {
		for _, sql := range layout {
			if _, err := tx.Exec(sql); err != nil {
				return err
			}
		}
		_, err := tx.Exec(`INSERT INTO schema_meta (meta_key, role, schema_version, app_version, created_at, updated_at)
			VALUES ('primary', 'global', 15, ?1, ?2, ?2)`, App, now)
		return err
	})
	if err == nil {
		if shared, _ := lock.Local().Elsewhere(dir); shared == "" { // a write-ahead log is for one machine
			err = sqlfile.LogAhead(file)
		}
	}
	if err != nil {
		return "", err
	}
	path = Path(dir)
	if err := os.Rename(aside, filepath.Dir(path)); err != nil {
		return "", fmt.Errorf("make a signal log: %w", err)
	}
	return path, nil
}

// madeBefore says whether what is in dir is the work of Init.
func madeBefore(ctx context.Context, dir string) bool {
	var is Schema
	err := Read(ctx, Path(dir), func(s *Snapshot) error {
		is = s.Schema()
		return nil
	})
	return err == nil && is.App == App
}

// App is what Schema.App says of a database that Init made.
const App = "oc"

// layout is spec/awareness.md 1.6 as of schema 15.
var layout = []string{
	`PRAGMA user_version = 15`,
	`CREATE TABLE session_state_events (
		sequence INTEGER PRIMARY KEY AUTOINCREMENT,
		dedupe_key TEXT UNIQUE,
		session_key TEXT NOT NULL,
		session_id TEXT,
		agent_id TEXT NOT NULL,
		kind TEXT NOT NULL,
		actor_type TEXT NOT NULL,
		actor_id TEXT,
		run_id TEXT,
		occurred_at INTEGER NOT NULL,
		summary TEXT NOT NULL,
		payload_json TEXT
	) STRICT`,
	`CREATE INDEX idx_session_state_events_session_sequence ON session_state_events (session_key, sequence DESC)`,
	`CREATE INDEX idx_session_state_events_time ON session_state_events (occurred_at DESC, sequence DESC)`,
	`CREATE TABLE session_state_heads (
		session_key TEXT NOT NULL,
		agent_id TEXT NOT NULL,
		last_sequence INTEGER NOT NULL,
		pruned_max_sequence INTEGER NOT NULL DEFAULT 0,
		updated_at INTEGER NOT NULL,
		PRIMARY KEY (session_key, agent_id)
	) STRICT`,
	`CREATE TABLE session_watch_cursors (
		watcher_session_key TEXT NOT NULL,
		target_session_key TEXT NOT NULL,
		last_seen_sequence INTEGER NOT NULL DEFAULT 0,
		notified_sequence INTEGER NOT NULL DEFAULT 0,
		material_sequence INTEGER NOT NULL DEFAULT 0,
		provenance TEXT NOT NULL DEFAULT 'explicit' CHECK (provenance IN ('explicit', 'ambient-group')),
		updated_at INTEGER NOT NULL,
		PRIMARY KEY (watcher_session_key, target_session_key)
	) STRICT`,
	`CREATE INDEX idx_session_watch_cursors_target ON session_watch_cursors (target_session_key)`,
	`CREATE TABLE session_upstream_links (
		session_key TEXT NOT NULL,
		agent_id TEXT NOT NULL,
		catalog_id TEXT NOT NULL,
		host_id TEXT NOT NULL,
		thread_id TEXT NOT NULL,
		upstream_kind TEXT NOT NULL,
		upstream_ref_json TEXT,
		last_marker_json TEXT,
		last_scanned_at INTEGER,
		created_at INTEGER NOT NULL,
		updated_at INTEGER NOT NULL,
		PRIMARY KEY (session_key, agent_id)
	) STRICT`,
	`CREATE INDEX idx_session_upstream_links_catalog_id ON session_upstream_links (catalog_id)`,
	`CREATE TABLE schema_meta (
		meta_key TEXT NOT NULL PRIMARY KEY,
		role TEXT NOT NULL,
		schema_version INTEGER NOT NULL,
		agent_id TEXT,
		app_version TEXT,
		created_at INTEGER NOT NULL,
		updated_at INTEGER NOT NULL
	) STRICT`,
}
