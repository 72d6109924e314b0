package commands

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"oc/fixtures"
)

var reported = regexp.MustCompile(`<title>([^<]*)</title></rect>`)

// The pictures say what the commands say that the numbers come from.
func TestReport(t *testing.T) {
	state, dir := filepath.Join(t.TempDir(), "state"), t.TempDir()
	if err := fixtures.Demo().Write(state); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "r.html")
	a := at(t, state, "report", "--html", file)
	if a.exit != ExitDone {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	page := string(text)
	harmless(t, page)

	titles := map[string]bool{}
	for _, m := range reported.FindAllStringSubmatch(page, -1) {
		titles[m[1]] = true
	}
	stats := at(t, state, "sessions", "stats", "--json", "--tz", "UTC", "--limit", "all").doc(t)
	for _, x := range stats["days"].([]any) {
		day := x.(map[string]any)
		if want := fmt.Sprintf("%s: %s", day["day"], tokens(day["totalTokens"].(float64))); !titles[want] {
			t.Errorf("the picture lacks %q", want)
		}
	}
	for _, x := range stats["models"].([]any) {
		model := x.(map[string]any)
		if want := fmt.Sprintf("%s, out: %s", model["model"], tokens(model["outputTokens"].(float64))); !titles[want] {
			t.Errorf("the picture lacks %q", want)
		}
	}
	for _, x := range at(t, state, "agents", "list", "--json").doc(t)["agents"].([]any) {
		agent := x.(map[string]any)
		bytes := agent["bytes"].(map[string]any)
		for name, n := range map[string]float64{"database": bytes["database"].(float64) + bytes["wal"].(float64), "transcripts": bytes["live"].(float64)} {
			if want := fmt.Sprintf("%s, %s: %s", agent["agentId"], name, size(n)); n > 0 && !titles[want] {
				t.Errorf("the picture lacks %q", want)
			}
		}
	}
	for code := range at(t, state, "doctor", "--json").doc(t)["codes"].(map[string]any) {
		if !strings.Contains(page, `<span class="faint">`+code+`</span>`) {
			t.Errorf("the page lacks the finding %s", code)
		}
	}

	// It takes the place of nothing unasked, and is not put into the state.
	for _, c := range []struct {
		args []string
		exit int
	}{
		{[]string{"--html", file}, ExitRefused},
		{[]string{"--html", filepath.Join(state, "r.html")}, ExitRefused},
		{[]string{"--html", filepath.Join(dir, "no", "r.html")}, ExitFailed},
		{nil, ExitUsage},
		{[]string{"--html", ""}, ExitUsage},
		{[]string{"--html", "-", "--json"}, ExitUsage},
		{[]string{"--html", file, "--overwrite"}, ExitDone},
	} {
		if a := at(t, state, append([]string{"report"}, c.args...)...); a.exit != c.exit {
			t.Errorf("%q: exit %d: %s", c.args, a.exit, a.errout)
		}
	}
	if b := at(t, state, "report", "--html", "-"); b.exit != ExitDone || b.out != page {
		t.Errorf("standard output: exit %d, %d bytes, not %d", b.exit, len(b.out), len(page))
	}
	if doc := at(t, state, "report", "--html", file, "--overwrite", "--json").doc(t); doc["path"] != file || doc["bytes"] != float64(len(page)) {
		t.Error(doc)
	}
}

// harmless holds a page to what every page of oc keeps to: it is well formed, has one policy, and nothing in it runs or is fetched.
func harmless(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(strings.Replace(page, "<!doctype html>", "", 1)))
	d.Strict, d.AutoClose, d.Entity = false, []string{"meta"}, xml.HTMLEntity
	open := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			open++
			if e.Name.Local == "script" || e.Name.Local == "link" || e.Name.Local == "iframe" || e.Name.Local == "img" {
				t.Errorf("the page has a %s", e.Name.Local)
			}
			for _, attr := range e.Attr {
				if name := strings.ToLower(attr.Name.Local); strings.HasPrefix(name, "on") || name == "href" || name == "src" || name == "style" {
					t.Errorf("the page has %s=%q", name, attr.Value)
				}
			}
		case xml.EndElement:
			open--
		}
	}
	if open != 0 {
		t.Errorf("%d elements stay open", open)
	}
	if strings.Count(page, "Content-Security-Policy") != 1 || !strings.Contains(page, "default-src 'none'") {
		t.Error("the page has not its policy")
	}
}

// Whatever stands in the state, it is text on the page; and what cannot be read is said there.
func TestReportOfAHostileState(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	if err := fixtures.Demo().Write(state); err != nil {
		t.Fatal(err)
	}
	const bad = `agent:garden:<script>alert(1)</script>\u001b[31m\" onload=\"x`
	write(t, filepath.Join(state, "agents/garden/sessions/sessions.json"), `{"`+bad+`": {"sessionId": "0d6b1c2e-58a7-4f0b-8c3f-7e1a9b24d6f5", "updatedAt": 1, "status": "running", "startedAt": 1}}`)
	write(t, filepath.Join(state, "agents/garden/sessions/0d6b1c2e-58a7-4f0b-8c3f-7e1a9b24d6f5.jsonl"), `{"type":"session","id":"x"}
{"type":"message","id":"a","timestamp":"2026-09-01T00:00:00Z","message":{"role":"assistant","provider":"</title><img src=x onerror=y>","model":"m\u0007","usage":{"input":5,"output":1e300,"totalTokens":7,"cost":{"total":1e308}},"content":[]}}
`)
	write(t, filepath.Join(state, "agents/work/sessions/sessions.json"), `{"cut`)
	a := at(t, state, "report", "--html", "-")
	if a.exit != ExitFailed {
		t.Errorf("exit %d: %s", a.exit, a.errout)
	}
	harmless(t, a.out)
	if strings.ContainsAny(a.out, "\x1b\x07") || strings.Contains(a.out, "NaN") || strings.Contains(a.out, "Inf") {
		t.Error("control characters, or numbers that are none, are on the page")
	}
	for _, want := range []string{"&lt;script&gt;alert(1)", "&lt;img src=x onerror=y&gt;", "Not on this page: the sessions of agent work", `\x1b[31m`} {
		if !strings.Contains(a.out, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// A state without anything is a page too.
func TestReportOfNothing(t *testing.T) {
	a := at(t, filepath.Join(t.TempDir(), "nowhere"), "report", "--html", "-")
	if a.exit != ExitDone || !strings.Contains(a.out, "There is no session here") || !strings.Contains(a.out, "No answer of a model is recorded") {
		t.Errorf("exit %d: %s\n%s", a.exit, a.errout, a.out)
	}
	harmless(t, a.out)
}

func TestRoundUp(t *testing.T) {
	for x, want := range map[float64]float64{0: 0, -1: 0, 1: 1, 1.5: 2, 3: 5, 7: 10, 99_000: 100_000, .081: .1, math.Inf(1): 0} {
		if got := roundUp(x); math.Abs(got-want) > want/1e9 {
			t.Errorf("%v: got %v, want %v", x, got, want)
		}
	}
	if got := roundUp(math.NaN()); got != 0 {
		t.Errorf("got %v", got)
	}
}
