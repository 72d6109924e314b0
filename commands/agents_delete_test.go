package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oc/fixtures"
)

// everything is what of a tree an undo of a whole directory must bring back: directories, their modes and times too.
func everything(t *testing.T, state, agent string) string {
	t.Helper()
	return tree(t, filepath.Join(state, "agents", agent))
}

func TestAgentsDeleteIsTakenBack(t *testing.T) {
	state, sessions, env := lived(t)
	folder := filepath.Dir(sessions)
	if err := os.MkdirAll(filepath.Join(folder, "agent", "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "agent", "auth-profiles.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../sessions", filepath.Join(folder, "agent", "link")); err != nil {
		t.Fatal(err)
	}
	before, rest := everything(t, state, "work"), everything(t, state, "main")
	config, err := os.ReadFile(filepath.Join(state, "openclaw.json"))
	if err != nil {
		t.Fatal(err)
	}
	whole := tree(t, state)
	if a := ocRun(t, state, env, "--state-dir", state, "agents", "delete", "work", "--dry-run", "--json"); a.exit != ExitDone || tree(t, state) != whole {
		t.Fatalf("dry run: exit %d: %s", a.exit, a.errout)
	}
	a := ocRun(t, state, env, "--state-dir", state, "agents", "delete", "WORK", "--yes", "--json")
	if a.exit != ExitDone {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	doc := a.doc(t)
	want(t, "rows", dig(doc, "committed", "rows"), 10.0)
	if left, _ := dig(doc, "left", 0).(string); !strings.Contains(left, "openclaw.json") {
		t.Errorf("the entry in the configuration is not told: %v", doc["left"])
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the directory is there: %v", err)
	}
	if now, _ := os.ReadFile(filepath.Join(state, "openclaw.json")); string(now) != string(config) {
		t.Error("the configuration was changed")
	}
	want(t, "the other agent", everything(t, state, "main"), rest)
	if back := ocRun(t, state, env, "--state-dir", state, "undo"); back.exit != ExitDone {
		t.Fatalf("undo: exit %d: %s", back.exit, back.errout)
	}
	if now := everything(t, state, "work"); now != before {
		t.Errorf("after undo:\n%s\nbefore:\n%s", now, before)
	}
}

func TestAgentsDeleteRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		id   string
		harm func(t *testing.T, state, sessions string)
		exit int
		says string
	}{
		{"the default agent", "main", nil, ExitRefused, "main"},
		{"nobody", "nobody", nil, ExitFailed, "nobody"},
		{"a path", "../work", nil, ExitFailed, "no agent"},
		{"a locked session", "work", func(t *testing.T, _, sessions string) {
			hold(t, filepath.Join(sessions, "8f1d5540-bc5f-47a0-a629-cd370c2d6df0.jsonl"))
		}, ExitBusy, "locked"},
		{"an unlinked transcript that is written", "work", func(t *testing.T, _, sessions string) {
			if err := os.WriteFile(filepath.Join(sessions, "new.jsonl"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, ExitRefused, "new.jsonl"},
		{"a damaged store", "work", func(t *testing.T, _, sessions string) {
			if err := os.WriteFile(filepath.Join(sessions, "sessions.json"), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, ExitRefused, "sessions.json"},
		{"a broken configuration", "work", func(t *testing.T, state, _ string) {
			if err := os.WriteFile(filepath.Join(state, "openclaw.json"), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, ExitRefused, "configuration"},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, sessions, env := lived(t)
			if c.harm != nil {
				c.harm(t, state, sessions)
			}
			before := tree(t, filepath.Join(state, "agents"))
			a := ocRun(t, state, env, "--state-dir", state, "agents", "delete", c.id, "--yes")
			if a.exit != c.exit || !strings.Contains(a.errout, c.says) {
				t.Errorf("exit %d, want %d: %s", a.exit, c.exit, a.errout)
			}
			if tree(t, filepath.Join(state, "agents")) != before {
				t.Error("something changed")
			}
		})
	}
	state, _, env := lived(t)
	if a := ocRun(t, state, env, "--state-dir", state, "agents", "delete", "work"); a.exit != ExitUsage || !strings.Contains(a.errout, "--yes") {
		t.Errorf("nobody was asked: exit %d: %s", a.exit, a.errout)
	}
}

// In a store that agents share only the agent's own sessions go, as sessions delete does it.
func TestAgentsDeleteInASharedStore(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("state/openclaw.json", `{"session": {"store": "`+dir+`/shared/all.json"}, "agents": {"list": [{"id": "main", "default": true}, {"id": "ops"}]}, "bindings": [{"agentId": "ops", "match": {"channel": "telegram"}}]}`)
	write("shared/all.json", `{"agent:main:main": {"sessionId": "m", "updatedAt": 1}, "agent:ops:main": {"sessionId": "o", "updatedAt": 1}, "global": {"sessionId": "g", "updatedAt": 1}}`)
	for _, id := range []string{"m", "o", "g"} {
		write("shared/"+id+".jsonl", "{}\n")
	}
	write("state/agents/ops/agent/models.json", "{}")
	calm(t, filepath.Join(dir, "shared"))
	env := quiet(t, fixtures.Now)
	shared := tree(t, filepath.Join(dir, "shared"))
	a := ocRun(t, state, env, "--state-dir", state, "agents", "delete", "ops", "--yes", "--json")
	if a.exit != ExitDone {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	text, err := os.ReadFile(filepath.Join(dir, "shared", "all.json"))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "the store", string(text), "{\n  \"agent:main:main\": {\"sessionId\": \"m\", \"updatedAt\": 1},\n  \"global\": {\"sessionId\": \"g\", \"updatedAt\": 1}\n}")
	same(t, "files", names(t, filepath.Join(dir, "shared")), []string{"all.json", "g.jsonl", "m.jsonl", "o.jsonl.deleted.2026-09-21T14-13-20.000Z"})
	if _, err := os.Stat(filepath.Join(state, "agents", "ops")); !os.IsNotExist(err) {
		t.Errorf("the agent's directory is there: %v", err)
	}
	if !strings.Contains(a.errout, "binding") {
		t.Errorf("the binding is not told: %s", a.errout)
	}
	if back := ocRun(t, state, env, "--state-dir", state, "undo"); back.exit != ExitDone {
		t.Fatalf("undo: exit %d: %s", back.exit, back.errout)
	}
	want(t, "the shared directory after undo", tree(t, filepath.Join(dir, "shared")), shared)
}
