package maintenance

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/config"
	"oc/store"
	"oc/store/lock"
)

// taken is the snapshot of a store with the given text, alone in its directory but for some files.
func taken(t *testing.T, text string, files ...string) *Snapshot {
	t.Helper()
	dir := t.TempDir()
	old := time.UnixMilli(1_600_000_000_000)
	for _, name := range append([]string{"sessions.json"}, files...) {
		content := "{}\n"
		if name == "sessions.json" {
			content = text
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(config.Options{Env: func(string) string { return "" }, Cwd: dir, Home: dir, StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Take(t.Context(), c, store.Target{Agent: "main", Index: filepath.Join(dir, "sessions.json")}, Alone(), lock.Local(), time.UnixMilli(1_790_000_000_000))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// values is the row that a plan puts, decoded.
func values(t *testing.T, p *Plan, key string) map[string]any {
	t.Helper()
	for _, a := range p.Actions {
		if a.Kind == PutRow && a.Key == key {
			var m map[string]any
			if err := json.Unmarshal(a.Value, &m); err != nil {
				t.Fatalf("the new row is no JSON: %v\n%s", err, a.Value)
			}
			return m
		}
	}
	t.Fatalf("no row %s is put: %v", key, p.Actions)
	return nil
}

// What OpenClaw's own start of a session made of a row that a user reset is what a reset here makes of it. Only what the message that
// resets brings in is not: where that message came from.
func TestResetAsOpenClaw(t *testing.T) {
	f, err := os.Open("../store/lifecycle/testdata/reset-init.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cases := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c struct {
			Name     string
			Now      time.Time
			Entry    json.RawMessage
			Expected struct {
				ResetTriggered bool
				EntryAfter     map[string]any
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if !c.Expected.ResetTriggered {
			continue
		}
		cases++
		t.Run(c.Name, func(t *testing.T) {
			const key = "agent:main:main"
			s := taken(t, `{"`+key+`": `+string(c.Entry)+`}`, "11111111-1111-4111-8111-111111111111.jsonl")
			p, err := Begin(s, key, Reset{ID: "<newId>", Reason: "new"}, c.Now)
			if err != nil {
				t.Fatal(err)
			}
			got, want := values(t, p, key), c.Expected.EntryAfter
			got["sessionFile"] = filepath.Base(got["sessionFile"].(string))
			// From the message, or worked out from the other fields when the row is loaded.
			for _, name := range []string{"origin", "route", "deliveryContext", "channel"} {
				delete(got, name)
				delete(want, name)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-OpenClaw +oc)\n%s", d)
			}
			var moved string
			for _, a := range p.Actions {
				if a.Kind == Move {
					moved = filepath.Base(a.To)
				}
			}
			if want := "11111111-1111-4111-8111-111111111111.jsonl.reset." + Stamp(c.Now); moved != want {
				t.Errorf("the transcript becomes %q, want %q", moved, want)
			}
		})
	}
	if cases < 6 {
		t.Errorf("only %d cases", cases)
	}
}

func TestResetOfACronRun(t *testing.T) {
	const key = "agent:main:cron:nightly"
	now := time.UnixMilli(1_790_000_000_000)
	s := taken(t, `{"`+key+`": {"sessionId": "old", "updatedAt": 5, "pinnedAt": 7, "thinkingLevel": "low", "fastMode": "auto", "label": " ", "elevatedLevel": "full", "channel": "x",
		"modelOverride": "m", "providerOverride": "p", "modelOverrideSource": "auto", "authProfileOverride": "a", "authProfileOverrideSource": "auto", "inputTokens": 9, "mine": 1,
		"heartbeatTaskState": {"t": 1}}, "`+key+`:run:old": {"sessionId": "old", "updatedAt": 5}, "agent:main:main": {"sessionId": "m", "updatedAt": 5}}`, "old.jsonl")
	p, err := Begin(s, key, Reset{ID: "new-id", Reason: "reset", CronRun: true, Revision: "rev"}, now)
	if err != nil {
		t.Fatal(err)
	}
	got := values(t, p, key)
	at := float64(now.UnixMilli())
	want := map[string]any{
		"sessionId": "new-id", "lifecycleRevision": "rev", "updatedAt": at, "sessionStartedAt": at, "lastInteractionAt": at, "systemSent": false, "pinnedAt": 7.0, "thinkingLevel": "low",
		"fastMode": "auto", "label": "Cron: nightly", "heartbeatTaskState": map[string]any{"t": 1.0}, "sessionFile": filepath.Join(s.Dir, "new-id.jsonl"),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	for _, a := range p.Actions {
		if a.Kind == Move {
			t.Errorf("%s goes although the run's row still has its session", a.Target)
		}
	}
	for _, wrong := range []string{"agent:main:main", key + ":run:old"} {
		if _, err := Begin(s, wrong, Reset{ID: "x", CronRun: true}, now); err == nil || !strings.Contains(err.Error(), "cron") {
			t.Errorf("%s begins as a cron run: %v", wrong, err)
		}
	}
}

func TestNewFileOfAReset(t *testing.T) {
	const id, old = "22222222-2222-4222-8222-222222222222", "11111111-1111-4111-8111-111111111111"
	for _, c := range []struct{ file, want string }{
		{"", "DIR/" + id + ".jsonl"},
		{old + ".jsonl", id + ".jsonl"},
		{"DIR/" + old + "-topic-77.jsonl", "DIR/" + id + "-topic-77.jsonl"},
		{"2026-01-02T03-04-05-678Z_" + old + ".jsonl", "2026-01-02T03-04-05-678Z_" + id + ".jsonl"},
		{"DIR/mine.jsonl", "DIR/" + id + ".jsonl"},
		{"/etc/passwd", "DIR/" + id + ".jsonl"},
	} {
		s := taken(t, `{"k": {"sessionId": "`+old+`", "sessionFile": "`+c.file+`"}}`)
		if strings.HasPrefix(c.file, "DIR/") {
			s = taken(t, `{"k": {"sessionId": "`+old+`", "sessionFile": "/x/agents/main/sessions/`+strings.TrimPrefix(c.file, "DIR/")+`"}}`)
		}
		p, err := Begin(s, "k", Reset{ID: id, Reason: "reset"}, time.UnixMilli(9e12))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Replace(values(t, p, "k")["sessionFile"].(string), s.Dir, "DIR", 1)
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.file, got, c.want)
		}
	}
}
