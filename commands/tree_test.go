package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oc/commands/term"
)

// What every command of oc keeps to.
func TestTree(t *testing.T) {
	shape := map[string]string{} // how a flag is typed -> its value or ""
	check := func(where string, flags []Flag) {
		for i := range flags {
			f := &flags[i]
			if f.Help == "" || strings.HasSuffix(f.Help, ".") {
				t.Errorf("%s --%s: help %q", where, f.Name, f.Help)
			}
			if f.isSwitch() && (f.Default != "" || f.Takes != "" || f.Check != nil || f.Choices != nil || f.Repeatable) {
				t.Errorf("%s --%s is a switch and has no value to speak about", where, f.Name)
			}
			if f.Check != nil && f.Takes == "" {
				t.Errorf("%s --%s checks its value and does not say what it takes", where, f.Name)
			}
			if f.Default != "" && !f.accepts(f.Default) {
				t.Errorf("%s --%s does not take its own default", where, f.Name)
			}
			for _, typed := range f.typed() {
				if where+" "+typed == "oc awareness record --summary" {
					continue // both have their name from the plan; see scan.long
				}
				kind := map[bool]string{true: "a switch", false: "a flag with a value"}[f.isSwitch()]
				if had, ok := shape[typed]; ok && had != kind {
					t.Errorf("%s: %s is %s here and %s elsewhere", where, typed, kind, had)
				}
				shape[typed] = kind
			}
		}
	}
	check("oc", globals)
	all().walk(func(path []*Command) {
		c, called := path[len(path)-1], words(path)
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || strings.Contains(c.Short, "\n") {
			t.Errorf("%s: short help %q", called, c.Short)
		}
		if c.Run == nil && len(c.Sub) == 0 {
			t.Errorf("%s does nothing", called)
		}
		check(called, c.Flags)
		names := map[string]bool{}
		for _, sub := range c.Sub {
			for _, name := range append([]string{sub.Name}, sub.Aliases...) {
				if names[name] || name == "" || name != strings.ToLower(name) {
					t.Errorf("%s %q: twice, or no name", called, name)
				}
				names[name] = true
			}
		}
		for i := range c.Flags {
			for _, typed := range c.Flags[i].typed() {
				if find(globals, typed) != nil {
					t.Errorf("%s: %s is a global flag", called, typed)
				}
			}
		}
		for _, e := range c.Examples {
			argv, ok := exampleArgs(e.Line)
			if !ok {
				t.Errorf("%s: example %q does not run oc", called, e.Line)
			} else if _, err := normalise(all(), argv); err != nil {
				t.Errorf("%s: example %q: %v", called, e.Line, err)
			}
		}
		for _, part := range helpPage(path, 80) {
			for _, line := range strings.Split(part.text, "\n") {
				if term.Columns(line) > 80 {
					t.Errorf("%s: help is wider than 80 columns: %q", called, line)
				}
			}
		}
	})
}

// exampleArgs finds the arguments of oc in an example: from its name to a pipe, a redirection or the end. Quotes keep words together.
func exampleArgs(line string) (argv []string, ok bool) {
	_, line, ok = strings.Cut(" "+strings.ReplaceAll(line, "(", " "), " oc")
	word, quote, open := "", rune(0), false
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, open = r, true
		case quote == 0 && strings.ContainsRune("|>)&;", r):
			if word != "" || open {
				argv = append(argv, word)
			}
			return argv, ok
		case quote == 0 && r == ' ':
			if word != "" || open {
				argv = append(argv, word)
			}
			word, open = "", false
		default:
			word += string(r)
		}
	}
	return argv, ok
}

// The pages in man are those of the commands as they are; "go generate" makes them.
func TestManualIsCurrent(t *testing.T) {
	want := manPages(all())
	got := map[string]string{}
	files, err := filepath.Glob("../man/*.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got[filepath.Base(file)] = string(page)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("run: go generate\n%s", d)
	}
}

func TestWriteManual(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"oc-gone.1": manMark + "old", "oc-kept.1": "by hand", "other.1": manMark} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeManual(all(), dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"oc-gone.1": false, "oc-kept.1": true, "other.1": true, "oc.1": true, "oc-version.1": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: there %t, want %t", name, err == nil, want)
		}
	}
	if err := writeManual(all(), filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a directory that is not there is no failure")
	}
}

func TestRoff(t *testing.T) {
	for text, want := range map[string]string{
		"a-b": `a\-b`, `C:\x`: `C:\ex`, ".so x\n.y": "\\&.so x\n\\&.y", "'x'": `\(aqx\(aq`, "~/.x": `\(ti/.x`, `"q"`: `\(dqq\(dq`,
	} {
		if got := roff(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
