package maintenance

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"oc/store/agentdb"
	"oc/store/lazy"
	"oc/store/row"
	"oc/store/span"
)

var (
	topicKey   = lazy.Regexp(`^telegram:(?:group|channel|direct|dm):.+:topic:[^:]+$`)
	groupKey   = lazy.Regexp(`^[^:]+:(?:group|channel):.+$`)
	slashKey   = lazy.Regexp(`^[^:]+:slash:[^:]+(?:$|:)`)
	modelKey   = lazy.Regexp(`^(?i:agent:([^:\s]+):explicit:model-run-` + uuidText + `)$`)
	cronRunKey = lazy.Regexp(`^cron:[^:]+:run:[^:]+(?::|$)`)
)

// synthetic tells whether a key is one that sessions of machines have: the
// shape of a conversation does not protect those (spec/maintenance.md 2.3).
func synthetic(key, rest string, scoped bool) bool {
	bare := span.Lower(span.Trim(key))
	for _, prefix := range []string{"subagent:", "acp:"} {
		if strings.HasPrefix(rest, prefix) || strings.HasPrefix(bare, prefix) {
			return true
		}
	}
	if scoped && strings.HasPrefix(rest, "cron:") {
		return true
	}
	for _, prefix := range []string{"acp-bridge:", "hook:", "node:"} {
		if strings.HasPrefix(rest, prefix) {
			return true
		}
	}
	return rest == "heartbeat" || strings.HasSuffix(rest, ":heartbeat") || strings.Contains(rest, ":heartbeat:")
}

// conversation is the rule that protects a row for what it is, a thread, a
// topic or a group's conversation; "" where none does.
func conversation(e *row.Entry) Rule {
	_, rest, scoped := row.Parse(e.Key)
	if !scoped {
		rest = e.Key
	}
	rest = span.Lower(span.Trim(rest))
	if synthetic(e.Key, rest, scoped) {
		return ""
	}
	low := span.Lower(span.Trim(e.Key))
	if i := strings.LastIndex(low, ":thread:"); i >= 0 && span.Trim(low[i+len(":thread:"):]) != "" {
		return Thread
	}
	if strings.HasPrefix(rest, "telegram:") && topicKey().MatchString(rest) {
		return Thread
	}
	if (strings.Contains(rest, ":group:") || strings.Contains(rest, ":channel:")) && groupKey().MatchString(rest) {
		return Group
	}
	chat := e.Raw(row.ChatTypeField)
	if kind := span.KindOf(chat); kind == span.Invalid || kind == span.Null {
		chat = span.Member(e.Raw(row.Origin), "chatType")
	}
	text, _ := span.Text(chat)
	switch span.Lower(span.Trim(text)) {
	case "group", "channel":
		return Group
	case "thread":
		return Thread
	}
	return ""
}

// isProbe tells whether a key is that of a gateway's model probe.
func isProbe(key string) bool {
	m := modelKey().FindStringSubmatch(key)
	if m == nil {
		return false
	}
	agent, _, ok := row.Parse(key)
	return ok && agent == span.Lower(m[1])
}

// isDirect tells whether a key is one of a direct chat that the main session
// replaces (spec/maintenance.md 2.6).
func isDirect(key, agent string) bool {
	owner, rest, ok := row.Parse(key)
	if !ok || row.AgentID(owner) != row.AgentID(agent) {
		return false
	}
	parts := strings.Split(rest, ":")
	n := len(parts)
	return n >= 2 && n <= 4 && parts[0] != "agent" && parts[n-2] == "direct" && !slices.Contains(parts, "")
}

// sentence is the reason for a rule that protects a row.
func (d *draft) sentence(rule Rule, r *Row) string {
	switch rule {
	case ActiveKey:
		return "its key was named as active"
	case Thread:
		return "it is a thread or topic of a conversation"
	case Group:
		return "it is the conversation of a group or channel"
	case Locked:
		return "its transcript is locked: " + r.Held
	case RecentBytes:
		return "its transcript was " + lastWritten(d.now-r.Written)
	case UnknownAge:
		if r.inSeconds() {
			return "its updatedAt is in seconds, not in milliseconds, so its age is unknown"
		}
		if r.HasTime {
			return "its updatedAt is no time, so its age is unknown"
		}
		return "it has no updatedAt, so its age is unknown"
	case MainSession:
		return "it is a main session"
	case Pinned:
		return "it is pinned"
	case Shelved:
		return "it was put aside already"
	case ModelLocked:
		return "its model selection is locked"
	case Running:
		return "its status is running"
	case Recent:
		return "it was used within session.maintenance.preserveRecent"
	case External:
		return "it is a conversation with somebody outside"
	case JobExists:
		return "its cron job is still configured"
	case JobsUnknown:
		return "whether its cron job still exists is unknown"
	case Misfit:
		return r.misfit + ", so it stays as it is; oc doctor says what to do"
	case SlashRoute:
		return "rows that route slash commands have no transcript"
	}
	return ""
}

// rows counts rows for people.
func rows(n int) string { return fmt.Sprintf("%d %s", n, wordFor(n, "row", "rows")) }

// wordFor is a word for one of something, or for any other number of them.
func wordFor(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// ago is a duration in milliseconds for people.
func ago(ms float64) string {
	unit, word := float64(day), " days"
	switch {
	case ms < minute:
		unit, word = second, " s"
	case ms < 2*hour:
		unit, word = minute, " min"
	case ms < 2*day:
		unit, word = hour, " h"
	}
	return strconv.FormatFloat(ms/unit, 'f', 0, 64) + word
}

// lastWritten says when a file was written, given its age.
func lastWritten(age float64) string {
	if age < 0 {
		return "last written at a time that has not come yet"
	}
	return "written " + ago(age) + " ago"
}

// inUse is the rule that protects a row, whatever asks for it to go, because
// somebody works on it; "" where nobody is seen to.
func (d *draft) inUse(r *Row) Rule {
	switch {
	case r.Held != "":
		return Locked
	case r.Written > d.now-recently && !d.s.Governed:
		return RecentBytes
	}
	return ""
}

// shields is the rule that protects a row against a limit; "" where it may go.
func (d *draft) shields(i int) Rule {
	r := &d.s.Rows[i]
	switch {
	case d.active[r.Key]:
		return ActiveKey
	case d.kept[i] != "":
		return d.kept[i]
	case r.Odd:
		return UnknownAge
	}
	if by := d.inUse(r); by != "" {
		return by
	}
	return d.misfit(i)
}

// misfit protects a session that would be put aside in its database, whose row that does not take.
func (d *draft) misfit(i int) Rule {
	r := &d.s.Rows[i]
	if d.s.fits == nil || d.s.Schema < 23 || synthetic23(r.Key) {
		return ""
	}
	var unfit *agentdb.Unfit
	if err := d.s.fits(&r.Entry); !errors.As(err, &unfit) {
		return ""
	}
	if r.misfit == "" {
		r.misfit = unfit.Reason
		d.notes = append(d.notes, fmt.Sprintf("the session %s: %s", r.Key, d.sentence(Misfit, r)))
	}
	return Misfit
}
