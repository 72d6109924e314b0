package term

import (
	"bytes"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"
)

// draw has tablewriter draw the rows: no borders, no lines, our widths. Cells come to it padded, since it fills up with whole copies
// of a padding and counts some emoji differently.
func (t *Table) draw(widths []int) {
	var kept []int
	perColumn := tw.NewMapper[int, int]()
	for i := range t.columns {
		if widths[i] < 0 {
			continue
		}
		perColumn.Set(len(kept), widths[i]+gap)
		kept = append(kept, i)
	}
	row := func(cells []string, head bool) []string {
		shown := make([]string, len(kept))
		for at, i := range kept {
			value := t.cell(i, cells[i], widths[i])
			missing, right := blanks(widths[i]-Columns(value)), blanks(gap)
			value = t.out.paint(t.style(i, cells[i], head), value)
			if t.columns[i].Right {
				shown[at] = missing + value + right
			} else {
				shown[at] = value + missing + right
			}
		}
		return shown
	}

	var drawing bytes.Buffer
	cell := tw.CellConfig{
		Formatting: tw.CellFormatting{AutoWrap: tw.WrapNone, AutoFormat: tw.Off},
		Padding:    tw.CellPadding{Global: tw.PaddingNone},
		Alignment:  tw.CellAlignment{Global: tw.AlignLeft},
	}
	table := tablewriter.NewTable(
		&drawing,
		tablewriter.WithConfig(tablewriter.Config{
			Header: cell, Row: cell,
			Widths:   tw.CellWidth{PerColumn: perColumn},
			Behavior: tw.Behavior{TrimSpace: tw.Off, TrimLine: tw.Off, AutoHide: tw.Off},
		}),
		tablewriter.WithRendition(tw.Rendition{
			Borders:  tw.BorderNone,
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		}),
		tablewriter.WithEastAsian(tw.Off), // else the locale would change what is counted as wide
	)
	table.Header(row(t.heads(), true))
	for _, cells := range t.rows {
		table.Append(row(cells, false)) //nolint:errcheck // memory
	}
	if err := table.Render(); err != nil {
		t.out.Printf("%s\n", err)
		return
	}
	for line := range bytes.Lines(drawing.Bytes()) {
		t.out.Write(append(bytes.TrimRight(line, " \n"), '\n')) //nolint:errcheck // kept in Out
	}
}
