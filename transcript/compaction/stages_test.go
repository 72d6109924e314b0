package compaction

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// settingsOf are the settings of a compaction block.
func settingsOf(t *testing.T, compaction map[string]any) Settings {
	t.Helper()
	b, err := json.Marshal(compaction)
	if err != nil {
		t.Fatal(err)
	}
	return Read(block(t, string(b)), 0)
}

// stagesOtherwise are the runs in which oc does something else on purpose.
var stagesOtherwise = map[string]string{
	"oversized-fallback": "a message that is too large is named in its place from the start, not when three requests have failed",
	"all-fail":           "a sentence that says that there is no summary takes the place of no message: the next provider is asked, and at last nothing is changed",
	"retry-then-ok":      "an endpoint is asked again by the provider, where trying again can help; stages ask once",
}

// The requests for a summary in stages: which messages, which summary before, which summaries to merge.
func TestStagesAsOpenClaw(t *testing.T) {
	met := map[string]bool{}
	lines(t, "safeguard.jsonl", func(kind string, line []byte) {
		if kind != "summarizeInStages" {
			return
		}
		var c struct {
			Name   string
			Params struct {
				MaxChunkTokens  int
				Parts           *int
				PreviousSummary string
				MessageLens     []int
			}
			Expected struct {
				Result string
				Calls  []struct {
					Count           int
					Contents        []string
					PreviousSummary string
				}
			}
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		met[c.Name] = true
		parts := 2
		if c.Params.Parts != nil {
			parts = *c.Params.Parts
		}
		var all []Message
		for _, n := range c.Params.MessageLens {
			all = append(all, Message{Role: User, Tokens: (n + 3) / 4})
		}
		calls := 0
		fails := errors.New("no answer")
		got, err := InStages(Parts(all, parts, c.Params.MaxChunkTokens), c.Params.PreviousSummary, func(s Stage) (string, error) {
			if stagesOtherwise[c.Name] != "" {
				calls++
				return "", fails
			}
			if calls >= len(c.Expected.Calls) {
				t.Fatalf("%s: one request too many: %+v", c.Name, s)
			}
			want := c.Expected.Calls[calls]
			if s.Previous != want.PreviousSummary {
				t.Errorf("%s: request %d goes on from %q, want %q", c.Name, calls, s.Previous, want.PreviousSummary)
			}
			if n := s.To - s.From; s.Merge == nil && n != want.Count || s.Merge != nil && len(s.Merge) != want.Count {
				t.Errorf("%s: request %d is %+v, want %d", c.Name, calls, s, want.Count)
			}
			for i, summary := range s.Merge {
				per := len(all) / len(s.Merge) // a message a minute
				at := time.Date(2026, 1, 5, 9, 1+i*per, 0, 0, time.UTC)
				heading := ChunkHeading(i, len(s.Merge), TimeRange(at.UnixMilli(), at.Add(time.Duration(per-1)*time.Minute).UnixMilli())) + "\n" + summary
				if !strings.HasPrefix(heading, strings.TrimSuffix(want.Contents[i], "…")) {
					t.Errorf("%s: %q, want %q", c.Name, heading, want.Contents[i])
				}
			}
			if s.Last != (calls == len(c.Expected.Calls)-1) {
				t.Errorf("%s: request %d is the last: %v", c.Name, calls, s.Last)
			}
			calls++
			return fmt.Sprintf("SUMMARY#%d", calls-1), nil
		})
		if stagesOtherwise[c.Name] != "" {
			if !errors.Is(err, fails) || calls != 1 || got != "" {
				t.Errorf("%s: %q, %v after %d requests", c.Name, got, err, calls)
			}
			return
		}
		if err != nil || got != c.Expected.Result || calls != len(c.Expected.Calls) {
			t.Errorf("%s: %q, %v after %d requests, want %q after %d", c.Name, got, err, calls, c.Expected.Result, len(c.Expected.Calls))
		}
	})
	for name := range stagesOtherwise {
		if !met[name] {
			t.Errorf("no run is called %s", name)
		}
	}
	if len(met) != 9 {
		t.Errorf("runs: %v", met)
	}
}

// Every message is in one request, in order, and no request but of one message is larger than asked for.
func TestPartsLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []Message
		for range rapid.IntRange(0, 40).Draw(t, "messages") {
			all = append(all, Message{Role: rapid.SampledFrom([]Role{User, Assistant, Result}).Draw(t, "role"), Tokens: rapid.IntRange(0, 400).Draw(t, "tokens")})
		}
		limit := rapid.IntRange(1, 2000).Draw(t, "limit")
		next := 0
		for _, chunks := range Parts(all, rapid.IntRange(1, 4).Draw(t, "parts"), limit) {
			for _, s := range chunks {
				if s.From != next || s.To <= s.From || s.To-s.From > 1 && total(all[s.From:s.To-1]) > limit {
					t.Fatalf("%+v of %d messages, after %d", s, len(all), next)
				}
				next = s.To
			}
		}
		if next != len(all) {
			t.Fatalf("%d of %d messages", next, len(all))
		}
	})
}

// However much stands behind the body, the body keeps its room.
func TestSuffixLeavesRoom(t *testing.T) {
	long := slices.Repeat([]string{"- Tool result (read): " + strings.Repeat("x", 570)}, 500)
	var failures Failures
	for i := range 50 {
		failures.Add(fmt.Appendf(nil, `{"role":"toolResult","toolCallId":"c%d","toolName":"read","isError":true,"content":%q}`, i, strings.Repeat("f", 500)))
	}
	files := slices.Repeat([]string{"/srv/" + strings.Repeat("p", 100)}, 50)
	s := Suffix{InProgress: long, Recent: append(slices.Clone(long), "- User: the newest"), Failures: &failures, Read: files, Changed: files, Rules: strings.Repeat("r", 9000)}.String()
	if len(s) > MaxSummary-3000 || !strings.Contains(s, "\n- User: the newest\n") || !strings.Contains(s, " more)\n") {
		t.Errorf("%d units:\n%s", len(s), s)
	}
	if s := (Suffix{}).String(); s != "" {
		t.Errorf("nothing to say: %q", s)
	}
}
