//go:build unix

package commands

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"oc/fixtures"
)

// A harm is a way in which a store is no store any more.
type harm struct {
	name string
	do   func(path string) error
	byte func(was []byte) int // where the message must point; nil: nowhere
	says string
}

func rewrite(change func(was []byte) []byte) func(path string) error {
	return func(path string) error {
		was, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, change(was), 0o600)
	}
}

func instead(make func(path string) error) func(path string) error {
	return func(path string) error {
		if err := os.Remove(path); err != nil {
			return err
		}
		return make(path)
	}
}

var (
	start     = func([]byte) int { return 0 }
	directory = instead(func(path string) error { return os.Mkdir(path, 0o755) })
	pipe      = instead(func(path string) error { return syscall.Mkfifo(path, 0o600) })

	storeHarms = []harm{
		{"empty", rewrite(func([]byte) []byte { return nil }), start, "empty"},
		{"blank", rewrite(func([]byte) []byte { return []byte(" \n\n") }), func([]byte) int { return 3 }, ""},
		{"cut", rewrite(func(was []byte) []byte { return was[:100] }), func([]byte) int { return 100 }, "ends"},
		{"one brace less", rewrite(func(was []byte) []byte { return was[:len(was)-1] }), func(was []byte) int { return len(was) - 1 }, "ends"},
		{"array", rewrite(func([]byte) []byte { return []byte(`[{"sessionId":"x"}]`) }), start, "array"},
		{"null", rewrite(func([]byte) []byte { return []byte(`null`) }), start, ""},
		{"garbage after its end", rewrite(func(was []byte) []byte { return append(was, "}\n]"...) }), func(was []byte) int { return len(was) }, ""},
		{"two stores in one", rewrite(func(was []byte) []byte { return append(was, was...) }), func(was []byte) int { return len(was) }, ""},
		{"zeroes after a crash", rewrite(func(was []byte) []byte { return make([]byte, len(was)) }), start, ""},
		{"a wrong byte", rewrite(func(was []byte) []byte { return bytes.Replace(was, []byte(`"updatedAt":`), []byte(`"updatedAt";`), 1) }), func(was []byte) int { return bytes.Index(was, []byte(`"updatedAt":`)) + len(`"updatedAt"`) }, ""},
		{"directory", directory, start, "directory"},
		{"pipe", pipe, start, "pipe"},
	}

	databaseHarms = []harm{
		{"text", rewrite(func([]byte) []byte { return []byte("this is not a database, and never was one") }), nil, "not an SQLite database"},
		{"cut", rewrite(func(was []byte) []byte { return was[:40_000] }), nil, "damaged"},
		{"head", rewrite(func(was []byte) []byte { return was[:10] }), nil, ""},
		{"zeroes in its middle", rewrite(func(was []byte) []byte { copy(was[4096:], make([]byte, len(was)-4096)); return was }), nil, ""},
		{"directory", directory, nil, ""},
		{"pipe", pipe, nil, "not a regular file"},
	}
)

// X1: a store that cannot be read is never an empty one. Whatever the command, --json leaves exactly one document on standard output,
// standard error has one line that names the file, and the byte where there is one; the stores of other agents are still told.
func TestDamagedStores(t *testing.T) {
	for _, c := range []struct {
		era   fixtures.Era
		path  func(dir, agent string) string
		harms []harm
	}{{fixtures.FileEra, fixtures.Store, storeHarms}, {fixtures.SQLiteEra, fixtures.Database, databaseHarms}} {
		for i, h := range c.harms {
			t.Run(c.era.String()+"/"+h.name, func(t *testing.T) {
				t.Parallel() // a store that ends too early is read again, in case it is being written: that takes its time
				state := t.TempDir()
				twoAgents(t, state, c.era)
				path := c.path(state, "main")
				was, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := h.do(path); err != nil {
					t.Fatal(err)
				}
				before := tree(t, state)
				for j, args := range readers("agent:work:main") {
					if i > 0 && j%2 == 0 { // text is the same for all harms
						continue
					}
					failsWell(t, state, path, h, was, args)
				}
				if tree(t, state) != before {
					t.Error("failing changed the tree")
				}
			})
		}
	}
}

func failsWell(t *testing.T, state, path string, h harm, was []byte, args []string) {
	t.Helper()
	a := at(t, state, append([]string{"--quiet"}, args...)...)
	command := fmt.Sprintf("oc %v", args)
	lines := a.lines()
	if slices.Contains(args, "version") {
		want(t, command, a.exit, ExitDone)
		return
	}
	want(t, command+" exit", a.exit, ExitFailed)
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "oc: ") || strings.Count(lines[0], path) == 0 || !strings.Contains(lines[0], h.says) || raw(lines[0]) != "" {
		t.Errorf("%s: want one line on standard error that names %s and says %q: %q", command, path, h.says, a.errout)
	}
	if h.byte != nil && !strings.Contains(a.errout, fmt.Sprintf("at byte %d", h.byte(was))) && !strings.Contains(a.errout, fmt.Sprintf("at byte %d of", h.byte(was))) {
		t.Errorf("%s: want byte %d in %q", command, h.byte(was), a.errout)
	}
	if !slices.Contains(args, "--json") {
		nothing := strings.Contains(a.out, "No sessions found") && !slices.Contains(args, "--stuck") // where nothing is stuck
		if nothing || strings.Contains(a.out, "no session was found") {
			t.Errorf("%s takes what cannot be read for nothing:\n%s", command, a.out)
		}
		if strings.Contains(strings.Join(args, " "), "--all-agents --limit") && !strings.Contains(a.out, "agent:work:main") {
			t.Errorf("%s leaves out the other store:\n%s", command, a.out)
		}
		return
	}
	doc := a.doc(t)
	others := slices.Contains(args, "--all-agents")
	switch {
	case slices.Contains(args, "show"):
		want(t, command, dig(doc, "session", "key"), "agent:work:main")
	case len(args) == 1 || slices.Contains(args, "status") || slices.Contains(args, "agents"):
		if len(args) == 1 && args[0] != "--json" {
			t.Fatalf("%s has no document", command)
		}
		if rows, ok := dig(doc, "agents", 0).(map[string]any)["rows"]; !ok || rows != nil {
			t.Errorf("%s: rows of the damaged store: %v", command, rows)
		}
		want(t, command+" error", strings.Contains(fmt.Sprint(dig(doc, "agents", 0, "error")), path), true)
		want(t, command+" rows of the other", dig(doc, "agents", 1, "rows"), 1.0)
	case others:
		want(t, command+" errors", dig(doc, "errors", 0, "path"), path)
		want(t, command+" agent", dig(doc, "errors", 0, "agentId"), "main")
		if !strings.Contains(fmt.Sprint(dig(doc, "errors", 0, "message")), path) {
			t.Errorf("%s: errors %v", command, doc["errors"])
		}
		if rows := keysOf(doc); doc["sessions"] != nil && !slices.Contains(args, "--stuck") {
			same(t, command, rows, []string{"agent:work:main"})
		}
	default:
		want(t, command+" code", dig(doc, "error", "exit"), float64(ExitFailed))
		if len(doc) != 1 {
			t.Errorf("%s has a part of an answer beside its error: %v", command, doc)
		}
		if h.byte != nil {
			want(t, command+" code", dig(doc, "error", "code"), "damaged")
			want(t, command+" path", dig(doc, "error", "details", "path"), path)
			want(t, command+" byte", dig(doc, "error", "details", "byte"), float64(h.byte(was)))
		}
	}
}

// Rows that are no rows cost themselves: they are counted, with their keys, and the others are told.
func TestDamagedRows(t *testing.T) {
	state := t.TempDir()
	write(t, fixtures.Store(state, "main"), `{
  "agent:main:main": {"sessionId": "0a1b2c3d-0000-4000-8000-000000000001", "updatedAt": 1789996400000},
  "agent:main:explicit:number": 7,
  "agent:main:explicit:null": null,
  "agent:main:explicit:list": ["x"],
  "agent:main:explicit:up": {"sessionId": "../../../etc/passwd", "updatedAt": 1789996400000},
  "agent:main:explicit:file": {"sessionId": "0a1b2c3d-0000-4000-8000-000000000002", "sessionFile": "/etc/passwd", "updatedAt": 1789996400000},
  "agent:main:explicit:odd": {"sessionId": 5, "updatedAt": {"x": 1}, "totalTokens": "many", "model": ["a"], "label": 1e999, "status": "running\u001b[2J"}
}
`)
	before := tree(t, state)
	a := at(t, state, "sessions", "--limit", "all", "--json")
	doc := a.doc(t)
	want(t, "exit", a.exit, ExitDone)
	var skipped []string
	for _, s := range doc["skipped"].([]any) {
		skipped = append(skipped, dig(s, "key").(string))
		if dig(s, "reason") == "" {
			t.Errorf("%v has no reason", s)
		}
	}
	shown := keysOf(doc)
	if all := sorted(append(shown, skipped...)...); len(all) != 7 || len(slices.Compact(all)) != 7 {
		t.Errorf("rows are lost or told twice: shown %q, skipped %q", shown, skipped)
	}
	for _, key := range []string{"agent:main:explicit:number", "agent:main:explicit:null", "agent:main:explicit:list"} {
		if !slices.Contains(skipped, key) || !strings.Contains(a.errout, key) {
			t.Errorf("%s is no row and is not told as skipped: %q %s", key, skipped, a.errout)
		}
	}
	for _, args := range readers("agent:main:explicit:odd") {
		a := at(t, state, args...)
		if a.exit != ExitDone && !a.failedWell() || !slices.Contains(args, "--json") && raw(a.out+a.errout) != "" {
			t.Errorf("oc %v: exit %d: %q %q", args, a.exit, a.out, a.errout)
		}
		if strings.Contains(a.out, "root:") {
			t.Errorf("oc %v shows a file that is no transcript", args)
		}
		if slices.Contains(args, "--json") {
			a.doc(t)
		}
	}
	if tree(t, state) != before {
		t.Error("reading changed the tree")
	}
}

// A configuration that cannot be read is enough for reading: defaults, and one line that names file and reason.
func TestDamagedConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(path string) error
		says string
	}{
		"cut":          {rewrite(func([]byte) []byte { return []byte(`{"agents": {"list": [`) }), ""},
		"text":         {rewrite(func([]byte) []byte { return []byte("yes please") }), ""},
		"empty":        {rewrite(func([]byte) []byte { return nil }), ""},
		"an unknown":   {rewrite(func([]byte) []byte { return []byte(`{sessions: {maintenance: "loud"}}`) }), "sessions"},
		"a wrong kind": {rewrite(func([]byte) []byte { return []byte(`{session: "daily"}`) }), "session"},
		"directory":    {directory, ""},
		"pipe":         {pipe, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			twoAgents(t, state, fixtures.FileEra)
			path := filepath.Join(state, "openclaw.json")
			if err := c.do(path); err != nil {
				t.Fatal(err)
			}
			for _, args := range readers("agent:main:main") {
				a := at(t, state, append(slices.Clone(args), "--quiet")...)
				want(t, fmt.Sprintf("exit of %v", args), a.exit, ExitDone)
				lines := a.lines()
				if slices.Contains(args, "version") {
					if len(lines) != 0 {
						t.Errorf("version reads the configuration: %q", a.errout)
					}
					continue
				}
				if len(lines) != 1 || !strings.HasPrefix(lines[0], "oc: configuration: "+path) || !strings.Contains(lines[0], c.says) {
					t.Errorf("oc %v: want one line that names %s and %q: %q", args, path, c.says, a.errout)
				}
				if !slices.Contains(args, "--json") {
					continue
				}
				doc := a.doc(t)
				if slices.Contains(args, "status") {
					want(t, "warnings", len(dig(doc, "config", "warnings").([]any)), 1)
				}
				if slices.Equal(args, []string{"sessions", "--json"}) {
					same(t, "keys", keysOf(doc), sorted("agent:main:main", "agent:main:explicit:second"))
				}
			}
		})
	}
}

// What stands wrongly on the line is told in a line, with the flag and what it takes, before anything is read.
func TestBadLines(t *testing.T) {
	state := t.TempDir()
	twoAgents(t, state, fixtures.FileEra)
	write(t, fixtures.Store(state, "ghost"), `{"agent:ghost:main":{"sessionId":"g","updatedAt":1}}`)
	before := tree(t, state)
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"sessions", "--limit", "0"}, []string{"--limit", `"all"`, `"0"`}},
		{[]string{"sessions", "--limit", "-5"}, []string{"--limit", `"all"`}},
		{[]string{"sessions", "--limit", "many"}, []string{"--limit", "many"}},
		{[]string{"sessions", "--limit=1.5"}, []string{"--limit", "1.5"}},
		{[]string{"sessions", "--limit", "99999999999999999999"}, []string{"--limit"}},
		{[]string{"sessions", "--limit", ""}, []string{"--limit"}},
		{[]string{"sessions", "--limit"}, []string{"--limit"}},
		{[]string{"sessions", "--active", "0"}, []string{"--active", "minutes"}},
		{[]string{"sessions", "--active", "1h"}, []string{"--active", "minutes"}},
		{[]string{"sessions", "--kind", "cats"}, []string{"--kind", "direct", "cron"}},
		{[]string{"sessions", "--sort", "luck"}, []string{"--sort", "updated"}},
		{[]string{"sessions", "--messages", "21"}, []string{"--messages", "20"}},
		{[]string{"sessions", "--messages", "-1"}, []string{"--messages", "20"}},
		{[]string{"sessions", "--stuk"}, []string{"--stuk", "--stuck"}},
		{[]string{"sessions", "--json=yes"}, []string{"--json"}},
		{[]string{"sessions", "extra"}, []string{"extra"}},
		{[]string{"sessions", "--agent", "nobody"}, []string{"nobody", "main", "work"}},
		{[]string{"sessions", "--agent", "ghost"}, []string{"ghost", "--store " + fixtures.Store(state, "ghost")}},
		{[]string{"sessions", "--agent", "main", "--all-agents"}, []string{"--agent", "--all-agents"}},
		{[]string{"sessions", "--store", "x.json", "--all-agents"}, []string{"--store", "--all-agents"}},
		{[]string{"sessions", "show"}, []string{"KEY"}},
		{[]string{"sessions", "show", "a", "b"}, []string{"b"}},
		{[]string{"sessions", "show", "main", "--agent", "nobody"}, []string{"nobody", "main", "work"}},
		{[]string{"agents", "lst"}, []string{"lst", "list"}},
		{[]string{"agents", "list", "--limit", "3"}, []string{"--limit"}},
		{[]string{"status", "more"}, []string{"more"}},
		{[]string{"status", "--profile", "../up"}, []string{"--profile"}},
		{[]string{"version", "--since", "1"}, []string{"--since"}},
		{[]string{"statsu"}, []string{"statsu", "status"}},
	} {
		for _, asJSON := range []bool{false, true} {
			args := c.args
			if asJSON {
				args = append([]string{"--json"}, args...)
			}
			a := at(t, state, args...)
			want(t, fmt.Sprintf("exit of %q", args), a.exit, ExitUsage)
			if lines := a.lines(); len(lines) != 1 || !strings.HasPrefix(lines[0], "oc: ") {
				t.Errorf("oc %q: want one line: %q", args, a.errout)
			}
			for _, s := range c.says {
				if !strings.Contains(a.errout, s) {
					t.Errorf("oc %q does not say %q: %s", args, s, a.errout)
				}
			}
			if !asJSON {
				want(t, fmt.Sprintf("answer of %q", args), a.out, "")
				continue
			}
			doc := a.doc(t)
			want(t, fmt.Sprintf("code of %q", args), dig(doc, "error", "code"), "usage")
			want(t, "exit in the document", dig(doc, "error", "exit"), float64(ExitUsage))
		}
	}
	if tree(t, state) != before {
		t.Error("a usage error changed the tree")
	}
}

// What is not found is a failure with its own code, names what was asked for, and shows nothing else.
func TestNoSuchSession(t *testing.T) {
	state := t.TempDir()
	twoAgents(t, state, fixtures.SQLiteEra)
	for _, key := range []string{"agent:main:mian", "\x1b[31mred", "two\nlines", strings.Repeat("k", 10_000), "__proto__"} {
		a := at(t, state, "--json", "sessions", "show", "--", key)
		want(t, "exit", a.exit, ExitFailed)
		want(t, "code", dig(a.doc(t), "error", "code"), "not-found")
		if len(a.lines()) != 1 || raw(a.errout) != "" {
			t.Errorf("show %.40q: %.200q", key, a.errout)
		}
	}
}

// A transcript that is there and is no file (a pipe, a directory) is not "missing", and a title that could not be read says why.
func TestPipeForAHistory(t *testing.T) {
	state := t.TempDir()
	twoAgents(t, state, fixtures.FileEra)
	path := filepath.Join(state, "agents", "main", "sessions", fixtures.IDOf("agent:main:main")+".jsonl")
	if err := pipe(path); err != nil {
		t.Fatal(err)
	}
	if a := at(t, state, "sessions", "show", "agent:main:main"); strings.Contains(lineWith(a.out, "Transcript"), "missing") {
		t.Errorf("show:\n%s", a.out)
	}
	for _, command := range []string{"history", "export", "tail"} { // none waits for the other end
		if a := at(t, state, "sessions", command, "agent:main:main"); a.exit != ExitFailed || !strings.Contains(a.errout, path) {
			t.Errorf("%s of a pipe: exit %d: %s", command, a.exit, a.errout)
		}
	}
	doc := at(t, state, "sessions", "--titles", "--json", "--search", "agent:main:main").doc(t)
	if problem, _ := dig(doc, "sessions", 0, "transcriptError").(string); problem == "" {
		t.Errorf("no transcriptError: %v", dig(doc, "sessions", 0))
	}
	for name, to := range map[string]string{"a link in a circle": filepath.Base(path), "a link to a disk that is not mounted": filepath.Join(state, "disk", "x.jsonl")} {
		if err := errors.Join(os.Remove(path), os.Symlink(to, path)); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"history", "export", "tail"} {
			if a := at(t, state, "sessions", command, "agent:main:main"); a.exit != ExitFailed || !strings.Contains(a.errout, path+" is a link that leads nowhere, not a file") {
				t.Errorf("%s of %s: exit %d: %s", command, name, a.exit, a.errout)
			}
		}
		if a := at(t, state, "doctor", "--only", "paths"); !strings.Contains(strings.Join(strings.Fields(a.out), " "), "it is a link that leads nowhere") {
			t.Errorf("doctor of %s:\n%s", name, a.out)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"history", "export", "tail"} {
		if a := at(t, state, "sessions", command, "agent:main:main"); a.exit != ExitDone || !strings.Contains(a.errout, "agent:main:main has no transcript: "+path+" is not there") {
			t.Errorf("%s of a transcript that is gone: exit %d: %s", command, a.exit, a.errout)
		}
	}
}
