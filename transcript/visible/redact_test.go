package visible

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"oc/store/span"
)

// recorded is one answer of OpenClaw 2026.7.35.
type recorded struct {
	Name     string          `json:"name"`
	Stage    string          `json:"stage"`
	Rot13    bool            `json:"rot13"`
	Input    json.RawMessage `json:"input"`
	Expected json.RawMessage `json:"expected"`
	Older    json.RawMessage `json:"expected_2026_7_35"` // where Expected is 2026.8.2
}

func rot13(s string) string {
	b := []byte(s)
	for i, c := range b {
		switch {
		case c >= 'a' && c <= 'z':
			b[i] = 'a' + (c-'a'+13)%26
		case c >= 'A' && c <= 'Z':
			b[i] = 'A' + (c-'A'+13)%26
		}
	}
	return string(b)
}

// text decodes a string field.
func (c recorded) text(t testing.TB, raw []byte) string {
	t.Helper()
	s, ok := span.Text(raw)
	if !ok {
		t.Fatalf("%s: not a string: %s", c.Name, raw)
	}
	if c.Rot13 {
		s = rot13(s)
	}
	return s
}

// load reads recorded cases.
func load(t testing.TB, file string) (list []recorded) {
	t.Helper()
	f, err := os.Open("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var c recorded
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		t.Fatal("no cases in " + file)
	}
	return list
}

// stage reads the recorded cases of a stage.
func stage(t testing.TB, name string) (list []recorded) {
	t.Helper()
	for _, c := range load(t, "history.jsonl") {
		if c.Stage == name {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		t.Fatalf("no cases of stage %s", name)
	}
	return list
}

func TestRedactAsOpenClaw(t *testing.T) {
	for _, c := range stage(t, "redact") {
		if got, want := Redact(c.text(t, c.Input)), c.text(t, c.Expected); got != want {
			t.Errorf("%s: %q, want %q (rot13)", c.Name, rot13(got), rot13(want))
		}
	}
}

// The numbers of words and lists fit the bytes that hold them.
func TestLexicon(t *testing.T) {
	if len(known().words) > 256 || len(known().lists) > 256 {
		t.Fatalf("%d words in %d lists", len(known().words), len(known().lists))
	}
	for n, w := range known().words {
		if found := triggers("x" + w + "x"); !found.has(uint8(n)) {
			t.Errorf("%q is not seen", w)
		}
	}
}
