package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"oc/store/span"
	"oc/transcript/visible"
)

// How much of a transcript a title and a preview look at, in bytes and lines.
const (
	headBytes = 8 << 10
	headLines = 10
	tailBytes = 16 << 10
	tailLines = 20
)

// Units of UTF-16 that titles made from messages, and all other texts of a
// listing, are cut to.
const (
	titleUnits = 60
	shownUnits = 200
)

// Named is what an entry of a store says about the name of its session.
type Named struct {
	Label, DisplayName, Subject, SessionID string
	UpdatedAt                              float64 // epoch ms; 0 if there is none
}

// Title is the name to show for a session: its label, display name or subject,
// else the start of its first user message, else the start of its id with the
// date. "" if there is nothing at all. It follows spec/session-tools.md 1, but
// is redacted, and names are cut to 200 units.
func Title(n Named, firstUser string) string {
	for _, name := range []string{n.Label, n.DisplayName, n.Subject} {
		if name = shown(name); name != "" {
			return name
		}
	}
	if said := visible.ShowLine(firstUser); said != "" {
		cut, longer := said, false
		if visible.Units(said) > titleUnits {
			cut, longer = visible.Cut(said, titleUnits-1)
		}
		if !longer {
			return said
		}
		if at := strings.LastIndexByte(cut, ' '); at >= 0 && visible.Units(cut[:at]) > titleUnits*6/10 {
			cut = cut[:at]
		}
		return cut + "…"
	}
	if n.SessionID == "" {
		return ""
	}
	id, _ := visible.Cut(n.SessionID, 8)
	if n.UpdatedAt > 0 && n.UpdatedAt <= 8.64e15 {
		return id + " (" + time.UnixMilli(int64(n.UpdatedAt)).UTC().Format("2006-01-02") + ")"
	}
	return id
}

// shown is a text as a listing shows it: without what cannot be seen, redacted
// and cut to 200 units.
func shown(s string) string {
	s = visible.Trim(visible.Show(s))
	if visible.Units(s) <= shownUnits {
		return s
	}
	s, _ = visible.Cut(s, shownUnits-1)
	return s + "…"
}

// A Glimpse is what the two ends of a transcript tell.
type Glimpse struct {
	SessionID string // of the header
	FirstUser string // first user message, whole; for Title
	Preview   string // last thing said on the active branch, redacted and cut to 200 units
	Speaker   string // who said it: user or assistant
	First     int64  // time of the first message, epoch ms; 0 if it is not known
	Last      int64  // time of the last one
	Messages  bool   // a message was seen; false with Whole means there is none
	Whole     bool   // the ends are the whole: nothing lies between them
}

var windows = sync.Pool{New: func() any { b := make([]byte, tailBytes); return &b }}

// Glance reads the first 8 KiB and the last 16 KiB of a transcript of size
// bytes. It reads more only to learn a time that they do not tell: 128 KiB from
// the start, 1 MiB from the end. It follows spec/session-tools.md 1: a first
// message beyond the window gives no title, a last line beyond it no preview.
func Glance(r io.ReaderAt, size int64) (Glimpse, error) {
	var g Glimpse
	buf := windows.Get().(*[]byte)
	defer windows.Put(buf)

	head, err := window(r, (*buf)[:min(size, headBytes)], 0)
	if err != nil {
		return g, fmt.Errorf("read the start of the transcript: %w", err)
	}
	g.head(head)
	if g.First == 0 && size > headBytes {
		wide, err := window(r, make([]byte, min(size, 16*headBytes)), 0)
		if err != nil {
			return g, fmt.Errorf("read the start of the transcript: %w", err)
		}
		var more Glimpse
		more.head(wide)
		g.First, g.Messages = more.First, g.Messages || more.Messages
	}
	tail, err := window(r, (*buf)[:min(size, tailBytes)], size-min(size, tailBytes))
	if err != nil {
		return g, fmt.Errorf("read the end of the transcript: %w", err)
	}
	g.Whole = size <= tailBytes
	g.tail(tail)
	if g.Last == 0 && !g.Whole {
		wide := make([]byte, min(size, 1<<20))
		if wide, err = window(r, wide, size-int64(len(wide))); err != nil {
			return g, fmt.Errorf("read the end of the transcript: %w", err)
		}
		g.Last = g.lastTime(wide)
	}
	if g.Last == 0 {
		g.Last = g.First
	}
	return g, nil
}

// GlanceRows is Glance for the first and the last rows of a transcript in a
// database, both in the order of the transcript. whole tells that there are none
// between them; they may overlap. Only the first 10 and the last 20 count.
func GlanceRows(first, last [][]byte, whole bool) Glimpse {
	g := Glimpse{Whole: whole}
	g.head(bytes.Join(first[:min(len(first), headLines)], []byte{'\n'}))
	g.tail(bytes.Join(last[max(0, len(last)-tailLines):], []byte{'\n'}))
	if g.Last == 0 {
		g.Last = g.First
	}
	return g
}

func window(r io.ReaderAt, buf []byte, at int64) ([]byte, error) {
	n, err := r.ReadAt(buf, at)
	if errors.Is(err, io.EOF) {
		err = nil // the file became shorter
	}
	return buf[:n], err
}

func (g *Glimpse) head(b []byte) {
	for n := 1; len(b) > 0; n++ {
		line, rest, whole := bytes.Cut(b, []byte{'\n'})
		b = rest
		line = bytes.TrimPrefix(line, bom)
		e, err := Parse(line)
		if e.Kind == Header && n <= headLines && g.SessionID == "" {
			g.SessionID = string(e.ID)
		}
		if e.Kind == Message || e.Message != nil {
			if ms, ok := e.Time(); ok && g.First == 0 {
				g.First = ms
			}
			g.Messages = true
		} else if err != nil && !whole && g.First == 0 && len(e.Stamp) > 0 && e.Kind == Opaque {
			g.First, _ = e.Time()
		}
		if err == nil && n <= headLines && g.FirstUser == "" && Role(e.Message) == "user" && !forwarded(e.Message) {
			g.FirstUser = Text(e.Message)
		}
		if g.First != 0 && (g.FirstUser != "" || n >= headLines) {
			return
		}
	}
}

func (g *Glimpse) tail(b []byte) {
	entries := lastEntries(b, tailLines)
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Message == nil {
			continue
		}
		g.Messages = true
		if ms, ok := entries[i].Time(); ok {
			g.Last = ms
			break
		}
	}
	active := activeTail(entries)
	for i := len(active) - 1; i >= 0; i-- {
		switch role := Role(active[i].Message); role {
		case "user", "assistant":
			said := Text(active[i].Message)
			if said == "" || role == "assistant" && visible.Silent(said) {
				continue
			}
			if said = shown(said); said == "" { // there was nothing to be seen
				continue
			}
			g.Preview, g.Speaker = said, role
			return
		}
	}
}

// lastTime is the time of the last message in a window whose last line may
// begin before it.
func (g *Glimpse) lastTime(b []byte) int64 {
	entries := lastEntries(b, tailLines)
	for i := len(entries) - 1; i >= 0; i-- {
		if ms, ok := entries[i].Time(); ok && entries[i].Message != nil {
			return ms
		}
	}
	// The end of a long message: the time is its last member.
	if at := bytes.LastIndex(b, []byte(`"timestamp":`)); at >= 0 {
		at += len(`"timestamp":`)
		if end, err := span.Skip(b, at); err == nil {
			if ms, ok := stamp(bytes.TrimSpace(b[at:end])); ok {
				return ms
			}
		}
	}
	return 0
}

// lastEntries parses the last n lines that are not blank.
func lastEntries(b []byte, n int) []Entry {
	var lines [][]byte
	for len(b) > 0 && len(lines) < n {
		at := lastBreak(b)
		line := b[at+1:]
		b = b[:max(at, 0)]
		if !blank(line) {
			lines = append(lines, line)
		}
	}
	entries := make([]Entry, 0, len(lines))
	for i := len(lines) - 1; i >= 0; i-- {
		if e, err := Parse(lines[i]); err == nil {
			entries = append(entries, e)
		}
	}
	return entries
}

// activeTail keeps the entries of the active branch, as far as these lines
// tell. A leaf row that points outside them leaves nothing.
func activeTail(entries []Entry) []Entry {
	rows, _ := ActiveRows(entries)
	active := make([]Entry, len(rows))
	for i, n := range rows {
		active[i] = entries[n]
	}
	return active
}

// ActiveRows tells which of the last entries of a transcript are on its active
// branch, as OpenClaw's history readers see it: all of them where no row says
// otherwise, and the last compaction before them. known is false where a leaf row
// points outside, or the parents go in a circle.
func ActiveRows(entries []Entry) (rows []int, known bool) {
	var t Tree
	for i := range entries {
		t.Add(&entries[i], Place{Line: i})
	}
	if t.flags.InvalidLeaf {
		return nil, false
	}
	if !t.flags.ExplicitLeaf {
		for i := range entries {
			rows = append(rows, i)
		}
		return rows, true
	}
	path, loop := t.path(t.leaf)
	if loop {
		return nil, false
	}
	for _, n := range path {
		if t.nodes.at(n).bits&leafRow == 0 {
			rows = append(rows, int(t.nodes.at(n).line))
		}
	}
	if len(rows) > 0 {
		for i := rows[0] - 1; i >= 0; i-- {
			if entries[i].Kind == Compaction {
				return append([]int{i}, rows...), true
			}
		}
	}
	return rows, true
}

var bom = []byte("\xef\xbb\xbf")
