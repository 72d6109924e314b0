package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oc/config"
)

// row is a row of a store and what `openclaw sessions` showed for it, under a random configuration.
type row struct {
	Key     string            `json:"key"`
	AgentID string            `json:"agentId"`
	Entry   map[string]string `json:"entry"`
	Want    []any             `json:"want"` // provider, model, context tokens, runtime, its source, and of 2026.7.35 its label
}

func (r row) input() config.ModelInput {
	in := config.ModelInput{
		Agent: r.AgentID, Model: strings.TrimSpace(r.Entry["model"]), ModelProvider: strings.TrimSpace(r.Entry["modelProvider"]),
		ModelOverride: r.Entry["modelOverride"], ProviderOverride: r.Entry["providerOverride"],
	}
	_, in.HasProviderOverride = r.Entry["providerOverride"]
	if parts := strings.SplitN(r.Key, ":", 3); parts[0] == "agent" {
		in.KeyAgent = parts[1]
	}
	return in
}

func TestModelsOfRecordedRows(t *testing.T) {
	for file, release := range map[string]config.Release{"models-2026.7.35.json": config.Release735, "models-2026.9.6.json": config.Release96} {
		data, err := os.ReadFile("testdata/" + file)
		must(t, err)
		var cases []struct {
			Config json.RawMessage `json:"config"`
			Rows   []row           `json:"rows"`
		}
		must(t, json.Unmarshal(data, &cases))
		n := 0
		for i, c := range cases {
			conf := parse(t, string(c.Config))
			for _, r := range c.Rows {
				in := r.input()
				in.Release = release
				a := conf.Model(in)
				got := []any{a.Provider, a.Model, a.ContextTokens, a.RuntimeID, a.RuntimeSource, a.RuntimeLabel}[:len(r.Want)]
				if d := cmp.Diff(r.Want, got); d != "" {
					t.Errorf("%s, configuration %d, %s %v: %s", file, i, r.Key, r.Entry, d)
				}
				n++
			}
		}
		if n < 350 {
			t.Errorf("%s: only %d rows", file, n)
		}
	}
}

func TestModelSources(t *testing.T) {
	text := `{agents: {list: [{id: 'Work', model: 'xai/grok-4'}], defaults: {model: {primary: 'anthropic/opus'}}},
		models: {providers: {anthropic: {models: [{id: 'opus', contextTokens: 5000}]}, xai: {agentRuntime: {id: 'pi'}, models: [{id: 'grok-4', contextWindow: 7000}]}}}}`
	for _, c := range []struct {
		text string
		in   config.ModelInput
		want config.ModelAnswer
	}{
		{"{}", config.ModelInput{}, config.ModelAnswer{"openai", "gpt-5.5", "built-in", 200000, "built-in", "codex", "implicit", "OpenAI Codex"}},
		{"{}", config.ModelInput{Release: config.Release96}, config.ModelAnswer{"openai", "gpt-6-astra", "built-in", 200000, "built-in", "codex", "implicit", "OpenAI Codex"}},
		{"{agents: {defaults: {contextTokens: 9}}}", config.ModelInput{Model: "m", ModelProvider: "p"}, config.ModelAnswer{"p", "m", "entry", 9, "defaults", "auto", "implicit", "OpenClaw Default"}},
		{text, config.ModelInput{KeyAgent: "Work", Agent: "work"}, config.ModelAnswer{"xai", "grok-4", "agent", 7000, "model", "openclaw", "provider", "OpenClaw Default"}},
		{text, config.ModelInput{KeyAgent: "work", Agent: "work"}, config.ModelAnswer{"anthropic", "opus", "defaults", 200000, "built-in", "auto", "implicit", "OpenClaw Default"}},
		{text, config.ModelInput{ModelOverride: "Xai/y", ProviderOverride: "xai", HasProviderOverride: true}, config.ModelAnswer{"xai", "y", "override", 200000, "built-in", "openclaw", "provider", "OpenClaw Default"}},
	} {
		if d := cmp.Diff(c.want, parse(t, c.text).Model(c.in)); d != "" {
			t.Errorf("%+v: %s", c.in, d)
		}
	}
}

func BenchmarkModel(b *testing.B) {
	c := parse(b, "{agents: {defaults: {model: 'anthropic/claude-opus-4-6', models: {'openai/gpt-5.5': {}}}}}")
	inputs := make([]config.ModelInput, 64)
	for i := range inputs {
		inputs[i] = config.ModelInput{KeyAgent: "main", Agent: "main", Model: fmt.Sprintf("model-%d", i%8), ModelProvider: "anthropic"}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.Model(inputs[i%len(inputs)])
	}
}

func BenchmarkModelUnknown(b *testing.B) {
	c := parse(b, "{agents: {defaults: {model: 'anthropic/claude-opus-4-6', models: {'openai/gpt-5.5': {}}}}}")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.Model(config.ModelInput{Model: fmt.Sprint("m", i), ModelProvider: "claude-cli"})
	}
}

func BenchmarkLoad(b *testing.B) {
	root := tree(b, map[string]string{"s/openclaw.json": "{agents: {list: [{id: 'main'}, {id: 'work'}]}, session: {maintenance: {pruneAfter: '30d'}}}"})
	o := options(root, map[string]string{"OPENCLAW_STATE_DIR": root + "/s"})
	for b.Loop() {
		if _, err := config.Load(o); err != nil {
			b.Fatal(err)
		}
	}
}
