package compaction

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oc/transcript"
)

// pairOtherwise are the recorded cases in which oc does something else on purpose. A name stands for the messages; "drop" is an option.
var pairOtherwise = map[string]string{
	"id":                                   "ids are rewritten for what single providers take; oc sends no calls to anybody, only their text, and a summary is looked up by the ids that the transcript has",
	"errored-missing-not-synthesised drop": "an answer that failed is left out for providers that would refuse its calls; oc has what it said summarised too, as its text is refused by nobody",
	"blank-tool-name":                      "a result without a tool's name gets that of its call; oc leaves rows as they are, and a summariser gets a result's text without a name",
}

// What OpenClaw makes of calls and results before it sends them, but for pairOtherwise.
func TestPairAsOpenClaw(t *testing.T) {
	cases, otherwise := 0, map[string]int{}
	lines(t, "tool-pairing.jsonl", func(kind string, line []byte) {
		var c struct {
			Name     string
			Options  struct{ ErroredAssistantResultPolicy string }
			Messages []json.RawMessage
			Expected struct {
				Messages           []json.RawMessage
				Added              int
				DroppedOrphanCount int
			}
		}
		switch err := json.Unmarshal(line, &c); {
		case err != nil:
			t.Fatal(err)
		case kind == "id":
			otherwise["id"]++
			return
		}
		name := strings.TrimSpace(c.Name + " " + c.Options.ErroredAssistantResultPolicy)
		if pairOtherwise[name] != "" {
			otherwise[name]++
		}
		if c.Options.ErroredAssistantResultPolicy == "drop" {
			// All of it is kept, in its order.
			if list := Pair(messages(t, c.Messages)); len(list) != len(c.Messages) || pairOtherwise[name] == "" {
				t.Errorf("%s: %+v", name, list)
			}
			return
		}
		cases++
		list := Pair(messages(t, c.Messages))
		if len(list) != len(c.Expected.Messages) {
			t.Fatalf("%s: %+v, want %d messages", c.Name, list, len(c.Expected.Messages))
		}
		added := 0
		for i, p := range list {
			want := c.Expected.Messages[i]
			if p.At < 0 {
				added++
				if transcript.ResultID(want) != p.Missing || transcript.Role(want) != "toolResult" {
					t.Errorf("%s: %+v, want %s", c.Name, p, want)
				}
				continue
			}
			if same := equal(t, c.Messages[p.At], want); !same && pairOtherwise[name] == "" || transcript.ResultID(c.Messages[p.At]) != transcript.ResultID(want) {
				t.Errorf("%s: %s, want %s", c.Name, c.Messages[p.At], want)
			}
		}
		if added != c.Expected.Added {
			t.Errorf("%s: %d results are missing, want %d", c.Name, added, c.Expected.Added)
		}
	})
	if cases != 8 || otherwise["id"] != 6 || len(otherwise) != len(pairOtherwise) {
		t.Errorf("%d cases, otherwise %v", cases, otherwise)
	}
}

// Whatever the conversation: every call of an answer that did not fail has one result directly behind it, and nothing else is lost.
func TestPairHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []Message
		for i := range rapid.IntRange(0, 25).Draw(t, "messages") {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				all = append(all, Message{Role: User})
			case 1:
				m := Message{Role: Assistant}
				for k := range rapid.IntRange(0, 3).Draw(t, "calls") {
					m.Calls = append(m.Calls, fmt.Sprintf("%d.%d", i, k))
				}
				all = append(all, m)
			default:
				all = append(all, Message{Role: Result, Answer: fmt.Sprintf("%d.%d", rapid.IntRange(0, 25).Draw(t, "of"), rapid.IntRange(0, 3).Draw(t, "which"))})
			}
		}
		list := Pair(all)
		met := map[int]bool{}
		open := map[string]bool{}
		for _, p := range list {
			if p.At < 0 {
				if !open[p.Missing] {
					t.Fatalf("a result of %s: %+v of %+v", p.Missing, list, all)
				}
				delete(open, p.Missing)
				continue
			}
			m := all[p.At]
			if met[p.At] {
				t.Fatalf("%d is there twice: %+v", p.At, list)
			}
			met[p.At] = true
			if m.Role == Result {
				if !open[m.Answer] {
					t.Fatalf("the result %d answers nothing: %+v of %+v", p.At, list, all)
				}
				delete(open, m.Answer)
				continue
			}
			if len(open) > 0 {
				t.Fatalf("%d stands between calls and results: %+v of %+v", p.At, list, all)
			}
			for _, id := range m.Calls {
				open[id] = true
			}
		}
		for i, m := range all {
			if m.Role != Result && !met[i] {
				t.Fatalf("%d is lost: %+v", i, list)
			}
		}
	})
}
