package maintenance

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"oc/store/agentdb"
	"oc/store/jsonfile"
	"oc/store/row"
	"oc/store/span"
	"oc/transcript"
)

// A Buried is an archived transcript of a session of a database: in the database, as a file beside it, or both.
type Buried struct {
	Name    string // of the archive, as a file
	Session string
	Key     string // of the session, as the database says it; "" where only the file is left
	At      time.Time
	Inside  bool // its bytes are in the database
}

// Unbury are the archives that a word means in a database and beside it, the newest first: a session key, a session id, or the name of an archive.
func Unbury(ctx context.Context, db *agentdb.DB, path, word string) (all []Buried, err error) {
	s := &Snapshot{Store: path, Dir: agentdb.ArtifactDir(path)}
	if err := s.list(ctx); err != nil {
		return nil, err
	}
	inside, err := db.FindArchives(word)
	if err != nil {
		return nil, err
	}
	for _, a := range inside {
		all = append(all, Buried{Name: a.Name, Session: a.SessionID, Key: a.Key, At: time.UnixMilli(a.CreatedAt), Inside: true})
	}
	for _, name := range s.Archives(word) {
		if !slices.ContainsFunc(all, func(b Buried) bool { return b.Name == name }) {
			n := jsonfile.NameOf(name, "")
			all = append(all, Buried{Name: name, Session: n.Session, At: n.At})
		}
	}
	slices.SortStableFunc(all, func(a, b Buried) int { return b.At.Compare(a.At) })
	return all, nil
}

// Exhume plans to bring back a session of a database from an archive of its transcript: its events are written again, and a row for it, with the
// key that the database says, or agent:<agent>:explicit:<session id> where that is not known or in use again. The row is not the one that was
// lost; its updatedAt is now, so that no age rule takes it at once. The archive stays. The error is a *Denied where its id is in use.
func Exhume(s *Snapshot, b Buried, now time.Time) (p *Plan, key string, err error) {
	deny := func(format string, args ...any) (*Plan, string, error) {
		return nil, "", &Denied{b.Name, fmt.Sprintf(format, args...)}
	}
	if !row.IsTranscriptID(b.Session) {
		return deny("its name holds no session id")
	}
	for i := range s.Rows {
		if s.Rows[i].ID == b.Session {
			return deny("the session %s has its id already", s.Rows[i].Key)
		}
	}
	used := func(key string) bool {
		_, there := s.byKey[key]
		return there || slices.ContainsFunc(s.Skipped, func(x row.Skipped) bool { return x.Key == key })
	}
	if key = b.Key; key == "" || used(key) {
		key = "agent:" + row.AgentID(s.Agent) + ":explicit:" + span.Lower(b.Session)
	}
	if used(key) {
		return deny("the key %s is in use already", key)
	}
	d := verbDraft(s, now)
	val := append([]byte(`{"sessionId":`), span.Quote(nil, b.Session)...)
	val = append(append(val, `,"updatedAt":`...), d.stampOf(d.now)...)
	val = append(append(val, `,"displayName":`...), span.Quote(nil, "restored, archived "+b.At.UTC().Format("2006-01-02"))...)
	val = append(val, `,"delivery":{"kind":"none"}}`...)
	d.add(key, val, "a row inferred from its archive")
	d.puts = append(d.puts, Action{Kind: Append, Key: key, Rule: ByHand, Reason: "the archive of " + b.At.UTC().Format("2006-01-02 15:04") + " becomes its transcript again", Applies: true, file: -1, write: func(w *agentdb.Writer) error {
		if n, err := w.DB().Size(b.Session); err != nil || n.Events > 0 {
			if err == nil {
				err = &Denied{b.Name, "there is a transcript with its id already"}
			}
			return err
		}
		if err := s.fill(w, b); err != nil {
			return err
		}
		return w.Put(key, val) // the window's times are those of the row
	}})
	return d.plan(), key, nil
}

// fill writes the events of an archive into the window of its session.
func (s *Snapshot) fill(w *agentdb.Writer, b Buried) error {
	var from io.Reader
	if b.Inside {
		blob, err := w.DB().ArchiveBytes(b.Session, b.Name)
		if err != nil {
			return err
		}
		from = bytes.NewReader(blob)
	} else {
		file, err := os.Open(s.in(b.Name))
		if err != nil {
			return err
		}
		defer file.Close()
		from = file
	}
	plain, err := transcript.Decompress(from)
	if err != nil {
		return fmt.Errorf("read the archive %s: %w", b.Name, err)
	}
	defer plain.Close()
	n := 0
	err = (&transcript.Scanner{}).Read(plain, func(r *transcript.Row) error {
		if r.Blank {
			return nil
		}
		if r.Err != nil {
			return fmt.Errorf("line %d: %w", r.Line, r.Err)
		}
		if version, _ := span.Float(span.Member(r.Raw, "version")); n == 0 && (r.Kind != transcript.Header || version < 3) {
			return &Denied{b.Name, "it does not begin with a header of version 3 or later, which OpenClaw wants in a database"}
		}
		n++
		_, err := w.Append(b.Session, r.Raw)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the archive %s: %w", b.Name, err)
	}
	if n == 0 {
		return &Denied{b.Name, "it is empty"}
	}
	return nil
}
