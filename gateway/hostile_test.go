package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"pgregory.net/rapid"
)

// Whatever a server says in whatever order, a client comes back in time, with
// an answer that was given or an *Error.
func TestHostileScripts(t *testing.T) {
	hello := message{Type: "res", ID: "1", OK: yes(true), Payload: greeting(t, "2026.7.35")}
	lines := map[string]string{
		"challenge": challenge, "hello": marshal(hello), "tick": `{"type":"event","event":"tick"}`, "garbage": "{", "empty": "", "null": "null",
		"answer": `{"type":"res","id":"2","ok":true,"payload":7}`, "error": `{"type":"res","id":"2","ok":false,"error":{"code":"X","message":"m"}}`,
		"no error": `{"type":"res","id":"2","ok":false}`, "refusal": `{"type":"res","id":"1","ok":false,"error":{"code":"NOT_PAIRED"}}`, "stranger": `{"type":"res","id":"99","ok":true}`,
		"read": "", "1008": "", "1012": "", "4001": "", "binary": "", "cut": "",
	}
	var names []string
	for name := range lines {
		names = append(names, name)
	}
	slices.Sort(names)
	var script atomic.Pointer[[]string]
	o := listen(t, func(ctx context.Context, ws *websocket.Conn) {
		for _, name := range *script.Load() {
			switch name {
			case "read":
				_, _, _ = ws.Read(ctx)
			case "1008", "1012", "4001":
				code := map[string]websocket.StatusCode{"1008": 1008, "1012": 1012, "4001": 4001}[name]
				_ = ws.Close(code, string(testToken))
			case "binary":
				_ = ws.Write(ctx, websocket.MessageBinary, []byte(challenge))
			case "cut":
				return
			default:
				_ = ws.Write(ctx, websocket.MessageText, []byte(lines[name]))
			}
		}
		_, _, _ = ws.Read(ctx)
	})
	rapid.Check(t, func(r *rapid.T) {
		polite := rapid.SampledFrom([][]string{nil, {"challenge"}, {"challenge", "read", "hello"}, {"challenge", "read", "hello", "read"}}).Draw(r, "begin")
		all := slices.Concat(polite, rapid.SliceOfN(rapid.SampledFrom(names), 0, 5).Draw(r, "script"))
		script.Store(&all)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		began := time.Now()
		c, err := Dial(ctx, o)
		if err == nil {
			var got json.RawMessage
			got, err = c.Do(ctx, Cleanup{})
			if err == nil && string(got) != "7" {
				r.Fatalf("an answer that nobody gave: %s", got)
			}
			c.Close()
		}
		if e := (*Error)(nil); err != nil && (!errors.As(err, &e) || e.Exit() == "" || strings.Contains(err.Error(), string(testToken))) {
			r.Fatalf("%v", err)
		}
		if spent := time.Since(began); spent > 5*time.Second {
			r.Fatalf("it took %v", spent)
		}
	})
}

func marshal(m message) string {
	raw, _ := json.Marshal(m)
	return string(raw)
}

// What oc itself adds to a call.
func BenchmarkCall(b *testing.B) {
	o := gatewayThat(b, "/s", func(ctx context.Context, ws *websocket.Conn, m message) {
		say(ctx, ws, message{Type: "res", ID: m.ID, OK: yes(true), Payload: json.RawMessage(`{"ok":true}`)})
	})
	b.Run("dial, call and close", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c, err := Dial(b.Context(), o)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := c.Do(b.Context(), Health{}); err != nil {
				b.Fatal(err)
			}
			c.Close()
		}
	})
	b.Run("call", func(b *testing.B) {
		c := dial(b, o)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Do(b.Context(), Health{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
