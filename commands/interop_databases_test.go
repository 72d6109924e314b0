//go:build interop

package commands

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// peerRun runs a release of OpenClaw on a state.
func peerRun(t *testing.T, release, home, state string, args ...string) (out []byte, exit int, errout string) {
	t.Helper()
	peer := os.Getenv("OC_PEER")
	if peer == "" {
		t.Fatal("OC_PEER names no folder with OpenClaw; run .ci/interop")
	}
	cmd := exec.Command(filepath.Join(peer, release, "node_modules/.bin/openclaw"), args...)
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + filepath.Join(peer, "node/node_modules/.bin") + ":" + os.Getenv("PATH"), "TZ=UTC", "NO_COLOR=1", "HOME=" + home, "OPENCLAW_STATE_DIR=" + state, "TMPDIR=" + home}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, ok := err.(*exec.ExitError); err != nil && !ok {
		t.Fatal(err)
	}
	return stdout.Bytes(), cmd.ProcessState.ExitCode(), stderr.String()
}

// What oc takes out of a database is what a release of the file era lists, with the same figures.
func TestInteropExportedFilesAreListed(t *testing.T) {
	for name, root := range map[string]string{"2026.9.6": goldenState(t, "2026.9.6-migrated"), "2026.8.2": goldenState(t, "2026.8.2-migrated")} {
		to := filepath.Join(t.TempDir(), "out")
		if a := at(t, root, "db", "export", "main", "--to", to); a.exit != ExitDone {
			t.Fatal(a.errout)
		}
		home := t.TempDir()
		raw, exit, errout := peerRun(t, "2026.7.35", home, filepath.Join(home, "state"), "sessions", "--json", "--limit", "all", "--store", filepath.Join(to, "sessions.json"))
		var theirs struct{ Sessions []map[string]any }
		if err := json.Unmarshal(raw, &theirs); err != nil || exit != 0 {
			t.Fatalf("%s: exit %d %v: %s", name, exit, err, errout)
		}
		var got, want []string
		for _, s := range theirs.Sessions {
			got = append(got, s["key"].(string)+" "+s["sessionId"].(string))
		}
		for key, s := range listedRows(t, root) {
			want = append(want, key+" "+s["sessionId"].(string))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%q\n%q", name, got, want)
		}
	}
}

// What oc foresees of an import is what the import of 2026.9.6 then does: with the recorded state, and with something of
// each kind in its way.
func TestInteropMigrateCheck(t *testing.T) {
	for name, root := range map[string]string{"recorded": goldenState(t, "2026.9.6-unmigrated"), "obstructed": obstructed(t)} {
		ours := preflight(t, root)
		raw, exit, errout := peerRun(t, "2026.9.6", t.TempDir(), root, "doctor", "--session-sqlite", "import", "--session-sqlite-all-agents", "--yes", "--json")
		var theirs struct {
			Targets []struct {
				AgentID                                   string
				ImportedEntries, ImportedTranscriptEvents int
				Issues                                    []struct{ Code, SessionKey, Message string }
			}
		}
		if err := json.Unmarshal(raw, &theirs); err != nil || exit != 0 {
			t.Fatalf("%s: exit %d %v: %s", name, exit, err, errout)
		}
		for i, x := range theirs.Targets {
			a := ours.Agents[i]
			if a.AgentID != x.AgentID || a.Taken != x.ImportedEntries || a.Events != x.ImportedTranscriptEvents {
				t.Errorf("%s: foreseen %+v, done %+v", name, a, x)
			}
			var got, want []string
			for _, o := range ours.Obstacles {
				if slices.Contains([]string{"entry_invalid", "transcript_missing", "transcript_malformed"}, o.Code) && bytes.Contains([]byte(o.Path), []byte("/"+x.AgentID+"/sessions")) {
					got = append(got, o.Code+" "+o.SessionKey)
				}
			}
			for _, issue := range x.Issues {
				if issue.SessionKey != "" && issue.Code != "active_sqlite_transcript_jsonl" {
					want = append(want, issue.Code+" "+issue.SessionKey)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s %s: foreseen\n%q, said\n%q", name, x.AgentID, got, want)
			}
			// What is linked stays where it is.
			for _, o := range ours.Obstacles {
				if _, err := os.Lstat(o.Path); (o.Code == "linked_source" || o.Code == "hardlinked_source") && err != nil {
					t.Errorf("%s: %s was to stay: %v", name, o.Path, err)
				}
			}
		}
	}
}
