package agentdb

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"oc/store/row"
	"oc/store/span"
	"oc/store/sqlfile"
)

// A Fault is one way in which the tables of a database contradict each other, or the files beside it. Its text is the
// code that doctor gives it.
type Fault string

// The faults (spec/sqlite-store.md 2.2, 2.5 to 2.7; release 2026.9.6).
const (
	RowUnverified   Fault = "row-unverified"    // a sound row is marked as not looked at yet
	RowDoubted      Fault = "row-doubted"       // a sound row is marked as not sound
	ColumnsDiffer   Fault = "columns-differ"    // the columns of a row are not what its JSON says
	LineageDiffers  Fault = "lineage-differs"   // those that name its parents
	KeyNotCanonical Fault = "key-not-canonical" // OpenClaw stores the session under another key
	NoWindow        Fault = "node-no-window"    // a session's conversation is in no window
	NoNode          Fault = "window-no-node"    // a window is of a session that is not there
	EmptyWindow     Fault = "window-empty"      // a session's conversation has no event, and none in a cold archive
	OrphanIndex     Fault = "index-orphan"      // derived rows are of a conversation that has no event
	BrokenIndex     Fault = "index-broken"      // what was derived of a conversation contradicts its events
	DamagedArchive  Fault = "archive-damaged"   // the bytes of an archive are not those of its sum
	WaitingArchive  Fault = "archive-waiting"   // an archive is not written to its file yet
	LostArchive     Fault = "archive-file-gone" // the file of an archive is not there; the database has its bytes
	LostCold        Fault = "cold-archive-gone" // the file of a cold archive, the only copy, is not there or not whole
)

// A Flaw is a fault and where it is.
type Flaw struct {
	Fault
	Key, ID string // of the session, and of the conversation; "" where it is about none
	File    string // path, of a file beside the database
	Table   string // of derived rows
	Said    []string
}

// Audit holds the tables of the database against each other, and against the archives beside it. With deep the bytes of
// archives in it are held against their sums. Transcripts are not read. A database of the early betas has no flaws that
// are known.
func (db *DB) Audit(deep bool) ([]Flaw, error) {
	if db.schema.Era != Nodes {
		return nil, nil
	}
	a := &audit{db: db, deep: deep, dir: ArtifactDir(db.path)}
	for _, look := range []func() error{a.rows, a.windows, a.orphans, a.projections, a.archives, a.coldFiles} {
		if err := look(); err != nil {
			return nil, err
		}
	}
	return a.flaws, nil
}

type audit struct {
	db    *DB
	deep  bool
	dir   string // of artifacts
	flaws []Flaw
}

func (a *audit) tell(f Fault, key, id string, said ...string) {
	a.flaws = append(a.flaws, Flaw{Fault: f, Key: key, ID: id, Said: said})
}

// has tells whether a table has some columns.
func (a *audit) has(table string, columns ...string) (bool, error) {
	has, err := a.db.tx.Columns(table)
	return err == nil && !slices.ContainsFunc(columns, func(c string) bool { return !has[c] }), err
}

// lineage are the columns by which OpenClaw checks a row before it lists any.
var lineage = map[string]bool{"parent_session_key": true, "spawned_by": true, "fork_source_session_key": true}

// rows looks at each row by itself.
func (a *audit) rows() error {
	has, err := a.db.tx.Columns("session_nodes")
	if err != nil {
		return err
	}
	known, _ := nodeColumns(&row.Entry{}) // the names alone
	names := []string{"session_key", "current_session_id", "entry_json", "updated_at", selected(has, "entry_valid")}
	from := len(names)
	for _, c := range known {
		names = append(names, selected(has, c.name))
	}
	var index row.Indexer
	err = a.db.tx.Each("SELECT "+strings.Join(names, ", ")+" FROM session_nodes NOT INDEXED", func(r *sqlfile.Row) error {
		key, id, text := r.Text(0), r.Text(1), r.Bytes(2)
		if string(text) == "{}" {
			return nil
		}
		c := span.Cursor{B: text}
		e, err := index.Index(key, &c)
		if err == nil {
			err = span.End(text, c.At)
		}
		updated, ok := r.Int(3)
		if err != nil || unreadable(&e, id, float64(updated), ok) != "" {
			return nil //nolint:nilerr // a listing tells of it
		}
		if v, ok := r.Int(4); ok && v != 1 {
			fault := RowUnverified
			if v < 0 {
				fault = RowDoubted
			}
			a.tell(fault, key, id, fmt.Sprintf("entry_valid is %d, and its JSON is sound and agrees with its id and time", v))
		}
		var plain, parents []string
		should, err := nodeColumns(&e)
		for i := range should {
			is := r.Value(from + i)
			if err != nil || !has[should[i].name] || is == should[i].value {
				continue // a number that the column does not take is none of its faults
			}
			said := fmt.Sprintf("the column %s holds %s, the JSON says %s", should[i].name, inWords(is), inWords(should[i].value))
			if lineage[should[i].name] {
				parents = append(parents, said)
			} else {
				plain = append(plain, said)
			}
		}
		if len(plain) > 0 {
			a.tell(ColumnsDiffer, key, id, plain...)
		}
		if len(parents) > 0 {
			a.tell(LineageDiffers, key, id, parents...)
		}
		switch canonical := row.Canonical(key); {
		case canonical != key:
			a.tell(KeyNotCanonical, key, id, "OpenClaw looks for "+canonical)
		case !qualified(key):
			a.tell(KeyNotCanonical, key, id, "it names no agent")
		}
		return nil
	})
	slices.SortStableFunc(a.flaws, func(x, y Flaw) int { return strings.Compare(x.Key, y.Key) })
	return err
}

// inWords is a value of a column for people: what is longer than a name is none of theirs.
func inWords(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string:
		if len(v) > 80 {
			return "a text of " + fmt.Sprint(len(v)) + " bytes"
		}
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(v)
}

// qualified tells whether a key names its agent, or is one of the two that are nobody's.
func qualified(key string) bool {
	_, _, ok := row.Parse(key)
	return ok || key == "global" || key == "unknown"
}

// windows looks for sessions without a conversation, and the other way round.
func (a *audit) windows() error {
	if ok, err := a.has("session_windows", "session_id", "session_key"); !ok {
		return err
	}
	for _, x := range []struct {
		fault Fault
		query string
		said  string
	}{
		{NoWindow, `SELECT n.session_key, n.current_session_id FROM session_nodes n LEFT JOIN session_windows w ON w.session_id = n.current_session_id
			WHERE w.session_id IS NULL ORDER BY 1`, "no window has the session id of the row"},
		{NoNode, `SELECT w.session_key, w.session_id FROM session_windows w LEFT JOIN session_nodes n ON n.session_key = w.session_key
			WHERE n.session_key IS NULL ORDER BY 2`, "no row has the key of the window"},
	} {
		err := a.db.tx.Each(x.query, func(r *sqlfile.Row) error {
			a.tell(x.fault, r.Text(0), r.Text(1), x.said)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if ok, err := a.has("transcript_events", "session_id", "seq"); !ok {
		return err
	}
	cold, err := a.coldOnes()
	if err != nil {
		return err
	}
	return a.db.tx.Each(`SELECT n.session_key, w.session_id FROM session_nodes n JOIN session_windows w ON w.session_id = n.current_session_id
		WHERE n.entry_json <> '{}' AND NOT EXISTS (SELECT 1 FROM transcript_events e WHERE e.session_id = w.session_id) ORDER BY 1`, func(r *sqlfile.Row) error {
		if !cold[r.Text(1)] {
			a.tell(EmptyWindow, r.Text(0), r.Text(1), "the window has no event")
		}
		return nil
	})
}

// coldOnes are the conversations whose events lie in cold archives.
func (a *audit) coldOnes() (map[string]bool, error) {
	all, err := a.db.cold("", nil)
	ids := map[string]bool{}
	for i := range all {
		ids[all[i].SessionID] = true
	}
	return ids, err
}

// derivedBySession are the tables that OpenClaw derives from events, by session_id. The text index itself follows the second.
var derivedBySession = []string{"session_transcript_active_events", "session_transcript_fts_rows", "session_transcript_index_state"}

// orphans looks for derived rows of conversations without an event.
func (a *audit) orphans() error {
	cold, err := a.coldOnes()
	if err != nil {
		return err
	}
	for _, table := range derivedBySession {
		if ok, err := a.has(table, "session_id"); err != nil {
			return err
		} else if !ok {
			continue
		}
		err := a.db.tx.Each("SELECT d.session_id, count(*) FROM "+table+` d
			WHERE NOT EXISTS (SELECT 1 FROM transcript_events e WHERE e.session_id = d.session_id) GROUP BY 1 ORDER BY 1`, func(r *sqlfile.Row) error {
			if n, _ := r.Int(1); !cold[r.Text(0)] {
				a.flaws = append(a.flaws, Flaw{Fault: OrphanIndex, ID: r.Text(0), Table: table, Said: []string{fmt.Sprintf("%d rows of %s", n, table)}})
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// projections looks for derived rows that contradict the events. One that lags behind, or is to be made anew, is
// brought up to date by OpenClaw itself.
func (a *audit) projections() error {
	if ok, err := a.has("session_transcript_index_state", "session_id", "indexed_seq", "needs_rebuild", "active_event_count", "active_message_count"); !ok {
		return err
	}
	if ok, err := a.has("session_transcript_active_events", "session_id", "event_seq", "message_position"); !ok {
		return err
	}
	return a.db.tx.Each(`SELECT s.session_id, s.indexed_seq, s.active_event_count, s.active_message_count,
		(SELECT max(seq) FROM transcript_events e WHERE e.session_id = s.session_id) last,
		(SELECT count(*) FROM session_transcript_active_events x WHERE x.session_id = s.session_id) n,
		(SELECT count(message_position) FROM session_transcript_active_events x WHERE x.session_id = s.session_id) m,
		(SELECT count(*) FROM session_transcript_active_events x LEFT JOIN transcript_events e ON e.session_id = x.session_id AND e.seq = x.event_seq
			WHERE x.session_id = s.session_id AND e.seq IS NULL) lost,
		(SELECT session_key FROM session_windows w WHERE w.session_id = s.session_id)
		FROM session_transcript_index_state s WHERE s.needs_rebuild = 0 AND last IS NOT NULL
		AND (s.indexed_seq > last OR n <> s.active_event_count OR m <> s.active_message_count OR lost > 0) ORDER BY 1`, func(r *sqlfile.Row) error {
		v := func(i int) int64 { n, _ := r.Int(i); return n }
		var said []string
		if v(1) > v(4) {
			said = append(said, fmt.Sprintf("it reaches to event %d, and the last one is %d", v(1), v(4)))
		}
		if v(5) != v(2) || v(6) != v(3) {
			said = append(said, fmt.Sprintf("it counts %d events and %d messages on the active branch, and lists %d and %d", v(2), v(3), v(5), v(6)))
		}
		if v(7) > 0 {
			said = append(said, fmt.Sprintf("it lists %d events that are not there", v(7)))
		}
		a.tell(BrokenIndex, r.Text(8), r.Text(0), said...)
		return nil
	})
}

// archives holds the archives in the database against their sums and their files.
func (a *audit) archives() error {
	const table = "session_transcript_archives"
	if ok, err := a.has(table, "session_id", "session_key", "archive_name", "archive_blob", "archive_sha256", "published_at", "last_publish_error"); !ok {
		return err
	}
	blob := "NULL"
	if a.deep {
		blob = "archive_blob"
	}
	return a.db.tx.Each("SELECT session_key, session_id, archive_name, archive_sha256, published_at, last_publish_error, "+blob+" FROM "+table+" ORDER BY created_at, session_id", func(r *sqlfile.Row) error {
		name := r.Text(2)
		if a.deep {
			if sum := sha256.Sum256(r.Bytes(6)); hex.EncodeToString(sum[:]) != r.Text(3) {
				a.tell(DamagedArchive, r.Text(0), r.Text(1), "the archive "+name+" in the database is not what was archived")
			}
		}
		if r.Null(4) {
			said := []string{"the archive " + name + " is in the database alone"}
			if why := r.Text(5); why != "" {
				said = append(said, "the last try failed")
			}
			a.tell(WaitingArchive, r.Text(0), r.Text(1), said...)
			return nil
		}
		path := filepath.Join(a.dir, filepath.Base(name))
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			a.flaws = append(a.flaws, Flaw{Fault: LostArchive, Key: r.Text(0), ID: r.Text(1), File: path, Said: []string{"it was written and is not there any more"}})
		}
		return nil
	})
}

// coldFiles looks for the files of cold archives.
func (a *audit) coldFiles() error {
	all, err := a.db.cold(" ORDER BY session_id", nil)
	for i := range all {
		c := &all[i]
		if c.InDatabase {
			continue
		}
		path := filepath.Join(a.dir, "cold", filepath.Base(c.Name))
		info, err := os.Stat(path)
		said := ""
		switch {
		case errors.Is(err, fs.ErrNotExist):
			said = "the file is not there"
		case err != nil:
			said = "the file cannot be looked at: " + err.Error()
		case !info.Mode().IsRegular():
			said = "it is no file"
		case info.Size() != c.Bytes:
			said = fmt.Sprintf("it has %d bytes, not %d", info.Size(), c.Bytes)
		default:
			continue
		}
		key, _, err := a.db.tx.Text("SELECT session_key FROM session_windows WHERE session_id = ?1", c.SessionID)
		if err != nil {
			return err
		}
		a.flaws = append(a.flaws, Flaw{
			Fault: LostCold, Key: key, ID: c.SessionID, File: path, Said: []string{said, fmt.Sprintf("%d events of the session are in it alone", c.Events)},
		})
	}
	return err
}
