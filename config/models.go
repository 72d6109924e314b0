package config

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"oc/config/json5"
	"oc/store/span"
)

const (
	builtInProvider = "openai"
	builtInWindow   = 200_000 // tokens
)

// ModelInput is what a row says about its model. Text fields are as in the entry after OpenClaw's normalisation on load
// (spec/file-store.md 2.3): Model and ModelProvider are trimmed and empty if they are absent or blank.
type ModelInput struct {
	KeyAgent string // the second ":" segment of a key that starts with "agent:", as it is written; empty for other keys
	Agent    string // the id of the agent that the row belongs to

	ProviderOverride    string
	HasProviderOverride bool // the entry has a providerOverride that is a string, maybe blank
	ModelOverride       string
	Model               string
	ModelProvider       string // counts only beside a Model, as OpenClaw drops it otherwise

	Release Release // whose rules count; the zero value is 2026.7.35
}

// ModelAnswer is what the list command shows for a row (spec/file-store.md 6.3), compared with 2026.7.35 and 2026.9.6 on random rows.
// Rows that an ACP runtime has, and rows of 2026.9.6 that name their own runtime, are the caller's.
type ModelAnswer struct {
	Provider string
	Model    string
	Source   string // "override" and "entry" of the row, "agent" and "defaults" of the configuration, "built-in" of the release

	ContextTokens float64 // the window for a row that has none of its own, in tokens
	ContextSource string  // "defaults", "model" or "default-model" of the configuration, "release" or "built-in"

	RuntimeID     string
	RuntimeSource string // "model" or "provider" if the configuration names one, else "implicit"
	RuntimeLabel  string // as the text table shows it
}

// Model answers for one row. Answers are remembered by their input, so that a store of many rows costs a look-up each.
func (c *Config) Model(in ModelInput) ModelAnswer {
	m := c.models
	m.mu.RLock()
	answer, known := m.memo[in]
	m.mu.RUnlock()
	if known {
		return answer
	}
	answer = m.answer(in)
	m.mu.Lock()
	if len(m.memo) >= maxMemo {
		clear(m.memo)
	}
	m.memo[in] = answer
	m.mu.Unlock()
	return answer
}

// maxMemo bounds what is remembered, for stores whose rows are all different.
const maxMemo = 4096

// models is the part of the configuration that decides about models, read once.
type models struct {
	mu   sync.RWMutex
	memo map[ModelInput]ModelAnswer

	agents    map[string]string  // the id of an agent as written -> its model; absent if the first such entry names none
	byID      map[string]string  // the same by normalised id
	fallback  string             // agents.defaults.model
	context   *float64           // agents.defaults.contextTokens
	windows   map[string]float64 // by model, with the size that 2026.7.35 gives to windows without one
	given     map[string]float64 // by model, only what the configuration says
	cli       map[string]bool    // providers that are programs on this machine
	refs      []modelRef         // the keys of agents.defaults.models
	policies  policies
	providers []provider
}

type modelRef struct{ provider, model string }

// provider is an entry of models.providers.
type provider struct {
	name    string // normalised
	raw     string
	runtime string
	models  []providerModel
	node    *Node
}

type providerModel struct {
	id, runtime string
	limit       float64 // contextTokens of the model, 0 if it is not given
	window      float64 // contextWindow of the model, 0 if it is not given
}

func newModels(c *Config) *models {
	m := &models{memo: map[ModelInput]ModelAnswer{}, agents: map[string]string{}, byID: map[string]string{}, cli: map[string]bool{}}
	seen := map[string]bool{}
	for _, a := range c.agents {
		if primary := configuredModel(a.Entry.At("model")); !seen[a.RawID] && primary != "" {
			m.agents[a.RawID] = primary
		}
		seen[a.RawID] = true
	}
	for _, a := range c.Agents() {
		if primary := configuredModel(a.Entry.At("model")); primary != "" {
			m.byID[a.ID] = primary
		}
	}
	defaults := c.root.At("agents", "defaults")
	m.fallback = configuredModel(defaults.At("model"))
	if n, ok := defaults.At("contextTokens").Num(); ok {
		m.context = &n
	}
	m.readProviders(c.root.At("models", "providers"))
	if byKey := defaults.At("models"); byKey != nil {
		for _, e := range byKey.Members {
			if ref, ok := configuredRef(e.Key); ok {
				m.refs = append(m.refs, ref)
			}
		}
	}
	m.readCLI(c, defaults.At("cliBackends"))
	m.policies = readPolicies(c, defaults.At("models"))
	return m
}

// configuredModel is the model of an agent or of the defaults, a string or an object with primary, in canonical form.
func configuredModel(n *Node) string {
	if n != nil && n.Kind == json5.Object {
		n = n.At("primary")
	}
	text, _ := n.Str()
	return canonicalRef(text)
}

// readProviders reads models.providers: ids in canonical form, and context windows by model id.
func (m *models) readProviders(providers *Node) {
	if providers == nil {
		return
	}
	// A cap set by hand (contextTokens) and the size of a window (contextWindow) are kept apart, of each the last one counts: the
	// smaller one of both is the answer, for they may come from the entries of one model at two providers.
	limits, sizes := map[string]float64{}, map[string]float64{}
	ownLimits, ownSizes := map[string]float64{}, map[string]float64{} // of 2026.9.6, which takes the first entry of a provider
	for _, p := range providers.Members {
		if p.Value.Kind != json5.Object {
			continue
		}
		entry := provider{name: providerID(p.Key), raw: p.Key, runtime: runtimeOf(p.Value), node: p.Value}
		if list := p.Value.At("models"); list != nil {
			for _, item := range list.Items {
				text, ok := item.At("id").Str()
				if !ok {
					continue
				}
				e := providerModel{id: catalogModelID(p.Key, text), runtime: runtimeOf(item)}
				e.limit, _ = item.At("contextTokens").Num()
				e.window, _ = item.At("contextWindow").Num()
				again := slices.ContainsFunc(entry.models, func(have providerModel) bool { return have.id == e.id })
				entry.models = append(entry.models, e)
				switch {
				case again:
				case e.limit > 0:
					ownLimits[e.id] = e.limit
				case e.window > 0:
					ownSizes[e.id] = e.window
				}
				limit := item.At("contextTokens")
				if _, ok := limit.Num(); !ok {
					limit = p.Value.At("contextTokens")
				}
				if n, _ := limit.Num(); n > 0 {
					limits[e.id] = n
					continue
				}
				sizes[e.id] = builtInWindow
				if e.window > 0 {
					sizes[e.id] = e.window
				}
			}
		}
		m.providers = append(m.providers, entry)
	}
	m.windows, m.given = smaller(limits, sizes), smaller(ownLimits, ownSizes)
}

// smaller joins two maps; of what both have the smaller one counts.
func smaller(a, b map[string]float64) map[string]float64 {
	out := maps.Clone(a)
	for id, n := range b {
		if have, both := out[id]; !both || n < have {
			out[id] = n
		}
	}
	return out
}

// readCLI finds the providers that are programs: those of agents.defaults.cliBackends, and those of OpenClaw's own plugins.
func (m *models) readCLI(c *Config, backends *Node) {
	if backends != nil {
		for _, b := range backends.Members {
			m.cli[providerID(b.Key)] = true
		}
	}
	for id, plugin := range map[string]string{"claude-cli": "anthropic", "google-gemini-cli": "google"} {
		if pluginEnabled(c.root.At("plugins"), plugin) {
			m.cli[id] = true
		}
	}
}

// pluginEnabled says whether a plugin that OpenClaw brings along, and enables unless told otherwise, is enabled.
func pluginEnabled(plugins *Node, id string) bool {
	has := func(list *Node) bool {
		return list != nil && slices.ContainsFunc(list.Items, func(n *Node) bool { return span.Trim(n.Text) == id })
	}
	allow := plugins.At("allow")
	return !plugins.At("enabled").False() && !has(plugins.At("deny")) && !plugins.At("entries", id, "enabled").False() &&
		(allow == nil || len(allow.Items) == 0 || has(allow))
}

func (m *models) isCLI(provider string) bool { return m.cli[providerID(provider)] }

// splitRef splits provider/model at the first slash; a text that is no such reference is a model of the given provider.
func splitRef(text, provider, builtIn string) modelRef {
	text = span.Trim(text)
	if text == "" {
		return modelRef{provider, builtIn}
	}
	before, after, found := strings.Cut(text, "/")
	if !found || before == "" || after == "" {
		return modelRef{provider, text}
	}
	ref := modelRef{span.Trim(before), span.Trim(after)}
	if ref.provider == "" {
		ref.provider = provider
	}
	if ref.model == "" {
		ref.model = builtIn
	}
	return ref
}

// byDefault is the model of a row that names none, and who says so.
func (m *models) byDefault(keyAgent, builtIn string) (modelRef, string) {
	if own, ok := m.agents[keyAgent]; ok && keyAgent != "" {
		return splitRef(own, builtInProvider, builtIn), "agent"
	}
	if m.fallback != "" {
		return splitRef(m.fallback, builtInProvider, builtIn), "defaults"
	}
	return modelRef{builtInProvider, builtIn}, "built-in"
}

func (m *models) answer(in ModelInput) ModelAnswer {
	if in.Model == "" {
		in.ModelProvider = ""
	}
	ref, source := m.resolve(in)
	if in.Release.sqlite() {
		ref, source = m.resolve96(in)
	}
	out := ModelAnswer{Provider: ref.provider, Model: ref.model, Source: source}
	runs := ref
	if runs.provider == "" || runs.model == "" {
		runs = m.agentDefault(in)
	}
	out.RuntimeID, out.RuntimeSource = m.runtime(runs, in.Agent, in.Release)
	out.RuntimeLabel = m.label(in, out)
	out.ContextTokens, out.ContextSource = m.window(ref.model, in.Release.model())
	if in.Release.sqlite() {
		out.ContextTokens, out.ContextSource = m.window96(ref, out.RuntimeID, in.Release)
	}
	return out
}

func (m *models) resolve(in ModelInput) (modelRef, string) {
	fallback, source := m.byDefault(in.KeyAgent, in.Release.model())
	if override := span.Trim(in.ModelOverride); override != "" {
		provider := fallback.provider
		if in.HasProviderOverride {
			provider = span.Trim(in.ProviderOverride)
		}
		if prefix := provider + "/"; in.HasProviderOverride && provider != "" && len(override) >= len(prefix) && span.Lower(override[:len(prefix)]) == span.Lower(prefix) {
			if rest := span.Trim(override[len(prefix):]); rest != "" {
				override = rest
			}
		}
		return splitRef(override, provider, in.Release.model()), "override"
	}
	if in.Model == "" {
		return fallback, source
	}
	provider := in.ModelProvider
	if provider == "" {
		provider = fallback.provider
	}
	return m.throughCLI(splitRef(in.Model, provider, in.Release.model()), fallback, in.Release.model()), "entry"
}

// throughCLI shows a model that a program on this machine ran as that of the provider whose model it is.
func (m *models) throughCLI(ref, fallback modelRef, builtIn string) modelRef {
	if !m.isCLI(ref.provider) {
		return ref
	}
	parsed := splitRef(ref.model, fallback.provider, builtIn)
	if strings.Contains(ref.model, "/") && !m.isCLI(parsed.provider) {
		return parsed
	}
	if inferred := m.infer(ref.model); inferred != "" && !m.isCLI(inferred) {
		return modelRef{inferred, ref.model}
	}
	if !m.isCLI(parsed.provider) {
		return parsed
	}
	if fallback.provider != "" {
		ref.provider = fallback.provider
	}
	return modelRef{ref.provider, parsed.model}
}

// infer finds the one provider that the configuration has the bare model at; empty if there is none, or more than one.
func (m *models) infer(model string) string {
	model = span.Trim(model)
	if model == "" {
		return ""
	}
	same := func(id string) bool { return span.Lower(span.Trim(id)) == span.Lower(model) }
	found := ""
	add := func(provider string) bool {
		provider = providerID(provider)
		if provider == "" || provider == found {
			return true
		}
		unique := found == ""
		found = provider
		return unique
	}
	for _, ref := range m.refs {
		if same(ref.model) && !add(ref.provider) {
			return ""
		}
	}
	for _, p := range m.providers {
		for _, e := range p.models {
			if (same(e.id) || same(catalogModelID(p.raw, span.Trim(e.id)))) && !add(p.raw) {
				return ""
			}
		}
	}
	return found
}

// window is the context window of a row that has none of its own.
func (m *models) window(model, builtIn string) (tokens float64, source string) {
	if m.context != nil {
		return *m.context, "defaults"
	}
	if n, ok := m.windows[model]; ok {
		return n, "model"
	}
	fallback, _ := m.byDefault("", builtIn)
	if n, ok := m.windows[fallback.model]; ok {
		return n, "default-model"
	}
	return builtInWindow, "built-in"
}
