package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/fixtures"
	"oc/store/lock"
	"oc/transcript"
)

const talkHead = `{"type":"session","version":3,"id":"t1","timestamp":"2026-09-20T10:00:00.000Z","cwd":"/w"}`

// said is a message row; parent "" is null.
func said(id, parent, role, content string) string {
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-09-20T10:01:00.000Z","message":{"role":%q,"content":%s}}`, id, p, role, content)
}

func text(s string) string { return fmt.Sprintf(`[{"type":"text","text":%q}]`, s) }

// answer is an assistant's message with calls of tools, by their ids.
func answer(id, parent string, calls ...string) string {
	var blocks []string
	for _, c := range calls {
		blocks = append(blocks, fmt.Sprintf(`{"type":"toolCall","id":%q,"name":"read","arguments":{}}`, c))
	}
	if len(blocks) == 0 {
		blocks = []string{`{"type":"text","text":"Well."}`}
	}
	return said(id, parent, "assistant", "["+strings.Join(blocks, ",")+"]")
}

func result(id, parent, call string) string {
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%q,"timestamp":"2026-09-20T10:01:00.000Z","message":{"role":"toolResult","toolCallId":%q,"toolName":"read","content":[{"type":"text","text":"x"}]}}`, id, parent, call)
}

// ofTranscript examines a state with one row and its transcript, which was
// written a day ago, unless change says otherwise.
func ofTranscript(t *testing.T, body string, change ...func(dir string)) *Report {
	t.Helper()
	state := filepath.Join(t.TempDir(), "state")
	store := fixtures.Store(state, "main")
	put(t, store, fmt.Sprintf(`{"agent:main:main": {"sessionId": "t1", "updatedAt": %d}}`, fixtures.Now-fixtures.Hour))
	put(t, filepath.Join(filepath.Dir(store), "t1.jsonl"), body)
	age(t, filepath.Dir(store), 24*time.Hour)
	for _, f := range change {
		f(filepath.Dir(store))
	}
	return examine(t, state, func(o *Options) { o.Only = mustSelect(t, "transcripts") })
}

// six are good lines.
func six() []string {
	return []string{
		talkHead, said("a", "", "user", text("one")), answer("b", "a"), said("c", "b", "user", text("two")), answer("d", "c"), said("e", "d", "user", text("three")),
	}
}

func lines(all ...string) string { return strings.Join(all, "\n") + "\n" }

// S10 to S12: each damage has its own code, with line, byte and severity, and
// a sound transcript has none.
func TestTranscripts(t *testing.T) {
	good := lines(six()...)
	at := int64(len(good))
	for _, c := range []struct {
		name string
		body string
		want map[Code]int
		line int
		byte int64
		says []string
	}{
		{"sound", good, map[Code]int{}, 0, 0, nil},
		{"NUL tail", good + strings.Repeat("\x00", 284), map[Code]int{"nul-tail": 1}, 7, at, []string{"284 bytes"}},
		{"cut", good + `{"type":"message","id":"f","parentId":"e","message":{"role":"assis`, map[Code]int{"torn-tail": 1}, 7, at + 66, nil},
		{"no line break", strings.TrimSuffix(good, "\n"), map[Code]int{"no-final-break": 1}, 6, at - 1, nil},
		{"blank lines and NUL bytes", lines(talkHead, "", six()[1], "\x00\x00", answer("b", "a")), map[Code]int{"nul": 1}, 4, 0, nil},
		{"junk between", lines(six()[0], six()[1], `{"type":"mess`, six()[2]), map[Code]int{"not-json": 1}, 3, 0, nil},
		{"CRLF and BOM", "\xef\xbb\xbf" + strings.ReplaceAll(good, "\n", "\r\n"), map[Code]int{"crlf": 1, "bom": 1}, 1, 0, nil},
		{"lone surrogate", lines(talkHead, said("a", "", "user", `[{"type":"text","text":"\ud83d"}]`), answer("b", "a")), map[Code]int{}, 0, 0, nil},
		{"half a character", lines(talkHead, said("a", "", "user", `[{"type":"text","text":"`+"\xc3"+`"}]`), answer("b", "a")), map[Code]int{"bad-utf8": 1}, 2, 0, nil},
		{"raw control character", lines(talkHead, said("a", "", "user", text("one")), said("b", "a", "assistant", `[{"type":"toolCall","id":"c1","name":"x","partialArgs":"`+"\x01"+`"}]`)), map[Code]int{"not-json": 1}, 3, 0, nil},
		{"no header", lines(six()[1:]...), map[Code]int{"no-header": 1}, 0, 0, nil},
		{"late header", lines(six()[1], talkHead), map[Code]int{"late-header": 1}, 2, 0, nil},
		{"two headers", lines(talkHead, talkHead, six()[1]), map[Code]int{"second-header": 1}, 2, 0, nil},
		{"message without message", lines(talkHead, six()[1], `{"type":"message","id":"b","parentId":"a"}`), map[Code]int{"no-message": 1}, 3, 0, nil},
		{"null role", lines(talkHead, six()[1], `{"type":"message","id":"b","parentId":"a","message":{"role":null,"content":[]}}`), map[Code]int{"bad-role": 1}, 3, 0, nil},

		{"a list", lines(talkHead, six()[1], `[1]`), map[Code]int{"not-object": 1}, 3, 0, nil},
		{"header without id", lines(`{"type":"session","version":3,"cwd":"/w"}`, six()[1]), map[Code]int{"bad-header": 1}, 1, 0, nil},
		{"old version", lines(strings.Replace(talkHead, `"version":3`, `"version":2`, 1), six()[1]), map[Code]int{"old-version": 1}, 1, 0, nil},
		{"new version", lines(strings.Replace(talkHead, `"version":3`, `"version":9`, 1), six()[1]), map[Code]int{"new-version": 1}, 1, 0, nil},
		{"entry without id", lines(talkHead, six()[1], `{"type":"custom","customType":"x","data":{}}`), map[Code]int{"no-id": 1}, 3, 0, nil},
		{"blank user", lines(talkHead, said("a", "", "user", `" "`), answer("b", "a")), map[Code]int{"blank-user": 1}, 2, 0, nil},
		{"bad image", lines(talkHead, said("a", "", "user", `[{"type":"image","mimeType":"image/png","data":"????"}]`), answer("b", "a")), map[Code]int{"bad-image": 1}, 2, 0, nil},
		{"leaf to nowhere", lines(talkHead, six()[1], answer("b", "a"), `{"type":"leaf","id":"l","parentId":"b","targetId":"gone"}`), map[Code]int{"invalid-leaf": 1}, 4, 0, nil},
		{"kept from nowhere", lines(talkHead, six()[1], answer("b", "a"), `{"type":"compaction","id":"k","parentId":"b","summary":"s","firstKeptEntryId":"gone","tokensBefore":9}`), map[Code]int{"first-kept-unknown": 1}, 4, 0, nil},
		{"label of nothing", lines(talkHead, six()[1], `{"type":"label","id":"l","parentId":"a","targetId":"gone","label":"x"}`), map[Code]int{"label-target": 1}, 3, 0, nil},
		{"two results", lines(talkHead, six()[1], answer("b", "a", "c1"), result("c", "b", "c1"), result("d", "c", "c1")), map[Code]int{"second-result": 1}, 5, 0, nil},
		{"failed before a word", lines(talkHead, six()[1], strings.Replace(said("b", "a", "assistant", `[]`), `"content"`, `"stopReason":"error","content"`, 1)), map[Code]int{"empty-failure": 1}, 3, 0, nil},

		{"orphan", lines(talkHead, six()[1], answer("b", "a"), said("c", "gone", "user", text("two"))), map[Code]int{"orphan-parent": 1}, 4, 0, []string{"1 of 3 messages"}},
		{
			"two compactions, one continued", lines(
				talkHead, six()[1], answer("b", "a"),
				`{"type":"compaction","id":"k1","parentId":"b","summary":"s","firstKeptEntryId":"b","tokensBefore":9}`,
				`{"type":"compaction","id":"k2","parentId":"b","summary":"s","firstKeptEntryId":"b","tokensBefore":9}`,
				said("c", "k2", "user", text("two")),
			), map[Code]int{"dead-compaction": 1}, 4, 0, nil,
		},
		{"two branches", lines(talkHead, six()[1], answer("b", "a"), said("c", "b", "user", text("x")), answer("d", "c"), said("e", "b", "user", text("y")), answer("f", "e")), map[Code]int{}, 0, 0, nil},
		{"the same twice", lines(talkHead, six()[1], answer("b", "a"), answer("b", "a"), said("c", "b", "user", text("x"))), map[Code]int{"duplicate-same": 1}, 4, 0, []string{"line 3"}},
		{"one id, two entries", lines(talkHead, six()[1], answer("b", "a"), said("b", "a", "user", text("x")), said("c", "b", "user", text("x"))), map[Code]int{"duplicate-other": 1}, 4, 0, []string{"line 3"}},
		{"circle", lines(talkHead, said("a", "c", "user", text("x")), answer("b", "a"), said("c", "b", "user", text("x"))), map[Code]int{"cycle": 3}, 0, 0, nil},
		{"two roots", lines(talkHead, six()[1], answer("b", "a"), said("c", "", "user", text("x")), answer("d", "c")), map[Code]int{"second-root": 1}, 4, 0, []string{"2 of 4 messages"}},

		{"killed in a call", lines(talkHead, six()[1], answer("b", "a", "c1")), map[Code]int{"open-call": 1}, 3, 0, nil},
		{"result without call", lines(talkHead, six()[1], result("b", "a", "c9"), answer("c", "b")), map[Code]int{"orphan-result": 1}, 3, 0, nil},
		{"result before its call", lines(talkHead, six()[1], result("b", "a", "c1"), answer("c", "b", "c1")), map[Code]int{"early-result": 1}, 3, 0, []string{"line 4"}},
		{"one of two results", lines(talkHead, six()[1], answer("b", "a", "c1", "c2"), result("c", "b", "c2"), answer("d", "c")), map[Code]int{"lost-result": 1}, 3, 0, nil},
		{"empty call id", lines(talkHead, six()[1], answer("b", "a", ""), said("c", "b", "user", text("x"))), map[Code]int{"no-call-id": 1}, 3, 0, nil},
		{"no arguments", lines(talkHead, six()[1], said("b", "a", "assistant", `[{"type":"toolCall","id":"c1","name":"read"}]`), result("c", "b", "c1")), map[Code]int{"no-arguments": 1}, 3, 0, nil},
		{"aborted in a call, with the result that OpenClaw put in", lines(talkHead, six()[1], strings.Replace(said("b", "a", "assistant", `[{"type":"toolCall","id":"c1","name":"read","arguments":{},"partialJson":"{\"pa"}]`), `"content"`, `"stopReason":"aborted","content"`, 1), result("c", "b", "c1"), answer("d", "c")), map[Code]int{}, 0, 0, nil},
		{"calls answered", lines(talkHead, six()[1], answer("b", "a", "c1", "c2"), result("c", "b", "c2"), result("d", "c", "c1"), answer("e", "d")), map[Code]int{}, 0, 0, nil},
		{"a call on another branch", lines(talkHead, six()[1], answer("b", "a", "c1"), said("c", "a", "user", text("again")), answer("d", "c")), map[Code]int{}, 0, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ofTranscript(t, c.body)
			if d := cmp.Diff(c.want, codes(r)); d != "" {
				t.Fatalf("%s\n%+v", d, r.Findings)
			}
			if len(r.Findings) != 1 {
				return
			}
			f := r.Findings[0]
			if c.line > 0 && f.Line != c.line || c.byte > 0 && f.Byte != c.byte {
				t.Errorf("line %d byte %d, want line %d byte %d", f.Line, f.Byte, c.line, c.byte)
			}
			if f.Key != "agent:main:main" || filepath.Base(f.File) != "t1.jsonl" {
				t.Errorf("%+v", f.Subject)
			}
			says(t, f, c.says...)
		})
	}
}

// S12, S10: what is as it should be while somebody writes is a note.
func TestInFlight(t *testing.T) {
	open := lines(talkHead, six()[1], answer("b", "a", "c1"))
	m := lock.Local()
	self := m.Process(os.Getpid())
	locked := func(dir string) {
		put(t, filepath.Join(dir, "t1.jsonl"+lock.Suffix), fixtures.Lock(self.PID, fixtures.Now-fixtures.Minute, 300000, int64(self.Start)))
	}
	written := func(dir string) {
		at := now.Add(-time.Minute)
		if err := os.Chtimes(filepath.Join(dir, "t1.jsonl"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range map[string]func(string){"locked": locked, "written": written} {
		for _, body := range []string{open, open + `{"type":"mess`} {
			r := ofTranscript(t, body, change)
			for _, f := range r.Findings {
				if f.Severity != Info || f.Remedy != None {
					t.Errorf("%s: %s is %s, %s", name, f.Code, f.Severity, f.Remedy)
				}
			}
			if len(r.Findings) == 0 {
				t.Errorf("%s: nothing is said of it", name)
			}
		}
	}
	r := ofTranscript(t, open)
	if f := one(t, r, "open-call"); f.Severity != Warn {
		t.Errorf("a killed call is %s", f.Severity)
	}
}

// What only a whole reading tells: copies, compactions without end, images.
func TestRepeats(t *testing.T) {
	all := []string{talkHead}
	parent := ""
	add := func(id, line string) { all, parent = append(all, line), id }
	for i := range 60 {
		id := fmt.Sprint("u", i)
		add(id, said(id, parent, "user", text("Have you watered the tomatoes today?")))
		id = fmt.Sprint("a", i)
		add(id, answer(id, parent))
	}
	for i := range 4 {
		id := fmt.Sprint("k", i)
		add(id, fmt.Sprintf(`{"type":"compaction","id":%q,"parentId":%q,"summary":"s","firstKeptEntryId":"a59","tokensBefore":9}`, id, parent))
	}
	add("i", said("i", parent, "user", `[{"type":"image","mimeType":"image/gif","data":"`+"R0lGODlh"+strings.Repeat("AAAA", 600_000)+`"}]`))
	r := ofTranscript(t, lines(all...))
	want := map[Code]int{RepeatedMessages: 1, RepeatedCompaction: 1, InlineImages: 1}
	if d := cmp.Diff(want, codes(r)); d != "" {
		t.Error(d)
	}
	says(t, one(t, r, RepeatedMessages), "59 of 61")
}

// A large transcript is read at its ends, and whole when everything is asked
// for; the ends are told the same.
func TestEnds(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	store := fixtures.Store(state, "main")
	put(t, store, fmt.Sprintf(`{"agent:main:main": {"sessionId": "t1", "updatedAt": %d}}`, fixtures.Now-fixtures.Hour))
	var b strings.Builder
	b.WriteString(talkHead + "\n")
	parent := ""
	for i := 0; b.Len() < 300<<10; i++ {
		id := fmt.Sprint("m", i)
		b.WriteString(said(id, parent, "user", text(strings.Repeat("word ", 40))) + "\n")
		parent = id
		if i == 500 {
			b.WriteString("junk\n")
		}
	}
	size := int64(b.Len())
	b.WriteString(strings.Repeat("\x00", 100<<10))
	put(t, filepath.Join(filepath.Dir(store), "t1.jsonl"), b.String())
	age(t, filepath.Dir(store), 24*time.Hour)
	for _, deep := range []bool{false, true} {
		r := examine(t, state, func(o *Options) { o.Only = mustSelect(t, "transcripts"); o.Deep = deep })
		f := one(t, r, "nul-tail")
		if f.Byte != size {
			t.Errorf("deep %t: byte %d, want %d", deep, f.Byte, size)
		}
		if n := len(found(r, Code(transcript.NotJSON))); (n == 1) != deep {
			t.Errorf("deep %t: %d lines that are not JSON", deep, n)
		}
		if (r.Partly.Transcripts == 1) == deep {
			t.Errorf("deep %t: %d transcripts read in part", deep, r.Partly.Transcripts)
		}
	}
}

// Forks copy what came before: the bytes are counted, across files.
func TestSharedPrefix(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	dir := filepath.Dir(fixtures.Store(state, "main"))
	put(t, fixtures.Store(state, "main"), fmt.Sprintf(`{"agent:main:main": {"sessionId": "t1", "updatedAt": %d}}`, fixtures.Now-fixtures.Hour))
	body := lines(six()[1:]...)
	put(t, filepath.Join(dir, "t1.jsonl"), talkHead+"\n"+body)
	put(t, filepath.Join(dir, "t2.jsonl"), strings.ReplaceAll(talkHead, "t1", "t2")+"\n"+body+answer("z", "e")+"\n")
	put(t, filepath.Join(dir, "t3.jsonl"), lines(strings.ReplaceAll(talkHead, "t1", "t3"), said("q", "", "user", text("another"))))
	age(t, dir, 24*time.Hour)
	r := examine(t, state, func(o *Options) { o.Only = []Code{SharedPrefix} })
	f := one(t, r, SharedPrefix)
	says(t, f, "2 transcripts", "t1.jsonl, t2.jsonl")
	if n := common(filepath.Join(dir, "t1.jsonl"), filepath.Join(dir, "t2.jsonl")); n != int64(len(body)) {
		t.Errorf("%d bytes in common, want %d", n, len(body))
	}
}

// A transcript and the row that names it tell the same story.
func TestTranscriptAgainstRow(t *testing.T) {
	late := strings.ReplaceAll(lines(six()...), "2026-09-20T10:01", "2026-09-21T14:01")
	for _, c := range []struct {
		name, body string
		want       map[Code]int
	}{
		{"another id", strings.Replace(lines(six()...), `"id":"t1"`, `"id":"t9"`, 1), map[Code]int{TranscriptOtherID: 1}},
		{"the row is behind", late, map[Code]int{TranscriptAhead: 1}},
		{"as it should be", lines(six()...), map[Code]int{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "state")
			store := fixtures.Store(state, "main")
			put(t, store, fmt.Sprintf(`{"agent:main:main": {"sessionId": "t1", "updatedAt": %d}}`, fixtures.Now-20*fixtures.Hour))
			put(t, filepath.Join(filepath.Dir(store), "t1.jsonl"), c.body)
			age(t, filepath.Dir(store), 10*time.Minute)
			r := examine(t, state, func(o *Options) { o.Only = mustSelect(t, "transcripts") })
			if d := cmp.Diff(c.want, codes(r)); d != "" {
				t.Errorf("%s\n%+v", d, r.Findings)
			}
		})
	}
}

// Masks in what was called are told, credentials where they are asked for, and
// their values never.
func TestSecrets(t *testing.T) {
	token := "ghp_" + strings.Repeat("a1B2", 9)
	call := func(arguments string) string {
		return said("b", "a", "assistant", `[{"type":"toolCall","id":"c1","name":"exec","arguments":`+arguments+`}]`)
	}
	for _, c := range []struct {
		name, line string
		only       []string
		want       map[Code]int
	}{
		{"a mask in a command", call(`{"command":"curl -H 'Authorization: Bearer ***' x"}`), nil, map[Code]int{MaskedArgument: 1}},
		{"a short mask", call(`{"command":"export TOKEN=xyz_a1…B2a1"}`), nil, map[Code]int{MaskedArgument: 1}},
		{"a mask in prose", said("b", "a", "assistant", text("It is Bearer ***.")), nil, map[Code]int{}},
		{"stars in prose", call(`{"command":"echo **bold** ***"}`), nil, map[Code]int{}},
		{"a credential, unasked", call(`{"command":"export TOKEN=` + token + `"}`), nil, map[Code]int{}},
		{"a credential", call(`{"command":"export TOKEN=` + token + `"}`), []string{"secret"}, map[Code]int{Secret: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "state")
			store := fixtures.Store(state, "main")
			put(t, store, fmt.Sprintf(`{"agent:main:main": {"sessionId": "t1", "updatedAt": %d}}`, fixtures.Now-fixtures.Hour))
			put(t, filepath.Join(filepath.Dir(store), "t1.jsonl"), lines(talkHead, six()[1], c.line, result("c", "b", "c1")))
			age(t, filepath.Dir(store), 24*time.Hour)
			r := examine(t, state, func(o *Options) {
				if o.Only = mustSelect(t, "masked-argument"); c.only != nil {
					o.Only = mustSelect(t, c.only...)
				}
			})
			if d := cmp.Diff(c.want, codes(r)); d != "" {
				t.Errorf("%s\n%+v", d, r.Findings)
			}
			if strings.Contains(fmt.Sprint(r.Findings), token) {
				t.Error("the value is told")
			}
		})
	}
}
