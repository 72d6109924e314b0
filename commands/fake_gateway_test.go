package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"oc/store/span"
)

// fakeToken is made up at run time: no text may hold anything like it.
var fakeToken = strings.Repeat("t0ken-", 6)

// fakeGateway greets as a recorded release does, answers calls with the frames that were recorded of it, and does to the state on disk
// what they say was done.
type fakeGateway struct {
	t       testing.TB
	release string
	state   string // that it says it has
	sent    func(call fakeCall) fakeEnd

	dies string // at a moment; "": it does not

	port int
	mu   sync.Mutex
	all  []fakeCall
}

type fakeCall struct {
	Method string
	Params map[string]any
}

// fakeEnd is what becomes of a call.
type fakeEnd struct {
	payload any
	failure any // of an answer that is an error
	silent  bool
	hangUp  bool
	half    bool // of the answer, then the end
}

// The moments of a connection at which a fake gateway can die.
const (
	diesBeforeChallenge = "before the challenge"
	diesAfterChallenge  = "after the challenge"
	diesAfterConnect    = "after connect"
	diesAfterHello      = "after hello"
)

var fakeReleases = []string{"2026.7.35", "2026.9.6"}

// frameOf is the answer of a release to a method, as it was recorded: the payload, or the error.
func frameOf(t testing.TB, release, name string) (payload, failure map[string]any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "gateway", "testdata", release, "frames", name+".ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range bytes.Split(bytes.TrimSpace(raw), []byte("\n")) {
		var l struct {
			Dir   string
			Frame struct {
				Type, ID, Event string
				OK              bool
				Payload, Error  map[string]any
			}
		}
		if json.Unmarshal(line, &l) != nil || l.Dir != "in" || l.Frame.Type != "res" {
			continue
		}
		if strings.HasPrefix(name, "handshake/") == (l.Frame.ID == "1") {
			return l.Frame.Payload, l.Frame.Error
		}
	}
	t.Fatalf("no answer in %s of %s", name, release)
	return nil, nil
}

// fake starts a gateway that says it has the state. sent says what becomes of calls; nil answers as recorded.
func fake(t testing.TB, release, state string, sent func(fakeCall) fakeEnd) *fakeGateway {
	t.Helper()
	f := &fakeGateway{t: t, release: release, state: state, sent: sent}
	hello, _ := frameOf(t, release, "handshake/04-cli-token-no-device")
	hello["snapshot"].(map[string]any)["stateDir"] = state
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.port = l.Addr().(*net.TCPAddr).Port
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		f.serve(r.Context(), ws, hello)
	})}
	go server.Serve(l) //nolint:errcheck
	t.Cleanup(func() { server.Close() })
	return f
}

func (f *fakeGateway) serve(ctx context.Context, ws *websocket.Conn, hello map[string]any) {
	say := func(v any) bool {
		raw, err := json.Marshal(v)
		return err == nil && ws.Write(ctx, websocket.MessageText, raw) == nil
	}
	if f.dies == diesBeforeChallenge {
		return
	}
	say(map[string]any{"type": "event", "event": "connect.challenge", "payload": map[string]any{"nonce": "n", "ts": int64(1796037875738)}})
	if f.dies == diesAfterChallenge {
		return
	}
	for {
		_, raw, err := ws.Read(ctx)
		if err != nil {
			return
		}
		var m struct {
			ID, Method string
			Params     map[string]any
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			f.t.Errorf("the client sent %q", raw)
			return
		}
		if m.Method == "connect" {
			if f.dies == diesAfterConnect {
				return
			}
			if auth, _ := m.Params["auth"].(map[string]any); auth["token"] != fakeToken {
				_, failure := frameOf(f.t, f.release, "handshake/07-cli-bad-token")
				say(map[string]any{"type": "res", "id": m.ID, "ok": false, "error": failure})
				_ = ws.Close(1008, "unauthorized")
				return
			}
			hello["auth"] = map[string]any{"role": "operator", "scopes": m.Params["scopes"]}
			say(map[string]any{"type": "res", "id": m.ID, "ok": true, "payload": hello})
			if f.dies == diesAfterHello {
				return
			}
			continue
		}
		call := fakeCall{m.Method, m.Params}
		f.mu.Lock()
		f.all = append(f.all, call)
		end := f.sent(call) // under the lock, so that a test which asked for the calls sees what it did
		f.mu.Unlock()
		switch {
		case end.silent:
			<-ctx.Done()
			return
		case end.hangUp:
			return
		case end.half:
			if w, err := ws.Writer(ctx, websocket.MessageText); err == nil {
				fmt.Fprintf(w, `{"type":"res","id":%q,"ok":tr`, m.ID)
			}
			return
		case end.failure != nil:
			say(map[string]any{"type": "res", "id": m.ID, "ok": false, "error": end.failure})
		default:
			say(map[string]any{"type": "event", "event": "tick", "payload": map[string]any{"ts": 1}})
			say(map[string]any{"type": "res", "id": m.ID, "ok": true, "payload": end.payload})
		}
	}
}

// calls are the calls that came, in order.
func (f *fakeGateway) calls() []fakeCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]fakeCall{}, f.all...)
}

// env is an environment in which oc finds the gateway.
func (f *fakeGateway) env(base map[string]string) map[string]string {
	env := map[string]string{}
	for k, v := range base {
		env[k] = v
	}
	env["OPENCLAW_GATEWAY_PORT"], env["OPENCLAW_GATEWAY_TOKEN"] = fmt.Sprint(f.port), fakeToken
	return env
}

// house is the effect of a gateway of the file era on its state.
type house struct {
	t        testing.TB
	release  string
	sessions string // directory
}

// entry is one row of a store as it stands there.
type entry struct {
	key string
	val json.RawMessage
}

func (h *house) read() (all []entry) {
	h.t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.sessions, "sessions.json"))
	if err != nil {
		h.t.Fatal(err)
	}
	_, err = span.Each(raw, 0, func(key, val []byte) error {
		name, _ := span.Text(key)
		all = append(all, entry{name, val})
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// write replaces the store as OpenClaw does.
func (h *house) write(all []entry) {
	h.t.Helper()
	var b bytes.Buffer
	b.WriteString("{")
	for i, e := range all {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n  %s: %s", span.Quote(nil, e.key), e.val)
	}
	b.WriteString("\n}")
	path := filepath.Join(h.sessions, "sessions.json")
	if err := errors.Join(os.WriteFile(path+".1.x.tmp", b.Bytes(), 0o600), os.Rename(path+".1.x.tmp", path)); err != nil {
		h.t.Fatal(err)
	}
}

func (e entry) text(name string) string {
	s, _ := span.Text(span.Member(e.val, name))
	return s
}

// archive renames a transcript as a deletion or a reset does.
func (h *house) archive(id, reason string) string {
	from := filepath.Join(h.sessions, id+".jsonl")
	to := from + "." + reason + ".2026-11-30T11-45-34.093Z"
	if os.Rename(from, to) != nil {
		return ""
	}
	return to
}

// do carries a call out as 2026.7.35 does, and answers with the recorded frame.
func (h *house) do(c fakeCall) fakeEnd {
	payload, _ := frameOf(h.t, h.release, map[string]string{
		"sessions.delete": "sessions.delete", "sessions.patch": "sessions.patch-label", "sessions.reset": "sessions.reset", "sessions.cleanup": "sessions.cleanup-dry", "agents.delete": "agents.delete",
	}[c.Method])
	key, _ := c.Params["key"].(string)
	all := h.read()
	at := -1
	for i := range all {
		if all[i].key == key {
			at = i
		}
	}
	if at >= 0 && c.Params["expectedSessionId"] != nil && c.Params["expectedSessionId"] != all[at].text("sessionId") {
		return fakeEnd{failure: map[string]any{"code": "INVALID_REQUEST", "message": "Session " + key + " changed before deletion. Retry."}}
	}
	switch c.Method {
	case "sessions.delete":
		payload["key"], payload["archived"] = key, []string{}
		if payload["deleted"] = at >= 0; at >= 0 {
			if path := h.archive(all[at].text("sessionId"), "deleted"); path != "" {
				payload["archived"] = []string{path}
			}
			h.write(append(all[:at:at], all[at+1:]...))
		}
	case "sessions.patch", "sessions.reset":
		if c.Method == "sessions.patch" && h.release == "2026.7.35" && c.Params["expectedSessionId"] != nil {
			return fakeEnd{failure: map[string]any{"code": "INVALID_REQUEST", "message": "invalid sessions.patch params: at root: unexpected property 'expectedSessionId'"}}
		}
		var row map[string]any
		if err := json.Unmarshal(all[at].val, &row); err != nil {
			h.t.Error(err)
		}
		for name, value := range c.Params {
			switch name {
			case "key", "expectedSessionId", "reason":
			case "archived":
				delete(row, "archivedAt")
				if value == true {
					row["archivedAt"] = int64(1796039057259)
				}
			default:
				row[name] = value
			}
		}
		if c.Method == "sessions.reset" {
			h.archive(all[at].text("sessionId"), "reset")
			row["sessionId"] = "51e26bd2-10a2-4f13-a23b-e1e530d7507d"
			delete(row, "sessionFile")
		}
		row["updatedAt"] = int64(1796039057259)
		all[at].val, _ = json.MarshalIndent(row, "  ", "  ")
		h.write(all)
		payload["key"] = key
	}
	return fakeEnd{payload: payload}
}
