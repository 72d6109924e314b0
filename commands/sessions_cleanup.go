package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oc/config"
	"oc/gateway"
	"oc/maintenance"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/agentdb"
	"oc/store/lock"
	"oc/store/span"
	"oc/store/sqlfile"
)

func sessionsCleanup() *Command {
	return &Command{
		Name:  "cleanup",
		Short: "apply retention, caps and the disk budget, with a plan, a reason for each change, and undo",
		Long: "Works out what session.maintenance and the flags ask for, shows it with --dry-run, and applies the very same plan without it. What goes is saved first and comes back " +
			"with oc undo, for 7 days unless --keep-undo says otherwise.\n\n" +
			"Sessions whose transcript is locked or was written in the last five minutes stay, an impossible time never makes a session old, and transcripts with messages that no " +
			"session names are archived rather than deleted. A store that is damaged or missing is refused: nothing is taken for empty.\n\n" +
			"Without any flag the configured limits apply. --older-than, --kind and --empty select sessions by hand instead.\n\n" +
			"While a gateway of this state lives it is asked for the change. What its own cleanup does not do as asked is done session by session: --cron, a selection by hand, several active " +
			"keys, and sessions that oc protects and the gateway would take; files that no session names stay then, and that is told.\n\n" +
			"Sessions in a database are cleaned by the rules of the release that made it: 2026.9.6 puts aside, where it is, what a person may want back, and deletes what machines made; 2026.8.2 deletes both. " +
			"What is deleted stays as an archive. Databases of other schemas than 19 and 23 are refused, and so are those that a gateway or another process has open.",
		Flags: slices.Concat([]Flag{agentFlag, allAgentsFlag, {Name: "store", Value: "PATH", Help: "the sessions in this sessions.json or database"}}, []Flag{
			{Name: "dry-run", Help: "show the plan and change nothing"},
			{Name: "enforce", Help: "apply the limits although the configured mode is warn"},
			{Name: "fix-missing", Help: "also remove sessions whose transcript is gone or holds no message"},
			{Name: "fix-dm-scope", Help: "also remove direct sessions that session.dmScope \"main\" leaves unused"},
			{Name: "active-key", Value: "KEY", Repeatable: true, Help: "a session that is in use and stays"},
			{Name: "cron", Help: "also apply cron.sessionRetention to the runs of cron jobs"},
			{Name: "older-than", Value: "DURATION", Help: "by hand: sessions not written for so long; units ms, s, m, h, d, w", Takes: "a positive duration such as 30d or 12h", Check: isSomeTime},
			{Name: "kind", Value: "KIND", Repeatable: true, Help: "by hand: sessions of this kind", Choices: kinds},
			{Name: "empty", Help: "by hand: sessions without any message"},
			{Name: "include-protected", Help: "with --older-than, --kind or --empty: take protected sessions too"},
			{Name: "keep-unlinked", Help: "leave transcripts that no session names where they are"},
			{Name: "limit-actions", Value: "N", Help: "show at most so many actions", Takes: "a positive whole number", Check: IsCount},
			keepUndoFlag, purgeFlag, besideGatewayFlag,
		}),
		Examples: []Example{
			{"oc sessions cleanup --dry-run", "what would go, and why"},
			{"oc sessions cleanup --all-agents --json", "for cron: apply, and say what was done"},
			{"oc sessions cleanup --older-than 90d --kind cron-run --dry-run", "a selection by hand"},
		},
		Exits: []int{ExitLimit, ExitBusy, ExitRefused},
		Run:   cleanup,
	}
}

var (
	keepUndoFlag      = Flag{Name: "keep-undo", Value: "DURATION", Default: "7d", Help: "how long runs can be taken back; units ms, s, m, h, d, w", Takes: "a positive duration such as 7d or 48h", Check: isSomeTime}
	purgeFlag         = Flag{Name: "purge", Help: "save nothing: what goes cannot be brought back"}
	besideGatewayFlag = Flag{Name: "beside-gateway", Help: "change files although a gateway lives that may write them too, and do not ask it"}
)

// cleaned is one store of a cleanup.
type cleaned struct {
	target store.Target
	done   *maintenance.Done
	err    error
	via    string // viaLocal or viaGateway; "" for a dry run

	answer  json.RawMessage // of a gateway that made its own cleanup
	unasked []string        // what a gateway was not asked to do
}

func cleanup(ctx context.Context, c *Call) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	if cfg.Broken && !c.Given("store") { // which agents there are is not known either
		if _, _, err := maintenance.ReadPolicy(cfg, c.orders()); err != nil {
			return changeError(err, nil)
		}
	}
	targets, err := c.targets(cfg, c.Bool("all-agents"))
	if err != nil {
		return err
	}
	if err := c.asWritten(cfg); err != nil {
		return err
	}
	if err := c.keeps(); err != nil {
		return err
	}
	if o := c.orders(); o.IncludeProtected && !o.ByHand() {
		return Usagef("--include-protected goes with --older-than, --kind or --empty; give one of them")
	}
	policy, warnings, err := maintenance.ReadPolicy(cfg, c.orders())
	var unreadable *maintenance.Unreadable
	if errors.As(err, &unreadable) {
		return Refusef("%w", err)
	}
	if err != nil {
		return err
	}
	for _, w := range warnings {
		c.Warnf("configuration: %s", w.String())
	}
	dry := c.Bool("dry-run")
	w := c.worker(cfg)
	var all []cleaned
	if !dry {
		conn, err := c.way(ctx, cfg, targets[0].Index, anyDatabase(targets))
		if err != nil {
			return err
		}
		if conn != nil {
			return c.handCleanup(ctx, conn, w, targets, policy)
		}
	}
	for _, t := range targets {
		x := cleaned{target: t, done: &maintenance.Done{}}
		if !dry {
			x.via = viaLocal
		}
		var database string
		if database, x.err = databaseOf(ctx, cfg, t); x.err == nil {
			if database != "" {
				x.done, x.err = c.cleanDatabase(ctx, cfg, t, database, policy, dry)
			} else if dry {
				x.done, x.err = rehearse(ctx, cfg, t, policy, c.Now())
			} else {
				bar := c.Progress("cleaning " + t.Agent)
				w.Progress = func(done, total int) { bar.Set(int64(done), int64(total)) }
				x.done, x.err = w.Apply(ctx, t, policy, func(s *maintenance.Snapshot) (*maintenance.Plan, error) {
					return maintenance.Make(policy, s, s.Taken), nil
				})
				bar.Done()
			}
		}
		if x.err != nil {
			x.err = changeError(x.err, x.done)
		}
		all = append(all, x)
		if ctx.Err() != nil {
			break // the other stores are as they were
		}
	}
	return c.reportCleanup(all, policy, dry)
}

func (c *Call) orders() maintenance.Orders {
	return maintenance.Orders{
		Enforce: c.Bool("enforce"), FixMissing: c.Bool("fix-missing"), FixDMScope: c.Bool("fix-dm-scope"), Cron: c.Bool("cron"),
		KeepUnlinked: c.Bool("keep-unlinked"), IncludeProtected: c.Bool("include-protected"), ActiveKeys: c.Strings("active-key"),
		OlderThan: float64(c.Duration("older-than").Milliseconds()), Kinds: c.Strings("kind"), Empty: c.Bool("empty"), Named: c.Given("store"),
	}
}

// patience is how long a change waits for another oc.
const patience = 5 * time.Second

// worker applies plans for this command line.
func (c *Call) worker(cfg *config.Config) *maintenance.Worker {
	return &maintenance.Worker{
		Config: cfg, Machine: c.machine(), Now: c.Now, Wait: patience, Command: c.line(), FS: c.under.files,
		Purge: c.Bool("purge"), Keep: c.Duration("keep-undo"), Group: c.group,
		HoldRows: c.hold(context.Background(), c.where(cfg)),
	}
}

// holding is a worker that keeps gateways from starting meanwhile, for a change of a database. Who has worked with it tells the call its Group,
// so that the runs of one command stay together.
func (c *Call) holding(ctx context.Context, cfg *config.Config) *maintenance.Worker {
	w := c.worker(cfg)
	w.Hold = c.hold(ctx, c.where(cfg))
	return w
}

// keeps refuses to keep what is not saved.
func (c *Call) keeps() error {
	if c.Bool("purge") && c.Given("keep-undo") {
		return Usagef("--keep-undo and --purge exclude each other: a purge saves nothing; give one of them")
	}
	return nil
}

// isSomeTime is a Check: a duration of a millisecond at least.
func isSomeTime(s string) bool {
	d, err := parseDuration(s)
	return err == nil && d >= time.Millisecond
}

// line is the command as it was given, without the values of secrets.
func (c *Call) line() string {
	line := words(c.Path)
	for _, s := range c.flags {
		if line += " --" + s.flag.Name; !s.flag.isSwitch() && !s.flag.Secret {
			line += " " + s.flag.told(s.value)
		}
	}
	return strings.Join(append([]string{line}, c.Args...), " ")
}

// databaseOf is the database that the sessions of a target are in; "" where they are in a file, or nowhere.
func databaseOf(ctx context.Context, cfg *config.Config, t store.Target) (path string, err error) {
	if t.Named && t.Index != "" {
		return "", nil
	}
	s, err := store.Open(ctx, cfg, t)
	if s.Era == store.SQLiteEra {
		return s.Path, nil
	}
	var damage *store.Damage
	if err != nil && !errors.As(err, &damage) {
		return "", err
	}
	return "", nil
}

// cleanDatabase plans the cleanup of a database, and applies it unless it is dry.
func (c *Call) cleanDatabase(ctx context.Context, cfg *config.Config, t store.Target, path string, policy *maintenance.Policy, dry bool) (*maintenance.Done, error) {
	return c.inDatabase(ctx, cfg, t, path, policy, dry, func(d *maintenance.Database) (*maintenance.Plan, []journal.Step, error) {
		return maintenance.CleanDatabase(ctx, d, policy.ForDatabase(d.Schema))
	})
}

// inDatabase plans a change of a database, and applies it unless it is dry.
func (c *Call) inDatabase(
	ctx context.Context, cfg *config.Config, t store.Target, path string, policy *maintenance.Policy, dry bool,
	make func(*maintenance.Database) (*maintenance.Plan, []journal.Step, error),
) (*maintenance.Done, error) {
	var taken *maintenance.Database
	plan := func(tx *sqlfile.Tx) (p *maintenance.Plan, steps []journal.Step, err error) {
		if taken, err = maintenance.TakeDatabase(ctx, tx, cfg, t, path, policy, c.Now()); err != nil {
			return nil, nil, err
		}
		return make(taken)
	}
	d, err := &maintenance.Done{}, error(nil)
	if dry {
		d.Plan, _, err = maintenance.PlanDatabase(ctx, path, plan)
	} else {
		w := c.holding(ctx, cfg)
		defer func() { c.group = w.Group }()
		bar := c.Progress("changing the sessions of " + t.Agent)
		w.Progress = func(done, total int) { bar.Set(int64(done), int64(total)) }
		d, err = w.ApplyDatabase(ctx, path, plan)
		bar.Done()
	}
	if taken != nil && d != nil {
		d.Snapshot = taken.Snapshot
	}
	return d, err
}

// rehearse plans without applying.
func rehearse(ctx context.Context, cfg *config.Config, t store.Target, p *maintenance.Policy, now time.Time) (*maintenance.Done, error) {
	if err := maintenance.Reachable(cfg, t.Index, p); err != nil {
		return nil, err
	}
	s, err := maintenance.Take(ctx, cfg, t, p, lock.Local(), now)
	if err != nil {
		return nil, err
	}
	return &maintenance.Done{Plan: maintenance.Make(p, s, now), Snapshot: s}, nil
}

// untouched says what can be done where a store is lost and its transcripts are not.
const untouched = "transcripts beside it are untouched, oc sessions --history lists them; oc repair index makes the store anew from what is left of it, backups and headers"

// changeError gives a change that was not made its exit status, and says what is changed all the same.
func changeError(err error, d *maintenance.Done) error {
	state := "nothing was changed"
	err = heldBy(err)
	switch {
	case d.Halfway():
		state = fmt.Sprintf("run %s was begun, and the next change finishes it", d.Run.ID)
		if !d.Run.Purge {
			state += "; oc undo takes it back"
		}
	case d.Changed():
		state = ""
	case d != nil && len(d.Room) > 0:
		state = fmt.Sprintf("what no row names was removed in run %s, nothing else was changed", d.Room[len(d.Room)-1].ID)
	}
	said := err
	if state != "" && !strings.Contains(err.Error(), state) {
		said = fmt.Errorf("%w; %s", err, state)
	}
	var damage *store.Damage
	var missing *maintenance.Missing
	var alien *maintenance.NotStore
	var astray *maintenance.Astray
	var unreadable *maintenance.Unreadable
	var denied *maintenance.Denied
	var gone *maintenance.NoRow
	var unfit *maintenance.Unfit
	var misfit *agentdb.Unfit
	var quarantined *maintenance.Quarantined
	switch {
	case errors.As(err, &unfit), errors.As(err, &misfit), errors.Is(err, agentdb.ErrCold), errors.Is(err, agentdb.ErrShared), errors.As(err, &quarantined), errors.Is(err, sqlfile.ErrCorrupt), errors.Is(err, sqlfile.ErrNotDatabase), errors.Is(err, agentdb.ErrNoSessions):
		return &Error{Exit: ExitRefused, Err: said}
	case errors.Is(err, gateway.ErrOwned):
		return &Error{Exit: ExitBusy, Code: "owned", Err: said}
	case errors.Is(err, sqlfile.ErrBusy):
		return &Error{Exit: ExitBusy, Err: said}
	case errors.As(err, &denied):
		return &Error{Exit: ExitFailed, Code: "denied", Err: err, Details: map[string]any{"key": denied.Key, "reason": denied.Reason}}
	case errors.As(err, &gone):
		return &Error{Exit: ExitFailed, Code: "not-found", Err: err, Details: map[string]any{"key": gone.Key, "path": gone.Store}}
	case errors.As(err, &damage):
		said = fmt.Errorf("%w; %s", said, untouched)
		return &Error{Exit: ExitRefused, Code: "damaged", Err: said, Details: map[string]any{"path": damage.Path, "byte": damage.Offset, "reason": damage.Reason}}
	case errors.As(err, &missing):
		return &Error{Exit: ExitRefused, Err: fmt.Errorf("%w; %s", said, untouched)}
	case errors.As(err, &alien), errors.As(err, &astray), errors.As(err, &unreadable), errors.Is(err, journal.ErrRefused):
		return &Error{Exit: ExitRefused, Err: said}
	case errors.Is(err, context.Canceled):
		return &Error{Exit: ExitInterrupted, Err: errors.New("interrupted; " + or(state, "the change is done"))}
	case errors.Is(err, lock.ErrBusy), errors.Is(err, journal.ErrChanged), errors.Is(err, journal.ErrUnfinished):
		return &Error{Exit: ExitBusy, Err: said}
	}
	return said
}

// reportCleanup says what was, or would be, done.
func (c *Call) reportCleanup(all []cleaned, p *maintenance.Policy, dry bool) error {
	var failed failures
	exit := ExitDone
	for _, x := range all {
		c.remarkRecovered(x.done)
		if x.err != nil {
			if len(all) == 1 {
				return x.err
			}
			failed = append(failed, failure{x.target.Agent, x.target.Index, x.err})
			status, _ := classify(x.err)
			exit = max(exit, status)
			continue
		}
		c.remarkRun(x.done)
		c.remarkHanded(x.done)
		for _, what := range x.unasked {
			c.Warnf("%s", what)
			exit = max(exit, ExitRefused)
		}
		if len(x.done.Skipped) > 0 {
			exit = max(exit, ExitFailed)
		}
		if len(x.done.Plan.Unmet) > 0 && exit == ExitDone {
			exit = ExitLimit
		}
	}
	if c.JSON() {
		err := c.Document(func(pr *span.Printer) error {
			cleanupDocument(pr, all, failed, p, dry, int(c.Int("limit-actions")))
			return nil
		})
		if err != nil {
			return err
		}
	} else {
		shown := false
		for _, x := range all {
			if x.err == nil {
				if shown {
					c.Out.Printf("\n")
				}
				shown = true
				cleanupText(c, x, len(all) > 1, dry)
			}
		}
	}
	for _, f := range failed {
		c.Warnf("%v", f.err)
	}
	if exit != ExitDone {
		return Status(exit)
	}
	return nil
}

// remarkRecovered tells what became of runs that were cut short.
func (c *Call) remarkRecovered(d *maintenance.Done) {
	if d == nil {
		return
	}
	for _, r := range d.Recovered {
		c.Warnf("an earlier run, %s, had been cut short and was %s: %s", r.Run.ID, r.Did, r.Why)
	}
}

// remarkRun tells what is to know of a run beside its actions.
func (c *Call) remarkRun(d *maintenance.Done) {
	for _, p := range d.Plan.Problems {
		c.Warnf("%s", p)
	}
	for _, s := range d.Skipped {
		c.Warnf("%s was left as it is: %s", s.Action.Target, s.Reason)
	}
	for _, u := range d.Plan.Unmet {
		c.Warnf("%s", u.Reason)
	}
	if len(d.Plan.Unmet) > 0 {
		c.Notef("raise the limit, or choose protected sessions by hand: oc sessions cleanup --older-than 30d --include-protected --dry-run")
	}
}
