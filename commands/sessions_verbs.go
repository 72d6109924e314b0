package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"oc/commands/term"
	"oc/config"
	"oc/gateway"
	"oc/maintenance"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/row"
	"oc/store/span"
)

// A verb is a change that a person asks for, session by session.
type verb struct {
	past string // "deleted"
	asks bool   // it needs a yes
	plan func(s *maintenance.Snapshot, keys []string) (*maintenance.Plan, error)
	goes bool     // the rows leave the store
	keep []string // with goes: the rows that do not

	// rows is the plan for sessions in a database; nil where oc does not do it there.
	rows func(cfg *config.Config, s *maintenance.Snapshot, keys []string) (*maintenance.Plan, error)
	// database, with goes, is the plan for all of a database; nil for one that deletes the sessions.
	database func(d *maintenance.Database, keys []string) (*maintenance.Plan, []journal.Step, error)

	rewrites  bool // transcripts change with the rows
	unwatches bool // the sessions watch nothing afterwards

	// ask is the request by which a gateway does it to a session; nil where it has none, and closed says why.
	ask     func(k asked) gateway.Request
	closed  string
	once    bool              // one request does all of it
	besides []string          // files that a gateway changes with it
	leaves  func() []leftover // what is left after a gateway did it; nil: what was said before
}

// going are the rows that leave the store, of those that are changed.
func (v verb) going(keys []string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !v.goes || slices.Contains(v.keep, key) })
}

// Who made a change, as results say it.
const (
	viaLocal   = "local"
	viaGateway = "gateway"
)

var (
	yesFlag     = Flag{Name: "yes", Help: "do not ask; what deletes asks, the rest goes on anyway"}
	mainFlag    = Flag{Name: "main", Help: "allow it for the main session of an agent"}
	dryFlag     = Flag{Name: "dry-run", Help: "show the plan and change nothing"}
	verbFlags   = []Flag{agentFlag, storeFlag, mainFlag, dryFlag, yesFlag, keepUndoFlag, purgeFlag, besideGatewayFlag}
	verbExits   = []int{ExitBusy, ExitRefused}
	verbAnyKeys = "\n\nKEY is a session key, exact or in another form of it, a session id, or a label. A session whose transcript is locked or was written in the last five minutes stays as it is " +
		"and is told; the others are changed. oc undo takes all of it back. While a gateway of this state lives it is asked to do it, also to a session that was written just now, and undo " +
		"waits until it has stopped."
)

// inRows is a plan that is made of a database as it is of a file.
func inRows(plan func(*maintenance.Snapshot, []string) (*maintenance.Plan, error)) func(*config.Config, *maintenance.Snapshot, []string) (*maintenance.Plan, error) {
	return func(_ *config.Config, s *maintenance.Snapshot, keys []string) (*maintenance.Plan, error) {
		return plan(s, keys)
	}
}

// changed is one store of a verb.
type changed struct {
	cleaned
	keys      []string   // that were asked for, as they stand in the store
	left      []leftover // what stays although it has to do with what went
	beyond    []leftover // of a dry run: what oc leaves, and a gateway that lives, or may, takes
	unwatched int64      // watches that went with them
	inferred  bool       // the row of a restored session is not the one that was lost
	instead   string     // the key that its saved row had, where that is in use again

	from          *store.Sessions   // as it was read to find the sessions; nil where none were looked for
	before, after map[string]string // session ids by key, of a database
	refused       map[string]error  // by key, what the gateway did not do
	archived      []string          // paths of archives, as the gateway gave them
}

// A leftover is something that has to do with what went and is in no store.
type leftover struct {
	what string // for people
	file string // that it is a part of; "" for a thing of its own
	dir  string // that it is; "" for another thing
	held bool   // a gateway leaves it, too
}

// stays says that a directory is where it was.
func (l leftover) stays() bool {
	_, err := os.Stat(l.dir)
	return l.dir != "" && err == nil
}

// parted are the things that a gateway takes, and those that it leaves.
func parted(all []leftover) (taken, left []leftover) {
	taken, left = []leftover{}, []leftover{}
	for _, l := range all {
		if l.held {
			left = append(left, l)
		} else {
			taken = append(taken, l)
		}
	}
	return taken, left
}

// covered says that a run has saved the file that it was in.
func (l leftover) covered(r *journal.Run) bool {
	return l.file != "" && r != nil && slices.ContainsFunc(r.Steps, func(s journal.Step) bool {
		return s.Kind == journal.Replace && maintenance.SameStore(s.Path, l.file)
	})
}

// sqlite says that the sessions are in a database.
func (x *changed) sqlite() bool { return x.from != nil && x.from.Era == store.SQLiteEra }

// ids are the session's id before and after the change, "" where it is not there.
func (x *changed) ids(key string) (before, after string) {
	if x.sqlite() && x.done.Handed != nil {
		return x.before[key], x.after[key]
	}
	id := func(s *maintenance.Snapshot) string {
		if s == nil {
			return ""
		}
		r, ok := s.Row(key)
		if !ok {
			return ""
		}
		return r.ID
	}
	before = id(x.done.Snapshot)
	if x.done.Handed != nil {
		return before, id(x.done.Handed.Snapshot)
	}
	after = before
	if _, value := outcome(x.done.Plan, key); value != nil {
		if e, err := row.New(key, value); err == nil {
			after = e.ID()
		}
	}
	return before, after
}

// change does a verb to the sessions that the words on the command line name.
func (c *Call) change(ctx context.Context, v verb, words []string) error {
	cfg, all, err := c.named(ctx, words)
	if err != nil {
		return err
	}
	var keys []string
	for _, x := range all {
		keys = append(keys, x.keys...)
	}
	if err := c.sparesMain(all, v.past); err != nil {
		return err
	}
	return c.apply(ctx, cfg, v, all, strings.Join(keys, ", "))
}

// sparesMain refuses to touch a main session that --main does not allow.
func (c *Call) sparesMain(all []changed, past string) error {
	for _, x := range all {
		for _, key := range x.keys {
			if row.IsMain(key, true) && !c.Bool("main") {
				return Usagef("%s is a main session; give --main if it is to be %s", key, past)
			}
		}
	}
	return nil
}

// apply asks, plans and applies, store by store, and says what was done.
func (c *Call) apply(ctx context.Context, cfg *config.Config, v verb, all []changed, what string) error {
	dry := c.Bool("dry-run")
	if err := c.keeps(); err != nil {
		return err
	}
	if !dry {
		if v.asks && !c.Bool("yes") {
			question := "%s will be %s. Go on?"
			if c.Bool("purge") {
				question = "%s will be %s, and nothing is saved for undo. Go on?"
			}
			if yes, err := c.Confirm(ctx, "--yes", question, what, v.past); err != nil || !yes {
				if err == nil {
					c.Notef("nothing was %s", v.past)
				}
				return err
			}
		}
		conn, err := c.way(ctx, cfg, all[0].target.Index, slices.ContainsFunc(all, func(x changed) bool { return x.sqlite() }))
		if err != nil {
			return err
		}
		if conn != nil {
			return c.hand(ctx, conn, cfg, v, all)
		}
	}
	for i := range all {
		if all[i].sqlite() && v.rows == nil && !v.goes {
			return changeable(all[i].from)
		}
	}
	owner := gateway.None
	if dry && v.leaves != nil && !c.Bool("offline") && !c.chose("beside-gateway") {
		owner = c.owner(ctx, cfg).Life
	}
	w := c.worker(cfg)
	for i := range all {
		x := &all[i]
		x.via = viaLocal
		switch owner {
		case gateway.Alive:
			x.beyond, x.left = parted(x.left)
		case gateway.Maybe:
			x.beyond, _ = parted(x.left)
		}
		if x.sqlite() {
			if c.changeRows(ctx, cfg, v, x, dry); x.err == nil && !dry {
				c.unwatch(ctx, cfg, v, x)
			}
			continue
		}
		policy := maintenance.Alone()
		if v.goes {
			policy = maintenance.Alone(v.going(x.keys)...)
		}
		plan := func(s *maintenance.Snapshot) (*maintenance.Plan, error) { return v.plan(s, x.keys) }
		if dry {
			x.done, x.err = c.rehearsal(ctx, cfg, x.target, policy, plan)
			if x.err == nil && slices.ContainsFunc(x.done.Plan.Protected, isRecent) && !c.Bool("offline") && !c.chose("beside-gateway") && !c.chose("store") && c.owner(ctx, cfg).Life == gateway.Alive {
				x.done, x.err = c.rehearsal(ctx, cfg, x.target, policy, func(s *maintenance.Snapshot) (*maintenance.Plan, error) {
					s.Governed = true // as it will be when the gateway is asked
					return plan(s)
				})
			}
		} else {
			w.Group = c.group
			x.done, x.err = w.Apply(ctx, x.target, policy, plan)
			c.group = w.Group
		}
		if x.err != nil {
			x.err = changeError(x.err, x.done)
		} else {
			c.unwatch(ctx, cfg, v, x)
		}
	}
	return c.reportVerb(v, all, dry)
}

func isRecent(k maintenance.Protected) bool { return k.Rule == maintenance.RecentBytes }

// rehearsal plans without applying.
func (c *Call) rehearsal(ctx context.Context, cfg *config.Config, t store.Target, p *maintenance.Policy, plan func(*maintenance.Snapshot) (*maintenance.Plan, error)) (*maintenance.Done, error) {
	if err := maintenance.Reachable(cfg, t.Index, p); err != nil {
		return nil, err
	}
	s, err := maintenance.Take(ctx, cfg, t, p, c.machine(), c.Now())
	if err != nil {
		return nil, err
	}
	d := &maintenance.Done{Snapshot: s}
	d.Plan, err = plan(s)
	return d, err
}

// named finds the sessions that words mean, by store. All of them must be there, in stores that oc can change.
func (c *Call) named(ctx context.Context, words []string) (cfg *config.Config, all []changed, err error) {
	l, err := c.forChange(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, word := range words {
		r, err := c.find(ctx, l, word)
		if err != nil {
			return nil, nil, c.unfit(l, err)
		}
		all = addKey(all, r.Store(), r.Key)
	}
	return l.cfg, all, nil
}

// settled finds the sessions again where a run that was cut short had to be finished first: its locks are still there, and its store may
// be another. What it said is passed on.
func (c *Call) settled(ctx context.Context, cfg *config.Config, all []changed) ([]changed, error) {
	w, path := c.worker(cfg), all[0].target.Index
	if all[0].sqlite() {
		w, path = c.holding(ctx, cfg), all[0].from.Path
		if cut, err := w.Recover(ctx, path, true); err == nil && len(cut) == 0 {
			return all, nil
		}
	}
	recovered, err := w.Recover(ctx, path, false)
	if err != nil {
		return nil, changeError(fmt.Errorf("finish an earlier run: %w", err), nil)
	}
	if len(recovered) == 0 {
		return all, nil
	}
	c.remarkRecovered(&maintenance.Done{Recovered: recovered})
	_, all, err = c.named(ctx, c.Args)
	return all, err
}

// forChange opens the stores that the flags mean, those of all agents without any.
func (c *Call) forChange(ctx context.Context) (*listing, error) {
	cfg, err := c.load()
	if err != nil {
		return nil, err
	}
	if err := c.knows(cfg); err != nil {
		return nil, err
	}
	l, err := c.gatherIn(ctx, cfg, !c.Given("agent") && !c.Given("store"))
	if err != nil {
		return nil, changeError(err, nil)
	}
	if err := c.asWritten(l.cfg); err != nil {
		return nil, err
	}
	return l, nil
}

// knows refuses where a configuration that cannot be read hides which agents there are and which stores they use. It goes before any look
// for the agent or the session that is named: neither is missing for all that is known.
func (c *Call) knows(cfg *config.Config) error {
	if cfg.Broken && !c.Given("store") {
		return Refusef("the configuration %s cannot be read, so which store is in use is not known; repair it, or name the store with --store", cfg.ConfigFile)
	}
	return nil
}

// unfit is the error for a session that was not found: where a store is damaged or gone, it may have been there.
func (c *Call) unfit(l *listing, err error) error {
	var damage *store.Damage
	if errors.As(err, &damage) {
		return changeError(err, nil)
	}
	for _, s := range l.opened {
		if s.Era != store.NoEra {
			continue
		}
		if n := s.Transcripts(); n > 0 {
			return changeError(&maintenance.Missing{Path: s.Path, Files: n}, nil)
		}
	}
	return err
}

// changeable refuses stores of the era that oc does not change yet.
func changeable(s *store.Sessions) error {
	if s.Era == store.SQLiteEra {
		return Refusef("the sessions of agent %s are in the database %s; this command changes stores of the file era only; nothing was changed", s.Agent, s.Path)
	}
	return nil
}

// addKey puts a key to the others of its store, once.
func addKey(all []changed, s *store.Sessions, key string) []changed {
	i := slices.IndexFunc(all, func(x changed) bool { return x.from.Path == s.Path })
	if i < 0 {
		i = len(all)
		all = append(all, changed{cleaned: cleaned{target: s.Target}, from: s})
	}
	if !slices.Contains(all[i].keys, key) {
		all[i].keys = append(all[i].keys, key)
	}
	return all
}

// reportVerb says what was, or would be, done.
func (c *Call) reportVerb(v verb, all []changed, dry bool) error {
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
		if x.unwatched > 0 {
			c.Notef("%d of its watches in the signal log went with it; they are made anew when they are needed", x.unwatched)
		}
		for _, what := range x.left {
			c.Notef("left as it is: %s", what.what)
		}
		for _, what := range x.beyond {
			if slices.Contains(x.left, what) {
				c.Notef("but if a gateway lives here, as it may, it is asked and takes this too: %s", what.what)
			} else {
				c.Notef("the gateway that lives here is asked, and takes this too: %s", what.what)
			}
		}
		if x.instead != "" {
			c.Notef("the key %s is in use again, so the row that was saved comes back as %s", x.instead, x.keys[0])
		}
		if x.inferred {
			c.Warnf("no run of oc that is kept has saved the row of this session: that of %s is inferred from the name of its archive", x.keys[0])
		}
		if len(x.done.Skipped) > 0 {
			exit = max(exit, ExitFailed)
		}
		for _, key := range x.keys {
			if err := x.refused[key]; err != nil {
				c.Warnf("%s was not %s: %v", key, v.past, err)
				status, _ := classify(gatewayError(err))
				exit = max(exit, status)
			}
		}
		c.remarkHanded(x.done)
		for _, k := range x.done.Plan.Protected {
			if k.Key == "" && !x.done.Plan.Empty() {
				c.Notef("%s stays: %s", k.Target, k.Reason)
				continue
			}
			c.Warnf("%s was not %s: %s", or(k.Key, k.Target), v.past, k.Reason)
			if k.Rule == maintenance.Locked {
				exit = max(exit, ExitBusy)
			} else {
				exit = max(exit, ExitRefused)
			}
		}
	}
	if c.JSON() {
		if err := c.Document(func(p *span.Printer) error { verbDocument(p, v, all, failed, dry); return nil }); err != nil {
			return err
		}
	} else {
		for _, x := range all {
			if x.err == nil {
				verbText(c, x, dry)
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

func verbDocument(p *span.Printer, v verb, all []changed, failed failures, dry bool) {
	p.Object()
	p.Key("dryRun").Bool(dry)
	if len(all) == 1 {
		verbMembers(p, v, all[0], dry)
		p.End()
		return
	}
	p.Key("stores").Array()
	for _, x := range all {
		if x.err == nil {
			p.Object()
			verbMembers(p, v, x, dry)
			p.End()
		}
	}
	p.End()
	failed.print(p)
	p.End()
}

func verbMembers(p *span.Printer, v verb, x changed, dry bool) {
	p.Key("agentId").String(x.target.Agent)
	p.Key("storePath").String(x.done.Plan.Store)
	if !dry {
		p.Key("via").String(x.via)
	}
	p.Key("sessions").Array()
	for _, key := range x.keys {
		p.Object()
		p.Key("key").String(key)
		before, after := x.ids(key)
		optional(p, "sessionId", or(before, after))
		if before != "" && after != "" && after != before {
			optional(p, "newSessionId", after)
		}
		p.Key("result").String(or(x.outcome(key), v.past))
		if err := x.refused[key]; err != nil {
			p.Key("reason").String(err.Error())
		}
		if x.inferred {
			p.Key("inferred").Bool(true)
		}
		p.End()
	}
	p.End()
	if x.left != nil {
		p.Key("left").Array()
		for _, what := range x.left {
			p.String(what.what)
		}
		p.End()
	}
	if x.beyond != nil {
		p.Key("beyond").Array()
		for _, what := range x.beyond {
			p.String(what.what)
		}
		p.End()
	}
	if v.unwatches && !dry && x.via == viaLocal {
		p.Key("watchesRemoved").Int(x.unwatched)
	}
	planMembers(p, x.done, 0)
	if dry {
		p.Key("undo").Null()
	} else {
		doneMembers(p, x.done)
	}
}

// outcome is what became of a session: "" where it was done as asked.
func (x *changed) outcome(key string) string {
	if x.refused[key] != nil {
		return "refused"
	}
	if h := x.done.Handed; h != nil && slices.Contains(h.NotDone, key) {
		return "unchanged"
	} else if h != nil && x.sqlite() {
		return ""
	}
	result, _ := outcome(x.done.Plan, key)
	return result
}

// outcome is what a plan does to a row: "" where it does what was asked, and the new row.
func outcome(p *maintenance.Plan, key string) (result string, value []byte) {
	if slices.ContainsFunc(p.Protected, func(k maintenance.Protected) bool { return k.Key == key }) {
		return "refused", nil
	}
	for i := range p.Actions {
		if a := &p.Actions[i]; a.Key == key && (a.Kind == maintenance.DropRow || a.Kind == maintenance.PutRow) {
			return "", a.Value
		}
	}
	return "unchanged", nil
}

// verbText shows to a person what was done to the sessions of a store.
func verbText(c *Call, x changed, dry bool) {
	d, out := x.done, c.Out
	if h := d.Handed; h != nil && len(x.refused) > 0 && len(h.Dropped)+len(h.Written)+len(h.Unplanned)+h.Gone == 0 {
		out.Printf("Nothing was changed.\n") // why is told already
		return
	}
	if x.sqlite() && d.Handed != nil {
		handedText(c, d)
		return
	}
	if len(d.Plan.Actions) == 0 {
		out.Printf("Nothing to do in %s.\n", d.Plan.Store)
		return
	}
	t := out.Table(term.Column{Head: "Action"}, term.Column{Head: "Session or file", Cut: term.Middle, Min: 28}, term.Column{Head: "Size", Right: true, Drop: 1})
	var why []string
	for i := range d.Plan.Actions {
		a := &d.Plan.Actions[i]
		if a.Key != "" && x.refused[a.Key] != nil {
			continue
		}
		what := a.Key
		if a.Target != "" {
			what = baseOf(a.Target)
		}
		if a.To != "" {
			what = baseOf(a.To)
		}
		t.Row(string(a.Kind), what, term.Bytes(a.Bytes))
		if a.Kind != maintenance.Rewrite && !slices.Contains(why, a.Reason) {
			why = append(why, a.Reason)
		}
	}
	t.End()
	out.Printf("\nWhy: %s\n", term.Escape(strings.Join(why, "; ")))
	if dry {
		out.Printf("Dry run: nothing was changed.\n")
		return
	}
	if d.Handed != nil {
		handedText(c, d)
		return
	}
	rows, files := committed(d)
	out.Printf("Done locally: %s and %s changed.\n", plural(rows, "row", "rows"), plural(files, "file", "files"))
	switch {
	case d.Run == nil:
	case d.Run.Purge:
		out.Printf("Nothing was saved; it cannot be taken back.\n")
	default:
		out.Printf("Take it back with: oc undo %s\n", d.Run.ID)
	}
}
