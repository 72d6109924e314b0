package commands

// What scenarios of issue 2 found last.

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"oc/fixtures"
	"oc/store/lock"
)

// Every failure is a line of its own, without escapes: reasons are not joined by a line break that is shown as \n.
func TestJoinedReasons(t *testing.T) {
	state := t.TempDir()
	write(t, filepath.Join(state, "agents"), "no directory")
	if a := at(t, state, "sessions"); strings.Contains(a.errout, `\n`) {
		t.Errorf("standard error: %s", a.errout)
	}
	state = t.TempDir()
	twoAgents(t, state, fixtures.FileEra)
	for _, agent := range []string{"main", "work"} {
		write(t, fixtures.Store(state, agent), "[]")
	}
	a := at(t, state, "sessions", "--all-agents")
	lines := a.lines()
	if len(lines) != 2 || !strings.Contains(lines[0], fixtures.Store(state, "main")) || !strings.Contains(lines[1], fixtures.Store(state, "work")) {
		t.Errorf("want a line a store: %q", a.errout)
	}
}

// The SQLite era knows when a transcript grew as the file era does. A run that wrote ten seconds ago is not "probably dead" because no gateway was found; one that has been quiet says so.
func TestRunningInTheDatabase(t *testing.T) {
	now := lock.Local().Boot().UnixMilli() + 2*fixtures.Day
	row := func(key string, started, last int64) fixtures.Session {
		return fixtures.Session{
			Key: key, Updated: last, Talk: fixtures.Talk(fixtures.IDOf(key), started).User("Go on").Wait(last - started - 8*fixtures.Second).Assistant("Still at it."),
			Entry: fmt.Sprintf(`{"status":"running","startedAt":%[1]d,"sessionStartedAt":%[1]d}`, started),
		}
	}
	dir := t.TempDir()
	if err := (fixtures.State{Now: now, Agents: []fixtures.Agent{{ID: "main", Era: fixtures.SQLiteEra, Sessions: []fixtures.Session{
		row("agent:main:subagent:busy", now-4*fixtures.Minute, now-10*fixtures.Second), row("agent:main:subagent:quiet", now-6*fixtures.Hour, now-5*fixtures.Hour),
	}}}}).Write(dir); err != nil {
		t.Fatal(err)
	}
	doc := ocRun(t, dir, quiet(t, now), "status", "--json", "--state-dir", dir).doc(t)
	for _, r := range doc["running"].([]any) {
		evidence := fmt.Sprint(dig(r, "evidence"))
		switch dig(r, "key") {
		case "agent:main:subagent:busy":
			want(t, "verdict on a run that wrote a moment ago", dig(r, "verdict"), "unknown")
			want(t, "growth in "+evidence, strings.Contains(evidence, "transcript grew"), true)
		case "agent:main:subagent:quiet":
			want(t, "silence in "+evidence, strings.Contains(evidence, "quiet for "), true)
		}
	}
}

// twoAgents makes a state of two agents: main with two sessions, in either era, and work with one in the file era.
func twoAgents(t *testing.T, dir string, era fixtures.Era) {
	t.Helper()
	row := func(key string, age int64) fixtures.Session {
		talk := fixtures.Talk(fixtures.IDOf(key), fixtures.Now-age).User("Is the side gate closed?").Assistant("Yes, since 21:10.")
		return fixtures.Session{Key: key, Updated: talk.Last(), Talk: talk}
	}
	err := fixtures.State{
		Config: `{"agents":{"list":[{"id":"main","default":true},{"id":"work"}]}}` + "\n",
		Agents: []fixtures.Agent{
			{ID: "main", Era: era, Sessions: []fixtures.Session{row("agent:main:main", fixtures.Hour), row("agent:main:explicit:second", 2*fixtures.Hour)}},
			{ID: "work", Sessions: []fixtures.Session{row("agent:work:main", 3*fixtures.Hour)}},
		},
	}.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
}
