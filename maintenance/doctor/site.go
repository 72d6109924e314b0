package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"oc/config"
	"oc/maintenance"
	"oc/store"
	"oc/store/jsonfile"
)

// A site is one store, the directory of its transcripts and all that is in it.
type site struct {
	store.Target
	configured bool
	era        store.Era
	path       string // of the store that OpenClaw reads, or would
	dir        string // of the transcripts
	alone      bool   // no site before has this directory
	beside     *site  // the store of the other era, where that is looked at too

	// index is the sessions.json; nil where there is none, or none that is fit.
	index    *maintenance.Snapshot
	plan     *maintenance.Plan // of a cleanup with --fix-missing
	indexErr error

	// database is the sessions of the SQLite era; nil where there are none.
	database    *store.Sessions
	databaseErr error

	files   []file // in the directory, by name
	listErr error

	seen   map[string]*seen  // what transcripts tell of tokens, by key
	byFile map[string]string // keys of rows by the path of their transcript; see keyOf
}

// A file is what one name in the directory of transcripts stands for.
type file struct {
	jsonfile.Item
	base string
	info fs.FileInfo // of the name itself: links are not followed
}

// visit reads a store. Transcripts are not opened, except for small ones of
// which a rule of cleanup has to know whether messages are in them.
func (x *exam) visit(t store.Target) *site {
	s := &site{Target: t, era: store.NoEra, path: t.Index, alone: true}
	for _, id := range x.Config.StoreAgents() {
		s.configured = s.configured || id == t.Agent
	}
	base := config.StoreFile
	if t.Index != "" {
		s.dir, base = filepath.Dir(t.Index), filepath.Base(t.Index)
	} else {
		s.dir, s.path = config.ArtifactDir(t.Databases[0]), t.Databases[0]
	}
	for _, o := range x.sites {
		s.alone = s.alone && o.dir != s.dir
	}
	s.list(base)
	x.readIndex(s)
	x.readDatabase(s)
	return s
}

// readIndex reads the sessions.json, where there is one or transcripts show
// that there was.
func (x *exam) readIndex(s *site) {
	if s.Index == "" {
		return
	}
	policy := x.policy()
	snapshot, err := x.given, error(nil)
	if snapshot == nil {
		snapshot, err = maintenance.Take(x.ctx, x.Config, s.Target, policy, x.Machine, x.Now)
	}
	switch {
	case err != nil:
		s.indexErr = err
	case !snapshot.Absent:
		s.era, s.index, s.plan = store.FileEra, snapshot, maintenance.Make(policy, snapshot, x.Now)
	}
	var missing *maintenance.Missing
	if err != nil && !errors.As(err, &missing) {
		s.era = store.FileEra
	}
}

// policy is that of a cleanup with --fix-missing.
func (x *exam) policy() *maintenance.Policy {
	policy, _, err := maintenance.ReadPolicy(x.Config, maintenance.Orders{FixMissing: true})
	if err != nil { // a configuration that cannot be read is a finding of its own
		policy = maintenance.Alone()
		policy.FixMissing = true
	}
	return policy
}

// readDatabase reads the database, where there is one with sessions in it.
func (x *exam) readDatabase(s *site) {
	t := store.Target{Agent: s.Agent, Named: s.Named}
	for _, path := range s.Databases {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			if _, err := os.Lstat(path); err != nil {
				continue // not there; a link that leads nowhere is
			}
		}
		if err == nil && info.Size() == 0 && s.era == store.FileEra {
			continue // a release of the file era has made it
		}
		t.Databases = append(t.Databases, path)
	}
	if len(t.Databases) == 0 {
		return
	}
	sessions, err := store.Open(x.ctx, x.Config, t)
	switch {
	case err != nil:
		s.databaseErr = err
		if s.era == store.NoEra {
			s.era, s.path = store.SQLiteEra, sessions.Path
		}
	case sessions.Era == store.SQLiteEra:
		s.era, s.path, s.database = store.SQLiteEra, sessions.Path, sessions
		var missing *maintenance.Missing
		if errors.As(s.indexErr, &missing) {
			s.indexErr = nil // archives and the like lie beside a database too
		}
	}
}

// other is the index beside a database as a site of its own, as a release of
// the file era sees it; nil where there is none. What is in the directory both
// have in common.
func (s *site) other() *site {
	if s.database == nil || s.indexErr == nil && (s.index == nil || len(s.index.Rows) == 0) {
		return nil
	}
	o := *s
	o.era, o.path, o.database, o.databaseErr, o.alone, o.configured = store.FileEra, s.Index, nil, nil, false, true
	s.beside = &o
	return &o
}

// live is the index, where it is what OpenClaw reads; nil where it reads a
// database.
func (s *site) live() *maintenance.Snapshot {
	if s.era == store.FileEra {
		return s.index
	}
	return nil
}

// list reads the directory once.
func (s *site) list(store string) {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.listErr = err
	}
	s.files = make([]file, 0, len(entries))
	for _, d := range entries {
		info, err := d.Info()
		if err != nil {
			continue // gone since: somebody else works here
		}
		f := file{base: d.Name(), info: info}
		f.Item = jsonfile.Item{Name: jsonfile.NameOf(f.base, store), Path: filepath.Join(s.dir, f.base), Size: info.Size(), ModTime: info.ModTime(), Link: info.Mode()&fs.ModeSymlink != 0}
		s.files = append(s.files, f)
	}
}

// regular tells whether the name stands for a file.
func (f *file) regular() bool { return f.info.Mode().IsRegular() }

// at is a subject in the site.
func (s *site) at(path string) Subject {
	return Subject{Agent: s.Agent, Store: s.path, File: path, Byte: -1}
}

// row is a row of the site's store as a subject.
func (s *site) row(key string) Subject {
	return Subject{Agent: s.Agent, Store: s.path, Byte: -1, Key: key}
}

// measure adds up what there is to look at and tells it.
func (x *exam) measure() {
	r := x.report
	r.Size.Stores = len(x.sites)
	for _, s := range x.sites {
		v := Store{Agent: s.Agent, Configured: s.configured, Era: s.era, Path: s.path}
		switch {
		case s.database != nil:
			v.Rows = len(s.database.Rows)
			if s.index != nil && len(s.index.Rows) > 0 {
				v.Other = &store.Other{Era: store.FileEra, Path: s.Index, Rows: len(s.index.Rows)}
			} else if s.indexErr != nil {
				v.Other = &store.Other{Era: store.FileEra, Path: s.Index, Rows: -1, Why: s.indexErr.Error()}
			}
		case s.index != nil:
			v.Rows = len(s.index.Rows)
			if s.databaseErr != nil {
				v.Other = &store.Other{Era: store.SQLiteEra, Path: s.Databases[0], Rows: -1, Why: s.databaseErr.Error()}
			}
		case s.indexErr != nil || s.databaseErr != nil:
			v.Rows = -1
		}
		if s.alone {
			for i := range s.files {
				if f := &s.files[i]; f.regular() && f.Class == jsonfile.Live {
					v.Files++
					v.Bytes += f.Size
				}
			}
		}
		r.Size.Rows += max(v.Rows, 0)
		r.Size.Transcripts += v.Files
		r.Size.Bytes += v.Bytes
		r.Stores = append(r.Stores, v)
	}
	if x.Sized != nil {
		x.Sized(r.Size)
	}
}
