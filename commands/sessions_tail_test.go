package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/fixtures"
)

// steps are the kinds of step of a document, with what they say.
func stepsOf(doc map[string]any) (list []string) {
	for _, s := range doc["steps"].([]any) {
		text := dig(s, "kind").(string)
		for _, name := range []string{"name", "outcome"} {
			if v, ok := dig(s, name).(string); ok {
				text += " " + v
			}
		}
		list = append(list, text)
	}
	return list
}

func TestTailTellsStepsAndNotWhatWasSaid(t *testing.T) {
	for _, era := range eras {
		talk := fixtures.Talk(talkID, fixtures.Now-fixtures.Day).User("the prompt").Tool("exec", `{"command":"the arguments"}`, "the result").Assistant("the answer")
		state := talkState(t, era, talk)
		a := at(t, state, "sessions", "tail", "main", "--json")
		var got []string
		for _, s := range stepsOf(a.doc(t)) {
			got = append(got, strings.Fields(s)[0])
		}
		if d := cmp.Diff([]string{"user", "answer", "call", "result", "answer"}, got); d != "" {
			t.Errorf("%s: %s", era, d)
		}
		text := at(t, state, "sessions", "tail")
		for _, said := range []string{"the prompt", "the arguments", "the result", "the answer"} {
			if strings.Contains(a.out+text.out, said) {
				t.Errorf("%s: %q is told", era, said)
			}
		}
		if n := strings.Count(at(t, state, "sessions", "tail", "main", "--tail", "2").out, "\n"); n != 2 {
			t.Errorf("%s: %d steps for --tail 2", era, n)
		}
		if n := strings.Count(text.out, "\n"); n != 5 {
			t.Errorf("%s: %d lines:\n%s", era, n, text.out)
		}
	}
	if a := at(t, t.TempDir(), "sessions", "tail"); a.exit != ExitDone || !strings.Contains(a.out, "No session") {
		t.Errorf("an empty state: exit %d, %s%s", a.exit, a.out, a.errout)
	}
	if a := at(t, t.TempDir(), "sessions", "tail", "--for", "1s"); a.exit != ExitUsage {
		t.Errorf("--for without --follow: exit %d", a.exit)
	}
}

// What runs left in a trajectory is among the steps; of a recorded state every event.
func TestTailOfARecordedState(t *testing.T) {
	root := t.TempDir()
	unpack(t, golden+"/gateway/state-2026.7.35.tar.gz", root)
	doc := ocRun(t, root, quiet(t, fixtures.Now), "sessions", "tail", "agent:main:main", "--tail", "1000", "--json", "--state-dir", root).doc(t)
	count := map[string]int{}
	last := 0.0
	for _, s := range doc["steps"].([]any) {
		count[dig(s, "from").(string)]++
		if at, ok := dig(s, "at").(float64); ok {
			if at < last {
				t.Errorf("a step of %v stands behind one of %v", at, last)
			}
			last = at
		}
	}
	if count["transcript"] < 34 {
		t.Errorf("%v", count)
	}
	want(t, "unreadable", doc["unreadable"], float64(0))
}

// A trajectory is found in OPENCLAW_TRAJECTORY_DIR, where the pointer says, and beside the transcript; a pointer to what is none of the
// session's is not believed. Trace names what was found.
func TestTailFindsTrajectories(t *testing.T) {
	event := func(kind string) string {
		return fmt.Sprintf(`{"traceSchema":"openclaw-trajectory","schemaVersion":1,"source":"runtime","sessionId":%q,"type":%q,"ts":"2026-01-01T00:00:00.000Z","data":{}}`, talkID, kind)
	}
	state := talkState(t, fixtures.FileEra, fixtures.Talk(talkID, fixtures.Now-fixtures.Day).User("hello"))
	sessions, dir, other := filepath.Join(state, "agents/main/sessions"), t.TempDir(), t.TempDir()
	lines(t, filepath.Join(sessions, talkID+".trajectory.jsonl"), event("beside.it"), "")
	lines(t, filepath.Join(dir, talkID+".jsonl"), event("in.the.folder"), "")
	lines(t, filepath.Join(other, talkID+".jsonl"), event("by.the.pointer"), "")
	lines(t, filepath.Join(other, "stranger.jsonl"), event("of.a.stranger"), "")
	point := func(to string) {
		lines(t, filepath.Join(sessions, talkID+".trajectory-path.json"), fmt.Sprintf(`{"traceSchema":"openclaw-trajectory-pointer","schemaVersion":1,"sessionId":%q,"runtimeFile":%q}`, talkID, to))
	}
	ask := func(folder string, args ...string) map[string]any {
		env := quiet(t, fixtures.Now)
		env["OPENCLAW_TRAJECTORY_DIR"] = folder
		return ocRun(t, state, env, append([]string{"--state-dir", state, "sessions"}, args...)...).doc(t)
	}
	kinds := func(folder string) []string { return stepsOf(ask(folder, "tail", "main", "--json")) }
	point(filepath.Join(other, talkID+".jsonl"))
	same(t, "all", kinds(dir), []string{"in.the.folder", "by.the.pointer", "beside.it", "user"})
	same(t, "without the folder", kinds(""), []string{"by.the.pointer", "beside.it", "user"})
	for _, to := range []string{filepath.Join(other, "stranger.jsonl"), filepath.Join(sessions, talkID+".jsonl"), "/etc/passwd", other, talkID + ".jsonl"} {
		point(to)
		same(t, to, kinds(""), []string{"beside.it", "user"})
	}
	point(filepath.Join(other, talkID+".jsonl"))
	found := map[string]bool{}
	for _, x := range ask(dir, "trace", "main", "--json")["trace"].([]any) {
		found[fmt.Sprint(dig(x, "path"))] = true
	}
	for _, path := range []string{filepath.Join(dir, talkID+".jsonl"), filepath.Join(other, talkID+".jsonl"), filepath.Join(sessions, talkID+".trajectory.jsonl")} {
		if !found[path] {
			t.Errorf("trace does not name %s: %v", path, found)
		}
	}
}

// Sessions that run come first; several are told apart.
func TestTailOfRunningSessions(t *testing.T) {
	dir := t.TempDir()
	session := func(key, status string, ago int64) fixtures.Session {
		id := fixtures.IDOf(key)
		return fixtures.Session{Key: key, Updated: fixtures.Now - ago, Entry: `{"status":"` + status + `"}`, Talk: fixtures.Talk(id, fixtures.Now-fixtures.Day).User("x")}
	}
	err := (fixtures.State{Agents: []fixtures.Agent{{ID: "main", Sessions: []fixtures.Session{
		session("agent:main:main", "done", 0), session("agent:main:explicit:a", "running", fixtures.Hour), session("agent:main:explicit:b", "running", fixtures.Day),
	}}}}).Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, s := range at(t, dir, "sessions", "tail", "--json").doc(t)["sessions"].([]any) {
		keys = append(keys, dig(s, "key").(string))
	}
	if d := cmp.Diff([]string{"agent:main:explicit:a", "agent:main:explicit:b"}, keys); d != "" {
		t.Error(d)
	}
}

// shared is a buffer that is read while it is written.
type shared struct {
	sync.Mutex
	bytes.Buffer
}

func (s *shared) Write(b []byte) (int, error) {
	s.Lock()
	defer s.Unlock()
	return s.Buffer.Write(b)
}

func (s *shared) await(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		s.Lock()
		found := strings.Contains(s.String(), text)
		s.Unlock()
		if found {
			return
		}
	}
	s.Lock()
	defer s.Unlock()
	t.Fatalf("%q did not come:\n%s", text, s.String())
}

// Following shows what is written, a line that comes in two pieces once it is whole, and the transcript that a reset begins; the tree is
// left as the writer left it.
func TestTailFollows(t *testing.T) {
	talk := fixtures.Talk(talkID, fixtures.Now-fixtures.Day).User("one")
	state := talkState(t, fixtures.FileEra, talk)
	path := filepath.Join(state, "agents/main/sessions", talkID+".jsonl")

	add := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	var out, errout shared
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	env := quiet(t, fixtures.Now)
	var environ []string
	for k, v := range env {
		environ = append(environ, k+"="+v)
	}
	done := make(chan int)
	go func() {
		done <- Main(ctx, Process{
			Args: []string{"--state-dir", state, "sessions", "tail", "main", "--follow"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errout,
			Environ: append(environ, "TZ=UTC"), Dir: state, Now: time.Now,
		})
	}()
	out.await(t, "user")
	line := rowOf("n1", "assistant")
	add(line[:30])
	time.Sleep(60 * time.Millisecond)
	add(line[30:] + "\n")
	out.await(t, "answer")
	trajectory := strings.TrimSuffix(path, ".jsonl") + ".trajectory.jsonl"
	put(t, trajectory, fmt.Sprintf(`{"traceSchema":"openclaw-trajectory","schemaVersion":1,"type":"tool.call","ts":"2026-09-21T14:00:00.000Z","sessionId":"%s","data":{"name":"exec","arguments":"hidden words"}}`+"\n", talkID))
	out.await(t, "tool.call")

	// A reset: another id, another file.
	next := "33333333-2222-4333-8444-555555555555"
	put(t, filepath.Join(state, "agents/main/sessions", next+".jsonl"), fixtures.Talk(next, fixtures.Now).User("x").String()+rowOf("n2", "bashExecution")+"\n")
	put(t, filepath.Join(state, "agents/main/sessions/sessions.json"), `{"agent:main:main":{"sessionId":"`+next+`","updatedAt":1790000000001}}`)
	out.await(t, "bash")
	before := tree(t, state)
	stop()
	if exit := <-done; exit != ExitInterrupted {
		t.Errorf("exit %d: %s", exit, errout.String())
	}
	if tree(t, state) != before {
		t.Error("following changed the tree")
	}
	if strings.Contains(out.String(), "hidden words") || strings.Count(out.String(), "answer") != 1 {
		t.Errorf("%s", out.String())
	}
}

func rowOf(id, role string) string {
	return fmt.Sprintf(`{"type":"message","id":"%s","parentId":null,"timestamp":"2026-09-21T14:00:00.000Z","message":{"role":"%s","command":"x","content":"hello there"}}`, id, role)
}

// With --json following is one document too, whole when the time is over; a database is followed as well as files.
func TestTailFollowsIntoOneDocument(t *testing.T) {
	for _, era := range eras {
		state := talkState(t, era, fixtures.Talk(talkID, fixtures.Now-fixtures.Day).User("one").Assistant("two"))
		written := make(chan error, 1)
		go func() {
			time.Sleep(200 * time.Millisecond)
			if era == fixtures.FileEra {
				f, err := os.OpenFile(filepath.Join(state, "agents/main/sessions", talkID+".jsonl"), os.O_APPEND|os.O_WRONLY, 0)
				if err == nil {
					_, err = f.WriteString(rowOf("n1", "toolResult") + "\n")
					f.Close()
				}
				written <- err
				return
			}
			path := fixtures.Database(state, "main")
			err := fixtures.Alter(path, fmt.Sprintf(`INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES ('%s', 90, '%s', 1790000000000)`, talkID, rowOf("n1", "toolResult")))
			if err == nil {
				err = os.Chtimes(path, time.Now(), time.Now()) // Alter keeps the time
			}
			written <- err
		}()
		a := at(t, state, "sessions", "tail", "main", "--follow", "--for", "2500ms", "--json")
		if err := <-written; err != nil {
			t.Fatal(era, err)
		}
		if a.exit != ExitDone || !json.Valid([]byte(a.out)) {
			t.Fatalf("%s: exit %d: %s%s", era, a.exit, a.out, a.errout)
		}
		got := strings.Join(stepsOf(a.doc(t)), "; ")
		if !strings.HasPrefix(got, "user; answer") || !strings.HasSuffix(got, "result ok") {
			t.Errorf("%s: %s", era, got)
		}
	}
}
