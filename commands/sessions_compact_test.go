package commands

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oc/fixtures"
)

const longTalkID = "11111111-1111-4111-8111-111111111111"

// longTalk is a state with one session of agent main, whose transcript is the lines; an id and the id before it are added to each.
func longTalk(t *testing.T, config string, lines ...string) (state, sessions string, env map[string]string) {
	t.Helper()
	state = filepath.Join(t.TempDir(), "state")
	sessions = filepath.Join(state, "agents", "main", "sessions")
	if err := os.MkdirAll(sessions, 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"type":"session","version":3,"id":"` + longTalkID + `","timestamp":"2026-01-05T09:00:00.000Z","cwd":"/srv/demo"}` + "\n"
	parent := "null"
	for i, l := range lines {
		id := fmt.Sprintf(`"m%d"`, i)
		text += strings.Replace(l, "{", `{"id":`+id+`,"parentId":`+parent+`,"timestamp":"2026-01-05T09:00:00.000Z",`, 1) + "\n"
		parent = id
	}
	for path, text := range map[string]string{
		filepath.Join(state, "openclaw.json"):        config,
		filepath.Join(sessions, "sessions.json"):     `{"agent:main:cron:x":{"sessionId":"` + longTalkID + `","updatedAt":1,"compactionCount":1,"totalTokens":5,"inputTokens":1}}`,
		filepath.Join(sessions, longTalkID+".jsonl"): text,
		filepath.Join(state, "agents", "main", "it"): "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	calm(t, sessions)
	return state, sessions, quiet(t, fixtures.Now)
}

func uttered(role, text string) string {
	b, err := json.Marshal(map[string]any{"role": role, "content": []map[string]string{{"type": "text", "text": text}}})
	if err != nil {
		panic(err)
	}
	return `{"type":"message","message":` + string(b) + `}`
}

// invoices are a conversation of n turns of about 100 tokens.
func invoices(n int) (lines []string) {
	for i := range n {
		lines = append(lines,
			uttered("user", fmt.Sprintf("Please ship invoice %d of https://shop.example/o/%d; the key is password=correcthorsebatterystaple", i, 100000+i)),
			`{"type":"message","message":{"role":"assistant","content":[{"type":"toolCall","id":"c`+fmt.Sprint(i)+`","name":"read","arguments":{"path":"/srv/f`+fmt.Sprint(i%3)+`"}}]}}`,
			`{"type":"message","message":{"role":"toolResult","toolCallId":"c`+fmt.Sprint(i)+`","toolName":"read","isError":true,"content":[{"type":"text","text":"`+strings.Repeat("r ", 100)+`"}]}}`,
			uttered("assistant", "We decided to send it by post."))
	}
	return lines
}

// lastRow is the last row of a transcript.
func lastRow(t *testing.T, sessions string) (row map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sessions, longTalkID+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	if err := json.Unmarshal([]byte(all[len(all)-1]), &row); err != nil {
		t.Fatal(err)
	}
	return row
}

func TestCompact(t *testing.T) {
	state, sessions, env := longTalk(t, `{}`, invoices(20)...)
	before := kept(t, state)
	args := []string{"--state-dir", state, "sessions", "compact", "cron:x", "--keep-recent-tokens", "400", "--json"}
	whole := tree(t, state)
	dry := ocRun(t, state, env, append(args, "--dry-run")...)
	if now := tree(t, state); dry.exit != ExitDone || now != whole || !strings.Contains(dry.out, `"compacted": false`) {
		t.Fatalf("dry run: exit %d, %s\n%s", dry.exit, dry.errout, dry.out)
	}
	a := ocRun(t, state, env, args...)
	var d struct {
		Compacted, SplitTurn            bool
		TokensBefore, TokensAfter, Kept int
		Provider, Archived, Summary     string
	}
	if err := json.Unmarshal([]byte(a.out), &d); err != nil || a.exit != ExitDone {
		t.Fatalf("exit %d, %v: %s%s", a.exit, err, a.errout, a.out)
	}
	if !d.Compacted || d.Provider != "extract" || d.TokensBefore < 1500 || d.TokensAfter >= d.TokensBefore || d.Kept == 0 || filepath.Dir(d.Archived) != sessions {
		t.Errorf("%+v", d)
	}
	row := lastRow(t, sessions)
	if row["type"] != "compaction" || row["parentId"] != "m79" || row["tokensBefore"] != float64(d.TokensBefore) || row["summary"] != d.Summary {
		t.Errorf("row %v", row)
	}
	for _, want := range []string{"## Decisions\n", "## Exact identifiers\n", "https://shop.example/o/100000", "password=***", "## Tool Failures\n", "<read-files>\n/srv/f0\n/srv/f1\n/srv/f2\n"} {
		if !strings.Contains(d.Summary, want) {
			t.Errorf("%q is not in the summary:\n%s", want, d.Summary)
		}
	}
	if strings.Contains(d.Summary, "correcthorse") {
		t.Error("a secret is in the summary")
	}
	if text := rowsOf(t, sessions)["agent:main:cron:x"]; !strings.Contains(text, `"compactionCount":2`) || !strings.Contains(text, fmt.Sprintf(`"totalTokens":%d,"totalTokensFresh":true`, d.TokensAfter)) || strings.Contains(text, "inputTokens") {
		t.Errorf("the row is %s", text)
	}
	// What the model sees now, and that there is nothing to do a second time.
	if a := ocRun(t, state, env, "--state-dir", state, "sessions", "context", "cron:x", "--json"); !strings.Contains(a.out, fmt.Sprintf(`"messages": %d,`, d.Kept+1)) || !strings.Contains(a.out, fmt.Sprintf(`"estimatedTokens": %d,`, d.TokensAfter)) {
		t.Errorf("context: %s", a.out)
	}
	calm(t, sessions)
	if a := ocRun(t, state, env, args...); a.exit != ExitDone || !strings.Contains(a.out, `"reason": "it ends with a compaction already"`) {
		t.Errorf("again: exit %d %s", a.exit, a.out)
	}
	if a := ocRun(t, state, env, "--state-dir", state, "undo"); a.exit != ExitDone {
		t.Fatalf("undo: %s", a.errout)
	}
	if now := kept(t, state); !slices.Equal(now, before) {
		t.Errorf("after undo:\n%s\nwant\n%s", strings.Join(now, "\n"), strings.Join(before, "\n"))
	}
	// Secrets stay where that is asked for, and nothing is kept of the conversation where that is.
	if a := ocRun(t, state, env, "--state-dir", state, "sessions", "compact", "cron:x", "--keep-recent-tokens", "0", "--raw", "--json"); a.exit != ExitDone || !strings.Contains(a.out, "correcthorse") || !strings.Contains(a.out, `"kept": 0`) {
		t.Errorf("--raw: exit %d %s%s", a.exit, a.errout, a.out)
	}
	if row := lastRow(t, sessions); row["firstKeptEntryId"] != row["id"] {
		t.Errorf("a hard checkpoint: %v", row)
	}
}

// With --successor the session goes on in a new transcript, in which the model sees the same; the old one stays as it is, is named by a
// checkpoint, and comes back with undo.
func TestCompactSuccessor(t *testing.T) {
	state, sessions, env := longTalk(t, `{}`, invoices(20)...)
	before := kept(t, state)
	old, err := os.ReadFile(filepath.Join(sessions, longTalkID+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--state-dir", state, "sessions", "compact", "cron:x", "--keep-recent-tokens", "400", "--successor"}
	whole := tree(t, state)
	if a := ocRun(t, state, env, append(args, "--dry-run")...); a.exit != ExitDone || tree(t, state) != whole || !strings.Contains(a.out, "Would go on in  2026-09-21T14-13-20-000Z_") {
		t.Fatalf("dry run: exit %d, %s\n%s", a.exit, a.errout, a.out)
	}
	a := ocRun(t, state, env, append(args, "--json")...)
	var d struct {
		TokensAfter, Kept int
		Archived          string
		Successor         struct{ SessionID, SessionFile string }
	}
	if err := json.Unmarshal([]byte(a.out), &d); err != nil || a.exit != ExitDone {
		t.Fatalf("exit %d, %v: %s%s", a.exit, err, a.errout, a.out)
	}
	now, err := os.ReadFile(filepath.Join(sessions, longTalkID+".jsonl"))
	if err != nil || string(now) != string(old) || d.Archived != filepath.Join(sessions, longTalkID+".jsonl") {
		t.Errorf("the old transcript: %v, archived as %s", err, d.Archived)
	}
	text, err := os.ReadFile(d.Successor.SessionFile)
	if err != nil || filepath.Base(d.Successor.SessionFile) != "2026-09-21T14-13-20-000Z_"+d.Successor.SessionID+".jsonl" {
		t.Fatalf("%v: %s", err, d.Successor.SessionFile)
	}
	for _, not := range []string{"Please ship invoice 3 of", `"id":"m10"`} {
		if strings.Contains(string(text), not) && !strings.Contains(string(text), "- \""+not) {
			t.Errorf("%q is in the new transcript", not)
		}
	}
	if !strings.HasPrefix(string(text), `{"type":"session","version":3,"id":"`+d.Successor.SessionID+`","timestamp":"2026-09-21T14:13:20.000Z","cwd":"/srv/demo","parentSession":"`+d.Archived+`"}`+"\n") {
		t.Errorf("the header: %.300s", text)
	}
	row := rowsOf(t, sessions)["agent:main:cron:x"]
	for _, want := range []string{
		`"sessionId":"` + d.Successor.SessionID + `"`, `"sessionFile":"` + d.Successor.SessionFile + `"`, `"usageFamilyKey":"agent:main:cron:x"`,
		`"usageFamilySessionIds":["` + longTalkID + `","` + d.Successor.SessionID + `"]`, `"preCompaction":{"sessionId":"` + longTalkID + `","sessionFile":"` + d.Archived + `","leafId":"m79"}`, `"compactionCount":2`,
	} {
		if !strings.Contains(row, want) {
			t.Errorf("%s is not in the row %s", want, row)
		}
	}
	// The last answer before what is kept and its result stay too, as with OpenClaw, and are counted.
	if a := ocRun(t, state, env, "--state-dir", state, "sessions", "context", "cron:x", "--json"); !strings.Contains(a.out, fmt.Sprintf(`"messages": %d,`, d.Kept+3)) || !strings.Contains(a.out, fmt.Sprintf(`"estimatedTokens": %d,`, d.TokensAfter)) {
		t.Errorf("context: %s", a.out)
	}
	// A cleanup does not take the old transcript for one that nobody needs.
	if a := ocRun(t, state, env, "--state-dir", state, "sessions", "cleanup", "--dry-run", "--json"); a.exit != ExitDone || strings.Contains(a.out, longTalkID+".jsonl") {
		t.Errorf("cleanup: exit %d %s%s", a.exit, a.errout, a.out)
	}
	calm(t, sessions)
	if a := ocRun(t, state, env, "--state-dir", state, "undo"); a.exit != ExitDone {
		t.Fatalf("undo: %s", a.errout)
	}
	if now := kept(t, state); !slices.Equal(now, before) {
		t.Errorf("after undo:\n%s\nwant\n%s", strings.Join(now, "\n"), strings.Join(before, "\n"))
	}
}

// What is too much for one request is summarised in parts, which are merged; the last turns before what is kept stand in the summary, and
// the sections of AGENTS.md that the configuration names.
func TestCompactStages(t *testing.T) {
	state, sessions, env := longTalk(t, `{agents: {defaults: {contextTokens: 16000, compaction: {mode: "safeguard", qualityGuard: {enabled: false}, postCompactionSections: ["Red Lines"]}}}}`, invoices(60)...)
	if err := os.Mkdir(filepath.Join(state, "workspace"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "workspace", "AGENTS.md"), []byte("# Agents\n\n## Red Lines\nNever send twice.\n\n## Other\nNo.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := t.TempDir()
	p := scripted(t, `n=$(ls `+asked+` | wc -l); cat >`+asked+`/$n; for h in Decisions "Open TODOs" "Constraints/Rules" "Pending user asks" "Exact identifiers"; do echo "## $h"; echo "- from request $n"; done`)
	args := []string{"--state-dir", state, "sessions", "compact", "cron:x", "--keep-recent-tokens", "400", "--provider", p}
	if a := ocRun(t, state, env, args...); a.exit != ExitDone || !strings.Contains(a.out, "in 4 parts") {
		t.Fatalf("exit %d %s%s", a.exit, a.errout, a.out)
	}
	requests, err := os.ReadDir(asked)
	if err != nil || len(requests) != 5 {
		t.Fatalf("%d requests, %v", len(requests), err)
	}
	var r struct {
		Instructions, PreviousSummary string
		Conversation                  []struct{ Role, Text string }
	}
	for i, want := range []struct {
		previous, begins string
	}{{"", "Please ship invoice 0 "}, {"from request 0", ""}, {"", ""}, {"from request 2", ""}, {"", "[Chunk 1 — oldest messages]\n## Decisions\n- from request 1"}} {
		text, err := os.ReadFile(filepath.Join(asked, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		r.PreviousSummary, r.Conversation = "", nil
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		if (want.previous == "") != (r.PreviousSummary == "") || !strings.Contains(r.PreviousSummary, want.previous) || !strings.HasPrefix(r.Conversation[0].Text, want.begins) {
			t.Errorf("request %d: previous %q, begins with %.200q", i, r.PreviousSummary, r.Conversation[0].Text)
		}
		if i == 2 && r.Conversation[0].Role == "tool" {
			t.Error("a part begins with the result of a call before it")
		}
	}
	summary, _ := lastRow(t, sessions)["summary"].(string)
	for _, want := range []string{"- from request 4\n", "## Recent turns preserved verbatim\n- User: Please ship invoice 5", "## Rules of the workspace\n## Red Lines\nNever send twice."} {
		if !strings.Contains(summary, want) {
			t.Errorf("%q is not in the summary:\n%s", want, summary)
		}
	}
	if strings.Contains(summary, "from request 0") || strings.Contains(summary, "No.") || strings.Contains(summary, "correcthorse") {
		t.Errorf("the summary:\n%s", summary)
	}
}

// A second compaction goes on from the summary of the first, and lists the files of both.
func TestCompactTwice(t *testing.T) {
	state, sessions, env := longTalk(t, `{}`, invoices(20)...)
	args := []string{"--state-dir", state, "sessions", "compact", "cron:x", "--keep-recent-tokens", "400"}
	if a := ocRun(t, state, env, args...); a.exit != ExitDone {
		t.Fatal(a.errout)
	}
	parent := lastRow(t, sessions)["id"]
	f, err := os.OpenFile(filepath.Join(sessions, longTalkID+".jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		fmt.Fprintf(f, `{"type":"message","id":"n%d","parentId":"%v","message":{"role":"user","content":"%s"}}`+"\n", i, parent, strings.Repeat("and more ", 50))
		parent = fmt.Sprintf("n%d", i)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	calm(t, sessions)
	if a := ocRun(t, state, env, args...); a.exit != ExitDone || !strings.Contains(a.out, "Written by  extract") {
		t.Fatal(a.errout + a.out)
	}
	summary, _ := lastRow(t, sessions)["summary"].(string)
	if strings.Count(summary, "## Decisions") != 1 || strings.Count(summary, "The conversation began with: ") != 1 || !strings.Contains(summary, "invoice 0 of") || !strings.Contains(summary, "/srv/f2") {
		t.Errorf("the second summary:\n%s", summary)
	}
}

// Providers that fail are told, and the next is asked; the answer of one that works is taken, masked, and gets what it forgot.
func TestCompactProviders(t *testing.T) {
	sections := "## Decisions\\n- post\\n\\n## Open TODOs\\nNone.\\n\\n## Constraints/Rules\\nNone.\\n\\n## Pending user asks\\n- ship the invoice\\n\\n## Exact identifiers\\n- password=correcthorsebatterystaple"
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"choices":[{"message":{"content":"%s"}}]}`, sections)
	}))
	t.Cleanup(good.Close)
	bin := t.TempDir()
	script := func(name, text string) string {
		path := filepath.Join(bin, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return "exec:" + path
	}
	for _, c := range []struct{ name, provider, told, by string }{
		{"fails", script("fails", "echo out of luck >&2; exit 1"), "exit status 1: out of luck", "extract"},
		{"says nothing", script("silent", "cat >/dev/null"), "it answered nothing", "extract"},
		{"hangs", script("hangs", "exec sleep 600"), "it did not answer within 1s", "extract"},
		{"floods", script("floods", "exec yes"), "its answer is longer than 256 KiB", "extract"},
		{"has no sections", script("plain", "cat >/dev/null; echo All went well."), `its answer lacks the section "## Decisions"`, "extract"},
		{"is not there", "exec:" + filepath.Join(bin, "none"), "no such file", "extract"},
		{"nobody listens", "openai:http://127.0.0.1:1/v1#m", "connection refused", "extract"},
		{"works", "openai:" + good.URL + "#m", "", "openai " + good.URL},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			state, sessions, env := longTalk(t, `{agents: {defaults: {compaction: {timeoutSeconds: 1}}}}`, invoices(12)...)
			env["OC_PROVIDER_KEY"] = "sesame"
			if c.by != "extract" || c.name == "nobody listens" {
				state, sessions, env = longTalk(t, `{}`, invoices(12)...)
				env["OC_PROVIDER_KEY"] = "sesame"
			}
			a := ocRun(t, state, env, "--state-dir", state, "sessions", "compact", "cron:x", "--keep-recent-tokens", "400", "--json", "--provider", c.provider)
			if a.exit != ExitDone || !strings.Contains(a.errout, c.told) || !strings.Contains(a.out, fmt.Sprintf(`"provider": %q`, c.by)) {
				t.Fatalf("exit %d: %s%s", a.exit, a.errout, a.out)
			}
			summary, _ := lastRow(t, sessions)["summary"].(string)
			if !strings.Contains(summary, "## Exact identifiers") || strings.Contains(summary, "correcthorse") || !strings.Contains(summary, "https://shop.example/o/100") {
				t.Errorf("summary:\n%s", summary)
			}
		})
	}
}

// The provider of the configuration is asked where none is named: an endpoint is, a plugin of OpenClaw cannot be and is told, and a command is
// never run because a file says so.
func TestCompactConfiguredProvider(t *testing.T) {
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"choices":[{"message":{"content":"## Decisions\n- by the endpoint\n\n## Open TODOs\nNone.\n\n## Constraints/Rules\nNone.\n\n## Pending user asks\nNone.\n\n## Exact identifiers\nNone."}}]}`)
	}))
	t.Cleanup(answers.Close)
	ran := filepath.Join(t.TempDir(), "ran")
	for _, c := range []struct{ id, by, told string }{
		{"openai:" + answers.URL + "#m", "openai " + answers.URL, ""},
		{"my-plugin", "extract", "a plugin of OpenClaw, which oc cannot ask"},
		{"exec:touch " + ran, "extract", "which oc cannot ask"},
	} {
		state, _, env := longTalk(t, fmt.Sprintf(`{agents: {defaults: {compaction: {provider: %q}}}}`, c.id), invoices(12)...)
		a := ocRun(t, state, env, "--state-dir", state, "sessions", "compact", "cron:x", "--keep-recent-tokens", "400", "--json")
		if a.exit != ExitDone || !strings.Contains(a.out, fmt.Sprintf(`"provider": %q`, c.by)) || !strings.Contains(a.errout, c.told) {
			t.Errorf("%s: exit %d: %s%s", c.id, a.exit, a.errout, a.out)
		}
	}
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a command of the configuration was run")
	}
}

// What cannot be compacted stays as it is, and the reason is said.
func TestCompactRefuses(t *testing.T) {
	results := `{"type":"message","message":{"role":"toolResult","toolCallId":"c","toolName":"read","content":[{"type":"text","text":"` + strings.Repeat("r", 9000) + `"}]}}`
	for _, c := range []struct {
		name  string
		lines []string
		args  []string
		exit  int
		says  string
	}{
		{"a tail that cannot be cut", []string{uttered("user", strings.Repeat("x ", 9000))}, nil, ExitFailed, "its end cannot be cut"},
		{"a message over the window", []string{uttered("user", strings.Repeat("x ", 900_000))}, nil, ExitFailed, "its end cannot be cut"},
		{"results of tools alone", []string{results, results}, nil, ExitFailed, "its end cannot be cut"},
		{"a short one", invoices(1), nil, ExitDone, "no more than what would be kept"},
		{"nothing in it", nil, nil, ExitDone, "nothing was said in it"},
		{"few lines", invoices(1), []string{"--max-lines", "10"}, ExitDone, "its 5 lines are no more than 10"},
		{"no header", nil, []string{"--max-lines", "2"}, ExitRefused, "no header of a session"},
		{"an old version", nil, nil, ExitRefused, "its rows have no ids"},
		{"both ways", invoices(1), []string{"--max-lines", "2", "--provider", "extract"}, ExitUsage, "leave out"},
		{"no provider", invoices(1), []string{"--provider", "gpt"}, ExitUsage, "--provider"},
		{"in use", invoices(20), nil, ExitRefused, "was not compacted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, sessions, env := longTalk(t, `{}`, c.lines...)
			path := filepath.Join(sessions, longTalkID+".jsonl")
			write := func(text string) {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				calm(t, sessions)
			}
			switch c.name {
			case "no header":
				write(strings.Repeat(`{"type":"message","id":"a","message":{}}`+"\n", 4))
			case "an old version":
				write(`{"type":"session","id":"s"}` + "\n" + uttered("user", "hi") + "\n")
			case "in use":
				at := time.UnixMilli(fixtures.Now).Add(-time.Minute)
				if err := os.Chtimes(path, at, at); err != nil {
					t.Fatal(err)
				}
			}
			before := tree(t, state)
			args := []string{"--state-dir", state, "sessions", "compact", "cron:x"}
			if c.args == nil {
				args = append(args, "--keep-recent-tokens", "400")
			}
			a := ocRun(t, state, env, append(args, c.args...)...)
			if a.exit != c.exit || !strings.Contains(a.errout+a.out, c.says) {
				t.Errorf("exit %d, want %d and %q: %s%s", a.exit, c.exit, c.says, a.errout, a.out)
			}
			if now := tree(t, state); now != before && c.name != "in use" || c.name == "in use" && strings.Contains(now, ".bak.") {
				t.Errorf("it was changed:\n%s", now)
			}
		})
	}
}

func TestCompactLines(t *testing.T) {
	state, sessions, env := longTalk(t, `{}`, invoices(20)...)
	before := kept(t, state)
	a := ocRun(t, state, env, "--state-dir", state, "sessions", "compact", "cron:x", "--max-lines", "5", "--json")
	if a.exit != ExitDone || !strings.Contains(a.out, `"compacted": true`) || !strings.Contains(a.out, `"kept": 5`) || !strings.Contains(a.out, `.jsonl.bak.2026-09-21T14-13-20.000Z"`) {
		t.Fatalf("exit %d: %s%s", a.exit, a.errout, a.out)
	}
	text, err := os.ReadFile(filepath.Join(sessions, longTalkID+".jsonl"))
	if err != nil || strings.Count(string(text), "\n") != 5 || !strings.Contains(string(text), `{"id":"m76","parentId":null,`) {
		t.Errorf("%v: %s", err, text)
	}
	if row := rowsOf(t, sessions)["agent:main:cron:x"]; strings.Contains(row, "okens") || !strings.Contains(row, `"compactionCount":1`) {
		t.Errorf("the row is %s", row)
	}
	if a := ocRun(t, state, env, "--state-dir", state, "undo"); a.exit != ExitDone || !slices.Equal(kept(t, state), before) {
		t.Errorf("undo: exit %d %s", a.exit, a.errout)
	}
}

// A gateway that lives is asked to do it, with what it takes; what the transcript held can be taken back when it has stopped.
func TestCompactHandedOver(t *testing.T) {
	state, sessions, env := longTalk(t, `{}`, invoices(20)...)
	row := rowsOf(t, sessions)["agent:main:cron:x"]
	before, err := os.ReadFile(filepath.Join(sessions, longTalkID+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(sessions, longTalkID+".jsonl")
	f := fake(t, "2026.7.35", state, func(fakeCall) fakeEnd {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		all := strings.SplitAfter(string(text), "\n")
		store := filepath.Join(sessions, "sessions.json")
		was, err := os.ReadFile(store)
		if err != nil {
			t.Error(err)
		}
		for path, text := range map[string]string{path: strings.Join(all[:3], ""), store: strings.Replace(string(was), `"inputTokens":1`, `"contextTokens":2`, 1)} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Error(err)
			}
		}
		return fakeEnd{payload: json.RawMessage(`{"ok":true,"key":"agent:main:cron:x","compacted":true,"kept":3}`)}
	})
	a := ocRun(t, state, f.env(env), "--state-dir", state, "sessions", "compact", "cron:x", "--max-lines", "3", "--json")
	if calls := f.calls(); a.exit != ExitDone || len(calls) != 1 || calls[0].String() != `sessions.compact {"key":"agent:main:cron:x","maxLines":3}` || !strings.Contains(a.out, `"via": "gateway"`) {
		t.Fatalf("exit %d, calls %v: %s%s", a.exit, calls, a.errout, a.out)
	}
	env["OPENCLAW_GATEWAY_PORT"] = "1"
	if u := ocRun(t, state, env, "--state-dir", state, "undo"); u.exit != ExitDone {
		t.Fatalf("undo: exit %d %s%s", u.exit, u.out, u.errout)
	}
	// The store is put together row by row, because the gateway may have written others since.
	if now, err := os.ReadFile(path); err != nil || string(now) != string(before) || rowsOf(t, sessions)["agent:main:cron:x"] != row {
		t.Errorf("after undo: %v, the row is %s", err, rowsOf(t, sessions)["agent:main:cron:x"])
	}
}

// A plan shows what a provider would get, masked, and asks nobody.
func TestCompactShowsItsPlan(t *testing.T) {
	state, _, env := longTalk(t, `{}`, invoices(20)...)
	before := tree(t, state)
	asked := filepath.Join(t.TempDir(), "asked")
	line := []string{"--state-dir", state, "sessions", "compact", "cron:x", "--keep-recent-tokens", "400", "--show-plan", "--provider", "exec:touch " + asked}
	for _, args := range [][]string{line, append(line, "--json")} {
		a := ocRun(t, state, env, args...)
		for _, want := range []string{"exec touch", "## Pending user asks", "[User]: Please ship invoice 0 of", "[Assistant tool calls]: read(path=", "password=***"} {
			if want = strings.ReplaceAll(want, `"`, `\"`); !strings.Contains(a.out, want) {
				t.Errorf("%v: %q is not in %s", args, want, a.out)
			}
		}
		if a.exit != ExitDone || strings.Contains(a.out, "correcthorse") || strings.Contains(a.out, "Please ship invoice 19 of") {
			t.Errorf("%v: exit %d %s", args, a.exit, a.out)
		}
	}
	if _, err := os.Stat(asked); err == nil || tree(t, state) != before {
		t.Errorf("something was done: %v", err)
	}
}
