package awareness

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"oc/store/row"
)

// Notice is what a watcher is told: that a target changed since the version it has seen.
type Notice struct {
	Watcher string
	Target  string
	Since   int64 // the version to ask for changes after
	Ambient bool  // takes the place of an earlier one, and wakes nobody
}

// Text is the line that the watcher's model reads. It is the same for the same notice, byte for byte, as OpenClaw's is
// (spec/awareness.md 4).
func (n Notice) Text() string {
	return `Session "` + n.Target + `" changed (other actor). Reconcile before acting: session_status sessionKey "` + n.Target +
		`" changesSince ` + strconv.FormatInt(n.Since, 10) + `.`
}

const contextPrefix = "session-state:"

// ContextKey is the name under which notices for one target are one.
func (n Notice) ContextKey() string { return contextPrefix + hex.EncodeToString([]byte(n.Target)) }

// ContextTarget is the target that a context key stands for; false if it is not the context key of a notice.
func ContextTarget(contextKey string) (target string, ok bool) {
	code, ok := strings.CutPrefix(contextKey, contextPrefix)
	if !ok || code == "" || code != strings.ToLower(code) {
		return "", false
	}
	b, err := hex.DecodeString(code)
	return string(b), err == nil && utf8.Valid(b)
}

// Wakes says whether OpenClaw starts a turn of the watcher for the notice: not for ambient ones, nor for sub-agents, which
// find it at their next turn.
func (n Notice) Wakes() bool {
	_, rest, ok := row.Parse(n.Watcher)
	return ok && !n.Ambient && !strings.HasPrefix(rest, "subagent:")
}

// maxQueue is how many notices wait for one watcher.
const maxQueue = 20

// Queue holds the notices that wait for one watcher's next turn. OpenClaw has it in the gateway's memory alone, where
// nobody else can see it; a restart loses it, and a sweep makes it anew from the cursors. The zero Queue is empty.
type Queue struct{ waiting []Notice }

// Push adds a notice, unless it waits already. An ambient one takes the place of all others for its target. When the queue
// is full the oldest goes; its cursor stays pending.
func (q *Queue) Push(n Notice) (added bool) {
	same := func(m Notice) bool { return m.Target == n.Target && m.Since == n.Since }
	if n.Ambient {
		target := func(m Notice) bool { return m.Target == n.Target }
		if i := slices.IndexFunc(q.waiting, target); i >= 0 && same(q.waiting[i]) && !slices.ContainsFunc(q.waiting[i+1:], target) {
			return false
		}
		q.waiting = slices.DeleteFunc(q.waiting, target)
	} else if slices.ContainsFunc(q.waiting, same) {
		return false
	}
	q.waiting = append(q.waiting, n)
	if len(q.waiting) > maxQueue {
		q.waiting = slices.Delete(q.waiting, 0, 1)
	}
	return true
}

// Waiting are the notices, oldest first.
func (q *Queue) Waiting() []Notice { return slices.Clone(q.waiting) }

// Drain takes all notices out, oldest first. Their targets are then to be acknowledged, before anything else is queued.
func (q *Queue) Drain() []Notice {
	out := q.waiting
	q.waiting = nil
	return out
}
