package doctor

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What OpenClaw 2026.7.35 mends in a file before a run is what doctor finds in
// it: where it repairs there is a finding, and where it finds nothing to do
// there is none that is worse than a note, except for calls without a result
// that it only mends for some providers.
func TestFileRepairCases(t *testing.T) {
	want := map[string]map[Code]int{
		"clean":                 {},
		"malformed-line":        {"not-json": 1},
		"null-role":             {"bad-role": 1},
		"blank-role":            {"bad-role": 1},
		"message-missing":       {"no-message": 1},
		"assistant-empty-error": {"empty-failure": 1},
		"blank-user-block":      {"blank-user": 1},
		"valid-image":           {},
		"no-header":             {"no-header": 1, "not-json": 1},
		"empty":                 {},
		"only-bad":              {"no-header": 1, "not-json": 1},

		"missing-tool-result-codex":                    {"open-call": 1},
		"missing-tool-result-other-provider-untouched": {"open-call": 1},
		"message-tool-before-delivery-mirror":          {"lost-result": 1},
	}
	f, err := os.Open("../../transcript/testdata/file-repair.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cases := 0
	in := bufio.NewScanner(f)
	for in.Buffer(nil, 1<<20); in.Scan(); {
		var c struct {
			Name     string
			Lines    []string
			Expected struct{ Result struct{ Repaired bool } }
		}
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases++
		if want[c.Name] == nil {
			t.Errorf("the case %s is new", c.Name)
		}
		t.Run(c.Name, func(t *testing.T) {
			body := strings.Join(c.Lines, "\n")
			if len(c.Lines) > 0 {
				body += "\n"
			}
			r := ofTranscript(t, body)
			got := codes(r)
			delete(got, TranscriptOtherID) // the row is the test's
			delete(got, "no-final-break")
			if c.Expected.Result.Repaired && len(got) == 0 {
				t.Error("OpenClaw repairs it, and nothing is found")
			}
			if d := cmp.Diff(want[c.Name], got); d != "" {
				t.Errorf("%s\n%+v", d, r.Findings)
			}
		})
	}
	if err := in.Err(); err != nil || cases < 14 {
		t.Fatalf("%d cases: %v", cases, err)
	}
}
