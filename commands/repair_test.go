//go:build unix

package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oc/fixtures"
)

// S6: after a move, every stored path is rebased, as a plan that undo takes back; doctor finds nothing of it afterwards.
func TestRepairPaths(t *testing.T) {
	state := t.TempDir()
	const old = "/old/home/u1/.clawdbot"
	store := fixtures.Store(state, "main")
	dir := filepath.Dir(store)
	id, topic := fixtures.IDOf("moved"), fixtures.IDOf("topic")
	row := func(id, file string) string {
		return fmt.Sprintf(`{"sessionId": %q, "updatedAt": 1789900000000, "sessionFile": %q, "spawnedCwd": %q, "label": "see /old/home", "odd": 1e2}`, id, file, old+"/workspace")
	}
	put(t, store, `{
  "agent:main:main": `+row(id, old+"/agents/main/sessions/"+id+".jsonl")+`,
  "agent:main:explicit:topic": `+row(topic, old+"/agents/main/sessions/"+topic+"-topic-7.jsonl")+`,
  "agent:main:explicit:lost": `+row("lost", old+"/agents/main/sessions/lost.jsonl")+`
}`)
	for name, id := range map[string]string{id + ".jsonl": id, topic + "-topic-7.jsonl": topic} {
		put(t, filepath.Join(dir, name), fixtures.Talk(id, fixtures.Now-2*fixtures.Day).User("Hello").Assistant("Hello!").String())
		if err := os.Chtimes(filepath.Join(dir, name), fixturesTime(2*fixtures.Day), fixturesTime(2*fixtures.Day)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(dir, id+".trajectory.jsonl"), "{}\n")
	put(t, filepath.Join(dir, id+".trajectory-path.json"), `{"runtimeFile": "`+old+"/agents/main/sessions/"+id+`.trajectory.jsonl"}`)
	env := quiet(t, fixtures.Now)
	oc := func(args ...string) answer {
		t.Helper()
		return ocRun(t, state, env, append([]string{"--state-dir", state, "--offline"}, args...)...)
	}
	before := newer(t, state)
	if a := oc("repair", "paths", "--from", old, "--to", state, "--dry-run", "--agent", "main"); a.exit != ExitDone || newer(t, state) != before || !strings.Contains(a.out, "3 changes would be made") {
		t.Fatalf("of one agent: exit %d\n%s%s", a.exit, a.out, a.errout)
	}
	if a := oc("repair", "paths", "--from", old, "--to", state, "--dry-run"); a.exit != ExitDone || newer(t, state) != before || !strings.Contains(a.out, "3 changes would be made") {
		t.Fatalf("dry run: exit %d\n%s%s", a.exit, a.out, a.errout)
	}
	a := oc("repair", "paths", "--from", old, "--to", state, "--json")
	if a.exit != ExitDone {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	want(t, "changes", dig(a.doc(t), "changes"), 3.0)
	if note := dig(a.doc(t), "stores", 0, "notes", 0).(string); !strings.Contains(note, "lost") {
		t.Errorf("the row that stays is not told: %q", note)
	}
	text, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		`"sessionFile": "` + filepath.Join(dir, id+".jsonl") + `"`, `"sessionFile": "` + filepath.Join(dir, topic+"-topic-7.jsonl") + `"`,
		`"spawnedCwd": "` + state + `/workspace"`, `"label": "see /old/home"`, `"odd": 1e2`, `"sessionFile": "` + old + `/agents/main/sessions/lost.jsonl"`,
	} {
		if !strings.Contains(string(text), s) {
			t.Errorf("the store lacks %s:\n%s", s, text)
		}
	}
	if b, _ := os.ReadFile(filepath.Join(dir, id+".trajectory-path.json")); !strings.Contains(string(b), filepath.Join(dir, id+".trajectory.jsonl")) {
		t.Errorf("the pointer: %s", b)
	}
	codes := codesOf(at(t, state, "doctor", "--only", "paths", "--json").doc(t))
	if codes["path-moved"] != 0 || codes["transcript-missing"] != 1 {
		t.Errorf("doctor finds %v", codes)
	}
	if a := oc("repair", "paths", "--from", old, "--to", state); !strings.Contains(a.out, "nothing to repair") {
		t.Errorf("a second run: %s", a.out)
	}
	if a := oc("undo"); a.exit != ExitDone || newer(t, state) != before {
		t.Errorf("undo: exit %d: %s\n%s\nbefore:\n%s", a.exit, a.errout, newer(t, state), before)
	}
}

func TestRepairPathsUsage(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{}, {"--from", "/a"}, {"--to", "/a"}, {"--from", "/a", "--to", "/a/"}, {"--from", "/", "--to", "/a"}, {"--from", "", "--to", "/a"}} {
		if a := at(t, dir, append([]string{"repair", "paths"}, args...)...); a.exit != ExitUsage {
			t.Errorf("oc repair paths %v: exit %d: %s", args, a.exit, a.errout)
		}
	}
}
