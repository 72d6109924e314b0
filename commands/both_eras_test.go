package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"oc/fixtures"
)

// diverged is a state that went on in files after it had been in a database (spec/sqlite-store.md 1.5, 5.6): two sessions begin alike in
// both eras and end differently, one is in both and the same, one was reset in the files, one is in each alone.
type diverged struct{ dir, both, same, reset, database, files string }

func makeDiverged(t *testing.T) diverged {
	t.Helper()
	d := diverged{t.TempDir(), "agent:main:main", "agent:main:explicit:same", "agent:main:explicit:reset", "agent:main:explicit:database", "agent:main:explicit:files"}
	start := fixtures.Now - 2*fixtures.Day
	talk := func(id string) *fixtures.Transcript {
		return fixtures.Talk(id, start).Setup().User("Shall we begin?").Assistant("We have begun.")
	}
	session := func(key string, w *fixtures.Transcript) fixtures.Session {
		return fixtures.Session{Key: key, ID: w.ID, Updated: w.Last(), Talk: w}
	}
	id := fixtures.IDOf
	sqlite := fixtures.Agent{ID: "main", Era: fixtures.SQLiteEra, Sessions: []fixtures.Session{
		session(d.both, talk(id(d.both)).User("said to the database").Assistant("heard by the database").Wait(2*fixtures.Hour).User("database again").Assistant("once more")),
		session(d.same, talk(id(d.same))),
		session(d.reset, talk(id(d.reset))),
		session(d.database, talk(id(d.database)).User("the database alone")),
	}}
	files := []fixtures.Session{
		session(d.both, talk(id(d.both)).Wait(fixtures.Hour).User("said to the files").Assistant("heard by the files")),
		session(d.same, talk(id(d.same))),
		session(d.reset, fixtures.Talk(id("another"), start+fixtures.Day).Setup().User("after the reset").Assistant("a new leaf")),
		session(d.files, talk(id(d.files)).User("the files alone")),
	}
	var rows []string
	for _, s := range files {
		rows = append(rows, fmt.Sprintf("%q:{\"sessionId\":%q,\"updatedAt\":%d}", s.Key, s.ID, s.Updated))
		sqlite.Files = append(sqlite.Files, fixtures.File{Name: s.ID + ".jsonl", Data: s.Talk.String(), Time: s.Talk.Last()})
	}
	sqlite.Files = append(sqlite.Files, fixtures.File{Name: "sessions.json", Data: "{" + strings.Join(rows, ",") + "}\n", Time: fixtures.Now - fixtures.Day})
	if err := (fixtures.State{Agents: []fixtures.Agent{sqlite}}).Write(d.dir); err != nil {
		t.Fatal(err)
	}
	return d
}

// A list of both eras has each session once, marked; one that was reset in one of them is two.
func TestListOfBothEras(t *testing.T) {
	d := makeDiverged(t)
	before := tree(t, d.dir)
	a := at(t, d.dir, "sessions", "--both-eras", "--json")
	want(t, "exit", a.exit, ExitDone)
	want(t, "standard error", a.errout, "")
	doc := a.doc(t)
	eras := map[string]string{}
	for _, s := range doc["sessions"].([]any) {
		key := dig(s, "key").(string)
		mark := dig(s, "era").(string)
		if also := dig(s, "alsoIn", "era"); also != nil {
			mark += "+" + also.(string)
		}
		eras[key] = strings.TrimPrefix(eras[key]+" "+mark, " ")
	}
	same(t, "eras of rows", sorted(pairsOf(eras)...), sorted(
		d.both+"=sqlite+file", d.same+"=sqlite+file", d.reset+"=file sqlite", d.database+"=sqlite", d.files+"=file"))
	want(t, "listed", dig(doc, "otherEra", 0, "listed"), true)
	want(t, "without the flag", dig(at(t, d.dir, "sessions", "--json").doc(t), "totalCount"), 4.0)
	want(t, "with it", doc["totalCount"], 6.0)

	text := at(t, d.dir, "sessions", "--both-eras").out
	for _, line := range []string{"  both ", "  sqlite ", "  file "} {
		if !strings.Contains(text, line) {
			t.Errorf("no row is marked %q:\n%s", line, text)
		}
	}
	if summary := at(t, d.dir, "sessions", "--both-eras", "--summary", "--json").doc(t); dig(summary, "total", "rows") != 6.0 {
		t.Errorf("summary: %v", summary["total"])
	}
	want(t, "exit of history", at(t, d.dir, "sessions", "--both-eras", "--history").exit, ExitUsage)
	if tree(t, d.dir) != before {
		t.Error("the tree was changed")
	}
}

func pairsOf(m map[string]string) (all []string) {
	for k, v := range m {
		all = append(all, k+"="+v)
	}
	return all
}

// A history of both eras has each message once, in the order of time, whichever way the session is asked for.
func TestHistoryOfBothEras(t *testing.T) {
	d := makeDiverged(t)
	before := tree(t, d.dir)
	read := func(args ...string) (said []string, doc map[string]any) {
		t.Helper()
		a := at(t, d.dir, append([]string{"sessions", "history", "--json"}, args...)...)
		want(t, fmt.Sprintf("exit of %q: %s", args, a.errout), a.exit, ExitDone)
		doc = a.doc(t)
		for _, m := range doc["messages"].([]any) {
			mark := ""
			if era := dig(m, "__openclaw", "era"); era != nil {
				mark = era.(string) + ": "
			}
			said = append(said, mark+dig(m, "content", 0, "text").(string))
		}
		return said, doc
	}
	said, doc := read(d.both, "--both-eras")
	all := []string{
		"sqlite: Shall we begin?", "sqlite: We have begun.", "sqlite: said to the database", "sqlite: heard by the database",
		"file: said to the files", "file: heard by the files", "sqlite: database again", "sqlite: once more",
	}
	same(t, "both", said, all)
	want(t, "repeated", dig(doc, "notShown", "repeated"), 2.0)
	want(t, "total", doc["total"], 8.0)
	want(t, "included", dig(doc, "otherEra", "included"), true)
	// Pages of it follow each other.
	newest, doc := read(d.both, "--both-eras", "--limit", "3", "--offset", "0")
	older, _ := read(d.both, "--both-eras", "--limit", "5", "--offset", fmt.Sprint(doc["nextOffset"]))
	same(t, "pages", slices.Concat(older, newest), all)

	said, doc = read(d.both)
	same(t, "the era that is read", said, []string{"Shall we begin?", "We have begun.", "said to the database", "heard by the database", "database again", "once more"})
	want(t, "counted", dig(doc, "otherEra", "count"), 4.0)
	want(t, "included", dig(doc, "otherEra", "included"), false)

	said, _ = read(d.reset, "--both-eras")
	same(t, "reset", said, []string{"sqlite: Shall we begin?", "sqlite: We have begun.", "file: after the reset", "file: a new leaf"})
	said, _ = read(d.files, "--both-eras")
	same(t, "files alone", said, []string{"file: Shall we begin?", "file: We have begun.", "file: the files alone"})
	want(t, "files alone, without the flag", at(t, d.dir, "sessions", "history", d.files).exit, ExitFailed)
	said, _ = read(d.both, "--both-eras", "--archives")
	same(t, "lineage", said, all)

	text := at(t, d.dir, "sessions", "history", d.both, "--both-eras").out
	if strings.Count(text, ", sqlite era --") != 2 || strings.Count(text, ", file era --") != 1 {
		t.Errorf("the eras are not marked:\n%s", text)
	}
	if tree(t, d.dir) != before {
		t.Error("the tree was changed")
	}
}

// Search and stats count what only the other era has, and show or add it when asked; what both have counts once.
func TestSearchAndStatsOfBothEras(t *testing.T) {
	d := makeDiverged(t)
	before := tree(t, d.dir)
	for _, c := range []struct {
		text               string
		own, other, copies float64
	}{{"files", 0, 3, 0}, {"database", 4, 0, 0}, {"begin", 4, 1, 2}} {
		a := at(t, d.dir, "sessions", "search", c.text, "--json")
		doc := a.doc(t)
		want(t, c.text, doc["totalCount"], c.own)
		want(t, c.text+" elsewhere", doc["onlyInOtherEra"], c.other)
		want(t, c.text+" is told", strings.Contains(a.errout, "only in the era that OpenClaw does not read; see them with --both-eras"), c.other > 0)
		doc = at(t, d.dir, "sessions", "search", c.text, "--json", "--both-eras").doc(t)
		want(t, c.text+" in both", doc["totalCount"], c.own+c.other)
		want(t, c.text+" copies", doc["copies"], c.copies)
		marked := 0.0
		for _, h := range doc["hits"].([]any) {
			if dig(h, "era") == "file" {
				marked++
			}
		}
		want(t, c.text+" marked as of the files", marked, c.other)
	}
	files := at(t, d.dir, "sessions", "search", "begin", "--files-with-matches", "--json").doc(t)
	want(t, "transcripts", files["totalCount"], 4.0)
	want(t, "transcripts elsewhere", files["onlyInOtherEra"], 3.0)
	files = at(t, d.dir, "sessions", "search", "begin", "--files-with-matches", "--json", "--both-eras").doc(t)
	want(t, "transcripts of both", files["totalCount"], 7.0)

	own := at(t, d.dir, "sessions", "stats", "--json").doc(t)
	both := at(t, d.dir, "sessions", "stats", "--json", "--both-eras").doc(t)
	want(t, "answers", dig(own, "totals", "answers"), 6.0)
	want(t, "answers elsewhere", dig(own, "coverage", "onlyInOtherEra", "answers"), 3.0)
	want(t, "added", dig(own, "coverage", "onlyInOtherEra", "includedInTotals"), false)
	want(t, "answers of both", dig(both, "totals", "answers"), 9.0)
	want(t, "added", dig(both, "coverage", "onlyInOtherEra", "includedInTotals"), true)
	want(t, "repeated", dig(both, "coverage", "repeatedAnswers"), 2.0)
	for _, s := range both["sessions"].([]any) {
		era := map[string]string{d.both: "both", d.same: "sqlite", d.reset: "both", d.database: "sqlite", d.files: "file"}[dig(s, "session").(string)]
		want(t, dig(s, "session").(string), dig(s, "era"), era)
	}
	if text := at(t, d.dir, "sessions", "stats").out; !strings.Contains(text, "3 answers") || !strings.Contains(text, "--both-eras adds them") {
		t.Errorf("what the other era has is not told:\n%s", text)
	}
	a := at(t, d.dir, "sessions", "stats", "--bytes", "--json")
	want(t, "left out", a.doc(t)["otherEraTranscripts"], 4.0)
	want(t, "weighed", dig(at(t, d.dir, "sessions", "stats", "--bytes", "--json", "--both-eras").doc(t), "transcripts"), 8.0)
	if tree(t, d.dir) != before {
		t.Error("the tree was changed")
	}
}

// A slip in --as is an unknown session, with the one that may be meant; it is not one that sees little.
func TestAsUnknownSession(t *testing.T) {
	d := makeDiverged(t)
	for _, args := range [][]string{{"sessions", "list"}, {"sessions", "search", "begin"}, {"sessions", "stats"}, {"sessions", "history", d.same}, {"sessions", "show", d.same}, {"status"}} {
		a := at(t, d.dir, append(args, "--as", "agent:main:explicit:smae", "--json")...)
		want(t, fmt.Sprintf("exit of %q", args), a.exit, ExitFailed)
		want(t, "code", dig(a.doc(t), "error", "code"), "not-found")
		if said := fmt.Sprint(dig(a.doc(t), "error", "message")); !strings.Contains(said, `no session has the key "agent:main:explicit:smae"`) || !strings.Contains(said, "did you mean "+d.same) {
			t.Errorf("%q: %s", args, said)
		}
		for _, known := range []string{d.same, d.files, "main", "explicit:same"} { // of either era, and by a short key
			if a := at(t, d.dir, append(args, "--as", known)...); strings.Contains(a.errout, "no session has the key") {
				t.Errorf("%q --as %s: %s", args, known, a.errout)
			}
		}
	}
}
