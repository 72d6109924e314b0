package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The tools as the real gateways answered over HTTP.
func TestRecordedTools(t *testing.T) {
	for name, c := range map[string]struct {
		tool  Tool
		fault Fault
		says  string
	}{
		"http-sessions_spawn":   {Tool{Name: "sessions_spawn", Key: "agent:main:main", Args: map[string]any{"task": "Second helper [[say:second helper finished]]", "label": "helper two"}}, "", `"status": "accepted"`},
		"http-subagents-list":   {Tool{Name: "subagents", Key: "agent:main:main", Args: map[string]any{"action": "list"}}, "", `"active"`},
		"http-unknown-tool":     {Tool{Name: "no_such_tool"}, ToolDenied, "gateway.tools.allow"},
		"http-cron-tool-denied": {Tool{Name: "cron", Args: map[string]any{"action": "list"}}, ToolDenied, "name it in gateway.tools.allow"},
		"http-bad-auth":         {Tool{Name: "sessions_list"}, Denied, "Unauthorized"},
		"http-wrong-method":     {Tool{Name: "x"}, Strange, "Method Not Allowed"},
	} {
		for _, release := range releases {
			lines := recording(t, release, name)
			asked := lines[0].HTTP.Body
			answer := lines[1].HTTP
			o := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if r.URL.Path != "/tools/invoke" || r.Method != "POST" || r.Header.Get("Authorization") != "Bearer "+string(testToken) || (string(asked) != "null" && !alike(body, asked)) {
					t.Errorf("%s %s %v\n%s, recorded %s", r.Method, r.URL, r.Header, body, asked)
				}
				w.Header().Set("Content-Type", answer.ContentType)
				w.WriteHeader(answer.Status)
				text := []byte(answer.Body)
				if s := ""; json.Unmarshal(text, &s) == nil {
					text = []byte(s)
				}
				_, _ = w.Write(text)
			}))
			got, err := InvokeTool(t.Context(), o, c.tool)
			if c.fault == "" {
				if err != nil || !strings.Contains(string(got), c.says) && !strings.Contains(string(got), strings.ReplaceAll(c.says, ": ", ":")) {
					t.Errorf("%s %s: %s, %v", release, name, got, err)
				}
				continue
			}
			var e *Error
			if !errors.As(err, &e) || e.Fault != c.fault || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s %s: %v", release, name, err)
			}
		}
	}
}

func TestToolLost(t *testing.T) {
	for name, c := range map[string]struct {
		make  func() Options
		fault Fault
		sent  bool
	}{
		"nothing listens": {func() Options { return closedPort(t) }, NoListener, false},
		"closes":          {func() Options { return tcp(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1<<16)) }) }, HungUp, true},
		"hangs":           {func() Options { return tcp(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }) }, Silent, true},
		"half an answer": {func() Options {
			return tcp(t, func(c net.Conn) {
				_, _ = c.Read(make([]byte, 1<<16))
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"ok\":")
			})
		}, HungUp, true},
		"garbage": {func() Options {
			return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{") }))
		}, Strange, true},
		"endless": {func() Options {
			return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { forever(w) }))
		}, Oversized, true},
		"elsewhere": {func() Options {
			return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
			}))
		}, Strange, true},
		"no credentials": {func() Options {
			o := closedPort(t)
			o.Credentials = Credentials{Problem: "no token was found"}
			return o
		}, NoCredentials, false},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		within(t, 10*time.Second, name, func() {
			_, err := InvokeTool(ctx, c.make(), Tool{Name: "sessions_send"})
			var e *Error
			if !errors.As(err, &e) || e.Fault != c.fault || e.Sent != c.sent || strings.Contains(err.Error(), string(testToken)) {
				t.Errorf("%s: %v\n%+v", name, err, e)
			}
		})
		cancel()
	}
}

func TestFromAgentShell(t *testing.T) {
	shell, sub := vars("OPENCLAW_SHELL", "exec"), vars("OPENCLAW_SUBAGENT_EXEC", "1")
	for _, r := range []Request{Send{}, ChatSend{}, Tool{Name: "sessions_send"}} {
		if err := FromAgentShell(r, shell); err == nil || !strings.Contains(err.Error(), "use sessions_send") {
			t.Error(err)
		}
		if err := FromAgentShell(r, sub); err == nil || !strings.Contains(err.Error(), "result of its task") {
			t.Error(err)
		}
		if err := FromAgentShell(r, vars()); err != nil {
			t.Error(err)
		}
	}
	for _, r := range []Request{Cleanup{}, AbortSession{}, Tool{Name: "sessions_spawn"}} {
		if err := FromAgentShell(r, vars("OPENCLAW_SHELL", "exec", "OPENCLAW_SUBAGENT_EXEC", "1")); err != nil {
			t.Error(err)
		}
	}
}
