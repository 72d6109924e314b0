//go:build unix

package commands

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oc/commands/term"
	"oc/fixtures"
)

// diagnose runs oc doctor and wants the given exit status; the document, and the text beside it, are sound.
func diagnose(t *testing.T, state string, exit int, args ...string) map[string]any {
	t.Helper()
	env := quiet(t, fixtures.Now)
	before := tree(t, state)
	a := ocRun(t, state, env, append([]string{"doctor", "--state-dir", state}, args...)...)
	if a.exit != exit {
		t.Errorf("oc doctor %v: exit %d, want %d\n%s%s", args, a.exit, exit, a.out, a.errout)
	}
	if c := raw(a.out + a.errout); c != "" {
		t.Errorf("oc doctor %v shows a raw %s", args, c)
	}
	for _, line := range strings.Split(a.out, "\n") {
		// A path that is longer than the line stands in it alone.
		if term.Columns(line) > 80 && len(strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "- "))) > 1 {
			t.Errorf("wider than 80 columns: %q", line)
		}
	}
	b := ocRun(t, state, env, append([]string{"doctor", "--json", "--state-dir", state}, args...)...)
	if b.exit != exit {
		t.Errorf("oc doctor --json %v: exit %d, want %d: %s", args, b.exit, exit, b.errout)
	}
	if now := tree(t, state); now != before {
		t.Fatalf("oc doctor %v changed the tree:\n%s\nbefore:\n%s", args, now, before)
	}
	empty(t, env["TMPDIR"])
	doc := b.doc(t)
	for _, f := range dig(doc, "findings").([]any) {
		for _, key := range []string{"code", "family", "severity", "message", "evidence", "consequence", "fix"} {
			if dig(f, key) == nil {
				t.Errorf("a finding without %s: %v", key, f)
			}
		}
	}
	return doc
}

// codesOf are the codes of a document with their numbers.
func codesOf(doc map[string]any) map[string]float64 {
	all := map[string]float64{}
	for code, n := range dig(doc, "codes").(map[string]any) {
		all[code] = n.(float64)
	}
	return all
}

// Issue 7: doctor reads every made state, whole or at the ends, and touches nothing. Notes alone are exit 0.
func TestDoctorTouchesNothing(t *testing.T) {
	dir := t.TempDir()
	demo := filepath.Join(dir, "demo")
	if err := fixtures.Demo().Write(demo); err != nil {
		t.Fatal(err)
	}
	e := made[fixtures.Eras](t)(fixtures.S16(filepath.Join(dir, "16"), fixtures.Now))
	r := made[fixtures.ReadOnly](t)(fixtures.S17(filepath.Join(dir, "17"), fixtures.Now))
	t.Cleanup(func() { fixtures.Unseal(r.Sealed) }) //nolint:errcheck // it is removed next
	a := filepath.Join(dir, "15")
	made[fixtures.Aliases](t)(fixtures.S15(a, fixtures.Now))
	for _, s := range []string{demo, a, e.Files, e.SQLite, e.Both, e.Imported, e.Newer, e.Unlisted, r.Log, r.LogAlone, r.Rollback, r.BadIndex, r.Quarantined} {
		if err := os.Chmod(s, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		state string
		exit  int
		deep  int // with --deep
	}{
		{demo, ExitFindings, ExitFindings},
		{a, ExitFindings, ExitFindings},
		{e.Files, 0, 0},
		{e.SQLite, 0, 0},
		{e.Both, ExitFindings, ExitFindings},
		{e.Imported, 0, 0},
		{e.Newer, ExitFindings, ExitFindings},
		{e.Unlisted, 0, 0},
		{r.Log, 0, 0},
		{r.LogAlone, 0, 0},
		{r.Sealed, ExitFindings, ExitFindings}, // its modes let others read
		{r.Rollback, 0, 0},
		{r.BadIndex, 0, ExitFindings},
		{r.Quarantined, ExitFindings, ExitFindings},
	} {
		t.Run(filepath.Base(c.state), func(t *testing.T) {
			diagnose(t, c.state, c.exit)
			diagnose(t, c.state, c.deep, "--deep")
		})
	}
}

// A state that is not there has nothing wrong with it, and is not made.
func TestDoctorOfNothing(t *testing.T) {
	dir := t.TempDir()
	a := ocRun(t, dir, quiet(t, fixtures.Now), "doctor", "--state-dir", filepath.Join(dir, "nowhere"))
	want(t, "exit", a.exit, ExitDone)
	if !strings.Contains(a.out, "Nothing is wrong") {
		t.Errorf("%s", a.out)
	}
	empty(t, dir)
}

func TestDoctorUsage(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"--only", "lock-dear"}, {"--only", ""}, {"--agent", "nobody"}, {"--agent", "main", "--all-agents"}, {"--store", "x", "--agent", "main"}} {
		if a := at(t, dir, append([]string{"doctor"}, args...)...); a.exit != ExitUsage {
			t.Errorf("oc doctor %v: exit %d: %s", args, a.exit, a.errout)
		}
	}
	a := at(t, dir, "doctor", "--list")
	want(t, "exit of --list", a.exit, ExitDone)
	doc := at(t, dir, "doctor", "--list", "--json").doc(t)
	checks := dig(doc, "checks").([]any)
	if len(checks) < 80 {
		t.Errorf("only %d checks", len(checks))
	}
	for _, c := range checks {
		if code := dig(c, "code").(string); !strings.Contains(a.out, code+" ") {
			t.Errorf("%s is not in the list", code)
		}
	}
	for _, line := range strings.Split(a.out, "\n") {
		if term.Columns(line) > 80 {
			t.Errorf("wider than 80 columns: %q", line)
		}
	}
}

// S5 and S11 of the field reports, #54877: doctor, and a cleanup that is to fix what is missing, count the same.
func TestDoctorCountsAsCleanup(t *testing.T) {
	state := t.TempDir()
	store := fixtures.Store(state, "main")
	dir := filepath.Dir(store)
	talk := func(id string) string {
		return fixtures.Talk(id, fixtures.Now-2*fixtures.Day).User("Hello").Assistant("Hello!").String()
	}
	put(t, filepath.Join(dir, "ok.jsonl"), talk("ok"))
	put(t, filepath.Join(dir, fixtures.IDOf("b")+".jsonl"), talk(fixtures.IDOf("b")))
	put(t, store, `{"agent:main:main": {"sessionId": "ok", "updatedAt": 1789900000000},
		"agent:main:explicit:b": {"sessionId": "`+fixtures.IDOf("b")+`", "sessionFile": "`+fixtures.IDOf("c")+`.jsonl", "updatedAt": 1789900000000},
		"agent:main:explicit:gone": {"sessionId": "gone", "updatedAt": 1789900000000}}`)
	for _, name := range []string{"ok", fixtures.IDOf("b")} {
		if err := os.Chtimes(filepath.Join(dir, name+".jsonl"), fixturesTime(2*fixtures.Day), fixturesTime(2*fixtures.Day)); err != nil {
			t.Fatal(err)
		}
	}
	codes := codesOf(diagnose(t, state, ExitFindings))
	plan := at(t, state, "sessions", "cleanup", "--dry-run", "--fix-missing", "--json").doc(t)
	want(t, "missing", dig(plan, "missing"), codes["transcript-missing"])
	want(t, "repaired", dig(plan, "repaired"), codes["transcript-misplaced"])
	want(t, "transcript-missing", any(codes["transcript-missing"]), 1.0)
	want(t, "transcript-misplaced", any(codes["transcript-misplaced"]), 1.0)
}

// Bad input: as a user whom modes stop, over a tree that cannot be written, a directory and a transcript that cannot be read.
func TestDoctorAsAnotherUser(t *testing.T) {
	s := newStage(t)
	dir := openDir(t)
	sealed := filepath.Join(dir, "sealed")
	made[fixtures.Unlinked](t)(fixtures.S2(sealed, fixtures.Now))
	s.give(sealed)
	seal(t, sealed)
	before := tree(t, sealed)
	a := s.oc(sealed, "doctor", "--deep", "--json")
	codes := codesOf(a.doc(t))
	want(t, "unlinked transcripts in a sealed tree", any(codes["unlinked-history"]), 2.0)
	if now := tree(t, sealed); now != before {
		t.Errorf("the sealed tree was changed:\n%s\nbefore:\n%s", now, before)
	}

	state := filepath.Join(dir, "state")
	u := made[fixtures.Unlinked](t)(fixtures.S2(state, fixtures.Now))
	put(t, filepath.Join(state, "agents/closed/sessions/sessions.json"), "{}")
	s.give(state)
	for path, mode := range map[string]os.FileMode{"agents/closed": 0o000, "agents/main/sessions/" + u.History: 0o000} {
		if err := os.Chmod(filepath.Join(state, path), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { os.Chmod(filepath.Join(state, "agents/closed"), 0o700) }) //nolint:errcheck // for its removal
	a = s.oc(state, "doctor", "--json")
	want(t, "exit", a.exit, ExitFindings)
	doc := a.doc(t)
	codes = codesOf(doc)
	for code, n := range map[string]float64{"agent-unreadable": 1, "transcript-unreadable": 1, "unlinked-history": 1, "unlinked-empty": 1} {
		if codes[code] != n {
			t.Errorf("%s: %g, want %g; there are %v", code, codes[code], n, codes)
		}
	}
	if !slices.ContainsFunc(dig(doc, "findings").([]any), func(f any) bool {
		return dig(f, "code") == "transcript-unreadable" && filepath.Base(dig(f, "file").(string)) == u.History
	}) {
		t.Error("the transcript that cannot be read is not named")
	}
}
