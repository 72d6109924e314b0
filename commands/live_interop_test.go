//go:build interop && linux

package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"oc/gateway"
	"oc/store/span"
)

// Each live tool beside a real gateway of both releases, with a model that says what the message tells it to. What oc answers is compared
// with what the gateway's own tool or method answers.
func TestInteropLive(t *testing.T) {
	peer := os.Getenv("OC_PEER")
	if peer == "" {
		t.Fatal("OC_PEER names no folder with OpenClaw; run .ci/interop")
	}
	for _, release := range liveReleases {
		t.Run(release, func(t *testing.T) {
			r := realBeside(t, peer, release)
			if r == nil {
				fmt.Printf("NOT COMPARED: the gateway of %s was not ready after two tries\n", release)
				return
			}
			t.Run("ping", r.ping)
			t.Run("send", r.send)
			t.Run("spawn", r.spawn)
			t.Run("abort", r.abort)
			t.Run("shell", r.shell)
		})
	}
}

// liveReal is a gateway that the test started, and its state.
type liveReal struct {
	peer, release, root, state string
	port                       int
	env                        []string
	pid                        int
}

// realBeside starts a gateway; a busy machine may need a second try from an empty state. nil: it was not ready.
func realBeside(t *testing.T, peer, release string) *liveReal {
	t.Helper()
	model := httptest.NewServer(http.HandlerFunc(think))
	t.Cleanup(model.Close)
	for try := 1; try <= 2; try++ {
		r, err := startLive(t, peer, release, model.URL)
		if err == nil {
			return r
		}
		t.Logf("%s: try %d: %v", release, try, err)
	}
	return nil
}

func startLive(t *testing.T, peer, release, model string) (*liveReal, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &liveReal{peer: peer, release: release, root: t.TempDir(), port: l.Addr().(*net.TCPAddr).Port}
	l.Close()
	r.state = filepath.Join(r.root, "state")
	agents := `"list": [{"id": "main", "default": true}, {"id": "ops"}]`
	if release == "2026.9.6" {
		agents = `"entries": {"main": {"default": true}, "ops": {}}`
	}
	text := fmt.Sprintf(`{"gateway": {"mode": "local", "port": %d, "bind": "loopback", "auth": {"mode": "token", "token": %q}, "controlUi": {"enabled": false}, "tools": {"allow": ["sessions_spawn", "sessions_send"]}},
		"agents": {%s, "defaults": {"workspace": %q, "skipBootstrap": true, "heartbeat": {"every": "0m"}, "model": {"primary": "fake/fake-1"}}},
		"models": {"mode": "replace", "providers": {"fake": {"api": "openai-completions", "baseUrl": %q, "apiKey": "none", "models": [{"id": "fake-1", "name": "Fake", "contextWindow": 64000, "maxTokens": 1000, "input": ["text"], "reasoning": false, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}]}}},
		"tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": true, "allow": ["*"]}},
		"discovery": {"mdns": {"mode": "off"}}, "update": {"checkOnStart": false}}`, r.port, liveToken, agents, filepath.Join(r.root, "ws"), model+"/v1")
	for _, dir := range []string{r.state, filepath.Join(r.root, "ws"), filepath.Join(r.root, "tmp")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	config := filepath.Join(r.state, "openclaw.json")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	r.env = []string{
		"PATH=" + filepath.Join(peer, "node", "node_modules", ".bin") + ":" + os.Getenv("PATH"), "HOME=" + r.root, "TMPDIR=" + filepath.Join(r.root, "tmp"), "NO_COLOR=1",
		"OPENCLAW_STATE_DIR=" + r.state, "OPENCLAW_CONFIG_PATH=" + config, "OPENCLAW_SKIP_CHANNELS=1", "OPENCLAW_DISABLE_BONJOUR=1",
		"OPENCLAW_SKIP_BROWSER_CONTROL_SERVER=1", "OPENCLAW_SKIP_CANVAS_HOST=1", "OPENCLAW_NO_RESPAWN=1",
	}
	var log bytes.Buffer
	cmd := exec.Command(r.openclaw(), "gateway", "run")
	cmd.Env, cmd.Stdout, cmd.Stderr = r.env, &log, &log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r.pid = cmd.Process.Pid
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	t.Cleanup(func() { r.stop() })
	for deadline := time.Now().Add(4 * time.Minute); time.Now().Before(deadline); time.Sleep(300 * time.Millisecond) {
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", r.port))
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == 200 {
				return r, nil
			}
		}
		select {
		case err := <-gone:
			return nil, fmt.Errorf("it ended: %v: %.600s", err, log.String())
		default:
		}
	}
	r.stop()
	return nil, errors.New("it is not ready after four minutes")
}

func (r *liveReal) openclaw() string {
	return filepath.Join(r.peer, r.release, "node_modules", ".bin", "openclaw")
}

// stop ends the one process that the test started.
func (r *liveReal) stop() {
	if r.pid == 0 {
		return
	}
	pid := r.pid
	r.pid = 0
	_ = syscall.Kill(pid, syscall.SIGTERM)
	for range 300 {
		if syscall.Kill(pid, 0) != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

var internal = regexp.MustCompile(`(?s)<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>.*?<<<END_OPENCLAW_INTERNAL_CONTEXT>>>`)

// think is a model: [[sleep:MS]] has it wait and [[say:TEXT]] is its answer; without one it wants to be left out of the conversation.
func think(w http.ResponseWriter, q *http.Request) {
	var body struct {
		Stream   bool
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	_ = json.NewDecoder(q.Body).Decode(&body)
	var last string
	for _, m := range body.Messages {
		var text string
		if json.Unmarshal(m.Content, &text) != nil {
			var parts []struct{ Text string }
			_ = json.Unmarshal(m.Content, &parts)
			for _, p := range parts {
				text += p.Text
			}
		}
		if text = strings.TrimSpace(internal.ReplaceAllString(text, "")); m.Role == "user" && text != "" {
			last = text
		}
	}
	say := "REPLY_SKIP"
	if !strings.Contains(last, "Agent-to-agent") {
		if _, after, ok := strings.Cut(last, "[[say:"); ok {
			say, _, _ = strings.Cut(after, "]]")
		}
	}
	if _, after, ok := strings.Cut(last, "[[sleep:"); ok {
		ms, _, _ := strings.Cut(after, "]]")
		n, _ := strconv.Atoi(ms)
		select {
		case <-time.After(time.Duration(n) * time.Millisecond):
		case <-q.Context().Done():
		}
	}
	usage := map[string]any{"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
	if !body.Stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"id": "x", "object": "chat.completion", "model": "fake-1", "usage": usage, "choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": say}}}})
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, chunk := range []map[string]any{
		{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{"role": "assistant", "content": say}}}},
		{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": "stop"}}, "usage": usage},
	} {
		chunk["id"], chunk["object"], chunk["model"] = "x", "chat.completion.chunk", "fake-1"
		raw, _ := json.Marshal(chunk)
		fmt.Fprintf(w, "data: %s\n\n", raw)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (r *liveReal) oc(t *testing.T, env map[string]string, args ...string) answer {
	t.Helper()
	began := time.Now()
	all := map[string]string{"TMPDIR": filepath.Join(r.root, "tmp")}
	for k, v := range env {
		all[k] = v
	}
	a := ocBeside(t, r.state, all, "", append([]string{"--gateway-timeout", "60s"}, args...)...)
	t.Logf("oc %s: exit %d after %v %s", strings.Join(args, " "), a.exit, time.Since(began).Round(time.Millisecond), strings.TrimSpace(a.errout))
	return a
}

// itself asks the gateway's own tool, as any client may.
func (r *liveReal) itself(t *testing.T, name string, args map[string]any) map[string]any {
	t.Helper()
	o := gateway.Options{Target: gateway.Target{URL: fmt.Sprintf("ws://127.0.0.1:%d", r.port)}, Credentials: gateway.Credentials{Token: gateway.Secret(liveToken)}}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	got, err := gateway.InvokeTool(ctx, o, gateway.Tool{Name: name, Key: "agent:main:main", Args: args})
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(got, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// hasAll tells whether a document has every member of another, but for those of oc.
func hasAll(t *testing.T, doc, theirs map[string]any) {
	t.Helper()
	for name := range theirs {
		if _, ok := doc[name]; !ok {
			t.Errorf("the gateway's own answer has %q, and oc's has not", name)
		}
	}
}

func (r *liveReal) ping(t *testing.T) {
	doc := r.oc(t, nil, "gateway", "ping", "--json").doc(t)
	if doc["version"] != r.release || doc["stateDir"] != r.state {
		t.Errorf("%v", doc)
	}
	ends(t, r.oc(t, nil, "gateway", "ping", "--token", "wrong-one"), ExitRefused, "AUTH_TOKEN_MISMATCH")
	if a := r.oc(t, nil, "status", "--live", "--json"); a.exit != 0 || dig(a.doc(t), "live", "health", "ok") != true {
		t.Errorf("%+v", a)
	}
	cmd := exec.Command(r.openclaw(), "gateway", "call", "health", "--json", "--timeout", "60000")
	cmd.Env = r.env
	out, err := cmd.Output()
	if err != nil || string(span.Member(out, "ok")) != "true" {
		t.Errorf("openclaw gateway call health: %v %.300s", err, out)
	}
}

func (r *liveReal) send(t *testing.T) {
	doc := r.oc(t, nil, "sessions", "send", "agent:ops:main", "Ping [[say:pong]]", "--wait", "50s", "--json").doc(t)
	if doc["status"] != "ok" || doc["reply"] != "pong" || doc["sessionKey"] != "agent:ops:main" {
		t.Fatalf("%v", doc)
	}
	theirs := r.itself(t, "sessions_send", map[string]any{"sessionKey": "agent:ops:main", "message": "Again [[say:pong two]]", "timeoutSeconds": 50})
	if theirs["status"] != "ok" || theirs["reply"] != "pong two" {
		t.Errorf("%v", theirs)
	}
	hasAll(t, doc, theirs)
	if doc := r.oc(t, nil, "sessions", "send", "agent:ops:main", "Hush [[say:NO_REPLY]]", "--wait", "50s", "--json").doc(t); doc["status"] != "no_reply" || doc["reply"] != nil {
		t.Errorf("%v", doc)
	}
	doc = r.oc(t, nil, "sessions", "send", "--agent", "ops", "Go [[say:REPLY_SKIP]]", "--wait", "0", "--json").doc(t)
	theirs = r.itself(t, "sessions_send", map[string]any{"sessionKey": "agent:ops:main", "message": "Go [[say:REPLY_SKIP]]", "timeoutSeconds": 0})
	if doc["status"] != "accepted" || theirs["status"] != "accepted" {
		t.Errorf("%v, %v", doc, theirs)
	}
	hasAll(t, doc, theirs)
	// The receiver is told whom it is from.
	a := r.oc(t, nil, "sessions", "history", "agent:ops:main", "--json")
	if !strings.Contains(a.out, `"kind": "inter_session"`) || !strings.Contains(a.out, `"sourceSessionKey": "agent:main:main"`) {
		t.Errorf("no provenance in %.2000s", a.out)
	}
	ends(t, r.oc(t, nil, "sessions", "send", "agent:ops:main:thread:7", "x"), ExitRefused, "is a thread")
	ends(t, r.oc(t, nil, "sessions", "send", "--label", "No such label", "x"), ExitFailed, "No session found with label")
	a = r.oc(t, nil, "sessions", "send", "agent:ops:main", "Watched [[say:seen]]", "--watch", "--wait", "0", "--json")
	if r.release == "2026.7.35" {
		ends(t, a, ExitRefused, "keeps no signal log")
	} else if a.doc(t)["watched"] != true {
		t.Errorf("%+v", a)
	}
}

func (r *liveReal) spawn(t *testing.T) {
	doc := r.oc(t, nil, "sessions", "spawn", "Count [[sleep:4000]] [[say:twelve boxes]]", "--json").doc(t)
	child, _ := doc["childSessionKey"].(string)
	if doc["status"] != "accepted" || doc["runId"] == nil || child == "" {
		t.Fatalf("%v", doc)
	}
	theirs := r.itself(t, "sessions_spawn", map[string]any{"task": "Idle [[sleep:60000]] [[say:x]]", "label": "Idler"})
	hasAll(t, doc, theirs)
	idler, _ := theirs["childSessionKey"].(string)
	a := r.oc(t, nil, "sessions", "yield", "--wait", "50s", "--json")
	if run := a.doc(t)["run"]; a.exit != 0 || dig(run, "sessionKey") != child || dig(run, "reply") != "twelve boxes" || dig(run, "status") != "completed" {
		t.Errorf("%+v", a)
	}
	list := r.oc(t, nil, "subagents", "list", "--json").doc(t)
	theirs = r.itself(t, "subagents", map[string]any{"action": "list"})
	hasAll(t, list, theirs)
	keys := func(doc map[string]any) (all []string) {
		for _, part := range []string{"active", "recent"} {
			for _, e := range doc[part].([]any) {
				all = append(all, part+" "+fmt.Sprint(dig(e, "sessionKey")))
			}
		}
		slices.Sort(all)
		return all
	}
	if ours := keys(list); !slices.Equal(ours, keys(theirs)) || !slices.Contains(ours, "active "+idler) || !slices.Contains(ours, "recent "+child) {
		t.Errorf("%v, %v", ours, keys(theirs))
	}
	ends(t, r.oc(t, nil, "subagents", "cancel", idler, "--as", "agent:ops:main"), ExitRefused, "outside the tree")
	if doc := r.oc(t, nil, "subagents", "cancel", idler, "--json").doc(t); doc["status"] != "cancelled" || dig(doc, "task", "status") != "cancelled" {
		t.Errorf("%v", doc)
	}
	ends(t, r.oc(t, nil, "subagents", "cancel", idler), ExitFailed, "was not stopped")
	for _, e := range r.itself(t, "subagents", map[string]any{"action": "list"})["active"].([]any) {
		if dig(e, "sessionKey") == idler {
			t.Errorf("it is at work: %v", e)
		}
	}
}

func (r *liveReal) abort(t *testing.T) {
	doc := r.oc(t, nil, "sessions", "send", "agent:ops:main", "Long [[sleep:50000]] [[say:x]]", "--wait", "0", "--json").doc(t)
	if doc["status"] != "accepted" {
		t.Fatalf("%v", doc)
	}
	seen := false
	for deadline := time.Now().Add(30 * time.Second); !seen && time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		for _, s := range dig(r.oc(t, nil, "status", "--live", "--json").doc(t), "live", "sessions").([]any) {
			seen = seen || dig(s, "key") == "agent:ops:main" && dig(s, "hasActiveRun") == true
		}
	}
	if !seen {
		t.Error("status --live does not see the run")
	}
	if doc := r.oc(t, nil, "sessions", "abort", "agent:ops:main", "--json").doc(t); doc["status"] != "aborted" {
		t.Errorf("%v", doc)
	}
	ends(t, r.oc(t, nil, "sessions", "abort", "nobody"), ExitFailed, "has no session")
}

// shell: what an agent's shell may not do with OpenClaw's own command it may not do with oc.
func (r *liveReal) shell(t *testing.T) {
	exec1 := map[string]string{"OPENCLAW_SHELL": "exec"}
	ends(t, r.oc(t, exec1, "sessions", "send", "agent:ops:main", "x"), ExitRefused, "OPENCLAW_SHELL=exec")
	if r.release == "2026.7.35" {
		return // it knows no such rule
	}
	cmd := exec.Command(r.openclaw(), "gateway", "call", "sessions.send", "--params", `{"key":"agent:ops:main","message":"x"}`, "--json", "--timeout", "60000")
	cmd.Env = append(slices.Clone(r.env), "OPENCLAW_SHELL=exec")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "agent exec") {
		t.Errorf("%v: %s", err, out)
	}
}
