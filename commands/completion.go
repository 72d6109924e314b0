package commands

import (
	"context"
	"fmt"
	"strings"
)

func completion() *Command {
	return &Command{
		Name: "completion", Args: "bash|zsh|fish",
		Short: "print a script that completes oc's commands and flags",
		Long: "Prints a script for the shell. It holds every command and flag of this oc, so it starts nothing when you press Tab; make it again after an update.\n\n" +
			"bash: oc completion bash > ~/.local/share/bash-completion/completions/oc\n" +
			"zsh: oc completion zsh > a file named _oc in a directory of your fpath\n" +
			"fish: oc completion fish > ~/.config/fish/completions/oc.fish",
		Examples: []Example{{"source <(oc completion bash)", "try it in this shell"}},
		Run: func(_ context.Context, c *Call) error {
			script := map[string]func(*Command) string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[c.Arg(0)](c.Path[0])
			if c.JSON() {
				c.Out.Write(document(map[string]string{"shell": c.Arg(0), "script": script})) //nolint:errcheck // kept in Out
				c.answered = true
				return nil
			}
			c.Out.Write([]byte(script)) //nolint:errcheck // kept in Out
			return nil
		},
	}
}

// A shell follows the words of a line from command to command, past flags and their values, and then offers what may come next. What
// follows is that tree, told to each of the three in its own way.

// choice is a word that may come next.
type choice struct{ word, does string }

// state is what a shell has to know about one command.
type state struct {
	path  string // "oc sessions list"
	moves []choice
	flags []Flag   // its own; the global ones may follow everywhere
	words []choice // literal words that it takes
}

func states(root *Command) []state {
	var all []state
	root.walk(func(path []*Command) {
		cmd := path[len(path)-1]
		s := state{path: words(path)}
		for _, c := range path {
			if c.Hidden {
				return
			}
		}
		for _, sub := range shownSubs(cmd) {
			s.moves = append(s.moves, choice{sub.Name, sub.Short})
			for _, alias := range sub.Aliases {
				s.moves = append(s.moves, choice{alias, sub.Short})
			}
		}
		if cmd.explains() {
			for _, sub := range shownSubs(root) {
				s.moves = append(s.moves, choice{sub.Name, sub.Short})
			}
		}
		s.flags = shownFlags(cmd.Flags)
		for _, slot := range cmd.slots() {
			for _, word := range slot.literals {
				s.words = append(s.words, choice{word: word})
			}
		}
		all = append(all, s)
	})
	return all
}

func shownFlags(flags []Flag) (shown []Flag) {
	for _, f := range flags {
		if !f.Hidden {
			shown = append(shown, f)
		}
	}
	return shown
}

// valueFlags is every flag of the tree that takes a value, as it is typed.
func valueFlags(root *Command) (typed []string) {
	had := map[string]bool{}
	add := func(flags []Flag) {
		for _, f := range flags {
			for _, name := range f.typed() {
				if !f.isSwitch() && !had[name] {
					typed, had[name] = append(typed, name), true
				}
			}
		}
	}
	add(globals)
	root.walk(func(path []*Command) { add(path[len(path)-1].Flags) })
	return typed
}

func (f *Flag) typed() []string {
	if f.Short == "" {
		return []string{"--" + f.Name}
	}
	return []string{"--" + f.Name, "-" + f.Short}
}

// isPath says whether file names are worth offering for the value.
func (f *Flag) isPath() bool {
	return strings.Contains(f.Value, "DIR") || strings.Contains(f.Value, "FILE") || strings.Contains(f.Value, "PATH")
}

// canonicalMoves maps "path word" to the path of the command; aliases lead to the same place.
func canonicalMoves(root *Command) (moves [][2]string) {
	root.walk(func(path []*Command) {
		if cmd := path[len(path)-1]; cmd.explains() {
			for _, sub := range shownSubs(root) {
				moves = append(moves, [2]string{words(path) + " " + sub.Name, words(path[:1]) + " " + sub.Name})
			}
		}
		for _, sub := range shownSubs(path[len(path)-1]) {
			for _, name := range append([]string{sub.Name}, sub.Aliases...) {
				moves = append(moves, [2]string{words(path) + " " + name, words(path) + " " + sub.Name})
			}
		}
	})
	return moves
}

// explains says whether the words after a command are those of another one, as after help.
func (c *Command) explains() bool { return c.Args == "[COMMAND...]" }

// value is a flag whose value can be completed: a shell pattern for "path flag", and what to offer.
type value struct {
	pattern string
	choices []string
	files   bool
}

func values(root *Command) (all []value) {
	add := func(at string, flags []Flag) {
		for _, f := range shownFlags(flags) {
			for _, name := range f.typed() {
				if len(f.Choices) > 0 || f.isPath() {
					all = append(all, value{at + single(" "+name), f.Choices, len(f.Choices) == 0})
				}
			}
		}
	}
	add("*", globals)
	for _, s := range states(root) {
		add(single(s.path), s.flags)
	}
	return all
}

func bashScript(root *Command) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# bash completion for oc, made by: oc completion bash")
	p("_oc() {")
	p("    local cur=${COMP_WORDS[COMP_CWORD]} at=oc word prev= i offer= ended= files=")
	p("    COMPREPLY=()")
	p("    for ((i = 1; i < COMP_CWORD; i++)); do")
	p("        word=${COMP_WORDS[i]}")
	p("        if [[ $prev ]]; then")
	p("            [[ $word == = ]] || prev=")
	p("            continue")
	p("        fi")
	p("        case $word in")
	p("        --) ended=1; break ;;")
	p("        %s) prev=$word ;;", strings.Join(valueFlags(root), "|"))
	p("        -*|=) ;;")
	p("        *) case \"$at $word\" in")
	for _, m := range canonicalMoves(root) {
		p("            %q) at=%q ;;", m[0], m[1])
	}
	p("            esac ;;")
	p("        esac")
	p("    done")
	p("    [[ $ended ]] && return")
	p("    [[ $prev && $cur == = ]] && cur=")
	p("    if [[ $prev ]]; then")
	p("        case \"$at $prev\" in")
	for _, v := range values(root) {
		if v.files {
			p("        %s) files=1 ;;", v.pattern)
		} else {
			p("        %s) offer=%q ;;", v.pattern, strings.Join(v.choices, " "))
		}
	}
	p("        esac")
	p("    elif [[ $cur == -* ]]; then")
	p("        case $at in")
	for _, s := range states(root) {
		if len(s.flags) > 0 {
			p("        %q) offer=%q ;;", s.path, spelt(s.flags))
		}
	}
	p("        esac")
	p("        offer+=%q", " "+spelt(globals))
	p("    else")
	p("        case $at in")
	for _, s := range states(root) {
		var names []string
		for _, c := range append(s.moves, s.words...) {
			names = append(names, c.word)
		}
		if len(names) > 0 {
			p("        %q) offer=%q ;;", s.path, strings.Join(names, " "))
		}
	}
	p("        esac")
	p("    fi")
	p("    [[ $files ]] && compopt -o filenames 2>/dev/null")
	p("    while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(")
	p("        if [[ $files ]]; then compgen -f -- \"$cur\"; else compgen -W \"$offer\" -- \"$cur\"; fi")
	p("    )")
	p("}")
	p("complete -F _oc oc")
	return b.String()
}

func spelt(flags []Flag) string {
	var names []string
	for _, f := range shownFlags(flags) {
		names = append(names, "--"+f.Name)
	}
	return strings.Join(names, " ")
}

func zshScript(root *Command) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("#compdef oc")
	p("# zsh completion for oc, made by: oc completion zsh")
	p("_oc() {")
	p("    local at=oc word prev= i")
	p("    local -a offer")
	p("    for ((i = 2; i < CURRENT; i++)); do")
	p("        word=${words[i]}")
	p("        if [[ -n $prev ]]; then prev=; continue; fi")
	p("        case $word in")
	p("        --) return ;;")
	p("        %s) prev=$word ;;", strings.Join(valueFlags(root), "|"))
	p("        -*) ;;")
	p("        *) case \"$at $word\" in")
	for _, m := range canonicalMoves(root) {
		p("            %s) at=%s ;;", single(m[0]), single(m[1]))
	}
	p("            esac ;;")
	p("        esac")
	p("    done")
	p("    if [[ -n $prev ]]; then")
	p("        case \"$at $prev\" in")
	for _, v := range values(root) {
		if v.files {
			p("        %s) _files ;;", v.pattern)
		} else {
			p("        %s) compadd -- %s ;;", v.pattern, quoted(v.choices))
		}
	}
	p("        esac")
	p("        return")
	p("    fi")
	p("    if [[ ${words[CURRENT]} == -* ]]; then")
	p("        case $at in")
	for _, s := range states(root) {
		if len(s.flags) > 0 {
			p("        %s) offer=(%s) ;;", single(s.path), zshFlags(s.flags))
		}
	}
	p("        esac")
	p("        offer+=(%s)", zshFlags(globals))
	p("    else")
	p("        case $at in")
	for _, s := range states(root) {
		var offers []string
		for _, c := range append(s.moves, s.words...) {
			offers = append(offers, strings.TrimSuffix(c.word+":"+strings.ReplaceAll(c.does, ":", `\:`), ":"))
		}
		if len(offers) > 0 {
			p("        %s) offer=(%s) ;;", single(s.path), quoted(offers))
		}
	}
	p("        esac")
	p("    fi")
	p("    _describe oc offer")
	p("}")
	p(`if [[ $funcstack[1] == _oc ]]; then _oc "$@"; else compdef _oc oc; fi`)
	return b.String()
}

func zshFlags(flags []Flag) string {
	var offers []string
	for _, f := range shownFlags(flags) {
		offers = append(offers, "--"+f.Name+":"+strings.ReplaceAll(f.Help, ":", `\:`))
	}
	return quoted(offers)
}

func fishScript(root *Command) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# fish completion for oc, made by: oc completion fish")
	p("function __oc_at")
	p("    set -l at oc")
	p("    set -l prev")
	p("    for word in (commandline -opc)[2..-1]")
	p("        if test -n \"$prev\"")
	p("            set prev")
	p("            continue")
	p("        end")
	p("        switch $word")
	p("            case --")
	p("                return")
	p("            case %s", strings.Join(valueFlags(root), " "))
	p("                set prev $word")
	p("            case '-*'")
	p("            case '*'")
	p("                switch \"$at $word\"")
	for _, m := range canonicalMoves(root) {
		p("                    case %s", single(m[0]))
		p("                        set at %s", single(m[1]))
	}
	p("                end")
	p("        end")
	p("    end")
	p("    echo $at")
	p("end")
	p("function __oc_is")
	p("    test (__oc_at) = \"$argv\"")
	p("end")
	p("complete -c oc -f")
	for _, s := range states(root) {
		here := single("__oc_is " + s.path)
		for _, c := range append(s.moves, s.words...) {
			p("complete -c oc -n %s -a %s -d %s", here, single(c.word), single(c.does))
		}
		for _, f := range s.flags {
			p("%s", fishFlag("complete -c oc -n "+here, f))
		}
	}
	for _, f := range shownFlags(globals) {
		p("%s", fishFlag("complete -c oc", f))
	}
	return b.String()
}

func fishFlag(line string, f Flag) string {
	line += " -l " + f.Name
	if f.Short != "" {
		line += " -s " + f.Short
	}
	switch {
	case f.isSwitch():
	case len(f.Choices) > 0:
		line += " -x -a " + single(strings.Join(f.Choices, " "))
	case f.isPath():
		line += " -r -F"
	default:
		line += " -x"
	}
	return line + " -d " + single(f.Help)
}

// single quotes a word for a shell.
func single(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func quoted(all []string) string {
	words := make([]string, len(all))
	for i, s := range all {
		words[i] = single(s)
	}
	return strings.Join(words, " ")
}
