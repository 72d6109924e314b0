package visible

import "strings"

// This file finds secrets by the name they are given: NAME=value in its many
// spellings (spec/session-tools.md 2.6, families 1 to 16).

var (
	envValue    = notIn("\"'\\")
	queryValue  = notIn("&#<>")
	flagValue   = notIn("\"'")
	headerValue = notIn("\"',;")
	plainValue  = notIn("&#\"'`<>")
	pairValue   = notIn("&")
	userValue   = notIn("/@")
	urlUser     = notIn("/:@")
	dbValue     = notIn("@")
	bearerValue = in("A-Za-z0-9._+=-")
)

func upper(c byte) bool { return c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' }

func separator(c byte) bool { return c == '=' || c == ':' }

// separators finds the places of separators at the speed of memory.
type separators struct {
	s         string
	eq, colon int // the next ones, as far as they were looked for
}

func separatorsOf(s string) separators { return separators{s, -1, -1} }

// next is the first separator at p or later, the length of the text if there is
// none.
func (x *separators) next(p int) int {
	if x.eq < p {
		x.eq = indexFrom(x.s, p, '=')
	}
	if x.colon < p {
		x.colon = indexFrom(x.s, p, ':')
	}
	return min(x.eq, x.colon)
}

func indexFrom(s string, p int, c byte) int {
	if p < len(s) {
		if n := strings.IndexByte(s[p:], c); n >= 0 {
			return p + n
		}
	}
	return len(s)
}

func quote(c byte) bool { return c == '"' || c == '\'' }

func at(s string, i int) byte {
	if i < 0 || i >= len(s) {
		return 0
	}
	return s[i]
}

// envName is where the upper-case name that ends at i begins, -1 if it is none
// whose value is a secret or it begins before from.
func envName(s string, i, from int) int {
	if i == 0 || !upper(s[i-1]) || !edge(s, i) {
		return -1
	}
	k := i
	for k > 0 && upper(s[k-1]) {
		k--
	}
	if k > 0 && word(s[k-1]) {
		return -1
	}
	name := s[k:i]
	if k >= from {
		for _, end := range [...]string{
			"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CVC", "CVV", "CARDNUMBER", "CARD_NUMBER",
			"SECURITYCODE", "SECURITY_CODE", "PAYMENTCREDENTIAL", "PAYMENT_CREDENTIAL",
		} {
			if strings.HasSuffix(name, end) {
				return k
			}
		}
	}
	for _, two := range [...][2]string{{"CARD", "NUMBER"}, {"SECURITY", "CODE"}, {"PAYMENT", "CREDENTIAL"}} {
		if name == two[1] && at(s, k-1) == '-' && strings.HasSuffix(s[:k-1], two[0]) {
			j := k - 1
			for j > 0 && upper(s[j-1]) {
				j--
			}
			if j >= from && (j == 0 || !word(s[j-1])) {
				return j
			}
		}
	}
	return -1
}

// env finds NAME=value and NAME: "value"; escaped, NAME=\"value\".
func env(escaped bool) func(string) finder {
	return func(s string) finder {
		seps := separatorsOf(s)
		return func(from int) (match, bool) {
			for p := seps.next(from); p < len(s); p = seps.next(p + 1) {
				if c := at(s, p-1); c > ' ' && c < 0x80 && !upper(c) {
					continue
				}
				lo := skip(s, p+1)
				if escaped && at(s, lo) != '\\' {
					continue
				}
				k := envName(s, back(s, p), from)
				if k < 0 {
					continue
				}
				slash := lo
				for escaped && at(s, slash) == '\\' {
					slash++
				}
				if escaped && (slash == lo || !quote(at(s, slash))) {
					continue
				}
				lo = slash
				q := at(s, lo)
				if quote(q) {
					lo++
				} else {
					q = 0
				}
				hi := upToEnd(s, lo, envValue)
				if hi == lo {
					continue
				}
				end := hi
				for escaped && at(s, end) == '\\' {
					end++
				}
				if escaped && end == hi {
					continue
				}
				if q != 0 {
					if at(s, end) != q {
						continue
					}
					end++
				}
				return match{k, end, lo, hi}, true
			}
			return match{}, false
		}
	}
}

func upToEnd(s string, i int, c *class) int {
	for i < len(s) && c.has(s, i) {
		i++
	}
	return i
}

// starts tells whether a name at k follows white space, one of chars, or the
// start of the text, and where the match then begins.
func starts(s string, k, from int, chars string) (int, bool) {
	if k == 0 {
		return 0, true
	}
	w := 1
	if strings.IndexByte(chars, s[k-1]) < 0 {
		if w = spaceBefore(s, k); w == 0 {
			return 0, false
		}
	}
	return k - w, k-w >= from
}

// query finds ?name=value and &name=value.
func query(s string) finder {
	value := run{class: queryValue}
	return assigned(s, func(k, p, from int) (match, bool) {
		if c := at(s, k-1); c != '?' && c != '&' || k-1 < from || !queryKeys.has(s[k:p]) {
			return match{}, false
		}
		hi := value.to(s, p+1)
		return match{k - 1, hi, p + 1, hi}, hi > p+1
	})
}

// assigned gives each name that stands before an equals sign to try.
func assigned(s string, try func(k, p, from int) (match, bool)) finder {
	return func(from int) (match, bool) {
		for p := from; ; p++ {
			n := strings.IndexByte(s[p:], '=')
			if n < 0 {
				return match{}, false
			}
			p += n
			if m, ok := try(keyBefore(s, p), p, from); ok {
				return m, true
			}
		}
	}
}

// firstPair finds name=value before &other=.
func firstPair(s string) finder {
	value := run{class: pairValue}
	name := run{class: in("A-Za-z0-9_.-")}
	seen, follows := -1, false
	return assigned(s, func(k, p, from int) (match, bool) {
		start, ok := starts(s, k, from, ",;")
		if !ok || !queryKeys.has(s[k:p]) {
			return match{}, false
		}
		hi := value.to(s, p+1)
		if hi == p+1 {
			return match{}, false
		}
		if hi != seen {
			seen, follows = hi, false
			if at(s, hi) == '&' && (nameByte(at(s, hi+1)) || at(s, hi+1) == '_') {
				follows = at(s, name.to(s, hi+1)) == '='
			}
		}
		return match{start, hi, p + 1, hi}, follows
	})
}

// quotedAssign finds name="several words" on one line.
func quotedAssign(s string) finder {
	return assigned(s, func(k, p, from int) (match, bool) {
		start, ok := starts(s, k, from, ",;")
		if !ok || !assignKeys.has(s[k:p]) {
			return match{}, false
		}
		q := at(s, p+1)
		if !quote(q) && q != '`' {
			return match{}, false
		}
		lo := p + 2
		hi := lo
		for hi < len(s) && s[hi] != q && s[hi] != '\n' && s[hi] != '\r' {
			hi++
		}
		return match{start, hi + 1, lo, hi}, hi > lo && at(s, hi) == q
	})
}

// plainAssign finds name=value.
func plainAssign(s string) finder {
	return assigned(s, func(k, p, from int) (match, bool) {
		start, ok := starts(s, k, from, ",;")
		if !ok || !assignKeys.has(s[k:p]) {
			return match{}, false
		}
		lo := p + 1
		q := lo
		if c := at(s, q); quote(c) || c == '`' {
			q++
		}
		hi := upToEnd(s, q, plainValue)
		return match{start, hi, lo, hi}, hi > q
	})
}

// jsonMember finds "name": "value".
func jsonMember(s string) finder {
	return func(from int) (match, bool) {
		for p := from; ; p++ {
			n := strings.IndexByte(s[p:], '"')
			if n < 0 {
				return match{}, false
			}
			p += n
			end := keyAfter(s, p+1)
			if at(s, end) != '"' || !jsonKeys.has(s[p+1:end]) {
				continue
			}
			i := skip(s, end+1)
			if at(s, i) != ':' {
				continue
			}
			if i = skip(s, i+1); at(s, i) != '"' {
				continue
			}
			n = strings.IndexByte(s[i+1:], '"')
			if n > 0 {
				return match{p, i + n + 2, i + 1, i + n + 1}, true
			}
		}
	}
}

// member finds name: "value", the name with or without quotes.
func member(names keySet) func(string) finder {
	return func(s string) finder {
		seps := separatorsOf(s)
		return func(from int) (match, bool) {
			for p := seps.next(from); p < len(s); p = seps.next(p + 1) {
				if c := at(s, p+1); c > ' ' && c < 0x80 && !quote(c) {
					continue
				}
				end := back(s, p)
				if end > 0 && quote(s[end-1]) {
					end--
				}
				k := keyBefore(s, end)
				if !names.has(s[k:end]) {
					continue
				}
				if k > 0 && quote(s[k-1]) {
					k--
				}
				start, ok := starts(s, k, from, ",{")
				if !ok {
					continue
				}
				i := skip(s, p+1)
				q := at(s, i)
				if !quote(q) {
					continue
				}
				lo := i + 1
				hi := lo
				for hi < len(s) && !quote(s[hi]) && s[hi] != '\n' && s[hi] != '\r' {
					hi++
				}
				if hi > lo && at(s, hi) == q {
					return match{start, hi + 1, lo, hi}, true
				}
			}
			return match{}, false
		}
	}
}

// flag finds --name value.
func flag(s string) finder {
	return func(from int) (match, bool) {
		for p := from; ; p++ {
			n := strings.Index(s[p:], "--")
			if n < 0 {
				return match{}, false
			}
			p += n
			end := keyAfter(s, p+2)
			if !flagKeys.has(s[p+2 : end]) {
				continue
			}
			i := skip(s, end)
			if i == end || conjunction(s, i) {
				continue
			}
			q := at(s, i)
			if quote(q) {
				i++
			} else {
				q = 0
			}
			hi := upToEnd(s, i, flagValue)
			if hi == i {
				continue
			}
			if q == 0 {
				return match{p, hi, i, hi}, true
			}
			if at(s, hi) == q {
				return match{p, hi + 1, i, hi}, true
			}
		}
	}
}

// conjunction tells whether s goes on with "or --" or "and --".
func conjunction(s string, i int) bool {
	switch {
	case hasFold(s, i, "or"):
		i += 2
	case hasFold(s, i, "and"):
		i += 3
	default:
		return false
	}
	j := skip(s, i)
	return j > i && hasFold(s, j, "--")
}

// scheme finds Authorization: <scheme> value.
func scheme(name string, c *class, min int) func(string) finder {
	return func(s string) finder {
		return func(from int) (match, bool) {
			for i := indexFold(s, from, "authorization"); i >= 0; i = indexFold(s, i+1, "authorization") {
				p := skip(s, i+len("authorization"))
				if !separator(at(s, p)) {
					continue
				}
				if p = skip(s, p+1); !hasFold(s, p, name) {
					continue
				}
				p += len(name)
				lo := skip(s, p)
				if hi := upToEnd(s, lo, c); lo > p && hi-lo >= min {
					return match{i, hi, lo, hi}, true
				}
			}
			return match{}, false
		}
	}
}

// bareHeader finds X-Api-Key: value and its like.
func bareHeader(s string) finder {
	names := []string{"x-openclaw-token", "x-pomerium-jwt-assertion", "x-api-key", "x-auth-token"}
	return func(from int) (match, bool) {
		for i := indexFold(s, from, "x-"); i >= 0; i = indexFold(s, i+1, "x-") {
			for _, name := range names {
				if !hasFold(s, i, name) {
					continue
				}
				p := skip(s, i+len(name))
				if !separator(at(s, p)) {
					continue
				}
				lo := skip(s, p+1)
				if hi := upToEnd(s, lo, headerValue); hi > lo {
					return match{i, hi, lo, hi}, true
				}
			}
		}
		return match{}, false
	}
}

// bearer finds the word Bearer with a long value behind it.
func bearer(s string) finder {
	tail := bounded(bearerValue, 18)()
	return func(from int) (match, bool) {
		for i := indexFold(s, from, "bearer"); i >= 0; i = indexFold(s, i+1, "bearer") {
			if !edge(s, i) {
				continue
			}
			p := i + len("bearer")
			lo := skip(s, p)
			if end := tail(s, lo); lo > p && end >= 0 {
				return match{i, end, lo, end}, true
			}
		}
		return match{}, false
	}
}

// userinfo finds the password in scheme://user:password@host.
func userinfo(schemes []string, user, password *class) func(string) finder {
	return func(s string) finder {
		u, pw := run{class: user}, run{class: password}
		return func(from int) (match, bool) {
			for p := from; ; p++ {
				n := strings.Index(s[p:], "://")
				if n < 0 {
					return match{}, false
				}
				p += n
				for _, name := range schemes {
					i := p - len(name)
					if i < from || !hasFold(s, i, name) || !edge(s, i) {
						continue
					}
					c := u.to(s, p+3)
					if at(s, c) != ':' {
						break
					}
					if hi := pw.to(s, c+1); hi > c+1 && at(s, hi) == '@' {
						return match{i, hi + 1, c + 1, hi}, true
					}
					break
				}
			}
		}
	}
}

var (
	webSchemes = []string{"https", "http", "wss", "ws", "ftp"}
	dbSchemes  = []string{"postgresql", "postgres", "mysql", "mongodb+srv", "mongodb", "rediss", "redis", "amqps", "amqp"}
)

// privateKey finds PEM blocks that are closed.
func privateKey(s string) finder {
	const begin, finish = "-----begin ", "-----end "
	// marker is where the marker that starts at i ends, -1 if it is none.
	letters := run{class: in("A-Za-z ")}
	marker := func(i int, open string) int {
		if !hasFold(s, i, open) {
			return -1
		}
		i += len(open)
		end := letters.to(s, i)
		if end-i < len("private key") || !hasFold(s, end-len("private key"), "private key") || !hasFold(s, end, "-----") {
			return -1
		}
		return end + len("-----")
	}
	none := false
	return func(from int) (match, bool) {
		for i := from; !none; i++ {
			n := strings.Index(s[i:], "-----")
			if n < 0 {
				break
			}
			i += n
			body := marker(i, begin)
			if body < 0 {
				continue
			}
			for j := body + 1; ; j++ {
				if j > len(s) {
					none = true
					break
				}
				n := strings.Index(s[j:], "-----")
				if n < 0 {
					none = true
					break
				}
				j += n
				if end := marker(j, finish); end >= 0 {
					return match{i, end, i, end}, true
				}
			}
		}
		return match{}, false
	}
}
