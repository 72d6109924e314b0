package commands

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oc/store/span"
)

// The parts of a text are all of it, each a string of its own, and none is much longer than a piece.
func TestCutText(t *testing.T) {
	const size = 1000
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.StringOf(rapid.SampledFrom([]rune("ab \n\t\"\\é😀\u0001:=-{},"))).Draw(t, "unit")
		if unit == "" {
			unit = "x"
		}
		text := strings.Repeat(unit, 1+rapid.IntRange(0, 5).Draw(t, "size")*size/len(unit))
		raw, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var whole strings.Builder
		for _, part := range cutText(raw, size) {
			s, ok := span.Text(inQuotes(nil, part))
			if !ok {
				t.Fatalf("a part is no string: %.80q", part)
			}
			if len(part) > 2*size {
				t.Fatalf("a part of %d bytes", len(part))
			}
			whole.WriteString(s)
		}
		if want, _ := span.Text(raw); whole.String() != want {
			t.Fatal("the parts are not the whole")
		}
	})
}

// A private key, and a name whose value stands in the next line, are not cut through.
func TestCutTextKeepsSecretsWhole(t *testing.T) {
	key := "-----BEGIN PRIVATE " + "KEY-----\n" + strings.Repeat("QUJDRA==\n", 400) + "-----END PRIVATE " + "KEY-----\n"
	filler := "a line of words that nobody minds\n"
	const size = 50_000
	for shift := 0; shift < 6000; shift += 97 {
		before := strings.Repeat(filler, (size-shift)/len(filler))
		raw, _ := json.Marshal(before + key + strings.Repeat("password:\n  hunter\n", size/10) + before)
		keys := 0
		for _, part := range cutText(raw, size) {
			if bytes.Contains(part, []byte("-----BEGIN ")) != bytes.Contains(part, []byte("-----END ")) {
				t.Fatalf("shift %d: the key was cut", shift)
			}
			keys += bytes.Count(part, []byte("-----END "))
			if bytes.HasSuffix(part, []byte(`password:\n`)) {
				t.Fatalf("shift %d: a name was cut from its value", shift)
			}
		}
		if keys != 1 {
			t.Fatalf("%d keys", keys)
		}
	}
}

// A long message is several messages with all of its texts and calls; a short one is itself.
func TestPieces(t *testing.T) {
	long, _ := json.Marshal(strings.Repeat("one line of many\n", 6<<20/17))
	short := []byte(`{"role":"user","content":"hello"}`)
	n := 0
	for p := range pieces(short) {
		if n++; &p[0] != &short[0] {
			t.Error("a short message was copied")
		}
	}
	if n != 1 {
		t.Errorf("%d pieces of a short message", n)
	}
	for _, raw := range []string{
		`{"role":"toolResult","toolName":"exec","content":[{"type":"text","text":"first"},{"type":"text","text":` + string(long) + `},{"type":"image","data":"QUJD","mimeType":"image/png"}]}`,
		`{"role":"user","content":` + string(long) + `}`,
		`{"role":"bashExecution","command":"cat","output":` + string(long) + `}`,
	} {
		var texts strings.Builder
		images, count := 0, 0
		for p := range pieces([]byte(raw)) {
			if err := span.Valid(p); err != nil {
				t.Fatal(err)
			}
			if count++; len(p) > 2*pieceSize+4096 {
				t.Errorf("a piece of %d bytes", len(p))
			}
			for _, b := range parts(p) {
				if strings.HasPrefix(b.aside, "(image") {
					images++
				}
				if b.aside != "$" {
					texts.WriteString(b.text)
				}
			}
		}
		want, _ := span.Text(long)
		if got := strings.TrimPrefix(texts.String(), "first"); got != want || count < 6 || strings.Contains(raw, "image") != (images == 1) {
			t.Errorf("%.40s: %d pieces with %d bytes of %d, %d images", raw, count, len(got), len(want), images)
		}
	}
}
