package transcript

import (
	"encoding/json"
	"strings"
	"testing"

	"oc/store/span"
	"oc/transcript/visible"

	"github.com/google/go-cmp/cmp"
)

func contextOf(t testing.TB, s string) Context {
	t.Helper()
	tree, _ := scan(t, s)
	c, err := tree.Context(Load(strings.NewReader(s)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestContextAsSessionManager(t *testing.T) {
	for _, c := range golden[treeCase](t, "context-trees.jsonl") {
		t.Run(c.Name, func(t *testing.T) {
			want := c.Expected.SessionManager
			got := contextOf(t, c.file())
			var texts, wantTexts []string
			for _, m := range got.Messages {
				texts = append(texts, m.Role+" "+string(gist(m.Role, m.Raw)))
			}
			for _, m := range want.Messages {
				wantTexts = append(wantTexts, Role(m)+" "+string(gist(Role(m), m)))
			}
			if d := cmp.Diff(wantTexts, texts); d != "" {
				t.Error(d)
			}
			if got.Thinking != want.ThinkingLevel {
				t.Errorf("thinking %q, want %q", got.Thinking, want.ThinkingLevel)
			}
			if want.Model == nil {
				want.Model = &struct{ Provider, ModelID string }{}
			}
			if got.Provider != want.Model.Provider || got.Model != want.Model.ModelID {
				t.Errorf("model %q %q, want %v", got.Provider, got.Model, want.Model)
			}
			e, we := EstimateContext(got.Messages), want.ContextTokens
			last := -1
			if we.LastUsageIndex != nil {
				last = *we.LastUsageIndex
			}
			if (e != Estimate{we.Tokens, we.UsageTokens, int(we.TrailingTokens), last}) {
				t.Errorf("estimate %+v, want %+v", e, we)
			}
			var roles []string
			for _, m := range got.Messages {
				if r := m.ForModel(); r != "" {
					roles = append(roles, r)
				}
			}
			if d := cmp.Diff(c.Expected.LLMRoles, roles); d != "" && len(roles)+len(c.Expected.LLMRoles) > 0 {
				t.Error(d)
			}
		})
	}
}

// gist is what a message says, whatever form its content has.
func gist(role string, raw []byte) []byte {
	c := span.Member(raw, "content")
	switch span.KindOf(c) {
	case span.Invalid:
		if s := span.Member(raw, "summary"); s != nil {
			return s
		}
		return span.Member(raw, "command")
	case span.String:
		if role == "assistant" || role == "toolResult" {
			return []byte(`[{"type":"text","text":` + string(c) + `}]`)
		}
	case span.Object:
		return append(append([]byte("["), visible.AppendJSON(nil, c)...), ']')
	}
	return visible.AppendJSON(nil, c)
}

func saids(messages []json.RawMessage) (list []Said) {
	for _, m := range messages {
		list = append(list, Said{Role: Role(m), Raw: m})
	}
	return list
}

func TestEstimatesAsOpenClaw(t *testing.T) {
	for _, c := range golden[struct {
		Name     string
		Messages []json.RawMessage
		Expected struct {
			EstimateContextTokens struct {
				Tokens, UsageTokens float64
				TrailingTokens      int
				LastUsageIndex      *int
			}
		}
	}](t, "context-estimates.jsonl") {
		e := c.Expected.EstimateContextTokens
		want := Estimate{e.Tokens, e.UsageTokens, e.TrailingTokens, -1}
		if i := e.LastUsageIndex; i != nil {
			want.Last = *i
		}
		if got := EstimateContext(saids(c.Messages)); got != want {
			t.Errorf("%s: %+v, want %+v", c.Name, got, want)
		}
	}
}

func TestTokensAsOpenClaw(t *testing.T) {
	for _, c := range golden[struct {
		Name     string
		Message  json.RawMessage
		Expected struct{ EstimateTokens, EstimateMessagesTokens, MessagePressure int }
	}](t, "token-estimates.jsonl") {
		m := saids([]json.RawMessage{c.Message})
		if got := Tokens(m[0].Role, m[0].Raw); got != c.Expected.EstimateTokens {
			t.Errorf("%s: %d tokens, want %d", c.Name, got, c.Expected.EstimateTokens)
		}
		if got := SumTokens(m); got != c.Expected.EstimateMessagesTokens {
			t.Errorf("%s: sum %d, want %d", c.Name, got, c.Expected.EstimateMessagesTokens)
		}
		if got := Pressure(m[0].Role, m[0].Raw); got != c.Expected.MessagePressure {
			t.Errorf("%s: pressure %d, want %d", c.Name, got, c.Expected.MessagePressure)
		}
	}
	for _, c := range golden[struct {
		Text     string
		Expected struct{ EstimateStringChars, Tokens int }
	}](t, "string-chars.jsonl") {
		if got := Chars(c.Text); got != c.Expected.EstimateStringChars || per(got, 4) != c.Expected.Tokens {
			t.Errorf("%q: %d, want %+v", c.Text, got, c.Expected)
		}
	}
	if got := Chars("a\xed\xa0\xbd"); got != 2 {
		t.Errorf("a lone surrogate counts %d", got-1)
	}
	if got := PromptPressure(nil, " ", "abcd"); got != 16 {
		t.Errorf("prompt pressure %d", got)
	}
}

func TestUsageAsOpenClaw(t *testing.T) {
	type known map[string]any
	for _, c := range golden[struct {
		Name     string
		Raw      json.RawMessage
		Expected struct {
			Normalized         known
			HasNonzero         bool
			SessionTotalTokens *float64
		}
	}](t, "usage-normalize.jsonl") {
		u, ok := ParseUsage(c.Raw)
		if ok != (c.Expected.Normalized != nil) || u.Used() != c.Expected.HasNonzero {
			t.Errorf("%s: ok %v, used %v", c.Name, ok, u.Used())
		}
		got := known{}
		for name, n := range map[string]Count{
			"input": u.Input, "output": u.Output, "cacheRead": u.CacheRead, "cacheWrite": u.CacheWrite,
			"reasoningTokens": u.Reasoning, "total": u.Total,
		} {
			if n.Known {
				got[name] = n.N
			}
		}
		switch u.Window {
		case WindowKnown:
			got["contextUsage"] = map[string]any{"state": "available", "promptTokens": u.Prompt, "totalTokens": u.Context}
		case WindowUnknown:
			got["contextUsage"] = map[string]any{"state": "unavailable"}
		}
		if d := cmp.Diff(c.Expected.Normalized, got); d != "" && len(got)+len(c.Expected.Normalized) > 0 {
			t.Errorf("%s: %s", c.Name, d)
		}
		size, ok := u.PromptSize()
		if want := c.Expected.SessionTotalTokens; ok != (want != nil) || want != nil && size != *want {
			t.Errorf("%s: prompt of %v %v", c.Name, size, ok)
		}
	}
}

func TestTotalsAsOpenClaw(t *testing.T) {
	n := 0
	for _, c := range golden[struct {
		Kind, Name string
		Lines      []string
		Expected   json.RawMessage
	}](t, "misc.jsonl") {
		if c.Kind != "usage" {
			continue
		}
		n++
		var totals Totals
		s := lines(c.Lines...)
		if err := (&Scanner{}).Read(strings.NewReader(s), func(r *Row) error {
			if r.Err == nil {
				totals.Add(&r.Entry)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		totals.Finish()
		var want struct {
			Aggregate            map[string]any
			LatestOnActiveBranch *struct {
				TotalTokens   float64
				TrailingBytes int64
			}
		}
		if err := json.Unmarshal(c.Expected, &want); err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		for name, n := range map[string]Count{
			"inputTokens": totals.Usage.Input, "outputTokens": totals.Usage.Output,
			"cacheRead": totals.Usage.CacheRead, "cacheWrite": totals.Usage.CacheWrite, "costUsd": totals.Usage.Cost,
		} {
			if n.Known {
				got[name] = n.N
			}
		}
		if totals.Answers > 0 {
			got["modelProvider"], got["model"] = totals.Provider, totals.Model
		}
		if totals.Size > 0 {
			got["totalTokens"], got["totalTokensFresh"] = totals.Size, true
		}
		a, behind, ok := Latest(activeTail(lastEntries([]byte(s), 100)))
		switch latest := want.LatestOnActiveBranch; {
		case ok != (latest != nil):
			t.Errorf("%s: latest %v", c.Name, ok)
		case ok:
			if size, _ := a.Usage.PromptSize(); size != latest.TotalTokens || behind != latest.TrailingBytes {
				t.Errorf("%s: latest prompt of %v, %d bytes behind it", c.Name, size, behind)
			}
		}
		delete(want.Aggregate, "contextUsage")
		if d := cmp.Diff(want.Aggregate, got); d != "" && len(got)+len(want.Aggregate) > 0 {
			t.Errorf("%s: %s", c.Name, d)
		}
	}
	if n == 0 {
		t.Fatal("no cases")
	}
}

// S13: rows that were copied into archives and forks count once.
func TestTotalsCountCopiesOnce(t *testing.T) {
	row := `{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","provider":"p","model":"m","content":[],"usage":{"input":10,"output":2,"cost":{"total":0.5}}}}`
	s := lines(head, line("a", "null", "user", "hi"), row)
	var totals Totals
	for range 3 {
		if err := (&Scanner{}).Read(strings.NewReader(s), func(r *Row) error {
			totals.Add(&r.Entry)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if u := totals.Usage; totals.Answers != 1 || totals.Repeats != 4 || u.Input.N != 10 || u.Cost.N != 0.5 {
		t.Errorf("%+v", totals)
	}
}

func TestGather(t *testing.T) {
	s := lines(head, line("a", "null", "user", "1"), line("b", "a", "assistant", "2"), line("c", "a", "user", "3"))
	tree, _ := scan(t, s)
	branch, _ := tree.Branch()
	load, err := Gather(branch, func(row func(*Row) error) error { return (&Scanner{}).Read(strings.NewReader(s), row) })
	if err != nil {
		t.Fatal(err)
	}
	c, err := tree.Context(load)
	if err != nil || len(c.Messages) != 2 || c.Messages[1].Line != 4 {
		t.Errorf("%+v %v", c, err)
	}
	if _, err := load(Place{Line: 3}); err == nil {
		t.Error("a row that is not on the branch was there")
	}
}
