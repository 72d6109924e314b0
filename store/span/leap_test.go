package span

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// inSteps is the end of a string literal as the grammar has it, a byte at a time.
func inSteps(b []byte, i int) (end int, ok bool) {
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1, true
		case c < 0x20:
			return i, false
		case c == '\\':
			if i+1 == len(b) {
				return len(b), false
			}
			switch e := b[i+1]; {
			case strings.IndexByte(`"\/bfnrt`, e) >= 0:
				i++
			case e == 'u':
				for k := i + 2; k < i+6; k++ {
					if k == len(b) || !isHex(b[k]) {
						return k, false
					}
				}
				i += 5
			default:
				return i, false
			}
		}
	}
	return len(b), false
}

func sameString(t interface{ Fatalf(string, ...any) }, b []byte) {
	end, err := skipString(b, 0)
	want, ok := inSteps(b, 0)
	if end != want || ok != (err == nil) {
		t.Fatalf("%q: ends at %d, %v; want %d, %v", b, end, err, want, ok)
	}
}

// Wherever escapes, quotes and mistakes stand, a string ends where it does.
func TestStringsOfAllKinds(t *testing.T) {
	var parts []string
	for c := range 256 {
		parts = append(parts, string([]byte{byte(c)}), string([]byte{'\\', byte(c)}))
	}
	parts = append(parts, `\\\\\\\\`, `\"\"\"`, `\n\t\u00e9\n`, `\ud83d\ude00`, `\u12`, `\u12g4`, "\xff\xfe", "é")
	for _, part := range parts {
		for before := range 70 {
			for _, after := range []int{0, 1, 33} {
				b := []byte(`"` + strings.Repeat("x", before) + part + strings.Repeat("y", after) + `"`)
				sameString(t, b[:len(b):len(b)])
				sameString(t, b[:len(b)-1:len(b)-1])
			}
		}
	}
}

func TestStringsAtRandom(t *testing.T) {
	piece := rapid.OneOf(
		rapid.StringN(0, 80, -1), rapid.SampledFrom([]string{`\n`, `\"`, `\\`, `\/`, `\u0041`, `\u00`, `\`, `"`, "\x00", "\x1f", "\x7f", "\x80", "\xff"}),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 40), func(b []byte) string { return string(b) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		sameString(t, []byte(`"`+strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), "")))
	})
}

// Nothing behind the end of a text counts, whatever stands there.
func TestLeapKeepsToTheText(t *testing.T) {
	for n := range 100 {
		for _, behind := range []string{`"`, `n"`, "x"} {
			b := []byte(`"` + strings.Repeat("x", n) + `\` + behind)
			text := b[: n+2 : n+2]
			_, err := skipString(text, 0)
			if diff := cmp.Diff(cut(text), err); diff != "" {
				t.Error(diff)
			}
			if got := leap(text, 1); got > n+1 {
				t.Errorf("a backslash after %d characters is passed", n)
			}
		}
	}
	if b := bytes.Repeat([]byte("x"), 64); leap(b, 64) != 64 || leap(b, 60) != 60 {
		t.Error("something is passed where nothing is left")
	}
}

var benchEnd int

func BenchmarkSkipString(b *testing.B) {
	for _, of := range []struct{ name, text string }{
		{"plain", strings.Repeat("x", 4000)},
		{"prose", strings.Repeat(`the lamp of the lighthouse was lit again and nobody knew by whom;\n`, 60)},
		{"code", strings.Repeat(`\tif err := \"x\"; {\n`, 200)},
		{"short", "parentId"},
	} {
		text := []byte(`"` + of.text + `"   `)
		b.Run(of.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				benchEnd, _ = skipString(text, 0)
			}
		})
	}
}
