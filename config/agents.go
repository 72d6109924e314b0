package config

import (
	"slices"
	"strings"

	"oc/config/json5"
	"oc/store/span"
)

// MainAgent is the agent of an installation that names none.
const MainAgent = "main"

// Agent is an entry of the configuration's list of agents.
type Agent struct {
	ID      string // normalised
	RawID   string // as written
	Default bool   // marked as the default
	Entry   *Node  // all that is said about it
}

// NormalizeAgentID gives the form of an agent's id that paths and session keys have (spec/file-store.md 1.5): lower case, other
// characters than a-z, 0-9, "_" and "-" replaced, 64 characters at most, never empty.
func NormalizeAgentID(id string) string {
	trimmed := span.Trim(id)
	if lowered := strings.ToLower(trimmed); plainAgentID(trimmed) {
		return lowered
	}
	var out strings.Builder
	gap := false
	for _, r := range span.Lower(trimmed) {
		if !agentRune(r) {
			gap = true
			continue
		}
		if gap {
			out.WriteByte('-')
		}
		gap = false
		out.WriteRune(r)
	}
	normal := strings.Trim(out.String(), "-")
	if normal = normal[:min(len(normal), 64)]; normal == "" {
		return MainAgent
	}
	return normal
}

// plainAgentID reports an id that only wants lower case.
func plainAgentID(id string) bool {
	if id == "" || len(id) > 64 || id[0] == '-' || id[0] == '_' {
		return false
	}
	for _, r := range id {
		if !agentRune(r) && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return true
}

func agentRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

// readAgents lists the entries of agents.entries (2026.9.6), or else of agents.list, as they stand.
func (c *Config) readAgents() []Agent {
	var all []Agent
	add := func(id string, entry *Node) {
		all = append(all, Agent{ID: NormalizeAgentID(id), RawID: id, Default: entry.At("default").truthy(), Entry: entry})
	}
	if entries := c.root.At("agents", "entries"); entries != nil {
		for _, m := range entries.Members {
			add(m.Key, m.Value)
		}
		return all
	}
	if list := c.root.At("agents", "list"); list != nil {
		for _, entry := range list.Items {
			id, _ := entry.At("id").Str()
			add(id, entry)
		}
	}
	return all
}

// Agents returns the configured agents, each id once, in the order of the configuration; main alone if there are none.
func (c *Config) Agents() []Agent {
	var out []Agent
	for _, a := range c.agents {
		if !slices.ContainsFunc(out, func(b Agent) bool { return a.ID == b.ID }) {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return []Agent{{ID: MainAgent, RawID: MainAgent, Entry: &Node{Kind: json5.Object}}}
	}
	return out
}

// Agent returns the configured agent with the id, which is normalised first.
func (c *Config) Agent(id string) (Agent, bool) {
	id = NormalizeAgentID(id)
	for _, a := range c.Agents() {
		if a.ID == id {
			return a, true
		}
	}
	return Agent{}, false
}

// DefaultAgent returns the id of the agent that a command means when none is named: the first one marked as default, else the first.
func (c *Config) DefaultAgent() string {
	for _, a := range c.agents {
		if a.Default {
			return a.ID
		}
	}
	return c.Agents()[0].ID
}

// StoreAgents returns the ids of all agents that have a session store by configuration: the agents, and those that acp names.
func (c *Config) StoreAgents() []string {
	var ids []string
	add := func(id string) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	acp := func(n *Node) {
		if id, _ := n.Str(); span.Trim(id) != "" && span.Trim(id) != "*" {
			add(NormalizeAgentID(id))
		}
	}
	for _, a := range c.Agents() {
		add(a.ID)
	}
	acp(c.root.At("acp", "defaultAgent"))
	if allowed := c.root.At("acp", "allowedAgents"); allowed != nil {
		for _, id := range allowed.Items {
			acp(id)
		}
	}
	for _, a := range c.agents {
		if kind, _ := a.Entry.At("runtime", "type").Str(); kind != "acp" {
			continue
		}
		named := a.Entry.At("runtime", "acp", "agent")
		if named == nil {
			named = &Node{Kind: json5.String, Text: a.RawID}
		}
		acp(named)
	}
	return ids
}
