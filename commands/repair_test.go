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

// A state that was made on Windows: doctor says that the transcript has moved, and its paths are written as those of this machine.
func TestRepairPathsFromWindows(t *testing.T) {
	state := t.TempDir()
	const old = `C:\Users\me\.openclaw`
	store := fixtures.Store(state, "main")
	id := fixtures.IDOf("moved")
	put(t, store, fmt.Sprintf(`{"agent:main:main": {"sessionId": %q, "updatedAt": 1789900000000, "sessionFile": %q, "spawnedCwd": %q, "note": "in C:\\Users\\me"}}`, id, old+`\agents\main\sessions\`+id+".jsonl", `c:\users\me\.openclaw\workspace`))
	file := filepath.Join(filepath.Dir(store), id+".jsonl")
	put(t, file, fixtures.Talk(id, fixtures.Now-2*fixtures.Day).User("Hello").Assistant("Hello!").String())
	put(t, strings.TrimSuffix(file, ".jsonl")+".trajectory-path.json", fmt.Sprintf(`{"runtimeFile": %q}`, old+`\t.jsonl`))
	calm(t, filepath.Dir(store))
	if codes := codesOf(at(t, state, "doctor", "--only", "paths", "--json").doc(t)); codes["path-moved"] != 1 || len(codes) != 1 {
		t.Errorf("doctor finds %v", codes)
	}
	before := newer(t, state)
	if a := at(t, state, "repair", "paths", "--from", old, "--to", state); a.exit != ExitDone || !strings.Contains(a.out, "3 changes made") && !strings.Contains(a.out, "2 changes made") {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	text, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{`"sessionFile": "` + file + `"`, `"spawnedCwd": "` + state + `/workspace"`, `"note": "in C:\\Users\\me"`} {
		if !strings.Contains(string(text), s) {
			t.Errorf("the store lacks %s:\n%s", s, text)
		}
	}
	if codes := codesOf(at(t, state, "doctor", "--only", "paths", "--json").doc(t)); len(codes) > 0 {
		t.Errorf("doctor finds %v", codes)
	}
	if a := at(t, state, "undo"); a.exit != ExitDone || newer(t, state) != before {
		t.Errorf("undo: exit %d: %s", a.exit, a.errout)
	}
}

func TestRepairPathsUsage(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{}, {"--from", "/a"}, {"--to", "/a"}, {"--from", "/a", "--to", "/a/"}, {"--from", "/", "--to", "/a"}, {"--from", "", "--to", "/a"}, {"--from", "/a", "--to", `C:\a`}} {
		if a := at(t, dir, append([]string{"repair", "paths"}, args...)...); a.exit != ExitUsage {
			t.Errorf("oc repair paths %v: exit %d: %s", args, a.exit, a.errout)
		}
	}
}
