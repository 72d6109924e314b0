package commands

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oc/fixtures"
)

var update = flag.Bool("update", false, "write what oc answers into README.md and docs")

// Every "$ oc" line in a console block of the README and of docs is run, each text on a copy of the demo state in a home of its own, and
// must answer what stands below it. go test ./commands -run README -update writes the answers.
func TestREADME(t *testing.T) {
	told := map[string]int{"README.md": 8, "docs/cookbook.md": 8, "docs/faq.md": 4} // commands at least
	all, err := filepath.Glob("../docs/*.md")
	if err != nil || len(all) < len(told)-1 {
		t.Fatal(all, err)
	}
	for _, path := range append(all, "../README.md") {
		name := strings.TrimPrefix(filepath.ToSlash(path), "../")
		t.Run(name, func(t *testing.T) { runShown(t, path, told[name]) })
	}
}

// runShown runs what a text shows, which is so many commands at least.
func runShown(t *testing.T, path string, least int) {
	const home = "/home/ada"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	root := shortDir(t, len(home))
	if err := fixtures.Demo().Write(filepath.Join(root, ".openclaw")); err != nil { // times of files matter, and a clone has none
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "signals"), 0o700); err != nil { // as the README does
		t.Fatal(err)
	}
	var out []string
	ran, inside := 0, false
	lines := strings.Split(string(text), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		out = append(out, line)
		if strings.HasPrefix(line, "```") {
			inside = line == "```console"
			continue
		}
		command, ok := strings.CutPrefix(line, "$ oc")
		if !ok || !inside {
			continue
		}
		var want []string
		for i+1 < len(lines) && !strings.HasPrefix(lines[i+1], "```") && !strings.HasPrefix(lines[i+1], "$ ") {
			i++
			want = append(want, lines[i])
		}
		a := ocRun(t, root, map[string]string{"HOME": root, "OC_NOW": fmt.Sprint(int64(fixtures.Now)), "COLUMNS": "80"}, strings.Fields(command)...)
		got := strings.Split(strings.TrimRight(strings.ReplaceAll(a.errout+a.out, root, home), "\n"), "\n")
		if a.exit != ExitDone && a.exit != ExitFindings {
			t.Errorf("%s: exit %d", line, a.exit)
		}
		if len(want) > 0 && want[len(want)-1] == "..." { // only the beginning is shown
			got = append(got[:min(len(got), len(want)-1)], "...")
		}
		if d := cmp.Diff(want, got); d != "" && !*update {
			t.Errorf("%s (-README +oc):\n%s", line, d)
		}
		out = append(out, got...)
		ran++
	}
	if ran < least {
		t.Errorf("%s shows only %d commands", path, ran)
	}
	if *update && ran > 0 {
		if err := os.WriteFile(path, []byte(strings.Join(out, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// docs/reference.md is what oc help says of every command. go test ./commands -run Reference -update writes it.
func TestReference(t *testing.T) {
	const path = "../docs/reference.md"
	var b strings.Builder
	b.WriteString("# Reference\n\nWhat `oc help` says of every command, made from the commands themselves by `go test ./commands -run Reference -update`.\n")
	all().walk(func(path []*Command) {
		for _, c := range path {
			if c.Hidden {
				return
			}
		}
		fmt.Fprintf(&b, "\n%s %s\n\n```text\n", strings.Repeat("#", min(len(path)+1, 4)), words(path))
		for _, part := range helpPage(path, 80) {
			if part.head != "" && part.text != "" {
				b.WriteString("\n" + part.head + ":\n")
			}
			b.WriteString(part.text)
		}
		b.WriteString("```\n")
	})
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(got), b.String()); d != "" {
		t.Errorf("docs/reference.md is not what the commands say (-docs +oc):\n%s", d)
	}
}

// shortDir is a temporary directory whose path has just n characters, so that lines break where they would for a path of that length.
func shortDir(t *testing.T, n int) string {
	t.Helper()
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	for range 100 {
		name := []byte("/tmp/")
		for len(name) < n {
			name = append(name, letters[rand.IntN(len(letters))])
		}
		if err := os.Mkdir(string(name), 0o700); err == nil {
			t.Cleanup(func() { os.RemoveAll(string(name)) }) //nolint:errcheck // a leftover does no harm
			return string(name)
		}
	}
	t.Fatal("no directory could be made in /tmp")
	return ""
}
