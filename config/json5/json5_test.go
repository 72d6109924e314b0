package json5_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"oc/config/json5"
	"oc/store/span"
)

// recorded is one answer of npm's json5, see testdata/record.mjs.
type recorded struct {
	Input  string `json:"input"` // base64, for inputs need not be UTF-8
	JSON   string `json:"json"`
	Error  string `json:"error"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

func record(t testing.TB) []recorded {
	t.Helper()
	data, err := os.ReadFile("testdata/npm.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []recorded
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func (r recorded) bytes(t testing.TB) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(r.Input)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSameAsNpm(t *testing.T) {
	all := record(t)
	if len(all) < 600 {
		t.Fatalf("only %d recorded answers", len(all))
	}
	for _, r := range all {
		in := r.bytes(t)
		doc, err := json5.Parse(in)
		if (err != nil) != (r.Error != "") {
			t.Errorf("%q: got error %v, npm says %q", in, err, r.Error)
			continue
		}
		if err != nil {
			var e *json5.Error
			if !errors.As(err, &e) || e.Reason == "" || e.Byte < 0 || e.Byte > len(in) {
				t.Errorf("%q: bad error %#v", in, err)
			}
			continue
		}
		if got := stringify(doc.Root); got != r.JSON {
			t.Errorf("%q:\n got %s\nwant %s", in, got, r.JSON)
		}
	}
}

// stringify writes a tree as JSON.stringify does in record.mjs.
func stringify(n *json5.Node) string {
	switch n.Kind {
	case json5.Null:
		return "null"
	case json5.Bool:
		return strconv.FormatBool(n.Bool)
	case json5.Number:
		if n.Number == 0 && math.Signbit(n.Number) {
			return `"number:-0"`
		}
		if math.IsNaN(n.Number) || math.IsInf(n.Number, 0) {
			return `"number:` + strings.NewReplacer("+Inf", "Infinity", "-Inf", "-Infinity").Replace(fmt.Sprintf("%f", n.Number)) + `"`
		}
		return string(span.AppendFloat(nil, n.Number))
	case json5.String:
		return quote(n.Text)
	case json5.Array:
		parts := make([]string, len(n.Items))
		for i, item := range n.Items {
			parts[i] = stringify(item)
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	last := map[string]*json5.Node{}
	var keys, indexes []string
	for _, m := range n.Members {
		if _, again := last[m.Key]; !again {
			if u, err := strconv.ParseUint(m.Key, 10, 32); err == nil && u < 1<<32-1 && strconv.FormatUint(u, 10) == m.Key {
				indexes = append(indexes, m.Key)
			} else {
				keys = append(keys, m.Key)
			}
		}
		last[m.Key] = m.Value
	}
	sort.Slice(indexes, func(i, j int) bool {
		return len(indexes[i]) < len(indexes[j]) || len(indexes[i]) == len(indexes[j]) && indexes[i] < indexes[j]
	})
	var parts []string
	for _, k := range append(indexes, keys...) {
		parts = append(parts, quote(k)+":"+stringify(last[k]))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func quote(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1: // a lone surrogate, three bytes
			fmt.Fprintf(&out, `\u%04x`, 0xD000|int(s[i+1]&0x3F)<<6|int(s[i+2]&0x3F))
			size = 3
		case strings.ContainsRune("\b\f\n\r\t", r):
			out.WriteString(`\` + string("btn?fr"[r-'\b']))
		case r == '"' || r == '\\':
			out.WriteString(`\` + string(r))
		case r < ' ':
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteRune(r)
		}
		i += size
	}
	out.WriteByte('"')
	return out.String()
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		in                 string
		byte, line, column int
		reason             string
	}{
		{"{ broken: ", 10, 1, 11, "the input ends where a value should be"},
		{"{\n  a: 1,\n  b: @\n}", 15, 3, 6, `unexpected '@' where a value should be`},
		{"{\r\n a: 1\r\n b: 2 }", 11, 3, 2, `unexpected 'b' where a comma or the end of the object from byte 0 should be`},
		{"{\"é\": \"x", 9, 1, 9, "the string that starts at byte 7 is not closed"},
		{"[1, /* x", 8, 1, 9, "the comment that starts at byte 4 is not closed"},
		{"\"\\01\"", 3, 1, 4, "an octal escape, which JSON5 does not have"},
		{"{1a: 2}", 1, 1, 2, `unexpected '1' where a key should be`},
		{"{a\xff: 2}", 2, 1, 3, `unexpected byte 0xff, which is not UTF-8 where the colon after the key at byte 1 should be`},
		{"{a: 1} x", 7, 1, 8, `unexpected 'x' after the end of the value`},
		{"", 0, 1, 1, "the input ends where a value should be"},
	} {
		_, err := json5.Parse([]byte(c.in))
		want := &json5.Error{Byte: c.byte, Line: c.line, Column: c.column, Reason: c.reason}
		var got *json5.Error
		if !errors.As(err, &got) {
			t.Errorf("%q: no error", c.in)
			continue
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: %s", c.in, d)
		}
	}
}

func TestDepthIsBounded(t *testing.T) {
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if _, err := json5.Parse(deep(json5.MaxDepth)); err != nil {
		t.Errorf("%d levels: %v", json5.MaxDepth, err)
	}
	for _, n := range []int{json5.MaxDepth + 1, 1_000_000} {
		if _, err := json5.Parse(deep(n)); err == nil || !strings.Contains(err.Error(), "nested") {
			t.Errorf("%d levels: got %v", n, err)
		}
	}
}

func TestSpansCommentsAndDuplicates(t *testing.T) {
	in := "// top\n{ a: 'x', /* in */ \"b\": [1, +0x2,], a: 3 } // end"
	doc, err := json5.Parse([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	text := func(s json5.Span) string { return in[s.Start:s.End] }
	var got []string
	for _, m := range doc.Root.Members {
		got = append(got, fmt.Sprintf("%s=%s %v", text(m.KeySpan), text(m.Value.Span), m.Shadowed))
	}
	for _, item := range doc.Root.Members[1].Value.Items {
		got = append(got, text(item.Span))
	}
	for _, c := range doc.Comments {
		got = append(got, fmt.Sprintf("%s %v", text(c.Span), c.Block))
	}
	want := []string{"a='x' true", `"b"=[1, +0x2,] false`, "a=3 false", "1", "+0x2", "// top false", "/* in */ true", "// end false"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Any input ends in a tree whose spans nest and read again as the same values, or in an error that points into the input.
func FuzzParse(f *testing.F) {
	for _, r := range record(f) {
		f.Add(r.bytes(f))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		doc, err := json5.Parse(in)
		if err != nil {
			var e *json5.Error
			if !errors.As(err, &e) || e.Byte < 0 || e.Byte > len(in) || e.Line < 1 || e.Column < 1 {
				t.Fatalf("bad error %#v", err)
			}
			return
		}
		checkSpans(t, in, doc.Root, json5.Span{Start: 0, End: len(in)})
	})
}

func checkSpans(t *testing.T, in []byte, n *json5.Node, outer json5.Span) {
	if n.Span.Start < outer.Start || n.Span.End > outer.End || n.Span.Start >= n.Span.End {
		t.Fatalf("span %v outside %v", n.Span, outer)
	}
	again, err := json5.Parse(in[n.Span.Start:n.Span.End])
	if err != nil {
		t.Fatalf("span %v does not read again: %v", n.Span, err)
	}
	if a, b := stringify(n), stringify(again.Root); a != b {
		t.Fatalf("span %v reads again as %s, not %s", n.Span, b, a)
	}
	inner := json5.Span{Start: n.Span.Start + 1, End: n.Span.End - 1}
	for _, item := range n.Items {
		checkSpans(t, in, item, inner)
		inner.Start = item.Span.End
	}
	for _, m := range n.Members {
		checkSpans(t, in, m.Value, json5.Span{Start: m.KeySpan.End, End: inner.End})
		inner.Start = m.Value.Span.End
	}
}
