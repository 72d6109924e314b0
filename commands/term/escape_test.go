package term

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		"agent:main:main":         "agent:main:main",
		"a\nb\r\tc":               `a\nb\r\tc`,
		"\x1b[31mred\x07\x00\x7f": `\x1b[31mred\x07\x00\x7f`,
		"\u009b2J\u0085":          `\u009b2J\u0085`,
		"a\u202eb\u2066c\u200f":   `a\u202eb\u2066c\u200f`,
		"zero\u200bwidth\ufeff":   `zero\u200bwidth\ufeff`,
		"\u2028\u2029\u00ad":      `\u2028\u2029\u00ad`,
		"\U000e0041tag":           `\u{e0041}tag`,
		"bad\xff\xc3(":            `bad\xff\xc3(`,
		"lone\xed\xa0\xbd!":       `lone\ud83d!`,
		"cut\xed\xa0":             `cut\xed\xa0`,
		"日本語 é e\u0301 🙂 العربية": "日本語 é e\u0301 🙂 العربية",
		"\u0301a\u0301": "\\u0301a\u0301",
		`C:\new`:        `C:\new`,
		"\u3164\u2800":  `\u3164\u2800`,
	} {
		if got := Escape(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// Whatever is escaped is one line of valid UTF-8 that only draws, and escaping it again changes nothing.
func checkEscaped(s string) error {
	got := Escape(s)
	if !utf8.ValidString(got) {
		return errors.New("no UTF-8")
	}
	for _, r := range got {
		if unicode.IsControl(r) || r == 0x2028 || r == 0x2029 || unicode.Is(unicode.Bidi_Control, r) || unsafe(r) {
			return errors.New("unsafe: " + string(r))
		}
	}
	if Escape(got) != got {
		return errors.New("escaped twice it is another")
	}
	return nil
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "a", "\x1b]0;x\x07", "\xed\xa0\x80", "\u202e", "\xf4\x90\x80\x80", "e\u0301"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if err := checkEscaped(s); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
	})
}

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Escape(rapid.String().Draw(t, "s"))
		width := rapid.IntRange(0, 40).Draw(t, "width")
		mark := rapid.SampledFrom([]string{"…", "..."}).Draw(t, "mark")
		for name, got := range map[string]string{"end": CutEnd(s, width, mark), "middle": CutMiddle(s, width, mark)} {
			if Columns(s) <= width && got != s {
				t.Fatalf("%s: %q fits in %d and became %q", name, s, width, got)
			}
			if Columns(got) > width {
				t.Fatalf("%s: %q cut to %d is %q, %d wide", name, s, width, got, Columns(got))
			}
		}
		if got := Pad(s, width, true); Columns(got) != max(width, Columns(s)) || !strings.HasSuffix(got, s) {
			t.Fatalf("padded to %d: %q", width, got)
		}
	})
	for _, c := range []struct {
		got, want string
	}{
		{CutMiddle("agent:main:telegram:group:-100123456789", 20, "…"), "agent:main:t…3456789"},
		{CutMiddle("agent:main:telegram:group:-100123456789", 20, "..."), "agent:main:...456789"},
		{CutMiddle("日本語日本語", 7, "…"), "日本…語"},
		{CutEnd("a long title", 6, "…"), "a lon…"},
		{CutEnd("abc", 1, "..."), "a"},
		{CutEnd("abc", 0, "…"), ""},
		{CutMiddle("abcdef", 3, "…"), "ab…"},
		{CutMiddle("abcdefgh", 6, "…"), "abc…gh"},
		{CutEnd("👩🏽👩🏽", 3, "…"), "👩🏽…"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	got := Wrap("one two three\n\n  kept as it is, though long\nlast", 10, "> ")
	if want := "> one two\n> three\n\n>   kept as it is, though long\n> last"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := Wrap("a  b cc", 5, ""), "a  b\ncc"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
