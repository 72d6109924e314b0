package store

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"oc/config"
)

// A Target is the sessions of one agent, or of all that share a store, and
// where they may be.
type Target struct {
	Agent     string   // the agent that rows without one in their key belong to
	Index     string   // the sessions.json; "" where only a database was named
	Databases []string // where the database may be, the likeliest first
	Named     bool     // by its path: that store is meant, whatever else there is
}

// A Pick says which sessions a command is about.
type Pick struct {
	Agent string // of this configured agent
	All   bool   // of every configured agent
	Store string // in this file, template or database
}

// An UnknownAgent is an agent that the configuration does not have.
type UnknownAgent struct {
	ID     string
	Known  []string
	OnDisk string // the store that is there all the same; "" for none
}

func (e *UnknownAgent) Error() string {
	if e.OnDisk != "" {
		return fmt.Sprintf("the agent %q is on disk but not in the configuration; name its store instead: --store %s", e.ID, e.OnDisk)
	}
	return fmt.Sprintf("there is no agent %q in the configuration; it has %s", e.ID, strings.Join(e.Known, ", "))
}

// Targets are the stores that a pick means, each path once, in the order of
// the configuration (spec/file-store.md 1.7, release 2026.7.35). The error is
// an *UnknownAgent.
func Targets(c *config.Config, p Pick) ([]Target, error) {
	switch {
	case p.Store != "":
		return []Target{named(c, p.Store)}, nil
	case p.All:
		var out []Target
		for _, id := range c.StoreAgents() {
			t := target(c, id)
			if !slices.ContainsFunc(out, func(o Target) bool { return o.Index == t.Index }) {
				out = append(out, t)
			}
		}
		return out, nil
	case p.Agent != "":
		a, ok := c.Agent(p.Agent)
		if !ok {
			return nil, unknown(c, p.Agent)
		}
		return []Target{target(c, a.ID)}, nil
	}
	return []Target{target(c, c.DefaultAgent())}, nil
}

func target(c *config.Config, agent string) Target {
	return Target{Agent: agent, Index: c.StorePath(agent), Databases: c.DatabasePaths(agent)}
}

func named(c *config.Config, path string) Target {
	agent := c.DefaultAgent()
	index := c.StorePathFor(path, agent)
	t := Target{Agent: agent, Index: index, Databases: []string{config.DatabasePath(index)}, Named: true}
	if strings.HasSuffix(index, ".sqlite") {
		t.Index = ""
	}
	return t
}

func unknown(c *config.Config, agent string) error {
	e := &UnknownAgent{ID: agent}
	for _, a := range c.Agents() {
		e.Known = append(e.Known, a.ID)
	}
	id := config.NormalizeAgentID(agent)
	for _, d := range Strangers(c) {
		if d.ID == id {
			if e.OnDisk = d.Store; e.OnDisk == "" {
				e.OnDisk = d.Database
			}
		}
	}
	return e
}

// Strangers are the agents that are on disk but not in the configuration.
func Strangers(c *config.Config) []config.DiskAgent {
	return slices.DeleteFunc(c.DiskAgents(), func(d config.DiskAgent) bool {
		return d.Configured || d.Store == "" && d.Database == "" && d.Sessions == ""
	})
}

// A Stranger is an agent that is on disk but not in the configuration.
type Stranger struct {
	Target
	Path string // of its store, else of its transcripts
	Rows int    // -1: its store cannot be read
}

// CountStrangers counts the rows of the agents that are not configured. With a
// configuration that cannot be read nobody knows which these are: none.
func CountStrangers(ctx context.Context, c *config.Config) (out []Stranger) {
	if c.Broken {
		return nil
	}
	for _, t := range StrangerTargets(c) {
		s, err := Open(ctx, c, t)
		n := Stranger{Target: t, Path: s.Path, Rows: len(s.Rows)}
		switch {
		case err != nil:
			n.Rows = -1
		case s.Era == NoEra && s.Transcripts() == 0:
			continue // an empty directory is nobody's
		}
		out = append(out, n)
	}
	return out
}

// StrangerTargets are the stores of the agents that are not configured.
func StrangerTargets(c *config.Config) (out []Target) {
	for _, d := range Strangers(c) {
		t := Target{Agent: d.ID, Index: d.Store}
		if d.Database != "" {
			t.Databases = []string{d.Database}
		}
		if t.Index == "" {
			t.Index = filepath.Join(d.Dir, "sessions", config.StoreFile)
		}
		out = append(out, t)
	}
	return out
}
