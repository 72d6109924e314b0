package commands

import (
	"context"
	"path/filepath"
	"strings"

	"oc/commands/term"
	"oc/config"
	"oc/maintenance"
	"oc/maintenance/doctor"
	"oc/store"
	"oc/store/span"
)

func repairs() *Command {
	return &Command{
		Name:  "repair",
		Short: "mend what needs to be told how",
		Long:  "What oc doctor finds and --fix cannot mend by itself, because only a person knows what is right. Each repair is a plan: --dry-run shows it, oc undo takes it back.",
		Sub:   []*Command{repairIndex(), repairPaths(), repairTranscript()},
	}
}

func repairPaths() *Command {
	return &Command{
		Name:  "paths",
		Short: "rebase the stored paths after a directory was moved",
		Long: "Every path of a session that is DIR of --from, or lies below it, is written as one below DIR of --to: that of its transcript, of checkpoints, of workspaces, of skills, and " +
			"what the pointers to trajectories name. --from may be one of another system, as C:\\Users\\me\\.openclaw. All other bytes of a row stay. A session that somebody works on stays as it is, and so does one whose transcript is not at the new place.",
		Flags: []Flag{
			{Name: "from", Value: "DIR", Takes: "a directory, as the paths name it", Check: isSomething, Help: "where it was, whether or not it is still there"},
			{Name: "to", Value: "DIR", Takes: "a directory", Check: isSomething, Help: "where it is now"},
			{Name: "agent", Value: "ID", Takes: "the id of an agent", Check: isSomething, Help: "only this agent; without it all of them"},
			storeFlag, dryFlag,
		},
		Examples: []Example{
			{"oc repair paths --from /old/home/.openclaw --to ~/.openclaw --dry-run", "what would be written"},
			{"oc repair paths --from /old/home/.openclaw --to ~/.openclaw", "after the state was moved"},
		},
		Exits: []int{ExitBusy, ExitRefused},
		Run:   runRepairPaths,
	}
}

func runRepairPaths(ctx context.Context, c *Call) error {
	from, to := c.String("from"), c.String("to")
	if from == "" || to == "" {
		return Usagef("oc repair paths needs --from DIR and --to DIR")
	}
	cfg, err := c.load()
	if err != nil {
		return err
	}
	if maintenance.Elsewhere(to) {
		return Usagef("--to %s is a path of another system: the files must be on this machine, name where they are here", to)
	}
	if to = c.absolute(to); !maintenance.Elsewhere(from) {
		from = c.absolute(from)
	}
	if from == to {
		return Usagef("--from and --to name the same directory, %s", from)
	}
	if from == filepath.Dir(from) {
		return Usagef("--from %s: every path lies below it", from)
	}
	if err := c.knows(cfg); err != nil {
		return err
	}
	targets, err := c.patients(cfg)
	if err != nil {
		return err
	}
	return c.repair(ctx, cfg, targets, "rebasing paths", func(s *maintenance.Snapshot) (*maintenance.Plan, error) {
		return maintenance.Rebase(s, from, to, c.Now()), nil
	})
}

// absolute is a directory of the command line, from the working directory.
func (c *Call) absolute(dir string) string {
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(c.Dir, dir)
}

// repair plans a change of stores and applies it, and says what was done. Stores in a database are passed over.
func (c *Call) repair(ctx context.Context, cfg *config.Config, targets []store.Target, what string, plan func(*maintenance.Snapshot) (*maintenance.Plan, error)) error {
	dry := c.Bool("dry-run")
	if !dry {
		if err := c.alone(ctx, cfg, what, ""); err != nil {
			return err
		}
	}
	w, policy := c.mender(cfg), maintenance.Alone()
	var all []doctor.Mended
	for _, t := range targets {
		if t.Index == "" {
			continue
		}
		if s, err := store.Open(ctx, cfg, t); err == nil && s.Era == store.SQLiteEra {
			c.Notef("the sessions of %s are in the database %s, which names no files", t.Agent, s.Path)
			continue
		}
		x := doctor.Mended{Agent: t.Agent, Store: t.Index}
		if dry {
			x.Done, x.Err = c.rehearsal(ctx, cfg, t, policy, plan)
		} else {
			x.Done, x.Err = w.Apply(ctx, t, policy, plan)
		}
		if x.Err != nil {
			x.Err = changeError(x.Err, x.Done)
		}
		all = append(all, x)
	}
	return c.reportRepair(mending{all: all, cfg: cfg, dry: dry, left: &doctor.Report{}})
}

// reportRepair says what a repair did, or would do.
func (c *Call) reportRepair(m mending) error {
	exit := ExitDone
	for _, x := range m.all {
		if x.Err != nil {
			status, _ := classify(x.Err)
			exit = max(exit, status)
		}
	}
	if c.JSON() {
		err := c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("stateDir").String(m.cfg.StateDir)
			p.Key("dryRun").Bool(m.dry)
			p.Key("changes").Int(int64(changesOf(m.all)))
			if m.sources != nil {
				printSources(p, m.sources)
			}
			p.Key("stores").Array()
			for _, x := range m.all {
				p.Object()
				p.Key("agentId").String(x.Agent)
				p.Key("storePath").String(x.Store)
				if x.Err != nil {
					p.Key("error").String(x.Err.Error())
				} else {
					planMembers(p, x.Done, 0)
					p.Key("notes").Array()
					for _, note := range x.Done.Plan.Problems {
						p.String(note)
					}
					p.End()
					if !m.dry {
						doneMembers(p, x.Done)
					}
				}
				p.End()
			}
			p.End()
			p.End()
			return nil
		})
		if err != nil {
			return err
		}
	} else {
		for _, line := range m.lines() {
			c.hang("", "- "+line)
		}
		n, said := changesOf(m.all), "There is nothing to repair."
		switch {
		case n == 0 && exit != ExitDone:
			said = "Nothing was changed."
		case n > 0 && m.dry:
			said = howMany(n, "change") + " would be made; nothing was changed."
		case n > 0:
			said = howMany(n, "change") + " made. oc undo takes all of it back (run " + strings.Join(m.runs(), ", ") + ")."
		}
		c.Out.Printf("%s\n", term.Styled(term.Wrap(term.Escape(said), c.Out.Width(), "")))
	}
	for _, x := range m.all {
		if x.Err != nil {
			c.Warnf("%s: %v", x.Store, x.Err)
		}
	}
	if exit != ExitDone {
		return Status(exit)
	}
	return nil
}
