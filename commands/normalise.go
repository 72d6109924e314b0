package commands

import (
	"fmt"
	"slices"
	"strings"
)

// line is a command line that was understood: the command, its flags in the order of their declaration, its words.
type line struct {
	path  []*Command // from the root down to the command that runs
	flags []setting
	args  []string
	help  bool // -h or --help stood somewhere, which any command may be asked for
	about bool // --version stood somewhere, likewise
	json  bool // --json stood somewhere; known even when the rest is wrong
}

// setting is a flag with one value; global says that it belongs to oc rather than to the command.
type setting struct {
	flag   *Flag
	value  string
	global bool
}

func (l *line) command() *Command { return l.path[len(l.path)-1] }

// argv is the one spelling of the line that urfave/cli gets to see: global flags, words of the command, its flags as --name=value,
// then, after --, what the command works on.
func (l *line) argv() []string {
	var global, own []string
	for _, s := range l.flags {
		spelt := "--" + s.flag.Name
		if !s.flag.isSwitch() {
			spelt += "=" + s.value
		}
		if s.global {
			global = append(global, spelt)
		} else {
			own = append(own, spelt)
		}
	}
	argv := global
	for _, c := range l.path[1:] {
		argv = append(argv, c.Name)
	}
	argv = append(argv, own...)
	if len(l.args) > 0 {
		argv = append(append(argv, "--"), l.args...)
	}
	return argv
}

// normalise understands a command line, wherever its flags stand. The line is returned even with an error, as far as it was
// understood, so that --json and --help hold on a line that is wrong elsewhere. Errors are usage errors; the first mistake is told.
func normalise(root *Command, argv []string) (*line, error) {
	s := scan{line: line{path: []*Command{root}}, names: flagsBelow(root)}
	s.read(argv)
	s.settle()
	s.words()
	return &s.line, s.err
}

// scan is a command line being read from left to right.
type scan struct {
	line
	names flagNames
	seen  []seen
	stray string // the first flag that no command has
	lost  bool   // a word that is no command was met
	err   error
}

// seen is a flag as it was typed; whether the command has it is known only when the whole line is read.
type seen struct {
	name  string // "--limit", "-q"
	value string // of a switch: "true" or "false"
	bare  bool   // taken for a switch
}

func (s *scan) fail(err error) {
	if s.err == nil && s.stray == "" {
		s.err = err
	}
}

func (s *scan) read(argv []string) {
	for i := 0; i < len(argv); i++ {
		arg := argv[i]
		switch {
		case arg == "--":
			s.args = append(s.args, argv[i+1:]...)
			return
		case strings.HasPrefix(arg, "--"):
			i += s.long(arg, argv[i+1:])
		case isFlag(arg):
			i += s.short(arg, argv[i+1:])
		default:
			s.word(arg)
		}
	}
}

// isFlag tells a flag from a word: a lone dash and a negative number are words.
func isFlag(arg string) bool {
	if len(arg) < 2 || arg[0] != '-' {
		return false
	}
	next := strings.TrimPrefix(arg[1:], ".")
	return next == "" || next[0] < '0' || next[0] > '9'
}

// long reads one --flag; used is how many of the following arguments it took.
func (s *scan) long(arg string, rest []string) (used int) {
	name, value, joined := strings.Cut(arg, "=")
	f := find(s.command().Flags, name) // --summary has a value behind "awareness record" and none elsewhere
	if f == nil {
		f = s.names[name]
	}
	switch {
	case f == nil:
		s.unknown(name)
	case f.isSwitch():
		if !joined {
			value = "true"
		} else if value != "true" && value != "false" {
			s.fail(usage("%s is a switch and takes no value, but has %q; leave the value out", name, value))
			return 0
		}
		s.seen = append(s.seen, seen{name, value, true})
	case joined:
		s.seen = append(s.seen, seen{name: name, value: value})
	default:
		return s.following(name, f, rest)
	}
	return 0
}

// short reads -q, several at once as -qv, and a value that is stuck to its flag as -n5.
func (s *scan) short(arg string, rest []string) (used int) {
	for at, letter := range arg[1:] {
		name := "-" + string(letter)
		f := s.names[name]
		if f == nil {
			if at == 0 {
				name = arg
			}
			s.unknown(name)
			return 0
		}
		if f.isSwitch() {
			s.seen = append(s.seen, seen{name, "true", true})
			continue
		}
		if stuck := arg[1+at+len(string(letter)):]; stuck != "" {
			s.seen = append(s.seen, seen{name: name, value: strings.TrimPrefix(stuck, "=")})
			return 0
		}
		return s.following(name, f, rest)
	}
	return 0
}

// following takes the value of a flag from the next argument. One that looks like a flag is none: it is far more often a forgotten
// value than a meant one, and --flag=VALUE can still say it.
func (s *scan) following(name string, f *Flag, rest []string) (used int) {
	if len(rest) == 0 || rest[0] == "--" || isFlag(rest[0]) {
		hint := ""
		if len(rest) > 0 && rest[0] != "--" && !f.Secret {
			hint = "; a value that begins with a dash is written " + name + "=" + f.told(rest[0])
		}
		s.fail(usage("%s needs %s, and nothing follows it%s", name, f.takes(), hint))
		return 0
	}
	s.seen = append(s.seen, seen{name: name, value: rest[0]})
	return 1
}

// unknown remembers a flag that no command has. What is said about it waits for the end of the line, when the command is known.
func (s *scan) unknown(name string) {
	if s.stray == "" && s.err == nil {
		s.stray = name
	}
}

func (s *scan) word(arg string) {
	c := s.command()
	if len(s.args) == 0 {
		if sub := c.sub(arg); sub != nil && !s.lost {
			s.path = append(s.path, sub)
			return
		}
		if _, most := c.arity(); len(c.Sub) > 0 && most == 0 && !s.lost {
			if s.stray != "" {
				return // most likely the value of that flag
			}
			s.lost = true
			s.fail(unknownCommand(s.path, arg))
			return
		}
	}
	if !s.lost {
		s.args = append(s.args, arg)
	}
}

// settle gives every flag that was seen to the command or to oc, in the order of their declaration.
func (s *scan) settle() {
	c := s.command()
	if s.stray != "" {
		s.err = unknownFlag(s.path, s.stray, s.names)
	}
	last := map[*Flag][]string{}
	for _, typed := range s.seen {
		f := find(globals, typed.name)
		if f == nil {
			f = find(c.Flags, typed.name)
		}
		switch {
		case f == nil:
			if !s.lost {
				s.fail(unknownFlag(s.path, typed.name, s.names))
			}
		case typed.bare && !f.isSwitch():
			s.fail(usage("%s needs %s behind it, after the words of the command", typed.name, f.takes()))
		case f.isSwitch() && typed.value == "false":
			delete(last, f)
		case f.Repeatable:
			last[f] = append(last[f], typed.value)
		default:
			last[f] = []string{typed.value}
		}
	}
	for i := range globals {
		s.give(&globals[i], last[&globals[i]], true)
	}
	for i := range c.Flags {
		s.give(&c.Flags[i], last[&c.Flags[i]], false)
	}
}

func (s *scan) give(f *Flag, values []string, global bool) {
	for _, v := range values {
		if global && f.Name == "help" {
			s.help = true
			continue
		}
		if global {
			s.json = s.json || f.Name == "json"
			s.about = s.about || f.Name == "version"
		}
		if !f.isSwitch() && !f.accepts(v) {
			not := fmt.Sprintf(", not %q", f.told(v))
			if f.Secret {
				not = ""
			}
			s.fail(usage("--%s takes %s%s", f.Name, f.takes(), not))
		}
		s.flags = append(s.flags, setting{f, v, global})
	}
}

// words checks what is left against what the command works on.
func (s *scan) words() {
	if s.help && !s.lost {
		s.err = nil // whoever asks for help gets it, whatever else is on the line
		return
	}
	c, called := s.command(), words(s.path)
	if c.Run == nil && s.about {
		return
	}
	if c.Run == nil {
		names := make([]string, 0, len(c.Sub))
		for _, sub := range c.Sub {
			if !sub.Hidden {
				names = append(names, sub.Name)
			}
		}
		s.fail(usage("%s needs a command after it: %s; see %s", called, strings.Join(names, ", "), helpFor(s.path)))
		return
	}
	least, most := c.arity()
	if len(s.args) < least {
		s.fail(usage("%s needs %s; see %s", called, c.Args, helpFor(s.path)))
	}
	if most >= 0 && len(s.args) > most {
		takes := "takes nothing after it"
		if most > 0 {
			takes = "takes only " + c.Args
		}
		s.fail(usage("%q is one word too many: %s %s; see %s", s.args[most], called, takes, helpFor(s.path)))
	}
	for i, slot := range c.slots() {
		if i < len(s.args) && slot.literals != nil && !slices.Contains(slot.literals, s.args[i]) {
			s.fail(usage("%s takes one of %s, not %q%s", called, strings.Join(slot.literals, ", "), s.args[i], maybe(nearest(s.args[i], slot.literals))))
		}
	}
}

func find(flags []Flag, typed string) *Flag {
	for i := range flags {
		if f := &flags[i]; typed == "--"+f.Name || f.Short != "" && typed == "-"+f.Short {
			return f
		}
	}
	return nil
}

// flagNames is every flag of the tree by the way it is typed, "--limit" and "-q": enough to know which ones take a value.
type flagNames map[string]*Flag

func flagsBelow(root *Command) flagNames {
	names := flagNames{}
	add := func(flags []Flag) {
		for i := range flags {
			f := &flags[i]
			if _, ok := names["--"+f.Name]; !ok {
				names["--"+f.Name] = f
			}
			if f.Short != "" {
				names["-"+f.Short] = f
			}
		}
	}
	add(globals)
	root.walk(func(path []*Command) { add(path[len(path)-1].Flags) })
	return names
}
