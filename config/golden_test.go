package config_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oc/config"
	"oc/config/json5"
)

// golden is a recorded run of `openclaw sessions` of 2026.7.35: the files, the environment, and what it printed.
type golden struct {
	Name  string            `json:"name"`
	Env   map[string]string `json:"env"`
	Args  []string          `json:"args"`
	Files []struct {
		Path    string `json:"path"`
		Text    string `json:"text"`
		Symlink string `json:"symlink"`
		Dir     bool   `json:"dir"`
	} `json:"files"`
	Expect struct {
		Exit int `json:"exit"`
		JSON *struct {
			Path   *string `json:"path"`
			Stores []struct {
				AgentID string `json:"agentId"`
				Path    string `json:"path"`
			} `json:"stores"`
			Sessions []map[string]any `json:"sessions"`
		} `json:"json"`
		Stderr string `json:"stderr"`
	} `json:"expect"`
}

func goldens(t *testing.T) []golden {
	t.Helper()
	paths, err := filepath.Glob("testdata/golden/*.json")
	if err != nil || len(paths) < 15 {
		t.Fatalf("found %d recorded runs: %v", len(paths), err)
	}
	var all []golden
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var g golden
		if err := json.Unmarshal(data, &g); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, g)
	}
	return all
}

// lay puts the files of a run below root and returns the options it ran with.
func (g golden) lay(t *testing.T, root string) config.Options {
	t.Helper()
	at := func(s string) string { return strings.ReplaceAll(s, "@ROOT@", root) }
	for _, f := range g.Files {
		path := filepath.Join(root, f.Path)
		if f.Dir {
			must(t, os.MkdirAll(path, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if f.Symlink != "" {
			must(t, os.Symlink(f.Symlink, path))
			continue
		}
		must(t, os.WriteFile(path, []byte(at(f.Text)), 0o644))
	}
	o := config.Options{Cwd: filepath.Join(root, "cwd"), Env: func(name string) string { return at(g.Env[name]) }}
	for i, arg := range g.Args {
		switch arg {
		case "--profile":
			o.Profile = g.Args[i+1]
		case "--dev":
			o.Dev = true
		}
	}
	return o
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (g golden) arg(name string) (string, bool) {
	for i, arg := range g.Args {
		if arg == name && i+1 < len(g.Args) {
			return g.Args[i+1], true
		}
	}
	return "", false
}

func (g golden) has(name string) bool {
	for _, arg := range g.Args {
		if arg == name {
			return true
		}
	}
	return false
}

func TestRecordedRuns(t *testing.T) {
	rows := 0
	for _, g := range goldens(t) {
		t.Run(g.Name, func(t *testing.T) {
			root := t.TempDir()
			c, err := config.Load(g.lay(t, root))
			var usage *config.UsageError
			if errors.As(err, &usage) != (g.Expect.Exit == 2) {
				t.Fatalf("got %v, recorded exit %d: %s", err, g.Expect.Exit, g.Expect.Stderr)
			}
			if err != nil {
				return
			}
			if strings.Contains(g.Expect.Stderr, "config is invalid") != (len(c.Warnings) > 0) && g.Name != "cfg-mainkey-scope-global" && g.Name != "cfg-env-missing" {
				t.Errorf("warnings %v, recorded %q", c.Warnings, g.Expect.Stderr)
			}
			if g.Expect.JSON == nil {
				return
			}
			doc := g.Expect.JSON
			var stores, want []string
			if g.has("--all-agents") {
				seen := map[string]bool{}
				for _, agent := range c.StoreAgents() {
					if path := c.StorePath(agent); !seen[path] {
						seen[path] = true
						stores = append(stores, agent+" "+path)
					}
				}
				for _, s := range doc.Stores {
					want = append(want, s.AgentID+" "+s.Path)
				}
			} else {
				agent := c.DefaultAgent()
				if named, ok := g.arg("--agent"); ok {
					agent = named
				}
				path := c.StorePath(agent)
				if named, ok := g.arg("--store"); ok {
					path = c.StorePathFor(strings.ReplaceAll(named, "@ROOT@", root), agent)
				}
				stores, want = []string{path}, []string{*doc.Path}
			}
			for i := range want {
				want[i] = strings.ReplaceAll(want[i], "@ROOT@", root)
			}
			if d := cmp.Diff(want, stores); d != "" {
				t.Error(d)
			}
			rows += len(doc.Sessions)
			g.compareRows(t, c)
		})
	}
	if rows < 60 {
		t.Errorf("only %d rows were compared", rows)
	}
}

// compareRows answers for every row that was printed, from the entry in the store.
func (g golden) compareRows(t *testing.T, c *config.Config) {
	entries := map[string]map[string]*json5.Node{}
	for _, f := range g.Files {
		doc, err := json5.Parse([]byte(f.Text)) // encoding/json refuses the 1e400 of some stores
		if f.Dir || f.Symlink != "" || err != nil {
			continue
		}
		for _, row := range doc.Root.Members {
			entry := map[string]*json5.Node{}
			for _, field := range row.Value.Members {
				entry[field.Key] = field.Value
			}
			entries[row.Key] = entry
		}
	}
	for _, row := range g.Expect.JSON.Sessions {
		key := row["key"].(string)
		entry := entries[key]
		in := config.ModelInput{Agent: row["agentId"].(string)}
		if parts := strings.SplitN(key, ":", 3); parts[0] == "agent" && len(parts) > 1 {
			in.KeyAgent = parts[1]
		}
		text := func(name string) string {
			if n := entry[name]; n != nil && n.Kind == json5.String {
				return n.Text
			}
			return ""
		}
		in.Model, in.ModelProvider = strings.TrimSpace(text("model")), strings.TrimSpace(text("modelProvider"))
		if in.Model == "" {
			in.ModelProvider = ""
		}
		in.ModelOverride, in.ProviderOverride = text("modelOverride"), text("providerOverride")
		in.HasProviderOverride = entry["providerOverride"] != nil
		got := c.Model(in)
		want := []any{row["modelProvider"], row["model"], row["agentRuntime"].(map[string]any)["id"], row["agentRuntime"].(map[string]any)["source"]}
		if d := cmp.Diff(want, []any{got.Provider, got.Model, got.RuntimeID, got.RuntimeSource}); d != "" {
			t.Errorf("%s: %s", key, d)
		}
		if own := entry["contextTokens"]; (own == nil || own.Kind == json5.Null) && got.ContextTokens != row["contextTokens"] {
			t.Errorf("%s: context %v, want %v", key, got.ContextTokens, row["contextTokens"])
		}
	}
}
