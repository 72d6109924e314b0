package term

import (
	"bytes"
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
)

// Cut is how a value gives way when its column is too narrow for it.
type Cut int

// Ways to give way.
const (
	Whole  Cut = iota // never cut: numbers, ages, flags
	End               // the end goes: titles, text
	Middle            // the middle goes: keys, paths, ids
)

// Column is one column of a table.
type Column struct {
	Head  string
	Right bool // numbers and sizes stand at the right
	Cut   Cut
	Min   int // the narrowest that a column with a Cut becomes; 0: as wide as its head, at least 8
	Drop  int // when cutting is not enough, columns are left out, the highest Drop first; 0: never
	Style func(value string) Style
}

// Table gathers rows and writes them when it ends. Every cell is escaped. Up to 200 rows are drawn by tablewriter, and their columns
// are as wide as they need; a longer table takes its widths from its first 200 rows and is streamed from there on, in the same look.
type Table struct {
	out     *Out
	columns []Column
	rows    [][]string
	widths  []int // fixed once the table streams; -1: left out
	line    []byte
}

const drawn = 200

// padded is how wide a column of a wide table becomes at most. What is longer is shown whole and sticks out of its line: one key of
// 50,000 characters does not fill every other line with as many blanks.
const padded = 200

// Table begins a table.
func (o *Out) Table(columns ...Column) *Table { return &Table{out: o, columns: columns} }

// Row adds a row; cells that are missing are blank.
func (t *Table) Row(cells ...string) {
	if t.widths != nil {
		t.stream(cells, false)
		return
	}
	row := make([]string, len(t.columns))
	for i := range row {
		if i < len(cells) {
			row[i] = Escape(cells[i])
		}
	}
	t.rows = append(t.rows, row)
	if len(t.rows) > drawn {
		t.streamAll()
		t.rows = nil
	}
}

// End writes what is left of the table. A table without rows shows nothing, not even its head.
func (t *Table) End() {
	switch {
	case len(t.rows) == 0:
	case t.disputed():
		t.streamAll()
	default:
		t.draw(t.fit())
	}
	t.rows = nil
}

// disputed tells whether tablewriter would not show a cell as we do: it makes one blank of several, counts the columns of some
// characters otherwise, and breaks the line of a cell that sticks out.
func (t *Table) disputed() bool {
	for _, r := range t.rows {
		for _, cell := range r {
			if strings.Contains(cell, "  ") || t.out.Wide && Columns(cell) > padded {
				return true
			}
			if len(cell) != Columns(cell) && twwidth.Width(cell) != Columns(cell) {
				return true
			}
		}
	}
	return false
}

// streamAll fixes the widths and writes what was gathered.
func (t *Table) streamAll() {
	t.widths = t.fit()
	t.stream(t.heads(), true)
	for _, r := range t.rows {
		t.stream(r, false)
	}
}

func (t *Table) heads() []string {
	heads := make([]string, len(t.columns))
	for i, c := range t.columns {
		heads[i] = c.Head
	}
	return heads
}

const gap = 2 // blanks between columns

// fit decides how wide each column is: as wide as its widest cell, if all fit. Else the widest of those that can be cut give way
// first, all to the same width, none below its Min; then columns are left out. What still does not fit sticks out.
func (t *Table) fit() []int {
	natural := make([]int, len(t.columns))
	for i, c := range t.columns {
		natural[i] = Columns(c.Head)
		for _, row := range t.rows {
			natural[i] = max(natural[i], Columns(row[i]))
		}
	}
	if t.out.Wide {
		for i := range natural {
			natural[i] = min(natural[i], padded)
		}
		return natural
	}
	for {
		widths := t.shrink(natural)
		if total(widths) <= t.out.width {
			return widths
		}
		last := -1
		for i, c := range t.columns {
			if natural[i] >= 0 && c.Drop > 0 && (last < 0 || c.Drop >= t.columns[last].Drop) {
				last = i
			}
		}
		if last < 0 {
			return widths
		}
		natural[last] = -1
	}
}

// shrink lowers the widest columns that can be cut until the table fits.
func (t *Table) shrink(natural []int) []int {
	widths := append([]int(nil), natural...)
	for over := total(widths) - t.out.width; over > 0; over-- {
		widest := -1
		for i, c := range t.columns {
			least := c.Min
			if least == 0 {
				least = max(8, Columns(c.Head))
			}
			if c.Cut != Whole && widths[i] > least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

func total(widths []int) int {
	sum := -gap
	for _, w := range widths {
		if w >= 0 {
			sum += w + gap
		}
	}
	return sum
}

// cell is an escaped value as its column shows it, without padding.
func (t *Table) cell(i int, value string, width int) string {
	if t.out.Wide {
		return value
	}
	switch t.columns[i].Cut {
	case End:
		return CutEnd(value, width, t.out.ellipsis)
	case Middle:
		return CutMiddle(value, width, t.out.ellipsis)
	}
	return value
}

// style is the style of a value before it was cut.
func (t *Table) style(i int, value string, head bool) Style {
	if head {
		return Bold
	}
	if s := t.columns[i].Style; s != nil {
		return s(value)
	}
	return Plain
}

// stream writes one row at once.
func (t *Table) stream(cells []string, head bool) {
	line := t.line[:0]
	owed := 0 // blanks that are written when something follows
	for i := range t.columns {
		width := t.widths[i]
		if width < 0 {
			continue
		}
		value := ""
		if i < len(cells) {
			value = Escape(cells[i])
		}
		shown := t.cell(i, value, width)
		missing := max(0, width-Columns(shown))
		if t.columns[i].Right {
			owed += missing
			missing = 0
		}
		if shown != "" {
			line = append(append(line, blanks(owed)...), t.out.paint(t.style(i, value, head), shown)...)
			owed = 0
		}
		owed += missing + gap
	}
	t.line = append(bytes.TrimRight(line, " "), '\n')
	t.out.Write(t.line) //nolint:errcheck // kept in Out
}
