package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oc/fixtures"
)

// lines writes a transcript of raw lines.
func lines(t *testing.T, path string, all ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Join(all, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func saying(id, at, role, content string) string {
	return fmt.Sprintf(`{"type":"message","id":"%s","timestamp":"2026-09-%s","message":{"role":"%s","content":%s}}`, id, at, role, content)
}

const header = `{"type":"session","version":3,"id":"s","timestamp":"2026-09-01T00:00:00.000Z","cwd":"/srv"}`

// excerpts are what the hits of a document say, in its order.
func excerpts(doc map[string]any) (all []string) {
	hits, _ := doc["hits"].([]any)
	for i := range hits {
		all = append(all, fmt.Sprint(dig(hits, i, "excerpt")))
	}
	return all
}

func TestSearch(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, "agents/main/sessions")
	secret := "sk-" + strings.Repeat("Ab3", 12) // made here: no file holds a credential
	live := []string{
		header,
		saying("a1", "02T10:00:00.000Z", "user", `"Where is the Harbour map?"`),
		saying("a2", "02T10:00:05.000Z", "assistant", `[{"type":"thinking","thinking":"harbour maps","thinkingSignature":"harbour"},{"type":"text","text":"In the drawer."}]`),
		saying("a3", "02T10:00:09.000Z", "assistant", `[{"type":"toolCall","id":"harbour","name":"exec","arguments":{"cmd":"curl -H 'Authorization: Bearer `+secret+`' https://harbour.example"}}]`),
		saying("a4", "02T10:00:12.000Z", "toolResult", `[{"type":"text","text":"h\u0061rbour \u001b[31mred\u001b[0m\nhello"},{"type":"image","mimeType":"image/png","data":"harbour"}]`),
	}
	lines(t, filepath.Join(dir, "one.jsonl"), append(slices.Clone(live), `{"type":"message","id":"a5","message":{"role":"user","content":"torn harb`, `harbour torn tail {"x":`)...)
	lines(t, filepath.Join(dir, fixtures.Gone("one.jsonl", "reset", fixtures.Now)), append(live[:3:3], saying("b1", "01T10:00:00.000Z", "user", `"the old harbour"`))...)
	lines(t, filepath.Join(dir, "one.checkpoint.8d6a1c3e-4f5b-4a6c-8d7e-9f0a1b2c3d4e.jsonl"), live...)
	lines(t, filepath.Join(dir, "lost.jsonl"), header, saying("c1", "03T10:00:00.000Z", "user", `"HARBOUR light"`))
	lines(t, filepath.Join(state, "agents/ghost/sessions/g.jsonl"), header, saying("d1", "04T10:00:00.000Z", "user", `"a ghost harbour"`))
	lines(t, filepath.Join(dir, "sessions.json"), `{"agent:main:main":{"sessionId":"one","updatedAt":1789000000000}}`)
	before := tree(t, state)

	a := at(t, state, "sessions", "search", "harbour", "--json")
	doc := a.doc(t)
	want(t, "exit", a.exit, ExitDone)
	got := excerpts(doc)
	if len(got) != 8 {
		t.Fatalf("%d hits: %q", len(got), got)
	}
	for i, part := range []string{"a ghost [harbour", "HARBOUR light", "harbour red hello", "curl -H", "harbour maps", "Harbour map?", "the old harbour", "harbour torn tail"} {
		if part = strings.Replace(part, "[harbour", "harbour", 1); !strings.Contains(got[i], part) {
			t.Errorf("hit %d: %q, want %q", i, got[i], part)
		}
	}
	want(t, "copies", doc["copies"], float64(6))
	want(t, "role", dig(doc, "hits", 2, "role"), "toolResult")
	want(t, "part", dig(doc, "hits", 3, "part"), "call")
	want(t, "masked", dig(doc, "hits", 3, "redacted"), true)
	want(t, "damaged", dig(doc, "hits", 7, "part"), "damaged")
	want(t, "key", dig(doc, "hits", 4, "key"), "agent:main:main")
	want(t, "agent", dig(doc, "hits", 0, "agentId"), "ghost")
	want(t, "source", dig(doc, "hits", 1, "source"), "unlinked")
	want(t, "source", dig(doc, "hits", 6, "source"), "reset")
	if strings.Contains(a.out, secret[8:]) {
		t.Error("a credential stands in the answer")
	}
	text := at(t, state, "sessions", "search", "harbour")
	if bad := raw(text.out); bad != "" || strings.Contains(text.out, secret[8:]) {
		t.Errorf("text shows %s or a credential:\n%s", bad, text.out)
	}

	for _, c := range []struct {
		args  []string
		count int
	}{
		{[]string{"Harbour"}, 1},
		{[]string{"Harbour", "--ignore-case"}, 8},
		{[]string{"harbour", "--case-sensitive"}, 6},
		{[]string{"harbour", "--since", "2026-09-03"}, 2},
		{[]string{"harbour", "--agent", "main"}, 7},
		{[]string{"harbour", "--kind", "main"}, 6},
		{[]string{"--regexp", "har?b(o|x)ur (light|map)"}, 3},
		{[]string{"nowhere"}, 0},
		{[]string{secret}, 1},
		{[]string{"harbour", "--files-with-matches"}, 5},
	} {
		a := at(t, state, append([]string{"sessions", "search", "--json"}, c.args...)...)
		want(t, fmt.Sprint(c.args), a.doc(t)["totalCount"], float64(c.count))
		if strings.Contains(a.out, secret[8:]) {
			t.Errorf("%q: a credential stands in the answer", c.args)
		}
	}
	for _, bad := range [][]string{{}, {""}, {"a", "--regexp", "b"}, {"--regexp", "("}, {"--regexp", "a*"}, {"a", "--ignore-case", "--case-sensitive"}, {"a", "--since", "soon"}, {"\xff"}} {
		want(t, fmt.Sprintf("exit of %q", bad), at(t, state, append([]string{"sessions", "search"}, bad...)...).exit, ExitUsage)
	}
	if now := tree(t, state); now != before {
		t.Errorf("searching changed the tree")
	}
}

// What one session may see of others, as a search shows it.
func TestSearchAs(t *testing.T) {
	state := t.TempDir()
	for agent, keys := range map[string][]string{"main": {"agent:main:main", "agent:main:telegram:direct:1", "agent:main:subagent:x"}, "work": {"agent:work:main"}} {
		rows := map[string]any{}
		for i, key := range keys {
			id := fmt.Sprintf("%s%d", agent, i)
			rows[key] = map[string]any{"sessionId": id, "updatedAt": fixtures.Now - 1000}
			if key == "agent:main:subagent:x" {
				rows[key].(map[string]any)["spawnedBy"] = "agent:main:telegram:direct:1"
			}
			lines(t, filepath.Join(state, "agents", agent, "sessions", id+".jsonl"), header, saying(id, "02T10:00:00.000Z", "user", `"needle `+key+`"`))
		}
		doc, _ := json.Marshal(rows)
		lines(t, filepath.Join(state, "agents", agent, "sessions/sessions.json"), string(doc))
	}
	for _, c := range []struct {
		config, mode string
		count        int
	}{
		{`{}`, "tree", 2},
		{`{"tools":{"sessions":{"visibility":"self"}}}`, "self", 1},
		{`{"tools":{"sessions":{"visibility":"agent"}}}`, "agent", 3},
		{`{"tools":{"sessions":{"visibility":"all"}}}`, "", 3},
		{`{"tools":{"sessions":{"visibility":"all"},"agentToAgent":{"enabled":true}}}`, "", 4},
		{`{"tools":{"sessions":{"visibility":"all"}},"agents":{"defaults":{"sandbox":{"mode":"all"}}}}`, "tree", 2},
	} {
		lines(t, filepath.Join(state, "openclaw.json"), c.config)
		doc := at(t, state, "sessions", "search", "needle", "--as", "agent:main:telegram:direct:1", "--json").doc(t)
		want(t, c.config, doc["totalCount"], float64(c.count))
		mode, _ := dig(doc, "visibility", "mode").(string)
		want(t, "mode of "+c.config, mode, c.mode)
	}
	env := quiet(t, fixtures.Now)
	env["OPENCLAW_SHELL"], env["OC_SESSION"] = "exec", "agent:work:main"
	lines(t, filepath.Join(state, "openclaw.json"), `{}`)
	want(t, "by environment", ocRun(t, state, env, "--state-dir", state, "sessions", "search", "needle", "--json").doc(t)["totalCount"], float64(1))
}

// S9: a long line is searched, found and cut.
func TestSearchLongLine(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, "agents/main/sessions")
	long := strings.Repeat("spare ", 2<<20) + "needle" + strings.Repeat(" spare", 1<<20)
	lines(t, filepath.Join(dir, "one.jsonl"), header, saying("a1", "02T10:00:00.000Z", "user", `"`+long+`"`), saying("a2", "02T10:00:01.000Z", "user", `"no"`), "")
	lines(t, filepath.Join(dir, "sessions.json"), `{"agent:main:main":{"sessionId":"one","updatedAt":1789000000000}}`)
	doc := at(t, state, "sessions", "search", "needle", "--json").doc(t)
	want(t, "hits", doc["totalCount"], float64(1))
	if got := excerpts(doc)[0]; len(got) > 200 || !strings.Contains(got, "spare needle spare") {
		t.Errorf("%q", got)
	}
}

// In both eras and what imports left, each entry once; nothing is touched.
func TestSearchEras(t *testing.T) {
	dir := t.TempDir()
	e := made[fixtures.Eras](t)(fixtures.S16(dir, fixtures.Now))
	for _, c := range []struct {
		state                string
		count, copies, other int
	}{{e.Files, 2, 0, 0}, {e.SQLite, 2, 0, 0}, {e.Both, 2, 0, 1}, {e.Imported, 2, 2, 0}, {e.Unlisted, 3, 0, 0}} {
		before := tree(t, c.state)
		for _, args := range [][]string{{"sessions", "search", "side gate", "--json"}, {"sessions", "trace", e.Keys[0], "--json"}, {"sessions", "stats", "--json"}, {"sessions", "stats", "--bytes", "--json"}, {"sessions", "search", "gate", "--files-with-matches"}} {
			a := at(t, c.state, args...)
			want(t, fmt.Sprintf("exit of %q in %s: %s", args, c.state, a.errout), a.exit, ExitDone)
			if args[1] == "search" && args[2] == "side gate" {
				doc := a.doc(t)
				want(t, c.state, doc["totalCount"], float64(c.count))
				want(t, "copies in "+c.state, doc["copies"], float64(c.copies))
				want(t, "only in the other era of "+c.state, doc["onlyInOtherEra"], float64(c.other))
				want(t, "it is told", strings.Contains(a.errout, "--both-eras"), c.other > 0)
			} else if slices.Contains(args, "--json") {
				a.doc(t)
			}
		}
		if now := tree(t, c.state); now != before {
			t.Errorf("%s was changed", c.state)
		}
	}
}

// S17: every state that a database can be in, read by several workers at once; nothing is touched and nothing is left in TMPDIR.
func TestSearchDatabases(t *testing.T) {
	dir := t.TempDir()
	r := made[fixtures.ReadOnly](t)(fixtures.S17(dir, fixtures.Now))
	t.Cleanup(func() { fixtures.Unseal(r.Sealed) }) //nolint:errcheck // it is removed next
	for _, state := range []string{r.Log, r.LogAlone, r.Sealed, r.Rollback, r.BadIndex, r.Quarantined} {
		env, before := quiet(t, fixtures.Now), tree(t, state)
		for _, args := range [][]string{{"search", "--regexp", "."}, {"trace", r.Keys[0]}, {"stats"}, {"stats", "--bytes"}} {
			a := ocRun(t, state, env, append([]string{"--state-dir", state, "--json", "sessions"}, args...)...)
			doc := a.doc(t)
			if a.exit != ExitDone {
				t.Errorf("%q in %s: exit %d: %s", args, state, a.exit, a.errout)
			}
			if n, ok := doc["totalCount"].(float64); ok && n == 0 {
				t.Errorf("nothing was found in %s", state)
			}
		}
		if now := tree(t, state); now != before {
			t.Errorf("%s was changed", state)
		}
		empty(t, env["TMPDIR"])
	}
}
