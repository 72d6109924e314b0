package row

import (
	"strings"

	"oc/config"
	"oc/store/lazy"
	"oc/store/span"
)

// Session keys: spec/file-store.md 3, release 2026.7.35.

// AgentID is the canonical id of an agent.
func AgentID(s string) string { return config.NormalizeAgentID(s) }

// Canonical is a key in its canonical form: trimmed and lower case, except the
// opaque ids of signal groups and matrix rooms, which keep their case.
func Canonical(key string) string {
	raw := span.Trim(key)
	low := span.Lower(raw)
	if !strings.Contains(low, "signal:") && !strings.Contains(low, "matrix:") {
		return low
	}
	kept := append(signalSpans(raw), matrixSpans(raw)...)
	if len(kept) == 0 {
		return low
	}
	var b strings.Builder
	at := 0
	for _, s := range kept {
		if s.from < at {
			continue
		}
		b.WriteString(span.Lower(span.Trim(raw[at:s.from])))
		part := raw[s.from:s.to]
		if s.trim {
			part = span.Trim(part)
		}
		b.WriteString(part)
		at = s.to
	}
	b.WriteString(span.Lower(span.Trim(raw[at:])))
	return b.String()
}

type keep struct {
	from, to int
	trim     bool
}

var (
	signalGroup = lazy.Regexp(`(?i)(?:^|:)signal:group:([^:]+)`)
	matrixRoom  = lazy.Regexp(`(?i)^(?:(?:agent:[^:]*:)+:*)?matrix:(?:channel|group):`)
	threadMark  = ":thread:"
)

func signalSpans(raw string) (out []keep) {
	for _, m := range signalGroup().FindAllStringSubmatchIndex(raw, -1) {
		out = append(out, keep{m[2], m[3], true})
	}
	return out
}

func matrixSpans(raw string) (out []keep) {
	m := matrixRoom().FindStringIndex(raw)
	if m == nil || m[1] == len(raw) {
		return nil
	}
	tail := m[1]
	mark := lastFold(raw[tail:], threadMark)
	if mark < 0 {
		return []keep{{tail, len(raw), false}}
	}
	if mark > 0 {
		out = append(out, keep{tail, tail + mark, false})
	}
	if id := tail + mark + len(threadMark); id < len(raw) {
		out = append(out, keep{id, len(raw), false})
	}
	return out
}

// lastFold is the offset of the last part of s that is mark in any case.
func lastFold(s, mark string) int {
	for i := len(s) - len(mark); i >= 0; i-- {
		if strings.EqualFold(s[i:i+len(mark)], mark) {
			return i
		}
	}
	return -1
}

// Parse splits a key of an agent, "agent:<id>:<rest>", into the agent's id
// (trimmed, lower case) and the canonical rest. ok is false for other keys and
// malformed ones.
func Parse(key string) (agent, rest string, ok bool) {
	tail, found := strings.CutPrefix(Canonical(key), "agent:")
	if !found {
		return "", "", false
	}
	agent, rest, found = strings.Cut(tail, ":")
	if !found || rest == "" || rest[0] == ':' || span.Trim(agent) == "" {
		return "", "", false
	}
	return span.Trim(agent), rest, true
}

// KeyAgent is the canonical id of the agent that a key names, "main" where it
// names none.
func KeyAgent(key string) string {
	agent, _, _ := Parse(key)
	return AgentID(agent)
}

// Rest is the part of a key behind the agent; the canonical key itself where
// it names no agent.
func Rest(key string) string {
	if _, rest, ok := Parse(key); ok {
		return rest
	}
	return Canonical(key)
}

// MainKey is the key of an agent's main session.
func MainKey(agent string) string { return "agent:" + AgentID(agent) + ":main" }

// IsMain tells whether a key means the main session of the agent it names:
// "main" or the agent's or agent main's main key; with global scope "global".
func IsMain(key string, global bool) bool {
	low := span.Lower(span.Trim(key))
	return low == "main" || low == MainKey(KeyAgent(key)) || low == "agent:main:main" || global && low == "global"
}

// A Class is the shape of a key (spec/file-store.md 3.4).
type Class string

// The classes of key.
const (
	ClassMain      Class = "main"
	ClassGlobal    Class = "global"
	ClassUnknown   Class = "unknown"
	ClassDirect    Class = "direct"
	ClassGroup     Class = "group"
	ClassChannel   Class = "channel"
	ClassThread    Class = "thread"
	ClassCron      Class = "cron"
	ClassCronRun   Class = "cron-run"
	ClassHook      Class = "hook"
	ClassNode      Class = "node"
	ClassSubagent  Class = "subagent"
	ClassACP       Class = "acp"
	ClassHeartbeat Class = "heartbeat"
	ClassModelRun  Class = "model-run"
	ClassExplicit  Class = "explicit"
	ClassRecovered Class = "recovered"
	ClassOther     Class = "other"
)

var (
	cronRun  = lazy.Regexp(`^cron:[^:]+:run:[^:]+(?::|$)`)
	modelRun = lazy.Regexp(`^explicit:model-run-[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
)

// ClassOf tells the shape of a key.
func ClassOf(key string) Class {
	switch low := span.Lower(span.Trim(key)); low {
	case "global":
		return ClassGlobal
	case "unknown":
		return ClassUnknown
	}
	rest := Rest(key)
	head, tail, _ := strings.Cut(rest, ":")
	switch head {
	case "cron":
		if cronRun().MatchString(rest) {
			return ClassCronRun
		}
		return ClassCron
	case "hook":
		return ClassHook
	case "node":
		return ClassNode
	case "subagent":
		return ClassSubagent
	case "acp", "acp-bridge":
		return ClassACP
	case "explicit":
		if modelRun().MatchString(rest) {
			return ClassModelRun
		}
		return ClassExplicit
	case "recovered":
		return ClassRecovered
	}
	switch {
	case strings.HasPrefix(rest, "node-"):
		return ClassNode
	case rest == "heartbeat", strings.HasSuffix(rest, ":heartbeat"), strings.HasPrefix(rest, "heartbeat-recovered-"):
		return ClassHeartbeat
	}
	if _, _, ok := Thread(key); ok {
		return ClassThread
	}
	switch ChatType(key) {
	case "direct":
		return ClassDirect
	case "group":
		return ClassGroup
	case "channel":
		return ClassChannel
	}
	if rest == "main" && tail == "" {
		return ClassMain
	}
	return ClassOther
}

// CronJob is the id of the job that a cron key belongs to.
func CronJob(key string) (job string, ok bool) {
	tail, ok := strings.CutPrefix(Rest(key), "cron:")
	if !ok {
		return "", false
	}
	job, _, _ = strings.Cut(tail, ":")
	return job, job != ""
}

// Thread splits a thread's key into its parent's key and the thread id: behind
// the last ":thread:", or behind ":topic:" of a telegram or feishu group
// (spec/file-store.md 3.6).
func Thread(key string) (parent, id string, ok bool) {
	raw := span.Trim(key)
	if parent, id, ok = topic(raw); ok {
		return parent, id, true
	}
	if i := lastFold(raw, threadMark); i >= 0 {
		if id = span.Trim(raw[i+len(threadMark):]); id != "" {
			return raw[:i], id, true
		}
	}
	return "", "", false
}

func topic(raw string) (parent, id string, ok bool) {
	body := raw
	if low := span.Lower(raw); strings.HasPrefix(low, "agent:") {
		if parts := strings.SplitN(raw, ":", 3); len(parts) == 3 {
			body = parts[2]
		}
	}
	low := span.Lower(body)
	if !strings.HasPrefix(low, "telegram:group:") && !strings.HasPrefix(low, "telegram:channel:") {
		return "", "", false
	}
	i := strings.LastIndex(low, ":topic:")
	if i < 0 {
		return "", "", false
	}
	if id = span.Trim(body[i+len(":topic:"):]); id == "" {
		return "", "", false
	}
	return raw[:len(raw)-len(body)+i], id, true
}
