package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oc/commands/term"
	"oc/maintenance"
	"oc/maintenance/journal"
	"oc/store/lock"
	"oc/store/span"
)

func undo() *Command {
	return &Command{
		Name:  "undo",
		Args:  "[RUN]",
		Short: "take back a change that oc made",
		Long: "Brings back the rows, files, names, modes and times that a run of oc changed. Without RUN it takes back what the last command did. What has changed since is left as it " +
			"is and told.\n\n" +
			"Runs are kept for 7 days, or as long as --keep-undo said. --expire gives up the saved bytes of a run, and with them the way back.",
		Flags: []Flag{
			agentFlag, storeFlag,
			{Name: "list", Help: "list the runs instead"},
			{Name: "dry-run", Help: "say what would come back and change nothing"},
			{Name: "expire", Value: "RUN|all", Help: "give up the saved bytes of a run, or of all"},
			besideGatewayFlag,
		},
		Examples: []Example{
			{"oc undo --list", "the runs that are kept"},
			{"oc undo --dry-run", "what taking back the last command would do"},
			{"oc undo", "take back the last command"},
		},
		Exits: []int{ExitBusy, ExitRefused},
		Run:   runUndo,
	}
}

func runUndo(ctx context.Context, c *Call) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	w := &maintenance.Worker{Config: cfg, Now: c.Now, Wait: patience}
	index := ""
	if c.Given("store") || c.Given("agent") {
		targets, err := c.targets(cfg, false)
		if err != nil {
			return err
		}
		index = targets[0].Index
	}
	all, problems := w.Past(index)
	for _, err := range problems {
		c.Warnf("%v", err)
	}
	fits := func(p *maintenance.Past) bool { return index == "" || maintenance.SameStore(p.Facts.Store, index) }
	all = slices.DeleteFunc(all, func(p maintenance.Past) bool { return !fits(&p) && p.ID != c.Arg(0) && p.ID != c.String("expire") })
	switch {
	case c.Bool("list"):
		return c.listRuns(all, len(problems) > 0)
	case c.Given("expire"):
		return c.expire(ctx, all, c.String("expire"))
	}
	runs := maintenance.Last(all, fits)
	if id := c.Arg(0); id != "" {
		runs = nil
		for i := range all {
			if all[i].ID == id {
				runs = append(runs, all[i])
			}
		}
		if len(runs) == 0 {
			return Failf("there is no run %q here; oc undo --list shows those that are kept", id)
		}
		if why := runs[0].Possible(); why != "" {
			return Failf("run %s cannot be taken back: %s", id, why)
		}
	}
	if len(runs) == 0 {
		return Failf("there is no run that can be taken back; oc undo --list shows those that are kept")
	}
	dry := c.Bool("dry-run")
	if !dry {
		if err := c.mayChange(ctx, cfg); err != nil {
			return err
		}
	}
	return c.takeBack(ctx, runs, dry)
}

// takenBack is a run and what became of its steps.
type takenBack struct {
	run      maintenance.Past
	outcomes []journal.Outcome
}

func (c *Call) takeBack(ctx context.Context, runs []maintenance.Past, dry bool) error {
	var back []takenBack
	var failed error
	for _, p := range runs {
		_, outcomes, err := p.Undo(ctx, dry)
		back = append(back, takenBack{p, outcomes})
		if err != nil {
			failed = undoError(fmt.Errorf("take back run %s: %w", p.ID, err))
			break
		}
	}
	left := 0
	for _, b := range back {
		for _, o := range maintenance.Conflicts(b.outcomes) {
			left++
			words := append([]string{}, o.Notes...)
			if o.Reason != "" {
				words = append(words, o.Reason)
			}
			c.Warnf("%s: %s", o.Path, strings.Join(words, "; "))
		}
	}
	if failed != nil {
		return failed
	}
	if c.JSON() {
		err := c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("dryRun").Bool(dry)
			p.Key("runs").Array()
			for _, b := range back {
				p.Object()
				p.Key("run").String(b.run.ID)
				p.Key("command").String(b.run.Facts.Command)
				p.Key("storePath").String(b.run.Facts.Store)
				p.Key("steps").Array()
				for _, o := range b.outcomes {
					p.Object()
					p.Key("kind").String(string(o.Kind))
					p.Key("path").String(o.Path)
					p.Key("result").String(string(o.Result))
					if o.Reason != "" {
						p.Key("reason").String(o.Reason)
					}
					if len(o.Notes) > 0 {
						p.Key("notes").Array()
						for _, n := range o.Notes {
							p.String(n)
						}
						p.End()
					}
					p.End()
				}
				p.End()
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
		for _, b := range back {
			done := 0
			for _, o := range b.outcomes {
				if o.Result == journal.Restored || o.Result == journal.Merged {
					done++
				}
			}
			verb := "Took back"
			if dry {
				verb = "Would take back"
			}
			c.Out.Printf("%s run %s (%s): %d of %d steps.\n", verb, b.run.ID, b.run.Facts.Command, done, len(b.outcomes))
		}
	}
	if left > 0 {
		return Status(ExitFailed)
	}
	return nil
}

// undoError gives what was not taken back its exit status.
func undoError(err error) error {
	exit := ExitFailed
	switch {
	case errors.Is(err, context.Canceled):
		exit = ExitInterrupted
	case errors.Is(err, lock.ErrBusy), errors.Is(err, journal.ErrChanged), errors.Is(err, journal.ErrUnfinished):
		exit = ExitBusy
	case errors.Is(err, journal.ErrRefused):
		exit = ExitRefused
	}
	return &Error{Exit: exit, Err: err}
}

func (c *Call) listRuns(all []maintenance.Past, partial bool) error {
	if c.JSON() {
		err := c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("runs").Array()
			for _, r := range all {
				p.Object()
				p.Key("run").String(r.ID)
				p.Key("createdAt").Int(r.Created)
				p.Key("state").String(string(r.State))
				p.Key("command").String(r.Facts.Command)
				p.Key("agentId").String(r.Facts.Agent)
				p.Key("storePath").String(r.Facts.Store)
				p.Key("rows").Int(int64(r.Facts.Rows))
				p.Key("files").Int(int64(r.Facts.Files))
				p.Key("freedBytes").Int(r.Freed)
				p.Key("savedBytes").Int(r.Saved)
				why := r.Possible()
				p.Key("possible").Bool(why == "")
				if why != "" {
					p.Key("why").String(why)
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
	} else if len(all) == 0 {
		c.Out.Printf("No run is kept here.\n")
	} else {
		t := c.Out.Table(
			term.Column{Head: "Run"}, term.Column{Head: "Age", Right: true}, term.Column{Head: "Agent"}, term.Column{Head: "Rows", Right: true}, term.Column{Head: "Files", Right: true},
			term.Column{Head: "Saved", Right: true}, term.Column{Head: "Undo", Cut: term.End, Min: 10}, term.Column{Head: "Command", Cut: term.End, Min: 10, Drop: 1},
		)
		for _, r := range all {
			t.Row(r.ID, ageOf(float64(r.Created), c.nowMs()), r.Facts.Agent, fmt.Sprint(r.Facts.Rows), fmt.Sprint(r.Facts.Files), term.Bytes(r.Saved), or(r.Possible(), "possible"), r.Facts.Command)
		}
		t.End()
	}
	if partial {
		return Status(ExitFailed)
	}
	return nil
}

func (c *Call) expire(ctx context.Context, all []maintenance.Past, which string) error {
	var total int64
	n := 0
	for _, r := range all {
		if which != "all" && r.ID != which || r.Expired || r.Saved == 0 {
			continue
		}
		freed, err := r.Journal.Expire(ctx, r.ID)
		if err != nil {
			return undoError(fmt.Errorf("give up the bytes of run %s: %w", r.ID, err))
		}
		total += freed
		n++
	}
	if n == 0 && which != "all" {
		return Failf("there is no run %q with saved bytes; oc undo --list shows those that are kept", which)
	}
	if c.JSON() {
		return c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("expired").Int(int64(n))
			p.Key("freedBytes").Int(total)
			p.End()
			return nil
		})
	}
	c.Out.Printf("Gave up the saved bytes of %d runs: %s.\n", n, term.Bytes(total))
	return nil
}
