package maintenance

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestChange(t *testing.T) {
	now := time.UnixMilli(1_790_000_000_000)
	const at = 1_790_000_000_000.0
	for _, c := range []struct {
		name, row string
		p         Patch
		want      map[string]any // nil: nothing changes
	}{
		{"a label", `{"sessionId":"a","updatedAt":5,"mine":[1]}`, Patch{Set: map[string]string{"label": "  L "}}, map[string]any{"sessionId": "a", "updatedAt": at, "mine": []any{1.0}, "label": "L"}},
		{"the same label", `{"updatedAt":5,"label":"L"}`, Patch{Set: map[string]string{"label": "L"}}, nil},
		{"levels", `{"thinkingLevel":"low"}`, Patch{Set: map[string]string{"thinking": "high", "fast": "on", "verbose-level": "full", "usage": "tokens"}}, map[string]any{"updatedAt": at, "thinkingLevel": "high", "fastMode": true, "verboseLevel": "full", "responseUsage": "tokens"}},
		{"fast mode by itself", `{}`, Patch{Set: map[string]string{"fast": "auto"}}, map[string]any{"updatedAt": at, "fastMode": "auto"}},
		{"a pin", `{"updatedAt":5}`, Patch{Pin: true}, map[string]any{"updatedAt": at, "pinnedAt": at}},
		{"pinned already", `{"updatedAt":5,"pinnedAt":3}`, Patch{Pin: true}, nil},
		{"no pin", `{"updatedAt":5,"pinnedAt":3}`, Patch{Unpin: true}, map[string]any{"updatedAt": at}},
		{"no pin where none is", `{"updatedAt":5}`, Patch{Unpin: true}, nil},
		{"unread", `{"updatedAt":5}`, Patch{Unread: true}, map[string]any{"updatedAt": at, "markedUnreadAt": at}},
		{"read", `{"updatedAt":5,"markedUnreadAt":3}`, Patch{Read: true}, map[string]any{"updatedAt": at, "lastReadAt": at}},
		{"a time ahead stays", `{"updatedAt":9e12,"label":"x"}`, Patch{Unset: []string{"label"}}, map[string]any{"updatedAt": 9e12}},
		{"out, whatever it holds", `{"updatedAt":5,"status":{"odd":1}}`, Patch{Unset: []string{"status", "label"}}, map[string]any{"updatedAt": at}},
		{
			"a model", `{"updatedAt":5,"model":"m1","modelProvider":"p1","contextTokens":9,"fallbackNoticeReason":"x","authProfileOverride":"p1:me","authProfileOverrideSource":"user"}`,
			Patch{Model: "p2/m/2", Default: "p1/m1"},
			map[string]any{"updatedAt": at, "providerOverride": "p2", "modelOverride": "m/2", "modelOverrideSource": "user", "liveModelSwitchPending": true},
		},
		{
			"a model of the same provider", `{"updatedAt":5,"modelProvider":"p1","model":"m1","authProfileOverride":"p1:me"}`,
			Patch{Model: "p1/m2", Default: "p1/m1"},
			map[string]any{"updatedAt": at, "providerOverride": "p1", "modelOverride": "m2", "modelOverrideSource": "user", "liveModelSwitchPending": true, "authProfileOverride": "p1:me"},
		},
		{
			"the default model", `{"updatedAt":5,"providerOverride":"p2","modelOverride":"m2","modelOverrideSource":"user","model":"m2","modelProvider":"p2"}`,
			Patch{Model: "p1/m1", Default: "p1/m1"},
			map[string]any{"updatedAt": at, "liveModelSwitchPending": true},
		},
		{
			"no model of its own", `{"updatedAt":5,"providerOverride":"p2","modelOverride":"m2","modelOverrideSource":"auto","modelOverrideFallbackOriginModel":"x"}`,
			Patch{Unset: []string{"model"}, Default: "p1/m1"},
			map[string]any{"updatedAt": at},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := taken(t, `{"a": {"label": "other", "updatedAt": 7}, "k": `+c.row+`}`)
			p, err := Change(s, "k", c.p, now)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == nil {
				if !p.Empty() {
					t.Errorf("it changes something: %v", p.Actions)
				}
				return
			}
			if d := cmp.Diff(c.want, values(t, p, "k")); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			// The reason names what has another value, and nothing that was never there.
			var old map[string]any
			if err := json.Unmarshal([]byte(c.row), &old); err != nil {
				t.Fatal(err)
			}
			said, differ := map[string]bool{}, map[string]bool{}
			for _, a := range p.Actions {
				if a.Kind == PutRow {
					for name := range strings.SplitSeq(strings.TrimPrefix(a.Reason, "changed: "), ", ") {
						said[name] = true
					}
				}
			}
			for _, row := range []map[string]any{old, c.want} {
				for name := range row {
					if name != "updatedAt" && !cmp.Equal(old[name], c.want[name]) {
						differ[name] = true
					}
				}
			}
			if d := cmp.Diff(differ, said); d != "" {
				t.Errorf("what is said to change (-differs +said)\n%s", d)
			}
			if text := string(NewStore(s, p)); !strings.Contains(text, `{"label": "other", "updatedAt": 7}`) {
				t.Errorf("the other row lost its bytes: %s", text)
			}
		})
	}
}

func TestChangeThatIsDenied(t *testing.T) {
	s := taken(t, `{"a": {"label": "mine"}, "k": {"archivedAt": 5}}`)
	var denied *Denied
	for name, p := range map[string]Patch{"in use": {Set: map[string]string{"label": "mine"}}, "archived": {Pin: true}} {
		if _, err := Change(s, "k", p, time.UnixMilli(9)); !errors.As(err, &denied) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var gone *NoRow
	for name, f := range map[string]func() error{
		"change":    func() error { _, err := Change(s, "x", Patch{Pin: true}, time.UnixMilli(9)); return err },
		"delete":    func() error { _, err := Delete(s, []string{"k", "x"}, time.UnixMilli(9)); return err },
		"archive":   func() error { _, err := Archive(s, []string{"x"}, time.UnixMilli(9)); return err },
		"unarchive": func() error { _, err := Unarchive(s, []string{"x"}, time.UnixMilli(9)); return err },
		"begin":     func() error { _, err := Begin(s, "x", Reset{ID: "i"}, time.UnixMilli(9)); return err },
	} {
		if err := f(); !errors.As(err, &gone) || gone.Key != "x" {
			t.Errorf("%s of nobody: %v", name, err)
		}
	}
	if _, err := Begin(s, "k", Reset{ID: "i"}, time.UnixMilli(9)); !errors.As(err, &denied) {
		t.Errorf("an archived session is reset: %v", err)
	}
	if _, err := Unarchive(s, []string{"a"}, time.UnixMilli(9)); !errors.As(err, &denied) {
		t.Errorf("one that is not archived is restored: %v", err)
	}
}

func TestSettings(t *testing.T) {
	for _, x := range Settings() {
		if !Unsettable(x.Field.String()) {
			t.Errorf("%s can be set and not be taken out", x.Field)
		}
		if x.Accepts("") || x.Accepts(" ") || x.Accepts(strings.Repeat("é", 513)) {
			t.Errorf("--%s takes anything", x.Name)
		}
		for _, v := range x.Values {
			if !x.Accepts(" " + v) {
				t.Errorf("--%s does not take %q", x.Name, v)
			}
		}
	}
	for name, want := range map[string]bool{"label": true, "status": true, "goal": true, "sessionId": false, "sessionFile": false, "updatedAt": false, "spawnedBy": false, "archivedAt": false, "mine": false, "": false, "__proto__": false} {
		if Unsettable(name) != want {
			t.Errorf("%q may be taken out: %t", name, !want)
		}
	}
}

func TestRestoreIsDenied(t *testing.T) {
	const id = "11111111-1111-4111-8111-111111111111"
	archive := id + ".jsonl.deleted.2026-01-02T03-04-05.000Z"
	for _, c := range []struct {
		name, store string
		files       []string
		lost        Lost
		says        string
	}{
		{"no such archive", `{}`, nil, Lost{Archive: archive}, "not there"},
		{"a saved row without an archive", `{}`, nil, Lost{Key: "k", Row: []byte(`{"sessionId":"` + id + `"}`), Run: "r"}, "oc undo r"},
		{"a transcript of that name", `{}`, []string{archive, id + ".jsonl"}, Lost{Archive: archive}, "already"},
		{"its id in use", `{"k": {"sessionId": "` + id + `"}}`, []string{archive}, Lost{Archive: archive}, "k has its id"},
		{"its key in use", `{"agent:main:explicit:` + id + `": {"sessionId": "x"}}`, []string{archive}, Lost{Archive: archive}, "in use"},
		{"a backup", `{}`, []string{id + ".jsonl.bak.2026-01-02T03-04-05.000Z"}, Lost{Archive: id + ".jsonl.bak.2026-01-02T03-04-05.000Z"}, "no archive"},
		{"compressed", `{}`, []string{archive + ".zst"}, Lost{Archive: archive + ".zst"}, "compressed"},
		{"a name without an id", `{}`, []string{"-x.jsonl.deleted.2026-01-02T03-04-05.000Z"}, Lost{Archive: "-x.jsonl.deleted.2026-01-02T03-04-05.000Z"}, "session id"},
		{"the store itself", `{}`, nil, Lost{Archive: "sessions.json"}, "no archive"},
	} {
		s := taken(t, c.store, c.files...)
		var denied *Denied
		if _, _, _, err := Restore(s, c.lost, time.UnixMilli(9)); !errors.As(err, &denied) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A saved row whose key is in use again comes back under a key of its own, without what only one session can have.
func TestRestoreBesideAnother(t *testing.T) {
	const id = "11111111-1111-4111-8111-111111111111"
	archive := id + ".jsonl.deleted.2026-01-02T03-04-05.000Z"
	s := taken(t, `{"k": {"sessionId": "x", "label": "L"}}`, archive)
	p, key, inferred, err := Restore(s, Lost{Key: "k", Row: []byte(`{"sessionId": "` + id + `", "label": "L", "archivedAt": 5, "mine": 1}`), Run: "r"}, time.UnixMilli(9))
	if err != nil {
		t.Fatal(err)
	}
	if key != "agent:main:explicit:"+id || inferred {
		t.Errorf("key %s, inferred %t", key, inferred)
	}
	if d := cmp.Diff(map[string]any{"sessionId": id, "updatedAt": 9.0, "mine": 1.0}, values(t, p, key)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if want := `{
  "k": {"sessionId": "x", "label": "L"},
`; !strings.HasPrefix(string(NewStore(s, p)), want) {
		t.Errorf("the other row changed: %s", NewStore(s, p))
	}
}

// Lists of tools are for sessions that were spawned; by OpenClaw's names, each once.
func TestChangeOfTools(t *testing.T) {
	p := Patch{Deny: []string{"Bash", "exec", " web_search "}, Allow: []string{"read"}}
	if got := string(toolList(p.Deny)) + string(toolList(p.Allow)); got != `["exec","web_search"]["read"]` {
		t.Error(got)
	}
	fields, odd := p.Fields()
	if odd != "" || len(fields) != 2 {
		t.Errorf("%v %q", fields, odd)
	}
	for key, fine := range map[string]bool{"agent:main:subagent:x": true, "agent:main:acp:x": true, "agent:main:telegram:direct:1": false} {
		_, s := lay(t, state("", []string{entry(key, 0, `"sessionId":"s1"`)}), Orders{})
		plan, err := Change(s, key, p, time.UnixMilli(now))
		var denied *Denied
		if fine != (err == nil) || !fine && !errors.As(err, &denied) {
			t.Errorf("%s: %v", key, err)
		}
		if fine && (len(plan.Actions) != 2 || !strings.Contains(string(plan.Actions[0].Value), `"inheritedToolDeny": ["exec","web_search"]`) && !strings.Contains(string(plan.Actions[0].Value), `"exec"`)) {
			t.Errorf("%s: %s", key, plan.Actions[0].Value)
		}
	}
}
