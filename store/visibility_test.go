package store

import (
	"testing"

	"oc/config"
)

// The table of spec/session-tools.md 5, which was recorded from release 2026.7.35.
func TestVisibilityTable(t *testing.T) {
	const now = 1_789_000_000_000
	me := "agent:main:telegram:direct:1"
	self := Sighted{Key: me, Agent: "main", Updated: now}
	kept := Sighted{Key: "agent:main:subagent:a", Agent: "main", SpawnedBy: me, Status: "running", Updated: now}
	expired := Sighted{Key: "agent:main:subagent:b", Agent: "main", SpawnedBy: me, Status: "done", Ended: now - 31*60_000, Updated: now}
	sibling := Sighted{Key: "agent:main:main", Agent: "main", Updated: now}
	foreign := Sighted{Key: "agent:work:main", Agent: "work", Updated: now}
	for _, c := range []struct {
		scope Scope
		list  [5]bool // self, kept child, expired child, same agent's other, another agent's
		read  [5]bool
	}{
		{ScopeSelf, [5]bool{true, false, false, false, false}, [5]bool{true, false, false, false, false}},
		{ScopeTree, [5]bool{true, true, true, false, false}, [5]bool{true, true, false, false, false}},
		{ScopeAgent, [5]bool{true, true, true, true, false}, [5]bool{true, true, true, true, false}},
		{ScopeAll, [5]bool{true, true, true, true, false}, [5]bool{true, true, true, true, false}},
	} {
		s := Sight{Caller: me, Main: "agent:main:main", Scope: c.scope}
		for i, x := range []Sighted{self, kept, expired, sibling, foreign} {
			if v := s.Lists(x); (v == Seen) != c.list[i] {
				t.Errorf("%s lists %s: %q, want %v", c.scope, x.Key, v, c.list[i])
			}
			if v := s.Reads(x, now); (v == Seen) != c.read[i] {
				t.Errorf("%s reads %s: %q, want %v", c.scope, x.Key, v, c.read[i])
			}
		}
	}
}

func TestVisibilityRules(t *testing.T) {
	const now = 1_789_000_000_000
	me, main := "agent:main:telegram:direct:1", "agent:main:main"
	foreignChild := Sighted{Key: "agent:work:subagent:c", Agent: "work", SpawnedBy: me, Status: "running"}
	foreignTalk := Sighted{Key: "agent:work:main", Agent: "work", SpawnedBy: me, Status: "running"}
	sibling := Sighted{Key: "agent:main:telegram:direct:2", Agent: "main"}
	grandchild := Sighted{Key: "agent:main:subagent:g", Agent: "main", SpawnedBy: "agent:main:subagent:a", Status: "running"}
	hidden := Sighted{Key: "agent:main:dashboard:incognito-1", Agent: "main"}
	all := Pairs{Enabled: true}
	for _, c := range []struct {
		name  string
		sight Sight
		of    Sighted
		list  Veil
		read  Veil
	}{
		{"a child of another agent, tree", Sight{Caller: me, Scope: ScopeTree}, foreignChild, Seen, Seen},
		{"a child of another agent, agent", Sight{Caller: me, Scope: ScopeAgent}, foreignChild, OtherAgent, OtherAgent},
		{"another agent's session spawned, 8.2", Sight{Caller: me, Scope: ScopeTree, Release: config.Release82}, foreignTalk, OtherAgent, OtherAgent},
		{"another agent's subagent, 8.2", Sight{Caller: me, Scope: ScopeTree, Release: config.Release82}, foreignChild, Seen, Seen},
		{"grandchildren", Sight{Caller: me, Scope: ScopeTree}, grandchild, NotTree, NotTree},
		{"the main session, tree, 7.35", Sight{Caller: main, Main: main, Scope: ScopeTree}, sibling, NotTree, NotTree},
		{"the main session, tree, 8.2", Sight{Caller: main, Main: main, Scope: ScopeTree, Release: config.Release82}, sibling, Seen, Seen},
		{"incognito, 8.2", Sight{Caller: main, Main: main, Scope: ScopeAll, Release: config.Release82}, hidden, Incognito, Incognito},
		{"incognito, 7.35", Sight{Caller: main, Main: main, Scope: ScopeAll}, hidden, Seen, Seen},
		{"pairs off", Sight{Caller: me, Scope: ScopeAll}, Sighted{Key: "agent:work:main", Agent: "work"}, PairsOff, PairsOff},
		{"pairs on", Sight{Caller: me, Scope: ScopeAll, Pairs: all}, Sighted{Key: "agent:work:main", Agent: "work"}, Seen, Seen},
		{"both must match", Sight{Caller: me, Scope: ScopeAll, Pairs: Pairs{true, []string{"work"}}}, Sighted{Key: "agent:work:main", Agent: "work"}, PairNotKnown, PairNotKnown},
		{"a sandbox hides itself from lists", Sight{Caller: me, Scope: ScopeTree, Clamped: true}, Sighted{Key: me, Agent: "main"}, NotSpawned, Seen},
		{"a sandbox lists what it spawned", Sight{Caller: me, Scope: ScopeTree, Clamped: true}, Sighted{Key: "agent:main:subagent:a", Agent: "main", SpawnedBy: me, Status: "running"}, Seen, Seen},
		{"ended long ago", Sight{Caller: me, Scope: ScopeTree}, Sighted{Key: "agent:main:subagent:a", Agent: "main", SpawnedBy: me, Ended: now - 1_800_001}, Seen, LinkExpired},
		{"ended half an hour ago", Sight{Caller: me, Scope: ScopeTree}, Sighted{Key: "agent:main:subagent:a", Agent: "main", SpawnedBy: me, Ended: now - 1_800_000}, Seen, Seen},
		{"silent for an hour", Sight{Caller: me, Scope: ScopeTree}, Sighted{Key: "agent:main:subagent:a", Agent: "main", Parent: me, Updated: now - 3_600_000}, Seen, Seen},
		{"silent for longer", Sight{Caller: me, Scope: ScopeTree}, Sighted{Key: "agent:main:subagent:a", Agent: "main", Parent: me, Updated: now - 3_600_001}, Seen, LinkExpired},
	} {
		if v := c.sight.Lists(c.of); v != c.list {
			t.Errorf("%s: listed %q, want %q", c.name, v, c.list)
		}
		if v := c.sight.Reads(c.of, now); v != c.read {
			t.Errorf("%s: read %q, want %q", c.name, v, c.read)
		}
	}
}

func TestPairsGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, agent string
		want           bool
	}{
		{"*", "any", true},
		{"work", "work", true},
		{"Work", "work", false},
		{"", "work", false},
		{"W*K", "work", true},
		{"w*z", "work", false},
		{"*or*", "work", true},
		{"a*b*c", "axxbyyc", true},
		{"a*b*c", "axxcyyb", false},
		{"ab*ba", "aba", false},
		{"**", "", true},
	} {
		if got := glob(c.pattern, c.agent); got != c.want {
			t.Errorf("glob(%q, %q) = %v", c.pattern, c.agent, got)
		}
	}
}
