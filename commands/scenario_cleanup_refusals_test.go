package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oc/fixtures"
)

// A store that cannot be trusted is never taken for empty: exit 6, a reason that names it, and nothing is touched.
func TestCleanupRefuses(t *testing.T) {
	damage := func(change func(text string) string) func(t *testing.T, store string) {
		return func(t *testing.T, store string) {
			text, err := os.ReadFile(store)
			if err != nil {
				t.Fatal(err)
			}
			write(t, store, change(string(text)))
		}
	}
	gone := func(t *testing.T, store string) {
		if err := os.Remove(store); err != nil {
			t.Fatal(err)
		}
	}
	hand := []string{"--older-than", "10d"}
	for _, c := range []struct {
		name, config string
		harm         func(t *testing.T, store string)
		args         []string
		says         string
	}{
		{"cut off", "", damage(func(s string) string { return s[:100] }), nil, "damaged at byte 100"},
		{"empty", "", damage(func(string) string { return "" }), nil, "it is empty"},
		{"white space", "", damage(func(string) string { return " \n" }), nil, "damaged"},
		{"a list", "", damage(func(s string) string { return "[" + s + "]" }), nil, "where an object belongs"},
		{"null", "", damage(func(string) string { return "null" }), nil, "damaged"},
		{"something behind it", "", damage(func(s string) string { return s + "}" }), nil, "damaged"},
		{"gone", "", gone, nil, "there is no session store"},
		{"gone, by hand", "", gone, hand, "there is no session store"},
		{"configuration", `{"session":`, nil, nil, "openclaw.json"},
		{"configuration, by hand without a store", `{"session":`, nil, hand, "openclaw.json"},
		{"configuration, a store without a selection", `{"session":`, nil, []string{"--store", "STORE"}, "openclaw.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, store := oldState(t, t.TempDir(), 6, c.config)
			if c.harm != nil {
				c.harm(t, store)
			}
			before := tree(t, state)
			for _, mode := range [][]string{nil, {"--dry-run"}, {"--enforce"}, {"--json"}, {"--purge"}, {"--all-agents"}} {
				args := append(append([]string{"sessions", "cleanup"}, c.args...), mode...)
				for i := range args {
					if args[i] == "STORE" {
						args[i] = store
					}
				}
				if len(c.args) > 0 && c.args[0] == "--store" && len(mode) > 0 && mode[0] == "--all-agents" {
					continue
				}
				a := at(t, state, args...)
				if a.exit != ExitRefused || !strings.Contains(a.errout, c.says) {
					t.Errorf("%v: exit %d: %s", args, a.exit, a.errout)
				}
				if mode != nil && mode[0] == "--json" && (a.doc(t) == nil || dig(a.doc(t), "error", "exit") != 6.0) {
					t.Errorf("document %s", a.out)
				}
				if now := tree(t, state); now != before {
					t.Fatalf("%v changed:\n%s\nbefore:\n%s", args, now, before)
				}
			}
		})
	}
}

// With a store and a selection by hand a configuration is not needed.
func TestCleanupByHandWithoutConfiguration(t *testing.T) {
	state, store := oldState(t, t.TempDir(), 6, `{"session":`)
	before := ownless(t, state)
	a := at(t, state, "sessions", "cleanup", "--store", store, "--older-than", "10d", "--json")
	if a.exit != ExitDone || dig(a.doc(t), "afterCount") != 3.0 || dig(a.doc(t), "byHand") != 3.0 {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	if a := at(t, state, "undo"); a.exit != ExitDone || ownless(t, state) != before {
		t.Errorf("undo: exit %d: %s", a.exit, a.errout)
	}
}

// A limit that is no limit is off, and a warning names its key. Nothing is removed for it, and never everything.
func TestBadLimits(t *testing.T) {
	const off, stale = 6.0, 3.0 // rows that stay without a limit, and with the default age
	for _, c := range []struct {
		key, value string
		after      float64
		warns      string
	}{
		{"maxDiskBytes", `0`, stale, "no disk budget"},
		{"maxDiskBytes", `"0"`, stale, "no disk budget"},
		{"maxDiskBytes", `false`, stale, "no disk budget"},
		{"maxDiskBytes", `-1`, stale, "no disk budget"},
		{"maxDiskBytes", `"10 mb"`, stale, "no disk budget"},
		{"maxDiskBytes", `"abc"`, stale, "no disk budget"},
		{"maxEntries", `0`, stale, "no cap"},
		{"maxEntries", `-5`, stale, "no cap"},
		{"maxEntries", `"many"`, stale, "no cap"},
		{"pruneAfter", `0`, off, "no age rule"},
		{"pruneAfter", `"-3d"`, off, "no age rule"},
		{"pruneAfter", `"abc"`, off, "no age rule"},
		{"pruneAfter", `[]`, off, "no age rule"},
		{"highWaterBytes", `0`, stale, "80 %"},
		{"highWaterBytes", `"abc"`, stale, "80 %"},
		{"resetArchiveRetention", `"abc"`, stale, "archives of resets are kept"},
	} {
		extra := ""
		if c.key == "highWaterBytes" {
			extra = `"maxDiskBytes":"1mb",`
		}
		state, _ := oldState(t, t.TempDir(), 6, `{"session":{"maintenance":{`+extra+`"`+c.key+`":`+c.value+`}}}`)
		a := at(t, state, "sessions", "cleanup", "--json")
		if a.exit != ExitDone || !strings.Contains(a.errout, "session.maintenance."+c.key) || !strings.Contains(a.errout, c.warns) {
			t.Errorf("%s %s: exit %d: %s", c.key, c.value, a.exit, a.errout)
		}
		want(t, c.key+" "+c.value, dig(a.doc(t), "afterCount"), c.after)
	}
	state, _ := oldState(t, t.TempDir(), 6, `{"session":{"maintenance":{"mode":"sometimes"}}}`)
	before := ownless(t, state)
	a := at(t, state, "sessions", "cleanup")
	if a.exit != ExitDone || !strings.Contains(a.errout, "session.maintenance.mode") || !strings.Contains(a.errout, "warn") || ownless(t, state) != before {
		t.Errorf("mode: exit %d: %s", a.exit, a.errout)
	}
	state, _ = oldState(t, t.TempDir(), 6, `{"session":{"maxEntries":1},"agents":{"defaults":{"maintenance":{"maxEntries":1}}}}`)
	a = at(t, state, "sessions", "cleanup", "--json")
	for _, path := range []string{"session.maxEntries", "agents.defaults.maintenance"} {
		if !strings.Contains(a.errout, path+": OpenClaw does not look here") {
			t.Errorf("%s: %s", path, a.errout)
		}
	}
	want(t, "rows with a limit in the wrong place", dig(a.doc(t), "afterCount"), stale)
}

// S7: a cap that protected rows make unreachable is explained, exit 4.
func TestCapThatCannotBeMet(t *testing.T) {
	dir := t.TempDir()
	var rows []string
	for i := range 20 {
		rows = append(rows, `"agent:main:telegram:group:`+string(rune('a'+i))+`": {"updatedAt": 1}`)
	}
	write(t, filepath.Join(dir, "agents/main/sessions/sessions.json"), "{"+strings.Join(rows, ",")+"}")
	write(t, filepath.Join(dir, "openclaw.json"), `{"session":{"maintenance":{"maxEntries":5,"pruneAfter":"30d"}}}`)
	a := at(t, dir, "sessions", "cleanup", "--json")
	if a.exit != ExitLimit || dig(a.doc(t), "afterCount") != 20.0 || dig(a.doc(t), "unmet", 0, "protected") != 20.0 || !strings.Contains(a.errout, "20") || !strings.Contains(a.errout, "--include-protected") {
		t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
}

// Links: a store behind one is changed where it lies, the link stays, unless it leads out of the state; a second name of it keeps what was; whichever path leads to a store, it has one journal; what a row or a
// link names outside is never touched.
func TestCleanupAndLinks(t *testing.T) {
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("store", func(t *testing.T) {
		dir := t.TempDir()
		state, store := oldState(t, dir, 6, "")
		real := filepath.Join(state, "shared", "rows.json")
		if err := os.Mkdir(filepath.Dir(real), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(store, real); err != nil {
			t.Fatal(err)
		}
		link(real, store)
		before := ownless(t, state)
		a := at(t, state, "sessions", "cleanup", "--json")
		if a.exit != ExitDone || dig(a.doc(t), "afterCount") != 3.0 {
			t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
		}
		if to, err := os.Readlink(store); err != nil || to != real {
			t.Errorf("the link: %s %v", to, err)
		}
		whole(t, store)
		if a := at(t, state, "undo"); a.exit != ExitDone || ownless(t, state) != before {
			t.Errorf("undo: exit %d: %s", a.exit, a.errout)
		}
	})
	t.Run("store outside", func(t *testing.T) {
		dir := t.TempDir()
		state, store := oldState(t, dir, 6, "")
		real := filepath.Join(dir, "elsewhere", "sessions.json")
		if err := os.Mkdir(filepath.Dir(real), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(store, real); err != nil {
			t.Fatal(err)
		}
		link(real, store)
		write(t, filepath.Join(filepath.Dir(store), "sessions.json.4711.0a1b2c3d-0000-4000-8000-000000000001.tmp"), "{")
		calm(t, filepath.Dir(store))
		everything := func() string { return ownless(t, state) + "\n" + tree(t, filepath.Dir(real)) }
		before := everything()
		for _, args := range [][]string{
			{"sessions", "cleanup"},
			{"sessions", "cleanup", "--dry-run"},
			{"sessions", "cleanup", "--fix-missing"},
			{"sessions", "delete", "agent:main:explicit:1", "--yes"},
			{"sessions", "patch", "agent:main:explicit:1", "--label", "x"},
			{"sessions", "archive", "agent:main:explicit:1"},
			{"sessions", "reset", "agent:main:explicit:1", "--dry-run"},
			{"repair", "paths", "--from", "/a", "--to", "/b"},
		} {
			if a := at(t, state, args...); a.exit != ExitRefused || !strings.Contains(a.errout, "outside of the state") || !strings.Contains(a.errout, real) {
				t.Errorf("oc %v: exit %d: %s%s", args, a.exit, a.out, a.errout)
			}
			if everything() != before {
				t.Fatalf("oc %v has changed something", args)
			}
		}
		// It is read, and files beside it are mended.
		if a := at(t, state, "sessions", "--json"); dig(a.doc(t), "count") != 6.0 {
			t.Errorf("exit %d: %s", a.exit, a.errout)
		}
		if a := at(t, state, "doctor", "--fix", "stale-temp"); !strings.Contains(a.out, "2 changes made") {
			t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
		}
		if a := at(t, state, "undo"); a.exit != ExitDone || everything() != before {
			t.Errorf("undo: exit %d: %s", a.exit, a.errout)
		}
		text, err := os.ReadFile(real)
		if err != nil {
			t.Fatal(err)
		}
		write(t, store+".bak.1789000000000", string(text))
		if err := os.WriteFile(real, text[:len(text)/2], 0o600); err != nil {
			t.Fatal(err)
		}
		if a := at(t, state, "repair", "index"); a.exit != ExitRefused || !strings.Contains(a.errout, "outside of the state") {
			t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
		}
	})
	t.Run("directory outside", func(t *testing.T) {
		dir := t.TempDir()
		state, store := oldState(t, dir, 6, "")
		real := filepath.Join(dir, "disk")
		if err := os.Rename(filepath.Dir(store), real); err != nil {
			t.Fatal(err)
		}
		link(real, filepath.Dir(store))
		if a := at(t, state, "sessions", "cleanup", "--json"); a.exit != ExitDone || dig(a.doc(t), "afterCount") != 3.0 {
			t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
		}
	})
	t.Run("second name", func(t *testing.T) {
		dir := t.TempDir()
		state, store := oldState(t, dir, 6, "")
		twin := filepath.Join(dir, "backup.json")
		if err := os.Link(store, twin); err != nil {
			t.Fatal(err)
		}
		was, err := os.ReadFile(twin)
		if err != nil {
			t.Fatal(err)
		}
		before := ownless(t, state)
		for _, more := range [][]string{{"--dry-run"}, {}} {
			if a := at(t, state, append([]string{"sessions", "cleanup"}, more...)...); a.exit != ExitDone || !strings.Contains(a.out+a.errout, "has 2 names: it becomes a file of its own, and the other keeps what it is now") {
				t.Errorf("%v: exit %d: %s%s", more, a.exit, a.out, a.errout)
			}
			if now, err := os.ReadFile(twin); err != nil || string(now) != string(was) {
				t.Errorf("the other name was written through: %v %s", err, now)
			}
		}
		if ownless(t, state) == before {
			t.Error("nothing was changed")
		}
		if a := at(t, state, "undo"); a.exit != ExitDone || ownless(t, state) != before {
			t.Errorf("undo: exit %d: %s", a.exit, a.errout)
		}
	})
	t.Run("state", func(t *testing.T) {
		dir := t.TempDir()
		state, store := oldState(t, dir, 6, "")
		alias := filepath.Join(dir, "alias")
		link(state, alias)
		before := ownless(t, state)
		if a := at(t, alias, "sessions", "cleanup", "--store", store); a.exit != ExitDone {
			t.Fatalf("exit %d: %s", a.exit, a.errout)
		}
		if _, err := os.Lstat(filepath.Join(state, ".oc")); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(filepath.Join(filepath.Dir(store), ".oc")); err == nil {
			t.Error("a second journal was made beside the store")
		}
		if a := at(t, state, "undo", "--agent", "main"); a.exit != ExitDone || ownless(t, state) != before {
			t.Errorf("undo: exit %d: %s", a.exit, a.errout)
		}
	})
	t.Run("pointers", func(t *testing.T) {
		dir := t.TempDir()
		state, store := oldState(t, dir, 2, "")
		sessions := filepath.Dir(store)
		outside := filepath.Join(dir, "outside.jsonl")
		write(t, outside, "not a session\n")
		write(t, filepath.Join(state, "agents/other/sessions/theirs.jsonl"), "another agent's\n")
		link(outside, filepath.Join(sessions, "linked.jsonl"))
		if err := os.Link(filepath.Join(sessions, "s0000.jsonl"), filepath.Join(sessions, "twin.jsonl")); err != nil {
			t.Fatal(err)
		}
		old := `"updatedAt": 1700000000000`
		write(t, store, `{
  "agent:main:explicit:0": {"sessionId": "s0000", "updatedAt": 1789999000000},
  "agent:main:explicit:outside": {"sessionId": "a", "sessionFile": "`+outside+`", `+old+`},
  "agent:main:explicit:hosts": {"sessionId": "b", "sessionFile": "/etc/hosts", `+old+`},
  "agent:main:explicit:theirs": {"sessionId": "c", "sessionFile": "`+filepath.Join(state, "agents/other/sessions/theirs.jsonl")+`", `+old+`},
  "agent:main:explicit:up": {"sessionId": "../../../../outside", `+old+`},
  "agent:main:explicit:linked": {"sessionId": "linked", `+old+`},
  "agent:main:explicit:twin": {"sessionId": "twin", `+old+`}
}`)
		if err := os.Chtimes(store, fixturesTime(0), fixturesTime(0)); err != nil {
			t.Fatal(err)
		}
		theirs, before := tree(t, filepath.Join(state, "agents/other")), ownless(t, state)
		for _, args := range [][]string{{}, {"--fix-missing"}, {"--older-than", "1d"}, {"--purge", "--fix-missing"}} {
			a := at(t, state, append([]string{"sessions", "cleanup"}, args...)...)
			if a.exit != ExitDone {
				t.Fatalf("%v: exit %d: %s", args, a.exit, a.errout)
			}
			if text, err := os.ReadFile(outside); err != nil || string(text) != "not a session\n" {
				t.Fatalf("%v: outside: %q %v", args, text, err)
			}
			if now := tree(t, filepath.Join(state, "agents/other")); now != theirs {
				t.Fatalf("%v: the other agent's: %s", args, now)
			}
			if to, err := os.Readlink(filepath.Join(sessions, "linked.jsonl")); err != nil || to != outside {
				t.Fatalf("%v: the link: %s %v", args, to, err)
			}
			if _, err := os.Lstat(filepath.Join(sessions, "s0000.jsonl")); err != nil {
				t.Fatalf("%v: the other name of a live transcript: %v", args, err)
			}
			takeAllBack(t, quiet(t, fixtures.Now), state)
			if len(args) == 0 || args[0] != "--purge" {
				if now := ownless(t, state); now != before {
					t.Fatalf("%v: after the undo:\n%s\nbefore:\n%s", args, now, before)
				}
			}
		}
	})
}

// undo --store and --agent look at the runs of that store alone.
func TestUndoIsNarrowed(t *testing.T) {
	dir := t.TempDir()
	state, store := oldState(t, dir, 6, `{"agents":{"list":[{"id":"main","default":true},{"id":"work"}]}}`)
	work := filepath.Join(state, "agents/work/sessions/sessions.json")
	if err := os.MkdirAll(filepath.Dir(work), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, work, `{"agent:work:explicit:1": {"updatedAt": 1700000000000}, "agent:work:main": {"updatedAt": 1789999000000}}`)
	before := ownless(t, filepath.Join(state, "agents/work"))
	if a := at(t, state, "sessions", "cleanup", "--all-agents"); a.exit != ExitDone {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	count := func(args ...string) int {
		runs, _ := dig(at(t, state, append([]string{"undo", "--list", "--json"}, args...)...).doc(t), "runs").([]any)
		return len(runs)
	}
	want(t, "runs", count(), 2)
	want(t, "runs of work", count("--agent", "work"), 1)
	want(t, "runs of a store", count("--store", store), 1)
	if a := at(t, state, "undo", "--agent", "work"); a.exit != ExitDone || ownless(t, filepath.Join(state, "agents/work")) != before {
		t.Errorf("exit %d: %s", a.exit, a.errout)
	}
	if text, _ := os.ReadFile(store); strings.Contains(string(text), "explicit:1") {
		t.Error("the other store was taken back, too")
	}
	if a := at(t, state, "undo", "--expire", "all", "--store", store, "--json"); a.exit != ExitDone || dig(a.doc(t), "expired") != 1.0 {
		t.Errorf("expire: exit %d: %s%s", a.exit, a.out, a.errout)
	}
	if a := at(t, state, "undo"); a.exit != ExitFailed || !strings.Contains(a.errout, "no run that can be taken back") {
		t.Errorf("nothing is left: exit %d: %s", a.exit, a.errout)
	}
}

// A configuration that cannot be parsed does not say which agents there are: that is why nothing is done, also for an agent that is named.
func TestCleanupOfAnAgentWithoutConfiguration(t *testing.T) {
	state, _, env := lived(t)
	write(t, filepath.Join(state, "openclaw.json"), "{broken")
	before := ownless(t, state)
	for _, args := range [][]string{{"--agent", "work"}, {"--all-agents"}, {}, {"--agent", "work", "--older-than", "1d"}} {
		a := ocRun(t, state, env, append([]string{"--state-dir", state, "sessions", "cleanup"}, args...)...)
		if a.exit != ExitRefused || !strings.Contains(a.errout, "openclaw.json") || !strings.Contains(a.errout, "--store") || ownless(t, state) != before {
			t.Errorf("%v: exit %d: %s", args, a.exit, a.errout)
		}
	}
}

// Nor is an agent or a session missing then for all that is known: what changes by hand is refused for the configuration, whatever else it names.
func TestVerbsWithoutConfiguration(t *testing.T) {
	state, _, env := lived(t)
	write(t, filepath.Join(state, "openclaw.json"), "{broken")
	before := ownless(t, state)
	for _, args := range [][]string{
		{"sessions", "delete", "nothing", "--yes"},
		{"sessions", "archive", "nothing"},
		{"sessions", "restore", "nothing"},
		{"sessions", "reset", "nothing"},
		{"sessions", "patch", "nothing", "--label", "x"},
		{"undo"},
	} {
		for _, agent := range []string{"work", "nobody"} {
			a := ocRun(t, state, env, append(append([]string{"--state-dir", state}, args...), "--agent", agent)...)
			if a.exit != ExitRefused || !strings.Contains(a.errout, "openclaw.json cannot be read") || !strings.Contains(a.errout, "--store") || ownless(t, state) != before {
				t.Errorf("%v of %s: exit %d: %s", args, agent, a.exit, a.errout)
			}
		}
	}
}
