package visible

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A credential is masked wherever in a message it stands: in blocks and members that nobody here has heard of, in the names of members,
// and where a known member holds another kind of value than it should.
func TestShowMasksEveryPlace(t *testing.T) {
	token := "gh" + "p_" + strings.Repeat("aB3dE6", 6)
	names := rapid.SampledFrom([]string{
		"role", "type", "content", "text", "thinking", "partialJson", "data", "arguments", "input", "args", "details", "name", "json", "resource", "uri", "source", "provenance", "output", "command", "summary",
		"errorMessage", "errorBody", "items", "id", "toolName", "senderName", "x",
	})
	words := rapid.SampledFrom([]string{token, "see " + token + " there", "https://ada:" + token + "@host/x", "user", "assistant", "toolResult", "text", "thinking", "toolCall", "image", "a word"})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(rt *rapid.T) any {
			kind := rapid.IntRange(0, 5).Draw(rt, "kind")
			switch {
			case depth > 4 || kind < 3:
				return words.Draw(rt, "text")
			case kind == 3:
				return rapid.SliceOfN(value(depth+1), 0, 3).Draw(rt, "list")
			case kind == 4:
				return float64(rapid.IntRange(-1, 9).Draw(rt, "number"))
			}
			return drawObject(rt, names, value(depth+1), token)
		})
	}
	masked := 0
	rapid.Check(t, func(rt *rapid.T) {
		message := drawObject(rt, names, value(0), token)
		for _, name := range []string{"content", "role"} {
			if rapid.Bool().Draw(rt, "has "+name) {
				message[name] = value(0).Draw(rt, name)
			}
		}
		raw, err := json.Marshal(message)
		if err != nil {
			rt.Fatal(err)
		}
		out, changed := View{}.Show(raw)
		if strings.Contains(string(out), token) || !json.Valid(out) {
			rt.Fatalf("of %s\n%s is shown", raw, out)
		}
		if changed.Redacted {
			masked++
		}
	})
	if masked == 0 {
		t.Error("nothing was masked")
	}
}

func drawObject(rt *rapid.T, names *rapid.Generator[string], value *rapid.Generator[any], token string) map[string]any {
	o := map[string]any{}
	for i := range rapid.IntRange(0, 4).Draw(rt, "members") {
		name := names.Draw(rt, fmt.Sprintf("name %d", i))
		if rapid.IntRange(0, 9).Draw(rt, "of a name") == 0 {
			name = token
		}
		o[name] = value.Draw(rt, name)
	}
	return o
}
