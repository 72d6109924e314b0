package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// liveToken is made up at run time: no text may hold anything like it.
var liveToken = strings.Repeat("l1ve-", 7)

// puppet is a gateway that says what a recorded release said: to methods over its WebSocket, to tools over /tools/invoke.
type puppet struct {
	t       testing.TB
	release string
	state   string
	port    int

	says  map[string]json.RawMessage // to a method, in place of what was recorded
	tool  map[string]string          // name of the recording of a tool's answer
	after map[string][]json.RawMessage
	gone  string // hang up after this method

	mu     sync.Mutex
	asked  []string // methods with their parameters
	bodies []map[string]any
}

var liveReleases = []string{"2026.7.35", "2026.9.6"}

type recordedLine struct {
	Dir   string
	Frame struct {
		Type, ID, Event, Method string
		Payload, Error          json.RawMessage
	}
	HTTP struct {
		Status int
		Body   json.RawMessage
	}
}

func recordedLines(t testing.TB, release, name string) (all []recordedLine, frames []json.RawMessage) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "gateway", "testdata", release, "frames", name+".ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		var l recordedLine
		var f struct{ Frame json.RawMessage }
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		_ = json.Unmarshal(line, &f)
		all, frames = append(all, l), append(frames, f.Frame)
	}
	return all, frames
}

// payload is the n-th answer to a method in a recording.
func payload(t testing.TB, release, name, method string, n int) json.RawMessage {
	t.Helper()
	lines, _ := recordedLines(t, release, name)
	for _, l := range lines {
		if l.Dir == "out" && l.Frame.Method == method {
			if n--; n < 0 {
				for _, a := range lines {
					if a.Dir == "in" && a.Frame.Type == "res" && a.Frame.ID == l.Frame.ID {
						return a.Frame.Payload
					}
				}
			}
		}
	}
	t.Fatalf("%s of %s has no such answer to %s", name, release, method)
	return nil
}

// puppetOf starts a gateway of a state.
func puppetOf(t testing.TB, release, state string) *puppet {
	t.Helper()
	p := &puppet{t: t, release: release, state: state, says: map[string]json.RawMessage{}, tool: map[string]string{}, after: map[string][]json.RawMessage{}}
	for method, name := range map[string]string{"health": "health", "status": "status", "sessions.list": "sessions.list-running"} {
		p.says[method] = payload(t, release, name, method, 0)
	}
	p.says["tasks.list"] = payload(t, release, "tasks.cancel", "tasks.list", 0)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.port = l.Addr().(*net.TCPAddr).Port
	server := &http.Server{Handler: p}
	go server.Serve(l) //nolint:errcheck // closed below
	t.Cleanup(func() { server.Close() })
	return p
}

func (p *puppet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/tools/invoke" {
		p.invoke(w, r)
		return
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer ws.CloseNow()
	p.converse(r.Context(), ws)
}

func (p *puppet) invoke(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Header.Get("Authorization") != "Bearer "+liveToken {
		w.WriteHeader(401)
		fmt.Fprint(w, `{"error":{"message":"Unauthorized","type":"unauthorized"}}`)
		return
	}
	text, _ := io.ReadAll(r.Body)
	var body map[string]any
	if err := json.Unmarshal(text, &body); err != nil {
		p.t.Errorf("the client sent %q", text)
	}
	p.mu.Lock()
	p.bodies = append(p.bodies, body)
	p.mu.Unlock()
	name, _ := body["tool"].(string)
	if p.tool[name] == "" {
		w.WriteHeader(404)
		fmt.Fprintf(w, `{"ok":false,"error":{"type":"not_found","message":"Tool not available: %s"}}`, name)
		return
	}
	lines, _ := recordedLines(p.t, p.release, p.tool[name])
	answer := lines[len(lines)-1].HTTP
	w.WriteHeader(answer.Status)
	w.Write(answer.Body) //nolint:errcheck
}

func (p *puppet) converse(ctx context.Context, ws *websocket.Conn) {
	write := func(v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			p.t.Error(err)
		}
		_ = ws.Write(ctx, websocket.MessageText, raw)
	}
	write(map[string]any{"type": "event", "event": "connect.challenge", "payload": map[string]any{"nonce": "n", "ts": int64(1796037875738)}})
	for {
		_, raw, err := ws.Read(ctx)
		if err != nil {
			return
		}
		var m struct {
			ID, Method string
			Params     json.RawMessage
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			p.t.Errorf("the client sent %q", raw)
			return
		}
		if m.Method == "connect" {
			var params struct {
				Scopes []string
				Auth   struct{ Token string }
			}
			_ = json.Unmarshal(m.Params, &params)
			if params.Auth.Token != liveToken {
				lines, _ := recordedLines(p.t, p.release, "handshake/07-cli-bad-token")
				for _, l := range lines {
					if l.Dir == "in" && l.Frame.Type == "res" {
						write(map[string]any{"type": "res", "id": m.ID, "ok": false, "error": l.Frame.Error})
					}
				}
				_ = ws.Close(1008, "unauthorized")
				return
			}
			write(map[string]any{"type": "res", "id": m.ID, "ok": true, "payload": p.hello(params.Scopes)})
			continue
		}
		p.mu.Lock()
		p.asked = append(p.asked, m.Method+" "+string(m.Params))
		gone, after := p.gone == m.Method, p.after[m.Method]
		p.mu.Unlock()
		if answer := p.answer(m.Method, m.Params); answer != nil {
			write(map[string]any{"type": "res", "id": m.ID, "ok": true, "payload": answer})
		} else {
			write(map[string]any{"type": "res", "id": m.ID, "ok": false, "error": map[string]any{"code": "INVALID_REQUEST", "message": "unknown method: " + m.Method}})
		}
		if gone {
			_ = ws.Close(1012, "service restart")
			return
		}
		for _, event := range after {
			time.Sleep(2 * time.Millisecond)
			_ = ws.Write(ctx, websocket.MessageText, event)
		}
	}
}

// hello is the recorded one, of this state. As real gateways do, it says the state to admins alone.
func (p *puppet) hello(scopes []string) map[string]any {
	lines, _ := recordedLines(p.t, p.release, "handshake/04-cli-token-no-device")
	for _, l := range lines {
		var hello map[string]any
		if l.Dir == "in" && l.Frame.Type == "res" && json.Unmarshal(l.Frame.Payload, &hello) == nil {
			snapshot := hello["snapshot"].(map[string]any)
			delete(snapshot, "stateDir")
			for _, s := range scopes {
				if s == "operator.admin" {
					snapshot["stateDir"] = p.state
				}
			}
			hello["auth"] = map[string]any{"role": "operator", "scopes": scopes}
			return hello
		}
	}
	p.t.Error("no hello was recorded")
	return nil
}

func (p *puppet) answer(method string, params json.RawMessage) any {
	if says, ok := p.says[method]; ok {
		return says
	}
	var q struct{ Key, SessionID, Label string }
	_ = json.Unmarshal(params, &q)
	switch method {
	case "sessions.resolve":
		switch {
		case strings.HasPrefix(q.Key, "agent:ops:main"), q.Key == "agent:main:main":
			return map[string]any{"ok": true, "key": q.Key}
		case q.Label == "Boxes":
			return map[string]any{"ok": true, "key": "agent:main:subagent:boxes"}
		}
		return map[string]any{"ok": false}
	}
	return nil
}

// oc runs a command beside the puppet, on its state.
func (p *puppet) oc(args ...string) answer { return p.ocWith(nil, "", args...) }

func (p *puppet) ocWith(env map[string]string, stdin string, args ...string) answer {
	p.t.Helper()
	return ocBeside(p.t.(*testing.T), p.state, env, stdin, args...)
}

// ocBeside is ocRun with a standard input; nothing that it says may hold the token.
func ocBeside(t *testing.T, state string, env map[string]string, stdin string, args ...string) answer {
	t.Helper()
	var out, errout bytes.Buffer
	environ := []string{"TZ=UTC", "LANG=C.UTF-8", "NO_COLOR=1", "TERM=dumb", "HOME=" + state, "TMPDIR=" + state}
	for k, v := range env {
		environ = append(environ, k+"="+v)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	exit := Main(ctx, Process{Args: append([]string{"--state-dir", state}, args...), Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errout, Environ: environ, Dir: state, Now: time.Now})
	a := answer{exit, out.String(), errout.String()}
	if strings.Contains(a.out+a.errout, liveToken) {
		t.Errorf("oc %v shows the token", args)
	}
	return a
}

// liveState is a state directory whose gateway is configured at a port.
func liveState(t testing.TB, port int) string {
	t.Helper()
	dir := t.TempDir()
	configure(t, dir, port)
	return dir
}

func configure(t testing.TB, dir string, port int) {
	t.Helper()
	text := fmt.Sprintf(`{"gateway": {"mode": "local", "port": %d, "auth": {"mode": "token", "token": %q}}, "agents": {"list": [{"id": "main", "default": true}, {"id": "ops"}]}}`, port, liveToken)
	if err := os.WriteFile(filepath.Join(dir, "openclaw.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// beside is a puppet with a state of its own.
func beside(t testing.TB, release string) *puppet {
	t.Helper()
	dir := t.TempDir()
	p := puppetOf(t, release, dir)
	configure(t, dir, p.port)
	return p
}
