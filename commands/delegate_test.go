package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oc/fixtures"
	"oc/gateway"
	"oc/store/lock"
)

// What a gateway takes beyond the plan is told, and comes back where it can.
func TestUnplanned(t *testing.T) {
	const planned, also = "agent:work:hook:web-shop-order", "agent:work:telegram:direct:5550137"
	for _, purge := range []bool{false, true} {
		state, sessions, env := lived(t)
		h := &house{t, "2026.7.35", sessions}
		f := fake(t, "2026.7.35", state, func(c fakeCall) fakeEnd {
			all := h.read()
			for _, key := range []string{planned, also} {
				i := slices.IndexFunc(all, func(e entry) bool { return e.key == key })
				h.archive(all[i].text("sessionId"), "deleted")
				all = slices.Delete(all, i, i+1)
			}
			// It works meanwhile: a row of its own, and one that it writes.
			i := slices.IndexFunc(all, func(e entry) bool { return e.key == "agent:work:main" })
			all[i].val = json.RawMessage(strings.Replace(string(all[i].val), "{", "{\n    \"theirs\": true,", 1))
			h.write(append(all, entry{"agent:work:new", json.RawMessage(`{"sessionId": "new", "updatedAt": 1}`)}))
			end := h.do(fakeCall{"sessions.cleanup", map[string]any{}})
			return end
		})
		before := h.read()
		args := []string{"--state-dir", state, "--json", "sessions", "cleanup", "--agent", "work"}
		if purge {
			args = append(args, "--purge")
		}
		a := ocRun(t, state, f.env(env), args...)
		if a.exit != ExitDone {
			t.Fatalf("exit %d: %s", a.exit, a.errout)
		}
		var d struct {
			BeforeCount, AfterCount int
			Unplanned               []struct {
				Key, Target string
				Covered     bool
			}
			Undo *struct{ Run string }
		}
		if err := json.Unmarshal([]byte(a.out), &d); err != nil {
			t.Fatal(err)
		}
		// The numbers of the recorded answer are others: the rows count.
		if d.BeforeCount != len(before) || d.AfterCount != len(before)-1 {
			t.Errorf("%d before, %d after", d.BeforeCount, d.AfterCount)
		}
		if len(d.Unplanned) != 2 || d.Unplanned[0].Key != also || d.Unplanned[0].Covered == purge || d.Unplanned[1].Target == "" || d.Unplanned[1].Covered == purge {
			t.Errorf("unplanned: %+v", d.Unplanned)
		}
		if !strings.Contains(a.errout, also) {
			t.Errorf("it is not told: %s", a.errout)
		}
		if purge {
			if d.Undo != nil {
				t.Errorf("a purge can be undone: %+v", d.Undo)
			}
			continue
		}
		env["OPENCLAW_GATEWAY_PORT"] = "1"
		if u := ocRun(t, state, env, "--state-dir", state, "undo", d.Undo.Run); u.exit != ExitDone {
			t.Fatalf("undo: exit %d: %s%s", u.exit, u.out, u.errout)
		}
		after := map[string]string{}
		for _, e := range h.read() {
			after[e.key] = string(e.val)
		}
		for _, e := range before {
			if e.key != "agent:work:main" && after[e.key] != string(e.val) {
				t.Errorf("%s is %s", e.key, after[e.key])
			}
		}
		if !strings.Contains(after["agent:work:main"], "theirs") || after["agent:work:new"] == "" {
			t.Errorf("what the gateway wrote itself is gone: %v", after)
		}
		for _, id := range []string{"9350a34f-91e4-475f-a882-ddf030bc096c", "8f1d5540-bc5f-47a0-a629-cd370c2d6df0"} {
			if _, err := os.Stat(filepath.Join(sessions, id+".jsonl")); err != nil {
				t.Error(err)
			}
		}
	}
}

// What the gateway's cleanup cannot do is done session by session, and what that leaves is told; what it has no call for is refused.
func TestInexpressible(t *testing.T) {
	for _, x := range []struct {
		args  []string
		calls []string
		exit  int
		says  string
	}{
		{
			[]string{"sessions", "cleanup", "--agent", "work", "--active-key", "agent:work:main", "--active-key", "agent:work:explicit:invoice-audit"},
			[]string{`sessions.delete {"expectedSessionId":"9350a34f-91e4-475f-a882-ddf030bc096c","key":"agent:work:hook:web-shop-order"}`},
			ExitRefused, "one --active-key only",
		},
		{
			[]string{"sessions", "cleanup", "--agent", "work", "--keep-unlinked"},
			[]string{`sessions.delete {"expectedSessionId":"9350a34f-91e4-475f-a882-ddf030bc096c","key":"agent:work:hook:web-shop-order"}`},
			ExitRefused, "--keep-unlinked",
		},
		{[]string{"sessions", "restore", "60aa8ead-51b4-4fcb-a52f-af96c89778b6"}, nil, ExitRefused, "no call that brings back an archive"},
		{[]string{"sessions", "reset", "agent:work:cron:c0ffee12-4b5d-4e6f-8a7b-9c0d1e2f3a4b", "--cron-run"}, nil, ExitRefused, "--cron-run"},
		{[]string{"sessions", "patch", "agent:work:hook:web-shop-order", "--unset", "displayName"}, nil, ExitRefused, "displayName"},
		{[]string{"sessions", "compact", "agent:work:slack:channel:c04ops", "--provider", "extract"}, nil, ExitRefused, "its own model and settings, not with --provider"},
	} {
		state, sessions, env := lived(t)
		f := fake(t, "2026.7.35", state, (&house{t, "2026.7.35", sessions}).do)
		a := ocRun(t, state, f.env(env), append([]string{"--state-dir", state, "--json"}, x.args...)...)
		var calls []string
		for _, c := range f.calls() {
			calls = append(calls, c.String())
		}
		if a.exit != x.exit || !slices.Equal(calls, x.calls) || !strings.Contains(a.errout, x.says) {
			t.Errorf("%v: exit %d, calls %v: %s", x.args, a.exit, calls, a.errout)
		}
	}
}

// A session that became another one since the plan was made is left, and that is told.
func TestAnotherSessionByNow(t *testing.T) {
	const key = "agent:work:telegram:direct:5550137"
	state, sessions, env := lived(t)
	h := &house{t, "2026.7.35", sessions}
	f := fake(t, "2026.7.35", state, func(c fakeCall) fakeEnd {
		all := h.read()
		i := slices.IndexFunc(all, func(e entry) bool { return e.key == key })
		all[i].val = json.RawMessage(strings.Replace(string(all[i].val), all[i].text("sessionId"), "11111111-2222-4333-8444-555555555555", 1))
		h.write(all)
		return h.do(c)
	})
	a := ocRun(t, state, f.env(env), "--state-dir", state, "sessions", "delete", key, "--yes", "--json")
	if a.exit == ExitDone || !strings.Contains(a.errout, "changed before deletion") || !strings.Contains(a.out, `"refused"`) {
		t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	if _, err := os.Stat(filepath.Join(sessions, "8f1d5540-bc5f-47a0-a629-cd370c2d6df0.jsonl")); err != nil {
		t.Error(err)
	}
}

// A session that was written just now is in use by somebody unseen, unless a gateway that lives is asked: it knows whom it works for. A lock is
// respected either way.
func TestWrittenJustNow(t *testing.T) {
	const key, transcript = "agent:work:telegram:direct:5550137", "8f1d5540-bc5f-47a0-a629-cd370c2d6df0.jsonl"
	for _, verb := range [][]string{{"delete", "--yes"}, {"archive"}, {"reset"}, {"patch", "--pin"}} {
		t.Run(verb[0], func(t *testing.T) {
			state, sessions, env := lived(t)
			h := &house{t, "2026.7.35", sessions}
			f := fake(t, "2026.7.35", state, h.do)
			at := time.UnixMilli(fixtures.Now - 60_000)
			if err := os.Chtimes(filepath.Join(sessions, transcript), at, at); err != nil {
				t.Fatal(err)
			}
			line := slices.Concat([]string{"--state-dir", state, "--json", "sessions"}, verb, []string{key})
			if a := ocRun(t, state, f.env(env), append(line, "--offline")...); a.exit != ExitRefused || len(f.calls()) != 0 {
				t.Fatalf("offline: exit %d: %s%s", a.exit, a.out, a.errout)
			}
			lockFile := filepath.Join(sessions, transcript+lock.Suffix)
			hold(t, filepath.Join(sessions, transcript))
			if a := ocRun(t, state, f.env(env), line...); a.exit != ExitBusy || len(f.calls()) != 0 {
				t.Errorf("locked: exit %d: %s%s", a.exit, a.out, a.errout)
			}
			if err := os.Remove(lockFile); err != nil {
				t.Fatal(err)
			}
			if a := ocRun(t, state, f.env(env), line...); a.exit != ExitDone || via(t, a) != viaGateway || len(f.calls()) != 1 {
				t.Errorf("exit %d, %v: %s%s", a.exit, f.calls(), a.out, a.errout)
			}
		})
	}
}

// What a gateway refuses is told alone: no plan stands before it as though it had been done, and of several sessions only those that went do.
func TestRefusedIsToldAlone(t *testing.T) {
	const key, other = "agent:work:telegram:direct:5550137", "agent:work:explicit:invoice-audit"
	for _, verb := range [][]string{{"delete", "--yes"}, {"archive"}, {"reset"}, {"patch", "--label", "Ann"}} {
		t.Run(verb[0], func(t *testing.T) {
			state, sessions, env := lived(t)
			h := &house{t, "2026.7.35", sessions}
			f := fake(t, "2026.7.35", state, func(c fakeCall) fakeEnd {
				if c.Params["key"] == key {
					return fakeEnd{failure: map[string]any{"code": "UNAVAILABLE", "message": "it is busy with a turn"}}
				}
				return h.do(c)
			})
			before := kept(t, state)
			line := slices.Concat([]string{"--state-dir", state, "sessions"}, verb, []string{key})
			a := ocRun(t, state, f.env(env), line...)
			if a.exit == ExitDone || a.out != "Nothing was changed.\n" || strings.Count(a.errout, "it is busy with a turn") != 1 || !slices.Equal(kept(t, state), before) {
				t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
			}
			if verb[0] == "patch" || verb[0] == "reset" {
				return // of one session
			}
			a = ocRun(t, state, f.env(env), append(line, other)...)
			if a.exit == ExitDone || strings.Contains(a.out, key) || !strings.Contains(a.out, "invoice-audit") || !strings.Contains(a.out, "Done by the gateway: 1 row") {
				t.Errorf("two: exit %d: %s%s", a.exit, a.out, a.errout)
			}
		})
	}
}

// What a gateway takes out of the configuration is saved with the run, and is not said to be lost; the workspace is.
func TestAgentLeftovers(t *testing.T) {
	state, sessions, env := lived(t)
	file := filepath.Join(state, "openclaw.json")
	config, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f := fake(t, "2026.7.35", state, func(c fakeCall) fakeEnd {
		payload, _ := frameOf(t, "2026.7.35", "agents.delete")
		if err := errors.Join(os.RemoveAll(filepath.Dir(sessions)), os.WriteFile(file, []byte(`{"agents": {"list": [{"id": "main", "default": true}]}}`), 0o600)); err != nil {
			t.Error(err)
		}
		return fakeEnd{payload: payload}
	})
	if err := os.Mkdir(filepath.Join(state, "workspace-work"), 0o700); err != nil { // where OpenClaw has it when nobody says
		t.Fatal(err)
	}
	line := []string{"--state-dir", state, "--json", "agents", "delete", "work"}
	// A dry run foretells it: of a gateway that may live here beside what oc itself would leave, and of one that does alone.
	entry := func(list any) bool {
		return strings.Contains(fmt.Sprint(list), "its workspace") && strings.Contains(fmt.Sprint(list), "its entry in the configuration")
	}
	told := func(env map[string]string, says string, left, beyond bool, more ...string) {
		t.Helper()
		a := ocRun(t, state, env, slices.Concat(line, []string{"--dry-run"}, more)...)
		if d := a.doc(t); a.exit != ExitDone || entry(dig(d, "left")) != left || entry(dig(d, "beyond")) != beyond || !strings.Contains(a.errout, says) {
			t.Errorf("dry run: exit %d: %s%s", a.exit, a.out, a.errout)
		}
	}
	nobody := maps.Clone(env)
	nobody["OPENCLAW_GATEWAY_PORT"] = "1"
	told(nobody, "left as it is: its entry", true, false)
	told(f.env(env), "if a gateway lives here, as it may", true, true)
	told(f.env(env), "left as it is: its entry", true, false, "--offline")
	alive := maps.Clone(nobody)
	alive["TMPDIR"] = t.TempDir()
	lives(t, alive["TMPDIR"], state)
	told(alive, "the gateway that lives here is asked", false, true)
	a := ocRun(t, state, f.env(env), append(line, "--yes")...)
	if a.exit != ExitDone {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	var d struct {
		Unplanned []struct {
			Target  string
			Covered bool
		}
		Undo struct{ Run string }
	}
	if err := json.Unmarshal([]byte(a.out), &d); err != nil {
		t.Fatal(err)
	}
	entries := 0
	for _, u := range d.Unplanned {
		inFile := strings.Contains(u.Target, "openclaw.json")
		if inFile != u.Covered {
			t.Errorf("%+v", u)
		}
		if inFile {
			entries++
		}
	}
	if entries == 0 || !strings.Contains(a.errout, "undo brings it back") {
		t.Errorf("%d entries of the configuration are told: %s", entries, a.errout)
	}
	env["OPENCLAW_GATEWAY_PORT"] = "1"
	if u := ocRun(t, state, env, "--state-dir", state, "undo", d.Undo.Run); u.exit != ExitDone {
		t.Errorf("undo: exit %d: %s%s", u.exit, u.out, u.errout)
	}
	if now, _ := os.ReadFile(file); string(now) != string(config) {
		t.Errorf("the configuration does not come back: %s", now)
	}
}

// A workspace that another agent has too is not among what a gateway takes, also where the other's lies around it.
func TestASharedWorkspaceStays(t *testing.T) {
	for name, config := range map[string]string{
		"the same":   `{"agents": {"entries": {"main": {"default": true, "workspace": "%[1]s"}, "work": {"workspace": "%[1]s"}}}}`,
		"around it":  `{"agents": {"list": [{"id": "main", "default": true}, {"id": "work"}], "defaults": {"workspace": "%[1]s"}}}`,
		"beside it":  `{"agents": {"list": [{"id": "main", "default": true, "workspace": "%[1]s/a"}, {"id": "work", "workspace": "%[1]s/b"}]}}`,
		"each below": `{"agents": {"ownership": "explicit", "entries": {"main": {"default": true}, "work": {}}, "defaults": {"workspace": "%[1]s"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			state, _, env := lived(t)
			shared := name == "the same" || name == "around it"
			dir := filepath.Join(t.TempDir(), "ws")
			for _, at := range []string{"a", "b", "work", "main"} {
				if err := os.MkdirAll(filepath.Join(dir, at), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(state, "openclaw.json"), fmt.Appendf(nil, config, dir), 0o600); err != nil {
				t.Fatal(err)
			}
			env["TMPDIR"] = t.TempDir()
			lives(t, env["TMPDIR"], state)
			a := ocRun(t, state, env, "--state-dir", state, "--json", "agents", "delete", "work", "--dry-run")
			d := a.doc(t)
			left, beyond := fmt.Sprint(dig(d, "left")), fmt.Sprint(dig(d, "beyond"))
			if a.exit != ExitDone || strings.Contains(left, "its workspace") != shared || strings.Contains(beyond, "its workspace") == shared || shared && !strings.Contains(left, "also that of main") {
				t.Errorf("exit %d: left %s, beyond %s: %s", a.exit, left, beyond, a.errout)
			}
		})
	}
}

// What became of a call that was cut short is told by the next change, and what nobody counted is unknown, not nothing.
func TestCutShortIsTold(t *testing.T) {
	state, sessions, env := lived(t)
	h := &house{t, "2026.7.35", sessions}
	cut := true
	f := fake(t, "2026.7.35", state, func(c fakeCall) fakeEnd {
		end := h.do(c)
		end.hangUp, cut = cut, false
		return end
	})
	line := func(key string) []string { return []string{"--state-dir", state, "sessions", "delete", key, "--yes"} }
	if a := ocRun(t, state, f.env(env), line("agent:work:telegram:direct:5550137")...); a.exit != ExitBusy {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	if a := ocRun(t, state, f.env(env), line("agent:work:explicit:invoice-audit")...); a.exit != ExitDone || !strings.Contains(a.errout, "had been cut short and was settled") {
		t.Errorf("exit %d: %s", a.exit, a.errout)
	}
	doc := ocRun(t, state, env, "--state-dir", state, "undo", "--list", "--json").doc(t)
	rows := map[string]any{}
	for i := range 2 { // of the same instant, so in either order
		command, _ := dig(doc, "runs", i, "command").(string)
		rows[command[strings.LastIndex(command, " ")+1:]] = dig(doc, "runs", i, "rows")
		want(t, "possible", dig(doc, "runs", i, "possible"), true)
	}
	if unknown, told := rows["agent:work:telegram:direct:5550137"]; unknown != nil || !told || rows["agent:work:explicit:invoice-audit"] != 1.0 {
		t.Errorf("%v", rows)
	}
}

// The archives that a gateway of the SQLite era makes are those that it names: their names are not those of the transcripts.
func TestArchivedIn(t *testing.T) {
	payload, _ := frameOf(t, "2026.9.6", "sessions.delete")
	raw, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	if got := archivedIn(raw); len(got) != 1 || !strings.HasSuffix(got[0], ".zst") {
		t.Errorf("%q", got)
	}
	for _, odd := range []string{``, `null`, `{"archived":7}`, `{"archived":{"a":"b"}}`, `{"archived":[1,null]}`} {
		if got := archivedIn([]byte(odd)); len(got) != 0 {
			t.Errorf("%s: %q", odd, got)
		}
	}
}

// A compaction that the gateway did not make is no success.
func TestUncompacted(t *testing.T) {
	if err := uncompacted([]byte(`{"ok":false,"key":"a","compacted":false,"reason":"Already compacted"}`)); err == nil || !strings.Contains(err.Error(), "Already compacted") {
		t.Error(err)
	}
	for _, done := range []string{`{"ok":true,"compacted":true}`, `{"ok":true,"deleted":true}`, ``} {
		if err := uncompacted([]byte(done)); err != nil {
			t.Error(done, err)
		}
	}
}

// An error that says by itself that it was interrupted says so once.
func TestInterruptedOnce(t *testing.T) {
	for _, err := range []error{
		fmt.Errorf("read a: %w", context.Canceled), context.Canceled,
		gatewayError(&gateway.Error{Fault: gateway.Interrupted, Doing: "call a on", Host: "h", Sent: true, Err: context.Canceled}),
		gatewayError(&gateway.Error{Fault: gateway.Interrupted, Doing: "connect to", Host: "h", Err: context.Canceled}),
	} {
		if said := message(err); strings.Count(said, "interrupted") != 1 {
			t.Errorf("%q", said)
		}
	}
}

// A store by its path belongs to the state around it: a gateway of that one is in the way, and the gateway of this state is not asked.
func TestStoreOfAnotherState(t *testing.T) {
	state, _, env := lived(t)
	elsewhere, sessions, _ := lived(t)
	f := fake(t, "2026.7.35", state, func(c fakeCall) fakeEnd { t.Errorf("%v was called", c); return fakeEnd{hangUp: true} })
	line := []string{"--state-dir", state, "--json", "sessions", "archive", "agent:work:hook:web-shop-order", "--store", filepath.Join(sessions, "sessions.json")}
	if a := ocRun(t, state, f.env(env), line...); a.exit != ExitDone || via(t, a) != viaLocal {
		t.Errorf("nobody lives there: exit %d: %s", a.exit, a.errout)
	}
	lives(t, filepath.Join(elsewhere, "tmp"), elsewhere)
	before := tree(t, elsewhere)
	line[5] = "agent:work:explicit:invoice-audit"
	if a := ocRun(t, state, f.env(env), line...); a.exit != ExitRefused || !strings.Contains(a.errout, "--beside-gateway") || tree(t, elsewhere) != before {
		t.Errorf("one lives there: exit %d: %s", a.exit, a.errout)
	}
}

// lives makes this process the holder of the lock of a state's gateway, below the directory for temporary files.
func lives(t *testing.T, tmp, state string) {
	t.Helper()
	dir := filepath.Join(tmp, "openclaw-0")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	self := lock.Local().Process(os.Getpid())
	text := fmt.Sprintf(`{"pid": %d, "createdAt": %q, "stateDir": %q, "port": 1, "startTime": %d}`, os.Getpid(), time.Now().UTC().Format(time.RFC3339), state, self.Start)
	if err := os.WriteFile(filepath.Join(dir, "gateway.state.lock"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
