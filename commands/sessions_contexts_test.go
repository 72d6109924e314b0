package commands

import (
	"encoding/json"
	"strings"
	"testing"
)

// A list of contexts says of each session what the context of one says, and passes those without a transcript.
func TestContexts(t *testing.T) {
	state, _, env := longTalk(t, `{}`, invoices(3)...)
	a := ocRun(t, state, env, "--state-dir", state, "sessions", "context", "--json")
	one := ocRun(t, state, env, "--state-dir", state, "sessions", "context", "cron:x", "--json")
	var list struct {
		Count    int
		Sessions []json.RawMessage
	}
	if err := json.Unmarshal([]byte(a.out), &list); err != nil || a.exit != ExitDone || list.Count != 1 || len(list.Sessions) != 1 {
		t.Fatalf("exit %d, %v: %s%s", a.exit, err, a.errout, a.out)
	}
	var x, y map[string]any
	if json.Unmarshal(list.Sessions[0], &x) != nil || json.Unmarshal([]byte(one.out), &y) != nil || len(x) == 0 {
		t.Fatal(a.out, one.out)
	}
	for k := range y {
		if got, want := mustJSON(t, x[k]), mustJSON(t, y[k]); got != want {
			t.Errorf("%s is %s, and %s of one session", k, got, want)
		}
	}
	if a := ocRun(t, state, env, "--state-dir", state, "sessions", "context"); a.exit != ExitDone || !strings.Contains(a.out, "agent:main:cron:x") || !strings.Contains(a.out, "To compaction") {
		t.Errorf("exit %d: %s%s", a.exit, a.errout, a.out)
	}
	if a := ocRun(t, state, env, "--state-dir", state, "sessions", "context", "--entries"); a.exit != ExitUsage {
		t.Errorf("--entries without a session: exit %d", a.exit)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
