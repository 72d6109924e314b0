package visible

import "strings"

// thinkTag is the end of the reasoning tag at i, -1 if there is none.
func thinkTag(s string, i int) (end int, closes bool) {
	j, closes := opening(s, i)
	if hasFold(s, j, "antthinking") {
		j += len("antthinking")
	} else {
		for _, space := range [...]string{"antml:", "mm:"} {
			if hasFold(s, j, space) {
				j += len(space)
				break
			}
		}
		switch {
		case hasFold(s, j, "thinking"):
			j += len("thinking")
		case hasFold(s, j, "think"):
			j += len("think")
		case hasFold(s, j, "thought"):
			j += len("thought")
		default:
			return -1, false
		}
	}
	if !edge(s, j) {
		return -1, false
	}
	return tagEnd(s, j), closes
}

// eachTag gives every reasoning tag to f, from left to right.
func eachTag(s string, f func(start, end int, closes bool)) {
	for i := 0; ; {
		n := strings.IndexByte(s[i:], '<')
		if n < 0 {
			return
		}
		i += n
		end, closes := thinkTag(s, i)
		if end < 0 {
			i++
			continue
		}
		f(i, end, closes)
		i = end
	}
}

// cleanReasoning removes what stands between reasoning tags, and the tags of a
// final answer. A closing tag without an opening one, with text on both sides,
// means that all before it was reasoning. What is never closed is dropped, unless
// nothing else would be left.
func cleanReasoning(s string, p Profile) string {
	s, finals := cleanFinal(s)
	any := false
	eachTag(s, func(int, int, bool) { any = true })
	if !any && !finals {
		return s
	}
	in := codeSpans(s)
	lastText := back(s, len(s))
	var out strings.Builder
	done, depth, open := 0, 0, -1
	eachTag(s, func(start, end int, closes bool) {
		if in.has(start) {
			return
		}
		switch {
		case depth == 0 && closes:
			if end < lastText && skip(s, done) < start {
				out.Reset()
			} else {
				out.WriteString(s[done:start])
			}
		case depth == 0:
			out.WriteString(s[done:start])
			depth, open = 1, end
		case closes:
			if depth--; depth == 0 {
				open = -1
			}
		default:
			depth++
		}
		done = end
	})
	if depth == 0 {
		out.WriteString(s[done:])
	}
	left := out.String()
	if p == Delivery {
		left = Trim(left)
	}
	if depth > 0 && left == "" && open >= 0 && lastText > 0 {
		return s[open:]
	}
	return left
}

// cleanFinal removes <final> tags and keeps what is between them.
func cleanFinal(s string) (string, bool) {
	e := edits{s: s}
	var in spans
	found := false
	for i := 0; ; {
		n := strings.IndexByte(s[i:], '<')
		if n < 0 {
			return e.text(), found
		}
		i += n
		end := tagEnd(s, i+1)
		if end < 0 || !finalTag(s[i+1:end-1]) {
			i++
			continue
		}
		if !found {
			found, in = true, codeSpans(s)
		}
		if !in.has(i) {
			e.put(i, end, "")
		}
		i = end
	}
}

// finalTag tells whether the inside of a tag is that of a final answer.
func finalTag(s string) bool {
	s = s[skip(s, 0):]
	s, closes := strings.CutPrefix(s, "/")
	if closes {
		s = s[skip(s, 0):]
	}
	if !hasFold(s, 0, "final") {
		return false
	}
	s = s[len("final"):]
	if closes {
		return Trim(s) == ""
	}
	if s != "" && s[0] != '/' && space(s, 0) == 0 {
		return false
	}
	if trimmed := s[:back(s, len(s))]; strings.HasSuffix(trimmed, "/") {
		s = trimmed[:len(trimmed)-1]
	}
	return attributes(s)
}

// attributes tells whether s is a list of attributes.
func attributes(s string) bool {
	for i := skip(s, 0); i < len(s); i = skip(s, i) {
		start := i
		for i < len(s) && s[i] != '=' && space(s, i) == 0 {
			if strings.IndexByte(`/"'<>`, s[i]) >= 0 {
				return false
			}
			i++
		}
		if i == start {
			return false
		}
		if i = skip(s, i); at(s, i) != '=' {
			continue
		}
		if i = skip(s, i+1); i == len(s) {
			return false
		}
		if quote(s[i]) {
			n := strings.IndexByte(s[i+1:], s[i])
			if n < 0 {
				return false
			}
			i += n + 2
			continue
		}
		start = i
		for i < len(s) && space(s, i) == 0 {
			if strings.IndexByte(`"'<>`, s[i]) >= 0 {
				return false
			}
			i++
		}
		if i == start {
			return false
		}
	}
	return true
}
