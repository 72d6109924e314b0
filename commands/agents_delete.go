package commands

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"oc/config"
	"oc/gateway"
	"oc/maintenance"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/row"
)

func agentsDelete() *Command {
	return &Command{
		Name:  "delete",
		Args:  "ID",
		Short: "remove an agent's sessions and directory",
		Long: "Removes the rows and transcripts of an agent and its directory below agents, with all that is in it, its database too; oc undo brings all of it back. In a store that several agents " +
			"share, or in a database elsewhere, its sessions are deleted as oc sessions delete does it. Its entry and its bindings in the configuration, and its workspace, are left as they are, and told. The default agent " +
			"stays, and so does one with a session that is in use. It asks on a terminal, and needs --yes elsewhere.\n\n" +
			"A running gateway does it as openclaw agents delete does: it also takes the agent's entry and its bindings out of the configuration and moves its directory and its workspace to " +
			"the trash, but for a workspace that another agent has too. What goes beyond oc's own plan is told, and --dry-run foretells it. Of a database the files are copied before, and what " +
			"the state knows of the agent, its cron jobs too; oc undo, with the gateway stopped, brings that back, and the gateway no longer takes the agent for deleted.",
		Flags: []Flag{dryFlag, yesFlag, keepUndoFlag, purgeFlag, besideGatewayFlag},
		Examples: []Example{
			{"oc agents delete garden --dry-run", "what would go"},
			{"oc agents delete garden --yes", "without asking"},
		},
		Exits: verbExits,
		Run:   deleteAgent,
	}
}

func deleteAgent(ctx context.Context, c *Call) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	if cfg.Broken {
		return Refusef("the configuration %s cannot be read, so where agents keep their sessions is not known; repair it first", cfg.ConfigFile)
	}
	a, err := findAgent(cfg, c.Arg(0))
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, cfg, a.target)
	if err != nil {
		return changeError(storeError(s, err), nil)
	}
	if s.Era == store.FileEra && s.Other != nil && s.Other.Rows != 0 {
		return Refusef("agent %s has sessions in the database %s too, which OpenClaw does not read: oc migrate compare shows them; nothing was changed", a.id, s.Other.Path)
	}
	keys, inside, err := a.own(cfg, s)
	if err != nil {
		return err
	}
	walk := func(snapshot *maintenance.Snapshot) (*maintenance.Folder, error) {
		f, err := snapshot.Walk(ctx, a.dir)
		if err == nil {
			for _, path := range f.Odd {
				c.Warnf("%s stays: it is neither a file nor a directory of OpenClaw's", path)
			}
		}
		return f, err
	}
	v := verb{
		past: "deleted", asks: true, goes: (!inside || s.Era == store.SQLiteEra) && len(keys) > 0, once: true, besides: []string{cfg.ConfigFile},
		ask: func(asked) gateway.Request { return gateway.DeleteAgent{Agent: a.id} },
	}
	v.plan = func(snapshot *maintenance.Snapshot, keys []string) (*maintenance.Plan, error) {
		f, err := walk(snapshot)
		if err != nil {
			return nil, err
		}
		return maintenance.RemoveAgent(snapshot, keys, f, c.Now())
	}
	v.database = func(d *maintenance.Database, keys []string) (*maintenance.Plan, []journal.Step, error) {
		f, err := walk(d.Snapshot)
		if err != nil {
			return nil, nil, err
		}
		return maintenance.RemoveAgentDatabase(ctx, d, keys, f, cfg.StateDir, c.machine())
	}
	// A gateway takes more than oc does; what is left is asked again then.
	v.leaves = func() []leftover {
		if cfg, err = c.load(); err != nil {
			return nil
		}
		return a.left(cfg)
	}
	return c.apply(ctx, cfg, v, []changed{{cleaned: cleaned{target: a.target}, from: s, keys: keys, left: a.left(cfg)}}, fmt.Sprintf("agent %s with %s (through a running gateway also its place in the configuration and its workspace)", a.id, plural(len(keys), "session", "sessions")))
}

// own are the keys of an agent's sessions in its store, and whether that lies in its directory and goes with it.
func (a *oneAgent) own(cfg *config.Config, s *store.Sessions) (keys []string, inside bool, err error) {
	path := a.target.Index
	if s.Era == store.SQLiteEra {
		path = s.Path
	}
	inside = strings.HasPrefix(path, a.dir+string(filepath.Separator))
	others := sharers(cfg, a.id, path)
	if inside && s.Era == store.SQLiteEra && len(others) > 0 {
		return nil, inside, Refusef("the database %s in the directory of agent %s is that of agent %s too; nothing was changed: delete its sessions by their keys with oc sessions delete", path, a.id, others[0])
	}
	for i := range s.Rows {
		of := row.KeyAgent(s.Rows[i].Key)
		switch {
		case of == a.id || inside && of == "":
			keys = append(keys, s.Rows[i].Key)
		case inside && len(others) > 0:
			return nil, inside, Refusef("the store %s in the directory of agent %s keeps sessions of agent %s too, such as %s; nothing was changed", path, a.id, of, s.Rows[i].Key)
		case inside:
			keys = append(keys, s.Rows[i].Key)
		}
	}
	return keys, inside, nil
}

// oneAgent is an agent, configured or on disk.
type oneAgent struct {
	id     string
	dir    string // its own below agents, there or not
	target store.Target
}

func findAgent(cfg *config.Config, word string) (a oneAgent, err error) {
	a.id = config.NormalizeAgentID(word)
	if a.id == cfg.DefaultAgent() || a.id == config.MainAgent {
		return a, Refusef("agent %s is the one that OpenClaw falls back to, so it is not deleted", a.id)
	}
	a.dir = filepath.Join(cfg.StateDir, "agents", a.id)
	disk := cfg.DiskAgents()
	if i := slices.IndexFunc(disk, func(d config.DiskAgent) bool { return d.ID == a.id }); i >= 0 {
		a.dir = disk[i].Dir
	}
	for _, t := range store.StrangerTargets(cfg) {
		if t.Agent == a.id {
			a.target = t
		}
	}
	agent, configured := cfg.Agent(a.id)
	if configured {
		targets, err := store.Targets(cfg, store.Pick{Agent: a.id})
		if err != nil {
			return a, err
		}
		a.target = targets[0]
	}
	// An id is not bent into shape here: what goes is what was named.
	if said := strings.TrimSpace(word); a.target.Index == "" || !strings.EqualFold(said, a.id) && (!configured || said != agent.RawID) {
		return a, Failf("there is no agent %q in the configuration or on disk; oc agents list shows those that there are", word)
	}
	return a, nil
}

// sharers are the other agents that keep their sessions in a store of an agent.
func sharers(cfg *config.Config, agent, path string) []string {
	return slices.DeleteFunc(cfg.StoreAgents(), func(id string) bool {
		return id == agent || cfg.StorePath(id) != path && !slices.Contains(cfg.DatabasePaths(id), path)
	})
}

// workspaceSharers are the other agents whose workspace is an agent's, in it or around it: a gateway leaves it then (releases 2026.7.35 and 2026.9.6).
func workspaceSharers(cfg *config.Config, agent, dir string) (with []string) {
	real := func(dir string) string {
		if at, err := filepath.EvalSymlinks(dir); err == nil {
			dir = at
		}
		return filepath.Clean(dir) + string(filepath.Separator)
	}
	for _, other := range cfg.Agents() {
		if its := real(workspaceOf(cfg, other.ID)); other.ID != agent && (strings.HasPrefix(its, real(dir)) || strings.HasPrefix(real(dir), its)) {
			with = append(with, other.ID)
		}
	}
	return with
}

// left is what stays of an agent: where the configuration speaks of it, and its workspace.
func (a *oneAgent) left(cfg *config.Config) (all []leftover) {
	say := func(n *config.Node, what string) {
		path, line, _ := n.Place()
		all = append(all, leftover{what: fmt.Sprintf("%s (%s, line %d)", what, path, line), file: path})
	}
	if agent, ok := cfg.Agent(a.id); ok {
		say(agent.Entry, "its entry in the configuration")
		dir, said := agent.Entry.At("workspace").Str()
		if !said {
			dir = workspaceOf(cfg, a.id)
			_, err := os.Stat(dir)
			said = err == nil
		}
		if said {
			what := leftover{what: "its workspace " + dir, dir: dir}
			if with := workspaceSharers(cfg, a.id, dir); len(with) > 0 {
				what.what, what.held = what.what+", which is also that of "+strings.Join(with, ", "), true
			}
			all = append(all, what)
		}
		if dir := cfg.AgentDir(a.id); !strings.HasPrefix(dir, a.dir+string(filepath.Separator)) {
			all = append(all, leftover{what: "its directory " + dir})
		}
	}
	if list, ok := cfg.Value("bindings"); ok {
		for _, n := range list.Items {
			if id, ok := n.At("agentId").Str(); ok && config.NormalizeAgentID(id) == a.id {
				say(n, "a binding to it")
			}
		}
	}
	if list, ok := cfg.Value("tools", "agentToAgent", "allow"); ok {
		for _, n := range list.Items {
			if id, ok := n.Str(); ok && config.NormalizeAgentID(id) == a.id {
				say(n, "its place in tools.agentToAgent.allow")
			}
		}
	}
	return all
}
