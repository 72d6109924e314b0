package jsonfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oc/store/span"
)

// However many pieces a store is indexed in, and wherever they start, it is what one walk finds: the rows, their places, the
// end, and the place and reason of damage.
func TestIndexInPiecesIsIndexInOne(t *testing.T) {
	key := rapid.SampledFrom([]string{"a", "b", "agent:main:main", `q\"q`, `\n  \"x`, "2", "__proto__"})
	white := rapid.SampledFrom([]string{"", " ", "\n", "\n  ", "\n    ", "\n\t", "\r\n  "})
	var value func(depth int) *rapid.Generator[string]
	value = func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			if depth == 0 || rapid.Bool().Draw(t, "plain") {
				return rapid.SampledFrom([]string{`"sessionId"`, "1", "null", `"\\n  \\\""`, "[]", "{}", "tru", `"`, "}"}).Draw(t, "value")
			}
			gap := white.Draw(t, "gap")
			var b strings.Builder
			b.WriteString("{")
			for i := range rapid.IntRange(0, 5).Draw(t, "members") {
				if i > 0 {
					b.WriteString(",")
				}
				fmt.Fprintf(&b, `%s"%s":%s%s`, gap, key.Draw(t, "key"), white.Draw(t, "gap"), value(depth-1).Draw(t, "value"))
			}
			return b.String() + white.Draw(t, "gap") + "}"
		})
	}
	whole := 0
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(value(3).Draw(t, "text") + white.Draw(t, "gap"))
		want, wantEnd, wantErr := index(text, 1)
		if wantErr == nil && len(want) > 2 {
			whole++
		}
		got, end, err := index(text, rapid.IntRange(2, 9).Draw(t, "pieces"))
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || end != wantEnd || len(got) != len(want) {
			t.Fatalf("%q: %d rows to %d, %v; want %d to %d, %v", text, len(got), end, err, len(want), wantEnd, wantErr)
		}
		for i := range got {
			if got[i].Key != want[i].Key || got[i].At != want[i].At || !bytes.Equal(got[i].Val, want[i].Val) || !cmp.Equal(got[i].Members(), want[i].Members()) {
				t.Fatalf("%q: row %d is %q, want %q", text, i, got[i].Val, want[i].Val)
			}
		}
		var s *span.SyntaxError
		if errors.As(err, &s) && s.Offset > len(text) {
			t.Fatalf("%q: damage at %d", text, s.Offset)
		}
	})
	if whole == 0 {
		t.Error("no text was a store of several rows")
	}
}

// A file that is shorter than it was a moment ago is what there is of it.
func TestReadAllOfAShorterFile(t *testing.T) {
	for _, n := range []int{0, 1, pieceBytes, 2*pieceBytes - 1, 2 * pieceBytes, 5*pieceBytes + 3} {
		text := bytes.Repeat([]byte("0123456789abcde\n"), n/16+1)[:n]
		for _, size := range []int{n, n + 1, n + pieceBytes, 3 * n} {
			got, err := readAll(bytes.NewReader(text), int64(size))
			if err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes of %d: %d, %v", n, size, len(got), err)
			}
		}
	}
}
