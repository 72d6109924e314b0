package store

import (
	"context"
	"fmt"
	"os"
	"time"

	"oc/store/agentdb"
	"oc/store/jsonfile"
	"oc/store/span"
	"oc/transcript"
	"oc/transcript/visible"
)

// A Want says what to look up in the transcripts of rows.
type Want struct {
	Glance   bool // the two ends, for titles and previews
	Messages int  // the last so many messages that say something
	Bytes    bool // how large each is
}

// A Detail is what was found of one row. A session without a transcript has an
// empty one.
type Detail struct {
	Glimpse  transcript.Glimpse
	Messages []Said // the oldest first
	Damaged  int    // lines that are no rows, as far as it was looked at
	Bytes    int64
	Err      error // why the transcript could not be read
}

// A Said is a message as a reader may see it: cleaned, and with secrets
// masked.
type Said struct {
	Role string
	Text string
	At   float64 // epoch milliseconds; 0 unknown
}

// Bytes that a glance looks at, at either end of a transcript.
const (
	headBytes = 8 << 10
	tailBytes = 16 << 10
	saidUnits = 8000 // UTF-16 units of one message
)

// Details looks the rows up, each database once. The error is that of a
// database, or of ctx; what is wrong with one transcript is in its Detail.
func Details(ctx context.Context, rows []*Row, w Want) ([]Detail, error) {
	out := make([]Detail, len(rows))
	inside := map[*Sessions][]int{}
	for i, r := range rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if r.sessions.Era == SQLiteEra {
			inside[r.sessions] = append(inside[r.sessions], i)
			continue
		}
		out[i] = r.fileDetail(w)
	}
	for s, at := range inside {
		err := agentdb.Read(ctx, s.Path, func(db *agentdb.DB) error {
			for _, i := range at {
				if err := ctx.Err(); err != nil {
					return err
				}
				out[i] = rowDetail(db, rows[i], w)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (r *Row) fileDetail(w Want) (d Detail) {
	c, info, missing := r.Transcript()
	if missing {
		d.Err = notFile(c)
		return d
	}
	d.Bytes = info.Size()
	if !w.Glance && w.Messages == 0 {
		return d
	}
	f, err := os.Open(c.Path)
	if err != nil {
		d.Err = err
		return d
	}
	defer f.Close()
	if w.Glance {
		d.Glimpse, d.Err = transcript.Glance(f, info.Size())
	}
	if w.Messages > 0 && d.Err == nil {
		var tail transcript.Tail
		tail, d.Err = transcript.ReadTail(f, info.Size(), transcript.TailLimits{Messages: 4*w.Messages + 20})
		d.Damaged = tail.Bad
		for i := range tail.Rows {
			r := &tail.Rows[i]
			if r.Long {
				d.Messages = appendLast(d.Messages, Said{Role: transcript.Role(r.Message), Text: fmt.Sprintf("(a message of %d bytes is left out)", r.Size), At: timeOf(&r.Entry)}, w.Messages)
				continue
			}
			d.Messages = appendSaid(d.Messages, &r.Entry, w.Messages)
		}
	}
	return d
}

// notFile is the error of a transcript in whose place something else stands;
// nil where there is nothing at all.
func notFile(c jsonfile.Candidate) error {
	if c.Odd == "" {
		return nil
	}
	return fmt.Errorf("%s is %s, not a file", c.Path, c.Odd)
}

func rowDetail(db *agentdb.DB, r *Row, w Want) (d Detail) {
	id := r.Columns.SessionID
	if w.Bytes {
		size, err := db.Size(id)
		if d.Bytes, d.Err = size.Bytes, err; err != nil {
			return d
		}
	}
	if w.Glance {
		ends, err := db.Ends(id, headBytes, tailBytes)
		if err == nil {
			d.Glimpse, err = transcript.Glance(ends, ends.Size)
		}
		if d.Err = err; err != nil {
			return d
		}
	}
	if w.Messages > 0 {
		d.Err = db.Active(id, func(e agentdb.Event) error {
			entry, err := transcript.Parse(e.Line)
			if err != nil {
				d.Damaged++
				return nil
			}
			d.Messages = appendSaid(d.Messages, &entry, w.Messages)
			return nil
		})
	}
	return d
}

// Grew is when the row's transcript last grew; the zero time where that is not
// known.
func (r *Row) Grew(ctx context.Context) (at time.Time) {
	if r.sessions.Era != SQLiteEra {
		if _, info, missing := r.Transcript(); !missing {
			at = info.ModTime()
		}
		return at
	}
	// What cannot be read is not known, and said where it is listed.
	_ = agentdb.Read(ctx, r.sessions.Path, func(db *agentdb.DB) error {
		windows, err := db.Windows(r.Key)
		for _, w := range windows {
			if last := max(w.TranscriptAt, w.Size.Last); w.Current && last > 0 {
				at = millis(last)
			}
		}
		return err
	})
	return at
}

// appendSaid appends what an entry says to a reader, if anything, and keeps the
// last n.
func appendSaid(all []Said, e *transcript.Entry, n int) []Said {
	message := e.Message
	role := transcript.Role(message)
	if role != "user" && role != "assistant" {
		return all
	}
	text := transcript.Text(message)
	if role == "assistant" {
		if visible.Control(text) {
			return all
		}
		text = visible.Clean(text, visible.History)
	}
	if text = span.Trim(visible.Show(text)); text == "" {
		return all
	}
	if visible.Units(text) > saidUnits {
		text, _ = visible.Cut(text, saidUnits)
		text += "…"
	}
	return appendLast(all, Said{role, text, timeOf(e)}, n)
}

func appendLast(all []Said, said Said, n int) []Said {
	if len(all) == n {
		all = all[:copy(all, all[1:])]
	}
	return append(all, said)
}

// timeOf is when an entry was written: by itself, else by its message.
func timeOf(e *transcript.Entry) float64 {
	if at, ok := e.Time(); ok {
		return float64(at)
	}
	at, _ := span.Float(span.Member(e.Message, "timestamp"))
	return at
}

// explainDatabase adds what the database tells of a session: the size of its
// current transcript, earlier ones, and archives that are not files yet.
func (s *Sessions) explainDatabase(ctx context.Context, r *Row, x *Explanation) error {
	return agentdb.Read(ctx, s.Path, func(db *agentdb.DB) error {
		x.Lineage = nil
		size, err := db.Size(r.Columns.SessionID)
		if err != nil {
			return err
		}
		x.Transcript = TranscriptFacts{Bytes: size.Bytes, Rows: size.Events, First: size.First, Last: size.Last, Missing: size.Events == 0}
		windows, err := db.Windows(r.Key)
		if err != nil {
			return err
		}
		for _, w := range windows {
			if !w.Current {
				reason := w.Reason
				if reason == "" {
					reason = "earlier"
				}
				x.Lineage = append(x.Lineage, Archive{Reason: reason, ID: w.SessionID, At: millis(w.UpdatedAt), Bytes: w.Size.Bytes})
			}
		}
		archives, err := db.Archives(r.Key)
		if err != nil {
			return err
		}
		for _, a := range archives {
			if !a.Published {
				x.Lineage = append(x.Lineage, Archive{Reason: a.Reason, ID: a.SessionID, At: millis(a.CreatedAt), Bytes: a.Bytes})
			}
		}
		return nil
	})
}

// archived tells whether a file is an archive of a transcript.
func archived(it *jsonfile.Item) bool { return it.Class == jsonfile.Archive && it.Session != "" }
