package visible

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain is a text without what cannot be seen: terminal escapes, control and
// format characters, characters without a width. They can hide what a text says
// from a filter, and from its reader. Tabs stay; everything that ends a line is a
// line feed. What joins characters beyond ASCII, as in emoji and Persian, stays.
func Plain(s string) string {
	i := 0
	for i < len(s) && (s[i] >= ' ' && s[i] < 0x7f || s[i] == '\n' || s[i] == '\t') {
		i++
	}
	if i == len(s) {
		return s
	}
	b := make([]byte, i, len(s))
	copy(b, s)
	wide := false // the last character that is kept is one beyond ASCII
	for i < len(s) {
		c := s[i]
		if c < 0x80 {
			n := 1
			switch {
			case c == 0x1b:
				n = escape(s, i+1) + 1
			case c == '\r' && at(s, i+1) == '\n', c == 0x7f:
			case c == '\r', c == '\v', c == '\f':
				b, wide = append(b, '\n'), false
			case c >= ' ', c == '\n', c == '\t':
				b, wide = append(b, c), false
			}
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1: // no UTF-8, or a lone surrogate
			n, _ = char(s, i)
			b, wide = append(b, s[i:i+n]...), true
		case r == 0x9b:
			n += csi(s, i+n)
		case r == 0x85, r == 0x2028, r == 0x2029:
			b, wide = append(b, '\n'), false
		case hidden(r) && !(wide && joins(r)):
		default:
			b, wide = append(b, s[i:i+n]...), true
		}
		i += n
	}
	return string(b)
}

// longestString is longer than the string of any escape, which is a title or an address.
const longestString = 2048

// escape is the length of what follows an escape character and belongs to it.
func escape(s string, i int) int {
	switch c := at(s, i); c {
	case '[':
		return 1 + csi(s, i+1)
	case ']', 'P', 'X', '^', '_': // a string, up to its end
		for k := i + 1; k < min(len(s), i+longestString) && s[k] != '\n'; k++ {
			switch {
			case s[k] == 7:
				return k + 1 - i
			case s[k] == 0x1b && at(s, k+1) == '\\', strings.HasPrefix(s[k:], "\u009c"):
				return k + 2 - i
			}
		}
		return 1
	}
	k := i
	for k < len(s) && s[k] >= ' ' && s[k] <= '/' {
		k++
	}
	if c := at(s, k); c >= '0' && c <= '~' {
		return k + 1 - i
	}
	return 0
}

// csi is the length of a control sequence behind its introducer.
func csi(s string, i int) int {
	k := i
	for k < len(s) && s[k] >= ' ' && s[k] <= '?' {
		k++
	}
	if c := at(s, k); c >= '@' && c <= '~' {
		k++
	}
	return k - i
}

// hidden tells the characters that leave no mark.
func hidden(r rune) bool {
	switch {
	case r == 0x34f, r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, r >= 0x17b4 && r <= 0x17b5, r >= 0x180b && r <= 0x180f,
		r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// joins tells the hidden characters that writing needs.
func joins(r rune) bool {
	return r == 0x200c || r == 0x200d || r == 0x34f || r >= 0x180b && r <= 0x180f || r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef
}
