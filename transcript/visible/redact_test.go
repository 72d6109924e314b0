package visible

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
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
}

func rot13(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case r >= 'A' && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		}
		return r
	}, s)
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

// stage reads the recorded cases of a stage.
func stage(t testing.TB, name string) (list []recorded) {
	t.Helper()
	f, err := os.Open("testdata/history.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var c recorded
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
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
