package doctor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/fixtures"
	"oc/store/lock"
)

// recorded is a state that a real gateway left, moved to dir: the paths in it
// are those of its new place. Its directories and files have OpenClaw's modes.
func recorded(t *testing.T, name, was string) (state string, at time.Time) {
	t.Helper()
	state = filepath.Join(t.TempDir(), "state")
	f, err := os.Open("../../fixtures/golden/" + name + ".tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]time.Time{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(state, filepath.Clean(h.Name))
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(path) != ".sqlite" {
			data = bytes.ReplaceAll(data, []byte(was), []byte(state))
		}
		put(t, path, string(data))
		times[path] = h.ModTime
		if h.ModTime.After(at) {
			at = h.ModTime
		}
	}
	if name == "gateway/state-2026.9.6" {
		real := resolve(filepath.Join(state, "agents/main/agent/openclaw-agent.sqlite"))
		if err := fixtures.Alter(filepath.Join(state, "state/openclaw.sqlite"), "UPDATE session_watch_cursors SET watcher_store_path = '"+real+"'"); err != nil {
			t.Fatal(err)
		}
	}
	for path, at := range times {
		if err := os.Chtimes(path, at, at); err != nil && !errors.Is(err, os.ErrNotExist) { // the log of the altered database is gone
			t.Fatal(err)
		}
	}
	return state, at
}

// The states that real gateways and imports left are healthy: nothing worse
// than notes is found, except for the two rows of one of them whose transcripts
// were taken away.
func TestRecordedStatesAreHealthy(t *testing.T) {
	const gateway, golden = "/home/demouser/xxxxx/state", "/home/demouser/xxxxxxxxxxx/.openclaw"
	for name, c := range map[string]struct {
		was  string
		want map[Code]int
	}{
		"gateway/state-2026.7.35":      {gateway, map[Code]int{}},
		"gateway/state-2026.9.6":       {gateway, map[Code]int{}},
		"sqlite/2026.8.2-migrated":     {golden, map[Code]int{}},
		"sqlite/2026.9.6-migrated":     {golden, map[Code]int{}},
		"sqlite/2026.9.6-cleanup":      {golden, map[Code]int{}},
		"sqlite/2026.9.6-both-present": {golden, map[Code]int{}},
		"sqlite/2026.9.6-unmigrated":   {golden, map[Code]int{TranscriptMissing: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			state, at := recorded(t, name, c.was)
			r := examine(t, state, func(o *Options) { o.Now = at.Add(10 * time.Minute) })
			if r.Size.Rows == 0 || len(r.Stores) == 0 {
				t.Fatalf("nothing was looked at: %+v", r.Size)
			}
			if d := cmp.Diff(c.want, worse(r)); d != "" {
				for _, f := range r.Findings {
					if f.Severity != Info {
						t.Logf("%s %s %s: %v", f.Code, f.File, f.Key, f.Evidence)
					}
				}
				t.Error(d)
			}
			if r.Count(string(Error)) > 0 || r.Healthy() != (len(c.want) == 0) {
				t.Errorf("healthy %t", r.Healthy())
			}
		})
	}
}

// The made states are healthy as far as they are meant to be.
func TestMadeStatesAreHealthy(t *testing.T) {
	dir := t.TempDir()
	e, err := fixtures.S16(dir, fixtures.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{e.Files, e.SQLite, e.Imported, e.Unlisted} {
		if got := worse(examine(t, state)); len(got) > 0 {
			t.Errorf("%s: %v", filepath.Base(state), got)
		}
	}
	for _, era := range []fixtures.Era{fixtures.FileEra, fixtures.SQLiteEra} {
		state := filepath.Join(dir, "bench", era.String())
		if err := (fixtures.Bench{Rows: 60, Era: era, Talks: true}).Write(state); err != nil {
			t.Fatal(err)
		}
		if got := worse(examine(t, state)); len(got) > 0 {
			t.Errorf("%s: %v", state, got)
		}
	}
}

// One sound session gives nothing at all, not even a note, of any check.
func TestNothingToNote(t *testing.T) {
	state, _ := sick(t, lines(six()...))
	for _, dir := range []string{state, filepath.Join(state, "agents"), filepath.Join(state, "agents", "main"), filepath.Join(state, "agents", "main", "sessions")} {
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	aged(t, state)
	if r := examine(t, state); len(r.Findings) > 0 || r.Size.Transcripts != 1 {
		t.Errorf("%+v", r.Findings)
	}
}

// Nor does one in a database, of either schema that oc changes.
func TestNothingToNoteInADatabase(t *testing.T) {
	for _, schema := range []int{19, 23} {
		state := filepath.Join(t.TempDir(), "state")
		talk := fixtures.Talk(fixtures.IDOf(tableKey), fixtures.Now-2*fixtures.Day).Setup().User("Is the gate closed?").Assistant("Yes.")
		s := fixtures.State{Agents: []fixtures.Agent{{
			ID: "main", Era: fixtures.SQLiteEra, Schema: schema, Sessions: []fixtures.Session{{Key: tableKey, Updated: talk.Last(), Talk: talk}},
		}}}
		if err := s.Write(state); err != nil {
			t.Fatal(err)
		}
		if r := examine(t, state); len(r.Findings) > 0 || r.Size.Rows != 1 {
			t.Errorf("schema %d: %+v", schema, r.Findings)
		}
	}
}

// The states of the scenarios, once what is found is taken out of them: nothing of it is found any more, and nothing else instead.
func TestScenariosMadeHealthy(t *testing.T) {
	self := lock.Local().Process(os.Getpid())
	live := fixtures.Process{PID: self.PID, Start: int64(self.Start)}
	for name, c := range map[string]struct {
		make func(dir string) error
		want []Code // some of what is found before
		rows int    // that are left, at least
	}{
		"S2": {func(dir string) error { _, err := fixtures.S2(dir, fixtures.Now); return err }, []Code{UnlinkedHistory, UnlinkedEmpty}, 1},
		"S3": {func(dir string) error { _, err := fixtures.S3(dir, fixtures.Now, live); return err }, []Code{LockDead, LockRecycled, LockAlone, LockUnreadable}, 0},
		"S14": {func(dir string) error {
			_, err := fixtures.S14(dir, fixtures.Now, live, fixtures.Now-fixtures.Day)
			return err
		}, []Code{RunDead, RunContradictory}, 1},
		"S15": {func(dir string) error { _, err := fixtures.S15(dir, fixtures.Now); return err }, []Code{KeyAlias}, 1},
		"S20": {func(dir string) error { _, err := fixtures.S20(dir, fixtures.Now); return err }, []Code{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "state")
			if err := c.make(state); err != nil {
				t.Fatal(err)
			}
			sick := examined(t, state)
			for _, code := range c.want {
				if codes(sick)[code] == 0 {
					t.Errorf("%s is not found: %v", code, codes(sick))
				}
			}
			if len(sick.Findings) == 0 {
				t.Fatal("nothing is found")
			}
			index := fixtures.Store(state, "main")
			rows := rowsOf(t, index)
			r := sick
			for range 3 { // what a row named is found when it is gone
				for _, f := range r.Findings {
					switch {
					case f.Key != "" || f.Code == KeyOdd: // the empty key too is one
						delete(rows, f.Key)
					case f.Code == ModeOpen:
						if err := os.Chmod(f.File, 0o700); err != nil {
							t.Fatal(err)
						}
					case f.File != "" && f.File != index && filepath.Dir(f.File) == filepath.Dir(index):
						if err := os.Remove(f.File); err != nil && !os.IsNotExist(err) {
							t.Fatal(err)
						}
					}
				}
				var out []string
				for _, key := range slices.Sorted(maps.Keys(rows)) {
					name, err := json.Marshal(key)
					if err != nil {
						t.Fatal(err)
					}
					out = append(out, string(name)+": "+rows[key])
				}
				put(t, index, "{"+strings.Join(out, ", ")+"}")
				if r = examined(t, state); len(r.Findings) == 0 {
					break
				}
			}
			left := codes(r)
			delete(left, Archives) // young ones stay for a while, and that is told
			if len(left) > 0 || len(rows) < c.rows {
				t.Errorf("%d rows are left, and %v: %+v", len(rows), left, r.Findings)
			}
		})
	}
}
