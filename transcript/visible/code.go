package visible

import (
	"slices"
	"strings"
)

// code is a part of a text that Markdown shows as code: [start, end) in bytes.
type code struct{ start, end int }

// codeIn finds fenced blocks and back-ticked spans, in order. A fence opens at
// the start of a line and closes with the same three characters at the start
// of one, or with the text; of a span the two runs of ticks need not match.
func codeIn(s string) []code {
	list := fences(s)
	fenced := list
	for i := 0; ; {
		n := strings.IndexByte(s[i:], '`')
		if n < 0 {
			break
		}
		start := i + n
		body := start
		for body < len(s) && s[body] == '`' {
			body++
		}
		n = strings.IndexByte(s[body:], '`')
		if n < 0 {
			break // the last ticks close nothing
		}
		end := body + n
		for end < len(s) && s[end] == '`' {
			end++
		}
		for len(fenced) > 0 && fenced[0].end < end {
			fenced = fenced[1:]
		}
		if len(fenced) == 0 || start < fenced[0].start {
			list = append(list, code{start, end})
		}
		i = end
	}
	slices.SortStableFunc(list, func(a, b code) int { return a.start - b.start })
	return list
}

func fence(s string, i int) bool {
	return strings.HasPrefix(s[i:], "```") || strings.HasPrefix(s[i:], "~~~")
}

func fences(s string) (list []code) {
	for i := 0; ; {
		start := 0
		if i > 0 || !fence(s, 0) {
			for {
				n := strings.IndexByte(s[i:], '\n')
				if n < 0 {
					return list
				}
				if i += n + 1; fence(s, i) {
					break
				}
			}
			start = i
		}
		n := strings.IndexByte(s[start:], '\n')
		if n < 0 {
			return list
		}
		body, end := start+n+1, len(s)
		if n := strings.Index(s[body:], "\n"+s[start:start+3]); n >= 0 {
			end = body + n + len("\n```")
		}
		list = append(list, code{start, end})
		i = end
	}
}

// spans answers whether places lie in code.
type spans []code

// codeSpans joins the code of a text to parts that do not overlap.
func codeSpans(s string) spans {
	list := codeIn(s)
	joined := list[:0]
	for _, c := range list {
		if n := len(joined); n > 0 && c.start < joined[n-1].end {
			joined[n-1].end = max(joined[n-1].end, c.end)
			continue
		}
		joined = append(joined, c)
	}
	return spans(joined)
}

// has tells whether the character at i is code.
func (p spans) has(i int) bool { return p.overlaps(i, i+1) }

func (p spans) overlaps(start, end int) bool {
	n, _ := slices.BinarySearchFunc(p, start, func(c code, at int) int {
		if c.end <= at {
			return -1
		}
		return 1
	})
	return n < len(p) && p[n].start < end
}
