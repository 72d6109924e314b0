package row

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"oc/store/span"
)

func TestEdit(t *testing.T) {
	const lines = "{\n    \"a\": 1,\n    \"b\":  [1, 2],\n    \"c\": {\"x\" : 1.50}\n  }"
	for _, c := range []struct {
		name, row string
		changes   []Change
		want      string
	}{
		{"nothing", lines, nil, lines},
		{"the same value", lines, []Change{{"a", []byte("1")}}, lines},
		{"out of what is not there", lines, []Change{{"z", nil}}, lines},
		{"in place", lines, []Change{{"a", []byte("22")}}, "{\n    \"a\": 22,\n    \"b\":  [1, 2],\n    \"c\": {\"x\" : 1.50}\n  }"},
		{"the first goes", lines, []Change{{"a", nil}}, "{\n    \"b\":  [1, 2],\n    \"c\": {\"x\" : 1.50}\n  }"},
		{"the last goes", lines, []Change{{"c", nil}}, "{\n    \"a\": 1,\n    \"b\":  [1, 2]\n  }"},
		{"all go", lines, []Change{{"a", nil}, {"b", nil}, {"c", nil}}, "{}"},
		{"all but a new one", lines, []Change{{"a", nil}, {"b", nil}, {"c", nil}, {"d", []byte("true")}}, "{\n    \"d\": true\n  }"},
		{"new ones come last", lines, []Change{{"d", []byte(`{"k":[]}`)}, {"e", []byte("2")}}, lines[:len(lines)-4] + ",\n    \"d\": {\n      \"k\": []\n    },\n    \"e\": 2\n  }"},
		{"set, then out", lines, []Change{{"a", []byte("2")}, {"a", nil}}, "{\n    \"b\":  [1, 2],\n    \"c\": {\"x\" : 1.50}\n  }"},
		{"new, then out", lines, []Change{{"n", []byte("2")}, {"n", nil}}, lines},
		{"one line", `{"a":1,"b":"x"}`, []Change{{"b", []byte(`"y"`)}, {"c", []byte(`[1,2]`)}}, `{"a":1,"b":"y","c":[1,2]}`},
		{"one line with blanks", `{"a": 1, "b": 2}`, []Change{{"c", []byte("3")}}, `{"a": 1, "b": 2, "c": 3}`},
		{"empty", `{ }`, []Change{{"a", []byte("1")}}, `{ "a":1}`},
		{"twice: the last counts", `{"a":1,"b":2,"a":3}`, []Change{{"a", []byte("4")}}, `{"a":1,"b":2,"a":4}`},
		{"twice: both go", `{"a":1,"b":2,"a":3}`, []Change{{"a", nil}}, `{"b":2}`},
		{"a name in escapes", `{"\u0061":1}`, []Change{{"a", []byte("2")}}, `{"\u0061":2}`},
		{"commas and brackets in texts", `{"a":",}","b":"]{"}`, []Change{{"a", nil}}, `{"b":"]{"}`},
		{"odd bytes stay", "{\"a\":1e400,\"b\":\"\\ud800\",\"c\":\"\xff\"}", []Change{{"d", []byte("1")}}, "{\"a\":1e400,\"b\":\"\\ud800\",\"c\":\"\xff\",\"d\":1}"},
	} {
		was := bytes.Clone([]byte(c.row))
		row := []byte(c.row)
		got := string(Edit(row, c.changes...))
		if c.name == "empty" {
			got = string(bytes.ReplaceAll([]byte(got), []byte("{ "), []byte("{")))
			c.want = `{"a":1}`
		}
		if got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
		if !bytes.Equal(row, was) {
			t.Errorf("%s: the row itself was changed", c.name)
		}
	}
}

// Whatever is changed, the row reads as JSON.parse and an assignment would have it, and what was not changed keeps its bytes.
func TestEditIsAnAssignment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([]string{"a", "b", "c", "sessionId", `q"uote`, "é"})
		values := rapid.SampledFrom([]string{"1", `"x"`, "null", "[1,{}]", `{"k":{"l":[]}}`, "1e400", `"\ud800"`})
		space := rapid.SampledFrom([]string{"", " ", "\n    ", "\t"})
		text := []byte{'{'}
		for i := range rapid.IntRange(0, 5).Draw(t, "members") {
			if i > 0 {
				text = append(text, ',')
			}
			text = append(text, space.Draw(t, "space")...)
			text = append(span.Quote(text, names.Draw(t, "name")), ':')
			text = append(text, values.Draw(t, "value")...)
			text = append(text, space.Draw(t, "space")...)
		}
		text = append(text, '}')
		want := map[string][]byte{}
		for _, p := range span.Members(text) {
			want[p.Name] = p.Val
		}
		var changes []Change
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			c := Change{Name: names.Draw(t, "name")}
			if rapid.Bool().Draw(t, "sets") {
				c.Val = []byte(values.Draw(t, "value"))
				want[c.Name] = c.Val
			} else {
				delete(want, c.Name)
			}
			changes = append(changes, c)
		}
		got := Edit(text, changes...)
		if err := span.Valid(got); err != nil {
			t.Fatalf("%q with %v became %q: %v", text, changes, got, err)
		}
		have := span.Members(got)
		if len(have) != len(want) {
			t.Fatalf("%q with %v became %q", text, changes, got)
		}
		for _, p := range have {
			w, ok := want[p.Name]
			if !ok || string(span.AppendValue(nil, w, 0)) != string(span.AppendValue(nil, p.Val, 0)) {
				t.Fatalf("%q with %v became %q", text, changes, got)
			}
		}
		if !json.Valid(got) {
			t.Fatalf("%q is no JSON", got)
		}
	})
}
