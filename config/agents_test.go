package config_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oc/config"
)

func TestAgents(t *testing.T) {
	for _, c := range []struct {
		text            string
		agents, stores  string
		standard, model string
	}{
		{"{}", "main", "main", "main", ""},
		{"{agents: {list: []}}", "main", "main", "main", ""},
		{"{agents: {list: [{id: 'Work'}, {id: 'work'}, {}, {id: 'Ops Team'}]}}", "work main ops-team", "work main ops-team", "work", ""},
		{"{agents: {list: [{id: 'a'}, {id: 'b', default: true}, {id: 'c', default: true}]}}", "a b c", "a b c", "b", ""},
		{"{agents: {list: [{id: 'a', default: 'yes'}, {id: 'b', default: true}]}}", "a b", "a b", "b", ""},
		{"{agents: {entries: {'2': {}, b: {default: true}, '1': {}}, list: [{id: 'x'}]}}", "1 2 b", "1 2 b", "b", ""},
		{"{acp: {defaultAgent: 'Codex', allowedAgents: ['*', 'claude', 'main', ' ']}}", "main", "main codex claude", "main", ""},
		{"{agents: {list: [{id: 'a', runtime: {type: 'acp', acp: {agent: 'Gemini'}}}, {id: 'b', runtime: {type: 'acp'}}, {id: 'c', runtime: {type: 'x'}}]}}", "a b c", "a b c gemini", "a", ""},
	} {
		conf := parse(t, c.text)
		var agents []string
		for _, a := range conf.Agents() {
			agents = append(agents, a.ID)
		}
		got := []string{strings.Join(agents, " "), strings.Join(conf.StoreAgents(), " "), conf.DefaultAgent()}
		if d := cmp.Diff([]string{c.agents, c.stores, c.standard}, got); d != "" {
			t.Errorf("%s: %s", c.text, d)
		}
	}
	if _, ok := parse(t, "{agents: {list: [{id: 'Ops Team'}]}}").Agent("OPS TEAM"); !ok {
		t.Error("an agent is not found by its name as written")
	}
}

func TestStorePaths(t *testing.T) {
	for template, want := range map[string]string{
		"":                             "/s/agents/ops-team/sessions/sessions.json",
		"~/x/{agentId}/{agentId}.json": "/h/x/ops-team/ops-team.json",
		"shared.json":                  "/cwd/shared.json",
		"~":                            "/h",
		"~{agentId}/x":                 "/cwd/~ops-team/x",
		"@/a/../{agentID}/x.json":      "/{agentID}/x.json",
	} {
		c, root := load(t, map[string]string{"s/openclaw.json": "{session: {store: '" + template + "'}}"}, nil)
		if got := strings.TrimPrefix(c.StorePath("Ops Team"), root); got != want {
			t.Errorf("%q: got %s, want %s", template, got, want)
		}
	}
	for store, want := range map[string]string{
		"/s/agents/a/sessions/sessions.json": "/s/agents/a/agent/openclaw-agent.sqlite",
		"/s/x/a/sessions/sessions.json":      "/s/x/a/sessions/openclaw-agent.sqlite",
		"/s/agents/a/sessions.json":          "/s/agents/a/openclaw-agent.sqlite",
		"/s/shared/store.json":               "/s/shared/store.sqlite",
		"/s/shared/store":                    "/s/shared/store.sqlite",
		"/s/shared/.json":                    "/s/shared/.json.sqlite",
		"/s/x.sqlite":                        "/s/x.sqlite",
	} {
		if got := config.DatabasePath(store); got != want {
			t.Errorf("database of %s: got %s, want %s", store, got, want)
		}
	}
	for path, want := range map[string]string{
		"/s/agents/a/sessions/sessions.json":      "/s/agents/a/sessions",
		"/s/agents/a/agent/openclaw-agent.sqlite": "/s/agents/a/sessions",
		"/s/shared/store.sqlite":                  "/s/shared",
		"/s/agents/a/agent/store.json":            "/s/agents/a/agent",
	} {
		if got := config.ArtifactDir(path); got != want {
			t.Errorf("artifacts of %s: got %s, want %s", path, got, want)
		}
	}
	c, root := load(t, map[string]string{"s/openclaw.json": "{agents: {entries: {a: {agentDir: ' ~/own '}, b: {}}}}"}, nil)
	want := []string{root + "/s/agents/a/agent/openclaw-agent.sqlite", root + "/h/own/openclaw-agent.sqlite"}
	if d := cmp.Diff(want, c.DatabasePaths("a")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{root + "/s/agents/b/agent/openclaw-agent.sqlite"}, c.DatabasePaths("b")); d != "" {
		t.Error(d)
	}
}

func TestDatabaseCandidates(t *testing.T) {
	root := tree(t, map[string]string{
		"x/store.a.sqlite": "", "x/store.2.sqlite": "", "x/store.a.sqlite-wal": "", "x/other.sqlite": "", "x/store.d.sqlite/": "",
		"agents/a/agent/openclaw-agent.b.sqlite": "",
	})
	for store, want := range map[string][]string{
		"/x/store.json":                    {"/x/store.sqlite", "/x/store.2.sqlite", "/x/store.a.sqlite"},
		"/x/store.sqlite":                  {"/x/store.sqlite"},
		"/nowhere/store.json":              {"/nowhere/store.sqlite"},
		"/agents/a/sessions/sessions.json": {"/agents/a/agent/openclaw-agent.sqlite"},
	} {
		var got []string
		for _, path := range config.DatabaseCandidates(root + store) {
			got = append(got, strings.TrimPrefix(path, root))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", store, d)
		}
	}
}

func TestDiskAgents(t *testing.T) {
	files := map[string]string{
		"s/openclaw.json":                         "{agents: {list: [{id: 'work'}, {id: 'far'}]}, session: {store: '@/t/agents/{agentId}/sessions/sessions.json'}}",
		"s/agents/work/sessions/sessions.json":    "{}",
		"s/agents/Ghost/sessions/sessions.json":   "{}",
		"s/agents/MAIN/sessions/":                 "",
		"s/agents/日本/sessions/sessions.json":      "{}",
		"s/agents/db/agent/openclaw-agent.sqlite": "",
		"s/agents/empty/":                         "",
		"s/agents/_a/sessions/x.jsonl":            "",
		"s/agents/a-1/sessions/":                  "",
		"s/agents/file":                           "",
		"t/agents/far/sessions/sessions.json":     "{}",
		"elsewhere/linked/sessions/sessions.json": "{}",
		"elsewhere/store.json":                    "{}",
		"s/agents/linkstore/sessions/":            "",
	}
	root := tree(t, files)
	must(t, os.Symlink("../../elsewhere/linked", filepath.Join(root, "s/agents/linked")))
	must(t, os.Symlink("../../../../elsewhere/store.json", filepath.Join(root, "s/agents/linkstore/sessions/sessions.json")))
	c, err := config.Load(options(root, map[string]string{"OPENCLAW_STATE_DIR": "@/s"}))
	must(t, err)
	var got []string
	for _, a := range c.DiskAgents() {
		line := a.ID + " " + strings.TrimPrefix(a.Dir, root)
		for name, there := range map[string]bool{"store": a.Store != ""} {
			if there {
				line += " " + name
			}
		}
		if a.Sessions != "" {
			line += " sessions"
		}
		if a.Database != "" {
			line += " database"
		}
		if a.Configured {
			line += " configured"
		}
		got = append(got, line)
	}
	want := []string{
		"far /t/agents/far store sessions configured",
		"_a /s/agents/_a sessions",
		"a-1 /s/agents/a-1 sessions",
		"db /s/agents/db database",
		"ghost /s/agents/Ghost store sessions",
		"linkstore /s/agents/linkstore sessions",
		"main /s/agents/MAIN sessions",
		"work /s/agents/work store sessions configured",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestUnits(t *testing.T) {
	const day = 86400e3
	for text, want := range map[string]float64{
		"30d": 30 * day, " 12H ": day / 2, "1d12h": 1.5 * day, "1.5h": 5400e3, "90": 90 * day, "0": 0, "5m5s": 305e3, "1500ms": 1500, "0.4ms": 0, "1.5": 1.5 * day, "1h1h": 7200e3,
	} {
		if got, ok := config.ParseDuration(text, "d"); !ok || got != want {
			t.Errorf("%q: got %v %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", " ", "1w", "-1d", "+1d", "1d 12h", "1d12", "12h30", ".5h", "1.h", "1e3", "d", "1dh", "999999999999d", "Infinity", "1.5.5h", "1d-"} {
		if got, ok := config.ParseDuration(text, "d"); ok {
			t.Errorf("%q: got %v", text, got)
		}
	}
	for text, want := range map[string]float64{"500": 500, "10mb": 10 << 20, " 1.5G ": 1.5 * (1 << 30), "1k": 1024, "2TB": 2 << 40, "0": 0, "7b": 7} {
		if got, ok := config.ParseSize(text); !ok || got != want {
			t.Errorf("%q: got %v %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "10 mb", "10xb", "-5", "1e3", "mb", ".5mb", strings.Repeat("9", 400)} {
		if got, ok := config.ParseSize(text); ok {
			t.Errorf("%q: got %v", text, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-9.smhd kbgt-]{0,8}`).Draw(t, "text")
		for _, parse := range []func() (float64, bool){
			func() (float64, bool) { return config.ParseDuration(text, "d") },
			func() (float64, bool) { return config.ParseSize(text) },
		} {
			if n, ok := parse(); ok && (n < 0 || n != math.Trunc(n)) {
				t.Fatalf("%q gives %v", text, n)
			}
		}
	})
}
