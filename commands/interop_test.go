//go:build interop

package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"oc/fixtures"
)

// The real OpenClaw is the judge: on the same state, all that it lists must be in what oc lists. OC_PEER is a folder in which npm has
// put the releases (see .ci/interop); OpenClaw gets a copy of the state, because it writes while it lists.
func TestInteropList(t *testing.T) {
	peer := os.Getenv("OC_PEER")
	if peer == "" {
		t.Fatal("OC_PEER names no folder with OpenClaw; run .ci/interop")
	}
	freeze, err := filepath.Abs("testdata/freeze.cjs")
	if err != nil {
		t.Fatal(err)
	}
	const now = 1790000000000
	states := map[string]func(dir string) error{
		"S15":  func(dir string) error { _, err := fixtures.S15(dir, now); return err },
		"S20":  func(dir string) error { _, err := fixtures.S20(dir, now); return err },
		"S2":   func(dir string) error { _, err := fixtures.S2(dir, now); return err },
		"S1":   func(dir string) error { _, err := fixtures.S1(dir, now, fixtures.Process{}); return err },
		"demo": func(dir string) error { return os.CopyFS(dir, os.DirFS("../fixtures/demo")) },
	}
	for _, c := range []struct {
		state, release string
		args           []string
	}{
		{"S15", "2026.7.35", nil},
		{"S20", "2026.7.35", nil},
		{"S2", "2026.7.35", nil},
		{"S1", "2026.7.35", nil},
		{"demo", "2026.7.35", []string{"--agent", "work"}},
		{"demo", "2026.9.6", []string{"--agent", "main"}},
	} {
		t.Run(c.state+"-"+c.release, func(t *testing.T) {
			dir := t.TempDir()
			state := filepath.Join(dir, "state")
			if err := states[c.state](state); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"sessions", "--json", "--limit", "all"}, c.args...)
			env := map[string]string{"HOME": dir, "OPENCLAW_STATE_DIR": state, "OC_NOW": fmt.Sprint(now)}
			before := tree(t, state)
			ours := ocRun(t, dir, env, args...)
			if ours.exit != 0 {
				t.Fatalf("oc: exit %d: %s", ours.exit, ours.errout)
			}
			if tree(t, state) != before {
				t.Fatal("oc changed the state")
			}
			cmd := exec.Command(filepath.Join(peer, c.release, "node_modules/.bin/openclaw"), args...)
			cmd.Dir = dir
			cmd.Env = []string{"PATH=" + filepath.Join(peer, "node/node_modules/.bin") + ":" + os.Getenv("PATH"), "TZ=UTC", "NO_COLOR=1", "NODE_OPTIONS=--require " + freeze}
			for k, v := range env {
				cmd.Env = append(cmd.Env, k+"="+v)
			}
			var errout bytes.Buffer
			cmd.Stderr = &errout
			theirs, err := cmd.Output()
			if err != nil {
				t.Fatalf("openclaw %s: %v: %s", c.release, err, errout.String())
			}
			var want, got map[string]any
			if err := json.Unmarshal(theirs, &want); err != nil {
				t.Fatalf("openclaw %s printed no document: %v", c.release, err)
			}
			if err := json.Unmarshal([]byte(ours.out), &got); err != nil {
				t.Fatal(err)
			}
			if len(want["sessions"].([]any)) == 0 {
				t.Fatal("openclaw listed nothing: there is nothing to compare")
			}
			if d := differs(want, got, "$"); d != "" {
				t.Error(d)
			}
		})
	}
}
