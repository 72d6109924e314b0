package commands

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oc/fixtures"
)

// S17: read-only means read-only. Every command that reads, twice, over every state of a database; what it left is compared by path,
// kind, mode, size, time and bytes.
func TestReadingTouchesNothing(t *testing.T) {
	dir := t.TempDir()
	r := made[fixtures.ReadOnly](t)(fixtures.S17(dir, fixtures.Now))
	t.Cleanup(func() { fixtures.Unseal(r.Sealed) }) //nolint:errcheck // it is removed next
	for _, c := range []struct {
		state string
		keys  []string
	}{
		{r.Log, append([]string{r.Late}, r.Keys[:]...)},
		{r.LogAlone, append([]string{r.Late}, r.Keys[:]...)},
		{r.Sealed, r.Keys[:]},
		{r.Rollback, r.Keys[:]},
		{r.BadIndex, r.Keys[:]},
		{r.Quarantined, r.Keys[:]},
	} {
		t.Run(filepath.Base(c.state), func(t *testing.T) {
			env := quiet(t, fixtures.Now)
			before := tree(t, c.state)
			for range 2 {
				for _, args := range append(readers(c.keys[0]), talkers(c.keys[0])...) {
					a := ocRun(t, c.state, env, append([]string{"--state-dir", c.state}, args...)...)
					if a.exit != ExitDone {
						t.Errorf("oc %v: exit %d: %s", args, a.exit, a.errout)
					}
					if now := tree(t, c.state); now != before {
						t.Fatalf("oc %v changed the tree:\n%s\nbefore:\n%s", args, now, before)
					}
				}
				doc := ocRun(t, c.state, env, "sessions", "--json", "--state-dir", c.state).doc(t)
				same(t, "keys", keysOf(doc), sorted(c.keys...))
				rows := dig(ocRun(t, c.state, env, "status", "--json", "--state-dir", c.state).doc(t), "agents", 0, "rows")
				want(t, "rows of status", rows, float64(len(c.keys)))
			}
			empty(t, env["TMPDIR"])
		})
	}
}

// The sweep: the demo state, which has both eras, and the states that real gateways left.
func TestReadingLeavesWholeStatesAlone(t *testing.T) {
	dir := t.TempDir()
	demo := filepath.Join(dir, "demo")
	if err := fixtures.Demo().Write(demo); err != nil {
		t.Fatal(err)
	}
	states := []string{demo, "../fixtures/demo"}
	for _, archive := range []string{"gateway/state-2026.7.35", "gateway/state-2026.9.6", "sqlite/2026.9.6-unmigrated", "sqlite/2026.9.6-both-present"} {
		state := filepath.Join(dir, filepath.Base(archive))
		unpack(t, filepath.Join(golden, archive+".tar.gz"), state)
		states = append(states, state)
	}
	for _, state := range states {
		t.Run(filepath.Base(state), func(t *testing.T) {
			state, err := filepath.Abs(state)
			if err != nil {
				t.Fatal(err)
			}
			env := quiet(t, fixtures.Now)
			before := tree(t, state)
			for _, args := range append(append(readers("main"), talkers("agent:main:main")...), []string{"sessions", "show", "agent:work:main", "--json"}, []string{"sessions", "show", "no such session"}) {
				a := ocRun(t, state, env, append([]string{"--state-dir", state}, args...)...)
				if a.exit != ExitDone && !a.failedWell() {
					t.Errorf("oc %v: exit %d and no reason: %s", args, a.exit, a.errout)
				}
				if now := tree(t, state); now != before {
					t.Fatalf("oc %v changed the tree:\n%s\nbefore:\n%s", args, now, before)
				}
				if slices.Contains(args, "--json") {
					a.doc(t)
				} else if c := raw(a.out + a.errout); c != "" {
					t.Errorf("oc %v shows a raw %s", args, c)
				}
			}
			empty(t, env["TMPDIR"])
		})
	}
}

// A state that is not there is not made, and its answer is nothing, not a failure: a new installation has none yet.
func TestAStateThatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "nowhere")
	for _, args := range readers("main") {
		exit := ExitDone
		if slices.Contains(args, "show") {
			exit = ExitFailed
		}
		a := ocRun(t, dir, quiet(t, fixtures.Now), append([]string{"--state-dir", state}, args...)...)
		if a.exit != exit {
			t.Errorf("oc %v: exit %d, want %d: %s", args, a.exit, exit, a.errout)
		}
		if slices.Contains(args, "--json") {
			a.doc(t)
		}
	}
	empty(t, dir)
	a := ocRun(t, dir, quiet(t, fixtures.Now), "--state-dir", state)
	if !strings.Contains(a.out, "no session was found here") {
		t.Errorf("the bare oc does not say that nothing is there:\n%s", a.out)
	}
}

// ocProcess runs oc as a process of its own.
func ocProcess(t *testing.T, env map[string]string, args ...string) answer {
	t.Helper()
	path, err := exec.LookPath("oc") // the test binary under another name, see TestMain
	if err != nil {
		t.Fatal(err)
	}
	return runAs(t, exec.Command(path, args...), env)
}

func runAs(t *testing.T, cmd *exec.Cmd, env map[string]string) answer {
	t.Helper()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TZ=UTC", "LANG=C.UTF-8", "NO_COLOR=1", "TERM=dumb", "GORACE=atexit_sleep_ms=0"} // under -race each process would linger for a second
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	var out, errout strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errout
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatalf("%s %v: %v", cmd.Path, cmd.Args[1:], err)
	}
	return answer{cmd.ProcessState.ExitCode(), out.String(), errout.String()}
}

// empty says that a directory has nothing in it.
func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		t.Errorf("%s was left in %s", f.Name(), dir)
	}
}
