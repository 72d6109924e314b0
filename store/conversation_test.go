package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"oc/config"
	"oc/fixtures"
	"oc/store"
	"oc/store/span"
	"oc/transcript"
)

// opened reads the sessions of an agent of a state.
func opened(t *testing.T, state, agent string) *store.Sessions {
	t.Helper()
	cfg, err := config.Load(config.Options{StateDir: state, Cwd: state, Home: state})
	if err != nil {
		t.Fatal(err)
	}
	targets, err := store.Targets(cfg, store.Pick{Agent: agent})
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(context.Background(), cfg, targets[0])
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func rowOf(t *testing.T, s *store.Sessions, key string) *store.Row {
	t.Helper()
	for i := range s.Rows {
		if s.Rows[i].Key == key {
			return &s.Rows[i]
		}
	}
	t.Fatalf("no row %s", key)
	return nil
}

// copied is a conversation in a file of the test's.
func copied(t testing.TB, name, text string) *store.Conversation {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := store.OpenCopy(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const header = `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}`

// said is a row with a message; parent "" is a root, "-" none at all.
func said(id, parent, role, text string) string {
	p := `,"parentId":` + string(span.Quote(nil, parent))
	switch parent {
	case "":
		p = `,"parentId":null`
	case "-":
		p = ""
	}
	return fmt.Sprintf(`{"type":"message","id":"%s"%s,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"%s","content":%s}}`, id, p, role, span.Quote(nil, text))
}

func rows(lines ...string) string {
	return strings.Join(append([]string{header}, lines...), "\n") + "\n"
}

func ids(p *store.Page) (list []string) {
	for _, m := range p.Messages {
		list = append(list, m.ID)
	}
	return list
}

func TestPartsOfATree(t *testing.T) {
	text := rows(
		said("a", "", "user", "1"), said("b", "a", "assistant", "2"), said("c", "b", "user", "3"),
		said("x", "a", "assistant", "other"), said("d", "b", "assistant", "4"), `{"type":"custom","id":"e","parentId":"d","customType":"x"}`,
		`not json`, `{"type":"compaction","id":"k","parentId":"e","firstKeptEntryId":"d","summary":"s"}`, said("f", "k", "user", "5"),
	)
	for _, c := range []struct {
		name string
		part store.Part
		want []string
		page store.Page // the counts
	}{
		{"whole", store.Part{}, []string{"a", "b", "d", "k", "f"}, store.Page{Total: 5, OffBranch: 2, Broken: 1}},
		{"newest", store.Part{Limit: 2}, []string{"k", "f"}, store.Page{Total: 5, OffBranch: 2, Broken: 1}},
		{"page", store.Part{Limit: 2, Offset: 2}, []string{"b", "d"}, store.Page{Total: 5, Offset: 2, OffBranch: 2, Broken: 1}},
		{"beyond", store.Part{Limit: 2, Offset: 9}, nil, store.Page{Total: 5, Offset: 5, OffBranch: 2, Broken: 1}},
		{"branch", store.Part{Branch: "x"}, []string{"a", "x"}, store.Page{Total: 2, OffBranch: 5, Broken: 1}},
		{"all", store.Part{AllBranches: true}, []string{"a", "b", "c", "x", "d", "k", "f"}, store.Page{Total: 7, Broken: 1}},
		{"bytes", store.Part{Limit: 9, Bytes: 1}, []string{"f"}, store.Page{Total: 5, OffBranch: 2, Broken: 1}},
		{"later", store.Part{Since: 1 << 50}, nil, store.Page{OffBranch: 2, Outside: 5, Untimed: 1, Broken: 1}},
	} {
		for _, name := range []string{"t.jsonl", "t.jsonl.zst"} {
			t.Run(c.name+" "+name, func(t *testing.T) {
				body := text
				if strings.HasSuffix(name, ".zst") {
					body = pressed(t, text)
				}
				got, err := store.ReadPart(context.Background(), []*store.Conversation{copied(t, name, body)}, c.part)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(c.want, ids(got)); d != "" {
					t.Error(d)
				}
				if len(got.Findings) != 1 || got.Findings[0].At.Line != 8 || got.Findings[0].Code != transcript.NotJSON {
					t.Errorf("the broken line is not located: %+v", got.Findings)
				}
				for i, m := range got.Messages {
					if m.Seq != got.Total-got.Offset-len(got.Messages)+i+1 {
						t.Errorf("%s has number %d", m.ID, m.Seq)
					}
				}
				got.Messages, got.Findings = nil, nil
				if d := cmp.Diff(&c.page, got); d != "" {
					t.Error(d)
				}
			})
		}
	}
	var none *store.NoBranch
	if _, err := store.ReadPart(context.Background(), []*store.Conversation{copied(t, "t.jsonl", text)}, store.Part{Branch: "zz"}); !errors.As(err, &none) || !slices.Contains(none.Tips, "f") {
		t.Errorf("a branch that is not there: %v", err)
	}
}

func pressed(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Pages that follow each other are the whole, whatever the tree, in every kind of file; and the end of a file read alone is the end of
// the whole.
func TestPagesAreTheWhole(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(r, "rows")
		var lines []string
		for i := range n {
			parent := "-"
			if k := rapid.IntRange(-2, i-1).Draw(r, "parent"); k >= 0 {
				parent = fmt.Sprintf("id%d", k)
			} else if k == -1 {
				parent = ""
			}
			switch rapid.IntRange(0, 9).Draw(r, "kind") {
			case 0:
				lines = append(lines, `{"type":"mess`)
			case 1:
				lines = append(lines, fmt.Sprintf(`{"type":"compaction","id":"id%d","parentId":null,"summary":"s"}`, i))
			case 2:
				lines = append(lines, fmt.Sprintf(`{"type":"model_change","id":"id%d","parentId":null}`, i))
			default:
				lines = append(lines, said(fmt.Sprintf("id%d", i), parent, "user", strings.Repeat("x", rapid.IntRange(0, 50).Draw(r, "text"))))
			}
		}
		text := rows(lines...)
		plain, packed := copied(t, "t.jsonl", text), copied(t, "t.jsonl.zst", pressed(t, text))
		for _, all := range []bool{false, true} {
			read := func(c *store.Conversation, p store.Part) *store.Page {
				p.AllBranches = all
				page, err := store.ReadPart(context.Background(), []*store.Conversation{c}, p)
				if err != nil {
					r.Fatal(err)
				}
				return page
			}
			whole := read(plain, store.Part{})
			if d := cmp.Diff(ids(whole), ids(read(packed, store.Part{}))); d != "" {
				r.Fatalf("compressed: %s", d)
			}
			limit := rapid.IntRange(1, 7).Draw(r, "limit")
			var got []string
			for at := 0; at < whole.Total; at += limit {
				got = append(ids(read(packed, store.Part{Limit: limit, Offset: at})), got...)
			}
			if d := cmp.Diff(ids(whole), got); d != "" {
				r.Fatalf("pages of %d: %s", limit, d)
			}
			if whole.Total+whole.OffBranch != len(ids(read(plain, store.Part{})))+whole.OffBranch {
				r.Fatal("the counts do not add up")
			}
		}
	})
}

func TestTheEndAloneIsTheEndOfTheWhole(t *testing.T) {
	var lines []string
	parent := ""
	for i := range 60 {
		id := fmt.Sprintf("m%d", i)
		lines = append(lines, said(id, parent, "user", id))
		parent = id
	}
	long := said("long", parent, "user", strings.Repeat("y", store.LongRow))
	text := rows(append(lines, long, `{"broken`, said("last", "long", "assistant", "z"))...)
	dir := t.TempDir()
	if err := (fixtures.State{Agents: []fixtures.Agent{{ID: "main", Sessions: []fixtures.Session{{Key: "agent:main:main", ID: "s", Updated: fixtures.Now}}, Files: []fixtures.File{{Name: "s.jsonl", Data: text}}}}}).Write(dir); err != nil {
		t.Fatal(err)
	}
	r := rowOf(t, opened(t, dir, "main"), "agent:main:main")
	c, err := r.Conversation(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	whole, err := store.ReadPart(context.Background(), []*store.Conversation{c}, store.Part{Limit: 5})
	if err != nil {
		t.Fatal(err)
	}
	c.Bytes = 1 << 40 // as if it were worth it
	end, err := store.ReadPart(context.Background(), []*store.Conversation{c}, store.Part{Limit: 5})
	if err != nil {
		t.Fatal(err)
	}
	if end.Total != -1 || whole.Total != 62 {
		t.Errorf("totals %d and %d", end.Total, whole.Total)
	}
	if d := cmp.Diff(ids(whole), ids(end)); d != "" || len(end.Messages) != 5 {
		t.Error(d, len(end.Messages))
	}
	for i := range end.Messages {
		a, b := whole.Messages[i], end.Messages[i]
		if string(a.Raw) != string(b.Raw) || a.Long != b.Long || a.Time != b.Time || a.Place.Offset != b.Place.Offset {
			t.Errorf("%s: %+v and %+v", a.ID, a.Place, b.Place)
		}
	}
	if !end.Messages[3].Long || !bytes.Contains(end.Messages[3].Raw, []byte(`"user"`)) {
		t.Errorf("the long row: %s", end.Messages[3].Raw)
	}
	if end.Broken != 1 || whole.Broken != 1 || end.Findings[0].Byte != whole.Findings[0].At.Offset {
		t.Errorf("broken rows: %+v and %+v", end.Findings, whole.Findings)
	}
}

// A copy is the file, byte for byte, whatever is in it.
func TestCopyKeepsEveryByte(t *testing.T) {
	pieces := []string{header, "\n", "\r\n", "\x00", "\xef\xbb\xbf", `{"a":1}`, "  ", "\xff\xfe", `{"cut`, said("a", "", "user", "x")}
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 20).Draw(r, "text"), "")
		for name, body := range map[string]string{"t.jsonl": text, "t.jsonl.deleted.2026-01-01T00-00-00.000Z.zst": pressed(t, text)} {
			var b bytes.Buffer
			if _, err := copied(t, name, body).Copy(context.Background(), &b, nil); err != nil {
				r.Fatal(err)
			}
			if b.String() != text {
				r.Fatalf("%s: %q became %q", name, text, b.String())
			}
		}
	})
}

// The lineage of a session: what resets, rewrites and deletions put away, oldest first, every message once.
func TestLineageOfFiles(t *testing.T) {
	first := fixtures.Talk("old", fixtures.Now-3*fixtures.Day).User("one").Assistant("two")
	second := fixtures.Talk("now", fixtures.Now-fixtures.Day).User("three").Assistant("four")
	more := second.String()
	grown := fixtures.Talk("now", fixtures.Now-fixtures.Day).User("three").Assistant("four").User("five").String()
	dir := t.TempDir()
	err := (fixtures.State{Agents: []fixtures.Agent{{
		ID: "main", Sessions: []fixtures.Session{{Key: "agent:main:main", ID: "now", Updated: fixtures.Now, Entry: `{"usageFamilySessionIds":["old","now"]}`}},
		Files: []fixtures.File{
			{Name: fixtures.Gone("old.jsonl", "reset", fixtures.Now-2*fixtures.Day), Data: first.String(), Time: fixtures.Now - 2*fixtures.Day},
			{Name: fixtures.Gone("now.jsonl", "bak", fixtures.Now-fixtures.Hour), Data: more, Time: fixtures.Now - fixtures.Hour},
			{Name: fixtures.Gone("other.jsonl", "reset", fixtures.Now-fixtures.Hour), Data: more, Time: fixtures.Now - fixtures.Hour},
			{Name: "now.jsonl", Data: grown},
		},
	}}}).Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := opened(t, dir, "main")
	all, err := rowOf(t, s, "agent:main:main").Conversations(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, c := range all {
		reasons = append(reasons, c.Reason+" "+c.ID)
	}
	if d := cmp.Diff([]string{"reset old", "bak now", "current now"}, reasons); d != "" {
		t.Fatal(d)
	}
	p, err := store.ReadPart(context.Background(), all, store.Part{})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, m := range p.Messages {
		texts = append(texts, transcript.Text(m.Raw))
	}
	if d := cmp.Diff([]string{"one", "two", "three", "four", "five"}, texts); d != "" || p.Repeats != 2 || p.Total != 5 {
		t.Error(d, p.Repeats, p.Total)
	}

	// Without its file the newest reset of the same id is read.
	if err := os.Rename(filepath.Join(s.Dir(), "now.jsonl"), filepath.Join(s.Dir(), fixtures.Gone("now.jsonl", "reset", fixtures.Now))); err != nil {
		t.Fatal(err)
	}
	c, err := rowOf(t, opened(t, dir, "main"), "agent:main:main").Conversation(context.Background())
	if err != nil || c.Missing || c.Reason != "reset" || c.ID != "now" {
		t.Errorf("%+v %v", c, err)
	}
	if kept, err := s.ByID(context.Background(), "old"); err != nil || len(kept) != 1 || kept[0].Reason != "reset" {
		t.Errorf("by id: %v %v", kept, err)
	}
	if kept, err := s.ByID(context.Background(), "nobody"); err != nil || kept != nil {
		t.Errorf("by an id that is not there: %v %v", kept, err)
	}
}

// Both eras give the same rows of the same conversation.
func TestErasGiveTheSameRows(t *testing.T) {
	talk := func() *fixtures.Transcript {
		return fixtures.Talk("11111111-2222-4333-8444-555555555555", fixtures.Now-fixtures.Day).Setup().User("one").Tool("exec", `{"command":"ls"}`, strings.Repeat("out ", 800)).Assistant("two").User("dead end").Branch(2).User("three").Assistant("four")
	}
	past := fixtures.Talk("99999999-2222-4333-8444-555555555555", fixtures.Now-5*fixtures.Day).User("before").Assistant("long ago")
	var texts [][]string
	var pages []*store.Page
	for _, era := range []fixtures.Era{fixtures.FileEra, fixtures.SQLiteEra} {
		dir := t.TempDir()
		x := talk()
		session := fixtures.Session{Key: "agent:main:main", ID: x.ID, Updated: fixtures.Now, Talk: x}
		agent := fixtures.Agent{ID: "main", Era: era}
		if era == fixtures.SQLiteEra {
			session.Past = []*fixtures.Transcript{past}
			agent.Archives = []fixtures.Archive{{Key: "agent:main:main", Talk: fixtures.Talk("gone", fixtures.Now-9*fixtures.Day).User("deleted"), Reason: "deleted", At: fixtures.Now - 8*fixtures.Day}}
		}
		agent.Sessions = []fixtures.Session{session}
		if err := (fixtures.State{Agents: []fixtures.Agent{agent}}).Write(dir); err != nil {
			t.Fatal(err)
		}
		r := rowOf(t, opened(t, dir, "main"), "agent:main:main")
		c, err := r.Conversation(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if _, err := c.Copy(context.Background(), &b, nil); err != nil || b.String() != x.String() {
			t.Errorf("%s: the copy is not the transcript: %v", era, err)
		}
		p, err := store.ReadPart(context.Background(), []*store.Conversation{c}, store.Part{})
		if err != nil {
			t.Fatal(err)
		}
		pages, texts = append(pages, p), append(texts, ids(p))
		if era == fixtures.SQLiteEra {
			all, err := r.Conversations(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			p, err := store.ReadPart(context.Background(), all, store.Part{})
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, m := range p.Messages[:3] {
				said = append(said, transcript.Text(m.Raw))
			}
			if d := cmp.Diff([]string{"deleted", "before", "long ago"}, said); d != "" || len(all) != 3 {
				t.Error(d, len(all))
			}
		}
	}
	if d := cmp.Diff(texts[0], texts[1]); d != "" {
		t.Error(d)
	}
	if pages[0].OffBranch != pages[1].OffBranch || pages[0].Total != pages[1].Total || pages[0].OffBranch == 0 {
		t.Errorf("%d of %d, %d of %d off the branch", pages[0].OffBranch, pages[0].Total, pages[1].OffBranch, pages[1].Total)
	}
}

func TestDiff(t *testing.T) {
	base := []string{said("a", "", "user", "1"), said("b", "a", "assistant", "2"), said("c", "b", "user", "3")}
	for _, c := range []struct {
		name string
		b    string
		want []string // change and id
		same int
	}{
		{"same", rows(base...), nil, 3},
		{"white space between members", rows(strings.Replace(base[0], `,"parentId"`, ` , "parentId"`, 1), base[1], base[2]), nil, 3},
		{"gone", rows(base[0], base[1]), []string{"only-a c"}, 2},
		{"new", rows(append(base, said("d", "c", "user", "4"))...), []string{"only-b d"}, 3},
		{"changed", rows(base[0], said("b", "a", "assistant", "two"), base[2]), []string{"changed b"}, 2},
		{"moved", rows(base[0], base[1], said("c", "a", "user", "3")), []string{"switched b", "moved c"}, 1},
		{"twice: the later one counts", rows(append(base, base[2])...), []string{"switched c", "only-b c"}, 2},
		{"without ids", rows(append(base, `{"type":"x","y":1}`)...), []string{"only-b "}, 3},
		{"other order", rows(base[1], base[0], base[2]), nil, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			r, err := store.Diff(context.Background(), copied(t, "a.jsonl", rows(base...)), copied(t, "b.jsonl", c.b), func(d store.Difference) error {
				got = append(got, string(d.What)+" "+d.ID)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" || r.Same != c.same {
				t.Error(d, r.Same)
			}
			if r.Identical() != (c.want == nil && !r.Order) || r.Order != (c.name == "other order") {
				t.Errorf("identical %t, order %t", r.Identical(), r.Order)
			}
		})
	}
}

// A conversation differs from itself in nothing, in any packing; and what is only here from one side is only there from the other.
func TestDiffIsFair(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		draw := func(name string) string {
			var lines []string
			for i := range rapid.IntRange(0, 12).Draw(r, name) {
				lines = append(lines, said(fmt.Sprintf("id%d", rapid.IntRange(0, 9).Draw(r, "id")), rapid.SampledFrom([]string{"", "-", "id0", "id3"}).Draw(r, "parent"), "user", rapid.SampledFrom([]string{"x", "y"}).Draw(r, "text")), rapid.SampledFrom([]string{"", `{"cut`, `{"z":1}`}).Draw(r, "noise"))
				_ = i
			}
			return rows(lines...)
		}
		a, b := draw("a"), draw("b")
		count := func(x, y *store.Conversation) *store.Comparison {
			c, err := store.Diff(context.Background(), x, y, func(store.Difference) error { return nil })
			if err != nil {
				r.Fatal(err)
			}
			return c
		}
		if c := count(copied(t, "a.jsonl", a), copied(t, "a.jsonl.zst", pressed(t, a))); !c.Identical() {
			r.Fatalf("%+v", c)
		}
		there, back := count(copied(t, "a.jsonl", a), copied(t, "b.jsonl", b)), count(copied(t, "b.jsonl", b), copied(t, "a.jsonl", a))
		if there.Counts[store.OnlyA] != back.Counts[store.OnlyB] || there.Counts[store.OnlyB] != back.Counts[store.OnlyA] ||
			there.Counts[store.Changed] != back.Counts[store.Changed] || there.Counts[store.Moved] != back.Counts[store.Moved] || there.Same != back.Same {
			r.Fatalf("%v and %v", there.Counts, back.Counts)
		}
	})
}

// The newest rows of a long window are those that all of it gives.
func TestTheNewestOfAWindow(t *testing.T) {
	talk := fixtures.Talk("11111111-2222-4333-8444-555555555555", fixtures.Now-fixtures.Day).Setup()
	for i := range 80 {
		talk.User(fmt.Sprint("question ", i)).Tool("exec", `{"command":"ls"}`, "out").Assistant(fmt.Sprint("answer ", i))
		if i == 70 {
			talk.Branch(2).User(strings.Repeat("long ", store.LongRow/4)).Compaction("short", 3)
		}
	}
	dir := t.TempDir()
	err := (fixtures.State{Agents: []fixtures.Agent{{ID: "main", Era: fixtures.SQLiteEra, Sessions: []fixtures.Session{{Key: "agent:main:main", ID: talk.ID, Updated: fixtures.Now, Talk: talk}}}}}).Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := rowOf(t, opened(t, dir, "main"), "agent:main:main").Conversation(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	whole, err := store.ReadPart(context.Background(), []*store.Conversation{c}, store.Part{Limit: 60})
	if err != nil {
		t.Fatal(err)
	}
	c.Bytes = 1 << 40 // as if it were worth it
	end, err := store.ReadPart(context.Background(), []*store.Conversation{c}, store.Part{Limit: 60})
	if err != nil {
		t.Fatal(err)
	}
	if end.Total != -1 || len(end.Messages) != 60 {
		t.Fatalf("total %d, %d messages", end.Total, len(end.Messages))
	}
	newest := end.Messages
	long := 0
	for i := range newest {
		a, b := whole.Messages[i], newest[i]
		if a.ID != b.ID || string(a.Raw) != string(b.Raw) || a.Time != b.Time || a.Kind != b.Kind || a.Long != b.Long {
			t.Errorf("%s %s: %.80s and %.80s", a.ID, b.ID, a.Raw, b.Raw)
		}
		if b.Long {
			long++
		}
	}
	if long != 1 {
		t.Errorf("%d long rows", long)
	}
}

// A reset of a database hides what was before it, but for what users and assistants said from the first kept row on; nothing is lost.
func TestResetsHide(t *testing.T) {
	text := strings.Replace(rows(
		said("a", "", "user", "1"), said("b", "a", "assistant", "2"), said("c", "b", "user", "3"), said("d", "c", "toolResult", "4"), said("e", "d", "assistant", "5"),
		`{"type":"reset","id":"r","parentId":"e","reason":"new","firstKeptEntryId":"c"}`, said("f", "r", "user", "6"),
	), `"version":3`, `"version":4`, 1)
	c := copied(t, "t.jsonl", text)
	p, err := store.ReadPart(context.Background(), []*store.Conversation{c}, store.Part{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"c", "e", "f"}, ids(p)); d != "" || p.Before != 3 || p.OffBranch != 0 {
		t.Error(d, p.Before, p.OffBranch)
	}
	if p, err = store.ReadPart(context.Background(), []*store.Conversation{c}, store.Part{AllBranches: true}); err != nil || p.Total != 6 {
		t.Errorf("%+v %v", p, err)
	}
}
