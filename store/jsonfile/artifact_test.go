package jsonfile

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The short cuts through names take none for another than the expressions alone would.
func TestShortCutsOfNames(t *testing.T) {
	stamp := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d{3})?Z$`)
	u := "0120a4f9-196A-4f9e-89f5-23f31f914da7"
	parts := rapid.SampledFrom([]string{
		u, "2026-01-02T03-04-05-678Z", "2026-01-02T03-04-05Z", "2026-01-02T03-04-05.678Z", "2026-13-02T03-04-05.678Z", "2026-01-02T03-04-05.67Z", "_", "-topic-", "-Topic-", ".reset.", ".deleted.", ".bak.",
		".jsonl", ".json", ".lock", ".LOC\u212a", ".tmp", ".TMP", ".zst", ".", "7", "a", "\n", "\xff", "sessions.json", strings.Repeat("f", 32), ".checkpoint.", ".trajectory",
	})
	classes := map[Class]bool{}
	whole := rapid.SampledFrom([][]string{{u, ".jsonl"}, {u, ".jsonl", ".lock"}, {u, ".jsonl", ".reset.", "2026-01-02T03-04-05.678Z"}, {u, ".trajectory", ".jsonl"}, {u, ".checkpoint.", u, ".jsonl"}, {"sessions.json", ".", "7", ".", u, ".tmp"}, {"sessions.json"}})
	rapid.Check(t, func(rt *rapid.T) {
		drawn := append(slices.Clone(whole.Draw(rt, "whole")), rapid.SliceOfN(parts, 0, 2).Draw(rt, "behind")...)
		if rapid.Bool().Draw(rt, "loose") {
			drawn = rapid.SliceOfN(parts, 1, 7).Draw(rt, "parts")
		}
		name := strings.Join(drawn, "")
		want := plainName(name, stamp)
		if got := NameOf(name, "sessions.json"); got.Class != want.Class || got.Session != want.Session || got.Reason != want.Reason || got.Zstd != want.Zstd {
			rt.Fatalf("%q: got %+v, want %+v", name, got, want)
		}
		classes[want.Class] = true
	})
	if len(classes) < 6 {
		t.Errorf("only the classes %v were drawn", classes)
	}
}

// plainName is NameOf without any short cut, and without the time.
func plainName(name string, stamp *regexp.Regexp) Name {
	switch {
	case name == "sessions.json":
		return Name{Class: Store}
	case strings.HasSuffix(strings.ToLower(name), ".lock"):
		return Name{Class: Lock}
	case tempName().MatchString(name):
		return Name{Class: Temp}
	case storeBackup().MatchString(name):
		return Name{Class: Archive, Reason: "bak"}
	}
	session := func(stem string) string {
		for _, re := range []*regexp.Regexp{forkName(), topicName()} {
			if m := re.FindStringSubmatch(stem); m != nil {
				return m[1]
			}
		}
		return stem
	}
	base, zstd := strings.CutSuffix(name, ".zst")
	for _, reason := range []string{"reset", "deleted", "bak"} {
		i := strings.LastIndex(base, "."+reason+".")
		if i < 0 {
			continue
		}
		at := base[i+len(reason)+2:]
		if m := generation().FindStringSubmatch(at); m != nil {
			at = m[1]
		}
		if stamp.MatchString(at) {
			return Name{Class: Archive, Session: session(strings.TrimSuffix(base[:i], ".jsonl")), Reason: reason, Zstd: zstd}
		}
	}
	switch n := NameOf(name, ""); n.Class { // the rest has no short cut
	case Live:
		return Name{Class: Live, Session: session(strings.TrimSuffix(name, ".jsonl"))}
	case Sidecar, Checkpoint:
		return Name{Class: n.Class}
	}
	return Name{Class: Other}
}
