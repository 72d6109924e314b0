package commands

// What oc says where a state, a log or a command line is not as it should be: true, short, and to be seen.

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"oc/fixtures"
)

// Messages repeat what was typed, not all of it.
func TestLongWordsAreCutInMessages(t *testing.T) {
	state := t.TempDir()
	twoAgents(t, state, fixtures.FileEra)
	long := strings.Repeat("x", 100_000)
	for _, args := range [][]string{
		{"sessions", "--limit", long},
		{"sessions", "--" + long},
		{"sessions", "--json=" + long},
		{long},
		{"sessions", "list", long},
		{"completion", long},
		{"sessions", "show", long},
		{"sessions", "trace", long},
		{"awareness", "record", "agent:main:main", "--kind", "goal_changed", "--summary", long},
		{"awareness", "record", long, "--kind", "goal_changed", "--summary", "s"},
	} {
		a := at(t, state, args...)
		if a.exit == ExitDone || len(a.errout) > 1000 || !strings.Contains(a.errout, "xxx...xxx") && !strings.Contains(a.errout, "awareness data") {
			t.Errorf("%.60s: exit %d, %d bytes on standard error: %.300s", strings.Join(args, " "), a.exit, len(a.errout), a.errout)
		}
	}
}

// A key of blanks alone is seen, in every place that lists keys.
func TestBlankKeysAreSeen(t *testing.T) {
	state := t.TempDir()
	write(t, fixtures.Store(state, "main"), fmt.Sprintf(`{"": {"sessionId": "e", "updatedAt": %d}, "  ": {"sessionId": "f", "updatedAt": %[1]d, "status": "running"}}`, int64(fixtures.Now)-1000))
	for _, args := range [][]string{{"sessions"}, {"sessions", "--wide"}, {"status"}} {
		a := at(t, state, args...)
		want(t, fmt.Sprintf("%v shows the empty key:\n%s", args, a.out), strings.Contains(a.out, ` ""  `), true)
		want(t, fmt.Sprintf("%v shows the blank key:\n%s", args, a.out), strings.Contains(a.out, ` "  " `), true)
	}
	a := at(t, state, "sessions", "show", "e")
	want(t, "show of the empty key", strings.HasSuffix(lineWith(a.out, "Session "), ` ""`), true)
}

// The totals of a listing go by times that are times.
func TestImpossibleStampsAreNotTheNewest(t *testing.T) {
	state := t.TempDir()
	hour := int64(fixtures.Now) - 3_600_000
	write(t, fixtures.Store(state, "main"), fmt.Sprintf(`{"a": {"sessionId": "a", "updatedAt": 1e308}, "b": {"sessionId": "b", "updatedAt": %d}}`, hour))
	doc := at(t, state, "sessions", "--summary", "--json").doc(t)
	want(t, "newestAt", dig(doc, "total", "newestAt"), any(float64(hour)))
	want(t, "oldestAt", dig(doc, "total", "oldestAt"), any(float64(hour)))
	want(t, "rows", dig(doc, "total", "rows"), any(2.0))
}

// A session that was found by its label shows it, and an earlier transcript says whose it is wherever it lies.
func TestShowNamesLabelAndEarlierTranscripts(t *testing.T) {
	dir := t.TempDir()
	if err := fixtures.Demo().Write(dir); err != nil {
		t.Fatal(err)
	}
	a := at(t, dir, "sessions", "show", "Invoice audit", "--agent", "work")
	want(t, "label", strings.HasSuffix(lineWith(a.out, "Label "), "  Invoice audit"), true)
	a = at(t, dir, "sessions", "show", "main")
	want(t, "earlier transcript: "+a.out, strings.Contains(lineWith(a.out, "earlier "), "515372e0-") && strings.Contains(lineWith(a.out, "earlier "), "in the database"), true)
}

// A variable that is missing where the configuration says which agents there are is told, as it is for stores.
func TestMissingVariableInAgents(t *testing.T) {
	for name, config := range map[string]string{
		"agents.list[0].id":            `{"agents": {"list": [{"id": "${NOPE}"}]}}`,
		"agents.list[0].agentDir":      `{"agents": {"list": [{"id": "main", "agentDir": "${NOPE}/x"}]}}`,
		"agents.entries.main.agentDir": `{"agents": {"entries": {"main": {"agentDir": "${NOPE}/x"}}}}`,
	} {
		state := t.TempDir()
		write(t, filepath.Join(state, "openclaw.json"), config)
		a := at(t, state, "agents", "list")
		want(t, name+" in "+a.errout, strings.Contains(a.errout, name+": the environment has no NOPE"), true)
	}
}

// A directory that awareness init made is not called OpenClaw's.
func TestInitTwice(t *testing.T) {
	dir := t.TempDir()
	if a := at(t, dir, "awareness", "init"); a.exit != ExitDone {
		t.Fatalf("init: exit %d: %s", a.exit, a.errout)
	}
	before := tree(t, dir)
	a := at(t, dir, "awareness", "init")
	want(t, "exit", a.exit, ExitRefused)
	want(t, "what is said: "+a.errout, strings.Contains(a.errout, "there is one that oc made") && !strings.Contains(a.errout, "OpenClaw's place"), true)
	want(t, "tree", tree(t, dir), before)
	// What merely lies where a log would is somebody else's still.
	other := t.TempDir()
	put(t, filepath.Join(other, "state", "openclaw.sqlite"), "")
	a = at(t, other, "awareness", "init")
	want(t, "a file of another's: "+a.errout, a.exit == ExitRefused && strings.Contains(a.errout, "OpenClaw's place"), true)
}

// A key of one agent, asked for with --agent of another, is not called unknown to the stores.
func TestKeyOfAnotherAgent(t *testing.T) {
	state := s19(t)
	a := at(t, state, "status", "--session", targetT, "--agent", "work", "--changes-since", "0")
	want(t, "exit", a.exit, ExitDone)
	want(t, "what is said: "+a.out, strings.Contains(a.out, "the key names agent main") && strings.Contains(strings.Join(strings.Fields(a.out), " "), "leave --agent out") && !strings.Contains(a.out, "neither a store"), true)
}

// Events beyond the head of their session are damage: they are told, and not again and again.
func TestEventsBeyondTheHead(t *testing.T) {
	state, database := signalState(t, eventSQL(3, targetT, "main", "goal_changed", ""), headSQL(targetT, "main", 3, 0), eventSQL(9, targetT, "main", "goal_changed", ""))
	for _, since := range []int64{0, 5} {
		for _, args := range [][]string{{"status", "--session", targetT}, {"status", "--all-sessions"}} {
			doc := at(t, state, append(args, "--changes-since", fmt.Sprint(since), "--json")...).doc(t)
			want(t, fmt.Sprintf("%v after %d: next", args, since), dig(doc, "next", "changesSince"), any(9.0))
		}
	}
	// And a time that is none is unknown, not in 100 million days.
	sqlExec(t, database, "UPDATE session_state_events SET occurred_at = 9000000000000000000 WHERE sequence = 9")
	a := at(t, state, "awareness", "log")
	want(t, "age in "+a.out, strings.Contains(lineWith(a.out, "  9 "), "unknown"), true)
}

// What an event has beside its summary is shown, once.
func TestPayloadIsShown(t *testing.T) {
	state, _ := signalState(t,
		`INSERT INTO session_state_events VALUES (1, NULL, 'agent:main:main', NULL, 'main', 'run_failed', 'system', NULL, NULL, 1789999000000, 'tests', '{"outcome":"timeout"}')`,
		`INSERT INTO session_state_events VALUES (2, NULL, 'agent:main:main', NULL, 'main', 'run_failed', 'system', NULL, NULL, 1789999000000, 'run ended: error', '{"outcome":"error"}')`,
		`INSERT INTO session_state_events VALUES (3, NULL, 'agent:main:main', NULL, 'main', 'human_direct_message', 'human', NULL, NULL, 1789999000000, 'message', '{"channel":"acp","turns":3}')`,
		headSQL("agent:main:main", "main", 3, 0),
	)
	for _, args := range [][]string{{"awareness", "log"}, {"status", "--session", "agent:main:main", "--changes-since", "0"}} {
		out := at(t, state, args...).out
		for _, line := range []string{"tests (timeout)", "run ended: error", "message (acp, 3 turns)"} {
			want(t, fmt.Sprintf("%v has %q:\n%s", args, line, out), strings.Contains(out, line), true)
		}
		want(t, "said twice", strings.Contains(out, "(error)"), false)
	}
}

// One key of any length does not make every line of a wide listing as long.
func TestWideListingOfOneLongKey(t *testing.T) {
	state := t.TempDir()
	var b strings.Builder
	long := strings.Repeat("k", 50_000)
	fmt.Fprintf(&b, `{"agent:main:%s": {"sessionId": "long", "updatedAt": %d}`, long, int64(fixtures.Now))
	for i := range 1000 {
		fmt.Fprintf(&b, `, "agent:main:s%d": {"sessionId": "s%[1]d", "updatedAt": %d}`, i, int64(fixtures.Now)-1000)
	}
	write(t, fixtures.Store(state, "main"), b.String()+"}")
	for _, limit := range []string{"50", "all"} { // drawn, and streamed
		a := at(t, state, "sessions", "--wide", "--limit", limit)
		want(t, "the long key is whole", strings.Contains(a.out, long), true)
		if most := 50_000 + 1100*400; len(a.out) > most {
			t.Errorf("--limit %s: %d bytes, want at most %d", limit, len(a.out), most)
		}
	}
}
