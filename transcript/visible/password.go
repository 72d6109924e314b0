package visible

import (
	"strings"
	"unicode/utf8"
)

// This file masks what prose gives as a password: "password: …", "the passphrase
// for it is …". It is oc's own rule, on top of OpenClaw's, which know a password
// by the forms of programs.

// passwordWords are told by their stem, which is what is looked for. A phrase may
// have several words.
var passwordWords = []struct {
	stem   string
	tails  []string
	phrase bool
}{
	{"pass", []string{"word", "wort", "wd", "code"}, false},
	{"pass", []string{"phrase", " phrase", "-phrase", "_phrase"}, true},
	{"kennwort", []string{""}, false},
	{"pwd", []string{""}, false},
}

// noPasswords are what is said about passwords, not passwords.
var noPasswords = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields("string text required optional none null nil undefined true false yes no wrong incorrect invalid" +
		" missing empty hidden masked redacted correct unset unknown expired rejected falsch richtig leer") {
		m[w] = true
	}
	return m
}()

func redactPasswords(s string) string {
	for _, w := range passwordWords {
		e := edits{s: s}
		for i := indexFold(s, 0, w.stem); i >= 0; i = indexFold(s, i, w.stem) {
			start := i
			i += len(w.stem)
			for _, tail := range w.tails {
				if !hasFold(s, i, tail) {
					continue
				}
				if lo, hi := password(s, i+len(tail), w.phrase); hi > lo && lo >= e.done && !(w.stem == "pwd" && start > 0 && nameByte(s[start-1])) {
					e.put(lo, hi, "***")
					i = hi
				}
				break
			}
		}
		s = e.text()
	}
	return s
}

// password is where the value is that the word that ends at i announces; empty if
// it announces none.
func password(s string, i int, phrase bool) (lo, hi int) {
	if lower(at(s, i)) == 's' { // passwords: …
		i++
	}
	if nameByte(at(s, i)) || at(s, i) == '-' && nameByte(at(s, i+1)) {
		return 0, 0 // another word
	}
	// How sure it is that a value follows: a colon says so, a verb may say something else.
	at0 := decorated(s, i)
	k, sure := connector(s, at0)
	if k < 0 { // "for the server:", "(root) is"
		for end := at0; k < 0 && end < len(s) && end-at0 < 48 && s[end] != '\n' && strings.IndexByte(".;!?", s[end]) < 0; end++ {
			if end > at0 && (space(s, end) > 0 || s[end] == ':' || s[end] == '=') {
				k, _ = connector(s, end)
			}
		}
		sure = false
	}
	if k < 0 {
		k = at0
	}
	line := strings.IndexByte(s[k:min(len(s), k+64)], '\n')
	lo = skip(s, k)
	if line >= 0 && lo > k+line {
		sure = false // it stands on a line of its own
	}
	for lo < len(s) && (s[lo] == '*' || s[lo] == '_') && lo+3 <= len(s) && s[lo:lo+3] != "***" {
		lo++ // **bold**
	}
	if open, w := utf8.DecodeRuneInString(s[min(lo, len(s)):]); w > 0 {
		if closing := closingQuote(open); closing != "" {
			lo += w
			if n := strings.IndexAny(s[lo:min(len(s), lo+256)], closing+"\n"); n > 0 && s[lo+n] != '\n' {
				hi, sure = lo+n, true
				return lo, told(s, lo, hi, sure)
			}
		}
	}
	hi = lo
	for hi < len(s) && space(s, hi) == 0 && s[hi] != '&' && s[hi] != '<' {
		w, _ := char(s, hi)
		hi += w
	}
	if phrase && sure {
		if n := strings.IndexByte(s[lo:], '\n'); n >= 0 {
			hi = lo + n
		} else {
			hi = len(s)
		}
	}
	for hi > lo && strings.IndexByte(".,;:?)]}\"'`*_", s[hi-1]) >= 0 && s[lo:hi] != "***" {
		hi--
	}
	return lo, told(s, lo, hi, sure)
}

// told is hi if what stands at [lo, hi) is to be masked, else lo.
func told(s string, lo, hi int, sure bool) int {
	v := s[lo:hi]
	switch {
	case len(v) < 3, strings.Contains(v, "***"), strings.Contains(v, "…"), noPasswords[strings.ToLower(v)]:
		return lo
	case v[0] == '$' && (at(v, 1) == '{' || strings.ToUpper(v) == v), v[0] == '{', v[0] == '%' && v[len(v)-1] == '%':
		return lo // a reference
	case strings.Contains(v, "://"):
		return lo
	case !sure && !random(v, 6):
		return lo
	}
	return hi
}

// random tells what is no word: letters beside digits or signs.
func random(v string, least int) bool {
	letters, others := 0, 0
	for i := range len(v) {
		switch c := v[i]; {
		case nameByte(c):
			letters++
		case digits.ascii[c&0x7f] && c < 0x80, strings.IndexByte("!#$%^&*+=@", c) >= 0:
			others++
		}
	}
	return len(v) >= least && letters > 0 && others > 0
}

// decorated passes what may close the word: a quote, Markdown, a bracket.
func decorated(s string, i int) int {
	for i < len(s) && strings.IndexByte("\"'`*_)]", s[i]) >= 0 {
		i++
	}
	return i
}

// connector passes white space and what says that a value follows, and is -1
// where nothing says it.
func connector(s string, i int) (end int, sure bool) {
	i = skip(s, i)
	for _, c := range [...]string{":=", "=>", "->", "==", ":", "=", "：", "→"} {
		if strings.HasPrefix(s[i:], c) && !strings.HasPrefix(s[i+len(c):], "//") {
			return decorated(s, i+len(c)), true
		}
	}
	for _, c := range [...]string{"is", "was", "are", "ist", "war", "lautet"} {
		if hasFold(s, i, c) && (i == 0 || !nameByte(s[i-1])) && !word(at(s, i+len(c))) {
			end := i + len(c)
			if k := skip(s, end); at(s, k) == ':' {
				return k + 1, true
			}
			return end, false
		}
	}
	return -1, false
}

func closingQuote(open rune) string {
	switch open {
	case '"', '\'', '`':
		return string(open)
	case '“', '„':
		return "”“"
	case '‘', '‚':
		return "’‘"
	case '«':
		return "»"
	}
	return ""
}
