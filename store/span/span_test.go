package span

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What JavaScript prints for a text that it parsed, recorded by testdata/stringify.mjs.
func TestAppendValueAsJavaScript(t *testing.T) {
	data, err := os.ReadFile("testdata/stringify.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases [][2]string
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) < 40 {
		t.Fatal(len(cases), err)
	}
	for _, c := range cases {
		raw := strings.TrimSpace(c[0])
		if err := Valid([]byte(c[0])); err != nil {
			t.Errorf("%s: %v", c[0], err)
		}
		if got := string(AppendValue(nil, []byte(raw), 0)); got != c[1] {
			t.Errorf("%s:\n%s", c[0], cmp.Diff(c[1], got))
		}
	}
}

func TestValid(t *testing.T) {
	for _, c := range []struct {
		text   string
		offset int
	}{
		{`{"a":1}`, -1},
		{` [1, "two" , {"three":[]}] `, -1},
		{``, 0},
		{`   `, 3},
		{`{"a":`, 5},
		{`{"a"`, 4},
		{`{"a":1`, 6},
		{`{"a":1,`, 7},
		{`{"a":1,}`, 7},
		{`[1,]`, 3},
		{`[1 2]`, 3},
		{`{"a":1}}`, 7},
		{`{"a":1} x`, 8},
		{`"abc`, 4},
		{"\"a\nb\"", 2},
		{`"\q"`, 1},
		{`"\u12g4"`, 5},
		{`01`, 1},
		{`-`, 1},
		{`1.`, 2},
		{`1e`, 2},
		{`+1`, 0},
		{`tru`, 3},
		{`trux`, 0},
		{`nul`, 3},
		{`{'a':1}`, 1},
		{"\xef\xbb\xbf{}", 0},
		{`{"a":1,"b"1}`, 10},
		{`"` + strings.Repeat("x", 20) + "\x01" + `"`, 21},
	} {
		err := Valid([]byte(c.text))
		var syntax *SyntaxError
		switch {
		case c.offset < 0 && err != nil:
			t.Errorf("%q: %v", c.text, err)
		case c.offset >= 0 && !errors.As(err, &syntax):
			t.Errorf("%q: want an error at %d, got %v", c.text, c.offset, err)
		case c.offset >= 0 && syntax.Offset != c.offset:
			t.Errorf("%q: want an error at %d, got %v", c.text, c.offset, err)
		}
	}
}

func TestText(t *testing.T) {
	for raw, want := range map[string]string{
		`""`:                           "",
		`"a\u00e9\n"`:                  "aé\n",
		`"\ud83d\ude00"`:               "😀",
		`"\ud83d\u0041"`:               "\xed\xa0\xbdA",
		"\"a\xffb\"":                   "a\uFFFDb",
		"\"\xe2\x82\"":                 "\uFFFD",             // one for the begun sequence
		"\"\xf0\x9f\x98\"":             "\uFFFD",             // one
		"\"\xc0\xaf\"":                 "\uFFFD\uFFFD",       // two: 0xc0 begins nothing
		"\"\xed\xa0\x80\"":             "\uFFFD\uFFFD\uFFFD", // an encoded surrogate is three bad bytes
		"\"\xf8\x88\x80\x80\x80\"":     strings.Repeat("\uFFFD", 5),
		"\"\xe2\x82\x41\xe2\x82\xac\"": "\uFFFDA€",
	} {
		if got, ok := Text([]byte(raw)); !ok || got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
	if _, ok := Text([]byte(`5`)); ok {
		t.Error("a number is no text")
	}
}

func TestUTF16Len(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "é": 1, "日本": 2, "😀": 2, "\xed\xa0\xbd": 1, "a\xff": 2} {
		if got := UTF16Len(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
}

func TestEach(t *testing.T) {
	text := []byte(` {"a" : 1, "b\"":{"x":[1,2]} ,"a":"z"} tail`)
	var got []string
	end, err := Each(text, 0, func(key, val []byte) error {
		if !bytes.Equal(text[At(text, val):][:len(val)], val) {
			t.Errorf("At(%s) = %d", val, At(text, val))
		}
		got = append(got, string(key)+"="+string(val))
		return nil
	})
	want := []string{`"a"=1`, `"b\""={"x":[1,2]}`, `"a"="z"`}
	if err != nil || string(text[end:]) != " tail" || !cmp.Equal(got, want) {
		t.Errorf("%v at %d: %v", got, end, err)
	}
	if v := Member(text, "a"); string(v) != `"z"` {
		t.Errorf("the last member counts, got %s", v)
	}
	if v := Path(text, `b"`, "x"); string(v) != "[1,2]" {
		t.Errorf("path: %s", v)
	}
	if v := Member([]byte(`[1]`), "a"); v != nil {
		t.Errorf("no object has no member: %s", v)
	}
}

func TestFloat(t *testing.T) {
	for raw, want := range map[string]float64{"1": 1, "-0": 0, "1e400": math.Inf(1), "9007199254740993": 9007199254740992, "0.1": 0.1, "999999999999999": 999999999999999} {
		if got, ok := Float([]byte(raw)); !ok || got != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
}

func TestPrinter(t *testing.T) {
	var out bytes.Buffer
	p := NewPrinter(&out)
	p.Object()
	p.Key("a").Int(1)
	p.Key("b").Array()
	p.String("x")
	p.Object()
	p.End()
	p.Raw([]byte(`{"k":[1.50]}`))
	p.End()
	p.Key("c").Array()
	p.End()
	p.Key("d").Object()
	p.Key("e").Null()
	p.End()
	p.End()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"a\": 1,\n  \"b\": [\n    \"x\",\n    {},\n    {\n      \"k\": [\n        1.5\n      ]\n    }\n  ],\n  \"c\": [],\n  \"d\": {\n    \"e\": null\n  }\n}\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

// However many values there are, on however many processors, Each prints what printing them one after the other does.
func TestPrinterEach(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	value := func(p *Printer, i int) {
		p.Object()
		p.Key("i").Int(int64(i))
		p.Key("s").String(strings.Repeat("x", i%700))
		p.End()
	}
	for _, n := range []int{0, 1, block, block + 1, 20*block + 7} {
		for _, before := range []int{0, 2} {
			var got, want bytes.Buffer
			for _, out := range []*bytes.Buffer{&got, &want} {
				p := NewPrinter(out)
				p.Array()
				for i := range before {
					value(p, i)
				}
				if out == &got {
					p.Each(n, value)
				} else {
					for i := range n {
						value(p, i)
					}
				}
				p.End()
				if err := p.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if got.String() != want.String() {
				t.Errorf("%d values after %d: %d bytes, want %d", n, before, got.Len(), want.Len())
			}
		}
	}
}

// The standard library's checker is the judge of what is valid, and what is
// printed must mean the same to it.
func FuzzValid(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,"\u0041\ud800"],"b":null}`, `[[[[]]]]`, `"a\\\"b"`, `{"a":1,}`, "\"\xff\"", ` 1 `, `{"2":1,"1":2,"2":3}`, "\"aaaaaaaaaaaaaaaaaaaaaaaa\x1f\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := Valid(b)
		if (err == nil) != json.Valid(b) {
			if bytes.Count(b, []byte("["))+bytes.Count(b, []byte("{")) > 9000 {
				return // deeper than encoding/json goes
			}
			t.Fatalf("%q: %v, encoding/json says %v", b, err, json.Valid(b))
		}
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(b) {
				t.Fatalf("%q: %v", b, err)
			}
			return
		}
		once := AppendValue(nil, bytes.TrimSpace(b), 0)
		if err := Valid(once); err != nil {
			t.Fatalf("%q printed as %q: %v", b, once, err)
		}
		if twice := AppendValue(nil, once, 0); !bytes.Equal(once, twice) {
			t.Fatalf("%q printed as %q, then as %q", b, once, twice)
		}
	})
}

func BenchmarkSkip(b *testing.B) {
	prompt := strings.Repeat("a line of a prompt as long as they are, sixty bytes or so\\n", 40)
	text := []byte(`{` + strings.Repeat(`"k":{"sessionId":"x","updatedAt":1790000000000,"skillsSnapshot":{"prompt":"`+prompt+`"},"list":[1,2,3,{"a":null}]},`+"\n  ", 10000) + `"end":1}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if err := Valid(text); err != nil {
			b.Fatal(err)
		}
	}
}

// Of a string whatever eight bytes at a time find is what one byte at a time finds, for every two bytes beside each other, wherever they stand.
func TestSkipStringByWords(t *testing.T) {
	slowly := func(b []byte) (int, bool) {
		for i := 1; ; i++ {
			switch c := b[i]; {
			case c == '"':
				return i + 1, true
			case c < ' ':
				return i, false
			case c == '\\':
				i++
				if !strings.ContainsRune(`"\/bfnrt`, rune(b[i])) {
					return i - 1, false
				}
			}
		}
	}
	for at := 1; at < 10; at++ {
		for pair := range 1 << 16 {
			b := []byte(`"##################"`)
			b[at], b[at+1] = byte(pair), byte(pair>>8)
			if b[at] == '\\' && b[at+1] == 'u' || b[at+1] == '\\' {
				continue
			}
			want, ok := slowly(b)
			if got, err := skipString(b, 0); got != want || (err == nil) != ok {
				t.Fatalf("%q: %d (%v), want %d (%v)", b, got, err, want, ok)
			}
		}
	}
}
