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

	"oc/store/sqlfile"
)

// changing are the commands that change sessions of the demo's agent work, and the calls that a gateway of each release gets for them.
var changing = []struct {
	name  string
	args  []string
	calls map[string][]string // by release
}{
	{"cleanup", []string{"sessions", "cleanup", "--agent", "work", "--enforce"}, both(`sessions.cleanup {"agent":"work","enforce":true}`)},
	{"cleanup-flags", []string{"sessions", "cleanup", "--agent", "work", "--fix-missing", "--fix-dm-scope", "--active-key", "agent:work:main"}, both(
		`sessions.cleanup {"activeKey":"agent:work:main","agent":"work","fixDmScope":true,"fixMissing":true}`)},
	{"cleanup-by-hand", []string{"sessions", "cleanup", "--agent", "work", "--older-than", "20d"}, both(
		`sessions.delete {"expectedSessionId":"9350a34f-91e4-475f-a882-ddf030bc096c","key":"agent:work:hook:web-shop-order"}`)},
	{"delete", []string{"sessions", "delete", "agent:work:explicit:invoice-audit", "agent:work:telegram:direct:5550137", "--yes"}, both(
		`sessions.delete {"expectedSessionId":"da327752-28e5-4462-af82-bbf19cb04a50","key":"agent:work:explicit:invoice-audit"}`,
		`sessions.delete {"expectedSessionId":"8f1d5540-bc5f-47a0-a629-cd370c2d6df0","key":"agent:work:telegram:direct:5550137"}`)},
	{"archive", []string{"sessions", "archive", "agent:work:telegram:direct:5550137"}, both(`sessions.patch {"archived":true,"key":"agent:work:telegram:direct:5550137"}`)},
	{"reset", []string{"sessions", "reset", "agent:work:telegram:direct:5550137", "--reason", "new"}, both(`sessions.reset {"key":"agent:work:telegram:direct:5550137","reason":"new"}`)},
	{"patch", []string{"sessions", "patch", "agent:work:telegram:direct:5550137", "--label", "Ann", "--pin", "--thinking", "high", "--unset", "verboseLevel"}, both(
		`sessions.patch {"key":"agent:work:telegram:direct:5550137","label":"Ann","pinned":true,"thinkingLevel":"high","verboseLevel":null}`)},
}

func both(calls ...string) map[string][]string {
	all := map[string][]string{}
	for _, release := range fakeReleases {
		all[release] = calls
	}
	return all
}

func (c fakeCall) String() string {
	raw, _ := json.Marshal(c.Params)
	return c.Method + " " + string(raw)
}

// S18, first half: what a command sees of a gateway says who makes the change, and nobody ever makes it twice.
func TestS18Gateway(t *testing.T) {
	for _, release := range fakeReleases {
		for _, command := range changing {
			t.Run(release+"/"+command.name, func(t *testing.T) {
				t.Parallel()
				s18(t, release, command.args, command.calls[release])
			})
		}
	}
}

func s18(t *testing.T, release string, args, calls []string) {
	hung := func() int { // accepts, and says nothing
		l := listener(t)
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				t.Cleanup(func() { conn.Close() })
			}
		}()
		return l.Addr().(*net.TCPAddr).Port
	}
	closing := func() int { // accepts, and closes
		l := listener(t)
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				conn.Close()
			}
		}()
		return l.Addr().(*net.TCPAddr).Port
	}
	for _, x := range []struct {
		name  string
		port  func() int
		token string
		more  []string
		exit  int
		says  string
		local bool
	}{
		{name: "refused", port: func() int { return 1 }, local: true},
		{name: "hangs", port: hung, more: []string{"--gateway-timeout", "100ms"}, exit: ExitBusy, says: "no answer in time"},
		{name: "closes", port: closing, exit: ExitBusy, says: "closed the connection"},
		{name: "hangs-offline", port: hung, more: []string{"--offline"}, exit: ExitRefused, says: "something listens on the port"},
		{name: "wrong-token", exit: ExitRefused, token: "another", says: "AUTH_TOKEN_MISMATCH"},
	} {
		t.Run(x.name, func(t *testing.T) {
			state, sessions, env := lived(t)
			f := fake(t, release, state, func(c fakeCall) fakeEnd { t.Errorf("%v was called", c); return fakeEnd{hangUp: true} })
			env = f.env(env)
			if x.port != nil {
				env["OPENCLAW_GATEWAY_PORT"] = fmt.Sprint(x.port())
			}
			if x.token != "" {
				env["OPENCLAW_GATEWAY_TOKEN"] = x.token
			}
			before := tree(t, state)
			a := ocRun(t, state, env, slices.Concat([]string{"--state-dir", state, "--json"}, args, x.more)...)
			if x.local {
				if a.exit != ExitDone && a.exit != ExitLimit || via(t, a) != "local" || len(kept(t, state)) == 0 || tree(t, sessions) == "" {
					t.Fatalf("exit %d, %s%s", a.exit, a.out, a.errout)
				}
				return
			}
			if a.exit != x.exit || !strings.Contains(a.errout, x.says) || !strings.Contains(a.errout, "nothing was changed") {
				t.Errorf("exit %d: %s", a.exit, a.errout)
			}
			if tree(t, state) != before {
				t.Error("something was changed")
			}
			secretless(t, a)
		})
	}

	// A gateway that has another state, and one that does not say which.
	for name, dir := range map[string]string{"other-state": "/nowhere/state", "no-state": ""} {
		t.Run(name, func(t *testing.T) {
			state, _, env := lived(t)
			f := fake(t, release, dir, func(c fakeCall) fakeEnd { t.Errorf("%v was called", c); return fakeEnd{hangUp: true} })
			before := tree(t, state)
			a := ocRun(t, state, f.env(env), slices.Concat([]string{"--state-dir", state, "--json"}, args)...)
			if a.exit != ExitRefused || tree(t, state) != before {
				t.Errorf("exit %d: %s", a.exit, a.errout)
			}
			secretless(t, a)
		})
	}

	// What becomes of a request that was sent is not known: nothing is done by oc, and what it was about is saved.
	for name, end := range map[string]fakeEnd{"hangs-after": {silent: true}, "closes-after": {hangUp: true}} {
		t.Run(name, func(t *testing.T) {
			state, sessions, env := lived(t)
			f := fake(t, release, state, func(fakeCall) fakeEnd { return end })
			before := kept(t, state)
			a := ocRun(t, state, f.env(env), slices.Concat([]string{"--state-dir", state, "--json", "--gateway-timeout", "200ms"}, args)...)
			if a.exit != ExitBusy || !strings.Contains(a.errout, "not known") || !strings.Contains(a.errout, "look at the state") {
				t.Errorf("exit %d: %s", a.exit, a.errout)
			}
			if now := kept(t, state); !slices.Equal(now, before) {
				t.Errorf("oc did it itself: %v", now)
			}
			if got := len(f.calls()); got != 1 {
				t.Errorf("%d calls", got)
			}
			secretless(t, a)
			// The gateway is stopped, and had done nothing: the run is cleared away, and a change is local again.
			env["OPENCLAW_GATEWAY_PORT"] = "1"
			a = ocRun(t, state, env, slices.Concat([]string{"--state-dir", state, "--json"}, args)...)
			if a.exit != ExitDone && a.exit != ExitLimit || via(t, a) != "local" {
				t.Errorf("afterwards: exit %d: %s", a.exit, a.errout)
			}
			if tree(t, sessions) == "" {
				t.Error("no sessions")
			}
		})
	}

	// A gateway of this state makes the change.
	t.Run("delegated", func(t *testing.T) {
		state, sessions, env := lived(t)
		h := &house{t, release, sessions}
		f := fake(t, release, state, h.do)
		before := kept(t, state)
		a := ocRun(t, state, f.env(env), slices.Concat([]string{"--state-dir", state, "--json"}, args)...)
		if a.exit != ExitDone || via(t, a) != "gateway" {
			t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
		}
		var got []string
		for _, c := range f.calls() {
			got = append(got, c.String())
		}
		if !slices.Equal(got, calls) {
			t.Errorf("it was asked for\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(calls, "\n"))
		}
		secretless(t, a)
		secretlessTree(t, state)
		after := kept(t, state)
		run := undoRun(t, a)
		if changed := !slices.Equal(before, after); changed != (run != "") {
			t.Fatalf("changed: %v, and the run is %q: %s", changed, run, a.out)
		}
		if run == "" {
			return
		}
		// Beside it nothing is taken back; when it has stopped, all is as before.
		u := ocRun(t, state, f.env(env), "--state-dir", state, "undo", run)
		if u.exit != ExitRefused || !slices.Equal(kept(t, state), after) {
			t.Errorf("undo beside a gateway: exit %d: %s", u.exit, u.errout)
		}
		env["OPENCLAW_GATEWAY_PORT"] = "1"
		if u = ocRun(t, state, env, "--state-dir", state, "undo", run, "--json"); u.exit != ExitDone || via(t, u) != "local" {
			t.Fatalf("undo: exit %d: %s%s", u.exit, u.out, u.errout)
		}
		if d := diffLines(before, kept(t, state)); d != "" {
			t.Errorf("after undo:\n%s", d)
		}
	})

	t.Run("text", func(t *testing.T) {
		state, sessions, env := lived(t)
		f := fake(t, release, state, (&house{t, release, sessions}).do)
		a := ocRun(t, state, f.env(env), slices.Concat([]string{"--state-dir", state}, args)...)
		if a.exit != ExitDone || !strings.Contains(a.out, "Done by the gateway: ") {
			t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
		}
		secretless(t, a)
	})

	// A store by its path is changed here or not at all.
	t.Run("store", func(t *testing.T) {
		if slices.Contains(args, "--agent") {
			args = slices.Delete(slices.Clone(args), slices.Index(args, "--agent"), slices.Index(args, "--agent")+2)
		}
		state, sessions, env := lived(t)
		f := fake(t, release, state, func(c fakeCall) fakeEnd { t.Errorf("%v was called", c); return fakeEnd{hangUp: true} })
		line := slices.Concat([]string{"--state-dir", state, "--json", "--store", filepath.Join(sessions, "sessions.json")}, args)
		before := tree(t, state)
		if a := ocRun(t, state, f.env(env), line...); a.exit != ExitRefused || !strings.Contains(a.errout, "--beside-gateway") || tree(t, state) != before {
			t.Errorf("exit %d: %s", a.exit, a.errout)
		}
		if a := ocRun(t, state, f.env(env), append(line, "--beside-gateway")...); a.exit != ExitDone && a.exit != ExitLimit || via(t, a) != "local" {
			t.Errorf("exit %d: %s", a.exit, a.errout)
		}
	})
}

// A gateway that dies at any moment of a call: what it did stands, oc does nothing in its place, and undo finds out what there is to take back.
func TestS18GatewayDies(t *testing.T) {
	const key = "agent:work:telegram:direct:5550137"
	for _, command := range [][]string{{"sessions", "delete", key, "--yes"}, {"sessions", "reset", key}, {"sessions", "archive", key}, {"sessions", "cleanup", "--agent", "work", "--older-than", "20d"}} {
		for _, x := range []struct {
			name  string
			dies  string
			end   fakeEnd
			does  bool
			calls int
		}{
			{name: diesBeforeChallenge, dies: diesBeforeChallenge},
			{name: diesAfterChallenge, dies: diesAfterChallenge},
			{name: diesAfterConnect, dies: diesAfterConnect},
			{name: diesAfterHello, dies: diesAfterHello},
			{name: "before it has done it", end: fakeEnd{hangUp: true}, calls: 1},
			{name: "after it has done it", end: fakeEnd{hangUp: true}, does: true, calls: 1},
			{name: "in its answer", end: fakeEnd{half: true}, does: true, calls: 1},
			{name: "in its answer, and nothing is done", end: fakeEnd{half: true}, calls: 1},
		} {
			t.Run(command[1]+" "+x.name, func(t *testing.T) {
				state, sessions, env := lived(t)
				h := &house{t, "2026.7.35", sessions}
				after := kept(t, state)
				before := after
				f := fake(t, "2026.7.35", state, func(c fakeCall) fakeEnd {
					if x.does {
						h.do(c)
						after = kept(t, state)
					}
					return x.end
				})
				f.dies = x.dies
				a := ocRun(t, state, f.env(env), slices.Concat([]string{"--state-dir", state, "--json"}, command)...)
				if a.exit != ExitBusy {
					t.Errorf("exit %d: %s", a.exit, a.errout)
				}
				if calls := f.calls(); x.dies != diesAfterHello && len(calls) != x.calls {
					t.Errorf("%v was asked for", calls)
				}
				if d := diffLines(after, kept(t, state)); d != "" {
					t.Errorf("oc did something in its place:\n%s", d)
				}
				if told := strings.Contains(a.errout, "not known whether it was carried out"); told != (x.calls == 1) && x.dies != diesAfterHello {
					t.Errorf("what is known of it: %s", a.errout)
				}
				env["OPENCLAW_GATEWAY_PORT"] = "1" // it has died
				a = ocRun(t, state, env, "--state-dir", state, "undo", "--json")
				if x.dies != diesAfterHello && (a.exit == ExitDone) != (x.calls == 1) {
					t.Errorf("undo: exit %d: %s%s", a.exit, a.out, a.errout)
				}
				// Archives are not known to be the gateway's when nobody heard its answer.
				archive := func(line string) bool { return strings.Contains(line, "2026-11-30T11-45-34.093Z") }
				now := slices.DeleteFunc(kept(t, state), archive)
				if d := diffLines(before, now); d != "" {
					t.Errorf("after undo:\n%s", d)
				}
			})
		}
	}
}

func listener(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// via is who made the change.
func via(t *testing.T, a answer) string {
	t.Helper()
	var d struct{ Via string }
	if err := json.Unmarshal([]byte(a.out), &d); err != nil {
		t.Errorf("no document: %v: %s", err, a.out)
	}
	return d.Via
}

// undoRun is the run that takes it back; "" where there is none.
func undoRun(t *testing.T, a answer) string {
	t.Helper()
	var d struct {
		Undo *struct {
			Run    string
			Covers struct{ Rows int }
		}
	}
	if err := json.Unmarshal([]byte(a.out), &d); err != nil {
		t.Fatal(err)
	}
	if d.Undo == nil {
		return ""
	}
	if d.Undo.Covers.Rows == 0 {
		t.Errorf("the run covers nothing: %s", a.out)
	}
	return d.Undo.Run
}

// secretless holds that the token is nowhere in what is said.
func secretless(t *testing.T, a answer) {
	t.Helper()
	if strings.Contains(a.out+a.errout, fakeToken) {
		t.Error("the token is told")
	}
}

// secretlessTree holds that no file of the state has it, oc's own included.
func secretlessTree(t *testing.T, state string) {
	t.Helper()
	err := filepath.WalkDir(state, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), fakeToken) {
			t.Errorf("%s has the token", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func diffLines(want, got []string) string {
	var b strings.Builder
	for _, l := range want {
		if !slices.Contains(got, l) {
			b.WriteString("- " + l + "\n")
		}
	}
	for _, l := range got {
		if !slices.Contains(want, l) {
			b.WriteString("+ " + l + "\n")
		}
	}
	return b.String()
}

// So it is with sessions in a database: whatever a listener is, and whenever a gateway dies, oc deletes nothing in its place, and what was saved
// before takes back what the gateway did.
func TestS18Database(t *testing.T) {
	const key = "agent:main:subagent:00000050-1111-4222-8333-000000000050"
	for _, command := range [][]string{{"sessions", "delete", key, "--yes"}, {"sessions", "cleanup", "--enforce"}, {"sessions", "cleanup", "--kind", "subagent", "--older-than", "20d"}} {
		for _, x := range []struct {
			name  string
			dies  string
			end   fakeEnd
			lies  bool
			does  bool
			calls int
			exit  int
		}{
			{name: diesBeforeChallenge, dies: diesBeforeChallenge, exit: ExitBusy},
			{name: diesAfterChallenge, dies: diesAfterChallenge, exit: ExitBusy},
			{name: diesAfterConnect, dies: diesAfterConnect, exit: ExitBusy},
			{name: "another state", lies: true, exit: ExitRefused},
			{name: "hangs", end: fakeEnd{silent: true}, calls: 1, exit: ExitBusy},
			{name: "before it has done it", end: fakeEnd{hangUp: true}, calls: 1, exit: ExitBusy},
			{name: "after it has done it", end: fakeEnd{hangUp: true}, does: true, calls: 1, exit: ExitBusy},
			{name: "in its answer", end: fakeEnd{half: true}, does: true, calls: 1, exit: ExitBusy},
		} {
			t.Run(strings.Join(command[1:], " ")+" "+x.name, func(t *testing.T) {
				state, path, env := migrated(t, "migrated-23")
				says := state
				if x.lies {
					says = "/nowhere/state"
				}
				f := fake(t, "2026.9.6", says, func(c fakeCall) fakeEnd {
					if x.does {
						if err := sqlfile.Write(t.Context(), path, time.Second, func(tx *sqlfile.Tx) error {
							_, err := tx.Exec("DELETE FROM session_nodes WHERE session_key = ?1", key)
							return err
						}); err != nil {
							t.Error(err)
						}
					}
					return x.end
				})
				f.dies = x.dies
				before := tables(t, path)["session_nodes"]
				a := ocRun(t, state, f.env(env), slices.Concat([]string{"--state-dir", state, "--json", "--gateway-timeout", "300ms"}, command)...)
				if told := strings.Contains(a.errout, "not known whether it was carried out"); a.exit != x.exit || len(f.calls()) != x.calls || told != (x.calls == 1) {
					t.Errorf("exit %d, %v: %s", a.exit, f.calls(), a.errout)
				}
				gone := 0
				if x.does {
					gone = 1
				}
				if now := tables(t, path)["session_nodes"]; len(now) != len(before)-gone {
					t.Errorf("%d sessions of %d are there", len(now), len(before))
				}
				// It has died: what it did is taken back.
				if u := ocRun(t, state, env, "--state-dir", state, "undo"); x.does && u.exit != ExitDone {
					t.Errorf("undo: exit %d: %s%s", u.exit, u.out, u.errout)
				}
				if now := tables(t, path)["session_nodes"]; !slices.Equal(now, before) {
					t.Errorf("after undo: %v", now)
				}
			})
		}
	}
}
