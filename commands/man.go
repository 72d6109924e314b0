package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func manual() *Command {
	return &Command{
		Name: "man", Args: "[COMMAND...]",
		Short:    "print the manual page of a command",
		Long:     "Prints the manual page of oc, or of one of its commands, as man reads it.",
		Flags:    []Flag{{Name: "write", Value: "DIR", Help: "write the pages of all commands into a directory", Hidden: true}},
		Examples: []Example{{"oc man sessions list | man -l -", "read the page of a command"}},
		Run: func(_ context.Context, c *Call) error {
			if dir := c.String("write"); dir != "" {
				return writeManual(c.Path[0], dir)
			}
			path, err := c.lookUp(c.Args)
			if err != nil {
				return err
			}
			if c.JSON() {
				c.Out.Write(document(map[string]string{"name": pageName(path), "page": manPage(path)})) //nolint:errcheck // kept in Out
				c.answered = true
				return nil
			}
			c.Out.Write([]byte(manPage(path))) //nolint:errcheck // kept in Out
			return nil
		},
	}
}

// manPages is every page by its file name.
func manPages(root *Command) map[string]string {
	pages := map[string]string{}
	root.walk(func(path []*Command) {
		for _, c := range path {
			if c.Hidden {
				return
			}
		}
		pages[pageName(path)] = manPage(path)
	})
	return pages
}

func pageName(path []*Command) string { return strings.ReplaceAll(words(path), " ", "-") + ".1" }

const manMark = `.\" Made by "go generate" from the commands of oc; changes here are lost.` + "\n"

// writeManual writes all pages, and takes away those of commands that are no more.
func writeManual(root *Command, dir string) error {
	pages := manPages(root)
	for name, page := range pages {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(page), 0o644); err != nil {
			return fmt.Errorf("write the manual: %w", err)
		}
	}
	old, err := filepath.Glob(filepath.Join(dir, root.Name+"*.1"))
	if err != nil {
		return fmt.Errorf("look for old pages: %w", err)
	}
	for _, file := range old {
		if _, ok := pages[filepath.Base(file)]; ok {
			continue
		}
		if page, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(page), manMark) {
			continue
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove an old page: %w", err)
		}
	}
	return nil
}

// manPage renders a page in the man macros, which every man knows.
func manPage(path []*Command) string {
	cmd := path[len(path)-1]
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	dashed := strings.ReplaceAll(words(path), " ", "-")

	b.WriteString(manMark)
	p(`.TH "%s" "1" "" "oc" "OpenClaw sessions"`, roff(strings.ToUpper(dashed)))
	p(".nh\n.ad l") // names and flags are not to be hyphenated or spread
	p(".SH NAME\n%s \\- %s", roff(dashed), roff(cmd.Short))
	p(".SH SYNOPSIS\n.B %s", roff(words(path)))
	if rest := strings.TrimPrefix(usageLine(path), words(path)+" "); rest != usageLine(path) {
		p("%s", roff(rest))
	}
	if cmd.Long != "" {
		p(".SH DESCRIPTION")
		for i, par := range strings.Split(cmd.Long, "\n\n") {
			if i > 0 {
				p(".PP")
			}
			p("%s", roff(par))
		}
	}
	if len(cmd.Aliases) > 0 {
		p(".PP\nAlso called: %s.", roff(strings.Join(cmd.Aliases, ", ")))
	}
	if subs := shownSubs(cmd); len(subs) > 0 {
		p(".SH COMMANDS")
		for _, sub := range subs {
			p(".TP\n.B %s\n%s", roff(strings.TrimSpace(sub.Name+" "+sub.Args)), roff(sub.Short))
		}
	}
	manFlags(p, "OPTIONS", cmd.Flags)
	if len(path) == 1 {
		manFlags(p, "GLOBAL OPTIONS", globals)
	}
	if len(cmd.Examples) > 0 {
		p(".SH EXAMPLES")
		for _, e := range cmd.Examples {
			p(".TP\n.B %s\n%s", roff(e.Line), roff(e.Does))
		}
	}
	p(".SH EXIT STATUS")
	for _, x := range cmd.exits() {
		p(".TP\n.B %d\n%s", x, roff(meaning(x)))
	}
	var see []string
	if len(path) > 1 {
		see = append(see, strings.ReplaceAll(words(path[:len(path)-1]), " ", "-"))
	}
	for _, sub := range shownSubs(cmd) {
		see = append(see, dashed+"-"+sub.Name)
	}
	for i, name := range see {
		if i == 0 {
			p(".SH SEE ALSO")
		}
		comma := ","
		if i == len(see)-1 {
			comma = ""
		}
		p(".BR %s (1)%s", roff(name), comma)
	}
	return b.String()
}

func manFlags(p func(string, ...any), head string, flags []Flag) {
	first := true
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		if first {
			p(".SH %s", head)
			first = false
		}
		name := `\fB` + roff("--"+f.Name) + `\fR`
		if f.Short != "" {
			name = `\fB` + roff("-"+f.Short) + `\fR, ` + name
		}
		if !f.isSwitch() {
			name += ` \fI` + roff(f.Value) + `\fR`
		}
		p(".TP\n%s\n%s", name, roff(f.describe()))
	}
}

func shownSubs(c *Command) []*Command {
	var subs []*Command
	for _, sub := range c.Sub {
		if !sub.Hidden {
			subs = append(subs, sub)
		}
	}
	return subs
}

// roff makes text safe for man: backslashes, dashes that are to be typed, and lines that would be read as requests.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
