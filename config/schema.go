package config

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"oc/config/json5"
	"oc/store/span"
)

// rule says what may stand at a place of the configuration.
type rule struct {
	ok   func(*Node) bool // whether the value may stand; nil if keys or each say it
	want string           // what should stand there, for the warning

	keys   map[string]rule // an object with these keys and no others
	open   bool            // other keys are not looked at
	each   *rule           // of a record: every value; of a list: every item
	isList bool
}

func is(want string, ok func(*Node) bool) rule { return rule{ok: ok, want: want} }

func strict(keys map[string]rule) rule { return rule{keys: keys} }

func loose(keys map[string]rule) rule { return rule{keys: keys, open: true} }

func record(each rule) rule { return rule{each: &each} }

func list(each rule) rule { return rule{each: &each, isList: true} }

func oneOf(words ...string) rule {
	return is(`one of "`+strings.Join(words, `", "`)+`"`, func(n *Node) bool {
		text, ok := n.Str()
		return ok && slices.Contains(words, text)
	})
}

func number(want string, ok func(float64) bool) rule {
	return is(want, func(n *Node) bool {
		f, is := n.Num()
		return is && !math.IsNaN(f) && !math.IsInf(f, 0) && ok(f)
	})
}

func whole(f float64) bool { return f == math.Trunc(f) && math.Abs(f) <= maxSafe }

// orFalse lets the literal false stand beside what the rule allows.
func orFalse(r rule) rule {
	return is(r.want+", or false", func(n *Node) bool { return n.False() || r.ok(n) })
}

var (
	anything = is("anything", func(*Node) bool { return true })
	text     = is("a string", func(n *Node) bool { return n.Kind == json5.String })
	flag     = is("true or false", func(n *Node) bool { return n.Kind == json5.Bool })
	positive = number("a whole number above 0", func(f float64) bool { return whole(f) && f > 0 })
	amount   = number("a number of 0 or more", func(f float64) bool { return f >= 0 })
	hour     = number("an hour from 0 to 23", func(f float64) bool { return whole(f) && f >= 0 && f <= 23 })
	duration = is("a duration (as 30d, 12h, 90m; a bare number is days)", func(n *Node) bool {
		s, ok := n.Scalar()
		if ok {
			_, ok = ParseDuration(s, "d")
		}
		return ok
	})
	size = is("a size (as 500mb, 10gb; a bare number is bytes)", func(n *Node) bool {
		s, ok := n.Scalar()
		if ok {
			_, ok = ParseSize(s)
		}
		return ok
	})
	model = is("a model (provider/model, or an object with primary)", func(n *Node) bool {
		return n.Kind == json5.String || n.Kind == json5.Object
	})
	reset = strict(map[string]rule{"mode": oneOf("daily", "idle", "none"), "atHour": hour, "idleMinutes": positive})
)

// schema is what oc relies on, of 2026.7.35 and 2026.9.6 together: session and the top level are strict, as in OpenClaw; elsewhere only
// the values that oc reads are looked at.
var schema = strict(topLevel(map[string]rule{
	"session": strict(map[string]rule{
		"scope":         oneOf("per-sender", "global"),
		"dmScope":       oneOf("main", "per-peer", "per-channel-peer", "per-account-channel-peer"),
		"groupScope":    oneOf("main", "per-group"),
		"identityLinks": record(list(text)),
		"resetTriggers": list(text),
		"idleMinutes":   positive,
		"reset":         reset,
		"resetByType": strict(map[string]rule{
			"direct": reset, "dm": reset, "group": reset, "thread": reset,
		}),
		"resetByChannel":        record(reset),
		"store":                 text,
		"typingIntervalSeconds": positive,
		"typingMode":            oneOf("never", "instant", "thinking", "message"),
		"mainKey":               text,
		"notifyOnCreate":        flag,
		"sendPolicy":            anything,
		"sharing":               strict(map[string]rule{"readOnly": flag, "suggest": flag, "drafts": flag}),
		"writeLock":             strict(map[string]rule{"acquireTimeoutMs": positive, "staleMs": positive, "maxHoldMs": positive}),
		"agentToAgent": strict(map[string]rule{
			"maxPingPongTurns": number("a whole number from 0 to 20", func(f float64) bool { return whole(f) && f >= 0 && f <= 20 }),
		}),
		"threadBindings": strict(map[string]rule{
			"enabled": flag, "idleHours": amount, "maxAgeHours": amount, "spawnSessions": flag, "defaultSpawnContext": oneOf("isolated", "fork"),
		}),
		"maintenance": strict(map[string]rule{
			"mode":       oneOf("enforce", "warn"),
			"pruneAfter": duration,
			"pruneDays":  positive,
			"maxEntries": positive,
			"rotateBytes": is("a string or a number", func(n *Node) bool {
				_, ok := n.Scalar()
				return ok
			}),
			"resetArchiveRetention": orFalse(duration),
			"maxDiskBytes":          orFalse(size),
			"highWaterBytes":        size,
			"archiveDashboardAfter": orFalse(duration),
			"preserveRecent":        orFalse(duration),
			"coldStorage":           strict(map[string]rule{"enabled": flag, "afterDays": positive}),
		}),
	}),
	"agents": loose(map[string]rule{
		"defaults": loose(map[string]rule{"model": model, "models": record(anything), "contextTokens": positive, "cliBackends": record(anything)}),
		"list":     list(agentRule),
		"entries":  record(agentRule),
	}),
	"acp": loose(map[string]rule{"defaultAgent": text, "allowedAgents": list(text)}),
	"cron": loose(map[string]rule{
		"sessionRetention": orFalse(is("a duration (as 24h, 7d)", func(n *Node) bool {
			s, ok := n.Str()
			if ok {
				_, ok = ParseDuration(s, "h")
			}
			return ok
		})),
	}),
	"gateway": loose(map[string]rule{
		"port": number("a port number", func(f float64) bool { return whole(f) && f > 0 }), "mode": text, "bind": text,
	}),
	"models":  loose(map[string]rule{"providers": record(loose(map[string]rule{"models": list(loose(map[string]rule{"id": text}))}))}),
	"plugins": loose(map[string]rule{"enabled": flag, "allow": list(text), "deny": list(text), "entries": record(loose(nil))}),
}))

var agentRule = loose(map[string]rule{"id": text, "default": flag, "model": model, "models": record(anything), "agentDir": text, "runtime": loose(nil)})

// topLevel adds the sections that oc does not read, of both releases.
func topLevel(known map[string]rule) map[string]rule {
	for _, name := range strings.Fields(`$schema meta env wizard diagnostics audit logging cli crestodian update browser ui tui secrets
		marketplaces auth accessGroups nodeHost tools security bindings broadcast audio media messages commands approvals transcripts
		commitments hooks web channels discovery talk memory mcp skills canvasHost surfaces proxy
		telemetry worktreeRoot worktreeAcceleration attachments tts cloudWorkers desktop`) {
		known[name] = anything
	}
	return known
}

// check takes out of the tree what may not stand there, so that defaults are found in its place, and warns about it.
func (c *Config) check() {
	c.checkNode(c.root, schema, "")
	if marked := c.markedDefault(); len(marked) > 1 {
		c.warnAt(marked[1], "agents", "marks more than one agent as the default; the first one counts", harmless)
	}
	if key, ok := c.root.At("session", "mainKey").Str(); ok && span.Trim(key) != "" && span.Trim(key) != "main" {
		c.warnAt(c.root.At("session", "mainKey"), "session.mainKey", `is ignored; the main session is always "main"`, harmless)
	}
}

// markedDefault returns the marks of the agents that are marked as the default.
func (c *Config) markedDefault() []*Node {
	var marks []*Node
	for _, a := range c.readAgents() {
		if a.Default {
			marks = append(marks, a.Entry.At("default"))
		}
	}
	return marks
}

// checkNode returns whether the node itself may stand.
func (c *Config) checkNode(n *Node, r rule, path string) bool {
	if r.ok != nil {
		if !r.ok(n) {
			c.warnAt(n, path, fmt.Sprintf("should be %s, not %s; it is passed over", r.want, show(n)), serious)
			return false
		}
		return true
	}
	kind := json5.Object
	if r.isList {
		kind = json5.Array
	}
	if n.Kind != kind {
		c.warnAt(n, path, fmt.Sprintf("should be %s, not %s; it is passed over", article(kind), show(n)), serious)
		return false
	}
	if r.isList {
		items := n.Items[:0:0]
		for i, item := range n.Items {
			if c.checkNode(item, *r.each, indexPath(path, i)) {
				items = append(items, item)
			}
		}
		n.Items = items
		return true
	}
	members := n.Members[:0:0]
	for _, m := range n.Members {
		key := keyPath(path, m.Key)
		under, known := r.keys[m.Key]
		switch {
		case r.each != nil:
			under = *r.each
		case !known && !r.open:
			c.warnSpan(m.Value.file, m.KeySpan, key, "is not a key that OpenClaw knows; its gateway and commands refuse such a configuration", unknown)
			under = anything
		case !known:
			under = anything
		}
		if c.checkNode(m.Value, under, key) {
			members = append(members, m)
		}
	}
	n.Members = members
	return true
}

// show says what stands somewhere without telling it: it may be a secret at the wrong place.
func show(n *Node) string {
	switch n.Kind {
	case json5.Bool:
		return fmt.Sprint(n.Bool)
	case json5.String:
		if size := span.UTF16Len(n.Text); size > 1 {
			return fmt.Sprintf("a string of %d characters", size)
		} else if size == 1 {
			return "a string of 1 character"
		}
		return "an empty string"
	}
	return article(n.Kind)
}
