package lifecycle

import (
	"math"

	"oc/store/row"
)

// MostForked is how many tokens of a parent's context a child can begin with: a thread, or a sub-agent that gets the conversation.
const MostForked = 100_000

// A Fork is whether a new session begins with its parent's conversation (spec/transcript.md 1.13, release 2026.7.35).
type Fork struct {
	Copies bool    // else it begins alone, and is marked as forked all the same
	Tokens float64 // of the parent's context, where Known
	Known  bool    // what is not known is copied
}

// ForkOf decides by the parent's row, which tells how full its context is unless it says that the number is stale; counted is then what its
// transcript tells, 0 for nothing.
func ForkOf(parent *row.Entry, counted float64) Fork {
	total, ok := parent.Number(row.TotalTokens)
	if !ok || total < 0 || math.IsInf(total, 0) {
		total, ok = 0, false
	}
	f := Fork{Tokens: total, Known: ok}
	if fresh, said := parent.Flag(row.TotalTokensFresh); said && !fresh {
		f = Fork{}
		if counted > 0 {
			f = Fork{Tokens: max(counted, total), Known: true}
		}
	}
	f.Copies = f.Tokens <= MostForked
	return f
}
