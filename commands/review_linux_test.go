package commands

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oc/fixtures"
)

// storedRows are the rows of the store of an agent in the file era.
func storedRows(t *testing.T, state, agent string) map[string]map[string]any {
	t.Helper()
	text, err := os.ReadFile(fixtures.Store(state, agent))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]map[string]any{}
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// reviewable makes a state with three sessions that may go: the two old ones, and one without a message. Main, pinned, a group's and a
// young one are not shown.
func reviewable(t *testing.T) (state string, environ []string) {
	t.Helper()
	home := t.TempDir()
	state = filepath.Join(home, ".openclaw")
	old := int64(fixtures.Now - 60*fixtures.Day)
	talk := func(key string, at int64, words string) fixtures.Session {
		talk := fixtures.Talk(fixtures.IDOf(key), at).User(words).Assistant("Done, the bread is ordered.")
		return fixtures.Session{Key: key, Updated: at, Talk: talk}
	}
	pinned := talk("agent:work:explicit:pinned", old, "Keep this")
	pinned.Entry = fmt.Sprintf(`{"pinnedAt": %d}`, old)
	err := fixtures.State{
		Config: `{"agents":{"list":[{"id":"main","default":true},{"id":"work"}]}}` + "\n",
		Agents: []fixtures.Agent{{ID: "work", Sessions: []fixtures.Session{
			talk("agent:work:main", old, "I am the main session"),
			talk("agent:work:explicit:oldest", old-fixtures.Day, "Order bread with sk-"+strings.Repeat("a", 40)),
			talk("agent:work:explicit:older", old, "Find the invoice"),
			talk("agent:work:explicit:young", fixtures.Now-fixtures.Hour, "What is new?"),
			pinned,
			{Key: "agent:work:explicit:empty", Updated: fixtures.Now - 2*fixtures.Day, Talk: fixtures.Talk(fixtures.IDOf("empty"), fixtures.Now-2*fixtures.Day)},
		}}},
	}.Write(state)
	if err != nil {
		t.Fatal(err)
	}
	return state, []string{"HOME=" + home, "TMPDIR=" + home, "TERM=xterm", "TZ=UTC", "LANG=C.UTF-8", "OPENCLAW_GATEWAY_PORT=1", fmt.Sprintf("OC_NOW=%d", int64(fixtures.Now))}
}

func TestReview(t *testing.T) {
	state, environ := reviewable(t)
	before := storedRows(t, state, "work")
	s := sit(t.Context(), t, 80, 30, environ, "review")
	s.await("Session 1 of 3", true)
	for _, want := range []string{"agent:work:explicit:oldest", "61d ago", "Order bread with sk-", "assistant: Done, the bread is ordered.", "it was last used", "Decision      none yet"} {
		s.await(want, true)
	}
	s.await(strings.Repeat("a", 30), false) // a secret is masked here too
	s.types("d")
	s.await("Session 2 of 3", true)
	s.await("Find the invoice", true)
	s.types("a")
	s.await("Session 3 of 3", true)
	s.await("no message is in it", true)
	s.types("\x1b[D") // back
	s.await("Decision      archive", true)
	s.types("\x1b[C")
	s.await("Session 3 of 3", true)
	s.types("k")
	s.await("That is all of it", true)
	s.await("1 to archive", true)
	s.await("1 to delete", true)
	s.types("x") // no yes: back
	s.await("Session 3 of 3", true)
	if now := storedRows(t, state, "work"); len(now) != len(before) {
		t.Fatal("something was changed before the end")
	}
	s.types("\r")
	s.await("That is all of it", true)
	s.types("y")
	s.ends(ExitDone)

	now := storedRows(t, state, "work")
	if now["agent:work:explicit:oldest"] != nil || len(now) != len(before)-1 {
		t.Errorf("what was to be deleted is there, or more is gone: %v", now)
	}
	if now["agent:work:explicit:older"]["archivedAt"] == nil || now["agent:work:explicit:empty"]["archivedAt"] != nil {
		t.Errorf("archived is %v", now)
	}
	s.said("Take it back with: oc undo ")

	// One undo takes all of it back.
	u := s.oc(environ, "undo")
	if u.exit != ExitDone {
		t.Fatalf("undo: exit %d: %s", u.exit, u.errout)
	}
	if back := storedRows(t, state, "work"); len(back) != len(before) || back["agent:work:explicit:older"]["archivedAt"] != nil || back["agent:work:explicit:oldest"] == nil {
		t.Errorf("after undo: %v", back)
	}
}

// What is in databases is decided about as what is in files is, without a gateway, and one undo takes back both.
func TestReviewOfBothEras(t *testing.T) {
	home := t.TempDir()
	state := filepath.Join(home, ".openclaw")
	old := int64(fixtures.Now - 60*fixtures.Day)
	talk := func(key string, at int64) fixtures.Session {
		return fixtures.Session{Key: key, Updated: at, Talk: fixtures.Talk(fixtures.IDOf(key), at).User("Order the bread").Assistant("Done.")}
	}
	err := fixtures.State{
		Config: `{"agents":{"list":[{"id":"files","default":true},{"id":"rows"}]}}` + "\n",
		Agents: []fixtures.Agent{
			{ID: "files", Sessions: []fixtures.Session{talk("agent:files:explicit:a", old-3*fixtures.Day), talk("agent:files:explicit:b", old-2*fixtures.Day)}},
			{ID: "rows", Era: fixtures.SQLiteEra, Sessions: []fixtures.Session{
				talk("agent:rows:explicit:c", old-fixtures.Day), talk("agent:rows:explicit:d", old), talk("agent:rows:explicit:young", fixtures.Now-fixtures.Hour), talk("agent:rows:main", old),
			}},
		},
	}.Write(state)
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"HOME=" + home, "TMPDIR=" + home, "TERM=xterm", "TZ=UTC", "LANG=C.UTF-8", "OPENCLAW_GATEWAY_PORT=1", fmt.Sprintf("OC_NOW=%d", int64(fixtures.Now))}
	longOver(t, state)
	before := bytesOf(t, state)
	s := sit(t.Context(), t, 80, 30, environ, "review")
	s.await("Session 1 of 4", true)
	s.types("d")
	s.await("agent:files:explicit:b", true)
	s.types("a")
	s.await("agent:rows:explicit:c", true)
	s.await("Order the bread", true)
	s.types("d")
	s.await("agent:rows:explicit:d", true)
	s.types("a")
	s.await("2 to archive", true)
	s.await("2 to delete", true)
	s.types("y")
	s.ends(ExitDone)

	rows := map[string]bool{} // by key: it is archived
	for _, agent := range []string{"files", "rows"} {
		var doc struct {
			Sessions []struct {
				Key        string
				ArchivedAt *float64
			}
		}
		a := s.oc(environ, "sessions", "--json", "--agent", agent, "--limit", "all")
		if err := json.Unmarshal([]byte(a.out), &doc); err != nil || a.exit != ExitDone {
			t.Fatalf("exit %d, %v: %s", a.exit, err, a.errout)
		}
		for _, r := range doc.Sessions {
			rows[r.Key] = r.ArchivedAt != nil
		}
	}
	want := map[string]bool{"agent:files:explicit:b": true, "agent:rows:explicit:d": true, "agent:rows:explicit:young": false, "agent:rows:main": false}
	if !maps.Equal(rows, want) {
		t.Errorf("the sessions are %v", rows)
	}
	if a := s.oc(environ, "sessions", "search", "Order the bread"); !strings.Contains(a.out, fixtures.IDOf("agent:rows:explicit:c")) {
		t.Errorf("no archive has what was deleted: %s%s", a.out, a.errout)
	}
	if u := s.oc(environ, "undo"); u.exit != ExitDone {
		t.Fatalf("undo: exit %d: %s", u.exit, u.errout)
	}
	if now := bytesOf(t, state); !maps.Equal(now, before) {
		t.Errorf("after one undo: %s", cmp.Diff(before, now))
	}
}

// oc runs a command in the same surroundings, without a terminal.
func (s *sitting) oc(environ []string, args ...string) answer {
	s.t.Helper()
	env := variables(environ)
	return ocRun(s.t, env["HOME"], env, args...)
}

// However it is left before the end, nothing is changed, and the terminal is as it was.
func TestReviewLeft(t *testing.T) {
	for name, c := range map[string]struct {
		keys string
		exit int
	}{"ctrl-c": {"d\x03", ExitInterrupted}, "q": {"ddq", ExitDone}, "esc": {"a\x1b", ExitDone}, "ctrl-c at the question": {"ddd\x03", ExitInterrupted}, "nothing decided": {"kkk\r", ExitDone}} {
		t.Run(name, func(t *testing.T) {
			state, environ := reviewable(t)
			before := shape(t, state)
			s := sit(t.Context(), t, 80, 30, environ, "review")
			s.await("Session 1 of 3", true)
			s.types(c.keys)
			s.ends(c.exit)
			if after := shape(t, state); after != before {
				t.Error("the state is not as it was")
			}
			s.said("nothing was changed")
		})
	}
}

// A session that is written while it is decided about stays; the others go.
func TestReviewOfWhatIsWrittenMeanwhile(t *testing.T) {
	state, environ := reviewable(t)
	s := sit(t.Context(), t, 80, 30, environ, "review")
	s.await("Session 1 of 3", true)
	s.types("dd")
	s.await("Session 3 of 3", true)
	index := fixtures.Store(state, "work")
	text, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	was := fmt.Sprint(int64(fixtures.Now - 61*fixtures.Day))
	if !strings.Contains(string(text), was) {
		t.Fatal("the store does not say when the oldest was written")
	}
	write(t, index, strings.ReplaceAll(string(text), was, fmt.Sprint(int64(fixtures.Now-fixtures.Hour))))
	s.types("\r")
	s.await("2 to delete", true)
	s.types("y")
	s.ends(ExitDone)
	now := storedRows(t, state, "work")
	if now["agent:work:explicit:oldest"] == nil || now["agent:work:explicit:older"] != nil {
		t.Errorf("%v", now)
	}
	s.said("agent:work:explicit:oldest was written meanwhile and stays")
}

func TestReviewDryRun(t *testing.T) {
	state, environ := reviewable(t)
	before := shape(t, state)
	s := sit(t.Context(), t, 80, 30, environ, "review", "--dry-run")
	s.await("Session 1 of 3", true)
	s.types("dd")
	s.await("Session 3 of 3", true)
	s.types("d")
	s.await("A dry run", true)
	s.types("y")
	s.ends(ExitDone)
	if after := shape(t, state); after != before {
		t.Error("the state is not as it was")
	}
	s.said("Dry run: nothing was changed.")
}

func TestReviewWithoutATerminal(t *testing.T) {
	state, environ := reviewable(t)
	env := variables(environ)
	for _, c := range []struct {
		args []string
		exit int
		says string
	}{
		{nil, ExitUsage, "3 sessions one by one: it needs a terminal"},
		{[]string{"--json"}, ExitUsage, "--dry-run --json"},
		{[]string{"--older-than", "x"}, ExitUsage, "--older-than"},
		{[]string{"--agent", "main"}, ExitDone, ""},
		{[]string{"--agent", "nobody"}, ExitUsage, "nobody"},
	} {
		a := ocRun(t, env["HOME"], env, append([]string{"review"}, c.args...)...)
		if a.exit != c.exit || !strings.Contains(a.errout, c.says) {
			t.Errorf("%q: exit %d: %s%s", c.args, a.exit, a.out, a.errout)
		}
	}
	write(t, fixtures.Store(state, "work"), `{"cut`)
	if a := ocRun(t, env["HOME"], env, "review", "--agent", "work"); a.exit != ExitRefused {
		t.Errorf("a damaged store: exit %d: %s", a.exit, a.errout)
	}
}
