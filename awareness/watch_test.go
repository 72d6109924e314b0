package awareness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/store/sqlfile"
)

const day = 86_400_000

// t0 is when the recordings begin.
const t0 = int64(1_767_225_600_000)

func watches(t testing.TB, path string, f WatchFilter, w World, now int64) (out []Watch) {
	t.Helper()
	read(t, path, func(s *Snapshot) error {
		out = nil
		return s.Watches(f, w, now, func(w Watch) error { out = append(out, w); return nil })
	})
	return out
}

// inPlace is a world in which all watchers of the recordings live where they did.
var inPlace = World{Store: func(string) string { return "@ROOT@/agents/main/agent/openclaw-agent.sqlite" }}

func TestRecordedWatches(t *testing.T) {
	for _, name := range goldens(t) {
		want := record(t, name)
		got := watches(t, state(t, name), WatchFilter{}, inPlace, t0)
		if len(got) != len(want.Final.Cursors) {
			t.Errorf("%s: %d watches, want %d", name, len(got), len(want.Final.Cursors))
			continue
		}
		for i, w := range want.Final.Cursors {
			exp := Cursor{
				Watcher: w.Watcher, Target: w.Target, Exists: true, Seen: w.Seen, Notified: w.Notified, Material: w.Material,
				Ambient: w.Provenance == "ambient-group", Store: w.Store, Updated: w.Updated,
			}
			if d := cmp.Diff(exp, got[i].Cursor); d != "" {
				t.Errorf("%s: (-want +got)\n%s", name, d)
			}
			if got[i].State == Dormant || len(got[i].Findings) > 0 {
				t.Errorf("%s: %s is %s: %v", name, w.Watcher, got[i].State, got[i].Findings)
			}
			n, pending := got[i].Notice()
			if pending != (w.Material > w.Seen) {
				t.Errorf("%s: pending %v", name, pending)
			}
			// What is pending is what waits in the gateway, whose memory may hold older ones besides.
			if queue := want.Queues[w.Watcher]; pending && len(queue) > 0 && !slices.ContainsFunc(queue, func(q struct{ Text, ContextKey string }) bool { return q.Text == n.Text() }) {
				t.Errorf("%s: %q does not wait for %s", name, n.Text(), w.Watcher)
			}
		}
	}
}

// TestUpgraded reads files that 2026.9.6 took over from 2026.8.2: cursors that name no store are never told.
func TestUpgraded(t *testing.T) {
	group := "agent:main:telegram:group:-1001"
	for _, tc := range []struct {
		name  string
		world World
		want  []string
	}{
		{"upgraded-no-store-column.2026.9.6", inPlace, []string{
			boss + " " + child + " dormant behind 2 of 4 [no-store]",
			boss + " " + group + " dormant behind 1 of 5 [no-store]",
			"agent:main:w2 " + child + " dormant behind 3 of 4 [no-store]",
		}},
		{"legacy-null-store.2026.9.6", inPlace, []string{
			boss + " " + child + " pending behind 1 of 8 []",
			boss + " " + group + " dormant behind 1 of 5 [no-store]",
			"agent:main:w2 " + child + " dormant behind 6 of 8 [no-store]",
		}},
		{"legacy-null-store.2026.9.6", World{Store: func(string) string { return "/moved" }}, []string{
			boss + " " + child + " dormant behind 1 of 8 [other-store]",
			boss + " " + group + " dormant behind 1 of 5 [no-store]",
			"agent:main:w2 " + child + " dormant behind 6 of 8 [no-store]",
		}},
	} {
		var got []string
		for _, w := range watches(t, state(t, tc.name), WatchFilter{}, tc.world, t0) {
			got = append(got, fmt.Sprintf("%s %s %s behind %d of %d %v", w.Watcher, w.Target, w.State, w.Behind, w.Head, w.Findings))
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", tc.name, d)
		}
	}
}

// script runs statements on a database file, which it makes if need be.
func script(t testing.TB, path string, statements ...string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	err = sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
		for _, s := range statements {
			if _, err := tx.Exec(s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func event(seq int64, key, kind, actor string) string {
	return fmt.Sprintf(`INSERT INTO session_state_events VALUES (%d, NULL, '%s', NULL, 'main', '%s', 'agent', NULLIF('%s', ''), NULL, %d, 's', NULL)`,
		seq, key, kind, actor, t0+seq)
}

func cursor(watcher, target string, seen, notified, material int64) string {
	return fmt.Sprintf(`INSERT INTO session_watch_cursors (watcher_session_key, target_session_key, last_seen_sequence, notified_sequence,
		material_sequence, updated_at) VALUES ('%s', '%s', %d, %d, %d, %d)`, watcher, target, seen, notified, material, t0)
}

func head(key, agent string, last, pruned int64) string {
	return fmt.Sprintf(`INSERT INTO session_state_heads VALUES ('%s', '%s', %d, %d, %d)`, key, agent, last, pruned, t0)
}

// TestReconcile is scenario S19 of the field reports.
func TestReconcile(t *testing.T) {
	const target, busy = "agent:main:t", "agent:main:u"
	path := state(t, "empty.2026.8.2")
	fixture := []string{
		event(10, target, ChildSpawned, ""), event(12, target, HumanDirectMessage, ""), event(14, target, HumanDirectMessage, ""),
		event(15, target, RunCompleted, ""), event(19, target, GoalChanged, "agent:main:w3"), event(20, "agent:main:v", "rewound", ""),
		head(target, "main", 19, 9), head("agent:main:empty", "main", 7, 0), head("agent:main:v", "main", 20, 0), head(busy, "main", 550, 0),
		head("global", "main", 8, 0), head("global", "ops", 9, 0),
		cursor("agent:main:w1", target, 12, 14, 19), cursor("agent:main:w2", target, 5, 12, 19), cursor("agent:main:w3", target, 14, 14, 14),
		cursor("agent:main:w4", target, 12, 14, 19), cursor("global", target, 12, 14, 19), cursor("agent:main:w1", "global", 9, 9, 9),
		cursor("agent:main:w1", "agent:main:w1", 3, 2, 9),
	}
	for i := range int64(450) {
		fixture = append(fixture, event(101+i, busy, GoalChanged, ""))
	}
	script(t, path, fixture...)
	before := treeHash(t, filepath.Dir(path))
	read(t, path, func(s *Snapshot) error {
		for _, tc := range []struct {
			key                           string
			after                         int64
			sequences                     []int64
			version, earliest             int64
			gap, ahead, truncated, logged bool
		}{
			{key: target, after: 12, sequences: []int64{14, 15, 19}, version: 19, earliest: 10},
			{key: target, after: 5, sequences: []int64{10, 12, 14, 15, 19}, version: 19, earliest: 10, gap: true},
			{key: target, after: 9, sequences: []int64{10, 12, 14, 15, 19}, version: 19, earliest: 10},
			{key: target, after: 19, version: 19, earliest: 10},
			{key: target, after: 25, version: 19, earliest: 10, ahead: true},
			{key: "agent:main:empty", after: 0, version: 7, earliest: 8},
			{key: "agent:main:nobody", after: 0},
			{key: "agent:main:nobody", after: 1, ahead: true},
			{key: strings.ToUpper(target), after: 0},
		} {
			c, err := s.Changes(tc.key, "main", tc.after, PageSize)
			if err != nil {
				return err
			}
			var got []int64
			for _, e := range c.Events {
				got = append(got, e.Sequence)
			}
			if !slices.Equal(got, tc.sequences) || c.Version != tc.version || c.Earliest != tc.earliest || c.Gap != tc.gap || c.AheadOfHead != tc.ahead || c.Truncated != tc.truncated {
				t.Errorf("%s after %d: %v %+v", tc.key, tc.after, got, c)
			}
		}
		// 450 events come in three pages.
		after, total, pages := int64(0), 0, 0
		for more := true; more; pages++ {
			c, err := s.Changes(busy, "main", after, 1000)
			if err != nil {
				return err
			}
			total += len(c.Events)
			after, more = c.Next(after), c.Truncated
		}
		if total != 450 || pages != 3 || after != 550 {
			t.Errorf("%d events in %d pages, up to %d", total, pages, after)
		}
		c, err := s.Changes("agent:main:v", "main", 0, PageSize)
		if err != nil || len(c.Events) != 1 || c.Events[0].Kind != "rewound" {
			t.Errorf("unknown kind: %+v %v", c, err)
		}
		var all []string
		err = s.AllChanges(12, 2, func(c Changes) error {
			all = append(all, fmt.Sprintf("%s %s %d %v %v", c.SessionKey, c.AgentID, len(c.Events), c.Truncated, c.Gap))
			return nil
		})
		if d := cmp.Diff([]string{target + " main 2 true false", busy + " main 2 true false", "agent:main:v main 1 false false"}, all); d != "" {
			t.Errorf("all sessions (-want +got)\n%s", d)
		}
		return err
	})
	world := World{Exists: func(key string) (bool, bool) { return key != "agent:main:w4" && key != "global", key != busy }}
	var got []string
	for _, w := range watches(t, path, WatchFilter{}, world, t0+31*day) {
		got = append(got, fmt.Sprintf("%s>%s %s %d %v", w.Watcher, w.Target, w.State, w.Behind, w.Findings))
	}
	want := []string{
		"agent:main:w1>agent:main:t pending 2 [expired]",
		"agent:main:w1>agent:main:w1 pending 0 [self-watch disordered ahead-of-log expired]",
		"agent:main:w1>global idle 0 [ambiguous-target target-gone expired]",
		"agent:main:w2>agent:main:t pending 3 [expired]",
		"agent:main:w3>agent:main:t idle 0 [expired]",
		"agent:main:w4>agent:main:t dormant 2 [watcher-gone expired]",
		"global>agent:main:t dormant 2 [ambiguous-watcher watcher-gone expired]",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("watches (-want +got)\n%s", d)
	}
	if n := len(watches(t, path, WatchFilter{Watcher: "agent:main:w1", Target: target, Pending: true}, World{}, t0)); n != 1 {
		t.Errorf("%d watches are chosen", n)
	}
	if treeHash(t, filepath.Dir(path)) != before {
		t.Error("looking changed the files")
	}
}

// TestSentinels: builds before schema 4 marked ambient watches with a second row.
func TestSentinels(t *testing.T) {
	path := state(t, "empty.2026.7.2-beta.1")
	script(t, path, head(child, "main", 3, 0), cursor(boss, child, 1, 1, 1), cursor("agent:main:w2", child, 1, 1, 1),
		cursor("ambient-group-watch:"+fmt.Sprintf("%x", boss), child, 0, 0, 0))
	got := watches(t, path, WatchFilter{}, World{}, t0)
	if len(got) != 2 || !got[0].Ambient || got[1].Ambient {
		t.Errorf("%+v", got)
	}
	read(t, path, func(s *Snapshot) error {
		st, err := s.Stats(t0)
		if st.Watches != 2 {
			t.Errorf("%d watches are counted", st.Watches)
		}
		return err
	})
}

func TestWatchRefused(t *testing.T) {
	for name, refused := range map[string][]string{
		"empty.2026.8.2":        {"global>" + child, child + ">" + child, boss + ">"},
		"empty.2026.7.2-beta.1": {"~" + boss + ">agent:main:telegram:group:-1"},
	} {
		path := state(t, name)
		for _, pair := range refused {
			pair, ambient := strings.CutPrefix(pair, "~")
			w, target, _ := strings.Cut(pair, ">")
			err := Update(context.Background(), path, Options{Now: t0, Wait: time.Second}, func(e *Edit) (err error) {
				if ambient {
					_, err = e.WatchGroup(w, target, "")
				} else {
					_, err = e.Watch(w, target, "")
				}
				return err
			})
			if !errors.Is(err, ErrWatcher) {
				t.Errorf("%s: %v", pair, err)
			}
		}
		if n := len(watches(t, path, WatchFilter{}, World{}, t0)); n != 0 {
			t.Errorf("%d watches were made", n)
		}
	}
}
