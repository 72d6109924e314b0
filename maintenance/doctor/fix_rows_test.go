package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/config"
	"oc/fixtures"
	"oc/store/jsonfile"
	"oc/store/lock"
	"oc/store/row"
)

// rowsOf are the rows of an index by key, raw.
func rowsOf(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := jsonfile.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range f.Entries {
		out[e.Key] = string(e.Val)
	}
	return out
}

// doneTo mends a state for good and gives its rows afterwards.
func doneTo(t *testing.T, state string, codes ...Code) map[string]string {
	t.Helper()
	o, w := ward(t, state, nil)
	all, err := Fix(t.Context(), o, codes, w, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.Err != nil {
			t.Error(m.Err)
		}
	}
	return rowsOf(t, fixtures.Store(state, "main"))
}

// S5, S6: rows get the path of their own transcript, and what lies outside is left.
func TestFixPaths(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	index := fixtures.Store(state, "main")
	dir := filepath.Dir(index)
	a, b := "0a1b2c3d-0000-4000-8000-00000000000a", "0a1b2c3d-0000-4000-8000-00000000000b"
	put(t, index, fmt.Sprintf(`{"agent:main:a":{"sessionId":%q,"sessionFile":"/old/home/u1/.clawdbot/agents/main/sessions/%s.jsonl","updatedAt":1789990000000,"x":1e400},`+
		`"agent:main:b":{"sessionId":%q,"sessionFile":"0a1b2c3d-0000-4000-8000-0000000000ff.jsonl","updatedAt":1789990000000},"agent:main:c":{"sessionId":"c","sessionFile":"/etc/hosts","updatedAt":1789990000000}}`, a, a, b))
	for _, id := range []string{a, b} {
		put(t, filepath.Join(dir, id+".jsonl"), strings.Replace(lines(six()...), `"id":"t1"`, `"id":"`+id+`"`, 1))
	}
	heal(t, state, PathMoved, TranscriptMisplaced)
	suffer(t, state, PathMoved)
	suffer(t, state, TranscriptMisplaced)
	rows := doneTo(t, state, PathMoved, TranscriptMisplaced)
	if want := fmt.Sprintf(`{"sessionId":%q,"sessionFile":"%s.jsonl","updatedAt":1789990000000,"x":1e400}`, a, a); rows["agent:main:a"] != want {
		t.Errorf("%s, want %s", rows["agent:main:a"], want)
	}
	if !strings.Contains(rows["agent:main:b"], filepath.Join(dir, b+".jsonl")) || !strings.Contains(rows["agent:main:c"], "/etc/hosts") {
		t.Errorf("%v", rows)
	}
}

// S15: what OpenClaw takes for one key becomes one row; both conversations keep a row, and no field is lost.
func TestFixAliases(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	l, err := fixtures.S15(state, fixtures.Now)
	if err != nil {
		t.Fatal(err)
	}
	aged(t, state)
	before := rowsOf(t, fixtures.Store(state, "main"))
	heal(t, state, KeyAlias)
	suffer(t, state, KeyAlias)
	after := doneTo(t, state, KeyAlias)
	key := row.Canonical(l.Peers[0])
	var old row.Entry
	if old, err = row.New(l.Peers[1], []byte(before[l.Peers[1]])); err != nil {
		t.Fatal(err)
	}
	other := "agent:main:explicit:" + old.ID()
	if after[key] != before[l.Peers[0]] || after[other] != before[l.Peers[1]] {
		t.Errorf("%s\n%s", after[key], after[other])
	}
	for k, v := range before {
		if k != l.Peers[0] && k != l.Peers[1] && after[k] != v {
			t.Errorf("%s has changed", k)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d rows, before %d", len(after), len(before))
	}
}

// S14: what is dead is written down as over; what lives, or may, stays.
func TestFixRuns(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	m := lock.Local()
	self := m.Process(os.Getpid())
	l, err := fixtures.S14(state, fixtures.Now, fixtures.Process{PID: self.PID, Start: int64(self.Start)}, fixtures.Now-int64(24*time.Hour/time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	heal(t, state, RunDead, RunContradictory)
	suffer(t, state, RunDead, RunContradictory)
	before := rowsOf(t, fixtures.Store(state, "main"))
	after := doneTo(t, state, RunDead, RunContradictory)
	for _, key := range []string{l.Ended, l.Archived, l.Silent} {
		if strings.Contains(after[key], `"running"`) {
			t.Errorf("%s still runs: %s", key, after[key])
		}
	}
	for _, key := range []string{l.Live, l.Quiet, l.Recovered} {
		if after[key] != before[key] {
			t.Errorf("%s has changed: %s", key, after[key])
		}
	}
	if !strings.Contains(after[l.Ended], `"done"`) || !strings.Contains(after[l.Silent], `"failed"`) {
		t.Errorf("%s\n%s", after[l.Ended], after[l.Silent])
	}
	back(t, state)
	if got := rowsOf(t, fixtures.Store(state, "main")); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Error("the undo has not brought all back")
	}
}

// S2: history gets a row by its code alone.
func TestFixHistory(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	u, err := fixtures.S2(state, fixtures.Now)
	if err != nil {
		t.Fatal(err)
	}
	heal(t, state, UnlinkedHistory)
	suffer(t, state, UnlinkedHistory)
	for _, code := range SafeCodes() {
		if code == UnlinkedHistory {
			t.Error("history is not left alone")
		}
	}
	rows := doneTo(t, state, UnlinkedHistory)
	key := "agent:main:explicit:" + strings.TrimSuffix(u.History, ".jsonl")
	if !strings.Contains(rows[key], "history until") || len(rows) != 3 {
		t.Errorf("%v", rows)
	}
}

// Modes, temporary files and retired keys of the configuration.
func TestFixFiles(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	index := fixtures.Store(state, "main")
	put(t, index, `{}`)
	put(t, index+".4711.0a1b2c3d-0000-4000-8000-000000000001.tmp", `{"agent:main:main":`)
	settings := "// mine\n{\n  session: {\n    // why\n    maintenance: { rotateBytes: \"10mb\", maxEntries: 400 },\n    parentForkMaxTokens: 1000, // old\n  },\n}\n"
	put(t, filepath.Join(state, "openclaw.json"), settings)
	for path, mode := range map[string]os.FileMode{state: 0o755, filepath.Join(state, "openclaw.json"): 0o644} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	heal(t, state, StaleTemp, ModeOpen, ConfigRetiredKey)
	suffer(t, state, ConfigRetiredKey)
	suffer(t, state, ModeOpen)
	suffer(t, state, StaleTemp)
	doneTo(t, state, StaleTemp, ModeOpen, ConfigRetiredKey)
	got, err := os.ReadFile(filepath.Join(state, "openclaw.json"))
	want := "// mine\n{\n  session: {\n    // why\n    maintenance: {  maxEntries: 400 },\n     // old\n  },\n}\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	info, err := os.Stat(filepath.Join(state, "openclaw.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", err, info.Mode())
	}
	if c, err := config.Load(config.Options{StateDir: state, Cwd: t.TempDir(), Home: t.TempDir()}); err != nil || c.Broken || len(c.Warnings) > 0 {
		t.Errorf("%v %+v", err, c.Warnings)
	}
}

// An index behind a link that leads out of the state is looked at, and no row of it is changed.
func TestFixRowsOutside(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	m := lock.Local()
	self := m.Process(os.Getpid())
	if _, err := fixtures.S14(state, fixtures.Now, fixtures.Process{PID: self.PID, Start: int64(self.Start)}, fixtures.Now-int64(24*time.Hour/time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	index := fixtures.Store(state, "main")
	put(t, filepath.Join(filepath.Dir(index), "0a1b2c3d-0000-4000-8000-000000000001.jsonl"), lines(six()...))
	real := filepath.Join(t.TempDir(), "sessions.json")
	text, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	put(t, real, string(text))
	if err := os.Remove(index); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, index); err != nil {
		t.Fatal(err)
	}
	aged(t, state)
	before := shown(t, state)
	codes := []Code{RunDead, RunContradictory, UnlinkedHistory}
	found := codesOf(examined(t, state), codes)
	for _, code := range codes {
		if found[code] == 0 {
			t.Errorf("%s is not found", code)
		}
	}
	for _, dry := range []bool{true, false} {
		o, w := ward(t, state, nil)
		all, err := Fix(t.Context(), o, codes, w, dry)
		if err != nil || len(all) != 1 || all[0].Err != nil || len(all[0].Findings) > 0 || len(all[0].Left) == 0 {
			t.Fatalf("dry %t: %v %+v", dry, err, all)
		}
		for _, l := range all[0].Left {
			if !strings.Contains(l.Why, "outside of the state") {
				t.Errorf("%s: %s", l.Code, l.Why)
			}
		}
		if now, err := os.ReadFile(real); err != nil || string(now) != string(text) || cmp.Diff(before, shown(t, state)) != "" {
			t.Errorf("dry %t: something was changed: %v", dry, err)
		}
	}
}

// A row whose key goes keeps what the same plan mends of it.
func TestFixAliasOfAMendedRow(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	index := fixtures.Store(state, "main")
	a, b := fixtures.IDOf("a"), fixtures.IDOf("b")
	put(t, index, fmt.Sprintf(`{
  "agent:main:explicit:one": {"sessionId": %q, "updatedAt": 1789996400000},
  "Agent:main:explicit:one": {"sessionId": %q, "updatedAt": 1789996460000, "sessionFile": "gone.jsonl", "status": "running", "startedAt": 1789000000000}
}`, a, b))
	for _, id := range []string{a, b} {
		put(t, filepath.Join(filepath.Dir(index), id+".jsonl"), strings.Replace(lines(six()...), `"id":"t1"`, `"id":"`+id+`"`, 1))
	}
	heal(t, state, KeyAlias, TranscriptMisplaced, RunDead)
	rows := doneTo(t, state, KeyAlias, TranscriptMisplaced, RunDead)
	if r := rows["agent:main:explicit:one"]; len(rows) != 2 || !strings.Contains(r, b+".jsonl") || !strings.Contains(r, `"failed"`) || !strings.Contains(rows["agent:main:explicit:"+a], a) {
		t.Errorf("%v", rows)
	}
}
