package json5

import (
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// string reads a quoted string and returns what it says.
func (p *parser) string() string {
	open, quote := p.pos, p.data[p.pos]
	p.pos++
	var out []byte
	for {
		if p.end() {
			p.fail(p.pos, fmt.Sprintf("the string that starts at byte %d is not closed", open))
		}
		switch c := p.data[p.pos]; {
		case c == quote:
			p.pos++
			return string(out)
		case c == '\\':
			out = p.escape(out)
		case c == '\n' || c == '\r':
			p.fail(p.pos, fmt.Sprintf("the line ends inside the string that starts at byte %d", open))
		case c < utf8.RuneSelf:
			out = append(out, c)
			p.pos++
		default:
			r, size := p.rune()
			if r == utf8.RuneError && size == 1 {
				size = invalidLength(p.data[p.pos:])
			}
			out = utf8.AppendRune(out, r)
			p.pos += size
		}
	}
}

// invalidLength is how many bytes of invalid UTF-8 become one U+FFFD: the longest start of a character, as Node decodes files.
func invalidLength(b []byte) int {
	low, high, need := byte(0x80), byte(0xBF), 0
	switch c := b[0]; {
	case c >= 0xC2 && c <= 0xDF:
		need = 1
	case c >= 0xE0 && c <= 0xEF:
		need = 2
		if c == 0xE0 {
			low = 0xA0
		}
		if c == 0xED {
			high = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		need = 3
		if c == 0xF0 {
			low = 0x90
		}
		if c == 0xF4 {
			high = 0x8F
		}
	}
	n := 1
	for n <= need && n < len(b) && b[n] >= low && b[n] <= high {
		n, low, high = n+1, 0x80, 0xBF
	}
	return n
}

// escape reads what follows a backslash in a string and appends what it means.
func (p *parser) escape(out []byte) []byte {
	p.pos++
	if n := p.lineTerminator(); n > 0 {
		p.pos += n
		return out
	}
	c := p.peek()
	switch {
	case p.end():
		p.fail(p.pos, "the input ends inside an escape")
	case c == 'x':
		p.pos++
		return utf8.AppendRune(out, p.hex(2))
	case c == 'u':
		p.pos++
		return appendUnit(out, p.hex(4))
	case c == '0':
		p.pos++
		if next := p.peek(); next >= '0' && next <= '9' {
			p.fail(p.pos, "an octal escape, which JSON5 does not have")
		}
		return append(out, 0)
	case c >= '1' && c <= '9':
		p.fail(p.pos, "an octal escape, which JSON5 does not have")
	}
	for i, letter := range []byte("bfnrtv") {
		if c == letter {
			p.pos++
			return append(out, "\b\f\n\r\t\v"[i])
		}
	}
	r, size := p.rune()
	if r == utf8.RuneError && size == 1 {
		size = invalidLength(p.data[p.pos:])
	}
	p.pos += size
	return utf8.AppendRune(out, r)
}

func (p *parser) hex(digits int) rune {
	var r rune
	for range digits {
		c := p.peek()
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			p.fail(p.pos, "unexpected "+p.describe()+" where a hexadecimal digit should be")
		}
		r = r<<4 | rune(c)
		p.pos++
	}
	return r
}

// appendUnit appends one UTF-16 code unit; the second half of a pair joins the first, a lone half stays as its three WTF-8 bytes.
func appendUnit(out []byte, unit rune) []byte {
	if !utf16.IsSurrogate(unit) {
		return utf8.AppendRune(out, unit)
	}
	if n := len(out); unit >= 0xDC00 && n >= 3 && out[n-3] == 0xED && out[n-2] >= 0xA0 && out[n-2] <= 0xAF {
		first := 0xD000 | rune(out[n-2]&0x3F)<<6 | rune(out[n-1]&0x3F)
		return utf8.AppendRune(out[:n-3], utf16.DecodeRune(first, unit))
	}
	return append(out, 0xED, 0x80|byte(unit>>6&0x3F), 0x80|byte(unit&0x3F))
}

// identifier reads an unquoted key.
func (p *parser) identifier() string {
	var out []byte
	for {
		r, size := p.rune()
		escaped := r == '\\'
		at := p.pos
		if escaped {
			p.pos++
			if p.peek() != 'u' {
				p.fail(p.pos, "unexpected "+p.describe()+" after a backslash in a key")
			}
			p.pos++
			r = p.hex(4)
		}
		ok := identifierStart(r)
		if len(out) > 0 {
			ok = identifierPart(r)
		}
		switch {
		case ok && !escaped:
			p.pos += size
		case ok:
		case escaped:
			p.fail(at, fmt.Sprintf("%q cannot stand in a key without quotes", r))
		case len(out) == 0:
			p.fail(at, "unexpected "+p.describe()+" where a key should be")
		default:
			return string(out)
		}
		out = utf8.AppendRune(out, r)
	}
}

func identifierStart(r rune) bool {
	if r < utf8.RuneSelf {
		return r|0x20 >= 'a' && r|0x20 <= 'z' || r == '$' || r == '_'
	}
	return r != utf8.RuneError && unicode.In(r, unicode.L, unicode.Nl, unicode.Other_ID_Start)
}

func identifierPart(r rune) bool {
	if r < utf8.RuneSelf {
		return identifierStart(r) || r >= '0' && r <= '9'
	}
	return identifierStart(r) || r == '\u200C' || r == '\u200D' ||
		r != utf8.RuneError && unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue)
}
