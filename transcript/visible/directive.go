package visible

import "strings"

// Undirect removes reply and voice directives, [[reply_to_current]],
// [[reply_to: <id>]] and [[audio_as_voice]], as OpenClaw 2026.7.35 does for
// display (spec/session-tools.md 2.2, step 7).
func Undirect(s string) string {
	if !strings.Contains(s, "[[") {
		return s
	}
	s = cutTags(s, func(s string, i int) int {
		if !hasFold(s, i, "audio_as_voice") {
			return -1
		}
		return closing(s, skip(s, i+len("audio_as_voice")))
	})
	id := run{class: replyID}
	return cutTags(s, func(s string, i int) int {
		if hasFold(s, i, "reply_to_current") {
			return closing(s, skip(s, i+len("reply_to_current")))
		}
		if !hasFold(s, i, "reply_to") {
			return -1
		}
		if i = skip(s, i+len("reply_to")); at(s, i) != ':' {
			return -1
		}
		// The id is on one line, with white space around it that may have line
		// feeds; white space alone is an id too, line feeds alone are not.
		from := i + 1
		start := skip(s, from)
		if end := id.to(s, start); end > start {
			return closing(s, skip(s, end))
		}
		if strings.Trim(s[from:start], "\n") == "" {
			return -1
		}
		return closing(s, start)
	})
}

// replyID is any character of an id; a right bracket or a line feed ends it.
var replyID = func() *class {
	c := &class{wide: true, blank: true}
	for i := range c.ascii {
		c.ascii[i] = i != ']' && i != '\n'
	}
	return c
}()

// cutTags removes what tag finds behind each [[.
func cutTags(s string, tag func(s string, i int) int) string {
	e := edits{s: s}
	for i := 0; ; {
		n := strings.Index(s[i:], "[[")
		if n < 0 {
			return e.text()
		}
		i += n
		if end := tag(s, skip(s, i+2)); end >= 0 {
			e.put(i, end, "")
			i = end
		} else {
			i++
		}
	}
}

func closing(s string, i int) int {
	if strings.HasPrefix(s[i:], "]]") {
		return i + 2
	}
	return -1
}
