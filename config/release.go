package config

import (
	"math"
	"slices"
	"strings"

	"oc/store/lazy"
	"oc/store/span"
)

// Release says which OpenClaw's rules a question is answered by.
type Release uint8

// The releases that oc follows. What 2026.8.2 does beyond its own model is taken to be as in 2026.9.6.
const (
	Release735 Release = iota // 2026.7.35, the last one with sessions.json
	Release82                 // 2026.8.2
	Release96                 // 2026.9.6
)

func (r Release) sqlite() bool { return r != Release735 }

// model is what the release uses when the configuration names none; the provider is always openai.
func (r Release) model() string { return [...]string{"gpt-5.5", "gpt-5.6-sol", "gpt-6-astra"}[r] }

// aliases96 are the short names of models that changed in 2026.9.6.
var aliases96 = map[string]map[string]string{
	"anthropic": {
		"fable": "claude-fable-5-1", "fable-5": "claude-fable-5", "fable-5.1": "claude-fable-5-1", "fable-5-1": "claude-fable-5-1",
		"haiku": "claude-haiku-4-5", "opus-5.5": "claude-opus-5-5", "opus-5-5": "claude-opus-5-5", "opus-5": "claude-opus-5", "opus": "claude-opus-5",
		"opus-4.8": "claude-opus-4-8", "opus-4.7": "claude-opus-4-7", "opus-4.6": "claude-opus-4-6",
		"mythos-5": "claude-mythos-5", "sonnet-5": "claude-sonnet-5", "sonnet": "claude-sonnet-5", "sonnet-4.6": "claude-sonnet-4-6",
	},
	"xai": {
		"grok-4.3-latest": "grok-4.3", "grok-4.5-latest": "grok-4.5", "grok-build-latest": "grok-4.5",
		"grok-4-fast-reasoning": "grok-4-fast", "grok-4-1-fast-reasoning": "grok-4-1-fast",
	},
}

// normalize96 is a provider and a model in canonical form.
func normalize96(provider, model string) modelRef {
	provider = providerID(provider)
	model = span.Trim(model)
	if strings.HasPrefix(span.Lower(model), provider+"/") {
		model = model[len(provider)+1:]
	}
	if own, changed := aliases96[provider]; changed {
		if to, ok := own[span.Lower(model)]; ok {
			model = to
		}
		return modelRef{provider, model}
	}
	return modelRef{provider, modelID(provider, model)}
}

// parse96 reads a reference, strictly: a slash without something on both sides is none.
func parse96(text, provider string) (modelRef, bool) {
	text = span.Trim(text)
	if text == "" {
		return modelRef{}, false
	}
	if span.Lower(text) == "openrouter:auto" {
		return normalize96("openrouter", "auto"), true
	}
	before, after, found := strings.Cut(text, "/")
	if !found {
		return normalize96(provider, text), true
	}
	before, after = span.Trim(before), span.Trim(after)
	if before == "" || after == "" {
		return modelRef{}, false
	}
	return normalize96(before, after), true
}

// resolve96 is resolve by the rules of 2026.9.6: a model beside a provider is that provider's, whatever slashes are in it.
func (m *models) resolve96(in ModelInput) (modelRef, string) {
	fallback, source := m.byDefault96(in)
	provider, override := "", span.Trim(in.ModelOverride)
	if in.HasProviderOverride {
		provider = span.Trim(in.ProviderOverride)
	}
	if override != "" {
		text := override
		if prefix := provider + "/"; provider != "" {
			if len(override) > len(prefix) && span.Lower(override[:len(prefix)]) == span.Lower(prefix) && span.Trim(override[len(prefix):]) != "" {
				override = span.Trim(override[len(prefix):])
			}
			text = prefix + override
		}
		if ref, ok := parse96(text, fallback.provider); ok {
			return ref, "override"
		}
		if provider == "" {
			provider = fallback.provider
		}
		return modelRef{provider, override}, "override"
	}
	if in.Model == "" {
		return fallback, source
	}
	ref := modelRef{in.ModelProvider, in.Model}
	if in.ModelProvider == "" {
		var ok bool
		if ref, ok = parse96(in.Model, fallback.provider); !ok {
			ref = modelRef{fallback.provider, in.Model}
		}
	}
	return m.throughCLI96(ref, fallback), "entry"
}

func (m *models) byDefault96(in ModelInput) (modelRef, string) {
	text, source := m.fallback, "defaults"
	if own, ok := m.byID[NormalizeAgentID(in.Agent)]; ok && in.Agent != "" {
		text, source = own, "agent"
	}
	if ref, ok := parse96(text, builtInProvider); ok {
		return ref, source
	}
	return modelRef{builtInProvider, in.Release.model()}, "built-in"
}

func (m *models) throughCLI96(ref, fallback modelRef) modelRef {
	if !m.isCLI(ref.provider) {
		return ref
	}
	parsed, ok := parse96(ref.model, fallback.provider)
	if ok && strings.Contains(ref.model, "/") && !m.isCLI(parsed.provider) {
		return parsed
	}
	if inferred := m.infer(ref.model); inferred != "" && !m.isCLI(inferred) {
		return modelRef{inferred, ref.model}
	}
	if ok && !m.isCLI(parsed.provider) {
		return parsed
	}
	if ok {
		ref.model = parsed.model
	}
	return modelRef{fallback.provider, ref.model}
}

// Models of Anthropic's with a window of a million tokens, which nothing but the configuration makes smaller: of the fifth generation
// also when its own program runs them.
var (
	fifth  = lazy.Regexp(`^opus(?:-5)?$|(?:^|-)claude-(?:opus|sonnet)-5(?:$|[^a-z0-9])|^claude-fable-5(?:$|[^a-z0-9])`)
	fourth = lazy.Regexp(`^claude-(?:opus-4[-.][678]|sonnet-4[-.]6|mythos-5(?:$|[^a-z0-9]))`)
)

// million is the window of such a model, else 0.
func million(provider, model string) float64 {
	family := span.Lower(model[strings.LastIndexByte(model, '/')+1:])
	own := provider == "anthropic" || provider == "anthropic-vertex"
	if (own || provider == "claude-cli") && fifth().MatchString(family) || own && fourth().MatchString(family) {
		return 1e6
	}
	return 0
}

// window96 is the context window by the rules of 2026.9.6, which look at the provider too, unless a program runs the model.
func (m *models) window96(ref modelRef, runtime string, release Release) (tokens float64, source string) {
	provider := providerID(ref.provider)
	fixed := 0.0
	if !m.isCLI(runtime) {
		fixed = million(provider, ref.model)
	}
	if p := m.provider(provider); p != nil {
		at := slices.IndexFunc(p.models, func(e providerModel) bool { return e.id == ref.model })
		if at >= 0 {
			own := p.models[at]
			limit := math.Inf(1)
			for _, n := range []float64{own.limit, own.window, fixed} {
				if n > 0 {
					limit = min(limit, n)
				}
			}
			if own.limit > 0 || own.window > 0 {
				return limit, "model"
			}
		}
	}
	if fixed > 0 {
		return fixed, "release"
	}
	if n, ok := m.given[ref.model]; ok {
		return n, "model"
	}
	fallback, _ := m.byDefault96(ModelInput{Release: release})
	if n, ok := m.given[fallback.model]; ok {
		return n, "default-model"
	}
	return builtInWindow, "built-in"
}
