//go:build openclaw

package awareness

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRealGateway starts a real gateway on a copy of a state directory that oc has written to, and asks it. It wants
//
//	OC_TEST_OPENCLAW   an installation of 2026.9.6
//	OC_TEST_GWCTL      the script that starts and stops one: start INSTALL ROOT PORT, stop ROOT
//	OC_TEST_STATE      a state directory that such a gateway left, with a session agent:main:goals
func TestRealGateway(t *testing.T) {
	const port, goals = "19377", "agent:main:goals"
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "state"), os.DirFS(os.Getenv("OC_TEST_STATE"))); err != nil {
		t.Fatal(err)
	}
	path := Path(filepath.Join(root, "state"))
	world := World{Store: func(string) string { return filepath.Join(root, "state/agents/main/agent/openclaw-agent.sqlite") }}
	write := func(summary string) (seq int64) {
		o := Options{Now: time.Now().UnixMilli(), Wait: 5 * time.Second, World: world}
		err := Update(context.Background(), path, o, func(e *Edit) error {
			if _, err := e.Watch(boss, goals, ""); err != nil {
				return err
			}
			a, err := e.Append(Entry{SessionKey: goals, AgentID: "main", Kind: GoalChanged, ActorType: "agent", ActorID: "oc", Summary: summary})
			seq = a.Event.Sequence
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return seq
	}
	first := write("before it started")
	control := func(args ...string) {
		cmd := exec.Command(os.Getenv("OC_TEST_GWCTL"), args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	control("start", os.Getenv("OC_TEST_OPENCLAW"), root, port)
	defer control("stop", root)
	token, err := os.ReadFile(filepath.Join(root, "token"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(after int64) (version int64, summaries []string) {
		body, _ := json.Marshal(map[string]any{"tool": "session_status", "sessionKey": boss, "args": map[string]any{"sessionKey": goals, "changesSince": after}})
		req, _ := http.NewRequest(http.MethodPost, "http://127.0.0.1:"+port+"/tools/invoke", bytes.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, _ := io.ReadAll(res.Body)
		var doc struct {
			Result struct {
				Details struct {
					StateVersion int64
					StateChanges struct{ Events []struct{ Summary string } }
				}
			}
		}
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		for _, e := range doc.Result.Details.StateChanges.Events {
			summaries = append(summaries, e.Summary)
		}
		return doc.Result.Details.StateVersion, summaries
	}
	if v, got := ask(first - 1); v != first || strings.Join(got, ";") != "before it started" {
		t.Errorf("version %d of %d: %v", v, first, got)
	}
	second := write("beside it")
	if v, got := ask(first); v != second || strings.Join(got, ";") != "beside it" {
		t.Errorf("version %d of %d: %v", v, second, got)
	}
}
