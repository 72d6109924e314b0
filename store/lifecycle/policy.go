// Package lifecycle decides, as OpenClaw does, when a session ends by itself: the reset policy of the configuration, and what it
// says of a session at a given time.
//
// It follows spec/transcript.md 6 for OpenClaw 2026.7.35; 2026.9.6 (seen in its code) resets nothing that the configuration does
// not ask for, and knows the mode "none".
package lifecycle

import (
	"math"
	"strings"

	"oc/config"
	"oc/store/row"
	"oc/store/span"
)

// A Type is what sort of conversation a session is, as far as resets go.
type Type string

// The types.
const (
	Direct Type = "direct"
	Group  Type = "group"
	Thread Type = "thread"
)

// TypeOf tells the type by the key alone, as for a session that no message has come to yet.
func TypeOf(key string) Type {
	if _, _, ok := row.Thread(key); ok {
		return Thread
	}
	low := span.Lower(key)
	if strings.Contains(low, ":group:") || strings.Contains(low, ":channel:") {
		return Group
	}
	return Direct
}

// A Mode is what ends a session.
type Mode string

// The modes. A daily reset may have an idle limit beside it.
const (
	Daily Mode = "daily"
	Idle  Mode = "idle"
	Never Mode = "none" // 2026.9.6 alone
)

// A Policy says when a session ends.
type Policy struct {
	Mode       Mode
	Hour       int     // of the daily reset, in the host's time: 0 to 23
	Idle       float64 // minutes without a message; 0: no limit
	HasIdle    bool    // the configuration, or the mode, says something about Idle
	Configured bool    // the configuration says anything at all

	// Where it comes from, as paths of keys; "" for OpenClaw's default.
	ModeFrom, HourFrom, IdleFrom string
}

// Resolve is the policy for sessions of a type and a channel ("" for none). session is the configuration's section of that name;
// it may be nil.
func Resolve(session *config.Node, t Type, channel string, release config.Release) Policy {
	old := release == config.Release735
	base := setting{session.At("reset"), "session.reset"}
	byType := setting{session.At("resetByType", string(t)), "session.resetByType." + string(t)}
	if byType.null() && old && t == Direct {
		byType = setting{session.At("resetByType", "dm"), "session.resetByType.dm"}
	}
	legacy := setting{session, "session"}
	types := !setting{session.At("resetByType"), ""}.null()
	if name := span.Lower(span.Trim(channel)); name != "" {
		if own := session.At("resetByChannel", name); own != nil {
			base = setting{own, "session.resetByChannel." + name}
			byType, legacy = setting{}, setting{}
		}
	}
	if !old {
		legacy = setting{}
	}
	_, hasLegacy := legacy.number("idleMinutes")
	p := Policy{Hour: 4, Configured: !base.null() || !byType.null() || hasLegacy}

	inherits := base
	if m, _ := base.text("mode"); !old && !byType.null() && Mode(m) == Never {
		inherits = setting{} // what never resets in general does for a type that has a policy of its own
	}
	for _, s := range []setting{byType, inherits} {
		if m, ok := s.text("mode"); ok {
			p.Mode, p.ModeFrom = Mode(m), s.path+".mode"
			break
		}
	}
	if p.Mode == "" {
		switch {
		case !old && base.null() && byType.null():
			p.Mode = Never
		case old && hasLegacy && base.null() && !types:
			p.Mode, p.ModeFrom = Idle, "session.idleMinutes"
		default:
			p.Mode = Daily
		}
	}
	for _, s := range []setting{byType, base} {
		if v, ok := s.number("atHour"); ok {
			p.Hour, p.HourFrom = hour(v), s.path+".atHour"
			break
		}
	}
	p.HasIdle = p.Mode == Idle
	for _, s := range []setting{byType, base, legacy} {
		if v, ok := s.number("idleMinutes"); ok {
			if v = math.Floor(v); !math.IsInf(v, 0) {
				p.Idle, p.HasIdle = max(v, 0), true
			}
			p.IdleFrom = s.path + ".idleMinutes"
			break
		}
	}
	return p
}

func hour(v float64) int {
	if math.IsInf(v, 0) {
		return 4
	}
	return int(min(max(math.Floor(v), 0), 23))
}

// A setting is a block of the configuration, and the path to it.
type setting struct {
	node *config.Node
	path string
}

func (s setting) null() bool { return s.node.Null() }

func (s setting) text(key string) (string, bool) { return s.node.At(key).Str() }

func (s setting) number(key string) (float64, bool) { return s.node.At(key).Num() }
