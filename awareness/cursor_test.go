package awareness

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	boss  = "agent:main:main"
	child = "agent:main:subagent:child"
	here  = "/state/agents/main/agent/openclaw-agent.sqlite"
	there = "/elsewhere/openclaw-agent.sqlite"
)

func marks(seen, notified, material int64) Cursor {
	return Cursor{Watcher: boss, Target: child, Exists: true, Seen: seen, Notified: notified, Material: material, Store: here, Updated: 5}
}

func at(c Cursor, now int64) Cursor { c.Updated = now; return c }

// TestMachine is the table of spec/awareness.md 4.1, row by row.
func TestMachine(t *testing.T) {
	none := Cursor{Watcher: boss, Target: child}
	ambient := func(c Cursor) Cursor { c.Ambient = true; return c }
	unowned := func(c Cursor) Cursor { c.Store = ""; return c }
	type step func(Cursor) (Cursor, Notice, bool)
	event := func(kind, actor string, seq int64, named bool, store string) step {
		return func(c Cursor) (Cursor, Notice, bool) {
			return c.Event(Event{Sequence: seq, Kind: kind, ActorID: actor, SessionKey: child}, named, store, 9)
		}
	}
	register := func(head int64, ambient bool, store string) step {
		return func(c Cursor) (Cursor, Notice, bool) { return c.Register(head, ambient, store, 9), Notice{}, false }
	}
	ack := func(c Cursor) (Cursor, Notice, bool) { return c.Ack(9) }
	sweep := func(c Cursor) (Cursor, Notice, bool) { return c.Sweep(9) }
	for _, tc := range []struct {
		row   string
		state Cursor
		step  step
		want  Cursor
		since int64 // of the notice; -1 is none
	}{
		{"1 register at a head", none, register(7, false, here), at(marks(7, 7, 7), 9), -1},
		{"1 register where nothing happened yet", none, register(0, false, here), at(marks(0, 0, 0), 9), -1},
		{"1 register by taking part", none, register(7, true, here), ambient(at(marks(7, 7, 7), 9)), -1},
		{"1 seed", none, event(ChildSpawned, boss, 3, true, here), at(marks(3, 3, 3), 9), -1},
		{"2 named", none, event(GoalChanged, "", 3, true, here), at(marks(0, 3, 3), 9), 0},
		{"3 not named", none, event(GoalChanged, "", 3, false, ""), none, -1},
		{"3 spawn that names another", none, event(ChildSpawned, "x", 3, false, ""), none, -1},
		{"4 idle", marks(4, 4, 4), event(HumanDirectMessage, "u1", 6, false, ""), at(marks(4, 6, 6), 9), 4},
		{"4 idle, ambient", ambient(marks(4, 4, 4)), event(UpstreamMissing, "", 6, false, ""), ambient(at(marks(4, 6, 6), 9)), 4},
		{"4 idle, named in its store", marks(4, 4, 4), event(GoalChanged, "", 6, true, here), at(marks(4, 6, 6), 9), 4},
		{"5 pending", marks(4, 6, 6), event(GoalChanged, "", 8, false, ""), at(marks(4, 6, 8), 9), 4},
		{"5 pending with a remainder", marks(4, 6, 8), event(GoalChanged, "", 9, false, ""), at(marks(4, 6, 9), 9), 4},
		{"6 only logged", marks(4, 4, 4), event(RunFailed, "", 6, true, here), marks(4, 4, 4), -1},
		{"6 only logged, none", none, event(Compacted, "", 6, true, here), none, -1},
		{"6 unknown kind", marks(4, 4, 4), event("rewound", "", 6, true, here), marks(4, 4, 4), -1},
		{"6 own event", marks(4, 4, 4), event(GoalChanged, boss, 6, true, here), marks(4, 4, 4), -1},
		{"6 own event, none", none, event(GoalChanged, boss, 6, true, here), none, -1},
		{"6 own event in another case is another's", marks(4, 4, 4), event(GoalChanged, "AGENT:main:main", 6, true, here), at(marks(4, 6, 6), 9), 4},
		{"8 drained", marks(4, 6, 6), ack, at(marks(6, 6, 6), 9), -1},
		{"9 drained, with a remainder", marks(4, 6, 8), ack, at(marks(6, 8, 8), 9), 6},
		{"9 then 8", at(marks(6, 8, 8), 9), ack, at(marks(8, 8, 8), 9), -1},
		{"11 stale notice", marks(6, 6, 6), ack, at(marks(6, 6, 6), 9), -1},
		{"11 stale notice, none", none, ack, none, -1},
		{"12 swept", marks(4, 6, 8), sweep, at(marks(4, 8, 8), 9), 4},
		{"12 swept idle", marks(6, 6, 6), sweep, marks(6, 6, 6), -1},
		{"12 swept none", none, sweep, none, -1},
		{"14 spawned again", marks(4, 6, 8), event(ChildSpawned, "x", 9, true, here), at(marks(9, 9, 9), 9), -1},
		{"14 spawned again, stores known", ambient(marks(4, 6, 8)), event(ChildSpawned, "x", 9, true, here), at(marks(9, 9, 9), 9), -1},
		{"14 spawned again, no stores", ambient(marks(4, 6, 8)), event(ChildSpawned, "x", 9, true, ""), ambient(at(marks(9, 9, 9), 9)), -1},
		{"15 registered again", marks(4, 6, 8), register(9, false, here), marks(4, 6, 8), -1},
		{"15 ambient becomes explicit", ambient(marks(4, 6, 8)), register(9, false, here), marks(4, 6, 8), -1},
		{"15 explicit stays", marks(4, 6, 8), register(9, true, here), marks(4, 6, 8), -1},
		{"15 stores unknown", marks(4, 6, 8), register(9, false, ""), marks(4, 6, 8), -1},
		{"3.1 of another store", func() Cursor { c := marks(4, 6, 8); c.Store = there; return c }(), register(9, false, here), at(marks(9, 9, 9), 9), -1},
		{"3.1 of no store", unowned(marks(4, 6, 8)), register(9, true, here), ambient(at(marks(9, 9, 9), 9)), -1},
		{"3.2 named elsewhere", marks(4, 4, 4), event(GoalChanged, "", 6, true, there), marks(4, 4, 4), -1},
		{"3.2 named, of no store", unowned(marks(4, 4, 4)), event(GoalChanged, "", 6, true, here), unowned(marks(4, 4, 4)), -1},
		{"3.2 found, of no store", unowned(marks(4, 4, 4)), event(GoalChanged, "", 6, false, ""), unowned(at(marks(4, 6, 6), 9)), 4},
	} {
		t.Run(tc.row, func(t *testing.T) {
			got, n, told := tc.step(tc.state)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("state (-want +got)\n%s", d)
			}
			want, tell := Notice{Watcher: boss, Target: child, Since: tc.since, Ambient: tc.want.Ambient}, tc.since >= 0
			if told != tell || told && n != want {
				t.Errorf("notice %+v %v, want %+v %v", n, told, want, tell)
			}
		})
	}
}

func TestNobodyWatchesUnderABareKey(t *testing.T) {
	for _, w := range []string{"", "global", "main", "agent:main", "agent::x", "agent:main::x", "agent:main:"} {
		c := Cursor{Watcher: w, Target: child}
		for _, kind := range []string{GoalChanged, ChildSpawned} {
			if next, _, told := c.Event(Event{Sequence: 1, Kind: kind}, true, here, 9); told || next != c {
				t.Errorf("%q heard of %s", w, kind)
			}
		}
	}
	for _, w := range []string{boss, "AGENT:ops:Main", "agent:main:a::b"} {
		if !Notifiable(w) {
			t.Errorf("%q cannot be told", w)
		}
	}
}

func TestExpires(t *testing.T) {
	if at, known := marks(1, 1, 1).Expires(); at != 5+30*24*3600*1000 || !known {
		t.Errorf("%d %v", at, known)
	}
	if _, known := (Cursor{Undated: true}).Expires(); known {
		t.Error("a cursor without a time expires")
	}
}

func TestNoticeText(t *testing.T) {
	for _, name := range goldens(t) {
		for watcher, queue := range record(t, name).Queues {
			for _, q := range queue {
				target, ok := ContextTarget(q.ContextKey)
				if !ok {
					t.Fatalf("%s is no context key", q.ContextKey)
				}
				var since int64
				for n := range int64(400) { // whichever it is, the text says it once
					if strings.HasSuffix(q.Text, (Notice{Since: n}).Text()[len(`Session "" changed (other actor). Reconcile before acting: session_status sessionKey "`):]) {
						since = n
					}
				}
				n := Notice{Watcher: watcher, Target: target, Since: since}
				if n.Text() != q.Text || n.ContextKey() != q.ContextKey {
					t.Errorf("%s\nwant %s", n.Text(), q.Text)
				}
			}
		}
	}
	odd := Notice{Target: `agent:main:"x" y` + "\n"}
	if got, want := odd.Text(), "Session \"agent:main:\"x\" y\n\" changed (other actor). Reconcile before acting: session_status sessionKey \"agent:main:\"x\" y\n\" changesSince 0."; got != want {
		t.Errorf("%q", got) // keys are not escaped
	}
}

func TestContextTarget(t *testing.T) {
	for _, bad := range []string{"", "session-state:", "session-state:6", "session-state:6A", "session-state:zz", "session-state:ff", "session-created:61", "61"} {
		if s, ok := ContextTarget(bad); ok {
			t.Errorf("%q is %q", bad, s)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringN(1, -1, 60).Draw(t, "key")
		if got, ok := ContextTarget(Notice{Target: key}.ContextKey()); utf8.ValidString(key) && (got != key || !ok) {
			t.Fatalf("%q became %q", key, got)
		}
	})
}

func TestWakes(t *testing.T) {
	for _, tc := range []struct {
		n    Notice
		want bool
	}{
		{Notice{Watcher: boss}, true},
		{Notice{Watcher: boss, Ambient: true}, false},
		{Notice{Watcher: child}, false},
		{Notice{Watcher: "agent:main:telegram:group:-1"}, true},
		{Notice{Watcher: "global"}, false},
	} {
		if tc.n.Wakes() != tc.want {
			t.Errorf("%+v", tc.n)
		}
	}
}

func TestQueue(t *testing.T) {
	a := func(target string, since int64, ambient bool) Notice {
		return Notice{Watcher: boss, Target: target, Since: since, Ambient: ambient}
	}
	var q Queue
	for _, tc := range []struct {
		n     Notice
		added bool
		want  []Notice
	}{
		{a("x", 1, false), true, []Notice{a("x", 1, false)}},
		{a("x", 1, false), false, []Notice{a("x", 1, false)}},
		{a("y", 1, true), true, []Notice{a("x", 1, false), a("y", 1, true)}},
		{a("y", 1, true), false, []Notice{a("x", 1, false), a("y", 1, true)}},
		{a("x", 2, false), true, []Notice{a("x", 1, false), a("y", 1, true), a("x", 2, false)}},
		{a("x", 2, true), true, []Notice{a("y", 1, true), a("x", 2, true)}},
		{a("x", 2, false), false, []Notice{a("y", 1, true), a("x", 2, true)}},
	} {
		if q.Push(tc.n) != tc.added {
			t.Errorf("push %+v: added %v", tc.n, !tc.added)
		}
		if d := cmp.Diff(tc.want, q.Waiting()); d != "" {
			t.Errorf("push %+v (-want +got)\n%s", tc.n, d)
		}
	}
	if n := len(q.Drain()); n != 2 || len(q.Waiting()) != 0 {
		t.Errorf("drained %d", n)
	}
	for i := range int64(25) {
		q.Push(a("x", i, false))
	}
	if w := q.Waiting(); len(w) != 20 || w[0].Since != 5 {
		t.Errorf("%d wait, the oldest since %d", len(w), w[0].Since)
	}
}

func TestGroupWatcher(t *testing.T) {
	for _, tc := range []struct {
		target, agent, mainKey, chat string
		spawned                      bool
		want                         string // empty is none
	}{
		{"agent:main:telegram:group:-1", "main", "", "", false, boss},
		{"agent:ops:slack:channel:c1", "ops", "", "", false, "agent:ops:main"},
		{"agent:main:odd", "main", "", "group", false, boss},
		{"agent:main:odd", "main", "Home", "channel", false, "agent:main:home"},
		{"agent:main:odd", "main", "", "direct", false, ""},
		{"agent:main:telegram:group:-1", "main", "", "group", true, ""},
		{"global", "main", "", "group", false, ""},
		{"unknown", "main", "", "group", false, ""},
		{"agent:main:cron:j1", "main", "", "group", false, ""},
		{boss, "main", "", "group", false, ""},
	} {
		got, ok := GroupWatcher(tc.target, tc.agent, tc.mainKey, tc.chat, tc.spawned)
		if ok != (tc.want != "") || ok && got != tc.want {
			t.Errorf("%+v: %q %v", tc, got, ok)
		}
	}
}
