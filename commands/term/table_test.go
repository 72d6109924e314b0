package term

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func screen(width int) (*Out, *bytes.Buffer) {
	var b bytes.Buffer
	return New(&b, nil, Options{Env: func(n string) string {
		return map[string]string{"COLUMNS": fmt.Sprint(width), "LANG": "C.UTF-8"}[n]
	}}), &b
}

func shown(o *Out, b *bytes.Buffer) string {
	o.Flush() //nolint:errcheck // a buffer
	return b.String()
}

var columns = []Column{{Head: "Key", Cut: Middle}, {Head: "Age", Right: true}, {Head: "Model", Cut: End, Drop: 1}, {Head: "Note", Drop: 2}}

// Both ways to write a table look the same.
func TestDrawnAndStreamedAreAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "a", "agent:main:telegram:group:-100123456789", "日本語のキー日本語のキー", "e\u0301x", " b ", "x\ny\x1b[31m", "1", "12345", "\u202eabc", "a  b", "  c", "|", "🙂", "long text with many words in it, longer than all"})
		rows := rapid.SliceOfN(rapid.SliceOfN(text, 4, 4), 1, 8).Draw(t, "rows")
		width := rapid.IntRange(10, 120).Draw(t, "width")
		colour := rapid.Bool().Draw(t, "colour")

		o, b := screen(width)
		o.colour = colour
		short := o.Table(columns...)
		for _, r := range rows {
			short.Row(r...)
		}
		widths := short.fit()
		short.End()

		p, c := screen(width)
		p.colour = colour
		long := p.Table(columns...)
		long.widths = widths
		long.stream(long.heads(), true)
		for _, r := range rows {
			long.stream(r, false)
		}
		if d := cmp.Diff(shown(p, c), shown(o, b)); d != "" {
			t.Fatalf("streamed and drawn differ:\n%s", d)
		}
	})
}

// Both sides of the border between a drawn and a streamed table have all their rows.
func TestNoRowIsLost(t *testing.T) {
	for _, rows := range []int{0, 1, drawn, drawn + 1, 10_000} {
		o, b := screen(80)
		fill(o, rows)
		want := rows + 1
		if rows == 0 {
			want = 0
		}
		if got := bytes.Count([]byte(shown(o, b)), []byte("\n")); got != want {
			t.Errorf("%d rows: %d lines", rows, got)
		}
	}
}

func fill(o *Out, rows int) {
	table := o.Table(columns...)
	for i := range rows {
		table.Row(fmt.Sprintf("agent:main:telegram:group:-100%d", i), "5m", "claude-opus-4-6", "日本")
	}
	table.End()
}

func BenchmarkTable(b *testing.B) {
	for _, rows := range []int{drawn, 10_000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			for b.Loop() {
				o, _ := screen(80)
				fill(o, rows)
			}
		})
	}
}
