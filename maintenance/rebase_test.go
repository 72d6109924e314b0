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
		out, n := moved{"/old/home", "/new"}.rebase([]byte(c.in))
		if string(out) != c.want || n != c.n {
			t.Errorf("%s: %s (%d), want %s (%d)", c.in, out, n, c.want, c.n)
		}
	}
}

// A directory of Windows is found as Windows finds it, and what lies below is written as the new place does; the other way round too.
func TestRebasePlace(t *testing.T) {
	for _, c := range []struct{ from, to, path, want string }{
		{`C:\Users\u\.openclaw`, "/srv/oc", `C:\Users\u\.openclaw\agents\main\sessions\x.jsonl`, "/srv/oc/agents/main/sessions/x.jsonl"},
		{`c:/users/U/.openclaw/`, "/srv/oc/", `C:\Users\u\.openclaw\a/b`, "/srv/oc/a/b"},
		{`C:\`, "/mnt/c", `C:\x`, "/mnt/c/x"},
		{`C:\Users\u`, "/srv", `C:\Users\u`, "/srv"},
		{`C:\Users\u`, "/srv", `C:\Users\u2\x`, ""},
		{`C:\Users\u`, "/srv", `D:\Users\u\x`, ""},
		{`\\nas\oc`, "/srv", `\\NAS\oc\x`, "/srv/x"},
		{`C:\a`, `D:\b`, `c:\A\x/y`, `D:\b\x/y`},
		{"/home/u/.openclaw", `C:\oc`, "/home/u/.openclaw/agents/main/x.jsonl", `C:\oc\agents\main\x.jsonl`},
		{"/home/u", `C:\oc`, "/home/U/x", ""},
		{"/home/u", "/", "/home/u/x", "/x"},
		{"/home/u", "/srv", `/home/u\x`, ""},
		{"/home/u", "/srv", `/home/u/a\b`, `/srv/a\b`},
		{"/home/é", "/srv", "/home/é/x", "/srv/x"},
		{`C:\é`, "/srv", `C:\É\x`, "/srv/x"},
	} {
		if got, ok := (moved{c.from, c.to}).place(c.path); got != c.want || ok != (c.want != "") {
			t.Errorf("%s below %s, now %s: %q %t, want %q", c.path, c.from, c.to, got, ok, c.want)
		}
	}
	for path, want := range map[string]bool{`C:\x`: true, "c:/x": true, "C:": true, `\\nas\x`: true, "/c:/x": false, "C:x": false, "x": false, "": false, `\x`: false} {
		if ofWindows(path) != want {
			t.Errorf("%q is of Windows: %t", path, !want)
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
		out, n := moved{"/old/a", "/new place"}.rebase(in)
		if err := span.Valid(out); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if back, k := (moved{"/new place", "/old/a"}).rebase(out); string(back) != string(in) || k != n {
			t.Fatalf("%s -> %s -> %s", in, out, back)
		}
		if n == 0 && string(out) != string(in) {
			t.Fatalf("%s -> %s", in, out)
		}
	})
}
