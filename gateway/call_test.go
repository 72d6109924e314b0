package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oc/store/span"

	"github.com/coder/websocket"
)

// Every typed request, as the real gateways took and answered it.
func TestRecordedCalls(t *testing.T) {
	for name, r := range map[string]Request{
		"health": Health{}, "status": Status{}, "agents.list": Agents{},
		"sessions.list":               List{Titles: true, LastMessage: true},
		"sessions.describe":           Describe{Key: "agent:main:main", Titles: true, LastMessage: true},
		"sessions.resolve-label":      Resolve{Label: "Side project"},
		"sessions.resolve-missing":    Resolve{Key: "agent:main:nope"},
		"chat.history":                History{Key: "agent:main:main", Limit: 50},
		"sessions.patch-label":        Patch{Key: "agent:main:main", Fields: map[string]any{"label": "Main desk"}},
		"sessions.patch-bad":          Patch{Key: "agent:main:main", Fields: map[string]any{"model": "nope/none"}},
		"sessions.compact":            Compact{Key: "agent:main:long"},
		"sessions.compact-maxLines":   Compact{Key: "agent:ops:main", MaxLines: 4},
		"sessions.reset":              Reset{Key: "agent:main:resetme"},
		"sessions.delete":             Delete{Key: "agent:main:deleteme"},
		"sessions.delete-missing":     Delete{Key: "agent:main:deleteme"},
		"sessions.cleanup-dry":        nil,
		"sessions.cleanup-all":        Cleanup{AllAgents: true, Enforce: true, FixMissing: true},
		"agents.delete-missing":       DeleteAgent{Agent: "ghost"},
		"tools.invoke-session_status": Tool{Name: "session_status", Key: "agent:main:main", Args: map[string]any{}},
		"sessions.subscribe":          Subscribe{},
	} {
		for _, release := range releases {
			t.Run(release+"/"+name, func(t *testing.T) {
				var asked message
				var answer message
				for _, l := range recording(t, release, name) {
					var m message
					_ = json.Unmarshal(l.Frame, &m)
					switch {
					case l.Dir == "out" && m.Method != "connect" && asked.Method == "":
						asked = m
					case l.Dir == "in" && m.Type == "res" && m.ID == asked.ID && asked.ID != "":
						answer = m
					}
				}
				o, heard := replay(t, release, name)
				c := dial(t, o)
				var got json.RawMessage
				var err error
				if r == nil { // what no type of ours says
					got, err = c.Call(t.Context(), asked.Method, asked.Params)
				} else {
					got, err = c.Do(t.Context(), r)
				}
				sent := <-heard.calls
				if !alike(sent.Params, asked.Params) && !(len(asked.Params) == 0 && string(sent.Params) == "{}") || sent.Method != asked.Method {
					t.Errorf("sent %s %s, recorded %s %s", sent.Method, sent.Params, asked.Method, asked.Params)
				}
				if answer.OK == nil {
					t.Fatal("no answer in the recording")
				}
				if name == "tools.invoke-session_status" {
					answer.Payload = span.Path(answer.Payload, "output", "details")
				}
				if *answer.OK {
					if err != nil || !alike(got, answer.Payload) {
						t.Errorf("%s, %v", got, err)
					}
					return
				}
				var e *Error
				if !errors.As(err, &e) || e.Fault != Failed || e.Sent || e.Code != textAt(answer.Error, "code") || !strings.Contains(err.Error(), said(textAt(answer.Error, "message"))) {
					t.Errorf("%v", err)
				}
			})
		}
	}
}

func alike(a, b []byte) bool {
	var x, y any
	_ = json.Unmarshal(a, &x)
	_ = json.Unmarshal(b, &y)
	return reflect.DeepEqual(x, y)
}

func TestRecordedRefusals(t *testing.T) {
	for _, release := range releases {
		o, _ := replay(t, release, "unknown-method")
		_, err := dial(t, o).Call(t.Context(), "sessions.bogus", struct{}{})
		if e := (*Error)(nil); !errors.As(err, &e) || e.Fault != Unsupported || e.Sent {
			t.Errorf("%s: %v", release, err)
		}
		o, _ = replay(t, release, "bad-params")
		_, err = dial(t, o).Call(t.Context(), "sessions.list", map[string]int{"nope": 1})
		if e := (*Error)(nil); !errors.As(err, &e) || e.Fault != Unsupported || e.Sent || !strings.Contains(err.Error(), "nope") {
			t.Errorf("%s: %v", release, err)
		}
	}
}

// The requests of which nothing was recorded, as their documents have them.
func TestParams(t *testing.T) {
	for want, r := range map[string]Request{
		`{"key":"k","deleteTranscript":false,"archivedOnly":true}`:                       Delete{Key: "k", KeepTranscript: true, ArchivedOnly: true},
		`{"key":"k","agentId":"a","expectedSessionId":"s"}`:                              Delete{Key: "k", Agent: "a", ExpectedSessionID: "s"},
		`{"key":"k","reason":"new","expectedSessionId":"s"}`:                             Reset{Key: "k", Reason: "new", ExpectedSessionID: "s"},
		`{"key":"k","agentId":"a","label":null,"archived":true,"expectedSessionId":"s"}`: Patch{Key: "k", Agent: "a", ExpectedSessionID: "s", Fields: map[string]any{"label": nil, "archived": true, "key": "other"}},
		`{"agentId":"a","deleteFiles":false}`:                                            DeleteAgent{Agent: "a", KeepFiles: true},
		`{"agentId":"a"}`:                                                                DeleteAgent{Agent: "a"},
		`{"key":"k","message":"","idempotencyKey":"i"}`:                                  Send{Key: "k", IdempotencyKey: "i"},
		`{"sessionKey":"k","message":"m","idempotencyKey":"i","timeoutMs":5}`:            ChatSend{Key: "k", Message: "m", IdempotencyKey: "i", TimeoutMS: 5},
		`{"sessionKey":"k","runId":"r"}`:                                                 Abort{Key: "k", RunID: "r"},
		`{"runId":"r","timeoutMs":7}`:                                                    AgentWait{RunID: "r", TimeoutMS: 7},
		`{}`:                                                                             Cleanup{},
	} {
		got, err := json.Marshal(r)
		if err != nil || !alike(got, []byte(want)) {
			t.Errorf("%T: %s, %v, want %s", r, got, err, want)
		}
	}
	for r, want := range map[Request]string{
		Delete{}: Admin, Delete{ArchivedOnly: true}: Write, Cleanup{}: Admin, List{}: Read, Send{}: Write,
	} {
		if r.Scope() != want {
			t.Errorf("%T wants %s", r, r.Scope())
		}
	}
	if s := (Patch{Fields: map[string]any{"label": 1, "pinned": 1}}).Scope(); s != Write {
		t.Error(s)
	}
	if s := (Patch{Fields: map[string]any{"label": 1, "model": 1}}).Scope(); s != Admin {
		t.Error(s)
	}
}

func TestUnadvertised(t *testing.T) {
	asked := make(chan string, 4)
	o := gatewayThat(t, "/s", func(ctx context.Context, ws *websocket.Conn, m message) {
		asked <- m.Method
		say(ctx, ws, message{Type: "res", ID: m.ID, OK: yes(true), Payload: json.RawMessage(`1`)})
	})
	c := dial(t, o)
	c.Hello.Methods = []string{"health"}
	_, err := c.Do(t.Context(), Cleanup{})
	if e := (*Error)(nil); !errors.As(err, &e) || e.Fault != Unsupported || e.Exit() != ExitRefused || !strings.Contains(err.Error(), "2026.9.6") {
		t.Error(err)
	}
	if _, err := c.Do(t.Context(), Resolve{Key: "k"}); err != nil || <-asked != "sessions.resolve" {
		t.Error(err)
	}
}

func TestAnswersOutOfOrder(t *testing.T) {
	const calls = 50
	var mu sync.Mutex
	var held []message
	o := gatewayThat(t, "/s", func(ctx context.Context, ws *websocket.Conn, m message) {
		mu.Lock()
		defer mu.Unlock()
		held = append(held, m)
		if len(held) < calls {
			return
		}
		say(ctx, ws, message{Type: "res", ID: "999", OK: yes(true)}) // for nobody
		for i := len(held) - 1; i >= 0; i-- {
			say(ctx, ws, message{Type: "event", Event: "tick"})
			say(ctx, ws, message{Type: "invented", ID: held[i].ID})
			for range 2 { // and twice
				say(ctx, ws, message{Type: "res", ID: held[i].ID, OK: yes(true), Payload: held[i].Params})
			}
		}
	})
	c := dial(t, o)
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			got, err := c.Call(t.Context(), "echo", i)
			if err != nil || string(got) != fmt.Sprint(i) {
				t.Errorf("%d: %s, %v", i, got, err)
			}
		})
	}
	within(t, 10*time.Second, "calls", wg.Wait)
}

func TestEvents(t *testing.T) {
	o := gatewayThat(t, "/s", func(ctx context.Context, ws *websocket.Conn, m message) {
		say(ctx, ws, message{Type: "event", Event: "chat", Payload: json.RawMessage(`{"state":"final"}`)})
		say(ctx, ws, message{Type: "event", Event: "invented"})
		say(ctx, ws, message{Type: "res", ID: m.ID, OK: yes(true)})
	})
	var seen []string
	o.Events = func(e Event) { seen = append(seen, e.Name+string(e.Payload)) }
	c := dial(t, o)
	if got, err := c.Call(t.Context(), "x", nil); err != nil || got != nil {
		t.Errorf("%s, %v", got, err)
	}
	c.Close()
	if strings.Join(seen, " ") != `chat{"state":"final"} invented` {
		t.Error(seen)
	}
}

// However a call ends without an answer, the request is counted as sent and
// not sent again.
func TestSentAndLost(t *testing.T) {
	end := func(code websocket.StatusCode, reason string) func(context.Context, *websocket.Conn, message) {
		return func(_ context.Context, ws *websocket.Conn, _ message) { _ = ws.Close(code, reason) }
	}
	for name, c := range map[string]struct {
		f     func(ctx context.Context, ws *websocket.Conn, m message)
		fault Fault
		code  int
		says  string
	}{
		"1000":    {end(1000, ""), HungUp, 1000, "normal end"},
		"1001":    {end(1001, ""), HungUp, 1001, "going away"},
		"1002":    {end(1002, ""), HungUp, 1002, "protocol mismatch"},
		"1008":    {end(1008, "slow consumer"), HungUp, 1008, "slow consumer"},
		"1009":    {end(1009, ""), HungUp, 1009, "frame too big"},
		"1011":    {end(1011, ""), HungUp, 1011, "internal error"},
		"1012":    {end(1012, "service restart"), HungUp, 1012, "restart"},
		"1013":    {end(1013, "gateway starting"), HungUp, 1013, "gateway starting"},
		"4001":    {end(4001, "gateway auth changed"), HungUp, 4001, "gateway auth changed"},
		"4999":    {end(4999, ""), HungUp, 4999, "code 4999"},
		"cut":     {func(_ context.Context, ws *websocket.Conn, _ message) { _ = ws.CloseNow() }, HungUp, 0, "closed the connection"},
		"silence": {func(context.Context, *websocket.Conn, message) {}, Silent, 0, "no answer in time"},
		"garbage": {func(ctx context.Context, ws *websocket.Conn, _ message) {
			_ = ws.Write(ctx, websocket.MessageText, []byte("[1,"))
		}, Strange, 0, "not answer as a gateway"},
		"binary": {func(ctx context.Context, ws *websocket.Conn, _ message) {
			_ = ws.Write(ctx, websocket.MessageBinary, []byte("\x00"))
		}, Strange, 0, "not answer as a gateway"},
		"30 MB": {func(ctx context.Context, ws *websocket.Conn, m message) {
			say(ctx, ws, message{Type: "res", ID: m.ID, OK: yes(true), Payload: huge(30 << 20)})
		}, Oversized, 0, "too large"},
		"20 MB": {func(ctx context.Context, ws *websocket.Conn, m message) {
			say(ctx, ws, message{Type: "res", ID: m.ID, OK: yes(true), Payload: huge(20 << 20)})
		}, Oversized, 0, "too large"},
		"its echo": {end(1008, "bad token "+string(testToken)), HungUp, 1008, "bad token [secret]"},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			o := gatewayThat(t, "/s", func(ctx context.Context, ws *websocket.Conn, m message) {
				requests.Add(1)
				c.f(ctx, ws, m)
			})
			conn := dial(t, o)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if name != "silence" {
				ctx, cancel = context.WithTimeout(t.Context(), 8*time.Second)
			}
			defer cancel()
			within(t, 10*time.Second, name, func() {
				_, err := conn.Do(ctx, Cleanup{})
				var e *Error
				if !errors.As(err, &e) || e.Fault != c.fault || e.Close != c.code || !e.Sent || e.Exit() == "" ||
					!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "not known whether") || strings.Contains(err.Error(), string(testToken)) {
					t.Errorf("%v\n%+v", err, e)
				}
			})
			if n := requests.Load(); n != 1 {
				t.Errorf("sent %d times", n)
			}
			if name == "silence" {
				return
			}
			<-conn.Done()
			if conn.Err() == nil {
				t.Error("the end is not explained")
			}
			_, err := conn.Do(ctx, Cleanup{}) // on a dead connection nothing is sent
			if e := (*Error)(nil); !errors.As(err, &e) || e.Sent {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

func huge(n int) json.RawMessage {
	return json.RawMessage(`"` + strings.Repeat("x", n) + `"`)
}

func TestNotSent(t *testing.T) {
	var called atomic.Bool
	o := gatewayThat(t, "/s", func(context.Context, *websocket.Conn, message) { called.Store(true) })
	c := dial(t, o)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"canceled":    second(c.Call(over, "x", nil)),
		"not Unicode": second(c.Do(t.Context(), Delete{Key: "agent:main:\xed\xa0\x80"})),
		"too large":   second(c.Call(t.Context(), "x", huge(26<<20))),
		"no JSON":     second(c.Call(t.Context(), "x", make(chan int))),
	} {
		var e *Error
		if !errors.As(err, &e) || e.Sent || called.Load() {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := encode("1", "x", `a backslash \ufffd and a real �`); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

// What a listener may do instead of being a gateway.
func TestOtherListeners(t *testing.T) {
	upgraded := func(f func(ctx context.Context, ws *websocket.Conn)) func(*testing.T) Options {
		return func(t *testing.T) Options { return listen(t, f) }
	}
	web := func(status int, header, value string) func(*testing.T) Options {
		return func(t *testing.T) Options {
			return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set(header, value)
				w.WriteHeader(status)
				_, _ = io.WriteString(w, strings.Repeat("<html>", 1000))
			}))
		}
	}
	raw := func(f func(net.Conn)) func(*testing.T) Options {
		return func(t *testing.T) Options { return tcp(t, f) }
	}
	text := func(s string) func(*testing.T) Options {
		return upgraded(func(ctx context.Context, ws *websocket.Conn) {
			_ = ws.Write(ctx, websocket.MessageText, []byte(s))
			_, _, _ = ws.Read(ctx)
		})
	}
	after := func(answer string) func(*testing.T) Options {
		return upgraded(func(ctx context.Context, ws *websocket.Conn) {
			_ = ws.Write(ctx, websocket.MessageText, []byte(challenge))
			_, _, _ = ws.Read(ctx)
			_ = ws.Write(ctx, websocket.MessageText, []byte(answer))
			_, _, _ = ws.Read(ctx)
		})
	}
	for name, c := range map[string]struct {
		make  func(*testing.T) Options
		fault Fault
	}{
		"refuses":              {func(t *testing.T) Options { return closedPort(t) }, NoListener},
		"accepts and hangs":    {raw(func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), Silent},
		"accepts and closes":   {raw(func(net.Conn) {}), HungUp},
		"resets":               {raw(func(c net.Conn) { _, _ = c.Read(make([]byte, 1)); _ = c.(*net.TCPConn).SetLinger(0) }), HungUp},
		"speaks first":         {raw(func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-x\r\n"); _, _ = io.Copy(io.Discard, c) }), Strange},
		"endless header":       {raw(func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 101 x\r\nA: "); forever(c) }), Strange},
		"a web page":           {web(200, "A", "b"), Strange},
		"not found":            {web(404, "A", "b"), Strange},
		"elsewhere":            {web(302, "Location", "http://127.0.0.1:1/"), Strange},
		"starting":             {web(503, "A", "b"), Starting},
		"upgrades and hangs":   {upgraded(func(ctx context.Context, ws *websocket.Conn) { _, _, _ = ws.Read(ctx) }), Silent},
		"upgrades and closes":  {upgraded(func(context.Context, *websocket.Conn) {}), HungUp},
		"1013 again and again": {upgraded(func(_ context.Context, ws *websocket.Conn) { _ = ws.Close(1013, "gateway starting") }), Starting},
		"garbage":              {text("hello"), Strange},
		"an empty frame":       {text(""), Strange},
		"an array":             {text("[]"), Strange},
		"deep":                 {text(strings.Repeat(`{"type":`, 100000)), Strange},
		"5 MB":                 {text(`{"type":"event","event":"connect.challenge","payload":"` + strings.Repeat("x", 5<<20) + `"}`), Oversized},
		"no challenge":         {text(`{"type":"event","event":"tick"}`), Silent},
		"hangs after connect":  {after(`{"type":"event","event":"tick"}`), Silent},
		"another answer":       {after(`{"type":"res","id":"77","ok":true}`), Silent},
		"an empty hello":       {after(`{"type":"res","id":"1","ok":true}`), Strange},
		"another protocol":     {after(`{"type":"res","id":"1","ok":true,"payload":{"type":"hello-ok","protocol":5}}`), Strange},
		"no reason":            {after(`{"type":"res","id":"1","ok":false}`), Denied},
		"an odd error":         {after(`{"type":"res","id":"1","ok":false,"error":[1]}`), Denied},
		"not ready":            {after(`{"type":"res","id":"1","ok":false,"error":{"code":"UNAVAILABLE","details":{"reason":"startup-sidecars"},"retryAfterMs":1e300}}`), Starting},
		"floods": {upgraded(func(ctx context.Context, ws *websocket.Conn) {
			for ws.Write(ctx, websocket.MessageText, []byte(`{"type":"event","event":"tick"}`)) == nil {
			}
		}), Silent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := c.make(t)
			o.Budget = 700 * time.Millisecond
			within(t, 15*time.Second, name, func() {
				_, err := Dial(t.Context(), o)
				var e *Error
				if !errors.As(err, &e) || e.Fault != c.fault || e.Sent || e.Host == "" || strings.Contains(err.Error(), string(testToken)) {
					t.Errorf("%v\n%+v", err, e)
				}
			})
		})
	}
}

func forever(w io.Writer) {
	for {
		if _, err := io.WriteString(w, strings.Repeat("x", 4096)); err != nil {
			return
		}
	}
}

func TestStartingThenReady(t *testing.T) {
	var tries atomic.Int32
	hello := greeting(t, "2026.7.35")
	o := listen(t, func(ctx context.Context, ws *websocket.Conn) {
		try := tries.Add(1)
		if try == 1 {
			_ = ws.Close(1013, "gateway starting")
			return
		}
		if try == 2 {
			_ = ws.Write(ctx, websocket.MessageText, []byte(challenge))
			_, _, _ = ws.Read(ctx)
			_ = ws.Write(ctx, websocket.MessageText, []byte(`{"type":"res","id":"1","ok":false,"error":{"code":"UNAVAILABLE","retryAfterMs":1}}`))
			return
		}
		greet(ctx, ws, hello)
		_, _, _ = ws.Read(ctx)
	})
	if c := dial(t, o); c.Hello.Version != "2026.7.35" || tries.Load() != 3 {
		t.Errorf("%d tries", tries.Load())
	}
}

func TestCanceled(t *testing.T) {
	o := tcp(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	within(t, 2*time.Second, "dial", func() {
		_, err := Dial(ctx, o)
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// A gateway that stops ticking is given up, also by a call without a deadline.
func TestNoSignOfLife(t *testing.T) {
	var whole map[string]any
	_ = json.Unmarshal(greeting(t, "2026.9.6"), &whole)
	whole["policy"].(map[string]any)["tickIntervalMs"] = 1
	hello, _ := json.Marshal(whole)
	o := listen(t, func(ctx context.Context, ws *websocket.Conn) {
		greet(ctx, ws, hello)
		for {
			if _, _, err := ws.Read(ctx); err != nil {
				return
			}
		}
	})
	conn := dial(t, o)
	within(t, 20*time.Second, "call", func() {
		_, err := conn.Call(t.Context(), "x", nil)
		if e := (*Error)(nil); !errors.As(err, &e) || e.Fault != Silent || !e.Sent || !strings.Contains(err.Error(), "sign of life") {
			t.Error(err)
		}
	})
}

// A gateway that stops reading does not hold a call beyond its time.
func TestRequestThatIsNotTaken(t *testing.T) {
	hello := greeting(t, "2026.9.6")
	stop := make(chan struct{})
	defer close(stop)
	o := listen(t, func(ctx context.Context, ws *websocket.Conn) {
		if greet(ctx, ws, hello) {
			<-stop
		}
	})
	c := dial(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	within(t, 10*time.Second, "call", func() {
		_, err := c.Call(ctx, "x", huge(24<<20))
		if e := (*Error)(nil); !errors.As(err, &e) || e.Fault != Silent || !e.Sent {
			t.Errorf("%v", err)
		}
	})
	within(t, 5*time.Second, "close", func() { c.Close() })
}
