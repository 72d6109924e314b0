package store

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"oc/store/jsonfile"
	"oc/store/row"
	"oc/store/span"
	"oc/transcript"
)

// An Explanation is everything that the disk tells of one session.
type Explanation struct {
	Row        *Row
	View       View
	Class      row.Class
	Transcript TranscriptFacts
	Delivery   row.Delivery
	Origin     []byte // raw; nil for none
	Parent     string // the session it was spawned by or belongs to
	Thread     string // its thread id, where the key has one
	Children   []string
	Aliases    []string
	SameID     []string // other keys with the same session id
	Lineage    []Archive
	Stamps     []Stamp
}

// TranscriptFacts is where a session's transcript is and what it holds. Times
// are epoch milliseconds, 0 where unknown.
type TranscriptFacts struct {
	Path        string
	How         string // why it is looked for there
	Tried       []jsonfile.Candidate
	Missing     bool
	Bytes       int64
	Rows        int64 // -1: unknown
	Damaged     int64 // of the rows, those that are no JSON object
	First, Last int64 // of messages
	Link        bool
	Err         error
}

// An Archive is an earlier transcript of a session.
type Archive struct {
	Path, Reason, ID string
	At               time.Time
	Bytes            int64
}

// A Stamp is a time of a session; MS may be anything a file can hold.
type Stamp struct {
	Name  string
	MS    float64
	Valid bool // it can be a time
}

// Explain gathers what is known of a row.
func (r *Row) Explain(ctx context.Context, acp ACP) (*Explanation, error) {
	x := &Explanation{Row: r, View: r.View(acp), Class: row.ClassOf(r.Key), Delivery: r.Delivery(), Origin: r.OriginRaw()}
	x.Parent, _ = r.Text(row.ParentSessionKey)
	if spawner, ok := r.Text(row.SpawnedBy); ok && x.Parent == "" {
		x.Parent = spawner
	}
	if parent, id, ok := row.Thread(r.Key); ok {
		if x.Thread = id; x.Parent == "" {
			x.Parent = parent
		}
	}
	x.Children, x.Aliases = r.Children(), r.Aliases()
	if id := r.ID(); id != "" {
		for i := range r.sessions.Rows {
			if o := &r.sessions.Rows[i]; o.Key != r.Key && o.ID() == id {
				x.SameID = append(x.SameID, o.Key)
			}
		}
	}
	for _, f := range row.Fields() {
		if f.Type() != row.Stamp {
			continue
		}
		if raw := r.Raw(f); raw != nil && span.KindOf(raw) != span.Null {
			ms, ok := r.Stamp(f)
			x.Stamps = append(x.Stamps, Stamp{f.String(), ms, ok && ms <= 8.64e15})
		}
	}
	if r.sessions.Era == SQLiteEra {
		if err := r.sessions.explainDatabase(ctx, r, x); err != nil {
			return nil, err
		}
	} else {
		x.Transcript = r.transcriptFacts(ctx)
	}
	x.Lineage = append(x.Lineage, r.lineage()...)
	sortNewest(x.Lineage, func(a *Archive) time.Time { return a.At })
	return x, nil
}

func millis(ms int64) time.Time { return time.UnixMilli(ms) }

func (r *Row) transcriptFacts(ctx context.Context) TranscriptFacts {
	place := r.sessions.Place()
	c, info, missing := place.Find(&r.Entry)
	t := TranscriptFacts{Path: c.Path, How: c.How, Tried: place.Candidates(&r.Entry), Missing: missing}
	if missing {
		t.Err = notFile(c)
		return t
	}
	t.Bytes = info.Size()
	if l, err := os.Lstat(c.Path); err == nil {
		t.Link = !l.Mode().IsRegular()
	}
	g, err := glanceFile(c.Path, info.Size())
	if err == nil {
		t.First, t.Last = g.First, g.Last
		t.Rows, t.Damaged, err = countRows(ctx, c.Path)
	}
	if t.Err = err; err != nil {
		t.Rows = -1
	}
	return t
}

// countRows counts the rows of a transcript, and those that are no JSON object.
func countRows(ctx context.Context, path string) (rows, damaged int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	var scan transcript.Scanner
	err = scan.Read(f, func(r *transcript.Row) error {
		if !r.Blank {
			rows++
		}
		return ctx.Err()
	})
	return rows, int64(scan.Stats().Bad), err
}

// lineage finds the archive files of the row's session id and of the ids it
// had before.
func (r *Row) lineage() (out []Archive) {
	ids := map[string]bool{}
	for _, id := range append(r.Texts(row.UsageFamilySessionIDs), r.ID()) {
		if id != "" {
			ids[strings.ToLower(id)] = true
		}
	}
	items, _ := jsonfile.List(r.sessions.Dir(), filepath.Base(r.sessions.Place().Store))
	for _, it := range items {
		earlier := it.Class == jsonfile.Live && !strings.EqualFold(it.Session, r.ID())
		if (it.Class == jsonfile.Archive || earlier) && ids[strings.ToLower(it.Session)] {
			reason, at := it.Reason, it.At
			if earlier {
				reason, at = "earlier", it.ModTime
			}
			out = append(out, Archive{it.Path, reason, it.Session, at, it.Size})
		}
	}
	return out
}
