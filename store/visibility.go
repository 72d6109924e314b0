package store

import (
	"slices"
	"strings"

	"oc/store/lazy"

	"oc/config"
	"oc/store/row"
	"oc/store/span"
)

// A Scope is how far the session tools of an agent see:
// tools.sessions.visibility (spec/session-tools.md 5).
type Scope string

// The scopes, from the narrowest.
const (
	ScopeSelf  Scope = "self"
	ScopeTree  Scope = "tree"
	ScopeAgent Scope = "agent"
	ScopeAll   Scope = "all"
)

// A Sight is what one session may see of others with OpenClaw's session tools.
// The zero Sight sees nothing but itself. It follows releases 2026.7.35 and
// 2026.8.2, by Release. It is a courtesy of who asks, not a wall: the caller
// owns the files.
type Sight struct {
	Caller  string // its stored key
	Main    string // the main session of its agent
	Scope   Scope  // as configured, after the clamp
	Clamped bool   // the caller runs in a sandbox, which sees what it has spawned
	Release config.Release
	Pairs   Pairs
}

// Pairs is tools.agentToAgent.
type Pairs struct {
	Enabled bool
	Allow   []string // empty: every agent
}

// SightOf reads what the configuration lets a session see.
func SightOf(c *config.Config, caller string, release config.Release) *Sight {
	agent := row.KeyAgent(caller)
	if agent == "" {
		agent = c.DefaultAgent()
	}
	s := &Sight{Caller: caller, Main: StoredKey(c, agent, "main"), Release: release}
	s.Scope = ScopeAgent
	if release == config.Release735 {
		s.Scope = ScopeTree
	}
	if v, ok := c.Value("tools", "sessions", "visibility"); ok {
		text, _ := v.Str()
		if scope := Scope(strings.ToLower(span.Trim(text))); slices.Contains([]Scope{ScopeSelf, ScopeTree, ScopeAgent, ScopeAll}, scope) {
			s.Scope = scope
		}
	}
	clamp := "spawned"
	if v, ok := c.Value("agents", "defaults", "sandbox", "sessionToolsVisibility"); ok {
		clamp, _ = v.Str()
	}
	if clamp == "spawned" && sandboxed(c, agent, caller, s.Main) {
		s.Scope, s.Clamped = ScopeTree, true
	}
	if v, ok := c.Value("tools", "agentToAgent", "enabled"); ok {
		s.Pairs.Enabled, _ = v.Flag()
	}
	if v, ok := c.Value("tools", "agentToAgent", "allow"); ok {
		for _, item := range v.Items {
			text, _ := item.Str()
			s.Pairs.Allow = append(s.Pairs.Allow, text)
		}
	}
	return s
}

// sandboxed tells whether a session runs in a sandbox: mode all, or non-main and
// not the main session.
func sandboxed(c *config.Config, agent, key, main string) bool {
	mode := "off"
	if v, ok := c.Value("agents", "defaults", "sandbox", "mode"); ok {
		mode, _ = v.Str()
	}
	if a, ok := c.Agent(agent); ok {
		if own, ok := a.Entry.At("sandbox", "mode").Str(); ok {
			mode = own
		}
	}
	return mode == "all" || mode == "non-main" && key != main
}

// allowed tells whether two agents may see each other.
func (p Pairs) allowed(a, b string) bool { return a == b || p.Enabled && p.matches(a) && p.matches(b) }

func (p Pairs) matches(agent string) bool {
	return len(p.Allow) == 0 || slices.ContainsFunc(p.Allow, func(pattern string) bool { return glob(span.Trim(pattern), agent) })
}

// glob matches an entry of an allow list: exact as it is written, or in any
// case where it has a star. A blank one matches nothing.
func glob(pattern, s string) bool {
	if pattern == "" || !strings.Contains(pattern, "*") {
		return pattern != "" && pattern == s
	}
	parts := strings.Split(strings.ToLower(pattern), "*")
	rest, ok := strings.CutPrefix(strings.ToLower(s), parts[0])
	if !ok {
		return false
	}
	if rest, ok = strings.CutSuffix(rest, parts[len(parts)-1]); !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return false
		}
	}
	return true
}

// A Sighted is another session, as its row tells.
type Sighted struct {
	Key, Agent        string
	SpawnedBy, Parent string // stored keys
	Status            string
	Ended, Updated    float64 // epoch ms; 0 unknown
}

// SightedOf is a row as sight needs it.
func SightedOf(r *Row) Sighted {
	s := r.sessions
	stored := func(f row.Field) string {
		if key, ok := r.Text(f); ok && key != "" {
			return StoredKey(s.config, s.Agent, key)
		}
		return ""
	}
	t := Sighted{Key: StoredKey(s.config, s.Agent, r.Key), Agent: s.Agent, Updated: r.Updated, SpawnedBy: stored(row.SpawnedBy), Parent: stored(row.ParentSessionKey)}
	if id, _, ok := row.Parse(t.Key); ok {
		t.Agent = id
	}
	t.Status, _ = r.Text(row.Status)
	t.Ended, _ = r.Stamp(row.EndedAt)
	return t
}

// How long a child that has ended, and one without a status, counts as a child
// of its parent, in ms (spec/session-tools.md 0.6).
const (
	keptEnded  = 30 * 60_000
	keptSilent = 60 * 60_000
)

// Kept tells whether the link to a spawned session still counts for reading it,
// as far as its row tells.
func (t Sighted) Kept(now float64) bool {
	switch {
	case t.Ended > 0:
		return now-t.Ended <= keptEnded
	case t.Status == "running":
		return true
	case t.Status == "":
		return now-t.Updated <= keptSilent
	}
	return false
}

// A Veil is why a session is not seen; "" where it is.
type Veil string

// The veils.
const (
	Seen         Veil = ""
	NotSelf      Veil = "tools.sessions.visibility is self: only the session itself is seen"
	NotTree      Veil = "tools.sessions.visibility is tree: only the session itself and what it has spawned are seen"
	NotSpawned   Veil = "the caller runs in a sandbox: only what it has spawned is seen"
	LinkExpired  Veil = "the session was spawned by the caller, but ended more than 30 minutes ago"
	OtherAgent   Veil = "it is another agent's, which needs tools.sessions.visibility all and tools.agentToAgent.enabled"
	PairsOff     Veil = "it is another agent's, and tools.agentToAgent.enabled is not true"
	PairNotKnown Veil = "it is another agent's, and tools.agentToAgent.allow does not name both"
	Incognito    Veil = "it is incognito"
)

// Lists tells whether a list shows the session.
func (s *Sight) Lists(t Sighted) Veil {
	if s.Clamped && !isSubagentKey(s.Caller) && t.SpawnedBy != s.Caller {
		return NotSpawned
	}
	return s.check(t, t.SpawnedBy == s.Caller || t.Parent == s.Caller)
}

// Reads tells whether the session's history, status and details are shown. A
// child that ended long ago is listed but not read.
func (s *Sight) Reads(t Sighted, now float64) Veil {
	child := t.SpawnedBy == s.Caller || t.Parent == s.Caller
	v := s.check(t, child && t.Kept(now))
	if v == NotTree && child {
		return LinkExpired
	}
	return v
}

func (s *Sight) check(t Sighted, owned bool) Veil {
	mine := t.Key == s.Caller
	agent := row.KeyAgent(s.Caller)
	other := t.Agent != agent
	later := s.Release != config.Release735
	if later {
		if incognito().MatchString(t.Key) {
			return Incognito
		}
		owned = owned || s.Scope == ScopeTree && !other && s.Caller == s.Main
	}
	if !mine && owned && (s.Scope == ScopeTree || s.Scope == ScopeAll) && (!later || !other || isSubagentKey(t.Key) || isACP(t.Key)) {
		return Seen
	}
	switch {
	case other && s.Scope != ScopeAll:
		return OtherAgent
	case other && !s.Pairs.Enabled:
		return PairsOff
	case other && !s.Pairs.allowed(agent, t.Agent):
		return PairNotKnown
	case other:
		return Seen
	case s.Scope == ScopeSelf && !mine:
		return NotSelf
	case s.Scope == ScopeTree && !mine && !owned:
		return NotTree
	}
	return Seen
}

var incognito = lazy.Regexp(`(?i)^agent:[^:]+:(?:dashboard|subagent|internal-session-effects):incognito-[^:]+$`)

func isSubagentKey(key string) bool { return strings.HasPrefix(row.Rest(key), "subagent:") }
