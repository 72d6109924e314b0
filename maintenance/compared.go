package maintenance

import (
	"context"
	"errors"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"oc/config"
	"oc/store"
	"oc/store/agentdb"
	"oc/store/jsonfile"
	"oc/transcript"
)

// A Pair is one transcript as files and as a database hold it, compared by the ids of its entries.
type Pair struct {
	Session    string
	Key        string // of the row in the database, else of the index; "" for none
	File       string // "" where no file has it
	InFile     int    // entries
	InDatabase int
	OnlyFile   int   // entries that the database lacks
	OnlyDB     int   // entries that the file lacks
	Err        error // why they could not be compared
}

// Same says that neither side has what the other lacks.
func (p *Pair) Same() bool { return p.Err == nil && p.OnlyFile == 0 && p.OnlyDB == 0 }

// A Compared is an agent whose sessions are, or were, in both eras.
type Compared struct {
	Agent    string
	State    string // see Crossing
	Index    string
	Database string
	OnlyFile []string // keys of rows that the database has not
	OnlyDB   []string // and the other way round
	Newer    []string // keys whose row in the index was used later than that in the database: somebody went on with an older release
	Pairs    []Pair   // transcripts that either side has, those that differ first
	Unread   []error
}

// Compare holds the files of an agent, those that an import has put away included, against its database. It changes
// nothing; memory is 8 bytes an entry of one transcript.
func Compare(ctx context.Context, c *config.Config, t store.Target) (*Compared, error) {
	s, err := store.Open(ctx, c, store.Target{Agent: t.Agent, Index: t.Index, Databases: t.Databases})
	x := &Compared{Agent: t.Agent, Index: t.Index, State: stateOf(s, t)}
	if s.Era == store.SQLiteEra {
		x.Database = s.Path
	}
	if err != nil {
		x.Unread = append(x.Unread, err)
	}
	keys := map[string]string{}
	inDB := map[string]*store.Row{}
	if s.Era == store.SQLiteEra {
		for i := range s.Rows {
			r := &s.Rows[i]
			inDB[r.Key], keys[r.ID()] = r, r.Key
		}
	}
	if f, err := jsonfile.Read(t.Index); err == nil {
		x.rows(c, f, inDB, keys)
	} else if !errors.Is(err, fs.ErrNotExist) {
		x.Unread = append(x.Unread, err)
	}
	files := transcriptFiles(t.Index)
	var ids []string
	if x.Database != "" {
		if err := agentdb.Read(ctx, x.Database, func(db *agentdb.DB) error {
			ids = nil
			all, err := db.Transcripts()
			for _, w := range all {
				ids = append(ids, w.SessionID)
				if keys[w.SessionID] == "" {
					keys[w.SessionID] = w.Key
				}
			}
			return err
		}); err != nil {
			x.Unread = append(x.Unread, err)
		}
	}
	for id := range files {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		p := Pair{Session: id, Key: keys[id], File: files[id]}
		if p.Err = p.compare(ctx, x.Database); ctx.Err() != nil {
			return nil, ctx.Err()
		}
		x.Pairs = append(x.Pairs, p)
	}
	slices.SortStableFunc(x.Pairs, func(a, b Pair) int { return truth(a.Same()) - truth(b.Same()) })
	return x, nil
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rows compares the index with the rows of the database.
func (x *Compared) rows(c *config.Config, f *jsonfile.File, inDB map[string]*store.Row, keys map[string]string) {
	seen := map[string]bool{}
	for i := range f.Entries {
		e := &f.Entries[i]
		key := store.StoredKey(c, x.Agent, e.Key)
		seen[key] = true
		r := inDB[key]
		if r == nil {
			x.OnlyFile = append(x.OnlyFile, e.Key)
			if id := e.ID(); keys[id] == "" {
				keys[id] = e.Key
			}
			continue
		}
		if at, ok := e.Updated(); ok && at > r.Updated {
			x.Newer = append(x.Newer, e.Key)
		}
	}
	for key := range inDB {
		if !seen[key] {
			x.OnlyDB = append(x.OnlyDB, key)
		}
	}
	slices.Sort(x.OnlyDB)
}

// transcriptFiles are the transcripts beside an index, else those that an import has put away, by session id.
func transcriptFiles(index string) map[string]string {
	files := map[string]string{}
	dir := filepath.Dir(index)
	away := filepath.Join(filepath.Dir(dir), "session-sqlite-import-archive")
	names, _ := os.ReadDir(away)
	for _, e := range names {
		name, _, ok := strings.Cut(e.Name(), ".jsonl.imported-")
		if !ok || strings.HasSuffix(name, ".trajectory") {
			continue
		}
		_, id, ok := cutLast(name, ".")
		if ok {
			files[id] = filepath.Join(away, e.Name())
		}
	}
	items, _ := jsonfile.List(dir, filepath.Base(index))
	for _, it := range items {
		if it.Class == jsonfile.Live && it.Session != "" {
			files[it.Session] = it.Path
		}
	}
	return files
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// compare counts what either side lacks.
func (p *Pair) compare(ctx context.Context, database string) error {
	seed := maphash.MakeSeed()
	hash := func(e *transcript.Entry) uint64 {
		if len(e.ID) > 0 {
			return maphash.Bytes(seed, e.ID)
		}
		return maphash.Bytes(seed, e.Raw)
	}
	have := map[uint64]bool{} // of the file; true once the database has it too
	if p.File != "" {
		f, err := os.Open(p.File)
		if err != nil {
			return err
		}
		defer f.Close()
		var scan transcript.Scanner
		err = scan.Read(f, func(r *transcript.Row) error {
			if r.Blank || r.Err != nil || r.Kind == transcript.Header {
				return nil
			}
			p.InFile++
			have[hash(&r.Entry)] = false
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	if database != "" {
		err := agentdb.Events(ctx, database, p.Session, func(e agentdb.Event) error {
			if e.Damage != nil {
				return nil
			}
			entry, err := transcript.Parse(e.Line)
			if err != nil || entry.Kind == transcript.Header {
				return nil //nolint:nilerr // no entry
			}
			p.InDatabase++
			h := hash(&entry)
			if _, both := have[h]; both {
				have[h] = true
			} else {
				p.OnlyDB++
			}
			return nil
		})
		if err != nil && !errors.Is(err, agentdb.ErrNoSessions) {
			return err
		}
	}
	for _, both := range have {
		if !both {
			p.OnlyFile++
		}
	}
	return nil
}
