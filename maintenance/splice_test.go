package maintenance

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// Splices over random texts, in layers, give what putting the text together by hand gives, however it is read.
func TestSpliced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(rt, "text")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		var layers [][]Splice
		var last io.ReaderAt = bytes.NewReader(text)
		want := text
		for range rapid.IntRange(0, 3).Draw(rt, "layers") {
			var layer []Splice
			var next []byte
			at := 0
			for at < len(want) && rapid.Bool().Draw(rt, "one more") {
				from := rapid.IntRange(at, len(want)).Draw(rt, "at")
				cut := rapid.IntRange(0, len(want)-from).Draw(rt, "cut")
				put := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(rt, "put")
				layer = append(layer, Splice{int64(from), int64(cut), put})
				next = append(append(next, want[at:from]...), put...)
				at = from + cut
			}
			next = append(next, want[at:]...)
			s, err := NewSpliced(last, int64(len(want)), layer)
			if err != nil {
				rt.Fatal(err)
			}
			last, want, layers = s, next, append(layers, layer)
			if s.Size() != int64(len(want)) {
				rt.Fatalf("size %d, want %d", s.Size(), len(want))
			}
			from := rapid.IntRange(0, len(want)).Draw(rt, "from")
			b := make([]byte, rapid.IntRange(0, 40).Draw(rt, "length"))
			n, err := s.ReadAt(b, int64(from))
			if !bytes.Equal(b[:n], want[from:from+n]) || n < len(b) && (err != io.EOF || from+n < len(want)) || n == len(b) && err != nil {
				rt.Fatalf("ReadAt %d of %d bytes from %d: %d, %v", len(b), len(want), from, n, err)
			}
		}
		var out bytes.Buffer
		if err := SplicedFile(path, layers...)(&out); err != nil || !bytes.Equal(out.Bytes(), want) {
			rt.Fatalf("%v: %q, want %q", err, out.Bytes(), want)
		}
	})
	for _, bad := range [][]Splice{{{0, 2, nil}, {1, 1, nil}}, {{2, 2, nil}}, {{0, -1, nil}}} {
		if _, err := NewSpliced(bytes.NewReader([]byte("abc")), 3, bad); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}
