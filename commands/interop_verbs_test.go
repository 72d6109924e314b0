//go:build interop

package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"oc/fixtures"
)

// What a verb leaves is read by the real OpenClaw: the sessions that were not named are listed as before, those that were as oc lists
// them.
func TestInteropVerbs(t *testing.T) {
	peer := os.Getenv("OC_PEER")
	if peer == "" {
		t.Fatal("OC_PEER names no folder with OpenClaw; run .ci/interop")
	}
	freeze, err := filepath.Abs("testdata/freeze.cjs")
	if err != nil {
		t.Fatal(err)
	}
	list := func(t *testing.T, state string) map[string]any {
		t.Helper()
		copied := filepath.Join(t.TempDir(), "state") // OpenClaw writes while it lists
		if err := os.CopyFS(copied, os.DirFS(state)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(peer, "2026.7.35", "node_modules/.bin/openclaw"), "sessions", "--json", "--limit", "all", "--agent", "work")
		cmd.Dir = copied
		cmd.Env = []string{
			"PATH=" + filepath.Join(peer, "node/node_modules/.bin") + ":" + os.Getenv("PATH"), "TZ=UTC", "NO_COLOR=1", "NODE_OPTIONS=--require " + freeze,
			"HOME=" + copied, "OPENCLAW_STATE_DIR=" + copied, fmt.Sprintf("OC_NOW=%d", int64(fixtures.Now)),
		}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("openclaw: %v", err)
		}
		var doc struct{ Sessions []map[string]any }
		if err := json.Unmarshal(out, &doc); err != nil {
			t.Fatal(err)
		}
		rows := map[string]any{}
		for _, s := range doc.Sessions {
			rows[s["key"].(string)] = s
		}
		return rows
	}
	for _, c := range []struct {
		args  []string
		named []string
		rows  int // more or fewer
	}{
		{[]string{"delete", direct, hook, "--yes"}, []string{direct, hook}, -2},
		{[]string{"archive", ops}, []string{ops}, 0},
		{[]string{"reset", ops}, []string{ops}, 0},
		{[]string{"reset", nightly, "--cron-run"}, []string{nightly}, 0},
		{[]string{"patch", direct, "--label", "Noor é \u2028", "--pin", "--thinking", "high", "--model", "other/model", "--fast", "auto"}, []string{direct}, 0},
		{[]string{"restore", "60aa8ead-51b4-4fcb-a52f-af96c89778b6"}, []string{"agent:work:explicit:60aa8ead-51b4-4fcb-a52f-af96c89778b6"}, 1},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			state, _, env := lived(t)
			before := list(t, state)
			if a := ocRun(t, state, env, append([]string{"--state-dir", state, "--agent", "work", "sessions"}, c.args...)...); a.exit != ExitDone {
				t.Fatalf("exit %d: %s", a.exit, a.errout)
			}
			after := list(t, state)
			want(t, "rows", len(after), len(before)+c.rows)
			a := ocRun(t, state, env, "--state-dir", state, "sessions", "--json", "--limit", "all", "--agent", "work")
			ours := map[string]any{}
			for _, s := range a.doc(t)["sessions"].([]any) {
				ours[dig(s, "key").(string)] = s
			}
			for key, row := range before {
				if slices.Contains(c.named, key) {
					continue
				}
				if d := differs(row, after[key], key); d != "" {
					t.Error(d)
				}
			}
			for key, row := range after {
				if d := differs(row, ours[key], key); d != "" {
					t.Error(d)
				}
			}
		})
	}
}
