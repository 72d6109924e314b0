package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"oc/store/lazy"
)

// Headings are the sections that OpenClaw's safeguard wants in a summary, in its order (spec/transcript.md 3.6).
var Headings = []string{"## Decisions", "## Open TODOs", "## Constraints/Rules", "## Pending user asks", "## Exact identifiers"}

// Extract writes a summary without a model: it quotes. Its sections are the first request, sentences that decide, that leave something
// to do, that set a rule, the last requests of the user, and identifiers that must not be lost. What is quoted stands word by word.
type Extract struct{}

// Name is "extract".
func (Extract) Name() string { return "extract" }

// Quotes of one section, and the length of one in characters.
const (
	maxQuotes = 12
	maxQuote  = 300
)

var (
	sentence = lazy.Regexp(`(?m)\S[^\n]*?(?:[.!?]+(?:\s|$)|$)`)
	decides  = lazy.Regexp(`(?i)\b(decided|decision|we will|we'll|let's|going with|agreed|chose|use|switch(ed)? to|instead of|settled)\b`)
	open     = lazy.Regexp(`(?i)\b(todo|to do|still (needs?|to)|next step|remaining|later|not yet|pending|follow up|remind|waiting for|open question)\b`)
	ruled    = lazy.Regexp(`(?i)\b(must( not)?|never|always|don't|do not|only (if|when)|required|make sure|should not|without (my|asking)|at most|at least)\b`)
	token    = lazy.Regexp(`https?://[^\s<>"')\]]+|(?:[A-Za-z]:\\|/)(?:[\w.@~+-]+[/\\])+[\w.@~+-]*|\b[0-9a-fA-F]{8,}\b|\b[\w.-]+:\d{2,5}\b|\b\d{6,}\b|\b[\w.+-]+@[\w-]+\.[\w.]+\b`)
)

// Summarize quotes a conversation. It fails only when ctx ends.
func (Extract) Summarize(ctx context.Context, r Request) (string, error) {
	var first string
	var decided, todo, rules, asks, ids quotes
	goOn := func(old [][]string) {
		for i, lines := range old {
			into := []*quotes{&decided, &todo, &rules, &asks, &ids}[i]
			for _, l := range lines {
				if said, ok := strings.CutPrefix(l, began); ok {
					if first == "" {
						first = said
					}
				} else if said, ok := strings.CutPrefix(l, "- "); ok {
					into.add(said)
				}
			}
		}
	}
	if old := sections(r.Previous); old != nil { // it goes on where it stopped
		r.Previous = ""
		goOn(old)
	}
	for _, t := range r.Conversation {
		if err := ctx.Err(); err != nil {
			return "", context.Cause(ctx)
		}
		if old := sections(t.Text); t.Role == Summary && old != nil {
			goOn(old)
			continue
		}
		for _, id := range token().FindAllString(t.Text, 200) {
			ids.add(strings.TrimRight(id, ".,;:!?"))
		}
		if t.Role != "user" && t.Role != "assistant" {
			continue // what tools say, and what is only thought, is neither decided nor asked by anybody
		}
		for _, s := range sentence().FindAllString(t.Text, 2000) {
			s = strings.Join(strings.Fields(s), " ")
			switch {
			case utf8.RuneCountInString(s) < 8:
			case open().MatchString(s):
				todo.add(quote(s))
			case ruled().MatchString(s) && t.Role == "user":
				rules.add(quote(s))
			case decides().MatchString(s):
				decided.add(quote(s))
			}
		}
		if text := strings.Join(strings.Fields(t.Text), " "); t.Role == "user" && text != "" {
			if first == "" {
				first = quote(text)
			}
			asks.add(quote(text))
		}
	}
	var b strings.Builder
	section := func(i int, q quotes, none string, newest int) {
		fmt.Fprintf(&b, "%s\n", Headings[i])
		if i == 0 && r.Previous != "" {
			fmt.Fprintf(&b, "From the earlier summary:\n%s\n", strings.TrimSpace(r.Previous))
		}
		if i == 0 && first != "" {
			fmt.Fprintf(&b, "%s%s\n", began, first)
		}
		if len(q) == 0 && (i > 0 || first == "" && r.Previous == "") {
			fmt.Fprintf(&b, "%s\n", none)
		}
		for _, s := range q[max(0, len(q)-newest):] {
			fmt.Fprintf(&b, "- %s\n", s)
		}
		b.WriteString("\n")
	}
	section(0, decided, "None found.", maxQuotes)
	section(1, todo, "None found.", maxQuotes)
	section(2, rules, "None found.", maxQuotes)
	section(3, asks, "None.", 3)
	fmt.Fprintf(&b, "%s\n", Headings[4])
	if len(ids) == 0 {
		b.WriteString("None found.\n")
	}
	for _, id := range ids[max(0, len(ids)-4*maxQuotes):] {
		fmt.Fprintf(&b, "- %s\n", id)
	}
	return strings.TrimSpace(b.String()), nil
}

const began = "The conversation began with: "

// sections are the lines below the headings of a summary that has all of them in order; nil for any other.
func sections(summary string) (lines [][]string) {
	lines = make([][]string, len(Headings))
	at := -1
	for l := range strings.SplitSeq(summary, "\n") {
		switch l = strings.TrimSpace(l); {
		case at+1 < len(Headings) && l == Headings[at+1]:
			at++
		case at >= 0 && strings.HasPrefix(l, "## "): // what stands behind the sections
			if at == len(Headings)-1 {
				return lines
			}
		case at >= 0:
			lines[at] = append(lines[at], l)
		}
	}
	if at < len(Headings)-1 {
		return nil
	}
	return lines
}

// quotes are what was found, each once, where it stood last.
type quotes []string

func (q *quotes) add(s string) {
	if i := slices.Index(*q, s); i >= 0 {
		*q = slices.Delete(*q, i, i+1)
	}
	if *q = append(*q, s); len(*q) > 256 {
		*q = slices.Delete(*q, 0, 1)
	}
}

// quote is a text between quotation marks, cut at a word.
func quote(s string) string {
	if utf8.RuneCountInString(s) > maxQuote {
		cut := []rune(s)[:maxQuote]
		s = string(cut)
		if i := strings.LastIndexByte(s, ' '); i > 0 {
			s = s[:i]
		}
		s += " ..."
	}
	return `"` + s + `"`
}
