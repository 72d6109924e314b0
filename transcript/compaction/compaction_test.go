package compaction

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

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
			return // see TestFullAsOpenClaw
		}
		e := c.Expected
		want := Overflow{e.IsContextOverflowError, e.IsLikelyContextOverflowError, e.RuntimeIsContextOverflow, e.IsCompactionFailureError, e.ObservedTokens}
		if got := ReadOverflow(*c.Error); got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", *c.Error, got, want)
		}
	})
}
