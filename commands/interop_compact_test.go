//go:build interop && linux

package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A session that oc compacted, offline and by lines, is opened by the real OpenClaw, which sees what oc says that it sees and goes on
// with it.
func TestInteropCompact(t *testing.T) {
	const key = "agent:main:explicit:long"
	lines := invoices(40)
	g := startGateway(t, "2026.7.35", func(state string) {
		made, sessions, _ := longTalk(t, `{}`, lines...)
		text, err := os.ReadFile(filepath.Join(sessions, longTalkID+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(state, "agents", "main", "sessions")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		now := time.Now().UnixMilli()
		for name, text := range map[string]string{
			longTalkID + ".jsonl": string(text),
			"sessions.json":       fmt.Sprintf(`{%q: {"sessionId": %q, "updatedAt": %d, "sessionStartedAt": %d, "lastInteractionAt": %d}}`, key, longTalkID, now, now, now),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		calm(t, dir)
		_ = made
		env := map[string]string{"HOME": filepath.Dir(state), "TMPDIR": t.TempDir(), "OPENCLAW_GATEWAY_PORT": "1"}
		if a := ocRun(t, state, env, "--state-dir", state, "sessions", "compact", key, "--keep-recent-tokens", "400"); a.exit != ExitDone {
			t.Fatalf("exit %d: %s%s", a.exit, a.errout, a.out)
		}
	})
	if g == nil {
		return
	}
	twin := g.conn(t, nil)
	call := func(method string, params map[string]any) string {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(500 * time.Millisecond) {
			raw, err := twin.Call(t.Context(), method, params)
			if err == nil {
				return string(raw)
			}
			// A gateway that answers may still be starting its parts.
			if !strings.Contains(err.Error(), "UNAVAILABLE") || time.Now().After(end) {
				t.Fatalf("%s: %v", method, err)
			}
		}
	}
	history := call("chat.history", map[string]any{"sessionKey": key, "limit": 200})
	if !strings.Contains(history, "invoice 39 of") {
		t.Errorf("the kept messages are not in the history: %.3000s", history)
	}
	// The conversation goes on, and the model gets the summary and what was kept.
	call("chat.send", map[string]any{"sessionKey": key, "message": "and now?", "idempotencyKey": "one", "timeoutMs": 60_000})
	path := filepath.Join(g.state, "agents", "main", "sessions", longTalkID+".jsonl")
	deadline := time.Now().Add(2 * time.Minute)
	for {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Split(strings.TrimSpace(string(text)), "\n")
		var last struct {
			ParentID string
			Message  struct{ Role, Provider, StopReason string }
		}
		if json.Unmarshal([]byte(all[len(all)-1]), &last) == nil && last.Message.Role == "assistant" && last.Message.Provider == "fake" {
			if last.Message.StopReason != "stop" || strings.Count(string(text), `"type":"compaction"`) != 1 {
				t.Errorf("the answer: %s", all[len(all)-1])
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no answer came: %s", all[len(all)-1])
		}
		time.Sleep(200 * time.Millisecond)
	}
	asked, _ := lastAsked.Load().(string)
	for _, want := range []string{"The conversation began with", "## Exact identifiers", "invoice 39 of", "and now?"} {
		if !strings.Contains(asked, want) {
			t.Errorf("the model did not get %q", want)
		}
	}
	if strings.Contains(asked, "invoice 10 of") && !strings.Contains(asked, "## Decisions") {
		t.Error("the model got what was summarised")
	}
}
