package visible

import "testing"

func TestCleanAsOpenClaw(t *testing.T) {
	for name, p := range map[string]Profile{"history": History, "delivery": Delivery} {
		for _, c := range stage(t, name) {
			if got, want := Clean(c.text(t, c.Input), p), c.text(t, c.Expected); got != want {
				t.Errorf("%s: %q becomes %q, want %q", c.Name, c.text(t, c.Input), got, want)
			}
		}
	}
}

func TestStagesAsOpenClaw(t *testing.T) {
	for name, f := range map[string]func(string) string{
		"tool-xml":       func(s string) string { return cleanToolXML(s, History) },
		"minimax":        cleanMinimax,
		"trace-lines":    cleanTraces,
		"legacy-bracket": cleanBrackets,
		"reasoning":      func(s string) string { return cleanReasoning(s, Delivery) },
	} {
		for _, c := range stage(t, name) {
			if got, want := f(c.text(t, c.Input)), c.text(t, c.Expected); got != want {
				t.Errorf("%s: %q, want %q", c.Name, got, want)
			}
		}
	}
}
