package compaction

import (
	"fmt"
	"math"
	"slices"

	"oc/store/span"
	"oc/transcript"
)

// What OpenClaw's summaries are measured by (spec/transcript.md 3.4).
const (
	baseRatio   = 0.4
	leastRatio  = 0.15
	margin      = 1.2
	overhead    = 4096 // tokens of instructions around a chunk
	stageAtOnce = 4    // fewer messages are never summarised in stages
)

// A Message is what chunking needs to know of a message: what it costs, which calls of tools it makes and which it answers.
type Message struct {
	Role   Role
	Tokens int
	Calls  []string // ids of an assistant's calls
	Failed []string // those of an answer that failed or was broken off, which hold nothing open
	Answer string   // the id of the call that a result answers; "" for none
}

// MessageOf is what counts of a message.
func MessageOf(role string, raw []byte) Message {
	m := Message{Role: RoleOf(role), Tokens: transcript.SumTokens([]transcript.Said{{Role: role, Raw: raw}})}
	switch m.Role {
	case Assistant:
		ids := &m.Calls
		if stop, _ := span.Text(span.Member(raw, "stopReason")); stop == "aborted" || stop == "error" {
			ids = &m.Failed
		}
		for _, c := range transcript.Calls(raw) {
			if c.ID != "" {
				*ids = append(*ids, c.ID)
			}
		}
	case Result:
		m.Answer = transcript.ResultID(raw)
	}
	return m
}

func total(messages []Message) (n int) {
	for i := range messages {
		n += messages[i].Tokens
	}
	return n
}

// A Span is a run of messages: [From, To).
type Span struct{ From, To int }

// Split divides messages into parts of about equal cost. A call of a tool and its results stay in one part: a boundary that would
// fall between them moves to the call.
func Split(messages []Message, parts int) []Span {
	if len(messages) == 0 {
		return nil
	}
	parts = min(max(parts, 1), len(messages))
	target := float64(total(messages)) / float64(parts)
	var chunks []Span
	from, sum := 0, 0
	open, call := map[string]bool{}, 0
	cut := func(at int) {
		chunks = append(chunks, Span{from, at})
		from = at
	}
	atCall := func(end int) {
		if float64(sum) > target && len(chunks) < parts-1 && call > from {
			cut(call)
			sum = total(messages[call:end])
		}
	}
	for i := range messages {
		m := &messages[i]
		if len(open) == 0 && len(chunks) < parts-1 && i > from && float64(sum+m.Tokens) > target {
			cut(i)
			sum = 0
		}
		sum += m.Tokens
		switch {
		case m.Role == Assistant:
			clear(open)
			for _, id := range m.Calls {
				open[id], call = true, i
			}
		case m.Role == Result && len(open) > 0:
			if m.Answer == "" { // it may answer any of them: none holds the part together any more
				clear(open)
			} else if delete(open, m.Answer); len(open) == 0 {
				atCall(i + 1)
			}
		}
	}
	if len(open) > 0 {
		atCall(len(messages))
	}
	return append(chunks, Span{from, len(messages)})
}

// Chunks divides messages into runs that a model can take at once, of at most limit tokens by a careful estimate. A message that is
// larger on its own ends its run. Calls and results may be parted here.
func Chunks(messages []Message, limit int) (chunks []Span) {
	limit = max(1, int(float64(limit)/margin))
	from, sum := 0, 0
	for i := range messages {
		n := messages[i].Tokens
		if i > from && sum+n > limit {
			chunks = append(chunks, Span{from, i})
			from, sum = i, 0
		}
		if sum += n; n > limit {
			chunks = append(chunks, Span{from, i + 1})
			from, sum = i+1, 0
		}
	}
	if from < len(messages) {
		chunks = append(chunks, Span{from, len(messages)})
	}
	return chunks
}

// ChunkLimit is how many tokens a chunk of these messages may have in a window: the larger the messages, the smaller the share.
func ChunkLimit(messages []Message, window int) (limit int, share float64) {
	share = baseRatio
	if len(messages) > 0 {
		average := float64(total(messages)) / float64(len(messages)) * margin / float64(window)
		if average > 0.1 {
			share = max(leastRatio, baseRatio-min(2*average, baseRatio-leastRatio))
		}
	}
	return max(1, int(math.Floor(float64(window)*share))-overhead), share
}

// Stages are the parts that are summarised one by one and then merged; nil where one summary does.
func Stages(messages []Message, parts, least, limit int) []Span {
	parts = min(max(parts, 1), max(len(messages), 1))
	if parts < 2 || len(messages) < max(2, least) || total(messages) <= limit {
		return nil
	}
	if s := Split(messages, parts); len(s) > 1 {
		return s
	}
	return nil
}

// Oversized tells whether a message is too large for any summary of a window, and the line that stands for it then.
func (m Message) Oversized(role string, window int) (note string, is bool) {
	if float64(m.Tokens)*margin <= float64(window)/2 {
		return "", false
	}
	return fmt.Sprintf("[Large %s (~%dK tokens) omitted from summary]", role, (m.Tokens+500)/1000), true
}

// A Pruning is what of a history is summarised where what is kept leaves too little room for all of it.
type Pruning struct {
	New    int   // tokens of what is not summarised
	Limit  int   // more than that, and the history is cut down
	Budget int   // to so many tokens
	Kept   []int // messages that remain, by index
	Chunks int   // how many parts went
	Tokens int   // of the messages that went
}

// Prune drops the oldest parts of a history until it has its share of the window. A result whose call went, goes too.
func Prune(history []Message, before, prefix, window int, share float64, parts int) Pruning {
	p := Pruning{New: max(0, before-total(history)-prefix), Limit: int(float64(window) * share * margin), Budget: int(float64(window) * share)}
	for i := range history {
		p.Kept = append(p.Kept, i)
	}
	if p.New <= p.Limit {
		return p
	}
	left := slices.Clone(history)
	for total(left) > p.Budget && len(left) > 0 {
		chunks := Split(left, parts)
		if len(chunks) < 2 {
			break
		}
		gone := chunks[0].To
		p.Chunks++
		p.Tokens += total(left[:gone])
		left, p.Kept = left[gone:], p.Kept[gone:]
		left, p.Kept = paired(left, p.Kept)
	}
	return p
}

// paired is what of some messages is left when those go that no call asks for.
func paired(messages []Message, at []int) (kept []Message, where []int) {
	for _, p := range Pair(messages) {
		if p.At >= 0 {
			kept, where = append(kept, messages[p.At]), append(where, at[p.At])
		}
	}
	return kept, where
}
