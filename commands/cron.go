package commands

import (
	"context"
	"fmt"
	"slices"

	"oc/commands/term"
	"oc/config"
	"oc/maintenance"
	"oc/store"
	"oc/store/span"
	"oc/transcript/visible"
)

// cron are the commands for what automations leave behind.
func cron() *Command {
	return &Command{
		Name:  "cron",
		Short: "what the runs of cron jobs came to",
		Sub:   []*Command{cronRuns()},
	}
}

func cronRuns() *Command {
	return &Command{
		Name:  "runs",
		Args:  "[JOB]",
		Short: "list the retained runs of cron jobs",
		Long: "Lists the runs that were written down, of one job or of all, the newest first: when each ended, how, how long it took, in which session it was and what it said. They are read from " +
			"the database that all agents share, and from the files that older releases kept.\n\n" +
			"OpenClaw keeps the newest 2000 of a job, or cron.runLog.keepLines. With --prune oc takes out what is beyond that, while no gateway runs, as a change that oc undo takes back; runs in files " +
			"are left alone, an update of OpenClaw takes them in.",
		Flags: []Flag{
			{Name: "limit", Value: "N|all", Default: "50", Help: "how many runs to show, the newest", Takes: `a positive whole number or "all", for example --limit 200`, Check: IsCountOrAll},
			{Name: "prune", Help: "take out the runs beyond what is kept of a job"},
			{Name: "dry-run", Help: "with --prune: say what would go and change nothing"},
		},
		Examples: []Example{
			{"oc cron runs", "the newest runs of all jobs"},
			{"oc cron runs 5b1f0a52-7d0e-4c39-9a44-2f6f5d7c1e90 --limit all --json", "everything that is kept of one job, for a program"},
		},
		Exits: []int{ExitBusy, ExitRefused},
		Run:   listCronRuns,
	}
}

// keptRuns is what OpenClaw keeps of a job where nothing is configured (releases 2026.7.35 to 2026.9.6).
const keptRuns = 2000

// keepLines is how many runs of a job are kept.
func (c *Call) keepLines(cfg *config.Config) int {
	n, ok := cfg.Value("cron", "runLog", "keepLines")
	if !ok {
		return keptRuns
	}
	if f, ok := n.Num(); ok && f >= 1 && f < 1<<31 {
		return int(f)
	}
	c.Warnf("configuration: cron.runLog.keepLines must be a whole number of at least 1; %d is taken", keptRuns)
	return keptRuns
}

// jobTally is one job and how many runs of it are kept.
type jobTally struct {
	job        string
	runs, over int
}

func listCronRuns(ctx context.Context, c *Call) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	job := c.Arg(0)
	h, failed := store.CronRuns(ctx, cfg.StateDir, job)
	if failed != nil && len(h.Runs) == 0 {
		if c.Bool("prune") {
			return changeError(failed, nil)
		}
		return failed
	}
	if job != "" && len(h.Runs) == 0 && h.Names[job] == "" {
		return Failf("no run of a job %q is kept, and there is no job of that id in %s; oc cron runs lists those that are kept", job, cfg.StateDir)
	}
	keep := c.keepLines(cfg)
	if c.Bool("dry-run") && !c.Bool("prune") {
		return Usagef("--dry-run goes with --prune; the list changes nothing anyway")
	}
	if c.Bool("prune") {
		return c.pruneRuns(ctx, cfg, h, keep, failed)
	}
	tallies := tallyRuns(h, keep)
	shown := h.Runs
	if n := c.Int("limit"); c.String("limit") != "all" {
		shown = shown[:min(int64(len(shown)), n)]
	}
	r := c.redactor(cfg)
	if c.JSON() {
		err = c.Document(func(p *span.Printer) error {
			printRuns(p, h, shown, tallies, keep, r, failed)
			return nil
		})
		if err != nil {
			return err
		}
	} else {
		c.runsText(h, shown, tallies, r)
	}
	for i, err := range h.Problems {
		if i == 5 {
			c.Warnf("%s cannot be read either", plural(len(h.Problems)-i, "other run", "other runs"))
			break
		}
		c.Warnf("%v", err)
	}
	if failed != nil {
		c.Warnf("%v", failed)
	}
	if failed != nil || len(h.Problems) > 0 {
		return Status(ExitFailed)
	}
	return nil
}

func tallyRuns(h *store.CronHistory, keep int) (all []jobTally) {
	at := func(job string) *jobTally {
		if i := slices.IndexFunc(all, func(t jobTally) bool { return t.job == job }); i >= 0 {
			return &all[i]
		}
		all = append(all, jobTally{job: job})
		return &all[len(all)-1]
	}
	for i := range h.Runs {
		at(h.Runs[i].Job).runs++
	}
	for _, r := range h.Over(keep) {
		at(r.Job).over++
	}
	return all
}

func (c *Call) runsText(h *store.CronHistory, shown []store.CronRun, tallies []jobTally, r *visible.Redactor) {
	o := c.Out
	if len(shown) == 0 {
		o.Printf("No run of a cron job is kept.\n")
		return
	}
	t := o.Table(term.Column{Head: "Ended"}, term.Column{Head: "Job", Cut: term.Middle, Min: 12}, term.Column{Head: "Status"}, term.Column{Head: "Took", Right: true, Drop: 2},
		term.Column{Head: "Said", Cut: term.End, Min: 16, Drop: 1})
	for i := range shown {
		x := &shown[i]
		t.Row(term.Time(x.At), or(h.Names[x.Job], x.Job), or(x.Status, term.Unknown), took(x.Duration), r.Show(or(x.Error, x.Summary)))
	}
	t.End()
	o.Printf("\n")
	over := 0
	for _, t := range tallies {
		over += t.over
	}
	o.Printf("%s of %s.\n", plural(len(h.Runs), "run", "runs"), plural(len(tallies), "job", "jobs"))
	if n := len(h.Runs) - len(shown); n > 0 {
		c.Notef("%s not shown; give --limit all to see them", plural(n, "older run is", "older runs are"))
	}
	if over > 0 {
		c.Notef("%s beyond what OpenClaw keeps of a job", plural(over, "run is", "runs are"))
	}
}

func took(ms int64) string {
	if ms < 0 {
		return term.Unknown
	}
	if ms < 1000 {
		return fmt.Sprintf("%d ms", ms)
	}
	return term.Age(ms)
}

func printRuns(p *span.Printer, h *store.CronHistory, shown []store.CronRun, tallies []jobTally, keep int, r *visible.Redactor, failed error) {
	p.Object()
	p.Key("path").String(h.Path)
	p.Key("keepLines").Int(int64(keep))
	p.Key("jobs").Array()
	for _, t := range tallies {
		p.Object()
		p.Key("jobId").String(t.job)
		optional(p, "name", h.Names[t.job])
		p.Key("runs").Int(int64(t.runs))
		p.Key("over").Int(int64(t.over))
		p.End()
	}
	p.End()
	p.Key("count").Int(int64(len(shown)))
	p.Key("totalCount").Int(int64(len(h.Runs)))
	p.Key("runs").Array()
	for i := range shown {
		x := &shown[i]
		p.Object()
		p.Key("ts").Int(x.At)
		p.Key("jobId").String(x.Job)
		optional(p, "status", x.Status)
		optional(p, "error", r.Show(x.Error))
		optional(p, "summary", r.Show(x.Summary))
		optional(p, "runId", x.RunID)
		if x.StartedAt != 0 {
			p.Key("runAtMs").Int(x.StartedAt)
		}
		if x.Duration >= 0 {
			p.Key("durationMs").Int(x.Duration)
		}
		optional(p, "deliveryStatus", x.Delivery)
		optional(p, "sessionId", x.SessionID)
		optional(p, "sessionKey", x.SessionKey)
		optional(p, "model", x.Model)
		p.Key("keptIn").String(x.Kept)
		p.Key("quiet").Bool(x.Quiet)
		p.End()
	}
	p.End()
	if failed != nil || len(h.Problems) > 0 {
		p.Key("errors").Array()
		for _, err := range append([]error{failed}, h.Problems...) {
			if err != nil {
				p.String(err.Error())
			}
		}
		p.End()
	}
	p.End()
}

// pruneRuns takes out what is beyond keep of each job.
func (c *Call) pruneRuns(ctx context.Context, cfg *config.Config, h *store.CronHistory, keep int, failed error) error {
	if failed != nil {
		return changeError(failed, nil)
	}
	if cfg.Broken {
		return Refusef("the configuration cannot be read, so what cron.runLog.keepLines says is unknown; nothing was changed")
	}
	over, dry := h.Over(keep), c.Bool("dry-run")
	run := ""
	if !dry && len(over) > 0 {
		hold, err := c.apart(ctx, cfg, h.Path, "pruning runs")
		if err != nil {
			return err
		}
		w := &maintenance.Worker{Config: cfg, Machine: c.machine(), Now: c.Now, Wait: patience, Command: c.line(), FS: c.under.files, Hold: hold}
		r, err := w.PruneRuns(ctx, h.Path, over)
		if err != nil {
			return changeError(err, nil)
		}
		run = r.ID
	}
	tallies := tallyRuns(h, keep)
	if c.JSON() {
		return c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("path").String(h.Path)
			p.Key("dryRun").Bool(dry)
			p.Key("keepLines").Int(int64(keep))
			p.Key("removed").Int(int64(len(over)))
			p.Key("jobs").Array()
			for _, t := range tallies {
				p.Object()
				p.Key("jobId").String(t.job)
				p.Key("runs").Int(int64(t.runs))
				p.Key("removed").Int(int64(t.over))
				p.End()
			}
			p.End()
			optional(p, "run", run)
			p.End()
			return nil
		})
	}
	switch {
	case len(over) == 0:
		c.Out.Printf("Nothing to do: no job has more than %s.\n", plural(keep, "run", "runs"))
		return nil
	case dry:
		c.Out.Printf("%s would go. Dry run: nothing was changed.\n", plural(len(over), "run", "runs"))
	default:
		c.Out.Printf("%s taken out. Take it back with: oc undo %s\n", plural(len(over), "run", "runs"), run)
	}
	for _, t := range tallies {
		if t.over > 0 {
			c.Out.Printf("  %s: %s of %s\n", or(h.Names[t.job], t.job), term.Count(int64(t.over)), term.Count(int64(t.runs)))
		}
	}
	return nil
}
