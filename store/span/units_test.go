package span

import (
	"strings"
	"testing"
)

// Counting a string without decoding it comes to the same as with.
func FuzzUnits(f *testing.F) {
	for _, s := range []string{`""`, `"a"`, `"\n\t\"\\\/"`, `"\u0041\ud83d\ude00\ud83d"`, `"äöü€😀"`, "\"\xff\xc3\x28\"", "\"\xed\xa0\x80\"", `"` + strings.Repeat("plain text ", 20) + `\n"`, `12`, `null`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if Valid(raw) != nil || len(raw) == 0 || raw[0] == ' ' {
			return
		}
		s, _ := Text(raw)
		if got, want := Units(raw), UTF16Len(s); got != want {
			t.Errorf("%q: %d units, want %d", raw, got, want)
		}
	})
}
