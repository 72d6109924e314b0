//go:build interop && linux

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
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"oc/gateway"
	"oc/store/span"
)

// realGateway is a gateway of a release that the test started, with a model that always answers "ok".
type realGateway struct {
	release, peer, root, state string
	port                       int
	cmd                        *exec.Cmd
	log                        bytes.Buffer
	env                        map[string]string
}

// startGateway starts a release on a state that seed fills. nil for a release that is not ready after two tries, which is said aloud: that
// is the machine's fault, and no failure.
func startGateway(t *testing.T, release string, seed func(state string)) *realGateway {
	t.Helper()
	peer := os.Getenv("OC_PEER")
	if peer == "" {
		t.Fatal("OC_PEER names no folder with OpenClaw; run .ci/interop")
	}
	model := fakeModel(t)
	for try := 1; ; try++ {
		g := &realGateway{release: release, peer: peer, root: t.TempDir()}
		g.state = filepath.Join(g.root, "state")
		err := g.start(t, model, seed)
		if err == nil {
			return g
		}
		g.stop()
		t.Logf("%s, try %d: %v\n%.2000s", release, try, err, g.log.String())
		if try == 2 {
			fmt.Printf("NOT COMPARED: the gateway of %s does not start here: %v\n", release, err)
			return nil
		}
	}
}

func (g *realGateway) start(t *testing.T, model string, seed func(state string)) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	g.port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	agents := `"list": [{"id": "main", "default": true}, {"id": "ops"}, {"id": "temp"}]`
	if g.release == "2026.9.6" {
		agents = `"entries": {"main": {"default": true}, "ops": {}, "temp": {}}`
	}
	text := fmt.Sprintf(`{"gateway": {"mode": "local", "port": %d, "bind": "loopback", "auth": {"mode": "token", "token": %q}, "controlUi": {"enabled": false}},
		"agents": {%s, "defaults": {"workspace": %q, "skipBootstrap": true, "heartbeat": {"every": "0m"}, "model": {"primary": "fake/fake-1"}}},
		"models": {"mode": "replace", "providers": {"fake": {"api": "openai-completions", "baseUrl": %q, "apiKey": "none", "models": [{"id": "fake-1", "name": "Fake", "contextWindow": 64000, "maxTokens": 1000, "input": ["text"], "reasoning": false, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}]}}},
		"update": {"checkOnStart": false}, "discovery": {"mdns": {"mode": "off"}}}`, g.port, fakeToken, agents, filepath.Join(g.root, "ws"), model)
	for _, dir := range []string{g.state, filepath.Join(g.root, "ws"), filepath.Join(g.root, "tmp")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(g.state, "openclaw.json"), []byte(text), 0o600); err != nil {
		return err
	}
	seed(g.state)
	g.env = map[string]string{"HOME": g.root, "TMPDIR": filepath.Join(g.root, "tmp"), "OPENCLAW_STATE_DIR": g.state, "OPENCLAW_CONFIG_PATH": filepath.Join(g.state, "openclaw.json")}
	g.cmd = g.openclaw("gateway", "run")
	g.cmd.Stdout, g.cmd.Stderr = &g.log, &g.log
	if err := g.cmd.Start(); err != nil {
		return err
	}
	gone := make(chan error, 1)
	go func() { gone <- g.cmd.Wait() }()
	t.Cleanup(g.stop)
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); {
		select {
		case err := <-gone:
			return fmt.Errorf("it ended: %w", err)
		case <-time.After(300 * time.Millisecond):
		}
		r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", g.port))
		if err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
	return fmt.Errorf("it is not ready after 5 minutes")
}

// openclaw is a command of the real CLI on the same state.
func (g *realGateway) openclaw(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(g.peer, g.release, "node_modules/.bin/openclaw"), args...)
	cmd.Dir = g.root
	cmd.Env = []string{
		"PATH=" + filepath.Join(g.peer, "node/node_modules/.bin") + ":" + os.Getenv("PATH"), "NO_COLOR=1", "OPENCLAW_SKIP_CHANNELS=1", "OPENCLAW_DISABLE_BONJOUR=1",
		"OPENCLAW_SKIP_BROWSER_CONTROL_SERVER=1", "OPENCLAW_SKIP_CANVAS_HOST=1", "OPENCLAW_NO_RESPAWN=1",
	}
	for k, v := range g.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd
}

func (g *realGateway) stop() {
	if g.cmd == nil || g.cmd.Process == nil {
		return
	}
	pid := g.cmd.Process.Pid
	g.cmd = nil
	_ = syscall.Kill(pid, syscall.SIGTERM)
	for range 300 {
		if syscall.Kill(pid, 0) != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// kill ends it at once.
func (g *realGateway) kill() {
	_ = syscall.Kill(g.cmd.Process.Pid, syscall.SIGKILL)
}

func (g *realGateway) conn(t *testing.T, events func(gateway.Event)) *gateway.Conn {
	t.Helper()
	c, err := gateway.Dial(t.Context(), gateway.Options{
		Target:      gateway.Target{URL: fmt.Sprintf("ws://127.0.0.1:%d", g.port), Source: "local loopback", Local: true, Port: g.port},
		Credentials: gateway.Credentials{Mode: "token", Token: gateway.Secret(fakeToken), Source: "test"}, Scopes: []string{gateway.Admin}, Version: "test", Events: events, Budget: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// oc runs a command of oc on the state.
func (g *realGateway) oc(t *testing.T, args ...string) answer {
	t.Helper()
	a := ocRun(t, g.root, g.env, append([]string{"--json"}, args...)...)
	secretless(t, a)
	return a
}

// lastAsked is what the model was asked last, as JSON.
var lastAsked atomic.Value

// fakeModel is an endpoint that answers "ok" to everything, as a stream or not.
func fakeModel(t *testing.T) (url string) {
	t.Helper()
	l := listener(t)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var ask struct{ Stream bool }
		body, _ := io.ReadAll(r.Body)
		lastAsked.Store(string(body))
		_ = json.Unmarshal(body, &ask)
		if !ask.Stream {
			fmt.Fprint(w, `{"id":"c","object":"chat.completion","created":1,"model":"fake-1","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, part := range []string{
			`"choices":[{"index":0,"delta":{"role":"assistant","content":"ok"},"finish_reason":null}]`,
			`"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}`,
		} {
			fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"fake-1\",%s}\n\n", part)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	})}
	go server.Serve(l) //nolint:errcheck
	t.Cleanup(func() { server.Close() })
	return "http://" + l.Addr().String() + "/v1"
}

// fileStore fills an agent's sessions.json: n sessions of so many days, each with a transcript, and one whose transcript is gone.
func fileStore(t *testing.T, state, agent string, n int, days float64) {
	t.Helper()
	dir := filepath.Join(state, "agents", agent, "sessions")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-time.Duration(days * 24 * float64(time.Hour)))
	var rows []string
	for i := range n + 1 {
		id := fmt.Sprintf("%08d-1111-4222-8333-%012d", i, int(days))
		when := at.Add(time.Duration(i) * time.Second).UnixMilli()
		rows = append(rows, fmt.Sprintf("\n  \"agent:%s:explicit:s%02d\": {\n    \"sessionId\": %q,\n    \"updatedAt\": %d,\n    \"sessionStartedAt\": %d,\n    \"systemSent\": true\n  }", agent, i, id, when, when))
		if i == n {
			break
		}
		path := filepath.Join(dir, id+".jsonl")
		text := fmt.Sprintf("{\"type\":\"session\",\"version\":3,\"id\":%q,\"timestamp\":%q,\"cwd\":\"/\"}\n{\"type\":\"message\",\"id\":\"m1\",\"parentId\":null,\"timestamp\":%q,\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}}\n",
			id, at.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "sessions.json"), []byte("{"+strings.Join(rows, ",")+"\n}"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Every delegated command on a real gateway of the file era, with twins that the real CLI or a bare call changes.
func TestInteropDelegatedFiles(t *testing.T) {
	g := startGateway(t, "2026.7.35", func(state string) {
		for _, agent := range []string{"main", "ops"} {
			fileStore(t, state, agent, 8, 3)
		}
		fileStore(t, state, "temp", 2, 3)
	})
	if g == nil {
		return
	}
	twin := g.conn(t, nil)
	call := func(method string, params map[string]any) {
		t.Helper()
		if _, err := twin.Call(t.Context(), method, params); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
	}
	key := func(agent string, n int) string { return fmt.Sprintf("agent:%s:explicit:s%02d", agent, n) }
	rows := func(agent string) map[string]map[string]any {
		raw, err := os.ReadFile(filepath.Join(g.state, "agents", agent, "sessions", "sessions.json"))
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]map[string]any
		if err := json.Unmarshal(raw, &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	// what two twins have in common: no ids, times and paths
	bare := func(row map[string]any) string {
		for _, name := range []string{"sessionId", "updatedAt", "sessionFile", "sessionStartedAt", "lastInteractionAt", "usageFamilySessionIds", "usageFamilyKey", "archivedAt", "pinnedAt"} {
			if row[name] != nil {
				row[name] = true
			}
		}
		raw, _ := json.Marshal(row)
		return strings.ReplaceAll(string(raw), "agent:main:", "agent:ops:")
	}
	before := map[string]map[string]map[string]any{"main": rows("main"), "ops": rows("ops")}
	for i, x := range []struct {
		args   []string
		method string
		params map[string]any
	}{
		{[]string{"sessions", "archive"}, "sessions.patch", map[string]any{"archived": true}},
		{[]string{"sessions", "restore"}, "sessions.patch", map[string]any{"archived": false}},
		{[]string{"sessions", "patch", "--label", "Ann", "--pin", "--verbose-level", "on"}, "sessions.patch", map[string]any{"label": "Ann", "pinned": true, "verboseLevel": "on"}},
		{[]string{"sessions", "patch", "--unset", "verboseLevel", "--unpin"}, "sessions.patch", map[string]any{"verboseLevel": nil, "pinned": false}},
		{[]string{"sessions", "reset", "--reason", "new"}, "sessions.reset", map[string]any{"reason": "new"}},
		{[]string{"sessions", "delete", "--yes"}, "sessions.delete", map[string]any{}},
	} {
		n := map[int]int{0: 1, 1: 1, 2: 2, 3: 2, 4: 3, 5: 4}[i]
		a := g.oc(t, append(x.args, key("ops", n))...)
		if a.exit != ExitDone || via(t, a) != "gateway" {
			t.Errorf("%v: exit %d: %s%s", x.args, a.exit, a.out, a.errout)
			continue
		}
		if run := undoRun(t, a); run == "" {
			t.Errorf("%v: no run: %s", x.args, a.out)
		}
		x.params["key"] = key("main", n)
		call(x.method, x.params)
		if ours, theirs := bare(rows("ops")[key("ops", n)]), bare(rows("main")[key("main", n)]); ours != theirs {
			t.Errorf("%v:\n%s\nwant\n%s", x.args, ours, theirs)
		}
	}
	// oc's cleanup of ops, and the real CLI's of main.
	a := g.oc(t, "sessions", "cleanup", "--agent", "ops", "--enforce", "--fix-missing")
	if a.exit != ExitDone || via(t, a) != "gateway" {
		t.Fatalf("cleanup: exit %d: %s%s", a.exit, a.out, a.errout)
	}
	theirs, err := g.openclaw("sessions", "cleanup", "--agent", "main", "--enforce", "--fix-missing", "--json").Output()
	if err != nil {
		t.Fatalf("the real cleanup: %v", err)
	}
	theirs = theirs[bytes.IndexByte(theirs, '{'):]
	for _, name := range []string{"mode", "dryRun", "repaired", "dmScopeRetired", "modelRunPruned", "pruned", "capped", "wouldMutate", "applied"} {
		if ours, want := string(span.Member([]byte(a.out), name)), string(span.Member(theirs, name)); ours != want {
			t.Errorf("cleanup: %s is %s, and %s in the real one", name, ours, want)
		}
	}
	missing, _ := span.Int(span.Member([]byte(a.out), "missing"))
	first, _ := span.Int(span.Member([]byte(a.out), "beforeCount"))
	last, _ := span.Int(span.Member([]byte(a.out), "afterCount"))
	if missing != 1 || first != last+missing {
		t.Errorf("%d before, %d after, %d missing", first, last, missing)
	}
	// The real one takes the session that was just reset, because it has no transcript until its next turn; oc does not let it.
	if rows("ops")[key("ops", 3)] == nil || rows("main")[key("main", 3)] != nil {
		t.Errorf("freshly reset: ops has %v, main %v", rows("ops")[key("ops", 3)], rows("main")[key("main", 3)])
	}
	// What its call cannot express is done session by session.
	a = g.oc(t, "sessions", "cleanup", "--agent", "ops", "--older-than", "2d")
	if a.exit != ExitDone || via(t, a) != "gateway" || len(rows("ops")) != 3 { // those that were patched and archived are young
		t.Errorf("by hand: exit %d, %d left: %s%s", a.exit, len(rows("ops")), a.out, a.errout)
	}
	// An agent, with its configuration.
	a = g.oc(t, "agents", "delete", "temp", "--yes")
	if a.exit != ExitDone || via(t, a) != "gateway" || !strings.Contains(a.out, "its entry in the configuration") {
		t.Errorf("agents delete: exit %d: %s%s", a.exit, a.out, a.errout)
	}
	if _, err := os.Stat(filepath.Join(g.state, "agents/temp/sessions/sessions.json")); err == nil {
		t.Error("the agent's store is still there")
	}
	secretlessRuns(t, g.state)

	g.stop()
	// With the gateway gone all of it is taken back, the last first, but for what the gateway wrote itself since.
	for range 20 {
		if a = g.oc(t, "undo"); a.exit != ExitDone {
			break
		}
	}
	if !strings.Contains(a.errout, "no run that can be taken back") {
		t.Errorf("undo: exit %d: %s%s", a.exit, a.out, a.errout)
	}
	for key, row := range before["ops"] {
		now := rows("ops")[key]
		if now == nil || now["sessionId"] != row["sessionId"] || now["archivedAt"] != nil || now["label"] != nil {
			t.Errorf("after undo %s is %v, and was %v", key, now, row)
		}
	}
	if len(rows("temp")) != 3 {
		t.Errorf("after undo the agent has %d sessions", len(rows("temp")))
	}
	if raw, _ := os.ReadFile(filepath.Join(g.state, "openclaw.json")); !bytes.Contains(raw, []byte(`"temp"`)) {
		t.Errorf("after undo the configuration lacks the agent:\n%s", raw)
	}
}

// secretlessRuns holds that oc's own directory has no token; the configuration, which it may have copied, does.
func secretlessRuns(t *testing.T, state string) {
	t.Helper()
	runs, err := filepath.Glob(filepath.Join(state, ".oc", "runs", "*"))
	if err != nil || len(runs) == 0 {
		t.Fatal("no runs", err)
	}
	for _, path := range runs {
		raw, err := os.ReadFile(path)
		if err != nil || bytes.Contains(raw, []byte(fakeToken)) {
			t.Errorf("%s: %v, or it has the token", path, err)
		}
	}
}

// The SQLite era: the same commands on a real gateway of 2026.9.6.
func TestInteropDelegatedDatabase(t *testing.T) {
	g := startGateway(t, "2026.9.6", func(string) {})
	if g == nil {
		return
	}
	c := g.conn(t, nil)
	made := func(agent, label string) string {
		t.Helper()
		got, err := c.Call(t.Context(), "sessions.create", map[string]any{"agentId": agent, "label": label})
		if err != nil {
			t.Fatal(err)
		}
		key, _ := span.Text(span.Member(got, "key"))
		return key
	}
	described := func(key string) json.RawMessage {
		t.Helper()
		got, err := c.Do(t.Context(), gateway.Describe{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		return span.Member(got, "session")
	}
	key, gone, other := made("ops", "One"), made("ops", "Two"), made("temp", "Three")
	ok := func(args ...string) answer {
		t.Helper()
		a := g.oc(t, args...)
		if a.exit != ExitDone || via(t, a) != "gateway" {
			t.Errorf("%v: exit %d: %s%s", args, a.exit, a.out, a.errout)
		}
		return a
	}
	ok("sessions", "archive", key)
	if string(span.Member(described(key), "archived")) != "true" {
		t.Errorf("not archived: %s", described(key))
	}
	ok("sessions", "restore", key)
	if string(span.Member(described(key), "archived")) != "false" {
		t.Errorf("not restored: %s", described(key))
	}
	ok("sessions", "patch", key, "--label", "Ann", "--pin")
	if label, _ := span.Text(span.Member(described(key), "label")); label != "Ann" {
		t.Errorf("not labelled: %s", described(key))
	}
	ok("sessions", "reset", key)
	// There is nothing in it to compact: the gateway says so, in an answer that is no error, and nothing is done by oc.
	if a := g.oc(t, "sessions", "compact", key); a.exit == ExitDone || !strings.Contains(a.errout, "the gateway says: ") || via(t, a) != "gateway" {
		t.Errorf("compact: exit %d: %s%s", a.exit, a.out, a.errout)
	}
	a := ok("sessions", "delete", gone, "--yes")
	if dig(a.doc(t), "undo", "covers", "rows") != 1.0 {
		t.Errorf("not saved before: %s", a.out)
	}
	if string(described(gone)) != "null" || !strings.Contains(a.out, `"deleted"`) {
		t.Errorf("not deleted: %s: %s", described(gone), a.out)
	}
	if a := g.oc(t, "sessions", "patch", key, "--model", "nope/none"); a.exit != ExitFailed || !strings.Contains(a.errout, "nope") {
		t.Errorf("an unknown provider: exit %d: %s", a.exit, a.errout)
	}
	a = ok("sessions", "cleanup", "--agent", "ops", "--enforce")
	theirs, err := g.openclaw("sessions", "cleanup", "--agent", "ops", "--enforce", "--json").Output()
	if err != nil {
		t.Fatalf("the real cleanup: %v", err)
	}
	theirs = theirs[bytes.IndexByte(theirs, '{'):]
	for _, name := range []string{"agentId", "storePath", "mode", "dryRun", "beforeCount", "afterCount", "missing", "archived", "pruned", "capped", "applied", "appliedCount"} {
		if ours, want := string(span.Member([]byte(a.out), name)), string(span.Member(theirs, name)); ours != want {
			t.Errorf("cleanup: %s is %s, and %s in the real one", name, ours, want)
		}
	}
	if a := ok("sessions", "cleanup", "--agent", "ops", "--older-than", "1d"); dig(a.doc(t), "byHand") != 0.0 || dig(a.doc(t), "undo") != nil {
		t.Errorf("nothing is that old: %s", a.out)
	}
	ok("agents", "delete", "temp", "--yes")
	if string(described(other)) != "null" {
		t.Errorf("the agent's session is there: %s", described(other))
	}
}

// 50 writers of oc beside a gateway that talks: no row is lost, no turn is aborted.
func TestInteropWritersUnderLoad(t *testing.T) {
	const writers, talkers = 50, 4
	g := startGateway(t, "2026.7.35", func(state string) { fileStore(t, state, "ops", writers, 3) })
	if g == nil {
		return
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var turns, bad atomic.Int64
	var talking sync.WaitGroup
	for i := range talkers {
		ended := make(chan gateway.Event, 64)
		c := g.conn(t, func(e gateway.Event) {
			if e.Name == "chat" {
				select {
				case ended <- e:
				default:
				}
			}
		})
		key := fmt.Sprintf("agent:ops:talk%d", i)
		talking.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				run := fmt.Sprintf("talk-%d-%d", i, n)
				if _, err := c.Do(ctx, gateway.ChatSend{Key: key, Message: "hello", IdempotencyKey: run}); err != nil {
					if ctx.Err() == nil {
						bad.Add(1)
						t.Errorf("talk: %v", err)
					}
					return
				}
				for done := false; !done; {
					select {
					case e := <-ended:
						id, _ := span.Text(span.Member(e.Payload, "runId"))
						state, _ := span.Text(span.Member(e.Payload, "state"))
						if id == run && (state == "error" || state == "aborted") {
							bad.Add(1)
							t.Errorf("a turn ended with %s: %.500s", state, e.Payload)
						}
						done = id == run && slices.Contains([]string{"final", "error", "aborted"}, state)
					case <-time.After(2 * time.Minute):
						t.Error("a turn does not end")
						return
					}
				}
				turns.Add(1)
				time.Sleep(200 * time.Millisecond)
			}
		})
	}
	for deadline := time.Now().Add(3 * time.Minute); turns.Load() < talkers && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
	}
	if turns.Load() == 0 {
		t.Fatal("nobody talks")
	}
	at := turns.Load()
	write := func(i int) *begun {
		key := fmt.Sprintf("agent:ops:explicit:s%02d", i)
		args := [][]string{{"sessions", "patch", key, "--label", fmt.Sprint("w", i)}, {"sessions", "archive", key}, {"sessions", "reset", key}}[i%3]
		return begin(t, g.env, append([]string{"--json"}, args...)...)
	}
	var all []*begun
	for i := range writers {
		all = append(all, write(i))
	}
	busy := 0
	for i, b := range all {
		a := b.end()
		for range 5 { // on a slow machine not all have their turn within the minute that each waits
			if a.exit != ExitBusy {
				break
			}
			if !strings.Contains(a.errout, "nothing was changed") {
				t.Errorf("writer %d: %s", i, a.errout)
			}
			busy++
			a = write(i).end()
		}
		if a.exit != ExitDone || via(t, a) != "gateway" {
			t.Errorf("writer %d: exit %d: %s", i, a.exit, a.errout)
		}
	}
	t.Logf("%d times a writer was told to try again", busy)
	t.Logf("%d turns before the writers, %d while they wrote", at, turns.Load()-at)
	time.Sleep(time.Second)
	stop()
	talking.Wait()
	raw, err := os.ReadFile(filepath.Join(g.state, "agents/ops/sessions/sessions.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows map[string]map[string]any
	if err := json.Unmarshal(raw, &rows); err != nil {
		t.Fatal(err)
	}
	for i := range writers {
		row := rows[fmt.Sprintf("agent:ops:explicit:s%02d", i)]
		fine := row != nil
		switch i % 3 {
		case 0:
			fine = fine && row["label"] == fmt.Sprint("w", i)
		case 1:
			fine = fine && row["archivedAt"] != nil
		case 2:
			fine = fine && !strings.HasPrefix(fmt.Sprint(row["sessionId"]), fmt.Sprintf("%08d-", i))
		}
		if !fine {
			t.Errorf("the row of writer %d is %v", i, row)
		}
	}
	for i := range talkers {
		if rows[fmt.Sprintf("agent:ops:talk%d", i)] == nil {
			t.Errorf("the row of talker %d is lost", i)
		}
	}
	if bad.Load() > 0 {
		t.Errorf("%d turns ended badly", bad.Load())
	}
}

// A gateway that is killed while it is asked: oc does nothing in its place, whatever the moment.
func TestInteropKilledGateway(t *testing.T) {
	g := startGateway(t, "2026.7.35", func(state string) { fileStore(t, state, "ops", 30, 3) })
	if g == nil {
		return
	}
	index := filepath.Join(g.state, "agents/ops/sessions/sessions.json")
	killed := false
	for i := 0; i < 30 && !killed; i++ {
		key := fmt.Sprintf("agent:ops:explicit:s%02d", i)
		b := begin(t, g.env, "--json", "sessions", "delete", key, "--yes")
		if i == 3 {
			time.Sleep(time.Duration(len(key)) * 3 * time.Millisecond)
			g.kill()
			killed = true
		}
		a := b.end()
		raw, err := os.ReadFile(index)
		if err != nil {
			t.Fatal(err)
		}
		there := bytes.Contains(raw, []byte(key))
		t.Logf("%s: exit %d, row there: %t: %s", key, a.exit, there, a.errout)
		switch {
		case a.exit == ExitDone && (via(t, a) != "gateway" || there):
			t.Errorf("it was done by oc, or not at all: %s", a.out)
		case a.exit != ExitDone && a.exit != ExitBusy:
			t.Errorf("exit %d: %s", a.exit, a.errout)
		}
	}
}
