package store

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oc/store/agentdb"
	"oc/store/jsonfile"
	"oc/store/row"
	"oc/transcript"
)

// A Conversation is one transcript, wherever it is kept: a file, an archive of
// one, a window of a database, or an archive in it. Reading it takes memory for
// its longest row, not for all of it.
type Conversation struct {
	Key     string    // of the session it belongs to; "" for a copy that no session names
	ID      string    // session id
	Reason  string    // "current", or why it is no longer that: reset, deleted, bak, earlier ...
	Path    string    // of the file, or of the database
	At      time.Time // when it was archived or last written; zero if that is not known
	Bytes   int64     // -1 if that is not known
	Missing bool      // there is none
	Odd     string    // what stands in its place, where that is no file: "a pipe"
	Rules   transcript.Rules

	kept    kept
	archive string // the name of an archive in the database
	expand  bool   // the file may be compressed
	event   int64  // the number of the event that is passed on, in a window
}

// kept says where the rows of a conversation are.
type kept uint8

const (
	inFile kept = iota
	inWindow
	inArchive
)

// Current says of a conversation that it is the one a session goes on with.
const Current = "current"

// InDatabase tells whether the rows are those of a database.
func (c *Conversation) InDatabase() bool { return c.kept != inFile }

// Same tells whether two are the same transcript in the same place.
func (c *Conversation) Same(o *Conversation) bool {
	return c.Path == o.Path && c.kept == o.kept && (c.kept == inFile || c.ID == o.ID && c.archive == o.archive)
}

// Plain tells whether the conversation is a file of lines, which can be read
// from its end.
func (c *Conversation) Plain() bool { return c.kept == inFile && !c.expand && !c.Missing }

// String names the conversation for people.
func (c *Conversation) String() string {
	switch c.kept {
	case inWindow:
		return fmt.Sprintf("session %s in %s", c.ID, c.Path)
	case inArchive:
		return fmt.Sprintf("archive %s in %s", c.archive, c.Path)
	}
	return c.Path
}

// Conversation is the transcript that the session goes on with. Where its file
// is gone, the newest of what a reset put away is read, as OpenClaw does
// (spec/session-tools.md 2.2).
func (r *Row) Conversation(ctx context.Context) (*Conversation, error) {
	c := &Conversation{Key: r.Key, ID: r.ID(), Reason: Current, Path: r.sessions.Path}
	if r.sessions.Era == SQLiteEra {
		c.ID, c.kept, c.Rules, c.Bytes = r.Columns.SessionID, inWindow, transcript.DatabaseRules, -1
		err := agentdb.Read(ctx, c.Path, func(db *agentdb.DB) error {
			size, err := db.Size(c.ID)
			c.Bytes, c.Missing = size.Bytes, size.Events == 0
			if size.Last > 0 {
				c.At = millis(size.Last)
			}
			return err
		})
		return c, err
	}
	at, info, missing := r.Transcript()
	c.Path = at.Path
	if !missing {
		c.Bytes, c.At = info.Size(), info.ModTime()
		return c, nil
	}
	for _, a := range r.lineage() { // the newest is the greatest
		if a.Reason == "reset" && strings.EqualFold(a.ID, c.ID) && (c.Reason == Current || a.At.After(c.At)) {
			c.Reason, c.Path, c.At, c.Bytes, c.expand = a.Reason, a.Path, a.At, a.Bytes, compressed(a.Path)
		}
	}
	if c.Missing = c.Reason == Current; c.Missing {
		c.Odd = at.Odd
	}
	return c, nil
}

// Conversations are all transcripts of the session, the oldest first and the
// current one last: those that a reset, a deletion or a rewrite put away, those
// of its earlier ids, and in a database its earlier windows and the archives in
// it.
func (r *Row) Conversations(ctx context.Context) ([]*Conversation, error) {
	current, err := r.Conversation(ctx)
	if err != nil {
		return nil, err
	}
	var all []*Conversation
	held := map[string]bool{} // names of archives in the database: their files are copies
	if r.sessions.Era == SQLiteEra {
		err := agentdb.Read(ctx, r.sessions.Path, func(db *agentdb.DB) error {
			all = nil
			windows, err := db.Windows(r.Key)
			if err != nil {
				return err
			}
			for _, w := range windows {
				if w.SessionID == current.ID || w.Size.Events == 0 {
					continue
				}
				reason := w.Reason
				if reason == "" {
					reason = "earlier"
				}
				all = append(all, &Conversation{
					Key: r.Key, ID: w.SessionID, Reason: reason, Path: r.sessions.Path, At: millis(w.UpdatedAt), Bytes: w.Size.Bytes,
					Rules: transcript.DatabaseRules, kept: inWindow,
				})
			}
			archives, err := db.Archives(r.Key)
			if err != nil {
				return err
			}
			for _, a := range archives {
				held[a.Name] = true
				all = append(all, &Conversation{
					Key: r.Key, ID: a.SessionID, Reason: a.Reason, Path: r.sessions.Path, At: millis(a.CreatedAt), Bytes: a.Bytes,
					Rules: transcript.DatabaseRules, kept: inArchive, archive: a.Name,
				})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, a := range r.lineage() {
		if a.Path == current.Path || held[filepath.Base(a.Path)] {
			continue
		}
		all = append(all, &Conversation{
			Key: r.Key, ID: a.ID, Reason: a.Reason, Path: a.Path, At: a.At, Bytes: a.Bytes, Rules: current.Rules, expand: compressed(a.Path),
		})
	}
	slices.SortStableFunc(all, func(a, b *Conversation) int { return a.At.Compare(b.At) })
	return append(all, current), nil
}

func compressed(path string) bool { return strings.HasSuffix(path, ".zst") }

// OpenCopy is the conversation in a file: a transcript, an archive or a copy
// that somebody saved. An error is one of the file system.
func OpenCopy(path string) (*Conversation, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", path)
	}
	n := jsonfile.NameOf(filepath.Base(path), "")
	c := &Conversation{ID: n.Session, Reason: "copy", Path: path, At: info.ModTime(), Bytes: info.Size(), expand: true}
	if n.Class == jsonfile.Archive {
		c.Reason = n.Reason
	}
	head := transcript.Scanner{}
	err = c.Scan(context.Background(), &head, func(*transcript.Row) error { return transcript.ErrStop })
	if err == nil && head.Stats().Version >= 4 {
		c.Rules = transcript.DatabaseRules // 2026.9.6 writes these (spec/sqlite-store.md 2.5)
	}
	return c, err
}

// IDs are the session ids that the row goes by: its own and those it had.
func (r *Row) IDs() (ids []string) {
	for _, id := range append([]string{r.ID()}, r.Texts(row.UsageFamilySessionIDs)...) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Scan passes the rows of the conversation to s, and on to f. A row of a
// database that is damaged comes as a blank one and is reported as
// transcript.DamagedRow. What is missing has no rows; something else in its
// place is an error.
func (c *Conversation) Scan(ctx context.Context, s *transcript.Scanner, f func(*transcript.Row) error) error {
	if c.Missing && c.Odd != "" {
		return fmt.Errorf("%s is %s, not a file", c.Path, c.Odd)
	}
	if c.Missing {
		return nil
	}
	if s.Tree != nil {
		s.Tree.Rules = c.Rules
	}
	each := func(r *transcript.Row) error {
		if r.Line&1023 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return f(r)
	}
	switch c.kept {
	case inWindow:
		return s.Rows(func(yield func([]byte) error) error {
			return c.events(ctx, s, yield)
		}, each)
	case inArchive:
		blob, err := c.blob(ctx)
		if err != nil {
			return err
		}
		return c.lines(bytes.NewReader(blob), s, each)
	}
	file, err := os.Open(c.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	if !c.expand {
		return s.Read(file, each)
	}
	return c.lines(file, s, each)
}

func (c *Conversation) lines(r io.Reader, s *transcript.Scanner, f func(*transcript.Row) error) error {
	plain, err := transcript.Decompress(r)
	if err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	defer plain.Close()
	if err := s.Read(plain, f); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	return nil
}

// events passes the events of a window as lines. A scan that was stopped ends
// the reading of the database too.
func (c *Conversation) events(ctx context.Context, s *transcript.Scanner, yield func([]byte) error) error {
	return agentdb.Events(ctx, c.Path, c.ID, func(e agentdb.Event) error {
		if e.Damage != nil && s.Report != nil {
			st := s.Stats()
			s.Report(transcript.Finding{
				Code: transcript.DamagedRow, At: transcript.Place{Line: st.Lines + 1, Offset: st.Bytes}, Byte: st.Bytes,
				Why: fmt.Sprintf("event %d: %v", e.Seq, e.Damage),
			})
		}
		c.event = e.Seq
		return yield(e.Line)
	})
}

func (c *Conversation) blob(ctx context.Context) (blob []byte, err error) {
	err = agentdb.Read(ctx, c.Path, func(db *agentdb.DB) error {
		blob, err = db.ArchiveBytes(c.ID, c.archive)
		return err
	})
	return blob, err
}

// Tail reads the conversation from its end; it must be Plain.
func (c *Conversation) Tail(limits transcript.TailLimits) (transcript.Tail, error) {
	file, err := os.Open(c.Path)
	if err != nil {
		return transcript.Tail{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return transcript.Tail{}, err
	}
	return transcript.ReadTail(file, info.Size(), limits)
}

// Copy writes the conversation to w as JSON lines: those of a file or an
// archive byte for byte, those of a database as they were stored, each with a
// line break. mask, if it is set, gives what to write for a row, which may be
// the row's own bytes. Damaged rows of a database are left out, and counted.
func (c *Conversation) Copy(ctx context.Context, w io.Writer, mask func(*transcript.Row) []byte) (damaged int, err error) {
	s := transcript.Scanner{Report: func(f transcript.Finding) {
		if f.Code == transcript.DamagedRow {
			damaged++
		}
	}}
	lost := 0
	err = c.Scan(ctx, &s, func(r *transcript.Row) error {
		if c.kept == inWindow && r.Blank && damaged > lost {
			lost++
			return nil
		}
		if r.Line == 1 && r.Offset == int64(len(bom)) {
			if _, err := w.Write(bom); err != nil {
				return err
			}
		}
		raw := r.Raw
		if mask != nil && !r.Blank {
			raw = mask(r)
		}
		if _, err := w.Write(raw); err != nil {
			return err
		}
		_, err := io.WriteString(w, [...]string{"", "\n", "\r\n"}[r.Break])
		return err
	})
	return damaged, err
}
