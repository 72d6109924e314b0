package term

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// Columns is how many columns s takes on a terminal: wide characters take two, combining marks none.
func Columns(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] >= 0x7f {
			return displaywidth.String(s)
		}
	}
	return len(s)
}

// CutEnd shortens s to at most width columns; mark stands for what went from its end.
func CutEnd(s string, width int, mark string) string {
	if Columns(s) <= width {
		return s
	}
	room := width - Columns(mark)
	if room < 0 {
		return head(s, max(width, 0))
	}
	return head(s, room) + mark
}

// CutMiddle shortens s to at most width columns; mark stands for what went from its middle, a little more is kept of the beginning.
func CutMiddle(s string, width int, mark string) string {
	if Columns(s) <= width {
		return s
	}
	room := width - Columns(mark)
	if room < 2 {
		return CutEnd(s, width, mark)
	}
	end := tail(s, room*2/5)
	return head(s, room-Columns(end)) + mark + end
}

// Pad fills s with blanks to width columns, on its left when right is true.
func Pad(s string, width int, right bool) string {
	missing := width - Columns(s)
	switch {
	case missing <= 0:
		return s
	case right:
		return blanks(missing) + s
	}
	return s + blanks(missing)
}

// head is as much of the beginning of s as fits; what a reader sees as one character is not split.
func head(s string, width int) string {
	used, at := 0, 0
	for g := displaywidth.StringGraphemes(s); g.Next(); {
		used += g.Width()
		if used > width {
			break
		}
		at += len(g.Value())
	}
	return s[:at]
}

func tail(s string, width int) string {
	type cut struct{ at, used int }
	at, used := 0, 0
	cuts := []cut{{0, 0}}
	for g := displaywidth.StringGraphemes(s); g.Next(); {
		used += g.Width()
		at += len(g.Value())
		cuts = append(cuts, cut{at, used})
	}
	for _, c := range cuts {
		if used-c.used <= width {
			return s[c.at:]
		}
	}
	return ""
}

const space = "                                                                                                    "

func blanks(n int) string {
	if n <= len(space) {
		return space[:max(n, 0)]
	}
	return strings.Repeat(" ", n)
}

// Wrap breaks text at blanks into lines of at most width columns, each with indent in front; blanks that no line breaks at are kept.
// Lines that begin with a blank stay as they are.
func Wrap(text string, width int, indent string) string {
	var b strings.Builder
	for i, par := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		if par == "" {
			continue
		}
		b.WriteString(indent)
		if par[0] == ' ' {
			b.WriteString(par)
			continue
		}
		used := Columns(indent)
		for j, word := range strings.Split(par, " ") {
			w := Columns(word)
			switch {
			case j == 0:
			case used+1+w > width:
				b.WriteString("\n" + indent)
				used = Columns(indent)
			default:
				b.WriteByte(' ')
				used++
			}
			b.WriteString(word)
			used += w
		}
	}
	return b.String()
}
