package commands

import (
	"context"
	"fmt"
	"slices"

	"oc/commands/term"
	"oc/config"
	"oc/store"
	"oc/store/row"
	"oc/store/span"
)

// asFlag keeps an answer to what one session may see (spec/session-tools.md 5).
var asFlag = Flag{Name: "as", Value: "KEY", Help: "only what this session may see with OpenClaw's session tools; $OC_SESSION in a shell that OpenClaw started"}

// sight is what the session that asks may see of others. A nil sight sees everything.
type sight struct {
	*store.Sight
	now    float64
	hidden int
}

// sight is that of --as, or of $OC_SESSION in a shell that an agent runs in. It is a courtesy to the agent, not a wall. The session's
// release is told by the era of the store that it is in.
func (c *Call) sight(cfg *config.Config, opened []*store.Sessions) (*sight, error) {
	caller := ""
	if c.Env("OPENCLAW_SHELL") == "exec" {
		caller = c.Env("OC_SESSION")
	}
	for i := range c.Path[len(c.Path)-1].Flags {
		if c.Path[len(c.Path)-1].Flags[i].Name == "as" && c.Given("as") {
			if caller = c.String("as"); caller == "" {
				return nil, Usagef("--as takes the key of a session")
			}
		}
	}
	if caller == "" {
		return nil, nil
	}
	agent, _, ok := row.Parse(caller)
	if !ok {
		agent = cfg.DefaultAgent()
	}
	key, release := store.StoredKey(cfg, agent, caller), config.Release735
	if err := c.knownCaller(cfg, opened, agent, key, caller); err != nil {
		return nil, err
	}
	for _, s := range opened {
		if s.Agent == agent && s.Era == store.SQLiteEra {
			release = config.Release82
		}
	}
	return &sight{Sight: store.SightOf(cfg, key, release), now: c.nowMs()}, nil
}

// knownCaller is an error where --as names a session that is nowhere: a slip would else be answered as a session that sees little or nothing.
// An agent's main session need not have begun. What $OC_SESSION says is OpenClaw's own, and its session may be too new to be on disk.
func (c *Call) knownCaller(cfg *config.Config, opened []*store.Sessions, agent, key, caller string) error {
	if find(c.Path[len(c.Path)-1].Flags, "--as") == nil || !c.Given("as") || key == store.StoredKey(cfg, agent, "main") && slices.Contains(cfg.StoreAgents(), row.AgentID(agent)) {
		return nil
	}
	has := func(s *store.Sessions) bool {
		for i := range s.Rows {
			if k := s.Rows[i].Key; k == caller || store.StoredKey(cfg, s.Agent, k) == key {
				return true
			}
		}
		return false
	}
	if slices.ContainsFunc(opened, has) {
		return nil
	}
	targets, err := store.Targets(cfg, store.Pick{All: true})
	if err != nil {
		return nil //nolint:nilerr // told by the command itself
	}
	var all []*store.Sessions
	for _, t := range append(targets, store.StrangerTargets(cfg)...) {
		s, err := store.Open(context.Background(), cfg, t)
		if err != nil {
			return nil //nolint:nilerr // the session may be in what cannot be read
		}
		if has(s) {
			return nil
		}
		all = append(all, s)
		if o, err := s.OtherEra(context.Background()); err == nil && o != nil && has(o) {
			return nil
		}
	}
	hint := "oc sessions --all-agents lists them"
	near := store.Near(all, caller)
	if near == "" {
		near = slip(all, caller)
	}
	if near != "" {
		hint = fmt.Sprintf("did you mean %s?", term.Escape(near))
	}
	return &Error{Exit: ExitFailed, Code: "not-found", Err: fmt.Errorf("--as: no session has the key %q; %s", brief(caller), hint)}
}

// lists tells whether a list shows the session, and counts it where not.
func (s *sight) lists(r *store.Row) bool {
	if s == nil || s.Lists(store.SightedOf(r)) == store.Seen {
		return true
	}
	s.hidden++
	return false
}

// runs tells whether the caller sees that a session has a run, and counts it where not.
func (s *sight) runs(r busy) bool {
	if s == nil {
		return true
	}
	t := store.Sighted{Key: textIn(r.row, "key"), SpawnedBy: textIn(r.row, "spawnedBy"), Parent: textIn(r.row, "parentSessionKey")}
	t.Agent, _, _ = row.Parse(t.Key)
	if s.Lists(t) == store.Seen {
		return true
	}
	s.hidden++
	return false
}

// hears tells whether the caller sees what the signal log says of a session, and counts it where not.
func (s *sight) hears(key, agent string) bool {
	return s == nil || s.counts(store.Sighted{Key: key, Agent: agent})
}

// again begins the count anew.
func (s *sight) again() {
	if s != nil {
		s.hidden = 0
	}
}

// reads is an error where the session's details and history are not for the caller.
func (s *sight) reads(r *store.Row) error {
	if s == nil {
		return nil
	}
	return s.allows(store.SightedOf(r), r.Key)
}

// allows is reads for a session that may be in no store.
func (s *sight) allows(t store.Sighted, key string) error {
	if s == nil {
		return nil
	}
	if veil := s.Reads(t, s.now); veil != store.Seen {
		return &Error{Exit: ExitFailed, Code: "forbidden", Err: fmt.Errorf("%s is not for %s: %s", key, s.Caller, veil), Details: map[string]any{"key": key, "as": s.Caller}}
	}
	return nil
}

// searches tells whether what stands in a transcript is for the caller. One that no session owns is like any session of its agent.
func (s *sight) searches(v *store.Volume) bool {
	if s == nil {
		return true
	}
	t := store.Sighted{Key: v.Key, Agent: v.Agent}
	if v.Row != nil {
		t = store.SightedOf(v.Row)
	}
	return s.counts(t)
}

func (s *sight) counts(t store.Sighted) bool {
	if s.Reads(t, s.now) == store.Seen {
		return true
	}
	s.hidden++
	return false
}

// follows is an error where a trail leads to sessions that are not for the caller. Of a trail without a key the transcripts decide.
func (s *sight) follows(t *store.Trail, c *store.Corpus) error {
	if s == nil {
		return nil
	}
	known := map[string]bool{}
	for _, o := range c.Stores {
		for i := range o.Rows {
			if r := &o.Rows[i]; t.Has(r.Key, r.ID()) {
				if known[r.Key] = true; s.reads(r) != nil {
					return s.reads(r)
				}
			}
		}
	}
	for _, key := range t.Keys {
		agent, _, ok := row.Parse(key)
		if known[key] || !ok {
			continue
		}
		if err := s.allows(store.Sighted{Key: key, Agent: agent}, key); err != nil {
			return err
		}
	}
	for _, v := range c.Volumes {
		if v.Row == nil && t.Has(v.Key, v.ID) {
			if err := s.allows(store.Sighted{Key: v.Key, Agent: v.Agent}, volumeName(v)); err != nil {
				return err
			}
		}
	}
	return nil
}

// sees tells whether a row is for the caller, and counts nothing.
func (s *sight) sees(r *store.Row) bool {
	return s == nil || s.Reads(store.SightedOf(r), s.now) == store.Seen
}

// print writes visibility{}, which is left out where everything is seen.
func (s *sight) print(p *span.Printer) {
	if s == nil || s.Scope == store.ScopeAll {
		return
	}
	p.Key("visibility").Object()
	p.Key("mode").String(string(s.Scope))
	p.Key("restricted").Bool(true)
	p.Key("warning").String(s.warning())
	p.End()
}

func (s *sight) warning() string {
	if s.Clamped {
		return fmt.Sprintf("%s runs in a sandbox and sees what it has spawned; counts are of that alone", s.Caller)
	}
	return fmt.Sprintf("tools.sessions.visibility is %s for %s: other sessions may be left out, and counts are of what it sees", s.Scope, s.Caller)
}

// tell says on standard error that something was left out.
func (s *sight) tell(c *Call) {
	if s != nil && s.hidden > 0 {
		c.Notef("%s not for %s and left out: %s", plural(s.hidden, "is", "are"), s.Caller, s.warning())
	}
}
