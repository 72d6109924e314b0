package commands

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oc/fixtures"
	"oc/store/sqlfile"
)

// A flag that would do nothing, or that another one takes back, is an error in the command line, and nothing is changed.
func TestCleanupFlagsThatCannotBeMeant(t *testing.T) {
	state, _ := oldState(t, t.TempDir(), 4, "")
	env := quiet(t, fixtures.Now)
	before := tree(t, state)
	for _, c := range []struct{ args, says string }{
		{"--older-than 0", "positive"},
		{"--older-than 0d", "positive"},
		{"--older-than 0s --dry-run", "positive"},
		{"--older-than 0.1ms", "positive"},
		{"--keep-undo 0", "positive"},
		{"--include-protected", "--older-than"},
		{"--keep-undo 3d --purge", "--purge"},
		{"--agent ../main", "--agent main"},
	} {
		a := ocRun(t, state, env, append([]string{"--state-dir", state, "sessions", "cleanup"}, strings.Fields(c.args)...)...)
		if a.exit != ExitUsage || !strings.Contains(a.errout, c.says) {
			t.Errorf("%s: exit %d: %s", c.args, a.exit, a.errout)
		}
	}
	want(t, "the tree", tree(t, state), before)
	if help := ocRun(t, state, env, "sessions", "cleanup", "--help").out; !strings.Contains(help, "ms, s, m, h, d, w") || !strings.Contains(help, "2026.8.2 deletes both") {
		t.Errorf("help: %s", help)
	}
}

// The text says which rules protect which sessions, counts one of a thing as one, and says when nothing was done.
func TestCleanupText(t *testing.T) {
	state, store := oldState(t, t.TempDir(), 12, "")
	env := quiet(t, fixtures.Now)
	hold(t, filepath.Join(filepath.Dir(store), "s0001.jsonl"))
	at := time.UnixMilli(fixtures.Now - 60_000)
	for i := 3; i < 11; i += 2 {
		if err := os.Chtimes(filepath.Join(filepath.Dir(store), fmt.Sprintf("s%04d.jsonl", i)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		a := ocRun(t, state, env, append([]string{"--state-dir", state, "sessions", "cleanup"}, args...)...)
		if a.exit != ExitDone {
			t.Fatalf("%v: exit %d: %s", args, a.exit, a.errout)
		}
		return a.out
	}
	has := func(out, text string) {
		t.Helper()
		if !strings.Contains(out, text) {
			t.Errorf("%q is not in:\n%s", text, out)
		}
	}
	out := run("--dry-run")
	has(out, "  1 locked: agent:main:explicit:1\n")
	has(out, "  4 recent-bytes: agent:main:explicit:3, agent:main:explicit:5, agent:main:explicit:7 and 1 more\n")
	has(run("--dry-run", "--limit-actions", "4"), "agent:main:explicit:9\n")
	has(run("--dry-run", "-v"), "agent:main:explicit:9\n")

	write(t, filepath.Join(state, "openclaw.json"), `{"session": {"maintenance": {"mode": "warn"}}}`)
	before := tree(t, state)
	out = run()
	has(out, "Nothing was changed: session.maintenance.mode is warn.")
	if strings.Contains(out, "Done:") {
		t.Errorf("something is said to be done:\n%s", out)
	}
	want(t, "the tree", tree(t, state), before)
	whole(t, store)
	has(run("--older-than", "1d", "--enforce"), "Done locally: 1 row and 1 file changed, ")
}

// A store that no agent of --all-agents can have cleaned leaves no blank line in front of the others.
func TestCleanupTextBehindAFailure(t *testing.T) {
	state, _, env := lived(t)
	database := filepath.Join(state, "agents", "main", "agent", "openclaw-agent.sqlite") // the first
	if err := sqlfile.Write(context.Background(), database, time.Second, func(tx *sqlfile.Tx) error {
		_, err := tx.Exec("PRAGMA user_version = 99")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	a := ocRun(t, state, env, "--state-dir", state, "sessions", "cleanup", "--all-agents", "--dry-run")
	if a.exit != ExitRefused || !strings.HasPrefix(a.out, "Agent: ") {
		t.Errorf("exit %d: %q", a.exit, a.out)
	}
}

// A dry run has no undo, and says so.
func TestDryRunsHaveNoUndo(t *testing.T) {
	state, _, env := lived(t)
	for _, args := range [][]string{{"cleanup"}, {"delete", direct}} {
		doc := ocRun(t, state, env, append([]string{"--state-dir", state, "--agent", "work", "--dry-run", "--json", "sessions"}, args...)...).doc(t)
		if undo, there := doc["undo"]; undo != nil || !there {
			t.Errorf("%v: undo %v, there %t", args, undo, there)
		}
	}
}

// updatedAt in seconds never makes a session old.
func TestCleanupOfStampsInSeconds(t *testing.T) {
	state, store := oldState(t, t.TempDir(), 1, "")
	env := quiet(t, fixtures.Now)
	write(t, store, `{"agent:main:explicit:a": {"sessionId": "s0000", "updatedAt": 1700000000}, "agent:main:explicit:b": {"sessionId": "b", "updatedAt": 1790000000.5}, "agent:main:explicit:c": {"sessionId": "c", "updatedAt": 1000000000000}}`)
	for _, args := range [][]string{nil, {"--older-than", "1d"}} {
		doc := ocRun(t, state, env, append([]string{"--state-dir", state, "sessions", "cleanup", "--dry-run", "--json"}, args...)...).doc(t)
		want(t, "after", doc["afterCount"], 2.0)
		want(t, "first", dig(doc, "protected", 0, "rule"), "unknown-age")
		want(t, "second", dig(doc, "protected", 1, "rule"), "unknown-age")
	}
}

// A JSON file without sessions is not taken for a store of them, and neither is the configuration.
func TestOtherFilesAreNoStores(t *testing.T) {
	config := `{"gateway": {"port": 1}, "session": {"sessionId": 5}, "note": "text"}`
	state, store := oldState(t, t.TempDir(), 2, config)
	env := quiet(t, fixtures.Now)
	other := filepath.Join(t.TempDir(), "other.json")
	write(t, other, config)
	rows, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	named := filepath.Join(t.TempDir(), "openclaw.json")
	write(t, named, string(rows))
	for _, path := range []string{filepath.Join(state, "openclaw.json"), other, named} {
		key := "gateway"
		if path == named {
			key = "agent:main:explicit:1"
		}
		for _, args := range [][]string{{"cleanup"}, {"cleanup", "--older-than", "1h", "--dry-run"}, {"delete", key, "--yes"}, {"patch", key, "--pin"}} {
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			a := ocRun(t, state, env, append([]string{"--state-dir", state, "--store", path, "sessions"}, args...)...)
			if a.exit != ExitRefused || !strings.Contains(a.errout, "is not a session store") || !strings.Contains(a.errout, "nothing was changed") {
				t.Errorf("%s %v: exit %d: %s", path, args, a.exit, a.errout)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Errorf("%s %v: it was changed", path, args)
			}
		}
	}
	empty := filepath.Join(t.TempDir(), "empty.json")
	write(t, empty, "{}")
	if a := ocRun(t, state, env, "--state-dir", state, "--store", empty, "sessions", "cleanup"); a.exit != ExitDone {
		t.Errorf("an empty store: exit %d: %s", a.exit, a.errout)
	}
}

// Where a store is lost it is told what is left and what can be done with it, in one line.
func TestLostStoresSayWhatCanBeDone(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"missing": os.Remove,
		"empty":   func(path string) error { return os.Truncate(path, 0) },
		"damaged": func(path string) error { return os.Truncate(path, 50) },
	} {
		state, store := oldState(t, t.TempDir(), 4, "")
		if err := harm(store); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"cleanup"}, {"delete", "agent:main:explicit:1", "--yes"}} {
			a := ocRun(t, state, quiet(t, fixtures.Now), append([]string{"--state-dir", state, "sessions"}, args...)...)
			if a.exit != ExitRefused {
				t.Errorf("%s %v: exit %d", name, args, a.exit)
			}
			for _, text := range []string{"nothing was changed", "untouched", "oc sessions --history", "backup"} {
				if !strings.Contains(a.errout, text) {
					t.Errorf("%s %v: %q is not in %s", name, args, text, a.errout)
				}
			}
			if strings.Contains(a.errout, "oc doctor") || strings.Count(a.errout, "\n") != 1 {
				t.Errorf("%s %v: %s", name, args, a.errout)
			}
		}
	}
}
