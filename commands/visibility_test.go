package commands

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oc/fixtures"
)

// A session that asks is shown what tools.sessions.visibility lets it see (spec/session-tools.md 5), by list, show and status; $OC_SESSION
// counts only in a shell that OpenClaw started.
func TestVisibility(t *testing.T) {
	const me, child, other, far = "agent:main:explicit:me", "agent:main:subagent:child", "agent:main:explicit:other", "agent:work:main"
	state := t.TempDir()
	for agent, rows := range map[string]string{
		"main": fmt.Sprintf(`{%[1]q:{"sessionId":"a","updatedAt":%[4]d},%[2]q:{"sessionId":"b","updatedAt":%[4]d,"spawnedBy":%[1]q,"status":"running"},%[3]q:{"sessionId":"c","updatedAt":%[4]d,"status":"running"}}`, me, child, other, fixtures.Now-1000),
		"work": fmt.Sprintf(`{%q:{"sessionId":"d","updatedAt":%d,"status":"running"}}`, far, fixtures.Now-1000),
	} {
		lines(t, filepath.Join(state, "agents", agent, "sessions", "sessions.json"), rows)
	}
	agents := `"agents":{"list":[{"id":"main","default":true},{"id":"work"}]}`
	for _, c := range []struct {
		tools, mode string
		seen        []string
	}{
		{`{"sessions":{"visibility":"self"}}`, "self", []string{me}},
		{`{"sessions":{"visibility":"tree"}}`, "tree", []string{me, child}},
		{`{}`, "tree", []string{me, child}},
		{`{"sessions":{"visibility":"agent"}}`, "agent", []string{me, child, other}},
		{`{"sessions":{"visibility":"all"}}`, "", []string{me, child, other}},
		{`{"sessions":{"visibility":"all"},"agentToAgent":{"enabled":true,"allow":["*"]}}`, "", []string{me, child, other, far}},
	} {
		lines(t, filepath.Join(state, "openclaw.json"), fmt.Sprintf(`{"tools":%s,%s}`, c.tools, agents))
		a := at(t, state, "sessions", "list", "--all-agents", "--as", me, "--json")
		doc := a.doc(t)
		same(t, c.tools, keysOf(doc), sorted(c.seen...))
		mode, _ := dig(doc, "visibility", "mode").(string)
		want(t, "mode", mode, c.mode)
		if left := 4 - len(c.seen); (left > 0) != strings.Contains(a.errout, "left out") {
			t.Errorf("%s: %d are left out: %s", c.tools, left, a.errout)
		}
		a = at(t, state, "status", "--as", me, "--json")
		var named []string
		for _, part := range []string{"running", "newest"} {
			rows, _ := dig(a.doc(t), part).([]any)
			for _, r := range rows {
				key, _ := dig(r, "key").(string)
				named = append(named, part+" "+key)
			}
		}
		var rows []string
		for _, key := range c.seen {
			if rows = append(rows, "newest "+key); key != me {
				rows = append(rows, "running "+key)
			}
		}
		same(t, c.tools+": status", sorted(named...), sorted(rows...))
		mode, _ = dig(a.doc(t), "visibility", "mode").(string)
		want(t, "mode of status", mode, c.mode)
		for _, key := range []string{me, child, other, far} {
			if said := at(t, state, "status", "--as", me); strings.Contains(said.out, key) != slices.Contains(c.seen, key) {
				t.Errorf("%s: status and %s:\n%s", c.tools, key, said.out)
			}
			exit := ExitFailed
			for _, s := range c.seen {
				if s == key {
					exit = ExitDone
				}
			}
			for _, command := range [][]string{{"sessions", "show", key}, {"status", "--session", key}, {"status", "--changes-since", "0", "--session", key}} {
				a := at(t, state, append(command, "--as", me)...)
				if a.exit != exit || exit == ExitFailed && (a.out != "" || !strings.Contains(a.errout, key+" is not for "+me)) {
					t.Errorf("%s: %v: exit %d, want %d\n%s%s", c.tools, command, a.exit, exit, a.out, a.errout)
				}
			}
		}
	}

	lines(t, filepath.Join(state, "openclaw.json"), fmt.Sprintf(`{%s}`, agents))
	env := quiet(t, fixtures.Now)
	env["OC_SESSION"] = me
	want(t, "by hand", len(keysOf(ocRun(t, state, env, "--state-dir", state, "sessions", "--json").doc(t))), 3)
	env["OPENCLAW_SHELL"] = "exec"
	want(t, "in the shell of an agent", len(keysOf(ocRun(t, state, env, "--state-dir", state, "sessions", "--json").doc(t))), 2)
	for _, command := range [][]string{{"sessions", "list"}, {"sessions", "show", me}, {"status", "--session", me}, {"status", "--changes-since", "0", "--all-sessions"}} {
		if a := at(t, state, append(command, "--as", "")...); a.exit != ExitUsage {
			t.Errorf("%v with a blank --as: exit %d %s", command, a.exit, a.errout)
		}
	}
}
