package commands

import (
	"bytes"
	"strings"
	"testing"

	"oc/commands/term"
)

// A place is wrapped to the terminal, and loses no word.
func TestPlaceIsWrapped(t *testing.T) {
	for _, match := range []string{"needle", "two words of it", strings.Repeat("long ", 30) + "end", "-"} {
		before, after := strings.Repeat("what stands in front ", 5), strings.Repeat(" and what stands behind", 5)
		var plain bytes.Buffer
		out := term.New(&plain, nil, term.Options{})
		place(out, before, match, after, term.Bold)
		if err := out.Flush(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(plain.String()) {
			if n := term.Columns(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%d columns: %q", n, line)
			}
		}
		if got := strings.Join(strings.Fields(plain.String()), " "); got != strings.Join(strings.Fields(before+match+after), " ") {
			t.Errorf("%q became %q", before+match+after, got)
		}
	}
}
