package commands

import (
	"context"
	"fmt"
	"strings"

	"oc/commands/term"
)

func help() *Command {
	return &Command{
		Name: "help", Args: "[COMMAND...]",
		Short:    "show what a command does and takes",
		Long:     "Shows the help of a command: how it is called, its flags, examples, and its exit statuses. The same help follows -h and --help after any command. With --json the help is a document.",
		Examples: []Example{{"oc help sessions list", "the flags of the list"}, {"oc help --json", "all commands, for a program"}},
		Run: func(_ context.Context, c *Call) error {
			path, err := c.lookUp(c.Args)
			if err != nil {
				return err
			}
			return c.showHelp(path)
		},
	}
}

// lookUp finds a command by its words.
func (c *Call) lookUp(names []string) ([]*Command, error) {
	path := c.Path[:1:1]
	for _, name := range names {
		sub := path[len(path)-1].sub(name)
		if sub == nil {
			return nil, unknownCommand(path, name)
		}
		path = append(path, sub)
	}
	return path, nil
}

func (c *Call) showHelp(path []*Command) error {
	if c.JSON() {
		c.Out.Write(document(map[string]any{"help": helpDocument(path)})) //nolint:errcheck // kept in Out
		c.answered = true
		return nil
	}
	page := helpPage(path, min(c.Out.Width(), 80))
	for _, part := range page {
		if part.head != "" {
			c.Out.Printf("\n%s\n", c.Out.Paint(term.Bold, part.head+":"))
		}
		c.Out.Printf("%s", term.Styled(part.text))
	}
	return nil
}

// section is a piece of a help page; text ends with a line break.
type section struct{ head, text string }

const helpIndent = "  "

func helpPage(path []*Command, width int) []section {
	cmd, called := path[len(path)-1], words(path)
	page := []section{{"", term.Wrap(called+": "+cmd.Short, width, "") + "\n"}}
	page = append(page, section{"Usage", term.Wrap(usageLine(path), width, helpIndent) + "\n"})
	if len(cmd.Aliases) > 0 {
		page = append(page, section{"Also called", helpIndent + strings.Join(cmd.Aliases, ", ") + "\n"})
	}
	if cmd.Long != "" {
		page[len(page)-1].text += "\n" + term.Wrap(cmd.Long, width, "") + "\n"
	}
	var rows [][2]string
	for _, sub := range cmd.Sub {
		if !sub.Hidden {
			rows = append(rows, [2]string{strings.TrimSpace(sub.Name + " " + sub.Args), sub.Short})
		}
	}
	page = append(page, section{"Commands", twoColumns(rows, width)})
	page = append(page, section{"Flags", twoColumns(flagRows(cmd.Flags), width)})
	if len(path) == 1 {
		page = append(page, section{"Global flags, understood by every command", twoColumns(flagRows(globals), width)})
	}
	if len(cmd.Examples) > 0 {
		var b strings.Builder
		for _, e := range cmd.Examples {
			b.WriteString(helpIndent + e.Line + "\n" + term.Wrap(e.Does, width, helpIndent+"    ") + "\n")
		}
		page = append(page, section{"Examples", b.String()})
	}
	rows = nil
	for _, x := range cmd.exits() {
		rows = append(rows, [2]string{fmt.Sprint(x), meaning(x)})
	}
	page = append(page, section{"Exit status", twoColumns(rows, width)})
	if len(path) > 1 {
		page = append(page, section{"", "\nGlobal flags (--json, --state-dir, ...) are listed by: " + path[0].Name + " help\n"})
	}
	kept := page[:0]
	for _, part := range page {
		if part.text != "" {
			kept = append(kept, part)
		}
	}
	return kept
}

// usageLine is how a command is called.
func usageLine(path []*Command) string {
	cmd := path[len(path)-1]
	line := words(path)
	if len(cmd.Sub) > 0 {
		if cmd.Run == nil {
			line += " COMMAND"
		} else {
			line += " [COMMAND]"
		}
	}
	if len(flagRows(cmd.Flags)) > 0 || len(path) == 1 {
		line += " [flags]"
	}
	return strings.TrimSpace(line + " " + cmd.Args)
}

// exits is every status that the help of c names.
func (c *Command) exits() []int {
	all := []int{ExitDone, ExitFailed, ExitUsage}
	if c.Run == nil && len(c.Sub) > 0 { // a group: what its commands may say
		return []int{ExitDone, ExitFailed, ExitUsage, ExitFindings, ExitLimit, ExitBusy, ExitRefused, ExitNothing, ExitInterrupted}
	}
	all = append(all, c.Exits...)
	return append(all, ExitInterrupted)
}

func meaning(status int) string {
	for _, x := range exits {
		if x.status == status {
			return x.means
		}
	}
	return ""
}

func flagRows(flags []Flag) [][2]string {
	var rows [][2]string
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		name := "    --" + f.Name
		if f.Short != "" {
			name = "-" + f.Short + ", --" + f.Name
		}
		if !f.isSwitch() {
			name += " " + f.Value
		}
		rows = append(rows, [2]string{name, f.describe()})
	}
	return rows
}

// describe is the help of a flag with what follows from its declaration.
func (f *Flag) describe() string {
	text := f.Help
	if len(f.Choices) > 0 {
		text += " (" + strings.Join(f.Choices, ", ") + ")"
	}
	if f.Repeatable {
		text += "; may be repeated"
	}
	if f.Default != "" {
		text += " (default " + f.Default + ")"
	}
	return text
}

// twoColumns sets names on the left and their wrapped meanings on the right; a name that is too long has the meaning below it.
func twoColumns(rows [][2]string, width int) string {
	left := 0
	for _, row := range rows {
		left = max(left, len(row[0]))
	}
	left = min(left, 28)
	indent := helpIndent + strings.Repeat(" ", left) + helpIndent
	var b strings.Builder
	for _, row := range rows {
		text := term.Wrap(row[1], width, indent)
		if len(row[0]) <= left && text != "" {
			text = helpIndent + term.Pad(row[0], left, false) + text[len(helpIndent)+left:]
		} else {
			text = strings.TrimRight(helpIndent+row[0]+"\n"+text, "\n")
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}

// The help of a command as a document.
type (
	commandHelp struct {
		Command  string        `json:"command"`
		Aliases  []string      `json:"aliases,omitempty"`
		Usage    string        `json:"usage"`
		Short    string        `json:"short"`
		Long     string        `json:"long,omitempty"`
		Flags    []flagHelp    `json:"flags,omitempty"`
		Examples []exampleHelp `json:"examples,omitempty"`
		Exits    []exitHelp    `json:"exits"`
		Commands []commandHelp `json:"commands,omitempty"`
	}
	flagHelp struct {
		Name       string   `json:"name"`
		Short      string   `json:"short,omitempty"`
		Value      string   `json:"value,omitempty"`
		Help       string   `json:"help"`
		Takes      string   `json:"takes,omitempty"`
		Default    string   `json:"default,omitempty"`
		Choices    []string `json:"choices,omitempty"`
		Repeatable bool     `json:"repeatable,omitempty"`
	}
	exampleHelp struct {
		Line string `json:"line"`
		Does string `json:"does"`
	}
	exitHelp struct {
		Status int    `json:"status"`
		Means  string `json:"means"`
	}
)

func helpDocument(path []*Command) commandHelp {
	cmd := path[len(path)-1]
	doc := commandHelp{Command: words(path), Aliases: cmd.Aliases, Usage: usageLine(path), Short: cmd.Short, Long: cmd.Long}
	flags := cmd.Flags
	if len(path) == 1 {
		flags = globals
	}
	for _, f := range flags {
		if !f.Hidden {
			doc.Flags = append(doc.Flags, flagHelp{f.Name, f.Short, f.Value, f.Help, f.Takes, f.Default, f.Choices, f.Repeatable})
		}
	}
	for _, e := range cmd.Examples {
		doc.Examples = append(doc.Examples, exampleHelp(e))
	}
	for _, x := range cmd.exits() {
		doc.Exits = append(doc.Exits, exitHelp{x, meaning(x)})
	}
	for _, sub := range cmd.Sub {
		if !sub.Hidden {
			doc.Commands = append(doc.Commands, helpDocument(append(path[:len(path):len(path)], sub)))
		}
	}
	return doc
}
