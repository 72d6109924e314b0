package maintenance

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"oc/store/lazy"
	"oc/store/row"
	"oc/store/span"
)

// OpenClaw measures the store as it would write it, every row as loading it
// leaves it (spec/maintenance.md 2.11; spec/file-store.md 2.3, 2.7). oc leaves
// the bytes of such rows alone, but a budget has to mean the same to both, and
// OpenClaw's next write makes it true.

// members are the properties of an entry on its way through loading.
type members []span.Prop

func (m members) get(name string) []byte {
	for i := range m {
		if m[i].Name == name {
			return m[i].Val
		}
	}
	return nil
}

// set gives a property a value; nil takes it out.
func (m *members) set(name string, val []byte) {
	i := slices.IndexFunc(*m, func(p span.Prop) bool { return p.Name == name })
	switch {
	case i < 0 && val != nil:
		*m = append(*m, span.Prop{Name: name, Val: val})
	case i >= 0 && val == nil:
		*m = slices.Delete(*m, i, i+1)
	case i >= 0:
		(*m)[i].Val = val
	}
}

func (m members) raw() []byte { return m.append(nil) }

// append writes the object behind dst.
func (m members) append(dst []byte) []byte {
	dst = append(dst, '{')
	for i, p := range m {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(span.Quote(dst, p.Name), ':'), p.Val...)
	}
	return append(dst, '}')
}

// A prompt is the text of a skills snapshot that OpenClaw keeps in a file.
type prompt struct {
	hash  string
	bytes int64
}

// loaded is the entry as OpenClaw would write it back, and the prompt that it
// would keep in a file; read gives the text of a prompt's file by its hash.
func loaded(e *row.Entry, read func(hash string) (string, bool)) (m members, p prompt) {
	all := e.Members()
	m = make(members, 0, len(all)+8)
	for _, x := range all {
		m = append(m, span.Prop{Name: x.Name, Val: x.Val})
	}
	p = m.skills(read)
	m.renames()
	m.shape(e)
	m.model(e)
	m.delivery(e)
	m.pending()
	m.plugins()
	return m, p
}

// skills puts the prompt where it belongs; a snapshot whose prompt is not to
// be had goes.
func (m *members) skills(read func(string) (string, bool)) (p prompt) {
	raw := m.get("skillsSnapshot")
	if !row.Truthy(raw) {
		return p
	}
	snapshot := members(span.Members(raw))
	text, inline := span.Text(snapshot.get("prompt"))
	if !inline {
		hash, size, ok := promptRef(raw)
		if ok {
			text, ok = read(hash)
		}
		if !ok || text == "" || float64(len(text)) != size {
			m.set("skillsSnapshot", nil)
			return p
		}
		snapshot.set("promptRef", nil)
		snapshot.set("prompt", span.Quote(nil, text))
	}
	if len(text) <= promptBytes && span.UTF16Len(text) >= promptUnits {
		sum := sha256.Sum256([]byte(text))
		p = prompt{hex.EncodeToString(sum[:]), int64(len(text))}
		snapshot.set("prompt", nil)
		snapshot.set("promptRef", []byte(`{"version":1,"algorithm":"sha256","hash":"`+p.hash+`","bytes":`+strconv.FormatInt(p.bytes, 10)+`}`))
	}
	snapshot.set("resolvedSkills", nil)
	m.set("skillsSnapshot", snapshot.raw())
	return p
}

func (m *members) renames() {
	isText := func(name string) bool { return span.KindOf(m.get(name)) == span.String }
	for _, n := range [][2]string{{"channel", "provider"}, {"lastChannel", "lastProvider"}, {"groupChannel", "room"}} {
		if !isText(n[0]) && isText(n[1]) {
			m.set(n[0], m.get(n[1]))
			m.set(n[1], nil)
		}
	}
	m.set("room", nil)
}

func (m *members) shape(e *row.Entry) {
	if m.get("sessionId") != nil {
		if id := e.ID(); id != "" {
			m.set("sessionId", span.Quote(nil, id))
		} else {
			m.set("sessionId", nil)
		}
	}
	if span.KindOf(m.get("sessionFile")) != span.String {
		m.set("sessionFile", nil)
	}
	if at, has := e.Updated(); has {
		m.set("updatedAt", span.AppendFloat(nil, at))
	}
}

func (m *members) model(e *row.Entry) {
	model, provider := e.ModelRef()
	for name, text := range map[string]string{"model": model, "modelProvider": provider} {
		if text == "" {
			m.set(name, nil)
		} else if m.get(name) != nil {
			m.set(name, span.Quote(nil, text))
		}
	}
}

// quoted is a text as JSON; nil for the empty one.
func quoted(s string) []byte {
	if s == "" {
		return nil
	}
	return span.Quote(nil, s)
}

// object writes the given values that are there.
func object(pairs ...any) []byte {
	var m members
	for i := 0; i < len(pairs); i += 2 {
		if val := pairs[i+1].([]byte); val != nil {
			m = append(m, span.Prop{Name: pairs[i].(string), Val: val})
		}
	}
	if len(m) == 0 {
		return nil
	}
	return m.raw()
}

// route is a delivery route in its parts, each raw JSON or nil.
type route struct{ channel, account, to, rawTo, chatType, thread, kind, source []byte }

func (r route) raw() []byte {
	var target, thread []byte
	if r.to != nil {
		target = object("to", r.to, "rawTo", r.rawTo, "chatType", r.chatType)
	}
	if r.thread != nil {
		thread = object("id", r.thread, "kind", r.kind, "source", r.source)
	}
	return object("channel", r.channel, "accountId", r.account, "target", target, "thread", thread)
}

func trimmed(raw []byte) string { s, _ := span.Text(raw); return span.Trim(s) }

func truthy(raw []byte) []byte {
	if row.Truthy(raw) {
		return span.AppendValue(nil, raw, 0)
	}
	return nil
}

// readRoute is a route as OpenClaw normalises it.
func readRoute(raw []byte) (r route) {
	if span.KindOf(raw) != span.Object {
		return r
	}
	r.channel = quoted(span.Lower(trimmed(span.Member(raw, "channel"))))
	r.account = quoted(row.AccountID(trimmed(span.Member(raw, "accountId"))))
	target, thread := span.Member(raw, "target"), span.Member(raw, "thread")
	if r.to = quoted(trimmed(span.Member(target, "to"))); r.to != nil {
		r.chatType = truthy(span.Member(target, "chatType"))
		if to := quoted(trimmed(span.Member(target, "rawTo"))); string(to) != string(r.to) {
			r.rawTo = to
		}
	}
	if r.thread = threadID(span.Member(thread, "id")); r.thread != nil {
		r.kind, r.source = truthy(span.Member(thread, "kind")), truthy(span.Member(thread, "source"))
	}
	return r
}

func threadID(raw []byte) []byte {
	if n, ok := span.Float(raw); ok && !math.IsInf(n, 0) {
		return span.AppendFloat(nil, math.Trunc(n))
	}
	return quoted(trimmed(raw))
}

func internalChannel(c string) bool {
	return slices.Contains([]string{"webchat", "heartbeat", "cron", "webhook", "voice", "sessions_send"}, c)
}

// delivery writes the fields of delivery anew where they do not agree
// (spec/file-store.md 2.4).
func (m *members) delivery(e *row.Entry) {
	d := e.Delivery()
	have := readRoute(m.get("route"))
	context := m.get("deliveryContext")
	channel := row.ChannelID(trimmed(span.Member(context, "channel")))
	fallback := internalChannel(row.ChannelID(trimmed(span.Member(m.get("route"), "channel")))) &&
		channel != "" && !internalChannel(channel) && trimmed(span.Member(context, "to")) != ""
	ch, to, account := quoted(d.Channel), quoted(d.To), quoted(d.Account)
	var want route
	none := ch == nil && to == nil && account == nil && d.Thread == nil
	if !none {
		if !fallback {
			want = have
		}
		fill := func(at *[]byte, val []byte) {
			if *at == nil {
				*at = val
			}
		}
		fill(&want.channel, ch)
		fill(&want.to, to)
		fill(&want.account, account)
		fill(&want.thread, d.Thread)
	}
	same := func(raw, val []byte) bool {
		if span.KindOf(raw) == span.Null {
			raw = nil
		}
		return string(span.AppendValue(nil, raw, 0)) == string(val)
	}
	strict := func(name string, val []byte) bool {
		return string(span.AppendValue(nil, m.get(name), 0)) == string(val)
	}
	if same(span.Member(context, "channel"), ch) && same(span.Member(context, "to"), to) && same(span.Member(context, "accountId"), account) && same(span.Member(context, "threadId"), d.Thread) &&
		string(have.raw()) == string(want.raw()) && strict("lastChannel", ch) && strict("lastTo", to) && strict("lastAccountId", account) && strict("lastThreadId", d.Thread) {
		return
	}
	m.set("route", want.raw())
	m.set("deliveryContext", object("channel", ch, "to", to, "accountId", account, "threadId", d.Thread))
	m.set("lastChannel", ch)
	m.set("lastTo", to)
	m.set("lastAccountId", account)
	m.set("lastThreadId", d.Thread)
}

// pending checks the types of what is to be delivered yet.
func (m *members) pending() {
	keep := func(name string, ok func([]byte) bool) {
		if raw := m.get(name); raw != nil && !ok(raw) {
			m.set(name, nil)
		}
	}
	isNumber := func(raw []byte) bool {
		f, ok := span.Float(raw)
		return ok && f >= 0 && !math.IsInf(f, 0)
	}
	textOrNull := func(raw []byte) bool { k := span.KindOf(raw); return k == span.String || k == span.Null }
	keep("pendingFinalDelivery", func(raw []byte) bool { return string(raw) == "true" })
	for _, name := range []string{"pendingFinalDeliveryText", "pendingFinalDeliveryLastError", "pendingFinalDeliveryIntentId"} {
		keep(name, textOrNull)
	}
	keep("pendingFinalDeliveryCreatedAt", isNumber)
	keep("pendingFinalDeliveryLastAttemptAt", isNumber)
	keep("pendingFinalDeliveryAttemptCount", func(raw []byte) bool {
		f, _ := span.Float(raw)
		return isNumber(raw) && f == math.Trunc(f)
	})
	keep("restartRecoveryDeliveryRunId", func(raw []byte) bool { return span.KindOf(raw) == span.String })
	for _, name := range []string{"pendingFinalDeliveryContext", "restartRecoveryDeliveryContext"} {
		raw := m.get(name)
		if raw == nil {
			continue
		}
		channel, to := quoted(row.ChannelID(trimmed(span.Member(raw, "channel")))), quoted(trimmed(span.Member(raw, "to")))
		account, thread := quoted(row.AccountID(trimmed(span.Member(raw, "accountId")))), threadID(span.Member(raw, "threadId"))
		if channel == nil || to == nil {
			channel, to, account, thread = nil, nil, nil, nil
		}
		same := true
		for part, val := range map[string][]byte{"channel": channel, "to": to, "accountId": account, "threadId": thread} {
			have := span.Member(raw, part)
			if span.KindOf(have) == span.Null {
				have = nil
			}
			same = same && string(span.AppendValue(nil, have, 0)) == string(val)
		}
		if !same {
			m.set(name, object("channel", channel, "to", to, "accountId", account, "threadId", thread))
		}
	}
}

var slotKey = lazy.Regexp(`^[A-Za-z][A-Za-z0-9_]*$`)

// plugins checks what plugins keep in a row.
func (m *members) plugins() {
	m.tidy("pluginExtensions", func(val []byte) []byte { return val })
	m.tidy("pluginExtensionSlotKeys", func(val []byte) []byte {
		if s := trimmed(val); slotKey().MatchString(s) && !reserved(s) {
			return span.Quote(nil, s)
		}
		return nil
	})
}

func (m *members) tidy(name string, check func([]byte) []byte) {
	raw := m.get(name)
	if raw == nil {
		return
	}
	var out members
	for _, plugin := range span.Members(raw) {
		var kept members
		for _, x := range span.Members(plugin.Val) {
			if key := span.Trim(x.Name); key != "" {
				if val := check(x.Val); val != nil {
					kept.set(key, val)
				}
			}
		}
		if id := span.Trim(plugin.Name); id != "" && len(kept) > 0 {
			out.set(id, kept.raw())
		}
	}
	switch {
	case len(out) > 0:
		m.set(name, out.raw())
	case string(span.AppendValue(nil, raw, 0)) != "{}":
		m.set(name, nil)
	}
}

// reserved tells whether a plugin may not use a name in an entry: it is a
// field, or JavaScript's own.
func reserved(name string) bool {
	for _, f := range row.Fields() {
		if f.String() == name {
			return true
		}
	}
	return slices.Contains(strings.Fields(`prototype constructor hasOwnProperty isPrototypeOf propertyIsEnumerable toLocaleString toString valueOf`), name)
}

// measure works out the bytes that each row has in the store as OpenClaw would
// write it, its line end and comma included.
func (s *Snapshot) measure() {
	var raw, line []byte
	one := func(r *Row) {
		m, p := loaded(&r.Entry, s.promptText)
		raw = m.append(raw[:0])
		line = append(span.Quote(append(line[:0], "  "...), r.Key), ": "...)
		line = span.AppendValue(line, raw, 1)
		r.line, r.prompt = int64(len(line)+len(",\n")), p
	}
	for i := range s.Rows {
		one(&s.Rows[i])
		if m := s.Rows[i].mended; m != nil {
			one(m)
		}
	}
}

// promptText reads the file of a skill prompt; ok is false where there is none
// or it holds another text.
func (s *Snapshot) promptText(hash string) (text string, ok bool) {
	i, ok := s.prompts[hash]
	if !ok || s.Files[i].Size > promptBytes {
		return "", false
	}
	b, err := os.ReadFile(s.Files[i].Path)
	if err != nil {
		return "", false
	}
	sum := sha256.Sum256(b)
	return string(b), hex.EncodeToString(sum[:]) == hash
}
