package commands

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oc/fixtures"
	"oc/store/span"
)

// hostile are keys, as JSON has them, that are data all the same: what a terminal would obey, what JavaScript takes for something else, what no text can hold.
var hostile = []string{
	`"agent:main:explicit:two\nlines\r\nthree"`, `"agent:main:explicit:\u001b[2J\u001b]0;owned\u0007"`, `"agent:main:explicit:\u009b31m"`, `"agent:main:explicit:\u202egpj.exe"`,
	`"agent:main:explicit:\u2066x\u2069\u200f"`, `"agent:main:explicit:\u2028\u2029"`, `"agent:main:explicit:\u0000\u0008\u007f"`, `"agent:main:explicit:\ud800"`, `"agent:main:explicit:\udc00\ud800x"`,
	`"agent:main:explicit:\ud83d\ude00"`, `"agent:main:explicit:<&>\"\\/"`, `"__proto__"`, `"constructor"`, `"toString"`, `"hasOwnProperty"`, `"007"`, `"7"`, `"-1"`, `" agent:main:main "`, `"agent::x"`, `"agent:main:"`, `":"`, `"--help"`,
	`"agent:main:explicit:%s%d%!"`, `"agent:main:explicit:{{.}}"`, `"agent:main:explicit:..\/..\/etc"`, `"agent:main:explicit:\ufeffbom"`, `"agent:main:explicit:e\u0301"`, `"agent:main:explicit:\u00e9"`,
	`"agent:main:explicit:` + strings.Repeat("k", 10_000) + `"`,
}

// hostileStore has such a text as key, and as label, status, model, subject and name too.
func hostileStore(keys []string) string {
	var b strings.Builder
	for i, key := range keys {
		fmt.Fprintf(&b, ",\n  %s: {\"sessionId\":\"0a1b2c3d-0000-4000-8000-%012d\",\"updatedAt\":%d,\"label\":%[1]s,\"status\":%[1]s,\"model\":%[1]s,\"modelProvider\":%[1]s,\"subject\":%[1]s,\"displayName\":%[1]s,\"channel\":%[1]s,\"thinkingLevel\":%[1]s,\"spawnedBy\":%[1]s,\"origin\":{\"label\":%[1]s,\"provider\":%[1]s}}",
			key, i, fixtures.Now-int64(i+1)*fixtures.Minute)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "\n}"
}

// text16 is the text of a JSON string; a lone surrogate is kept, as three bytes, so that it can be compared.
func text16(t *testing.T, raw []byte) string {
	t.Helper()
	s, ok := span.Text(raw)
	if !ok {
		t.Fatalf("%.100s is no string", raw)
	}
	return s
}

// Keys are data: text shows no character that a terminal would obey and a line a row, JSON gives every key back unit by unit.
func TestHostileKeys(t *testing.T) {
	state := t.TempDir()
	write(t, fixtures.Store(state, "main"), hostileStore(hostile))
	before := tree(t, state)

	a := at(t, state, "sessions", "--limit", "all", "--json")
	want(t, "exit", a.exit, ExitDone)
	a.doc(t)
	var got, wanted []string
	if _, err := span.Items([]byte(a.out), strings.Index(a.out, `"sessions": [`)+len(`"sessions": `), func(val []byte) error {
		key := text16(t, span.Member(val, "key"))
		got = append(got, key)
		if label := text16(t, span.Member(val, "label")); label != key {
			t.Errorf("label %.60q beside key %.60q", label, key)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, key := range hostile {
		wanted = append(wanted, text16(t, []byte(key)))
	}
	same(t, "keys, the newest first", got, wanted)
	if strings.ContainsAny(a.out, "\x00\x1b\x07\x7f\u2028\u2029") && strings.ContainsAny(a.out, "\x00\x1b\x07") {
		t.Error("the document has a raw control character")
	}

	for _, args := range readers("no such key") {
		a := at(t, state, args...)
		if slices.Contains(args, "--json") {
			a.doc(t)
			continue
		}
		if c := raw(a.out + a.errout); c != "" {
			t.Errorf("oc %v shows a raw %s", args, c)
		}
	}
	wide := at(t, state, "sessions", "--limit", "all", "--wide").out
	if n := strings.Count(wide, "\n"); n != len(hostile)+4 {
		t.Errorf("%d lines for %d rows", n, len(hostile))
	}

	// Each can be asked for, as an argument can hold it: all but those with NUL or a lone surrogate.
	for _, key := range hostile {
		word := text16(t, []byte(key))
		if strings.Contains(key, `\u0000`) || strings.Contains(key, `\ud800`) {
			continue
		}
		a := at(t, state, "--json", "sessions", "show", "--", word)
		want(t, fmt.Sprintf("exit of show %.60q", word), a.exit, ExitDone)
		want(t, "key", dig(a.doc(t), "session", "key"), word)
		text := at(t, state, "sessions", "show", "--", word)
		if c := raw(text.out + text.errout); c != "" {
			t.Errorf("show %.60q shows a raw %s", word, c)
		}
	}
	if tree(t, state) != before {
		t.Error("reading changed the tree")
	}
}

// Any text as a key, in the file and on the screen.
func TestAnyKey(t *testing.T) {
	state := t.TempDir()
	env := quiet(t, fixtures.Now)
	oc := func(args ...string) answer { return ocRun(t, state, env, append(args, "--state-dir", state)...) }
	rapid.Check(t, func(r *rapid.T) {
		drawn := rapid.SliceOfNDistinct(rapid.String(), 1, 8, rapid.ID).Draw(r, "keys")
		var keys []string
		for _, k := range drawn {
			raw, err := json.Marshal(k)
			if err != nil {
				r.Fatal(err)
			}
			keys = append(keys, string(raw))
		}
		write(t, fixtures.Store(state, "main"), hostileStore(keys))
		doc := oc("sessions", "--json").doc(t)
		if got := keysOf(doc); !slices.Equal(got, sorted(drawn...)) {
			r.Fatalf("keys %q, want %q", got, drawn)
		}
		a := oc("sessions", "--wide")
		if c := raw(a.out + a.errout); c != "" {
			r.Fatalf("a raw %s in %q", c, a.out)
		}
	})
}
