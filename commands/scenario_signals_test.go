package commands

import (
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"oc/awareness"
	"oc/fixtures"
)

const (
	signalsNow = 1_790_000_000_000
	targetT    = "agent:main:subagent:t"
	targetU    = "agent:main:subagent:u"
)

// signalState is a state of two agents, W1 to W3 and T among their sessions, with a signal log that statements fill.
func signalState(t *testing.T, statements ...string) (state, database string) {
	t.Helper()
	state = filepath.Join(t.TempDir(), "state")
	for name, text := range map[string]string{
		"openclaw.json": `{"agents": {"list": [{"id": "main"}, {"id": "work"}]}}`,
		"agents/main/sessions/sessions.json": `{"agent:main:main": {"sessionId": "m", "updatedAt": 1789999000000, "model": "gpt-5.2", "totalTokens": 100},
			"agent:main:w1": {"sessionId": "w1", "updatedAt": 1}, "agent:main:w2": {"sessionId": "w2", "updatedAt": 2}, "agent:main:w3": {"sessionId": "w3", "updatedAt": 3},
			"agent:main:subagent:t": {"sessionId": "t", "updatedAt": 1789999900000, "label": "the target", "spawnedBy": "agent:main:main", "status": "running", "startedAt": 1789999800000}}`,
		"agents/work/sessions/sessions.json": `{"agent:work:main": {"sessionId": "x", "updatedAt": 4}}`,
	} {
		put(t, filepath.Join(state, name), text)
	}
	aside := t.TempDir()
	made, err := awareness.Init(context.Background(), aside, nil, signalsNow)
	if err != nil {
		t.Fatal(err)
	}
	database = awareness.Path(state)
	if err := os.Rename(filepath.Dir(made), filepath.Dir(database)); err != nil {
		t.Fatal(err)
	}
	sqlExec(t, database, append([]string{"UPDATE schema_meta SET app_version = '2026.8.2'"}, statements...)...)
	return state, database
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func sqlExec(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func eventSQL(sequence int64, key, agent, kind, actorID string) string {
	actor := "NULL"
	if actorID != "" {
		actor = "'" + actorID + "'"
	}
	return fmt.Sprintf(`INSERT INTO session_state_events VALUES (%d, NULL, '%s', NULL, '%s', '%s', 'agent', %s, NULL, %d, 'what happened', NULL)`,
		sequence, key, agent, kind, actor, int64(signalsNow)-60_000+sequence)
}

func headSQL(key, agent string, last, pruned int64) string {
	return fmt.Sprintf(`INSERT INTO session_state_heads VALUES ('%s', '%s', %d, %d, %d)`, key, agent, last, pruned, int64(signalsNow)-1000)
}

func cursorSQL(watcher, target string, seen, notified, material int64) string {
	return fmt.Sprintf(`INSERT INTO session_watch_cursors VALUES ('%s', '%s', %d, %d, %d, 'explicit', %d)`, watcher, target, seen, notified, material, int64(signalsNow)-1000)
}

// s19 is the log of S19.
func s19(t *testing.T) (state string) {
	statements := []string{
		eventSQL(10, targetT, "main", "child_spawned", "agent:main:main"), eventSQL(12, targetT, "main", "human_direct_message", ""),
		eventSQL(14, targetT, "main", "human_direct_message", ""), eventSQL(15, targetT, "main", "run_completed", ""), eventSQL(19, targetT, "main", "goal_changed", "agent:main:w3"),
		headSQL(targetT, "main", 19, 9),
		cursorSQL("agent:main:w1", targetT, 12, 14, 19), cursorSQL("agent:main:w2", targetT, 5, 14, 19), cursorSQL("agent:main:w3", targetT, 14, 14, 14),
		cursorSQL("agent:main:w4", targetT, 10, 10, 10), cursorSQL("global", targetT, 12, 14, 19),
		eventSQL(20, "global", "main", "goal_changed", ""), eventSQL(21, "global", "work", "moon_phase", ""), headSQL("global", "main", 20, 0), headSQL("global", "work", 21, 0),
		headSQL("agent:main:silent", "main", 3, 3), cursorSQL("agent:main:w1", "global", 0, 20, 20),
		headSQL(targetU, "main", 1449, 0),
	}
	for i := range int64(450) {
		statements = append(statements, eventSQL(1000+i, targetU, "main", "compacted", ""))
	}
	state, _ = signalState(t, statements...)
	return state
}

// S19: reconcile the signal log.
func TestReconcile(t *testing.T) {
	state := s19(t)
	before := tree(t, state)
	env := quiet(t, signalsNow)
	ask := func(args ...string) map[string]any {
		t.Helper()
		a := ocRun(t, state, env, append([]string{"status", "--json", "--state-dir", state}, args...)...)
		want(t, fmt.Sprint("exit of ", args), a.exit, ExitDone)
		return a.doc(t)
	}
	since := func(n string) map[string]any { t.Helper(); return ask("--session", targetT, "--changes-since", n) }
	sequences := func(doc map[string]any) (all []float64) {
		for _, e := range dig(doc, "stateChanges", "events").([]any) {
			all = append(all, dig(e, "sequence").(float64))
		}
		return all
	}

	doc := since("12")
	want(t, "since 12", fmt.Sprint(sequences(doc)), "[14 15 19]")
	want(t, "log only", fmt.Sprint(doc["logOnly"]), "[15]")
	want(t, "version", doc["stateVersion"], 19.0)
	want(t, "gap", dig(doc, "stateChanges", "historyGap"), false)
	want(t, "do", dig(doc, "next", "do"), "reconcile")
	want(t, "status", dig(doc, "session", "status"), "running")
	want(t, "started", dig(doc, "session", "run", "startedAt"), 1789999800000.0)
	if dig(doc, "session", "run", "verdict") == nil || dig(doc, "session", "model") == nil {
		t.Errorf("the session's own status: %v", doc["session"])
	}

	doc = since("5")
	want(t, "gap", dig(doc, "stateChanges", "historyGap"), true)
	want(t, "do", dig(doc, "next", "do"), "refresh")
	if a := ocRun(t, state, env, "status", "--session", targetT, "--changes-since", "5", "--state-dir", state); !strings.Contains(a.out, "history gap: refresh the whole session") {
		t.Error(a.out)
	}
	want(t, "exactly the watermark", dig(since("9"), "stateChanges", "historyGap"), false)
	doc = since("19")
	want(t, "since 19", len(sequences(doc)), 0)
	want(t, "do", dig(doc, "next", "do"), "nothing-changed")
	doc = since("25")
	want(t, "ahead", doc["aheadOfHead"], true)
	want(t, "do", dig(doc, "next", "do"), "ahead-of-head")

	// The label, the id and another form of the key mean the same session.
	for _, word := range []string{"the target", "t", "subagent:t", "AGENT:main:subagent:t"} {
		want(t, word, ask("--session", word, "--changes-since", "0")["sessionKey"], targetT)
	}

	// At most 200, the oldest, and where to go on.
	after, n := "0", 0
	for {
		doc := ask("--session", targetU, "--changes-since", after)
		n += len(sequences(doc))
		after = fmt.Sprintf("%.0f", dig(doc, "next", "changesSince"))
		if dig(doc, "stateChanges", "truncated") == false {
			break
		}
		want(t, "a page", len(sequences(doc)), 200)
	}
	want(t, "paged", n, 450)
	if doc := ask("--session", targetU, "--changes-since", "0"); doc["session"] != nil {
		t.Errorf("no store has U: %v", doc["session"])
	}

	// A bare key is of several agents: whose must be said.
	a := ocRun(t, state, env, "status", "--session", "global", "--changes-since", "0", "--state-dir", state)
	want(t, "exit", a.exit, ExitUsage)
	if !strings.Contains(a.errout, "main, work") {
		t.Error(a.errout)
	}
	doc = ask("--session", "global", "--agent", "work", "--changes-since", "0")
	want(t, "an unknown kind", dig(doc, "stateChanges", "events", 0, "kind"), "moon_phase")
	want(t, "an agent that is nowhere", ask("--session", "global", "--agent", "ghost", "--changes-since", "0")["agentId"], "ghost")
	doc = ask("--session", "agent:main:silent", "--changes-since", "3")
	want(t, "a head without events", dig(doc, "stateChanges", "earliestAvailableSequence"), 4.0)

	// The whole log.
	doc = ask("--all-sessions", "--changes-since", "19")
	want(t, "sessions", doc["count"], 3.0)
	want(t, "last", doc["stateVersion"], 1449.0)
	want(t, "all of U", len(dig(doc, "sessions", 0, "stateChanges", "events").([]any)), 450)

	// Watches: W3 has nothing pending, W4 is gone, global is nobody in particular, and so is the target global.
	a = ocRun(t, state, env, "awareness", "watches", "--json", "--state-dir", state)
	watches := map[string]string{}
	for _, w := range a.doc(t)["watches"].([]any) {
		watches[fmt.Sprint(dig(w, "watcher"), " ", dig(w, "target"))] = fmt.Sprint(dig(w, "state"), " ", dig(w, "behind"), " ", dig(w, "findings"))
	}
	for key, says := range map[string]string{
		"agent:main:w1 " + targetT: "pending 2 []", "agent:main:w2 " + targetT: "pending 3 []", "agent:main:w3 " + targetT: "idle 0 []",
		"agent:main:w4 " + targetT: "dormant 0 [watcher-gone]", "global " + targetT: "dormant 2 [ambiguous-watcher watcher-gone]",
		"agent:main:w1 global": "pending 1 [ambiguous-target target-gone]",
	} {
		want(t, key, watches[key], says)
	}
	if tree(t, state) != before {
		t.Error("looking changed the tree")
	}
}

// Every command that reads, over a log as OpenClaw keeps it: with a write-ahead log that holds all of it, and without.
func TestReadingSignalsTouchesNothing(t *testing.T) {
	plain := s19(t)
	logged, database := signalState(t)
	db, err := sql.Open("sqlite", database+"?_pragma=journal_mode(wal)&_pragma=wal_autocheckpoint(0)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range []string{eventSQL(14, targetT, "main", "human_direct_message", ""), headSQL(targetT, "main", 14, 0), cursorSQL("agent:main:main", targetT, 0, 14, 14)} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	// oc is a process of its own here: in one process SQLite shares what the writer has mapped. What a crash leaves: a log, and nobody who has it open.
	crashed := filepath.Join(t.TempDir(), "state")
	if err := os.CopyFS(crashed, os.DirFS(logged)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(awareness.Path(crashed) + "-shm"); err != nil {
		t.Fatal(err)
	}
	for name, state := range map[string]string{"rollback": plain, "beside a writer": logged, "after a crash": crashed} {
		t.Run(name, func(t *testing.T) {
			env := quiet(t, signalsNow)
			before := tree(t, state)
			for _, args := range [][]string{
				{"status"},
				{"status", "--session", targetT, "--changes-since", "0"},
				{"status", "--session", "main"},
				{"status", "--changes-since", "0", "--wait", "1ms"},
				{"status", "--all-sessions", "--changes-since", "0"},
				{"awareness", "log", "--limit", "all"},
				{"awareness", "log", "--session", targetT},
				{"awareness", "watches"},
				{"awareness", "notices", "agent:main:main"},
				{"awareness", "stats"},
				{"awareness", "prune", "--dry-run"},
				{"awareness", "upstream"},
			} {
				for _, also := range [][]string{nil, {"--json"}} {
					a := ocProcess(t, env, append(append(args[:len(args):len(args)], also...), "--state-dir", state)...)
					if a.exit != ExitDone && (a.exit != ExitNothing || args[2] != "0" && args[1] != "--changes-since") {
						t.Errorf("oc %v: exit %d: %s", args, a.exit, a.errout)
					}
					if now := tree(t, state); now != before {
						t.Fatalf("oc %v changed the tree:\n%s\nbefore:\n%s", args, now, before)
					}
					if also != nil {
						a.doc(t)
					} else if c := raw(a.out + a.errout); c != "" {
						t.Errorf("oc %v shows a raw %s", args, c)
					}
				}
			}
			a := ocProcess(t, env, "status", "--session", targetT, "--changes-since", "13", "--json", "--state-dir", state)
			want(t, "the first event", dig(a.doc(t), "stateChanges", "events", 0, "sequence"), 14.0)
			empty(t, env["TMPDIR"])
		})
	}
}

// What the real code answered for each database of awareness/testdata, by the command line.
func TestRecordedChanges(t *testing.T) {
	paths, err := filepath.Glob("../awareness/testdata/golden/*.json.gz")
	if err != nil || len(paths) < 10 {
		t.Fatal(len(paths), err)
	}
	asked := 0
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json.gz")
		database, err := os.Open("../awareness/testdata/golden/" + name + ".sqlite.gz")
		if err != nil {
			continue // a trace
		}
		t.Run(name, func(t *testing.T) {
			defer database.Close()
			state := filepath.Join(t.TempDir(), "state")
			put(t, filepath.Join(state, "openclaw.json"), `{}`)
			put(t, awareness.Path(state), string(gunzip(t, database)))
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var recorded struct {
				Results []struct {
					SessionKey, AgentID string
					ChangesSince        any
					StateVersion        float64
					Result              map[string]any
				}
			}
			if err := json.Unmarshal(gunzip(t, f), &recorded); err != nil {
				t.Fatal(err)
			}
			env := quiet(t, signalsNow)
			before := tree(t, state)
			for _, r := range recorded.Results {
				n, whole := r.ChangesSince.(float64)
				if key := r.SessionKey; !whole || n != float64(int64(n)) || key == "" || key != strings.ToLower(key) {
					continue
				}
				a := ocRun(t, state, env, "status", "--session", r.SessionKey, "--agent", r.AgentID, fmt.Sprintf("--changes-since=%d", int64(n)), "--json", "--state-dir", state)
				if n < 0 || n > maxSafe {
					want(t, fmt.Sprint("since ", n), a.exit, ExitUsage)
					continue
				}
				asked++
				doc := a.doc(t)
				want(t, "version", doc["stateVersion"], r.StateVersion)
				for _, name := range []string{"truncated", "historyGap", "earliestAvailableSequence"} {
					if r.Result[name] != nil && dig(doc, "stateChanges", name) != r.Result[name] {
						t.Errorf("%s since %v: %s: got %v, want %v", r.SessionKey, n, name, dig(doc, "stateChanges", name), r.Result[name])
					}
				}
				events, _ := r.Result["events"].([]any)
				for i, e := range events {
					for _, name := range []string{"sequence", "kind", "actorType", "actorId", "runId", "occurredAt", "summary"} {
						if got := dig(doc, "stateChanges", "events", i, name); dig(e, name) != got {
							t.Errorf("%s since %v, event %d: %s: got %v, want %v", r.SessionKey, n, i, name, got, dig(e, name))
						}
					}
				}
			}
			if tree(t, state) != before {
				t.Error("looking changed the tree")
			}
		})
	}
	if asked < 50 {
		t.Errorf("only %d answers were compared", asked)
	}
}

func gunzip(t *testing.T, r io.Reader) []byte {
	t.Helper()
	z, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Two processes record at once: no event is lost, no version given twice.
func TestRecordTogether(t *testing.T) {
	state, _ := signalState(t, cursorSQL("agent:main:main", targetT, 0, 0, 0))
	const each = 12
	var wg sync.WaitGroup
	versions := make(chan string, 2*each)
	for _, who := range []string{"agent:main:w1", "agent:main:w2"} {
		env := quiet(t, signalsNow)
		wg.Go(func() {
			for i := range each {
				a := ocProcess(t, env, "awareness", "record", targetT, "--kind", "goal_changed", "--actor", "agent", "--actor-id", who, "--summary", fmt.Sprint("change ", i), "--state-dir", state)
				if a.exit != ExitDone {
					t.Errorf("exit %d: %s", a.exit, a.errout)
				}
				line, _, _ := strings.Cut(a.out, "\n")
				versions <- line
			}
		})
	}
	wg.Wait()
	close(versions)
	given := map[string]bool{}
	for v := range versions {
		given[v] = true
	}
	want(t, "versions", len(given), 2*each)
	a := ocRun(t, state, quiet(t, signalsNow), "status", "--session", targetT, "--changes-since", "0", "--json", "--state-dir", state)
	want(t, "events", len(dig(a.doc(t), "stateChanges", "events").([]any)), 2*each)
}

// --wait returns when another process records, not before, and soon.
func TestWaitForAnEvent(t *testing.T) {
	state, _ := signalState(t)
	done := make(chan answer)
	begun := time.Now()
	go func() {
		done <- ocRun(t, state, quiet(t, signalsNow), "status", "--session", targetT, "--changes-since", "0", "--wait", "20s", "--json", "--state-dir", state)
	}()
	select {
	case a := <-done:
		t.Fatalf("it did not wait: exit %d: %s", a.exit, a.errout)
	case <-time.After(500 * time.Millisecond):
	}
	a := ocProcess(t, quiet(t, signalsNow), "awareness", "record", targetT, "--kind", "goal_changed", "--summary", "goal created", "--state-dir", state)
	want(t, "exit", a.exit, ExitDone)
	a = <-done
	want(t, "exit", a.exit, ExitDone)
	want(t, "event", dig(a.doc(t), "stateChanges", "events", 0, "kind"), "goal_changed")
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

// Beside what may be a gateway one event, one watch and one acknowledgement are written; what the gateway itself does is refused.
func TestSignalsBesideAGateway(t *testing.T) {
	state, database := signalState(t, eventSQL(14, targetT, "main", "human_direct_message", ""), headSQL(targetT, "main", 14, 0), cursorSQL("agent:main:main", targetT, 0, 14, 14))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	env := quiet(t, signalsNow)
	_, env["OPENCLAW_GATEWAY_PORT"], _ = net.SplitHostPort(listener.Addr().String())
	before, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"sweep"}, {"prune"}, {"upstream", "scan"}} {
		a := ocRun(t, state, env, append([]string{"awareness", "--state-dir", state}, args...)...)
		want(t, fmt.Sprint("exit of ", args), a.exit, ExitRefused)
		if !strings.Contains(a.errout, "the gateway does this by itself") {
			t.Error(a.errout)
		}
	}
	if now, err := os.ReadFile(database); err != nil || string(now) != string(before) {
		t.Error("a refusal changed the database", err)
	}
	for _, args := range [][]string{
		{"record", targetT, "--kind", "goal_changed", "--summary", "goal created"},
		{"watch", "agent:main:w1", targetT},
		{"notices", "agent:main:main", "--ack"},
	} {
		a := ocRun(t, state, env, append([]string{"awareness", "--state-dir", state}, args...)...)
		want(t, fmt.Sprint("exit of ", args), a.exit, ExitDone)
		if args[0] == "notices" && !strings.Contains(a.errout, "may still be delivered") {
			t.Errorf("it does not say that the queue is the gateway's: %s", a.errout)
		}
	}
}

// untimed is a tree without the time of the directory of the database: who would write has SQLite make its side files there, and remove
// them, before what is in the database is known.
func untimed(tree string) string {
	return regexp.MustCompile(`(?m)^state (d\S+) \d+`).ReplaceAllString(tree, "state $1")
}

// What cannot be changed is refused, what can only be read is read with a label, and what cannot be read is said.
func TestSignalsInOddDatabases(t *testing.T) {
	event := []string{eventSQL(14, targetT, "main", "human_direct_message", ""), headSQL(targetT, "main", 14, 0)}
	cases := map[string]struct {
		spoil        func(t *testing.T, state, database string)
		read, change int
		says         string // when reading
	}{
		"newer": {func(t *testing.T, _, db string) { sqlExec(t, db, "PRAGMA user_version = 19") }, ExitDone, ExitRefused, "newer than oc knows"},
		"quarantined": {func(t *testing.T, state, db string) {
			sqlExec(t, filepath.Join(state, "state", "openclaw-quarantine.sqlite"),
				"CREATE TABLE quarantined_databases (path TEXT PRIMARY KEY, kind TEXT, reason TEXT)", "INSERT INTO quarantined_databases VALUES ('"+db+"', 'state', 'integrity check failed')")
		}, ExitDone, ExitRefused, "integrity check failed"},
		"of one agent":  {func(t *testing.T, _, db string) { sqlExec(t, db, "UPDATE schema_meta SET role = 'agent'") }, ExitFailed, ExitRefused, "its role is"},
		"short a table": {func(t *testing.T, _, db string) { sqlExec(t, db, "DROP TABLE session_state_heads") }, ExitFailed, ExitRefused, "session_state_heads is missing"},
		"no database":   {func(t *testing.T, _, db string) { put(t, db, strings.Repeat("this is no database. ", 100)) }, ExitFailed, ExitRefused, "not an SQLite database"},
		"cut": {func(t *testing.T, _, db string) {
			if err := os.Truncate(db, 5000); err != nil {
				t.Fatal(err)
			}
		}, ExitFailed, ExitRefused, "damaged"},
		"empty": {func(t *testing.T, _, db string) { put(t, db, "") }, ExitDone, ExitFailed, "no awareness data"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			state, database := signalState(t, event...)
			c.spoil(t, state, database)
			before := tree(t, state)
			env := quiet(t, signalsNow)
			for _, args := range [][]string{{"status", "--session", targetT, "--changes-since", "0"}, {"awareness", "log"}, {"awareness", "stats"}, {"awareness", "watches"}} {
				a := ocRun(t, state, env, append(args, "--state-dir", state)...)
				if name == "short a table" && args[1] == "log" {
					continue // which needs the events alone
				}
				want(t, fmt.Sprint("exit of ", args), a.exit, c.read)
				if !strings.Contains(a.errout, c.says) {
					t.Errorf("oc %v does not say %q: %s", args, c.says, a.errout)
				}
			}
			for _, args := range [][]string{
				{"record", targetT, "--kind", "goal_changed", "--summary", "goal created"},
				{"watch", "agent:main:w1", targetT},
			} {
				a := ocRun(t, state, env, append([]string{"awareness", "--state-dir", state}, args...)...)
				want(t, fmt.Sprint("exit of ", args), a.exit, c.change)
				if len(a.lines()) != 1 {
					t.Errorf("oc %v: want one line: %s", args, a.errout)
				}
			}
			if now := tree(t, state); untimed(now) != untimed(before) {
				t.Errorf("it was changed:\n%s\nbefore:\n%s", now, before)
			}
		})
	}
	t.Run("the configuration is broken", func(t *testing.T) {
		state, _ := signalState(t, event...)
		put(t, filepath.Join(state, "openclaw.json"), "{")
		a := ocRun(t, state, quiet(t, signalsNow), "status", "--session", targetT, "--changes-since", "0", "--json", "--state-dir", state)
		want(t, "exit", a.exit, ExitDone)
		a = ocRun(t, state, quiet(t, signalsNow), "awareness", "record", targetT, "--kind", "x", "--summary", "x", "--state-dir", state)
		want(t, "exit", a.exit, ExitRefused)
	})
	t.Run("the store is damaged", func(t *testing.T) {
		state, _ := signalState(t, event...)
		put(t, filepath.Join(state, "agents/main/sessions/sessions.json"), "{")
		a := ocRun(t, state, quiet(t, signalsNow), "status", "--session", targetT, "--changes-since", "0", "--json", "--state-dir", state)
		want(t, "exit", a.exit, ExitFailed)
		want(t, "event", dig(a.doc(t), "stateChanges", "events", 0, "sequence"), 14.0)
		if dig(a.doc(t), "errors", 0, "path") == nil {
			t.Error("the document has no errors")
		}
		a = ocRun(t, state, quiet(t, signalsNow), "awareness", "watches", "--json", "--state-dir", state)
		want(t, "exit", a.exit, ExitFailed)
		want(t, "errors", len(a.doc(t)["errors"].([]any)), 1)
	})
}

// A writer that keeps the lock is waited for and named, where the system tells who it is, with a log ahead and with a journal.
func TestSignalsBusy(t *testing.T) {
	for _, mode := range []string{"wal", "delete"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			state, database := signalState(t, "PRAGMA journal_mode="+mode)
			db, err := sql.Open("sqlite", database)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			db.SetMaxOpenConns(1)
			if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			a := ocProcess(t, quiet(t, signalsNow), "awareness", "record", targetT, "--kind", "goal_changed", "--summary", "goal created", "--state-dir", state)
			want(t, "exit", a.exit, ExitBusy)
			if took := time.Since(begun); took < 4*time.Second || took > 15*time.Second {
				t.Errorf("it waited %s", took)
			}
			holder := fmt.Sprintf("process %d holds it", os.Getpid())
			if runtime.GOOS != "linux" {
				holder = "who holds it cannot be seen"
			}
			if !strings.Contains(a.errout, "busy") || !strings.Contains(a.errout, holder) {
				t.Errorf("it does not say busy and %q: %s", holder, a.errout)
			}
		})
	}
}

// An adopted session: its conversation is scanned, and given up after three ticks without it.
func TestUpstream(t *testing.T) {
	source := filepath.Join(t.TempDir(), "conversation.jsonl")
	line := func(text string) string {
		return fmt.Sprintf(`{"type":"user","timestamp":"2026-09-21T14:00:00Z","message":{"role":"user","content":%q}}`+"\n", text)
	}
	put(t, source, line("before"))
	state, database := signalState(t,
		cursorSQL("agent:main:main", targetT, 0, 0, 0),
		fmt.Sprintf(`INSERT INTO session_upstream_links VALUES ('%s', 'main', 'claude', 'local', 'thread', 'claude-cli', '{"filePath":"%s"}', '{"offset":%d}', NULL, 1, 1)`, targetT, source, len(line("before"))),
	)
	// The session is idle, and has sent one message itself.
	put(t, filepath.Join(state, "agents/main/sessions/sessions.json"), `{"agent:main:main": {"sessionId": "m", "updatedAt": 1}, "agent:main:subagent:t": {"sessionId": "t", "updatedAt": 1}}`)
	put(t, filepath.Join(state, "agents/main/sessions/t.jsonl"), `{"type":"session","version":3,"id":"t","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}`+"\n"+
		`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"from OpenClaw  itself"}]}}`+"\n")
	env := quiet(t, signalsNow)
	scan := func() map[string]any {
		t.Helper()
		a := ocRun(t, state, env, "awareness", "upstream", "scan", "--json", "--state-dir", state)
		want(t, "exit", a.exit, ExitDone)
		scans, _ := a.doc(t)["scans"].([]any)
		if len(scans) != 1 {
			t.Fatalf("%s%s", a.out, a.errout)
		}
		return scans[0].(map[string]any)
	}
	list := ocRun(t, state, env, "awareness", "upstream", "--json", "--state-dir", state)
	want(t, "watched", dig(list.doc(t), "links", 0, "watched"), true)
	want(t, "ref", dig(list.doc(t), "links", 0, "upstreamRef", "filePath"), source)
	want(t, "outcome", scan()["outcome"], "quiet")
	put(t, source, line("before")+line("from OpenClaw itself")+line("one")+line("two"))
	doc := scan()
	want(t, "outcome", doc["outcome"], "active")
	want(t, "turns", doc["turns"], 2.0)
	want(t, "outcome", scan()["outcome"], "quiet")
	if err := os.Remove(source); err != nil {
		t.Fatal(err)
	}
	for _, outcome := range []string{"missing", "missing", "lost"} {
		want(t, "outcome", scan()["outcome"], outcome)
	}
	log := ocRun(t, state, env, "awareness", "log", "--json", "--state-dir", state).doc(t)
	want(t, "turns", dig(log, "events", 0, "payload", "turns"), 2.0)
	want(t, "lost", dig(log, "events", 1, "kind"), "upstream_missing")
	want(t, "links", ocRun(t, state, env, "awareness", "upstream", "--json", "--state-dir", state).doc(t)["count"], 0.0)
	if _, err := os.Stat(filepath.Join(state, ".oc", "upstream.json")); err == nil {
		t.Error("what was missed is still remembered")
	}
	if raw, err := os.ReadFile(database); err != nil || strings.Contains(string(raw), "OpenClaw  itself") {
		t.Error("the content of a message is in the log", err)
	}
}

// What the session itself sent is known by what was sent, in both eras: with directives, as the message says that it was sent, and
// masked where the transcript keeps a mask. What was imported from the conversation is not its own.
func TestUpstreamEchoes(t *testing.T) {
	talk := fixtures.Talk("t", fixtures.Now)
	parent := "null"
	for i, message := range []string{
		`{"role":"user","content":"[[reply_to_current]] with  a directive"}`,
		`{"role":"user","content":[{"type":"text","text":"Context.\n\nwhat was sent"}],"__openclaw":{"upstreamUserText":"what was sent\n"}}`,
		`{"role":"user","content":[{"type":"text","text":"written there"}],"__openclaw":{"mirrorOrigin":"claude-catalog-import"}}`,
		`{"role":"user","content":[{"type":"text","text":"the word is ***"}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"an answer"}]}`,
		`{"role":"user","content":[{"type":"image","data":"eA=="},{"type":"text","text":"below a picture"}]}`,
	} {
		id := fmt.Sprintf(`"row%d"`, i)
		talk.Line(fmt.Sprintf(`{"type":"message","id":%s,"parentId":%s,"timestamp":"2026-01-01T00:00:00.000Z","message":%s}`, id, parent, message))
		parent = id
	}
	for _, era := range []fixtures.Era{fixtures.FileEra, fixtures.SQLiteEra} {
		state, database := signalState(t)
		if err := os.RemoveAll(filepath.Join(state, "agents")); err != nil {
			t.Fatal(err)
		}
		aside := filepath.Join(t.TempDir(), "s")
		made := fixtures.State{Agents: []fixtures.Agent{{ID: "main", Era: era, Sessions: []fixtures.Session{{Key: targetT, ID: "t", Updated: fixtures.Now, Talk: talk}}}}}
		if err := made.Write(aside); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(aside, "agents"), filepath.Join(state, "agents")); err != nil {
			t.Fatal(err)
		}
		source := filepath.Join(t.TempDir(), "conversation.jsonl")
		lines := ""
		for _, text := range []string{
			"[[reply_to_current]] with a directive", "what was sent", "the word is ***", // echoes
			"Context.\n\nwhat was sent", "written there", "the word is swordfish", "an answer", "below a picture", "with a directive",
		} {
			lines += fmt.Sprintf(`{"type":"user","timestamp":"2026-09-21T14:00:00Z","message":{"role":"user","content":%q}}`+"\n", text)
		}
		put(t, source, lines)
		sqlExec(t, database, cursorSQL("agent:main:main", targetT, 0, 0, 0), fmt.Sprintf(`INSERT INTO session_upstream_links
			VALUES ('%s', 'main', 'claude', 'local', 'thread', 'claude-cli', '{"filePath":"%s"}', '{"offset":0}', NULL, 1, 1)`, targetT, source))
		a := ocRun(t, state, quiet(t, signalsNow), "awareness", "upstream", "scan", "--json", "--state-dir", state)
		want(t, "exit", a.exit, ExitDone)
		want(t, "outcome", dig(a.doc(t), "scans", 0, "outcome"), "active")
		want(t, fmt.Sprintf("turns in era %d", era), dig(a.doc(t), "scans", 0, "turns"), 6.0)
	}
}

// A session of 2026.9.6 whose database is there gets a watch that is awake; a release that cannot be told where it lives says so.
func TestWatchInTheSQLiteEra(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	if err := fixtures.Demo().Write(state); err != nil {
		t.Fatal(err)
	}
	golden, err := os.Open("../awareness/testdata/golden/empty.2026.9.6.sqlite.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer golden.Close()
	put(t, awareness.Path(state), string(gunzip(t, golden)))
	env := quiet(t, fixtures.Now)
	a := ocRun(t, dir, env, "awareness", "watch", "main", "agent:work:main", "--json", "--state-dir", state)
	want(t, "exit", a.exit, ExitDone)
	want(t, "state", dig(a.doc(t), "watch", "state"), "idle")
	real, err := filepath.EvalSymlinks(fixtures.Database(state, "main"))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "store", dig(a.doc(t), "watch", "storePath"), real)
	a = ocRun(t, dir, env, "awareness", "watch", "agent:work:main", "agent:main:main", "--json", "--state-dir", state)
	want(t, "state", dig(a.doc(t), "watch", "state"), "dormant")
	if !strings.Contains(a.errout, "no-store") {
		t.Error(a.errout)
	}
	a = ocRun(t, dir, env, "awareness", "record", "agent:work:main", "--kind", "goal_changed", "--summary", "goal created", "--json", "--state-dir", state)
	want(t, "told", dig(a.doc(t), "notices", 0, "watcher"), "agent:main:main")
	// Nobody is told through a dormant watch, and nothing of it is acknowledged.
	a = ocRun(t, dir, env, "awareness", "record", "agent:main:main", "--kind", "goal_changed", "--summary", "goal created", "--json", "--state-dir", state)
	want(t, "told", len(a.doc(t)["notices"].([]any)), 0)
	a = ocRun(t, dir, env, "awareness", "notices", "agent:work:main", "--ack", "--state-dir", state)
	if !strings.Contains(a.out, "Acknowledged: 0 of 1.") || !strings.Contains(a.out, "dormant") {
		t.Error(a.out)
	}
}

// Lists show the version where there is one, and one session its watchers and its last events.
func TestSignalsBesideRows(t *testing.T) {
	state := s19(t)
	env := quiet(t, signalsNow)
	before := tree(t, state)
	versions := map[any]any{}
	list := ocRun(t, state, env, "sessions", "--json", "--state-dir", state)
	for _, r := range list.doc(t)["sessions"].([]any) {
		versions[dig(r, "key")] = dig(r, "stateVersion")
	}
	want(t, "version of T", versions[targetT], 19.0)
	if v, ok := versions["agent:main:main"]; !ok || v != nil {
		t.Errorf("a session that the log does not know has version %v", v)
	}
	doc := dig(ocRun(t, state, env, "sessions", "show", targetT, "--json", "--state-dir", state).doc(t), "awareness")
	want(t, "version", dig(doc, "stateVersion"), 19.0)
	want(t, "watchers", len(dig(doc, "watchers").([]any)), 5)
	want(t, "the last event", dig(doc, "lastEvents", 4, "sequence"), 19.0)
	if text := ocRun(t, state, env, "sessions", "show", targetT, "--state-dir", state).out; !strings.Contains(text, "Watched by:") || !strings.Contains(text, "Last events, up to version 19:") {
		t.Error(text)
	}
	if tree(t, state) != before {
		t.Error("looking changed the tree")
	}
}
