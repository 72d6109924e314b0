package store

import (
	"context"

	"oc/store/row"
	"oc/store/span"
	"oc/transcript"
	"oc/transcript/compaction"
)

// A Fill is what fills the context of a session: the rows that the model sees, and what they cost by OpenClaw's estimates
// (spec/transcript.md 1.7, 2.1 to 2.3; release 2026.7.35). It is made in one pass, in some 40 bytes a row.
type Fill struct {
	Of   *Conversation
	Rows []FillRow // in the order in which the model sees them

	Tokens   map[FillPart]int // by rule of thumb
	Total    int              // their sum
	Estimate int              // what the last answer reported, and a rule of thumb for what follows; Total where none reported
	Reported int              // what the last answer reported; 0 for none
	Pressure int              // the dearer estimate that is made before a prompt is sent, without the system prompt

	Branch      []compaction.Row // all rows of the active branch
	Places      []transcript.Place
	Last, Kept  int // its latest compaction and the row that keeps from, as compaction.Find wants them
	Compactions int
	Hidden      int // messages of the branch that the model does not see
	Broken      int // rows that cannot be read
	Loop        bool

	tree    *transcript.Tree
	version float64
}

// A FillRow is a row that the model sees.
type FillRow struct {
	transcript.Place
	compaction.Row
}

// A FillPart is what a token is spent on.
type FillPart string

// The parts.
const (
	OnSummary FillPart = "summary"
	OnUser    FillPart = "user"
	OnAnswers FillPart = "answers"
	OnCalls   FillPart = "toolCalls"
	OnResults FillPart = "toolResults"
	OnImages  FillPart = "images"
	OnOther   FillPart = "other"
)

// FillParts are all parts, in the order in which they are told.
var FillParts = []FillPart{OnSummary, OnUser, OnAnswers, OnCalls, OnResults, OnImages, OnOther}

// weight is what is kept of a row while the rest is read.
type weight struct {
	compaction.Row
	pressure, calls, images int32
	usage                   int32 // what an answer reported; -1: nothing
}

// Fill weighs the context of the conversation.
func (c *Conversation) Fill(ctx context.Context) (*Fill, error) { return c.fill(ctx, weigh) }

// Outline is a Fill without Pressure and without Tokens part by part, in little more than half of the time: what Shorten needs.
func (c *Conversation) Outline(ctx context.Context) (*Fill, error) { return c.fill(ctx, outline) }

func (c *Conversation) fill(ctx context.Context, weigh func(*transcript.Entry) weight) (*Fill, error) {
	var tree transcript.Tree
	f := &Fill{Of: c, Tokens: map[FillPart]int{}, Last: -1, Kept: -1}
	var rows []weight // by line
	s := transcript.Scanner{Tree: &tree, Report: func(at transcript.Finding) {
		switch at.Code {
		case transcript.NotJSON, transcript.NotObject, transcript.NUL, transcript.NULTail, transcript.DamagedRow, transcript.TornTail:
			f.Broken++
		}
	}}
	err := c.Scan(ctx, &s, func(r *transcript.Row) error {
		for len(rows) <= r.Line {
			rows = append(rows, weight{usage: -1})
		}
		if r.Err != nil || r.Blank {
			return nil
		}
		rows[r.Line] = weigh(&r.Entry)
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.tree, f.version = &tree, s.Stats().Version
	seen := tree.Seen()
	f.Places, f.Loop = seen.Branch, seen.Loop
	line := func(i int) int { return seen.Branch[i].Line }
	for i := range seen.Branch {
		w := rows[line(i)]
		f.Branch = append(f.Branch, w.Row)
		if w.Kind == transcript.Compaction {
			f.Compactions++
			f.Last = i
		}
	}
	if f.Last >= 0 && seen.Boundary == f.Last && seen.From < f.Last {
		f.Kept = seen.From
	}
	if seen.Boundary >= 0 && seen.Kinds[seen.Boundary] == transcript.Compaction {
		f.take(seen.Branch[seen.Boundary], rows[line(seen.Boundary)])
	}
	for i := range seen.Branch {
		w := rows[line(i)]
		switch {
		case i == seen.Boundary:
		case i < seen.From:
			if w.Kind == transcript.Message {
				f.Hidden++
			}
		case i < seen.Boundary && seen.Kinds[seen.Boundary] == transcript.Reset && w.Role != compaction.User && w.Role != compaction.Assistant && w.Role != compaction.Result:
			if w.Kind == transcript.Message {
				f.Hidden++
			}
		case w.Kind == transcript.Message && w.Role != compaction.Nobody, w.Kind == transcript.CustomMessage, w.Kind == transcript.BranchSummary:
			f.take(seen.Branch[i], w)
		}
	}
	f.Estimate = f.Total
	trailing := 0
	for i := len(f.Rows) - 1; i >= 0; i-- {
		if w := rows[f.Rows[i].Line]; w.usage >= 0 {
			f.Reported = int(w.usage)
			f.Estimate = f.Reported + trailing
			break
		}
		trailing += int(f.Rows[i].Tokens)
	}
	return f, nil
}

// Numbers is the Fill without its rows: what it adds up to, which is all that a list of many needs.
func (f *Fill) Numbers() *Fill {
	n := *f
	n.Rows, n.Branch, n.Places, n.tree = nil, nil, nil, nil
	return &n
}

// take adds a row that the model sees.
func (f *Fill) take(at transcript.Place, w weight) {
	f.Rows = append(f.Rows, FillRow{Place: at, Row: w.Row})
	rest := int(w.Tokens)
	f.Total += rest
	f.Pressure += int(w.pressure)
	spend := func(on FillPart, n int) {
		n = min(n, rest)
		f.Tokens[on] += n
		rest -= n
	}
	spend(OnImages, int(w.images))
	spend(OnCalls, int(w.calls))
	on := OnOther
	switch {
	case w.Kind == transcript.Compaction, w.Kind == transcript.BranchSummary:
		on = OnSummary
	case w.Role == compaction.User, w.Kind == transcript.CustomMessage:
		on = OnUser
	case w.Role == compaction.Assistant:
		on = OnAnswers
	case w.Role == compaction.Result:
		on = OnResults
	}
	spend(on, rest)
}

// voice is what a row says to the model and as whom; nil where it says nothing.
func voice(e *transcript.Entry) (role string, raw []byte) {
	switch e.Kind {
	case transcript.Message:
		if span.KindOf(e.Message) == span.Object {
			return transcript.Voice(e.Message), e.Message
		}
	case transcript.Compaction:
		return "compactionSummary", e.Raw
	case transcript.BranchSummary:
		return "branchSummary", e.Raw
	case transcript.CustomMessage:
		return "custom", e.Raw
	}
	return "", nil
}

// weigh is what counts of a row, and outline the part of it that is had at once.
func weigh(e *transcript.Entry) weight {
	w := outline(e)
	role, raw := voice(e)
	if raw == nil {
		return w
	}
	w.pressure = int32(transcript.Pressure(role, raw))
	if w.Role == compaction.Assistant {
		w.calls = int32(transcript.CallTokens(raw))
	} else {
		w.images = int32(transcript.ImageTokens(raw))
	}
	return w
}

func outline(e *transcript.Entry) weight {
	w := weight{Row: compaction.RowOf(e), usage: -1}
	role, raw := voice(e)
	if raw == nil {
		return w
	}
	if e.Kind != transcript.Message {
		w.Tokens = int32(transcript.Tokens(role, raw))
	}
	if w.Role == compaction.Assistant {
		if n, ok := transcript.ReportedContext(raw); ok {
			w.usage = int32(min(n, 1<<30))
		}
	}
	return w
}

// SystemTokens is what the system prompt and the schemas of tools cost, by the report that the last run left in the row; ok is
// false where there is none, as in a listing of a database.
func (r *Row) SystemTokens() (n int, ok bool) {
	report := r.Raw(row.SystemPromptReport)
	chars, ok := span.Float(span.Path(report, "systemPrompt", "chars"))
	schemas, _ := span.Float(span.Path(report, "tools", "schemaChars"))
	if !ok || chars < 0 || chars > 1<<40 {
		return 0, false
	}
	return int(chars+max(schemas, 0)+3) / 4, true
}

// Texts passes the text of each row that the model sees to f, in order: what was said, "" for calls alone. The texts are as they
// stand in the transcript, cut where a row is long.
func (f *Fill) Texts(ctx context.Context, each func(i int, text string) error) error {
	spots := make([]spot, len(f.Rows))
	for i, r := range f.Rows {
		spots[i] = spot{of: f.Of, at: r.Place}
	}
	i := 0
	return f.Of.fetch(ctx, spots, func(size int) int { return min(size, LongRow) }, func(m Message) error {
		text := ""
		if m.Kind == transcript.Message && !m.Long {
			text = transcript.Text(m.Raw)
		}
		i++
		return each(i-1, text)
	})
}
