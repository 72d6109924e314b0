package visible

import "strings"

// A Secret is a place in a text that looks like a credential, or where one was
// masked. It never holds the value.
type Secret struct {
	Kind string // the rule that found it, or "mask"
	At   int    // byte offset in the text
	Len  int    // bytes
}

// Audit tells f of every place in s that looks like a credential, left to right
// for each rule, and no place twice. Places where a value was masked before are
// given with the kind "mask": in prose that is as it should be, in the arguments
// of a call or in a command it means that the true value is lost.
func Audit(s string, f func(Secret)) {
	for _, m := range masks(s) {
		f(m)
	}
	found := triggers(s)
	if !suspicious(s, found) {
		return
	}
	taken := covered{}
	for i := range families {
		fam := &families[i]
		if !found.any(familyNeeds[i]) {
			continue
		}
		next := fam.find(s)
		for from := 0; from <= len(s); {
			m, ok := next(from)
			if !ok {
				break
			}
			from = max(m.end, from+1)
			value := s[m.lo:m.hi]
			secret, rest := split(value)
			if secret == "***" || strings.Contains(secret, "…") || fam.shell && shellReference(s[m.start:m.end], value) {
				continue
			}
			if hi := m.hi - len(rest); taken.add(m.lo, hi) {
				f(Secret{fam.kind, m.lo, hi - m.lo})
			}
		}
	}
}

// covered is a set of spans.
type covered map[int]int

// add takes a span in unless one that was taken reaches to the same start or
// holds it.
func (c covered) add(lo, hi int) bool {
	if end, ok := c[lo]; ok {
		c[lo] = max(end, hi)
		return false
	}
	c[lo] = hi
	return true
}

// masks finds *** that stands for a value, and six characters, an ellipsis, four
// characters.
func masks(s string) (list []Secret) {
	for i := 0; i < len(s); {
		star, dots := strings.Index(s[i:], "***"), strings.Index(s[i:], "…")
		switch {
		case star < 0 && dots < 0:
			return list
		case dots < 0 || star >= 0 && star < dots:
			at := i + star
			end := at
			for end < len(s) && s[end] == '*' {
				end++
			}
			if end-at == 3 && at > 0 && strings.IndexByte("= \"':/", s[at-1]) >= 0 && (end == len(s) || !word(s[end]) && s[end] != ' ' || s[at-1] == '=') {
				list = append(list, Secret{"mask", at, 3})
			}
			i = end
		default:
			at := i + dots
			end := at + len("…")
			lo, hi := at, end
			for lo > 0 && at-lo < 6 && valueByte(s[lo-1]) {
				lo--
			}
			for hi < len(s) && hi-end < 4 && valueByte(s[hi]) {
				hi++
			}
			if at-lo == 6 && hi-end == 4 {
				list = append(list, Secret{"mask", lo, hi - lo})
			}
			i = end
		}
	}
	return list
}

func valueByte(c byte) bool {
	return c > ' ' && c < 0x7f && strings.IndexByte("\"'`,;()<>{}[]", c) < 0
}
