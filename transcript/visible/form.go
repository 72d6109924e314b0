package visible

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file masks the values of form bodies and URL queries, whose names may be
// spelled with percent escapes, plus signs and invisible characters
// (spec/session-tools.md 2.6, passes A and B).

var (
	formName  = in("A-Za-z0-9_.-")
	formValue = notIn("&<>")
)

// invisible is the width of the character at i that a name may hide behind: a
// plus sign, white space beyond the blank, a control or format character; 0 if
// it is none.
func invisible(s string, i int) int {
	c := s[i]
	if c < 0x80 {
		if c == '+' || c < ' ' || c == 0x7f {
			return 1
		}
		return 0
	}
	r, w := utf8.DecodeRuneInString(s[i:])
	if r == utf8.RuneError && w == 1 {
		if w, _ := char(s, i); w == 3 {
			return 3 // a lone surrogate
		}
		return 0
	}
	switch {
	case r == 0xa0, r == 0x1680, r >= 0x2000 && r <= 0x200a, r == 0x202f, r == 0x205f, r == 0x3000,
		r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, other(r):
		return w
	}
	return 0
}

// other tells whether r has the general category C: control, format, private
// use, or not assigned.
func other(r rune) bool {
	return !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z)
}

func percent(s string, i int) bool {
	return i+2 < len(s) && s[i] == '%' && hex.has(s, i+1) && hex.has(s, i+2)
}

// names reads names of form pairs. It remembers the last one, so that asking
// from many places inside it costs one pass.
type names struct {
	s                  string
	start, hidden, end int // its start, the end of the invisible characters it starts with, its end
}

// to is where the name that starts at i ends; ok tells whether it is one.
func (n *names) to(i int) (end int, ok bool) {
	s := n.s
	if i < n.start || i >= n.end {
		j := i
		for j < len(s) {
			w := invisible(s, j)
			if w == 0 {
				break
			}
			j += w
		}
		n.start, n.hidden = i, j
		for j < len(s) {
			switch w := 0; {
			case formName.has(s, j):
				j++
				continue
			case percent(s, j):
				j += 3
				continue
			default:
				if w = invisible(s, j); w > 0 {
					j += w
					continue
				}
			}
			break
		}
		n.end = j
	}
	real := n.hidden
	if i > real {
		for real = i; real < n.end; {
			w := invisible(s, real)
			if w == 0 {
				break
			}
			real += w
		}
		n.hidden = real
	}
	return n.end, real < n.end && (percent(s, real) || nameByte(s[real]) || s[real] == '_')
}

// disguised tells whether a name has escapes or invisible characters.
func disguised(name string) bool {
	for i := 0; i < len(name); {
		if percent(name, i) || invisible(name, i) > 0 {
			return true
		}
		w, _ := char(name, i)
		i += w
	}
	return false
}

// sensitive tells whether the value of a pair with this name is a secret.
func sensitive(name string) bool {
	plain := visibleOnly(name)
	if strings.IndexByte(plain, '%') >= 0 {
		if decoded, err := url.PathUnescape(plain); err == nil && utf8.ValidString(decoded) {
			plain = visibleOnly(decoded)
		}
	}
	return bodyKeys[strings.ReplaceAll(strings.ToLower(plain), "-", "_")]
}

// visibleOnly drops invisible characters, blanks and plus signs.
func visibleOnly(name string) string {
	hidden := func(i int) int {
		if w := invisible(name, i); w > 0 {
			return w
		}
		if r, w := utf8.DecodeRuneInString(name[i:]); unicode.Is(unicode.Z, r) {
			return w
		}
		return 0
	}
	var b []byte
	done := 0
	for i := 0; i < len(name); {
		if w := hidden(i); w > 0 {
			b = append(b, name[done:i]...)
			i += w
			done = i
			continue
		}
		w, _ := char(name, i)
		i += w
	}
	if done == 0 {
		return name
	}
	return string(append(b, name[done:]...))
}

// redactForms masks what passes A and B find.
func redactForms(s string) string {
	if strings.IndexByte(s, '?') >= 0 {
		s = urlPairs(s)
	}
	if strings.IndexByte(s, '=') < 0 {
		return s
	}
	bodies := indexFold(s, 0, "body") >= 0 || indexFold(s, 0, "form") >= 0
	e := edits{s: s}
	for from := 0; from < len(s); {
		end := len(s)
		if n := strings.IndexAny(s[from:], "\r\n"); n >= 0 {
			end = from + n
		}
		if line := s[from:end]; line != "" {
			if masked := formLine(line, bodies); masked != line {
				e.put(from, end, masked)
			}
		}
		from = end + 1
	}
	return e.text()
}

// edits collects replacements in a text.
type edits struct {
	s    string
	done int
	b    []byte
}

func (e *edits) put(from, to int, with string) {
	e.b = append(append(e.b, e.s[e.done:from]...), with...)
	e.done = to
}

func (e *edits) text() string {
	if e.done == 0 {
		return e.s
	}
	return string(append(e.b, e.s[e.done:]...))
}

// urlPairs masks ?name=value and &name=value where the name is in disguise.
func urlPairs(s string) string {
	e, name, value := edits{s: s}, names{s: s}, run{class: queryValue}
	for i := 0; i < len(s); i++ {
		if s[i] != '?' && s[i] != '&' {
			continue
		}
		eq, ok := name.to(i + 1)
		if !ok || at(s, eq) != '=' {
			continue
		}
		end := value.to(s, eq+1)
		if key := s[i+1 : eq]; disguised(key) && sensitive(key) {
			e.put(eq+1, end, maskValue(s[eq+1:end]))
		}
		i = end - 1
	}
	return e.text()
}

// formLine masks what stands on a line; bodies tells whether it may have the
// words that bodyPair looks for.
func formLine(s string, bodies bool) string {
	if strings.IndexByte(s, '=') < 0 {
		return s
	}
	s = disguisedPairs(s)
	if bodies {
		s = bodyPair(s)
	}
	if strings.IndexByte(s, '&') < 0 {
		return s
	}
	f := form{s: s, name: names{s: s}, value: run{class: formValue}}
	if end, ok := f.pairs(0); ok && end == len(s) {
		return starPairs(s)
	}
	e := edits{s: s}
	for i := 0; i < len(s); {
		if body, end, ok := opens(s, i, opensForm, f.pairs); ok {
			if was := s[body:end]; was != "" {
				if stars := starPairs(was); stars != was {
					e.put(body, end, stars)
				}
			}
			i = end
			continue
		}
		i = opensForm.next(s, i)
	}
	s = disguisedPairs(e.text())
	if bodies {
		s = bodyPair(s)
	}
	return s
}

// What a pair may follow: white space, and these.
var (
	opensForm = openers(" \t:({[,=\"'`")
	opensPair = openers(" \t:({[,=\"'`&")
)

func openers(chars string) *class {
	c := in(chars)
	for i := range c.ascii {
		c.ascii[i] = c.ascii[i] || space(string(rune(i)), 0) > 0
	}
	return c
}

// next is the place of the character behind i that is an opener, or is not
// ASCII and so may be white space; the end of the text if there is none.
func (c *class) next(s string, i int) int {
	if s[i] < 0x80 {
		i++
	} else {
		w, _ := char(s, i)
		i += w
	}
	for i < len(s) && s[i] < 0x80 && !c.ascii[s[i]] {
		i++
	}
	return i
}

// opens tries what starts at the start of the text, or behind the character at
// i if that is white space or an opener.
func opens(s string, i int, chars *class, try func(int) (int, bool)) (body, end int, ok bool) {
	if i == 0 {
		if end, ok = try(0); ok {
			return 0, end, true
		}
	}
	w := 1
	if c := s[i]; c >= 0x80 {
		if w = space(s, i); w == 0 {
			return 0, 0, false
		}
	} else if !chars.ascii[c] {
		return 0, 0, false
	}
	end, ok = try(i + w)
	return i + w, end, ok
}

// form reads name=value&name=value.
type form struct {
	s      string
	name   names
	next   names
	value  run
	behind int // where the last value ended, and how far pairs go on from there
	far    int
}

func (f *form) pair(n *names, i int) (int, bool) {
	eq, ok := n.to(i)
	if !ok || at(f.s, eq) != '=' {
		return 0, false
	}
	return f.value.to(f.s, eq+1), true
}

// pairs passes at least two pairs.
func (f *form) pairs(i int) (int, bool) {
	first, ok := f.pair(&f.name, i)
	if !ok {
		return 0, false
	}
	if first != f.behind || f.far == 0 {
		f.next.s = f.s
		f.behind, f.far = first, first
		for at(f.s, f.far) == '&' {
			end, ok := f.pair(&f.next, f.far+1)
			if !ok {
				break
			}
			f.far = end
		}
		// The runs looked ahead; the next question is about an earlier place.
		f.value = run{class: formValue, start: i, end: first}
	}
	return f.far, f.far > first
}

// starPairs masks the sensitive values of a form body whole.
func starPairs(body string) string {
	e := edits{s: body}
	for from := 0; from <= len(body); {
		end := indexFrom(body, from, '&')
		if name, value, ok := strings.Cut(body[from:end], "="); ok && sensitive(name) {
			e.put(end-len(value), end, starValue(value))
		}
		from = end + 1
	}
	return e.text()
}

// disguisedPairs masks name=value where the name is in disguise.
func disguisedPairs(s string) string {
	if !disguisedAny(s) {
		return s
	}
	f := form{s: s, name: names{s: s}, value: run{class: formValue}}
	try := func(i int) (int, bool) { return f.pair(&f.name, i) }
	e := edits{s: s}
	for i := 0; i < len(s); {
		body, end, ok := opens(s, i, opensPair, try)
		if !ok {
			i = opensPair.next(s, i)
			continue
		}
		eq, _ := f.name.to(body)
		if key := s[body:eq]; disguised(key) && sensitive(key) {
			e.put(eq+1, end, starValue(s[eq+1:end]))
		}
		i = max(end, i+1)
	}
	return e.text()
}

// disguisedAny tells whether a name in disguise may stand before an equals sign:
// whether there is anything but a plain name between it and the byte before
// which no name has.
func disguisedAny(s string) bool {
	for p := 0; ; p++ {
		n := strings.IndexByte(s[p:], '=')
		if n < 0 {
			return false
		}
		for i := p + n - 1; i >= 0; i-- {
			c := s[i]
			if c < 0x80 && formName.ascii[c] {
				continue
			}
			if c == '%' || c >= 0x80 || invisible(s, i) > 0 {
				return true
			}
			break
		}
		p += n
	}
}

// bodyPair masks the one pair in body: name=value, form=name=value.
func bodyPair(s string) string {
	e, name, value := edits{s: s}, names{s: s}, run{class: formValue}
	for i := 0; i < len(s); i++ {
		c := lower(s[i])
		if c != 'b' && c != 'f' || !edge(s, i) {
			continue
		}
		p := 0
		switch {
		case hasFold(s, i, "body"):
			p = i + 4
		case hasFold(s, i, "form"):
			p = i + 4
			w := space(s, p)
			if w == 0 && (at(s, p) == '-' || at(s, p) == '_') {
				w = 1
			}
			if hasFold(s, p+w, "body") {
				p += w + 4
			}
		default:
			continue
		}
		if p = skip(s, p); !separator(at(s, p)) {
			continue
		}
		p = skip(s, p+1)
		if q := at(s, p); quote(q) || q == '`' {
			p++
		}
		eq, ok := name.to(p)
		if !ok || at(s, eq) != '=' {
			continue
		}
		end := value.to(s, eq+1)
		if sensitive(s[p:eq]) {
			e.put(eq+1, end, starValue(s[eq+1:end]))
		}
		i = end - 1
	}
	return e.text()
}
