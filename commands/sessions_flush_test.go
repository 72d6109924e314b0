package commands

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// scripted is a provider that is a shell script.
func scripted(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return "exec:" + path
}

// Notes are put behind those of the day, the row says when and in which cycle, nothing else changes, and undo takes it back. In the same
// cycle nobody is asked a second time.
func TestFlush(t *testing.T) {
	state, sessions, env := longTalk(t, `{agents: {defaults: {userTimezone: "Pacific/Kiritimati"}}}`, invoices(20)...)
	workspace := t.TempDir()
	asked := filepath.Join(t.TempDir(), "asked")
	args := []string{
		"--state-dir", state, "sessions", "flush", "cron:x", "--workspace", workspace,
		"--provider", scripted(t, "cat >"+asked+"; echo '- invoices go by post; the key is password=correcthorsebatterystaple'"),
	}
	before := kept(t, state)
	if a := ocRun(t, state, env, append(args, "--dry-run", "--json")...); a.exit != ExitDone || !slices.Equal(kept(t, state), before) || !strings.Contains(a.out, `"path": "`+workspace+`/memory/2026-09-22.md"`) {
		t.Fatalf("dry run: exit %d %s%s", a.exit, a.errout, a.out)
	}
	if _, err := os.Stat(filepath.Join(workspace, "memory")); err == nil {
		t.Fatal("a dry run made a directory")
	}
	old, err := os.ReadFile(filepath.Join(sessions, longTalkID+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(workspace, "memory", "2026-09-22.md")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("# Today\n- tea at five"), 0o640); err != nil {
		t.Fatal(err)
	}
	a := ocRun(t, state, env, append(args, "--json")...)
	if a.exit != ExitDone || !strings.Contains(a.out, `"flushed": true`) || !strings.Contains(a.out, `"written": true`) || !strings.Contains(a.out, `"provider": "exec `) {
		t.Fatalf("exit %d %s%s", a.exit, a.errout, a.out)
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != "# Today\n- tea at five\n\n- invoices go by post; the key is password=***\n" {
		t.Errorf("the notes: %v %q", err, text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the notes have another mode: %v", info.Mode())
	}
	said, err := os.ReadFile(asked)
	if err != nil || !strings.Contains(string(said), "tea at five") || !strings.Contains(string(said), "invoice 19 of") || !strings.Contains(string(said), "NO_REPLY") || strings.Contains(string(said), "correcthorse") {
		t.Errorf("the provider got %v %.500s", err, said)
	}
	row := rowsOf(t, sessions)["agent:main:cron:x"]
	if !strings.Contains(row, `"updatedAt":1,`) || !strings.Contains(row, `"memoryFlushAt":1790000000000,"memoryFlushCompactionCount":1,"memoryFlushFailureCount":0`) {
		t.Errorf("the row is %s", row)
	}
	if now, err := os.ReadFile(filepath.Join(sessions, longTalkID+".jsonl")); err != nil || string(now) != string(old) {
		t.Errorf("the transcript was changed: %v", err)
	}
	if err := os.Remove(asked); err != nil {
		t.Fatal(err)
	}
	if a := ocRun(t, state, env, args...); a.exit != ExitDone || !strings.Contains(a.out, "flushed since its last compaction") {
		t.Errorf("again: exit %d %s%s", a.exit, a.errout, a.out)
	}
	if _, err := os.Stat(asked); err == nil {
		t.Error("somebody was asked again")
	}
	if a := ocRun(t, state, env, "--state-dir", state, "sessions", "context", "cron:x", "--json"); !strings.Contains(a.out, `"flushedThisCycle": true`) {
		t.Errorf("context: %s", a.out)
	}
	if a := ocRun(t, state, env, "--state-dir", state, "undo"); a.exit != ExitDone {
		t.Fatalf("undo: exit %d %s%s", a.exit, a.errout, a.out)
	}
	if now := kept(t, state); !slices.Equal(now, before) {
		t.Errorf("after undo:\n%s\nwant\n%s", strings.Join(now, "\n"), strings.Join(before, "\n"))
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "# Today\n- tea at five" {
		t.Errorf("after undo: %v %q", err, text)
	}
}

// A provider that has nothing to say is no failure; one that fails is, unless another answers; nothing is changed then.
func TestFlushProviders(t *testing.T) {
	for _, c := range []struct {
		name      string
		providers []string
		exit      int
		told      string // on stderr
		notes     string
	}{
		{"nothing to say", []string{scripted(t, "cat >/dev/null; echo '**NO_REPLY**'")}, ExitDone, "", ""},
		{"the first fails", []string{scripted(t, "echo no luck >&2; exit 3"), scripted(t, "cat >/dev/null; echo '- a note'")}, ExitDone, "exit status 3: no luck", "- a note\n"},
		{"quotes", []string{"extract"}, ExitDone, "", "## Decisions"},
		{"all fail", []string{scripted(t, "exit 1"), scripted(t, "cat >/dev/null")}, ExitFailed, "it answered nothing; nothing was changed", ""},
		{"floods", []string{scripted(t, "exec yes")}, ExitFailed, "longer than 256 KiB", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, sessions, env := longTalk(t, `{agents: {defaults: {userTimezone: "UTC"}}}`, invoices(12)...)
			workspace := t.TempDir()
			args := []string{"--state-dir", state, "sessions", "flush", "cron:x", "--workspace", workspace}
			for _, p := range c.providers {
				args = append(args, "--provider", p)
			}
			before := tree(t, state)
			a := ocRun(t, state, env, args...)
			if a.exit != c.exit || !strings.Contains(a.errout, c.told) {
				t.Fatalf("exit %d: %s%s", a.exit, a.errout, a.out)
			}
			text, err := os.ReadFile(filepath.Join(workspace, "memory", "2026-09-21.md"))
			if c.notes == "" && err == nil || c.notes != "" && !strings.HasPrefix(string(text), c.notes) {
				t.Errorf("the notes: %v %q", err, text)
			}
			if done := strings.Contains(rowsOf(t, sessions)["agent:main:cron:x"], `"memoryFlushCompactionCount":1`); done != (c.exit == ExitDone) {
				t.Errorf("the row is %s", rowsOf(t, sessions)["agent:main:cron:x"])
			}
			if c.exit == ExitDone {
				if a := ocRun(t, state, env, "--state-dir", state, "undo"); a.exit != ExitDone {
					t.Fatalf("undo: %s", a.errout)
				}
				if left, _ := os.ReadDir(filepath.Join(workspace, "memory")); len(left) > 0 {
					t.Errorf("after undo: %v", left)
				}
			} else if tree(t, state) != before {
				t.Error("something was changed")
			}
		})
	}
}

// What is refused, and that nothing is changed then.
func TestFlushRefuses(t *testing.T) {
	for _, c := range []struct {
		name, says string
		exit       int
		lines      int
		before     func(workspace string) error
		args       []string
	}{
		{"no workspace", "there is no workspace", ExitFailed, 4, os.RemoveAll, nil},
		{"no provider", "needs --provider", ExitUsage, 4, nil, []string{"--workspace", "."}},
		{"notes that are a link", "lead elsewhere", ExitRefused, 4, func(w string) error {
			if err := os.Mkdir(filepath.Join(w, "memory"), 0o755); err != nil {
				return err
			}
			return os.Symlink("/etc/hostname", filepath.Join(w, "memory", "2026-09-21.md"))
		}, nil},
		{"a directory that is a link", "no directory but a file or a link", ExitRefused, 4, func(w string) error { return os.Symlink(t.TempDir(), filepath.Join(w, "memory")) }, nil},
		{"nothing said", "nothing was said in it", ExitDone, 0, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, _, env := longTalk(t, `{agents: {defaults: {userTimezone: "UTC"}}}`, invoices(c.lines)...)
			workspace := t.TempDir()
			if c.before != nil {
				if err := c.before(workspace); err != nil {
					t.Fatal(err)
				}
			}
			args := c.args
			if args == nil {
				args = []string{"--workspace", workspace, "--provider", "extract"}
			}
			before := tree(t, state)
			a := ocRun(t, state, env, append([]string{"--state-dir", state, "sessions", "flush", "cron:x"}, args...)...)
			if a.exit != c.exit || !strings.Contains(a.errout+a.out, c.says) || tree(t, state) != before {
				t.Errorf("exit %d, want %d and %q: %s%s", a.exit, c.exit, c.says, a.errout, a.out)
			}
		})
	}
}

// A gateway flushes its sessions itself.
func TestFlushBesideGateway(t *testing.T) {
	state, _, env := longTalk(t, `{}`, invoices(4)...)
	f := fake(t, "2026.7.35", state, func(fakeCall) fakeEnd { return fakeEnd{payload: json.RawMessage(`{}`)} })
	before := kept(t, state)
	a := ocRun(t, state, f.env(env), "--state-dir", state, "sessions", "flush", "cron:x", "--workspace", t.TempDir(), "--provider", "extract")
	if a.exit != ExitRefused || !strings.Contains(a.errout, "flushes the memory of its sessions itself") || len(f.calls()) != 0 || !slices.Equal(kept(t, state), before) {
		t.Errorf("exit %d, calls %v: %s%s", a.exit, f.calls(), a.errout, a.out)
	}
}

// A password in an address, and what a command is given, stand nowhere: not in what is said, not in errors, not in the run's manifest.
func TestProvidersKeepSecrets(t *testing.T) {
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, pass, ok := r.BasicAuth(); !ok || user != "ann" || pass != "se-same" || r.URL.Query().Get("key") != "k-9" {
			t.Errorf("the provider got %q %q, %s", user, pass, r.URL)
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(bad.Close)
	host := strings.TrimPrefix(bad.URL, "http://")
	for _, word := range []string{"openai:http://ann:se-same@" + host + "/v1?key=k-9#m", "openai:http://ann:se-same@127.0.0.1:1/v1?key=k-9#m", "exec:false --token se-same k-9"} {
		state, _, env := longTalk(t, `{}`, invoices(12)...)
		args := []string{"--state-dir", state, "sessions", "compact", "cron:x", "--keep-recent-tokens", "400", "--provider", word, "--verbose"}
		show := ocRun(t, state, env, append(args, "--show-plan", "--json")...)
		a := ocRun(t, state, env, args...)
		if a.exit != ExitDone || show.exit != ExitDone {
			t.Fatalf("%s: exit %d: %s%s", word, a.exit, a.errout, a.out)
		}
		all := []string{a.out, a.errout, show.out, show.errout, ocRun(t, state, env, "--state-dir", state, "undo", "--list", "--json").out}
		runs, err := filepath.Glob(filepath.Join(state, ".oc", "runs", "*.json"))
		if err != nil || len(runs) != 1 {
			t.Fatalf("runs: %v, %v", runs, err)
		}
		text, err := os.ReadFile(runs[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, said := range append(all, string(text)) {
			if strings.Contains(said, "se-same") || strings.Contains(said, "k-9") || strings.Contains(said, "ann:") {
				t.Errorf("%s: a secret is told: %s", word, said)
			}
		}
		if bad := ocRun(t, state, env, append(slices.Clone(args[:6]), "--provider", strings.TrimSuffix(word, "#m")+"\x01")...); strings.Contains(bad.errout, "se-same") {
			t.Errorf("a usage error tells it: %s", bad.errout)
		}
	}
}
