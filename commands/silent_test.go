package commands

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Answers as recorded with OpenClaw, each in a session of its own: what is silent is left out by the history, is not found by a search, is
// counted as silent by the sums, and is nobody's last word in the list; what is not silent is there in all four.
func TestSilentAnswersEverywhere(t *testing.T) {
	f, err := os.Open("../transcript/visible/testdata/silent-token.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	type recorded struct {
		text   string
		silent bool
		block  string // beside the text
	}
	var all []recorded
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c struct {
			Text     string
			Expected struct{ SuppressedControlReply bool }
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(c.Text) != "" { // one that is blank has nothing to be found, silent or not
			all = append(all, recorded{c.Text, c.Expected.SuppressedControlReply, ""})
		}
	}
	if len(all) != 65 {
		t.Fatalf("%d cases", len(all))
	}
	// With an image nothing is silent but the text beside it, as recorded in silent-token-media.jsonl.
	const image = `,{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}`
	media, err := os.ReadFile("../transcript/visible/testdata/silent-token-media.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(media)) {
		var c struct {
			Payload  struct{ Text string }
			Expected struct {
				Result struct{ Text string }
				Skip   any
			}
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil || c.Expected.Skip != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, recorded{c.Payload.Text, c.Expected.Result.Text == "", image})
	}
	state, sessions, env := longTalk(t, `{}`)
	rows := map[string]any{}
	id := func(i int) string { return fmt.Sprintf("11111111-1111-4111-8111-%012d", i) }
	key := func(i int) string { return fmt.Sprintf("agent:main:explicit:s%02d", i) }
	for i, c := range all {
		said, err := json.Marshal(c.text)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":"2026-01-05T09:00:00.000Z","cwd":"/srv"}
{"type":"message","id":"u","parentId":null,"timestamp":"2026-01-05T09:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"a question"}]}}
{"type":"message","id":"a%d","parentId":"u","timestamp":"2026-01-05T09:00:01.000Z","message":{"role":"assistant","provider":"p","model":"m","content":[{"type":"text","text":%s}%s],"usage":{"input":2,"output":1,"totalTokens":3},"stopReason":"stop"}}
`, id(i), i, said, c.block)
		if err := os.WriteFile(filepath.Join(sessions, id(i)+".jsonl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		rows[key(i)] = map[string]any{"sessionId": id(i), "updatedAt": int64(1_760_000_000_000)}
	}
	raw, err := json.Marshal(rows)
	if err == nil {
		err = os.WriteFile(filepath.Join(sessions, "sessions.json"), raw, 0o600)
	}
	if err == nil {
		err = os.Remove(filepath.Join(sessions, longTalkID+".jsonl"))
	}
	if err != nil {
		t.Fatal(err)
	}
	calm(t, sessions)
	oc := func(args ...string) map[string]any {
		t.Helper()
		a := ocRun(t, state, env, append([]string{"--state-dir", state, "--json"}, args...)...)
		if a.exit != ExitDone {
			t.Fatalf("%v: exit %d: %s", args, a.exit, a.errout)
		}
		return a.doc(t)
	}
	previews, said := map[string]string{}, map[string]int{}
	for _, s := range oc("sessions", "list", "--preview", "--messages", "5", "--limit", "all")["sessions"].([]any) {
		s := s.(map[string]any)
		previews[s["key"].(string)], _ = s["lastMessagePreview"].(string)
		messages, _ := s["messages"].([]any)
		said[s["key"].(string)] = len(messages)
	}
	silents := 0
	for i, c := range all {
		alone := c.silent && c.block == ""
		if alone {
			silents++
		}
		history := ocRun(t, state, env, "--state-dir", state, "--json", "sessions", "history", key(i)).out
		if shown := strings.Contains(history, `"a`+fmt.Sprint(i)+`"`); shown == alone && c.text != "HEARTBEAT_OK" { // which the history leaves out for its own reason
			t.Errorf("history of %q: shown: %t", c.text, shown)
		}
		find := strings.TrimSpace(c.text)
		if at := strings.IndexByte(find, '\n'); at >= 0 {
			find = find[:at]
		}
		found := false
		for _, h := range oc("sessions", "search", "--limit", "all", "--case-sensitive", "--", find)["hits"].([]any) {
			found = found || dig(h, "key") == key(i) && dig(h, "role") == "assistant"
		}
		if found == c.silent {
			t.Errorf("search for %q: found: %t", c.text, found)
		}
		if last := previews[key(i)]; (last == "a question") != c.silent {
			t.Errorf("the preview after %q is %q", c.text, last)
		}
		if got := said[key(i)]; (got == 1) != c.silent {
			t.Errorf("%d messages with %q are listed", got, c.text)
		}
	}
	totals := dig(oc("sessions", "stats"), "totals")
	want(t, "answers", dig(totals, "answers"), float64(len(all)))
	want(t, "silent answers", dig(totals, "silentAnswers"), float64(silents))
}
