package visible

import (
	"math"
	"strconv"
	"strings"

	"oc/store/span"
)

// TextUnits is what OpenClaw's history tool cuts a text to, ChatUnits what its
// chat history does, in UTF-16 units.
const (
	TextUnits = 4000
	ChatUnits = 8000
)

// Changed tells what showing a message took from it.
type Changed struct {
	Truncated bool // something was cut or left out
	Redacted  bool // a credential was masked
	Cleaned   bool // markup was taken out of prose
}

// A View is a way to show messages. The zero View is oc's: what assistants said
// is cleaned, and credentials are masked everywhere, in the arguments of calls
// and in results too. Upstream is OpenClaw's history tool, which does neither
// (spec/session-tools.md 0).
type View struct {
	Upstream bool
	RawProse bool      // markup stays in prose
	Redactor *Redactor // nil means the zero Redactor
	Units    int       // texts are cut to this length; 0 means TextUnits
}

// Show makes a raw message fit to be shown (spec/session-tools.md 2.5). The
// result is compact JSON. What is no object comes back as it is.
func (v View) Show(message []byte) ([]byte, Changed) {
	var c Changed
	if span.KindOf(message) != span.Object {
		return message, c
	}
	o := parseObject(message)
	prose := o.is("role", "assistant")
	for _, name := range [...]string{"details", "usage", "cost"} {
		if o.drop(name) {
			c.Truncated = true
		}
	}
	switch content := o.get("content"); span.KindOf(content) {
	case span.String:
		v.field(&o, "content", prose, &c)
	case span.Array:
		blocks := items(content)
		for i := range blocks {
			blocks[i] = v.block(blocks[i], prose, &c, 0)
		}
		o.set("content", array(blocks))
	}
	v.field(&o, "text", prose, &c)
	if !v.Upstream {
		for _, name := range [...]string{"command", "output", "summary", "errorMessage", "errorBody"} {
			v.field(&o, name, false, &c)
		}
	}
	v.names(&o, &c, 0, marks, "content", "text", "command", "output", "summary", "errorMessage", "errorBody")
	return o.append(nil), c
}

// field cleans, masks and cuts one text.
func (v View) field(o *object, name string, prose bool, c *Changed) {
	s, ok := o.text(name)
	if !ok {
		return
	}
	if t := v.text(s, prose, c); t != s {
		o.setText(name, t)
	}
}

func (v View) text(s string, prose bool, c *Changed) string {
	if prose && !v.Upstream && !v.RawProse {
		t := Clean(s, History)
		c.Cleaned = c.Cleaned || t != s
		s = t
	}
	r := v.Redactor
	if r == nil {
		r = new(Redactor)
	}
	t := r.Redact(s)
	if !v.Upstream {
		t = r.show(t)
	}
	c.Redacted = c.Redacted || t != s
	limit := v.Units
	if limit == 0 {
		limit = TextUnits
	}
	if Units(t) > limit {
		cut, _ := Cut(t, limit)
		c.Truncated = true
		return cut + "\n…(truncated)…"
	}
	return t
}

func (v View) block(raw []byte, prose bool, c *Changed, depth int) []byte {
	if depth > deepest {
		return v.value("", raw, c, depth)
	}
	if span.KindOf(raw) != span.Object {
		if v.Upstream {
			return raw
		}
		return v.value("", raw, c, depth)
	}
	o := parseObject(raw)
	v.field(&o, "text", prose && o.is("type", "text"), c)
	if o.is("type", "thinking") {
		v.field(&o, "thinking", false, c)
		if o.drop("thinkingSignature", "openclawReasoningReplay") {
			c.Truncated = true
		}
	}
	v.field(&o, "partialJson", false, c)
	if o.is("type", "image") {
		data, _ := o.text("data")
		if o.drop("data") {
			c.Truncated = true
		}
		o.set("omitted", []byte("true"))
		if data != "" {
			o.set("bytes", strconv.AppendInt(nil, int64(Units(data)), 10))
		}
	}
	if !v.Upstream {
		for _, name := range [...]string{"arguments", "input", "args", "details"} {
			if val := o.get(name); val != nil {
				o.set(name, v.value("", val, c, depth))
			}
		}
		switch content := o.get("content"); span.KindOf(content) {
		case span.String:
			v.field(&o, "content", false, c)
		case span.Array:
			blocks := items(content)
			for i := range blocks {
				blocks[i] = v.block(blocks[i], false, c, depth+1)
			}
			o.set("content", array(blocks))
		}
	}
	v.names(&o, c, depth, "text", "thinking", "partialJson", "data", "content", "arguments", "input", "args", "details")
	return o.append(nil)
}

// Fit drops the oldest of compact JSON messages until the array of them takes
// no more than max bytes, and puts a stand-in for the last one if that alone is
// too long (spec/session-tools.md 2.7). bytes is the length of the array.
func Fit(messages [][]byte, max int) (kept [][]byte, bytes int, standIn bool) {
	bytes = 2
	for i, m := range messages {
		bytes += len(m)
		if i > 0 {
			bytes++
		}
	}
	for bytes > max && len(messages) > 1 {
		bytes -= len(messages[0]) + 1
		messages = messages[1:]
	}
	if bytes <= max || len(messages) == 0 {
		return messages, bytes, false
	}
	o := object{}
	o.setText("role", "assistant")
	o.setText("content", "[sessions_history omitted: message too large]")
	if seq := span.Path(messages[0], "__openclaw", "seq"); seq != nil {
		if f, ok := span.Float(seq); ok && f > 0 && f == math.Trunc(f) && f < 1<<53 {
			o.set("__openclaw", append(append([]byte(`{"seq":`), seq...), '}'))
		}
	}
	m := o.append(nil)
	return [][]byte{m}, len(m) + 2, true
}

// Project is what chat history shows of one raw message (spec/session-tools.md
// 2.2): user texts without what OpenClaw added to them, another session's
// message as one of an assistant, directives, hidden reasoning signatures and
// details gone, texts cut to units. shown is false for a message that is hidden:
// control answers, commentary, empty user messages, hidden context. What hangs
// on the neighbours of a message, as merged copies and heartbeats, is not done.
func Project(message []byte, units int) (out []byte, shown bool) {
	if span.KindOf(message) != span.Object {
		return nil, false
	}
	o := parseObject(message)
	role, _ := o.text("role")
	role = strings.ToLower(role)
	eachText(&o, func(s string) string {
		if role == "user" {
			return UserText(s)
		}
		return WithoutContext(s)
	})
	if string(o.get("display")) == "false" || o.is("role", "custom") && o.is("customType", "openclaw.runtime-context") {
		return nil, false
	}
	kind, _ := span.Text(span.Path(message, "provenance", "kind"))
	tool, _ := span.Text(span.Path(message, "provenance", "sourceTool"))
	between := kind == "inter_session"
	said := o.said()
	forwarded := false
	switch {
	case role == "assistant" && o.is("stopReason", "error"):
		o.failed(said)
	case role == "user" && (between && tool == "subagent_announce" ||
		strings.Contains(said, forwardMark) && strings.Contains(said, "sourceTool=subagent_announce")):
		return nil, false
	case role == "user" && between && tool == "sessions_send":
		forwarded = true
		o.forward(message, said)
	case role == "user" && o.empty() && !o.hasMedia():
		return nil, false
	}
	if o.is("role", "assistant") && !forwarded && o.steers() {
		return nil, false
	}
	o.slim(units)
	if o.is("role", "assistant") && !forwarded && o.steers() {
		return nil, false
	}
	return o.append(nil), true
}

// eachText changes the texts of a message: its content, those of its text
// blocks, or its text.
func eachText(o *object, f func(string) string) {
	change := func(o *object, name string) {
		if s, ok := o.text(name); ok {
			if t := f(s); t != s {
				o.setText(name, t)
			}
		}
	}
	switch content := o.get("content"); span.KindOf(content) {
	case span.String:
		change(o, "content")
	case span.Array:
		blocks := items(content)
		for i, raw := range blocks {
			if span.KindOf(raw) != span.Object {
				continue
			}
			b := parseObject(raw)
			switch kind, _ := b.text("type"); kind {
			case "text", "input_text", "output_text":
				change(&b, "text")
				blocks[i] = b.append(nil)
			}
		}
		o.set("content", array(blocks))
	default:
		change(o, "text")
	}
}

// said joins the texts of a message.
func (o object) said() string {
	content := o.get("content")
	if s, ok := span.Text(content); ok {
		return s
	}
	var parts []string
	for _, b := range items(content) {
		if s, ok := span.Text(span.Member(b, "text")); ok {
			parts = append(parts, s)
		}
	}
	if content == nil {
		s, _ := o.text("text")
		return s
	}
	return strings.Join(parts, "\n")
}

// empty tells whether a message has texts alone, and all are blank.
func (o object) empty() bool {
	content := o.get("content")
	if content == nil {
		content = o.get("text")
	}
	if s, ok := span.Text(content); ok {
		return Trim(s) == ""
	}
	if span.KindOf(content) != span.Array {
		return false
	}
	for _, b := range items(content) {
		s, ok := span.Text(span.Member(b, "text"))
		if kind, _ := span.Text(span.Member(b, "type")); kind != "text" || !ok || Trim(s) != "" {
			return false
		}
	}
	return true
}

func (o object) hasMedia() bool {
	if s, ok := o.text("MediaPath"); ok && Trim(s) != "" {
		return true
	}
	for _, p := range items(o.get("MediaPaths")) {
		if s, _ := span.Text(p); Trim(s) != "" {
			return true
		}
	}
	return false
}

// steers tells whether an assistant's message only steers OpenClaw: commentary,
// or a control answer and nothing else.
func (o object) steers() bool {
	if o.is("phase", "commentary") {
		return true
	}
	content := o.get("content")
	for _, b := range items(content) {
		switch kind, _ := span.Text(span.Member(b, "type")); kind {
		case "text", "input_text", "output_text":
		default:
			return false
		}
	}
	return Control(o.said())
}

// failed shows a run that ended in an error without what the error said.
func (o *object) failed(said string) {
	o.drop("diagnostics", "errorBody", "errorCode", "errorMessage", "errorType")
	var kept [][]byte
	tools := false
	for _, b := range items(o.get("content")) {
		switch kind, _ := span.Text(span.Member(b, "type")); kind {
		case "thinking", "reasoning", "redacted_thinking":
			continue
		case "text", "input_text", "output_text":
		default:
			tools = true
		}
		kept = append(kept, b)
	}
	if text := Trim(said); tools || text != "" && text != "[assistant turn failed before producing content]" && !Control(text) && !o.is("phase", "commentary") {
		if span.KindOf(o.get("content")) == span.Array {
			o.set("content", array(kept))
		}
		return
	}
	o.drop("phase", "text")
	o.set("content", []byte(`[{"type":"text","text":"The agent run failed before producing a reply."}]`))
}

// forward turns a message that another session sent into an assistant's.
func (o *object) forward(message []byte, said string) {
	key, _ := span.Text(span.Path(message, "provenance", "sourceSessionKey"))
	if Trim(key) == "" {
		key = forwardField(said, "sourceSession")
	}
	label := "Forwarded agent message"
	if parts := strings.Split(key, ":"); len(parts) > 2 && parts[0] == "agent" && parts[1] != "" {
		label = "Forwarded from " + parts[1]
	}
	o.setText("role", "assistant")
	o.setText("senderLabel", label)
	eachText(o, forwardedText)
}

var (
	usageNames = strings.Fields("input output total totalTokens inputTokens outputTokens promptTokens completionTokens cacheRead" +
		" cacheWrite cache_read_input_tokens cache_creation_input_tokens input_tokens output_tokens prompt_tokens" +
		" completion_tokens total_tokens")
	costNames = strings.Fields("input output cacheRead cacheWrite total")
)

// numbers are the members of raw that are among names and numbers.
func numbers(raw []byte, names []string) (out object) {
	if span.KindOf(raw) != span.Object {
		return nil
	}
	o := parseObject(raw)
	for _, name := range names {
		if v := o.get(name); v != nil {
			if f, ok := span.Float(v); ok && !math.IsInf(f, 0) {
				out = append(out, property{name, v})
			}
		}
	}
	return out
}

// slim drops and cuts what no reader of a chat needs.
func (o *object) slim(units int) {
	role, _ := o.text("role")
	exact := false
	switch strings.ToLower(role) {
	case "toolresult", "tool_result", "tool", "function":
		exact = true
	}
	for _, name := range [...]string{"toolName", "tool_name", "toolCallId", "tool_call_id"} {
		_, ok := o.text(name)
		exact = exact || ok
	}
	o.drop("details")
	if role != "assistant" {
		o.drop("usage", "cost")
	} else {
		usage := numbers(o.get("usage"), usageNames)
		if cost := numbers(span.Member(o.get("usage"), "cost"), costNames); cost != nil {
			usage = append(usage, property{"cost", cost.append(nil)})
		}
		if usage != nil {
			o.set("usage", usage.append(nil))
		} else {
			o.drop("usage")
		}
		if cost := numbers(o.get("cost"), costNames); cost != nil {
			o.set("cost", cost.append(nil))
		} else {
			o.drop("cost")
		}
	}
	trim := func(o *object, name string, directives, exact bool) {
		s, ok := o.text(name)
		if !ok {
			return
		}
		t := s
		if directives {
			t = Undirect(t)
		}
		if !exact && Units(t) > units {
			t, _ = Cut(t, units)
			t += "\n...(truncated)..."
		}
		if t != s {
			o.setText(name, t)
		}
	}
	content := o.get("content")
	if span.KindOf(content) == span.Array {
		blocks := items(content)
		var texts [][]byte
		mixed := false
		for i, raw := range blocks {
			if span.KindOf(raw) != span.Object {
				continue
			}
			b := parseObject(raw)
			tool := toolBlock(&b)
			mixed = mixed || tool
			exact := exact || tool
			trim(&b, "text", true, exact)
			trim(&b, "content", true, exact)
			trim(&b, "partialJson", false, exact)
			trim(&b, "arguments", false, exact)
			trim(&b, "thinking", false, false)
			b.drop("thinkingSignature", "openclawReasoningReplay")
			if data, ok := b.text("data"); ok && b.is("type", "image") {
				b.drop("data")
				b.set("omitted", []byte("true"))
				b.set("bytes", strconv.AppendInt(nil, int64(len(data)), 10))
			}
			blocks[i] = b.append(nil)
			if s, ok := b.text("text"); ok && b.is("type", "text") && Trim(s) != "" {
				t := object{}
				t.setText("type", "text")
				t.setText("text", s)
				texts = append(texts, t.append(nil))
			}
		}
		if role == "assistant" && mixed && len(texts) > 0 {
			blocks = texts // its own words beside calls are all that shows
			if o.is("phase", "commentary") {
				o.drop("phase")
			}
		}
		o.set("content", array(blocks))
	} else {
		trim(o, "content", true, exact)
	}
	trim(o, "text", true, exact)
}

// toolBlock tells whether a block calls a tool or is its result.
func toolBlock(b *object) bool {
	kind, _ := b.text("type")
	switch strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(kind, "_", ""), "-", "")) {
	case "toolcall", "tooluse", "functioncall", "toolresult", "toolresulterror", "functionresponse":
		return true
	}
	return false
}
