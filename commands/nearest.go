package commands

import (
	"sort"
	"strings"
)

func unknownCommand(path []*Command, word string) error {
	var names []string
	for _, sub := range path[len(path)-1].Sub {
		if !sub.Hidden {
			names = append(append(names, sub.Name), sub.Aliases...)
		}
	}
	return usage("unknown command %q for %q%s; see %s", word, words(path), maybe(nearest(word, names)), helpFor(path))
}

func unknownFlag(path []*Command, typed string, everywhere flagNames) error {
	called := words(path)
	if everywhere[typed] != nil {
		return usage("%s has no flag %s%s; see %s", called, typed, whoHas(path[0], typed), helpFor(path))
	}
	var names []string
	for _, flags := range [][]Flag{path[len(path)-1].Flags, globals} {
		for _, f := range flags {
			if !f.Hidden {
				names = append(names, "--"+f.Name)
			}
		}
	}
	near := nearest("--"+strings.TrimLeft(typed, "-"), names)
	return usage("unknown flag %s for %q%s; see %s", typed, called, maybe(near), helpFor(path))
}

// whoHas names a command that does have the flag.
func whoHas(root *Command, typed string) string {
	has := ""
	root.walk(func(path []*Command) {
		if has == "" && find(path[len(path)-1].Flags, typed) != nil {
			has = " (" + words(path) + " has it)"
		}
	})
	return has
}

func helpFor(path []*Command) string {
	if len(path) == 1 {
		return path[0].Name + " help"
	}
	return path[0].Name + " help " + words(path[1:])
}

func maybe(name string) string {
	if name == "" {
		return ""
	}
	return " (did you mean " + name + "?)"
}

// nearest is the name that was most likely meant, or "" when none is close: at most one slip for every three letters, or a beginning
// that only one name has. Of two that are as close, the one with the same first letter is it.
func nearest(typed string, names []string) string {
	best, least := "", 2*max(1, len(strings.TrimLeft(typed, "-"))/3)+2
	for _, name := range names {
		d := 2 * distance(strings.ToLower(typed), name)
		if typed == "" || name[:1] != typed[:1] {
			d++
		}
		if d < least {
			best, least = name, d
		}
	}
	if best != "" || len(strings.TrimLeft(typed, "-")) < 2 {
		return best
	}
	var begin []string
	for _, name := range names {
		if strings.HasPrefix(name, typed) {
			begin = append(begin, name)
		}
	}
	sort.Strings(begin)
	if len(begin) == 1 {
		return begin[0]
	}
	return ""
}

// distance counts the letters to insert, delete, replace or swap with their neighbour to get from a to b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > 64 || len(y) > 64 { // nobody mistypes a name into this
		return len(x) + len(y)
	}
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}
