package term

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAge(t *testing.T) {
	for ms, want := range map[int64]string{
		0: "now", 999: "now", 1000: "1s", 59_999: "59s", 60_000: "1m", 300_000: "5m", 3_599_999: "59m", 3_600_000: "1h", 47 * 3_600_000: "47h",
		48 * 3_600_000: "2d", 400 * 86_400_000: "400d", -1: "now", -999: "now", -1000: "in 1s", -2 * 86_400_000: "in 2d", math.MinInt64: "in 106751991167d",
	} {
		if got := Age(ms); got != want {
			t.Errorf("%d: got %q, want %q", ms, got, want)
		}
	}
}

func TestHuman(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Bytes(0), "0 B"},
		{Bytes(1023), "1023 B"},
		{Bytes(2_202_010), "2.1 MiB"},
		{Bytes(-1), Unknown},
		{Count(1234567), "1,234,567"},
		{Time(math.MaxInt64), Unknown},
		{Time(-lastStamp - 1), Unknown},
		{Time(1790000000000), time.UnixMilli(1790000000000).Format("2006-01-02 15:04:05 MST")},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestPrintfEscapes(t *testing.T) {
	o, b := screen(80)
	o.colour = true
	o.Printf("%s %q %v %d %s %s\n", "a\nb", "c\x1b", errors.New("d\re"), 7, o.Paint(Bold|Red, "f\ng"), time.Duration(5))
	if got, want := shown(o, b), "a\\nb \"c\\\\x1b\" d\\re 7 \x1b[1;31mf\\ng\x1b[0m 5ns\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	o.colour = false
	if got := o.Paint(Yellow, "x"); got != "x" {
		t.Errorf("painted without colour: %q", got)
	}
}

func TestSurroundings(t *testing.T) {
	for _, c := range []struct {
		env      map[string]string
		width    int
		ellipsis string
	}{
		{nil, 80, "..."},
		{map[string]string{"COLUMNS": "132", "LANG": "en_US.UTF-8"}, 132, "…"},
		{map[string]string{"COLUMNS": "x"}, 80, "..."},
		{map[string]string{"COLUMNS": "-3"}, 80, "..."},
		{map[string]string{"COLUMNS": "0", "LANG": "C.utf8"}, 80, "…"},
		{map[string]string{"LC_ALL": "C", "LANG": "C.UTF-8"}, 80, "..."},
		{map[string]string{"LC_CTYPE": "UTF-8"}, 80, "…"},
	} {
		o := New(&bytes.Buffer{}, &bytes.Buffer{}, Options{Env: func(n string) string { return c.env[n] }})
		if o.Width() != c.width || o.ellipsis != c.ellipsis || o.Color() || o.Terminal() {
			t.Errorf("%v: %d %q colour %t terminal %t", c.env, o.Width(), o.ellipsis, o.Color(), o.Terminal())
		}
	}
}

// broken takes so many bytes and then fails.
type breaking struct {
	bytes.Buffer
	room int
}

var errFull = errors.New("full")

func (w *breaking) Write(b []byte) (int, error) {
	if len(b) > w.room {
		return 0, errFull
	}
	w.room -= len(b)
	return w.Buffer.Write(b)
}

func TestTheFirstFailureIsKept(t *testing.T) {
	w := &breaking{room: piece + 10}
	o := New(w, nil, Options{})
	big := bytes.Repeat([]byte("x"), piece)
	if _, err := o.Write(big); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write(big); !errors.Is(err, errFull) {
		t.Fatalf("got %v", err)
	}
	if _, err := o.Write([]byte("y")); !errors.Is(err, errFull) {
		t.Fatalf("got %v", err)
	}
	if err := o.Flush(); !errors.Is(err, errFull) || w.Len() != piece {
		t.Fatalf("got %v, %d bytes", err, w.Len())
	}
}

func TestDiscard(t *testing.T) {
	o, b := screen(80)
	if !o.Empty() {
		t.Error("new and not empty")
	}
	o.Printf("half")
	if o.Empty() || !o.Discard() || !o.Empty() {
		t.Error("what was only gathered cannot be dropped")
	}
	o.Printf("whole")
	if shown(o, b) != "whole" || o.Discard() {
		t.Errorf("%q", b.String())
	}
}

func TestFacts(t *testing.T) {
	o, b := screen(40)
	o.Facts(Fact{Label: "key", Value: "agent:main:main"}, Fact{Label: "left out"}, Fact{Label: "note", Value: "some words that are too many for one line\n"})
	want := `key   agent:main:main
note  some words that are too many for
      one line\n
`
	if d := cmp.Diff(want, shown(o, b)); d != "" {
		t.Error(d)
	}
}

func TestProgress(t *testing.T) {
	o, b := screen(30)
	if p := o.Progress("x", time.Now); p != nil {
		t.Fatal("progress without a terminal")
	}
	var none *Progress
	none.Set(1, 2)
	none.Done()

	o.terminal, o.prompt = true, true
	now := time.UnixMilli(0)
	p := o.Progress("reading", func() time.Time { return now })
	p.Set(1, 4)
	p.Set(2, 4) // too soon
	now = now.Add(time.Second)
	p.Set(3, 4)
	o.Printf("note\n")
	p.Set(1_000_000_000_000, 0)
	p.Done()
	want := "\rreading 1 of 4 (25%)\x1b[K" + "\rreading 3 of 4 (75%)\x1b[K" + "\r\x1b[K" + "note\n" + "\rreading 1,000,000,000,000\x1b[K" + "\r\x1b[K"
	if got := shown(o, b); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTableFits(t *testing.T) {
	cols := []Column{
		{Head: "Agent", Drop: 2},
		{Head: "Key", Cut: Middle, Min: 12},
		{Head: "Age", Right: true},
		{Head: "Title", Cut: End, Drop: 1},
	}
	rows := [][]string{
		{"main", "agent:main:telegram:group:-100123456789", "5m", "a title that says what was talked about"},
		{"main", "agent:main:main", "in 2d", "日本語"},
		{"work"},
	}
	for width, want := range map[int]string{
		120: `Agent  Key                                        Age  Title
main   agent:main:telegram:group:-100123456789     5m  a title that says what was talked about
main   agent:main:main                          in 2d  日本語
work
`,
		60: `Agent  Key                       Age  Title
main   agent:main:te…23456789     5m  a title that says wha…
main   agent:main:main         in 2d  日本語
work
`,
		30: `Key             Age  Title
agent:m…6789     5m  a title …
agent:m…main  in 2d  日本語

`,
		10: `Key             Age
agent:m…6789     5m
agent:m…main  in 2d

`,
	} {
		o, b := screen(width)
		table := o.Table(cols...)
		for _, r := range rows {
			table.Row(r...)
		}
		table.End()
		if d := cmp.Diff(want, shown(o, b)); d != "" {
			t.Errorf("%d columns:\n%s", width, d)
		}
	}

	o, b := screen(10)
	o.Wide = true
	table := o.Table(cols...)
	table.Row(rows[0]...)
	table.End()
	if !strings.Contains(shown(o, b), rows[0][1]) {
		t.Errorf("a wide table is cut: %q", b.String())
	}
	o, b = screen(80)
	o.Table(cols...).End()
	if shown(o, b) != "" {
		t.Errorf("a table without rows shows %q", b.String())
	}
}

// A row that is wider than the first 200 sticks out where it may not be cut, and is cut where it may.
func TestLateWideRows(t *testing.T) {
	o, b := screen(80)
	table := o.Table(Column{Head: "N", Right: true}, Column{Head: "Text", Cut: End})
	for i := range 300 {
		table.Row(fmt.Sprint(i*i*i), strings.Repeat("x", i/10))
	}
	table.End()
	lines := strings.Split(shown(o, b), "\n")
	if got := lines[300]; got != "26730899  xxxxxxxxxxxxxxxxxxx…" {
		t.Errorf("got %q", got)
	}
	if len(lines) != 302 {
		t.Errorf("%d lines", len(lines))
	}
}
