//go:build unix

package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"oc/fixtures"
	"oc/store/span"
)

// lostIndex is the state of S4: twelve transcripts, a backup with ten rows, a newer temporary file with eleven, and the index as given.
func lostIndex(t *testing.T, index string) (state, store string) {
	t.Helper()
	state = t.TempDir()
	store = fixtures.Store(state, "main")
	dir := filepath.Dir(store)
	id := func(i int) string { return fixtures.IDOf(fmt.Sprint("lost ", i)) }
	rows := func(n int, more string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("  %q: {\n    \"sessionId\": %q,\n    \"odd\": 1e2%s,\n    \"updatedAt\": %d\n  }", fmt.Sprintf("agent:main:explicit:%d", i), id(i), more, fixtures.Now-fixtures.Hour))
		}
		return "{\n" + strings.Join(all, ",\n") + "\n}"
	}
	aged := func(name, text string, age time.Duration) {
		put(t, filepath.Join(dir, name), text)
		at := time.UnixMilli(fixtures.Now).Add(-age)
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 12 {
		aged(id(i)+".jsonl", fixtures.Talk(id(i), fixtures.Now-2*fixtures.Hour).User("Hello").Assistant("Hello!").String(), time.Hour)
	}
	aged("sessions.json.bak.1789900000000", rows(10, `, "from": "bak"`), 48*time.Hour)
	aged("sessions.json.1f0c7a2b-8d3e-4a56-9b7c-0d1e2f3a4b5c.tmp", rows(11, `, "from": "tmp"`), time.Hour)
	aged("sessions.json.2f0c7a2b-8d3e-4a56-9b7c-0d1e2f3a4b5c.tmp", rows(3, ""), time.Second) // somebody may be writing it
	aged(id(11)+".trajectory.jsonl", fmt.Sprintf(`{"traceSchema":"openclaw-trajectory","schemaVersion":1,"source":"runtime","type":"session.started","sessionId":%q,"sessionKey":"agent:main:explicit:inferred"}`+"\n", id(11)), time.Hour)
	if index != "-" {
		aged("sessions.json", strings.ReplaceAll(index, "ROWS", rows(2, `, "from": "index"`)), 30*time.Minute)
	}
	return state, store
}

// S4: the index comes back from the newest whole copy, with what stands before a cut on top; the damaged one is kept; no key is
// invented; undo gives the state back byte for byte.
func TestRepairIndex(t *testing.T) {
	for _, c := range []struct {
		name, index string
		own         int // rows from the index itself
		kept        bool
	}{
		{"no bytes", "", 0, false},
		{"no rows", "{}", 0, true},
		{"a list", "[]", 0, true},
		{"gone", "-", 0, false},
		{"cut", "ROWS", 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, store := lostIndex(t, c.index)
			damaged := ""
			if c.name == "cut" {
				text, err := os.ReadFile(store)
				if err != nil {
					t.Fatal(err)
				}
				damaged = string(text[:len(text)*3/4])
				put(t, store, damaged)
			}
			env := quiet(t, fixtures.Now)
			oc := func(args ...string) answer {
				t.Helper()
				return ocRun(t, state, env, append([]string{"--state-dir", state, "--offline"}, args...)...)
			}
			before := tree(t, state)
			dry := oc("repair", "index", "--dry-run", "--json")
			if dry.exit != ExitDone || tree(t, state) != before {
				t.Fatalf("dry run: exit %d: %s", dry.exit, dry.errout)
			}
			doc := dry.doc(t)
			want(t, "first source", dig(doc, "sources", 0, "name"), "sessions.json.1f0c7a2b-8d3e-4a56-9b7c-0d1e2f3a4b5c.tmp")
			want(t, "its rows", dig(doc, "sources", 0, "rows"), 11.0)
			want(t, "second source", dig(doc, "sources", 1, "rows"), 10.0)
			want(t, "the fresh temporary file is usable", dig(doc, "sources", 2, "usable"), false)
			a := oc("repair", "index")
			if a.exit != ExitDone || !strings.Contains(a.out, "oc undo takes all of it back") {
				t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
			}
			text, err := os.ReadFile(store)
			if err != nil || span.Valid(text) != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if n := len(span.Members(text)); n != 12 {
				t.Errorf("%d rows, want 11 of the copy and 1 that its trajectory tells", n)
			}
			for word, n := range map[string]int{`"from": "index"`: c.own, `"from": "tmp"`: 11 - c.own, `"odd": 1e2`: 11, "agent:main:explicit:inferred": 1} {
				if got := strings.Count(string(text), word); got != n {
					t.Errorf("%d times %s, want %d", got, word, n)
				}
			}
			copies, _ := filepath.Glob(store + ".corrupt-*")
			if (len(copies) == 1) != c.kept {
				t.Errorf("copies of the damaged index: %v", copies)
			} else if damaged != "" {
				if b, _ := os.ReadFile(copies[0]); string(b) != damaged {
					t.Error("the copy is not what the index was")
				}
			}
			if a := at(t, state, "sessions", "--json", "--limit", "all"); len(keysOf(a.doc(t))) != 12 {
				t.Errorf("%d sessions are listed: %s", len(keysOf(a.doc(t))), a.errout)
			}
			if a := oc("repair", "index"); a.exit != ExitDone || !strings.Contains(a.out, "nothing to repair") {
				t.Errorf("a second run: exit %d: %s%s", a.exit, a.out, a.errout)
			}
			if a := oc("undo"); a.exit != ExitDone {
				t.Errorf("undo: exit %d: %s", a.exit, a.errout)
			}
			if now, was := ownless(t, state), withoutOwn(before); now != was {
				t.Errorf("after undo:\n%s\nbefore:\n%s", now, was)
			}
		})
	}
}

// withoutOwn is ownless for a tree that was taken before.
func withoutOwn(tree string) string {
	var lines []string
	for _, line := range strings.Split(tree, "\n") {
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

// Where nothing holds the rows nothing is written, and a copy can be chosen by its name.
func TestRepairIndexSources(t *testing.T) {
	state := t.TempDir()
	store := fixtures.Store(state, "main")
	put(t, filepath.Join(filepath.Dir(store), "t1.jsonl"), fixtures.Talk("t1", fixtures.Now-fixtures.Hour).User("Hello").String())
	before := tree(t, state)
	if a := at(t, state, "--offline", "repair", "index"); a.exit != ExitFailed || tree(t, state) != before || !strings.Contains(a.errout, "nothing was changed") {
		t.Errorf("without any copy: exit %d: %s", a.exit, a.errout)
	}
	state, store = lostIndex(t, "")
	if a := at(t, state, "--offline", "repair", "index", "--source", "sessions.json.bak.1789900000000"); a.exit != ExitDone {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	text, err := os.ReadFile(store)
	if err != nil || strings.Count(string(text), `"from": "bak"`) != 10 {
		t.Errorf("%v: %s", err, text)
	}
	state, _ = lostIndex(t, "")
	if a := at(t, state, "--offline", "repair", "index", "--source", "sessions.json.nope"); a.exit != ExitFailed {
		t.Errorf("a copy that is not there: exit %d", a.exit)
	}
}

// What stands in place of the index and is no file stays, is not waited for, and is told; an index behind a link is made anew where it lies.
func TestRepairIndexLinks(t *testing.T) {
	for want, make := range map[string]func(store string) error{
		"it is a pipe":      func(store string) error { return syscall.Mkfifo(store, 0o600) },
		"it is a directory": func(store string) error { return os.Mkdir(store, 0o700) },
		"it is a link to":   func(store string) error { return os.Symlink("nowhere.json", store) },
	} {
		state, store := lostIndex(t, "-")
		if err := make(store); err != nil {
			t.Fatal(err)
		}
		before := ownless(t, state)
		for _, more := range [][]string{{"--dry-run"}, {}} {
			a := at(t, state, append([]string{"--offline", "repair", "index"}, more...)...)
			if a.exit != ExitRefused || !strings.Contains(a.errout, want) || ownless(t, state) != before {
				t.Errorf("%s %v: exit %d: %s%s", want, more, a.exit, a.out, a.errout)
			}
		}
	}
	state, store := lostIndex(t, "-")
	real := filepath.Join(state, "shared", "rows.json")
	put(t, real, `{"agent:main:x": {"sess`)
	if err := os.Symlink(real, store); err != nil {
		t.Fatal(err)
	}
	before := ownless(t, state)
	if a := at(t, state, "--offline", "repair", "index"); a.exit != ExitDone {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	if to, err := os.Readlink(store); err != nil || to != real {
		t.Errorf("the link: %s %v", to, err)
	}
	if text, err := os.ReadFile(real); err != nil || len(span.Members(text)) != 12 {
		t.Errorf("%v: %s", err, text)
	}
	a := at(t, state, "--offline", "undo")
	if text, err := os.ReadFile(real); a.exit != ExitDone || err != nil || string(text) != `{"agent:main:x": {"sess` || ownless(t, state) != before {
		t.Errorf("undo: exit %d: %s, %v %s", a.exit, a.errout, err, text)
	}
}
