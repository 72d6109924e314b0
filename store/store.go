// Package store reads the sessions of an agent, whichever era keeps them: the
// file era in sessions.json, the SQLite era in openclaw-agent.sqlite.
//
// Which era an agent is in is told by what is on disk, never by a version or a
// file name alone (spec/sqlite-store.md 0 and 1.5): a database counts when it
// has session tables. Where both hold sessions the database is what OpenClaw
// reads from 2026.7.2 on, so it is opened, and the other is counted in Other.
// They are never merged, but OtherEra opens the other one too.
package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"oc/config"
	"oc/store/agentdb"
	"oc/store/jsonfile"
	"oc/store/row"
)

// What both eras share, and the damage that reading may meet.
type (
	Entry   = row.Entry
	Skipped = row.Skipped
	Damage  = row.Damage
)

// An Era is how an installation keeps its sessions.
type Era string

// The eras. NoEra is an agent without any sessions.
const (
	FileEra   Era = "file"
	SQLiteEra Era = "sqlite"
	NoEra     Era = "none"
)

// Sessions are the rows of a target, read whole.
type Sessions struct {
	Target
	Era     Era
	Path    string // of the store that was read; where it would be if there is none
	Bytes   int64  // of that file
	Rows    []Row  // in the order of the store
	Skipped []Skipped
	Schema  agentdb.Schema // of the database, in the SQLite era
	Other   *Other         // the other era, where it holds sessions too
	Beside  bool           // it is not what OpenClaw reads, but its other era

	Quarantine string // why OpenClaw refuses to open the database; "" for no reason
	Text       []byte // the whole store, in the file era

	config *config.Config
	byID   map[string]*Row // see owners; filled when it is first needed
}

// A Row is one session of a store.
type Row struct {
	row.Entry
	Updated float64 // updatedAt in epoch milliseconds as OpenClaw loads it; 0 where impossible
	HasTime bool    // whether it has an updatedAt at all
	Columns agentdb.Columns

	sessions *Sessions
}

// An Other is the store of the era that is not read.
type Other struct {
	Era  Era
	Path string
	Rows int // -1: unknown, it cannot be read
	Why  string
}

// Dir is where transcripts and other artifacts of the store are.
func (s *Sessions) Dir() string { return config.ArtifactDir(s.Path) }

// Place is what the search for transcripts needs to know of the store.
func (s *Sessions) Place() jsonfile.Place {
	store := s.Path
	if s.Era == SQLiteEra {
		store = filepath.Join(s.Dir(), config.StoreFile)
	}
	return jsonfile.Place{Store: store, Agent: s.Agent, State: s.config.StateDir, Home: s.config.Home}
}

// Open reads the sessions of a target. An agent without any is no error: its
// era is NoEra. The error is a *Damage, a *sqlfile.Error or one of the file
// system.
func Open(ctx context.Context, c *config.Config, t Target) (*Sessions, error) {
	s := &Sessions{Target: t, Era: NoEra, config: c}
	for _, path := range append([]string{t.Index}, t.Databases...) {
		if link := Dangling(path); link != "" {
			s.Path = path
			return s, &Damage{Path: path, Reason: "it cannot be reached: the link " + link + " leads nowhere"}
		}
	}
	index := false
	if t.Index != "" {
		_, err := os.Stat(t.Index)
		index = !errors.Is(err, fs.ErrNotExist)
	}
	if index && t.Named {
		if err := s.readIndex(); err != nil {
			return s, err
		}
		s.notice(ctx)
		return s, nil
	}
	for _, path := range t.Databases {
		err := s.readDatabase(ctx, path)
		if info, e := os.Stat(path); e == nil && info.Size() == 0 && !index && errors.Is(err, agentdb.ErrNoSessions) {
			err = &Damage{Path: path, Reason: "it is empty"} // and there is nothing else
		}
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, agentdb.ErrNoSessions):
			continue
		case err != nil && index:
			// The database cannot be read, but there is a store of files.
			if e := s.readIndex(); e != nil {
				return s, fmt.Errorf("%w; and %w", e, err)
			}
			s.Other = &Other{SQLiteEra, path, -1, err.Error()}
			return s, nil
		case err != nil:
			s.Era, s.Path = SQLiteEra, path
			return s, err
		}
		if index {
			s.Other = countIndex(t.Index)
		}
		return s, nil
	}
	s.Path = t.Index
	if t.Index == "" {
		s.Path = t.Databases[0]
	}
	if index {
		return s, s.readIndex()
	}
	return s, nil
}

// Dangling is the link on the way to a path that leads nowhere, as to a volume
// that is not mounted; "" for none. A path that is simply not there has none.
func Dangling(path string) string {
	for ; path != "" && path != filepath.Dir(path); path = filepath.Dir(path) {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				return path
			}
		}
		return ""
	}
	return ""
}

func (s *Sessions) readIndex() error {
	s.Era, s.Path = FileEra, s.Index
	f, err := jsonfile.Read(s.Index)
	if err != nil {
		return err
	}
	s.Bytes, s.Skipped, s.Text = int64(len(f.Text)), f.Skipped, f.Text
	s.Rows = make([]Row, len(f.Entries))
	for i, e := range f.Entries {
		r := Row{Entry: e, sessions: s}
		r.Updated, r.HasTime = e.Updated()
		s.Rows[i] = r
	}
	return nil
}

func (s *Sessions) readDatabase(ctx context.Context, path string) error {
	l, err := agentdb.List(ctx, path, agentdb.Options{})
	if err != nil {
		return err
	}
	s.Era, s.Path, s.Schema, s.Skipped = SQLiteEra, path, l.Schema, l.Skipped
	if s.Quarantine, err = Quarantine(ctx, s.config.StateDir, path); err != nil {
		s.Quarantine = "" // a damaged register of damaged databases proves nothing
	}
	s.Rows = make([]Row, len(l.Rows))
	for i, d := range l.Rows {
		r := Row{Entry: d.Entry, Columns: d.Columns, sessions: s}
		r.Updated, r.HasTime = r.Entry.Updated()
		s.Rows[i] = r
	}
	return nil
}

// notice looks for a database that holds sessions beside a store that was
// named by its path.
func (s *Sessions) notice(ctx context.Context) {
	for _, path := range s.Databases {
		if _, err := agentdb.Detect(ctx, path); err != nil {
			continue
		}
		if n, err := agentdb.Count(ctx, path); err != nil || n > 0 {
			s.Other = &Other{Era: SQLiteEra, Path: path, Rows: n}
			return
		}
	}
}

func countIndex(path string) *Other {
	f, err := jsonfile.Read(path)
	if err != nil {
		return &Other{FileEra, path, -1, err.Error()}
	}
	if len(f.Entries) == 0 {
		return nil
	}
	return &Other{FileEra, path, len(f.Entries), ""}
}

// ID is the session id as OpenClaw loads it: in the SQLite era as it stands,
// else see Entry.ID.
func (r *Row) ID() string {
	if r.sessions.Era == SQLiteEra {
		id, _ := r.Text(row.SessionID)
		return id
	}
	return r.Entry.ID()
}

// Bytes is the size of the row in its store.
func (r *Row) Bytes() int64 {
	if r.sessions.Era == SQLiteEra {
		return r.Columns.Bytes
	}
	return int64(len(r.Val))
}

// InSeconds tells a time that seems to be in seconds: read as milliseconds it
// lies in January 1970, read as seconds between 2001 and 2100. It is a guess,
// and never applied.
func (r *Row) InSeconds() bool { return r.Updated > 978_307_200 && r.Updated < 4_102_444_800 }

// Era is the era of the store that the row is in.
func (r *Row) Era() Era { return r.sessions.Era }

// Store is what the row was read from.
func (r *Row) Store() *Sessions { return r.sessions }
