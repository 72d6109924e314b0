package term

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestKeys(t *testing.T) {
	for typed, want := range map[string][]Key{
		"q":                        {"q"},
		"\x03":                     {CtrlC},
		"\x1b":                     {Esc},
		"\x1b[A\x1b[B\x1bOA":       {Up, Down, Up},
		"\x1b[5~j\x1b[6~":          {PageUp, "j", PageDown},
		"\x1b[1;5Cx":               {"x"}, // a key that has no name here
		"\x1b[200~":                nil,
		"a\r\n":                    {"a", Enter, Enter},
		"\xc3\xbcä\x00\x01\x7f":    {"ü", "ä"},
		"\x1b\x1b[D":               {Esc, Left},
		strings.Repeat("\x1b", 30): slicesOf(Esc, 30),
	} {
		got, rest := keysOf([]byte(typed))
		if d := cmp.Diff(want, got); d != "" || len(rest) > 0 {
			t.Errorf("%q: %s, rest %q", typed, d, rest)
		}
	}
	if got, rest := keysOf([]byte("a\xe2\x82")); len(got) != 1 || string(rest) != "\xe2\x82" {
		t.Errorf("half a character: %v, rest %q", got, rest)
	}
}

func slicesOf(k Key, n int) (all []Key) {
	for range n {
		all = append(all, k)
	}
	return all
}

// Whatever is typed, in pieces of whatever size, ends, and characters stay whole.
func TestKeysOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zäöü€😀]{0,300}`).Draw(t, "text")
		noise := rapid.SliceOf(rapid.Byte()).Draw(t, "noise")
		keys := make(chan Key, 2000)
		typed(&pieces{[]byte(text), rapid.IntRange(1, 7).Draw(t, "size")}, keys)
		var got strings.Builder
		for k := range keys {
			got.WriteString(string(k))
		}
		if got.String() != text {
			t.Fatalf("%q became %q", text, got.String())
		}
		keys = make(chan Key, 2000)
		typed(bytes.NewReader(noise), keys)
	})
}

// pieces gives a few bytes at a time.
type pieces struct {
	rest []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, errors.New("the end")
	}
	n := copy(b[:min(len(b), p.size)], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func TestNoScreen(t *testing.T) {
	o, _ := screen(80)
	if _, err := o.Screen(&bytes.Buffer{}); !errors.Is(err, ErrNoScreen) {
		t.Errorf("got %v", err)
	}
}
