package store

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oc/transcript/compaction"
	"oc/transcript/provider"
)

// oracle answers as it was recorded.
type oracle struct {
	name  string
	says  []string // "throw x" is a failure
	asked []provider.Request
}

func (o *oracle) Name() string { return o.name }

func (o *oracle) Summarize(ctx context.Context, r provider.Request) (string, error) {
	o.asked = append(o.asked, r)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if len(o.asked) > len(o.says) {
		return "", errors.New("it was asked too often")
	}
	said := o.says[len(o.asked)-1]
	if why, throws := strings.CutPrefix(said, "throw "); throws {
		return "", errors.New(why)
	}
	return said, nil
}

// safeguardOtherwise are the runs in which oc does something else on purpose.
var safeguardOtherwise = map[string]string{
	"guard-on-retry-3-max":                 "an answer that lacks sections to the end is no summary: the next provider is asked",
	"guard-retry-throws-keeps-last":        "the same: the first answer lacked sections",
	"nothing-to-summarise-after-preserve":  "the last turns are summarised too, since a line of each may lose most of it",
	"no-real-conversation-branch-fallback": "what was said before an earlier compaction is in its summary: it is not looked at again",
}

// Whole runs of the safeguard: what is asked, and the summary that comes of it. The recording has no messages; these are those of its
// sections. oc has the last turns before what is kept summarised too, so that of the requests only the number is the same.
func TestSafeguardRunsAsOpenClaw(t *testing.T) {
	file, err := os.Open("testdata/safeguard.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	said := []string{
		`"role":"user","content":[{"type":"text","text":"u1"}]`,
		`"role":"assistant","content":[{"type":"text","text":"a1"},{"type":"toolCall","id":"c0","name":"edit","arguments":{"path":"/e"}}]`,
		`"role":"user","content":[{"type":"text","text":"u2"}]`,
		`"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"/r"}}]`,
		`"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"out1"}]`,
		`"role":"assistant","content":[{"type":"text","text":"a2"}]`,
		`"role":"user","content":[{"type":"text","text":"u3"}]`,
		`"role":"assistant","content":[{"type":"text","text":"a3"}]`,
		`"role":"user","content":[{"type":"text","text":"u4"}]`,
		`"role":"assistant","content":[{"type":"text","text":"a4"}]`,
		`"role":"user","content":[{"type":"text","text":"kept"}]`,
	}
	met := map[string]bool{}
	in := bufio.NewScanner(file)
	for in.Buffer(nil, 1<<20); in.Scan(); {
		var c struct {
			Name    string
			Runtime struct {
				QualityGuardEnabled    bool
				QualityGuardMaxRetries *int
				RecentTurnsPreserve    *int
				Provider               string
			}
			PreviousSummary *string
			StubOutputs     []string
			Expected        struct {
				Error      *string
				Cancel     bool
				Compaction *struct{ Summary string }
				Calls      []struct{ Feedback bool }
			}
		}
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		met[c.Name] = true
		t.Run(c.Name, func(t *testing.T) {
			rows, parent := []string{`{"type":"session","version":3,"id":"s","timestamp":"2026-01-05T09:00:00.000Z","cwd":"/"}`}, "null"
			add := func(id, rest string) {
				rows = append(rows, `{"id":"`+id+`","parentId":`+parent+`,`+rest+`}`)
				parent = `"` + id + `"`
			}
			if c.PreviousSummary != nil {
				add("p0", `"type":"message","message":{"role":"user","content":"long ago"}`)
				add("k0", `"type":"compaction","summary":"`+*c.PreviousSummary+`","firstKeptEntryId":"k0"`)
			}
			messages := said
			if strings.HasPrefix(c.Name, "no-real-conversation") {
				messages = []string{`"role":"user","content":"HEARTBEAT_OK"`, `"role":"assistant","content":[{"type":"text","text":"NO_REPLY"}]`, said[len(said)-1]}
			}
			for i, m := range messages {
				add("m"+string(rune('a'+i)), `"type":"message","message":{`+m+`}`)
			}
			path := filepath.Join(t.TempDir(), "s.jsonl")
			if err := os.WriteFile(path, []byte(strings.Join(rows, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			fill, err := (&Conversation{Path: path}).Outline(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			x, err := fill.Shorten(1, 200_000)
			if err != nil {
				t.Fatal(err)
			}
			how := Summarizer{Window: 200_000, Mask: func(s string) string { return s }, Settings: compaction.Settings{
				Safeguard: true, Audit: c.Runtime.QualityGuardEnabled, Retries: 1, RecentTurns: 3, Identifiers: "strict", Reserve: 8000,
			}}
			if n := c.Runtime.QualityGuardMaxRetries; n != nil {
				how.Settings.Retries = min(*n, 3)
			}
			if n := c.Runtime.RecentTurnsPreserve; n != nil {
				how.Settings.RecentTurns = *n
			}
			model := &oracle{name: "model", says: c.StubOutputs}
			plugin := &oracle{name: "plugin"}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			switch c.Runtime.Provider {
			case "ok":
				plugin.says = []string{"PROVIDER SUM"}
			case "empty":
				plugin.says = []string{"  "}
			case "boom", "abort":
				plugin.says = []string{"throw " + c.Runtime.Provider}
			}
			if c.Name == "provider-boom-caller-aborted" {
				cancel(errors.New("nope"))
			}
			if c.Runtime.Provider != "" {
				how.Providers = append(how.Providers, plugin)
			}
			how.Providers = append(how.Providers, model)
			err = x.Summarize(ctx, how)
			if safeguardOtherwise[c.Name] != "" {
				if err == nil && x.Summary == c.Expected.Compaction.Summary {
					t.Error("it is as with OpenClaw after all")
				}
				return
			}
			switch {
			case c.Expected.Compaction == nil:
				if err == nil || c.Expected.Error != nil && err.Error() != *c.Expected.Error {
					t.Errorf("no error, or another: %v", err)
				}
			case err != nil:
				t.Fatal(err)
			case x.Summary != c.Expected.Compaction.Summary && !strings.HasPrefix(c.Name, "no-real"):
				t.Errorf("the summary\n%s\nwant\n%s", x.Summary, c.Expected.Compaction.Summary)
			case strings.HasPrefix(c.Name, "no-real") && !strings.HasPrefix(x.Summary, c.Expected.Compaction.Summary):
				t.Errorf("the summary\n%s\nwant\n%s", x.Summary, c.Expected.Compaction.Summary)
			}
			if len(model.asked) != len(c.Expected.Calls) {
				t.Errorf("%d requests, want %d", len(model.asked), len(c.Expected.Calls))
			}
			for i, call := range c.Expected.Calls {
				if again := strings.Contains(model.asked[i].Instructions, "Your last answer lacked"); again != call.Feedback {
					t.Errorf("request %d says what was missing: %v", i, again)
				}
				if c.PreviousSummary != nil && model.asked[i].Previous != *c.PreviousSummary {
					t.Errorf("request %d has the previous summary %q", i, model.asked[i].Previous)
				}
			}
		})
	}
	for name := range safeguardOtherwise {
		if !met[name] {
			t.Errorf("no run is called %s", name)
		}
	}
	if len(met) != 14 {
		t.Errorf("runs: %v", met)
	}
}
