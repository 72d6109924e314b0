package visible

import "strings"

// This file masks vendors' tokens that line breaks have parted, as a terminal or
// a mail program does it. It is oc's own rule.

var tokenByte = in("A-Za-z0-9_.+/=-")

const (
	mostPieces = 64   // more than a token has
	mostBytes  = 4096 // of a token before the first break in it
)

// parting is a line break, with the blanks around it, between two characters
// that a token may have.
type parting struct{ lo, hi int }

func redactBroken(s string) string {
	breaks := partings(s)
	if len(breaks) == 0 {
		return s
	}
	e := edits{s: s}
	for len(breaks) > 0 {
		n := 1
		if lo, hi, parts := broken(s, e.done, breaks); parts > 0 {
			e.put(lo, hi, mask(unbroken(s, lo, hi, breaks[:parts])))
			n = parts
		}
		breaks = breaks[n:]
	}
	return e.text()
}

// broken is the token that the first of the breaks parts, and how many of them
// do; none if it parts no token.
func broken(s string, done int, breaks []parting) (lo, hi, parts int) {
	lo = breaks[0].lo
	for lo > done && breaks[0].lo-lo < mostBytes && s[lo-1] < 0x80 && tokenByte.ascii[s[lo-1]] {
		lo--
	}
	// The pieces, each as far as a token can go; ends are where they end when they are put together.
	from := max(lo-1, done)
	joined, ends := []byte(s[from:breaks[0].lo]), []int{breaks[0].lo - from}
	for n, b := range breaks[:min(len(breaks), mostPieces)] {
		end := b.hi
		for end < len(s) && s[end] < 0x80 && tokenByte.ascii[s[end]] {
			end++
		}
		joined = append(joined, s[b.hi:end]...)
		ends = append(ends, len(joined))
		if n+1 == len(breaks) || breaks[n+1].lo != end {
			break
		}
	}
	text := string(joined)
	found := triggers(text)
	for i := range families {
		f := &families[i]
		if !strings.HasPrefix(f.kind, "token ") || !found.any(known().needs[i]) {
			continue
		}
		next := f.find(text)
		for at := 0; at < ends[0]; {
			m, ok := next(at)
			if !ok || m.lo >= ends[0] {
				break
			}
			at = max(m.end, at+1)
			if parts = f.pieces(text, m, ends); parts == 0 {
				continue
			}
			hi := min(m.hi, ends[parts])
			return from + m.lo, breaks[parts-1].hi + hi - ends[parts-1], parts
		}
	}
	return 0, 0, 0
}

// pieces is how many pieces beyond the first belong to a match. What follows a
// token that is whole without it belongs to it only if it does not look like a
// word.
func (f *family) pieces(text string, m match, ends []int) (n int) {
	whole := false
	for n+1 < len(ends) && ends[n] < m.hi {
		if !whole {
			alone, ok := f.find(text[:ends[n]])(m.start)
			whole = ok && alone.start == m.start
		}
		if piece := text[ends[n]:min(m.hi, ends[n+1])]; whole && !random(piece, 6) && len(piece) < 24 {
			break
		}
		n++
	}
	return n
}

// unbroken is s from lo to hi without the breaks.
func unbroken(s string, lo, hi int, breaks []parting) string {
	var b strings.Builder
	for _, p := range breaks {
		b.WriteString(s[lo:p.lo])
		lo = p.hi
	}
	b.WriteString(s[lo:hi])
	return b.String()
}

func partings(s string) (list []parting) {
	for i := 0; i < len(s); i++ {
		n := strings.IndexByte(s[i:], '\n')
		if n < 0 {
			break
		}
		i += n
		lo, hi := i, i+1
		for lo > 0 && (s[lo-1] == ' ' || s[lo-1] == '\t') && i-lo < mostBytes {
			lo--
		}
		for hi < len(s) && (s[hi] == ' ' || s[hi] == '\t') {
			hi++
		}
		if lo > 0 && hi < len(s) && s[lo-1] < 0x80 && s[hi] < 0x80 && tokenByte.ascii[s[lo-1]] && tokenByte.ascii[s[hi]] {
			list = append(list, parting{lo, hi})
		}
		i = hi - 1
	}
	return list
}
