package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oc/fixtures"
)

// lost is the state of S4: twelve transcripts, a backup of the index with ten
// rows and a newer temporary one with eleven, and index as sessions.json.
func lost(t *testing.T, index string) (state, store string) {
	t.Helper()
	state = filepath.Join(t.TempDir(), "state")
	store = fixtures.Store(state, "main")
	dir := filepath.Dir(store)
	rows := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("  %q: {\"sessionId\": %q, \"updatedAt\": %d}", fmt.Sprintf("agent:main:explicit:%d", i), talkID(i), fixtures.Now-fixtures.Hour))
		}
		return "{\n" + strings.Join(all, ",\n") + "\n}"
	}
	for i := range 12 {
		put(t, filepath.Join(dir, talkID(i)+".jsonl"), fixtures.Talk(talkID(i), fixtures.Now-2*fixtures.Hour).User("Hello").Assistant("Hello!").String())
	}
	put(t, store+".bak.1789900000000", rows(10))
	put(t, store+".1f0c7a2b-8d3e-4a56-9b7c-0d1e2f3a4b5c.tmp", rows(11))
	if index != "-" {
		put(t, store, strings.ReplaceAll(index, "ROWS", rows(12)))
	}
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	age(t, dir, time.Hour)
	return state, store
}

func talkID(i int) string { return fixtures.IDOf(fmt.Sprint("lost ", i)) }

// age gives every file of a directory a time before now.
func age(t *testing.T, dir string, by time.Duration) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range entries {
		at := now.Add(-by)
		if err := os.Chtimes(filepath.Join(dir, d.Name()), at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// S4: an index that is empty, cut, replaced or gone is named with the byte,
// and what is left to make it of.
func TestLostIndex(t *testing.T) {
	for _, c := range []struct {
		name, index string
		code        Code
		words       []string
	}{
		{"no bytes", "", IndexEmpty, []string{"0 bytes", "12 transcripts"}},
		{"no rows", "{}", IndexEmpty, []string{"no row", "12 transcripts", "has 10 rows", "has 11 rows"}},
		{"a list", "[]", IndexDamaged, []string{"12 transcripts", "has 10 rows"}},
		{"gone", "-", IndexMissing, []string{"12 transcripts", "has 11 rows"}},
		{"cut", "{\n  \"agent:main:main\": {\"sessionId\": \"x\",", IndexDamaged, []string{"up to 41", "has 11 rows"}},
		{"a byte order mark", "\xef\xbb\xbfROWS", IndexDamaged, []string{"byte order mark"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, store := lost(t, c.index)
			r := examine(t, state)
			f := one(t, r, c.code)
			says(t, f, c.words...)
			if f.File != store || f.Severity != Error || r.Healthy() {
				t.Errorf("%+v", f)
			}
			if c.name == "cut" && (f.Line != 2 || f.Byte != 41) {
				t.Errorf("line %d, byte %d", f.Line, f.Byte)
			}
		})
	}
	t.Run("whole", func(t *testing.T) {
		state, _ := lost(t, "ROWS")
		r := examine(t, state)
		for _, code := range []Code{IndexEmpty, IndexDamaged, IndexMissing, IndexUnreadable} {
			if n := len(found(r, code)); n > 0 {
				t.Errorf("%d findings %s of a sound index", n, code)
			}
		}
	})
}

// An agent without anything has nothing wrong with it, and an index without
// rows neither, as long as nothing lies beside it.
func TestNewAgent(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	for _, index := range []string{"", "{}"} {
		if index != "" {
			put(t, fixtures.Store(state, "main"), index)
		} else if err := os.MkdirAll(state, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(state, 0o700); err != nil {
			t.Fatal(err)
		}
		if r := examine(t, state); len(r.Findings) > 0 {
			t.Errorf("%q: %+v", index, r.Findings)
		}
	}
}

// Rows that name no conversation: by id and file, the one or the other.
func TestRowsWithoutConversation(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	put(t, fixtures.Store(state, "main"), `{
  "agent:main:main": {"updatedAt": 1789999000000},
  "agent:main:explicit:file": {"updatedAt": 1789999000000, "sessionFile": "x.jsonl"},
  "agent:main:cron:j1": {"updatedAt": 1789999000000, "label": "Cron: j1"},
  "agent:main:explicit:odd": {"sessionId": "../etc", "updatedAt": 1789999000000},
  "agent:main:explicit:list": []
}`)
	r := examine(t, state)
	got := map[string]Severity{}
	for _, f := range found(r, RowHollow) {
		got[f.Key] = f.Severity
	}
	if len(got) != 2 || got["agent:main:main"] != Warn || got["agent:main:cron:j1"] != Info {
		t.Errorf("hollow rows: %v", got)
	}
	if f := one(t, r, RowNoID); f.Key != "agent:main:explicit:file" {
		t.Errorf("%+v", f)
	}
	if n := len(found(r, RowRefused)); n != 2 {
		t.Errorf("%d rows are refused, want 2", n)
	}
}
