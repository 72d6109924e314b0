package visible

import (
	"strconv"
	"strings"

	"oc/store/span"
)

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
		if !found.any(known().needs[i]) {
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

// AuditMessage tells f of every place in a raw message that looks like a
// credential, and of every mask in the arguments of a call or in a command, where
// it has taken the place of the true value. where names the text, as
// content[2].arguments.command; the value is never told.
func AuditMessage(message []byte, f func(where string, s Secret)) {
	audit("", message, false, 0, f)
}

func audit(where string, raw []byte, exact bool, depth int, f func(string, Secret)) {
	if depth > deepest {
		return
	}
	switch span.KindOf(raw) {
	case span.String:
		s, _ := span.Text(raw)
		Audit(s, func(found Secret) {
			if exact || found.Kind != "mask" {
				f(where, found)
			}
		})
	case span.Array:
		for i, v := range items(raw) {
			audit(where+"["+strconv.Itoa(i)+"]", v, exact, depth+1, f)
		}
	case span.Object:
		o := parseObject(raw)
		image := o.is("type", "image")
		for _, p := range o {
			if image && p.name == "data" {
				continue // pixels
			}
			at := p.name
			if where != "" {
				at = where + "." + at
			}
			if s, ok := span.Text(p.val); ok && exact && secretName(p.name) && s != "" && s != "***" && !strings.Contains(s, "…") {
				f(at, Secret{"field " + p.name, 0, len(s)})
				continue
			}
			in := exact
			switch p.name {
			case "arguments", "input", "args", "command", "partialJson":
				in = true
			}
			audit(at, p.val, in, depth+1, f)
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
			if end-at == 3 && masked(s, at, end) {
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

// masked tells whether the stars at [at, end) stand where a value would: they
// are the whole text, follow what assigns a value, or an option's name. Stars in
// Markdown do not.
func masked(s string, at, end int) bool {
	if at == 0 {
		return end == len(s)
	}
	switch s[at-1] {
	case '=', ':', '"', '\'', '/':
		return true
	case ' ':
		words := Fields(s[max(0, at-64):at])
		if len(words) == 0 {
			return false
		}
		last := words[len(words)-1]
		return strings.HasPrefix(last, "--") || strings.HasSuffix(last, ":") || strings.HasSuffix(last, "=") ||
			strings.EqualFold(last, "bearer") || strings.EqualFold(last, "basic") || strings.EqualFold(last, "bot")
	}
	return false
}

func valueByte(c byte) bool {
	return c > ' ' && c < 0x7f && strings.IndexByte("\"'`,;()<>{}[]", c) < 0
}
