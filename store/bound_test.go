package store_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oc/config"
	"oc/fixtures"
	"oc/store"
	"oc/store/span"
)

const boundID = "6a1f6c1e-0d4b-4a51-9d0a-2f6d0d2b7a01"

// boundState is a session of either era that is bound to one of Claude's program, and what that has kept.
func boundState(t *testing.T, era fixtures.Era, entry string, talk *fixtures.Transcript, claude string) (*store.Row, *config.Config) {
	t.Helper()
	dir := t.TempDir()
	err := (fixtures.State{Agents: []fixtures.Agent{{
		ID: "main", Era: era, Sessions: []fixtures.Session{{Key: "agent:main:main", ID: talk.ID, Updated: fixtures.Now, Talk: talk, Entry: entry}},
	}}}).Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"-another", "-work"} {
		if err := os.MkdirAll(filepath.Join(dir, ".claude/projects", d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".claude/projects/-work", boundID+".jsonl"), []byte(claude), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Options{StateDir: dir, Cwd: dir, Home: dir})
	if err != nil {
		t.Fatal(err)
	}
	targets, err := store.Targets(cfg, store.Pick{Agent: "main"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(context.Background(), cfg, targets[0])
	if err != nil {
		t.Fatal(err)
	}
	return rowOf(t, s, "agent:main:main"), cfg
}

// What the history of both releases made of a session that Claude's program answers.
func TestJoinAsOpenClaw(t *testing.T) {
	text, err := os.ReadFile("testdata/claude-cli.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded map[string][]struct {
		Name, Provider, Claude string
		Entry                  map[string]any
		Local, Expected        []map[string]any
	}
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	for release, era := range map[string]fixtures.Era{"2026.7.35": fixtures.FileEra, "2026.9.6": fixtures.SQLiteEra} {
		if len(recorded[release]) < 15 {
			t.Fatalf("%d cases of %s", len(recorded[release]), release)
		}
		for _, c := range recorded[release] {
			talk := fixtures.Talk(fixtures.IDOf("bound"), fixtures.Now-fixtures.Day)
			for _, m := range c.Local {
				raw, _ := json.Marshal(m)
				talk.Line(`{"type":"message","id":"` + fixtures.IDOf(string(raw)) + `","timestamp":"2026-01-01T00:00:00.000Z","message":` + string(raw) + `}`)
			}
			c.Entry["modelProvider"], c.Entry["model"] = c.Provider, "m"
			delete(c.Entry, "sessionId")
			entry, _ := json.Marshal(c.Entry)
			entry = []byte(strings.ReplaceAll(string(entry), `"localSessionId":"loc"`, `"localSessionId":"`+talk.ID+`"`))
			row, _ := boundState(t, era, string(entry), talk, c.Claude)
			one, err := row.Conversation(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			page, err := store.ReadPart(context.Background(), []*store.Conversation{one}, store.Part{Limit: 100})
			if err == nil {
				err = page.Join(context.Background(), row, row.Bound(), store.Part{Limit: 100})
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []map[string]any
			for i := range page.Messages {
				var m map[string]any
				if err := json.Unmarshal(page.Messages[i].Raw, &m); err != nil {
					t.Fatalf("%s: %v: %s", c.Name, err, page.Messages[i].Raw)
				}
				got = append(got, m)
			}
			for _, m := range c.Expected { // the later release also notes on its own messages which of the other program's they are
				if note, ok := m["__openclaw"].(map[string]any); ok && release == "2026.9.6" && note["id"] == nil {
					delete(m, "__openclaw")
				}
			}
			// Where one without a time stands is left to chance there; here it stands behind the one before it.
			wanted, got, untimed := timed(c.Expected), timed(got), len(got)-len(timed(got))
			if untimed != len(c.Expected)-len(wanted) {
				t.Errorf("%s: %s: %d without a time", release, c.Name, untimed)
			}
			if d := cmp.Diff(wanted, got); d != "" {
				t.Errorf("%s: %s: %s", release, c.Name, d)
			}
			if bound := row.Bound(); bound != nil && !bound.Missing && page.Elsewhere+len(page.Messages) < len(c.Local) {
				t.Errorf("%s: %s: %d messages, %d elsewhere", release, c.Name, len(page.Messages), page.Elsewhere)
			}
		}
	}
}

func timed(all []map[string]any) (kept []map[string]any) {
	for _, m := range all {
		if _, ok := m["timestamp"]; ok {
			kept = append(kept, m)
		}
	}
	return kept
}

// A page that does not take them in counts them; what is broken is located; an id is no path.
func TestJoinCounts(t *testing.T) {
	claude := `{"type":"user","uuid":"u1","timestamp":"2026-01-01T10:00:00.000Z","message":{"role":"user","content":"one"}}` + "\n{torn\n" +
		`{"type":"assistant","uuid":"a1","timestamp":"2026-01-01T10:00:01.000Z","message":{"role":"assistant","content":"` + strings.Repeat("x", store.LongRow) + `"}}` + "\n"
	talk := fixtures.Talk(fixtures.IDOf("bound"), fixtures.Now-fixtures.Day).User("here")
	row, _ := boundState(t, fixtures.FileEra, `{"claudeCliSessionId":"`+boundID+`"}`, talk, claude)
	for _, c := range []struct {
		want             store.Part
		messages, others int
	}{
		{store.Part{Limit: 10}, 2, 0},
		{store.Part{Limit: 1}, 1, 1},
		{store.Part{Limit: 10, Whole: true}, 0, 2},
		{store.Part{Limit: 10, Branch: "x"}, 0, 2},
		{store.Part{Since: 1767261601000}, 1, 0},
	} {
		page := &store.Page{}
		if err := page.Join(context.Background(), row, row.Bound(), c.want); err != nil {
			t.Fatal(err)
		}
		if len(page.Messages) != c.messages || page.Elsewhere != c.others || page.Broken != 1 || page.Findings[0].At.Line != 2 {
			t.Errorf("%+v: %d messages, %d elsewhere, %d broken", c.want, len(page.Messages), page.Elsewhere, page.Broken)
		}
		for _, m := range page.Messages {
			if m.Place.Line == 3 && (!m.Long || len(m.Raw) > 1000 || span.KindOf(m.Raw) != span.Object) {
				t.Errorf("a long line: %t, %d bytes", m.Long, len(m.Raw))
			}
		}
	}
	for _, id := range []string{"../x", "..", "a/b", `a\\b`, " ", ""} {
		row, _ := boundState(t, fixtures.FileEra, `{"claudeCliSessionId":"`+id+`"}`, talk, claude)
		if c := row.Bound(); c != nil {
			t.Errorf("%q leads to %s", id, c.Path)
		}
	}
}
