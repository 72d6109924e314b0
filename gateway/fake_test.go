package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// The secrets of these tests are made up at run time.
var testToken = Secret(strings.Repeat("t0ken-", 6))

// listen serves WebSockets on loopback: each connection is handed to f, and
// ends without ceremony when f returns.
func listen(t testing.TB, f func(ctx context.Context, ws *websocket.Conn)) Options {
	t.Helper()
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" || r.Header.Get("Authorization") != "" {
			t.Errorf("a browser's header: %v", r.Header)
		}
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		ws.SetReadLimit(1 << 26)
		f(r.Context(), ws)
	}))
}

func serve(t testing.TB, h http.Handler) Options {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = nil
	s.Start()
	t.Cleanup(s.CloseClientConnections)
	go func() { <-t.Context().Done(); s.CloseClientConnections(); s.Close() }()
	return optionsFor(s.Listener.Addr())
}

func optionsFor(addr net.Addr) Options {
	return Options{
		Target:      Target{URL: "ws://" + addr.String(), Source: "local loopback", Local: true, Port: addr.(*net.TCPAddr).Port},
		Credentials: Credentials{Mode: "token", Token: testToken, Source: "gateway.auth.token"},
		Scopes:      []string{Admin}, Version: "0.1.0", Budget: 5 * time.Second,
	}
}

// tcp hands raw connections to f.
func tcp(t testing.TB, f func(net.Conn)) Options {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				f(c)
			}()
		}
	}()
	return optionsFor(l.Addr())
}

// closedPort is an address where nothing listens.
func closedPort(t testing.TB) Options {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return optionsFor(l.Addr())
}

// line is one line of a recording.
type line struct {
	Dir   string          `json:"dir"`
	Frame json.RawMessage `json:"frame"`
	HTTP  struct {
		Status      int             `json:"status"`
		ContentType string          `json:"contentType"`
		Body        json.RawMessage `json:"body"`
	} `json:"http"`
}

func recording(t testing.TB, release, name string) (out []line) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", release, "frames", name+".ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range bytes.Split(bytes.TrimSpace(raw), []byte("\n")) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	return out
}

// message is a frame of either side.
type message struct {
	Type    string          `json:"type"`
	ID      string          `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	OK      *bool           `json:"ok,omitempty"`
	Event   string          `json:"event,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// greeting is the whole hello of a release, which most recordings have without
// its lists.
func greeting(t testing.TB, release string) json.RawMessage {
	t.Helper()
	for _, l := range recording(t, release, "handshake/04-cli-token-no-device") {
		var m message
		if l.Dir == "in" && json.Unmarshal(l.Frame, &m) == nil && m.Type == "res" && m.ID == "1" {
			return m.Payload
		}
	}
	t.Fatal("no hello")
	return nil
}

// completed puts the lists and the snapshot of a whole hello into a trimmed one.
func completed(t testing.TB, trimmed, whole json.RawMessage) json.RawMessage {
	t.Helper()
	var a, b map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(trimmed, &a), json.Unmarshal(whole, &b)); err != nil {
		t.Error(err)
	}
	a["features"], a["snapshot"] = b["features"], b["snapshot"]
	raw, _ := json.Marshal(a)
	return raw
}

// heard is what a client sent to a replayed gateway.
type heard struct {
	connect json.RawMessage
	calls   chan message
}

// replay is a gateway that says what a recorded one said, in the recorded
// order; only the numbers of the answers are the client's.
func replay(t testing.TB, release, name string) (Options, *heard) {
	t.Helper()
	lines, hello := recording(t, release, name), greeting(t, release)
	h := &heard{calls: make(chan message, 16)}
	return listen(t, func(ctx context.Context, ws *websocket.Conn) {
		ids := map[string]string{}
		for _, l := range lines {
			var m message
			_ = json.Unmarshal(l.Frame, &m)
			switch l.Dir {
			case "out":
				_, raw, err := ws.Read(ctx)
				if err != nil {
					return
				}
				var got message
				if err := json.Unmarshal(raw, &got); err != nil {
					t.Errorf("the client sent %q", raw)
				}
				if got.Method == "connect" {
					h.connect = got.Params
				} else {
					h.calls <- got
				}
				ids[m.ID] = got.ID
				if m.ID == "" {
					ids["1"] = got.ID
				}
			case "in":
				if m.Type == "res" {
					m.ID = ids[m.ID]
					if bytes.Contains(m.Payload, []byte("hello-ok")) && bytes.Contains(m.Payload, []byte("_trimmed")) {
						m.Payload = completed(t, m.Payload, hello)
					}
				}
				raw, err := json.Marshal(m)
				if err != nil {
					t.Error(err)
				}
				if ws.Write(ctx, websocket.MessageText, raw) != nil {
					return
				}
			case "close":
				var end struct {
					Code   websocket.StatusCode `json:"code"`
					Reason string               `json:"reason"`
				}
				_ = json.Unmarshal(l.Frame, &end)
				if end.Code == 1005 { // it was the client who went
					_, _, _ = ws.Read(ctx)
					return
				}
				_ = ws.Close(end.Code, end.Reason)
				return
			}
		}
		_, _, _ = ws.Read(ctx)
	}), h
}

// gatewayThat greets like a real one, with a state directory of the test's
// choice, and hands every call to f.
func gatewayThat(t testing.TB, stateDir string, f func(ctx context.Context, ws *websocket.Conn, call message)) Options {
	t.Helper()
	hello := restated(t, greeting(t, "2026.9.6"), stateDir)
	return listen(t, func(ctx context.Context, ws *websocket.Conn) {
		if !greet(ctx, ws, hello) {
			return
		}
		for {
			_, raw, err := ws.Read(ctx)
			if err != nil {
				return
			}
			var m message
			_ = json.Unmarshal(raw, &m)
			f(ctx, ws, m)
		}
	})
}

func restated(t testing.TB, hello json.RawMessage, stateDir string) json.RawMessage {
	t.Helper()
	var whole map[string]any
	if err := json.Unmarshal(hello, &whole); err != nil {
		t.Fatal(err)
	}
	whole["snapshot"].(map[string]any)["stateDir"] = stateDir
	raw, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

const challenge = `{"type":"event","event":"connect.challenge","payload":{"nonce":"n","ts":1796037875738}}`

func greet(ctx context.Context, ws *websocket.Conn, hello json.RawMessage) bool {
	if ws.Write(ctx, websocket.MessageText, []byte(challenge)) != nil {
		return false
	}
	_, raw, err := ws.Read(ctx)
	if err != nil {
		return false
	}
	var m message
	_ = json.Unmarshal(raw, &m)
	return say(ctx, ws, message{Type: "res", ID: m.ID, OK: yes(true), Payload: hello})
}

func say(ctx context.Context, ws *websocket.Conn, m message) bool {
	raw, _ := json.Marshal(m)
	return ws.Write(ctx, websocket.MessageText, raw) == nil
}

func yes(b bool) *bool { return &b }

// dial must succeed.
func dial(t testing.TB, o Options) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// within fails when f takes longer than d: nothing may hang.
func within(t testing.TB, d time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatalf("%s: hangs", what)
	}
}
