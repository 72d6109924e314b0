//go:build interop

package commands

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
