package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oc/fixtures"
)

// kindsOf are the kinds of a trace, in its order, with the source of transcripts.
func kindsOf(doc map[string]any) (all []string) {
	list, _ := doc["trace"].([]any)
	for i := range list {
		kind := fmt.Sprint(dig(list, i, "kind"))
		if source, ok := dig(list, i, "source").(string); ok {
			kind += " " + source
		}
		all = append(all, kind)
	}
	return all
}

func TestTrace(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, "agents/main/sessions")
	key := "agent:main:cron:j1"
	lines(t, filepath.Join(dir, "now.jsonl"), header, saying("a", "05T10:00:00.000Z", "user", `"hi"`))
	lines(t, filepath.Join(dir, "then.jsonl"), header, saying("b", "04T10:00:00.000Z", "user", `"hi"`))
	lines(t, filepath.Join(dir, fixtures.Gone("first.jsonl", "reset", fixtures.Now-30*fixtures.Day)), header)
	lines(t, filepath.Join(dir, fixtures.Gone("gone.jsonl", "deleted", fixtures.Now-20*fixtures.Day)), header)
	lines(t, filepath.Join(dir, "now.trajectory.jsonl"), "{}")
	lines(t, filepath.Join(dir, "sessions.json"), `{"`+key+`":{"sessionId":"now","updatedAt":1789000000000,"label":"nightly","usageFamilySessionIds":["first","then","now"]},"agent:main:main":{"sessionId":"m","updatedAt":1}}`)
	lines(t, filepath.Join(dir, "sessions.json.bak.1788000000000"), `{"`+key+`":{"sessionId":"first"}}`)
	lines(t, filepath.Join(dir, "sessions.json.bak.1787000000000"), `{"other":{}}`)
	lines(t, filepath.Join(state, "cron/jobs.json"), `{"version":1,"jobs":[{"id":"j2"}]}`)
	before := tree(t, state)

	for _, word := range []string{key, "now", "nightly"} {
		doc := at(t, state, "sessions", "trace", word, "--json").doc(t)
		got := kindsOf(doc)
		slices.Sort(got)
		same(t, word, got, []string{"archive earlier", "archive reset", "cron-job", "row", "sidecar", "store-backup", "transcript current"})
	}
	doc := at(t, state, "sessions", "trace", key, "--json").doc(t)
	want(t, "first", dig(doc, "trace", 0, "kind"), "archive")
	list := doc["trace"].([]any)
	want(t, "job", dig(list, len(list)-1, "text"), "the cron job j1 is not configured any more")

	// No row names it any more.
	gone := at(t, state, "sessions", "trace", "gone", "--json").doc(t)
	same(t, "gone", kindsOf(gone), []string{"archive deleted"})
	want(t, "what brings it back", dig(gone, "trace", 0, "back"), "oc sessions restore "+fixtures.Gone("gone.jsonl", "deleted", fixtures.Now-20*fixtures.Day))

	nothing := at(t, state, "sessions", "trace", "agent:main:cron:j")
	want(t, "exit", nothing.exit, ExitFailed)
	if !strings.Contains(nothing.errout, "did you mean "+key) {
		t.Errorf("%s", nothing.errout)
	}
	want(t, "code", dig(at(t, state, "sessions", "trace", "nowhere", "--json").doc(t), "error", "code"), "not-found")
	if bad := raw(at(t, state, "sessions", "trace", "\x1b[31m\u202e").errout); bad != "" {
		t.Errorf("%s is shown", bad)
	}
	if now := tree(t, state); now != before {
		t.Error("tracing changed the tree")
	}
}

// An import, what it put away, and the row in a database; a run of oc that removed a session.
func TestTraceErasAndRuns(t *testing.T) {
	dir := t.TempDir()
	e := made[fixtures.Eras](t)(fixtures.S16(dir, fixtures.Now))
	got := kindsOf(at(t, e.Imported, "sessions", "trace", e.Keys[0], "--json").doc(t))
	slices.Sort(got)
	same(t, "imported", got, []string{"copy imported", "import", "row", "store-backup", "transcript current"})

	state := filepath.Join(dir, "runs")
	sessions := filepath.Join(state, "agents/main/sessions")
	key := "agent:main:explicit:old"
	lines(t, filepath.Join(sessions, "old.jsonl"), header, saying("a", "05T10:00:00.000Z", "user", `"hi"`))
	lines(t, filepath.Join(sessions, "sessions.json"), fmt.Sprintf(`{"%s":{"sessionId":"old","updatedAt":%d},"agent:main:main":{"sessionId":"m","updatedAt":%d}}`, key, fixtures.Now-400*fixtures.Day, fixtures.Now))
	old := time.UnixMilli(fixtures.Now - 400*fixtures.Day) // what was written just now is protected
	if err := os.Chtimes(filepath.Join(sessions, "old.jsonl"), old, old); err != nil {
		t.Fatal(err)
	}
	a := at(t, state, "sessions", "cleanup", "--enforce", "--json")
	if a.exit != ExitDone {
		t.Fatalf("cleanup: %d %s", a.exit, a.errout)
	}
	doc := at(t, state, "sessions", "trace", key, "--json").doc(t)
	same(t, "after a cleanup", sorted(kindsOf(doc)...), []string{"archive deleted", "oc-run"})
	for i := range doc["trace"].([]any) {
		if dig(doc, "trace", i, "kind") == "oc-run" {
			want(t, "way back", dig(doc, "trace", i, "back"), any("oc undo "+fmt.Sprint(dig(doc, "trace", i, "runId"))))
		}
	}
}
