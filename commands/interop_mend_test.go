//go:build interop

package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oc/fixtures"
)

// What doctor --fix and repair transcript leave is read by the real OpenClaw: the context of every session has every message that was to be in it,
// also those that its own repair of the same file loses, and its own repair finds nothing left to do. After the rows are mended it lists every
// session that it listed before.
func TestInteropMend(t *testing.T) {
	peer := os.Getenv("OC_PEER")
	if peer == "" {
		t.Fatal("OC_PEER names no folder with OpenClaw; run .ci/interop")
	}
	script, err := filepath.Abs("testdata/context.mjs")
	if err != nil {
		t.Fatal(err)
	}
	dist := filepath.Join(peer, "2026.7.35", "node_modules", "openclaw", "dist")
	path := "PATH=" + filepath.Join(peer, "node/node_modules/.bin") + ":" + os.Getenv("PATH")
	message := func(id, parent, body string) string {
		if parent != "null" {
			parent = `"` + parent + `"`
		}
		return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-09-20T10:00:00.000Z","message":%s}`, id, parent, body)
	}
	user := func(id, parent string) string {
		return message(id, parent, fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"said %s"}],"timestamp":1}`, id))
	}
	answer := func(id, parent, block string) string {
		return message(id, parent, `{"role":"assistant","content":[`+block+`],"api":"anthropic-messages","provider":"acme","model":"m","usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2},"stopReason":"stop","timestamp":1}`)
	}
	text := func(id, parent string) string {
		return answer(id, parent, fmt.Sprintf(`{"type":"text","text":"answered %s"}`, id))
	}
	call := `{"type":"toolCall","id":"k1","name":"read","arguments":{}}`
	good := []string{user("a", "null"), text("b", "a"), user("c", "b"), text("d", "c")}
	cases := map[string]struct {
		lines []string
		tail  string
		heard []string // ids of rows whose messages must be in the context
		fix   []string // codes; none: repair transcript
	}{
		"torn":      {good, `{"type":"message","id":"e","par`, []string{"a", "b", "c", "d"}, []string{"torn-tail"}},
		"nul":       {good, strings.Repeat("\x00", 4096), []string{"a", "b", "c", "d"}, []string{"nul-tail"}},
		"orphan":    {[]string{good[0], good[1], user("c", "lost"), good[3]}, "", []string{"a", "b", "c", "d"}, []string{"orphan-parent"}},
		"double":    {[]string{good[0], good[1], good[1], good[2], good[3]}, "", []string{"a", "b", "c", "d"}, []string{"duplicate-same"}},
		"open":      {append(good[:4:4], user("e", "d"), answer("f", "e", call)), "", []string{"a", "b", "c", "d", "e", "f"}, []string{"open-call"}},
		"went on":   {append(good[:4:4], answer("f", "d", call), user("g", "f"), text("h", "g")), "", []string{"a", "b", "c", "d", "f", "g", "h"}, []string{"lost-result"}},
		"nobody":    {[]string{good[0], good[1], message("x", "b", `{"role":null,"content":[]}`), user("c", "x"), good[3]}, "", []string{"a", "b", "c", "d"}, nil},
		"no entry":  {[]string{good[0], "{bad", good[1], "[1]", good[2], good[3]}, "", []string{"a", "b", "c", "d"}, nil},
		"behind":    {[]string{good[0], good[1], "\x00\x00\x00" + good[2], good[3]}, "", []string{"a", "b", "c", "d"}, nil},
		"no header": {append([]string{"{bad"}, good...), "", []string{"a", "b", "c", "d"}, nil},
	}
	state := filepath.Join(t.TempDir(), "state")
	index := fixtures.Store(state, "main")
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		old := time.UnixMilli(fixtures.Now).Add(-time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	var names, rows, files, codes []string
	for name, c := range cases {
		id := fixtures.IDOf("mend " + name)
		file := filepath.Join(filepath.Dir(index), id+".jsonl")
		head := fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":"2026-09-20T10:00:00.000Z","cwd":"/srv"}`, id)
		all := append([]string{head}, c.lines...)
		if name == "no header" {
			all = append([]string{c.lines[0], head}, c.lines[1:]...)
		}
		write(file, strings.Join(all, "\n")+"\n"+c.tail)
		names, files, codes = append(names, name), append(files, file), append(codes, c.fix...)
		rows = append(rows, fmt.Sprintf(`%q:{"sessionId":%q,"updatedAt":%d}`, "agent:main:explicit:"+id, id, int64(fixtures.Now)-3600_000))
	}
	write(index, "{"+strings.Join(rows, ",")+"}")
	env := map[string]string{"HOME": state, "OC_NOW": fmt.Sprint(int64(fixtures.Now)), "OPENCLAW_GATEWAY_PORT": "1"}
	if a := ocRun(t, state, env, append([]string{"--state-dir", state, "doctor", "--yes", "--fix"}, codes...)...); a.exit != ExitFindings {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	for i, name := range names {
		if len(cases[name].fix) > 0 {
			continue
		}
		if a := ocRun(t, state, env, "--state-dir", state, "repair", "transcript", files[i]); a.exit != ExitDone {
			t.Fatalf("%s: exit %d: %s%s", name, a.exit, a.out, a.errout)
		}
	}
	cmd := exec.Command("node", append([]string{script, dist}, files...)...)
	cmd.Env = []string{path, "HOME=" + state, "OPENCLAW_STATE_DIR=" + state}
	cmd.Path = filepath.Join(peer, "node/node_modules/.bin/node")
	var errout bytes.Buffer
	cmd.Stderr = &errout
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v: %s", err, errout.String())
	}
	var said []string
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if strings.HasPrefix(line, `{"messages"`) {
			said = append(said, line)
		}
	}
	want(t, "files read", len(said), len(files))
	for i, name := range names {
		var c struct {
			Messages []json.RawMessage
			Repaired bool
		}
		if err := json.Unmarshal([]byte(said[i]), &c); err != nil {
			t.Fatal(err)
		}
		for _, id := range cases[name].heard {
			mark := map[bool]string{true: `"said ` + id + `"`, false: `"answered ` + id + `"`}[strings.Contains(strings.Join(cases[name].lines, "\n"), `"said `+id+`"`)]
			if id == "f" {
				mark = `"k1"`
			}
			if !strings.Contains(said[i], mark) {
				t.Errorf("%s: OpenClaw does not hear %s any more: %s", name, id, said[i])
			}
		}
		if c.Repaired {
			t.Errorf("%s: OpenClaw's own repair still finds something", name)
		}
	}
}

// After rows are mended the real OpenClaw lists the session id of every session that it listed before.
func TestInteropMendRows(t *testing.T) {
	peer := os.Getenv("OC_PEER")
	if peer == "" {
		t.Fatal("OC_PEER names no folder with OpenClaw; run .ci/interop")
	}
	freeze, err := filepath.Abs("testdata/freeze.cjs")
	if err != nil {
		t.Fatal(err)
	}
	ids := func(state string) map[string]bool {
		t.Helper()
		copied := filepath.Join(t.TempDir(), "state") // OpenClaw writes while it lists
		if err := os.CopyFS(copied, os.DirFS(state)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(peer, "2026.7.35", "node_modules/.bin/openclaw"), "sessions", "--json", "--limit", "all", "--agent", "main")
		cmd.Dir = copied
		cmd.Env = []string{
			"PATH=" + filepath.Join(peer, "node/node_modules/.bin") + ":" + os.Getenv("PATH"), "TZ=UTC", "NO_COLOR=1", "NODE_OPTIONS=--require " + freeze,
			"HOME=" + copied, "OPENCLAW_STATE_DIR=" + copied, fmt.Sprintf("OC_NOW=%d", int64(fixtures.Now)),
		}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("openclaw: %v", err)
		}
		var doc struct{ Sessions []struct{ SessionID string } }
		if err := json.Unmarshal(out, &doc); err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, s := range doc.Sessions {
			found[s.SessionID] = true
		}
		return found
	}
	for code, make := range map[string]func(dir string) error{
		"key-alias":        func(dir string) error { _, err := fixtures.S15(dir, fixtures.Now); return err },
		"unlinked-history": func(dir string) error { _, err := fixtures.S2(dir, fixtures.Now); return err },
		"run-dead": func(dir string) error {
			_, err := fixtures.S14(dir, fixtures.Now, fixtures.Process{PID: 1}, fixtures.Now-24*3600_000)
			return err
		},
	} {
		t.Run(code, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "state")
			if err := make(state); err != nil {
				t.Fatal(err)
			}
			before := ids(state)
			env := map[string]string{"HOME": state, "OC_NOW": fmt.Sprint(int64(fixtures.Now)), "OPENCLAW_GATEWAY_PORT": "1"}
			a := ocRun(t, state, env, "--state-dir", state, "doctor", "--fix", code, "--yes")
			if !strings.Contains(a.out, "made. oc undo") {
				t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
			}
			after := ids(state)
			for id := range before {
				if !after[id] {
					t.Errorf("the session %s is not listed any more", id)
				}
			}
			if code == "unlinked-history" && len(after) <= len(before) {
				t.Errorf("%d sessions, before %d", len(after), len(before))
			}
		})
	}
}
