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

// A store by its path belongs to the state around it: a gateway of that one is in the way, and the gateway of this state is not asked.
func TestStoreOfAnotherState(t *testing.T) {
	state, _, env := lived(t)
	elsewhere, sessions, _ := lived(t)
	f := fake(t, "2026.7.35", state, func(c fakeCall) fakeEnd { t.Errorf("%v was called", c); return fakeEnd{hangUp: true} })
	line := []string{"--state-dir", state, "--json", "sessions", "archive", "agent:work:hook:web-shop-order", "--store", filepath.Join(sessions, "sessions.json")}
	if a := ocRun(t, state, f.env(env), line...); a.exit != ExitDone || via(t, a) != viaLocal {
		t.Errorf("nobody lives there: exit %d: %s", a.exit, a.errout)
	}
	// A process that lives holds the lock of that state.
	dir := filepath.Join(elsewhere, "tmp", "openclaw-0")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	self := lock.Local().Process(os.Getpid())
	text := fmt.Sprintf(`{"pid": %d, "createdAt": %q, "stateDir": %q, "port": 1, "startTime": %d}`, os.Getpid(), time.Now().UTC().Format(time.RFC3339), elsewhere, self.Start)
	if err := os.WriteFile(filepath.Join(dir, "gateway.state.lock"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	before := tree(t, elsewhere)
	line[5] = "agent:work:explicit:invoice-audit"
	if a := ocRun(t, state, f.env(env), line...); a.exit != ExitRefused || !strings.Contains(a.errout, "--beside-gateway") || tree(t, elsewhere) != before {
		t.Errorf("one lives there: exit %d: %s", a.exit, a.errout)
	}
}
