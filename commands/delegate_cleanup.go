package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"oc/gateway"
	"oc/maintenance"
	"oc/store"
	"oc/store/span"
)

// anyDatabase says that all that is to change is in databases.
func anyDatabase(targets []store.Target) bool {
	return !slices.ContainsFunc(targets, func(t store.Target) bool {
		return t.Named && t.Index != "" || !slices.ContainsFunc(t.Databases, func(path string) bool { _, err := os.Stat(path); return err == nil })
	})
}

// handCleanup hands a cleanup over, store by store: to the gateway's own cleanup where that does what was asked for and no more, else session
// by session.
func (c *Call) handCleanup(ctx context.Context, conn *gateway.Conn, w *maintenance.Worker, targets []store.Target, p *maintenance.Policy) error {
	defer conn.Close()
	h := &hand{c, conn}
	w.Wait = queueTime
	o := c.orders()
	byHand := o.ByHand()
	var all []cleaned
	for _, t := range targets {
		x := cleaned{target: t, done: &maintenance.Done{}, via: viaGateway}
		s, err := store.Open(ctx, w.Config, t)
		switch {
		case s.Era == store.SQLiteEra && err != nil:
			x.err = changeError(storeError(s, err), nil)
		case s.Era == store.SQLiteEra:
			x.done, x.err = h.cleanRows(ctx, w, s, p, &x)
		default:
			bar := c.Progress("cleaning " + t.Agent)
			x.done, x.err = w.Delegate(ctx, t, p, func(s *maintenance.Snapshot) (*maintenance.Plan, error) {
				return maintenance.Make(p, s, c.Now()), nil
			}, maintenance.Delegation{Anyway: !byHand, Call: func(ctx context.Context, s *maintenance.Snapshot, plan *maintenance.Plan) error {
				return h.clean(ctx, s, plan, &x)
			}})
			bar.Done()
		}
		stop := unsettled(x.err) || ctx.Err() != nil
		if x.err != nil {
			x.err = handed(x.err, x.done)
		}
		all = append(all, x)
		if stop {
			break
		}
	}
	return c.reportCleanup(all, p, false)
}

// request is the gateway's own cleanup of an agent.
func (h *hand) request(agent string) gateway.Cleanup {
	o := h.orders()
	r := gateway.Cleanup{Agent: agent, Enforce: o.Enforce, FixMissing: o.FixMissing, FixDMScope: o.FixDMScope}
	if len(o.ActiveKeys) == 1 {
		r.ActiveKey = o.ActiveKeys[0]
	}
	return r
}

// inexpressible says why the gateway's own cleanup would do other things than were asked for; "" where it would not.
func (h *hand) inexpressible(plan *maintenance.Plan) string {
	o := h.orders()
	switch {
	case o.ByHand():
		return "it has no selection by hand"
	case o.KeepUnlinked:
		return "it knows no --keep-unlinked"
	case len(o.ActiveKeys) > 1:
		return "it takes one --active-key only"
	}
	if plan == nil {
		return ""
	}
	for i := range plan.Protected {
		k := &plan.Protected[i]
		if k.Key != "" && !slices.Contains(theirs, k.Rule) {
			return fmt.Sprintf("it would take %s too, which stays (%s)", k.Key, k.Rule)
		}
	}
	return ""
}

// theirs are the rules that protect a row in OpenClaw too; those of the second line do in databases, and where sessions are chosen by hand.
var theirs = []maintenance.Rule{
	maintenance.ActiveKey, maintenance.Thread, maintenance.Group, maintenance.JobExists, maintenance.JobsUnknown, maintenance.SlashRoute,
	maintenance.Shelved, maintenance.Pinned, maintenance.ModelLocked, maintenance.Running, maintenance.Recent, maintenance.MainSession, maintenance.External,
}

// clean makes the calls of a plan.
func (h *hand) clean(ctx context.Context, s *maintenance.Snapshot, plan *maintenance.Plan, x *cleaned) error {
	why := h.inexpressible(plan)
	rest := 0
	for i := range plan.Actions {
		a := &plan.Actions[i]
		if !a.Applies {
			continue
		}
		one := a.Kind == maintenance.DropRow && (why != "" || a.Rule == maintenance.CronRetention || a.Rule == maintenance.ByHand)
		aside := a.Kind == maintenance.PutRow && a.Rule != maintenance.Repair && why != "" // it is archived where it is, in a database
		if !one && !aside {
			if why != "" && a.Key == "" && a.Kind != maintenance.Rewrite || a.Kind == maintenance.PutRow {
				rest++
			}
			continue
		}
		k := asked{key: a.Key, agent: agentOf(a.Key, s.Agent)}
		if r, ok := s.Row(a.Key); ok {
			k.id = r.ID
		}
		var ask gateway.Request = gateway.Delete{Key: k.key, Agent: k.agent, ExpectedSessionID: k.id}
		if aside {
			ask = gateway.Patch{Key: k.key, Agent: k.agent, ExpectedSessionID: k.id, Fields: map[string]any{"archived": true}}
		}
		switch _, err := h.do(ctx, ask); {
		case err == nil:
		case open(err):
			return err
		default:
			x.unasked = append(x.unasked, fmt.Sprintf("%s stays: %v", k.key, err))
		}
	}
	if why != "" {
		if rest > 0 {
			x.unasked = append(x.unasked, fmt.Sprintf("%s that no session names stay as they are: the gateway's own cleanup was not called, because %s; stop the gateway to clean them too", plural(rest, "file", "files"), why))
		}
		return nil
	}
	answer, err := h.do(ctx, h.request(s.Agent))
	return h.take(answer, err, x)
}

// take keeps the answer of a cleanup, or the part of one that an error carries.
func (h *hand) take(answer json.RawMessage, err error, x *cleaned) error {
	var failed *gateway.Error
	if errors.As(err, &failed) && failed.Partial() != nil {
		answer = failed.Partial()
		x.unasked = append(x.unasked, fmt.Sprintf("the gateway did a part only: %v", err))
		err = nil
	}
	x.answer = answer
	return err
}

// cleanRows has the gateway clean sessions in a database. All rows of the sessions that oc's own plan deletes are saved before, of those that it puts
// aside what hangs on the key, and the files that it removes; what goes beside them is told by comparing the rows, and is not saved.
func (h *hand) cleanRows(ctx context.Context, w *maintenance.Worker, s *store.Sessions, p *maintenance.Policy, x *cleaned) (*maintenance.Done, error) {
	d, err := h.cleanDatabase(ctx, w.Config, s.Target, s.Path, p, true)
	if err != nil {
		return d, err
	}
	// Archives get their names from who makes them.
	d.Plan.Actions = slices.DeleteFunc(d.Plan.Actions, func(a maintenance.Action) bool { return a.Kind == maintenance.Create })
	g := maintenance.DatabaseDelegation{Named: maintenance.PutAside, Call: func(ctx context.Context) error { return h.clean(ctx, d.Snapshot, d.Plan, x) }}
	for i := range d.Plan.Actions {
		switch a := &d.Plan.Actions[i]; {
		case !a.Applies:
		case a.Kind == maintenance.DropRow:
			g.Whole = append(g.Whole, a.Key)
		case a.Kind == maintenance.PutRow:
			g.Rows = append(g.Rows, a.Key)
		}
	}
	return d, w.DelegateRows(ctx, d, s, g)
}

// handedCleanupMembers is OpenClaw's document of a cleanup that a gateway made: its own numbers, but rows as they were counted before and
// after, because 2026.7.35 counts beforeCount when it is done.
func handedCleanupMembers(p *span.Printer, x cleaned) {
	d := x.done
	p.Key("agentId").String(d.Plan.Agent)
	p.Key("storePath").String(d.Plan.Store)
	answered := func(name, otherwise string) {
		raw := span.Member(x.answer, name)
		if raw == nil {
			raw = []byte(otherwise)
		}
		p.Key(name).Raw(raw)
	}
	answered("mode", `"`+or(string(d.Plan.Mode), "enforce")+`"`)
	p.Key("dryRun").Bool(false)
	p.Key("beforeCount").Int(int64(d.Handed.Before))
	p.Key("afterCount").Int(int64(d.Handed.After))
	counts := ruleCounts(d)
	for _, name := range []string{"repaired", "missing", "dmScopeRetired", "modelRunPruned", "archived", "capArchived", "pruned", "capped"} {
		if n, ours := counts[name]; x.answer == nil || span.Member(x.answer, name) == nil {
			if ours || x.answer == nil && name != "archived" && name != "capArchived" {
				p.Key(name).Int(n)
			}
			continue
		}
		answered(name, "0")
	}
	answered("unreferencedArtifacts", "null")
	answered("diskBudget", "null")
	p.Key("wouldMutate").Bool(len(d.Handed.Dropped)+len(d.Handed.Written)+d.Handed.Gone > 0 || string(span.Member(x.answer, "wouldMutate")) == "true")
	p.Key("applied").Bool(true)
	p.Key("appliedCount").Int(int64(d.Handed.After))
	p.Key("via").String(x.via)
	p.Key("cronPruned").Int(counts["cronPruned"])
	p.Key("byHand").Int(counts["byHand"])
	if len(x.unasked) > 0 {
		p.Key("left").Array()
		for _, what := range x.unasked {
			p.String(what)
		}
		p.End()
	}
}

// ruleCounts are the rows that went, by OpenClaw's names for what the plan gave as the reason.
func ruleCounts(d *maintenance.Done) map[string]int64 {
	names := map[maintenance.Rule]string{
		maintenance.FixMissing: "missing", maintenance.DMScope: "dmScopeRetired", maintenance.ModelRun: "modelRunPruned", maintenance.Stale: "pruned", maintenance.Cap: "capped",
		maintenance.CronRetention: "cronPruned", maintenance.ByHand: "byHand",
	}
	counts := map[string]int64{}
	for i := range d.Plan.Actions {
		a := &d.Plan.Actions[i]
		if a.Kind == maintenance.DropRow && slices.Contains(d.Handed.Dropped, a.Key) {
			counts[names[a.Rule]]++
		}
	}
	return counts
}
