package awareness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestClaudeTurn(t *testing.T) {
	const stamp = `"timestamp":"2026-01-01T00:00:01.250Z"`
	for line, want := range map[string]string{
		`{"type":"user","message":{"role":"user","content":"hi"},` + stamp + `}`:                                                       "hi",
		`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}}`: "a",
		`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result"}]}}`:                      "",
		`{"type":"user","message":{"role":"user","content":[{"type":"image"}]}}`:                                                       "",
		`{"type":"user","message":{"role":"user","content":7}}`:                                                                        "",
		`{"type":"user","message":{"role":"assistant","content":"hi"}}`:                                                                "",
		`{"type":"assistant","message":{"role":"user","content":"hi"}}`:                                                                "",
		`{"type":"user","isMeta":true,"message":{"role":"user","content":"hi"}}`:                                                       "",
		`{"type":"user","isMeta":false,"message":{"role":"user","content":"hi"}}`:                                                      "hi",
		`{"type":"user","isSidechain":true,"message":{"role":"user","content":"hi"}}`:                                                  "",
		`{"type":"user","isCompactSummary":true,"message":{"role":"user","content":"hi"}}`:                                             "",
		`{"type":"user","isVisibleInTranscriptOnly":true,"message":{"role":"user","content":"hi"}}`:                                    "",
		`{"type":"user","message":{"role":"user","content":"[Inter-session message] hi"}}`:                                             "",
		`{"type":"user","message":{"role":"user","content":"` + reseeded + ` ...\n...\n\n` + reseedPart + `\n..."}}`:                   "",
		`{"type":"user","message":{"role":"user","content":"` + reseeded + `"}}`:                                                       reseeded,
		`{"type":"user","message":{"role":"user","content":"hi"}`:                                                                      "",
		`[1]`: "", ``: "", `null`: "",
	} {
		text, at, ok := claudeTurn([]byte(line))
		if ok != (want != "") || text != want {
			t.Errorf("%s: %q %v", line, text, ok)
		}
		if strings.Contains(line, stamp) && at != t0+1250 {
			t.Errorf("%s: at %d", line, at)
		}
	}
}

func TestOwn(t *testing.T) {
	for message, want := range map[string]string{
		`{"role":"user","content":" a \n b "}`:                                                      "a b",
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`:         "a",
		`{"role":"user","content":[{"type":"odd","text":"a"}]}`:                                     "a",
		`{"role":"user","content":[{"type":"image"},{"type":"text","text":"b"}]}`:                   "",
		`{"role":"user","content":["a"]}`:                                                           "",
		`{"role":"user","content":[]}`:                                                              "",
		`{"role":"user","content":7}`:                                                               "",
		`{"role":"assistant","content":"a"}`:                                                        "",
		`{"role":"user","content":"a","__openclaw":{"upstreamUserText":" sent\n"}}`:                 "sent",
		`{"role":"user","content":"a","__openclaw":{"upstreamUserText":""}}`:                        "",
		`{"role":"user","content":"a","__openclaw":{"upstreamUserText":7}}`:                         "a",
		`{"role":"user","content":"a","__openclaw":{"upstreamUserText":"sent","mirrorOrigin":"x"}}`: "sent",
		`{"role":"user","content":"a","__openclaw":{"mirrorOrigin":"x"}}`:                           "",
		`{"role":"user","content":"a","__openclaw":{"mirrorOrigin":{}}}`:                            "",
		`{"role":"user","content":"a","__openclaw":{"mirrorOrigin":""}}`:                            "a",
		`{"role":"user","content":"a","__openclaw":{"mirrorOrigin":0}}`:                             "a",
		`{"role":"user","content":"a","__openclaw":null}`:                                           "a",
		``: "", `null`: "", `[]`: "",
	} {
		if got := Own([]byte(message)); got != want {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
}

func FuzzClaudeTurn(f *testing.F) {
	f.Add([]byte(`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"a"}]},"timestamp":"x"}`))
	f.Add([]byte(`{"type":"user","message":{"role":"user","content":"` + "\\ud800" + `"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		text, _, ok := claudeTurn(line)
		if !ok && text != "" {
			t.Fatalf("%q of no turn", text)
		}
		if n := normal(text); n != normal(n) {
			t.Fatalf("%q is not settled", n)
		}
	})
}

// upstream is an adopted session, watched, whose conversation is a file.
func upstream(t *testing.T) (path, file string, u *Upstream) {
	path = state(t, "empty.2026.9.6")
	file = filepath.Join(t.TempDir(), "thread.jsonl")
	script(t, path, fmt.Sprintf(`INSERT INTO session_upstream_links VALUES ('%s', 'main', 'anthropic', 'gateway:local', 'thread', 'claude-cli',
		'{"filePath":"%s"}', '{"offset":0}', NULL, 1, 2)`, child, file), cursor(boss, child, 0, 0, 0))
	return path, file, &Upstream{Session: func(key, agent string) (Adoption, bool) {
		return Adoption{SessionID: "s1", Parent: boss, Own: []string{" my  own\nwords "}}, key == child && agent == "main"
	}}
}

func user(text string, at int) string {
	return fmt.Sprintf(`{"type":"user","message":{"role":"user","content":%q},"timestamp":"2026-01-01T00:00:%02dZ"}`+"\n", text, at)
}

func tick(t *testing.T, path string, now int64, u *Upstream) Scan {
	t.Helper()
	scans, err := ScanUpstream(context.Background(), path, Options{Now: now, Wait: time.Second}, u)
	if err != nil || len(scans) != 1 {
		t.Fatalf("%+v %v", scans, err)
	}
	return scans[0]
}

func add(t *testing.T, file, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestScanUpstream(t *testing.T) {
	path, file, u := upstream(t)
	now := t0 + 60_000
	add(t, file, "")
	if s := tick(t, path, now, u); s.Outcome != Quiet {
		t.Errorf("nothing new: %+v", s)
	}
	add(t, file, user("my own words", 1)+`{"type":"assistant"}`+"\n")
	if s := tick(t, path, now, u); s.Outcome != Quiet || s.Turns != 0 {
		t.Errorf("an echo: %+v", s)
	}
	add(t, file, user("hello", 2)+user("my own words", 3)+user("hello?", 4)+`{"type":"user","message":{"role":"user","content":"half`)
	if s := tick(t, path, now+1, u); s.Outcome != Active || s.Turns != 2 {
		t.Errorf("two turns: %+v", s)
	}
	if s := tick(t, path, now+2, u); s.Outcome != Quiet {
		t.Errorf("half a line: %+v", s)
	}
	add(t, file, ` a line"}}`+"\n")
	if s := tick(t, path, now+3, u); s.Outcome != Active || s.Turns != 1 {
		t.Errorf("the other half: %+v", s)
	}
	read(t, path, func(s *Snapshot) error {
		c, err := s.Changes(child, "main", 0, PageSize)
		if len(c.Events) != 2 {
			t.Fatalf("%+v", c)
		}
		want := Event{Sequence: 1, SessionKey: child, SessionID: "s1", AgentID: "main", Kind: HumanDirectMessage, ActorType: "human", OccurredAt: t0 + 4000, Summary: "human message via anthropic", Payload: Payload{Turns: 2}}
		if c.Events[0] != want {
			t.Errorf("%+v", c.Events[0])
		}
		if c.Events[1].Payload != (Payload{}) {
			t.Errorf("%+v", c.Events[1])
		}
		return err
	})
	if w := watches(t, path, WatchFilter{}, World{}, now); w[0].Material != 2 || w[0].Seen != 0 {
		t.Errorf("%+v", w)
	}
}

// A line longer than the cap is not skipped, and is not called quiet. A conversation that became shorter is told.
func TestScanBlocks(t *testing.T) {
	path, file, u := upstream(t)
	add(t, file, user(strings.Repeat("x", maxTail), 1)+user("hello", 2))
	for range 2 {
		if s := tick(t, path, t0, u); s.Outcome != Blocked || s.Turns != 0 || s.Reason == "" {
			t.Errorf("%+v", s)
		}
	}
	for text, outcome := range map[string]Outcome{
		strings.Repeat("x", maxTail-1):        Quiet, // its end may still come
		strings.Repeat("x", maxTail-1) + "\n": Quiet,
		strings.Repeat("x", maxTail) + "\n":   Blocked,
	} {
		path, file, u := upstream(t)
		add(t, file, text)
		if s := tick(t, path, t0, u); s.Outcome != outcome {
			t.Errorf("%d bytes: %+v, want %s", len(text), s, outcome)
		}
	}
	path, file, u = upstream(t)
	add(t, file, user("hello", 1)+user("hello", 2))
	tick(t, path, t0, u)
	if err := os.Truncate(file, 5); err != nil {
		t.Fatal(err)
	}
	if s := tick(t, path, t0, u); s.Outcome != Quiet || s.Reason == "" {
		t.Errorf("shorter: %+v", s)
	}
}

func TestScanMissing(t *testing.T) {
	path, file, u := upstream(t)
	want := func(o Outcome, n int) {
		t.Helper()
		if s := tick(t, path, t0, u); s.Outcome != o || s.Missed != n {
			t.Errorf("%+v, want %s %d", s, o, n)
		}
	}
	want(Missing, 1)
	want(Missing, 2)
	add(t, file, "\n") // back again
	want(Quiet, 0)
	os.Remove(file)
	os.Mkdir(file, 0o700) // no file any more
	want(Missing, 1)
	want(Missing, 2)
	want(Lost, 3)
	scans, err := ScanUpstream(context.Background(), path, Options{Now: t0, Wait: time.Second}, u)
	if len(scans) != 0 || err != nil || len(u.Missed) != 0 {
		t.Errorf("%+v %v %v", scans, err, u.Missed)
	}
	read(t, path, func(s *Snapshot) error {
		c, err := s.Changes(child, "main", 0, PageSize)
		if len(c.Events) != 1 || c.Events[0].Kind != UpstreamMissing || c.Events[0].Payload.Channel != "anthropic" || c.Events[0].Summary != "upstream missing via anthropic" {
			t.Errorf("%+v", c)
		}
		return err
	})
}

func TestScanSkips(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		idle   bool
	}{
		"running":     {`SELECT 1`, false},
		"other kind":  {`UPDATE session_upstream_links SET upstream_kind = 'codex'`, true},
		"remote":      {`UPDATE session_upstream_links SET upstream_ref_json = '{"nodeId":"n"}'`, true},
		"no marker":   {`UPDATE session_upstream_links SET last_marker_json = NULL`, true},
		"bad marker":  {`UPDATE session_upstream_links SET last_marker_json = '{"offset":-1}'`, true},
		"damaged ref": {`UPDATE session_upstream_links SET upstream_ref_json = '{'`, true},
		"several agents": {`INSERT INTO session_upstream_links SELECT session_key, 'ops', catalog_id, host_id, thread_id, upstream_kind,
			upstream_ref_json, last_marker_json, last_scanned_at, created_at, updated_at FROM session_upstream_links`, true},
	} {
		path, file, u := upstream(t)
		script(t, path, tc.script)
		add(t, file, user("hello", 1))
		if !tc.idle {
			u.Session = func(string, string) (Adoption, bool) { return Adoption{SessionID: "s1"}, false }
		}
		scans, err := ScanUpstream(context.Background(), path, Options{Now: t0, Wait: time.Second}, u)
		if err != nil || len(scans) == 0 || scans[0].Outcome != Skipped || scans[0].Reason == "" {
			t.Errorf("%s: %+v %v", name, scans, err)
		}
	}
	// What the session says meanwhile may be an echo: it is left for the next tick.
	path, file, u := upstream(t)
	add(t, file, user("hello", 1))
	asked := 0
	u.Session = func(string, string) (Adoption, bool) {
		asked++
		return Adoption{SessionID: "s1", Own: []string{fmt.Sprint(asked)}}, true
	}
	if s := tick(t, path, t0, u); s.Outcome != Skipped || s.Reason == "" {
		t.Errorf("%+v", s)
	}
}
