package visible

import (
	"strings"

	"oc/store/span"
)

// Units is the length of s in UTF-16 units, as JavaScript counts.
func Units(s string) int { return span.UTF16Len(s) }

// Cut is the longest prefix of s that has at most n UTF-16 units and does not
// end in half a surrogate pair. The second result tells whether s was longer.
func Cut(s string, n int) (string, bool) {
	if len(s) <= n {
		return s, false
	}
	at, left := 0, n
	for at < len(s) {
		w, u := char(s, at)
		if u > left {
			return s[:at], true
		}
		at, left = at+w, left-u
	}
	return s, false
}

// char is the width in bytes and the length in units of the character at i.
// A byte that is not UTF-8 is a character of its own.
func char(s string, i int) (width, units int) {
	switch c := s[i]; {
	case c < 0x80:
		return 1, 1
	case c >= 0xf0:
		width, units = 4, 2
	case c >= 0xe0:
		width, units = 3, 1
	case c >= 0xc0:
		width, units = 2, 1
	default:
		return 1, 1
	}
	if i+width > len(s) {
		return 1, 1
	}
	for j := 1; j < width; j++ {
		if s[i+j]&0xc0 != 0x80 {
			return 1, 1
		}
	}
	return width, units
}

// before is the width of the character that ends at i, which is not 0.
func before(s string, i int) int {
	for w := 2; w <= 4 && w <= i && s[i-1] >= 0x80; w++ {
		if n, _ := char(s, i-w); n == w {
			return w
		}
		if s[i-w]&0xc0 != 0x80 {
			break
		}
	}
	return 1
}

// head is s[:n] and tail is s[len-n:] in UTF-16 units. A pair that is cut
// leaves its half behind, as JavaScript's slice does.
func head(s string, n int) string {
	at := 0
	for at < len(s) && n > 0 {
		w, u := char(s, at)
		if u > n {
			high, _ := halves(s[at : at+w])
			return s[:at] + high
		}
		at, n = at+w, n-u
	}
	return s[:at]
}

func tail(s string, n int) string {
	at := len(s)
	for at > 0 && n > 0 {
		w := before(s, at)
		_, u := char(s, at-w)
		if u > n {
			_, low := halves(s[at-w : at])
			return low + s[at:]
		}
		at, n = at-w, n-u
	}
	return s[at:]
}

// halves are the two surrogates of a character beyond the first plane.
func halves(s string) (high, low string) {
	r := rune(s[0]&7)<<18 | rune(s[1]&0x3f)<<12 | rune(s[2]&0x3f)<<6 | rune(s[3]&0x3f)
	r -= 0x10000
	return surrogate(0xd800 + r>>10), surrogate(0xdc00 + r&0x3ff)
}

func surrogate(r rune) string {
	return string([]byte{0xe0 | byte(r>>12), 0x80 | byte(r>>6)&0x3f, 0x80 | byte(r)&0x3f})
}

// space is the width of the white space (JavaScript's \s) that starts at i, 0
// if none does; spaceBefore that of the one that ends at i.
func space(s string, i int) int {
	if i >= len(s) {
		return 0
	}
	switch c := s[i]; {
	case c == ' ' || c >= '\t' && c <= '\r':
		return 1
	case c < 0xc2:
		return 0
	case c == 0xc2:
		if i+1 < len(s) && s[i+1] == 0xa0 {
			return 2
		}
	case c == 0xe1 || c == 0xe2 || c == 0xe3 || c == 0xef:
		if i+2 >= len(s) {
			return 0
		}
		a, b := s[i+1], s[i+2]
		switch {
		case c == 0xe1 && a == 0x9a && b == 0x80,
			c == 0xe2 && a == 0x80 && (b >= 0x80 && b <= 0x8a || b == 0xa8 || b == 0xa9 || b == 0xaf),
			c == 0xe2 && a == 0x81 && b == 0x9f,
			c == 0xe3 && a == 0x80 && b == 0x80,
			c == 0xef && a == 0xbb && b == 0xbf:
			return 3
		}
	}
	return 0
}

func spaceBefore(s string, i int) int {
	if i == 0 {
		return 0
	}
	if s[i-1] < 0x80 {
		return space(s, i-1)
	}
	for w := 2; w <= 3 && w <= i; w++ {
		if space(s, i-w) == w {
			return w
		}
	}
	return 0
}

// skip passes white space forward, back passes it backward.
func skip(s string, i int) int {
	for w := space(s, i); w > 0; w = space(s, i) {
		i += w
	}
	return i
}

func back(s string, i int) int {
	for w := spaceBefore(s, i); w > 0; w = spaceBefore(s, i) {
		i -= w
	}
	return i
}

// Trim takes JavaScript's white space off both ends.
func Trim(s string) string {
	i := skip(s, 0)
	if i == len(s) {
		return ""
	}
	return s[i:back(s, len(s))]
}

// word tells whether c is a word character of JavaScript's \b and \w.
func word(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// edge tells whether \b holds at i.
func edge(s string, i int) bool {
	return (i > 0 && word(s[i-1])) != (i < len(s) && word(s[i]))
}

// lower is c in lower case, ASCII alone.
func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// hasFold tells whether s has lit at i, in any case; lit is in lower case.
func hasFold(s string, i int, lit string) bool {
	if i < 0 || len(s)-i < len(lit) {
		return false
	}
	for j := range len(lit) {
		if lower(s[i+j]) != lit[j] {
			return false
		}
	}
	return true
}

// indexFold is where lit stands in s at from or later, in any case; -1 if
// nowhere. lit is in lower case.
func indexFold(s string, from int, lit string) int {
	// A byte that has no case, if there is one, is found at memory speed.
	k := 0
	for k < len(lit) && (nameByte(lit[k]) || lit[k] == ' ') {
		k++
	}
	if k < len(lit) {
		for i := from + k; i < len(s); i++ {
			n := strings.IndexByte(s[i:], lit[k])
			if n < 0 {
				return -1
			}
			if i += n; hasFold(s, i-k, lit) {
				return i - k
			}
		}
		return -1
	}
	first, upper := lit[0], lit[0]&^0x20
	for i := from; i+len(lit) <= len(s); i++ {
		if c := s[i]; (c == first || c == upper) && hasFold(s, i, lit) {
			return i
		}
	}
	return -1
}

// Fields splits s at runs of white space.
func Fields(s string) (list []string) {
	for i := skip(s, 0); i < len(s); {
		j := i
		for j < len(s) && space(s, j) == 0 {
			j++
		}
		list = append(list, s[i:j])
		i = skip(s, j)
	}
	return list
}
