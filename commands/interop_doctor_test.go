//go:build interop

package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oc/fixtures"
)

// What doctor finds in a database stops the real 2026.9.6, and after doctor --fix it lists every session again; after the undo it is as it was.
func TestInteropMendDatabase(t *testing.T) {
	const release, scratch = "2026.9.6", "agent:main:explicit:scratch-1"
	list := func(state string) (keys []string, said string) {
		t.Helper()
		out, exit, errout := peerRun(t, release, t.TempDir(), state, "sessions", "--json", "--limit", "all")
		var doc struct{ Sessions []struct{ Key string } }
		if err := json.Unmarshal(out, &doc); err != nil || exit != 0 {
			return nil, string(out) + errout
		}
		for _, s := range doc.Sessions {
			keys = append(keys, s.Key)
		}
		slices.Sort(keys)
		return keys, errout
	}
	sound, said := list(goldenState(t, "2026.9.6-migrated"))
	if len(sound) != 12 {
		t.Fatalf("the sound state: %q %s", sound, said)
	}
	for _, h := range []struct {
		code string
		sql  []string
	}{
		{"row-doubted", []string{"UPDATE session_nodes SET entry_valid=-1 WHERE session_key='agent:main:main'", "INSERT OR IGNORE INTO session_canonical_validation_pending VALUES('agent:main:main')"}},
		{"lineage-differs", []string{"UPDATE session_nodes SET spawned_by='agent:main:zzz' WHERE session_key='" + scratch + "'", "UPDATE session_nodes SET entry_valid=1 WHERE session_key='" + scratch + "'"}},
	} {
		state := goldenState(t, "2026.9.6-migrated")
		if err := fixtures.Alter(fixtures.Database(state, "main"), h.sql...); err != nil {
			t.Fatal(err)
		}
		if keys, said := list(state); keys != nil || !strings.Contains(said, "requires repair") {
			t.Errorf("%s: OpenClaw lists %q: %s", h.code, keys, said)
		}
		if a := at(t, state, "doctor", "--only", h.code); a.exit != ExitFindings {
			t.Errorf("%s is not found: %s", h.code, a.out)
		}
		if a := at(t, state, "doctor", "--fix", h.code, "--yes"); !strings.Contains(a.out, "1 change made") {
			t.Fatalf("%s: exit %d: %s%s", h.code, a.exit, a.out, a.errout)
		}
		if keys, said := list(state); !slices.Equal(keys, sound) {
			t.Errorf("%s: after the repair: %q %s", h.code, keys, said)
		}
	}
	// What is derived of a conversation and contradicts it is made anew by OpenClaw once it is marked; the database stays sound to it.
	state := goldenState(t, "2026.9.6-migrated")
	if err := fixtures.Alter(fixtures.Database(state, "main"), "DELETE FROM session_transcript_active_events WHERE event_seq=3"); err != nil {
		t.Fatal(err)
	}
	if a := at(t, state, "doctor", "--fix", "index-broken"); !strings.Contains(a.out, "set right what is derived") {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	if keys, said := list(state); !slices.Equal(keys, sound) {
		t.Errorf("after the repair of indexes: %q %s", keys, said)
	}
	out, exit, errout := peerRun(t, release, t.TempDir(), state, "doctor", "--session-sqlite", "inspect", "--session-sqlite-agent", "main", "--json")
	if exit != 0 || !strings.Contains(string(out), filepath.Base(fixtures.Database(state, "main"))) || strings.Contains(string(out), "sqlite_corrupt") {
		t.Errorf("OpenClaw's own inspection: exit %d: %s%s", exit, out, errout)
	}
}

// Everything that doctor mends in a database is wrong with one at once. Mended, it is opened by a gateway of 2026.9.6, which lists every session
// and reads every message that was there before.
func TestInteropMendedDatabaseIsRead(t *testing.T) {
	const main, group, scratch, missing, older = "agent:main:main", "agent:main:telegram:group:-100123", "agent:main:explicit:scratch-1", "agent:main:explicit:missing-1", "agent:main:explicit:old-1"
	harm := func(key, set string) []string {
		return []string{"UPDATE session_nodes SET " + set + " WHERE session_key='" + key + "'", "UPDATE session_nodes SET entry_valid=1 WHERE session_key='" + key + "'"}
	}
	const idOf = "(SELECT current_session_id FROM session_nodes WHERE session_key='"
	var sql []string
	for _, part := range [][]string{
		harm(scratch, "spawned_by='agent:main:zzz'"), harm(group, "label='Door', archived_at=5"),
		harm(older, "entry_json=json_set(entry_json,'$.status','running','$.startedAt',1790000000000), status='running'"),
		{"UPDATE session_windows SET status='running' WHERE session_id=" + idOf + older + "')"},
		{"UPDATE session_transcript_index_state SET active_event_count=99 WHERE session_id=" + idOf + main + "')"},
		{"PRAGMA foreign_keys=ON", "DELETE FROM session_windows WHERE session_id=" + idOf + missing + "')"},
		{"PRAGMA foreign_keys=OFF", "INSERT INTO session_transcript_fts_rows(id,session_id,message_id) VALUES(9001,'nobody','m1')"},
		{"UPDATE session_nodes SET entry_valid=-1 WHERE session_key='" + main + "'", "INSERT OR IGNORE INTO session_canonical_validation_pending VALUES('" + main + "')"},
	} {
		sql = append(sql, part...)
	}
	codes := []string{"row-doubted", "lineage-differs", "columns-differ", "index-broken", "index-orphan", "node-no-window", "run-dead"}
	said := map[string][]string{} // what oc reads in the sound state
	sound := goldenState(t, "2026.9.6-migrated")
	for _, key := range []string{main, group, scratch} {
		a := at(t, sound, "sessions", "history", key, "--limit", "200", "--json")
		for _, m := range dig(a.doc(t), "messages").([]any) {
			content, _ := dig(m, "content").([]any)
			for _, part := range content {
				if text, ok := dig(part, "text").(string); ok && len(text) < 200 && text != "" {
					said[key] = append(said[key], text)
				}
			}
		}
		if len(said[key]) < 2 {
			t.Fatalf("%s: oc reads %q: %s", key, said[key], a.errout)
		}
	}
	g := startGateway(t, "2026.9.6", func(state string) {
		from := goldenState(t, "2026.9.6-migrated")
		for _, dir := range []string{"agents", "state"} {
			if err := os.CopyFS(filepath.Join(state, dir), os.DirFS(filepath.Join(from, dir))); err != nil {
				t.Fatal(err)
			}
		}
		if err := fixtures.Alter(fixtures.Database(state, "main"), sql...); err != nil {
			t.Fatal(err)
		}
		found := codesOf(at(t, state, "doctor", "--json", "--agent", "main").doc(t))
		for _, code := range codes {
			if found[code] == 0 {
				t.Fatalf("%s is not found: %v", code, found)
			}
		}
		a := at(t, state, append([]string{"doctor", "--yes", "--agent", "main", "--fix"}, codes...)...)
		left := codesOf(at(t, state, "doctor", "--json", "--agent", "main").doc(t))
		for _, code := range codes {
			if left[code] != 0 {
				t.Fatalf("%s is left: exit %d: %s%s", code, a.exit, a.out, a.errout)
			}
		}
	})
	if g == nil {
		return
	}
	c := g.conn(t, nil)
	call := func(method string, params map[string]any) string {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(500 * time.Millisecond) {
			raw, err := c.Call(t.Context(), method, params)
			if err == nil {
				return string(raw)
			}
			// A gateway that answers may still be starting its parts.
			if !strings.Contains(err.Error(), "UNAVAILABLE") || time.Now().After(end) {
				t.Fatalf("%s: %v", method, err)
			}
		}
	}
	list := call("sessions.list", map[string]any{"agentId": "main", "limit": 1000})
	for _, key := range []string{main, group, scratch, missing} {
		if !strings.Contains(list, `"`+key+`"`) {
			t.Errorf("%s is not listed: %.2000s", key, list)
		}
	}
	for key, texts := range said {
		history := call("chat.history", map[string]any{"sessionKey": key, "limit": 200})
		for _, text := range texts {
			quoted, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(history, string(quoted[1:len(quoted)-1])) {
				t.Errorf("%s: the gateway does not read %q: %.3000s", key, text, history)
			}
		}
	}
}

// A key that is not as OpenClaw writes it is left to OpenClaw: what oc says to do by hand does it, and every session is listed then.
func TestInteropKeyByHand(t *testing.T) {
	state := goldenState(t, "2026.9.6-migrated")
	const key, odd = "agent:main:explicit:scratch-1", "agent:main:Explicit:Scratch-1"
	if err := fixtures.Alter(fixtures.Database(state, "main"), "PRAGMA foreign_keys=OFF", "UPDATE session_windows SET session_key='"+odd+"' WHERE session_key='"+key+"'", "UPDATE session_nodes SET session_key='"+odd+"' WHERE session_key='"+key+"'"); err != nil {
		t.Fatal(err)
	}
	if _, exit, said := peerRun(t, "2026.9.6", t.TempDir(), state, "sessions", "--json"); exit == 0 || !strings.Contains(said, key) {
		t.Errorf("OpenClaw lists: exit %d: %s", exit, said)
	}
	a := at(t, state, "doctor", "--only", "key-not-canonical", "--json")
	if command, _ := dig(a.doc(t), "findings", 0, "command").(string); !strings.Contains(command, "openclaw doctor --fix") {
		t.Fatalf("exit %d: %s", a.exit, a.out)
	}
	if out, exit, said := peerRun(t, "2026.9.6", t.TempDir(), state, "doctor", "--fix", "--non-interactive", "--yes"); exit != 0 {
		t.Fatalf("exit %d: %s%s", exit, out, said)
	}
	if a := at(t, state, "doctor", "--only", "key-not-canonical", "--json"); len(codesOf(a.doc(t))) > 0 {
		t.Errorf("it is left: %s", a.out)
	}
	if out, exit, said := peerRun(t, "2026.9.6", t.TempDir(), state, "sessions", "--json", "--limit", "all"); exit != 0 || !strings.Contains(string(out), `"`+key+`"`) {
		t.Errorf("exit %d: %s%s", exit, out, said)
	}
}
