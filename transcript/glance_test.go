package transcript

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"oc/transcript/visible"
)

func TestTitleAsOpenClaw(t *testing.T) {
	f, err := os.Open("visible/testdata/history.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var c struct {
			Name, Stage string
			Input       struct {
				Entry struct {
					Label, DisplayName, Subject, SessionID string
					UpdatedAt                              float64
				}
				FirstUserMessage string
			}
			Expected *string
		}
		if !strings.Contains(sc.Text(), `"stage": "title"`) {
			continue
		}
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		n++
		want := ""
		if c.Expected != nil {
			want = *c.Expected
		}
		if got := Title(Named(c.Input.Entry), c.Input.FirstUserMessage); got != want {
			t.Errorf("%s: %q, want %q", c.Name, got, want)
		}
	}
	if n == 0 {
		t.Fatal("no cases")
	}
}

// lines joins rows to a transcript.
func lines(rows ...string) string { return strings.Join(rows, "\n") + "\n" }

const head = `{"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T00:00:00.000Z","cwd":"/"}`

func line(id, parent, role, text string) string {
	if parent != "null" {
		parent = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"type":"message","id":"%s","parentId":%s,"timestamp":"2026-01-02T00:00:0%d.000Z","message":{"role":"%s","content":[{"type":"text","text":%q}]}}`,
		id, parent, len(id), role, text)
}

func glance(t *testing.T, s string) Glimpse {
	t.Helper()
	g, err := Glance(strings.NewReader(s), int64(len(s)))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGlance(t *testing.T) {
	secret := "sk" + "-" + strings.Repeat("a1", 12)
	g := glance(t, lines(head, line("a", "null", "user", "Hello  there"), line("bb", "a", "assistant", "my key is "+secret)))
	want := Glimpse{
		SessionID: "s1", FirstUser: "Hello  there", Preview: "my key is sk-a1a…a1a1", Speaker: "assistant",
		First: 1767312001000, Last: 1767312002000, Messages: true, Whole: true,
	}
	if g != want {
		t.Errorf("got %+v\nwant %+v", g, want)
	}

	for _, c := range []struct{ name, file, first, preview string }{
		{"empty", "", "", ""},
		{"header only", lines(head), "", ""},
		{"torn tail", lines(head, line("a", "null", "user", "hi")) + `{"type":"message","id":"b","pare`, "hi", "hi"},
		{"silent token is passed over", lines(head, line("a", "null", "user", "hi"), line("b", "a", "assistant", " no_reply.")), "hi", "hi"},
		{"directive", lines(head, line("a", "null", "user", "[[reply_to: 12 ]] hi")), "hi", "hi"},
		{
			"first message beyond the window",
			lines(head, line("a", "null", "user", strings.Repeat("x", 9000)), line("b", "a", "assistant", "ok")), "", "ok",
		},
		{
			"last line beyond the window",
			lines(head, line("a", "null", "user", "hi"), line("b", "a", "assistant", strings.Repeat("x", 17000))), "hi", "",
		},
		{
			"side branch does not show",
			lines(head, line("a", "null", "user", "hi"), line("b", "a", "assistant", "shown"), line("c", "a", "assistant", "left"),
				`{"type":"leaf","id":"l","parentId":"c","targetId":"b"}`), "hi", "shown",
		},
		{
			"leaf that points nowhere",
			lines(head, line("a", "null", "user", "hi"), `{"type":"leaf","id":"l","parentId":"a","targetId":"zz"}`), "hi", "",
		},
		{
			"other session's message",
			lines(head, `{"type":"message","id":"a","parentId":null,"message":{"role":"user","provenance":{"kind":"inter_session"},"content":"x"}}`,
				line("b", "a", "user", "mine")), "mine", "mine",
		},
		{"parents in a circle", lines(head, line("a", "b", "user", "one"), line("b", "a", "assistant", "two")), "one", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := glance(t, c.file)
			if g.FirstUser != c.first || g.Preview != c.preview {
				t.Errorf("first %q, preview %q; want %q, %q", g.FirstUser, g.Preview, c.first, c.preview)
			}
		})
	}
}

func TestGlanceRows(t *testing.T) {
	rows := [][]byte{[]byte(head), []byte(line("a", "null", "user", "hi")), []byte(line("bb", "a", "assistant", "yo"))}
	got := GlanceRows(rows, rows, true)
	if want := glance(t, lines(string(rows[0]), string(rows[1]), string(rows[2]))); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := GlanceRows(nil, nil, true); got != (Glimpse{Whole: true}) {
		t.Errorf("nothing gives %+v", got)
	}
}

func TestGlanceCuts(t *testing.T) {
	g := glance(t, lines(head, line("a", "null", "user", strings.Repeat("가", 300))))
	if n := visible.Units(g.Preview); n != 200 || !strings.HasSuffix(g.Preview, "…") {
		t.Errorf("preview of %d units", n)
	}
	if n := visible.Units(Title(Named{Label: strings.Repeat("🙂", 200)}, "")); n > 200 {
		t.Errorf("title of %d units", n)
	}
}

func TestGlanceLongLastLine(t *testing.T) {
	g := glance(t, lines(head, line("a", "null", "user", "hi"),
		`{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-03T00:00:00.000Z","message":{"role":"user","content":"`+
			strings.Repeat("x", 3<<20)+`","timestamp":1767400000000}}`))
	if g.Last != 1767400000000 || g.First != 1767312001000 {
		t.Errorf("first %d, last %d", g.First, g.Last)
	}
}

// A first message behind many rows of other kinds still tells its time.
func TestGlanceLateFirstMessage(t *testing.T) {
	rows := []string{head}
	for i := range 100 {
		rows = append(rows, fmt.Sprintf(`{"type":"custom","id":"c%d","parentId":null,"data":"%s"}`, i, strings.Repeat("x", 200)))
	}
	g := glance(t, lines(append(rows, line("a", "null", "user", "hi"), line("bb", "a", "assistant", strings.Repeat("y", 20_000)))...))
	if g.First != 1767312001000 || g.FirstUser != "" || !g.Messages {
		t.Errorf("%+v", g)
	}
}

func BenchmarkGlance(b *testing.B) {
	var rows []string
	rows = append(rows, head)
	for i := range 200 {
		rows = append(rows, line(fmt.Sprint("m", i), "null", "user", strings.Repeat("words and words ", 20)))
	}
	s := lines(rows...)
	r := strings.NewReader(s)
	b.ReportAllocs()
	for b.Loop() {
		if g, err := Glance(r, int64(len(s))); err != nil || g.Preview == "" {
			b.Fatal(g, err)
		}
	}
}

// A title and a preview show no secret that is disguised, parted or told in words, and nothing that a terminal obeys.
func TestShownIsPlainAndMasked(t *testing.T) {
	body := strings.Repeat("Ab3dE5", 6)
	token := "gh" + "p_" + body
	for _, said := range []string{
		"look \u200b" + token[:3] + "\u200b" + token[3:], "look " + token[:2] + "\x1b[31m" + token[2:], "look " + token[:20] + "\n" + token[20:],
		"look passwort: " + body, "look, the pass phrase is “" + body + "”", "look \x1b]0;" + token[:9] + "\x07" + token,
	} {
		raw, _ := json.Marshal(said)
		file := lines(head, `{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":`+string(raw)+`}}`)
		g, err := Glance(strings.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		for kind, text := range map[string]string{
			"title": Title(Named{}, g.FirstUser), "preview": g.Preview, "label": Title(Named{Label: said}, ""), "name": Title(Named{DisplayName: said}, ""), "subject": Title(Named{Subject: said}, ""),
		} {
			if !strings.HasPrefix(text, "look") || strings.Contains(text, body[7:20]) || strings.Contains(text, body[20:30]) || strings.ContainsAny(text, "\x1b\x07\u200b") {
				t.Errorf("%s of %q: %q", kind, said, text)
			}
		}
	}
	if got := Title(Named{Label: "\u200b\x1b[0m", DisplayName: "seen"}, ""); got != "seen" {
		t.Errorf("%q", got)
	}
}
