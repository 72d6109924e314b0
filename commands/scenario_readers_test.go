package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oc/fixtures"
)

// The scenarios of the field, as far as reading goes: what oc must say about each, and what it must never do. The files scenario_*
// take one subject each; here is what they share.

// readers are the commands that only read, in every shape that opens other files. They ask for the session key.
func readers(key string) [][]string {
	var all [][]string
	for _, args := range [][]string{
		{},
		{"version"},
		{"status"},
		{"agents", "list"},
		{"sessions"},
		{"sessions", "--all-agents", "--limit", "all", "--wide"},
		{"sessions", "--all-agents", "--titles", "--preview", "--messages", "3"},
		{"sessions", "--all-agents", "--summary"},
		{"sessions", "--all-agents", "--history"},
		{"sessions", "--all-agents", "--stuck"},
		{"sessions", "--archived", "--sort", "tokens"},
		{"sessions", "--pinned", "--search", "a", "--kind", "direct", "--active", "999999"},
		{"sessions", "show", key},
	} {
		all = append(all, args, append(slices.Clone(args), "--json"))
	}
	return all
}

// talkers are the other commands that only read: transcripts, the signal log, the runs of oc.
func talkers(key string) [][]string {
	var all [][]string
	for _, args := range [][]string{
		{"sessions", "history", key, "--archives"},
		{"sessions", "tail", key},
		{"sessions", "trace", key},
		{"sessions", "search", "the"},
		{"sessions", "stats"},
		{"sessions", "stats", "--bytes"},
		{"status", "--session", key, "--changes-since", "0"},
		{"status", "--all-sessions", "--changes-since", "0"},
		{"awareness", "log"},
		{"awareness", "watches"},
		{"awareness", "stats"},
		{"undo", "--list"},
	} {
		all = append(all, args, append(slices.Clone(args), "--json"))
	}
	return all
}

// documents are those of them that answer with a document: half as many, where every run is a process of its own.
func documents(key string) [][]string {
	return slices.DeleteFunc(readers(key), func(args []string) bool { return !slices.Contains(args, "--json") })
}

// at runs oc on a state at the moment at which the scenarios stand.
func at(t *testing.T, state string, args ...string) answer {
	t.Helper()
	return ocRun(t, state, quiet(t, fixtures.Now), append([]string{"--state-dir", state}, args...)...)
}

// quiet is an environment in which no gateway and no home of this machine is found.
func quiet(t *testing.T, now int64) map[string]string {
	t.Helper()
	dir := t.TempDir()
	return map[string]string{"OC_NOW": fmt.Sprint(now), "HOME": dir, "TMPDIR": dir, "OPENCLAW_GATEWAY_PORT": "1"}
}

// made stops the test where a scenario could not be made.
func made[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// doc is a document, or nil where standard output is anything else than exactly one.
func (a answer) doc(t *testing.T) map[string]any {
	t.Helper()
	var doc map[string]any
	d := json.NewDecoder(strings.NewReader(a.out))
	if err := d.Decode(&doc); err != nil {
		t.Errorf("standard output is no document: %v\n%.400s", err, a.out)
		return nil
	}
	if rest := strings.TrimSpace(a.out[d.InputOffset():]); rest != "" {
		t.Errorf("something stands after the document: %.200q", rest)
	}
	return doc
}

// lines are those of standard error.
func (a answer) lines() []string {
	if a.errout == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(a.errout, "\n"), "\n")
}

// keysOf are the keys of a document's sessions, sorted.
func keysOf(doc map[string]any) []string {
	var keys []string
	rows, _ := doc["sessions"].([]any)
	for _, r := range rows {
		key, _ := r.(map[string]any)["key"].(string)
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// dig goes down a document: names of members, numbers of items.
func dig(v any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[s]
		case int:
			l, _ := v.([]any)
			if s >= len(l) {
				return nil
			}
			v = l[s]
		}
	}
	return v
}

// want compares, and says of what.
func want[T comparable](t *testing.T, what string, got any, wanted T) {
	t.Helper()
	if g, ok := got.(T); !ok || g != wanted {
		t.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}

func sorted(keys ...string) []string {
	keys = slices.Clone(keys)
	slices.Sort(keys)
	return keys
}

func same(t *testing.T, what string, got, wanted []string) {
	t.Helper()
	if !slices.Equal(got, wanted) {
		t.Errorf("%s: got %q, want %q", what, got, wanted)
	}
}

// raw finds a character in a text that a terminal would obey; tables and notes must have none but the ends of lines.
func raw(text string) string {
	for _, r := range text {
		if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || strings.ContainsRune("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2028\u2029\u2066\u2067\u2068\u2069\ufeff", r) {
			return fmt.Sprintf("%U", r)
		}
	}
	return ""
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
