package visible

import (
	"strings"

	"oc/store/span"
)

// Omitted is the text that stands for a message that is too long to be shown
// (spec/session-tools.md 2.2).
const Omitted = "[chat.history omitted: message too large]"

// MessageBytes is how long one message of a chat history may be as JSON; in its
// place stands what Oversized gives.
const MessageBytes = 128 << 10

// A Mark is what a history says of the row that a message stood in.
type Mark struct {
	ID   string
	Time int64 // of the row, epoch ms; 0 if it is not known
	Seq  int
	Of   string // the session id of the transcript, where there are several; "" says nothing
	Era  string // of the store, where a history is of both eras; "" says nothing

	// What release 2026.9.6 adds: where the row stood in its database, and who sent a message as an object.
	Source string // of the transcript, as OpenClaw names it to its clients; "" leaves out Event
	Event  int64
	Sender bool
}

// With is a raw message with the mark among what OpenClaw notes of it, in the
// member __openclaw.
func (m Mark) With(message []byte) []byte {
	o := parseObject(message)
	var note object
	if raw := o.get("__openclaw"); span.KindOf(raw) == span.Object {
		note = parseObject(raw)
	}
	if m.ID != "" {
		note.setText("id", m.ID)
	}
	if key, ok := o.text("idempotencyKey"); ok && Trim(key) != "" {
		note.setText("idempotencyKey", key)
	}
	if m.Time != 0 {
		note.set("recordTimestampMs", span.AppendFloat(nil, float64(m.Time)))
	}
	m.place(&note)
	o.set("__openclaw", note.append(nil))
	if m.Sender && o.is("role", "user") && sentBetween(message) {
		if key, _ := span.Text(span.Path(message, "provenance", "sourceSessionKey")); Trim(key) != "" {
			var sender object
			sender.setText("sessionKey", Trim(key))
			if parts := strings.Split(Trim(key), ":"); len(parts) > 2 && parts[0] == "agent" && parts[1] != "" {
				sender.setText("agentId", parts[1])
			}
			o.set("senderSession", sender.append(nil))
		}
	}
	return o.append(nil)
}

func (m Mark) place(note *object) {
	if m.Source != "" {
		var position object
		position.setText("source", m.Source)
		position.set("rawSeq", span.AppendFloat(nil, float64(m.Event)))
		note.set("transcriptPosition", position.append(nil))
	}
	note.set("seq", span.AppendFloat(nil, float64(m.Seq)))
	if m.Of != "" {
		note.setText("ofSessionId", m.Of)
	}
	if m.Era != "" {
		note.setText("era", m.Era)
	}
}

// Compaction is the message that a history has in place of a compaction.
func (m Mark) Compaction() []byte {
	var o, note object
	o.setText("role", "system")
	o.set("content", []byte(`[{"type":"text","text":"Compaction"}]`))
	if m.Time != 0 {
		o.set("timestamp", span.AppendFloat(nil, float64(m.Time)))
	}
	note.setText("kind", "compaction")
	if m.ID != "" {
		note.setText("id", m.ID)
	}
	m.place(&note)
	o.set("__openclaw", note.append(nil))
	return o.append(nil)
}

// Oversized stands for a message that is too long. at is its time where it does
// not say one itself, epoch ms.
func Oversized(message []byte, at int64) []byte {
	from := parseObject(message)
	var o, note object
	role, ok := from.text("role")
	if !ok {
		role = "assistant"
	}
	o.setText("role", role)
	if stamp := from.get("timestamp"); span.KindOf(stamp) == span.Number {
		o.set("timestamp", stamp)
	} else if at != 0 {
		o.set("timestamp", span.AppendFloat(nil, float64(at)))
	}
	o.set("content", []byte(`[{"type":"text","text":"`+Omitted+`"}]`))
	for _, name := range [...]string{"id", "seq", "idempotencyKey", "transcriptPosition", "era"} {
		if raw := span.Path(message, "__openclaw", name); raw != nil {
			note.set(name, raw)
		}
	}
	note.set("truncated", []byte("true"))
	note.setText("reason", "oversized")
	o.set("__openclaw", note.append(nil))
	return o.append(nil)
}

// A Shown is a message of a thread as a reader sees it.
type Shown struct {
	Message []byte
	From    int  // the message it is of; of a reply that a tool sent, the one that called the tool
	Reply   bool // it is what a tool sent, not a message of its own
}

// Thread is what chat history shows of messages that follow each other
// (spec/session-tools.md 2.2): Project for each, and what hangs on their
// neighbours. What an assistant sent through the message tool shows as its
// reply where it said nothing else; a copy of what was delivered shows once;
// heartbeats and their empty answers do not show, nor do announcements from
// before the session began, at started (epoch ms; 0 if it is not known). The
// sound of a message shows with the message. Messages are raw and may carry a
// Mark.
func Thread(messages [][]byte, units int, started int64) []Shown {
	list := mirrored(announced(messages, started))
	out := make([]Shown, 0, len(list))
	var before []byte // the message before, as it shows
	poll := false
	for _, s := range list {
		m, shown := Project(s.Message, units)
		if !shown {
			continue
		}
		o := parseObject(m)
		wasPoll := poll
		poll = o.is("role", "user") && heartbeat(o.said())
		last := before
		before = m
		switch forwarded := o.is("role", "assistant") && sentBetween(m); {
		case poll:
			continue
		case !forwarded && o.is("role", "assistant") && (!o.empty() || wasPoll) && acknowledges(o):
			continue
		case voiced(out, o):
			continue
		case len(out) > 0 && injectedTwice(m, out[len(out)-1].Message), last != nil && deliveredTwice(m, last):
			continue
		}
		out = append(out, Shown{m, s.From, s.Reply})
	}
	return out
}

// announced leaves out announcements of sub-agents from before the session, and
// the answers to them.
func announced(messages [][]byte, started int64) []Shown {
	out := make([]Shown, 0, len(messages))
	early := func(m []byte) bool {
		raw := span.Path(m, "__openclaw", "recordTimestampMs")
		if raw == nil {
			raw = span.Member(m, "timestamp")
		}
		ms, ok := span.Float(raw)
		return ok && ms < float64(started)
	}
	for i := 0; i < len(messages); i++ {
		m := messages[i]
		if started != 0 && announces(m) && early(m) {
			if i+1 < len(messages) && parseObject(messages[i+1]).is("role", "assistant") && early(messages[i+1]) {
				i++
			}
			continue
		}
		out = append(out, Shown{Message: m, From: i})
	}
	return out
}

func announces(m []byte) bool {
	o := parseObject(m)
	if !o.is("role", "user") {
		return false
	}
	kind, _ := span.Text(span.Path(m, "provenance", "kind"))
	tool, _ := span.Text(span.Path(m, "provenance", "sourceTool"))
	if kind == "inter_session" && tool == "subagent_announce" {
		return true
	}
	said := o.said()
	return strings.Contains(said, forwardMark) && strings.Contains(said, "sourceTool=subagent_announce")
}

// sentBetween tells whether another session sent a message.
func sentBetween(m []byte) bool {
	kind, _ := span.Text(span.Path(m, "provenance", "kind"))
	tool, _ := span.Text(span.Path(m, "provenance", "sourceTool"))
	return kind == "inter_session" && tool == "sessions_send"
}

// heartbeat tells whether a user's text is one of OpenClaw's own polls.
func heartbeat(text string) bool {
	text = Trim(text)
	switch {
	case strings.HasSuffix(text, "[OpenClaw heartbeat poll]"):
		return true
	case strings.HasPrefix(text, "Read HEARTBEAT.md if it exists"):
		return strings.Contains(text, "HEARTBEAT_OK") || strings.Contains(text, "heartbeat_respond")
	}
	return strings.HasPrefix(text, "Run the following periodic tasks") && strings.Contains(text, "reply HEARTBEAT_OK")
}

const (
	ackToken = "HEARTBEAT_OK"
	ackUnits = 300 // of text beside the token
)

// acknowledges tells whether an assistant's message only says that a heartbeat
// found nothing: the token at either end, and little beside it.
func acknowledges(o object) bool {
	if !o.textOnly() || len(items(o.get("tool_calls"))) > 0 {
		return false
	}
	text := Trim(o.said())
	if text == "" {
		return true
	}
	bare := strings.Trim(strings.ReplaceAll(untagged(text), "&nbsp;", " "), "*`~_ \n")
	for _, s := range [...]string{text, bare} {
		if rest, ok := withoutToken(s); ok && Units(rest) <= ackUnits {
			return true
		}
	}
	return false
}

// untagged is s without tags.
func untagged(s string) string {
	var b strings.Builder
	for {
		open := strings.IndexByte(s, '<')
		if open < 0 {
			break
		}
		end := strings.IndexByte(s[open:], '>')
		if end < 0 {
			break
		}
		b.WriteString(s[:open])
		b.WriteByte(' ')
		s = s[open+end+1:]
	}
	return b.String() + s
}

// withoutToken takes the token off both ends of s, with up to four characters
// behind it that are none of a word.
func withoutToken(s string) (rest string, found bool) {
	for {
		s = Trim(s)
		if t, ok := strings.CutPrefix(s, ackToken); ok {
			s, found = t, true
			continue
		}
		at := strings.LastIndex(s, ackToken)
		if at < 0 {
			return s, found
		}
		tail := s[at+len(ackToken):]
		if Units(tail) > 4 || strings.ContainsFunc(tail, func(r rune) bool {
			return r == '_' || r < 0x80 && (r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z')
		}) {
			return s, found
		}
		s, found = Trim(s[:at])+tail, true
		if Trim(s) == Trim(tail) {
			return "", true
		}
	}
}

// textOnly tells whether a message has no content but texts.
func (o object) textOnly() bool {
	switch content := o.get("content"); span.KindOf(content) {
	case span.String, span.Invalid, span.Null:
		return true
	case span.Array:
		for _, b := range items(content) {
			kind, _ := span.Text(span.Member(b, "type"))
			if _, ok := span.Text(span.Member(b, "text")); !ok || kind != "text" && kind != "input_text" && kind != "output_text" {
				return false
			}
		}
		return true
	}
	return false
}

// openclawModel is the model of a message that OpenClaw wrote itself.
func openclawModel(o object) string {
	if !o.is("role", "assistant") || !o.is("provider", "openclaw") {
		return ""
	}
	model, _ := o.text("model")
	return model
}

// injectedTwice tells a reply that the gateway wrote beside the same one of an
// agent that ACP runs.
func injectedTwice(m, before []byte) bool {
	a, b := parseObject(m), parseObject(before)
	return openclawModel(a) == "gateway-injected" && openclawModel(b) == "acp-runtime" && sameText(a, b)
}

// deliveredTwice tells the copy of a delivered reply behind the reply.
func deliveredTwice(m, before []byte) bool {
	a, b := parseObject(m), parseObject(before)
	if openclawModel(a) != deliveryMirror || openclawModel(b) == deliveryMirror || !b.is("role", "assistant") || sentBetween(before) {
		return false
	}
	kind, _ := span.Text(span.Path(m, "openclawDeliveryMirror", "kind"))
	identity, _ := span.Text(span.Path(before, "__openclaw", "mirrorIdentity"))
	return kind == "channel-final" && Trim(identity) != "" && sameText(a, b)
}

const deliveryMirror = "delivery-mirror"

func sameText(a, b object) bool {
	text := Trim(a.said())
	return text != "" && a.textOnly() && b.textOnly() && text == Trim(b.said())
}
