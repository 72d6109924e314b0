package compaction

import (
	"oc/store/span"
	"oc/transcript/visible"
)

// Real tells, message by message in their order, which of them make a conversation that is worth a summary (spec/transcript.md 3.6): what
// users, assistants and tools said, but not white space, silent answers, bare acknowledgements of a heartbeat, calls and thoughts alone,
// and results that nobody has spoken within twenty messages before. The zero Real is ready to use.
type Real struct {
	seen   int
	anchor int // behind the last message that somebody said who is no assistant; 0 for none
}

const anchorReach = 20

// Is takes the next message.
func (r *Real) Is(role string, raw []byte) bool {
	r.seen++
	is := false
	switch role {
	case "toolResult":
		return r.anchor > 0 && r.seen-r.anchor <= anchorReach && meaningful(raw)
	case "user", "assistant":
		is = meaningful(raw)
	case "custom":
		is = string(span.Member(raw, "display")) != "false" && meaningful(raw)
	case "bashExecution":
		is = string(span.Member(raw, "excludeFromContext")) != "true"
	case "branchSummary":
		s, _ := span.Text(span.Member(raw, "summary"))
		is = visible.Trim(s) != ""
	}
	if is && role != "assistant" {
		r.anchor = r.seen
	}
	return is
}

// meaningful tells whether a message says something.
func meaningful(raw []byte) bool {
	says := func(s string) bool {
		s = visible.Trim(s)
		return s != "" && !visible.Silent(s) && s != "HEARTBEAT_OK"
	}
	content := span.Member(raw, "content")
	if s, ok := span.Text(content); ok {
		return says(s)
	}
	found := false
	_, _ = span.Items(content, 0, func(block []byte) error {
		switch kind, _ := span.Text(span.Member(block, "type")); kind {
		case "text":
			s, _ := span.Text(span.Member(block, "text"))
			found = found || says(s)
		case "image":
			found = true
		}
		return nil
	})
	return found
}
