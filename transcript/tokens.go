package transcript

import (
	"unicode/utf8"

	"oc/store/span"
	"oc/transcript/visible"
)

// RuntimeContext is the custom type of messages that OpenClaw adds for one run
// and does not count.
const RuntimeContext = "openclaw.runtime-context"

const imageUnits = 4800

// Tokens is what a message costs by OpenClaw's rule of thumb: four UTF-16 units
// a token, an image 1200 (spec/transcript.md 2.1). role and raw are those of a
// Said.
func Tokens(role string, raw []byte) int { return (tokenUnits(role, raw) + 3) / 4 }

func tokenUnits(role string, raw []byte) int {
	text := span.Units
	content := func() []byte { return span.Member(raw, "content") }
	switch role {
	case "user", "custom", "toolResult":
		c := content()
		switch span.KindOf(c) {
		case span.String:
			return text(c)
		case span.Object: // one block; OpenClaw wraps it when it loads the row
			return blockUnits(c)
		}
		n := 0
		_, _ = span.Items(c, 0, func(block []byte) error {
			n += blockUnits(block)
			return nil
		})
		return n
	case "assistant":
		c := content()
		if span.KindOf(c) == span.String {
			return text(c)
		}
		n := 0
		_, _ = span.Items(c, 0, func(block []byte) error {
			switch kind, _ := span.Text(span.Member(block, "type")); kind {
			case "text":
				n += text(span.Member(block, "text"))
			case "thinking":
				n += text(span.Member(block, "thinking"))
			case "toolCall":
				n += text(span.Member(block, "name")) + compactUnits(span.Member(block, "arguments"))
			}
			return nil
		})
		return n
	case "bashExecution":
		return text(span.Member(raw, "command")) + text(span.Member(raw, "output"))
	case "branchSummary", "compactionSummary":
		return text(span.Member(raw, "summary"))
	}
	return 0
}

// blockUnits is the length of a block in a message that is not an assistant's.
func blockUnits(block []byte) int {
	text := func(name string) int { return span.Units(span.Member(block, name)) }
	switch kind, _ := span.Text(span.Member(block, "type")); kind {
	case "image":
		return imageUnits
	case "text":
		return text("text")
	case "toolResult", "tool_result":
		if n := text("text"); n > 0 {
			return n
		}
		return text("content")
	}
	return 0
}

// compactUnits is the length of JSON.stringify of a raw value, where an absent
// one reads "undefined".
func compactUnits(raw []byte) int {
	if raw == nil {
		return len("undefined")
	}
	return visible.Units(string(visible.AppendJSON(nil, raw)))
}

// SumTokens adds up what messages cost. Runtime context is not counted.
func SumTokens(messages []Said) (n int) {
	for _, m := range messages {
		if m.Role == "custom" {
			if kind, _ := span.Text(span.Member(m.Raw, "customType")); kind == RuntimeContext {
				continue
			}
		}
		n += Tokens(m.Role, m.Raw)
	}
	return n
}

// Estimate is how full a context is.
type Estimate struct {
	Tokens   float64 // Usage + Trailing
	Usage    float64 // what the last answer reported
	Trailing int     // by rule of thumb for what follows it, or for all
	Last     int     // index of that answer, -1 if there is none
}

// EstimateContext is OpenClaw's estimate of a context: what its last successful
// answer reported, and a rule of thumb for the messages behind it
// (spec/transcript.md 2.3). An answer that reported zeros counts.
func EstimateContext(messages []Said) Estimate {
	e := Estimate{Last: -1}
	for i := len(messages) - 1; i >= 0; i-- {
		m := messages[i]
		if m.Role != "assistant" {
			continue
		}
		if n, ok := ReportedContext(m.Raw); ok {
			e.Last, e.Usage = i, n
			break
		}
	}
	for _, m := range messages[e.Last+1:] {
		e.Trailing += Tokens(m.Role, m.Raw)
	}
	e.Tokens = e.Usage + float64(e.Trailing)
	return e
}

// ReportedContext is how full an assistant's raw message says the context was; ok is false where it failed, was broken off, or does
// not say.
func ReportedContext(raw []byte) (tokens float64, ok bool) {
	usage := span.Member(raw, "usage")
	stop, _ := span.Text(span.Member(raw, "stopReason"))
	state, _ := span.Text(span.Path(usage, "contextUsage", "state"))
	if span.KindOf(usage) != span.Object || stop == "aborted" || stop == "error" || state == "unavailable" {
		return 0, false
	}
	number := func(names ...string) float64 {
		f, _ := span.Float(span.Path(usage, names...))
		return f
	}
	if state == "available" {
		return number("contextUsage", "totalTokens"), true
	}
	if n := number("totalTokens"); n != 0 {
		return n, true
	}
	return number("input") + number("output") + number("cacheRead") + number("cacheWrite"), true
}

// ImageTokens is the part of Tokens that the images of a raw message take, where it is not an assistant's.
func ImageTokens(raw []byte) (n int) {
	_, _ = span.Items(span.Member(raw, "content"), 0, func(block []byte) error {
		if kind, _ := span.Text(span.Member(block, "type")); kind == "image" {
			n += imageUnits / 4
		}
		return nil
	})
	return n
}

// CallTokens is the part of Tokens that the calls of tools in an assistant's raw message take.
func CallTokens(raw []byte) int {
	n := 0
	_, _ = span.Items(span.Member(raw, "content"), 0, func(block []byte) error {
		if kind, _ := span.Text(span.Member(block, "type")); kind == "toolCall" {
			name, _ := span.Text(span.Member(block, "name"))
			n += visible.Units(name) + compactUnits(span.Member(block, "arguments"))
		}
		return nil
	})
	return (n + 3) / 4
}

// Chars is the length of a text for estimates that know of wide scripts: each
// of their characters counts four, which is one token (spec/transcript.md 2.2).
func Chars(s string) (n int) {
	for i := 0; i < len(s); {
		r, w := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && w == 1:
			if s[i] == 0xed && i+2 < len(s) { // a lone surrogate
				w = 3
			}
			n++
		case r >= 0x2e80 && r <= 0x9fff, r >= 0xa000 && r <= 0xa4ff, r >= 0xac00 && r <= 0xd7af, r >= 0xf900 && r <= 0xfaff,
			r >= 0xff01 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x20000 && r <= 0x2fa1f:
			n += 4
		case r > 0xffff:
			n += 2
		default:
			n++
		}
		i += w
	}
	return n
}
