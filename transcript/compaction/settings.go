package compaction

import (
	"math"
	"strings"

	"oc/config"
	"oc/store/span"
)

// What OpenClaw takes where the configuration says nothing (spec/transcript.md 3.1).
const (
	runtimeReserve = 16_384
	runtimeKeep    = 20_000
	reserveFloor   = 20_000
	leastPrompt    = 8_000

	flushSoft  = 4_000
	flushBytes = 2 << 20
)

// Settings are agents.defaults.compaction as OpenClaw reads it. A number that cannot be one is as good as absent.
type Settings struct {
	Enabled   bool
	Safeguard bool   // the mode that watches over its summaries; a provider forces it
	Provider  string // who writes summaries; "" for the session's own model
	Model     string

	Reserve int // tokens that stay free for the answer
	Keep    int // tokens of the end of a conversation that are not summarised
	Floor   int // the least reserve, as far as the window has room for it

	HistoryShare  float64 // of the window, for what is summarised
	RecentTurns   int     // turns that the safeguard keeps word by word
	Audit         bool
	Retries       int
	Identifiers   string // strict, off or custom
	Instructions  string // for identifiers, if custom
	Custom        string // customInstructions
	Sections      []string
	MidTurn       bool  // the size is looked at within turns too
	Rotates       bool  // truncateAfterCompaction: a compaction begins a new transcript
	MaxBytes      int64 // of a transcript, before it is compacted for its size; 0 for no limit
	TimeoutSecond float64

	Flush Flush
}

// Flush is what OpenClaw does before a compaction: it has the model write down what is worth keeping.
type Flush struct {
	Enabled bool
	Soft    int   // tokens in front of the compaction
	Bytes   int64 // of the transcript, whatever its tokens; 0 for never
	Model   string
	Prompt  string
	System  string
}

// Read reads agents.defaults of a configuration; defaults may be nil. window is the model's context window in tokens, 0 where it
// is not known: it caps the reserve.
func Read(defaults *config.Node, window int) Settings {
	n := defaults.At("compaction")
	s := Settings{Enabled: true, HistoryShare: 0.5, RecentTurns: 3, Retries: 1, Identifiers: "strict", TimeoutSecond: 180}
	s.Floor = whole(n.At("reserveTokensFloor"), reserveFloor, 0)
	s.Reserve = max(whole(n.At("reserveTokens"), runtimeReserve, 0), s.Floor)
	if window > 0 {
		least := min(leastPrompt, max(1, window/2))
		s.Reserve = min(s.Reserve, max(0, window-least))
	}
	s.Keep = whole(n.At("keepRecentTokens"), runtimeKeep, 1)
	s.Provider = trimmed(n.At("provider"))
	s.Model = trimmed(n.At("model"))
	mode, said := n.At("mode").Str()
	s.Safeguard = mode == "safeguard" || s.Provider != "" || !said && defaults != nil
	s.Audit = s.Safeguard
	if v, ok := n.At("qualityGuard", "enabled").Flag(); ok {
		s.Audit = v
	}
	s.Retries = min(whole(n.At("qualityGuard", "maxRetries"), 1, 0), 3)
	s.RecentTurns = min(whole(n.At("recentTurnsPreserve"), 3, 0), 12)
	if v, ok := n.At("maxHistoryShare").Num(); ok {
		s.HistoryShare = min(max(v, 0.1), 0.9)
	}
	if v, ok := n.At("identifierPolicy").Str(); ok && (v == "off" || v == "custom") {
		s.Identifiers = v
	}
	s.Instructions, s.Custom = trimmed(n.At("identifierInstructions")), trimmed(n.At("customInstructions"))
	if s.Identifiers == "custom" && s.Instructions == "" {
		s.Identifiers = "strict"
	}
	if list := n.At("postCompactionSections"); list != nil {
		for _, item := range list.Items {
			if v, ok := item.Str(); ok && span.Trim(v) != "" {
				s.Sections = append(s.Sections, v)
			}
		}
	}
	s.MidTurn, _ = n.At("midTurnPrecheck", "enabled").Flag()
	s.Rotates, _ = n.At("truncateAfterCompaction").Flag()
	if v, ok := n.At("timeoutSeconds").Num(); ok && v > 0 && !math.IsInf(v, 0) {
		s.TimeoutSecond = v
	}
	if v, ok := Bytes(n.At("maxActiveTranscriptBytes")); ok && v > 0 && s.Rotates {
		s.MaxBytes = v
	}
	s.Flush = readFlush(n.At("memoryFlush"))
	return s
}

func readFlush(n *config.Node) Flush {
	f := Flush{Enabled: !n.At("enabled").False(), Soft: whole(n.At("softThresholdTokens"), flushSoft, 0), Bytes: flushBytes}
	if v, ok := Bytes(n.At("forceFlushTranscriptBytes")); ok {
		f.Bytes = v
	}
	f.Model, f.Prompt, f.System = trimmed(n.At("model")), trimmed(n.At("prompt")), trimmed(n.At("systemPrompt"))
	return f
}

// whole is a number that is at least least, rounded down; else the other.
func whole(n *config.Node, other, least int) int {
	v, ok := n.Num()
	if !ok || math.IsInf(v, 0) || math.Floor(v) < float64(least) || v > math.MaxInt32 {
		return other
	}
	return int(v)
}

func trimmed(n *config.Node) string {
	s, _ := n.Str()
	return span.Trim(s)
}

// Bytes reads a size: a number of bytes, or a text such as "20mb" without white space before the unit.
func Bytes(n *config.Node) (int64, bool) {
	if v, ok := n.Num(); ok {
		return int64(v), v >= 0 && v < 1<<62
	}
	s, ok := n.Str()
	if !ok {
		return 0, false
	}
	s = strings.ToLower(span.Trim(s))
	digits := strings.TrimRight(s, "bkmgt")
	factor, ok := map[string]float64{"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30, "t": 1 << 40, "tb": 1 << 40}[s[len(digits):]]
	if !ok {
		return 0, false
	}
	v, ok := decimal(digits)
	v *= factor
	return int64(v), ok && v < 1<<62
}

// decimal reads digits with at most one point among them.
func decimal(s string) (v float64, ok bool) {
	before, after, point := strings.Cut(s, ".")
	if before == "" || point && after == "" || strings.Trim(before+after, "0123456789") != "" {
		return 0, false
	}
	return span.Float([]byte(strings.TrimLeft(before[:len(before)-1], "0") + before[len(before)-1:] + map[bool]string{true: "." + after}[point]))
}
