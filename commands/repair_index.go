package commands

import (
	"context"
	"errors"
	"fmt"

	"oc/commands/term"
	"oc/maintenance"
	"oc/maintenance/doctor"
	"oc/store"
	"oc/store/span"
)

func repairIndex() *Command {
	return &Command{
		Name:  "index",
		Short: "make a lost or damaged index of sessions anew, from copies of it",
		Long: "Takes the rows of the newest copy of sessions.json that lies beside it: what a write that did not end has left, or a backup. Where the index is cut, its rows before the cut are " +
			"newer and count. A session that no copy has comes back where its trajectory names its key, marked as inferred; no key is invented, so that other transcripts stay unlinked.\n\n" +
			"The damaged index is kept beside the new one as sessions.json.corrupt-<time>, and oc undo brings it back. An index that is sound is left alone.",
		Flags: []Flag{
			{Name: "agent", Value: "ID", Takes: "the id of an agent", Check: isSomething, Help: "the index of this agent; without it that of the default agent"},
			storeFlag,
			{Name: "source", Value: "NAME", Takes: "the name of a copy", Check: isSomething, Help: "take this copy instead of the newest"},
			dryFlag,
		},
		Examples: []Example{
			{"oc repair index --dry-run", "which copies there are, and the rows that would come back"},
			{"oc repair index --agent work", "make the index of an agent anew"},
		},
		Exits: []int{ExitBusy, ExitRefused},
		Run:   runRepairIndex,
	}
}

func runRepairIndex(ctx context.Context, c *Call) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	targets, err := c.targets(cfg, false)
	if err != nil {
		return err
	}
	t := targets[0]
	if t.Index == "" {
		return Usagef("--store names a database; oc repair index is for a sessions.json")
	}
	if s, err := store.Open(ctx, cfg, store.Target{Agent: t.Agent, Databases: t.Databases}); len(t.Databases) > 0 && err == nil && s.Era == store.SQLiteEra && !t.Named {
		return Refusef("the sessions of %s are in the database %s, which has no index of files; nothing was changed", t.Agent, s.Path)
	}
	dry := c.Bool("dry-run")
	if !dry {
		if err := c.alone(ctx, cfg, "making an index anew", ""); err != nil {
			return err
		}
	}
	policy := maintenance.Alone()
	policy.Beside = true
	var sources []maintenance.Source
	plan := func(s *maintenance.Snapshot) (p *maintenance.Plan, err error) {
		if p, sources, err = maintenance.Rebuild(s, c.String("source"), c.Now()); err == nil {
			err = maintenance.Reachable(cfg, t.Index, maintenance.Alone())
		}
		return p, err
	}
	x := doctor.Mended{Agent: t.Agent, Store: t.Index}
	if dry {
		x.Done, x.Err = c.rehearsal(ctx, cfg, t, policy, plan)
	} else {
		x.Done, x.Err = c.mender(cfg).Apply(ctx, t, policy, plan)
	}
	var sound *maintenance.Sound
	var none *maintenance.NoSource
	switch {
	case errors.As(x.Err, &sound):
		if c.JSON() {
			return c.Document(func(p *span.Printer) error {
				p.Object()
				p.Key("storePath").String(sound.Store)
				p.Key("dryRun").Bool(dry)
				p.Key("rows").Int(int64(sound.Rows))
				p.Key("changes").Int(0)
				p.End()
				return nil
			})
		}
		c.Out.Printf("There is nothing to repair: %s.\n", sound.Error())
		return nil
	case errors.As(x.Err, &none):
		c.tellSources(sources)
		return &Error{Exit: ExitFailed, Code: "no-source", Err: fmt.Errorf("%w; nothing was changed", x.Err), Details: map[string]any{"path": t.Index}}
	case x.Err != nil:
		return changeError(x.Err, x.Done)
	}
	if !c.JSON() {
		c.tellSources(sources)
	}
	return c.reportRepair(mending{all: []doctor.Mended{x}, cfg: cfg, dry: dry, left: &doctor.Report{}, sources: sources})
}

// tellSources lists the copies of an index, the best first.
func (c *Call) tellSources(all []maintenance.Source) {
	if len(all) == 0 || c.JSON() {
		return
	}
	t := c.Out.Table(term.Column{Head: "Copy", Cut: term.Middle, Min: 24}, term.Column{Head: "What it is"}, term.Column{Head: "Rows", Right: true}, term.Column{Head: "Age", Right: true}, term.Column{Head: "Cannot be used", Cut: term.End})
	for _, s := range all {
		t.Row(s.Name, s.Kind, term.Count(int64(s.Rows)), ageOf(float64(s.At.UnixMilli()), c.nowMs()), s.Why)
	}
	t.End()
	c.Out.Printf("\n")
}

// printSources are the copies in a document.
func printSources(p *span.Printer, all []maintenance.Source) {
	p.Key("sources").Array()
	for _, s := range all {
		p.Object()
		p.Key("name").String(s.Name)
		p.Key("kind").String(s.Kind)
		p.Key("rows").Int(int64(s.Rows))
		p.Key("writtenAt").Int(s.At.UnixMilli())
		p.Key("usable").Bool(s.Why == "")
		optional(p, "reason", s.Why)
		p.End()
	}
	p.End()
}
