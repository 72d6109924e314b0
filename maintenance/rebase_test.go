package maintenance

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oc/store/span"
)

func TestRebaseText(t *testing.T) {
	for _, c := range []struct {
		in, want string
		n        int
	}{
		{`{"sessionFile":"/old/home/a.jsonl"}`, `{"sessionFile":"/new/a.jsonl"}`, 1},
		{`{"a": "/old/home" , "b":["/old/home/x","/old/homes/x","x/old/home/y"]}`, `{"a": "/new" , "b":["/new/x","/old/homes/x","x/old/home/y"]}`, 2},
		{`{"/old/home/x":1e400, "t":"/old/home/x\nand more"}`, `{"/old/home/x":1e400, "t":"/old/home/x\nand more"}`, 0},
		{`{"u":"\u002fold/home/é\""}`, `{"u":"/new/é\""}`, 1},
		{`7`, `7`, 0},
	} {
		out, n := rebase([]byte(c.in), "/old/home", "/new")
		if string(out) != c.want || n != c.n {
			t.Errorf("%s: %s (%d), want %s (%d)", c.in, out, n, c.want, c.n)
		}
	}
}

// Whatever a row holds, it is valid afterwards, there and back gives what was
// there, and without such a path not a byte changes.
func TestRebaseProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{`"/old/a/x"`, `"/old/a"`, `"/old/ab"`, `1e2`, `"k":`, `null`, `"é\ud83d"`, `{"n":"/old/a/y/../z"}`}), 1, 8).Draw(t, "parts")
		var b strings.Builder
		b.WriteString("{")
		for i, p := range parts {
			if strings.HasSuffix(p, ":") {
				p = "null"
			}
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(`"m` + strings.Repeat("x", i) + `" : ` + p)
		}
		b.WriteString("}")
		in := []byte(b.String())
		out, n := rebase(in, "/old/a", "/new place")
		if err := span.Valid(out); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if back, k := rebase(out, "/new place", "/old/a"); string(back) != string(in) || k != n {
			t.Fatalf("%s -> %s -> %s", in, out, back)
		}
		if n == 0 && string(out) != string(in) {
			t.Fatalf("%s -> %s", in, out)
		}
	})
}
