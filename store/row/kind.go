package row

import (
	"strings"

	"oc/config"
	"oc/store/lazy"
	"oc/store/span"
)

// Four classifiers of sessions, which do not agree on purpose
// (spec/file-store.md 3.5, release 2026.7.35).

// ListKind is the kind in the list command: global, unknown, cron,
// spawn-child, group or direct.
func (e *Entry) ListKind() string {
	if _, rest, ok := Parse(e.Key); ok && strings.HasPrefix(span.Trim(rest), "cron:") && e.Key != "global" && e.Key != "unknown" {
		return "cron"
	}
	if e.Key != "global" && e.Key != "unknown" && Truthy(e.Raw(SpawnedBy)) {
		return "spawn-child"
	}
	return e.GatewayKind()
}

// GatewayKind is the kind in the gateway's sessions.list: global, unknown,
// group or direct.
func (e *Entry) GatewayKind() string {
	switch e.Key {
	case "global", "unknown":
		return e.Key
	}
	chat, _ := e.Text(ChatTypeField)
	if chat == "group" || chat == "channel" || groupShaped(e.Key) {
		return "group"
	}
	return "direct"
}

func groupShaped(key string) bool {
	return strings.Contains(key, ":group:") || strings.Contains(key, ":channel:")
}

// ToolKind is the kind in the agents' tool sessions_list: main, group, cron,
// hook, node or other. It looks at the part behind the agent, as release
// 2026.8.2 does; 2026.7.35 looked at the whole key and called nearly all
// other (spec/session-tools.md 0.2).
func (e *Entry) ToolKind() string {
	rest := Rest(e.Key)
	switch {
	case rest == "main", rest == "global":
		return "main"
	case strings.HasPrefix(rest, "cron:"):
		return "cron"
	case strings.HasPrefix(rest, "hook:"):
		return "hook"
	case strings.HasPrefix(rest, "node-"), strings.HasPrefix(rest, "node:"):
		return "node"
	case e.GatewayKind() == "group":
		return "group"
	}
	return "other"
}

var (
	legacyGroup    = lazy.Regexp(`^group:[^:]+(?::|$)|^(?:whatsapp:)?[^:]+@g\.us$`)
	legacyChannel  = lazy.Regexp(`^channel:[^:]+(?::|$)`)
	discordChannel = lazy.Regexp(`^discord:(?:[^:]+:)?guild-[^:]+:channel-[^:]+$`)
)

// ChatType is the type of conversation that a key spells: direct, group,
// channel, or unknown, also where it can be read in two ways.
func ChatType(key string) string {
	low := span.Lower(span.Trim(key))
	if _, rest, ok := Parse(low); ok {
		low = rest
	}
	legacy := "unknown"
	switch {
	case legacyGroup().MatchString(low):
		legacy = "group"
	case legacyChannel().MatchString(low), discordChannel().MatchString(low):
		legacy = "channel"
	}
	parts := strings.Split(low, ":")
	if parts[0] == "agent" {
		return legacy
	}
	at := func(i int) string {
		if i < len(parts) {
			return parts[i]
		}
		return ""
	}
	var shapes []string
	if k := at(0); (k == "direct" || k == "dm") && at(1) != "" {
		shapes = append(shapes, k)
	}
	if at(0) != "" && peerKind(at(1)) && at(2) != "" {
		shapes = append(shapes, at(1))
	}
	if at(0) != "" && at(1) != "" && peerKind(at(2)) && at(3) != "" {
		shapes = append(shapes, at(2))
	}
	if len(shapes) != 1 || legacy != "unknown" {
		return legacy
	}
	if shapes[0] == "dm" {
		return "direct"
	}
	return shapes[0]
}

func peerKind(s string) bool { return s == "direct" || s == "dm" || s == "group" || s == "channel" }

// PolicyKey is runtimePolicySessionKey of the list: where a direct chat lives
// in a main session, the key of that chat for policies; "" where there is none
// (spec/file-store.md 6.3). links maps an identity to its channel-bound ids,
// in the order of the configuration.
func (e *Entry) PolicyKey(global bool, links []config.IdentityLink) string {
	switch span.Lower(text(first(span.Member(e.OriginRaw(), "chatType"), e.Raw(ChatTypeField)))) {
	case "direct", "dm":
	default:
		return ""
	}
	policy := span.Trim(e.Key)
	if IsMain(e.Key, global) {
		if peer := e.peerKey(links); peer != "" {
			policy = peer
		}
	}
	if policy == e.Key {
		return ""
	}
	return policy
}

// peerKey is the key that the direct chat of a main session would have of its
// own; "" where channel or peer is unknown.
func (e *Entry) peerKey(links []config.IdentityLink) string {
	origin, delivery := e.OriginRaw(), e.Delivery()
	channel := text(span.Member(origin, "provider"))
	if nullish(span.Member(origin, "provider")) {
		if channel = delivery.Channel; channel == "" {
			if raw := e.legacyChannelField(); !nullish(raw) {
				channel = text(raw)
			} else {
				channel = text(span.Member(origin, "surface"))
			}
		}
	}
	to := delivery.To
	if raw := span.Member(origin, "to"); !nullish(raw) {
		to = text(raw)
	}
	from := text(span.Member(origin, "from"))
	peer := text(span.Member(origin, "nativeDirectUserId"))
	switch {
	case peer != "":
	case to != "":
		peer = span.Trim(recipient(to, channel))
	case from != "":
		peer = span.Trim(recipient(from, channel))
	}
	if channel == "" {
		channel = text(span.Member(origin, "surface"))
	}
	if channel = span.Lower(channel); channel == "" || channel == "webchat" || peer == "" {
		return ""
	}
	account := delivery.Account
	if raw := span.Member(origin, "accountId"); !nullish(raw) {
		account = text(raw)
	}
	if account = AccountID(account); account == "" {
		account = "default"
	}
	if id := linked(links, channel, peer); id != "" {
		peer = id
	}
	return "agent:" + KeyAgent(e.Key) + ":" + channel + ":" + account + ":direct:" + span.Lower(span.Trim(peer))
}

func linked(links []config.IdentityLink, channel, peer string) string {
	bare, scoped := span.Lower(span.Trim(peer)), span.Lower(span.Trim(channel+":"+peer))
	for _, l := range links {
		if span.Trim(l.Name) == "" {
			continue
		}
		for _, id := range l.Peers {
			if id = span.Lower(span.Trim(id)); id != "" && (id == bare || id == scoped) {
				return span.Trim(l.Name)
			}
		}
	}
	return ""
}

// OriginRaw is where the session came from, of either era, as raw JSON; nil for
// none.
func (e *Entry) OriginRaw() []byte {
	if d := e.Raw(DeliveryField); d != nil {
		return span.Member(d, "origin")
	}
	return e.Raw(Origin)
}

// legacyChannelField is the entry's own channel after loading.
func (e *Entry) legacyChannelField() []byte {
	if raw := e.Raw(Channel); span.KindOf(raw) == span.String || span.KindOf(e.Raw(Provider)) != span.String {
		return raw
	}
	return e.Raw(Provider)
}

func first(raws ...[]byte) []byte {
	for _, raw := range raws {
		if !nullish(raw) {
			return raw
		}
	}
	return nil
}

func text(raw []byte) string {
	s, _ := span.Text(raw)
	return span.Trim(s)
}

// recipient is a target without the channel before it and the topic behind.
func recipient(target, channel string) string {
	prefix := span.Lower(channel) + ":"
	if target == "" || channel == "" || len(target) < len(prefix) || !strings.EqualFold(target[:len(prefix)], prefix) {
		return target
	}
	target = target[len(prefix):]
	if i := strings.Index(span.Lower(target), ":topic:"); i >= 0 {
		return target[:i]
	}
	return target
}
