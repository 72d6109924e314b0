package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oc/commands/term"
	"oc/config"
	"oc/maintenance"
	"oc/maintenance/journal"
	"oc/store/lock"
	"oc/store/span"
	"oc/store/sqlfile"
)

func undo() *Command {
	return &Command{
		Name:  "undo",
		Args:  "[RUN]",
		Short: "take back a change that oc made",
		Long: "Brings back the rows, files, names, modes and times that a run of oc changed. Without RUN it takes back what the last command did. What has changed since is left as it " +
			"is and told.\n\n" +
			"While a gateway lives nothing is taken back. Of a change that a gateway made comes back what oc had copied before; what the gateway has written itself since stays.\n\n" +
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
	if err := c.undoFlags(); err != nil {
		return err
	}
	w := &maintenance.Worker{Config: cfg, Now: c.Now, Wait: patience, FS: c.under.files}
	index, databases := "", []string(nil)
	if c.Given("store") || c.Given("agent") {
		if err := c.knows(cfg); err != nil {
			return err
		}
		targets, err := c.targets(cfg, false)
		if err != nil {
			return err
		}
		index, databases = targets[0].Index, targets[0].Databases
		if index == "" {
			index = databases[0]
		}
	}
	all, problems := w.Past(index)
	for _, err := range problems {
		c.Warnf("%v", err)
	}
	fits := func(p *maintenance.Past) bool {
		is := func(path string) bool { return maintenance.SameStore(p.Facts.Store, path) }
		return index == "" || is(index) || slices.ContainsFunc(databases, is)
	}
	others := func(p maintenance.Past) bool { return !fits(&p) && p.ID != c.Arg(0) && p.ID != c.String("expire") }
	all = slices.DeleteFunc(all, others)
	switch {
	case c.Bool("list"):
		return c.listRuns(all, len(problems) > 0)
	case c.Given("expire"):
		return c.expire(ctx, all, c.String("expire"))
	}
	dry := c.Bool("dry-run")
	var closed []journal.Recovery
	if slices.ContainsFunc(all, func(p maintenance.Past) bool { return p.Unfinished() }) {
		if !dry {
			release, err := c.aloneWith(ctx, cfg, index, all)
			if err != nil {
				return err
			}
			defer release() //nolint:errcheck // the lock ends with the process
		}
		if closed, err = w.Recover(ctx, index, dry); err != nil {
			return undoError(fmt.Errorf("finish what was cut short: %w", err))
		}
		all, _ = w.Past(index)
		all = slices.DeleteFunc(all, others)
	}
	runs := maintenance.Last(all, func(p *maintenance.Past) bool { return fits(p) && ofThese(p, closed) })
	if id := c.Arg(0); id != "" {
		runs = nil
		if i := slices.IndexFunc(closed, func(r journal.Recovery) bool { return r.Run.ID == id }); i >= 0 && (dry || closed[i].Did != journal.WasFinished && closed[i].Did != journal.WasSettled) {
			return c.takeBack(ctx, closed, nil, dry)
		}
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
	if len(runs) == 0 && len(closed) == 0 {
		return Failf("there is no run that can be taken back; oc undo --list shows those that are kept")
	}
	if !dry && len(closed) == 0 {
		release, err := c.aloneWith(ctx, cfg, index, runs)
		if err != nil {
			return err
		}
		defer release() //nolint:errcheck // the lock ends with the process
	}
	return c.takeBack(ctx, closed, runs, dry)
}

// aloneWith sees that nobody owns the state in which runs are taken back, and keeps gateways out while those of databases are, until release.
func (c *Call) aloneWith(ctx context.Context, cfg *config.Config, index string, runs []maintenance.Past) (release func() error, err error) {
	if err := c.alone(ctx, cfg, "taking a run back", index); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(runs, func(p maintenance.Past) bool { return strings.HasSuffix(p.Facts.Store, ".sqlite") }) {
		return func() error { return nil }, nil
	}
	release, err = c.hold(ctx, c.where(cfg))()
	if err != nil {
		return nil, changeError(err, nil)
	}
	return release, nil
}

// undoFlags holds that one thing is asked for.
func (c *Call) undoFlags() error {
	for _, pair := range [][2]string{{"list", "expire"}, {"list", "dry-run"}, {"expire", "dry-run"}} {
		if c.Given(pair[0]) && c.Given(pair[1]) {
			return Usagef("--%s and --%s exclude each other; give one of them", pair[0], pair[1])
		}
	}
	for _, name := range []string{"list", "expire"} {
		if c.Given(name) && c.Arg(0) != "" {
			return Usagef("RUN and --%s exclude each other; give one of them", name)
		}
	}
	return nil
}

// ofThese says whether a run is of the command of one that was cut short, where one was: what older commands did is not meant then.
func ofThese(p *maintenance.Past, closed []journal.Recovery) bool {
	return len(closed) == 0 || slices.ContainsFunc(closed, func(r journal.Recovery) bool {
		cut := maintenance.Past{Run: r.Run, Facts: maintenance.FactsOf(r.Run, "")}
		return cut.Group() == p.Group()
	})
}

// closing says what becomes of a run that was cut short.
func closing(r journal.Recovery, dry bool) string {
	if dry {
		return "Run " + r.Run.ID + " was cut short. " + map[string]string{
			journal.WasCleared:    "It changed nothing, and would be cleared away.",
			journal.WasRolledBack: "It would be rolled back: all would be as before it.",
			journal.WasFinished:   "It would be finished, and then taken back.",
			journal.WasSettled:    "A gateway was asked for it: what became of it would be looked at, and then taken back.",
			journal.WasStopped:    "It would be closed as it is, and cannot be taken back.",
			journal.WasUndone:     "Its undo would be finished.",
		}[r.Did]
	}
	return "Run " + r.Run.ID + " was cut short. " + map[string]string{
		journal.WasCleared:    "It had changed nothing, and is cleared away.",
		journal.WasRolledBack: "It is rolled back: all is as before it.",
		journal.WasFinished:   "It is finished, so that it can be taken back.",
		journal.WasSettled:    "A gateway was asked for it; what became of it is written down, so that it can be taken back.",
		journal.WasStopped:    "It is closed as it is, and cannot be taken back: " + r.Why + ".",
		journal.WasUndone:     "Its undo is finished.",
	}[r.Did]
}

// takenBack is a run and what became of its steps.
type takenBack struct {
	run      maintenance.Past
	outcomes []journal.Outcome
}

// takeBack takes runs back, and tells what became of those that were cut short.
func (c *Call) takeBack(ctx context.Context, closed []journal.Recovery, runs []maintenance.Past, dry bool) error {
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
	var outcomes []journal.Outcome
	for _, r := range closed {
		outcomes = append(outcomes, r.Outcomes...)
		if r.Did == journal.WasStopped {
			left++
		}
	}
	for _, b := range back {
		outcomes = append(outcomes, b.outcomes...)
	}
	for _, o := range maintenance.Conflicts(outcomes) {
		left++
		words := append([]string{}, o.Notes...)
		if o.Reason != "" {
			words = append(words, o.Reason)
		}
		c.Warnf("%s: %s", o.Path, strings.Join(words, "; "))
	}
	if failed != nil {
		return failed
	}
	if c.JSON() {
		err := c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("dryRun").Bool(dry)
			if !dry {
				p.Key("via").String(viaLocal)
			}
			if len(closed) > 0 {
				p.Key("cutShort").Array()
				for _, r := range closed {
					p.Object()
					p.Key("run").String(r.Run.ID)
					p.Key("did").String(r.Did)
					p.Key("why").String(r.Why)
					p.End()
				}
				p.End()
			}
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
		for _, r := range closed {
			c.Out.Printf("%s\n", closing(r, dry))
		}
		for _, b := range back {
			done := 0
			for _, o := range b.outcomes {
				if o.Result == journal.Restored || o.Result == journal.Merged {
					done++
				}
			}
			verb := "Took back locally"
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
	var quarantined *maintenance.Quarantined
	switch {
	case errors.Is(err, context.Canceled):
		exit = ExitInterrupted
	case errors.Is(err, sqlfile.ErrBusy):
		exit, err = ExitBusy, fmt.Errorf("%w; give oc undo again then", heldBy(err))
	case errors.As(err, &quarantined), errors.Is(err, sqlfile.ErrCorrupt), errors.Is(err, sqlfile.ErrNotDatabase):
		exit = ExitRefused
	case errors.Is(err, lock.ErrBusy), errors.Is(err, journal.ErrChanged), errors.Is(err, journal.ErrUnfinished):
		exit = ExitBusy
	case errors.Is(err, journal.ErrRefused):
		exit = ExitRefused
	}
	return &Error{Exit: exit, Err: err}
}

// listRuns lists runs, the newest first, and those that cannot be taken back any more after the others.
func (c *Call) listRuns(all []maintenance.Past, partial bool) error {
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b maintenance.Past) int { return cmp.Compare(spent(&a), spent(&b)) })
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
				if uncounted(&r) {
					p.Key("rows").Null()
					p.Key("files").Null()
				} else {
					p.Key("rows").Int(int64(r.Facts.Rows))
					p.Key("files").Int(int64(r.Facts.Files))
				}
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
		const line = "%-24s  %5s  %6s  %6s  %9s  %-11s  %s"
		c.Out.Printf("%s\n", c.Out.Paint(term.Bold, fmt.Sprintf(line, "Run and command", "Age", "Rows", "Files", "Saved", "Undo", "Agent")))
		for _, r := range all {
			f := r.Facts
			rows, files := fmt.Sprint(f.Rows), fmt.Sprint(f.Files)
			if uncounted(&r) {
				rows, files = "?", "?"
			}
			c.Out.Printf(line+"\n", r.ID, ageOf(float64(r.Created), c.nowMs()), rows, files, term.Bytes(r.Saved), r.Word(), f.Agent)
			c.Out.Printf("  %s\n", f.Command) // below: beside it there is no room on 80 columns
		}
	}
	if partial {
		return Status(ExitFailed)
	}
	return nil
}

// uncounted says that how much a gateway did of a run is not known: nobody was there to count when it was done.
func uncounted(p *maintenance.Past) bool {
	return p.Facts.Via == viaGateway && p.Facts.Rows == 0 && p.Facts.Files == 0
}

func spent(p *maintenance.Past) int {
	if p.Unfinished() || p.Possible() == "" {
		return 0
	}
	return 1
}

func (c *Call) expire(ctx context.Context, all []maintenance.Past, which string) error {
	var total int64
	n, left := 0, 0
	for _, r := range all {
		if which == "all" && r.Unfinished() {
			c.Warnf("run %s was cut short and is left as it is; oc undo closes it", r.ID)
			left++
			continue
		}
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
		err := c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("expired").Int(int64(n))
			p.Key("freedBytes").Int(total)
			p.End()
			return nil
		})
		if err != nil {
			return err
		}
	} else {
		c.Out.Printf("Gave up the saved bytes of %s: %s.\n", plural(n, "run", "runs"), term.Bytes(total))
	}
	if left > 0 {
		return Status(ExitFailed)
	}
	return nil
}
