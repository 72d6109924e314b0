package store

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"oc/store/lazy"

	"oc/config"
	"oc/store/agentdb"
	"oc/store/jsonfile"
	"oc/store/row"
	"oc/store/span"
	"oc/transcript"
)

// A Volume is one transcript of a corpus. Besides those of a session's own
// (Current, earlier, reset, deleted, bak, checkpoint), its Reason is "unlinked"
// for a live file that no row names, and "imported" for a file that an import
// into a database has put away.
type Volume struct {
	Conversation
	Agent string
	Era   Era
	Row   *Row // the session that it belongs to; nil where no row says so

	beside bool // it is of a store that OpenClaw does not read

	rank  int // of copies of one entry, that in the volume of the least rank counts
	order int // in the list that is worked on
}

// What is in a corpus besides the conversations of rows.
const (
	Unlisted   = "unlinked"
	Imported   = "imported"
	Checkpoint = "checkpoint"
	Earlier    = "earlier"
)

// Beside tells whether a volume is of an era that OpenClaw does not read.
func (v *Volume) Beside() bool { return v.beside || v.Row != nil && v.Row.sessions.Beside }

// Copy tells whether a volume holds what another one holds too, as a rule.
func (v *Volume) Copy() bool { return v.rank >= rankImported }

const (
	rankCurrent = iota
	rankArchive
	rankUnlinked
	rankBeside
	rankImported
	rankCheckpoint
)

// A Corpus is every transcript of some stores: of both eras, live and put away,
// named by a row or not, each file and each window once.
type Corpus struct {
	Stores   []*Sessions // those that were asked for, and those of their other eras
	Volumes  []*Volume   // the best first: what sessions go on with, archives, unlinked history, copies
	Problems []error     // what could not be looked at
}

// ReadCorpus lists the transcripts of stores and of their other eras. It reads
// directories and the tables of databases, no transcript.
func ReadCorpus(ctx context.Context, c *config.Config, opened []*Sessions) *Corpus {
	b := gatherer{config: c, paths: map[string]bool{}, dirs: map[string]directory{}, plain: map[string]*jsonfile.Item{}}
	for _, s := range opened {
		b.stores(ctx, s)
	}
	b.imports = importedKeys(c.StateDir)
	for _, s := range b.Stores {
		if s.Era == SQLiteEra {
			b.database(ctx, s)
		} else {
			b.rows(s)
		}
	}
	for _, s := range b.Stores {
		b.directory(s)
		b.putAway(s)
	}
	for _, v := range b.Volumes {
		if v.Beside() && v.rank < rankBeside {
			v.rank = rankBeside
		}
	}
	slices.SortStableFunc(b.Volumes, func(x, y *Volume) int {
		return cmp.Or(cmp.Compare(x.rank, y.rank), y.At.Compare(x.At), strings.Compare(x.Path, y.Path), strings.Compare(x.ID, y.ID))
	})
	return &b.Corpus
}

type gatherer struct {
	Corpus
	config  *config.Config
	paths   map[string]bool // files and directories that were looked at
	dirs    map[string]directory
	plain   map[string]*jsonfile.Item // files in those that are no links
	imports map[string]string         // base names of files put away -> session key
}

// stores adds a store and the one of its other era.
func (b *gatherer) stores(ctx context.Context, s *Sessions) {
	b.Stores = append(b.Stores, s)
	switch other, err := s.OtherEra(ctx); {
	case err != nil:
		b.Problems = append(b.Problems, err)
	case other != nil:
		b.Stores = append(b.Stores, other)
	}
}

// A directory is one that was listed.
type directory struct {
	items    []jsonfile.Item
	problems []error
	real     string // without links; "" where that is not known
}

// list lists the directory of a store, once.
func (b *gatherer) list(s *Sessions) directory {
	dir := s.Dir()
	if d, ok := b.dirs[dir]; ok {
		return d
	}
	var d directory
	d.items, d.problems = jsonfile.List(dir, filepath.Base(s.Place().Store))
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		d.real = real
	}
	for i := range d.items {
		if it := &d.items[i]; !it.Link && filepath.Dir(it.Path) == dir {
			b.plain[it.Path] = it
		}
	}
	b.dirs[dir] = d
	return d
}

// real is the path of a file without links; "" where that is not known. To
// follow them is to look at every directory on the way: not for each of
// thousands of files that lie in one.
func (b *gatherer) real(path string) string {
	if d := b.dirs[filepath.Dir(path)]; d.real != "" && b.plain[path] != nil {
		return filepath.Join(d.real, filepath.Base(path))
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	return real
}

func (b *gatherer) file(v *Volume) {
	if real := b.real(v.Path); real != "" && real != v.Path {
		if b.paths[real] {
			return
		}
		b.paths[real] = true
	}
	if !b.paths[v.Path] {
		b.paths[v.Path] = true
		b.Volumes = append(b.Volumes, v)
	}
}

// rows adds the transcripts that rows of files name, wherever they lie.
func (b *gatherer) rows(s *Sessions) {
	b.list(s)
	place := s.Place()
	for i := range s.Rows {
		r := &s.Rows[i]
		v := &Volume{Conversation: Conversation{Key: r.Key, ID: r.ID(), Reason: Current}, Agent: s.Agent, Era: FileEra, Row: r}
		if best := place.Candidates(&r.Entry); len(best) > 0 && b.plain[best[0].Path] != nil { // it was looked at with the directory
			it := b.plain[best[0].Path]
			v.Path, v.Bytes, v.At = it.Path, it.Size, it.ModTime
		} else {
			at, info, missing := r.Transcript()
			if missing {
				continue
			}
			v.Path, v.Bytes, v.At = at.Path, info.Size(), info.ModTime()
		}
		b.file(v)
	}
}

// database adds the windows of a database, and its archives that are no files.
func (b *gatherer) database(ctx context.Context, s *Sessions) {
	var windows []agentdb.Window
	var waiting []agentdb.Archive
	var keys []string
	err := agentdb.Read(ctx, s.Path, func(db *agentdb.DB) (err error) {
		if windows, err = db.Transcripts(); err == nil {
			waiting, keys, err = db.Waiting()
		}
		return err
	})
	if err != nil {
		b.Problems = append(b.Problems, err)
		return
	}
	rows := map[string]*Row{}
	for i := range s.Rows {
		rows[s.Rows[i].Key] = &s.Rows[i]
	}
	add := func(v *Volume, key string) {
		v.Key, v.Path, v.Agent, v.Era, v.Row, v.Rules, v.beside = key, s.Path, s.Agent, SQLiteEra, rows[key], transcript.DatabaseRules, s.Beside
		b.Volumes = append(b.Volumes, v)
	}
	for _, w := range windows {
		v := &Volume{Conversation: Conversation{ID: w.SessionID, Reason: Current, Bytes: -1, kept: inWindow}}
		if w.UpdatedAt > 0 {
			v.At = millis(w.UpdatedAt)
		}
		if !w.Current {
			if v.Reason, v.rank = w.Reason, rankArchive; v.Reason == "" {
				v.Reason = Earlier
			}
		}
		if w.Key == "" {
			v.Reason, v.rank = Unlisted, rankUnlinked
		}
		add(v, w.Key)
	}
	for i, a := range waiting {
		add(&Volume{
			Conversation: Conversation{ID: a.SessionID, Reason: a.Reason, At: millis(a.CreatedAt), Bytes: a.Bytes, kept: inArchive, archive: a.Name},
			rank:         rankArchive,
		}, keys[i])
	}
}

// owners are the rows by the ids that they have and had, in small letters. What
// a row has counts before what another one had.
func (s *Sessions) owners() map[string]*Row {
	rows := make(map[string]*Row, len(s.Rows))
	for i := range s.Rows {
		r := &s.Rows[i]
		for _, id := range r.Texts(row.UsageFamilySessionIDs) {
			rows[strings.ToLower(id)] = r
		}
	}
	for i := range s.Rows {
		if id := s.Rows[i].ID(); id != "" {
			rows[strings.ToLower(id)] = &s.Rows[i]
		}
	}
	return rows
}

// owner finds the row of any store that shares the directory.
func (b *gatherer) owner(dir, id string) *Row {
	for _, s := range b.Stores {
		if s.Dir() == dir {
			if s.byID == nil {
				s.byID = s.owners()
			}
			if r := s.byID[strings.ToLower(id)]; r != nil {
				return r
			}
		}
	}
	return nil
}

// directory adds the files beside a store that are not there yet.
func (b *gatherer) directory(s *Sessions) {
	dir := s.Dir()
	if b.paths[dir] {
		return
	}
	b.paths[dir] = true
	listed := b.list(s)
	b.Problems = append(b.Problems, listed.problems...)
	for _, it := range listed.items {
		v := &Volume{
			Conversation: Conversation{ID: it.Session, Reason: it.Reason, Path: it.Path, At: it.ModTime, Bytes: it.Size},
			Agent:        s.Agent, Era: FileEra, rank: rankArchive,
		}
		switch {
		case it.Link:
			continue // of what a row names the target was added
		case it.Class == jsonfile.Live:
			v.Reason, v.rank = Unlisted, rankUnlinked
		case archived(&it):
			v.At, v.expand = it.At, it.Zstd
			if it.Zstd {
				v.Era = SQLiteEra
			}
		case it.Class == jsonfile.Checkpoint:
			name := filepath.Base(it.Path)
			v.ID = jsonfile.SessionOf(name[:strings.Index(strings.ToLower(name), ".checkpoint.")])
			v.Reason, v.rank = Checkpoint, rankCheckpoint
		default:
			continue
		}
		if v.Row = b.owner(dir, v.ID); v.Row != nil {
			v.Key = v.Row.Key
			if v.Reason == Unlisted && !strings.EqualFold(v.ID, v.Row.ID()) {
				v.Reason = Earlier
			}
		}
		b.file(v)
	}
}

// putAwayName is <slug of key>.<name>.imported-<ms>[.n] (spec/sqlite-store.md 5.1).
var putAwayName = lazy.Regexp(`^(.+)\.jsonl((?:\.(?:reset|deleted|bak)\..+?)?)\.imported-(\d+)(?:\.\d+)?$`)

// putAway adds the files that an import moved out of the directory.
func (b *gatherer) putAway(s *Sessions) {
	dir := filepath.Join(filepath.Dir(s.Dir()), "session-sqlite-import-archive")
	if b.paths[dir] {
		return
	}
	b.paths[dir] = true
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.Problems = append(b.Problems, err)
	}
	keys := map[string]*Row{}
	for _, o := range b.Stores {
		for i := range o.Rows {
			if r := &o.Rows[i]; keys[r.Key] == nil && o.Dir() == s.Dir() {
				keys[r.Key] = r
			}
		}
	}
	for _, d := range entries {
		m := putAwayName().FindStringSubmatch(d.Name())
		if m == nil || strings.HasSuffix(m[1], ".trajectory") {
			continue
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		v := &Volume{
			Conversation: Conversation{ID: m[1][strings.LastIndexByte(m[1], '.')+1:], Reason: Imported, Path: filepath.Join(dir, d.Name()), Bytes: info.Size()},
			Agent:        s.Agent, Era: FileEra, rank: rankImported,
		}
		if ms, err := strconv.ParseInt(m[3], 10, 64); err == nil {
			v.At = time.UnixMilli(ms)
		}
		v.Key = b.imports[d.Name()]
		if v.Row = keys[v.Key]; v.Row == nil && v.Key == "" {
			v.Row = b.owner(s.Dir(), v.ID)
		}
		if v.Row != nil {
			v.Key = v.Row.Key
		}
		b.file(v)
	}
}

// importedKeys are the session keys that the manifests of imports know of the
// files they put away, by base name: the paths in them may be of another place.
func importedKeys(state string) map[string]string {
	keys := map[string]string{}
	for _, run := range Imports(state) {
		text, err := os.ReadFile(run.Manifest)
		if err != nil || span.Valid(text) != nil {
			continue
		}
		span.Items(span.Member(text, "targets"), 0, func(target []byte) error { //nolint:errcheck // valid
			for _, moves := range []string{"plannedMoves", "completedMoves"} {
				span.Items(span.Member(target, moves), 0, func(move []byte) error { //nolint:errcheck // valid
					path, _ := span.Text(span.Member(move, "archivePath"))
					if key, ok := span.Text(span.Member(move, "sessionKey")); ok && path != "" {
						keys[path[strings.LastIndexAny(path, `/\`)+1:]] = key
					}
					return nil
				})
			}
			return nil
		})
	}
	return keys
}
