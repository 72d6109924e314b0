package awareness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/store/sqlfile"
)

func update(t testing.TB, path string, now int64, f func(e *Edit) error) {
	t.Helper()
	if err := Update(context.Background(), path, Options{Now: now, Wait: time.Second}, f); err != nil {
		t.Fatal(err)
	}
}

func sample(summary string) Entry {
	return Entry{SessionKey: child, AgentID: "main", Kind: GoalChanged, ActorType: "agent", Summary: summary}
}

func TestAppend(t *testing.T) {
	for _, db := range []string{"empty.2026.7.2-beta.1", "empty.2026.7.2-beta.5", "empty.2026.8.2", "empty.2026.9.6", "upgraded-no-store-column.2026.9.6"} {
		t.Run(db, func(t *testing.T) {
			path := state(t, db)
			var first int64
			read(t, path, func(s *Snapshot) error {
				st, err := s.Stats(t0)
				first = st.Last + 1
				return err
			})
			in := sample("one")
			in.SessionID, in.RunID, in.ActorID, in.DedupeKey = "s1", "r1", "u1", "k"
			in.Payload = Payload{Outcome: "timeout", Channel: `a "b"`, Turns: 3}
			update(t, path, t0, func(e *Edit) error {
				a, err := e.Append(in)
				want := Event{first, child, "s1", "main", GoalChanged, "agent", "u1", "r1", t0, false, "one", in.Payload}
				if a.Event != want || a.Duplicate {
					t.Errorf("%+v", a)
				}
				in.Summary, in.Kind = "two", RunFailed
				b, err2 := e.Append(in)
				if b.Event != want || !b.Duplicate || b.Notices != nil {
					t.Errorf("the first of a dedupe key stays: %+v", b)
				}
				h, err3 := e.Head(child, "main")
				if h.Version != first || h.UpdatedAt != t0 {
					t.Errorf("%+v", h)
				}
				return errors.Join(err, err2, err3)
			})
			// A duplicate burns a number.
			update(t, path, t0, func(e *Edit) error {
				a, err := e.Append(sample("three"))
				if a.Event.Sequence != first+2 {
					t.Errorf("sequence %d after %d", a.Event.Sequence, first)
				}
				return err
			})
		})
	}
}

func TestAppendClampsTime(t *testing.T) {
	path := state(t, "empty.2026.9.6")
	for given, want := range map[int64]int64{
		0: t0, t0: t0, t0 + 1: t0, 1 << 62: t0, t0 - 5: t0 - 5, t0 - day: t0 - day, t0 - day - 1: t0 - day, 1: t0 - day, -1: t0 - day, -1 << 63: t0 - day,
	} {
		update(t, path, t0, func(e *Edit) error {
			in := sample("x")
			in.OccurredAt = given
			a, err := e.Append(in)
			if a.Event.OccurredAt != want {
				t.Errorf("%d became %d, want %d", given, a.Event.OccurredAt, want)
			}
			return err
		})
	}
}

func TestAppendRefuses(t *testing.T) {
	path := state(t, "empty.2026.9.6")
	for name, spoil := range map[string]func(*Entry){
		"session key is empty":          func(e *Entry) { e.SessionKey = "" },
		"agent id is empty":             func(e *Entry) { e.AgentID = "" },
		"kind is empty":                 func(e *Entry) { e.Kind = "" },
		"actor type is empty":           func(e *Entry) { e.ActorType = "" },
		"summary is empty":              func(e *Entry) { e.Summary = "" },
		"summary is not valid UTF-8":    func(e *Entry) { e.Summary = "\xff" },
		"channel is not valid UTF-8":    func(e *Entry) { e.Payload.Channel = "\xff" },
		"actor id is not valid UTF-8":   func(e *Entry) { e.ActorID = "\xff" },
		"run id is not valid UTF-8":     func(e *Entry) { e.RunID = "\xff" },
		"dedupe key is not valid UTF-8": func(e *Entry) { e.DedupeKey = "\xff" },
	} {
		in := sample("x")
		spoil(&in)
		err := Update(context.Background(), path, Options{Now: t0, Wait: time.Second}, func(e *Edit) error { _, err := e.Append(in); return err })
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	read(t, path, func(s *Snapshot) error {
		n, err := s.CountEvents(Filter{})
		if n != 0 {
			t.Errorf("%d events", n)
		}
		return err
	})
}

// TestStores are the identity rules of 2026.9.6, as recorded in legacy-null-store.
func TestStores(t *testing.T) {
	path := state(t, "legacy-null-store.2026.9.6")
	o := Options{Now: t0 + 800_000, Wait: time.Second, World: inPlace}
	edit := func(f func(e *Edit) error) {
		t.Helper()
		if err := Update(context.Background(), path, o, f); err != nil {
			t.Fatal(err)
		}
	}
	edit(func(e *Edit) error {
		in := sample("g")
		in.Watchers = []string{"agent:main:w2"}
		a, err := e.Append(in)
		want := []Notice{{Watcher: boss, Target: child, Since: 7}} // w2 is of no store: not told, and not even moved
		if d := cmp.Diff(want, a.Notices); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		c, err2 := e.Cursor("agent:main:w2", child)
		if c.Material != 8 || c.Store != "" {
			t.Errorf("%+v", c)
		}
		in.Watchers = nil
		a, err3 := e.Append(in)
		c, err4 := e.Cursor("agent:main:w2", child)
		if c.Material != a.Event.Sequence || c.Notified != 2 || len(a.Notices) != 1 {
			t.Errorf("found by its cursor, it moves and is not told: %+v %+v", c, a.Notices)
		}
		again, err5 := e.Ack("agent:main:w2", child, child)
		still, err6 := e.Cursor("agent:main:w2", child)
		if still != c || again != nil {
			t.Errorf("a dormant cursor was acknowledged: %+v", still)
		}
		return errors.Join(err, err2, err3, err4, err5, err6)
	})
	edit(func(e *Edit) error {
		again, err := e.Ack(boss, child, child, "agent:main:nobody")
		if d := cmp.Diff([]Notice{{Watcher: boss, Target: child, Since: 8}}, again); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		again, err2 := e.Ack(boss, child)
		if len(again) != 0 {
			t.Errorf("%+v", again)
		}
		c, err3 := e.Watch("agent:main:w2", child, "") // of no store: begins anew
		if c.Pending() || c.Store != o.World.Store("") || c.Seen != 10 {
			t.Errorf("%+v", c)
		}
		stored, err4 := e.Cursor("agent:main:w2", child)
		if stored != c {
			t.Errorf("%+v, stored %+v", c, stored)
		}
		return errors.Join(err, err2, err3, err4)
	})
}

func TestVersions(t *testing.T) {
	for v := range int64(22) {
		path := state(t, "one-session.2026.8.2")
		script(t, path, fmt.Sprintf(`PRAGMA user_version = %d`, v))
		read(t, path, func(s *Snapshot) error {
			sc := s.Schema()
			known := v >= 2 && v <= 18
			if sc.Version != v || sc.Newer != (v > 18) || sc.None || (sc.Label() == "") != known {
				t.Errorf("version %d: %+v %q", v, sc, sc.Label())
			}
			c, err := s.Changes(child, "main", 0, PageSize)
			if c.Version != 7 || len(c.Events) == 0 {
				t.Errorf("version %d: %+v", v, c)
			}
			return err
		})
		before := treeHash(t, filepath.Dir(path))
		err := Update(context.Background(), path, Options{Now: t0, Wait: time.Second}, func(e *Edit) error { _, err := e.Append(sample("x")); return err })
		if (err == nil) != (v >= 2 && v <= 18) || err != nil && !errors.Is(err, ErrNewer) {
			t.Errorf("version %d: written: %v", v, err)
		}
		if err != nil && treeHash(t, filepath.Dir(path)) != before {
			t.Errorf("version %d: refused, and changed", v)
		}
	}
}

// An update may have written content of a later version than the file admits.
func TestContentVersion(t *testing.T) {
	for raw, want := range map[string]int64{"17": 18, "19": 19, " 23 ": 23, `"23"`: 18, "1e3": 18, "null": 18, "": 18, "{": 18} {
		path := state(t, "one-session.2026.9.6")
		script(t, path, `INSERT INTO config_machine_state VALUES ('state.schema.contentVersion', '`+raw+`', 1)`)
		read(t, path, func(s *Snapshot) error {
			if s.Schema().Version != want || s.Schema().App != "2026.9.6" {
				t.Errorf("%q: %+v", raw, s.Schema())
			}
			return nil
		})
	}
}

func TestNothingThere(t *testing.T) {
	dir := t.TempDir()
	missing := Path(dir)
	empty := filepath.Join(dir, "empty.sqlite")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other.sqlite")
	script(t, other, `CREATE TABLE t (x)`)
	for _, path := range []string{missing, empty, other} {
		calls := 0
		read(t, path, func(s *Snapshot) error {
			calls++
			if !s.Schema().None || s.Schema().Label() != "" || s.Path() != path {
				t.Errorf("%s: %+v", path, s.Schema())
			}
			c, err := s.Changes(child, "main", 0, PageSize)
			if d := cmp.Diff(Changes{SessionKey: child, AgentID: "main", Events: []Event{}}, c); d != "" {
				t.Errorf("%s: (-want +got)\n%s", path, d)
			}
			ahead, err2 := s.Changes(child, "main", 1, PageSize)
			st, err3 := s.Stats(t0)
			if !ahead.AheadOfHead || st.Events != 0 {
				t.Errorf("%s: %+v %+v", path, ahead, st)
			}
			none := func() error { t.Error("something was found"); return nil }
			watched, err4 := s.Watched(child)
			n, err5 := s.CountEvents(Filter{})
			c0, err6 := s.Cursor(boss, child)
			if watched || n != 0 || c0.Exists {
				t.Errorf("%s: %v %d %+v", path, watched, n, c0)
			}
			return errors.Join(err, err2, err3, err4, err5, err6,
				s.Heads(func(Head) error { return none() }), s.Events(Filter{}, func(Event) error { return none() }),
				s.AllChanges(0, 1, func(Changes) error { return none() }), s.Links(func(Link) error { return none() }),
				s.Watches(WatchFilter{}, World{}, t0, func(Watch) error { return none() }))
		})
		if calls != 1 {
			t.Errorf("%s: called %d times", path, calls)
		}
		err := Update(context.Background(), path, Options{Wait: time.Second}, func(*Edit) error { t.Error("called"); return nil })
		if !errors.Is(err, ErrNone) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Stat(filepath.Dir(missing)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a directory was made")
	}
	// f's own error for a file that is missing is not taken for the database's.
	err := Read(context.Background(), other, func(*Snapshot) error { return fs.ErrNotExist })
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestHostile(t *testing.T) {
	changes := func(s *Snapshot) error { _, err := s.Changes(child, "main", 0, PageSize); return err }
	list := func(s *Snapshot) error {
		return s.Watches(WatchFilter{}, World{}, t0, func(Watch) error { return nil })
	}
	for name, tc := range map[string]struct {
		script  []string
		changes string // "" is answered
		watches string
	}{
		"column":          {[]string{`ALTER TABLE session_state_events RENAME COLUMN summary TO s`}, "no column summary", "no column summary"},
		"cursor column":   {[]string{`ALTER TABLE session_watch_cursors RENAME COLUMN material_sequence TO m`}, "", "no column material_sequence"},
		"head table":      {[]string{`DROP TABLE session_state_heads`}, "table session_state_heads is missing", "table session_state_heads is missing"},
		"cursors, a view": {[]string{`DROP TABLE session_watch_cursors`, `CREATE VIEW session_watch_cursors AS SELECT 1`}, "", "table session_watch_cursors is missing"},
		"role":            {[]string{`UPDATE schema_meta SET role = 'agent'`}, `role is "agent"`, `role is "agent"`},
		"newer and moved": {[]string{`PRAGMA user_version = 40`, `DROP TABLE session_state_events`, `DROP TABLE session_state_heads`, `DROP TABLE session_watch_cursors`, `DROP TABLE session_upstream_links`}, "has no signal log", "has no signal log"},
	} {
		path := state(t, "notices-pending.2026.8.2")
		script(t, path, tc.script...)
		for what, q := range map[string]struct {
			f    func(*Snapshot) error
			want string
		}{"changes": {changes, tc.changes}, "watches": {list, tc.watches}} {
			err := Read(context.Background(), path, q.f)
			switch {
			case q.want == "" && err != nil:
				t.Errorf("%s: %s: %v", name, what, err)
			case q.want != "" && (!errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), q.want) || !strings.Contains(err.Error(), path)):
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		err := Update(context.Background(), path, Options{Now: t0, Wait: time.Second}, func(e *Edit) error { _, err := e.Append(sample("x")); return err })
		if !errors.Is(err, ErrSchema) && !errors.Is(err, ErrNewer) {
			t.Errorf("%s: written: %v", name, err)
		}
	}
}

// A file that does not say what it is can be read, not written.
func TestNoMeta(t *testing.T) {
	path := state(t, "one-session.2026.8.2")
	script(t, path, `DROP TABLE schema_meta`)
	read(t, path, func(s *Snapshot) error { _, err := s.Changes(child, "main", 0, PageSize); return err })
	if err := Update(context.Background(), path, Options{Wait: time.Second}, func(*Edit) error { return nil }); !errors.Is(err, ErrSchema) {
		t.Error(err)
	}
}

func TestOddValues(t *testing.T) {
	path := state(t, "empty.2026.7.2-beta.1") // its tables take any type
	script(t, path,
		`INSERT INTO session_state_events VALUES (-9223372036854775807, NULL, 'k', NULL, 'a', 'goal_changed', 'x', NULL, NULL, 'soon', x'6162', '[1]')`,
		`INSERT INTO session_state_events VALUES (-1, NULL, 'k', 7, 'a', 'goal_changed', 'x', 1.5, NULL, 1.5, 's', '{"turns":1.5,"outcome":"ok","channel":3}')`,
		`INSERT INTO session_state_events VALUES (0, NULL, 'k', NULL, 'a', 'goal_changed', 'x', NULL, NULL, -5, 's', '{"turns":1e3,"text":"secret","channel":"c"')`,
		`INSERT INTO session_state_events VALUES (9223372036854775807, NULL, 'k', NULL, 'a', 'goal_changed', 'x', NULL, NULL, 9223372036854775807, 's', '{"turns":1e3,"text":"secret","channel":"c","outcome":"error"}')`,
		`INSERT INTO session_state_heads VALUES ('k', 'a', 'many', 2.5, 'now')`,
		cursor("agent:main:w", "k", -5, 9, 3),
		`INSERT INTO session_watch_cursors VALUES ('agent:main:x', 'k', 'a', 'b', 'c', 'never')`,
	)
	read(t, path, func(s *Snapshot) error {
		c, err := s.Changes("k", "a", -1<<63, PageSize)
		if len(c.Events) != 4 || c.Version != 0 || c.Earliest != -9223372036854775807 {
			t.Fatalf("%+v", c)
		}
		want := []Event{
			{Sequence: -9223372036854775807, SessionKey: "k", AgentID: "a", Kind: GoalChanged, ActorType: "x", Undated: true, Summary: "ab"},
			{Sequence: -1, SessionKey: "k", SessionID: "7", AgentID: "a", Kind: GoalChanged, ActorType: "x", ActorID: "1.5", Undated: true, Summary: "s"},
			{Sequence: 0, SessionKey: "k", AgentID: "a", Kind: GoalChanged, ActorType: "x", OccurredAt: -5, Summary: "s"},
			{Sequence: 9223372036854775807, SessionKey: "k", AgentID: "a", Kind: GoalChanged, ActorType: "x", OccurredAt: 9223372036854775807, Summary: "s", Payload: Payload{Outcome: "error", Channel: "c", Turns: 1000}},
		}
		if d := cmp.Diff(want, c.Events); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		for _, f := range []Filter{{Since: -100}, {Until: 1 << 62}, {Since: -100, Until: 1}} {
			err := s.Events(f, func(e Event) error {
				if e.Undated {
					t.Errorf("%+v finds an event without a time", f)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return err
	})
	var got []string
	for _, w := range watches(t, path, WatchFilter{}, World{}, t0+365*day) {
		got = append(got, fmt.Sprintf("%s %s %v", w.Watcher, w.State, w.Findings))
	}
	if d := cmp.Diff([]string{"agent:main:w pending [disordered ahead-of-log expired]", "agent:main:x idle []"}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	// Impossible stamps never make a row old.
	update(t, path, t0+365*day, func(e *Edit) error {
		p, err := e.Prune()
		if (p != Pruned{Aged: 1, Cursors: 1}) {
			t.Errorf("%+v", p)
		}
		return err
	})
}

func TestFilter(t *testing.T) {
	path := state(t, "empty.2026.9.6")
	update(t, path, t0, func(e *Edit) error {
		for i := range int64(10) {
			in := sample(fmt.Sprint(i))
			in.OccurredAt = t0 - 1000 + i
			if i%2 == 1 {
				in.SessionKey, in.AgentID, in.Kind, in.ActorType, in.ActorID, in.RunID = boss, "ops", RunFailed, "human", "u1", "r1"
			}
			if _, err := e.Append(in); err != nil {
				return err
			}
		}
		return nil
	})
	all := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	even := []int64{2, 4, 6, 8, 10}
	read(t, path, func(s *Snapshot) error {
		for _, tc := range []struct {
			f    Filter
			want []int64
		}{
			{Filter{}, all},
			{Filter{SessionKey: boss}, even},
			{Filter{AgentID: "ops"}, even},
			{Filter{Kinds: []string{RunFailed, Created}}, even},
			{Filter{Kinds: []string{RunFailed, GoalChanged}}, all},
			{Filter{ActorType: "human"}, even},
			{Filter{ActorID: "u1"}, even},
			{Filter{RunID: "r1"}, even},
			{Filter{SessionKey: boss, AgentID: "main"}, nil},
			{Filter{Since: t0 - 997}, all[3:]},
			{Filter{Until: t0 - 997}, all[:3]},
			{Filter{After: 3, Before: 6}, []int64{4, 5}},
			{Filter{Newest: true, Limit: 2}, []int64{10, 9}},
			{Filter{Newest: true, Limit: 2, Before: 9}, []int64{8, 7}},
			{Filter{Limit: 3, After: 2}, []int64{3, 4, 5}},
		} {
			var got []int64
			if err := s.Events(tc.f, func(e Event) error { got = append(got, e.Sequence); return nil }); err != nil {
				return err
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%+v: %v", tc.f, got)
			}
			if n, err := s.CountEvents(tc.f); err != nil || tc.f.Limit == 0 && n != int64(len(got)) {
				t.Errorf("%+v: counted %d, %v", tc.f, n, err)
			}
		}
		stop := errors.New("stop")
		if err := s.Events(Filter{}, func(Event) error { return stop }); err != stop {
			t.Error(err)
		}
		return nil
	})
}

// TestMaxRows rebuilds the recording max-rows, whose file is too large to keep.
func TestMaxRows(t *testing.T) {
	path := state(t, "empty.2026.9.6")
	want := record(t, "max-rows.2026.9.6")
	add := func(now int64, key string) {
		update(t, path, now, func(e *Edit) error {
			in := sample("x")
			in.SessionKey, in.Kind, in.ActorType, in.Summary = key, Created, "human", "third triggers the hourly prune"
			_, err := e.Append(in)
			return err
		})
	}
	add(t0, "agent:main:subagent:other")
	add(t0, child)
	script(t, path, fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 50001)
		INSERT INTO session_state_events SELECT i, NULL, 'agent:main:bulk', NULL, 'main', 'created', 'system', NULL, NULL, %d, 'x', NULL FROM n`, t0),
		head("agent:main:bulk", "main", 50001, 0))
	add(t0+7_200_000, child)
	read(t, path, func(s *Snapshot) error {
		st, err := s.Stats(t0 + 7_200_000)
		if st.Events != 50_002 || st.Excess != 2 || st.Aged != 0 || st.Last != 50_002 || st.Sessions != 3 {
			t.Errorf("%+v", st)
		}
		return err
	})
	update(t, path, t0+7_200_000, func(e *Edit) error {
		p, err := e.Prune()
		if (p != Pruned{Excess: 2}) {
			t.Errorf("%+v", p)
		}
		return err
	})
	checkAnswers(t, path, want)
}

func TestPruneEdges(t *testing.T) {
	path := state(t, "empty.2026.8.2")
	update(t, path, t0, func(e *Edit) error {
		for range 2 {
			if _, err := e.Append(sample("x")); err != nil {
				return err
			}
		}
		_, err := e.Watch(boss, child, "")
		return err
	})
	script(t, path, fmt.Sprintf(`UPDATE session_state_events SET occurred_at = %d WHERE sequence = 1`, t0-1))
	update(t, path, t0+30*day, func(e *Edit) error { // exactly at the cutoff survives
		p, err := e.Prune()
		h, err2 := e.Head(child, "main")
		if (p != Pruned{Aged: 1} || h != Head{child, "main", 2, 1, t0 + 30*day}) {
			t.Errorf("%+v %+v", p, h)
		}
		return errors.Join(err, err2)
	})
	update(t, path, t0+30*day+1, func(e *Edit) error {
		p, err := e.Prune()
		h, err2 := e.Head(child, "main")
		again, err3 := e.Prune()
		if (p != Pruned{Aged: 1, Cursors: 1} || h != Head{child, "main", 2, 2, t0 + 30*day + 1} || again != Pruned{}) {
			t.Errorf("%+v %+v %+v", p, h, again)
		}
		return errors.Join(err, err2, err3)
	})
}

func TestSweepUnknown(t *testing.T) {
	path := state(t, "notices-pending.2026.8.2")
	before := watches(t, path, WatchFilter{}, World{}, t0)
	s, err := Sweep(context.Background(), path, Options{Now: t0 + 5000, Wait: time.Second})
	if err != nil || len(s.Notices) != 0 || s.Dormant != 3 {
		t.Errorf("%+v %v", s, err)
	}
	if d := cmp.Diff(before, watches(t, path, WatchFilter{}, World{}, t0)); d != "" {
		t.Errorf("nobody is known to exist (-before +after)\n%s", d)
	}
}

func TestUpdateRollsBack(t *testing.T) {
	path := state(t, "one-session.2026.9.6")
	mine := errors.New("mine")
	err := Update(context.Background(), path, Options{Now: t0, Wait: time.Second}, func(e *Edit) error {
		if _, err := e.Append(sample("x")); err != nil {
			return err
		}
		return mine
	})
	read(t, path, func(s *Snapshot) error {
		n, err := s.CountEvents(Filter{})
		if n != int64(len(record(t, "one-session.2026.9.6").Results[2].Result.Events)) {
			t.Errorf("%d events", n)
		}
		return err
	})
	if !errors.Is(err, mine) {
		t.Error(err)
	}
}

func TestWritersAtOnce(t *testing.T) {
	path := state(t, "empty.2026.9.6")
	const writers, each = 3, 40
	update(t, path, t0, func(e *Edit) error { _, err := e.Watch(boss, child, ""); return err })
	done := make(chan error)
	for i := range writers {
		cmd := childProcess(t, "append", path, fmt.Sprintf("w%d", i), fmt.Sprint(each))
		go func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			done <- err
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	read(t, path, func(s *Snapshot) error {
		last := map[string]string{}
		n := int64(0)
		err := s.Events(Filter{}, func(e Event) error {
			if n++; e.Sequence != n {
				t.Errorf("sequence %d at place %d", e.Sequence, n)
			}
			last[e.ActorID] = e.Summary
			return nil
		})
		h, err2 := s.Head(child, "main")
		c, err3 := s.Cursor(boss, child)
		if n != writers*each || h.Version != n || c.Material != n || c.Notified != 1 || len(last) != writers || last["w0"] != fmt.Sprint(each-1) {
			t.Errorf("%d events, head %d, cursor %+v, %v", n, h.Version, c, last)
		}
		return errors.Join(err, err2, err3)
	})
}

func TestBusy(t *testing.T) {
	path := state(t, "empty.2026.9.6")
	update(t, path, t0, func(*Edit) error {
		err := Update(context.Background(), path, Options{Now: t0, Wait: 20 * time.Millisecond}, func(*Edit) error { t.Error("called"); return nil })
		if !errors.Is(err, sqlfile.ErrBusy) {
			t.Error(err)
		}
		return nil
	})
}

// TestLogOnly: a live gateway keeps recent events in the write-ahead log alone.
func TestLogOnly(t *testing.T) {
	path := state(t, "empty.2026.9.6")
	if out, err := childProcess(t, "crash", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wal, err := os.Stat(path + "-wal")
	if err != nil || wal.Size() == 0 {
		t.Fatalf("no write-ahead log: %v", err)
	}
	check := func(what string) {
		t.Helper()
		before := treeHash(t, filepath.Dir(path))
		read(t, path, func(s *Snapshot) error {
			c, err := s.Changes(child, "main", 0, PageSize)
			if len(c.Events) != 1 || c.Version != 1 {
				t.Errorf("%s: %+v", what, c)
			}
			return err
		})
		if treeHash(t, filepath.Dir(path)) != before {
			t.Errorf("%s: reading changed the files", what)
		}
	}
	check("with -shm")
	if err := os.Remove(path + "-shm"); err != nil {
		t.Fatal(err)
	}
	check("without -shm")
}

func TestInit(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	path, err := Init(ctx, dir, []string{filepath.Join(dir, "other")}, t0)
	if err != nil || path != Path(dir) {
		t.Fatal(path, err)
	}
	for p, mode := range map[string]fs.FileMode{filepath.Dir(path): 0o700, path: 0o600} {
		if fi, err := os.Stat(p); err != nil || fi.Mode().Perm() != mode {
			t.Errorf("%s: %v %v", p, fi.Mode(), err)
		}
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("%v is left", names)
	}
	if b, err := os.ReadFile(path); err != nil || b[18] != 2 || b[19] != 2 {
		t.Errorf("it has no write-ahead log: %v %v", b[18:20], err)
	}
	update(t, path, t0, func(e *Edit) error {
		if s := e.Schema(); s.App != App || s.Version != 15 || s.Label() != "" {
			t.Errorf("%+v", s)
		}
		if _, err := e.Watch(boss, child, ""); err != nil {
			return err
		}
		_, err := e.Append(sample("x"))
		return err
	})
	// Whoever watches there is told and can acknowledge, though there are no agent databases.
	w := watches(t, path, WatchFilter{}, World{}, t0)
	if len(w) != 1 || w[0].State != Pending || w[0].Findings != nil {
		t.Errorf("%+v", w)
	}
	update(t, path, t0, func(e *Edit) error { _, err := e.Ack(boss, child); return err })
	if w = watches(t, path, WatchFilter{}, World{}, t0); w[0].State != Idle {
		t.Errorf("%+v", w)
	}

	for name, prepare := range map[string]func(dir string) []string{
		"again":         func(dir string) []string { os.Mkdir(filepath.Join(dir, "state"), 0o700); return nil },
		"openclaw.json": func(dir string) []string { os.WriteFile(filepath.Join(dir, "openclaw.json"), nil, 0o600); return nil },
		"agents":        func(dir string) []string { os.Symlink("/nowhere", filepath.Join(dir, "agents")); return nil },
		"default":       func(dir string) []string { return []string{dir + "/."} },
		"link to it": func(dir string) []string {
			link := filepath.Join(t.TempDir(), "l")
			os.Symlink(dir, link)
			return []string{link}
		},
	} {
		dir := t.TempDir()
		never := prepare(dir)
		before := treeHash(t, dir)
		if _, err := Init(ctx, dir, never, t0); !errors.Is(err, ErrPlace) {
			t.Errorf("%s: %v", name, err)
		}
		if treeHash(t, dir) != before {
			t.Errorf("%s: refused, and changed", name)
		}
	}
	if _, err := Init(ctx, filepath.Join(dir, "missing"), nil, t0); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Init(ctx, path, nil, t0); err == nil {
		t.Error("made inside a file")
	}
}

func TestLinks(t *testing.T) {
	path := state(t, "empty.2026.9.6")
	link := func(key, agent, catalog string) string {
		return fmt.Sprintf(`INSERT INTO session_upstream_links VALUES ('%s', '%s', '%s', 'h', 't', 'claude-jsonl', '{"a":1}', NULL, NULL, 1, 2)`, key, agent, catalog)
	}
	script(t, path, link(child, "main", "z"), link(boss, "main", "a"), link(child, "ops", "a"), cursor(boss, child, 0, 0, 0))
	var got []Link
	read(t, path, func(s *Snapshot) error {
		got = nil
		return s.Links(func(l Link) error { got = append(got, l); return nil })
	})
	if len(got) != 3 || got[0].SessionKey != boss || got[0].Watched || !got[1].Watched || string(got[2].Ref) != `{"a":1}` || got[2].Marker != nil || got[2].Scanned != 0 {
		t.Fatalf("%+v", got)
	}
	update(t, path, t0, func(e *Edit) error {
		ok, err := e.MarkLink(got[2], []byte(`{"offset":7}`))
		late, err2 := e.RemoveLink(got[2]) // it is not as it was read
		gone, err3 := e.RemoveLink(got[0])
		if !ok || late || !gone {
			t.Errorf("%v %v %v", ok, late, gone)
		}
		return errors.Join(err, err2, err3)
	})
	update(t, path, t0, func(e *Edit) error { return e.Delete(child, "ops") })
	read(t, path, func(s *Snapshot) error {
		got = nil
		return s.Links(func(l Link) error { got = append(got, l); return nil })
	})
	if len(got) != 1 || got[0].Scanned != t0 || got[0].Updated != t0 || string(got[0].Marker) != `{"offset":7}` || got[0].Watched {
		t.Errorf("%+v", got)
	}
}

func TestQuarantine(t *testing.T) {
	ctx := context.Background()
	path := state(t, "one-session.2026.9.6")
	store := filepath.Join(filepath.Dir(path), "openclaw-quarantine.sqlite")
	mark := func(p, why string) {
		script(t, store, `CREATE TABLE IF NOT EXISTS quarantined_databases (path TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, reason TEXT NOT NULL,
			quarantined_at INTEGER NOT NULL, writer_app_version TEXT, verified_generation TEXT) STRICT`,
			fmt.Sprintf(`INSERT INTO quarantined_databases VALUES ('%s', 'state', '%s', 1, NULL, NULL)`, p, why))
	}
	write := func() error {
		return Update(ctx, path, Options{Now: t0, Wait: time.Second}, func(e *Edit) error { _, err := e.Append(sample("x")); return err })
	}
	if why, err := Quarantine(ctx, path); why != "" || err != nil {
		t.Error(why, err)
	}
	mark("/elsewhere", "bad page")
	if why, err := Quarantine(ctx, path); why != "" || err != nil {
		t.Error(why, err)
	}
	if err := write(); err != nil {
		t.Error(err)
	}
	mark(path, "bad page")
	if why, err := Quarantine(ctx, path); why != "bad page" || err != nil {
		t.Error(why, err)
	}
	if err := write(); !errors.Is(err, ErrQuarantined) || !strings.Contains(err.Error(), "bad page") {
		t.Error(err)
	}
	read(t, path, func(s *Snapshot) error { // read all the same
		h, err := s.Head(child, "main")
		if h.Version != 8 {
			t.Errorf("%+v", h)
		}
		return err
	})
	if err := os.WriteFile(store, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	if why, err := Quarantine(ctx, path); why != "" || err == nil {
		t.Error(why, err)
	}
}
