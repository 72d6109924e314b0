package term

// Style is how a text stands out. Only the sixteen basic colours are used, in those shades that can be read on dark and on light
// ground, and no meaning is in the colour alone.
type Style int

// Styles, to be added up: Bold|Red.
const (
	Bold Style = 1 << iota
	Dim
	Red
	Green
	Yellow
	Cyan
	Plain Style = 0
)

// Styled is text that was escaped and painted: safe to show as it is.
type Styled string

// Paint escapes text and puts it in a style, where colours are shown.
func (o *Out) Paint(s Style, text string) Styled {
	return Styled(o.paint(s, Escape(text)))
}

func (o *Out) paint(s Style, safe string) string {
	if !o.colour || s == Plain || safe == "" {
		return safe
	}
	codes := ""
	for i, code := range [...]string{"1", "2", "31", "32", "33", "36"} {
		if s&(1<<i) != 0 {
			codes += ";" + code
		}
	}
	return "\x1b[" + codes[1:] + "m" + safe + "\x1b[0m"
}
