package config

import (
	"net/url"
	"slices"
	"strings"

	"oc/store/span"
)

// policy is a runtime that agents.list[].models or agents.defaults.models names for a model.
type policy struct {
	key     string
	ref     modelRef // of the key
	isRef   bool
	runtime string
}

// policies are the runtimes by scope: of agents, and of the defaults.
type policies struct {
	agents   map[string][]policy
	defaults []policy
}

func readPolicies(c *Config, defaults *Node) policies {
	p := policies{agents: map[string][]policy{}, defaults: readPolicy(defaults)}
	for _, a := range c.agents {
		if _, known := p.agents[a.ID]; !known {
			p.agents[a.ID] = readPolicy(a.Entry.At("models"))
		}
	}
	return p
}

func readPolicy(byKey *Node) []policy {
	var out []policy
	if byKey == nil {
		return nil
	}
	for _, m := range byKey.Members {
		key := canonicalRef(m.Key)
		ref, ok := catalogRef(key)
		if runtime := runtimeOf(m.Value); runtime != "" {
			out = append(out, policy{span.Trim(key), ref, ok, runtime})
		}
	}
	return out
}

func runtimeOf(n *Node) string {
	id, _ := n.At("agentRuntime", "id").Str()
	return span.Trim(id)
}

// runtime is what runs a model of an agent: what the configuration names, in the order of model, provider's model, provider's
// wildcard and provider; else codex for OpenAI's own service, and auto.
func (m *models) runtime(ref modelRef, agent string, release Release) (id, source string) {
	id, source = m.policy(ref, agent, release)
	switch id = span.Lower(id); id {
	case "pi":
		id = "openclaw"
	case "codex-app-server":
		id = "codex"
	case "", "default":
		id = "auto"
	}
	openAI := providerID(ref.provider) == builtInProvider
	if id == "auto" && release.sqlite() {
		source = "implicit"
	}
	switch {
	case id != "auto":
	case openAI && m.officialOpenAI():
		id = "codex"
	case openAI && release.sqlite():
		id = "openclaw"
	}
	return id, source
}

func (m *models) policy(ref modelRef, agent string, release Release) (id, source string) {
	const none = "implicit"
	caller := providerID(ref.provider)
	model := withoutProvider(caller, ref.model)
	if model == "" && release.sqlite() {
		model = span.Trim(ref.model)
	}
	scopes := [][]policy{m.policies.agents[NormalizeAgentID(agent)], m.policies.defaults}
	if model != "" {
		if id = m.exact(scopes, modelRef{caller, model}); id != "" {
			return id, "model"
		}
	}
	provider := m.provider(caller)
	if provider != nil && model != "" {
		at := slices.IndexFunc(provider.models, func(e providerModel) bool {
			if span.Trim(e.id) == model {
				return true
			}
			entry, ok := catalogRef(e.id)
			return ok && entry == modelRef{caller, model}
		})
		if at >= 0 && provider.models[at].runtime != "" {
			return provider.models[at].runtime, "model"
		}
	}
	for _, scope := range scopes {
		for _, p := range scope {
			if p.isRef && p.ref == (modelRef{caller, "*"}) && p.key != model && model != "*" {
				return p.runtime, "model"
			}
		}
	}
	if provider != nil && provider.runtime != "" {
		return provider.runtime, "provider"
	}
	return "", none
}

// exact finds the runtime of a model in the first scope that has one: under its full name, else under its bare one.
func (m *models) exact(scopes [][]policy, ref modelRef) string {
	for _, scope := range scopes {
		bare := ""
		for _, p := range scope {
			switch {
			case p.isRef && p.ref == ref:
				return p.runtime
			case bare == "" && p.key == ref.model:
				bare = p.runtime
			}
		}
		if bare != "" {
			return bare
		}
	}
	return ""
}

// withoutProvider takes the provider's own name off a model; a model of another provider is none of this one's.
func withoutProvider(provider, model string) string {
	model = span.Trim(model)
	before, after, found := strings.Cut(model, "/")
	if !found || before == "" {
		return model
	}
	if providerID(before) != provider {
		return ""
	}
	return span.Trim(after)
}

func (m *models) provider(name string) *provider {
	for i := range m.providers {
		if m.providers[i].raw == name {
			return &m.providers[i]
		}
	}
	for i := range m.providers {
		if m.providers[i].name == providerID(name) {
			return &m.providers[i]
		}
	}
	return nil
}

// officialOpenAI says that OpenAI's models are asked at OpenAI's own address.
func (m *models) officialOpenAI() bool {
	p := m.provider(builtInProvider)
	if p == nil {
		return true
	}
	base, _ := p.node.At("baseUrl").Str()
	if base = span.Trim(base); base == "" {
		return true
	}
	u, err := url.Parse(base)
	return err == nil && u.Scheme == "https" && strings.EqualFold(u.Hostname(), "api.openai.com") &&
		slices.Contains([]string{"", "/", "/v1", "/v1/"}, u.Path)
}

// agentDefault is the model that an agent would run by itself, for a row that names no provider.
func (m *models) agentDefault(in ModelInput) modelRef {
	primary, ok := m.byID[NormalizeAgentID(in.Agent)]
	if !ok {
		primary = m.fallback
	}
	if primary != "" {
		if ref, ok := catalogRef(primary); ok {
			return ref
		}
		if provider := m.infer(primary); provider != "" {
			return modelRef{provider, primary}
		}
		return modelRef{builtInProvider, primary}
	}
	if !slices.ContainsFunc(m.providers, func(p provider) bool { return p.raw == builtInProvider }) {
		for _, p := range m.providers {
			if len(p.models) > 0 && p.models[0].id != "" {
				return modelRef{p.raw, p.models[0].id}
			}
		}
	}
	return modelRef{builtInProvider, in.Release.model()}
}

// runtimeLabels are names that people know runtimes by.
var runtimeLabels = map[string]string{
	"openclaw": "OpenClaw Default", "codex": "OpenAI Codex", "codex-cli": "OpenAI Codex", "claude-cli": "Claude CLI", "google-gemini-cli": "Gemini CLI",
}

// label names the runtime as the text table does.
func (m *models) label(in ModelInput, out ModelAnswer) string {
	if id := out.RuntimeID; id != "" && id != "openclaw" && id != "auto" && id != "default" {
		if name, ok := runtimeLabels[id]; ok {
			return name
		}
		return id
	}
	provider := ""
	for _, name := range []string{in.ModelProvider, in.ProviderOverride, out.Provider} {
		if provider = span.Trim(name); provider != "" {
			break
		}
	}
	if provider != "" && m.isCLI(provider) {
		if name, ok := runtimeLabels[span.Lower(provider)]; ok {
			return name
		}
		return provider + " (cli)"
	}
	return runtimeLabels["openclaw"]
}
