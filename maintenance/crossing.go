package maintenance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"oc/config"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/jsonfile"
	"oc/store/lock"
	"oc/store/row"
	"oc/store/span"
)

// What OpenClaw's import makes of something that is in its way.
const (
	Refuses = "refuses" // it does not begin, or leaves the whole agent as it is
	Leaves  = "leaves"  // this one stays a file, or is not taken whole
	Alters  = "alters"  // it is taken, and is something else afterwards
	Notes   = "note"    // to know beforehand
)

// An Obstacle is something that an import of files into a database takes otherwise than one would think. Code is OpenClaw's
// own where it has one (spec/sqlite-store.md 5).
type Obstacle struct {
	Code   string
	Effect string
	Agent  string
	Key    string // "" for none
	Path   string
	Says   string
	Remedy string
}

// A Crossing is what the import of one agent's files would take.
type Crossing struct {
	Agent       string
	Index       string
	Database    string
	State       string // which of the states of spec/sqlite-store.md 1.5 it is in
	Rows        int    // of the index
	Taken       int    // those that come into the database, with what no row names
	Transcripts int    // that are taken
	Events      int    // of them
	Unlinked    int    // transcripts that no row names
	Bytes       int64  // of what is read
	Obstacles   []Obstacle
}

// A Preflight is what can be known before an import.
type Preflight struct {
	Release   string
	Agents    []*Crossing
	Obstacles []Obstacle // of the whole state
	Room      []Room
}

// All are the obstacles of the state and of every agent.
func (p *Preflight) All() []Obstacle {
	all := append([]Obstacle(nil), p.Obstacles...)
	for _, a := range p.Agents {
		all = append(all, a.Obstacles...)
	}
	return all
}

// Foresee looks at the files of some agents as the import of a release does it, and changes nothing. release is
// "2026.8.2" or "2026.9.6".
func Foresee(ctx context.Context, c *config.Config, targets []store.Target, release string, m lock.Machine, now time.Time) (*Preflight, error) {
	p := &Preflight{Release: release}
	for _, run := range store.Imports(c.StateDir) {
		if !run.Done && !run.Restored {
			p.Obstacles = append(p.Obstacles, Obstacle{
				Code: "import_unfinished", Effect: Notes, Path: run.Manifest,
				Says:   "an import of agents " + strings.Join(run.Agents, ", ") + " did not end",
				Remedy: "it goes on where it stopped; oc migrate compare says what each side holds",
			})
		}
	}
	if _, ok := c.Value("meta", "lastTouchedAt"); ok && release == "2026.9.6" {
		p.Obstacles = append(p.Obstacles, Obstacle{
			Code: "config_outdated", Effect: Notes, Path: c.ConfigFile,
			Says: "the configuration has meta.lastTouchedAt, which 2026.9.6 refuses in every command but doctor --fix", Remedy: "begin with openclaw doctor --fix",
		})
	}
	var bytes int64
	for _, t := range targets {
		if t.Index == "" {
			continue
		}
		x := &crossing{Crossing: &Crossing{Agent: t.Agent, Index: t.Index, Database: config.DatabasePath(t.Index)}, ctx: ctx, config: c, release: release}
		if err := x.look(t, m, now); err != nil {
			return nil, err
		}
		bytes += x.Bytes
		p.Agents = append(p.Agents, x.Crossing)
	}
	p.room(c.StateDir, bytes)
	return p, nil
}

// room is what the import needs at once: the files stay until the database is whole, and it is made through a spool in the
// directory for temporary files and a log (spec/sqlite-store.md 5.4).
func (p *Preflight) room(state string, bytes int64) {
	disk := journal.OS()
	for _, r := range []Room{{Dir: state, Need: 2 * bytes}, {Dir: os.TempDir(), Need: bytes}} {
		if r.Free = -1; r.Need > 0 {
			if free, _, err := disk.Space(r.Dir); err == nil {
				r.Free = free
			}
		}
		p.Room = append(p.Room, r)
		if r.Free >= 0 && r.Free < r.Need {
			p.Obstacles = append(p.Obstacles, Obstacle{
				Code: "no_room", Effect: Refuses, Path: r.Dir,
				Says: fmt.Sprintf("the import takes about %d bytes there, and %d are free", r.Need, r.Free), Remedy: "make room; for temporary files another TMPDIR does as well",
			})
		}
	}
}

type crossing struct {
	*Crossing
	ctx     context.Context
	config  *config.Config
	release string
	kept    bool // the index stays
}

func (x *crossing) add(code, effect, key, path, says, remedy string) {
	x.Obstacles = append(x.Obstacles, Obstacle{code, effect, x.Agent, key, path, says, remedy})
}

func (x *crossing) look(t store.Target, m lock.Machine, now time.Time) error {
	dir := filepath.Dir(t.Index)
	if link := throughLink(x.config.StateDir, dir); link != "" {
		x.add("linked_directory", Refuses, "", link, "it is a link, and the import follows none", "put the directory itself in its place")
	}
	s, err := store.Open(x.ctx, x.config, store.Target{Agent: t.Agent, Index: t.Index, Databases: t.Databases})
	x.State = stateOf(s, t)
	if s.Era == store.SQLiteEra && s.Other == nil && s.Transcripts() == 0 {
		return nil // there is nothing to import
	}
	index, missing := x.index(t.Index)
	if err != nil && s.Era == store.SQLiteEra {
		x.add("sqlite_read_failed", Refuses, "", s.Path, err.Error(), "oc doctor says more of it; restore it from a backup")
	}
	items, problems := jsonfile.List(dir, filepath.Base(t.Index))
	for _, err := range problems {
		x.add("unreadable", Refuses, "", dir, err.Error(), "give the user that runs OpenClaw the right to read it")
	}
	place := jsonfile.Place{Store: t.Index, Agent: t.Agent, State: x.config.StateDir, Home: x.config.Home}
	named, canonical := map[string]bool{}, map[string]string{}
	if index != nil {
		x.Rows = len(index.Entries) + len(index.Skipped)
		for _, sk := range index.Skipped {
			x.invalid(sk.Key, sk.Reason)
		}
		for i := range index.Entries {
			x.row(&index.Entries[i], place, named, canonical)
			if err := x.ctx.Err(); err != nil {
				return err
			}
		}
	}
	for _, it := range items {
		switch it.Class {
		case jsonfile.Live:
			if !named[realPath(it.Path)] && (index != nil || missing) {
				x.unlinked(it)
			}
		case jsonfile.Lock:
			if r := lock.Look(it.Path, m, now); r.State.Holds() {
				x.add("locked", Refuses, "", it.Path, "somebody writes the transcript: "+strings.Join(r.Evidence, "; "), "stop the gateway and wait until its runs are over")
			}
		}
	}
	return nil
}

// stateOf names the state of an agent (spec/sqlite-store.md 1.5).
func stateOf(s *store.Sessions, t store.Target) string {
	files := s.Era == store.FileEra || s.Other != nil && s.Other.Era == store.FileEra || s.Transcripts() > 0
	archive, _ := os.ReadDir(filepath.Join(filepath.Dir(filepath.Dir(t.Index)), "session-sqlite-import-archive"))
	switch {
	case s.Era == store.SQLiteEra && files:
		return "both"
	case s.Era == store.SQLiteEra && len(archive) > 0:
		return "migrated"
	case s.Era == store.SQLiteEra:
		return "database"
	case files:
		return "files"
	}
	return "none"
}

// throughLink is the first directory on the way from the state to dir that is a link.
func throughLink(state, dir string) string {
	rel, err := filepath.Rel(state, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	at := state
	for _, part := range strings.Split(rel, string(filepath.Separator)) {
		at = filepath.Join(at, part)
		if info, err := os.Lstat(at); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return at
		}
	}
	return ""
}

// index reads the store; missing says that there is none.
func (x *crossing) index(path string) (f *jsonfile.File, missing bool) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true
	}
	if err == nil {
		x.source("", path, info)
		x.Bytes += info.Size()
	}
	f, err = jsonfile.Read(path)
	var damage *row.Damage
	switch {
	case errors.As(err, &damage):
		code := "store_unreadable"
		if text, e := os.ReadFile(path); e == nil && span.Valid(text) == nil {
			code = "store_not_object"
		}
		x.add(code, Refuses, "", path, err.Error(), "oc repair index makes it anew from backups and transcripts")
		return nil, false
	case err != nil:
		x.add("store_unreadable", Refuses, "", path, err.Error(), "give the user that runs OpenClaw the right to read it")
		return nil, false
	}
	return f, false
}

// source tells what is wrong with a file as one that is moved away: links of both kinds, and one that is none.
func (x *crossing) source(key, path string, info fs.FileInfo) (fit bool) {
	switch at := journal.StampOf(info); {
	case at.Type == journal.Link:
		x.add("linked_source", Leaves, key, path, "it is a link: what it leads to is taken, and the link stays", "put the file itself in its place")
	case at.Type != journal.Plain:
		x.add("odd_source", Leaves, key, path, "it is a "+string(at.Type)+" and no file", "move it away")
		return false
	case at.Links > 1:
		x.add("hardlinked_source", Leaves, key, path, fmt.Sprintf("it has %d names: it is taken, and stays, because it could change under another name", at.Links), "remove the other name, or copy the file over itself")
	}
	return true
}

// invalid is a row that is passed over: the index then stays where it is, and with it what no row names.
func (x *crossing) invalid(key, why string) {
	if why == row.UnsafeID {
		x.add("session_id_invalid", Refuses, key, x.Index, why+", and the import ends at it", "oc doctor shows the row; take it out of the index")
		return
	}
	x.kept = true
	x.add("entry_invalid", Leaves, key, x.Index, why+": it is passed over, and the index stays", "take it out of the index; oc doctor shows it")
}

func (x *crossing) row(e *row.Entry, place jsonfile.Place, named map[string]bool, canonical map[string]string) {
	if id, _ := e.Text(row.SessionID); span.Trim(id) == "" {
		x.invalid(e.Key, "it has no session id")
		return
	}
	x.Taken++
	key := store.StoredKey(x.config, x.Agent, e.Key)
	switch other, twice := canonical[key]; {
	case twice:
		x.add("key_alias", Alters, e.Key, x.Index, "it means the same session as "+other+": both come, and OpenClaw lists neither until one is merged into the other", "see oc sessions show for both, and delete the one that is not wanted")
	case key != e.Key:
		x.add("key_alias", Alters, e.Key, x.Index, "it comes under this key, which is not canonical, and OpenClaw lists no session of the agent until it is "+key, "openclaw doctor --fix after the import")
	}
	canonical[key] = e.Key
	c, info, missing := place.Find(e)
	if missing || info == nil {
		x.add("transcript_missing", Notes, e.Key, c.Path, "its transcript is not there: the session comes without a history", "bring it back from an archive or a backup, or leave it")
		return
	}
	real := realPath(c.Path)
	if named[real] {
		return // another row has it too; it is read and put away once
	}
	named[real] = true
	x.transcript(e.Key, c.Path)
}

// transcript reads a transcript line by line, as the import does.
func (x *crossing) transcript(key, path string) {
	info, err := os.Lstat(path)
	if err != nil {
		x.add("transcript_unreadable", Leaves, key, path, err.Error(), "give the user that runs OpenClaw the right to read it")
		return
	}
	if !x.source(key, path, info) {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		x.add("transcript_unreadable", Leaves, key, path, err.Error(), "give the user that runs OpenClaw the right to read it")
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		x.Bytes += info.Size()
	}
	events, line := 0, 0
	bad := 0
	header := false
	r := bufio.NewReaderSize(f, 256<<10)
	for {
		raw, err := r.ReadBytes('\n')
		if line++; len(strings.TrimSpace(string(raw))) > 0 {
			switch {
			case span.Valid(raw) != nil || span.KindOf(raw) != span.Object:
				if bad == 0 {
					bad = line
				}
			default:
				if kind, _ := span.Text(span.Member(raw, "type")); kind == "session" && events == 0 {
					header = true
					if v, ok := span.Int(span.Member(raw, "version")); !ok || v < 3 {
						x.add("transcript_old", Alters, key, path, "its header says a version before 3: it is brought up to date", "")
					}
				}
				if bad == 0 {
					events++
				}
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			x.add("transcript_unreadable", Leaves, key, path, err.Error(), "restore it from a backup")
			return
		}
	}
	x.Transcripts++
	x.Events += events
	if bad > 0 {
		x.add("transcript_malformed", Leaves, key, path, fmt.Sprintf("line %d is no JSON object: only the %d before it are taken", bad, events), "oc repair transcript takes the broken line out and keeps it")
	}
	if !header && events > 0 {
		x.add("transcript_headless", Alters, key, path, "it does not begin with a header", "oc doctor --fix gives it one")
	}
}

// unlinked is a transcript that no row names (spec/sqlite-store.md 5.3).
func (x *crossing) unlinked(it jsonfile.Item) {
	x.Unlinked++
	if x.kept {
		x.add("transcript_unlinked", Leaves, "", it.Path, "no row names it, and it stays while the index does", "take out the rows that are none first")
		return
	}
	if x.release == "2026.8.2" {
		x.add("transcript_unlinked", Leaves, "", it.Path, "no row names it: it is moved to the import's archive and is in no list afterwards", "oc repair index gives it a row first")
		return
	}
	x.add("transcript_unlinked", Alters, "", it.Path, "no row names it: it becomes the archived session agent:"+x.Agent+":recovered:"+it.Session, "archive it first if it is not wanted: oc sessions cleanup does so when it is old")
	x.Taken++
	x.transcript("", it.Path)
}
