package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"os"
	"slices"

	"oc/store/agentdb"
	"oc/store/span"
	"oc/transcript"
)

// A Part says which messages of conversations are wanted.
type Part struct {
	Limit  int   // the newest so many messages behind Offset; 0 means all
	Offset int   // this many of the newest are passed over
	Whole  bool  // read all, so that Page.Total is known, also where the end would do
	Since  int64 // written at this time or later, epoch ms; 0: whenever
	Before int64 // written before this time; 0: whenever

	Long  int // rows above this size in bytes are not read; 0 means LongRow, less than 0 none
	Bytes int // the newest of such rows that together have this size; 0: whatever it is

	ByTime bool // conversations that do not follow each other: messages stand by their times, and of copies that in the last one counts

	Around string // the message with this id, and Limit ones on either side of it; "": the newest

	AllBranches bool   // every message, in the order of writing
	Branch      string // the branch that ends at the row with this id; "": the active one
}

// A Page is some messages of conversations, the oldest first.
type Page struct {
	Messages []Message
	Total    int // messages there are, with those of other pages; -1: the rest was not read
	Offset   int // as asked for, at most Total

	Anchor    int // the number of the message of Part.Around among Messages, from 1; 0: it is not there
	OffBranch int // messages on other branches
	Before    int // messages before a reset, that are hidden
	Outside   int // messages that Since and Before leave out
	Repeats   int // messages that an older conversation has already
	Untimed   int // messages without a time, which Since and Before leave out too; among Outside
	Broken    int // rows that cannot be read
	Findings  []Flaw
	Unread    []Unread // conversations of several that could not be read
	Elsewhere int      // messages that another program kept of the session and that the page does not have
	Lost      bool     // the branch is not known: a leaf row points at nothing that was read
	Torn      bool     // the last line is cut, or being written
}

// A Flaw is a broken row and the conversation it is in.
type Flaw struct {
	Of *Conversation
	transcript.Finding
}

// An Unread is a conversation that could not be read.
type Unread struct {
	Of  *Conversation
	Err error
}

// maxFlaws are located; all are counted.
const maxFlaws = 100

// A Message is one row of a conversation that a history shows: a message, or a
// compaction.
type Message struct {
	Of    *Conversation
	Kind  transcript.Kind
	ID    string
	Raw   []byte // the raw message, nil for a compaction
	Time  int64  // epoch ms; 0 if it is not known
	Place transcript.Place
	Event int64 // the number of its event in a database
	Seq   int   // its number, from 1; from the first that was read where Total is -1
	Long  bool  // the row is too long: Raw is a stand-in without content
}

// LongRow is the size in bytes above which a row is not read: of it only the
// role is known (spec/session-tools.md 2.2).
const LongRow = 256 << 10

// PageBytes is what OpenClaw reads at most for a page.
const PageBytes = 12 << 20

// tailWorth is the size of a transcript from which on its end is read alone.
const tailWorth = 8 << 20

// ReadPart reads a part of conversations that follow each other, the oldest
// first. Messages that an older one has already, as archives and copies of one
// transcript do, count once. A branch that is not there is a *NoBranch.
func ReadPart(ctx context.Context, all []*Conversation, want Part) (*Page, error) {
	if len(all) == 1 && all[0].Plain() && all[0].Bytes > tailWorth && want.Limit > 0 && want == (Part{Limit: want.Limit, Bytes: want.Bytes}) {
		return readEnd(all[0], want)
	}
	if len(all) == 1 && all[0].kept == inWindow && !all[0].Missing && all[0].Bytes > tailWorth && want.Limit > 0 && want == (Part{Limit: want.Limit, Bytes: want.Bytes}) {
		if p, err := readNewest(ctx, all[0], want); p != nil || err != nil {
			return p, err
		}
	}
	var messages []Message
	p, err := Walk(ctx, all, want, func(m Message) error {
		messages = append(messages, m)
		return nil
	})
	if p != nil {
		p.Messages = messages
	}
	return p, err
}

// Walk passes a part of conversations to f, message after message, and returns
// the page without them. Memory does not grow with the messages.
func Walk(ctx context.Context, all []*Conversation, want Part, f func(Message) error) (*Page, error) {
	p := &Page{}
	r := partReader{page: p, want: want, several: len(all) > 1, seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}}
	survey := slices.Clone(all)
	if want.ByTime {
		slices.Reverse(survey)
	}
	for _, c := range survey {
		err := r.survey(ctx, c)
		if err != nil && (ctx.Err() != nil || len(all) == 1) {
			return nil, err
		}
		if err != nil {
			p.Unread = append(p.Unread, Unread{c, err})
		}
	}
	if len(p.Unread) == len(all) && len(all) > 0 {
		return nil, p.Unread[0].Err
	}
	if want.Branch != "" && !r.branch {
		return nil, &NoBranch{want.Branch, r.tips}
	}
	if want.ByTime {
		r.byTime()
	}
	p.Total = len(r.spots)
	p.Offset = min(want.Offset, p.Total)
	end := p.Total - p.Offset
	start := 0
	if want.Limit > 0 {
		start = max(0, end-want.Limit)
	}
	if want.Around != "" {
		at := slices.IndexFunc(r.spots, func(s spot) bool { return s.anchor })
		if at < 0 {
			return p, nil
		}
		start, end = max(0, at-want.Limit), min(p.Total, at+want.Limit+1)
		p.Anchor, p.Offset, want.Bytes = at-start+1, p.Total-end, 0
	}
	if want.Bytes > 0 {
		for i, size := end-1, 0; i >= start; i-- {
			if size += r.head(r.spots[i].at.Size); size > want.Bytes && i < end-1 {
				start = i + 1
			}
		}
	}
	return p, r.give(ctx, start, end, f)
}

// A NoBranch is a branch that no row ends.
type NoBranch struct {
	ID   string
	Tips []string // the branches that there are
}

func (e *NoBranch) Error() string {
	return fmt.Sprintf("no row of the transcript has the id %q; its branches end at %d rows", e.ID, len(e.Tips))
}

// A spot is where a message is.
type spot struct {
	of     *Conversation
	at     transcript.Place
	ms     int64
	anchor bool // the message of Part.Around
	event  int64
	same   uint64 // of copies in other conversations; 0: it has no id, or there are no others
	spoken bool   // by a user or an assistant; told of rows of databases alone, where a reset may keep such rows
}

type partReader struct {
	page    *Page
	want    Part
	spots   []spot
	several bool
	seed    maphash.Seed
	seen    map[uint64]struct{} // rows of older conversations
	branch  bool                // Branch was found
	tips    []string
}

// survey finds the messages of one conversation that may be shown.
func (r *partReader) survey(ctx context.Context, c *Conversation) error {
	var tree transcript.Tree
	s := transcript.Scanner{Tree: &tree, Report: func(f transcript.Finding) { r.found(c, f) }}
	var spots []spot
	compactions := map[int]bool{}
	err := c.Scan(ctx, &s, func(row *transcript.Row) error {
		talk := span.KindOf(row.Message) == span.Object
		if !talk && row.Kind != transcript.Compaction || row.Err != nil || row.Blank {
			return nil
		}
		if !talk {
			compactions[row.Line] = true
		}
		ms, _ := row.Time()
		at := spot{of: c, at: row.Place, ms: ms, event: c.event, anchor: r.want.Around != "" && string(row.ID) == r.want.Around}
		if r.several && row.ID != nil {
			at.same = r.identity(row)
		}
		if c.Rules == transcript.DatabaseRules {
			role := transcript.Role(row.Message)
			at.spoken = role == "user" || role == "assistant"
		}
		spots = append(spots, at)
		return nil
	})
	if err != nil {
		return err
	}
	spots = r.choose(&tree, spots, compactions)
	for _, at := range spots {
		switch {
		case r.repeated(at.same):
			r.page.Repeats++
		case (r.want.Since != 0 || r.want.Before != 0) && (at.ms == 0 || at.ms < r.want.Since || r.want.Before != 0 && at.ms >= r.want.Before):
			r.page.Outside++
			if at.ms == 0 {
				r.page.Untimed++
			}
		default:
			r.spots = append(r.spots, at)
		}
	}
	return nil
}

// identity is the same for copies of a row, and not 0. An id of eight digits is
// not enough to tell rows of a long history apart, so the time counts as well.
func (r *partReader) identity(row *transcript.Row) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	_, _ = h.Write(row.ID)
	_ = h.WriteByte(0)
	_, _ = h.Write(row.Stamp)
	return max(1, h.Sum64())
}

// repeated tells whether a conversation before has shown the message, and notes
// it.
func (r *partReader) repeated(same uint64) bool {
	if same == 0 {
		return false
	}
	_, ok := r.seen[same]
	r.seen[same] = struct{}{}
	return ok
}

// byTime puts the messages of all conversations in the order of their times.
// One without a time stands behind the one before it.
func (r *partReader) byTime() {
	at := make([]int64, len(r.spots))
	order := make([]int, len(r.spots))
	for i := range r.spots {
		s := &r.spots[i]
		order[i], at[i] = i, s.ms
		if i > 0 && r.spots[i-1].of == s.of { // within one, the order of writing holds
			at[i] = max(at[i], at[i-1])
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(at[a], at[b]) })
	spots := make([]spot, len(order))
	for i, from := range order {
		spots[i] = r.spots[from]
	}
	r.spots = spots
}

// found counts and locates what cannot be read. Other findings are none of a
// reader's.
func (r *partReader) found(c *Conversation, f transcript.Finding) {
	switch f.Code {
	case transcript.TornTail:
		r.page.Torn = r.page.Torn || c.Reason == Current
	case transcript.NotJSON, transcript.NotObject, transcript.NUL, transcript.NULTail, transcript.DamagedRow:
	default:
		return
	}
	if r.page.Broken++; len(r.page.Findings) < maxFlaws {
		r.page.Findings = append(r.page.Findings, Flaw{c, f})
	}
}

// choose keeps the messages of the branch that is wanted. Without a row that
// sets the leaf all rows are one branch, as OpenClaw's readers have it
// (spec/session-tools.md 2.2).
func (r *partReader) choose(tree *transcript.Tree, spots []spot, compactions map[int]bool) []spot {
	if r.want.AllBranches {
		return spots
	}
	var rows []transcript.Place
	kept := 0
	flags := tree.Flags()
	r.page.Lost = r.page.Lost || flags.InvalidLeaf
	if r.want.Branch != "" {
		r.tips = append(r.tips, tree.Tips()...)
		if rows, _ = tree.BranchTo(r.want.Branch); rows == nil {
			r.page.OffBranch += len(spots)
			return nil
		}
		r.branch = true
	} else if !flags.ExplicitLeaf {
		return spots
	} else {
		rows, kept = tree.History()
	}
	whole, _ := tree.Branch()
	byLine := func(s spot, line int) int { return s.at.Line - line }
	var out []spot
	if len(rows) > 0 && len(rows) == len(whole) && r.want.Branch == "" {
		// The last compaction before an orphan stands for what it cut off.
		first, _ := slices.BinarySearchFunc(spots, rows[0].Line, byLine)
		for i := first - 1; i >= 0; i-- {
			if compactions[spots[i].at.Line] {
				out = append(out, spots[i])
				break
			}
		}
	}
	for n, at := range rows {
		if i, ok := slices.BinarySearchFunc(spots, at.Line, byLine); ok && (n >= kept || spots[i].spoken) {
			out = append(out, spots[i])
		}
	}
	hidden := 0
	if r.want.Branch == "" {
		for _, at := range whole {
			if _, ok := slices.BinarySearchFunc(spots, at.Line, byLine); ok {
				hidden++
			}
		}
		hidden = max(0, hidden-len(out))
	}
	r.page.Before += hidden
	r.page.OffBranch += max(0, len(spots)-len(out)-hidden)
	return out
}

// give passes the messages from start to end on. Each conversation is read
// once, also where their messages alternate.
func (r *partReader) give(ctx context.Context, start, end int, f func(Message) error) error {
	wanted := r.spots[start:end]
	of := map[*Conversation][]spot{}
	for _, s := range wanted {
		of[s.of] = append(of[s.of], s)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := map[*Conversation]func() (Message, error, bool){}
	for seq, s := range wanted {
		pull := next[s.of]
		if pull == nil {
			var stop func()
			pull, stop = iter.Pull2(func(yield func(Message, error) bool) {
				enough := false
				err := s.of.fetch(ctx, of[s.of], r.head, func(m Message) error {
					if enough = !yield(m, nil); enough {
						return transcript.ErrStop
					}
					return nil
				})
				if err != nil && !enough {
					yield(Message{}, err)
				}
			})
			defer stop()
			next[s.of] = pull
		}
		m, err, ok := pull()
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%s: rows went away while it was read; try again", s.of)
		}
		m.Seq = start + seq + 1
		if err := f(m); err != nil {
			return err
		}
	}
	return nil
}

// head is how much of a row of that size is read.
func (r *partReader) head(size int) int {
	long := r.want.Long
	if long == 0 {
		long = LongRow
	}
	if long > 0 && size > long {
		return min(size, 64<<10)
	}
	return size
}

// fetch reads rows: of a plain file where they are, else by passing all once
// more.
func (c *Conversation) fetch(ctx context.Context, spots []spot, head func(int) int, f func(Message) error) error {
	if c.Plain() {
		file, err := os.Open(c.Path)
		if err != nil {
			return err
		}
		defer file.Close()
		for _, s := range spots {
			if err := ctx.Err(); err != nil {
				return err
			}
			row := make([]byte, head(s.at.Size))
			if _, err := file.ReadAt(row, s.at.Offset); err != nil {
				return fmt.Errorf("%s: line %d at byte %d went away while it was read: %w", c, s.at.Line, s.at.Offset, err)
			}
			m, err := c.message(s, row)
			if err == nil {
				err = f(m)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	order := make([]int, len(spots)) // by line; a branch that hangs below a later row has another order
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return spots[a].at.Line - spots[b].at.Line })
	ahead := map[int]Message{} // rows that come before their turn
	next, turn := 0, 0
	err := c.Scan(ctx, &transcript.Scanner{}, func(row *transcript.Row) error {
		i := order[next]
		if row.Line != spots[i].at.Line {
			return nil
		}
		if row.Size != spots[i].at.Size {
			return fmt.Errorf("%s: line %d changed while it was read; try again", c, row.Line)
		}
		m, err := c.message(spots[i], bytes.Clone(row.Raw[:head(row.Size)]))
		if err != nil {
			return err
		}
		ahead[i] = m
		for {
			m, ok := ahead[turn]
			if !ok {
				break
			}
			delete(ahead, turn)
			turn++
			if err := f(m); err != nil {
				return err
			}
		}
		if next++; next == len(order) {
			return transcript.ErrStop
		}
		return nil
	})
	if err == nil && turn < len(spots) {
		err = fmt.Errorf("%s: %d rows went away while it was read; try again", c, len(spots)-turn)
	}
	return err
}

func (c *Conversation) message(s spot, row []byte) (Message, error) {
	m := Message{Of: c, Time: s.ms, Place: s.at, Event: s.event, Long: len(row) < s.at.Size}
	e, err := transcript.Parse(row)
	if m.Kind, m.ID = e.Kind, string(e.ID); m.Long {
		m.Raw = transcript.StandIn(row)
		if m.ms(&e); m.Raw == nil {
			m.Raw = []byte(`{"role":"assistant","content":[]}`)
		}
		return m, nil
	}
	if err != nil {
		return m, fmt.Errorf("%s: line %d at byte %d changed while it was read; try again: %w", c, s.at.Line, s.at.Offset, err)
	}
	if span.KindOf(e.Message) == span.Object {
		m.Raw = e.Message
	}
	return m, nil
}

func (m *Message) ms(e *transcript.Entry) {
	if m.Time == 0 {
		m.Time, _ = e.Time()
	}
}

// readEnd reads the newest messages of a long file.
func readEnd(c *Conversation, want Part) (*Page, error) {
	t, err := c.Tail(transcript.TailLimits{Messages: want.Limit, LongLine: LongRow, Bytes: int64(want.Bytes)})
	if err != nil {
		return nil, err
	}
	p := &Page{Total: -1, OffBranch: t.Off, Broken: t.Bad, Lost: t.Lost, Torn: t.Torn}
	for _, at := range t.Broken {
		p.Findings = append(p.Findings, Flaw{c, transcript.Finding{Code: transcript.NotJSON, At: at, Byte: at.Offset}})
	}
	slices.Reverse(p.Findings)
	for i := range t.Rows {
		row := &t.Rows[i]
		if row.Kind == transcript.Reset {
			continue
		}
		p.Messages = append(p.Messages, tailMessage(c, row, len(p.Messages)+1))
	}
	if t.Whole && len(t.Rows) < want.Limit {
		p.Total = len(p.Messages)
	}
	return p, nil
}

func tailMessage(c *Conversation, row *transcript.TailRow, seq int) Message {
	m := Message{Of: c, Kind: row.Kind, ID: string(row.ID), Place: row.Place, Event: int64(row.Line) - 1, Seq: seq, Long: row.Long}
	if span.KindOf(row.Message) == span.Object {
		m.Raw = row.Message
	}
	m.ms(&row.Entry)
	return m
}

// readNewest reads the newest messages of a long window. It gives no page where
// they alone do not tell the branch, or a reset is among them.
func readNewest(ctx context.Context, c *Conversation, want Part) (*Page, error) {
	var rows []transcript.TailRow
	p := &Page{Total: -1}
	whole, size := false, 0
	err := agentdb.Read(ctx, c.Path, func(db *agentdb.DB) error {
		if cold, err := db.Cold(c.ID); err != nil || cold != nil {
			return err
		}
		rows, *p = nil, Page{Total: -1}
		whole, size = false, 0
		return db.Since(c.ID, -1, want.Limit*2+20, func(e agentdb.Event) error {
			whole = whole || e.Seq == 0
			at := transcript.Place{Line: int(e.Seq) + 1, Size: len(e.Line)}
			row := transcript.TailRow{Place: at, Long: at.Size > LongRow}
			line := e.Line
			if row.Long {
				line = bytes.Clone(line[:64<<10])
			}
			var err error
			row.Entry, err = transcript.Parse(line)
			switch {
			case row.Long:
				row.Message = transcript.StandIn(line)
			case e.Damage != nil || err != nil:
				code := transcript.NotJSON
				if e.Damage != nil {
					code, err = transcript.DamagedRow, e.Damage
				}
				if p.Broken++; len(p.Findings) < maxFlaws {
					p.Findings = append(p.Findings, Flaw{c, transcript.Finding{Code: code, At: at, Why: err.Error()}})
				}
				return nil
			}
			rows = append(rows, row)
			size += len(line)
			for want.Bytes > 0 && size > want.Bytes && len(rows) > 1 {
				size -= len(rows[0].Raw)
				rows = rows[1:]
			}
			return nil
		})
	})
	if err != nil || whole {
		return nil, err
	}
	entries := make([]transcript.Entry, len(rows))
	shown := 0
	for i := range rows {
		if entries[i] = rows[i].Entry; entries[i].Kind == transcript.Reset {
			return nil, nil
		}
		if span.KindOf(entries[i].Message) == span.Object {
			shown++
		}
	}
	active, known := transcript.ActiveRows(entries)
	if !known || len(active) == 0 {
		return nil, nil
	}
	for _, i := range active {
		if row := &rows[i]; span.KindOf(row.Message) == span.Object || row.Kind == transcript.Compaction {
			p.Messages = append(p.Messages, tailMessage(c, row, len(p.Messages)+1))
		}
	}
	if len(p.Messages) < want.Limit/20 {
		return nil, nil // most of it is on other branches
	}
	p.OffBranch = max(0, shown-len(p.Messages))
	if n := len(p.Messages) - want.Limit; n > 0 {
		p.Messages = p.Messages[n:]
		for i := range p.Messages {
			p.Messages[i].Seq = i + 1
		}
	}
	return p, nil
}
