// Package commands is the command line of oc. A command is data: its name, what it takes, its flags, its help and the function that
// does the work. From that one tree come the parsing, the help, the manual pages and the shell completions.
//
// Main runs one command line. What a person types first passes through the normaliser (normalise.go), which lets flags stand anywhere,
// and is then executed by urfave/cli. Every failure becomes one line on standard error and, under --json, one document on standard
// output; which exit status it means is decided in exit.go and nowhere else.
package commands

import (
	"context"
	"strings"
)

// Command is one word of the command line. It does something (Run), holds further words (Sub), or both: "oc sessions" lists sessions
// and also leads to "oc sessions show".
type Command struct {
	Name     string
	Aliases  []string
	Args     string // what follows the name, as the usage line shows it: "KEY...", "[RUN]", "A B", "bash|zsh|fish"; see arity
	Short    string // what it does, one line without a full stop
	Long     string // more, in paragraphs separated by a blank line; each is wrapped when shown
	Flags    []Flag // its own flags; the global ones are understood everywhere
	Examples []Example
	Exits    []int // statuses besides 0, 1, 2 and 130 that the help should name
	Hidden   bool  // works, but no list shows it
	Sub      []*Command
	Run      func(ctx context.Context, c *Call) error
}

// Flag is a switch, or a flag with a value when Value is set. A flag has the same shape, switch or value, wherever its name is used in
// the tree (a test holds it, and names the exception): so a flag can be read before the word that it belongs to.
type Flag struct {
	Name       string // without dashes
	Short      string // one letter, without the dash
	Value      string // placeholder of the value: "N|all", "PATH"; empty for a switch
	Help       string // what it does, one line without a full stop
	Takes      string // the values it takes, in words: "a positive whole number, for example --active 30"
	Default    string // what its getter gives when it is not on the line
	Repeatable bool   // all its values count; without it the last one does
	Choices    []string
	Check      func(value string) bool // whether a value is one that Takes describes
	Hidden     bool
	Secret     bool // no message repeats its value

	Told func(value string) string // a value as messages and manifests may repeat it; nil: as it is
}

// Example is a command line and what it is good for.
type Example struct {
	Line string // "oc sessions list --active 30"
	Does string
}

func (f *Flag) isSwitch() bool { return f.Value == "" }

func (f *Flag) told(value string) string {
	if f.Told == nil {
		return value
	}
	return f.Told(value)
}

// takes says in words what the flag takes.
func (f *Flag) takes() string {
	switch {
	case f.Takes != "":
		return f.Takes
	case len(f.Choices) > 0:
		return "one of " + strings.Join(f.Choices, ", ")
	}
	return "a value"
}

func (f *Flag) accepts(value string) bool {
	if len(f.Choices) > 0 && f.Check == nil {
		for _, choice := range f.Choices {
			if value == choice {
				return true
			}
		}
		return false
	}
	return f.Check == nil || f.Check(value)
}

// sub is the command below c that goes by name, or nil.
func (c *Command) sub(name string) *Command {
	for _, s := range c.Sub {
		if s.Name == name {
			return s
		}
		for _, alias := range s.Aliases {
			if alias == name {
				return s
			}
		}
	}
	return nil
}

// walk visits c and everything below it, parents first; path is the words that lead there.
func (c *Command) walk(visit func(path []*Command)) { c.walkFrom(nil, visit) }

func (c *Command) walkFrom(above []*Command, visit func(path []*Command)) {
	path := append(above[:len(above):len(above)], c)
	visit(path)
	for _, s := range c.Sub {
		s.walkFrom(path, visit)
	}
}

// words is the command as it is typed: "oc sessions list".
func words(path []*Command) string {
	names := make([]string, len(path))
	for i, c := range path {
		names[i] = c.Name
	}
	return strings.Join(names, " ")
}

// slot is one word of Args. A word all in small letters stands for itself: "bash|zsh|fish" takes one of the three.
type slot struct {
	name     string
	literals []string
	optional bool
	many     bool
}

// slots reads Args: [X] may be left out, X... may be repeated.
func (c *Command) slots() []slot {
	var all []slot
	for _, word := range strings.Fields(c.Args) {
		var s slot
		if t, ok := strings.CutSuffix(word, "..."); ok {
			s.many, word = true, t
		}
		if strings.HasPrefix(word, "[") && strings.HasSuffix(word, "]") {
			s.optional, word = true, word[1:len(word)-1]
			if t, ok := strings.CutSuffix(word, "..."); ok {
				s.many, word = true, t
			}
		}
		s.name = word
		if word == strings.ToLower(word) {
			s.literals = strings.Split(word, "|")
		}
		all = append(all, s)
	}
	return all
}

// arity is the least and the greatest number of words that c takes; most is -1 when there is no limit.
func (c *Command) arity() (least, most int) {
	for _, s := range c.slots() {
		if !s.optional {
			least++
		}
		if s.many {
			most = -1
		} else if most >= 0 {
			most++
		}
	}
	return least, most
}
