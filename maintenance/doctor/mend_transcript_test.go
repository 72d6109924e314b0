package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oc/fixtures"
	"oc/maintenance"
	"oc/transcript"
)

var repairID = regexp.MustCompile(`repair-[0-9a-f]{8}`)

// sick lays out a state with one row and its transcript.
func sick(t *testing.T, body string) (state, path string) {
	t.Helper()
	state = filepath.Join(t.TempDir(), "state")
	dir := filepath.Join(state, "agents", "main", "sessions")
	put(t, filepath.Join(dir, "sessions.json"), fmt.Sprintf(`{"agent:main:main": {"sessionId": "t1", "updatedAt": %d}}`, now.UnixMilli()-3600_000))
	path = filepath.Join(dir, "t1.jsonl")
	put(t, path, body)
	return state, path
}

// cured is a text as a cure of some codes leaves it.
func cured(t testing.TB, text string, codes ...transcript.Code) (string, []string, error) {
	path := filepath.Join(t.TempDir(), "t1.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := &cure{path: path, wants: map[transcript.Code]bool{}, now: now, session: func() (string, error) { return "t1", nil }, cwd: "/srv/ws"}
	for _, code := range codes {
		c.wants[code] = true
	}
	if err := c.work(f, int64(len(text))); err != nil {
		return text, nil, err
	}
	var out bytes.Buffer
	if err := maintenance.SplicedFile(path, c.layers...)(&out); err != nil {
		t.Fatal(err)
	}
	return out.String(), c.did, nil
}

// What is mended in a transcript, and what its lines are afterwards.
func TestFixTranscripts(t *testing.T) {
	g := six()
	cut := g[5][:len(g[5])-9]
	noResult := func(id, parent, call string) string {
		return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%q,"timestamp":"2026-09-20T10:01:00.000Z","message":{"role":"toolResult","toolCallId":%q,"toolName":"read","content":[{"type":"text","text":"aborted"}],"details":{"openclawSyntheticMissingToolResult":true},"isError":true,"timestamp":1789898460000}}`, id, parent, call)
	}
	for _, c := range []struct {
		name, before, after string
		codes               []Code
	}{
		{"nul tail", lines(g...) + strings.Repeat("\x00", 5000), lines(g...), []Code{"nul-tail"}},
		{"torn tail", lines(g[:5]...) + cut, lines(g[:5]...), []Code{"torn-tail"}},
		{
			"orphan", lines(append(g[:4:4], said("d", "nowhere", "assistant", text("so")), said("e", "d", "user", text("three")))...),
			lines(append(g[:4:4], said("d", "c", "assistant", text("so")), said("e", "d", "user", text("three")))...),
			[]Code{"orphan-parent"},
		},
		{"orphan at the start", lines(talkHead, said("a", "nowhere", "user", text("one"))), lines(talkHead, said("a", "", "user", text("one"))), []Code{"orphan-parent"}},
		{"double", lines(append(g[:3:3], append([]string{g[2]}, g[3:]...)...)...), lines(g...), []Code{"duplicate-same"}},
		{"double at the end", lines(append(g[:6:6], g[3])...), lines(append(g[:3:3], g[3], g[4], g[5])...), []Code{"duplicate-same"}},
		{
			"open call", lines(append(g[:6:6], answer("f", "e", "k1", "k2"), result("r", "f", "k1"))...),
			lines(append(g[:6:6], answer("f", "e", "k1", "k2"), result("r", "f", "k1"), noResult("repair-ID", "r", "k2"))...),
			[]Code{"open-call"},
		},
		{
			"lost results", lines(append(g[:6:6], answer("f", "e", "k1", "k2"), said("g", "f", "user", text("well?")), answer("h", "g"))...),
			lines(append(g[:6:6], answer("f", "e", "k1", "k2"), noResult("repair-ID", "f", "k1"), noResult("repair-ID", "repair-ID", "k2"), said("g", "repair-ID", "user", text("well?")), answer("h", "g"))...),
			[]Code{"lost-result"},
		},
		{
			"no header", lines(g[1:]...),
			lines(append([]string{strings.Replace(strings.Replace(talkHead, "10:00", "10:01", 1), `"/w"`, `"/srv/ws"`, 1)}, g[1:]...)...),
			[]Code{"no-header"},
		},
		{
			"header without an id", lines(append([]string{`{"type":"session","cwd":"/w"}`}, g[1:]...)...),
			lines(append([]string{`{"type":"session","cwd":"/w","id":"t1","version":3}`}, g[1:]...)...),
			[]Code{"bad-header"},
		},
		{
			"no header, and entries without ids", lines(unnamed("user", "one"), unnamed("assistant", "two")),
			lines(`{"type":"session","version":1,"id":"t1","timestamp":"2026-09-20T10:01:00.000Z","cwd":"/srv/ws"}`, unnamed("user", "one"), unnamed("assistant", "two")),
			[]Code{"no-header"},
		},
		{
			"circle", lines(talkHead, said("a", "c", "user", text("one")), answer("b", "a"), said("c", "b", "user", text("two"))),
			lines(g[:4]...),
			[]Code{"cycle"},
		},
		{
			"its own parent", lines(append(g[:3:3], said("c", "c", "user", text("two")), g[4])...),
			lines(g[:5]...),
			[]Code{"cycle"},
		},
		{
			"kept from a row that is lost", lines(g[0], g[1], g[2], g[4], compacted("k", "d", "c"), said("e", "k", "user", text("three"))),
			lines(g[0], g[1], g[2], g[4], compacted("k", "d", "d"), said("e", "k", "user", text("three"))),
			[]Code{"first-kept-unknown"},
		},
		{
			"kept from a row that is lost, and relinked", lines(g[0], g[1], g[2], g[4], compacted("k", "d", "c"), said("e", "k", "user", text("three"))),
			lines(g[0], g[1], g[2], answer("d", "b"), compacted("k", "d", "d"), said("e", "k", "user", text("three"))),
			[]Code{"first-kept-unknown", "orphan-parent"},
		},
		{
			"images", lines(g[0], g[1], said("b", "a", "user", `[{"type":"text", "text":"see"},{"type":"image","mimeType":"image/png","data":"????"},{"type":"image","mimeType":"image/png","data":"`+pixel+`"},{"type":"image","mimeType":"image/png","data":""} ]`), answer("c", "b")),
			lines(g[0], g[1], said("b", "a", "user", `[{"type":"text", "text":"see"},`+noImage+`,{"type":"image","mimeType":"image/png","data":"`+pixel+`"},`+noImage+` ]`), answer("c", "b")),
			[]Code{"bad-image"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, path := sick(t, c.before)
			if err := os.Chmod(path, 0o640); err != nil {
				t.Fatal(err)
			}
			heal(t, state, c.codes...)
			var codes []transcript.Code
			for _, code := range c.codes {
				codes = append(codes, transcript.Code(code))
			}
			got, _, err := cured(t, c.before, codes...)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(strings.Split(c.after, "\n"), strings.Split(repairID.ReplaceAllString(got, "repair-ID"), "\n")); d != "" {
				t.Error(d)
			}
		})
	}
	for _, c := range []struct {
		body  string
		codes []Code
	}{
		{lines(append(g[:4:4], said("d", "nowhere", "assistant", text("so")))...) + strings.Repeat("\x00", 10), []Code{"orphan-parent", "nul-tail"}},
		{lines(append(g[1:4:4], said("d", "d", "user", `[{"type":"image","mimeType":"image/png","data":"????"}]`), compacted("k", "d", "lost"), said("e", "lost", "user", text("two")))...), []Code{"no-header", "cycle", "bad-image"}},
		{
			lines(`{"type":"session","cwd":"/w"}`, g[1], g[2], g[2], g[4], compacted("k", "d", "c"), answer("e", "k", "k1"), said("f", "e", "user", text("well?")), answer("g", "f", "k2"), result("h", "g", "k2"), answer("i", "h", "k3")) + `{"type":"message","id":"cut`,
			[]Code{"bad-header", "duplicate-same", "first-kept-unknown", "lost-result", "open-call", "torn-tail"},
		},
	} {
		state, _ := sick(t, c.body)
		suffer(t, state, c.codes...)
	}
}

// pixel is an image.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="

// unnamed is a message row of version 1, which has no id.
func unnamed(role, said string) string {
	return fmt.Sprintf(`{"type":"message","timestamp":"2026-09-20T10:01:00.000Z","message":{"role":%q,"content":%s}}`, role, text(said))
}

// compacted is a compaction.
func compacted(id, parent, kept string) string {
	return fmt.Sprintf(`{"type":"compaction","id":%q,"parentId":%q,"timestamp":"2026-09-20T10:01:00.000Z","summary":"s","firstKeptEntryId":%q,"tokensBefore":9}`, id, parent, kept)
}

// What cannot be known stays, with the reason, and the rest of the file is mended all the same.
func TestDeclined(t *testing.T) {
	g := six()
	twins := said("b", "c", "user", text("another")) // with the id of a row that has descendants: a circle that no link of its own makes
	for _, c := range []struct {
		name, body string
		code       Code
		why        string
	}{
		{"kept from nowhere", lines(g[0], g[1], g[2], compacted("k", "b", "gone"), said("c", "k", "user", text("two"))), "first-kept-unknown", "nothing tells what was kept"},
		{"circle by one id for two entries", lines(g[0], g[1], g[2], g[3], twins), "cycle", "would still be cycle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, path := sick(t, c.body+"{torn")
			aged(t, state)
			o, w := ward(t, state, nil)
			m := RepairTranscript(t.Context(), o, path, w, false)
			if m.Err != nil || m.Done.Run == nil {
				t.Fatalf("%v", m.Err)
			}
			why := ""
			for _, l := range m.Left {
				if l.Code == c.code {
					why += l.Why
				}
			}
			if !strings.Contains(why, c.why) {
				t.Errorf("left: %+v", m.Left)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != c.body {
				t.Errorf("%v\n%s", err, got)
			}
			o, w = ward(t, state, nil)
			all, err := Fix(t.Context(), o, []Code{c.code}, w, false)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range all {
				if m.Err != nil || m.Done.Run != nil || len(m.Findings) > 0 {
					t.Errorf("%+v", m)
				}
			}
		})
	}
	r := ofTranscript(t, lines(g[0], g[1], g[2], compacted("k", "b", "gone"), said("c", "k", "user", text("two"))))
	if f := one(t, r, "first-kept-unknown"); f.Remedy != ByHand || f.Command != byHandKept {
		t.Errorf("%+v", f)
	}
	r = ofTranscript(t, lines(g[0], g[1], g[2], g[4], compacted("k", "d", "c")))
	if f := one(t, r, "first-kept-unknown"); f.Remedy != Preview {
		t.Errorf("%+v", f)
	}
}

// A header that is missing is that of the session: the id is the row's, the directory the agent's.
func TestHeaderOfTheSession(t *testing.T) {
	for said, want := range map[string]string{
		``: "STATE/workspace",
		`agents: {defaults: {workspace: "/srv/all"}}`:                                        "/srv/all",
		`agents: {defaults: {workspace: "/srv/all"}, list: [{id: "main", workspace: "/m"}]}`: "/m",
	} {
		state := filepath.Join(t.TempDir(), "state")
		put(t, filepath.Join(state, "openclaw.json"), "{"+said+"}")
		dir := filepath.Dir(fixtures.Store(state, "main"))
		path := filepath.Join(dir, "talk.jsonl")
		put(t, fixtures.Store(state, "main"), `{"agent:main:main":{"sessionId":"s-1","sessionFile":"talk.jsonl","updatedAt":1789990000000}}`)
		put(t, path, lines(six()[1:]...))
		aged(t, state)
		want = fmt.Sprintf(`{"type":"session","version":3,"id":"s-1","timestamp":"2026-09-20T10:01:00.000Z","cwd":%q}`, strings.Replace(want, "STATE", state, 1))
		o, w := ward(t, state, nil)
		if m := RepairTranscript(t.Context(), o, path, w, false); m.Err != nil {
			t.Fatal(m.Err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != lines(append([]string{want}, six()[1:]...)...) {
			t.Errorf("%v\n%s", err, got)
		}
		back(t, state)
		if _, err := Fix(t.Context(), o, []Code{"no-header"}, w, false); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(got), want+"\n") {
			t.Errorf("%v\n%s", err, got)
		}
	}
}

// A row that goes takes nothing along that hung on it, was kept from it, or went on from it.
func TestCureKeepsContext(t *testing.T) {
	g := six()
	null := func(id, parent string) string {
		return strings.Replace(said(id, parent, "null", text("whose?")), `"role":"null"`, `"role":null`, 1)
	}
	leaf := func(target string) string {
		return fmt.Sprintf(`{"type":"leaf","id":"l","parentId":"c","targetId":%s}`, target)
	}
	for name, c := range map[string][2]string{
		"kept from it": {
			lines(g[0], g[1], g[2], null("x", "b"), null("y", "x"), said("c", "y", "user", text("two")), compacted("k", "c", "x"), said("e", "k", "user", text("three"))),
			lines(g[0], g[1], g[2], said("c", "b", "user", text("two")), compacted("k", "c", "c"), said("e", "k", "user", text("three"))),
		},
		"went on from it": {
			lines(g[0], g[1], g[2], null("x", "b"), g[3], leaf(`"x"`)), lines(g[0], g[1], g[2], g[3], leaf(`"b"`)),
		},
		"went on from the first": {
			lines(g[0], null("x", ""), g[1], leaf(`"x"`)), lines(g[0], g[1], leaf("null")),
		},
	} {
		got, _, err := cured(t, c[0], transcript.BadRole)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(strings.Split(c[1], "\n"), strings.Split(got, "\n")); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// The lines that are mended by repair transcript alone.
func TestCureOfLines(t *testing.T) {
	g := six()
	null := strings.Replace(said("x", "b", "null", text("whose?")), `"role":"null"`, `"role":null`, 1)
	for _, c := range []struct {
		name, before, after string
		codes               []transcript.Code
	}{
		{"bridged", lines(g[0], g[1], g[2], null, said("c", "x", "user", text("two"))), lines(g[0], g[1], g[2], g[3]), []transcript.Code{"bad-role"}},
		{"no message", lines(g[0], `{"type":"message","id":"y","parentId":null}`, said("a", "y", "user", text("one"))), lines(g[0], g[1]), []transcript.Code{"no-message"}},
		{"not json", lines(g[0], g[1], "{bad", g[2]), lines(g[0], g[1], g[2]), []transcript.Code{"not-json"}},
		{"behind nul bytes", lines(g[0], g[1], "\x00\x00"+g[2], g[3]), lines(g[:4]...), []transcript.Code{"nul"}},
		{"parent behind nul bytes", lines(g[0], g[1], "\x00\x00"+g[2], g[3]), lines(g[:4]...), []transcript.Code{"orphan-parent"}},
		{"mark", "\xef\xbb\xbf" + lines(g...), lines(g...), []transcript.Code{"bom"}},
		{"late header", lines(g[1], g[0], g[2]), lines(g[0], g[1], g[2]), []transcript.Code{"late-header"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, did, err := cured(t, c.before, c.codes...)
			if err != nil || len(did) == 0 {
				t.Fatal(err, did)
			}
			if d := cmp.Diff(strings.Split(c.after, "\n"), strings.Split(got, "\n")); d != "" {
				t.Error(d)
			}
		})
	}
}

// OpenClaw's own repair finds the same lines to be dropped and the same calls without a result, and after oc's repair every message that it keeps
// is in the context, also where its own loses them (spec/transcript.md 1.9).
func TestCureAsRecorded(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "file-repair.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	drops := []transcript.Code{transcript.NotJSON, transcript.NotObject, transcript.NoMessage, transcript.BadRole, transcript.TornTail, transcript.NUL}
	cases := 0
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		var c struct {
			Name     string
			Lines    []string
			Expected struct {
				Result struct {
					Repaired     bool
					Reason       string
					DroppedLines int
					Inserted     int `json:"insertedToolResults"`
				}
				LinesAfter                            []json.RawMessage
				ContextRolesBefore, ContextRolesAfter []any
			}
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		cases++
		t.Run(c.Name, func(t *testing.T) {
			text := lines(c.Lines...)
			got, did, err := cured(t, text, drops...)
			if c.Expected.Result.Reason != "" {
				return // OpenClaw leaves such a file to the next open; headers are a matter of their own
			}
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(text, "\n") - strings.Count(got, "\n"); n != c.Expected.Result.DroppedLines {
				t.Errorf("%d lines go, with OpenClaw %d: %v", n, c.Expected.Result.DroppedLines, did)
			}
			want := 0
			for _, role := range c.Expected.ContextRolesBefore {
				if r, ok := role.(string); ok && (r == "user" || r == "assistant" || r == "toolResult") {
					want++
				}
			}
			have := 0
			for _, n := range rolesOf(t, got) {
				have += n
			}
			if have < want || have < len(c.Expected.ContextRolesAfter)-c.Expected.Result.Inserted {
				t.Errorf("%d messages can be reached, before %d, with OpenClaw %d", have, want, len(c.Expected.ContextRolesAfter))
			}
			if c.Expected.Result.Inserted > 0 {
				got, _, err := cured(t, got, transcript.OpenCall, transcript.LostResult)
				if err != nil || strings.Count(got, "openclawSyntheticMissingToolResult") != c.Expected.Result.Inserted {
					t.Errorf("%v, results in %s", err, got)
				}
			}
		})
	}
	if cases < 14 {
		t.Errorf("only %d cases", cases)
	}
}

// rolesOf counts the roles of the messages on the active branch.
func rolesOf(t *testing.T, text string) map[string]int {
	t.Helper()
	r := strings.NewReader(text)
	var tree transcript.Tree
	s := transcript.Scanner{Tree: &tree}
	if err := s.Read(strings.NewReader(text), func(*transcript.Row) error { return nil }); err != nil {
		t.Fatal(err)
	}
	branch, _ := tree.Branch()
	out := map[string]int{}
	for _, at := range branch {
		e, err := transcript.Load(r)(at)
		if err != nil {
			t.Fatal(err)
		}
		if role := transcript.Role(e.Message); role != "" {
			out[role]++
		}
	}
	return out
}

// Over random damage of random trees: a cure either refuses, or leaves none of what it mends, loses no message of the branch, and a second one
// finds nothing.
func TestRandomCures(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all := []string{rapid.SampledFrom([]string{talkHead, talkHead, `{"type":"session"}`, "{bad"}).Draw(rt, "head")}
		ids := []string{""}
		for i := range rapid.IntRange(0, 12).Draw(rt, "rows") {
			id := fmt.Sprintf("m%d", i)
			parent := rapid.SampledFrom(append(ids[max(0, len(ids)-2):], "nowhere", ids[0])).Draw(rt, "parent")
			var line string
			switch rapid.IntRange(0, 7).Draw(rt, "kind") {
			case 5:
				line = compacted(id, parent, rapid.SampledFrom(append(ids, "nowhere", fmt.Sprintf("m%d", i+1))).Draw(rt, "kept"))
			case 6:
				line = said(id, rapid.SampledFrom([]string{id, fmt.Sprintf("m%d", i+1)}).Draw(rt, "forward"), "user", `[{"type":"image","mimeType":"image/png","data":"`+rapid.SampledFrom([]string{"????", pixel}).Draw(rt, "image")+`"}]`)
			case 0:
				line = answer(id, parent, id+"k")
			case 1:
				line = strings.Replace(said(id, parent, "user", text(id)), `"user"`, "null", 1)
			case 2:
				line = "{" + id
				id = ""
			case 3:
				line = all[len(all)-1]
				id = ""
			default:
				line = said(id, parent, rapid.SampledFrom([]string{"user", "assistant"}).Draw(rt, "role"), text(id))
			}
			if line == talkHead {
				continue
			}
			if all = append(all, line); id != "" {
				ids = append(ids, id)
			}
		}
		text := lines(all...)
		if rapid.Bool().Draw(rt, "cut") {
			text = text[:max(0, len(text)-rapid.IntRange(1, 20).Draw(rt, "by"))]
		}
		text += strings.Repeat("\x00", rapid.IntRange(0, 3).Draw(rt, "nul"))
		codes := rapid.SliceOfDistinct(rapid.SampledFrom(curable), rapid.ID[transcript.Code]).Draw(rt, "codes")
		got, _, err := cured(t, text, codes...)
		if err != nil {
			return
		}
		for role, n := range rolesOf(t, text) {
			if have := rolesOf(t, got)[role]; have < n && !slices.Contains(codes, transcript.DuplicateSame) {
				rt.Fatalf("%d messages of %s, before %d:\n%q\n%q", have, role, n, text, got)
			}
		}
		again, did, err := cured(t, got, codes...)
		if err != nil || again != got {
			rt.Fatalf("a second cure: %v %v\n%q\n%q\n%q", err, did, text, got, again)
		}
	})
}

// A transcript that is mended as a whole comes back byte for byte, and one that is in use stays as it is.
func TestRepairTranscript(t *testing.T) {
	g := six()
	null := strings.Replace(said("x", "b", "null", text("whose?")), `"role":"null"`, `"role":null`, 1)
	state, path := sick(t, "\xef\xbb\xbf"+lines(g[0], g[1], "{bad", g[2], null, said("c", "x", "user", text("two")), g[4], g[4], said("e", "lost", "user", text("three")))+"\x00\x00")
	o, w := ward(t, state, nil)
	if m := RepairTranscript(t.Context(), o, path, w, false); m.Err == nil || m.Done.Run != nil {
		t.Errorf("a transcript of a moment ago was mended: %+v", m)
	}
	aged(t, state)
	before, messages := shown(t, state), spoken(t, state)
	dry := RepairTranscript(t.Context(), o, path, w, true)
	m := RepairTranscript(t.Context(), o, path, w, false)
	if m.Err != nil || dry.Err != nil || m.Done.Run == nil || len(m.Left) > 0 {
		t.Fatalf("%v %v, left %+v", dry.Err, m.Err, m.Left)
	}
	if d := cmp.Diff(told([]Mended{dry}), told([]Mended{m})); d != "" {
		t.Error(d)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != lines(g...) {
		t.Errorf("%v\n%s", err, got)
	}
	if lost := missing(messages, spoken(t, state)); len(lost) > 0 {
		t.Error(lost)
	}
	if again := RepairTranscript(t.Context(), o, path, w, false); again.Err != nil || again.Done.Run != nil {
		t.Errorf("a second time: %+v", again)
	}
	back(t, state)
	if d := cmp.Diff(before, shown(t, state)); d != "" {
		t.Error(d)
	}
}
