package visible

import (
	"strings"
	"testing"
	"time"

	"oc/store/span"
)

// Values that are nested without end cost neither the stack nor the square of
// their depth.
func TestDeepValues(t *testing.T) {
	const n = 50_000
	deep := strings.Repeat("[", n) + strings.Repeat("]", n)
	object := strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n)
	blocks := strings.Repeat(`[{"type":"tool_result","content":`, n) + `"x"` + strings.Repeat("}]", n)
	for name, raw := range map[string]string{
		"arguments":    `{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"x","arguments":` + deep + `}]}`,
		"object":       `{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"x","arguments":` + object + `}]}`,
		"blocks":       `{"role":"toolResult","content":` + blocks + `}`,
		"unknown name": `{"role":"user","content":"x","y":` + deep + `}`,
	} {
		started := time.Now()
		out, _ := View{}.Show([]byte(raw))
		if err := span.Valid(out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if p, shown := Project([]byte(raw), 100); shown && span.Valid(p) != nil {
			t.Errorf("%s: projected to no JSON", name)
		}
		AuditMessage([]byte(raw), func(string, Secret) {})
		if d := time.Since(started); d > 10*time.Second {
			t.Errorf("%s took %v", name, d)
		}
	}
}
