package span

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Trim removes what JavaScript's trim does: its white space and line ends,
// which are not quite Unicode's.
func Trim(s string) string {
	if s == "" || s[0] > ' ' && s[0] < utf8.RuneSelf && s[len(s)-1] > ' ' && s[len(s)-1] < utf8.RuneSelf {
		return s
	}
	return strings.TrimFunc(s, func(r rune) bool {
		switch r {
		case '\t', '\n', '\v', '\f', '\r', ' ', 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff:
			return true
		}
		return r >= 0x2000 && r <= 0x200a
	})
}

// Lower is JavaScript's toLowerCase: full case mapping, no locale. Lone
// surrogates stay as they are.
func Lower(s string) string {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return lowerUnicode(s)
		}
	}
	return strings.ToLower(s)
}

func lowerUnicode(s string) string {
	if utf8.ValidString(s) {
		return cases.Lower(language.Und).String(s)
	}
	// Lone surrogates are no UTF-8: map what stands between them.
	var b strings.Builder
	from := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			b.WriteString(cases.Lower(language.Und).String(s[from:i]))
			b.WriteByte(s[i])
			from = i + 1
		}
		i += n
	}
	b.WriteString(cases.Lower(language.Und).String(s[from:]))
	return b.String()
}
