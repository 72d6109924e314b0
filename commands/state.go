package commands

import (
	"errors"
	"os/user"
	"slices"
	"strings"

	"oc/config"
	"oc/store"
)

// load finds the state that the flags and the environment mean and reads its configuration. What OpenClaw would refuse in it is told
// once, on standard error, and does not stop reading.
func (c *Call) load() (*config.Config, error) {
	cfg, err := c.loadQuietly()
	if err != nil {
		return nil, err
	}
	for _, w := range cfg.Warnings {
		c.Warnf("configuration: %s", w.String())
	}
	return cfg, nil
}

// loadQuietly leaves it to the command to tell what OpenClaw would refuse.
func (c *Call) loadQuietly() (*config.Config, error) {
	home := ""
	if c.Env("HOME") == "" { // nobody says where it is: ask the system
		if u, err := user.Current(); err == nil {
			home = u.HomeDir
		}
	}
	cfg, err := config.Load(config.Options{
		Env: c.Env, Cwd: c.Dir, Home: home,
		StateDir: c.String("state-dir"), ConfigFile: c.String("config"), Profile: c.String("profile"), Dev: c.Bool("dev"),
	})
	var wrong *config.UsageError
	if errors.As(err, &wrong) {
		return nil, Usagef("%s: %s", wrong.Flag, wrong.Reason)
	}
	return cfg, err
}

// The flags that say which sessions a command is about.
var (
	agentFlag     = Flag{Name: "agent", Value: "ID", Takes: "the id of an agent", Check: isSomething, Help: "the sessions of this agent; without it those of the default agent"}
	anyAgentFlag  = Flag{Name: "agent", Value: "ID", Takes: "the id of an agent", Check: isSomething, Help: "only the sessions of this agent; without it those of all agents"}
	allAgentsFlag = Flag{Name: "all-agents", Help: "the sessions of every configured agent"}
	bothErasFlag  = Flag{Name: "both-eras", Help: "also what the other era holds, where both hold sessions; each part is marked with its era, and what both have is shown once"}
	storeFlag     = Flag{Name: "store", Value: "PATH", Help: "the sessions in this sessions.json or openclaw-agent.sqlite"}
)

// targets are the stores that --agent, --all-agents and --store mean; those of all agents where all is true.
func (c *Call) targets(cfg *config.Config, all bool) ([]store.Target, error) {
	p := store.Pick{Agent: c.String("agent"), All: all, Store: c.String("store")}
	switch {
	case p.All && p.Agent != "":
		return nil, Usagef("--agent and --all-agents exclude each other; give one of them")
	case p.Store != "" && (p.All || p.Agent != ""):
		return nil, Usagef("--store names the sessions by itself and cannot be combined with --agent or --all-agents")
	}
	targets, err := store.Targets(cfg, p)
	var unknown *store.UnknownAgent
	if errors.As(err, &unknown) {
		return nil, Usagef("--agent: %w", err)
	}
	return targets, err
}

// meant is the agent that a key without one belongs to: that of --agent, or of the store of --store, else the default one.
func (c *Call) meant(cfg *config.Config) string {
	if c.Given("agent") {
		return config.NormalizeAgentID(c.String("agent"))
	}
	if path := c.String("store"); path != "" {
		targets, _ := store.Targets(cfg, store.Pick{All: true})
		for _, t := range append(targets, store.StrangerTargets(cfg)...) {
			index := cfg.StorePathFor(path, t.Agent)
			if t.Index == index || slices.Contains(t.Databases, index) {
				return t.Agent
			}
		}
	}
	return cfg.DefaultAgent()
}

// asWritten refuses an agent that --agent names only once it is bent into shape: what is changed is what was named.
func (c *Call) asWritten(cfg *config.Config) error {
	said := strings.TrimSpace(c.String("agent"))
	a, ok := cfg.Agent(said)
	if !c.Given("agent") || !ok || said == a.RawID || strings.EqualFold(said, a.ID) {
		return nil
	}
	return Usagef("--agent: there is no agent %q; give --agent %s if that one is meant", said, a.ID)
}

// nowMs is the clock in epoch milliseconds.
func (c *Call) nowMs() float64 { return float64(c.Now().UnixMilli()) }
