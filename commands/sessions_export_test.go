package commands

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"oc/fixtures"
	"oc/store/span"
)

const forgery = `<script>document.title='x'</script><img src=x onerror="x()"></p></main><h1>forged</h1>` + "\u202e \x1b[31m\n## forged\n```\n<b>code</b>\n```\n<!-- open"

func forgedTalk() *fixtures.Transcript {
	return fixtures.Talk(talkID, fixtures.Now-fixtures.Day).User(forgery).
		Tool(`x"><script>`, `{"a":"</pre><script>"}`, `</details><iframe src="javascript:1">`).Assistant(forgery)
}

var tag = regexp.MustCompile(`<[/a-zA-Z!][^>]*>`)

// The page has no tag but its own, whatever was said, and loads nothing.
func TestExportHTMLIsHarmless(t *testing.T) {
	mine := map[string]bool{
		"<!doctype html>": true, `<html lang="en">`: true, "<head>": true, "</head>": true, `<meta charset="utf-8">`: true, "<title>": true, "</title>": true, "<style>": true, "</style>": true,
		`<meta name="viewport" content="width=device-width, initial-scale=1">`: true, `<meta name="referrer" content="no-referrer">`: true,
		`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">`: true,
		"<body>": true, "</body>": true, "<h1>": true, "</h1>": true, "<dl>": true, "</dl>": true, "<dt>": true, "</dt>": true, "<dd>": true, "</dd>": true, "<main>": true, "</main>": true,
		`<article class="user">`: true, `<article class="assistant">`: true, `<article class="other">`: true, "</article>": true, "<header>": true, "</header>": true, "<time>": true, "</time>": true,
		"<p>": true, "</p>": true, "<pre>": true, "</pre>": true, "<details>": true, "</details>": true, "<summary>": true, "</summary>": true, `<div class="aside">`: true, "</div>": true,
		"<footer>": true, "</footer>": true, "</html>": true,
	}
	for _, era := range eras {
		state := talkState(t, era, forgedTalk())
		for _, raws := range [][]string{nil, {"--raw"}} {
			a := at(t, state, append([]string{"sessions", "export", "main", "--format", "html"}, raws...)...)
			if a.exit != ExitDone {
				t.Fatalf("exit %d: %s", a.exit, a.errout)
			}
			for _, found := range tag.FindAllString(a.out, -1) {
				if !mine[found] {
					t.Errorf("%s: the page has %s", era, found)
				}
			}
			if c := raw(a.out); c != "" {
				t.Errorf("%s: the page has a raw %s", era, c)
			}
			for _, text := range []string{"&lt;script&gt;document.title=", "forged", "&lt;b&gt;code&lt;/b&gt;", `\u202e`} {
				if !strings.Contains(a.out, text) {
					t.Errorf("%s: the page lacks %q", era, text)
				}
			}
		}
	}
}

// Images that a transcript holds are in the page, as rasters that their bytes say they are: nothing else is, and nobody's mark passes for
// one. Markdown names them. Nothing is fetched by either.
func TestExportShowsImages(t *testing.T) {
	encode := func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
	var buffer bytes.Buffer
	if err := png.Encode(&buffer, image.NewRGBA(image.Rect(0, 0, 24, 16))); err != nil {
		t.Fatal(err)
	}
	real := encode(buffer.Bytes())
	svg := encode([]byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`))
	block := func(kind, data string) string {
		return `{"type":"image","mimeType":"` + kind + `","data":"` + data + `"}`
	}
	talk := fixtures.Talk(talkID, fixtures.Now-fixtures.Day)
	say := func(role, content string) {
		talk.Line(fmt.Sprintf(`{"type":"message","id":"i%d","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":%q,"content":%s}}`, len(talk.Lines()), role, content))
	}
	say("user", `[{"type":"text","text":"before"},`+block("image/png", real)+`,`+block("image/svg+xml", svg)+`,`+block("image/png", svg)+`,`+block("image/png", `no base64 \u0022 onerror=\u0022x`)+`]`)
	say("user", `[{"type":"image","ocPicture":1,"mimeType":"x\"><script>"},{"type":"image_url","image_url":{"url":"data:image/png;base64,`+real+`"}}]`)
	say("toolResult", `[{"type":"text","text":"shot"},`+block("image/svg+xml", real)+`]`)
	say("user", `"![remote](https://example.invalid/x.png)"`)
	for _, raws := range [][]string{nil, {"--raw"}} {
		state := talkState(t, fixtures.FileEra, talk)
		a := at(t, state, append([]string{"sessions", "export", "main", "--format", "html"}, raws...)...)
		if n := strings.Count(a.out, `src="data:image/png;base64,`+real+`"`); a.exit != ExitDone || n != 3 || strings.Count(a.out, "<img") != n {
			t.Errorf("%v: exit %d, %d pictures:\n%s", raws, a.exit, n, a.out)
		}
		for _, bad := range []string{svg, "<script", "onerror=\"", `src="http`} {
			if strings.Contains(a.out, bad) {
				t.Errorf("%v: the page has %q", raws, bad)
			}
		}
		md := at(t, state, append([]string{"sessions", "export", "main"}, raws...)...)
		if strings.Contains(md.out, real) || !strings.Contains(md.out, "image/png") || strings.Contains(md.out, "![remote]") {
			t.Errorf("%v:\n%s", raws, md.out)
		}
		lines := at(t, state, append([]string{"sessions", "export", "main", "--format", "jsonl"}, raws...)...)
		if lines.out != talk.String() {
			t.Errorf("%v: the lines differ", raws)
		}
	}
}

// What a chat leaves out beside the words of an answer, the calls of tools and the thoughts, is in a document; masked in both.
func TestExportHasCallsBesideWords(t *testing.T) {
	secret := "gh" + "p_" + strings.Repeat("Ab1", 12)
	talk := fixtures.Talk(talkID, fixtures.Now-fixtures.Day).User("look")
	talk.Line(`{"type":"message","id":"c1","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"a thought of ` + secret + `"},{"type":"text","text":"I look."},{"type":"toolCall","id":"t","name":"exec","arguments":{"command":"cat ` + secret + `"}}]}}`)
	for _, era := range eras {
		for _, format := range []string{"md", "html"} {
			a := at(t, talkState(t, era, talk), "sessions", "export", "main", "--format", format)
			for _, text := range []string{"a thought of", "I look.", "→ exec", "command=cat"} {
				if !strings.Contains(a.out, text) {
					t.Errorf("%s: %s lacks %q:\n%s", era, format, text, a.out)
				}
			}
			if strings.Contains(a.out, secret) || !strings.Contains(a.errout, "credentials were masked: 1") {
				t.Errorf("%s: %s: %s", era, format, a.errout)
			}
		}
	}
}

// In Markdown no text passes for a heading of the document or for HTML.
func TestExportMarkdownIsHarmless(t *testing.T) {
	state := talkState(t, fixtures.FileEra, forgedTalk())
	a := at(t, state, "sessions", "export", "main")
	fence := ""
	for _, line := range strings.Split(a.out, "\n") {
		if strings.HasPrefix(line, "#") && strings.Contains(line, "forged") {
			t.Errorf("a heading was forged: %s", line)
		}
		inner := strings.TrimPrefix(line, "> ")
		if strings.HasPrefix(inner, "```") {
			if fence == "" {
				fence = inner
			} else {
				fence = ""
			}
			continue
		}
		if !strings.HasPrefix(line, ">") {
			fence = "" // a quotation ends what is open in it
		}
		if fence == "" && tag.MatchString(strings.ReplaceAll(strings.ReplaceAll(line, `\<`, ""), `\>`, "")) {
			t.Errorf("HTML: %s", line)
		}
	}
	for _, text := range []string{"> ## forged", "> <b>code</b>", `\<script>`} {
		if !strings.Contains(a.out, text) {
			t.Errorf("the document lacks %q:\n%s", text, a.out)
		}
	}
}

// As jsonl a transcript keeps every byte; masking changes only the rows in which something is masked.
func TestExportLines(t *testing.T) {
	token := "sk" + "-" + strings.Repeat("aB3", 10)
	for _, era := range eras {
		talk := fixtures.Talk(talkID, fixtures.Now-fixtures.Day).Setup().User("plain").Assistant("the key is " + token).Line(`{ "type" : "custom", "id":"zz", "parentId":null, "n": 1.50, "s":"\u0041" }`).User("end")
		state := talkState(t, era, talk)
		if a := at(t, state, "sessions", "export", "main", "--format", "jsonl", "--raw"); a.out != talk.String() {
			t.Errorf("%s: --raw is not the transcript", era)
		}
		a := at(t, state, "sessions", "export", "main", "--format", "jsonl")
		was, is := strings.Split(talk.String(), "\n"), strings.Split(a.out, "\n")
		if len(was) != len(is) {
			t.Fatalf("%s: %d lines, want %d", era, len(is), len(was))
		}
		for i := range was {
			if secret := strings.Contains(was[i], token); secret == (was[i] == is[i]) || strings.Contains(is[i], token) || is[i] != "" && !json.Valid([]byte(is[i])) {
				t.Errorf("%s, line %d: %s", era, i+1, is[i])
			}
		}
	}
	odd := "\ufeff" + strings.Join(fixtures.Talk(talkID, fixtures.Now).User("x").Lines(), "\r\n") + "\r\n\x00\x00\n{\"torn"
	state := talkState(t, fixtures.FileEra, fixtures.Talk(talkID, fixtures.Now))
	put(t, filepath.Join(state, "agents/main/sessions", talkID+".jsonl"), odd)
	for _, args := range [][]string{{}, {"--raw"}} {
		if a := at(t, state, append([]string{"sessions", "export", "main", "--format", "jsonl"}, args...)...); a.out != odd {
			t.Errorf("%v: %q became %q", args, odd, a.out)
		}
	}
}

// A file is made whole, for its owner alone, never over another, never in the state.
func TestExportFiles(t *testing.T) {
	state := talkState(t, fixtures.FileEra, fixtures.Talk(talkID, fixtures.Now-fixtures.Day).User("hi").Assistant("yo"))
	before := tree(t, state)
	dir := t.TempDir()
	out := filepath.Join(dir, "out.html")
	export := func(args ...string) answer {
		return at(t, state, append([]string{"sessions", "export", "main", "--format", "html"}, args...)...)
	}
	a := export("--output", out, "--json")
	doc := a.doc(t)
	want(t, "messages", doc["messages"], float64(2))
	info, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "bytes", doc["bytes"], float64(info.Size()))
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	put(t, out, "mine")
	if a := export("--output", out); a.exit != ExitRefused || !strings.Contains(a.errout, "--overwrite") {
		t.Errorf("over a file: exit %d: %s", a.exit, a.errout)
	}
	if text, _ := os.ReadFile(out); string(text) != "mine" {
		t.Errorf("the file was changed: %s", text)
	}
	if a := export("--output", out, "--overwrite"); a.exit != ExitDone || !strings.Contains(a.out, "2 messages") {
		t.Errorf("--overwrite: exit %d: %s", a.exit, a.errout)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), link); err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(dir, "into")
	if err := os.Symlink(filepath.Join(state, "agents"), into); err != nil {
		t.Fatal(err)
	}
	for path, exit := range map[string]int{
		link: ExitRefused, dir: ExitRefused, filepath.Join(dir, "no/such"): ExitFailed, " ": ExitUsage,
		filepath.Join(state, "x.html"): ExitRefused, filepath.Join(state, "agents/main/sessions/x.jsonl"): ExitRefused, filepath.Join(into, "x"): ExitRefused,
	} {
		if a := export("--output", path, "--overwrite"); a.exit != exit {
			t.Errorf("%s: exit %d, want %d: %s", path, a.exit, exit, a.errout)
		}
	}
	if a := export("--json"); a.exit != ExitUsage {
		t.Errorf("--json without --output: exit %d", a.exit)
	}
	if a := at(t, state, "sessions", "export", "main", "--format", "jsonl", "--archives"); a.exit != ExitUsage {
		t.Errorf("a part of the lines: exit %d", a.exit)
	}
	if a := export("--output", "-"); !strings.HasPrefix(a.out, "<!doctype html>") {
		t.Errorf("%.60s", a.out)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if strings.HasPrefix(f.Name(), ".") {
			t.Errorf("%s was left behind", f.Name())
		}
	}
	if tree(t, state) != before {
		t.Error("the state was changed")
	}
}

// diff names what is only here, only there, changed and moved.
func TestDiffOfSessions(t *testing.T) {
	for _, era := range eras {
		talk := fixtures.Talk(talkID, fixtures.Now-fixtures.Day).User("one").Assistant("two").User("three")
		state := talkState(t, era, talk)
		before := tree(t, state)
		lines := talk.Lines()
		parent, _ := span.Text(span.Member([]byte(lines[2]), "parentId"))
		other := filepath.Join(t.TempDir(), "b.jsonl")
		put(t, other, strings.Join([]string{
			lines[0], lines[1], strings.Replace(lines[2], `"`+parent+`"`, "null", 1), strings.Replace(lines[3], "three", "3", 1),
			`{"type":"message","id":"new","parentId":"` + parent + `","message":{"role":"user","content":"four"}}`, `{"broken`,
		}, "\n")+"\n")
		a := at(t, state, "sessions", "diff", "main", other, "--json")
		doc := a.doc(t)
		if a.exit != ExitFailed { // a row cannot be read
			t.Errorf("%s: exit %d", era, a.exit)
		}
		for name, n := range map[string]float64{"onlyA": 0, "onlyB": 1, "changed": 1, "moved": 1, "totalCount": 3} {
			want(t, fmt.Sprint(era, " ", name), doc[name], n)
		}
		want(t, "identical", doc["identical"], false)
		want(t, "line", dig(doc, "errors", 0, "line"), float64(6))
		text := at(t, state, "sessions", "diff", "main", other)
		if strings.Contains(text.out, "three") || !strings.Contains(text.out, "1 moved on the tree") {
			t.Errorf("%s", text.out)
		}
		same := at(t, state, "sessions", "diff", "main", talkID)
		if same.exit != ExitDone || !strings.Contains(same.out, "No difference") {
			t.Errorf("exit %d: %s", same.exit, same.out)
		}
		if tree(t, state) != before {
			t.Error("the state was changed")
		}
	}
}
