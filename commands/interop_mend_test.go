//go:build interop

package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

		"header lost": {good, "", []string{"a", "b", "c", "d"}, []string{"no-header"}},
		"circle":      {[]string{user("a", "c"), good[1], good[2], good[3]}, "", []string{"a", "b", "c", "d"}, []string{"cycle"}},
		"kept from a lost row": {[]string{
			good[0], good[1], good[3],
			`{"type":"compaction","id":"k","parentId":"d","timestamp":"2026-09-20T10:00:00.000Z","summary":"s","firstKeptEntryId":"c","tokensBefore":9}`, user("e", "k"),
		}, "", []string{"d", "e"}, []string{"first-kept-unknown"}},
		"image": {[]string{
			good[0], good[1],
			message("c", "b", `{"role":"user","content":[{"type":"text","text":"said c"},{"type":"image","mimeType":"image/png","data":"????"}],"timestamp":1}`), good[3],
		}, "", []string{"a", "b", "c", "d"}, []string{"bad-image"}},
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
		switch name {
		case "no header":
			all = append([]string{c.lines[0], head}, c.lines[1:]...)
		case "header lost":
			all = c.lines
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

// hears is what the real OpenClaw hears in the sessions of a store: what was said, by session id.
func hears(t *testing.T, peer, store string) map[string][]string {
	t.Helper()
	script, err := filepath.Abs("testdata/stored.mjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(peer, "node/node_modules/.bin/node"), script, filepath.Join(peer, "2026.7.35", "node_modules", "openclaw", "dist"), store, "main")
	home := t.TempDir()
	cmd.Env = []string{"PATH=" + filepath.Join(peer, "node/node_modules/.bin") + ":" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "OPENCLAW_STATE_DIR=" + filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(store))))}
	var errout bytes.Buffer
	cmd.Stderr = &errout
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v: %s", err, errout.String())
	}
	all := map[string][]string{}
	for _, line := range strings.Split(string(out), "\n") {
		if !strings.HasPrefix(line, `{"key"`) {
			continue
		}
		var row struct {
			ID       string
			Messages []struct{ Content json.RawMessage }
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		said := all[row.ID]
		for _, m := range row.Messages {
			said = append(said, string(m.Content))
		}
		all[row.ID] = said
	}
	return all
}

// namedBy are the session ids that the real OpenClaw lists. It gets a copy, because it writes while it lists.
func namedBy(t *testing.T, peer, state string) map[string]bool {
	t.Helper()
	freeze, err := filepath.Abs("testdata/freeze.cjs")
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "state")
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
		t.Fatalf("openclaw: %v: %s", err, out)
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

// keeps holds that OpenClaw hears all that it heard.
func keeps(t *testing.T, before, after map[string][]string) {
	t.Helper()
	for id, said := range before {
		for _, text := range said {
			if !slices.Contains(after[id], text) {
				t.Errorf("OpenClaw does not hear in %s any more: %s", id, text)
			}
		}
	}
}

// After rows are mended the real OpenClaw lists the session id of every session that it listed before, and hears every message that it heard.
func TestInteropMendRows(t *testing.T) {
	peer := os.Getenv("OC_PEER")
	if peer == "" {
		t.Fatal("OC_PEER names no folder with OpenClaw; run .ci/interop")
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
			index := fixtures.Store(state, "main")
			before, said := namedBy(t, peer, state), hears(t, peer, index)
			env := map[string]string{"HOME": state, "OC_NOW": fmt.Sprint(int64(fixtures.Now)), "OPENCLAW_GATEWAY_PORT": "1"}
			a := ocRun(t, state, env, "--state-dir", state, "doctor", "--fix", code, "--yes")
			if !strings.Contains(a.out, "made. oc undo") {
				t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
			}
			after := namedBy(t, peer, state)
			for id := range before {
				if !after[id] {
					t.Errorf("the session %s is not listed any more", id)
				}
			}
			if code == "unlinked-history" && len(after) <= len(before) {
				t.Errorf("%d sessions, before %d", len(after), len(before))
			}
			keeps(t, said, hears(t, peer, index))
		})
	}
}

// A state that is harmed and mended is to the real OpenClaw what it was before the harm: it lists every session, and hears every message.
func TestInteropMendHarm(t *testing.T) {
	peer := os.Getenv("OC_PEER")
	if peer == "" {
		t.Fatal("OC_PEER names no folder with OpenClaw; run .ci/interop")
	}
	base := t.TempDir()
	ids := []string{fixtures.IDOf("one"), fixtures.IDOf("two"), fixtures.IDOf("three")}
	rewrite := func(t *testing.T, path string, change func(string) string) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(change(string(text))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	moved := func(text, state string) string { return strings.ReplaceAll(text, state, "/old/home/.openclaw") }
	harms := map[string]struct {
		harm func(t *testing.T, state, index string)
		mend [][]string // commands
	}{
		"paths, by their code": {
			func(t *testing.T, state, index string) {
				rewrite(t, index, func(s string) string { return moved(s, state) })
			}, [][]string{{"doctor", "--fix", "path-moved", "--yes"}},
		},
		"paths": {
			func(t *testing.T, state, index string) {
				rewrite(t, index, func(s string) string { return moved(s, state) })
			}, [][]string{{"repair", "paths", "--from", "/old/home/.openclaw", "--to", "STATE"}},
		},
		"misplaced": {
			func(t *testing.T, _, index string) {
				rewrite(t, index, func(s string) string { return strings.ReplaceAll(s, ids[0]+".jsonl", fixtures.IDOf("nobody")+".jsonl") })
			}, [][]string{{"doctor", "--fix", "transcript-misplaced"}},
		},
		"cut index": {
			func(t *testing.T, _, index string) {
				rewrite(t, index, func(s string) string {
					if err := os.WriteFile(index+".4711.0a1b2c3d-0000-4000-8000-000000000001.tmp", []byte(s), 0o600); err != nil {
						t.Fatal(err)
					}
					return s[:len(s)/2]
				})
			}, [][]string{{"repair", "index"}},
		},
		"no index": {
			func(t *testing.T, _, index string) {
				if err := os.Rename(index, index+".bak.1789990000000"); err != nil {
					t.Fatal(err)
				}
			}, [][]string{{"repair", "index"}},
		},
		"configuration, modes, temporary files, locks": {
			func(t *testing.T, state, index string) {
				text := "// mine\n{ session: { parentForkMaxTokens: 9, maintenance: { rotateBytes: '1mb', maxEntries: 400 } } }\n"
				for path, text := range map[string]string{
					filepath.Join(state, "openclaw.json"): text, index + ".4711.0a1b2c3d-0000-4000-8000-000000000001.tmp": "{",
					filepath.Join(filepath.Dir(index), ids[0]+".jsonl.lock"): `{"pid":4194399,"createdAt":"2026-09-01T00:00:00.000Z"}`,
				} {
					if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.Chmod(state, 0o755); err != nil {
					t.Fatal(err)
				}
			}, [][]string{{"doctor", "--fix"}},
		},
		"transcripts": {
			func(t *testing.T, _, index string) {
				dir := filepath.Dir(index)
				rewrite(t, filepath.Join(dir, ids[0]+".jsonl"), func(s string) string { return s + strings.Repeat("\x00", 4096) })
				rewrite(t, filepath.Join(dir, ids[1]+".jsonl"), func(s string) string { return s[strings.IndexByte(s, '\n')+1:] })
				rewrite(t, filepath.Join(dir, ids[2]+".jsonl"), func(s string) string { return s + `{"type":"message","id":"x","par` })
			}, [][]string{{"doctor", "--fix"}, {"doctor", "--fix", "no-header", "--yes"}},
		},
		"transcript, one by its key": {
			func(t *testing.T, _, index string) {
				rewrite(t, filepath.Join(filepath.Dir(index), ids[0]+".jsonl"), func(s string) string {
					return "\ufeff" + strings.Replace(s, "\n", "\n{bad\n\x00\x00", 1)
				})
			}, [][]string{{"repair", "transcript", "agent:main:explicit:" + ids[0]}},
		},
	}
	for name, c := range harms {
		t.Run(name, func(t *testing.T) {
			state := filepath.Join(base, strings.NewReplacer(" ", "-", ",", "").Replace(name))
			index := fixtures.Store(state, "main")
			dir := filepath.Dir(index)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			var rows []string
			for i, id := range ids {
				path := filepath.Join(dir, id+".jsonl")
				talk := fixtures.Talk(id, fixtures.Now-fixtures.Day).User("Question " + id).Assistant("Answer " + id).User(fmt.Sprint("And ", i)).String()
				if err := os.WriteFile(path, []byte(talk), 0o600); err != nil {
					t.Fatal(err)
				}
				rows = append(rows, fmt.Sprintf(`  "agent:main:explicit:%s": {"sessionId": %q, "updatedAt": %d, "sessionFile": %q}`, id, id, int64(fixtures.Now)-3600_000, path))
			}
			if err := os.WriteFile(index, []byte("{\n"+strings.Join(rows, ",\n")+"\n}"), 0o600); err != nil {
				t.Fatal(err)
			}
			before, said := namedBy(t, peer, state), hears(t, peer, index)
			if want(t, "sessions", len(before), len(ids)); len(said[ids[1]]) < 3 {
				t.Fatalf("OpenClaw hears too little: %v", said)
			}
			c.harm(t, state, index)
			old := time.UnixMilli(fixtures.Now).Add(-time.Hour)
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range files {
				if err := os.Chtimes(path, old, old); err != nil {
					t.Fatal(err)
				}
			}
			env := map[string]string{"HOME": state, "OC_NOW": fmt.Sprint(int64(fixtures.Now)), "OPENCLAW_GATEWAY_PORT": "1"}
			for _, args := range c.mend {
				for i, arg := range args {
					if arg == "STATE" {
						args[i] = state
					}
				}
				if a := ocRun(t, state, env, append([]string{"--state-dir", state}, args...)...); !strings.Contains(a.out, "made. oc undo") {
					t.Fatalf("%v: exit %d: %s%s", args, a.exit, a.out, a.errout)
				}
			}
			after := namedBy(t, peer, state)
			for id := range before {
				if !after[id] {
					t.Errorf("the session %s is not listed any more", id)
				}
			}
			keeps(t, said, hears(t, peer, index))
		})
	}
}
