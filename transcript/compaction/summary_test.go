package compaction

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oc/transcript"
	"oc/transcript/provider"
	"oc/transcript/visible"
)

func TestTextAsOpenClaw(t *testing.T) {
	lines(t, "serialize-conversation.jsonl", func(_ string, line []byte) {
		var c struct {
			Name     string
			Messages []json.RawMessage
			Expected string
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		var turns []provider.Turn
		for _, m := range c.Messages {
			turns = append(turns, Turns(transcript.Voice(m), m)...)
		}
		if got := provider.Text(turns); got != c.Expected {
			t.Errorf("%s:\n%q, want\n%q", c.Name, got, c.Expected)
		}
	})
}

// What the model gets as a user's message in the words of OpenClaw comes in oc's.
func TestTurnsOfOtherRows(t *testing.T) {
	for _, c := range []struct{ role, raw, want string }{
		{"bashExecution", `{"command":"ls","output":"a\n","exitCode":2}`, "[User]: Ran `ls`\n```\na\n\n```\n\nIt ended with exit code 2."},
		{"bashExecution", `{"command":"ls","cancelled":true}`, "[User]: Ran `ls`\nIt printed nothing.\n\nIt was cancelled."},
		{"bashExecution", `{"command":"ls","excludeFromContext":true}`, ""},
		{"compactionSummary", `{"summary":"S"}`, "[User]: What came before, in a summary:\n\n<summary>\nS\n</summary>"},
		{"branchSummary", `{"summary":"S"}`, "[User]: What happened on a branch that this conversation came back from:\n\n<summary>\nS</summary>"},
		{"custom", `{"content":"C"}`, "[User]: C"},
		{"label", `{"content":"C"}`, ""},
	} {
		if got := provider.Text(Turns(c.role, []byte(c.raw))); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.role, c.raw, got, c.want)
		}
	}
}

// The functions of the safeguard. Its runs in stages are those of TestStagesAsOpenClaw, and whole runs of it those of store.
func TestSafeguardAsOpenClaw(t *testing.T) {
	seen := map[string]int{}
	lines(t, "safeguard.jsonl", func(kind string, line []byte) {
		var c struct {
			Name           string
			Text           string
			Previous       string
			Read, Modified []string
			Messages       []json.RawMessage
			Len, Max       int
			BodyLen        int
			SuffixLen      int
			Params         struct {
				Summary, LatestAsk, IdentifierPolicy string
				Identifiers                          []string
			}
			RecentTurnsPreserve int
			Content             string
			Names               []string
			Custom              string
			Instructions        struct{ IdentifierPolicy, IdentifierInstructions string }
			Model               struct{ ContextWindow float64 }
			Timestamps          []any
			Expected            json.RawMessage
		}
		switch kind {
		case "summarizeInStages", "safeguard":
			return
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		seen[kind]++
		is := func(got any) {
			t.Helper()
			want := reflect.New(reflect.TypeOf(got))
			if err := json.Unmarshal(c.Expected, want.Interface()); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want.Elem().Interface()) {
				t.Errorf("%s %s: %q, want %q", kind, c.Name, got, want.Elem().Interface())
			}
		}
		switch kind {
		case "identifiers":
			is(Identifiers(c.Text))
		case "audit":
			reasons := Audit{c.Params.Identifiers, c.Params.IdentifierPolicy == "" || c.Params.IdentifierPolicy == "strict", c.Params.LatestAsk}.Check(c.Params.Summary)
			type verdict struct {
				OK      bool     `json:"ok"`
				Reasons []string `json:"reasons"`
			}
			is(verdict{len(reasons) == 0, append([]string{}, reasons...)})
		case "fallbackSummary":
			is(Fallback(c.Previous))
		case "toolFailures":
			var f Failures
			for _, m := range c.Messages {
				f.Add(m)
			}
			is(f.Section())
		case "fileOps":
			is(FileLists(c.Read, c.Modified))
		case "cap":
			got := Cap(strings.Repeat("s", c.Len), c.Max)
			type capped struct {
				Len  int    `json:"len"`
				Tail string `json:"tail"`
			}
			is(capped{len(got), got[len(got)-46:]})
		case "capSuffix":
			suffix := strings.Repeat("x", c.SuffixLen-1) + "y"
			got := CapWith(strings.Repeat("s", c.BodyLen), suffix, MaxSummary)
			var want struct {
				Len                       int
				EndsWithSuffix, HasMarker bool
			}
			if err := json.Unmarshal(c.Expected, &want); err != nil {
				t.Fatal(err)
			}
			if len(got) != want.Len || want.EndsWithSuffix != strings.HasSuffix(got, suffix) || want.HasMarker != strings.Contains(got, cutMark) || got[len(got)-1] != 'y' {
				t.Errorf("%s: %d units", kind, len(got))
			}
		case "preservedTurns":
			var all []Said
			for _, m := range c.Messages {
				all = append(all, Said{transcript.Role(m), m})
			}
			kept := Preserved(all, c.RecentTurnsPreserve)
			var rest, at []int
			for i := range all {
				if slices.Contains(kept, i) {
					at = append(at, i)
				} else {
					rest = append(rest, i)
				}
			}
			type preserved struct {
				Summarizable []int  `json:"summarizable"`
				Preserved    []int  `json:"preserved"`
				Section      string `json:"section"`
			}
			is(preserved{append([]int{}, rest...), append([]int{}, at...), PreservedSection(all, kept)})
		case "sections":
			is(Sections(c.Content, c.Names))
		case "preservedSection":
			var all []Said
			var at []int
			for i, m := range c.Messages {
				all, at = append(all, Said{transcript.Role(m), m}), append(at, i)
			}
			is(PreservedSection(all, at))
		case "instructions":
			block := map[string]any{"customInstructions": c.Custom}
			if c.Instructions.IdentifierPolicy != "" {
				block["identifierPolicy"], block["identifierInstructions"] = c.Instructions.IdentifierPolicy, c.Instructions.IdentifierInstructions
			}
			said := Instructions(settingsOf(t, block))
			var want struct{ UsesBuiltinIdentifierText, HasAdditionalFocus bool }
			if err := json.Unmarshal(c.Expected, &want); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(said, "Copy every identifier") != want.UsesBuiltinIdentifierText || strings.Contains(said, "pay attention to: focus x") != want.HasAdditionalFocus {
				t.Errorf("%s %s: %s", kind, line, said)
			}
		case "contextWindowTokens":
			is(Window(c.Model.ContextWindow))
		case "chunkTimeRange":
			var first, last int64
			for _, at := range c.Timestamps {
				if ms, ok := at.(float64); ok && ms > 0 {
					if first == 0 {
						first = int64(ms)
					}
					last = int64(ms)
				}
			}
			is(TimeRange(first, last))
		case "realConversation":
			var r Real
			var got []bool
			for _, m := range c.Messages {
				got = append(got, r.Is(transcript.Role(m), m))
			}
			is(got)
		case "limits":
			// The numbers that were given are not recorded: these are such that come out as the recording says.
			var want struct {
				RecentTurns, QualityRetries []int
				InstructionsCap             int
			}
			if err := json.Unmarshal(c.Expected, &want); err != nil {
				t.Fatal(err)
			}
			for i, n := range []any{nil, 0, 2.9, 99, -1} {
				if s := settingsOf(t, map[string]any{"recentTurnsPreserve": n}); s.RecentTurns != want.RecentTurns[i] {
					t.Errorf("recentTurnsPreserve %v: %d, want %d", n, s.RecentTurns, want.RecentTurns[i])
				}
			}
			for i, n := range []any{nil, 0, 2.9, 99} {
				if s := settingsOf(t, map[string]any{"qualityGuard": map[string]any{"maxRetries": n}}); s.Retries != want.QualityRetries[i] {
					t.Errorf("maxRetries %v: %d, want %d", n, s.Retries, want.QualityRetries[i])
				}
			}
			if said := Instructions(settingsOf(t, map[string]any{"customInstructions": strings.Repeat("§", 2000)})); strings.Count(said, "§") != want.InstructionsCap {
				t.Errorf("%d units of the user's own instructions, want %d", strings.Count(said, "§"), want.InstructionsCap)
			}
		default:
			t.Fatalf("what is %s?", kind)
		}
	})
	want := map[string]int{"identifiers": 7, "audit": 10, "fallbackSummary": 4, "toolFailures": 1, "fileOps": 2, "cap": 4, "capSuffix": 2, "preservedTurns": 5, "sections": 1, "preservedSection": 1, "instructions": 5, "contextWindowTokens": 3, "chunkTimeRange": 4, "realConversation": 2, "limits": 1}
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("cases %v, want %v", seen, want)
	}
}

func TestHardCheckpointAsOpenClaw(t *testing.T) {
	lines(t, "manual-hard-checkpoint.jsonl", func(_ string, line []byte) {
		var c struct {
			Name               string
			PreserveRecentTail bool
			Lines              []string
			Expected           struct{ Applied bool }
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		var rows []Row
		var ids []string
		kept, summary := -1, ""
		for _, l := range c.Lines[1:] {
			e, err := transcript.Parse([]byte(l))
			if err != nil {
				t.Fatal(err)
			}
			rows, ids = append(rows, RowOf(&e)), append(ids, string(e.ID))
			if e.Kind == transcript.Compaction {
				kept = slices.Index(ids, string(e.FirstKept.ID))
				var s struct{ Summary string }
				if err := json.Unmarshal(e.Raw, &s); err != nil {
					t.Fatal(err)
				}
				summary = s.Summary
			}
		}
		if got := Hardens(rows, kept, summary, c.PreserveRecentTail); got != c.Expected.Applied {
			t.Errorf("%s: %v", c.Name, got)
		}
	})
}

func TestTrimAsOpenClaw(t *testing.T) {
	lines(t, "max-lines-trim.jsonl", func(_ string, line []byte) {
		var c struct {
			Name     string
			MaxLines int
			Lines    []string
			Expected struct {
				Result struct {
					Compacted bool
					Kept      int
				}
				LinesAfter []json.RawMessage
			}
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		text := []byte(strings.Join(c.Lines, "\n") + "\n")
		x, err := Trim(c.MaxLines, reading(text))
		if (c.Name == "header-not-session") != errors.Is(err, ErrNoHeader) || err != nil && !errors.Is(err, ErrNoHeader) {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if x.Compacted != c.Expected.Result.Compacted || x.Kept != c.Expected.Result.Kept {
			t.Errorf("%s: %v %d, want %+v", c.Name, x.Compacted, x.Kept, c.Expected.Result)
		}
		if !x.Compacted {
			return
		}
		var out bytes.Buffer
		if err := x.Write(&out, bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		var got []any
		for l := range bytes.Lines(out.Bytes()) {
			var v any
			if err := json.Unmarshal(l, &v); err != nil {
				t.Fatalf("%s: %v in %s", c.Name, err, l)
			}
			got = append(got, v)
		}
		var want []any
		for _, raw := range c.Expected.LinesAfter {
			var v any
			if err := json.Unmarshal(raw, &v); err != nil {
				t.Fatal(err)
			}
			want = append(want, v)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%v, want\n%v", c.Name, got, want)
		}
	})
}

func reading(text []byte) func(func(*transcript.Row) error) error {
	return func(each func(*transcript.Row) error) error {
		return new(transcript.Scanner).Read(bytes.NewReader(text), each)
	}
}

// Blank and broken lines among those that stay: the former count as none, the latter go.
func TestTrimBadLines(t *testing.T) {
	text := []byte("{\"type\":\"session\",\"id\":\"s\"}\n\n{\"type\":\"message\",\"id\":\"a\",\"parentId\":null}\n{broken\n\r\n{\"type\":\"message\",\"id\":\"b\",\"parentId\":\"a\"}")
	x, err := Trim(3, reading(text))
	if err != nil || !x.Compacted || x.Kept != 2 {
		t.Fatalf("%+v, %v", x, err)
	}
	var out bytes.Buffer
	if err := x.Write(&out, bytes.NewReader(text)); err != nil || out.String() != "{\"type\":\"session\",\"id\":\"s\"}\n{\"type\":\"message\",\"id\":\"b\",\"parentId\":null}\n" {
		t.Errorf("%v: %s", err, out.String())
	}
	if x, err := Trim(4, reading(text)); err != nil || x.Compacted || x.Kept != 4 {
		t.Errorf("%+v, %v", x, err)
	}
}

// However long body and suffix are: the limit holds, and the suffix survives as far as it fits.
func TestCapHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body, suffix := rapid.StringN(0, 300, -1).Draw(t, "body"), rapid.StringN(0, 120, -1).Draw(t, "suffix")
		limit := rapid.IntRange(60, 200).Draw(t, "limit")
		got := CapWith(body, suffix, limit)
		if n := visible.Units(got); n > limit {
			t.Fatalf("%d units of %d", n, limit)
		}
		if visible.Units(suffix) < limit && !strings.HasSuffix(got, suffix) {
			t.Fatalf("the suffix %q is not at the end of %q", suffix, got)
		}
	})
}
