package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"oc/fixtures"
)

// S15: one conversation by several keys. Every key is a row of its own, with its own spelling.
func TestAliasesAreRowsOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	r := made[fixtures.Aliases](t)(fixtures.S15(dir, fixtures.Now))
	every := append([]string{r.Typo, r.Foreign}, r.Exotic...)
	for _, pair := range [][2]string{r.Room, r.Peers, r.Heartbeat, r.Shared} {
		every = append(every, pair[:]...)
	}
	before := tree(t, dir)

	list := at(t, dir, "sessions", "--limit", "all", "--json")
	doc := list.doc(t)
	want(t, "exit", list.exit, ExitDone)
	same(t, "keys", keysOf(doc), sorted(every...))
	place := map[string]int{}
	agent := map[string]any{}
	for i, row := range doc["sessions"].([]any) {
		key := dig(row, "key").(string)
		place[key], agent[key] = i, dig(row, "agentId")
	}
	if place[r.Room[1]] > place[r.Room[0]] || place[r.Peers[0]] > place[r.Peers[1]] {
		t.Errorf("the newer of two names of one conversation does not come first: %v", place)
	}
	want(t, "agent of a key with a typo", agent[r.Typo], "mian")
	want(t, "agent of a key of another agent", agent[r.Foreign], "work")

	// Text shows every row, each on a line, and nothing that a terminal obeys.
	text := at(t, dir, "sessions", "--limit", "all", "--wide")
	for _, shown := range []string{"direct:AbC", "direct:abc", r.Typo, r.Foreign, "__proto__", "constructor", `two\nlines`, `\x1b[31mred\x1b[0m`, `\u202egnp.exe`, `tab\there`} {
		if strings.Count(text.out, shown) != 1 {
			t.Errorf("%q stands %d times in\n%s", shown, strings.Count(text.out, shown), text.out)
		}
	}
	if c := raw(text.out + text.errout); c != "" {
		t.Errorf("a terminal would obey %s in %q", c, text.out)
	}
	if n := strings.Count(text.out, "\n"); n != len(every)+4 { // store, count, blank, heads
		t.Errorf("%d lines for %d rows", n, len(every))
	}

	// Each is found by its own key, whatever else is spelled nearly so.
	for _, key := range every {
		a := at(t, dir, "sessions", "show", "--json", "--", key)
		want(t, fmt.Sprintf("exit of show %q", key), a.exit, ExitDone)
		want(t, fmt.Sprintf("key of show %q", key), dig(a.doc(t), "session", "key"), key)
	}

	// A word that means several names them all and chooses none; what shares an id with another says so.
	shared := dig(at(t, dir, "sessions", "show", "--json", r.Shared[0]).doc(t), "session", "sessionId").(string)
	a := at(t, dir, "sessions", "show", shared, "--json")
	want(t, "exit of a shared id", a.exit, ExitUsage)
	message := fmt.Sprint(dig(a.doc(t), "error", "message"))
	for _, key := range r.Shared {
		if !strings.Contains(message, key) {
			t.Errorf("%s is not named in %q", key, message)
		}
	}
	want(t, "the other key of the id", dig(at(t, dir, "sessions", "show", "--json", r.Shared[0]).doc(t), "sameSessionId", 0), r.Shared[1])
	want(t, "exit of a third spelling", at(t, dir, "sessions", "show", "agent:main:x:direct:ABC").exit, ExitUsage)
	want(t, "key of a label", dig(at(t, dir, "sessions", "show", "Twice", "--json").doc(t), "session", "key"), r.Shared[0])

	if tree(t, dir) != before {
		t.Error("looking at aliases changed the tree")
	}
}

// S16: each way in which an agent's sessions can be kept is told, and what is not in the list is counted.
func TestEras(t *testing.T) {
	e := made[fixtures.Eras](t)(fixtures.S16(t.TempDir(), fixtures.Now))
	for _, c := range []struct {
		state, era, says string
		schema           float64 // 0: none
		other            float64 // rows of the other era; 0: none
		stranger         string
		noted            string // on standard error
	}{
		{state: e.Files, era: "file", says: ", file era"},
		{state: e.SQLite, era: "sqlite", says: ", SQLite era, schema 23", schema: 23},
		{state: e.Both, era: "sqlite", says: ", SQLite era, schema 23", schema: 23, other: 3, noted: "also has 3 sessions of the file era in " + fixtures.Store(e.Both, "main")},
		{state: e.Imported, era: "sqlite", says: ", SQLite era, schema 23", schema: 23},
		{state: e.Newer, era: "sqlite", says: ", SQLite era, schema 24", schema: 24, noted: "has schema 24, newer than oc knows"},
		{state: e.Unlisted, era: "file", says: ", file era", stranger: "ghost", noted: "on disk but not in the configuration: ghost"},
	} {
		before := tree(t, c.state)

		// The list: rows of one era, never merged, never "none".
		text := at(t, c.state, "sessions")
		if text.exit != ExitDone || !strings.Contains(text.out, "Sessions listed: 2"+c.says+"\n") || strings.Contains(text.out, "No sessions") {
			t.Errorf("%s: exit %d, want %s and two sessions\n%s%s", c.state, text.exit, c.says, text.out, text.errout)
		}
		if lines := text.lines(); c.noted == "" && len(lines) > 0 || c.noted != "" && (len(lines) != 1 || !strings.Contains(lines[0], c.noted)) {
			t.Errorf("%s: standard error %q, want %q", c.state, text.errout, c.noted)
		}
		a := at(t, c.state, "sessions", "--json")
		doc := a.doc(t)
		same(t, c.state, keysOf(doc), sorted(e.Keys[:]...))
		want(t, c.state+" era", doc["era"], c.era)
		if c.other == 0 && len(doc["otherEra"].([]any)) > 0 {
			t.Errorf("%s: other era %v", c.state, doc["otherEra"])
		}
		if c.other > 0 {
			want(t, c.state+" other era", dig(doc, "otherEra", 0, "era"), "file")
			want(t, c.state+" other rows", dig(doc, "otherEra", 0, "count"), c.other)
			want(t, c.state+" other path", dig(doc, "otherEra", 0, "path"), fixtures.Store(c.state, "main"))
		}
		if c.stranger != "" {
			want(t, c.state+" stranger", dig(doc, "unconfiguredAgents", 0, "agentId"), c.stranger)
		}

		// The agents: era, rows, schema, the other era's rows, and who is only on disk.
		for _, command := range [][]string{{"agents", "list"}, {"status"}} {
			doc := at(t, c.state, append(command, "--json")...).doc(t)
			want(t, c.state+" agent", dig(doc, "agents", 0, "agentId"), "main")
			want(t, c.state+" era", dig(doc, "agents", 0, "era"), c.era)
			want(t, c.state+" rows", dig(doc, "agents", 0, "rows"), 2.0)
			if c.schema > 0 {
				want(t, c.state+" schema", dig(doc, "agents", 0, "schema"), c.schema)
			}
			if c.other > 0 {
				want(t, c.state+" other rows", dig(doc, "agents", 0, "otherEra", "count"), c.other)
			}
			text := at(t, c.state, command...)
			if c.other > 0 && !strings.Contains(text.errout, "3 sessions of the file era") {
				t.Errorf("%v of %s does not tell the other era: %s", command, c.state, text.errout)
			}
			if c.stranger != "" {
				want(t, "stranger", dig(doc, "agents", 1, "agentId"), c.stranger)
				want(t, "configured", dig(doc, "agents", 1, "configured"), false)
				want(t, "stranger's rows", dig(doc, "agents", 1, "rows"), 1.0)
				if !strings.Contains(text.out, "\nghost *") || !strings.Contains(text.out, "\n* on disk, but not in the configuration\n") {
					t.Errorf("%v does not mark the agent that is only on disk:\n%s", command, text.out)
				}
			}
		}
		glance := at(t, c.state)
		if !strings.Contains(glance.out, map[string]string{"file": "in the file era", "sqlite": "in the SQLite era"}[c.era]) || strings.Contains(glance.out, "no session was found") {
			t.Errorf("the bare oc on %s:\n%s", c.state, glance.out)
		}
		if tree(t, c.state) != before {
			t.Errorf("reading changed %s", c.state)
		}
	}
}

// What stands beside the database is read when it is named, and unlinked history is told.
func TestBothErasByName(t *testing.T) {
	e := made[fixtures.Eras](t)(fixtures.S16(t.TempDir(), fixtures.Now))
	before := tree(t, e.Both)
	for _, c := range []struct {
		store string
		keys  []string
		other string
		count float64
	}{
		{fixtures.Store(e.Both, "main"), append([]string{e.Extra}, e.Keys[:]...), "sqlite", 2},
		{fixtures.Database(e.Both, "main"), e.Keys[:], "", 0},
	} {
		a := at(t, e.Both, "sessions", "--store", c.store, "--json")
		doc := a.doc(t)
		want(t, "exit", a.exit, ExitDone)
		want(t, "path", doc["path"], c.store)
		same(t, c.store, keysOf(doc), sorted(c.keys...))
		if c.other != "" {
			want(t, "other era", dig(doc, "otherEra", 0, "era"), c.other)
			want(t, "other rows", dig(doc, "otherEra", 0, "count"), c.count)
			if !strings.Contains(a.errout, "2 sessions of the sqlite era") {
				t.Errorf("standard error: %q", a.errout)
			}
		}
	}
	history := at(t, e.Both, "sessions", "--history", "--json").doc(t)
	var files []string
	for _, h := range history["history"].([]any) {
		files = append(files, dig(h, "path").(string))
	}
	if !slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, e.Outside) }) || slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, e.Covered) }) {
		t.Errorf("history %v; want %s, which the database lacks, and not %s, which it has", files, e.Outside, e.Covered)
	}
	if tree(t, e.Both) != before {
		t.Error("reading changed the tree")
	}
}

// A database of the file era (user_version 1, no session tables) is no SQLite era, and leaves the rows of the store alone.
func TestADatabaseWithoutSessionsIsNoEra(t *testing.T) {
	e := made[fixtures.Eras](t)(fixtures.S16(t.TempDir(), fixtures.Now))
	db := fixtures.Database(e.Files, "main")
	write(t, db, "")
	if err := fixtures.Alter(db, "CREATE TABLE auth_profiles (id TEXT)", "PRAGMA user_version=1"); err != nil {
		t.Fatal(err)
	}
	before := tree(t, e.Files)
	a := at(t, e.Files, "sessions", "--json")
	doc := a.doc(t)
	want(t, "exit", a.exit, ExitDone)
	want(t, "era", doc["era"], "file")
	same(t, "keys", keysOf(doc), sorted(e.Keys[:]...))
	if a.errout != "" || len(doc["otherEra"].([]any)) != 0 {
		t.Errorf("a cache is told as an era: %v %s", doc["otherEra"], a.errout)
	}
	if tree(t, e.Files) != before {
		t.Error("reading changed the tree")
	}
}

// An empty database beside a store with rows, as a newer release leaves it that only looked: the rows of the store are told.
func TestAnEmptyEraDoesNotHideTheOther(t *testing.T) {
	e := made[fixtures.Eras](t)(fixtures.S16(t.TempDir(), fixtures.Now))
	if err := fixtures.Alter(fixtures.Database(e.Both, "main"), "PRAGMA foreign_keys=OFF", "DELETE FROM session_nodes"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"sessions"}, {"sessions", "--all-agents"}, {"sessions", "--summary"}} {
		a := at(t, e.Both, args...)
		if !strings.Contains(a.errout, "3 sessions of the file era in "+fixtures.Store(e.Both, "main")) {
			t.Errorf("%v: the other era is not told: %s", args, a.errout)
		}
		doc := at(t, e.Both, append(args, "--json")...).doc(t)
		want(t, "other rows", dig(doc, "otherEra", 0, "count"), 3.0)
	}
	for _, args := range [][]string{{"agents", "list"}, {"status"}, {}} {
		if a := at(t, e.Both, args...); !strings.Contains(a.errout, "3 sessions of the file era") {
			t.Errorf("%v: the other era is not told: %s%s", args, a.out, a.errout)
		}
	}
}
