package visible

import (
	"strings"

	"oc/store/span"
)

// A reply is what a call of the message tool sends to the chat that the session
// answers.
type reply struct {
	call, text string
	from       Shown
	done       []byte // the message that tells that it was sent; nil before
	copy       int    // where its delivered copy stands in the list; -1
}

// mirrored puts what the message tool sent among the messages, where the turn
// itself ends in silence or a copy of the delivered text is there
// (spec/session-tools.md 2.2, step 2).
func mirrored(messages []Shown) []Shown {
	out := make([]Shown, 0, len(messages))
	var open []reply
	emit := func(pick func(*reply) bool) {
		var rest []reply
		for i := range open {
			r := &open[i]
			if r.done != nil && pick(r) {
				out = append(out, r.show())
			} else {
				rest = append(rest, *r)
			}
		}
		open = rest
	}
	for _, m := range messages {
		o := parseObject(m.Message)
		between := sentBetween(m.Message)
		if between || o.is("role", "user") {
			if !between {
				open = nil
			}
			out = append(out, m)
			continue
		}
		copied := ""
		if openclawModel(o) == deliveryMirror {
			copied = Trim(o.said())
		}
		same := func(r *reply) bool { return copied != "" && Trim(r.text) == copied }
		matches, twice := 0, false
		for i := range open {
			if same(&open[i]) {
				matches++
				twice = twice || open[i].done != nil
			}
		}
		sent := replies(o, m)
		open = append(open, sent...)
		if text := o.said(); len(sent) == 0 && matches == 0 && o.is("role", "assistant") && o.textual() && !Control(text) {
			open = nil
		}
		late := map[string]bool{}
		for i := range open {
			r := &open[i]
			if r.done != nil || !confirms(o, r.call) {
				continue
			}
			if r.done = m.Message; r.copy >= 0 {
				r.done = out[r.copy].Message
				hidden := parseObject(out[r.copy].Message)
				hidden.set("display", []byte("false"))
				out[r.copy].Message = hidden.append(nil)
				late[r.call+"\x00"+r.text] = true
			}
		}
		if o.is("role", "assistant") && o.textOnly() && o.textual() && Control(o.said()) {
			emit(func(*reply) bool { return true })
			open = nil
		}
		if twice {
			for i := range open {
				if same(&open[i]) && open[i].done != nil {
					open[i].done = m.Message
				}
			}
			emit(same)
			continue
		}
		for i := range open {
			if same(&open[i]) {
				open[i].copy = len(out)
			}
		}
		out = append(out, m)
		emit(func(r *reply) bool { return late[r.call+"\x00"+r.text] })
	}
	return out
}

// textual tells whether a message holds a text at all.
func (o object) textual() bool {
	content := o.get("content")
	if span.KindOf(content) == span.String {
		return true
	}
	for _, b := range items(content) {
		if _, ok := span.Text(span.Member(b, "text")); ok {
			return true
		}
	}
	_, ok := o.text("text")
	return content == nil && ok
}

func (r *reply) show() Shown {
	from := parseObject(r.from.Message)
	var o, block, note object
	o.setText("role", "assistant")
	block.setText("type", "text")
	block.setText("text", r.text)
	o.set("content", array([][]byte{block.append(nil)}))
	note.setText("toolName", "message")
	if r.call != "" {
		note.setText("toolCallId", r.call)
	}
	o.set("openclawMessageToolMirror", note.append(nil))
	for _, name := range [...]string{"timestamp", "createdAt", "agentId"} {
		if v := from.get(name); v != nil {
			o.set(name, v)
		}
	}
	if v := span.Member(r.done, "__openclaw"); span.KindOf(v) == span.Object {
		o.set("__openclaw", v)
	}
	return Shown{o.append(nil), r.from.From, true}
}

// first is the first of these members that is a text and not blank.
func (o object) first(names ...string) string {
	for _, name := range names {
		if s, ok := o.text(name); ok && Trim(s) != "" {
			return Trim(s)
		}
	}
	return ""
}

// replies are the calls in an assistant's message that send a text to where the
// session answers anyway.
func replies(o object, m Shown) (list []reply) {
	if !o.is("role", "assistant") {
		return nil
	}
	for _, raw := range items(o.get("content")) {
		b := parseObject(raw)
		kind, _ := b.text("type")
		switch strings.ToLower(strings.ReplaceAll(Trim(kind), "_", "")) {
		case "toolcall", "tooluse":
		default:
			continue
		}
		name := b.first("name", "toolName", "tool_name", "tool")
		if name == "" {
			name = parseObject(span.Member(raw, "function")).first("name")
		}
		if !strings.EqualFold(name, "message") {
			continue
		}
		args := arguments(b)
		if !strings.EqualFold(args.first("action"), "send") || rehearses(args) || routed(args) {
			continue
		}
		for _, field := range [...]string{"message", "text", "content", "body", "caption"} {
			if s, ok := args.text(field); ok && Trim(s) != "" {
				if s = Undirect(s); Trim(s) != "" {
					list = append(list, reply{call: b.first("id", "toolCallId", "tool_call_id", "callId", "call_id"), text: s, from: m, copy: -1})
				}
				break
			}
		}
	}
	return list
}

// arguments are those of a call, also where they are JSON in a string.
func arguments(b object) object {
	for _, name := range [...]string{"arguments", "input", "args", "params"} {
		if o := record(b.get(name)); o != nil {
			return o
		}
	}
	return record(span.Member(b.get("function"), "arguments"))
}

// record reads an object, or a string that holds one.
func record(raw []byte) object {
	if s, ok := span.Text(raw); ok {
		raw = []byte(s)
		if span.Valid(raw) != nil {
			return nil
		}
	}
	if span.KindOf(raw) != span.Object {
		return nil
	}
	return parseObject(raw)
}

func rehearses(o object) bool {
	return string(o.get("dryRun")) == "true" || string(o.get("dry_run")) == "true" ||
		strings.EqualFold(o.first("deliveryStatus", "delivery_status", "status"), "dry_run")
}

var routes = strings.Fields("target targets to recipient recipients chatId chat_id channelId channel_id conversationId" +
	" conversation_id threadId thread_id roomId room_id groupId group_id")

// routed tells whether a call names where to send to.
func routed(args object) bool {
	for _, name := range routes {
		if says(args.get(name), 0) {
			return true
		}
	}
	return false
}

// says tells whether a value holds anything.
func says(raw []byte, depth int) (any bool) {
	if depth > deepest {
		return false
	}
	each := func(val []byte) error {
		any = any || says(val, depth+1)
		return nil
	}
	switch span.KindOf(raw) {
	case span.String:
		s, _ := span.Text(raw)
		return Trim(s) != ""
	case span.Array:
		_, _ = span.Items(raw, 0, each)
	case span.Object:
		_, _ = span.Each(raw, 0, func(_, val []byte) error { return each(val) })
	case span.Number, span.Bool:
		return true
	}
	return any
}

// confirms tells whether a message is the result of a call and says that the
// call did what it should.
func confirms(o object, call string) bool {
	role, _ := o.text("role")
	switch strings.ToLower(strings.ReplaceAll(role, "_", "")) {
	case "toolresult", "tool", "function":
	default:
		if !strings.EqualFold(o.first("toolName", "tool_name", "name", "tool"), "message") {
			return false
		}
	}
	if name := o.first("toolName", "tool_name", "name", "tool"); name != "" && !strings.EqualFold(name, "message") {
		return false
	}
	if call != "" && o.first("toolCallId", "tool_call_id", "callId", "call_id", "id") != call {
		return false
	}
	if string(o.get("isError")) == "true" {
		return false
	}
	if e := o.get("error"); e != nil && string(e) != "null" && string(e) != "false" {
		return false
	}
	known := false
	for _, name := range [...]string{"result", "output", "content", "text"} {
		raw := o.get(name)
		if dry(raw, 0) {
			return false
		}
		if !known {
			if ok, said := succeeded(raw, 0); said {
				if known = true; !ok {
					return false
				}
			}
		}
	}
	return true
}

func dry(raw []byte, depth int) bool {
	if o := record(raw); o != nil && rehearses(o) {
		return true
	}
	if depth > deepest || span.KindOf(raw) != span.Array {
		return false
	}
	for _, b := range items(raw) {
		if dry(b, depth+1) || dry(span.Member(b, "text"), depth+1) || dry(span.Member(b, "content"), depth+1) {
			return true
		}
	}
	return false
}

// succeeded reads ok of a result, or of a block of it.
func succeeded(raw []byte, depth int) (ok, said bool) {
	if span.KindOf(raw) == span.Bool {
		return string(raw) == "true", true
	}
	if o := record(raw); o != nil {
		if v := o.get("ok"); span.KindOf(v) == span.Bool {
			return string(v) == "true", true
		}
	}
	if depth > deepest || span.KindOf(raw) != span.Array {
		return false, false
	}
	for _, b := range items(raw) {
		for _, v := range [][]byte{b, span.Member(b, "text"), span.Member(b, "content")} {
			if v == nil {
				continue
			}
			if ok, said := succeeded(v, depth+1); said {
				return ok, said
			}
		}
	}
	return false, false
}
