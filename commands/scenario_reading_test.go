package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oc/fixtures"
)

// Something else in the place of a transcript is said for what it is, and nobody waits for it.
func TestReadingWhatIsNoFile(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, "agents/main/sessions")
	lines(t, filepath.Join(dir, "sessions.json"), `{"agent:main:explicit:folder":{"sessionId":"folder","updatedAt":1},"agent:main:explicit:device":{"sessionId":"device","updatedAt":1},"agent:main:explicit:empty":{"sessionId":"empty","updatedAt":1},"agent:main:explicit:gone":{"sessionId":"gone","updatedAt":1}}`)
	if err := os.Mkdir(filepath.Join(dir, "folder.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.DevNull, filepath.Join(dir, "device.jsonl")); err != nil {
		t.Fatal(err)
	}
	lines(t, filepath.Join(dir, "empty.jsonl"))
	for name, said := range map[string]string{"folder": "is a directory, not a file", "device": "is a device, not a file"} {
		for _, command := range [][]string{{"history"}, {"export"}, {"diff", "agent:main:explicit:empty"}, {"tail"}} {
			a := at(t, state, append(append([]string{"sessions"}, command...), "agent:main:explicit:"+name)...)
			if a.exit != ExitFailed || !strings.Contains(a.errout, said) && command[0] != "tail" || !strings.Contains(a.errout, name+".jsonl") {
				t.Errorf("%v of a %s: exit %d: %s", command, name, a.exit, a.errout)
			}
		}
	}
	if out := at(t, state, "sessions", "history", "agent:main:explicit:empty").out; !strings.Contains(out, "is empty") {
		t.Error(out)
	}
	if out := at(t, state, "sessions", "history", "agent:main:explicit:gone").out; !strings.Contains(out, "has no transcript") {
		t.Error(out)
	}
}

// Wherever a credential stands in a row, whatever reads it masks it: names of tools, models and senders, the names of arguments, types,
// summaries, errors, output of commands, and a row that is no JSON.
func TestSecretsInEveryPlace(t *testing.T) {
	secret := "gh" + "p_" + strings.Repeat("Ab1", 12)
	for _, era := range eras {
		talk := fixtures.Talk(talkID, fixtures.Now-fixtures.Day)
		n := 0
		row := func(rest string) {
			n++
			talk.Line(fmt.Sprintf(`{"id":"r%d","timestamp":"2026-09-20T10:00:%02d.000Z",%s}`, n, n, strings.ReplaceAll(rest, "SECRET", secret)))
		}
		say := func(message string) { row(`"type":"message","message":` + message) }
		say(`{"role":"user","content":"the SECRET word","senderLabel":"SECRET","senderName":"SECRET"}`)
		say(`{"role":"assistant","provider":"SECRET","model":"m-SECRET","responseModel":"SECRET","usage":{"input":1,"cost":{"total":1}},"errorMessage":"SECRET","errorBody":"SECRET","stopReason":"SECRET",
			"content":[{"type":"thinking","thinking":"word SECRET"},{"type":"toolCall","id":"c","name":"tool-SECRET","arguments":{"SECRET":["SECRET",{"SECRET":"SECRET"}]},"partialJson":"SECRET"}]}`)
		say(`{"role":"toolResult","toolCallId":"c","toolName":"SECRET","content":[{"type":"text","text":"word SECRET"},{"type":"SECRET","text":"SECRET"},{"type":"image","mimeType":"SECRET"}],"details":{"x":"SECRET"}}`)
		say(`{"role":"bashExecution","command":"echo word SECRET","output":"SECRET","fullOutputPath":"/tmp/SECRET"}`)
		say(`{"role":"custom","customType":"SECRET","content":"word SECRET","display":true}`)
		row(`"type":"compaction","summary":"word SECRET","firstKeptEntryId":"r1","tokensBefore":1`)
		row(`"type":"custom_message","customType":"SECRET","content":"word SECRET","display":true`)
		row(`"type":"model_change","provider":"SECRET","modelId":"SECRET"`)
		row(`"type":"branch_summary","fromId":"r1","summary":"word SECRET"`)
		row(`"type":"session_info","name":"word SECRET"`)
		state := talkState(t, era, talk)
		if era == fixtures.FileEra {
			path := filepath.Join(state, "agents/main/sessions", talkID+".jsonl")
			put(t, path, talk.String()+`{"torn word `+secret+"\n")
		}
		for _, args := range [][]string{
			{"history", "main", "--include-tools"},
			{"history", "main", "--include-tools", "--json"},
			{"history", "main", "--include-tools", "--json", "--raw-prose", "--all-branches"},
			{"export", "main"},
			{"export", "main", "--format", "html"},
			{"export", "main", "--format", "jsonl"},
			{"tail", "main"},
			{"tail", "main", "--json"},
			{"diff", "main", "main", "--json"},
			{"trace", "main"},
			{"search", "word", "--limit", "all"},
			{"search", "word", "--json", "--limit", "all"},
			{"search", secret[:8], "--json", "--limit", "all"},
			{"stats"},
			{"stats", "--json"},
			{"stats", "--csv"},
			{"stats", "--bytes", "--json"},
			{"list", "--titles", "--preview"},
			{"list", "--titles", "--preview", "--json"},
		} {
			a := at(t, state, append([]string{"sessions"}, args...)...)
			if strings.Contains(a.out+a.errout, secret) {
				at := strings.Index(a.out+a.errout, secret)
				t.Errorf("%s: oc sessions %v tells it: %s", era, args, (a.out + a.errout)[max(0, at-80):at])
			}
			if a.out == "" || strings.Contains(a.errout, "mistake") {
				t.Errorf("%s: oc sessions %v: exit %d: %s", era, args, a.exit, a.errout)
			}
		}
	}
}

// A transcript that is cut, grows or is another one from one moment to the next is read whole as it was once, or said to have changed:
// never half of this and half of that, and never without end.
func TestReadingBesideARestlessWriter(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, "agents/main/sessions")
	lines(t, filepath.Join(dir, "sessions.json"), `{"agent:main:main":{"sessionId":"one","updatedAt":1}}`)
	path := filepath.Join(dir, "one.jsonl")
	version := func(n int) string {
		var b strings.Builder
		b.WriteString(header + "\n")
		for i := range 50 + n%7*400 {
			fmt.Fprintf(&b, `{"type":"message","id":"v%d-%d","timestamp":"2026-09-20T10:00:00.000Z","message":{"role":"user","content":"version %[1]d"}}`+"\n", n, i)
		}
		return b.String()
	}
	put(t, path, version(0))
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for n := 1; ; n++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			var err error
			switch n % 3 {
			case 0: // another file
				if err = os.WriteFile(path+".tmp", []byte(version(n)), 0o600); err == nil {
					err = os.Rename(path+".tmp", path)
				}
			case 1: // grown
				var f *os.File
				if f, err = os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0); err == nil {
					_, err = f.WriteString(version(n)[len(header)+1:])
					f.Close()
				}
			case 2: // cut
				err = os.Truncate(path, int64(len(header)+1+n%1000))
			}
			if err != nil {
				done <- err
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	for range 15 {
		for _, args := range [][]string{{"history", "main", "--json"}, {"export", "main", "--format", "jsonl"}, {"export", "main"}, {"search", "version", "--json"}, {"stats", "--bytes", "--json"}, {"tail", "main", "--json"}, {"diff", "main", "main", "--json"}, {"history", "main", "--json", "--offset", "3"}} {
			a := at(t, state, append([]string{"sessions"}, args...)...)
			if a.exit != ExitDone && (a.exit != ExitFailed || a.errout == "") || strings.Contains(a.errout, "mistake") {
				t.Errorf("oc sessions %v: exit %d: %s", args, a.exit, a.errout)
			}
			if strings.HasSuffix(args[len(args)-1], "json") {
				a.doc(t)
			}
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// S11: parent chains of every sort. What is on the branch is shown, what is not is counted, and nothing goes round in circles.
func TestHistoryOfParentChains(t *testing.T) {
	say := func(id, parent, text string) string {
		if parent != "null" {
			parent = `"` + parent + `"`
		}
		return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":%q}}`, id, parent, text)
	}
	leaf := func(target string) string {
		return `{"type":"leaf","id":"l","parentId":"a","targetId":"` + target + `","timestamp":"2026-01-01T00:00:02.000Z"}`
	}
	state := t.TempDir()
	dir := filepath.Join(state, "agents/main/sessions")
	for _, c := range []struct {
		name       string
		rows       []string
		shown, all []string
		off        float64
	}{
		{"orphan", []string{say("a", "null", "one"), say("b", "nowhere", "two")}, []string{"two"}, []string{"one", "two"}, 1},
		{"cycle", []string{say("a", "b", "one"), say("b", "a", "two")}, []string{"one", "two"}, []string{"one", "two"}, 0},
		{"its own parent", []string{say("a", "a", "one")}, []string{"one"}, []string{"one"}, 0},
		{"twice the same", []string{say("a", "null", "one"), say("a", "null", "one"), say("b", "a", "two")}, []string{"one", "two"}, []string{"one", "one", "two"}, 1},
		{"twice, and other", []string{say("a", "null", "one"), say("a", "null", "other"), say("b", "a", "two")}, []string{"other", "two"}, []string{"one", "other", "two"}, 1},
		{"two branches", []string{say("a", "null", "root"), say("b", "a", "left"), say("c", "b", "left2"), say("d", "a", "right"), leaf("c")}, []string{"root", "left", "left2"}, []string{"root", "left", "left2", "right"}, 1},
		{"two roots", []string{say("a", "null", "one"), say("b", "null", "two")}, []string{"two"}, []string{"one", "two"}, 1},
		{"a leaf that is nowhere", []string{say("a", "null", "one"), leaf("nowhere")}, []string{"one"}, []string{"one"}, 0},
	} {
		lines(t, filepath.Join(dir, "sessions.json"), `{"agent:main:main":{"sessionId":"one","updatedAt":1}}`)
		lines(t, filepath.Join(dir, "one.jsonl"), append(append([]string{header}, c.rows...), "")...)
		doc := at(t, state, "sessions", "history", "main", "--json").doc(t)
		if got := texts(doc); strings.Join(got, "|") != strings.Join(c.shown, "|") {
			t.Errorf("%s: %v, not %v", c.name, got, c.shown)
		}
		want(t, c.name, dig(doc, "notShown", "otherBranches"), c.off)
		if got := texts(at(t, state, "sessions", "history", "main", "--json", "--all-branches").doc(t)); strings.Join(got, "|") != strings.Join(c.all, "|") {
			t.Errorf("%s: of all branches %v, not %v", c.name, got, c.all)
		}
		if a := at(t, state, "sessions", "history", "main", "--branch", "nowhere"); a.exit != ExitUsage || !strings.Contains(a.errout, "branches end at") {
			t.Errorf("%s: a branch that is not there: exit %d: %s", c.name, a.exit, a.errout)
		}
		same := at(t, state, "sessions", "diff", "main", filepath.Join(dir, "one.jsonl"), "--json").doc(t)
		want(t, c.name+": a diff with itself", same["identical"], true)
	}
}

// S2: history that no row names is found, read, followed and taken out by its id, and told apart from what is a session's.
func TestReadingUnlinkedHistory(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, "agents/main/sessions")
	lines(t, filepath.Join(dir, "sessions.json"), `{"agent:main:main":{"sessionId":"one","updatedAt":1,"usageFamilySessionIds":["old","one"]}}`)
	lines(t, filepath.Join(dir, "one.jsonl"), header, saying("a1", "20T10:00:00.000Z", "user", `"of the session"`), "")
	lines(t, filepath.Join(dir, "lost.jsonl"), header, saying("b1", "02T10:00:00.000Z", "user", `"the lost word"`), "")
	lines(t, filepath.Join(dir, "blank.jsonl"), header, "")
	lines(t, filepath.Join(dir, "old.jsonl"), header, saying("c1", "03T10:00:00.000Z", "user", `"an older word"`), "")
	lines(t, filepath.Join(dir, fixtures.Gone("old.jsonl", "reset", fixtures.Now-fixtures.Day)), header, saying("c1", "03T10:00:00.000Z", "user", `"an older word"`), "")
	before := tree(t, state)
	found := at(t, state, "sessions", "search", "word", "--json").doc(t)
	want(t, "places", found["totalCount"], any(float64(2)))
	want(t, "whose", dig(found, "hits", 0, "key"), "agent:main:main")
	want(t, "lost", dig(found, "hits", 1, "source"), "unlinked")
	same(t, "by its id", texts(at(t, state, "sessions", "history", "lost", "--json").doc(t)), []string{"the lost word"})
	if out := at(t, state, "sessions", "history", "blank").out; !strings.Contains(out, "a header and no message") {
		t.Error(out)
	}
	if out := at(t, state, "sessions", "export", "lost").out; !strings.Contains(out, "the lost word") {
		t.Error(out)
	}
	trace := at(t, state, "sessions", "trace", "lost", "--json").doc(t)
	want(t, "trace", dig(trace, "trace", 0, "source"), "unlinked")
	if fmt.Sprint(trace["trace"]) == "" || !strings.Contains(fmt.Sprint(at(t, state, "sessions", "trace", "old", "--json").doc(t)["keys"]), "agent:main:main") {
		t.Error("the trace of an older id does not lead to its key")
	}
	lineage := texts(at(t, state, "sessions", "history", "main", "--archives", "--json").doc(t))
	same(t, "lineage", lineage, []string{"an older word", "of the session"})
	if tree(t, state) != before {
		t.Error("reading changed the tree")
	}
}
