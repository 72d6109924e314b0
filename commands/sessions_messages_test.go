package commands

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"oc/fixtures"
	"oc/store/span"
)

// unrot reads text that is kept in ROT13, so that no file holds what looks like a vendor's token.
func unrot(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case r >= 'A' && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		}
		return r
	}, s)
}

// What the real cleaner and redactor made of texts, each as a message of a session of its own.
func TestHistoryAsOpenClaw(t *testing.T) {
	f, err := os.Open("../transcript/visible/testdata/history.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	root := t.TempDir()
	dir := filepath.Join(root, ".openclaw/agents/main/sessions")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	type recorded struct{ name, want string }
	cases := map[string]recorded{}
	var store []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var c struct {
			Name, Stage     string
			Input, Expected json.RawMessage
			Rot13           bool
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		input, ok := span.Text(c.Input)
		want, _ := span.Text(c.Expected)
		if c.Stage != "history" && c.Stage != "redact" || !ok || len(input) >= 3500 {
			continue
		}
		if c.Rot13 {
			input, want = unrot(input), unrot(want)
		}
		role := "assistant"
		if c.Stage == "redact" {
			role = "user"
		}
		id := fmt.Sprintf("case-%04d", len(cases))
		cases[id] = recorded{c.Name, want}
		store = append(store, fmt.Sprintf(`"agent:main:explicit:%s":{"sessionId":"%s","updatedAt":1790000000000}`, id, id))
		text := fmt.Sprintf(`{"type":"session","version":3,"id":"%s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}`+"\n"+
			`{"type":"message","id":"a0000000","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"%s","content":[{"type":"text","text":%s}],"timestamp":1}}`+"\n",
			id, role, span.Quote(nil, input))
		put(t, filepath.Join(dir, id+".jsonl"), text)
	}
	if len(cases) < 200 {
		t.Fatalf("%d cases", len(cases))
	}
	put(t, filepath.Join(dir, "sessions.json"), "{"+strings.Join(store, ",")+"}")
	before := tree(t, root)
	for id, c := range cases {
		a := ocRun(t, root, map[string]string{"HOME": root}, "sessions", "history", "agent:main:explicit:"+id, "--json")
		var doc struct{ Messages []json.RawMessage }
		if err := json.Unmarshal([]byte(a.out), &doc); err != nil || a.exit != ExitDone {
			t.Errorf("%s: exit %d, %v: %s", c.name, a.exit, err, a.errout)
			continue
		}
		var got strings.Builder
		for _, m := range doc.Messages {
			_, _ = span.Items(span.Member(m, "content"), 0, func(b []byte) error {
				s, _ := span.Text(span.Member(b, "text"))
				got.WriteString(s)
				return nil
			})
		}
		if span.Trim(got.String()) != span.Trim(c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got.String(), c.want)
		}
	}
	if tree(t, root) != before {
		t.Error("reading changed the tree")
	}
}

// What real gateways answered to chat.history for the states that they left: the same messages, to the last member. oc's history is that
// of the tool, which leaves out what they cost and the details of results. How a client knows the transcript hangs on its
// path.
func TestHistoryOfRecordedStates(t *testing.T) {
	for _, release := range []string{"2026.7.35", "2026.9.6"} {
		root := t.TempDir()
		unpack(t, golden+"/gateway/state-"+release+".tar.gz", root)
		var want struct{ Messages []map[string]any }
		readJSON(t, "testdata/chat-history-"+release+".json", &want)
		doc := ocRun(t, root, quiet(t, fixtures.Now), "sessions", "history", "agent:main:main", "--include-tools", "--json", "--state-dir", root, "--all-branches").doc(t)
		got := map[any]any{}
		for _, m := range doc["messages"].([]any) {
			got[dig(m, "__openclaw", "id")] = m
		}
		if len(want.Messages) < 30 {
			t.Fatalf("%d messages", len(want.Messages))
		}
		for _, m := range want.Messages {
			delete(m, "usage")
			if release == "2026.9.6" {
				delete(m, "details")
				if source, _ := dig(got[dig(m, "__openclaw", "id")], "__openclaw", "transcriptPosition", "source").(string); len(source) != 43 {
					t.Errorf("source %q", source)
				} else {
					m["__openclaw"].(map[string]any)["transcriptPosition"].(map[string]any)["source"] = source
				}
			}
			if d := cmp.Diff(any(m), got[dig(m, "__openclaw", "id")]); d != "" {
				t.Errorf("%s: %s", release, d)
			}
		}
	}
}

// talkState is a state with one session, in either era, and its transcript as these lines.
func talkState(t *testing.T, era fixtures.Era, talk *fixtures.Transcript) string {
	t.Helper()
	dir := t.TempDir()
	err := (fixtures.State{Agents: []fixtures.Agent{{
		ID: "main", Era: era, Sessions: []fixtures.Session{{Key: "agent:main:main", ID: talk.ID, Updated: fixtures.Now, Talk: talk, Entry: `{"label":"Ada"}`}},
	}}}).Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var eras = []fixtures.Era{fixtures.FileEra, fixtures.SQLiteEra}

const talkID = "11111111-2222-4333-8444-555555555555"

func texts(doc map[string]any) (list []string) {
	for _, m := range doc["messages"].([]any) {
		switch c := dig(m, "content").(type) {
		case string:
			list = append(list, c)
		case []any:
			if s, ok := dig(c, 0, "text").(string); ok {
				list = append(list, s)
			} else {
				list = append(list, fmt.Sprint(dig(c, 0, "type")))
			}
		}
	}
	return list
}

// Pages that follow each other by nextOffset are the whole conversation, newest page first, with every limit.
func TestHistoryPages(t *testing.T) {
	for _, era := range eras {
		talk := fixtures.Talk(talkID, fixtures.Now-fixtures.Day).Setup()
		for i := range 23 {
			talk.User(fmt.Sprintf("question %d", i))
			if i%3 == 0 {
				talk.Tool("exec", `{"command":"ls"}`, "a\nb")
			}
			if i%4 == 0 {
				talk.Assistant("NO_REPLY")
			} else {
				talk.Assistant(fmt.Sprintf("answer %d", i))
			}
		}
		state := talkState(t, era, talk)
		whole := at(t, state, "sessions", "history", "Ada", "--json").doc(t)
		want(t, "hasMore", whole["hasMore"], false)
		want(t, "results", dig(whole, "notShown", "toolResults"), float64(8))
		want(t, "hidden", dig(whole, "notShown", "hidden"), float64(6))
		for _, limit := range []int{1, 2, 5, 7, 50} {
			var got []string
			offset, rounds := 0.0, 0
			for more := true; more; rounds++ {
				doc := at(t, state, "sessions", "history", "main", "--json", "--limit", fmt.Sprint(limit), "--offset", fmt.Sprint(offset)).doc(t)
				if n := len(doc["messages"].([]any)); n > limit {
					t.Fatalf("%s: %d messages on a page of %d", era, n, limit)
				}
				got = append(texts(doc), got...)
				if more = doc["hasMore"].(bool); more {
					next := doc["nextOffset"].(float64)
					if next <= offset || rounds > 100 {
						t.Fatalf("%s, limit %d: the page after %v is %v", era, limit, offset, next)
					}
					offset = next
				}
			}
			if d := cmp.Diff(texts(whole), got); d != "" {
				t.Errorf("%s, limit %d: %s", era, limit, d)
			}
		}
	}
}

// The limits: 4000 and 8000 units, 80 KiB, a stand-in for what is too long.
func TestHistoryLimits(t *testing.T) {
	for _, era := range eras {
		talk := fixtures.Talk(talkID, fixtures.Now-fixtures.Day)
		for i := range 40 {
			talk.User(fmt.Sprintf("%02d ", i) + strings.Repeat("é", 5000))
		}
		doc := at(t, talkState(t, era, talk), "sessions", "history", "main", "--json").doc(t)
		if n := doc["bytes"].(float64); n > 80<<10 || n < 70<<10 {
			t.Errorf("%s: %v bytes", era, n)
		}
		for _, name := range []string{"truncated", "droppedMessages", "contentTruncated"} {
			want(t, name, doc[name], true)
		}
		want(t, "contentRedacted", doc["contentRedacted"], false)
		shown := len(doc["messages"].([]any))
		want(t, "nextOffset", doc["nextOffset"], float64(shown))
		want(t, "total", doc["total"], float64(40))
		if s := texts(doc)[0]; utf8.RuneCountInString(s) != 4000+utf8.RuneCountInString("\n…(truncated)…") {
			t.Errorf("%s: %d characters", era, utf8.RuneCountInString(s))
		}

		talk = fixtures.Talk(talkID, fixtures.Now-fixtures.Day).User("before").Tool("exec", `{"command":"`+strings.Repeat("x", 100<<10)+`"}`, "ok")
		doc = at(t, talkState(t, era, talk), "sessions", "history", "main", "--json").doc(t)
		if d := cmp.Diff([]string{"before", "toolCall"}, texts(doc)); d != "" { // oc cuts arguments, so that nothing has to stand in
			t.Errorf("%s: %s", era, d)
		}

		talk = fixtures.Talk(talkID, fixtures.Now-fixtures.Day).User("before").User(strings.Repeat("x", 300<<10)).Assistant("after")
		doc = at(t, talkState(t, era, talk), "sessions", "history", "main", "--json").doc(t)
		if d := cmp.Diff([]string{"before", "[chat.history omitted: message too large]", "after"}, texts(doc)); d != "" {
			t.Errorf("%s: %s", era, d)
		}
		want(t, "oversized", dig(doc, "notShown", "oversized"), float64(1))
	}
}

// Nothing that looks like a credential leaves oc, whichever way a conversation is read: in texts, arguments, results, and those that
// only the configuration knows as secret.
func TestSecretsStayInside(t *testing.T) {
	token, plain := "sk"+"-"+strings.Repeat("aB3", 10), "correct-horse-battery"
	for _, era := range eras {
		talk := fixtures.Talk(talkID, fixtures.Now-fixtures.Day).
			User("my key is "+token+" ok").Tool("exec", `{"command":"curl -H 'Authorization: Bearer `+token+`'","env":{"password":"hunter2hunter2"}}`, "token="+token).
			Assistant("I used " + token + " and " + plain)
		state := talkState(t, era, talk)
		put(t, filepath.Join(state, "openclaw.json"), `{"gateway":{"auth":{"token":"`+plain+`"}}}`)
		for _, args := range [][]string{
			{"history", "main"},
			{"history", "main", "--json"},
			{"history", "main", "--json", "--include-tools", "--raw-prose"},
			{"tail", "main"},
			{"tail", "main", "--json"},
			{"export", "main"},
			{"export", "main", "--format", "html"},
			{"export", "main", "--format", "jsonl"},
			{"diff", "main", "main"},
		} {
			a := at(t, state, append([]string{"sessions"}, args...)...)
			if a.exit != ExitDone {
				t.Errorf("%s: oc sessions %v: exit %d: %s", era, args, a.exit, a.errout)
			}
			for _, secret := range []string{token, plain, "hunter2hunter2"} {
				if strings.Contains(a.out+a.errout, secret) {
					t.Errorf("%s: oc sessions %v tells a secret", era, args)
				}
			}
		}
		want(t, "contentRedacted", at(t, state, "sessions", "history", "main", "--json").doc(t)["contentRedacted"], true)
		if a := at(t, state, "sessions", "export", "main", "--raw"); !strings.Contains(a.out, token) {
			t.Errorf("%s: --raw masks all the same", era)
		}
	}
}

// S10: damaged lines are counted and located, the rest is shown; S11: what is cut off from the branch is counted and can be read.
func TestHistoryOfDamagedTranscripts(t *testing.T) {
	good := fixtures.Talk(talkID, fixtures.Now-fixtures.Day).User("one").Assistant("two").User("three").Assistant("four")
	lines := good.Lines()
	file := func(parts ...string) string {
		state := talkState(t, fixtures.FileEra, good)
		put(t, filepath.Join(state, "agents/main/sessions", talkID+".jsonl"), strings.Join(parts, "\n"))
		return state
	}
	for _, c := range []struct {
		name  string
		state string
		texts []string
		exit  int
		codes []string
		line  float64
	}{
		{"torn tail", file(append(lines[:len(lines):len(lines)], `{"type":"message","id":"x","mess`)...), []string{"one", "two", "three", "four"}, ExitDone, []string{"torn-tail"}, 6},
		{"NUL tail", file(append(lines[:len(lines):len(lines)], strings.Repeat("\x00", 284))...), []string{"one", "two", "three", "four"}, ExitFailed, []string{"nul-tail"}, 6},
		{"broken middle", file(lines[0], lines[1], `{"broken`, lines[2], lines[3], lines[4], ""), []string{"one", "two", "three", "four"}, ExitFailed, []string{"not-json"}, 3},
		{"CRLF and BOM", file("\ufeff" + strings.Join(lines, "\r\n") + "\r\n"), []string{"one", "two", "three", "four"}, ExitDone, nil, 0},
		{"blank lines", file(lines[0], "", "  ", lines[1], lines[2], ""), []string{"one", "two"}, ExitDone, nil, 0},
		{"no header", file(lines[1], lines[2], ""), []string{"one", "two"}, ExitDone, nil, 0},
		{"header only", file(lines[0], ""), nil, ExitDone, nil, 0},
		{"empty", file(""), nil, ExitDone, nil, 0},
		{"orphan", file(lines[0], lines[1], lines[3], lines[4], ""), []string{"three", "four"}, ExitDone, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := at(t, c.state, "sessions", "history", "main", "--json")
			doc := a.doc(t)
			if a.exit != c.exit {
				t.Errorf("exit %d, want %d: %s", a.exit, c.exit, a.errout)
			}
			if d := cmp.Diff(c.texts, texts(doc)); d != "" {
				t.Error(d)
			}
			var codes []string
			if errs, ok := doc["errors"].([]any); ok {
				for _, e := range errs {
					codes = append(codes, dig(e, "code").(string))
				}
				want(t, "line", dig(errs, 0, "line"), c.line)
			}
			if d := cmp.Diff(c.codes, codes); d != "" {
				t.Error(d)
			}
			want(t, "broken", dig(doc, "notShown", "broken"), float64(len(c.codes)))
			if c.name == "orphan" {
				want(t, "otherBranches", dig(doc, "notShown", "otherBranches"), float64(1))
				all := at(t, c.state, "sessions", "history", "main", "--json", "--all-branches").doc(t)
				if d := cmp.Diff([]string{"one", "three", "four"}, texts(all)); d != "" {
					t.Error(d)
				}
			}
			if text := at(t, c.state, "sessions", "history", "main"); c.texts == nil && !strings.Contains(text.out, "Nothing was said") || raw(text.out) != "" {
				t.Errorf("%q", text.out)
			}
		})
	}
}

// A session without a transcript, one that is locked, one that nobody knows; ids of earlier transcripts, files.
func TestHistoryFindsConversations(t *testing.T) {
	state := talkState(t, fixtures.FileEra, fixtures.Talk(talkID, fixtures.Now-fixtures.Day).User("one").Assistant("two"))
	dir := filepath.Join(state, "agents/main/sessions")
	put(t, filepath.Join(dir, "22222222-2222-4333-8444-555555555555.jsonl"), fixtures.Talk("22222222-2222-4333-8444-555555555555", fixtures.Now-9*fixtures.Day).User("unlinked").String())
	saved := filepath.Join(t.TempDir(), "copy.jsonl")
	put(t, saved, fixtures.Talk("x", fixtures.Now-9*fixtures.Day).User("saved").String())
	for word, said := range map[string]string{"main": "one", "Ada": "one", talkID: "one", "22222222-2222-4333-8444-555555555555": "unlinked", saved: "saved"} {
		doc := at(t, state, "sessions", "history", word, "--json").doc(t)
		if got := texts(doc); len(got) == 0 || got[0] != said {
			t.Errorf("%s: %v", word, got)
		}
	}
	a := at(t, state, "sessions", "history", "agent:main:maim")
	if a.exit != ExitFailed || !strings.Contains(a.errout, "did you mean agent:main:main") {
		t.Errorf("exit %d: %s", a.exit, a.errout)
	}
	a = at(t, state, "sessions", "history", "main", "--branch", "nope")
	if a.exit != ExitUsage || !strings.Contains(a.errout, "nope") {
		t.Errorf("exit %d: %s", a.exit, a.errout)
	}
	held := filepath.Join(dir, talkID+".jsonl.lock")
	put(t, held, "being written")
	if err := os.Chtimes(held, time.UnixMilli(fixtures.Now), time.UnixMilli(fixtures.Now)); err != nil {
		t.Fatal(err)
	}
	if a = at(t, state, "sessions", "history", "main"); a.exit != ExitDone || !strings.Contains(a.errout, "locked") {
		t.Errorf("exit %d: %s", a.exit, a.errout)
	}
	if err := os.Remove(filepath.Join(dir, talkID+".jsonl")); err != nil {
		t.Fatal(err)
	}
	a = at(t, state, "sessions", "history", "main")
	if a.exit != ExitDone || !strings.Contains(a.out, "has no transcript") || !strings.Contains(a.errout, "is not there") {
		t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	doc := at(t, state, "sessions", "history", "main", "--json").doc(t)
	want(t, "state", dig(doc, "transcripts", 0, "state"), "missing")
}

// Every command that reads conversations leaves the state as it was, in both eras and in states that real gateways left.
func TestReadingConversationsTouchesNothing(t *testing.T) {
	dir := t.TempDir()
	demo := filepath.Join(dir, "demo")
	if err := fixtures.Demo().Write(demo); err != nil {
		t.Fatal(err)
	}
	states := []string{demo}
	for _, archive := range []string{"gateway/state-2026.7.35", "gateway/state-2026.9.6", "sqlite/2026.9.6-both-present", "sqlite/2026.8.2-migrated"} {
		state := filepath.Join(dir, filepath.Base(archive))
		unpack(t, filepath.Join(golden, archive+".tar.gz"), state)
		states = append(states, state)
	}
	for _, state := range states {
		t.Run(filepath.Base(state), func(t *testing.T) {
			env := quiet(t, fixtures.Now)
			var list struct{ Sessions []struct{ Key string } }
			a := ocRun(t, state, env, "sessions", "--all-agents", "--limit", "all", "--json", "--state-dir", state)
			if err := json.Unmarshal([]byte(a.out), &list); err != nil || len(list.Sessions) == 0 {
				t.Fatal(err, len(list.Sessions))
			}
			before := tree(t, state)
			out := t.TempDir()
			for i, s := range list.Sessions {
				for _, args := range [][]string{
					{"history", s.Key, "--archives"},
					{"history", s.Key, "--json", "--include-tools", "--all-branches"},
					{"tail", s.Key, "--json"},
					{"export", s.Key, "--format", "html", "--archives"},
					{"export", s.Key, "--format", "jsonl", "--output", filepath.Join(out, fmt.Sprint(i)), "--json"},
					{"diff", s.Key, list.Sessions[0].Key, "--json"},
				} {
					a := ocRun(t, state, env, append([]string{"--state-dir", state, "sessions"}, args...)...)
					if a.exit != ExitDone && !a.failedWell() {
						t.Errorf("oc sessions %v: exit %d: %s", args, a.exit, a.errout)
					}
					if strings.Contains(a.errout, "mistake in oc") {
						t.Errorf("oc sessions %v: %s", args, a.errout)
					}
				}
			}
			if tree(t, state) != before {
				t.Fatal("reading changed the tree")
			}
			empty(t, env["TMPDIR"])
		})
	}
}

// A session that asks sees what OpenClaw's tools would let it see: here itself, by whatever command.
func TestConversationsOfOthersAreNotForASession(t *testing.T) {
	for _, era := range eras {
		dir := t.TempDir()
		mine, other := fixtures.Talk(fixtures.IDOf("a"), fixtures.Now-fixtures.Day).User("mine"), fixtures.Talk(fixtures.IDOf("b"), fixtures.Now-fixtures.Day).User("not mine")
		err := (fixtures.State{Config: `{tools: {sessions: {visibility: "self"}}}`, Agents: []fixtures.Agent{{ID: "main", Era: era, Sessions: []fixtures.Session{
			{Key: "agent:main:explicit:a", ID: mine.ID, Updated: fixtures.Now, Talk: mine, Entry: `{"status":"running"}`},
			{Key: "agent:main:explicit:b", ID: other.ID, Updated: fixtures.Now, Talk: other, Entry: `{"status":"running"}`},
		}}}}).Write(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{{"history"}, {"export"}, {"tail"}, {"diff", "agent:main:explicit:a"}} {
			for key, exit := range map[string]int{"agent:main:explicit:a": ExitDone, "agent:main:explicit:b": ExitFailed, other.ID: ExitFailed} {
				a := at(t, dir, append(append([]string{"sessions"}, command...), key, "--as", "agent:main:explicit:a")...)
				if a.exit != exit || strings.Contains(a.out, "not mine") || exit == ExitFailed && !strings.Contains(a.errout, "is not for agent:main:explicit:a") {
					t.Errorf("%s: %v %s: exit %d: %s", era, command, key, a.exit, a.errout)
				}
			}
		}
		for key, exit := range map[string]int{"agent:main:explicit:a": ExitDone, "agent:main:explicit:b": ExitFailed, other.ID: ExitFailed} {
			a := at(t, dir, "sessions", "trace", key, "--as", "agent:main:explicit:a", "--json")
			if a.exit != exit || exit == ExitFailed && (dig(a.doc(t), "error", "code") != "forbidden" || strings.Contains(a.out, "sessions.json")) {
				t.Errorf("%s: trace %s: exit %d: %s%s", era, key, a.exit, a.out, a.errout)
			}
		}
		if era == fixtures.FileEra { // nor by the path of its transcript
			file := filepath.Join(dir, "agents/main/sessions", other.ID+".jsonl")
			for _, command := range [][]string{{"history"}, {"export"}, {"diff", "agent:main:explicit:a"}} {
				a := at(t, dir, append(append([]string{"sessions"}, command...), file, "--as", "agent:main:explicit:a")...)
				if a.exit != ExitFailed || strings.Contains(a.out, "not mine") || !strings.Contains(a.errout, "is not for agent:main:explicit:a") {
					t.Errorf("%v of a file: exit %d: %s%s", command, a.exit, a.out, a.errout)
				}
			}
		}
		doc := at(t, dir, "sessions", "tail", "--as", "agent:main:explicit:a", "--json").doc(t)
		if n := len(doc["sessions"].([]any)); n != 1 {
			t.Errorf("%s: %d sessions are watched", era, n)
		}
		want(t, "mode", dig(at(t, dir, "sessions", "history", mine.ID, "--as", "agent:main:explicit:a", "--json").doc(t), "visibility", "mode"), "self")
	}
}

// With --archives the lineage of a session reads as one conversation, and each transcript is named where it begins.
func TestHistoryOfALineage(t *testing.T) {
	state := talkState(t, fixtures.FileEra, fixtures.Talk(talkID, fixtures.Now-fixtures.Day).User("after the reset"))
	gone := fixtures.Gone(talkID+".jsonl", "reset", fixtures.Now-2*fixtures.Day)
	put(t, filepath.Join(state, "agents/main/sessions", gone), fixtures.Talk(talkID, fixtures.Now-3*fixtures.Day).User("before the reset").String())
	doc := at(t, state, "sessions", "history", "main", "--archives", "--json").doc(t)
	if d := cmp.Diff([]string{"before the reset", "after the reset"}, texts(doc)); d != "" {
		t.Error(d)
	}
	want(t, "session id", dig(doc, "messages", 0, "__openclaw", "ofSessionId"), talkID)
	want(t, "reason", dig(doc, "transcripts", 0, "reason"), "reset")
	text := at(t, state, "sessions", "history", "main", "--archives").out
	for _, line := range []string{"-- reset 2026-09-19", "-- the current transcript, " + talkID} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	day := fmt.Sprint(fixtures.Now - 2*fixtures.Day)
	doc = at(t, state, "sessions", "history", "main", "--archives", "--json", "--before", day).doc(t)
	if d := cmp.Diff([]string{"before the reset"}, texts(doc)); d != "" {
		t.Error(d)
	}
	want(t, "otherTimes", dig(doc, "notShown", "otherTimes"), float64(1))
	if doc = at(t, state, "sessions", "history", "main", "--archives", "--json", "--since", day).doc(t); len(texts(doc)) != 1 {
		t.Errorf("%v", texts(doc))
	}
}

// One archive that cannot be read, one row of a database that is damaged: the rest is shown, and what is missing is told.
func TestHistoryGoesOnAroundDamage(t *testing.T) {
	state := talkState(t, fixtures.FileEra, fixtures.Talk(talkID, fixtures.Now-fixtures.Day).User("after the reset"))
	gone := fixtures.Gone(talkID+".jsonl", "reset", fixtures.Now-2*fixtures.Day) + ".zst"
	put(t, filepath.Join(state, "agents/main/sessions", gone), "\x28\xb5\x2f\xfdnot a stream")
	for _, command := range []string{"history", "export"} {
		a := at(t, state, "sessions", command, "main", "--archives")
		if a.exit != ExitFailed || !strings.Contains(a.out, "after the reset") || !strings.Contains(a.errout, gone) {
			t.Errorf("%s: exit %d: %s%s", command, a.exit, a.out, a.errout)
		}
	}
	doc := at(t, state, "sessions", "history", "main", "--archives", "--json").doc(t)
	want(t, "code", dig(doc, "errors", 0, "code"), "unreadable")

	state = talkState(t, fixtures.SQLiteEra, fixtures.Talk(talkID, fixtures.Now-fixtures.Day).User("one").Assistant("two").User("three"))
	if err := fixtures.Alter(fixtures.Database(state, "main"), "PRAGMA ignore_check_constraints = 1", `UPDATE transcript_events SET event_json = NULL, event_zstd = x'28b52ffd00', event_utf8_bytes = 50 WHERE seq = 2`); err != nil {
		t.Fatal(err)
	}
	a := at(t, state, "sessions", "history", "main", "--json", "--all-branches")
	doc = a.doc(t)
	if d := cmp.Diff([]string{"one", "three"}, texts(doc)); d != "" || a.exit != ExitFailed {
		t.Error(d, a.exit)
	}
	want(t, "code", dig(doc, "errors", 0, "code"), "damaged-row")
	want(t, "broken", dig(doc, "notShown", "broken"), float64(1))
	a = at(t, state, "sessions", "export", "main", "--format", "jsonl", "--raw")
	if a.exit != ExitFailed || strings.Count(a.out, "\n") != 3 || !strings.Contains(a.errout, "rows of the database") {
		t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
}

// What Claude's own program keeps of a session stands among its messages, masked like these, in an export too; a page further back counts it.
func TestHistoryOfABoundSession(t *testing.T) {
	secret := "gh" + "p_" + strings.Repeat("Ab1", 12)
	const bound = "6a1f6c1e-0d4b-4a51-9d0a-2f6d0d2b7a01"
	claude := fmt.Sprintf(`{"type":"user","uuid":"u1","timestamp":"2026-01-01T10:00:00.000Z","message":{"role":"user","content":"look around"}}
{"type":"assistant","uuid":"a1","timestamp":"2026-01-01T10:00:05.000Z","message":{"role":"assistant","model":"claude","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"export T=%[1]s"}}]}}
{"type":"user","uuid":"u2","timestamp":"2026-01-01T10:00:06.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"it said %[1]s and \u001b[31mred"}]}}
{"type":"assistant","uuid":"a2","timestamp":"2026-01-01T10:00:09.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm %[1]s"},{"type":"text","text":"seen"}]}}
{"type":"assist`, secret)
	for _, era := range eras {
		dir := t.TempDir()
		talk := fixtures.Talk(talkID, 1767261600000-2*fixtures.Minute).User("look around")
		err := (fixtures.State{Agents: []fixtures.Agent{{ID: "main", Era: era, Sessions: []fixtures.Session{
			{Key: "agent:main:main", ID: talk.ID, Updated: fixtures.Now, Talk: talk, Entry: `{"model":"m","modelProvider":"anthropic","cliSessionBindings":{"claude-cli":{"sessionId":"` + bound + `"}}}`},
		}}}}).Write(dir)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, "home/.claude/projects/-work", bound+".jsonl"), claude)
		env := quiet(t, fixtures.Now)
		env["HOME"] = filepath.Join(dir, "home")
		before := tree(t, dir)
		ask := func(args ...string) answer {
			a := ocRun(t, dir, env, append([]string{"--state-dir", dir, "sessions"}, args...)...)
			if strings.Contains(a.out+a.errout, secret) || strings.Contains(a.out, "\x1b[31m") {
				t.Errorf("%s: %v: a secret or an escape is printed: %q", era, args, a.out)
			}
			return a
		}
		a := ask("history", "main", "--json")
		doc := a.doc(t)
		same(t, fmt.Sprint(era), texts(doc), []string{"look around", "toolcall", "thinking"})
		want(t, "from", dig(doc, "messages", 1, "__openclaw", "importedFrom"), "claude-cli")
		want(t, "broken", dig(doc, "notShown", "broken"), float64(1))
		want(t, "file", dig(doc, "transcripts", 1, "state"), "claude-cli")
		if !strings.Contains(a.errout, "line 5") {
			t.Errorf("the torn line is not located: %s", a.errout)
		}
		text := ask("history", "main").out
		for _, said := range []string{"kept by Claude's own program", "→ Bash command=", "← Bash it said", "seen"} {
			if !strings.Contains(text, said) {
				t.Errorf("%s: no %q in\n%s", era, said, text)
			}
		}
		want(t, "of a page", dig(ask("history", "main", "--offset", "0", "--json").doc(t), "notShown", "claudeCli"), float64(3))
		for _, format := range []string{"md", "html"} { // among the rest, each once, and after what was said before
			out := ask("export", "main", "--format", format).out
			if strings.Count(out, "look around") != 1 || !strings.Contains(out, "Bash") || strings.Index(out, "look around") > strings.Index(out, "seen") || strings.Contains(out, "Claude's own program keeps") {
				t.Errorf("%s: the export as %s does not have them:\n%s", era, format, out)
			}
		}
		if out := ask("export", "main", "--all-branches").out; !strings.Contains(out, "3 messages that Claude's own program keeps") {
			t.Errorf("%s: the export of all branches does not count them:\n%s", era, out)
		}
		if tree(t, dir) != before {
			t.Error("reading changed the tree")
		}
	}
}

// What OpenClaw has accepted and not yet put into the transcript is shown as waiting, masked, and its bytes count (release 2026.9.6).
func TestHistoryTellsWhatWaits(t *testing.T) {
	secret := "gh" + "p_" + strings.Repeat("Ab1", 12)
	state := talkState(t, fixtures.SQLiteEra, fixtures.Talk(talkID, fixtures.Now-fixtures.Day).User("hello").Assistant("hi"))
	none := at(t, state, "sessions", "history", "main", "--json").doc(t)
	want(t, "none", dig(none, "pendingInputs", "total"), float64(0))
	want(t, "bytes of none", none["bytes"], any(float64(len(compact(t, none["messages"]))+len(compact(t, none["pendingInputs"])))))
	var statements []string
	for i, text := range []string{"first " + secret, strings.Repeat("long ", 2000), "third"} {
		statements = append(statements, fmt.Sprintf(`INSERT INTO session_pending_inputs(input_id,session_key,session_id,idempotency_key,run_id,request_hash,message_json,lifecycle_generation,state,accepted_at)
			VALUES('in-%d','agent:main:main','%s','k%[1]d','r%[1]d','h','{"role":"user","content":%[3]s}','g','queued',%[4]d)`, i, talkID, span.Quote(nil, text), fixtures.Now-fixtures.Minute))
	}
	statements = append(statements, `UPDATE session_pending_inputs SET state='interrupted' WHERE input_id='in-2'`, `INSERT INTO session_pending_inputs(input_id,session_key,session_id,idempotency_key,run_id,request_hash,message_json,lifecycle_generation,state,accepted_at,consumed_event_id) SELECT 'used',session_key,session_id,'ku','ru','h',message_json,'g','queued',accepted_at,'e' FROM session_pending_inputs WHERE input_id='in-2'`)
	sqlExec(t, filepath.Join(state, "agents/main/agent/openclaw-agent.sqlite"), statements...)
	a := at(t, state, "sessions", "history", "main", "--json")
	doc := a.doc(t)
	want(t, "total", dig(doc, "pendingInputs", "total"), float64(3))
	want(t, "last", dig(doc, "pendingInputs", "items", 2, "message", "content"), "third")
	want(t, "state", dig(doc, "pendingInputs", "items", 2, "state"), "interrupted")
	want(t, "redacted", doc["contentRedacted"], true)
	want(t, "truncated", doc["contentTruncated"], true)
	want(t, "bytes", doc["bytes"], any(float64(len(compact(t, doc["messages"]))+len(compact(t, doc["pendingInputs"])))))
	if n := len(compact(t, doc["pendingInputs"])); n > 4096 {
		t.Errorf("%d bytes of what waits", n)
	}
	text := at(t, state, "sessions", "history", "main")
	if strings.Contains(a.out+text.out, secret) || !strings.Contains(text.out, "3 messages wait") || !strings.Contains(text.out, "(interrupted)") {
		t.Error(text.out)
	}
}

func compact(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A credential in a session's label or in where it came from is not shown by show.
func TestShowMasksNames(t *testing.T) {
	token := "gh" + "p_" + strings.Repeat("aB3dE6", 6)
	state := t.TempDir()
	lines(t, filepath.Join(state, "agents", "main", "sessions", "sessions.json"), fmt.Sprintf(`{"agent:main:main":{"sessionId":"one","updatedAt":1789000000000,"label":"use %[1]s","origin":{"provider":"slack","label":"%[1]s"}}}`, token))
	a := at(t, state, "sessions", "show", "main")
	if a.exit != ExitDone || strings.Contains(a.out+a.errout, token) || !strings.Contains(a.out, "use gh"+"p_aB…3dE6") || !strings.Contains(a.out, "slack") {
		t.Errorf("%+v", a)
	}
}

// --around gives a message with what stands on either side of it, of any transcript of the session, and always itself.
func TestHistoryAroundAMessage(t *testing.T) {
	for _, era := range eras {
		talk := fixtures.Talk(talkID, fixtures.Now-fixtures.Day)
		for i := range 40 {
			talk.User(fmt.Sprintf("ask %d", i))
			talk.Assistant(fmt.Sprintf("say %d %s", i, strings.Repeat("x", i*100)))
		}
		state := talkState(t, era, talk)
		all := at(t, state, "sessions", "history", "main", "--json", "--all-branches").doc(t)
		id := ""
		for _, m := range all["messages"].([]any) {
			if list := texts(map[string]any{"messages": []any{m}}); list[0] == "ask 20" {
				id = dig(m, "__openclaw", "id").(string)
			}
		}
		doc := at(t, state, "sessions", "history", "main", "--around", id, "--limit", "4", "--json").doc(t)
		list := texts(doc)
		for i := range list {
			list[i], _, _ = strings.Cut(list[i], " x")
		}
		same(t, fmt.Sprint(era), list, []string{"ask 19", "say 19", "ask 20", "say 20"})
		want(t, "total", doc["total"], any(float64(80)))
		want(t, "hidden", dig(doc, "notShown", "hidden"), any(float64(0))) // those of other pages are not
		want(t, "newer", dig(doc, "notShown", "newer"), any(float64(38)))
		text := at(t, state, "sessions", "history", "main", "--around", id, "--limit", "4").out
		if !strings.Contains(text, "Older messages: --offset 42\n") || !strings.Contains(text, "Not shown: 38 newer messages.") {
			t.Errorf("%s:\n%s", era, text)
		}
		if _, told := doc["offset"]; told {
			t.Error("a page around a message has an offset")
		}
		many := at(t, state, "sessions", "history", "main", "--around", id, "--limit", "1000", "--json").doc(t)
		if n := len(many["messages"].([]any)); n < 30 || many["bytes"].(float64) > 80<<10 || !strings.Contains(fmt.Sprint(texts(many)), "ask 20") {
			t.Errorf("%s: %d messages, %v bytes", era, n, many["bytes"])
		}
		a := at(t, state, "sessions", "history", "main", "--around", "nothere", "--json")
		if a.exit != ExitFailed || dig(a.doc(t), "error", "code") != "not-found" {
			t.Errorf("exit %d: %s", a.exit, a.out)
		}
		want(t, "with an offset", at(t, state, "sessions", "history", "main", "--around", id, "--offset", "3").exit, ExitUsage)
	}
}
