package maintenance

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oc/store/jsonfile"
	"oc/store/row"
	"oc/store/span"
)

// Rebuilt is the rule of rows that come back from a copy of their store.
const Rebuilt Rule = "rebuilt"

// Inferred is the rule of rows that no copy has: what a trajectory tells of its
// session and its transcript of the time.
const Inferred Rule = "inferred"

// A Source is something that rows of a lost store can be taken from.
type Source struct {
	Name string // base name of the file
	Kind string // "temporary file", "backup", "damaged copy", or "index" for the sound part of the store itself
	Rows int
	At   time.Time // when it was written
	Why  string    // why it cannot be used; "" where it can

	rows []row.Entry
}

// settled is how long ago a temporary file must have been written: one that is
// younger may still grow.
const settled = 10 * time.Second

// Sources are the copies of a store in its directory, those that can be used
// first, of them the newest first (field-reports.md S4). The snapshot must have
// been taken Beside the store. The sound part of the store itself, where there
// is one, comes last.
func Sources(s *Snapshot, now time.Time) (all []Source) {
	base := filepath.Base(s.Store)
	for i := range s.Files {
		f := &s.Files[i]
		tail, ok := strings.CutPrefix(f.Base, base+".")
		if !ok || !f.direct {
			continue
		}
		c := Source{Name: f.Base, At: f.ModTime}
		switch {
		case isStoreTemp(f.Base, base):
			c.Kind = "temporary file"
			if now.Sub(f.ModTime) < settled {
				c.Why = "it was written a moment ago and may still grow"
			}
		case strings.HasPrefix(tail, "bak"):
			c.Kind = "backup"
		case strings.HasPrefix(tail, "corrupt-"):
			c.Kind = "damaged copy"
		default:
			continue
		}
		if c.Why == "" {
			if store, err := jsonfile.Read(f.Path); err != nil {
				c.Why = err.Error()
			} else if c.rows = store.Entries; len(c.rows) == 0 {
				c.Why = "it has no row"
			}
			c.Rows = len(c.rows)
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b Source) int {
		if (a.Why == "") != (b.Why == "") {
			if a.Why == "" {
				return -1
			}
			return 1
		}
		return b.At.Compare(a.At)
	})
	if rows := soundPart(s.Store); len(rows) > 0 {
		own := Source{Name: base, Kind: "index", Rows: len(rows), rows: rows}
		if info, err := os.Stat(s.Store); err == nil {
			own.At = info.ModTime()
		}
		all = append(all, own)
	}
	return all
}

// soundPart is the rows of a store that is cut or damaged, up to the damage.
func soundPart(path string) (rows []row.Entry) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	c := span.Cursor{B: text}
	var x row.Indexer
	key, err := c.Open()
	for ; key != nil && err == nil; key, err = c.Next() {
		name, ok := span.Text(key)
		e, bad := x.Index(name, &c)
		if bad != nil || !ok {
			break
		}
		if e.Check() == "" {
			rows = append(rows, e)
		}
	}
	return rows
}

// Sound says that a store needs no rebuilding.
type Sound struct {
	Store string
	Rows  int
}

func (e *Sound) Error() string {
	return fmt.Sprintf("the index %s is sound and has %d rows", e.Store, e.Rows)
}

// NoSource is a store that cannot be rebuilt, because nothing holds its rows.
type NoSource struct{ Store, Name string }

func (e *NoSource) Error() string {
	if e.Name != "" {
		return fmt.Sprintf("there is no copy %s of %s that can be used", e.Name, e.Store)
	}
	return fmt.Sprintf("nothing beside %s holds its rows: no backup, no temporary file; transcripts do not tell the keys of their sessions", e.Store)
}

// Rebuild plans to make a lost store anew: the rows of the newest copy, or of
// the one with the given name, and where the store itself is cut those before
// the cut, which are newer. The damaged store is kept beside under OpenClaw's
// name for such a copy (spec/maintenance.md 4.4). No key is invented: what no
// row names stays unlinked. The snapshot must have been taken Beside the store.
// The error is a *Sound where a store with rows parses, a *NoSource, a *NotStore
// where something else than a file stands in its place, or one of the file
// system.
func Rebuild(s *Snapshot, name string, now time.Time) (*Plan, []Source, error) {
	if err := replaceable(s.Store); err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(s.Store)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Absent = true
	case err != nil:
		return nil, nil, fmt.Errorf("read the session store: %w", err)
	default:
		if f, err := jsonfile.Read(s.Store); err == nil && len(f.Entries) > 0 {
			return nil, nil, &Sound{s.Store, len(f.Entries)}
		}
		if s.Info, err = os.Stat(s.Store); err != nil {
			return nil, nil, err
		}
	}
	all := Sources(s, now)
	var base, own *Source
	for i := range all {
		c := &all[i]
		switch {
		case c.Why != "":
		case c.Kind == "index":
			own = c
		case base == nil && (name == "" || c.Name == name):
			base = c
		}
	}
	guessed := s.inferred()
	if len(guessed) > 0 {
		all = append(all, Source{Name: "trajectories", Kind: "transcripts", Rows: len(guessed), At: guessed[0].at})
	}
	if base == nil && (name != "" || own == nil && len(guessed) == 0) {
		return nil, all, &NoSource{s.Store, name}
	}
	s.Text = []byte("{}")
	m := Mend(s, now)
	from := func(c *Source, why string) {
		if c == nil {
			return
		}
		for i := range c.rows {
			m.Put(c.rows[i].Key, c.rows[i].Val, Rebuilt, why+c.Name)
		}
	}
	from(base, "it is in ")
	from(own, "it stands before the damage of ")
	m.infer(base, own, guessed)
	if !s.Absent && len(text) > 0 {
		m.Create(fmt.Sprintf("%s.corrupt-%d", s.Store, now.UnixMilli()), int64(len(text)), func(w io.Writer) error { _, err := w.Write(text); return err },
			Rebuilt, "the index as it is now is kept here")
	}
	if n := s.count(jsonfile.Live); n > 0 {
		m.Note("%d %s in the directory; those that no row names stay unlinked: oc sessions --history lists them", n, wordFor(n, "transcript lies", "transcripts lie"))
	}
	return m.Plan(), all, nil
}

// replaceable holds that a store is a file, perhaps behind a link, or nothing:
// a pipe would be waited for, and a link to nowhere tells of a disk that is not
// there.
func replaceable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		if to, bad := os.Readlink(path); bad == nil && errors.Is(err, fs.ErrNotExist) {
			return &NotStore{path, "it is a link to " + to + ", which is not there"}
		}
		return nil // what reads it says why
	}
	if what := jsonfile.KindOf(info.Mode()); what != "" {
		return &NotStore{path, "it is " + what}
	}
	return nil
}

// A guess is a session that only its trajectory tells of.
type guess struct {
	key, id, file string
	at            time.Time
}

// inferred are the sessions whose transcripts have a trajectory that names
// their key, the newest of each key, the newest first.
func (s *Snapshot) inferred() (all []guess) {
	newest := map[string]int{}
	for i := range s.Files {
		f := &s.Files[i]
		if f.Class != jsonfile.Live || !f.direct || f.Session == "" || !row.IsTranscriptID(f.Session) {
			continue
		}
		key := trajectoryKey(strings.TrimSuffix(f.Path, ".jsonl")+".trajectory.jsonl", f.Session)
		if _, _, ok := row.Parse(key); !ok || row.Canonical(key) != key {
			continue
		}
		g := guess{key, f.Session, f.Path, f.ModTime}
		if at, ok := newest[key]; !ok {
			newest[key] = len(all)
			all = append(all, g)
		} else if g.at.After(all[at].at) {
			all[at] = g
		}
	}
	slices.SortStableFunc(all, func(a, b guess) int { return b.at.Compare(a.at) })
	return all
}

// trajectoryKey is the key that the first line of a session's trajectory names;
// "" where it names none.
func trajectoryKey(path, id string) string {
	if !beginsTrajectory(path, id) {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, 1<<16))
	lines.Buffer(nil, 1<<16+1)
	for lines.Scan() {
		if key, ok := span.Text(span.Member([]byte(span.Trim(lines.Text())), "sessionKey")); ok {
			return key
		}
	}
	return ""
}

// infer adds rows for the sessions that no copy of the store has, by key or by
// id.
func (m *Mending) infer(base, own *Source, guessed []guess) {
	known := map[string]bool{}
	for _, c := range []*Source{base, own} {
		if c == nil {
			continue
		}
		for i := range c.rows {
			known[c.rows[i].Key], known[c.rows[i].ID()] = true, true
		}
	}
	for _, g := range guessed {
		if known[g.key] || known[g.id] {
			continue
		}
		m.Edit(g.key, Inferred, "no copy has it; its trajectory names the key",
			row.Change{Name: row.SessionID.String(), Val: span.Quote(nil, g.id)},
			row.Change{Name: row.UpdatedAt.String(), Val: span.AppendFloat(nil, float64(g.at.UnixMilli()))},
			row.Change{Name: row.SessionFile.String(), Val: span.Quote(nil, g.file)})
	}
}
