package awareness

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	gocmp "github.com/google/go-cmp/cmp"
)

// edge is a log with its cursors: in memory, or in a database.
type edge interface {
	record(in Entry, now int64) (seq int64, n []Notice)
	watch(watcher, target string, ambient bool, now int64) bool
	ack(watcher string, targets []string, now int64) []Notice
	reset(watcher string)
	remove(key, agent string)
	sweep(exists func(string) bool, now int64) []Notice
	prune(now int64)
	changes(key, agent string, after int64) Changes
	state() logState
}

type logState struct {
	Heads   []Head
	Cursors []Cursor
	Events  []Event
}

// model is the log without a database: what Cursor is to one watch, for all of them.
type model struct {
	last   int64
	events []Event
	keys   map[string]int64 // by dedupe key
	heads  map[[2]string]Head
	rows   map[[2]string]Cursor
	store  func(string) string // nil where cursors do not say theirs
}

func newModel(store func(string) string) *model {
	return &model{keys: map[string]int64{}, heads: map[[2]string]Head{}, rows: map[[2]string]Cursor{}, store: store}
}

func (m *model) owner(w string) string {
	if m.store == nil {
		return ""
	}
	return m.store(w)
}

func (m *model) cursor(w, t string) Cursor {
	if c, ok := m.rows[[2]string{w, t}]; ok {
		return c
	}
	return Cursor{Watcher: w, Target: t}
}

func (m *model) put(c Cursor) {
	if c.Exists {
		m.rows[[2]string{c.Watcher, c.Target}] = c
	}
}

func (m *model) record(in Entry, now int64) (int64, []Notice) {
	m.last++
	if seq, ok := m.keys[in.DedupeKey]; ok && in.DedupeKey != "" {
		for _, e := range m.events {
			if e.Sequence == seq {
				return seq, nil
			}
		}
	}
	at := in.OccurredAt
	if at == 0 {
		at = now
	}
	at = min(max(at, now-86_400_000), now)
	e := Event{
		Sequence: m.last, SessionKey: in.SessionKey, SessionID: in.SessionID, AgentID: in.AgentID, Kind: in.Kind, ActorType: in.ActorType,
		ActorID: in.ActorID, RunID: in.RunID, OccurredAt: at, Summary: in.Summary, Payload: in.Payload,
	}
	m.events = append(m.events, e)
	m.keys[in.DedupeKey] = e.Sequence
	h := m.heads[[2]string{in.SessionKey, in.AgentID}]
	m.heads[[2]string{in.SessionKey, in.AgentID}] = Head{in.SessionKey, in.AgentID, e.Sequence, h.Pruned, now}
	heard := map[string]bool{}
	var notices []Notice
	hear := func(w string, named bool) {
		if heard[w] {
			return
		}
		heard[w] = true
		store := ""
		if named {
			store = m.owner(w)
		}
		next, n, told := m.cursor(w, in.SessionKey).Event(e, named, store, now)
		m.put(next)
		if told {
			notices = append(notices, n)
		}
	}
	for _, w := range in.Watchers {
		hear(w, true)
	}
	for _, c := range m.sorted() {
		if c.Target == in.SessionKey {
			hear(c.Watcher, false)
		}
	}
	return e.Sequence, notices
}

func (m *model) watch(w, t string, ambient bool, now int64) bool {
	if w == t || !Notifiable(w) {
		return false
	}
	m.put(m.cursor(w, t).Register(m.heads[[2]string{t, agentOf(t)}].Version, ambient, m.owner(w), now))
	return true
}

func agentOf(key string) string {
	if key == "agent:ops:main" {
		return "ops"
	}
	return "main"
}

func (m *model) ack(w string, targets []string, now int64) (again []Notice) {
	for i, t := range targets {
		if slices.Contains(targets[:i], t) {
			continue
		}
		next, n, told := m.cursor(w, t).Ack(now)
		m.put(next)
		if told {
			again = append(again, n)
		}
	}
	return again
}

func (m *model) reset(w string) {
	for k := range m.rows {
		if k[0] == w {
			delete(m.rows, k)
		}
	}
}

func (m *model) remove(key, agent string) {
	m.events = slices.DeleteFunc(m.events, func(e Event) bool { return e.SessionKey == key && e.AgentID == agent })
	delete(m.heads, [2]string{key, agent})
	for k := range m.rows {
		if k[0] == key || k[1] == key {
			delete(m.rows, k)
		}
	}
}

func (m *model) sweep(exists func(string) bool, now int64) (told []Notice) {
	for _, c := range m.sorted() {
		if !exists(c.Watcher) {
			continue
		}
		next, n, ok := c.Sweep(now)
		m.put(next)
		if ok {
			told = append(told, n)
		}
	}
	m.prune(now)
	return told
}

func (m *model) prune(now int64) {
	cutoff := now - 2_592_000_000
	m.events = slices.DeleteFunc(m.events, func(e Event) bool {
		if e.OccurredAt >= cutoff {
			return false
		}
		h := m.heads[[2]string{e.SessionKey, e.AgentID}]
		if h.Version > 0 && e.Sequence > h.Pruned {
			h.Pruned, h.UpdatedAt = e.Sequence, now
			m.heads[[2]string{e.SessionKey, e.AgentID}] = h
		}
		return true
	})
	for k, c := range m.rows {
		if c.Updated < cutoff {
			delete(m.rows, k)
		}
	}
}

func (m *model) changes(key, agent string, after int64) Changes {
	h := m.heads[[2]string{key, agent}]
	c := Changes{SessionKey: key, AgentID: agent, Version: h.Version, Events: []Event{}, Gap: after < h.Pruned, AheadOfHead: after > h.Version}
	for _, e := range m.events {
		if e.SessionKey != key || e.AgentID != agent {
			continue
		}
		if c.Earliest == 0 {
			c.Earliest = e.Sequence
		}
		if e.Sequence > after {
			c.Events = append(c.Events, e)
		}
	}
	if c.Truncated = len(c.Events) > PageSize; c.Truncated {
		c.Events = c.Events[:PageSize]
	}
	if c.Earliest == 0 && h.Version > 0 {
		c.Earliest = h.Version + 1
	}
	return c
}

func (m *model) sorted() (out []Cursor) {
	for _, c := range m.rows {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Cursor) int {
		return cmp.Or(cmp.Compare(a.Watcher, b.Watcher), cmp.Compare(a.Target, b.Target))
	})
	return out
}

func (m *model) state() logState {
	s := logState{Heads: []Head{}, Cursors: append([]Cursor{}, m.sorted()...), Events: append([]Event{}, m.events...)}
	for _, h := range m.heads {
		s.Heads = append(s.Heads, h)
	}
	slices.SortFunc(s.Heads, func(a, b Head) int {
		return cmp.Or(cmp.Compare(a.SessionKey, b.SessionKey), cmp.Compare(a.AgentID, b.AgentID))
	})
	return s
}

// database is the same through Read and Update.
type database struct {
	path  string
	store func(string) string // nil if it is not known where watchers live
}

// fatal lets rapid report what goes wrong inside a check.
type fataler interface{ Fatal(args ...any) }

func (d database) update(now int64, f func(e *Edit) error) {
	err := Update(context.Background(), d.path, Options{Now: now, Wait: time.Second, World: World{Store: d.store}}, f)
	if err != nil {
		panic(err)
	}
}

func (d database) record(in Entry, now int64) (seq int64, n []Notice) {
	d.update(now, func(e *Edit) error {
		a, err := e.Append(in)
		seq, n = a.Event.Sequence, a.Notices
		return err
	})
	return seq, n
}

func (d database) watch(w, t string, ambient bool, now int64) (ok bool) {
	d.update(now, func(e *Edit) error {
		var err error
		if ambient {
			_, err = e.WatchGroup(w, t, "")
		} else {
			_, err = e.Watch(w, t, "")
		}
		ok = err == nil
		return nil
	})
	return ok
}

func (d database) ack(w string, targets []string, now int64) (again []Notice) {
	d.update(now, func(e *Edit) (err error) { again, err = e.Ack(w, targets...); return err })
	return again
}

func (d database) reset(w string) { d.update(0, func(e *Edit) error { return e.Reset(w) }) }

func (d database) remove(key, agent string) {
	d.update(0, func(e *Edit) error { return e.Delete(key, agent) })
}

func (d database) sweep(exists func(string) bool, now int64) []Notice {
	w := World{Store: d.store, Exists: func(k string) (bool, bool) { return exists(k), true }}
	s, err := Sweep(context.Background(), d.path, Options{Now: now, Wait: time.Second, World: w})
	if err != nil {
		panic(err)
	}
	return s.Notices
}

func (d database) prune(now int64) {
	d.update(now, func(e *Edit) error { _, err := e.Prune(); return err })
}

// read looks from within a change: Read waits for a file that was just written to be old enough to trust its stamps,
// which is too long for thousands of steps.
func (d database) read(f func(s *Snapshot) error) {
	d.update(0, func(e *Edit) error { return f(&e.Snapshot) })
}

func (d database) changes(key, agent string, after int64) (c Changes) {
	d.read(func(s *Snapshot) (err error) { c, err = s.Changes(key, agent, after, PageSize); return err })
	return c
}

func (d database) state() (out logState) {
	d.read(func(s *Snapshot) error {
		out = logState{Heads: []Head{}, Cursors: []Cursor{}, Events: []Event{}}
		if err := s.Heads(func(h Head) error { out.Heads = append(out.Heads, h); return nil }); err != nil {
			return err
		}
		if err := s.Events(Filter{}, func(e Event) error { out.Events = append(out.Events, e); return nil }); err != nil {
			return err
		}
		return s.Watches(WatchFilter{}, World{}, 0, func(w Watch) error { out.Cursors = append(out.Cursors, w.Cursor); return nil })
	})
	return out
}

// gateway adds what a gateway has in memory: the queues, and when it last pruned.
type gateway struct {
	edge
	queues    map[string]*Queue
	lastPrune int64
}

func (g *gateway) queue(w string) *Queue {
	if g.queues[w] == nil {
		g.queues[w] = &Queue{}
	}
	return g.queues[w]
}

func (g *gateway) push(notices []Notice) {
	for _, n := range notices {
		g.queue(n.Watcher).Push(n)
	}
}

func (g *gateway) append(in Entry, now int64) int64 {
	seq, notices := g.record(in, now)
	g.push(notices)
	if now-g.lastPrune > 3_600_000 {
		g.prune(now)
		g.lastPrune = now
	}
	return seq
}

func (g *gateway) drain(w string, now int64) (texts []string) {
	var targets []string
	for _, n := range g.queue(w).Drain() {
		texts = append(texts, n.Text())
		targets = append(targets, n.Target)
	}
	g.push(g.ack(w, targets, now))
	return texts
}

func (g *gateway) restart(exists func(string) bool, now int64) {
	g.queues = map[string]*Queue{}
	g.push(g.sweep(exists, now))
	g.lastPrune = now
}

func storeOf(w string) string {
	return filepath.Join("/state/agents", agentOf(w), "agent/openclaw-agent.sqlite")
}

type traceState struct {
	Heads   [][]any
	Cursors [][]any
	Events  struct{ N, Lo, Hi int64 }
	Queues  map[string][]string
}

func (g *gateway) trace(watchers []string) (out traceState) {
	s := g.state()
	out.Heads, out.Cursors, out.Queues = [][]any{}, [][]any{}, map[string][]string{}
	for _, h := range s.Heads {
		out.Heads = append(out.Heads, []any{h.SessionKey, h.AgentID, float64(h.Version), float64(h.Pruned)})
	}
	for _, c := range s.Cursors {
		how := "explicit"
		if c.Ambient {
			how = "ambient-group"
		}
		out.Cursors = append(out.Cursors, []any{c.Watcher, c.Target, float64(c.Seen), float64(c.Notified), float64(c.Material), how, float64(c.Updated)})
	}
	if out.Events.N = int64(len(s.Events)); out.Events.N > 0 {
		out.Events.Lo, out.Events.Hi = s.Events[0].Sequence, s.Events[out.Events.N-1].Sequence
	}
	for _, w := range watchers {
		out.Queues[w] = []string{}
		for _, n := range g.queue(w).Waiting() {
			out.Queues[w] = append(out.Queues[w], n.Text())
		}
	}
	return out
}

// TestTrace replays 400 operations of the real code, which left the same state on 2026.8.2 and 2026.9.6.
func TestTrace(t *testing.T) {
	var trace struct {
		ExistingSessionEntries []string
		Ops                    []struct {
			I                                                        int
			Now                                                      int64
			Op                                                       string
			WatcherSessionKey, TargetSessionKey, SessionKey, AgentID string
			Watcher                                                  string
			Returned                                                 bool
			Input                                                    struct {
				SessionKey, AgentID, Kind, ActorType, ActorID, Summary, DedupeKey string
				WatcherSessionKeys                                                []string
			}
			Sequence, ChangesSince, StateVersion, EarliestAvailableSequence int64
			Delivered                                                       []string
			Sequences                                                       []int64
			Truncated, HistoryGap                                           bool
			After                                                           traceState
		}
	}
	if err := json.Unmarshal(unpack(t, "trace-seed1.2026.9.6.json"), &trace); err != nil {
		t.Fatal(err)
	}
	exists := func(key string) bool { return slices.Contains(trace.ExistingSessionEntries, key) }
	for name, e := range map[string]edge{
		"pure":                newModel(nil),
		"pure, stores":        newModel(storeOf),
		"schema 6":            database{state(t, "empty.2026.7.2-beta.5"), storeOf},
		"schema 15":           database{state(t, "empty.2026.8.2"), storeOf},
		"schema 18":           database{state(t, "empty.2026.9.6"), storeOf},
		"schema 15, no world": database{state(t, "empty.2026.8.2"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := &gateway{edge: e, queues: map[string]*Queue{}}
			for _, op := range trace.Ops {
				bad := func(what string, got, want any) {
					if d := gocmp.Diff(want, got); d != "" {
						t.Fatalf("%d %s: %s (-want +got)\n%s", op.I, op.Op, what, d)
					}
				}
				switch op.Op {
				case "watch":
					bad("returned", g.watch(op.WatcherSessionKey, op.TargetSessionKey, false, op.Now), op.Returned)
				case "groupWatch":
					w, ok := GroupWatcher(op.SessionKey, "main", "", "", false)
					bad("returned", ok && g.watch(w, op.SessionKey, true, op.Now), op.Returned)
				case "record":
					in := op.Input
					seq := g.append(Entry{
						SessionKey: in.SessionKey, AgentID: in.AgentID, Kind: in.Kind, ActorType: in.ActorType, ActorID: in.ActorID,
						Summary: in.Summary, DedupeKey: in.DedupeKey, Watchers: in.WatcherSessionKeys,
					}, op.Now)
					bad("sequence", seq, op.Sequence)
				case "drain":
					bad("delivered", append([]string{}, g.drain(op.Watcher, op.Now)...), op.Delivered)
				case "reset":
					g.reset(op.SessionKey)
				case "delete":
					g.remove(op.SessionKey, op.AgentID)
				case "restart+sweep":
					g.restart(exists, op.Now)
				case "changesSince":
					c := g.changes(op.SessionKey, "main", op.ChangesSince)
					got := []int64{}
					for _, e := range c.Events {
						got = append(got, e.Sequence)
					}
					bad("answer", []any{got, c.Truncated, c.Earliest, c.Gap, c.Version},
						[]any{op.Sequences, op.Truncated, op.EarliestAvailableSequence, op.HistoryGap, op.StateVersion})
				default:
					t.Fatalf("unknown operation %q", op.Op)
				}
				var watchers []string
				for w := range op.After.Queues {
					watchers = append(watchers, w)
				}
				bad("state", g.trace(watchers), op.After)
			}
		})
	}
}

// TestModel runs random operations on the pure machine and on databases: they agree, and spec/awareness.md 3.6 holds.
func TestModel(t *testing.T) {
	keys := []string{boss, child, "agent:ops:main", "agent:main:telegram:group:-1", "global"}
	for _, db := range []struct {
		name  string
		store func(string) string
	}{{"empty.2026.8.2", nil}, {"empty.2026.9.6", storeOf}} {
		blank := unpack(t, db.name+".sqlite")
		path := state(t, db.name)
		t.Run(db.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				if err := os.WriteFile(path, blank, 0o600); err != nil {
					t.Fatal(err)
				}
				key := rapid.SampledFrom(keys)
				pure := &gateway{edge: newModel(db.store), queues: map[string]*Queue{}}
				disk := &gateway{edge: database{path, db.store}, queues: map[string]*Queue{}}
				now := int64(1_767_225_600_000)
				both := func(what string, f func(g *gateway) any) {
					if d := gocmp.Diff(f(pure), f(disk)); d != "" {
						t.Fatalf("%s (-pure +disk)\n%s", what, d)
					}
				}
				t.Repeat(map[string]func(*rapid.T){
					"record": func(t *rapid.T) {
						in := Entry{
							SessionKey: key.Draw(t, "key"), AgentID: rapid.SampledFrom([]string{"main", "ops"}).Draw(t, "agent"),
							Kind: rapid.SampledFrom(append(Kinds(), GoalChanged, HumanDirectMessage, "other")).Draw(t, "kind"), ActorType: "agent",
							ActorID: rapid.SampledFrom([]string{"", boss, child, "u1"}).Draw(t, "actor"),
							Summary: "s", DedupeKey: rapid.SampledFrom([]string{"", "", "d1", "d2"}).Draw(t, "dedupe"),
							Watchers:   rapid.SliceOfN(rapid.SampledFrom(append(keys, "")), 0, 2).Draw(t, "watchers"),
							OccurredAt: rapid.SampledFrom([]int64{0, 1, now, now - 3_600_000, now + 5000}).Draw(t, "at"),
							Payload:    Payload{Turns: rapid.Int64Range(0, 2).Draw(t, "turns")},
						}
						both("record", func(g *gateway) any { return g.append(in, now) })
					},
					"watch": func(t *rapid.T) {
						w, k, ambient := key.Draw(t, "watcher"), key.Draw(t, "target"), rapid.Bool().Draw(t, "ambient")
						both("watch", func(g *gateway) any { return g.watch(w, k, ambient, now) })
					},
					"drain": func(t *rapid.T) {
						w := key.Draw(t, "watcher")
						both("drain", func(g *gateway) any { return g.drain(w, now) })
					},
					"reset":  func(t *rapid.T) { k := key.Draw(t, "key"); pure.reset(k); disk.reset(k) },
					"delete": func(t *rapid.T) { k := key.Draw(t, "key"); pure.remove(k, "main"); disk.remove(k, "main") },
					"restart": func(t *rapid.T) {
						exists := func(k string) bool { return k == boss || k == child }
						both("restart", func(g *gateway) any { g.restart(exists, now); return nil })
					},
					"time": func(t *rapid.T) {
						now += rapid.SampledFrom([]int64{1000, 3_600_000, 86_400_000, 20 * 86_400_000}).Draw(t, "passes")
					},
					"": func(t *rapid.T) {
						both("state", func(g *gateway) any { return g.state() })
						for _, w := range keys {
							both("queue of "+w, func(g *gateway) any { return g.queue(w).Waiting() })
						}
						k, after := key.Draw(t, "key"), rapid.Int64Range(0, 9).Draw(t, "after")
						both("changes", func(g *gateway) any { return g.changes(k, "main", after) })
						checkInvariants(t, disk)
					},
				})
				err := Read(context.Background(), path, func(s *Snapshot) error {
					c, err := s.Changes(child, "main", 3, PageSize)
					if d := gocmp.Diff(pure.changes(child, "main", 3), c); d != "" {
						t.Errorf("changes, as read (-pure +disk)\n%s", d)
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func checkInvariants(t fataler, g *gateway) {
	s := g.state()
	top := map[string]int64{}
	for _, h := range s.Heads {
		top[h.SessionKey] = max(top[h.SessionKey], h.Version)
		if h.Pruned > h.Version {
			t.Fatal(fmt.Sprintf("head %+v lost what it never had", h))
		}
	}
	for _, c := range s.Cursors {
		if !c.Sound() {
			t.Fatal(fmt.Sprintf("cursor %+v is not in order", c))
		}
		// The head of a deleted session begins anew, and with it its watches: a watermark never passes it.
		if c.Material > top[c.Target] {
			t.Fatal(fmt.Sprintf("cursor %+v is beyond its target's head %d", c, top[c.Target]))
		}
	}
}
