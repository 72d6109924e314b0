package commands

import (
	"path/filepath"
	"strings"
	"testing"
)

// A key without an agent is one of the agent that --agent names, or whose store --store names; else of the default agent.
func TestShortKeys(t *testing.T) {
	state, sessions, env := lived(t)
	for _, c := range []struct {
		args string
		key  string
	}{
		{"--agent work show main", "agent:work:main"},
		{"--agent WORK show telegram:direct:5550137", direct},
		{"--store " + filepath.Join(sessions, "sessions.json") + " show main", "agent:work:main"},
		{"show main", "agent:main:main"},
	} {
		a := ocRun(t, state, env, append([]string{"--state-dir", state, "--json", "sessions"}, strings.Fields(c.args)...)...)
		if a.exit != ExitDone || !strings.Contains(a.out, `"key": "`+c.key+`"`) && !strings.Contains(a.out, `"key":"`+c.key+`"`) {
			t.Errorf("%s: exit %d: %s", c.args, a.exit, a.errout)
		}
	}
	for _, verb := range []string{"delete", "archive", "reset", "patch --pin", "restore"} {
		args := append([]string{"--state-dir", state, "--agent", "work", "--dry-run", "--yes", "--json", "sessions"}, strings.Fields(verb)...)
		a := ocRun(t, state, env, append(args, "hook:web-shop-order")...)
		if verb == "restore" {
			if !strings.Contains(a.errout, hook+" is not archived") {
				t.Errorf("%s: %s", verb, a.errout)
			}
			continue
		}
		if a.exit != ExitDone {
			t.Errorf("%s: exit %d: %s", verb, a.exit, a.errout)
			continue
		}
		want(t, verb, dig(a.doc(t), "sessions", 0, "key"), hook)
	}
	if a := ocRun(t, state, env, "--state-dir", state, "--agent", "work", "sessions", "history", "main"); a.exit != ExitDone {
		t.Errorf("history: exit %d: %s", a.exit, a.errout)
	}
}

// What is changed is what was named: an agent's id is not bent into shape, and no value is set and unset at once.
func TestVerbsTakeWhatIsWritten(t *testing.T) {
	state, _, env := lived(t)
	before := tree(t, state)
	for _, c := range []struct{ args, says string }{
		{"--agent ../work delete " + direct + " --yes", "--agent work"},
		{"--agent ../WORK/ archive " + direct, "--agent work"},
		{"--agent work patch " + direct + " --label Y --unset label", "--unset label"},
		{"--agent work patch " + direct + " --pin --unset pinnedAt", "--unset pinnedAt"},
		{"--agent work patch " + direct + " --model a/b --unset modelOverride", "--unset modelOverride"},
		{"--agent work delete " + direct + " --yes --purge --keep-undo 2d", "--keep-undo"},
	} {
		a := ocRun(t, state, env, append([]string{"--state-dir", state, "sessions"}, strings.Fields(c.args)...)...)
		if a.exit != ExitUsage || !strings.Contains(a.errout, c.says) {
			t.Errorf("%s: exit %d: %s", c.args, a.exit, a.errout)
		}
	}
	want(t, "the tree", tree(t, state), before)
}

// The reasons of a plan are whole, whatever the width.
func TestVerbsSayWhy(t *testing.T) {
	state, _, env := lived(t)
	a := ocRun(t, state, env, "--state-dir", state, "--agent", "work", "sessions", "delete", direct, "--yes")
	if !strings.Contains(a.out, "\nWhy: it was named to be deleted; its row goes\n") {
		t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
}
