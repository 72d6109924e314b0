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

	"oc/fixtures"
)

// A database that oc cleaned, deleted from, archived in, restored, reset and compacted in, took a delete back in and wrote anew is opened by the real
// 2026.9.6 without a word of repair: its CLI and its gateway list the rows that oc lists, it serves the history that oc left, an old conversation
// goes on, and a new one begins.
func TestInteropChangedDatabase(t *testing.T) {
	const group, telegram, scratch, archived, old = "agent:main:telegram:group:-100123", "agent:main:telegram:direct:777", "agent:main:explicit:scratch-1", "agent:main:explicit:archived-1", "agent:main:explicit:old-1"
	keys := func(a answer, raw []byte) (all []string) {
		t.Helper()
		var doc struct{ Sessions []struct{ Key string } }
		if a.out != "" {
			raw = []byte(a.out)
		}
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatalf("%v: %s%s", err, raw, a.errout)
		}
		for _, s := range doc.Sessions {
			all = append(all, s.Key)
		}
		slices.Sort(all)
		return all
	}
	var ours []string
	g := startGateway(t, "2026.9.6", func(state string) {
		config := made[[]byte](t)(os.ReadFile(filepath.Join(state, "openclaw.json")))
		if err := os.RemoveAll(state); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(state, os.DirFS(goldenState(t, "2026.9.6-migrated"))); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(state, "openclaw.json"), config, 0o600); err != nil {
			t.Fatal(err)
		}
		for i, line := range [][]string{
			{"sessions", "cleanup", "--agent", "main", "--kind", "subagent", "--older-than", "20d"},
			{"sessions", "delete", scratch, "--yes"},
			{"sessions", "restore", archived},
			{"sessions", "archive", old},
			{"sessions", "reset", telegram},
			{"sessions", "compact", group, "--keep-recent-tokens", "10"},
			{"sessions", "delete", archived, "--yes"},
			{"undo"},
			{"db", "checkpoint", "--store", fixtures.Database(state, "main")},
			{"db", "vacuum", "--store", fixtures.Database(state, "main")},
		} {
			env := quiet(t, afterMigration+int64(i)*600_000)
			if a := ocRun(t, state, env, append([]string{"--state-dir", state}, line...)...); a.exit != ExitDone {
				t.Fatalf("%v: exit %d: %s%s", line, a.exit, a.out, a.errout)
			}
		}
		ours = keys(ocRun(t, state, quiet(t, time.Now().UnixMilli()), "--state-dir", state, "sessions", "--json", "--limit", "all", "--agent", "main"), nil)
	})
	if g == nil {
		return
	}
	if len(ours) != 10 || slices.Contains(ours, scratch) || !slices.Contains(ours, archived) {
		t.Errorf("oc lists %q", ours)
	}
	c := g.openclaw("sessions", "--json", "--limit", "all", "--agent", "main")
	raw, err := c.Output()
	if err != nil {
		t.Fatalf("openclaw: %v: %s", err, raw)
	}
	if theirs := keys(answer{}, raw); !slices.Equal(ours, theirs) {
		t.Errorf("oc lists\n%q, the real one\n%q", ours, theirs)
	}
	twin := g.conn(t, nil)
	call := func(method string, params map[string]any) string {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(500 * time.Millisecond) {
			raw, err := twin.Call(t.Context(), method, params)
			if err == nil {
				return string(raw)
			}
			if !strings.Contains(err.Error(), "UNAVAILABLE") || time.Now().After(end) {
				t.Fatalf("%s: %v", method, err)
			}
		}
	}
	for _, x := range []struct{ key, says, silent string }{
		{group, "answer 1", ""}, {telegram, "", "user question 0"}, {archived, "user question", ""}, {"agent:main:explicit:new", "", "user question"},
	} {
		history := call("chat.history", map[string]any{"sessionKey": x.key, "limit": 200})
		if !strings.Contains(history, x.says) || x.silent != "" && strings.Contains(history, x.silent) {
			t.Errorf("%s: its history has not %q, or has %q: %.3000s", x.key, x.says, x.silent, history)
		}
	}
	for _, key := range []string{group, telegram, "agent:main:explicit:new"} {
		call("chat.send", map[string]any{"sessionKey": key, "message": "and now, " + key + "?", "idempotencyKey": key, "timeoutMs": 60_000})
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(300 * time.Millisecond) {
			a := ocRun(t, g.state, quiet(t, time.Now().UnixMilli()), "--state-dir", g.state, "sessions", "history", key, "--json")
			_, last, _ := strings.Cut(a.out, "and now, "+key+"?")
			if strings.Contains(last, `"assistant"`) && strings.Contains(last, `"ok"`) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: no answer came: exit %d: %s%.3000s", key, a.exit, a.errout, a.out)
			}
		}
	}
	if asked, _ := lastAsked.Load().(string); !strings.Contains(asked, "and now, agent:main:explicit:new?") {
		t.Errorf("the model was asked %.2000s", asked)
	}
	theirs := call("sessions.list", map[string]any{"agentId": "main", "limit": 1000, "includeUnknown": true, "includeGlobal": true})
	for _, key := range append(ours, "agent:main:explicit:new") {
		own := strings.Contains(key, ":run:") || strings.Contains(key, ":recovered:") // the gateway's list leaves these out, its CLI does not
		if !strings.Contains(theirs, fmt.Sprintf("%q", key)) && key != old && !own {
			t.Errorf("the gateway does not list %s", key)
		}
	}
	said := g.log.String()
	for _, word := range []string{"requires repair", "corrupt", "quarantine", "malformed", "verification failed"} {
		if strings.Contains(strings.ToLower(said), word) {
			t.Errorf("the gateway speaks of %q: %.4000s", word, said)
		}
	}
}
