package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oc/store/jsonfile"
	"oc/store/row"
	"oc/store/span"
	"oc/store/sqlfile"
)

// A Trail is what a session is looked for by: its keys, and the ids of its
// transcripts.
type Trail struct {
	Keys []string
	IDs  []string
}

// TrailOf begins a trail with a word, which may be a key or an id, and the rows
// that it means.
func TrailOf(word string, rows []*Row) *Trail {
	t := &Trail{}
	if word = span.Trim(word); strings.Contains(word, ":") || !row.IsTranscriptID(word) {
		t.addKey(word)
	} else if len(rows) == 0 {
		t.addID(word)
		t.addKey(word)
	}
	for _, r := range rows {
		t.addRow(r)
	}
	return t
}

// Has tells whether a key or an id is on the trail.
func (t *Trail) Has(key, id string) bool { return t.hasKey(key) || t.hasID(id) }

func (t *Trail) addKey(key string) {
	if key != "" && !slices.Contains(t.Keys, key) {
		t.Keys = append(t.Keys, key)
	}
}

func (t *Trail) addID(id string) {
	if id != "" && !slices.ContainsFunc(t.IDs, func(o string) bool { return strings.EqualFold(o, id) }) {
		t.IDs = append(t.IDs, id)
	}
}

func (t *Trail) addRow(r *Row) {
	t.addKey(r.Key)
	for _, id := range r.IDs() {
		t.addID(id)
	}
}

// Row tells whether a saved row is one of the session's, and adds what it tells.
// val is its raw JSON.
func (t *Trail) Row(key string, val []byte) bool {
	e, err := row.New(key, val)
	if err != nil || !t.hasKey(key) && !t.hasID(e.ID()) {
		return false
	}
	t.addKey(key)
	for _, id := range append(e.Texts(row.UsageFamilySessionIDs), e.ID()) {
		t.addID(id)
	}
	return true
}

// Grow adds what the rows and transcripts of a corpus tell of each other.
func (t *Trail) Grow(c *Corpus) { t.grow(c.Volumes, c.Stores) }

func (t *Trail) hasKey(key string) bool {
	return slices.ContainsFunc(t.Keys, func(k string) bool { return k == key || row.Canonical(k) == row.Canonical(key) })
}

func (t *Trail) hasID(id string) bool {
	return id != "" && slices.ContainsFunc(t.IDs, func(o string) bool { return strings.EqualFold(o, id) })
}

// What a Sighting is of.
const (
	SeenRow        = "row"
	SeenTranscript = "transcript" // that a session goes on with, or that no row names
	SeenArchive    = "archive"    // put away by a reset, a deletion, a new id
	SeenCopy       = "copy"       // a checkpoint, or what an import put away
	SeenSidecar    = "sidecar"
	SeenBackup     = "store-backup" // a copy of a sessions.json that has the row
	SeenImport     = "import"       // a run of OpenClaw's that moved it into a database
)

// Torn is the Reason of a backup that cannot be read whole.
const Torn = "torn"

// A Sighting is one trace of a session on the disk.
type Sighting struct {
	Kind    string
	At      int64  // epoch ms of what it tells of; 0 unknown
	Era     Era    // "" where it is of none
	Agent   string // "" where it is of none
	Key, ID string
	Path    string
	Bytes   int64  // -1 unknown
	Why     string // what happened, in words
	Row     *Row   // of a row
	Reason  string // of a transcript, see Volume
}

// Follow finds every trace of a session in a corpus. The trail
// grows on the way: a row that is found adds its ids, a transcript its key.
// Problems are what could not be looked at.
func (t *Trail) Follow(ctx context.Context, c *Corpus) (seen []Sighting, problems []error) {
	volumes, stores := c.Volumes, c.Stores
	t.grow(volumes, stores)
	dirs := map[string]bool{}
	for _, s := range stores {
		for i := range s.Rows {
			if r := &s.Rows[i]; t.hasKey(r.Key) || t.hasID(r.ID()) {
				seen = append(seen, rowSeen(r))
			}
		}
		if dir := s.Dir(); !dirs[dir] {
			dirs[dir] = true
			more, errs := t.beside(s)
			seen, problems = append(seen, more...), append(problems, errs...)
		}
		if err := ctx.Err(); err != nil {
			return seen, append(problems, err)
		}
	}
	for _, v := range volumes {
		if t.hasKey(v.Key) || t.hasID(v.ID) {
			seen = append(seen, volumeSeen(v))
		}
	}
	slices.SortStableFunc(seen, func(a, b Sighting) int { // what has no time comes last
		if (a.At == 0) != (b.At == 0) {
			return b2i(a.At == 0) - b2i(b.At == 0)
		}
		return int(max(-1, min(1, a.At-b.At)))
	})
	return seen, problems
}

// grow adds what rows and transcripts tell of each other, until nothing is new.
func (t *Trail) grow(volumes []*Volume, stores []*Sessions) {
	for n := -1; n != len(t.Keys)+len(t.IDs); {
		n = len(t.Keys) + len(t.IDs)
		for _, s := range stores {
			for i := range s.Rows {
				if r := &s.Rows[i]; t.hasKey(r.Key) || slices.ContainsFunc(r.IDs(), t.hasID) {
					t.addRow(r)
				}
			}
		}
		for _, v := range volumes {
			if v.Key != "" && t.hasID(v.ID) || t.hasKey(v.Key) {
				t.addKey(v.Key)
				t.addID(v.ID)
			}
		}
	}
}

func rowSeen(r *Row) Sighting {
	s := r.sessions
	x := Sighting{Kind: SeenRow, Era: s.Era, Agent: s.Agent, Key: r.Key, ID: r.ID(), Path: s.Path, Bytes: r.Bytes(), Row: r, At: int64(r.Updated), Why: "its row, last written then"}
	if r.Archived() {
		x.Why = "its row, archived"
		if ms, ok := r.Stamp(row.ArchivedAt); ok {
			x.At = int64(ms)
		}
	}
	return x
}

func volumeSeen(v *Volume) Sighting {
	x := Sighting{Kind: SeenArchive, Era: v.Era, Agent: v.Agent, Key: v.Key, ID: v.ID, Path: v.Path, Bytes: v.Bytes, Reason: v.Reason}
	if !v.At.IsZero() {
		x.At = v.At.UnixMilli()
	}
	where := ""
	if v.InDatabase() {
		where = " in the database"
	}
	switch v.Reason {
	case Current:
		x.Kind, x.Why = SeenTranscript, "its transcript"+where
	case Unlisted:
		x.Kind, x.Why = SeenTranscript, "a transcript that no row names"+where
	case Imported:
		x.Kind, x.Why = SeenCopy, "its file, put away by an import into a database"
	case Checkpoint:
		x.Kind, x.Why = SeenCopy, "a copy from before a compaction"
	case Earlier:
		x.Why = "an earlier transcript of it" + where
	case "deleted":
		x.Why = "its transcript, put away when it was deleted" + where
	case "reset":
		x.Why = "a transcript, put away by a reset" + where
	case "bak":
		x.Why = "its transcript as it was before a rewrite" + where
	default:
		x.Why = "an earlier transcript of it, ended by " + v.Reason + where
	}
	return x
}

// beside finds sidecars, backups of the store that have the row, and what
// imports wrote down.
func (t *Trail) beside(s *Sessions) (seen []Sighting, problems []error) {
	items, problems := jsonfile.List(s.Dir(), filepath.Base(s.Place().Store))
	for _, it := range items {
		name := filepath.Base(it.Path)
		stem, _, _ := strings.Cut(name, ".trajectory")
		switch {
		case it.Class == jsonfile.Sidecar && t.hasID(jsonfile.SessionOf(stem)):
			seen = append(seen, Sighting{Kind: SeenSidecar, At: it.ModTime.UnixMilli(), Agent: s.Agent, ID: jsonfile.SessionOf(stem), Path: it.Path, Bytes: it.Size, Why: "the record of its runs"})
		case it.Session == "" && !it.Link && (it.Class == jsonfile.Archive && it.Reason == "bak" || it.Class == jsonfile.Temp):
			seen = append(seen, t.backup(s, it.Path, &problems)...)
		}
	}
	seen = append(seen, t.runs(s, seen)...)
	put, _ := filepath.Glob(filepath.Join(filepath.Dir(s.Dir()), "session-sqlite-import-archive", "legacy-store.*"))
	for _, path := range put {
		seen = append(seen, t.backup(s, path, &problems)...)
	}
	return seen, problems
}

// runs are the trajectories that lie elsewhere: where a pointer beside the
// transcript says, and in OPENCLAW_TRAJECTORY_DIR.
func (t *Trail) runs(s *Sessions, beside []Sighting) (seen []Sighting) {
	look := func(id, path string) {
		info, err := os.Lstat(path)
		known := func(x Sighting) bool { return x.Path == path }
		if err != nil || !info.Mode().IsRegular() || slices.ContainsFunc(beside, known) || slices.ContainsFunc(seen, known) {
			return
		}
		seen = append(seen, Sighting{Kind: SeenSidecar, At: info.ModTime().UnixMilli(), Agent: s.Agent, ID: id, Path: path, Bytes: info.Size(), Why: "the record of its runs, in a folder of its own"})
	}
	for i := range s.Rows {
		if r := &s.Rows[i]; s.Era == FileEra && t.Has(r.Key, r.ID()) {
			at, _, _ := r.Transcript()
			for _, path := range r.trajectories(at.Path) {
				look(r.ID(), path)
			}
		}
	}
	if dir := s.config.TrajectoryDir(); dir != "" {
		for _, id := range t.IDs {
			look(id, filepath.Join(dir, jsonfile.TrajectoryName(id)))
		}
	}
	return seen
}

// backup looks for the row in a copy of a store.
func (t *Trail) backup(s *Sessions, path string, problems *[]error) []Sighting {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		*problems = append(*problems, err)
		return nil
	}
	for _, key := range t.Keys {
		if bytes.Contains(text, append(span.Quote(nil, key), ':')) || bytes.Contains(text, append(span.Quote(nil, key), ": "...)) {
			x := Sighting{Kind: SeenBackup, At: info.ModTime().UnixMilli(), Agent: s.Agent, Key: key, Path: path, Bytes: info.Size(), Why: "a copy of the store that has its row"}
			if span.Valid(text) != nil {
				x.Reason, x.Why = Torn, "a torn copy of the store that names it"
			}
			return []Sighting{x}
		}
	}
	return nil
}

// ImportsOf are the runs that moved the session into a database.
func (t *Trail) ImportsOf(stateDir string) (seen []Sighting) {
	for _, run := range Imports(stateDir) {
		text, err := os.ReadFile(run.Manifest)
		if err != nil || span.Valid(text) != nil {
			continue
		}
		named := ""
		for _, key := range t.Keys {
			if bytes.Contains(text, span.Quote(nil, key)) {
				named = key
			}
		}
		for _, id := range t.IDs {
			if named == "" && bytes.Contains(text, []byte(id)) {
				named = id
			}
		}
		if named == "" {
			continue
		}
		x := Sighting{Kind: SeenImport, Path: run.Manifest, Bytes: -1, Why: "an import into a database"}
		if info, err := os.Stat(run.Manifest); err == nil {
			x.At = info.ModTime().UnixMilli()
		}
		began := span.Member(text, "startedAt")
		if ms, ok := span.Float(began); ok {
			x.At = int64(ms)
		} else if iso, ok := span.Text(began); ok {
			if at, err := time.Parse(time.RFC3339Nano, iso); err == nil {
				x.At = at.UnixMilli()
			}
		}
		switch {
		case run.Restored:
			x.Why += ", undone since"
		case !run.Done:
			x.Why += " that did not end"
		}
		seen = append(seen, x)
	}
	return seen
}

// Job tells whether a cron job is configured: table cron_jobs of the database
// that the agents of a state share (release 2026.7.35), or the file cron/jobs.json
// of older ones. known is false where neither can be asked.
func Job(ctx context.Context, stateDir, id string) (there, known bool, err error) {
	path := StateDatabase(stateDir)
	err = sqlfile.Read(ctx, path, func(tx *sqlfile.Tx) error {
		there, known = false, false
		has, err := tx.HasTable("cron_jobs")
		if err != nil || !has {
			return err
		}
		known = true
		_, there, err = tx.Text("SELECT job_id FROM cron_jobs WHERE job_id = ?1", id)
		return err
	})
	if err == nil && known {
		return there, true, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	text, e := os.ReadFile(filepath.Join(stateDir, "cron", "jobs.json"))
	if e != nil || span.Valid(text) != nil {
		if err != nil {
			err = fmt.Errorf("the cron jobs are unknown: %w", err)
		}
		return false, false, err
	}
	span.Items(span.Member(text, "jobs"), 0, func(job []byte) error { //nolint:errcheck // valid
		name, _ := span.Text(span.Member(job, "id"))
		there = there || name == id
		return nil
	})
	return there, true, nil
}
