package visible

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// decoded undoes the ROT13 in the texts of a recorded value, names aside.
func (c recorded) decoded(t testing.TB, raw []byte) []byte {
	t.Helper()
	if !c.Rot13 {
		return raw
	}
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			return rot13(v)
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = walk(v[k])
			}
		}
		return v
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(walk(v))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// same compares JSON, whatever the order of members.
func same(t testing.TB, name string, got, want []byte) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("%s: %v in %s", name, err, got)
	}
	if err := json.Unmarshal(want, &w); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(w, g); d != "" {
		t.Errorf("%s: %s", name, d)
	}
}

func TestShowAsOpenClaw(t *testing.T) {
	for _, c := range stage(t, "tool-message") {
		var want struct {
			Message             json.RawMessage
			Truncated, Redacted bool
		}
		if err := json.Unmarshal(c.decoded(t, c.Expected), &want); err != nil {
			t.Fatal(err)
		}
		got, changed := View{Upstream: true}.Show(c.decoded(t, c.Input))
		same(t, c.Name, got, want.Message)
		if changed.Truncated != want.Truncated || changed.Redacted != want.Redacted {
			t.Errorf("%s: %+v, want %+v", c.Name, changed, want)
		}
	}
	for _, c := range stage(t, "tool-text") {
		var want struct {
			Text                string
			Truncated, Redacted bool
		}
		if err := json.Unmarshal(c.decoded(t, c.Expected), &want); err != nil {
			t.Fatal(err)
		}
		var changed Changed
		got := View{Upstream: true}.text(c.text(t, c.Input), false, &changed)
		if got != want.Text || changed != (Changed{Truncated: want.Truncated, Redacted: want.Redacted}) {
			t.Errorf("%s: %d units, %+v", c.Name, Units(got), changed)
		}
	}
}

// Where OpenClaw's history tool lets markup and credentials through, oc does not.
func TestShowBetterThanOpenClaw(t *testing.T) {
	secret := "ab" + strings.Repeat("12", 12)
	for _, c := range []struct{ name, in, want string }{
		{
			"prose", `{"role":"assistant","content":[{"type":"text","text":"<think>x</think>ok"}]}`,
			`{"role":"assistant","content":[{"type":"text","text":"ok"}]}`,
		},
		{
			"user markup stays", `{"role":"user","content":"<think>x</think>ok"}`,
			`{"role":"user","content":"<think>x</think>ok"}`,
		},
		{
			"arguments", `{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"exec","arguments":{"command":"login --password ` + secret + `","apiKey":"` + secret + `","key":"Enter","n":1}}]}`,
			`{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"exec","arguments":{"command":"login --password ab1212…1212","apiKey":"ab1212…1212","key":"Enter","n":1}}]}`,
		},
		{
			"block content", `{"role":"toolResult","content":[{"type":"tool_result","content":"API_KEY=` + secret + `"}]}`,
			`{"role":"toolResult","content":[{"type":"tool_result","content":"API_KEY=***"}]}`,
		},
		{
			"nested blocks", `{"role":"toolResult","content":[{"type":"tool_result","content":[{"type":"text","text":"token=` + secret + `&a=b"}]}]}`,
			`{"role":"toolResult","content":[{"type":"tool_result","content":[{"type":"text","text":"token=***&a=b"}]}]}`,
		},
	} {
		got, _ := View{}.Show([]byte(c.in))
		same(t, c.name, got, []byte(c.want))
	}
	raw, _ := View{RawProse: true}.Show([]byte(`{"role":"assistant","content":"<think>x</think>ok"}`))
	same(t, "raw prose", raw, []byte(`{"role":"assistant","content":"<think>x</think>ok"}`))
}

func TestFitAsOpenClaw(t *testing.T) {
	for _, name := range []string{"cap", "hard-cap"} {
		for _, c := range stage(t, name) {
			var in struct {
				Items    []json.RawMessage
				MaxBytes int
			}
			var want struct {
				Items      json.RawMessage
				Bytes      int
				HardCapped bool
			}
			if err := json.Unmarshal(c.Input, &in); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(c.Expected, &want); err != nil {
				t.Fatal(err)
			}
			var messages [][]byte
			for _, m := range in.Items {
				messages = append(messages, AppendJSON(nil, m))
			}
			kept, n, standIn := Fit(messages, in.MaxBytes)
			same(t, c.Name, array(kept), want.Items)
			if n != want.Bytes || n != len(array(kept)) || standIn != want.HardCapped {
				t.Errorf("%s: %d bytes %v, want %d %v", c.Name, n, standIn, want.Bytes, want.HardCapped)
			}
		}
	}
}

func TestProjectAsOpenClaw(t *testing.T) {
	for _, c := range stage(t, "project") {
		var in []json.RawMessage
		if err := json.Unmarshal(c.decoded(t, c.Input), &in); err != nil {
			t.Fatal(err)
		}
		var out [][]byte
		for _, m := range in {
			if p, shown := Project(m, ChatUnits); shown {
				out = append(out, p)
			}
		}
		// Names that are data are not in ROT13, so texts inside are enough.
		same(t, c.Name, array(out), c.decoded(t, c.Expected))
	}
}

// The whole way of a text: as one block of a message that history shows.
func TestHistoryAsOpenClaw(t *testing.T) {
	for name, role := range map[string]string{"history": "assistant", "redact": "user"} {
		for _, c := range stage(t, name) {
			block := object{}
			block.setText("type", "text")
			block.setText("text", c.text(t, c.Input))
			o := object{}
			o.setText("role", role)
			o.set("content", array([][]byte{block.append(nil)}))
			o.set("timestamp", []byte("1"))
			got := ""
			if m, shown := Project(o.append(nil), ChatUnits); shown {
				m, _ = View{}.Show(m)
				got = parseObject(m).said()
			}
			if want := c.text(t, c.Expected); Trim(got) != Trim(want) {
				t.Errorf("%s: %q, want %q", c.Name, got, want)
			}
		}
	}
}

func TestUserText(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "hello\nthere", "hello\nthere"},
		{"hidden block", "a\n" + contextBegin + "\nx\n" + contextEnd + "\nb", "a\n\nb"},
		{"nested block", contextBegin + "\n" + contextBegin + "\nx\n" + contextEnd + "\ny\n" + contextEnd + "\n\nb", "b"},
		{"block that is not closed", "a\n" + contextBegin + "\nx", "a"},
		{"delimiter in a line", "see " + contextBegin + " here", "see " + contextBegin + " here"},
		{"preface", contextHeads[1] + "\n" + contextNotice + "\n\nhi", "hi"},
		{"metadata", "Sender (untrusted metadata):\n```json\n{\"label\":\"x\"}\n```\n\nhi", "hi"},
		{"metadata without JSON", "Sender (untrusted metadata):\nhi", "Sender (untrusted metadata):\nhi"},
		{"chat window", "Chat history since last reply (untrusted, for context):\n#1 x\n#2 y\n\nhi", "hi"},
		{"untrusted tail", "hi\n" + untrusted + "\nSource: x\nmore", "hi"},
		{"delivery hint", "hi\nDelivery: to send a message, use the `message` tool.", "hi"},
		{"memory", untrusted + "\n<active_memory_plugin>\nx\n</active_memory_plugin>\n\nhi", "hi"},
		{"memory that is not closed", untrusted + "\n<active_memory_plugin>\nhi", untrusted + "\n<active_memory_plugin>\nhi"},
		{"day stamp", "[Mon 2026-01-05 09:00 UTC] hi", "hi"},
		{"message id alone", "[message_id: 7]", ""},
		{"message id in a line", "see [message_id: 7]", "see [message_id: 7]"},
		{"own brackets", "[todo] hi", "[todo] hi"},
	} {
		if got := UserText(c.in); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestCodeAsOpenClaw(t *testing.T) {
	for _, c := range stage(t, "code-regions") {
		var want []struct{ Start, End int }
		if err := json.Unmarshal(c.Expected, &want); err != nil {
			t.Fatal(err)
		}
		var got []struct{ Start, End int }
		for _, r := range codeIn(c.text(t, c.Input)) {
			got = append(got, struct{ Start, End int }{r.start, r.end})
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", c.Name, d)
		}
	}
}

func TestDirectiveAsOpenClaw(t *testing.T) {
	for _, c := range stage(t, "directive") {
		var want struct {
			Text    string
			Changed bool
		}
		if err := json.Unmarshal(c.Expected, &want); err != nil {
			t.Fatal(err)
		}
		in := c.text(t, c.Input)
		if got := Undirect(in); got != want.Text || (got != in) != want.Changed {
			t.Errorf("%s: %q, want %q", c.Name, got, want.Text)
		}
	}
}

func TestControlAsOpenClaw(t *testing.T) {
	for _, c := range stage(t, "control-reply") {
		if got, want := Control(c.text(t, c.Input)), string(c.Expected) == "true"; got != want {
			t.Errorf("%s: %v", c.Name, got)
		}
	}
}

// Of OpenClaw's functions around the silent token oc has those that tell what a
// reader sees. What only a sender does, stripping a token from an answer before
// it is delivered and guessing from the start of a stream, oc has no use for.
func TestSilentAsOpenClaw(t *testing.T) {
	b, err := os.ReadFile("testdata/silent-token.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range bytes.Split(bytes.TrimSpace(b), []byte("\n")) {
		var c struct {
			Text     string
			Expected struct{ IsSilentReplyText, SuppressedControlReply bool }
		}
		if err := json.Unmarshal(l, &c); err != nil {
			t.Fatal(err)
		}
		if got := Silent(c.Text); got != c.Expected.IsSilentReplyText {
			t.Errorf("silent %q: %v", c.Text, got)
		}
		if got := Control(c.Text); got != c.Expected.SuppressedControlReply {
			t.Errorf("control %q: %v", c.Text, got)
		}
	}
}

func TestAudit(t *testing.T) {
	token := "ghp" + "_" + strings.Repeat("aB3d", 9)
	text := "use " + token + " and password=hunter2 and *** bold *** and API_KEY=*** or abcdef…wxyz"
	var got []string
	Audit(text, func(s Secret) {
		got = append(got, s.Kind+" "+text[s.At:s.At+min(s.Len, 4)])
	})
	want := []string{"mask ***", "mask abcd", "assignment hunt", "token ghp_ ghp_"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestAuditMessage(t *testing.T) {
	token := "ghp" + "_" + strings.Repeat("aB3d", 9)
	message := `{"role":"assistant","content":[
		{"type":"text","text":"I masked it: password=***"},
		{"type":"toolCall","id":"1","name":"exec","arguments":{"command":"login --password *** && git push https://` + token + `@host","apiKey":"plainvalue","key":"Enter"}},
		{"type":"image","data":"` + token + `","mimeType":"image/png"}]}`
	var got []string
	AuditMessage([]byte(message), func(where string, s Secret) { got = append(got, where+" "+s.Kind) })
	want := []string{
		"content[1].arguments.command mask", "content[1].arguments.command token ghp_", "content[1].arguments.apiKey field apiKey",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestMasksAreNotMarkdown(t *testing.T) {
	for s, want := range map[string]int{
		"***": 1, "***bold*** and ***": 0, "a *** b": 0, "--token *** x": 1, "x=***": 1, "key: ***": 1, "****": 0, "Bearer ***": 1, "abcdef…wxyz": 1, "wait… what": 0,
	} {
		n := 0
		Audit(s, func(f Secret) {
			if f.Kind == "mask" {
				n++
			}
		})
		if n != want {
			t.Errorf("%q: %d masks, want %d", s, n, want)
		}
	}
}

func TestRedactor(t *testing.T) {
	re, err := Pattern(`/ticket-(\d+)/g`)
	if err != nil {
		t.Fatal(err)
	}
	anyCase, err := Pattern("internal")
	if err != nil {
		t.Fatal(err)
	}
	r := Redactor{Patterns: []*Rule{re, anyCase}, Values: []string{"correct horse battery", "short"}}
	in := "ticket-123456 INTERNAL correct horse battery short password=hunter2"
	if got, want := r.Redact(in), "ticket-*** *** correc…tery short password=***"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, bad := range []string{"", "  ", "(?<=x)y", "("} {
		if _, err := Pattern(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestUnits(t *testing.T) {
	lone := "\xed\xa0\xbd"
	for _, c := range []struct {
		s          string
		n          int
		head, tail string
	}{
		{"abc", 2, "ab", "bc"},
		{"🙂🙂", 3, "🙂\xed\xa0\xbd", "\xed\xb9\x82🙂"},
		{lone + "a", 1, lone, "a"},
		{"가나", 1, "가", "나"},
		{"", 3, "", ""},
	} {
		if h, l := head(c.s, c.n), tail(c.s, c.n); h != c.head || l != c.tail {
			t.Errorf("%q: head %q, tail %q", c.s, h, l)
		}
	}
	if s, longer := Cut("a🙂b", 2); s != "a" || !longer {
		t.Errorf("%q %v", s, longer)
	}
	if got := Fields(" a\u00a0b\ufeffc "); len(got) != 3 {
		t.Errorf("%q", got)
	}
}
