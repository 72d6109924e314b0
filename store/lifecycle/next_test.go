package lifecycle

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"oc/config"
	"oc/store/row"
)

// What OpenClaw's own start of a session made of a message: whether it began anew, by which rule, what was left of the message,
// and which fields were carried over.
func TestDecideAsOpenClaw(t *testing.T) {
	lines(t, "reset-init.jsonl", func(line []byte) {
		var c struct {
			Name, Body, TZ, Reconnect string
			Now                       time.Time
			CommandAuthorized         *bool
			Ctx                       struct{ Provider string }
			SessionCfg, Entry         json.RawMessage
			TranscriptHeader          *struct {
				ID        string
				Timestamp time.Time
			}
			Expected struct {
				IsNewSession, ResetTriggered bool
				BodyStripped                 *string
				Error                        string
				EntryAfter                   map[string]json.RawMessage
			}
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		switch c.Name {
		case "unauthorized-new", "reconnect-resume":
			return // who may send commands, and whether a client reconnects, is known to a gateway alone
		}
		t.Run(c.Name, func(t *testing.T) {
			e, err := row.New("agent:main:main", c.Entry)
			if err != nil {
				t.Fatal(err)
			}
			session := section(t, string(c.SessionCfg))
			p := Resolve(session, TypeOf(e.Key), "", config.Release735)
			times := Read(&e)
			if h := c.TranscriptHeader; times.Started != times.Started && h != nil && h.ID == e.ID() {
				times.Started = float64(h.Timestamp.UnixMilli())
			}
			zone, err := time.LoadLocation(c.TZ)
			if err != nil {
				t.Fatal(err)
			}
			n := Decide(&e, Message{Text: c.Body, System: c.Ctx.Provider != ""}, p, p.At(c.Now.In(zone), times, config.Release735), session)
			want := c.Expected
			if (n.Outcome == Refused) != (want.Error != "") || (n.Outcome == Begins) != want.IsNewSession || (n.Why == ByTrigger) != want.ResetTriggered {
				t.Errorf("%+v, want %+v", n, want)
			}
			if want.BodyStripped != nil && n.Rest != *want.BodyStripped {
				t.Errorf("left of the message: %q, want %q", n.Rest, *want.BodyStripped)
			}
			if n.Outcome != Begins {
				return
			}
			kept := Carried(&e, n.Why == ByTrigger)
			for _, f := range slices.Concat(Kept, KeptByTrigger, ofModel, ofLogin) {
				after, is := want.EntryAfter[f.String()]
				is = is && string(after) != "null"
				if got := slices.Contains(kept, f); e.IsSet(f) && got != is {
					t.Errorf("%s carried: %v, want %v", f, got, is)
				}
			}
		})
	})
}

func TestMatchTrigger(t *testing.T) {
	for text, want := range map[string][2]string{
		"/new":             {"/new", ""},
		"/NEW  now":        {"/new", "now"},
		"/new: hi":         {"/new", "hi"},
		"/new\nhello":      {"/new", ""},
		"/newer":           {"", ""},
		"new":              {"", ""},
		"/reset soft":      {"", ""},
		"/reset soft tail": {"", ""},
		"/reset softly":    {"/reset", "softly"},
		" /reset ":         {"/reset", ""},
		"please /new":      {"", ""},
		"/İ":               {"", ""},
		"":                 {"", ""},
	} {
		trigger, rest, ok := matchTrigger(text, []string{"/new", "/reset"})
		if ok != (want[0] != "") || trigger != want[0] || rest != want[1] {
			t.Errorf("%q: %q, %q", text, trigger, rest)
		}
	}
}

func TestOwnedByProvider(t *testing.T) {
	for text, want := range map[string]bool{
		`{"modelProvider":"claude-cli","claudeCliSessionId":"x"}`:                               true,
		`{"modelProvider":"claude-cli","claudeCliSessionId":" "}`:                               false,
		`{"modelProvider":"openai","claudeCliSessionId":"x"}`:                                   false,
		`{"providerOverride":"codex-cli","cliSessionBindings":{"codex-cli":{"sessionId":"y"}}}`: true,
		`{"providerOverride":"codex-cli","cliSessionIds":{"other":"y"}}`:                        false,
		`{"modelProvider":"codex-cli","cliSessionIds":{"codex-cli":"y"}}`:                       true,
	} {
		e, err := row.New("k", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := ownedByProvider(&e); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
