package doctor

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/fixtures"
)

// used is an answer with usage: the tokens of its prompt and its cost.
func used(id, parent string, prompt int, cost float64) string {
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%q,"timestamp":"2026-09-20T10:01:00.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Well."}],"provider":"openai","model":"gpt-5.2","usage":{"input":%d,"output":10,"cacheRead":0,"cacheWrite":0,"totalTokens":%d,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":%g}},"stopReason":"stop"}}`,
		id, parent, prompt, prompt+10, cost)
}

// S13: numbers of rows that cannot be trusted, against what transcripts tell.
func TestTokens(t *testing.T) {
	compacted := `{"type":"compaction","id":"k","parentId":"b","summary":"s","firstKeptEntryId":"b","tokensBefore":190000}`
	for _, c := range []struct {
		name, row, body string
		want            map[Code]int
	}{
		{"at the limit", `"totalTokens":200000,"contextTokens":200000,"inputTokens":8`, lines(talkHead, six()[1], used("b", "a", 199500, 0)), map[Code]int{TokensAtLimit: 1}},
		{"a sum of all calls", `"totalTokens":3005150,"totalTokensFresh":false,"contextTokens":200000`, lines(talkHead, six()[1], used("b", "a", 94000, 0)), map[Code]int{TokensAtLimit: 1}},
		{"without the flag", `"totalTokens":64000`, lines(talkHead, six()[1], used("b", "a", 64000, 0)), map[Code]int{}},
		{"after a compaction", `"totalTokens":180000,"totalTokensFresh":true,"contextTokens":200000`, lines(talkHead, six()[1], used("b", "a", 180000, 0), compacted, said("c", "k", "user", text("x")), used("d", "c", 9800, 0)), map[Code]int{TokensDrift: 1}},
		{"compacted and nothing since", `"totalTokens":12000,"contextTokens":200000`, lines(talkHead, six()[1], used("b", "a", 180000, 0), compacted), map[Code]int{}},
		{"cost", `"totalTokens":9800,"estimatedCostUsd":7.2`, lines(talkHead, six()[1], used("b", "a", 9800, 0.1)), map[Code]int{CostDrift: 1}},
		{"cost that is right", `"totalTokens":9800,"estimatedCostUsd":0.1`, lines(talkHead, six()[1], used("b", "a", 9800, 0.1)), map[Code]int{}},
		{"cost of a family", `"totalTokens":9800,"estimatedCostUsd":7.2,"usageFamilySessionIds":["t0","t1"]`, lines(talkHead, six()[1], used("b", "a", 9800, 0.1)), map[Code]int{}},
		{"impossible", `"totalTokens":-5,"inputTokens":"many"`, lines(six()...), map[Code]int{TokensImpossible: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "state")
			store := fixtures.Store(state, "main")
			put(t, store, fmt.Sprintf(`{"agent:main:main": {"sessionId": "t1", "updatedAt": %d, %s}}`, fixtures.Now-fixtures.Hour, c.row))
			put(t, filepath.Join(filepath.Dir(store), "t1.jsonl"), c.body)
			age(t, filepath.Dir(store), 24*time.Hour)
			r := examine(t, state, func(o *Options) { o.Only = mustSelect(t, "tokens") })
			if d := cmp.Diff(c.want, codes(r)); d != "" {
				t.Errorf("%s\n%+v", d, r.Findings)
			}
		})
	}
}

// What the configuration says of sessions: each finding with its file and line.
func TestConfig(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       map[Code]int
		line       int
	}{
		{"none", "", map[Code]int{}, 0},
		{"sound", "{\n  // ours\n  session: { maintenance: { pruneAfter: \"30d\", maxEntries: 500 }, reset: { mode: \"idle\", idleMinutes: 120 } },\n}", map[Code]int{}, 0},
		{"does not parse", "{\n  session: {\n", map[Code]int{ConfigUnreadable: 1}, 3},
		{"retired", "{\n  session: {\n    maintenance: { rotateBytes: \"10mb\" },\n  },\n}", map[Code]int{ConfigRetiredKey: 1}, 3},
		{"retired and refused", "{\n  session: {\n    parentForkMaxTokens: 100000,\n  },\n}", map[Code]int{ConfigRetiredKey: 1}, 3},
		{"unknown", "{\n  session: { maintenance: {\n maxentries: 5 } },\n}", map[Code]int{ConfigUnknownKey: 1}, 3},
		{"bad value", "{\n  session: { scope:\n \"all\" },\n}", map[Code]int{ConfigBadValue: 1}, 3},
		{"zero budget", "{\n  session: { maintenance: {\n maxDiskBytes: 0 } },\n}", map[Code]int{ConfigLimitOff: 1}, 3},
		{"garbage", "{\n  session: { maintenance: {\n maxEntries: -1 } },\n}", map[Code]int{ConfigLimitOff: 1}, 3},
		{"misplaced", "{\n  session: {},\n  agents: { defaults: { pruneAfter: \"7d\" } },\n}", map[Code]int{ConfigMisplaced: 1}, 3},
		{"never resets", "{\n  session: {\n reset: { mode: \"idle\" } },\n}", map[Code]int{ConfigResetNever: 1}, 3},
		{"always resets", "{\n  session: {\n resetByType: { group: { mode: \"idle\", idleMinutes: 1 } } },\n}", map[Code]int{ConfigResetAlways: 1}, 3},
		{"reserve", "{\n  agents: { defaults: { contextTokens: 32000,\n compaction: { reserveTokens: 30000 } } },\n}", map[Code]int{ConfigReserve: 1}, 3},
		{"window below the reserve", "{\n  agents: { defaults: { contextTokens: 16000 } },\n}", map[Code]int{ConfigReserve: 1}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "state")
			put(t, fixtures.Store(state, "main"), "{}")
			if c.text != "" {
				put(t, filepath.Join(state, "openclaw.json"), c.text)
			}
			r := examine(t, state, func(o *Options) { o.Only = mustSelect(t, "config") })
			if d := cmp.Diff(c.want, codes(r)); d != "" {
				t.Fatalf("%s\n%+v", d, r.Findings)
			}
			for _, f := range r.Findings {
				if f.Line != c.line || f.File != filepath.Join(state, "openclaw.json") {
					t.Errorf("%s:%d, want line %d", f.File, f.Line, c.line)
				}
			}
		})
	}
}

// Limits that cannot be met, because of what is protected (S7).
func TestLimits(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	put(t, filepath.Join(state, "openclaw.json"), `{session: {maintenance: {maxEntries: 5}}}`)
	var rows []string
	for i := range 20 {
		rows = append(rows, fmt.Sprintf("%q: {\"updatedAt\": %d}", fmt.Sprintf("agent:main:telegram:group:%d", i), fixtures.Now-fixtures.Hour))
	}
	put(t, fixtures.Store(state, "main"), "{"+strings.Join(rows, ",")+"}")
	r := examine(t, state, func(o *Options) { o.Only = []Code{ConfigLimitUnmet} })
	says(t, one(t, r, ConfigLimitUnmet), "15 more than", "by the rule group")
}
