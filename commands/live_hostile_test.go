package commands

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// The commands that speak to a gateway, each with words that it takes.
var liveCommands = [][]string{
	{"gateway", "ping"},
	{"sessions", "send", "agent:ops:main", "x", "--wait", "0"},
	{"sessions", "spawn", "x"},
	{"sessions", "yield", "--wait", "500ms"},
	{"sessions", "abort", "agent:ops:main"},
	{"subagents", "list"},
	{"subagents", "cancel", "x"},
	{"status", "--live"},
}

// A server that is none, or a bad one, costs a command no more than its time, and little memory; it says what it saw.
func TestLiveHostile(t *testing.T) {
	big := bytes.Repeat([]byte(" "), 1<<20)
	hello := func(p *puppet, protocol int) []byte {
		h := p.hello([]string{"operator.admin"})
		h["protocol"] = protocol
		raw, _ := json.Marshal(map[string]any{"type": "res", "id": "1", "ok": true, "payload": h})
		return raw
	}
	challenge := []byte(`{"type":"event","event":"connect.challenge","payload":{"nonce":"n","ts":1}}`)
	text := websocket.MessageText
	// stream writes one message of 30 MB.
	stream := func(ctx context.Context, ws *websocket.Conn, head string) {
		w, err := ws.Writer(ctx, text)
		for n := 0; err == nil && n < 30; n++ {
			piece := big
			if n == 0 {
				piece = []byte(head)
			}
			_, err = w.Write(piece)
		}
		if err == nil {
			_ = w.Close()
		}
	}
	greet := func(ctx context.Context, ws *websocket.Conn, p *puppet) bool {
		_ = ws.Write(ctx, text, challenge)
		if _, _, err := ws.Read(ctx); err != nil {
			return false
		}
		return ws.Write(ctx, text, hello(p, 4)) == nil
	}
	for _, c := range []struct {
		name string
		raw  func(net.Conn)                                           // speaks TCP
		ws   func(ctx context.Context, ws *websocket.Conn, p *puppet) // speaks WebSocket
		post func(w http.ResponseWriter, r *http.Request)             // answers tools
		exit int
		says string
	}{
		{name: "accepts and is silent", raw: func(c net.Conn) { time.Sleep(5 * time.Second) }, exit: ExitBusy, says: "no answer in time"},
		{name: "hangs up", raw: func(c net.Conn) {}, exit: ExitBusy, says: "it closed the connection"},
		{name: "is a mail server", raw: func(c net.Conn) { fmt.Fprint(c, "220 mail.example ESMTP\r\n"); time.Sleep(time.Second) }, exit: ExitRefused, says: "does not answer as a gateway does"},
		{name: "is a web server", raw: func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			fmt.Fprint(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
			time.Sleep(time.Second)
		}, exit: ExitRefused, says: "HTTP status 404"},
		{name: "floods headers", raw: func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\n")
			for {
				if _, err := fmt.Fprintf(c, "X-Filler: %s\r\n", big[:1000]); err != nil {
					return
				}
			}
		}, exit: ExitRefused, says: "gateway"},
		{name: "sends half a frame", ws: nil, raw: func(c net.Conn) {
			// A whole handshake of HTTP, then a frame that promises more than comes.
			r := make([]byte, 4096)
			n, _ := c.Read(r)
			key := ""
			for _, line := range strings.Split(string(r[:n]), "\r\n") {
				if name, value, ok := strings.Cut(line, ": "); ok && strings.EqualFold(name, "Sec-WebSocket-Key") {
					key = value
				}
			}
			fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", acceptKey(key))
			frame := append([]byte{0x81, 126}, binary.BigEndian.AppendUint16(nil, 1000)...)
			_, _ = c.Write(append(frame, challenge[:20]...))
			time.Sleep(5 * time.Second)
		}, exit: ExitBusy, says: "no answer in time"},
		{name: "sends no JSON", ws: func(ctx context.Context, ws *websocket.Conn, p *puppet) {
			_ = ws.Write(ctx, text, []byte("{"))
			_, _, _ = ws.Read(ctx)
		}, exit: ExitRefused, says: "no JSON object of the protocol"},
		{name: "never greets, and chatters", ws: func(ctx context.Context, ws *websocket.Conn, p *puppet) {
			for ws.Write(ctx, text, append(challenge[:len(challenge):len(challenge)], big[:100000]...)) == nil {
			}
		}, exit: ExitBusy, says: ""},
		{name: "speaks another protocol", ws: func(ctx context.Context, ws *websocket.Conn, p *puppet) {
			_ = ws.Write(ctx, text, challenge)
			_, _, _ = ws.Read(ctx)
			_ = ws.Write(ctx, text, hello(p, 5))
			_, _, _ = ws.Read(ctx)
		}, exit: ExitRefused, says: "another protocol"},
		{name: "greets with 30 MB", ws: func(ctx context.Context, ws *websocket.Conn, p *puppet) { stream(ctx, ws, `{"type":"event",`) }, exit: -1, says: ""},
		{name: "answers calls with 30 MB", ws: func(ctx context.Context, ws *websocket.Conn, p *puppet) {
			if greet(ctx, ws, p) {
				_, _, _ = ws.Read(ctx)
				stream(ctx, ws, `{"type":"res","id":"2","ok":true,"payload":{`)
			}
		}, exit: -1, says: ""},
		{name: "answers no call, and floods with events", ws: func(ctx context.Context, ws *websocket.Conn, p *puppet) {
			if greet(ctx, ws, p) {
				for ws.Write(ctx, text, append([]byte(`{"type":"event","event":"agent","payload":{"x":"`), append(big[:1000:1000], `"}}`...)...)) == nil {
				}
			}
		}, post: func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, exit: ExitBusy, says: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &puppet{t: t, release: "2026.7.35", state: t.TempDir()}
			p.port = hostileAt(t, c.raw, func(ctx context.Context, ws *websocket.Conn) { c.ws(ctx, ws, p) }, c.post)
			configure(t, p.state, p.port)
			for _, command := range liveCommands {
				if len(command) > 1 && command[1] == "ping" && strings.HasPrefix(c.name, "answers") {
					continue // it asks for nothing
				}
				began := time.Now()
				a := p.oc(append([]string{"--gateway-timeout", "700ms", "--json"}, command...)...)
				if spent := time.Since(began); spent > 10*time.Second {
					t.Errorf("%v: it took %v", command, spent)
				}
				if a.exit == 0 || a.exit == ExitUsage || a.exit == ExitInterrupted || c.exit >= 0 && a.exit != c.exit || !strings.Contains(a.errout, c.says) {
					t.Errorf("%v: exit %d, want %d with %q: %s", command, a.exit, c.exit, c.says, a.errout)
				}
				if doc := a.doc(t); dig(doc, "error") == nil && dig(doc, "live", "error") == nil {
					t.Errorf("%v: no error in %s", command, a.out)
				}
			}
		})
	}
}

// Answers of tools that no gateway gives.
func TestLiveHostileTools(t *testing.T) {
	big := bytes.Repeat([]byte(" "), 1<<20)
	for name, c := range map[string]struct {
		post func(w http.ResponseWriter, r *http.Request)
		exit int
		says string
	}{
		"silent":   {func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, ExitBusy, "it is not known whether it was carried out"},
		"hangs up": {func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, ExitBusy, "it is not known whether it was carried out"},
		"30 MB": {func(w http.ResponseWriter, r *http.Request) {
			for range 30 {
				_, _ = w.Write(big)
			}
		}, ExitBusy, "larger than oc reads"},
		"cut":        {func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"ok":true,"result":{"details":{`) }, ExitRefused, "does not answer as a gateway does"},
		"a page":     {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500); fmt.Fprint(w, "<html>") }, ExitRefused, "Internal Server Error"},
		"no object":  {func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"ok":true,"result":{"details":[1]}}`) }, ExitFailed, "no JSON object"},
		"no members": {func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"ok":true,"result":{"details":{}}}`) }, ExitFailed, "it gave no reason"},
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusTemporaryRedirect)
		}, ExitRefused, "does not answer as a gateway does"},
		"blocked": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(403)
			fmt.Fprint(w, `{"ok":false,"error":{"type":"tool_call_blocked","message":"a hook says no"}}`)
		}, ExitRefused, "a hook says no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := beside(t, "2026.9.6")
			var asked atomic.Int32
			p.port = hostileAt(t, nil, p.converse, func(w http.ResponseWriter, r *http.Request) { asked.Add(1); c.post(w, r) })
			configure(t, p.state, p.port)
			for _, command := range [][]string{{"sessions", "send", "agent:ops:main", "x", "--wait", "0"}, {"sessions", "send", "agent:ops:main", "x", "--wait", "200ms", "--json"}} {
				asked.Store(0)
				a := p.oc(append([]string{"--gateway-timeout", "500ms"}, command...)...)
				ends(t, a, c.exit, c.says)
				if asked.Load() != 1 {
					t.Errorf("it was asked %d times", asked.Load())
				}
			}
		})
	}
}

// acceptKey is what a WebSocket server answers to a client's key (RFC 6455).
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// hostileAt serves a gateway's port in one of three ways.
func hostileAt(t *testing.T, raw func(net.Conn), ws func(context.Context, *websocket.Conn), post func(http.ResponseWriter, *http.Request)) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if raw != nil {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					raw(c)
				}()
			}
		}()
		return l.Addr().(*net.TCPAddr).Port
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/tools/invoke" && post == nil:
			http.NotFound(w, r)
			return
		case r.URL.Path == "/tools/invoke":
			post(w, r)
			return
		}
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		ws(r.Context(), c)
	})}
	go server.Serve(l) //nolint:errcheck // closed below
	t.Cleanup(func() { server.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// What a hostile answer may cost: a read of it is cut off before it is large.
func TestLiveHostileMemory(t *testing.T) {
	p := beside(t, "2026.7.35")
	piece := bytes.Repeat([]byte(" "), 1<<16)
	p.port = hostileAt(t, nil, func(ctx context.Context, ws *websocket.Conn) {
		_ = ws.Write(ctx, websocket.MessageText, []byte(`{"type":"event","event":"connect.challenge","payload":{"nonce":"n","ts":1}}`))
		_, _, _ = ws.Read(ctx)
		raw, _ := json.Marshal(map[string]any{"type": "res", "id": "1", "ok": true, "payload": p.hello([]string{"operator.admin"})})
		_ = ws.Write(ctx, websocket.MessageText, raw)
		w, err := ws.Writer(ctx, websocket.MessageText)
		for n := 0; err == nil && n < 16*200; n++ { // 200 MB
			_, err = w.Write(piece)
		}
	}, nil)
	configure(t, p.state, p.port)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	a := p.oc("sessions", "abort", "agent:ops:main")
	runtime.ReadMemStats(&after)
	if a.exit == 0 {
		t.Error(a)
	}
	if grew := after.TotalAlloc - before.TotalAlloc; grew > 120<<20 {
		t.Errorf("%d MiB were allocated for it", grew>>20)
	}
}
