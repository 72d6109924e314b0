package visible

import "testing"

// Every stage that was recorded is held by a test, or left out for a reason.
func TestStages(t *testing.T) {
	const here, elsewhere = "here", "in the room above"
	stages := map[string]string{
		"history": here, "delivery": here, "redact": here, "tool-message": here, "tool-text": here, "tool-xml": here, "reasoning": here,
		"minimax": here, "trace-lines": here, "legacy-bracket": here, "project": here, "code-regions": here, "directive": here,
		"control-reply": here, "cap": here, "hard-cap": here,
		"title": elsewhere,
		// How often two agents answer each other is settled by the gateway that
		// carries their messages; oc sends one and reads what came of it.
		"ping-pong-turns": "",
		// The name of a task is checked by the gateway that starts it; oc shows
		// the names that are there, whatever they are.
		"task-name": "",
	}
	met := map[string]int{}
	for _, c := range load(t, "history.jsonl") {
		if met[c.Stage]++; met[c.Stage] == 1 {
			if _, ok := stages[c.Stage]; !ok {
				t.Errorf("nothing is known of stage %s", c.Stage)
			}
		}
	}
	if len(met) != len(stages) {
		t.Errorf("%d stages, want %d", len(met), len(stages))
	}
}

// Six texts come out of 2026.8.2 in another way. Texts are cleaned as 2026.7.35
// does it, whatever wrote them: a reader of old and new transcripts sees one
// rule, and the six are odd texts.
func TestLaterRelease(t *testing.T) {
	for _, c := range load(t, "history-2026.8.2.jsonl") {
		in, got := c.text(t, c.Input), ""
		switch c.Stage {
		case "history":
			got = Clean(in, History)
		case "redact":
			got = Redact(in)
		default:
			t.Fatalf("stage %s", c.Stage)
		}
		if want := c.text(t, c.Older); got != want {
			t.Errorf("%s: %q, want %q", c.Name, got, want)
		}
	}
}
