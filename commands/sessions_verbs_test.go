package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oc/fixtures"
	"oc/store/lock"
)

// lived is the demo state, nobody at work in it: agent work keeps its sessions in files. The directory of them comes back too.
func lived(t *testing.T) (state, sessions string, env map[string]string) {
	t.Helper()
	state = filepath.Join(t.TempDir(), "state")
	if err := os.CopyFS(state, os.DirFS("../fixtures/demo")); err != nil {
		t.Fatal(err)
	}
	sessions = filepath.Join(state, "agents", "work", "sessions")
	calm(t, sessions)
	return state, sessions, quiet(t, fixtures.Now)
}

// calm makes all files of a directory a day old.
func calm(t *testing.T, dir string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(fixtures.Now).Add(-24 * time.Hour)
	for _, f := range files {
		if err := os.Chtimes(filepath.Join(dir, f.Name()), at, at); err != nil {
			t.Fatal(err)
		}
	}
}

var directoryLine = regexp.MustCompile(`(?m)^\S+ d[rwx-]+ .*\n?`)

// kept is what of a tree an undo must bring back: all but oc's own and the times of directories.
func kept(t *testing.T, state string) []string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(directoryLine.ReplaceAllString(tree(t, state), "")) {
		if line = strings.TrimSuffix(line, "\n"); !strings.HasPrefix(line, ".oc") {
			lines = append(lines, line)
		}
	}
	return lines
}

// rowsOf are the rows of a store as they stand there, by key.
func rowsOf(t *testing.T, sessions string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sessions, "sessions.json"))
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for key, val := range raw {
		rows[key] = string(val)
	}
	return rows
}

const (
	audit  = "agent:work:explicit:invoice-audit" // its transcript is gone
	direct = "agent:work:telegram:direct:5550137"
	hook   = "agent:work:hook:web-shop-order"
	ops    = "agent:work:slack:channel:c04ops"

	nightly = "agent:work:cron:c0ffee12-4b5d-4e6f-8a7b-9c0d1e2f3a4b"
)

// Every verb does what it says to the rows that are named and to no other; a dry run says the same and changes nothing; undo brings
// back the tree byte for byte.
func TestVerbsAreTakenBack(t *testing.T) {
	for _, c := range []struct {
		name    string
		args    []string
		changes []string          // rows
		gone    bool              // they leave the store
		has     map[string]string // what a new row holds
		hasNot  []string          // and what none holds
		files   int               // that are renamed or removed
	}{
		{"delete one", []string{"delete", direct, "--yes"}, []string{direct}, true, nil, nil, 1},
		{"delete two, one by its id, one twice", []string{"delete", audit, "9350a34f-91e4-475f-a882-ddf030bc096c", hook, "--yes"}, []string{audit, hook}, true, nil, nil, 1},
		{"delete the main session", []string{"delete", "agent:work:main", "--main", "--yes"}, []string{"agent:work:main"}, true, nil, nil, 1},
		{"archive", []string{"archive", ops, hook}, []string{ops, hook}, false, map[string]string{ops: `"archivedAt": 1790000000000`, hook: `"archivedAt": 1790000000000`}, []string{"pinnedAt"}, 0},
		{"reset", []string{"reset", ops, "--reason", "new"}, []string{ops}, false, map[string]string{ops: `"compactionCount": 0`}, []string{"inputTokens", "contextTokens"}, 1},
		{"reset a main session", []string{"reset", "agent:work:main", "--main"}, []string{"agent:work:main"}, false, map[string]string{"agent:work:main": `"usageFamilyKey": "agent:work:main"`}, nil, 1},
		{"reset without a transcript", []string{"reset", audit}, []string{audit}, false, map[string]string{audit: `"label": "Invoice audit"`}, nil, 0},
		{"reset a cron run, whose conversation a run still has", []string{"reset", nightly, "--cron-run"}, []string{nightly}, false, map[string]string{nightly: `"lifecycleRevision"`}, []string{"inputTokens", "usageFamilyKey"}, 0},
		{"patch", []string{"patch", direct, "--label", "Noor", "--pin", "--thinking", "high"}, []string{direct}, false, map[string]string{direct: `"thinkingLevel": "high"`}, nil, 0},
		{"patch a model", []string{"patch", ops, "--model", "other/model", "--unset", "displayName"}, []string{ops}, false, map[string]string{ops: `"modelOverride": "model"`}, []string{"displayName", "contextTokens"}, 0},
		{"restore a deletion of OpenClaw", []string{"restore", "60aa8ead-51b4-4fcb-a52f-af96c89778b6"}, []string{"agent:work:explicit:60aa8ead-51b4-4fcb-a52f-af96c89778b6"}, false, nil, nil, 1},
		{"restore a reset by its name", []string{"restore", "4808d58f-1496-4795-a11f-89e7307870e9.jsonl.reset.2026-09-14T04-13-20.000Z"}, []string{"agent:work:explicit:4808d58f-1496-4795-a11f-89e7307870e9"}, false, nil, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, sessions, env := lived(t)
			args := append([]string{"--state-dir", state, "sessions", "--json", "--agent", "work"}, c.args...)
			before, rows := kept(t, state), rowsOf(t, sessions)
			whole := tree(t, state)
			planned := ocRun(t, state, env, append(args, "--dry-run")...)
			if planned.exit != ExitDone {
				t.Fatalf("dry run: exit %d: %s", planned.exit, planned.errout)
			}
			if tree(t, state) != whole {
				t.Fatal("the dry run changed the tree")
			}
			done := ocRun(t, state, env, args...)
			if done.exit != ExitDone {
				t.Fatalf("exit %d: %s", done.exit, done.errout)
			}
			doc := done.doc(t)
			want(t, "actions", masked(doc["actions"]), masked(planned.doc(t)["actions"]))
			want(t, "rows", dig(doc, "committed", "rows"), float64(len(c.changes)))
			want(t, "files", dig(doc, "committed", "files"), float64(c.files))
			now := rowsOf(t, sessions)
			for key, val := range rows {
				switch got, there := now[key]; {
				case !slices.Contains(c.changes, key):
					if got != val {
						t.Errorf("the row %s was not named and changed:\n%s\n%s", key, val, got)
					}
				case c.gone == there:
					t.Errorf("the row %s: there %t", key, there)
				case !c.gone && got == val:
					t.Errorf("the row %s did not change", key)
				}
			}
			for key, text := range c.has {
				if !strings.Contains(now[key], text) {
					t.Errorf("the row %s lacks %s: %s", key, text, now[key])
				}
			}
			for _, text := range c.hasNot {
				for _, key := range c.changes {
					if strings.Contains(now[key], text) {
						t.Errorf("the row %s holds %s: %s", key, text, now[key])
					}
				}
			}
			back := ocRun(t, state, env, "--state-dir", state, "undo", dig(doc, "undo", "run").(string))
			if back.exit != ExitDone {
				t.Fatalf("undo: exit %d: %s", back.exit, back.errout)
			}
			same(t, "the tree after undo", kept(t, state), before)
		})
	}
}

// masked makes what is chosen anew each time, ids, one and the same.
func masked(v any) string {
	return regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`).ReplaceAllString(fmt.Sprint(v), "<id>")
}

// The archive of a deleted session has OpenClaw's name for it.
func TestDeleteArchivesAsOpenClaw(t *testing.T) {
	state, sessions, env := lived(t)
	for _, name := range []string{"8f1d5540-bc5f-47a0-a629-cd370c2d6df0.trajectory.jsonl", "8f1d5540-bc5f-47a0-a629-cd370c2d6df0.trajectory-path.json"} {
		if err := os.WriteFile(filepath.Join(sessions, name), []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if a := ocRun(t, state, env, "--state-dir", state, "sessions", "delete", direct, "--agent", "work", "--yes"); a.exit != ExitDone {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	var left []string
	for _, name := range names(t, sessions) {
		if strings.HasPrefix(name, "8f1d5540") {
			left = append(left, name)
		}
	}
	same(t, "files of the session", left, []string{"8f1d5540-bc5f-47a0-a629-cd370c2d6df0.jsonl.deleted.2026-09-21T14-13-20.000Z"})
}

// hold locks a transcript for this process.
func hold(t *testing.T, transcript string) {
	t.Helper()
	me := lock.Local().Process(os.Getpid())
	if err := os.WriteFile(transcript+lock.Suffix, []byte(fixtures.Lock(os.Getpid(), time.Now().UnixMilli(), 300_000, int64(me.Start))), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What may not be changed stays, with the reason and the status for it, and nothing else of the tree changes either.
func TestVerbsRefuse(t *testing.T) {
	transcript := "8f1d5540-bc5f-47a0-a629-cd370c2d6df0.jsonl"
	write := func(t *testing.T, path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	locked := func(t *testing.T, sessions string) {
		hold(t, filepath.Join(sessions, transcript))
	}
	recent := func(t *testing.T, sessions string) {
		at := time.UnixMilli(fixtures.Now - 60_000)
		if err := os.Chtimes(filepath.Join(sessions, transcript), at, at); err != nil {
			t.Fatal(err)
		}
	}
	harmed := func(text string) func(t *testing.T, sessions string) {
		return func(t *testing.T, sessions string) { write(t, filepath.Join(sessions, "sessions.json"), text) }
	}
	missing := func(t *testing.T, sessions string) {
		if err := os.Remove(filepath.Join(sessions, "sessions.json")); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		harm func(t *testing.T, sessions string)
		exit int
		says string
	}{
		{"locked", locked, ExitBusy, "locked"},
		{"written a minute ago", recent, ExitRefused, "written 1 min ago"},
		{"a cut store", harmed(`{"agent:work:main": {`), ExitRefused, "sessions.json"},
		{"an empty store", harmed(""), ExitRefused, "empty"},
		{"no store, but transcripts", missing, ExitRefused, "no session store"},
	} {
		for _, verb := range [][]string{{"delete", "--yes"}, {"archive"}, {"reset"}, {"patch", "--pin"}} {
			t.Run(c.name+" "+verb[0], func(t *testing.T) {
				state, sessions, env := lived(t)
				c.harm(t, sessions)
				before := tree(t, filepath.Join(state, "agents"))
				for _, more := range [][]string{nil, {"--json"}} {
					a := ocRun(t, state, env, slices.Concat([]string{"--state-dir", state, "--agent", "work", "sessions"}, verb, []string{direct}, more)...)
					if a.exit != c.exit || !strings.Contains(a.errout, c.says) {
						t.Errorf("exit %d, want %d: %s", a.exit, c.exit, a.errout)
					}
					if tree(t, filepath.Join(state, "agents")) != before {
						t.Error("something changed")
					}
					if more != nil {
						a.doc(t)
					}
				}
			})
		}
	}
	for _, c := range []struct {
		name string
		args []string
		exit int
		says string
	}{
		{"a main session", []string{"delete", "agent:work:main", "--yes"}, ExitUsage, "--main"},
		{"no yes", []string{"delete", direct}, ExitUsage, "--yes"},
		{"nobody by that name", []string{"delete", direct, "agent:work:nobody", "--yes"}, ExitFailed, "agent:work:nobody"},
		{"no name at all", []string{"delete", "--yes"}, ExitUsage, "KEY"},
		{"a value that is none", []string{"patch", direct, "--thinking", "hard"}, ExitUsage, "--thinking"},
		{"a label that is taken", []string{"patch", direct, "--label", "Invoice audit"}, ExitFailed, "in use"},
		{"a label that is blank", []string{"patch", direct, "--label", " "}, ExitUsage, "--label"},
		{"a field that is not documented", []string{"patch", direct, "--unset", "mine"}, ExitUsage, "--unset"},
		{"a field that a session is", []string{"patch", direct, "--unset", "sessionId"}, ExitUsage, "--unset"},
		{"nothing to change", []string{"patch", direct}, ExitUsage, "nothing"},
		{"both ways", []string{"patch", direct, "--pin", "--unpin"}, ExitUsage, "--unpin"},
		{"no model", []string{"patch", direct, "--model", "gpt"}, ExitUsage, "--model"},
		{"a reason that is none", []string{"reset", direct, "--reason", "idle"}, ExitUsage, "--reason"},
		{"no cron job", []string{"reset", direct, "--cron-run"}, ExitFailed, "cron"},
		{"nothing to restore", []string{"restore", direct}, ExitFailed, "not archived"},
		{"two at once", []string{"reset", direct, hook}, ExitUsage, "reset"},
		{"a hostile name", []string{"delete", "../../../etc/passwd", "--yes"}, ExitFailed, "passwd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, _, env := lived(t)
			before := tree(t, state)
			args := append([]string{"--state-dir", state, "--agent", "work", "sessions"}, c.args...)
			a := ocRun(t, state, env, args...)
			if a.exit != c.exit || !strings.Contains(a.errout, c.says) {
				t.Errorf("exit %d, want %d: %s", a.exit, c.exit, a.errout)
			}
			if tree(t, state) != before {
				t.Error("something changed")
			}
		})
	}
}

// Of several sessions the one that is in use stays, and the others are changed.
func TestDeleteBesideALockedOne(t *testing.T) {
	state, sessions, env := lived(t)
	hold(t, filepath.Join(sessions, "8f1d5540-bc5f-47a0-a629-cd370c2d6df0.jsonl"))
	a := ocRun(t, state, env, "--state-dir", state, "sessions", "delete", direct, hook, "--agent", "work", "--yes", "--json")
	want(t, "exit", a.exit, ExitBusy)
	doc := a.doc(t)
	want(t, "first", dig(doc, "sessions", 0, "result"), "refused")
	want(t, "second", dig(doc, "sessions", 1, "result"), "deleted")
	want(t, "why", dig(doc, "protected", 0, "rule"), "locked")
	now := rowsOf(t, sessions)
	if _, there := now[hook]; there || now[direct] == "" {
		t.Errorf("rows: %v", now)
	}
}

// Keys of any text are taken as they are, and shown escaped.
func TestVerbsWithHostileKeys(t *testing.T) {
	state, sessions, env := lived(t)
	keys := []string{"", "__proto__", "\x1b[31mred", "a\nb", "--json", "-h", "агент:é", "agent:work:", "0", "x'; DROP TABLE"}
	text := "{"
	for i, key := range keys {
		if i > 0 {
			text += ","
		}
		text += "\n  " + fmt.Sprintf("%s: {\"sessionId\": \"s-%d\", \"updatedAt\": 1}", quoteJSON(key), i)
	}
	if err := os.WriteFile(filepath.Join(sessions, "sessions.json"), []byte(text+"\n}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		before := kept(t, state)
		args := []string{"--state-dir", state, "--agent", "work", "--json", "--yes", "sessions", "delete", "--", key}
		a := ocRun(t, state, env, args...)
		if a.exit != ExitDone {
			t.Errorf("%q: exit %d: %s", key, a.exit, a.errout)
			continue
		}
		if strings.ContainsAny(a.errout, "\x1b") {
			t.Errorf("%q: a control character was shown", key)
		}
		doc := a.doc(t)
		want(t, "id", dig(doc, "sessions", 0, "sessionId"), fmt.Sprintf("s-%d", i))
		if back := ocRun(t, state, env, "--state-dir", state, "undo", "--store", filepath.Join(sessions, "sessions.json")); back.exit != ExitDone {
			t.Errorf("%q: undo: exit %d: %s", key, back.exit, back.errout)
		}
		same(t, "the tree after undo", kept(t, state), before)
	}
}

func quoteJSON(s string) string {
	q := strings.NewReplacer("\x1b", `\u001b`, "\n", `\n`, `"`, `\"`, `\`, `\\`).Replace(s)
	return `"` + q + `"`
}

// Many processes at once: each change is made once, and none is lost.
func TestVerbsAtOnce(t *testing.T) {
	state, sessions, env := lived(t)
	rows := rowsOf(t, sessions)
	lines := [][]string{
		{"delete", hook, "--yes"}, {"delete", audit, "--yes"}, {"archive", ops}, {"archive", direct}, {"delete", hook, "--yes"},
	}
	answers := make([]answer, len(lines))
	var all sync.WaitGroup
	for i, line := range lines {
		all.Go(func() {
			for range 5 {
				answers[i] = ocProcess(t, env, append([]string{"--state-dir", state, "--agent", "work", "sessions"}, line...)...)
				if answers[i].exit != ExitBusy {
					return
				}
			}
		})
	}
	all.Wait()
	hooks := 0
	for i, a := range answers {
		switch {
		case i != 0 && i != 4 && a.exit != ExitDone, a.exit != ExitDone && a.exit != ExitFailed:
			t.Errorf("%v: exit %d: %s", lines[i], a.exit, a.errout)
		case (i == 0 || i == 4) && a.exit == ExitDone:
			hooks++
		}
	}
	want(t, "deletions of one session", hooks, 1)
	now := rowsOf(t, sessions)
	want(t, "rows", len(now), len(rows)-2)
	for _, key := range []string{ops, direct} {
		if !strings.Contains(now[key], "archivedAt") {
			t.Errorf("%s is not archived: %s", key, now[key])
		}
	}
}

// What was deleted or put aside comes back by its key, with the row that it had.
func TestRestoreWhatOcDid(t *testing.T) {
	state, sessions, env := lived(t)
	before := rowsOf(t, sessions)
	run := func(args ...string) map[string]any {
		t.Helper()
		a := ocRun(t, state, env, append([]string{"--state-dir", state, "--agent", "work", "--json", "sessions"}, args...)...)
		if a.exit != ExitDone {
			t.Fatalf("%v: exit %d: %s", args, a.exit, a.errout)
		}
		return a.doc(t)
	}
	run("delete", direct, "--yes")
	doc := run("restore", direct)
	want(t, "result", dig(doc, "sessions", 0, "result"), "restored")
	if dig(doc, "sessions", 0, "inferred") != nil {
		t.Error("the row was inferred although it had been saved")
	}
	same(t, "lines but the time", linesBut(rowsOf(t, sessions)[direct], "updatedAt"), linesBut(before[direct], "updatedAt"))
	if !slices.Contains(names(t, sessions), "8f1d5540-bc5f-47a0-a629-cd370c2d6df0.jsonl") {
		t.Error("the transcript is not back")
	}
	run("archive", hook)
	run("restore", hook)
	same(t, "lines but the time", linesBut(rowsOf(t, sessions)[hook], "updatedAt"), linesBut(before[hook], "updatedAt"))

	// A conversation before a reset comes back beside the one that goes on.
	run("reset", ops)
	doc = run("restore", ops)
	want(t, "inferred", dig(doc, "sessions", 0, "inferred") == true, false) // the run of the reset has the row
	want(t, "key", dig(doc, "sessions", 0, "key"), "agent:work:explicit:9c9337e1-8d63-4c70-a1b4-7a4243367695")
	for _, word := range []string{ops, "nobody", "9c9337e1-8d63-4c70-a1b4-7a4243367695"} {
		if a := ocRun(t, state, env, "--state-dir", state, "--agent", "work", "sessions", "restore", word); a.exit != ExitFailed || a.errout == "" {
			t.Errorf("restore %s once more: exit %d: %s", word, a.exit, a.errout)
		}
	}
}

func linesBut(text, without string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.Contains(line, without) })
}

// Sessions of several stores are changed in one go, and taken back in one go; a purge saves nothing, and a transcript that lies
// elsewhere is told.
func TestDeleteInSeveralStores(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(state, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("openclaw.json", `{agents: {list: [{id: "main", default: true}, {id: "ops"}]}}`)
	write("agents/old/sessions/far.jsonl", "{}\n")
	write("agents/main/sessions/sessions.json", `{"agent:main:a": {"sessionId": "a", "updatedAt": 1, "sessionFile": "`+filepath.Join(state, "agents/old/sessions/far.jsonl")+`"}}`)
	write("agents/ops/sessions/sessions.json", `{"agent:ops:b": {"sessionId": "b", "updatedAt": 1}, "agent:ops:c": {"sessionId": "c", "updatedAt": 1}}`)
	write("agents/ops/sessions/b.jsonl", "{}\n")
	for _, agent := range []string{"main", "ops", "old"} {
		calm(t, filepath.Join(state, "agents", agent, "sessions"))
	}
	env := quiet(t, fixtures.Now)
	before := kept(t, state)
	a := ocAlone(t, state, env, "--state-dir", state, "sessions", "delete", "agent:main:a", "b", "--yes", "--json")
	if a.exit != ExitDone {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	want(t, "stores", len(a.doc(t)["stores"].([]any)), 2)
	if !strings.Contains(a.errout, "far.jsonl") {
		t.Errorf("the transcript elsewhere is not told: %s", a.errout)
	}
	if back := ocAlone(t, state, env, "--state-dir", state, "undo"); back.exit != ExitDone {
		t.Fatalf("undo: exit %d: %s", back.exit, back.errout)
	}
	same(t, "the tree after undo", kept(t, state), before)

	purged := ocAlone(t, state, env, "--state-dir", state, "sessions", "delete", "agent:ops:b", "--yes", "--purge", "--json")
	want(t, "exit", purged.exit, ExitDone)
	doc := purged.doc(t)
	want(t, "possible", dig(doc, "undo", "possible"), false)
	if back := ocAlone(t, state, env, "--state-dir", state, "undo", dig(doc, "undo", "run").(string)); back.exit != ExitFailed {
		t.Errorf("a purge was taken back: exit %d", back.exit)
	}
	write("agents/main/sessions/sessions.json", "{")
	for word, exit := range map[string]int{"agent:ops:c": ExitDone, "agent:main:a": ExitRefused} {
		if a := ocAlone(t, state, env, "--state-dir", state, "sessions", "archive", word); a.exit != exit {
			t.Errorf("%s beside a damaged store: exit %d, want %d: %s", word, a.exit, exit, a.errout)
		}
	}
}
