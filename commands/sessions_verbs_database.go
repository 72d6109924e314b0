package commands

import (
	"context"
	"fmt"
	"path/filepath"

	"oc/config"
	"oc/maintenance"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/agentdb"
)

// changeRows does a verb to sessions that are in a database, or plans it.
func (c *Call) changeRows(ctx context.Context, cfg *config.Config, v verb, x *changed, dry bool) {
	plan := func(s *maintenance.Snapshot) (*maintenance.Plan, error) { return v.rows(cfg, s, x.keys) }
	switch {
	case v.goes:
		x.done, x.err = c.inDatabase(ctx, cfg, x.target, x.from.Path, maintenance.Alone(x.keys...), dry, func(d *maintenance.Database) (*maintenance.Plan, []journal.Step, error) {
			if v.database != nil {
				return v.database(d, x.keys)
			}
			return maintenance.DeleteFromDatabase(ctx, d, x.keys)
		})
	case dry:
		x.done, x.err = c.rehearseRows(ctx, x, plan)
	default:
		x.done, x.err = c.applyRows(ctx, cfg, x, plan)
	}
	if x.err != nil {
		x.err = changeError(x.err, x.done)
	}
}

// rehearseRows plans without applying.
func (c *Call) rehearseRows(ctx context.Context, x *changed, plan func(*maintenance.Snapshot) (*maintenance.Plan, error)) (*maintenance.Done, error) {
	return maintenance.PlanSessions(ctx, x.target, x.from.Path, x.keys, c.Now, plan)
}

// applyRows plans and applies.
func (c *Call) applyRows(ctx context.Context, cfg *config.Config, x *changed, plan func(*maintenance.Snapshot) (*maintenance.Plan, error)) (*maintenance.Done, error) {
	w := c.holding(ctx, cfg)
	defer func() { c.group = w.Group }()
	return w.ApplySessions(ctx, x.target, x.from.Path, x.keys, plan)
}

// workspace is the directory that a transcript of an agent begins in, as OpenClaw says it in the header of one.
func workspace(cfg *config.Config, agent string) string {
	if a, ok := cfg.Agent(agent); ok {
		if dir, ok := a.Entry.At("workspace").Str(); ok && dir != "" {
			return dir
		}
	}
	if node, ok := cfg.Value("agents", "defaults"); ok {
		if dir, ok := node.At("workspace").Str(); ok && dir != "" {
			return dir
		}
	}
	return filepath.Join(cfg.StateDir, fmt.Sprintf("workspace-%s", agent))
}

// unbury are the archives of a database that a word, or the key of a row, means.
func (c *Call) unbury(ctx context.Context, s *store.Sessions, word string) (all []maintenance.Buried, err error) {
	err = agentdb.Read(ctx, s.Path, func(db *agentdb.DB) error {
		all, err = maintenance.Unbury(ctx, db, s.Path, word)
		return err
	})
	return all, err
}

// exhume restores a session of a database from an archive.
func (c *Call) exhume(ctx context.Context, cfg *config.Config, s *store.Sessions, b maintenance.Buried, word string) error {
	all := []changed{{cleaned: cleaned{target: s.Target}, from: s}}
	x := &all[0]
	v := verb{past: "restored", closed: "it has no call that brings back an archive"}
	v.rows = func(_ *config.Config, s *maintenance.Snapshot, _ []string) (*maintenance.Plan, error) {
		plan, key, err := maintenance.Exhume(s, b, c.Now())
		x.keys, x.inferred, x.instead = []string{key}, true, ""
		if b.Key != "" && key != b.Key {
			x.instead = b.Key
		}
		return plan, err
	}
	return c.apply(ctx, cfg, v, all, word)
}
