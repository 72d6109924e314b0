package row

import (
	"math"
	"strings"

	"oc/store/span"
)

// A Delivery is where answers of a session go: the channel, the target in it,
// the account that sends, and the thread. Thread is raw JSON, a text or a
// number; empty parts are unknown.
type Delivery struct {
	Channel, To, Account string
	Thread               []byte
}

// Delivery reconciles the fields in which releases kept the destination of a
// session: route over last* over deliveryContext, an internal channel giving
// way to an external one (spec/file-store.md 2.3 step 5 and 2.4, 2026.7.35),
// or the one field delivery of the SQLite era (spec/sqlite-store.md 2.3).
func (e *Entry) Delivery() Delivery {
	if d := e.Raw(DeliveryField); d != nil {
		context := newDelivery(span.Member(d, "context"), "channel", "to", "accountId", "threadId")
		route := span.Member(d, "route")
		return merge(routeDelivery(route), context)
	}
	legacy := normalize(e.legacyChannel(), e.Raw(LastTo), e.Raw(LastAccountID), e.lastThread())
	context := newDelivery(e.Raw(DeliveryContext), "channel", "to", "accountId", "threadId")
	route := routeDelivery(e.Raw(Route))

	session := merge(legacy, context)
	if legacy.internal() && context.external() {
		session = over(context, legacy)
	}
	if route.internal() && context.external() {
		return over(context, merge(route, legacy))
	}
	return merge(route, session)
}

// legacyChannel is lastChannel, else channel, after the old names of both were
// read (spec/file-store.md 2.3 step 2).
func (e *Entry) legacyChannel() []byte {
	for _, names := range [][2]Field{{LastChannel, LastProvider}, {Channel, Provider}} {
		raw := e.Raw(names[0])
		if span.KindOf(raw) != span.String && span.KindOf(e.Raw(names[1])) == span.String {
			raw = e.Raw(names[1])
		}
		if !nullish(raw) {
			return raw
		}
	}
	return nil
}

func (e *Entry) lastThread() []byte {
	for _, raw := range [][]byte{e.Raw(LastThreadID), span.Member(e.Raw(DeliveryContext), "threadId"), span.Member(e.Raw(Origin), "threadId")} {
		if !nullish(raw) {
			return raw
		}
	}
	return nil
}

func nullish(raw []byte) bool {
	k := span.KindOf(raw)
	return k == span.Invalid || k == span.Null
}

func newDelivery(obj []byte, channel, to, account, thread string) Delivery {
	if span.KindOf(obj) != span.Object {
		return Delivery{}
	}
	return normalize(span.Member(obj, channel), span.Member(obj, to), span.Member(obj, account), span.Member(obj, thread))
}

func routeDelivery(route []byte) Delivery {
	if span.KindOf(route) != span.Object {
		return Delivery{}
	}
	return normalize(span.Member(route, "channel"), span.Path(route, "target", "to"), span.Member(route, "accountId"), span.Path(route, "thread", "id"))
}

func normalize(channel, to, account, thread []byte) Delivery {
	var d Delivery
	if c, ok := span.Text(channel); ok {
		d.Channel = ChannelID(c)
	}
	if t, ok := span.Text(to); ok {
		d.To = span.Trim(t)
	}
	if a, ok := span.Text(account); ok {
		d.Account = AccountID(a)
	}
	switch span.KindOf(thread) {
	case span.String:
		if t, _ := span.Text(thread); span.Trim(t) != "" {
			d.Thread = span.Quote(nil, span.Trim(t))
		}
	case span.Number:
		if n, _ := span.Float(thread); !math.IsInf(n, 0) {
			d.Thread = span.AppendFloat(nil, math.Trunc(n))
		}
	}
	return d
}

// merge fills what primary leaves open from fallback, unless they speak of
// different channels or accounts.
func merge(primary, fallback Delivery) Delivery {
	accounts := primary.Account != "" && fallback.Account != "" && primary.Account != fallback.Account
	channels := primary.Channel != "" && fallback.Channel != "" && primary.Channel != fallback.Channel
	d := primary
	if d.Channel == "" && !accounts {
		d.Channel = fallback.Channel
	}
	if accounts || channels {
		return d
	}
	if d.To == "" {
		d.To = fallback.To
	}
	if d.Account == "" {
		d.Account = fallback.Account
	}
	if d.Thread == nil {
		d.Thread = fallback.Thread
	}
	return d
}

// over is an external destination that keeps account and thread of the
// internal one it replaces where it has none.
func over(external, internal Delivery) Delivery {
	if external.Account == "" {
		external.Account = internal.Account
	}
	if external.Thread == nil {
		external.Thread = internal.Thread
	}
	return external
}

func (d Delivery) internal() bool { return d.Channel == "webchat" || internalChannel(d.Channel) }

func (d Delivery) external() bool { return d.Channel != "" && !d.internal() && d.To != "" }

func internalChannel(c string) bool {
	switch c {
	case "heartbeat", "cron", "webhook", "voice", "sessions_send":
		return true
	}
	return false
}

// channelAliases are other names of the channels that OpenClaw bundles.
var channelAliases = map[string]string{
	"lark": "feishu", "gchat": "googlechat", "google-chat": "googlechat", "imsg": "imessage", "internet-relay-chat": "irc", "teams": "msteams",
	"nc-talk": "nextcloud-talk", "nc": "nextcloud-talk", "weixin": "openclaw-weixin", "wechat": "openclaw-weixin", "微信": "openclaw-weixin",
	"zaloclawbot": "openclaw-zaloclawbot", "zalo-clawbot": "openclaw-zaloclawbot", "twitch-chat": "twitch", "qywx": "wecom", "wework": "wecom",
	"enterprise-wechat": "wecom", "yb": "yuanbao", "tencent-yuanbao": "yuanbao", "元宝": "yuanbao", "zl": "zalo", "zlu": "zalouser",
}

// ChannelID is the canonical id of a channel: trimmed, lower case, its alias
// resolved.
func ChannelID(s string) string {
	s = span.Lower(span.Trim(s))
	if id, ok := channelAliases[s]; ok {
		return id
	}
	return s
}

// AccountID is the canonical form of an account id: as slugs of agents are,
// but "" where nothing is left of it (spec/file-store.md 2.4).
func AccountID(s string) string {
	id := slug(span.Trim(s))
	switch id {
	case "__proto__", "prototype", "constructor":
		return ""
	}
	return id
}

// slug lower-cases an id and replaces each run of other characters than
// letters, digits, _ and - by one dash, none at the ends, at most 64 long.
func slug(trimmed string) string {
	low := span.Lower(trimmed)
	if plainID(trimmed) {
		return low
	}
	var b strings.Builder
	gap := false
	for _, r := range low {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			if gap {
				b.WriteByte('-')
			}
			gap = false
			b.WriteRune(r)
			continue
		}
		gap = true
	}
	if gap {
		b.WriteByte('-')
	}
	id := strings.Trim(b.String(), "-")
	return id[:min(len(id), 64)]
}

func plainID(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i] | 0x20
		if c >= 'a' && c <= 'z' || s[i] >= '0' && s[i] <= '9' || i > 0 && (s[i] == '_' || s[i] == '-') {
			continue
		}
		return false
	}
	return true
}
