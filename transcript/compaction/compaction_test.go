package compaction

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oc/config"
	"oc/transcript"
)

// lines gives each recorded case of a file to f, and its kind.
func lines(t *testing.T, name string, f func(kind string, line []byte)) {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	n := 0
	s := bufio.NewScanner(file)
	s.Buffer(nil, 1<<24)
	for ; s.Scan(); n++ {
		var k struct{ Kind string }
		if err := json.Unmarshal(s.Bytes(), &k); err != nil {
			t.Fatal(err)
		}
		f(k.Kind, s.Bytes())
	}
	if err := s.Err(); err != nil || n == 0 {
		t.Fatalf("%s: %d cases, %v", name, n, err)
	}
}

func TestCutAsOpenClaw(t *testing.T) {
	lines(t, "cut-points.jsonl", func(_ string, line []byte) {
		var c struct {
			Name             string
			KeepRecentTokens int
			Entries          []json.RawMessage
			Expected         struct {
				FindCutPointFull *struct {
					FirstKeptEntryIndex, TurnStartIndex int
					IsSplitTurn                         bool
				}
				Prepare *struct {
					FirstKeptEntryID    string
					IsSplitTurn         bool
					MessagesToSummarize []string
					TurnPrefixMessages  []string
				}
			}
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.Name, func(t *testing.T) {
			var rows []Row
			var ids []string
			last, kept := -1, -1
			for i, raw := range c.Entries {
				e, err := transcript.Parse(raw)
				if err != nil {
					t.Fatal(err)
				}
				rows, ids = append(rows, RowOf(&e)), append(ids, string(e.ID))
				if e.Kind == transcript.Compaction {
					last, kept = i, slices.Index(ids, string(e.FirstKept.ID))
				}
			}
			cut, ok := Find(rows, last, kept, c.KeepRecentTokens)
			want := c.Expected.Prepare
			if ok != (want != nil) {
				t.Fatalf("cut: %v, want %v", ok, want)
			}
			if !ok {
				return
			}
			said := func(from, to int) (all []string) {
				for i := from; i < to; i++ {
					if k := rows[i].Kind; k == transcript.Message || k == transcript.CustomMessage || k == transcript.BranchSummary {
						all = append(all, ids[i])
					}
				}
				return all
			}
			prefix := []string(nil)
			if cut.Split() {
				prefix = said(cut.Turn, cut.Keep)
			}
			full := c.Expected.FindCutPointFull
			if cut.Keep != full.FirstKeptEntryIndex || cut.Turn != full.TurnStartIndex || cut.Split() != full.IsSplitTurn || ids[cut.Keep] != want.FirstKeptEntryID ||
				!slices.Equal(said(cut.From, cut.History()), want.MessagesToSummarize) || !slices.Equal(prefix, want.TurnPrefixMessages) {
				t.Errorf("%+v: %v and %v; want %+v, %+v", cut, said(cut.From, cut.History()), prefix, full, want)
			}
		})
	})
}

func messages(t *testing.T, raw []json.RawMessage) (all []Message) {
	t.Helper()
	for _, m := range raw {
		all = append(all, MessageOf(transcript.Role(m), m))
	}
	return all
}

func indexes(spans []Span) (all [][]int) {
	for _, s := range spans {
		var one []int
		for i := s.From; i < s.To; i++ {
			one = append(one, i)
		}
		all = append(all, one)
	}
	return all
}

func TestChunksAsOpenClaw(t *testing.T) {
	same := func(a, b [][]int) bool { return slices.EqualFunc(a, b, slices.Equal[[]int]) }
	lines(t, "chunking.jsonl", func(kind string, line []byte) {
		var c struct {
			Name                            string
			Parts, MaxTokens, ContextWindow float64
			MessageLens                     []int
			Roles                           []string
			Messages                        []json.RawMessage
			Params                          struct {
				MaxChunkTokens, TokensBefore, ContextWindowTokens float64
				Parts, MinMessagesForSplit                        *float64
				MaxHistoryShare                                   float64
				TurnPrefixMessages                                []json.RawMessage
			}
			Expected struct {
				Chunks                             [][]int
				TotalTokens                        int
				StagePlan                          *struct{ Chunks [][]int }
				Ratio                              float64
				MaxChunkTokens                     int
				Small                              []int
				Notes                              []string
				Mode                               string
				NewContentTokens, MaxHistoryTokens int
				Pruned                             *struct {
					Kept                                                   []int
					DroppedChunks, DroppedTokens, KeptTokens, BudgetTokens int
				}
			}
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		t.Run(kind+"/"+c.Name, func(t *testing.T) {
			all, want := messages(t, c.Messages), c.Expected
			for i, n := range c.MessageLens {
				m := Message{Role: User, Tokens: (n + 3) / 4}
				if len(c.Roles) > 0 {
					m.Role = RoleOf(c.Roles[i])
				}
				all = append(all, m)
			}
			switch kind {
			case "split":
				if got := indexes(Split(all, int(c.Parts))); !same(got, want.Chunks) || total(all) != want.TotalTokens {
					t.Errorf("%v of %d, want %v of %d", got, total(all), want.Chunks, want.TotalTokens)
				}
			case "maxTokens":
				if got := indexes(Chunks(all, int(c.MaxTokens))); !same(got, want.Chunks) {
					t.Errorf("%v, want %v", got, want.Chunks)
				}
			case "ratio":
				if limit, share := ChunkLimit(all, int(c.ContextWindow)); limit != want.MaxChunkTokens || share != want.Ratio {
					t.Errorf("%d, %v; want %d, %v", limit, share, want.MaxChunkTokens, want.Ratio)
				}
			case "oversized":
				var small []int
				var notes []string
				for i := range all {
					if note, is := all[i].Oversized(c.Roles[i], int(c.ContextWindow)); is {
						notes = append(notes, note)
					} else {
						small = append(small, i)
					}
				}
				if !slices.Equal(small, want.Small) || !slices.Equal(notes, want.Notes) {
					t.Errorf("%v %v, want %v %v", small, notes, want.Small, want.Notes)
				}
			case "stage":
				parts, least := 2, stageAtOnce
				if c.Params.Parts != nil {
					parts = int(*c.Params.Parts)
				}
				if c.Params.MinMessagesForSplit != nil {
					least = int(*c.Params.MinMessagesForSplit)
				}
				got := Stages(all, parts, least, int(c.Params.MaxChunkTokens))
				if (got == nil) != (want.Mode == "single") || got != nil && !same(indexes(got), want.Chunks) {
					t.Errorf("%v, want %s %v", got, want.Mode, want.Chunks)
				}
			case "historyPrune":
				p := Prune(all, int(c.Params.TokensBefore), total(messages(t, c.Params.TurnPrefixMessages)), int(c.Params.ContextWindowTokens), c.Params.MaxHistoryShare, int(*c.Params.Parts))
				if p.New != want.NewContentTokens || p.Limit != want.MaxHistoryTokens {
					t.Errorf("%+v, want %+v", p, want)
				}
				if w := want.Pruned; w != nil && (!slices.Equal(p.Kept, w.Kept) || p.Chunks != w.DroppedChunks || p.Tokens != w.DroppedTokens || p.Budget != w.BudgetTokens) {
					t.Errorf("%+v, want %+v", p, *w)
				}
			default:
				t.Fatalf("what is %s?", kind)
			}
		})
	})
}

// A part never begins with the result of a call that stands in the part before, and no message is lost or twice in it.
func TestSplitKeepsPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []Message
		for range rapid.IntRange(0, 40).Draw(t, "turns") {
			tokens := rapid.IntRange(0, 500).Draw(t, "tokens")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				all = append(all, Message{Role: User, Tokens: tokens})
			case 1:
				all = append(all, Message{Role: Assistant, Tokens: tokens})
			default:
				call := Message{Role: Assistant, Tokens: tokens}
				for i := range rapid.IntRange(1, 3).Draw(t, "calls") {
					call.Calls = append(call.Calls, string(rune('a'+len(all)))+string(rune('0'+i)))
				}
				all = append(all, call)
				for _, id := range call.Calls {
					all = append(all, Message{Role: Result, Tokens: rapid.IntRange(0, 900).Draw(t, "result"), Answer: id})
				}
			}
		}
		parts := rapid.IntRange(1, 5).Draw(t, "parts")
		chunks := Split(all, parts)
		next := 0
		for _, c := range chunks {
			if c.From != next || c.To <= c.From {
				t.Fatalf("%v of %d messages", chunks, len(all))
			}
			next = c.To
			if all[c.From].Role == Result {
				t.Fatalf("%v: a part begins with the result %s", chunks, all[c.From].Answer)
			}
		}
		if next != len(all) || len(chunks) > parts {
			t.Fatalf("%v of %d messages in %d parts", chunks, len(all), parts)
		}
	})
}

func TestOverflowAsOpenClaw(t *testing.T) {
	lines(t, "overflow-errors.jsonl", func(_ string, line []byte) {
		var c struct {
			Error    *string
			Expected struct {
				IsContextOverflowError, IsLikelyContextOverflowError, IsCompactionFailureError, RuntimeIsContextOverflow bool
				ObservedTokens                                                                                           int
			}
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		if c.Error == nil {
			var c struct {
				Name    string
				Message struct {
					StopReason string
					Usage      json.RawMessage
				}
				ContextWindow int
				Expected      struct{ RuntimeIsContextOverflow bool }
			}
			if err := json.Unmarshal(line, &c); err != nil {
				t.Fatal(err)
			}
			if got := Silent(c.Message.StopReason, c.Message.Usage, c.ContextWindow); got != c.Expected.RuntimeIsContextOverflow {
				t.Errorf("%s: %v", c.Name, got)
			}
			return
		}
		e := c.Expected
		want := Overflow{e.IsContextOverflowError, e.IsLikelyContextOverflowError, e.RuntimeIsContextOverflow, e.IsCompactionFailureError, e.ObservedTokens}
		if got := ReadOverflow(*c.Error); got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", *c.Error, got, want)
		}
	})
}

// block is the configuration's agents.defaults with the given JSON as its compaction.
func block(t *testing.T, compaction string) *config.Node {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "openclaw.json"), []byte(`{"agents":{"defaults":{"compaction":`+compaction+`}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{Env: func(string) string { return "" }, Cwd: dir, Home: dir, StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	n, _ := c.Value("agents", "defaults")
	return n
}

func TestFlushAndSettingsAsOpenClaw(t *testing.T) {
	seen := map[string]int{}
	lines(t, "memory-flush.jsonl", func(kind string, line []byte) {
		seen[kind]++
		var c struct {
			Name       string
			Compaction json.RawMessage
			Cfg        struct {
				Agents struct {
					Defaults struct{ Compaction json.RawMessage }
				}
			}
			ContextTokenBudget int
			Params             struct {
				ContextWindowTokens, ReserveTokensFloor, SoftThresholdTokens int
				TokenCount                                                   float64
				Entry                                                        struct {
					TotalTokens, CompactionCount float64
					TotalTokensFresh             *bool
					MemoryFlushCompactionCount   *float64
				}
			}
			Expected json.RawMessage
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		t.Run(kind+"/"+c.Name, func(t *testing.T) {
			want := func(v any) {
				t.Helper()
				if err := json.Unmarshal(c.Expected, v); err != nil {
					t.Fatal(err)
				}
			}
			switch kind {
			case "gate":
				p, e := c.Params, c.Params.Entry
				n := Counters{Total: e.TotalTokens, Fresh: e.TotalTokensFresh == nil || *e.TotalTokensFresh, Compactions: e.CompactionCount}
				if e.MemoryFlushCompactionCount != nil {
					n.Flushed, n.HasFlushed = *e.MemoryFlushCompactionCount, true
				}
				var w struct {
					Threshold, TotalTokens                             *int
					ShouldRunMemoryFlush, ShouldRunPreflightCompaction bool
				}
				want(&w)
				g := Check(n, p.ContextWindowTokens, p.ReserveTokensFloor, p.SoftThresholdTokens, p.TokenCount)
				if g.Known != (w.Threshold != nil) || g.Known && (g.Threshold != *w.Threshold || g.Tokens != *w.TotalTokens) || g.Flush != w.ShouldRunMemoryFlush || g.Compact != w.ShouldRunPreflightCompaction {
					t.Errorf("%+v, want %s", g, c.Expected)
				}
			case "settings":
				var w struct {
					Compaction struct{ ReserveTokens, KeepRecentTokens int }
				}
				want(&w)
				if s := Read(block(t, string(c.Compaction)), c.ContextTokenBudget); s.Reserve != w.Compaction.ReserveTokens || s.Keep != w.Compaction.KeepRecentTokens {
					t.Errorf("reserve %d, keep %d; want %+v", s.Reserve, s.Keep, w.Compaction)
				}
			case "maxActiveTranscriptBytes":
				var w int64
				want(&w)
				if s := Read(block(t, string(c.Compaction)), 0); s.MaxBytes != w {
					t.Errorf("%d, want %d", s.MaxBytes, w)
				}
			case "plan":
				raw := string(c.Cfg.Agents.Defaults.Compaction)
				if raw == "" {
					raw = "{}"
				}
				var w struct {
					SoftThresholdTokens, ReserveTokensFloor int
					ForceFlushTranscriptBytes               int64
					Model                                   string
				}
				want(&w)
				s := Read(block(t, raw), 0)
				if s.Flush.Soft != w.SoftThresholdTokens || s.Floor != w.ReserveTokensFloor || s.Flush.Bytes != w.ForceFlushTranscriptBytes || s.Flush.Model != w.Model {
					t.Errorf("%+v, want %s", s, c.Expected)
				}
			}
		})
	})
	for kind, n := range map[string]int{"gate": 16, "settings": 15, "maxActiveTranscriptBytes": 6, "plan": 2} {
		if seen[kind] != n {
			t.Errorf("%d cases of %s, want %d", seen[kind], kind, n)
		}
	}
}

// What OpenClaw made of prompts before it sent them: the estimate, the room, and what had to give way.
func TestWeighAsOpenClaw(t *testing.T) {
	lines(t, "precheck-routes.jsonl", func(_ string, line []byte) {
		var c struct {
			Name   string
			Params struct {
				SystemPrompt, Prompt              string
				ContextTokenBudget, ReserveTokens int
				MessageSpec                       []struct {
					Role         string
					Len, TextLen int
					ToolCall     bool
				}
			}
			Expected struct {
				Route                                                                                                              Route
				EstimatedPromptTokens, PromptBudgetBeforeReserve, OverflowTokens, ToolResultReducibleChars, EffectiveReserveTokens int
			}
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		var said []transcript.Said
		for _, m := range c.Params.MessageSpec {
			text := strings.Repeat("x", m.Len)
			raw := map[string]any{"role": m.Role, "content": text}
			switch {
			case m.ToolCall: // the recording does not say with what: arguments of this length make its estimate
				raw["content"] = []any{map[string]any{"type": "toolCall", "id": "c1", "name": "read", "arguments": map[string]any{"path": "/a/b"}}}
			case m.Role == "toolResult":
				raw["toolCallId"], raw["toolName"] = "c1", "read"
				raw["content"] = []any{map[string]any{"type": "text", "text": strings.Repeat("x", m.TextLen)}}
			}
			b, err := json.Marshal(raw)
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, transcript.Said{Role: m.Role, Raw: b})
		}
		e := c.Expected
		if got := transcript.PromptPressure(said, c.Params.SystemPrompt, c.Params.Prompt); got != e.EstimatedPromptTokens {
			t.Errorf("%s: an estimate of %d, want %d", c.Name, got, e.EstimatedPromptTokens)
		}
		p := Weigh(e.EstimatedPromptTokens, c.Params.ContextTokenBudget, c.Params.ReserveTokens, e.ToolResultReducibleChars)
		if want := (Precheck{e.Route, e.PromptBudgetBeforeReserve, e.OverflowTokens, e.EffectiveReserveTokens}); p != want {
			t.Errorf("%s: %+v, want %+v", c.Name, p, want)
		}
	})
}
