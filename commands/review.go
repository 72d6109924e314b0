package commands

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"oc/commands/term"
	"oc/config"
	"oc/gateway"
	"oc/maintenance"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/row"
)

func reviewCommand() *Command {
	return &Command{
		Name:  "review",
		Short: "go through sessions that may go, one by one, and decide by a key",
		Long: "Shows the sessions that cleanup would take, those that were not written for long and those without any message, one at a time, the oldest first: title, first prompt, what was " +
			"said last, size, age, and why it is shown. A key keeps it, archives it or deletes it. Main, pinned and protected sessions are not shown.\n\n" +
			"Nothing is changed until the end. There the decisions are shown in numbers, and one plan does all of it, which oc undo takes back; a session that was written meanwhile stays. Leaving " +
			"earlier, by q or ctrl-c, changes nothing. Archiving and deleting are what oc sessions archive and oc sessions delete do, through the gateway where one lives.",
		Flags: []Flag{
			anyAgentFlag, storeFlag,
			{Name: "older-than", Value: "DURATION", Default: "30d", Help: "those not written for so long; units ms, s, m, h, d, w", Takes: "a positive duration such as 30d or 12h", Check: isSomeTime},
			dryFlag, keepUndoFlag, purgeFlag, besideGatewayFlag, asFlag,
		},
		Examples: []Example{
			{"oc review", "what may go, of all agents"},
			{"oc review --agent main --older-than 90d --dry-run", "decide, and see the plan alone"},
		},
		Exits: verbExits,
		Run:   review,
	}
}

// A decision is what is to become of a session.
type decision string

// The decisions.
const (
	undecided decision = ""
	toKeep    decision = "keep"
	toArchive decision = "archive"
	toDelete  decision = "delete"
)

// A candidate is a session that may go.
type candidate struct {
	row      *store.Row
	why      []string
	decision decision
}

func review(ctx context.Context, c *Call) error {
	if c.JSON() {
		return Usagef("oc review is for a person at a terminal and has no --json; oc sessions cleanup --dry-run --json says what would go")
	}
	if err := c.keeps(); err != nil {
		return err
	}
	l, err := c.forChange(ctx)
	if err != nil {
		return err
	}
	if l.sight, err = c.sight(l.cfg, l.opened); err != nil {
		return err
	}
	all, err := c.candidates(ctx, l)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		c.Out.Printf("No session is there that may go: see oc sessions --summary, or give a shorter --older-than.\n")
		return nil
	}
	screen, err := c.Out.Screen(c.Stdin)
	if errors.Is(err, term.ErrNoScreen) {
		return Usagef("oc review asks about %s one by one: %w; oc sessions cleanup --dry-run lists what would go", plural(len(all), "session", "sessions"), err)
	} else if err != nil {
		return Failf("take over the terminal: %w", err)
	}
	d := &deciding{call: c, l: l, all: all, screen: screen, redactor: c.redactor(l.cfg), looked: map[int]*store.Detail{}}
	apply, err := d.run(ctx)
	if err := errors.Join(err, screen.Close()); err != nil {
		return err
	}
	if !apply {
		c.Notef("nothing was changed")
		return nil
	}
	return c.carryOut(ctx, l.cfg, all)
}

// candidates are the sessions that may go, the oldest first.
func (c *Call) candidates(ctx context.Context, l *listing) (all []candidate, err error) {
	found := map[*store.Row]int{}
	add := func(r *store.Row, why string) {
		if l.sight.reads(r) != nil || row.IsMain(r.Key, true) || r.Pinned() {
			return
		}
		i, ok := found[r]
		if !ok {
			i = len(all)
			all, found[r] = append(all, candidate{row: r}), i
		}
		if !slices.Contains(all[i].why, why) {
			all[i].why = append(all[i].why, why)
		}
	}
	old := float64(c.Duration("older-than").Milliseconds())
	for _, s := range l.opened {
		if s.Era == store.NoEra {
			continue
		}
		rows := map[string]*store.Row{}
		for i := range s.Rows {
			rows[s.Rows[i].Key] = &s.Rows[i]
		}
		for _, o := range []maintenance.Orders{{Enforce: true, Named: s.Named}, {OlderThan: old, Named: true}, {Empty: true, Named: true}} {
			p, _, err := maintenance.ReadPolicy(l.cfg, o) // what is odd about it is told by others
			if err != nil {
				return nil, changeError(err, nil)
			}
			var d *maintenance.Done
			if s.Era == store.SQLiteEra {
				d, err = c.cleanDatabase(ctx, l.cfg, s.Target, s.Path, p, true)
			} else {
				d, err = rehearse(ctx, l.cfg, s.Target, p, c.Now())
			}
			if err != nil {
				return nil, changeError(err, nil)
			}
			for _, a := range d.Plan.Actions {
				if r := rows[a.Key]; r != nil && (a.Kind == maintenance.DropRow || a.Kind == maintenance.PutRow && s.Era == store.SQLiteEra) {
					add(r, strings.TrimSuffix(strings.TrimPrefix(a.Reason, "selected: "), "; it is put aside and not deleted"))
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(written(a.row), written(b.row)) })
	return all, nil
}

// written is when a row was last written; one of which that is not known comes last.
func written(r *store.Row) float64 {
	if r.Updated > 0 {
		return r.Updated
	}
	return math.Inf(1)
}

// carryOut does what was decided, each store in one plan and all of it in one group of runs.
func (c *Call) carryOut(ctx context.Context, cfg *config.Config, all []candidate) error {
	var stores []changed
	v := verb{past: "changed", goes: true, unwatches: true}
	shown := map[string]*candidate{} // by store and key
	id := func(store, key string) string { return store + "\x00" + key }
	for i := range all {
		x := &all[i]
		if x.decision != toArchive && x.decision != toDelete {
			continue
		}
		stores = addKey(stores, x.row.Store(), x.row.Key)
		shown[id(x.row.Store().Path, x.row.Key)] = x
		if x.decision == toArchive {
			v.keep = append(v.keep, x.row.Key)
		}
	}
	told := map[string]bool{}
	// decided is what still holds of the decisions.
	decided := func(s *maintenance.Snapshot, keys []string) (put, drop []string) {
		for _, key := range keys {
			x, r := shown[id(s.Store, key)], (*maintenance.Row)(nil)
			if r, _ = s.Row(key); x == nil || r == nil || r.Updated != x.row.Updated {
				if at := id(s.Store, key); !told[at] { // a plan may be made more than once
					c.Warnf("%s was written meanwhile and stays", key)
					told[at] = true
				}
			} else if x.decision == toArchive {
				put = append(put, key)
			} else {
				drop = append(drop, key)
			}
		}
		return put, drop
	}
	v.plan = func(s *maintenance.Snapshot, keys []string) (*maintenance.Plan, error) {
		put, drop := decided(s, keys)
		return maintenance.Review(s, put, drop, c.Now())
	}
	v.database = func(d *maintenance.Database, keys []string) (*maintenance.Plan, []journal.Step, error) {
		put, drop := decided(d.Snapshot, keys)
		return maintenance.ReviewDatabase(ctx, d, put, drop)
	}
	v.ask = func(k asked) gateway.Request {
		if slices.Contains(v.keep, k.key) {
			return gateway.Patch{Key: k.key, Agent: k.agent, ExpectedSessionID: k.sure, Fields: map[string]any{"archived": true}}
		}
		return gateway.Delete{Key: k.key, Agent: k.agent, ExpectedSessionID: k.id}
	}
	return c.apply(ctx, cfg, v, stores, "")
}
