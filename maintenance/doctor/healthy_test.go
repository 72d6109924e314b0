package doctor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/fixtures"
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
