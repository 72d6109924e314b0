//go:build interop && linux

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"oc/config"
	"oc/store/lock"
	"oc/store/span"
)

// Against a real gateway. OC_PEER names a folder that has
// VERSION/node_modules/.bin/openclaw for one or both releases, and
// node/node_modules/.bin/node; no model is asked anything.
func TestInterop(t *testing.T) {
	peer := os.Getenv("OC_PEER")
	if peer == "" {
		t.Fatal("OC_PEER is not set: it names the folder of the real OpenClaw releases")
	}
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			g := startReal(t, peer, release, fmt.Sprintf(`{"mode": "token", "token": %q}`, string(testToken)))
			g.reachAndCall(t)
			g.refusals(t)
			g.stop(t)
			if _, d := g.reach(t, g.credentials(), Flags{}); d.Way != Local {
				t.Errorf("after it has stopped: %+v", d)
			}
			if release == "2026.9.6" {
				g.keptOut(t)
			}
		})
	}
}

// A gateway without authentication lets in its own backend client, and a
// gateway that is killed in the middle of a call is not called again.
func TestInteropOpenAndKilled(t *testing.T) {
	g := startReal(t, os.Getenv("OC_PEER"), "2026.7.35", `{"mode": "none"}`)
	c, d := g.reach(t, g.credentials(), Flags{})
	if d.Way != Delegate {
		t.Fatalf("%+v", d)
	}
	defer c.Close()
	if _, err := c.Do(t.Context(), List{}); err != nil {
		t.Error(err)
	}
	pid := g.cmd.Process.Pid
	time.AfterFunc(3*time.Millisecond, func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	for n := 1; ; n++ {
		_, err := c.Do(t.Context(), Cleanup{AllAgents: true})
		if err == nil {
			continue // answered before it died
		}
		var e *Error
		if !errors.As(err, &e) || e.Fault != HungUp || e.Exit() != ExitBusy {
			t.Errorf("%v", err)
		}
		t.Logf("call %d: %v", n, err)
		break
	}
	for deadline := time.Now().Add(10 * time.Second); syscall.Kill(pid, 0) == nil && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	if _, d := g.reach(t, g.credentials(), Flags{}); d.Way != Local {
		t.Errorf("after it was killed, with its lock left behind: %+v", d)
	}
}

// real is a gateway that the test started.
type real struct {
	root, release string
	cmd           *exec.Cmd
	args, env     []string
	cfg           *config.Config
	log           *bytes.Buffer
}

// startReal starts a gateway and waits for it; a busy machine may need a second
// try from an empty state.
func startReal(t *testing.T, peer, release, auth string) *real {
	t.Helper()
	for try := 1; ; try++ {
		g, err := tryReal(t, peer, release, auth)
		if err == nil {
			return g
		}
		if g != nil {
			g.stop(t)
		}
		if try == 2 {
			t.Fatalf("%s does not start: %v", release, err)
		}
		t.Logf("%s: try %d: %v", release, try, err)
	}
}

func tryReal(t *testing.T, peer, release, auth string) (*real, error) {
	t.Helper()
	root := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	agents := `"list": [{"id": "main", "default": true}, {"id": "ops"}]`
	if release == "2026.9.6" {
		agents = `"entries": {"main": {"default": true}, "ops": {}}`
	}
	text := fmt.Sprintf(`{"gateway": {"mode": "local", "port": %d, "bind": "loopback", "auth": %s, "controlUi": {"enabled": false}},
		"agents": {%s, "defaults": {"workspace": %q, "skipBootstrap": true, "heartbeat": {"every": "0m"}, "model": {"primary": "fake/fake-1"}}},
		"models": {"mode": "replace", "providers": {"fake": {"api": "openai-completions", "baseUrl": "http://127.0.0.1:9/v1", "apiKey": "none", "models": [{"id": "fake-1", "name": "Fake", "contextWindow": 64000, "maxTokens": 1000, "input": ["text"], "reasoning": false, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}]}}},
		"update": {"checkOnStart": false}, "discovery": {"mdns": {"mode": "off"}}}`, port, auth, agents, filepath.Join(root, "ws"))
	state := filepath.Join(root, "state")
	for _, dir := range []string{state, filepath.Join(root, "ws"), filepath.Join(root, "tmp")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	file := filepath.Join(state, "openclaw.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	g := &real{root: root, release: release, log: &bytes.Buffer{}}
	g.cfg, err = config.Load(config.Options{Cwd: root, Home: root, StateDir: state, ConfigFile: file})
	if err != nil {
		return nil, err
	}
	g.cmd = exec.Command(filepath.Join(peer, release, "node_modules", ".bin", "openclaw"), "gateway", "run")
	g.cmd.Env = []string{
		"PATH=" + filepath.Join(peer, "node", "node_modules", ".bin") + ":" + os.Getenv("PATH"), "HOME=" + root, "TMPDIR=" + filepath.Join(root, "tmp"), "NO_COLOR=1",
		"OPENCLAW_STATE_DIR=" + state, "OPENCLAW_CONFIG_PATH=" + file, "OPENCLAW_SKIP_CHANNELS=1", "OPENCLAW_DISABLE_BONJOUR=1",
		"OPENCLAW_SKIP_BROWSER_CONTROL_SERVER=1", "OPENCLAW_SKIP_CANVAS_HOST=1", "OPENCLAW_NO_RESPAWN=1",
	}
	g.args, g.env = g.cmd.Args, g.cmd.Env
	g.cmd.Stdout, g.cmd.Stderr = g.log, g.log
	if err := g.cmd.Start(); err != nil {
		return nil, err
	}
	gone := make(chan error, 1)
	go func() { gone <- g.cmd.Wait() }()
	t.Cleanup(func() { g.stop(t) })
	deadline := time.After(4 * time.Minute)
	for {
		o := g.options(g.credentials())
		o.Budget = time.Second
		c, err := Dial(t.Context(), o)
		if err == nil {
			return g, c.Close()
		}
		select {
		case err := <-gone:
			return nil, fmt.Errorf("it ended: %v", err)
		case <-deadline:
			return g, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// stop ends the one process that the test started.
func (g *real) stop(t *testing.T) {
	t.Helper()
	if g.cmd == nil {
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

func (g *real) credentials() Credentials {
	s := SettingsOf(g.cfg)
	target, _ := Address("", g.cfg.Getenv, s)
	return CredentialsFor(target, Given{}, g.cfg.Getenv, s)
}

func (g *real) options(c Credentials) Options {
	target, _ := Address("", g.cfg.Getenv, SettingsOf(g.cfg))
	return Options{Target: target, Credentials: c, Scopes: []string{Admin}, Version: "test"}
}

func (g *real) where() Where {
	return Where{
		StateDir: g.cfg.StateDir, ConfigPath: g.cfg.ConfigFile, TmpDirs: []string{filepath.Join(g.root, "tmp"), "/tmp"}, LockRoot: "/tmp", UID: os.Getuid(),
		Ports: Ports(g.cfg.Getenv, SettingsOf(g.cfg)),
	}
}

func (g *real) reach(t *testing.T, c Credentials, f Flags) (*Conn, Decision) {
	t.Helper()
	return Reach(t.Context(), g.where(), lock.Local(), time.Now(), g.options(c), f)
}

func (g *real) reachAndCall(t *testing.T) {
	c, d := g.reach(t, g.credentials(), Flags{})
	if d.Way != Delegate || c.Hello.Version != g.release {
		t.Fatalf("%+v", d)
	}
	defer c.Close()
	t.Log(d.Saw)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	do := func(r Request) json.RawMessage {
		t.Helper()
		began := time.Now()
		got, err := c.Do(ctx, r)
		if err != nil {
			t.Errorf("%T: %v", r, err)
		}
		t.Logf("%s: %v, %d bytes", r.Method(), time.Since(began).Round(100*time.Microsecond), len(got))
		return got
	}
	has := func(raw json.RawMessage, text string) {
		t.Helper()
		if !strings.Contains(string(raw), text) {
			t.Errorf("no %s in %.300s", text, raw)
		}
	}
	created, err := c.Call(ctx, "sessions.create", map[string]string{"agentId": "main", "label": "Side project"})
	if err != nil {
		t.Fatal(err)
	}
	key, id := textAt(created, "key"), textAt(created, "sessionId")
	has(do(Health{}), `"ok":true`)
	has(do(Status{}), `runtimeVersion`)
	has(do(Agents{}), `"ops"`)
	has(do(Subscribe{}), `true`)
	has(do(List{Limit: 5}), key)
	has(do(Describe{Key: key}), "Side project")
	has(do(Resolve{Label: "Side project"}), key)
	has(do(History{Key: key, Limit: 3}), `"messages":[`)
	has(do(Patch{Key: key, Fields: map[string]any{"label": "Desk"}}), "Desk")
	guarded := Reset{Key: key, Reason: "reset", ExpectedSessionID: id}
	if g.release == "2026.7.35" {
		_, err := c.Do(ctx, guarded)
		if e := (*Error)(nil); !errors.As(err, &e) || e.Fault != Unsupported {
			t.Errorf("a field of another release: %v", err)
		}
		guarded.ExpectedSessionID = ""
	}
	has(do(guarded), key)
	id = textAt(do(Describe{Key: key}), "session", "sessionId")
	archive := Patch{Key: key, Fields: map[string]any{"archived": true}}
	if g.release == "2026.9.6" {
		archive.ExpectedSessionID = id
	}
	has(do(archive), "archivedAt")
	do(Compact{Key: key, MaxLines: 10})
	has(do(Abort{Key: key}), `"aborted":false`)
	has(do(Cleanup{}), "beforeCount")
	has(do(Cleanup{AllAgents: true, Enforce: true}), `"stores":[`)
	if _, err := c.Do(ctx, Delete{Key: key, ExpectedSessionID: "another"}); err == nil {
		t.Error("a session of another id was deleted")
	} else {
		t.Log(err)
	}
	has(do(Delete{Key: key, ExpectedSessionID: id}), `"deleted":true`)
	has(do(Delete{Key: key}), `"deleted":false`)
	_, err = c.Do(ctx, DeleteAgent{Agent: "ghost"})
	if e := (*Error)(nil); !errors.As(err, &e) || e.Fault != Failed || !strings.Contains(err.Error(), "ghost") {
		t.Error(err)
	}
	for name, open := range map[string]bool{"session_status": true, "subagents": true, "sessions_spawn": false, "no_such_tool": false} {
		tool := Tool{Name: name}
		if name == "subagents" {
			tool.Args = map[string]any{"action": "list"}
		}
		for way, call := range map[string]func() (json.RawMessage, error){
			"method": func() (json.RawMessage, error) { return c.Do(ctx, tool) },
			"POST":   func() (json.RawMessage, error) { return InvokeTool(ctx, g.options(g.credentials()), tool) },
		} {
			got, err := call()
			if e := (*Error)(nil); open != (err == nil && span.KindOf(got) == span.Object) || !open && (!errors.As(err, &e) || e.Fault != ToolDenied) {
				t.Errorf("%s by %s: %.200s, %v", name, way, got, err)
			}
		}
	}
	// The proof of a device is accepted, though it is not needed here.
	device, err := MakeIdentity(IdentityFile(g.cfg.StateDir))
	if err != nil {
		t.Fatal(err)
	}
	o := g.options(g.credentials())
	proved, e := (&dialing{Options: o, id: device, host: host(o.Target.URL)}).dial(ctx)
	if e != nil {
		t.Error(e)
	} else {
		if textAt(proved.Hello.Raw, "auth", "deviceToken") == "" {
			t.Error("the gateway does not know the device")
		}
		proved.Close()
	}
	// How long a whole call takes, with the search for the owner.
	began := time.Now()
	again, _ := g.reach(t, g.credentials(), Flags{})
	if again == nil {
		t.Fatal("not reached again")
	}
	reached := time.Since(began)
	if _, err := again.Do(ctx, Health{}); err != nil {
		t.Error(err)
	}
	again.Close()
	t.Logf("reached in %v, asked and closed in %v", reached, time.Since(began))
}

// keptOut: while oc holds the lifecycle lock the gateway does not start.
func (g *real) keptOut(t *testing.T) {
	release, err := HoldLifecycle(g.where())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	var log bytes.Buffer
	cmd := exec.Command(g.args[0], g.args[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = g.env, &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	deadline := time.Now().Add(50 * time.Second)
	o := g.options(g.credentials())
	o.Budget = time.Second
	for time.Now().Before(deadline) {
		if c, err := Dial(t.Context(), o); err == nil {
			c.Close()
			t.Error("it serves the state that oc holds")
			break
		}
		select {
		case err := <-gone:
			t.Logf("it gave up: %v: %.600s", err, log.String())
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		_ = cmd.Process.Kill()
	}
	t.Logf("it waited: %.600s", log.String())
}

func (g *real) refusals(t *testing.T) {
	for name, c := range map[string]struct {
		c    Credentials
		f    Flags
		says string
	}{
		"wrong token":    {Credentials{Mode: "token", Token: testToken + "x"}, Flags{}, "use its gateway.auth.token"},
		"no token":       {Credentials{Problem: "no token was found", Fix: "set one"}, Flags{}, "no token was found"},
		"wrong field":    {Credentials{Mode: "password", Password: testToken + "x"}, Flags{}, "gateway"},
		"mode none":      {Credentials{Mode: "none"}, Flags{}, "gateway"},
		"offline":        {g.credentials(), Flags{Offline: true}, "process"},
		"store":          {g.credentials(), Flags{Store: true}, "stop the gateway"},
		"offline, store": {g.credentials(), Flags{Offline: true, Store: true, SQLite: true}, "process"},
	} {
		conn, d := g.reach(t, c.c, c.f)
		if conn != nil || d.Way != Refuse || !strings.Contains(d.Err().Error(), c.says) || strings.Contains(d.Err().Error(), string(testToken)) {
			t.Errorf("%s: %+v", name, d)
			continue
		}
		t.Logf("%s: %s: %v", name, d.Exit, d.Err())
	}
}
