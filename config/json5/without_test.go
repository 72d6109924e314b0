package json5

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithout(t *testing.T) {
	for _, c := range []struct{ name, before, after string }{
		{"first", "{\n  // why\n  \"gone\": 1,\n  \"b\": 2\n}\n", "{\n  // why\n  \"b\": 2\n}\n"},
		{"last", "{\n  \"b\": 2, // two\n  \"gone\": \"x,y\"\n}\n", "{\n  \"b\": 2 // two\n}\n"},
		{"last with a comma", "{\n  b: 2, /* , */\n  gone: {a: [1, 2]}, // said\n}\n", "{\n  b: 2, /* , */\n   // said\n}\n"},
		{"alone", "{gone: 1}", "{}"},
		{"twice", "{gone: 1, b: 2, 'gone': 3}", "{ b: 2 }"},
		{"middle", "{a: 1, gone: 2, b: 3}", "{a: 1,  b: 3}"},
		{"over lines", "{\n  a: 1,\n  gone:\n    // here\n    5,\n  b: 2,\n}", "{\n  a: 1,\n  b: 2,\n}"},
		{"last two", "{a: 1, gone: 2, gone: 3}", "{a: 1  }"},
		{"not there", "{a: 1, }", "{a: 1, }"},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc, err := Parse([]byte(c.before))
			if err != nil {
				t.Fatal(err)
			}
			got := Without([]byte(c.before), doc, doc.Root, "gone")
			if d := cmp.Diff(c.after, string(got)); d != "" {
				t.Error(d)
			}
			if _, err := Parse(got); err != nil {
				t.Error(err)
			}
		})
	}
}
