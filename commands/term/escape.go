package term

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes data safe to show on one line: control characters, line breaks, escape sequences, marks that turn the direction of
// text, characters without width, and bytes that are no UTF-8 are written out as \n, \x1b, \u202e, \u{e0041}, \xff; lone surrogates
// (three bytes, as span.Text gives them) as \ud83d, and a combining mark at the beginning, which would change what stands before it.
// All else stays, so most strings come back as they are.
func Escape(s string) string {
	i := 0
	for i < len(s) && s[i] >= ' ' && s[i] < 0x7f {
		i++
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	clean := 0 // s[clean:i] is still to be copied
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		bad := r == utf8.RuneError && size == 1
		if !bad && !unsafe(r) && (i > 0 || !unicode.Is(unicode.M, r)) {
			i += size
			continue
		}
		if bad {
			r, size = broken(s[i:])
		}
		b.WriteString(s[clean:i])
		write(&b, r, bad && size == 1)
		i += size
		clean = i
	}
	if clean == 0 {
		return s
	}
	b.WriteString(s[clean:])
	return b.String()
}

// broken reads what is no UTF-8: a lone surrogate in three bytes, else one byte.
func broken(s string) (rune, int) {
	if len(s) >= 3 && s[0] == 0xed && s[1]&0xe0 == 0xa0 && s[2]&0xc0 == 0x80 {
		return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), 3
	}
	return rune(s[0]), 1
}

func write(b *strings.Builder, r rune, byteOnly bool) {
	switch {
	case byteOnly:
		fmt.Fprintf(b, `\x%02x`, r)
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\r':
		b.WriteString(`\r`)
	case r == '\t':
		b.WriteString(`\t`)
	case r < 0x80:
		fmt.Fprintf(b, `\x%02x`, r)
	case r <= 0xffff:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\u{%x}`, r)
	}
}

// unsafe says whether showing r would do something else than draw a character.
func unsafe(r rune) bool {
	switch {
	case r < ' ' || r == 0x7f:
		return true
	case r < 0x7f:
		return false
	case r == 0x034f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0, r == 0x2800: // blank fillers
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Noncharacter_Code_Point) ||
		r >= 0xe0100 && r <= 0xe01ef || r >= 0x180b && r <= 0x180f
}
