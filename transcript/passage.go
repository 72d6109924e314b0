package transcript

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"oc/store/span"
	"oc/transcript/visible"
)

// A Passage is one text of an entry: something that was said, thought, called,
// answered or summed up.
type Passage struct {
	Role string // of the message; summary, custom, name or label for other entries
	Part string // text, thinking, call, result, details, output, error or summary
	Text string
}

// Passages gives the texts of an entry in the order of its bytes until f is
// false. Left out is what is not for reading: ids, signatures, and the data of
// images.
func (e *Entry) Passages(f func(Passage) bool) {
	e.literals(func(role, part string, raw []byte) bool {
		s := plainText(raw)
		return s == "" || f(Passage{role, part, s})
	})
}

// plainText decodes a string literal; another value is text as it is written.
func plainText(raw []byte) string {
	if s, ok := span.Text(raw); ok {
		return s
	}
	return string(raw)
}

// literals is Passages for texts that are not decoded yet.
func (e *Entry) literals(f func(role, part string, raw []byte) bool) {
	w := passages{give: f}
	whole := func(role, part, name string) {
		w.role = role
		w.text(part, span.Member(e.Raw, name))
	}
	switch e.Kind {
	case Compaction, BranchSummary, Reset:
		whole("summary", "summary", "summary")
	case CustomMessage:
		w.role = "custom"
		w.content("text", span.Member(e.Raw, "content"), 0)
	case SessionInfo:
		whole("name", "text", "name")
	case Label:
		whole("label", "text", "label")
	default:
		if span.KindOf(e.Message) == span.Object {
			w.message(e.Message)
		}
	}
}

type passages struct {
	role string
	give func(role, part string, raw []byte) bool
	done bool
}

func (w *passages) text(part string, raw []byte) {
	if !w.done && span.KindOf(raw) == span.String {
		w.done = !w.give(w.role, part, raw)
	}
}

// field is a member of an object.
type field struct{ key, val []byte }

// fields are the members of an object, in one walk, up to where it is broken.
func fields(list []field, obj []byte) []field {
	c := span.Cursor{B: obj}
	for key, err := c.Open(); key != nil && err == nil; key, err = c.Next() {
		val, err := c.Value()
		if err != nil {
			break
		}
		list = append(list, field{key, val})
	}
	return list
}

// last is the text of the last member of that name, as span.Member finds it.
func last(list []field, name string) (s string) {
	for i := len(list) - 1; i >= 0; i-- {
		if span.Is(list[i].key, name) {
			s, _ = span.Text(list[i].val)
			return s
		}
	}
	return ""
}

func (w *passages) message(raw []byte) {
	var room [16]field
	list := fields(room[:0], raw)
	w.role = last(list, "role")
	for _, f := range list {
		switch key, val := f.key, f.val; {
		case w.done:
			return
		case span.Is(key, "content"):
			part := "text"
			if w.role == "toolResult" {
				part = "result"
			}
			w.content(part, val, 0)
		case span.Is(key, "text"):
			w.text("text", val)
		case span.Is(key, "command"):
			w.text("call", val)
		case span.Is(key, "output"):
			w.text("output", val)
		case span.Is(key, "summary"):
			w.text("summary", val)
		case span.Is(key, "errorMessage"), span.Is(key, "errorBody"):
			w.text("error", val)
		case span.Is(key, "details"):
			w.all("details", val, 0)
		}
	}
}

// content takes a text, or blocks.
func (w *passages) content(part string, raw []byte, depth int) {
	switch span.KindOf(raw) {
	case span.String:
		w.text(part, raw)
	case span.Array:
		_, _ = span.Items(raw, 0, func(block []byte) error {
			if w.done {
				return ErrStop
			}
			w.block(part, block, depth)
			return nil
		})
	case span.Object:
		w.block(part, raw, depth)
	}
}

// How deep values are followed; what lies deeper is searched as it is written.
const passageDepth = 200

func (w *passages) block(part string, raw []byte, depth int) {
	switch {
	case depth > passageDepth:
		w.done = w.done || !w.give(w.role, part, raw)
		return
	case span.KindOf(raw) == span.String:
		w.text(part, raw)
		return
	case span.KindOf(raw) != span.Object:
		return
	}
	var room [8]field
	list, call := fields(room[:0], raw), false
	switch last(list, "type") {
	case "toolCall", "toolUse", "functionCall", "tool_call", "tool_use", "function_call":
		call, part = true, "call"
	case "thinking":
		part = "thinking"
	}
	for _, f := range list {
		switch key, val := f.key, f.val; {
		case w.done:
			return
		case span.Is(key, "text"), span.Is(key, "thinking"):
			w.text(part, val)
		case span.Is(key, "content"):
			w.content(part, val, depth+1)
		case span.Is(key, "name") && call, span.Is(key, "partialJson"):
			w.text(part, val)
		case span.Is(key, "arguments"), span.Is(key, "input"), span.Is(key, "args"):
			w.all(part, val, depth+1)
		case span.Is(key, "details"):
			w.all("details", val, depth+1)
		}
	}
}

// all takes every string in a value.
func (w *passages) all(part string, raw []byte, depth int) {
	switch kind := span.KindOf(raw); {
	case w.done:
	case kind == span.String:
		w.text(part, raw)
	case depth > passageDepth && (kind == span.Array || kind == span.Object):
		w.done = !w.give(w.role, part, raw)
	case kind == span.Array:
		_, _ = span.Items(raw, 0, func(val []byte) error {
			if w.done {
				return ErrStop
			}
			w.all(part, val, depth+1)
			return nil
		})
	case kind == span.Object:
		_, _ = span.Each(raw, 0, func(_, val []byte) error {
			if w.done {
				return ErrStop
			}
			w.all(part, val, depth+1)
			return nil
		})
	}
}

// Holds tells whether a passage of an entry holds the needle. It is cheaper than
// In, as most texts need not be decoded for it. What only steers OpenClaw, as
// NO_REPLY does, is no text that anybody saw, and is not found.
func (n *Needle) Holds(e *Entry) (ok bool) {
	e.literals(func(role, part string, raw []byte) bool {
		ok = n.holds(raw) && !(role == "assistant" && part == "text" && visible.Control(plainText(raw)))
		return !ok
	})
	return ok
}

func (n *Needle) holds(raw []byte) bool {
	s := n.sieve.over(raw)
	at := s.next(0)
	switch {
	case len(s.piece) > 0 && at == len(raw):
		return false
	case n.whole && s.matches(at) && bytes.IndexByte(raw[max(0, at-escapeBytes):at], '\\') < 0:
		return true // it stands there, and none of it is the end of an escape
	}
	_, _, ok := n.Find(plainText(raw))
	return ok
}

// In is the first passage of an entry that holds the needle, and where.
func (n *Needle) In(e *Entry) (p Passage, start, end int, ok bool) {
	e.Passages(func(q Passage) bool {
		start, end, ok = n.Find(q.Text)
		ok = ok && !(q.Role == "assistant" && q.Part == "text" && visible.Control(q.Text))
		p = q
		return !ok
	})
	return p, start, end, ok
}

// A Snip is a found place with as much around it as an excerpt needs.
type Snip struct {
	text        string
	start, end  int
	left, right bool // there is more
}

// How many bytes around a place are looked at for credentials: the longest of
// them, a private key, is shorter.
const excerptReach = 16 << 10

// Cut takes a Snip out of a text at a place that Find gave.
func (n *Needle) Cut(s string, start, end int) Snip {
	if len(s) <= 4*excerptReach {
		return Snip{text: s, start: start, end: end}
	}
	from, to := max(0, start-excerptReach), min(len(s), end+excerptReach)
	for from > 0 && !utf8.RuneStart(s[from]) {
		from++
	}
	for to < len(s) && !utf8.RuneStart(s[to]) {
		to--
	}
	return Snip{strings.Clone(s[from:to]), start - from, end - from, from > 0, to < len(s)}
}

// An Excerpt is what stands around a place in a text, on one line and with
// credentials masked.
type Excerpt struct {
	Before, Match, After string
	Redacted             bool // something near was masked; without a Match, what was found itself
}

// Excerpt shows a snip, with about that many UTF-16 units before and behind
// the place. A nil Redactor is the zero one.
func (n *Needle) Excerpt(sn Snip, units int, r *visible.Redactor) (x Excerpt) {
	if r == nil {
		r = new(visible.Redactor)
	}
	start, end, more := sn.start, sn.end, sn.right
	plain := visible.Plain(sn.text)
	shown := r.Show(plain)
	if x.Redacted = shown != plain; x.Redacted {
		start, end = n.again(plain, shown)
	} else if plain != sn.text {
		if from, to, ok := n.Find(plain); ok {
			start, end = from, to
		} else {
			shown = sn.text // what was looked for is what Plain takes out
		}
	}
	// First on one line, then cut, so that what is shown does not shrink.
	before, after := oneLine(shown[:start], true), oneLine(shown[end:], false)
	if x.Match = oneLine(shown[start:end], false); visible.Units(x.Match) > 4*units {
		x.Match, _ = visible.Cut(x.Match, 4*units)
		x.Match, after, more = x.Match+"…", "", false
	}
	if x.Before = lastUnits(before, units); sn.left || x.Before != before {
		x.Before = "…" + x.Before
	}
	if x.After = after; visible.Units(after) > units {
		x.After, _ = visible.Cut(after, units)
		more = true
	}
	if more {
		x.After += "…"
	}
	return x
}

// again finds the needle in the text whose credentials are masked. Where it is
// in what was masked, the place of the first mask is given, with nothing between.
func (n *Needle) again(s, shown string) (start, end int) {
	if start, end, ok := n.Find(shown); ok {
		return start, end
	}
	for start < len(s) && start < len(shown) && s[start] == shown[start] {
		start++
	}
	for start > 0 && start < len(shown) && !utf8.RuneStart(shown[start]) {
		start--
	}
	return start, start
}

// oneLine makes every run of white space one blank.
func oneLine(s string, left bool) string {
	if s == "" {
		return ""
	}
	if len(s) > 4<<10 { // only the near end is shown
		if left {
			s = s[len(s)-4<<10:]
			for len(s) > 0 && !utf8.RuneStart(s[0]) {
				s = s[1:]
			}
		} else {
			s, _ = visible.Cut(s, 4<<10)
		}
	}
	head, tail := strings.TrimLeft(s, " \t\r\n") != s, strings.TrimRight(s, " \t\r\n") != s
	line := collapse(s)
	if head && line != "" {
		line = " " + line
	}
	if tail {
		line += " "
	}
	return line
}

// lastUnits is the end of s of at most so many UTF-16 units.
func lastUnits(s string, units int) string {
	n := 0
	for i := len(s); i > 0; {
		_, w := utf8.DecodeLastRuneInString(s[:i])
		if n += 1 + w/4; n > units {
			return s[i:]
		}
		i -= w
	}
	return s
}
