//go:build interop && linux

package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Sessions that oc compacted offline, in the transcript and into a new one, and one whose memory it flushed: the real OpenClaw opens them,
// its history has what oc kept, its model gets the summary and what was kept, and the conversation goes on in the same transcript.
func TestInteropCompact(t *testing.T) {
	lines := invoices(40)
	sessions := []struct {
		key, id string
		args    []string
	}{
		{"agent:main:explicit:long", longTalkID, []string{"compact", "--keep-recent-tokens", "400"}},
		{"agent:main:explicit:next", strings.Replace(longTalkID, "1111", "2222", 1), []string{"compact", "--keep-recent-tokens", "400", "--successor"}},
		{"agent:main:explicit:noted", strings.Replace(longTalkID, "1111", "3333", 1), []string{"flush", "--provider", "extract"}},
	}
	g := startGateway(t, "2026.7.35", func(state string) {
		_, made, _ := longTalk(t, `{}`, lines...)
		text, err := os.ReadFile(filepath.Join(made, longTalkID+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(state, "agents", "main", "sessions")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		now := time.Now().UnixMilli()
		files, rows := map[string]string{}, []string{}
		for _, s := range sessions {
			files[s.id+".jsonl"] = strings.ReplaceAll(string(text), longTalkID, s.id)
			rows = append(rows, fmt.Sprintf(`%q: {"sessionId": %q, "updatedAt": %d, "sessionStartedAt": %d, "lastInteractionAt": %d}`, s.key, s.id, now, now, now))
		}
		files["sessions.json"] = "{" + strings.Join(rows, ",") + "}"
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		env := map[string]string{"HOME": filepath.Dir(state), "TMPDIR": t.TempDir(), "OPENCLAW_GATEWAY_PORT": "1"}
		for _, s := range sessions {
			calm(t, dir)
			args := append([]string{"--state-dir", state, "sessions", s.args[0], s.key}, s.args[1:]...)
			if s.args[0] == "flush" {
				args = append(args, "--workspace", filepath.Join(filepath.Dir(state), "ws"))
			}
			if a := ocRun(t, state, env, args...); a.exit != ExitDone {
				t.Fatalf("%v: exit %d: %s%s", s.args, a.exit, a.errout, a.out)
			}
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
	rows := func() (all map[string]map[string]any) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(g.state, "agents", "main", "sessions", "sessions.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	notes, err := filepath.Glob(filepath.Join(g.root, "ws", "memory", "*.md"))
	if err != nil || len(notes) != 1 {
		t.Fatalf("the notes: %v, %v", notes, err)
	}
	if rows()["agent:main:explicit:noted"]["memoryFlushAt"] == nil {
		t.Errorf("the row is not marked as flushed: %v", rows())
	}
	for _, s := range sessions {
		t.Run(strings.Join(s.args, " "), func(t *testing.T) {
			path, compactions := filepath.Join(g.state, "agents", "main", "sessions", s.id+".jsonl"), 1
			row := rows()[s.key]
			switch s.args[0] {
			case "flush":
				compactions = 0
			default:
				if file, _ := row["sessionFile"].(string); file != "" {
					path = file
				}
			}
			if slices.Contains(s.args, "--successor") == (row["sessionId"] == s.id) {
				t.Errorf("the row has the id %v", row["sessionId"])
			}
			history := call("chat.history", map[string]any{"sessionKey": s.key, "limit": 200})
			if !strings.Contains(history, "invoice 39 of") {
				t.Errorf("the kept messages are not in the history: %.3000s", history)
			}
			// The conversation goes on, and the model gets the summary and what was kept.
			call("chat.send", map[string]any{"sessionKey": s.key, "message": "and now, " + s.id + "?", "idempotencyKey": s.id, "timeoutMs": 60_000})
			for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				all := strings.Split(strings.TrimSpace(string(text)), "\n")
				var last struct {
					Message struct{ Role, Provider, StopReason string }
				}
				if json.Unmarshal([]byte(all[len(all)-1]), &last) == nil && last.Message.Role == "assistant" && last.Message.Provider == "fake" {
					if last.Message.StopReason != "stop" || strings.Count(string(text), `"type":"compaction"`) != compactions {
						t.Errorf("the answer: %s", all[len(all)-1])
					}
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("no answer came: %s", all[len(all)-1])
				}
			}
			asked, _ := lastAsked.Load().(string)
			want := []string{"invoice 39 of", "and now, " + s.id + "?"}
			if compactions > 0 {
				want = append(want, "The conversation began with", "## Exact identifiers")
			} else {
				want = append(want, "invoice 0 of")
			}
			for _, want := range want {
				if !strings.Contains(asked, want) {
					t.Errorf("the model did not get %q", want)
				}
			}
			// What was summarised stands in quotes only: its calls and results are not there.
			if compactions > 0 && strings.Contains(asked, `"c3"`) {
				t.Error("the model got what was summarised")
			}
			if now := rows()[s.key]; now["sessionId"] != row["sessionId"] || now["memoryFlushAt"] != row["memoryFlushAt"] {
				t.Errorf("the row was %v and is %v", row, now)
			}
		})
	}
	if text, err := os.ReadFile(notes[0]); err != nil || !strings.Contains(string(text), "## Decisions") {
		t.Errorf("the notes: %v %s", err, text)
	}
}
