//go:build unix

package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oc/fixtures"
)

// What the scenarios found at first, and what oc says since.

// S20: a stamp in the future is not "ago", and one that is not known is not either.
func TestTheFutureIsNotAgo(t *testing.T) {
	dir := t.TempDir()
	made[fixtures.Clocks](t)(fixtures.S20(dir, fixtures.Now))
	if line := lineWith(at(t, dir).out, "Newest"); !strings.Contains(line, "in 2d") || strings.Contains(line, "ago") {
		t.Errorf("the bare oc: %q", line)
	}
	write(t, fixtures.Store(dir, "main"), `{"agent:main:main":{"sessionId":"x","updatedAt":0}}`)
	if line := lineWith(at(t, dir).out, "Newest"); strings.Contains(line, "unknown ago") {
		t.Errorf("the bare oc: %q", line)
	}
}

// S20: a stamp in seconds is flagged as a guess, not applied.
func TestSecondsAreFlagged(t *testing.T) {
	dir := t.TempDir()
	c := made[fixtures.Clocks](t)(fixtures.S20(dir, fixtures.Now))
	for _, args := range [][]string{{"sessions", "--wide"}, {"sessions", "show", c.Seconds}} {
		if a := at(t, dir, args...); !strings.Contains(a.out+a.errout, "seconds?") && !strings.Contains(a.out+a.errout, "in seconds") {
			t.Errorf("oc %v does not flag a stamp in seconds:\n%s%s", args, a.out, a.errout)
		}
	}
}

// Rule 3: a session that may be in a store that cannot be read is not simply "not found".
func TestShowFromADamagedStore(t *testing.T) {
	state := t.TempDir()
	twoAgents(t, state, fixtures.FileEra)
	path := fixtures.Store(state, "main")
	write(t, path, `{"agent:main:main":{"sessionId":"x"`)
	a := at(t, state, "sessions", "show", "agent:main:main", "--json")
	want(t, "exit", a.exit, ExitFailed)
	if !strings.Contains(a.errout, path) || !strings.Contains(a.errout, "byte 35") {
		t.Errorf("the damaged store is not named: %s", a.errout)
	}
}

// Rule 4 and S16: a session that only the other era has, and one of an agent that is only on disk, are told, not "no session".
func TestShowFromTheOtherEra(t *testing.T) {
	e := made[fixtures.Eras](t)(fixtures.S16(t.TempDir(), fixtures.Now))
	a := at(t, e.Both, "sessions", "show", e.Extra)
	if !strings.Contains(a.out+a.errout, fixtures.Store(e.Both, "main")) {
		t.Errorf("show %s: the other era is not named: %s", e.Extra, a.errout)
	}
	a = at(t, e.Unlisted, "sessions", "show", e.Ghost)
	if !strings.Contains(a.out+a.errout, fixtures.Store(e.Unlisted, "ghost")) {
		t.Errorf("show %s: the agent that is only on disk is not named: %s", e.Ghost, a.errout)
	}
}

// S16: an empty database beside a store with rows. "No sessions found" is not said while the other era has some.
func TestNoSessionsOfThisEra(t *testing.T) {
	e := made[fixtures.Eras](t)(fixtures.S16(t.TempDir(), fixtures.Now))
	if err := fixtures.Alter(fixtures.Database(e.Both, "main"), "PRAGMA foreign_keys=OFF", "DELETE FROM session_nodes"); err != nil {
		t.Fatal(err)
	}
	if a := at(t, e.Both, "sessions"); strings.Contains(a.out, "No sessions found") {
		t.Errorf("with 3 rows in the file era:\n%s", a.out)
	}
	if a := at(t, e.Both); strings.Contains(a.out, "no session was found here") {
		t.Errorf("with 3 rows in the file era:\n%s", a.out)
	}
}

// S16: a schema that oc does not know is labelled wherever its rows stand, and in the document.
func TestANewerSchemaIsToldEverywhere(t *testing.T) {
	e := made[fixtures.Eras](t)(fixtures.S16(t.TempDir(), fixtures.Now))
	for _, args := range [][]string{{"status"}, {"agents", "list"}, {}, {"sessions", "show", e.Keys[0]}} {
		a := at(t, e.Newer, args...)
		if said := strings.ReplaceAll(a.out+a.errout, e.Newer, ""); !strings.Contains(said, "newer") {
			t.Errorf("oc %v does not say that the schema is newer than it knows:\n%s%s", args, a.out, a.errout)
		}
	}
	want(t, "schema in the document", at(t, e.Newer, "sessions", "--json").doc(t)["schema"], 24.0)
}

// S16, issue 2 item 5: rows of agents that are on disk but not in the configuration are counted.
func TestStrangersAreCounted(t *testing.T) {
	e := made[fixtures.Eras](t)(fixtures.S16(t.TempDir(), fixtures.Now))
	a := at(t, e.Unlisted, "sessions", "--json")
	want(t, "rows of ghost", dig(a.doc(t), "unconfiguredAgents", 0, "count"), 1.0)
	if !strings.Contains(a.errout, "1 session") {
		t.Errorf("standard error: %q", a.errout)
	}
}

// Design: a document that answers in part has errors[].
func TestAPartialAnswerHasErrors(t *testing.T) {
	state := t.TempDir()
	twoAgents(t, state, fixtures.FileEra)
	path := fixtures.Store(state, "main")
	write(t, path, "[]")
	for _, args := range [][]string{{"status"}, {"agents", "list"}, {}, {"sessions", "show", "agent:work:main"}} {
		doc := at(t, state, append(args, "--json")...).doc(t)
		want(t, strings.Join(args, " ")+": errors", dig(doc, "errors", 0, "path"), path)
	}
}

// A partial answer is exit 1: the database, which is what OpenClaw reads, is damaged, and only the file era is shown.
func TestADamagedDatabaseBesideAStore(t *testing.T) {
	e := made[fixtures.Eras](t)(fixtures.S16(t.TempDir(), fixtures.Now))
	if err := os.Truncate(fixtures.Database(e.Both, "main"), 40_000); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"sessions"}, {"status"}, {"agents", "list"}, {}} {
		want(t, "exit of "+strings.Join(args, " "), at(t, e.Both, args...).exit, ExitFailed)
	}
}

// Bad input: a store that is empty is damaged at byte 0, a database too.
func TestAnEmptyDatabaseIsDamaged(t *testing.T) {
	state := t.TempDir()
	twoAgents(t, state, fixtures.SQLiteEra)
	path := fixtures.Database(state, "main")
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	a := at(t, state, "sessions")
	want(t, "exit", a.exit, ExitFailed)
	if !strings.Contains(a.errout, path) {
		t.Errorf("standard error: %q\n%s", a.errout, a.out)
	}
}

// X1, stable codes: a damaged store has one code in both eras.
func TestTheCodeOfADamagedDatabase(t *testing.T) {
	state := t.TempDir()
	twoAgents(t, state, fixtures.SQLiteEra)
	path := fixtures.Database(state, "main")
	if err := os.Truncate(path, 40_000); err != nil {
		t.Fatal(err)
	}
	doc := at(t, state, "sessions", "--json").doc(t)
	want(t, "code", dig(doc, "error", "code"), "damaged")
	want(t, "path", dig(doc, "error", "details", "path"), path)
}

// S17: quarantined data is labelled.
func TestQuarantineIsTold(t *testing.T) {
	r := made[fixtures.ReadOnly](t)(fixtures.S17(t.TempDir(), fixtures.Now))
	t.Cleanup(func() { fixtures.Unseal(r.Sealed) }) //nolint:errcheck // it is removed next
	for _, args := range [][]string{{"sessions"}, {"agents", "list"}, {"status"}, {"sessions", "show", r.Keys[0]}} {
		a := at(t, r.Quarantined, args...)
		if said := strings.ReplaceAll(a.out+a.errout, r.Quarantined, ""); !strings.Contains(said, "quarantine") {
			t.Errorf("oc %v does not say that the database is quarantined", args)
		}
	}
}

// S15: the empty key is a key.
func TestTheEmptyKeyIsAKey(t *testing.T) {
	dir := t.TempDir()
	made[fixtures.Aliases](t)(fixtures.S15(dir, fixtures.Now))
	a := at(t, dir, "sessions", "show", "", "--json")
	want(t, "exit", a.exit, ExitDone)
	want(t, "key", dig(a.doc(t), "session", "key"), "")
}

// A database that may not be read says so, and does not only fail to open.
func TestAnUnreadableDatabaseIsDenied(t *testing.T) {
	s := newStage(t)
	state := filepath.Join(openDir(t), "state")
	twoAgents(t, state, fixtures.SQLiteEra)
	path := fixtures.Database(state, "main")
	s.give(state)
	if s.root {
		if err := os.Lchown(path, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if a := s.oc(state, "sessions"); !strings.Contains(a.errout, "permission denied") {
		t.Errorf("standard error: %q", a.errout)
	}
}

// Where the configuration cannot be read, oc does not know which agents are in it.
func TestNoStrangersToABrokenConfiguration(t *testing.T) {
	state := t.TempDir()
	twoAgents(t, state, fixtures.FileEra)
	write(t, filepath.Join(state, "openclaw.json"), `{"agents": {`)
	if a := at(t, state, "sessions"); strings.Contains(a.errout, "not in the configuration") {
		t.Errorf("standard error: %q", a.errout)
	}
}

// A row is a line, also where a cell has characters whose width is in dispute.
func TestARowIsALine(t *testing.T) {
	state := t.TempDir()
	write(t, fixtures.Store(state, "main"), `{"agent:main:main":{"sessionId":"x","updatedAt":1789996400000,"status":"\u0903\u0903","thinkingLevel":"\u0903\u0903"}}`)
	out := at(t, state, "sessions", "--wide").out
	if n := strings.Count(out, "\n"); n != 5 {
		t.Errorf("%d lines for a row:\n%s", n-4, out)
	}
}
