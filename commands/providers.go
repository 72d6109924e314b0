package commands

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"oc/config"
	"oc/store"
	"oc/transcript/compaction"
	"oc/transcript/provider"
)

// providerFlag names who writes, one after the other.
func providerFlag(help string) Flag {
	return Flag{Name: "provider", Value: "WHO", Help: help, Takes: "extract, exec:COMMAND or openai:URL#MODEL", Check: isProvider, Repeatable: true, Told: toldProvider}
}

func isProvider(s string) bool { _, err := providerOf(s, 0, ""); return err == nil }

// providerOf is the provider that a word names.
func providerOf(s string, wait time.Duration, key string) (provider.Provider, error) {
	kind, rest, _ := strings.Cut(strings.TrimSpace(s), ":")
	switch kind {
	case "extract":
		if rest == "" {
			return provider.Extract{}, nil
		}
	case "exec":
		if words := strings.Fields(rest); len(words) > 0 {
			return provider.Exec{Command: words, Timeout: wait}, nil
		}
	case "openai":
		base, model, _ := strings.Cut(rest, "#")
		if u, err := url.Parse(base); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && model != "" {
			return provider.OpenAI{Base: base, Model: model, Timeout: wait, Key: key}, nil
		}
	}
	return nil, errors.New("no provider is called " + toldProvider(s))
}

// toldProvider is the word that names a provider as it may stand in a manifest or a message: without the name and the password of an
// address, and without the arguments of a command, in which secrets may stand.
func toldProvider(s string) string {
	kind, rest, _ := strings.Cut(strings.TrimSpace(s), ":")
	switch kind {
	case "exec":
		if words := strings.Fields(rest); len(words) > 1 {
			return kind + ":" + words[0] + " ..."
		}
	case "openai":
		base, model, _ := strings.Cut(rest, "#")
		return kind + ":" + provider.Address(base) + "#" + model
	}
	return s
}

// providers are those that the command line names, or else the one of the configuration, where oc can ask it.
func (c *Call) providers(s compaction.Settings) (all []provider.Provider, err error) {
	wait := time.Duration(s.TimeoutSecond * float64(time.Second))
	for _, word := range c.Strings("provider") {
		p, err := providerOf(word, wait, c.Env("OC_PROVIDER_KEY"))
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if id := s.Provider; len(all) == 0 && id != "" {
		p, err := providerOf(id, wait, c.Env("OC_PROVIDER_KEY"))
		if _, runs := p.(provider.Exec); err != nil || runs { // a command is run only where the command line names it
			c.Notef("agents.defaults.compaction.provider is %s, a plugin of OpenClaw, which oc cannot ask; --provider names another", toldProvider(id))
		} else {
			all = append(all, p)
		}
	}
	return all, nil
}

// rules are the sections of the workspace's AGENTS.md that agents.defaults.compaction.postCompactionSections names; "" for none.
func (c *Call) rules(cfg *config.Config, agent string, s compaction.Settings) string {
	if len(s.Sections) == 0 {
		return ""
	}
	path := filepath.Join(workspaceOf(cfg, agent), "AGENTS.md")
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
		c.Notef("agents.defaults.compaction.postCompactionSections names sections of %s, which cannot be read", path)
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		c.Notef("agents.defaults.compaction.postCompactionSections names sections of %s, which cannot be read: %v", path, err)
		return ""
	}
	return strings.Join(compaction.Sections(strings.ToValidUTF8(string(text), "\uFFFD"), s.Sections), "\n\n")
}

// workspaceOf is the directory that an agent works in, as 2026.7.35 and 2026.9.6 find it.
func workspaceOf(cfg *config.Config, agent string) string {
	dir := ""
	if a, ok := cfg.Agent(agent); ok {
		dir, _ = a.Entry.At("workspace").Str()
	}
	alone := agent == cfg.DefaultAgent() // it has what is said for all; below that are the others
	if n, ok := cfg.Value("agents", "ownership"); ok {
		said, _ := n.Str()
		alone = alone && said != "explicit"
	}
	if at, ok := cfg.Value("agents", "defaults", "workspace"); ok && strings.TrimSpace(dir) == "" {
		if dir, _ = at.Str(); strings.TrimSpace(dir) != "" && !alone {
			dir = filepath.Join(strings.TrimSpace(dir), agent)
		}
	}
	switch dir = strings.TrimSpace(dir); {
	case dir == "" && agent == cfg.DefaultAgent():
		return filepath.Join(cfg.StateDir, "workspace")
	case dir == "":
		return filepath.Join(cfg.StateDir, "workspace-"+agent)
	case dir == "~" || strings.HasPrefix(dir, "~/"):
		return filepath.Join(cfg.Home, dir[1:])
	}
	return dir
}

// asking says how providers are asked about a session.
func (c *Call) asking(cfg *config.Config, ask []provider.Provider, s compaction.Settings, window int) store.Summarizer {
	how := store.Summarizer{Providers: ask, Settings: s, Window: window, Mask: func(s string) string { return s }}
	if !c.Bool("raw") {
		how.Mask = c.redactor(cfg).Show
	}
	return how
}
