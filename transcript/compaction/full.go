package compaction

import (
	"math"

	"oc/store/span"
)

// Counters are what a row says of the size of its session.
type Counters struct {
	Total       float64 // totalTokens; 0 for none
	Fresh       bool    // totalTokensFresh is not false
	Compactions float64 // compactionCount
	Flushed     float64 // memoryFlushCompactionCount
	HasFlushed  bool
}

// A Gate is whether a session's memory is flushed and its conversation compacted before the next turn (spec/transcript.md 3.8 and
// 4). Known is false where nothing tells how full the context is, or the window is too small for either.
type Gate struct {
	Known     bool
	Threshold int // tokens from which both happen
	Tokens    int
	Flush     bool // the memory: once a cycle
	Compact   bool
}

// Check decides. counted is how many tokens the next prompt will have, as far as it was counted; 0: the row's own number, if it
// is fresh.
func Check(c Counters, window, floor, soft int, counted float64) Gate {
	tokens := math.Floor(counted)
	if !(counted > 0) || math.IsInf(counted, 0) {
		if !c.Fresh {
			return Gate{}
		}
		tokens = math.Floor(c.Total)
	}
	g := Gate{Threshold: max(0, window-floor-soft), Tokens: int(min(tokens, math.MaxInt32))}
	if g.Threshold == 0 || !(tokens > 0) {
		return Gate{}
	}
	g.Known = true
	g.Compact = g.Tokens >= g.Threshold
	g.Flush = g.Compact && !c.Done()
	return g
}

// Done tells whether the memory was flushed since the last compaction.
func (c Counters) Done() bool { return c.HasFlushed && c.Flushed == c.Compactions }

// Silent tells whether an answer means that its prompt was too large, though the provider did not say so: it stopped with more than
// the window, or had no room left to say anything. usage is raw.
func Silent(stop string, usage []byte, window int) bool {
	number := func(name string) float64 {
		n, _ := span.Float(span.Member(usage, name))
		return n
	}
	if state, _ := span.Text(span.Path(usage, "contextUsage", "state")); window <= 0 || state == "unavailable" {
		return false
	}
	sent := number("input") + number("cacheRead")
	switch stop {
	case "stop":
		return sent > float64(window)
	case "length":
		return number("output") == 0 && sent >= 0.99*float64(window)
	}
	return false
}

// A Route is what happens to a prompt before it is sent.
type Route string

// The routes.
const (
	Fits     Route = "fits"
	Compact  Route = "compact_only"
	Truncate Route = "truncate_tool_results_only"
	Both     Route = "compact_then_truncate"
)

// A Precheck is the look at a prompt before it is sent.
type Precheck struct {
	Route   Route
	Budget  int // tokens that the prompt may have
	Over    int // tokens too many
	Reserve int // tokens that stay free
}

// Weigh weighs a prompt of some tokens (see transcript.PromptPressure) against a window and a reserve. reducible is how many
// characters the results of tools can be cut by.
func Weigh(tokens, window, reserve, reducible int) Precheck {
	window = max(1, window)
	least := min(leastPrompt, max(1, window/2))
	p := Precheck{Route: Fits, Reserve: min(max(0, reserve), max(0, window-least))}
	p.Budget = max(1, window-p.Reserve)
	if p.Over = max(0, tokens-p.Budget); p.Over == 0 {
		return p
	}
	chars := p.Over * 4
	switch {
	case reducible <= 0:
		p.Route = Compact
	case reducible >= max(chars+512*4, (chars*3+1)/2):
		p.Route = Truncate
	default:
		p.Route = Both
	}
	return p
}
