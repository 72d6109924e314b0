package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oc/fixtures"
	"oc/store/span"
)

// old is a state for cleanups: half of its sessions were not used for 40 days, and beside them lie an archive that is over, a transcript
// that nobody names and a file of a write that did not end.
func oldState(t *testing.T, dir string, rows int, config string) (state, store string) {
	t.Helper()
	state = filepath.Join(dir, "state")
	sessions := filepath.Join(state, "agents/main/sessions")
	file := func(name, text string, age int64) {
		t.Helper()
		path := filepath.Join(sessions, name)
		write(t, path, text)
		at := time.UnixMilli(fixtures.Now - age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(sessions, 0o700); err != nil {
		t.Fatal(err)
	}
	if config != "" {
		write(t, filepath.Join(state, "openclaw.json"), config)
	}
	text := []byte("{")
	for i := range rows {
		age := int64(7 * fixtures.Hour)
		if i%2 == 1 {
			age = 40 * fixtures.Day
		}
		if i > 0 {
			text = append(text, ',')
		}
		id := fmt.Sprintf("s%04d", i)
		text = fmt.Appendf(text, "\n  \"agent:main:explicit:%d\": {\"sessionId\": %q, \"updatedAt\": %d}", i, id, fixtures.Now-age)
		file(id+".jsonl", fmt.Sprintf(`{"type":"session","version":3,"id":%q}`+"\n"+`{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"hello %d"}}`+"\n", id, i), age)
	}
	file("gone.jsonl.deleted.2020-01-01T00-00-00.000Z", "{}\n", 60*fixtures.Day)
	file("lost.jsonl", `{"type":"session","version":3,"id":"lost"}`+"\n"+`{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"lost"}}`+"\n", 60*fixtures.Day)
	file("sessions.json.12345678-1234-4234-8234-123456789012.tmp", "{", fixtures.Day)
	file("sessions.json", string(text)+"\n}", fixtures.Minute)
	return state, filepath.Join(sessions, "sessions.json")
}

// whole says that a store parses and that every row of it has its transcript.
func whole(t *testing.T, store string) {
	t.Helper()
	text, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	if err := span.Valid(text); err != nil {
		t.Fatalf("the store does not parse: %v", err)
	}
	for _, m := range span.Members(text) {
		id, ok := span.Text(span.Member(m.Val, "sessionId"))
		if !ok {
			continue
		}
		if _, err := os.Lstat(filepath.Join(filepath.Dir(store), id+".jsonl")); err != nil {
			t.Errorf("%s has lost its transcript: %v", m.Name, err)
		}
	}
}

// own is tree without what is oc's, and without the times of directories.
func ownless(t *testing.T, state string) string {
	t.Helper()
	var lines []string
	for _, line := range strings.Split(tree(t, state), "\n") {
		if strings.HasPrefix(line, ".oc") {
			continue
		}
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], "d") {
			line = f[0] + " " + f[1]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// newer is ownless without the time of the store, which a run gives it.
func newer(t *testing.T, state string) string {
	t.Helper()
	lines := strings.Split(ownless(t, state), "\n")
	for i, line := range lines {
		if f := strings.Fields(line); strings.HasSuffix(f[0], "/sessions.json") {
			lines[i] = strings.Join(append(f[:2:2], f[3:]...), " ")
		}
	}
	return strings.Join(lines, "\n")
}

// takeAllBack undoes until nothing is left to take back.
func takeAllBack(t *testing.T, env map[string]string, state string) {
	t.Helper()
	for range 10 {
		a := ocRun(t, state, env, "--state-dir", state, "undo")
		if strings.Contains(a.errout, "no run that can be taken back") {
			return
		}
		if a.exit != ExitDone {
			t.Fatalf("undo: exit %d: %s", a.exit, a.errout)
		}
	}
	t.Fatal("undo does not end")
}

// The text of a cleanup, its counts, and the way back.
func TestCleanupIsTold(t *testing.T) {
	state, _ := oldState(t, t.TempDir(), 6, "")
	before := ownless(t, state)
	dry := at(t, state, "sessions", "cleanup", "--dry-run", "--json").doc(t)
	if now := ownless(t, state); now != before {
		t.Fatalf("a dry run changed:\n%s", now)
	}
	if _, err := os.Lstat(filepath.Join(state, ".oc")); err == nil {
		t.Error("a dry run made .oc")
	}
	did := at(t, state, "sessions", "cleanup", "--json").doc(t)
	asText := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	if asText(dry["actions"]) != asText(did["actions"]) || asText(dry["protected"]) != asText(did["protected"]) {
		t.Errorf("planned %s\ndone %s", asText(dry["actions"]), asText(did["actions"]))
	}
	rows, files := 0, 0
	for _, a := range did["actions"].([]any) {
		switch dig(a, "action") {
		case "drop-row":
			rows++
		case "move", "remove":
			files++
		}
	}
	want(t, "committed rows", dig(did, "committed", "rows"), float64(rows))
	want(t, "committed files", dig(did, "committed", "files"), float64(files))
	want(t, "rows", rows, 3)
	want(t, "files", files, 6)
	want(t, "afterCount", dig(did, "afterCount"), 3.0)
	if again := at(t, state, "sessions", "cleanup"); again.exit != ExitDone || !strings.Contains(again.out, "Nothing to do.") {
		t.Errorf("again: %d %s", again.exit, again.out)
	}
	a := at(t, state, "undo")
	if a.exit != ExitDone || ownless(t, state) != before {
		t.Errorf("undo: %d %s\n%s", a.exit, a.errout, ownless(t, state))
	}
}

// fixturesTime is a moment before the one at which the scenarios stand, in milliseconds.
func fixturesTime(age int64) time.Time { return time.UnixMilli(fixtures.Now - fixtures.Minute - age) }
