package commands

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// FuzzNormalise: no line makes it panic, every refusal is a usage error of one line, and the one spelling of a line is its own.
func FuzzNormalise(f *testing.F) {
	for _, seed := range []string{
		"", "sessions", "--json sessions --limit 2 list", "sessions show KEY --json", "sessions --active -5", "sessions --limit=",
		"sessions -n5 -wq --label a,b --label c", "-- sessions", "sessions show -- --x", "sessions --wide=false", "-h", "help sessions", "undo -5",
		"--limt 5 sessions", "sessions --limit", "--profile - -", "-", "---", "--=", "-=", "sessions \xff\xfe --search \xed\xa0\x80",
	} {
		f.Add(strings.ReplaceAll(seed, " ", "\x00"))
	}
	f.Fuzz(func(t *testing.T, joined string) {
		argv := strings.Split(joined, "\x00")
		l, err := normalise(demo(), argv)
		if err != nil {
			if exit, _ := classify(err); exit != ExitUsage || err.Error() == "" {
				t.Fatalf("%q: %v", argv, err)
			}
			return
		}
		if l.help || l.about {
			return
		}
		again, err := normalise(demo(), l.argv())
		if err != nil {
			t.Fatalf("%q became %q: %v", argv, l.argv(), err)
		}
		if d := cmp.Diff(l.argv(), again.argv()); d != "" {
			t.Fatalf("%q:\n%s", argv, d)
		}
	})
}

// Flags may be moved to any place on the line without changing what it means.
func TestFlagsStandAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SampledFrom([][]string{{"sessions"}, {"sessions", "list"}, {"sessions", "ls"}}).Draw(t, "path")
		text := rapid.SampledFrom([]string{"", "a", "a,b", "list", "sessions", "-5", "-x", "--json", "--", "=", " ", "\n", "é"})
		var flags [][]string
		valued := func(name, value string) {
			joined := rapid.Bool().Draw(t, "joined")
			if joined || value == "--" || isFlag(value) {
				flags = append(flags, []string{name + "=" + value})
			} else {
				flags = append(flags, []string{name, value})
			}
		}
		if rapid.Bool().Draw(t, "limit") {
			valued("--limit", rapid.SampledFrom([]string{"2", " 7 ", "all", "100"}).Draw(t, "n"))
		}
		if rapid.Bool().Draw(t, "search") {
			valued("--search", text.Draw(t, "text"))
		}
		if rapid.Bool().Draw(t, "kind") {
			valued("--kind", rapid.SampledFrom([]string{"direct", "cron"}).Draw(t, "which"))
		}
		if rapid.Bool().Draw(t, "state") {
			valued("--state-dir", "d"+text.Draw(t, "dir"))
		}
		for _, s := range []string{"--json", "-q", "--wide", "-v", "--all-agents"} {
			if rapid.Bool().Draw(t, s) {
				flags = append(flags, []string{s})
			}
		}

		place := func(label string) []string {
			line := [][]string{}
			for _, w := range path {
				line = append(line, []string{w})
			}
			for _, i := range rapid.Permutation(indices(len(flags))).Draw(t, label) {
				at := rapid.IntRange(0, len(line)).Draw(t, "at")
				line = slices.Insert(line, at, flags[i])
			}
			return slices.Concat(line...)
		}
		first, second := place("first"), place("second")
		a, err := normalise(demo(), first)
		if err != nil {
			t.Fatalf("%q: %v", first, err)
		}
		b, err := normalise(demo(), second)
		if err != nil {
			t.Fatalf("%q: %v", second, err)
		}
		if d := cmp.Diff(a.argv(), b.argv()); d != "" {
			t.Fatalf("%q and %q differ:\n%s", first, second, d)
		}
	})
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func TestNearest(t *testing.T) {
	names := []string{"sessions", "status", "list", "show", "--limit", "--json"}
	for typed, want := range map[string]string{
		"sesions": "sessions", "ssesions": "sessions", "SESSIONS": "sessions", "sess": "sessions", "lsit": "list", "hsow": "show", "--limt": "--limit",
		"--jsno": "--json", "x": "", "": "", "banana": "", "s": "", "st": "status", strings.Repeat("a", 1000): "",
	} {
		if got := nearest(typed, names); got != want {
			t.Errorf("%.20q: got %q, want %q", typed, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for s, want := range map[string]string{
		"10s": "10s", "500ms": "500ms", "1h30m": "1h30m0s", "2d": "48h0m0s", "1w": "168h0m0s", "0": "0s", " 5m ": "5m0s", "1.5h": "1h30m0s", "1D": "24h0m0s",
	} {
		if d, err := parseDuration(s); err != nil || d.String() != want {
			t.Errorf("%q: %v %v", s, d, err)
		}
	}
	for _, s := range []string{"", " ", "5", "s", "5 s", "-5s", "5x", "1h-3m", "1e9w", "99999999999w", "..s", "NaNs", "Infs"} {
		if IsDuration(s) {
			t.Errorf("%q is taken for a duration", s)
		}
	}
}
