package commands

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/awareness"
	"oc/gateway"
	"oc/store/span"
)

// each runs a test beside a puppet of each release.
func each(t *testing.T, f func(t *testing.T, p *puppet)) {
	for _, release := range liveReleases {
		t.Run(release, func(t *testing.T) { f(t, beside(t, release)) })
	}
}

// ends checks an exit status, and that standard error says something.
func ends(t *testing.T, a answer, exit int, says string) {
	t.Helper()
	if a.exit != exit || !strings.Contains(a.errout, says) || strings.Contains(a.errout, "mistake in oc") {
		t.Errorf("exit %d, want %d with %q: %s%s", a.exit, exit, says, a.errout, a.out)
	}
}

func TestLiveSend(t *testing.T) {
	each(t, func(t *testing.T, p *puppet) {
		new := p.release == "2026.9.6"
		for _, c := range []struct {
			recorded string
			args     []string
			exit     int
			status   string
			body     map[string]any
			says     string
		}{
			{"http-sessions_send-wait", []string{"agent:ops:main", "Ping"}, 0, "ok", map[string]any{"sessionKey": "agent:ops:main", "message": "Ping", "timeoutSeconds": 30.0}, ""},
			{"http-sessions_send-wait", []string{"--agent", "ops", "main", "Ping", "--wait", "1500ms"}, 0, "ok", map[string]any{"sessionKey": "agent:ops:main", "message": "Ping", "timeoutSeconds": 2.0}, ""},
			{"http-sessions_send-no_reply", []string{"agent:ops:main", "Quiet [[say:NO_REPLY]]"}, 0, "no_reply", nil, ""},
			{"http-sessions_send-accepted", []string{"agent:ops:main", "Slow", "--wait", "1s"}, ExitNothing, "accepted", nil, "no answer within 1s"},
			{"http-sessions_send-forget", []string{"agent:ops:main", "Go", "--wait", "0"}, 0, "accepted", map[string]any{"sessionKey": "agent:ops:main", "message": "Go", "timeoutSeconds": 0.0}, ""},
			{"http-sessions_send-forget", []string{"--agent", "ops", "Go", "--wait", "0"}, 0, "accepted", map[string]any{"agentId": "ops", "message": "Go", "timeoutSeconds": 0.0}, ""},
			{"http-sessions_send-forget", []string{"--label", "Boxes", "--agent", "ops", "Go", "--wait", "0"}, 0, "accepted", map[string]any{"label": "Boxes", "agentId": "ops", "message": "Go", "timeoutSeconds": 0.0}, ""},
			{"http-sessions_send-forget", []string{"Boxes", "Go", "--wait", "0"}, 0, "accepted", map[string]any{"sessionKey": "agent:main:subagent:boxes", "message": "Go", "timeoutSeconds": 0.0}, ""},
			{"http-sessions_send-unknown", []string{"--label", "No such label", "x"}, ExitFailed, "error", nil, "was not sent: No session found with label"},
			{"http-sessions_send-error", []string{"agent:ops:main", "Break"}, ExitFailed, "error", nil, "has the message, and its run failed"},
		} {
			t.Run(c.recorded+strings.Join(c.args, " "), func(t *testing.T) {
				p.tool["sessions_send"], p.bodies = c.recorded, nil
				// 2026.7.35 takes the message itself for an answer; its history tells them apart.
				p.says["chat.history"] = json.RawMessage(`{"messages":[{"role":"assistant","content":"Quiet [[say:NO_REPLY]]","senderLabel":"Forwarded from main"}]}`)
				a := p.oc(append([]string{"sessions", "send", "--json"}, c.args...)...)
				ends(t, a, c.exit, c.says)
				doc := a.doc(t)
				if doc["status"] != c.status || doc["via"] != "gateway" || doc["from"] != "agent:main:main" || dig(doc, "gateway", "version") != p.release {
					t.Errorf("%v", doc)
				}
				if c.status == "no_reply" && doc["reply"] != nil {
					t.Errorf("an answer that nobody gave: %v", doc["reply"])
				}
				if len(p.bodies) != 1 || p.bodies[0]["sessionKey"] != "agent:main:main" {
					t.Fatalf("asked: %v", p.bodies)
				}
				if d := cmp.Diff(c.body, p.bodies[0]["args"]); c.body != nil && d != "" {
					t.Error(d)
				}
			})
		}
		p.tool["sessions_send"] = "http-sessions_send-wait"
		if a := p.oc("sessions", "send", "agent:ops:main", "Ping"); a.exit != 0 || a.out != "pong\n" || a.errout != "" {
			t.Errorf("%+v", a)
		}
		// From a pipe, for another session.
		p.bodies = nil
		if a := p.ocWith(map[string]string{"OC_SESSION": "agent:ops:main"}, "two\nlines\n", "sessions", "send", "main", "--stdin"); a.exit != 0 {
			t.Errorf("%+v", a)
		}
		if len(p.bodies) != 1 || p.bodies[0]["sessionKey"] != "agent:ops:main" || dig(p.bodies[0], "args", "message") != "two\nlines" || dig(p.bodies[0], "args", "sessionKey") != "agent:main:main" {
			t.Errorf("%v", p.bodies)
		}
		// A watch that the gateway makes, and one that it cannot make.
		p.tool["sessions_send"], p.bodies = "http-sessions_send-watch", nil
		a := p.oc("sessions", "send", "agent:ops:main", "Ping", "--watch", "--as", "agent:main:main", "--json")
		switch {
		case new: // the test's state has no log: that is what the answer is for
			ends(t, a, ExitRefused, "keeps no signal log")
			makeLog(t, p.state)
			if a := p.oc("sessions", "send", "agent:ops:main", "Ping", "--wait", "0", "--watch", "--as", "agent:main:main", "--json"); a.exit != 0 || a.doc(t)["watched"] != true || dig(p.bodies[0], "args", "watch") != true {
				t.Errorf("%+v", a)
			}
		default:
			ends(t, a, ExitRefused, "leave it out")
			if len(p.bodies) != 0 {
				t.Errorf("it was sent: %v", p.bodies)
			}
			makeLog(t, p.state) // of another release that ran here
			ends(t, p.oc("sessions", "send", "agent:ops:main", "Ping", "--watch"), 0, "is not watched: the gateway, 2026.7.35, did not take --watch")
		}
	})
}

// What is refused before anything is asked of the gateway.
func TestLiveSendRefusals(t *testing.T) {
	p := beside(t, "2026.9.6")
	p.tool["sessions_send"], p.tool["sessions_spawn"] = "http-sessions_send-wait", "http-sessions_spawn"
	for _, c := range []struct {
		env  map[string]string
		args []string
		exit int
		says string
	}{
		{nil, []string{"sessions", "send", "agent:ops:telegram:group:5:THREAD:7", "x"}, ExitRefused, "send to its channel, agent:ops:telegram:group:5"},
		{nil, []string{"sessions", "send", "agent:ops:telegram:group:5:topic:7", "x"}, ExitRefused, "is a thread"},
		{nil, []string{"sessions", "send", "agent:ops:nobody", "x"}, ExitFailed, "has no session"},
		{nil, []string{"sessions", "send", "agent:ops:main", "x", "--as", "ops"}, ExitFailed, "the session that asks is not there"},
		{map[string]string{"OC_SESSION": "agent:ghost:main"}, []string{"sessions", "spawn", "x"}, ExitFailed, "the session that asks is not there"},
		{nil, []string{"sessions", "yield", "--as", "nobody"}, ExitFailed, "the session that asks is not there"},
		{nil, []string{"sessions", "send"}, ExitUsage, "what is to be sent is missing"},
		{nil, []string{"sessions", "send", "hello"}, ExitUsage, "whom to send it to is missing"},
		{nil, []string{"sessions", "send", "a", "b", "c"}, ExitUsage, ""},
		{nil, []string{"sessions", "send", "agent:ops:main", "  "}, ExitUsage, "blank"},
		{nil, []string{"sessions", "send", "agent:ops:main", "--stdin"}, ExitUsage, "blank"},
		{nil, []string{"sessions", "send", "--label", "Boxes", "key", "x"}, ExitUsage, "--label names the session"},
		{nil, []string{"sessions", "send", "agent:ops:main", "x", "--wait", "30"}, ExitUsage, "--wait"},
		{nil, []string{"sessions", "send", "agent:ops:main", "x", "--wait", "48h"}, ExitUsage, "at most 24h"},
		{nil, []string{"sessions", "send", "agent:ops:main", strings.Repeat("x", longestMessage+1)}, ExitUsage, "longer than"},
		{nil, []string{"sessions", "send", "agent:ops:main", "x", "--offline"}, ExitUsage, "--offline"},
		{map[string]string{"OPENCLAW_SHELL": "exec"}, []string{"sessions", "send", "agent:ops:main", "x", "--as", "agent:main:main"}, ExitRefused, "use sessions_send"},
		{map[string]string{"OPENCLAW_SUBAGENT_EXEC": "1"}, []string{"sessions", "send", "agent:ops:main", "x"}, ExitRefused, "result of its task"},
		{map[string]string{"OPENCLAW_SHELL": "exec"}, []string{"sessions", "spawn", "x"}, ExitRefused, "--as KEY"},
		{nil, []string{"sessions", "spawn", " "}, ExitUsage, "blank"},
		{nil, []string{"sessions", "spawn", "x", "--runtime", "acp", "--context", "fork"}, ExitUsage, "--context fork"},
		{nil, []string{"sessions", "spawn", "x", "--sandbox", "inherit"}, ExitUsage, "--sandbox"},
	} {
		for _, flag := range []string{"--quiet", "--json"} {
			a := p.ocWith(c.env, "", append(c.args, flag)...)
			ends(t, a, c.exit, c.says)
			if flag == "--json" && dig(a.doc(t), "error", "exit") != float64(c.exit) {
				t.Errorf("%v: %s", c.args, a.out)
			}
		}
	}
	if len(p.bodies) != 0 {
		t.Errorf("asked for all that: %v", p.bodies)
	}
	// A tool that the gateway keeps from clients.
	p.tool = map[string]string{}
	for tool, args := range map[string][]string{"sessions_send": {"send", "agent:ops:main", "x"}, "sessions_spawn": {"spawn", "x"}} {
		a := p.oc(append([]string{"sessions", "--json"}, args...)...)
		ends(t, a, ExitRefused, "Tool not available: "+tool)
		ends(t, a, ExitRefused, "name it in gateway.tools.allow of openclaw.json")
		if dig(a.doc(t), "error", "code") != "gateway-tool-denied" {
			t.Error(a.out)
		}
	}
}

func TestLiveSpawn(t *testing.T) {
	each(t, func(t *testing.T, p *puppet) {
		p.tool["sessions_spawn"] = "http-sessions_spawn"
		a := p.oc("sessions", "spawn", "Count", "--agent", "ops", "--model", "fake/fake-2", "--thinking", "low", "--context", "fork", "--runtime", "subagent", "--thread", "--sandbox", "require",
			"--run-timeout", "90s", "--as", "agent:ops:main", "--json")
		ends(t, a, 0, "")
		doc := a.doc(t)
		if doc["runId"] == nil || !strings.HasPrefix(fmt.Sprint(doc["childSessionKey"]), "agent:main:subagent:") || doc["parent"] != "agent:ops:main" || doc["via"] != "gateway" {
			t.Errorf("%v", doc)
		}
		want := map[string]any{
			"task": "Count", "agentId": "ops", "model": "fake/fake-2", "thinking": "low", "context": "fork", "runtime": "subagent", "thread": true, "sandbox": "require", "runTimeoutSeconds": 90.0,
		}
		if d := cmp.Diff(want, p.bodies[0]["args"]); d != "" || p.bodies[0]["sessionKey"] != "agent:ops:main" {
			t.Error(d, p.bodies[0])
		}
		p.bodies = nil
		if a := p.ocWith(map[string]string{"OPENCLAW_SHELL": "exec", "OC_SESSION": "agent:ops:main"}, "", "sessions", "spawn", "Count"); a.exit != 0 || !strings.Contains(a.out, "agent:main:subagent:") || len(strings.Fields(a.out)) != 8 {
			t.Errorf("%+v", a)
		}
		if d := cmp.Diff(map[string]any{"task": "Count"}, p.bodies[0]["args"]); d != "" {
			t.Error(d)
		}
		p.tool["sessions_spawn"] = "http-sessions_spawn-forbidden"
		ends(t, p.oc("sessions", "spawn", "x", "--agent", "ops"), ExitRefused, "nothing was started: agentId is not allowed")
		p.tool["sessions_spawn"] = "http-sessions_spawn-timeout"
		if a := p.oc("sessions", "spawn", "x", "--run-timeout", "60s"); p.release == "2026.7.35" {
			ends(t, a, ExitFailed, "agents.defaults.subagents.runTimeoutSeconds")
		} else {
			ends(t, a, 0, "")
		}
	})
}

func TestLiveSubagents(t *testing.T) {
	each(t, func(t *testing.T, p *puppet) {
		p.tool["subagents"] = "http-subagents-list-active"
		a := p.oc("subagents", "list")
		for _, text := range []string{"At work:\n  running  Waiter  ", "\n\nEnded in the last 30 minutes:\n", "    task "} {
			if a.exit != 0 || !strings.Contains(a.out, text) {
				t.Errorf("no %q in %+v", text, a)
			}
		}
		for _, line := range strings.Split(a.out, "\n") {
			if len([]rune(line)) > 80 {
				t.Errorf("wider than 80 columns: %s", line)
			}
		}
		doc := p.oc("subagents", "--json").doc(t)
		active := dig(doc, "active").([]any)[0].(map[string]any)
		child, run := active["sessionKey"].(string), active["runId"].(string)
		id, _ := dig(doc, "taskIds", run).(string)
		if doc["status"] != "ok" || doc["total"] == nil || id == "" {
			t.Fatalf("%v", doc)
		}
		if p.bodies[0]["sessionKey"] != "agent:main:main" || dig(p.bodies[0], "args", "action") != "list" {
			t.Errorf("%v", p.bodies[0])
		}
		p.says["tasks.cancel"] = payload(t, p.release, "tasks.cancel", "tasks.cancel", 0)
		for _, word := range []string{id, run, child, "Waiter"} {
			p.mu.Lock()
			p.asked = nil
			p.mu.Unlock()
			doc := p.oc("subagents", "cancel", word, "--json").doc(t)
			if doc["status"] != "cancelled" || doc["taskId"] != id || doc["childSessionKey"] != child {
				t.Errorf("%s: %v", word, doc)
			}
			if !slices.ContainsFunc(p.asked, func(s string) bool { return s == `tasks.cancel {"taskId":"`+id+`"}` }) {
				t.Errorf("asked: %v", p.asked)
			}
		}
		p.mu.Lock()
		p.asked = nil
		p.mu.Unlock()
		ends(t, p.oc("subagents", "cancel", child, "--as", "agent:ops:main"), ExitRefused, "outside the tree of agent:ops:main; name its owner with --as")
		ends(t, p.oc("subagents", "cancel", "nobody"), ExitFailed, "has no task \"nobody\"")
		if slices.ContainsFunc(p.asked, func(s string) bool { return strings.HasPrefix(s, "tasks.cancel") }) {
			t.Errorf("a task of others was stopped: %v", p.asked)
		}
		p.says["tasks.cancel"] = payload(t, p.release, "tasks.cancel", "tasks.cancel", 1)
		ends(t, p.oc("subagents", "cancel", "Waiter"), ExitFailed, "was not stopped: Task is already terminal.")
	})
}

// A tree holds what a session gave, and what its sub-agents gave on, and no session's own turns.
func TestTaskTree(t *testing.T) {
	all := []task{
		{id: "1", owner: "a", child: "b"},
		{id: "2", owner: "b", child: "b"},
		{id: "3", owner: "b", child: "c"},
		{id: "4", owner: "c", child: "d"},
		{id: "5", owner: "x", child: "y"},
		{id: "6", owner: "", child: "z"},
		{id: "7", owner: "a", child: ""},
		{id: "8", owner: "d", child: "a"},
	}
	for root, want := range map[string]string{"a": "13478", "b": "3481 7", "c": "4813 7", "x": "5", "nobody": ""} {
		var got []string
		for _, task := range treeOf(all, root) {
			got = append(got, task.id)
		}
		slices.Sort(got)
		ids := strings.Split(strings.ReplaceAll(want, " ", ""), "")
		slices.Sort(ids)
		if strings.Join(got, "") != strings.Join(ids, "") {
			t.Errorf("%s: %v, want %v", root, got, ids)
		}
	}
	twice := []task{{id: "1", owner: "a", child: "b", title: "T", status: "running"}, {id: "2", owner: "a", child: "c", title: "T", status: "running"}}
	if _, err := pick(twice, "a", "T", false); err == nil || !strings.Contains(err.Error(), "means 2 tasks: 1 (b), 2 (c)") {
		t.Error(err)
	}
	twice[0].status = "completed"
	if got, err := pick(twice, "a", "T", false); err != nil || got.id != "2" {
		t.Error(got, err)
	}
}

func TestLiveAbort(t *testing.T) {
	each(t, func(t *testing.T, p *puppet) {
		p.says["sessions.abort"] = payload(t, p.release, "sessions.abort", "sessions.abort", 0)
		a := p.oc("sessions", "abort", "agent:ops:main")
		if a.exit != 0 || !strings.Contains(a.out, "was stopped") {
			t.Errorf("%+v", a)
		}
		doc := p.oc("sessions", "abort", "main", "--agent", "ops", "--json").doc(t)
		if doc["key"] != "agent:ops:main" || doc["status"] != "aborted" || doc["via"] != "gateway" {
			t.Errorf("%v", doc)
		}
		p.says["sessions.abort"] = payload(t, p.release, "sessions.abort", "sessions.abort", 1)
		if a := p.oc("sessions", "abort", "agent:ops:main"); a.exit != 0 || !strings.Contains(a.out, "there was no run to stop") {
			t.Errorf("%+v", a)
		}
		p.mu.Lock()
		p.asked = nil
		p.mu.Unlock()
		a = p.oc("sessions", "abort", "nobody", "--json")
		ends(t, a, ExitFailed, "has no session")
		if dig(a.doc(t), "error", "code") != "not-found" || slices.ContainsFunc(p.asked, func(s string) bool { return strings.HasPrefix(s, "sessions.abort") }) {
			t.Errorf("%s %v", a.out, p.asked)
		}
	})
}

// childRun is what a gateway tells of a sub-agent's run, as it was recorded, and the key of its session.
func childRun(t *testing.T, release string) (events []json.RawMessage, child string) {
	lines, frames := recordedLines(t, release, "child-run")
	for i, l := range lines {
		if l.Dir == "in" && l.Frame.Type == "event" && l.Frame.Event != "connect.challenge" {
			events = append(events, frames[i])
			if task := taskOf(span.Member(l.Frame.Payload, "task")); task.title == "Boxes" && task.owner == "agent:main:main" {
				child = task.child
			}
		}
	}
	return events, child
}

func TestLiveYield(t *testing.T) {
	each(t, func(t *testing.T, p *puppet) {
		all, child := childRun(t, p.release)
		// Of the gateway's other sub-agents, which ended meanwhile, this is not about.
		events := slices.DeleteFunc(all, func(e json.RawMessage) bool {
			return strings.Contains(string(e), "Timed [[say:x]]") || strings.Contains(string(e), "[[say:x]]") || !strings.Contains(string(e), child)
		})
		// Nothing to wait for: at once.
		p.says["tasks.list"] = json.RawMessage(`{"tasks":[]}`)
		began := time.Now()
		a := p.oc("sessions", "yield", "--json")
		ends(t, a, ExitNothing, "has no sub-agent at work and watches nothing")
		if doc := a.doc(t); doc["came"] != false || doc["session"] != "agent:main:main" || time.Since(began) > 10*time.Second {
			t.Errorf("%v", doc)
		}
		// A sub-agent at work, whose run ends.
		p.says["tasks.list"] = json.RawMessage(fmt.Sprintf(`{"tasks":[{"taskId":"t1","runId":"r1","childSessionKey":%q,"ownerKey":"agent:main:main","title":"Boxes","status":"running","updatedAt":1}]}`, child))
		p.after["tasks.list"] = events
		a = p.oc("sessions", "yield", "--json", "--wait", "20s")
		ends(t, a, 0, "")
		doc := a.doc(t)
		if dig(doc, "run", "sessionKey") != child || dig(doc, "run", "status") != "completed" || dig(doc, "run", "reply") != "Twelve boxes" || doc["via"] != "gateway" {
			t.Errorf("%v", doc["run"])
		}
		if a := p.oc("sessions", "yield", "--wait", "20s"); a.exit != 0 || !strings.Contains(a.out, "completed  "+child+"\n  Twelve boxes\n") {
			t.Errorf("%+v", a)
		}
		// Other sessions' sub-agents are not one's own.
		ends(t, p.oc("sessions", "yield", "--as", "agent:ops:main", "--wait", "300ms"), ExitNothing, "nothing to wait for")
		// Nobody waits longer than was asked for.
		p.mu.Lock()
		p.after = map[string][]json.RawMessage{}
		p.mu.Unlock()
		ends(t, p.oc("sessions", "yield", "--wait", "100ms"), ExitNothing, "nothing came within 100ms")
		ends(t, p.oc("sessions", "yield", "--wait", "0"), ExitNothing, "nothing came within 0")
		// The gateway goes away.
		p.mu.Lock()
		p.gone = "tasks.list"
		p.mu.Unlock()
		ends(t, p.oc("sessions", "yield", "--wait", "20s"), ExitBusy, fmt.Sprintf("oc: hear from the gateway at 127.0.0.1:%d: it closed the connection with code 1012", p.port))
	})
}

// makeLog puts a signal log into a state: oc's own, which is made elsewhere.
func makeLog(t *testing.T, state string) {
	t.Helper()
	elsewhere := t.TempDir()
	made, err := awareness.Init(t.Context(), elsewhere, nil, time.Now().UnixMilli())
	if err == nil {
		err = os.CopyFS(filepath.Dir(awareness.Path(state)), os.DirFS(filepath.Dir(made)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Beside no gateway the signal log is watched: what is pending is given at once, and what comes as soon as it does.
func TestLiveYieldOffline(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	state := liveState(t, port)
	run := func(args ...string) answer { return ocBeside(t, state, nil, "", args...) }
	ends(t, run("sessions", "yield"), ExitNothing, "no gateway listens at 127.0.0.1:")
	ends(t, run("sessions", "yield", "--offline", "--json"), ExitNothing, "holds no signal log")
	makeLog(t, state)
	ends(t, run("sessions", "yield", "--offline"), ExitNothing, "watches nothing")
	ends(t, run("awareness", "watch", "agent:main:main", "agent:ops:main"), 0, "")
	ends(t, run("sessions", "yield", "--wait", "100ms"), ExitNothing, "nothing came within 100ms")

	record := []string{"awareness", "record", "agent:ops:main", "--kind", "run_completed", "--summary", "the run is over", "--actor", "system"}
	later := make(chan answer, 1)
	go func() {
		time.Sleep(300 * time.Millisecond)
		later <- run(record...)
	}()
	began := time.Now()
	a := run("sessions", "yield", "--offline", "--wait", "30s", "--json")
	ends(t, <-later, 0, "")
	ends(t, a, 0, "")
	doc := a.doc(t)
	if doc["came"] != true || doc["via"] != "local" || len(doc["events"].([]any)) != 1 || dig(doc["events"].([]any)[0], "sessionKey") != "agent:ops:main" || time.Since(began) > 20*time.Second {
		t.Errorf("%s", a.out)
	}
	// It was told once; what notifies is pending until it is acknowledged.
	ends(t, run("sessions", "yield", "--offline", "--wait", "0"), ExitNothing, "nothing came")
	ends(t, run("awareness", "record", "agent:ops:main", "--kind", "goal_changed", "--summary", "a goal", "--actor", "system"), 0, "")
	for range 2 {
		a = run("sessions", "yield", "--offline")
		if a.exit != 0 || !strings.Contains(a.out, `Session "agent:ops:main" changed`) {
			t.Errorf("%+v", a)
		}
	}
	ends(t, run("awareness", "notices", "--ack"), 0, "")
	ends(t, run("sessions", "yield", "--offline", "--wait", "0"), ExitNothing, "nothing came")
}

func TestLiveStatus(t *testing.T) {
	each(t, func(t *testing.T, p *puppet) {
		p.tool["session_status"] = "http-session_status-ops"
		a := p.oc("status", "--live")
		for _, text := range []string{"The gateway says:\n", "  Release  " + p.release, "  Health   ok", "  agent:ops:main\n", "    model fake/fake-1, answers go to "} {
			if a.exit != 0 || !strings.Contains(a.out, text) {
				t.Errorf("no %q in %+v", text, a)
			}
		}
		doc := p.oc("status", "--live", "--json").doc(t)
		row := dig(doc, "live", "sessions").([]any)[0].(map[string]any)
		if dig(doc, "live", "health", "ok") != true || dig(doc, "live", "via") != "gateway" || row["key"] != "agent:ops:main" || row["hasActiveRun"] != true || row["statusText"] == nil {
			t.Errorf("%v", doc["live"])
		}
		a = p.oc("status", "--live", "--as", "agent:main:main", "--json") // another agent's run is not for it, nor the sessions that health names
		doc = a.doc(t)
		for _, run := range dig(doc, "live", "sessions").([]any) {
			want(t, "a run", dig(run, "key"), any("agent:main:main"))
		}
		if len(dig(doc, "live", "health").(map[string]any)) != 1 || !strings.Contains(a.errout, "left out") {
			t.Errorf("%+v", a)
		}
		p.says["sessions.describe"] = json.RawMessage(`{"session":{"key":"agent:ops:main","hasActiveRun":false,"status":"done","lastChannel":"telegram"}}`)
		doc = p.oc("status", "--session", "agent:ops:main", "--live", "--json").doc(t)
		if row := dig(doc, "live", "sessions").([]any)[0].(map[string]any); row["hasActiveRun"] != false || row["lastChannel"] != "telegram" {
			t.Errorf("%v", row)
		}
		ends(t, p.oc("status", "--live", "--changes-since", "1"), ExitUsage, "--live and --changes-since")
		ends(t, p.oc("status", "--live", "--offline"), ExitUsage, "--offline")
		// What is on disk is told also where the gateway does not answer.
		a = p.oc("status", "--live", "--url", "ws://127.0.0.1:1", "--token", liveToken, "--json")
		ends(t, a, ExitBusy, "nothing listens there")
		if doc := a.doc(t); doc["agents"] == nil || dig(doc, "live", "error", "code") != "gateway-refused" {
			t.Errorf("%s", a.out)
		}
	})
}

func TestLivePing(t *testing.T) {
	each(t, func(t *testing.T, p *puppet) {
		a := p.oc("gateway", "ping")
		if a.exit != 0 || !strings.Contains(a.out, "OpenClaw "+p.release+" answers") || !strings.Contains(a.out, p.state) {
			t.Errorf("%+v", a)
		}
		doc := p.oc("gateway", "ping", "--json").doc(t)
		if doc["ok"] != true || doc["version"] != p.release || doc["stateDir"] != p.state || doc["mainSessionKey"] != "agent:main:main" {
			t.Errorf("%v", doc)
		}
		if len(p.asked) != 0 {
			t.Errorf("asked: %v", p.asked)
		}
		url := fmt.Sprintf("ws://127.0.0.1:%d", p.port)
		ends(t, p.oc("gateway", "ping", "--token", "wrong-one"), ExitRefused, "AUTH_TOKEN_MISMATCH")
		ends(t, p.oc("gateway", "ping", "--url", url), ExitRefused, "give --token or --password too")
		ends(t, p.oc("gateway", "ping", "--url", url, "--token", liveToken), 0, "")
		ends(t, p.oc("gateway", "ping", "--url", "ws://192.0.2.1:18789", "--token", liveToken), ExitRefused, "OPENCLAW_ALLOW_INSECURE_PRIVATE_WS=1")
		ends(t, p.ocWith(map[string]string{"OPENCLAW_ALLOW_INSECURE_PRIVATE_WS": "1"}, "", "gateway", "ping", "--url", "ws://192.0.2.1:18789", "--token", liveToken, "--gateway-timeout", "50ms"), ExitBusy, "192.0.2.1")
		ends(t, p.ocWith(map[string]string{"OPENCLAW_GATEWAY_URL": url}, "", "gateway", "ping"), ExitRefused, "env OPENCLAW_GATEWAY_TOKEN")
		ends(t, p.ocWith(map[string]string{"OPENCLAW_GATEWAY_URL": url, "OPENCLAW_GATEWAY_TOKEN": liveToken}, "", "gateway", "ping"), 0, "")
		// No credentials at all: where was looked for them.
		if err := os.WriteFile(filepath.Join(p.state, "openclaw.json"), []byte(fmt.Sprintf(`{"gateway": {"port": %d}}`, p.port)), 0o600); err != nil {
			t.Fatal(err)
		}
		a = p.oc("gateway", "ping")
		for _, place := range []string{"gateway.auth.token", "gateway.auth.password", "env OPENCLAW_GATEWAY_TOKEN", "env OPENCLAW_GATEWAY_PASSWORD", "gateway.remote.token"} {
			ends(t, a, ExitRefused, place)
		}
		// The gateway of another state is asked nothing, and one that does not say whose it is neither.
		configure(t, p.state, p.port)
		mine := p.state
		p.state = t.TempDir()
		ends(t, ocBeside(t, mine, nil, "", "gateway", "ping"), ExitRefused, "it has the state "+p.state)
		p.tool["sessions_send"] = "http-sessions_send-wait"
		ends(t, ocBeside(t, mine, nil, "", "sessions", "send", "agent:ops:main", "x"), ExitRefused, "it is not the gateway of this state")
		p.state = ""
		ends(t, ocBeside(t, mine, nil, "", "gateway", "ping"), ExitRefused, "does not say which state it has")
		if len(p.asked)+len(p.bodies) != 0 {
			t.Errorf("asked: %v %v", p.asked, p.bodies)
		}
	})
}

// A device identity is made on request alone.
func TestLivePair(t *testing.T) {
	p := beside(t, "2026.9.6")
	path := gateway.IdentityFile(p.state)
	if a := p.oc("gateway", "ping"); a.exit != 0 {
		t.Fatal(a)
	}
	if _, err := os.Stat(path); err == nil {
		t.Fatal("a ping made an identity")
	}
	doc := p.oc("gateway", "pair", "--json").doc(t)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || doc["made"] != true || doc["path"] != path || doc["wanted"] != false {
		t.Errorf("%v %v %v", err, info, doc)
	}
	if again := p.oc("gateway", "pair", "--json").doc(t); again["made"] != false || again["deviceId"] != doc["deviceId"] {
		t.Errorf("%v", again)
	}
}
