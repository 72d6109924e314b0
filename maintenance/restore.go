package maintenance

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oc/store/jsonfile"
	"oc/store/row"
	"oc/store/span"
)

// Unarchive plans to take sessions up again that were put aside: archivedAt
// goes (release 2026.7.35, sessions.patch). The error is a *NoRow, or a
// *Denied for one that is not archived.
func Unarchive(s *Snapshot, keys []string, now time.Time) (*Plan, error) {
	d := verbDraft(s, now)
	for _, key := range keys {
		i, err := s.index(key)
		if err != nil {
			return nil, err
		}
		r := &s.Rows[i]
		if !r.IsSet(row.ArchivedAt) {
			return nil, &Denied{key, "it is not archived"}
		}
		if d.idle(i) {
			d.put(i, row.Edit(r.Val, row.Change{Name: row.ArchivedAt.String()}, row.Change{Name: row.ArchiveReason.String()}, row.Change{Name: row.ArchivedBy.String()}, d.touched(r)), "it was named to be restored")
		}
	}
	return d.plan(), nil
}

// A Lost is a session without a row whose transcript is an archive.
type Lost struct {
	Archive string // the base name of the archive, in the directory of the store; "": the newest of the row's session
	Key     string // of the row as a run of oc saved it; "" where none did
	Row     []byte // that row, raw
	Run     string // the run
}

// Archives are the archives of deletions and resets in the directory that a
// word means, a session id or the name of one of them, the newest first.
func (s *Snapshot) Archives(word string) (names []string) {
	var found []*File
	for i := range s.Files {
		f := &s.Files[i]
		if f.direct && f.Class == jsonfile.Archive && (f.Reason == "deleted" || f.Reason == "reset") && (f.Base == word || word != "" && strings.EqualFold(f.Session, word)) {
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(a, b *File) int { return b.At.Compare(a.At) })
	for _, f := range found {
		names = append(names, f.Base)
	}
	return names
}

// Earlier are the archives of a row's earlier conversations.
func (s *Snapshot) Earlier(key string) (names []string) {
	r, ok := s.Row(key)
	if !ok {
		return nil
	}
	for _, id := range r.Texts(row.UsageFamilySessionIDs) {
		if id != r.ID {
			names = append(names, s.Archives(id)...)
		}
	}
	return names
}

// Restore plans to bring back a session from its archive: the transcript gets
// its name back, and the store a row, the one that was saved where there is
// one, else one that is inferred from the file's name. The key of that is
// agent:<agent>:explicit:<session id>, as OpenClaw gives it to a session that
// is named by its id alone; a saved key that is in use again is replaced by it
// too. The row's updatedAt is now, so that no age rule takes it at once.
// inferred tells that the row is not the one that was lost. The error is a
// *Denied where the archive is gone or compressed, or its id or name in use.
func Restore(s *Snapshot, l Lost, now time.Time) (p *Plan, key string, inferred bool, err error) {
	deny := func(reason string) (*Plan, string, bool, error) { return nil, "", false, &Denied{l.Archive, reason} }
	if l.Archive == "" && l.Row != nil {
		if e, err := row.New(l.Key, l.Row); err == nil {
			if names := s.Archives(e.ID()); len(names) > 0 {
				l.Archive = names[0]
			}
		}
	}
	if l.Archive == "" {
		return nil, "", false, &Denied{l.Key, "its transcript has no archive; oc undo " + l.Run + " brings back what that run changed"}
	}
	at, ok := s.names[l.Archive]
	if !ok {
		return deny("the archive is not there any more")
	}
	f := &s.Files[at]
	name := f.Base
	if i := strings.LastIndex(f.Base, "."+f.Reason+"."); i >= 0 {
		name = f.Base[:i]
	}
	switch {
	case f.Class != jsonfile.Archive || !f.direct || f.Reason == "bak" || f.Reason == "":
		return deny("it is no archive of a deletion or a reset")
	case f.Zstd:
		return deny("it is compressed, and so belongs to a database")
	case !row.IsTranscriptID(f.Session) || !strings.HasSuffix(name, ".jsonl"):
		return deny("its name holds no session id")
	case s.taken(name):
		return deny("there is a file " + name + " already")
	}
	for i := range s.Rows {
		if s.Rows[i].ID == f.Session {
			return deny("the session " + s.Rows[i].Key + " has its id already")
		}
	}
	d := verbDraft(s, now)
	key, val := l.Key, l.Row
	_, used := s.byKey[key]
	for _, x := range s.Skipped {
		used = used || x.Key == key
	}
	said := "the row that run " + l.Run + " saved"
	if inferred = val == nil; inferred {
		said = "a row inferred from the name of its archive"
	}
	if inferred || used {
		key = "agent:" + row.AgentID(s.Agent) + ":explicit:" + span.Lower(f.Session)
	}
	if _, used := s.byKey[key]; used {
		return deny("the key " + key + " is in use already")
	}
	path := filepath.Join(s.Dir, name)
	changes := []row.Change{
		{Name: row.SessionID.String(), Val: span.Quote(nil, f.Session)},
		{Name: row.UpdatedAt.String(), Val: d.stampOf(d.now)},
		{Name: row.SessionFile.String(), Val: span.Quote(nil, path)},
	}
	if val == nil {
		val = []byte("{\n    \"displayName\": " + string(span.Quote(nil, "restored, archived "+f.At.UTC().Format("2006-01-02"))) + "\n  }")
	} else {
		changes = append(changes, row.Change{Name: row.ArchivedAt.String()})
		if used { // what only one session can have stays with the one that has it
			changes = append(changes, row.Change{Name: row.Label.String()})
		}
		if e, err := row.New(key, val); err == nil {
			named, _ := e.Text(row.SessionFile)
			if filepath.Base(span.Trim(named)) == name || named == "" && name == f.Session+".jsonl" {
				changes = slices.DeleteFunc(changes, func(c row.Change) bool { return c.Name == row.SessionFile.String() })
			}
		}
	}
	d.add(key, row.Edit(val, changes...), said)
	d.do(Action{Kind: Move, Key: key, To: path, Place: true, Rule: ByHand, Reason: "the archive of " + f.At.UTC().Format("2006-01-02 15:04") + " becomes its transcript again", file: at})
	return d.plan(), key, inferred, nil
}

// taken tells whether there is anything of that name in the directory.
func (s *Snapshot) taken(base string) bool {
	_, there := s.names[base]
	return there || s.odd[base]
}
