package store

import (
	"strings"
	"testing"

	"oc/store/span"
	"oc/transcript"
)

// What a message says is shown without what cannot be seen, and masked after that: not before, when a secret may be
// disguised.
func TestSaidIsPlainAndMasked(t *testing.T) {
	token := "gh" + "p_" + strings.Repeat("Ab3dE5", 6)
	for _, role := range []string{"user", "assistant"} {
		for _, text := range []string{
			"look " + token[:3] + "\u200b" + token[3:], "look s\x1b[0m" + "k-ant-" + token[4:], "look " + token[:18] + "\n" + token[18:], "look, password: " + token[4:],
		} {
			message := `{"role":"` + role + `","content":[{"type":"text","text":` + string(span.Quote(nil, text)) + `}]}`
			all := appendSaid(nil, &transcript.Entry{Message: []byte(message)}, 2)
			if len(all) != 1 || !strings.HasPrefix(all[0].Text, "look") || strings.Contains(all[0].Text, token[8:18]) || strings.Contains(all[0].Text, token[20:30]) || strings.ContainsAny(all[0].Text, "\x1b\u200b") {
				t.Errorf("%s, %q: %+v", role, text, all)
			}
		}
		nothing := `{"role":"` + role + `","content":"\u200b\u001b[0m "}`
		if all := appendSaid(nil, &transcript.Entry{Message: []byte(nothing)}, 2); len(all) != 0 {
			t.Errorf("%+v", all)
		}
	}
}
