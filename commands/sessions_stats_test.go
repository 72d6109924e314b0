package commands

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oc/fixtures"
)

func answered(id, at, usage string) string {
	return fmt.Sprintf(`{"type":"message","id":"%s","timestamp":"2026-09-%s","message":{"role":"assistant","provider":"openai","model":"gpt-5.2","content":[{"type":"text","text":"ok"}],"usage":%s}}`, id, at, usage)
}

// What no model can have cost is added up all the same, in numbers that fit the terminal and are JSON even where the sum is no number.
func TestStatsOfImpossibleCosts(t *testing.T) {
	state := t.TempDir()
	var rows []string
	for i := range 3 {
		rows = append(rows, answered(fmt.Sprintf("a%d", i), "02T23:30:00.000Z", `{"input":9007199254740993,"output":1e308,"totalTokens":1e308,"cost":{"total":1e308}}`))
	}
	lines(t, filepath.Join(state, "agents/main/sessions/one.jsonl"), append([]string{header}, rows...)...)
	lines(t, filepath.Join(state, "agents/main/sessions/sessions.json"), `{"agent:main:main":{"sessionId":"one","updatedAt":1789000000000,"estimatedCostUsd":1e300}}`)
	for _, command := range [][]string{{"stats"}, {"stats", "--bytes"}} {
		a := at(t, state, append([]string{"sessions"}, command...)...)
		for _, line := range strings.Split(a.out, "\n") {
			if len([]rune(line)) > 80 {
				t.Errorf("%v: %d columns: %s", command, len([]rune(line)), line)
			}
		}
	}
	if a := at(t, state, "sessions", "stats"); a.exit != ExitDone || !strings.Contains(a.out, "Cost     unknown\n") {
		t.Errorf("exit %d: %s", a.exit, a.out)
	}
	lines(t, filepath.Join(state, "agents/main/sessions/one.jsonl"), header, rows[0])
	if a := at(t, state, "sessions", "stats"); !strings.Contains(a.out, "Cost     $1e+308\n") || !strings.Contains(a.errout, "says $1e+300, its transcript adds up to $1e+308") {
		t.Errorf("%s%s", a.out, a.errout)
	}
	a := at(t, state, "sessions", "stats", "--json")
	if !json.Valid([]byte(a.out)) {
		t.Errorf("no JSON: %s", a.out)
	}
	table, err := csv.NewReader(strings.NewReader(at(t, state, "sessions", "stats", "--csv").out)).ReadAll()
	if err != nil || table[len(table)-1][0] != "total" || table[len(table)-1][1] != "" {
		t.Errorf("%v %q", err, table)
	}
}

// S13: transcript, archives and a checkpoint share entry ids; each answer counts once, and a row that says something else is named.
func TestStats(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, "agents/main/sessions")
	one := answered("a1", "02T23:30:00.000Z", `{"input":100,"output":10,"cacheRead":50,"totalTokens":160,"cost":{"total":0.04}}`)
	two := answered("a2", "03T10:00:00.000Z", `{"input":200,"output":20,"totalTokens":220,"cost":{"total":0.06}}`)
	free := answered("a3", "03T11:00:00.000Z", `{"input":1,"output":1}`)
	lines(t, filepath.Join(dir, "one.jsonl"), header, one, two)
	lines(t, filepath.Join(dir, fixtures.Gone("one.jsonl", "reset", fixtures.Now-fixtures.Day)), header, one)
	lines(t, filepath.Join(dir, fixtures.Gone("one.jsonl", "deleted", fixtures.Now)), header, one, two)
	lines(t, filepath.Join(dir, "one.checkpoint.8d6a1c3e-4f5b-4a6c-8d7e-9f0a1b2c3d4e.jsonl"), header, one, two, free)
	lines(t, filepath.Join(dir, "lost.jsonl"), header, answered("a1", "04T10:00:00.000Z", `{"input":1000,"output":0,"cost":{"total":1}}`), "torn {")
	lines(t, filepath.Join(dir, "sessions.json"), `{"agent:main:main":{"sessionId":"one","updatedAt":1789000000000,"estimatedCostUsd":7.2},"agent:main:x":{"sessionId":"nowhere","updatedAt":5}}`)
	before := tree(t, state)

	doc := at(t, state, "sessions", "stats", "--json", "--tz", "UTC").doc(t)
	want(t, "answers", dig(doc, "totals", "answers"), float64(4))
	want(t, "input", dig(doc, "totals", "inputTokens"), float64(1301))
	want(t, "tokens", dig(doc, "totals", "totalTokens"), float64(1382))
	want(t, "cost", dig(doc, "totals", "costUsd"), 1.1)
	want(t, "without a price", dig(doc, "totals", "withoutPrice"), float64(1))
	want(t, "repeated", dig(doc, "coverage", "repeatedAnswers"), float64(5))
	want(t, "without a transcript", dig(doc, "coverage", "sessionsWithoutTranscript"), float64(1))
	want(t, "days", len(doc["days"].([]any)), 3)
	want(t, "day", dig(doc, "days", 0, "day"), "2026-09-02")
	want(t, "of a day", dig(doc, "days", 1, "answers"), float64(2))
	want(t, "row", dig(doc, "mismatches", 0, "storedCostUsd"), 7.2)
	want(t, "transcript", dig(doc, "mismatches", 0, "computedCostUsd"), 0.1)
	want(t, "session", dig(doc, "sessions", 0, "session"), "lost")
	want(t, "model", dig(doc, "models", 0, "model"), "openai/gpt-5.2")

	far := at(t, state, "sessions", "stats", "--json", "--tz", "Asia/Tokyo", "--by", "day").doc(t)
	want(t, "day in Tokyo", dig(far, "days", 0, "day"), "2026-09-03")
	if far["models"] != nil {
		t.Error("--by day lists models")
	}
	part := at(t, state, "sessions", "stats", "--json", "--since", "2026-09-03T00:00:00Z", "--until", "2026-09-04T00:00:00Z").doc(t)
	want(t, "in a day", dig(part, "totals", "answers"), float64(2))

	table, err := csv.NewReader(strings.NewReader(at(t, state, "sessions", "stats", "--csv", "--by", "day", "--tz", "UTC").out)).ReadAll()
	if err != nil || len(table) != 5 || table[1][1] != "2026-09-02" || table[4][0] != "total" || table[4][8] != "1.1" {
		t.Errorf("%v %q", err, table)
	}
	text := at(t, state, "sessions", "stats")
	if !strings.Contains(text.errout, "says $7.20") || !strings.Contains(text.out, "$1.10+") {
		t.Errorf("%s%s", text.out, text.errout)
	}
	kind := at(t, state, "sessions", "stats", "--json", "--kind", "main").doc(t)
	want(t, "of a kind", dig(kind, "totals", "answers"), float64(3))
	want(t, "of a kind without a transcript", dig(kind, "coverage", "sessionsWithoutTranscript"), float64(0))
	want(t, "both", at(t, state, "sessions", "stats", "--csv", "--json").exit, ExitUsage)
	want(t, "zone", at(t, state, "sessions", "stats", "--tz", "Nowhere/Land").exit, ExitUsage)
	if now := tree(t, state); now != before {
		t.Error("counting changed the tree")
	}
}

func TestStatsBytes(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, "agents/main/sessions")
	shared := saying("a1", "02T10:00:00.000Z", "user", `"hello"`)
	image := saying("a2", "02T10:00:01.000Z", "user", `[{"type":"image","mimeType":"image/png","data":"`+strings.Repeat("A", 5000)+`"}]`)
	lines(t, filepath.Join(dir, "one.jsonl"), header, shared, image, "")
	lines(t, filepath.Join(dir, "two.jsonl"), strings.Replace(header, `"s"`, `"t"`, 1), shared, "")
	lines(t, filepath.Join(dir, "sessions.json"), `{"agent:main:main":{"sessionId":"one","updatedAt":1},"agent:main:x":{"sessionId":"two","updatedAt":5}}`)
	doc := at(t, state, "sessions", "stats", "--bytes", "--json").doc(t)
	want(t, "media", dig(doc, "media", 0, "bytes"), float64(5002))
	want(t, "content", dig(doc, "contents", 0, "name"), "image")
	want(t, "repeated", dig(doc, "repeatedEntries", "bytes"), float64(len(shared)+1))
	want(t, "forks", dig(doc, "sharedForkPrefixes", "count"), float64(1))
	want(t, "longest", dig(doc, "longestLines", 0, "bytes"), float64(len(image)))
	sum := 0.0
	for _, c := range doc["contents"].([]any) {
		sum += c.(map[string]any)["bytes"].(float64)
	}
	want(t, "all contents", sum, doc["bytes"].(float64))
	fields := []string{}
	for _, f := range doc["rowFields"].([]any) {
		fields = append(fields, f.(map[string]any)["name"].(string))
	}
	slices.Sort(fields)
	same(t, "fields", fields, []string{"sessionId", "updatedAt"})
}

// A session that asks is told of what it may see alone, and what oc removed of no one in particular.
func TestStatsAs(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, "agents/main/sessions")
	lines(t, filepath.Join(state, "openclaw.json"), `{"tools":{"sessions":{"visibility":"self"}}}`)
	lines(t, filepath.Join(dir, "one.jsonl"), header, answered("a1", "02T23:30:00.000Z", `{"input":100,"cost":{"total":0.04}}`))
	lines(t, filepath.Join(dir, "two.jsonl"), header, answered("b1", "02T23:30:00.000Z", `{"input":7,"cost":{"total":3}}`))
	lines(t, filepath.Join(dir, "lost.jsonl"), header, answered("c1", "02T23:30:00.000Z", `{"input":7,"cost":{"total":3}}`))
	lines(t, filepath.Join(dir, "sessions.json"), `{"agent:main:explicit:me":{"sessionId":"one","updatedAt":1},"agent:main:explicit:x":{"sessionId":"two","updatedAt":5,"label":"theirs"},"agent:main:explicit:y":{"sessionId":"nowhere","updatedAt":5}}`)
	doc := at(t, state, "sessions", "stats", "--json", "--as", "agent:main:explicit:me").doc(t)
	want(t, "cost", dig(doc, "totals", "costUsd"), 0.04)
	want(t, "sessions", len(doc["sessions"].([]any)), 1)
	want(t, "transcripts", dig(doc, "coverage", "transcripts"), float64(1))
	want(t, "without a transcript", dig(doc, "coverage", "sessionsWithoutTranscript"), float64(0))
	if removed, told := dig(doc, "coverage").(map[string]any)["removedByOc"]; !told || removed != nil {
		t.Errorf("removed: %v", removed)
	}
	want(t, "mode", dig(doc, "visibility", "mode"), "self")
	weight := at(t, state, "sessions", "stats", "--bytes", "--json", "--as", "agent:main:explicit:me").doc(t)
	want(t, "transcripts", weight["transcripts"], any(float64(1)))
	want(t, "fields", len(weight["rowFields"].([]any)), 2)
	want(t, "mode", dig(weight, "visibility", "mode"), "self")
	text := at(t, state, "sessions", "stats", "--as", "agent:main:explicit:me")
	if strings.Contains(text.out, "explicit:x") || !strings.Contains(text.errout, "left out") {
		t.Errorf("%s%s", text.out, text.errout)
	}
	table := at(t, state, "sessions", "stats", "--csv", "--as", "agent:main:explicit:me")
	if strings.Contains(table.out, "explicit:x") || strings.Contains(table.out, "lost") {
		t.Error(table.out)
	}
}
