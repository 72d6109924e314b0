package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

func needle(t testing.TB, text string, pattern bool, c Case) *Needle {
	t.Helper()
	n, err := NewNeedle(text, c)
	if pattern {
		n, err = NewPattern(text, c)
	}
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return n
}

func TestNeedleFind(t *testing.T) {
	for _, c := range []struct {
		text    string
		pattern bool
		in      Case
		s       string
		want    string // "" for no match
	}{
		{"deploy", false, SmartCase, "we DEPLOY now", "DEPLOY"},
		{"Deploy", false, SmartCase, "we deploy, then Deploy", "Deploy"},
		{"Deploy", false, IgnoreCase, "we dePLOY", "dePLOY"},
		{"deploy", false, ExactCase, "DEPLOY", ""},
		{"straße", false, SmartCase, "STRAẞE", "STRAẞE"},
		{"ключ", false, SmartCase, "где КЛЮЧ?", "КЛЮЧ"},
		{"kelvin", false, SmartCase, "a \u212aelvin", "\u212aelvin"},
		{"less", false, SmartCase, "le\u017fs", "le\u017fs"},
		{"i", false, SmartCase, "\u0130", ""}, // no simple folding
		{"a.c", false, SmartCase, "abc", ""},
		{"a.c", true, SmartCase, "xABCx", "ABC"},
		{"A.c", true, SmartCase, "abc", ""},
		{`\Sb`, true, SmartCase, "AB", "AB"}, // a class is no capital
		{"(?i)Ab", true, SmartCase, "aB", "aB"},
		{"(timeout|refused)", true, SmartCase, "connection refused", "refused"},
		{"\U0001F600", false, SmartCase, "x\U0001F600", "\U0001F600"},
	} {
		n := needle(t, c.text, c.pattern, c.in)
		start, end, ok := n.Find(c.s)
		if got := c.s[start:end]; ok != (c.want != "") || got != c.want {
			t.Errorf("%q in %q: %q %v, want %q", c.text, c.s, got, ok, c.want)
		}
	}
	for _, bad := range []string{"", "\xff"} {
		if _, err := NewNeedle(bad, SmartCase); err == nil {
			t.Errorf("%q can be looked for", bad)
		}
	}
	for _, bad := range []string{"", "a*", "(", "x|"} {
		if _, err := NewPattern(bad, SmartCase); err == nil {
			t.Errorf("the expression %q is accepted", bad)
		}
	}
}

// However a string is spelled in JSON, a line that holds the text passes the sieve.
func TestSieveNeverMisses(t *testing.T) {
	letters := []rune("aAbkKsSzZiI\u0130\u0131/\\\"\n\t {}:.-0é\u00c9ß\u212a\u017fжЖ\u2028\ufffd\U0001F600\U00010400\U00010428")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom(letters), 1, 12, -1).Draw(t, "text")
		around := rapid.StringOf(rapid.SampledFrom(letters))
		fold := rapid.Bool().Draw(t, "fold")
		mode := ExactCase
		found := text
		if fold {
			mode = IgnoreCase
			var b strings.Builder
			for _, r := range text { // another spelling of each letter
				for range rapid.IntRange(0, 3).Draw(t, "turns") {
					r = nextCase(r)
				}
				b.WriteRune(r)
			}
			found = b.String()
		}
		n, err := NewNeedle(text, mode)
		if err != nil {
			t.Fatal(err)
		}
		said := around.Draw(t, "before") + found + around.Draw(t, "after")
		if _, _, ok := n.Find(said); !ok {
			t.Fatalf("%q is not found in %q", text, said)
		}
		line := []byte(`{"type":"message","message":{"role":"user","content":` + spell(t, said) + `}}`)
		e, err := Parse(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if _, _, _, ok := n.In(&e); !ok {
			t.Fatalf("%q is not found in %s", text, line)
		}
		if !n.May(line) {
			t.Fatalf("the sieve drops %s, which holds %q", line, text)
		}
	})
}

func nextCase(r rune) rune {
	for o := range rune(0x10430) {
		if o > r && fold(o) == fold(r) {
			return o
		}
	}
	return fold(r)
}

// spell writes a JSON string with escapes chosen at random; U+FFFD may be broken UTF-8.
func spell(t *rapid.T, s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		how := rapid.IntRange(0, 3).Draw(t, "spelling")
		switch {
		case r == '\ufffd' && how == 1:
			b.WriteByte(0xff)
		case how == 2 || (r < ' ' || r == '"' || r == '\\') && how != 1:
			for _, u := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&b, []string{`\u%04x`, `\u%04X`}[how%2], u)
			}
		case r == '/' && how == 3:
			b.WriteString(`\/`)
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Where the machine has a faster way to look at blocks, it gives what the plain one gives, but for false alarms.
func TestBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("aAzZ.é9u\U0001F600")), 1, 9, -1).Draw(t, "text")
		n, err := NewNeedle(text, rapid.SampledFrom([]Case{IgnoreCase, ExactCase}).Draw(t, "case"))
		if err != nil {
			t.Fatal(err)
		}
		s := &n.sieve
		blocks := rapid.IntRange(1, 5).Draw(t, "blocks")
		in := make([]byte, 32*blocks+max(s.d, 8))
		for i := range in {
			in[i] = rapid.SampledFrom([]byte("aAzZ.9u\\\x00\x80\xff\xc3")).Draw(t, "byte")
		}
		passed, at := s.blocks(in, blocks)
		plain, might := s.words(in, blocks)
		if want := uint32(0); passed != plain || at&^might != 0 {
			t.Fatalf("passed %d %032b, want %d %032b %d", passed, at, plain, might, want)
		}
		for i := range 32 { // every sign has its bit
			if k := passed + i; k < len(in)-max(s.d, 8) && (in[k] == '\\' && in[k+1] == 'u' || uint64(in[k])|s.firstCase&0xff == s.first&0xff && uint64(in[k+s.d])|s.secondCase&0xff == s.second&0xff) != (at&(1<<i) != 0) && passed < 32*blocks {
				t.Fatalf("byte %d of %q: %032b", k, in, at)
			}
		}
	})
}

// Cut anywhere, long lines and short ones give what a plain look at every line gives, and no line twice.
func TestSift(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var file bytes.Buffer
		lines := rapid.IntRange(0, 12).Draw(t, "lines")
		for range lines {
			file.WriteString(`{"x":"`)
			size := rapid.SampledFrom([]int{0, 3, 40, chunk - 60, chunk, chunk + 7, 3 * chunk}).Draw(t, "size")
			file.Write(bytes.Repeat([]byte("ab"), size/2))
			if rapid.Bool().Draw(t, "holds") {
				file.WriteString(rapid.SampledFrom([]string{"needle", `n\u0065edle`, "NEEDLE"}).Draw(t, "spelling"))
			}
			file.Write(bytes.Repeat([]byte("c"), rapid.SampledFrom([]int{0, 1, chunk - 3}).Draw(t, "rest")))
			file.WriteString(`"}`)
			file.WriteString(rapid.SampledFrom([]string{"\n", "\r\n", "\n\n"}).Draw(t, "break"))
		}
		b := file.Bytes()
		if rapid.Bool().Draw(t, "torn") && len(b) > 4 {
			b = b[:len(b)-3]
		}
		n, err := NewNeedle("needle", IgnoreCase)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		at := 0
		for _, line := range bytes.SplitAfter(b, []byte("\n")) {
			if bare := bytes.TrimRight(line, "\r\n"); n.May(bare) {
				want = append(want, fmt.Sprint(at, len(bare)))
			}
			at += len(line)
		}
		var got []string
		give := func(line []byte, at int64) error {
			if !bytes.Equal(line, b[at:at+int64(len(line))]) {
				t.Fatalf("the line at %d has other bytes", at)
			}
			got = append(got, fmt.Sprint(at, len(line)))
			return nil
		}
		step := rapid.SampledFrom([]int64{1 << 40, chunk, chunk / 3, 100_000}).Draw(t, "step")
		for from := int64(0); from < int64(len(b)); from += step {
			if err := n.Sift(bytes.NewReader(b), from, from+step, give); err != nil {
				t.Fatal(err)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("in pieces of %d of %d: %v, want %v", step, len(b), got, want)
		}
		got = nil
		if err := n.SiftStream(io.MultiReader(bytes.NewReader(b)), give); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("as a stream: %v, want %v", got, want)
		}
	})
}

func TestPassages(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`{"type":"message","message":{"role":"user","content":"hi","timestamp":1}}`, "user text hi"},
		{
			`{"type":"message","id":"x","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"SIG"},{"type":"text","text":"yes"},
			{"type":"toolCall","id":"call_1","name":"exec","arguments":{"cmd":["ls","-l"],"n":{"deep":"er"}}}],"errorMessage":"bad"}}`,
			"assistant thinking hm|assistant text yes|assistant call exec|assistant call ls|assistant call -l|assistant call er|assistant error bad",
		},
		{
			`{"type":"message","message":{"role":"toolResult","toolCallId":"c","toolName":"exec","content":[{"type":"text","text":"out"},{"type":"image","data":"QUJD"}],"details":{"diff":"+x"}}}`,
			"toolResult result out|toolResult details +x",
		},
		{`{"type":"message","message":{"role":"bashExecution","command":"ls","output":"a"}}`, "bashExecution call ls|bashExecution output a"},
		{`{"type":"compaction","summary":"so far","firstKeptEntryId":"q"}`, "summary summary so far"},
		{`{"type":"custom_message","customType":"note","content":[{"type":"text","text":"psst"}]}`, "custom text psst"},
		{`{"type":"session_info","name":"Plan"}`, "name text Plan"},
		{`{"type":"custom","data":{"a":"b"}}`, ""},
		{`{"type":"message","message":null}`, ""},
		{`{"type":"message","message":{"role":7,"content":{"text":"odd"}}}`, " text odd"},
	} {
		e, err := Parse([]byte(c.line))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		e.Passages(func(p Passage) bool {
			got = append(got, p.Role+" "+p.Part+" "+p.Text)
			return true
		})
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s: %s, want %s", c.line, strings.Join(got, "|"), c.want)
		}
	}
	deep := `{"type":"message","message":{"role":"assistant","content":[{"type":"toolCall","arguments":` + strings.Repeat(`[`, 5000) + `"needle"` + strings.Repeat(`]`, 5000) + `}]}}`
	e, err := Parse([]byte(deep))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, ok := needle(t, "needle", false, SmartCase).In(&e); !ok {
		t.Error("what lies deep is not found")
	}
}

func TestExcerpt(t *testing.T) {
	secret := "sk-" + strings.Repeat("Ab3", 12) // made here: no file holds a credential
	for _, c := range []struct {
		look, s string
		units   int
		want    string // before[match]after
		masked  bool
	}{
		{"here", "it is  here\nnow", 40, "it is [here] now", false},
		{"here", "one two three here four five six", 5, "…hree [here] four…", false},
		{"here", "\U0001F600\U0001F600\U0001F600here\U0001F600\U0001F600\U0001F600", 4, "…\U0001F600\U0001F600[here]\U0001F600\U0001F600…", false},
		{"token", "the token is OPENAI_API_KEY=" + secret + " ok", 80, "the [token] is OPENAI_API_KEY=sk-Ab3…3Ab3 ok", true},
		{secret, "use " + secret + " ok", 80, "use sk-Ab3[]…3Ab3 ok", true},
		{"here", "\x1b[31mred\x1b[0m is here", 80, "red is [here]", false},
		{"here", "use " + secret[:9] + "\u200b" + secret[9:] + " here", 80, "use sk-Ab3…3Ab3 [here]", true},
	} {
		n := needle(t, c.look, false, SmartCase)
		start, end, ok := n.Find(c.s)
		if !ok {
			t.Fatalf("%q not in %q", c.look, c.s)
		}
		x := n.Excerpt(n.Cut(c.s, start, end), c.units, nil)
		if got := x.Before + "[" + x.Match + "]" + x.After; got != c.want || x.Redacted != c.masked {
			t.Errorf("%q: %q %v, want %q", c.s, got, x.Redacted, c.want)
		}
	}
	// Far from both ends, and with a credential that reaches into what is shown.
	long := strings.Repeat("x ", 100_000) + "OPENAI_API_KEY=" + secret + " needle " + strings.Repeat("ы", 100_000)
	n := needle(t, "needle", false, SmartCase)
	start, end, _ := n.Find(long)
	x := n.Excerpt(n.Cut(long, start, end), 60, nil)
	if strings.Contains(x.Before, secret[10:20]) || x.Match != "needle" || !x.Redacted {
		t.Errorf("%+v", x)
	}
}

func FuzzNeedle(f *testing.F) {
	f.Add("k/é", `{"type":"message","message":{"content":"K\/\u00c9"}}`, true)
	f.Add("a\"b", `{"type":"message","message":{"content":"x a\"b"}}`, false)
	f.Add("deploy", `{"type":"message","message":{"content":[{"type":"text","text":"\ud83d DEPLOY"}]}}`, true)
	f.Fuzz(func(t *testing.T, text, line string, fold bool) {
		n, err := NewNeedle(text, map[bool]Case{true: IgnoreCase, false: ExactCase}[fold])
		if err != nil {
			return
		}
		e, err := Parse([]byte(line))
		if err != nil {
			return
		}
		if p, start, end, ok := n.In(&e); ok {
			if !n.May([]byte(line)) {
				t.Fatalf("the sieve drops a line that holds %q: %q", text, line)
			}
			x := n.Excerpt(n.Cut(p.Text, start, end), 40, nil)
			if _, err := json.Marshal(x); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkSift(b *testing.B) {
	var file bytes.Buffer
	for i := 0; file.Len() < 64<<20; i++ {
		fmt.Fprintf(&file, `{"type":"message","id":"%08x","parentId":"%08x","timestamp":"2026-01-02T03:04:05.678Z","message":{"role":"assistant","content":[{"type":"text","text":"%s"}],"usage":{"input":%d}}}`+"\n",
			i, i-1, strings.Repeat(`The deployment of the service went through;\nthe logs say \"started\" and nothing else. `, 1+i%20), i)
	}
	for _, text := range []string{"zanzibar", "Zanzibar", "connection refused", "nothing else to do"} {
		b.Run(text, func(b *testing.B) {
			n := needle(b, text, false, SmartCase)
			b.SetBytes(int64(file.Len()))
			for b.Loop() {
				found := 0
				if err := n.Sift(bytes.NewReader(file.Bytes()), 0, 1<<40, func([]byte, int64) error { found++; return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestLastBreak(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.SampledFrom([]byte{'\n', '\n' - 1, '\n' + 1, 0, 0x8a, 0xff, 'a'}), 0, 200).Draw(t, "bytes")
		if rapid.Bool().Draw(t, "none") {
			b = bytes.ReplaceAll(b, []byte{'\n'}, []byte{0x8a})
		}
		if got, want := lastBreak(b), bytes.LastIndexByte(b, '\n'); got != want {
			t.Fatalf("%d, want %d in %q", got, want, b)
		}
	})
}

// Holds and In agree, whatever is in an entry and however it is spelled.
func TestHolds(t *testing.T) {
	letters := []rune("aAbn kKuU0\\\"/\n\u212a\ufffd")
	held := 0
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom(letters), 1, 3, -1).Draw(t, "text")
		n, err := NewNeedle(text, rapid.SampledFrom([]Case{IgnoreCase, ExactCase}).Draw(t, "case"))
		if err != nil {
			t.Fatal(err)
		}
		said := rapid.StringOfN(rapid.SampledFrom(letters), 0, 60, -1)
		line := []byte(`{"type":"message","id":"aAbn","message":{"role":"user","content":[{"type":"text","text":` + spell(t, said.Draw(t, "one")) +
			`},{"type":"image","data":"aaAAbn0u"},{"type":"toolCall","arguments":{"a":[` + spell(t, said.Draw(t, "two")) + `]}}]}}`)
		e, err := Parse(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		_, _, _, want := n.In(&e)
		if want {
			held++
		}
		if got := n.Holds(&e); got != want {
			t.Fatalf("%q in %s: %v, want %v", text, line, got, want)
		}
	})
	if held == 0 {
		t.Fatal("nothing was ever found")
	}
}
