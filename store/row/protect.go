package row

import (
	"strings"

	"oc/store/lazy"
	"oc/store/span"
)

var (
	externalChat  = lazy.Regexp(`^[^:]+:(?:group|channel):.`)
	telegramTopic = lazy.Regexp(`^telegram:(?:group|channel|direct|dm):.+:topic:[^:]+$`)
)

// Protection is the rule by which OpenClaw never ages or caps the session
// away: thread, external-chat (a group or channel by its key) or chat-type;
// "" for a session that it may remove (spec/file-store.md 2.9, release
// 2026.7.35). Sessions that machines make are never protected.
func (e *Entry) Protection() string {
	rest := span.Lower(Rest(e.Key))
	for _, prefix := range []string{"subagent:", "acp:", "acp-bridge:", "cron:", "hook:", "node:"} {
		if strings.HasPrefix(rest, prefix) {
			if _, _, scoped := Parse(e.Key); prefix != "cron:" || scoped {
				return ""
			}
		}
	}
	if rest == "heartbeat" || strings.HasSuffix(rest, ":heartbeat") || strings.Contains(rest, ":heartbeat:") {
		return ""
	}
	if _, _, ok := Thread(e.Key); ok || telegramTopic().MatchString(rest) {
		return "thread"
	}
	if externalChat().MatchString(rest) {
		return "external-chat"
	}
	chat := e.Raw(ChatTypeField)
	if nullish(chat) {
		chat = span.Member(e.OriginRaw(), "chatType")
	}
	switch span.Lower(text(chat)) {
	case "group", "channel", "thread":
		return "chat-type"
	}
	return ""
}
