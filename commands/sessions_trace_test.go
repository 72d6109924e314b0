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

// Of real states the runs of sub-agents and the events of the signal log are in the trace, in the order of time.
func TestTraceOfRecordedStates(t *testing.T) {
	for release, child := range map[string]string{"2026.7.35": "agent:main:subagent:f2e9445a-ee31-4527-905c-bc5eb42be436", "2026.9.6": "agent:main:subagent:079d093c-37ab-43bc-8ed1-492fcec1c76f"} {
		root := t.TempDir()
		unpack(t, golden+"/gateway/state-"+release+".tar.gz", root)
		before := tree(t, root)
		parent := at(t, root, "sessions", "trace", "agent:main:main", "--json").doc(t)
		runs := 0
		for _, x := range parent["trace"].([]any) {
			if dig(x, "kind") == "subagent-run" {
				runs++
				want(t, "outcome", strings.HasSuffix(dig(x, "text").(string), ": ok"), true)
			}
		}
		want(t, release+" runs that it asked for", runs, 2)
		doc := at(t, root, "sessions", "trace", child, "--json").doc(t)
		last, signals := 0.0, 0
		for _, x := range doc["trace"].([]any) {
			if at, ok := dig(x, "at").(float64); ok && at < last {
				t.Errorf("%s: %v stands behind %v", release, at, last)
			} else if ok {
				last = at
			}
			if dig(x, "kind") == "signal" {
				signals++
			}
		}
		if release == "2026.9.6" {
			want(t, "events", signals, 3)
		}
		if !strings.Contains(fmt.Sprint(doc["trace"]), "as a sub-agent of agent:main:main: ok") {
			t.Errorf("%s: %v", release, doc["trace"])
		}
		if tree(t, root) != before {
			t.Error("a trace changed the tree")
		}
	}
	state := t.TempDir()
	lines(t, filepath.Join(state, "subagents/runs.json"), `{"version":1,"runs":{"r1":{"runId":"r1","childSessionKey":"agent:main:subagent:x","requesterSessionKey":"agent:main:main","createdAt":5},"bad":7,"r2":{}}}`)
	doc := at(t, state, "sessions", "trace", "agent:main:subagent:x", "--json").doc(t)
	want(t, "of a file", dig(doc, "trace", 0, "subagentRunId"), "r1")
	want(t, "not ended", strings.Contains(dig(doc, "trace", 0, "text").(string), "not ended"), true)
}
