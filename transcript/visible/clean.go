package visible

import "strings"

// Profile says for whom a text is cleaned.
type Profile uint8

const (
	// History keeps white space as it is.
	History Profile = iota
	// Delivery trims the text, and removes a group of calls that a response
	// follows.
	Delivery
)

// Clean removes from what an assistant said what was not meant for people:
// leaked reasoning, calls of tools written as text, control tokens, remembered
// context, trace lines. What Markdown shows as code stays. The result is that of
// OpenClaw 2026.7.35 (spec/session-tools.md 2.4).
//
// A text that is built to make this slow is left alone in the stages that it
// would slow down.
func Clean(s string, p Profile) string {
	if s == "" {
		return s
	}
	s = cleanMinimax(s)
	s = cleanTokens(s)
	s = cleanMemories(s)
	s = cleanToolXML(s, p)
	s = cleanTraces(s)
	s = cleanBrackets(s)
	s = cleanBlocks(s)
	s = cleanDowngraded(s)
	s = cleanReasoning(s, p)
	if p == Delivery {
		s = Trim(s)
	}
	return s
}

// fuel bounds the looking ahead in one text.
type fuel struct{ left int }

func fuelFor(s string) *fuel { return &fuel{16<<20 + 16*len(s)} }

// burn pays for n steps and tells whether there was enough.
func (f *fuel) burn(n int) bool {
	f.left -= n + 1
	return f.left >= 0
}

// next finds where a literal stands next, asked with rising places: each part
// of the text is searched once.
type next struct {
	s, lit   string
	fold     bool // in any case; lit is in lower case
	from, at int
	asked    bool
}

func (n *next) after(i int) int {
	if n.asked && n.from <= i && (n.at < 0 || i <= n.at) {
		return n.at
	}
	n.asked, n.from = true, i
	if n.fold {
		n.at = indexFold(n.s, i, n.lit)
	} else if n.at = strings.Index(n.s[i:], n.lit); n.at >= 0 {
		n.at += i
	}
	return n.at
}

// opening passes "<", white space, a slash if there is one, white space.
func opening(s string, i int) (at int, closes bool) {
	i = skip(s, i+1)
	if i < len(s) && s[i] == '/' {
		return skip(s, i+1), true
	}
	return i, false
}

// tagEnd is the end of a simple tag from within: the ">" before any "<".
func tagEnd(s string, i int) int {
	n := strings.IndexAny(s[i:], "<>")
	if n < 0 || s[i+n] == '<' {
		return -1
	}
	return i + n + 1
}

// cleanMinimax removes the calls that MiniMax models write as XML.
func cleanMinimax(s string) string {
	if indexFold(s, 0, "minimax:tool_call") < 0 {
		return s
	}
	in := codeSpans(s)
	e := edits{s: s}
	gt := next{s: s, lit: ">"}
	end := next{s: s, lit: "</invoke>", fold: true}
	for i := 0; ; {
		n := strings.IndexByte(s[i:], '<')
		if n < 0 {
			return e.text()
		}
		i += n
		to := -1
		switch {
		case hasFold(s, i, "<invoke") && edge(s, i+len("<invoke")):
			if body := gt.after(i + len("<invoke")); body >= 0 {
				if at := end.after(body + 1); at >= 0 {
					to = at + len("</invoke>")
				}
			}
		case hasFold(s, i, "<minimax:tool_call>"):
			to = i + len("<minimax:tool_call>")
		case hasFold(s, i, "</minimax:tool_call>"):
			to = i + len("</minimax:tool_call>")
		}
		if to < 0 {
			i++
			continue
		}
		if !in.has(i) {
			e.put(i, to, "")
		}
		i = to
	}
}

const widePipe = "｜"

// pipe is the width of the pipe at i, 0 if there is none.
func pipe(s string, i int) int {
	if at(s, i) == '|' {
		return 1
	}
	if i < len(s) && strings.HasPrefix(s[i:], widePipe) {
		return len(widePipe)
	}
	return 0
}

// cleanTokens removes control tokens of models, <|...|>.
func cleanTokens(s string) string {
	e := edits{s: s}
	var in spans
	looked := false
	for i := 0; ; {
		n := strings.IndexByte(s[i:], '<')
		if n < 0 {
			return e.text()
		}
		i += n
		w := pipe(s, i+1)
		if w == 0 {
			i++
			continue
		}
		j := i + 1 + w
		for j < len(s) && pipe(s, j) == 0 {
			j++
		}
		end := j + pipe(s, j)
		if end == j || at(s, end) != '>' {
			i++
			continue
		}
		end++
		if !looked {
			looked, in = true, codeSpans(s)
		}
		if !in.overlaps(i, end) {
			between := ""
			if i > 0 && end < len(s) && spaceBefore(s, i) == 0 && space(s, end) == 0 {
				between = " "
			}
			e.put(i, end, between)
		}
		i = end
	}
}

// cleanMemories removes <relevant-memories> blocks.
func cleanMemories(s string) string {
	e := edits{s: s}
	var in spans
	looked := false
	open := -1
	for i := 0; ; {
		n := strings.IndexByte(s[i:], '<')
		if n < 0 {
			break
		}
		i += n
		j, closes := opening(s, i)
		if !hasFold(s, j, "relevant-memories") && !hasFold(s, j, "relevant_memories") || !edge(s, j+len("relevant-memories")) {
			i++
			continue
		}
		end := tagEnd(s, j+len("relevant-memories"))
		if end < 0 {
			i++
			continue
		}
		if !looked {
			looked, in = true, codeSpans(s)
		}
		switch {
		case in.has(i):
		case open < 0 && closes:
			e.put(i, end, "")
		case open < 0:
			open = i
		case closes:
			e.put(open, end, "")
			open = -1
		}
		i = end
	}
	if open >= 0 {
		e.put(open, len(s), "")
	}
	return e.text()
}
