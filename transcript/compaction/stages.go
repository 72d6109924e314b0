package compaction

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// A Stage is one request for a summary: of some messages, or of the summaries of the parts before, which are to be merged.
type Stage struct {
	Span            // of messages; empty where summaries are merged
	Part     int    // that the messages belong to
	Previous string // the summary so far, which the answer goes on from; "" for none
	Merge    []string
	Last     bool // the answer is the whole summary
}

// Parts divides messages into what is summarised one by one: parts, where all of it is more than a model takes at once, and in each
// of these the chunks that one request takes (spec/transcript.md 3.4 and 3.5). parts is 2 with OpenClaw.
func Parts(messages []Message, parts, limit int) (all [][]Span) {
	if len(messages) == 0 {
		return nil
	}
	whole := Stages(messages, parts, stageAtOnce, limit)
	if whole == nil {
		whole = []Span{{0, len(messages)}}
	}
	for _, part := range whole {
		var chunks []Span
		for _, s := range Chunks(messages[part.From:part.To], limit) {
			chunks = append(chunks, Span{part.From + s.From, part.From + s.To})
		}
		all = append(all, chunks)
	}
	return all
}

// InStages has a summary written of parts: within a part each request goes on from the answer before; several parts are each summarised
// for themselves, and then merged with the previous summary. The error is that of ask, at once: nothing is made up in place of a summary.
func InStages(parts [][]Span, previous string, ask func(Stage) (string, error)) (summary string, err error) {
	if len(parts) == 1 {
		summary = previous
	}
	var merge []string
	for i, chunks := range parts {
		if len(parts) > 1 {
			summary = ""
		}
		for k, s := range chunks {
			if summary, err = ask(Stage{Span: s, Part: i, Previous: summary, Last: len(parts) == 1 && k == len(chunks)-1}); err != nil {
				return "", err
			}
		}
		if summary != "" {
			merge = append(merge, summary)
		}
	}
	switch {
	case len(parts) == 0:
		return cmp.Or(previous, noHistory), nil
	case len(parts) == 1:
		return summary, nil
	case len(merge) == 0:
		return previous, nil
	}
	return ask(Stage{Previous: previous, Merge: merge, Last: true})
}

const noHistory = "No prior history."

// ChunkHeading is the line above the summary of a part that is to be merged; when is what TimeRange says of it.
func ChunkHeading(part, parts int, when string) string {
	which := fmt.Sprintf("Chunk %d/%d", part+1, parts)
	switch part {
	case 0:
		which = "Chunk 1 — oldest messages"
	case parts - 1:
		which = fmt.Sprintf("Chunk %d — most recent messages", parts)
	}
	return "[" + which + when + "]"
}

// TimeRange says from when to when messages were written, both in epoch milliseconds; "" where that is not known, which is 0.
func TimeRange(first, last int64) string {
	if first <= 0 || last <= 0 {
		return ""
	}
	const minute = "2006-01-02 15:04"
	from, to := time.UnixMilli(first).UTC().Format(minute), time.UnixMilli(last).UTC().Format(minute)
	if first == last {
		return " [" + from + " UTC]"
	}
	return " [" + from + " — " + to + " UTC]"
}

// MergeInstructions are what a provider is told that merges the summaries of parts, in oc's words.
func MergeInstructions(s Settings) string {
	return Instructions(s) + "\n\nWhat you get are summaries of the parts of one conversation, the oldest first. Make one of them. Where they disagree, what is newer holds; what is done is no longer open. " +
		"Keep every decision, open item, rule and request that still holds, and every identifier."
}

// Window is the context window that a model is said to have, in whole tokens, or what OpenClaw takes where none is said.
func Window(said float64) int {
	if !(said >= 1) || said > 1<<40 {
		return 200_000
	}
	return int(said)
}

// bounded is the newest lines that fit, and how many do not.
func bounded(lines []string, most int) []string {
	size := 0
	for i := len(lines) - 1; i >= 0; i-- {
		if size += len(lines[i]) + 1; size > most {
			return append([]string{fmt.Sprintf("- (%d more)", i+1)}, lines[i+1:]...)
		}
	}
	return lines
}

// Suffix are the sections behind the body of a summary, which survive when that is cut. Together they leave it room: of the turns before
// what is kept only the newest lines stand there where these are many.
type Suffix struct {
	InProgress []string // lines of a turn that the cut goes through
	Recent     []string // lines of the last turns that are summarised
	Failures   *Failures
	Read       []string
	Changed    []string
	Rules      string // sections of the workspace's AGENTS.md (postCompactionSections)
}

const (
	maxSuffix   = 9000
	maxProgress = 6
	maxRules    = 2000
)

// String is all of it.
func (s Suffix) String() string {
	turn := s.InProgress
	if n := len(turn); n > maxProgress+1 {
		turn = append([]string{turn[0], fmt.Sprintf("- (%d more)", n-maxProgress-1)}, turn[n-maxProgress:]...)
	}
	progress := section("Turn in progress (its end follows)", turn)
	rest := FileLists(s.Read, s.Changed)
	if s.Failures != nil {
		rest = s.Failures.Section() + rest
	}
	if s.Rules != "" {
		rest += "\n\n## Rules of the workspace\n" + Cap(s.Rules, maxRules)
	}
	return progress + section(recentTitle, bounded(s.Recent, max(600, maxSuffix-len(progress)-len(rest)))) + rest
}

const recentTitle = "Recent turns preserved verbatim"

func section(title string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "\n\n## " + title + "\n" + strings.Join(lines, "\n")
}
