package config

import (
	"regexp"
	"slices"
	"strings"

	"oc/config/json5"
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

var (
	validAgent  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	notInAgents = regexp.MustCompile(`[^a-z0-9_-]+`)
)

// NormalizeAgentID gives the form of an agent's id that paths and session keys have (spec/file-store.md 1.5): lower case, other
// characters than a-z, 0-9, "_" and "-" replaced, 64 characters at most, never empty.
func NormalizeAgentID(id string) string {
	id = trim(id)
	normal := lower(id)
	if !validAgent.MatchString(id) {
		normal = strings.Trim(notInAgents.ReplaceAllString(normal, "-"), "-")
		normal = normal[:min(len(normal), 64)]
	}
	if normal == "" {
		return MainAgent
	}
	return normal
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
		if id, _ := n.Str(); trim(id) != "" && trim(id) != "*" {
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
