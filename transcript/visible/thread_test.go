package visible

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// What OpenClaw 2026.7.35 showed of messages that hang on each other, recorded by running its projection.
func TestThreadAsOpenClaw(t *testing.T) {
	f, err := os.Open("testdata/thread.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cases := 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c struct {
			Name     string
			Started  int64
			Messages []json.RawMessage
			Expected json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases++
		var messages, got [][]byte
		for _, m := range c.Messages {
			messages = append(messages, m)
		}
		for _, s := range Thread(messages, ChatUnits, c.Started) {
			got = append(got, s.Message)
		}
		var want, have any
		if err := json.Unmarshal(c.Expected, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(array(got), &have); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if d := cmp.Diff(want, have); d != "" {
			t.Errorf("%s:\n%s", c.Name, d)
		}
	}
	if cases < 35 {
		t.Fatalf("%d cases", cases)
	}
}

// A thread takes any messages: what it shows comes from one of them, in their order, and is JSON.
func TestThreadOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := []string{
			`{"role":"user","content":"hi"}`, `{"role":"assistant","content":[{"type":"toolCall","name":"message","id":"a","arguments":{"action":"send","text":"x"}}]}`,
			`{"role":"toolResult","toolCallId":"a","toolName":"message","content":[]}`, `{"role":"assistant","content":"NO_REPLY"}`,
			`{"role":"assistant","content":"x","provider":"openclaw","model":"delivery-mirror"}`, `{"role":"user","content":"[OpenClaw heartbeat poll]"}`,
			`{"role":"assistant","content":"HEARTBEAT_OK"}`, `{}`, `null`, `[]`, `{"role":5,"content":{}}`, `{"role":"assistant","content":[null,1,"x",[]]}`,
			`{"role":"user","content":"x","provenance":{"kind":"inter_session","sourceTool":"sessions_send"}}`,
		}
		picked := rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "messages")
		var messages [][]byte
		for _, p := range picked {
			messages = append(messages, []byte(p))
		}
		last := -1
		for _, s := range Thread(messages, ChatUnits, 0) {
			if s.From < 0 || s.From >= len(messages) || !s.Reply && s.From <= last || !json.Valid(s.Message) {
				t.Fatalf("%+v", s)
			}
			if !s.Reply {
				last = s.From
			}
		}
	})
}

func TestMark(t *testing.T) {
	m := Mark{ID: "a1", Time: 1790000000000, Seq: 7}
	for _, c := range []struct{ got, want string }{
		{string(m.With([]byte(`{"role":"user","content":"x"}`))), `{"role":"user","content":"x","__openclaw":{"id":"a1","recordTimestampMs":1790000000000,"seq":7}}`},
		{string(m.With([]byte(`{"__openclaw":{"senderIsOwner":true,"seq":1},"idempotencyKey":"k"}`))), `{"__openclaw":{"senderIsOwner":true,"seq":7,"id":"a1","idempotencyKey":"k","recordTimestampMs":1790000000000},"idempotencyKey":"k"}`},
		{string(Mark{Seq: 2, Of: "s"}.Compaction()), `{"role":"system","content":[{"type":"text","text":"Compaction"}],"__openclaw":{"kind":"compaction","seq":2,"ofSessionId":"s"}}`},
		{string(Mark{Seq: 2}.With([]byte(`{"__openclaw":5}`))), `{"__openclaw":{"seq":2}}`},
		{string(m.Compaction()), `{"role":"system","content":[{"type":"text","text":"Compaction"}],"timestamp":1790000000000,"__openclaw":{"kind":"compaction","id":"a1","seq":7}}`},
		{string(Oversized(m.With([]byte(`{"role":"toolResult","content":"xxx"}`)), 5)), `{"role":"toolResult","timestamp":5,"content":[{"type":"text","text":"[chat.history omitted: message too large]"}],"__openclaw":{"id":"a1","seq":7,"truncated":true,"reason":"oversized"}}`},
		{string(Oversized([]byte(`{}`), 0)), `{"role":"assistant","content":[{"type":"text","text":"[chat.history omitted: message too large]"}],"__openclaw":{"truncated":true,"reason":"oversized"}}`},
	} {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
	}
}

func TestRedactorValueKeepsBytes(t *testing.T) {
	r := &Redactor{Values: []string{"hush-hush-value"}}
	for raw, masked := range map[string]bool{
		`{ "b" : 1.50, "a":"\u0041" }`:         false,
		`{"text":"password=abcdefgh"}`:         true,
		`{"x":["the hush-hush-value stands"]}`: true,
	} {
		out, got := r.Value([]byte(raw))
		if got != masked || !masked && string(out) != raw || masked && bytes.Equal(out, []byte(raw)) {
			t.Errorf("%s: %s %t", raw, out, got)
		}
	}
}

func TestHeartbeat(t *testing.T) {
	for text, want := range map[string]bool{
		"[OpenClaw heartbeat poll]":                                 true,
		"Read HEARTBEAT.md if it exists, or say HEARTBEAT_OK":       true,
		"Read HEARTBEAT.md if it exists and call heartbeat_respond": true,
		"Read HEARTBEAT.md please":                                  false,
		"Run the following periodic tasks, then reply HEARTBEAT_OK": true,
		"": false,
	} {
		if heartbeat(text) != want {
			t.Errorf("%q: want %t", text, want)
		}
	}
}

// Whatever stands in messages, a thread of them is made, of valid JSON.
func FuzzThread(f *testing.F) {
	f.Add("{\"role\":\"user\",\"content\":\"hi\"}\n{\"role\":\"assistant\",\"content\":[{\"type\":\"toolUse\",\"name\":\"message\",\"input\":\"{\\\"action\\\":\\\"send\\\",\\\"text\\\":\\\"x\\\"}\"}]}\n{\"role\":\"tool\",\"output\":[{\"text\":\"{\\\"ok\\\":true}\"}]}\n{\"role\":\"assistant\",\"content\":\"NO_REPLY\"}")
	f.Add("{\"role\":\"assistant\",\"content\":\"HEARTBEAT_OK <b>&nbsp;HEARTBEAT_OK!!\"}\n{\"role\":\"assistant\",\"openclawTtsSupplement\":{\"spokenText\":\"a\"},\"content\":[{},[]]}")
	f.Fuzz(func(t *testing.T, text string) {
		var messages [][]byte
		for _, line := range bytes.Split([]byte(text), []byte("\n")) {
			if json.Valid(line) && len(line) < 4096 {
				messages = append(messages, Mark{ID: "x", Seq: len(messages) + 1}.With(line))
			}
		}
		for _, s := range Thread(messages, 100, 5) {
			if s.From < 0 || s.From >= len(messages) || !json.Valid(s.Message) {
				t.Fatalf("%d %q", s.From, s.Message)
			}
		}
	})
}
