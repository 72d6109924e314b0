package transcript

import (
	"math"

	"oc/store/span"
	"oc/transcript/visible"
)

// What OpenClaw adds for the frame of a message and of a block, takes for an
// image, and the length of the words that it puts around a summary.
const (
	messageFrame    = 12
	blockFrame      = 6
	imageTokens     = 2000
	compactionFrame = 107
	branchFrame     = 99
)

// Pressure is the dearer estimate of a message that OpenClaw makes before it
// sends a prompt: it knows of wide scripts and counts what a provider adds
// (spec/transcript.md 2.2). role and raw are those of a Said.
func Pressure(role string, raw []byte) int {
	chars := func(name string) int {
		s, _ := span.Text(span.Member(raw, name))
		return Chars(s)
	}
	switch role {
	case "toolResult", "tool":
		name := span.Member(raw, "toolName")
		if name == nil {
			name = span.Member(raw, "tool_name")
		}
		return messageFrame + contentPressure(span.Member(raw, "content"), true) + namePressure(name)
	case "bashExecution":
		if string(span.Member(raw, "excludeFromContext")) == "true" {
			return 0
		}
		return messageFrame + per(bashChars(raw), 4)
	case "branchSummary":
		return messageFrame + per(branchFrame+chars("summary"), 4)
	case "compactionSummary":
		return messageFrame + per(compactionFrame+chars("summary"), 4)
	case "assistant":
		n := messageFrame + contentPressure(span.Member(raw, "content"), false)
		calls := span.Member(raw, "toolCalls")
		if calls == nil {
			calls = span.Member(raw, "tool_calls")
		}
		_, _ = span.Items(calls, 0, func(call []byte) error {
			if span.KindOf(call) == span.Object {
				n += callPressure(call)
			} else {
				n += jsonPressure(call, 3)
			}
			return nil
		})
		return n
	}
	return messageFrame + contentPressure(span.Member(raw, "content"), false)
}

// PromptPressure is the estimate of a whole prompt, with a margin of a fifth:
// messages, the system prompt if there is one, and the prompt itself.
func PromptPressure(messages []Said, system, prompt string) int {
	n := messageFrame + per(Chars(prompt), 4)
	if visible.Trim(system) != "" {
		n += messageFrame + per(Chars(system), 4)
	}
	for _, m := range messages {
		n += Pressure(m.Role, m.Raw)
	}
	return int(math.Ceil(float64(n) * 1.2))
}

func per(chars, each int) int { return (chars + each - 1) / each }

func textPressure(s string) int { return per(Chars(s), 4) }

// resultPressure is for results of tools, which are rarely prose.
func resultPressure(s string) int { return max(per(visible.Units(s), 2), per(Chars(s), 4)) }

// jsonPressure weighs a value by its JSON, of which each characters make a
// token.
func jsonPressure(raw []byte, each int) int {
	if raw == nil {
		return 1
	}
	return per(Chars(string(visible.AppendJSON(nil, raw))), each)
}

func namePressure(raw []byte) int {
	switch span.KindOf(raw) {
	case span.Invalid, span.Null:
		return 0
	case span.String:
		s, _ := span.Text(raw)
		return per(Chars(s), 3)
	}
	return jsonPressure(raw, 3)
}

func callPressure(call []byte) int {
	args := []byte("{}")
	for _, name := range [...]string{"arguments", "input", "args"} {
		if v := span.Member(call, name); span.KindOf(v) != span.Invalid && span.KindOf(v) != span.Null {
			args = v
			break
		}
	}
	return blockFrame + namePressure(span.Member(call, "name")) + jsonPressure(args, 3)
}

// contentPressure weighs the content of a message, by the rule for results of
// tools or that for all others. What is no text weighs as its JSON.
func contentPressure(content []byte, results bool) int {
	weigh := textPressure
	if results {
		weigh = resultPressure
	}
	other := func(raw []byte, each int) int {
		if results {
			return resultPressure(string(visible.AppendJSON(nil, raw)))
		}
		return jsonPressure(raw, each)
	}
	switch span.KindOf(content) {
	case span.Invalid:
		return 0
	case span.String:
		s, _ := span.Text(content)
		return weigh(s)
	case span.Array:
	default:
		return other(content, 3)
	}
	n := 0
	_, _ = span.Items(content, 0, func(block []byte) error {
		if s, ok := span.Text(block); ok {
			n += weigh(s)
			return nil
		}
		if span.KindOf(block) != span.Object {
			n += other(block, 4)
			return nil
		}
		kind, _ := span.Text(span.Member(block, "type"))
		text, isText := span.Text(span.Member(block, kind))
		switch {
		case (kind == "text" || kind == "thinking") && isText:
			n += blockFrame + weigh(text)
		case kind == "image":
			n += imageTokens
		case !results && (kind == "toolCall" || kind == "tool_use"):
			n += callPressure(block)
		default:
			n += blockFrame + other(block, 4)
		}
		return nil
	})
	return n
}

// bashChars is the length of a shell execution as OpenClaw tells the model of
// it: 7 units around the command, 8 around its output, or 11 for none; 21 if it
// was cancelled, else 27 and the exit code if that is not 0; 35 and the path of
// the full output if it was cut.
func bashChars(raw []byte) int {
	chars := func(name string) int {
		s, _ := span.Text(span.Member(raw, name))
		return Chars(s)
	}
	is := func(name string) bool { return string(span.Member(raw, name)) == "true" }
	n := 7 + chars("command")
	if out := chars("output"); out > 0 {
		n += 8 + out
	} else {
		n += 11
	}
	if is("cancelled") {
		n += 21
	} else if code, ok := span.Float(span.Member(raw, "exitCode")); ok && code != 0 {
		n += 27 + len(span.AppendFloat(nil, code))
	}
	if path := chars("fullOutputPath"); is("truncated") && path > 0 {
		n += 35 + path
	}
	return n
}
