package doctor

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oc/awareness"
	"oc/fixtures"
)

// S16: which era an agent is in, and what the other one holds, entry by entry.
func TestEras(t *testing.T) {
	e, err := fixtures.S16(t.TempDir(), fixtures.Now)
	if err != nil {
		t.Fatal(err)
	}
	only := func(o *Options) { o.Only = mustSelect(t, "database") }
	for state, want := range map[string]map[Code]int{
		e.Files:    {},
		e.SQLite:   {},
		e.Both:     {EraBoth: 1, LeftoverCovered: 1, LeftoverUncovered: 2},
		e.Imported: {ImportArchive: 1},
		e.Newer:    {DatabaseNewer: 1},
		e.Unlisted: {AgentUnlisted: 1},
	} {
		r := examine(t, state, only)
		if d := cmp.Diff(want, codes(r)); d != "" {
			t.Errorf("%s: %s\n%+v", filepath.Base(state), d, r.Findings)
		}
	}
	r := examine(t, e.Both, only)
	says(t, one(t, r, EraBoth), "the database has 2 sessions", "hold 3 rows and 3 transcripts")
	if f := one(t, r, LeftoverCovered); filepath.Base(f.File) != e.Covered {
		t.Errorf("%+v", f)
	}
	got := map[string]string{}
	for _, f := range found(r, LeftoverUncovered) {
		got[filepath.Base(f.File)] = f.Evidence[0]
	}
	want := map[string]string{
		e.Uncovered: "4 of its 8 entries are not in the database, 4 of them messages",
		e.Outside:   "the database has no conversation of the session id; the file has 4 entries, 2 of them messages",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if s := r.Stores[0]; s.Era != "sqlite" || s.Other == nil || s.Other.Rows != 3 {
		t.Errorf("%+v", s)
	}
}

// S17: databases that are hard to read are read without a trace; what is wrong
// with them is told.
func TestDatabases(t *testing.T) {
	d, err := fixtures.S17(t.TempDir(), fixtures.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fixtures.Unseal(d.Sealed) }) //nolint:errcheck // it is removed next
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	only := func(o *Options) { o.Only = mustSelect(t, "database") }
	for state, want := range map[string]map[Code]int{
		d.Log: {}, d.LogAlone: {}, d.Sealed: {}, d.Rollback: {},
		d.BadIndex:    {DatabaseDamaged: 1},
		d.Quarantined: {DatabaseQuarantined: 1},
	} {
		r := examine(t, state, only)
		if d := cmp.Diff(want, codes(r)); d != "" {
			t.Errorf("%s: %s\n%+v", filepath.Base(state), d, r.Findings)
		}
	}
	says(t, one(t, examine(t, d.BadIndex, only), DatabaseDamaged), d.Index)
	left, err := os.ReadDir(temp)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the directory for temporary files: %v %v", left, err)
	}
}

// What a database says of itself does not fit.
func TestDatabaseSaysOtherwise(t *testing.T) {
	e, err := fixtures.S16(t.TempDir(), fixtures.Now)
	if err != nil {
		t.Fatal(err)
	}
	path := fixtures.Database(e.SQLite, "main")
	if err := fixtures.Alter(path, "UPDATE schema_meta SET schema_version = 22, agent_id = 'work'"); err != nil {
		t.Fatal(err)
	}
	r := examine(t, e.SQLite, func(o *Options) { o.Only = mustSelect(t, "database") })
	says(t, one(t, r, DatabaseVersion), "header says 23", "content 22")
	says(t, one(t, r, DatabaseOtherAgent), "agent work")
	if err := fixtures.Alter(path, "UPDATE schema_meta SET schema_version = 21, agent_id = 'main'", "PRAGMA user_version = 21"); err != nil {
		t.Fatal(err)
	}
	r = examine(t, e.SQLite, func(o *Options) { o.Only = mustSelect(t, "database") })
	if f := one(t, r, DatabaseEarly); f.Severity != Info || !r.Healthy() {
		t.Errorf("%v", codes(r))
	}
}

// A cold archive that is gone is told, and the other windows are looked at.
func TestColdArchiveGone(t *testing.T) {
	e, err := fixtures.S16(t.TempDir(), fixtures.Now)
	if err != nil {
		t.Fatal(err)
	}
	id, other := fixtures.IDOf(e.Keys[0]), fixtures.IDOf(e.Keys[1])
	if err := fixtures.Alter(fixtures.Database(e.SQLite, "main"), "INSERT INTO session_transcript_cold_archives VALUES ('"+id+"', 'g', '"+strings.Repeat("ab", 32)+".jsonl.zst', '"+strings.Repeat("ab", 32)+"', 4, 100, 100, 3, 9, 'file', NULL)",
		"DELETE FROM transcript_events WHERE session_id = '"+id+"'",
		fmt.Sprintf(`INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES ('%s', 100, '[1]', %d)`, other, fixtures.Now-fixtures.Hour)); err != nil {
		t.Fatal(err)
	}
	r := examine(t, e.SQLite, func(o *Options) { o.Only = mustSelect(t, "transcripts") })
	if f := one(t, r, TranscriptUnreadable); f.ID != id {
		t.Errorf("%+v", f)
	}
	if f := one(t, r, "not-object"); f.ID != other {
		t.Errorf("%+v", f)
	}
}

// A database that is cut short, and one that is none.
func TestBadDatabase(t *testing.T) {
	e, err := fixtures.S16(t.TempDir(), fixtures.Now)
	if err != nil {
		t.Fatal(err)
	}
	path := fixtures.Database(e.SQLite, "main")
	if err := os.Truncate(path, 40_000); err != nil {
		t.Fatal(err)
	}
	if f := one(t, examine(t, e.SQLite), DatabaseUnreadable); f.File != path {
		t.Errorf("%+v", f)
	}
	put(t, path, "this is no database, and was one before")
	if f := one(t, examine(t, e.SQLite), DatabaseUnreadable); f.File != path {
		t.Errorf("%+v", f)
	}
}

// signalState is a state of two agents with a signal log.
func signalState(t *testing.T, statements ...string) string {
	t.Helper()
	state := filepath.Join(t.TempDir(), "state")
	put(t, filepath.Join(state, "openclaw.json"), `{"agents": {"list": [{"id": "main"}, {"id": "work"}]}}`)
	put(t, fixtures.Store(state, "main"), `{"agent:main:main": {"sessionId": "m", "updatedAt": 1789999000000}, "agent:main:w1": {"sessionId": "w1", "updatedAt": 1789999000000},
		"agent:main:w2": {"sessionId": "w2", "updatedAt": 1789999000000}, "agent:main:w3": {"sessionId": "w3", "updatedAt": 1789999000000}, "agent:main:subagent:t": {"sessionId": "t", "updatedAt": 1789999000000}}`)
	put(t, fixtures.Store(state, "work"), `{"agent:work:main": {"sessionId": "x", "updatedAt": 1789999000000}}`)
	made, err := awareness.Init(context.Background(), t.TempDir(), nil, fixtures.Now)
	if err != nil {
		t.Fatal(err)
	}
	path := awareness.Path(state)
	if err := os.Rename(filepath.Dir(made), filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range append([]string{"UPDATE schema_meta SET app_version = '2026.8.2'"}, statements...) {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return state
}

// S19: the signal log. Looking moves no cursor; whose a shared cursor is is not
// guessed.
func TestSignals(t *testing.T) {
	const target = "agent:main:subagent:t"
	event := func(n int, key, agent, kind string) string {
		return fmt.Sprintf(`INSERT INTO session_state_events VALUES (%d, NULL, '%s', NULL, '%s', '%s', 'agent', NULL, NULL, %d, 'what happened', NULL)`, n, key, agent, kind, fixtures.Now-60_000+int64(n))
	}
	head := func(key, agent string, last, pruned int) string {
		return fmt.Sprintf(`INSERT INTO session_state_heads VALUES ('%s', '%s', %d, %d, %d)`, key, agent, last, pruned, fixtures.Now-1000)
	}
	cursor := func(watcher, target string, seen, notified, material int) string {
		return fmt.Sprintf(`INSERT INTO session_watch_cursors VALUES ('%s', '%s', %d, %d, %d, 'explicit', %d)`, watcher, target, seen, notified, material, fixtures.Now-1000)
	}
	fine := []string{event(10, target, "main", "child_spawned"), event(12, target, "main", "human_direct_message"), head(target, "main", 12, 9), cursor("agent:main:w1", target, 12, 12, 12)}
	only := func(o *Options) { o.Only = mustSelect(t, "signals") }
	if r := examine(t, signalState(t, fine...), only); len(r.Findings) > 0 {
		t.Errorf("of a sound log: %+v", r.Findings)
	}
	state := signalState(t, append(
		fine,
		event(14, target, "main", "human_direct_message"), event(19, target, "main", "goal_changed"),
		"UPDATE session_state_heads SET last_sequence = 19 WHERE session_key = '"+target+"'",
		cursor("agent:main:w2", target, 5, 14, 19), cursor("agent:main:w3", target, 14, 14, 14), cursor("agent:main:w4", target, 10, 10, 10),
		event(20, "global", "main", "goal_changed"), event(21, "global", "work", "moon_phase"), head("global", "main", 20, 0), head("global", "work", 21, 0),
		cursor("global", target, 12, 14, 19), cursor("agent:main:w1", "global", 0, 20, 20), head("agent:main:silent", "main", 3, 3),
	)...)
	r := examine(t, state, only)
	got := map[Code][]string{}
	for _, f := range r.Findings {
		if f.Key != "" {
			got[f.Code] = append(got[f.Code], f.Key)
		} else {
			got[f.Code] = append(got[f.Code], "")
		}
	}
	want := map[Code][]string{
		SignalGap: {"agent:main:w2"}, "signal-watcher-gone": {"agent:main:w4"}, "signal-ambiguous-watcher": {"global"}, "signal-ambiguous-target": {"agent:main:w1"},
		SignalKind: {""}, SignalSilent: {"agent:main:silent"}, SignalPending: {""},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	says(t, one(t, r, SignalGap), "up to 5", "up to 9")
	if err := os.WriteFile(awareness.Path(state), []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f := one(t, examine(t, state, only), SignalUnreadable); f.File != awareness.Path(state) {
		t.Errorf("%+v", f)
	}
}

// Transcripts in a database are read as those in files are.
func TestTranscriptsInDatabase(t *testing.T) {
	e, err := fixtures.S16(t.TempDir(), fixtures.Now)
	if err != nil {
		t.Fatal(err)
	}
	id := fixtures.IDOf(e.Keys[0])
	if err := fixtures.Alter(fixtures.Database(e.SQLite, "main"), fmt.Sprintf(`INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES
		('%[1]s', 100, '{"type":"mess', %[2]d), ('%[1]s', 101, '{"type":"message","id":"zz","parentId":null,"message":{"role":"toolResult","toolCallId":"c9","content":[]}}', %[2]d)`, id, fixtures.Now-fixtures.Hour),
		fmt.Sprintf(`INSERT INTO transcript_events (session_id, seq, created_at, event_zstd, event_utf8_bytes, navigation_json) VALUES ('%s', 102, %d, x'0011', 10, '{"version":1,"report":{"kind":"canonical"},"navigation":{},"reset":{},"model":{},"modelBytes":0,"modelWithoutCheckpointBytes":0,"withoutCustomDataBytes":0}')`, id, fixtures.Now-fixtures.Hour)); err != nil {
		t.Fatal(err)
	}
	r := examine(t, e.SQLite, func(o *Options) { o.Only = mustSelect(t, "transcripts") })
	for _, code := range []Code{"not-json", "orphan-result", "damaged-row"} {
		if f := one(t, r, code); f.Key != e.Keys[0] || f.ID != id || f.Byte != -1 || f.File != fixtures.Database(e.SQLite, "main") {
			t.Errorf("%+v", f)
		}
	}
	r = examine(t, e.SQLite, func(o *Options) { o.Only = mustSelect(t, "transcripts"); o.Deep = false })
	if len(r.Findings) > 0 {
		t.Errorf("without --deep the database was read: %+v", r.Findings)
	}
}
