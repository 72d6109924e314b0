package visible

import (
	"regexp"
	"strings"
)

// A match is a span of a text that holds a secret, and the secret in it.
type match struct{ start, end, lo, hi int }

// A finder returns the first match that starts at from or later. It is asked
// with rising places.
type finder func(from int) (match, bool)

// A family is one rule for what a secret looks like.
type family struct {
	kind string
	find func(s string) finder
	// need holds words in lower case of which one stands in every text that
	// has a match.
	need []string
	// shell families leave NAME=$NAME alone and take punctuation for a part
	// of the value.
	shell bool
}

// families in the order in which they are applied, each to what the one before
// it left.
var families = func() []family {
	names := []string{
		"key", "token", "secret", "passw", "pass=", "cvc", "cvv", "card", "security", "credential", "auth", "jwt=",
		"session=", "code=", "signature=", "cookie",
	}
	loose := []string{"key", "token", "secret", "credential", "authorization"}
	headers := []string{"authorization", "cookie", "x-api-key", "x-auth-token"}
	list := []family{
		{kind: "assignment", find: env(false), need: names, shell: true},
		{kind: "assignment", find: env(true), need: []string{"\\"}, shell: true},
		{kind: "url query", find: query, need: names},
		{kind: "json member", find: jsonMember, need: names},
		{kind: "quoted member", find: member(looseKeys), need: loose},
		{kind: "header", find: member(headerKeys), need: headers},
		{kind: "flag", find: flag, need: []string{"--"}},
		{kind: "header", find: scheme("bearer", bearerValue, 1), need: []string{"authorization"}},
		{kind: "header", find: scheme("basic", base64Pad, 1), need: []string{"authorization"}},
		{kind: "header", find: scheme("bot", bearerValue, 18), need: []string{"authorization"}},
		{kind: "header", find: bareHeader, need: []string{"x-"}},
		{kind: "bearer token", find: bearer, need: []string{"bearer"}},
		{kind: "url password", find: userinfo(webSchemes, urlUser, userValue), need: []string{"://"}},
		{kind: "url password", find: userinfo(dbSchemes, urlUser, dbValue), need: []string{"://"}},
		{kind: "form", find: firstPair, need: names},
		{kind: "assignment", find: quotedAssign, need: names, shell: true},
		{kind: "assignment", find: plainAssign, need: names, shell: true},
		{kind: "private key", find: privateKey, need: []string{"private key"}},
	}
	for _, sh := range shapes {
		f := family{kind: "token " + sh.prefix, find: sh.find, need: []string{sh.prefix}}
		if sh.tail == nil {
			f.find = discordBot
		}
		list = append(list, f)
	}
	return append(list,
		family{kind: "bot token", find: telegram("bot"), need: []string{"bot"}},
		family{kind: "bot token", find: telegram("")},
	)
}()

// Redact masks every credential it recognises in a text: of a long value the
// first six and last four UTF-16 units stay, of a short one nothing. It follows
// OpenClaw 2026.7.35 (spec/session-tools.md 2.6) and leaves alone what that
// leaves alone: commit hashes, ids, addresses.
func Redact(s string) string { return new(Redactor).Redact(s) }

// A Redactor masks what Redact masks, and more that its owner knows to be
// secret. The zero Redactor is Redact.
type Redactor struct {
	// Patterns are logging.redactPatterns, as Pattern reads them. Of a match
	// the last group is masked, or all of it where there is none.
	Patterns []*Rule
	// Values are masked wherever they stand. Those of less than six units are
	// ignored.
	Values []string
}

// Redact masks credentials in a text.
func (r *Redactor) Redact(s string) string {
	for _, v := range r.Values {
		if Units(v) >= 6 {
			s = strings.ReplaceAll(s, v, mask(v))
		}
	}
	found := triggers(s)
	if len(r.Patterns) == 0 && !suspicious(s, found) {
		return s
	}
	s = redactForms(s)
	was := s
	for _, p := range r.Patterns {
		if p.may(s) {
			f := family{kind: "pattern", find: matches(p.re)}
			s = f.apply(s)
		}
	}
	if was != s {
		found = triggers(s)
	}
	for i := range families {
		if found.any(known().needs[i]) {
			s = families[i].apply(s)
		}
	}
	return s
}

// matches finds what a pattern matches.
func matches(re *regexp.Regexp) func(string) finder {
	return func(s string) finder {
		all := re.FindAllStringSubmatchIndex(s, -1)
		return func(from int) (match, bool) {
			for len(all) > 0 {
				m := all[0]
				all = all[1:]
				if m[0] < from || m[0] == m[1] {
					continue
				}
				lo, hi := m[0], m[1]
				for i := len(m) - 2; i > 0; i -= 2 {
					if m[i] >= 0 && m[i] < m[i+1] {
						lo, hi = m[i], m[i+1]
						break
					}
				}
				return match{m[0], m[1], lo, hi}, true
			}
			return match{}, false
		}
	}
}

// apply masks the family's matches.
func (f *family) apply(s string) string {
	next := f.find(s)
	var b strings.Builder
	done := 0
	for from := 0; from <= len(s); {
		m, ok := next(from)
		if !ok {
			break
		}
		if done == 0 {
			b.Grow(len(s))
		}
		b.WriteString(s[done:m.start])
		f.mask(&b, s, m)
		done = m.end
		from = max(m.end, from+1)
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

func (f *family) mask(b *strings.Builder, s string, m match) {
	whole, value := s[m.start:m.end], s[m.lo:m.hi]
	if strings.Contains(whole, pemMark) {
		b.WriteString(pem(whole))
		return
	}
	if secret, _ := split(value); secret == "***" || f.shell && shellReference(whole, value) {
		b.WriteString(whole)
		return
	}
	b.WriteString(s[m.start:m.lo])
	if f.shell {
		b.WriteString(mask(value))
	} else {
		b.WriteString(maskValue(value))
	}
	b.WriteString(s[m.hi:m.end])
}

// shellReference tells whether the value only refers to the variable that the
// match assigns, or is the tail of an empty parameter expansion.
func shellReference(whole, value string) bool {
	if len(value) == 2 && value[1] == '}' && strings.IndexByte("-=?+", value[0]) >= 0 {
		return true
	}
	if value[0] != '$' {
		return false
	}
	name := value[1:]
	if inner, ok := strings.CutPrefix(name, "{"); ok {
		if name, ok = strings.CutSuffix(inner, "}"); !ok {
			return false
		}
		if n := len(name) - 2; n >= 0 && name[n] == ':' && strings.IndexByte("-=?+", name[n+1]) >= 0 {
			name = name[:n]
		}
	}
	return name != "" && name == assignedName(whole)
}

// assignedName is the first upper-case name in the match that stands before a
// separator.
func assignedName(whole string) string {
	for i := 0; i < len(whole); i++ {
		if !word(whole[i]) || i > 0 && word(whole[i-1]) {
			continue
		}
		end := i
		for end < len(whole) && upper(whole[end]) {
			end++
		}
		if c := whole[i]; c >= '0' && c <= '9' || end == i || !edge(whole, end) {
			continue
		}
		if separator(at(whole, skip(whole, end))) {
			return whole[i:end]
		}
	}
	return ""
}
