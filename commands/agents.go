package commands

import (
	"context"
	"fmt"
	"strings"

	"oc/commands/term"
	"oc/config"
	"oc/maintenance"
	"oc/store"
	"oc/store/jsonfile"
	"oc/store/span"
)

func agents() *Command {
	return &Command{
		Name:  "agents",
		Short: "the agents of the installation and their stores",
		Long:  "Without a further word it lists them, as oc agents list does.",
		Run:   listAgents,
		Sub: []*Command{agentsDelete(), {
			Name:  "list",
			Short: "list agents with their era, store, rows and bytes",
			Long: "Lists the configured agents and those that are only on disk: which era keeps their sessions, where, how many rows there are against the limit, and how many bytes " +
				"of each class of file against the disk budget.",
			Examples: []Example{{"oc agents list", "all agents"}, {"oc agents list --json", "with the bytes of every class of file"}},
			Run:      listAgents,
		}},
	}
}

// agentFacts is one agent as agents list and status show it.
type agentFacts struct {
	id         string
	configured bool
	isDefault  bool
	sessions   *store.Sessions
	usage      *store.Usage
	limits     limits
	err        error
}

// surveyAgents opens the store of every agent, configured or on disk.
func (c *Call) surveyAgents(ctx context.Context, cfg *config.Config) (all []agentFacts) {
	policy, warnings, err := maintenance.ReadPolicy(cfg, maintenance.Orders{})
	if err != nil && !cfg.Broken { // a broken configuration was told already
		c.Warnf("the limits are unknown: %v", err)
	}
	for _, w := range warnings {
		if cfg.Sound(strings.Split(w.KeyPath, ".")...) { // else the configuration's own warning has said it
			c.Warnf("configuration: %s", w.String())
		}
	}
	targets, _ := store.Targets(cfg, store.Pick{All: true}) // only --agent can be unknown
	add := func(t store.Target, configured bool) {
		s, err := store.Open(ctx, cfg, t)
		all = append(all, agentFacts{id: t.Agent, configured: configured, isDefault: t.Agent == cfg.DefaultAgent(), sessions: s, usage: store.Measure(t), limits: limitsOf(cfg, policy, s), err: err})
	}
	for _, t := range targets {
		add(t, true)
	}
	for _, t := range store.StrangerTargets(cfg) {
		add(t, false)
	}
	return all
}

func listAgents(ctx context.Context, c *Call) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	all := c.surveyAgents(ctx, cfg)
	if c.JSON() {
		err := c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("stateDir").String(cfg.StateDir)
			p.Key("agents").Array()
			for i := range all {
				all[i].print(p)
			}
			p.End()
			agentFailures(all).print(p)
			p.End()
			return nil
		})
		if err != nil {
			return err
		}
		return c.agentRemarks(cfg, all)
	}
	agentTable(c, all)
	return c.agentRemarks(cfg, all)
}

// agentRemarks tells what is to know of the stores; the answer is partial where one could not be read.
func (c *Call) agentRemarks(cfg *config.Config, all []agentFacts) error {
	for _, a := range all {
		c.remark(a.sessions)
	}
	for _, run := range store.Imports(cfg.StateDir) {
		if !run.Done && !run.Restored {
			c.Warnf("an import of sessions into the database did not end (agents %s); see %s", strings.Join(run.Agents, ", "), run.Manifest)
		}
	}
	return c.tell(agentFailures(all))
}

// agentFailures are the stores and directories that could not be read.
func agentFailures(all []agentFacts) (f failures) {
	for _, a := range all {
		f.add(a.sessions, a.err)
		for _, err := range a.usage.Problems {
			f = append(f, failure{a.id, a.usage.Directory, fmt.Errorf("agent %s: %w", a.id, err)})
		}
	}
	return f
}

func agentTable(c *Call, all []agentFacts) {
	t := c.Out.Table(
		term.Column{Head: "Agent", Cut: term.End, Min: 12}, term.Column{Head: "Era"}, term.Column{Head: "Rows", Right: true}, term.Column{Head: "Live", Right: true},
		term.Column{Head: "Archives", Right: true}, term.Column{Head: "Sidecars", Right: true, Drop: 1}, term.Column{Head: "Temp", Right: true, Drop: 2},
		term.Column{Head: "Database", Right: true}, term.Column{Head: "WAL", Right: true, Drop: 3}, term.Column{Head: "Total", Right: true},
	)
	stranger := false
	for _, a := range all {
		name := a.id
		if !a.configured {
			name, stranger = name+" *", true
		}
		class := func(all ...jsonfile.Class) string {
			var n int64
			for _, k := range all {
				n += a.usage.Classes[k].Bytes
			}
			return bytesOrDash(n)
		}
		era, rows := string(a.sessions.Era), a.limits.rowsOf(len(a.sessions.Rows))
		if a.err != nil {
			rows = term.Unknown
		}
		if a.sessions.Era == store.NoEra {
			rows = "-"
		}
		t.Row(name, era, rows, class(jsonfile.Live), class(jsonfile.Archive), class(jsonfile.Sidecar, jsonfile.Checkpoint), class(jsonfile.Temp, jsonfile.Lock),
			bytesOrDash(a.usage.Database), bytesOrDash(a.usage.WAL), a.limits.bytesOf(a.usage.Total()))
	}
	t.End()
	if stranger {
		c.Out.Printf("* on disk, but not in the configuration\n")
	}
}

func bytesOrDash(n int64) string {
	if n == 0 {
		return "-"
	}
	return term.Bytes(n)
}

func (a *agentFacts) print(p *span.Printer) {
	s, u := a.sessions, a.usage
	p.Object()
	p.Key("agentId").String(a.id)
	p.Key("configured").Bool(a.configured)
	p.Key("default").Bool(a.isDefault)
	p.Key("era").String(string(s.Era))
	optional(p, "store", s.Path)
	if s.Era == store.SQLiteEra {
		p.Key("schema").Int(int64(s.Schema.UserVersion))
	}
	if s.Quarantine != "" {
		p.Key("quarantine").String(s.Quarantine)
	}
	if p.Key("rows"); a.err != nil {
		p.Null()
		p.Key("error").String(a.err.Error())
	} else {
		p.Int(int64(len(s.Rows)))
	}
	a.limits.print(p)
	p.Key("skippedRows").Int(int64(len(s.Skipped)))
	p.Key("bytes").Object()
	for _, k := range []jsonfile.Class{jsonfile.Store, jsonfile.Live, jsonfile.Archive, jsonfile.Checkpoint, jsonfile.Sidecar, jsonfile.Lock, jsonfile.Temp, jsonfile.Prompt, jsonfile.Other} {
		p.Key(string(k)).Int(u.Classes[k].Bytes)
	}
	if p.Key("database"); u.Database < 0 {
		p.Null()
	} else {
		p.Int(u.Database)
	}
	p.Key("wal").Int(u.WAL)
	p.Key("importArchive").Int(u.Imported.Bytes)
	p.Key("total").Int(u.Total())
	p.End()
	p.Key("files").Object()
	for _, k := range []jsonfile.Class{jsonfile.Live, jsonfile.Archive, jsonfile.Checkpoint, jsonfile.Sidecar, jsonfile.Lock, jsonfile.Temp, jsonfile.Prompt, jsonfile.Other} {
		p.Key(string(k)).Int(int64(u.Classes[k].Files))
	}
	p.End()
	if s.Other != nil {
		p.Key("otherEra").Object()
		otherEra(p, s.Other)
		p.End()
	}
	p.End()
}
