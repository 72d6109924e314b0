package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"oc/config"
	"oc/gateway"
	"oc/maintenance"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/row"
	"oc/store/span"
)

// answerTime is how long a gateway may take for one change, where --gateway-timeout does not say: it may have to wait for a turn.
const answerTime = time.Minute

// compactTime is how long it may take for a summary: three minutes of its model, by default, and what is around it.
const compactTime = 5 * time.Minute

// queueTime is how long a change that is handed over waits for others of oc: each is at most a few calls long.
const queueTime = time.Minute

// A hand is a connection to the gateway that makes the changes of a command.
type hand struct {
	*Call
	conn *gateway.Conn
}

// asked is one session as a request to a gateway needs it.
type asked struct {
	key, agent, id string
	// sure is the id where the gateway's release compares it: that of the file era knows expectedSessionId in sessions.delete alone.
	sure string
}

// do makes one call, once.
func (h *hand) do(ctx context.Context, r gateway.Request) (json.RawMessage, error) {
	wait := answerTime
	if _, slow := r.(gateway.Compact); slow {
		wait = compactTime
	}
	if h.Given("gateway-timeout") {
		wait = h.Duration("gateway-timeout")
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	h.Tracef("calling %s", r.Method())
	return h.conn.Do(ctx, r)
}

// open says that after this error nothing more may be asked: whether the last call was carried out is not known, or nobody answers.
func open(err error) bool {
	var failed *gateway.Error
	return errors.As(err, &failed) && (failed.Sent || failed.Fault == gateway.HungUp || failed.Fault == gateway.Silent || failed.Fault == gateway.Interrupted)
}

// unsettled says that the outcome of a call is not known.
func unsettled(err error) bool {
	var failed *gateway.Error
	return errors.As(err, &failed) && failed.Sent
}

// handed gives what went wrong with a change that a gateway was to make its exit status, and says what is known of it.
func handed(err error, d *maintenance.Done) error {
	var failed *gateway.Error
	if !errors.As(err, &failed) {
		return changeError(err, d)
	}
	said := err
	if failed.Sent {
		said = fmt.Errorf("%w; nothing was done a second time", said)
		if d != nil && d.Run != nil {
			said = fmt.Errorf("%w, and run %s has what it may have changed: the next change of oc, or oc undo with the gateway stopped, writes down what became of it", said, d.Run.ID)
		}
	}
	if d.Changed() {
		said = fmt.Errorf("%w; what was done until then is run %s, which oc undo takes back with the gateway stopped", said, d.Run.ID)
	}
	e := gatewayError(said)
	if out := (*Error)(nil); errors.As(e, &out) && d != nil && d.Run != nil {
		if details, ok := out.Details.(map[string]any); ok {
			details["run"] = d.Run.ID
		}
	}
	return e
}

// hand hands a verb over, store by store, and says what was done.
func (c *Call) hand(ctx context.Context, conn *gateway.Conn, cfg *config.Config, v verb, all []changed) error {
	defer conn.Close()
	h := &hand{c, conn}
	if v.ask == nil {
		return &Error{Exit: ExitRefused, Code: "owned", Err: fmt.Errorf("nothing was changed: the gateway of this state lives, and %s: stop it first", or(v.closed, "it has no call for this"))}
	}
	w := c.worker(cfg)
	w.Wait = queueTime
	for i := range all {
		x := &all[i]
		x.via = viaGateway
		switch {
		case x.sqlite() && v.database != nil:
			x.before = idsOf(x.from)
			make := func(d *maintenance.Database) (*maintenance.Plan, []journal.Step, error) { return v.database(d, x.keys) }
			x.done, x.err = w.DelegateDatabase(ctx, x.target, x.from.Path, x.keys, make, maintenance.Delegation{
				Besides: v.besides, ByHand: true, Anyway: true,
				Call: func(ctx context.Context, _ *maintenance.Snapshot, p *maintenance.Plan) error {
					if len(p.Protected) > 0 {
						return nil
					}
					return h.each(ctx, v, x, nil)
				},
			})
		case x.sqlite():
			x.done, x.err = h.rows(ctx, cfg, w, v, x)
		default:
			policy := maintenance.Alone()
			if v.goes {
				policy = maintenance.Alone(v.going(x.keys)...)
			}
			plan := func(s *maintenance.Snapshot) (*maintenance.Plan, error) { return v.plan(s, x.keys) }
			x.done, x.err = w.Delegate(ctx, x.target, policy, plan, maintenance.Delegation{
				Besides: v.besides, ByHand: true,
				Call: func(ctx context.Context, s *maintenance.Snapshot, p *maintenance.Plan) error {
					if p.Empty() || v.once && len(p.Protected) > 0 {
						return nil
					}
					return h.each(ctx, v, x, planned(s, p))
				},
			})
		}
		if x.err == nil && v.leaves != nil && x.done.Handed != nil {
			now := v.leaves()
			for _, what := range x.left {
				switch {
				case slices.ContainsFunc(now, func(l leftover) bool { return l.what == what.what }):
				case what.stays():
					now = append(now, what)
				default:
					x.done.Handed.Unplanned = append(x.done.Handed.Unplanned, maintenance.Unplanned{Target: what.what, Covered: what.covered(x.done.Run)})
				}
			}
			x.left = now
		}
		if x.err != nil {
			x.err = handed(x.err, x.done)
			if unsettled(x.err) || ctx.Err() != nil {
				for k := range all[i+1:] {
					all[i+1+k].err = Failf("%s: not tried, because what became of the call before is not known", all[i+1+k].target.Index)
				}
				break
			}
		}
	}
	return c.reportVerb(v, all, false)
}

// planned are the sessions that a plan drops or writes, in its order.
func planned(s *maintenance.Snapshot, p *maintenance.Plan) (all []asked) {
	for i := range p.Actions {
		a := &p.Actions[i]
		if !a.Applies || a.Kind != maintenance.DropRow && a.Kind != maintenance.PutRow {
			continue
		}
		k := asked{key: a.Key, agent: agentOf(a.Key, s.Agent)}
		if r, ok := s.Row(a.Key); ok {
			k.id = r.ID
		}
		all = append(all, k)
	}
	return all
}

// agentOf is the agent to name beside a key that has none in it.
func agentOf(key, agent string) string {
	if row.KeyAgent(key) != "" {
		return ""
	}
	return agent
}

// each asks for one session after the other. What the gateway refuses is noted and the next is asked for; when it is not known what became
// of a call nothing more is asked.
func (h *hand) each(ctx context.Context, v verb, x *changed, all []asked) error {
	if v.once {
		all = all[:min(1, len(all))]
		if len(all) == 0 {
			all = []asked{{}}
		}
	}
	for _, k := range all {
		answer, err := h.do(ctx, v.ask(k))
		if err == nil {
			x.archived = append(x.archived, archivedIn(answer)...)
			if why := uncompacted(answer); why != nil {
				x.refuse(k.key, why)
			}
			continue
		}
		if open(err) || v.once {
			return err
		}
		x.refuse(k.key, err)
	}
	return nil
}

// rows hands over the change of sessions that are in a database. Their rows are saved before, and those of their transcripts too where they may
// change.
func (h *hand) rows(ctx context.Context, cfg *config.Config, w *maintenance.Worker, v verb, x *changed) (*maintenance.Done, error) {
	d := &maintenance.Done{Plan: &maintenance.Plan{Agent: x.target.Agent, Store: x.from.Path, Now: h.Now()}}
	var all []asked
	x.before = idsOf(x.from)
	for _, key := range x.keys {
		all = append(all, asked{key: key, agent: agentOf(key, x.target.Agent), id: x.before[key], sure: x.before[key]})
	}
	g := maintenance.DatabaseDelegation{Named: maintenance.Written, Call: func(ctx context.Context) error { return h.each(ctx, v, x, all) }}
	if v.goes || v.rewrites {
		g.Whole = x.keys
	} else {
		g.Rows = x.keys
	}
	err := w.DelegateRows(ctx, d, x.from, g)
	if d.Handed == nil {
		return d, err
	}
	for _, path := range x.archived {
		if _, e := os.Lstat(path); e != nil {
			h.Warnf("the gateway names the archive %s, which is not there: what was deleted is in the database, or gone", path)
		} else if !slices.ContainsFunc(d.Handed.Archives, func(known string) bool { return maintenance.SameStore(known, path) }) {
			d.Handed.Archives = append(d.Handed.Archives, path)
		}
	}
	after, e := store.Open(context.WithoutCancel(ctx), cfg, x.target)
	if e != nil {
		return d, errors.Join(err, storeError(after, e))
	}
	x.after = idsOf(after)
	return d, err
}

// refuse notes that the gateway did not do it to a session.
func (x *changed) refuse(key string, why error) {
	if x.refused == nil {
		x.refused = map[string]error{}
	}
	x.refused[key] = why
}

// uncompacted is why an answer to sessions.compact says that nothing was compacted: it is no error of the call.
func uncompacted(answer []byte) error {
	if string(span.Member(answer, "compacted")) != "false" {
		return nil
	}
	return Failf("the gateway says: %s", or(textIn(answer, "reason"), "it gives no reason"))
}

// archivedIn are the paths of the archives that an answer to sessions.delete names.
func archivedIn(answer []byte) (paths []string) {
	list := span.Member(answer, "archived")
	if span.KindOf(list) != span.Array {
		return nil
	}
	_, _ = span.Items(list, 0, func(path []byte) error { // a list that is damaged names fewer
		if text, ok := span.Text(path); ok {
			paths = append(paths, text)
		}
		return nil
	})
	return paths
}

func idsOf(s *store.Sessions) map[string]string {
	ids := make(map[string]string, len(s.Rows))
	for i := range s.Rows {
		ids[s.Rows[i].Key] = s.Rows[i].ID()
	}
	return ids
}
