package config

import (
	"strings"

	"oc/store/span"
)

// Providers and models have short and old names; these are the rules of 2026.7.35 for their canonical forms.

func providerID(name string) string { return span.Lower(span.Trim(name)) }

// catalogRef splits a strict provider/model reference; both parts must be there.
func catalogRef(text string) (modelRef, bool) {
	before, after, found := strings.Cut(span.Trim(text), "/")
	ref := modelRef{providerID(before), span.Trim(after)}
	return ref, found && before != "" && ref.provider != "" && ref.model != ""
}

// canonicalRef is a model of the agents section as OpenClaw holds it after loading.
func canonicalRef(text string) string {
	text = span.Trim(text)
	ref, ok := catalogRef(text)
	if !ok {
		return text
	}
	switch {
	case isGoogle(ref.provider) || strings.HasPrefix(ref.model, "google/"):
		ref.model = googleModelID(ref.model)
	case ref.provider == "together":
		ref.model = togetherModelID(ref.model)
	}
	if strings.HasPrefix(span.Lower(ref.model), ref.provider+"/") {
		return ref.model
	}
	return ref.provider + "/" + ref.model
}

// configuredRef is a key of agents.defaults.models as a reference in canonical form; wildcards and bare names are none.
func configuredRef(key string) (modelRef, bool) {
	key = canonicalRef(key)
	if !strings.Contains(key, "/") || strings.HasSuffix(key, "/*") {
		return modelRef{}, false
	}
	ref, ok := catalogRef(key)
	if !ok {
		return ref, false
	}
	if strings.HasPrefix(span.Lower(ref.model), ref.provider+"/") {
		ref.model = ref.model[len(ref.provider)+1:]
	}
	ref.model = modelID(ref.provider, ref.model)
	return ref, true
}

func isGoogle(provider string) bool {
	return provider == "google" || provider == "google-gemini-cli" || provider == "google-vertex"
}

var googleAliases = map[string]string{
	"gemini-3-pro":                  "gemini-3.1-pro-preview",
	"gemini-3-pro-preview":          "gemini-3.1-pro-preview",
	"gemini-3-flash":                "gemini-3-flash-preview",
	"gemini-3.1-pro":                "gemini-3.1-pro-preview",
	"gemini-3.1-flash-lite-preview": "gemini-3.1-flash-lite",
	"gemini-3.1-flash":              "gemini-3-flash-preview",
	"gemini-3.1-flash-preview":      "gemini-3-flash-preview",
}

// aliases are short names of models, by provider.
var aliases = map[string]map[string]string{
	"anthropic": {
		"opus-5": "claude-opus-5", "opus-4.8": "claude-opus-4-8", "opus": "claude-opus-4-8", "opus-4.6": "claude-opus-4-6",
		"mythos-5": "claude-mythos-5", "sonnet-5": "claude-sonnet-5", "sonnet": "claude-sonnet-5", "sonnet-4.6": "claude-sonnet-4-6",
	},
	"google":            googleAliases,
	"google-gemini-cli": googleAliases,
	"google-vertex":     googleAliases,
	"vercel-ai-gateway": {
		"opus-4.6": "claude-opus-4-6", "sonnet-5": "claude-sonnet-5", "sonnet": "claude-sonnet-4-6", "sonnet-4.6": "claude-sonnet-4-6",
	},
	"xai": {
		"grok-4-fast-reasoning":                          "grok-4-fast",
		"grok-4-1-fast-reasoning":                        "grok-4-1-fast",
		"grok-4.20-experimental-beta-0304-reasoning":     "grok-4.20-beta-latest-reasoning",
		"grok-4.20-experimental-beta-0304-non-reasoning": "grok-4.20-beta-latest-non-reasoning",
		"grok-4.20-reasoning":                            "grok-4.20-beta-latest-reasoning",
		"grok-4.20-non-reasoning":                        "grok-4.20-beta-latest-non-reasoning",
	},
}

func googleModelID(id string) string {
	if rest, ok := strings.CutPrefix(id, "google/"); ok {
		return "google/" + googleModelID(rest)
	}
	if id == "gemma-4-26b" {
		return "gemma-4-26b-a4b-it"
	}
	if to, ok := googleAliases[id]; ok {
		return to
	}
	return id
}

func togetherModelID(id string) string {
	if id == "moonshotai/Kimi-K2.5" {
		return "moonshotai/Kimi-K2.6"
	}
	return id
}

// modelID is a model's canonical name at a provider. Only the providers that OpenClaw has rules for lose white space.
func modelID(provider, id string) string {
	provider = providerID(provider)
	switch provider {
	case "anthropic", "huggingface":
		if id = span.Trim(id); strings.HasPrefix(span.Lower(id), provider+"/") {
			id = id[len(provider)+1:]
		}
	case "openrouter", "nvidia":
		if id = span.Trim(id); id != "" && !strings.Contains(id, "/") {
			return provider + "/" + id
		}
	case "google", "google-gemini-cli", "google-vertex", "xai":
		id = span.Trim(id)
	case "together":
		return togetherModelID(id)
	}
	if to, ok := aliases[provider][span.Lower(span.Trim(id))]; ok {
		id = to
	}
	if isGoogle(provider) {
		id = googleModelID(id)
	}
	if provider == "vercel-ai-gateway" && strings.HasPrefix(span.Lower(id), "claude-") {
		id = "anthropic/" + id
	}
	return id
}

// catalogModelID is the canonical name of an entry of models.providers.*.models.
func catalogModelID(provider, id string) string {
	id = modelID(provider, id)
	if strings.HasPrefix(id, "google/") {
		return googleModelID(id)
	}
	if ref, ok := catalogRef(id); ok && strings.HasPrefix(ref.model, "google/") {
		if to := googleModelID(ref.model); to != ref.model {
			return ref.provider + "/" + to
		}
	}
	return id
}
