package transcript

import (
	"bytes"
	"math"

	"oc/store/span"
	"oc/transcript/visible"
)

// A Count is a number of tokens or a sum of money that may be unknown.
type Count struct {
	N     float64
	Known bool
}

func (c *Count) add(d Count) {
	if d.Known {
		c.N, c.Known = c.N+d.N, true
	}
}

// Window is what a provider said about the context itself, apart from what it
// billed.
type Window uint8

const (
	WindowUnsaid  Window = iota
	WindowKnown          // Usage.Prompt and Usage.Context hold it
	WindowUnknown        // the provider says that it cannot be known
)

// Usage is what one answer cost in tokens, from any provider's spelling.
type Usage struct {
	Input, Output, CacheRead, CacheWrite, Reasoning, Total Count
	Window                                                 Window
	Prompt, Context                                        float64 // with WindowKnown: the prompt, and all
	Cost                                                   Count   // in US dollars, as recorded
}

// ParseUsage reads a raw usage object in the spellings of OpenClaw and of
// providers (spec/transcript.md 2.4). Negative counts are 0, fractions are cut;
// where cached tokens are a part of the prompt, Input is what is left of it. ok
// is false where it holds no count at all.
func ParseUsage(raw []byte) (u Usage, ok bool) {
	if span.KindOf(raw) != span.Object {
		return u, false
	}
	first := func(paths ...[]string) []byte {
		for _, p := range paths {
			if v := span.Path(raw, p...); span.KindOf(v) != span.Invalid && span.KindOf(v) != span.Null {
				return v
			}
		}
		return nil
	}
	has := func(p ...string) bool { return span.Path(raw, p...) != nil }
	inDetails, promptDetails := []string{"input_tokens_details", "cached_tokens"}, []string{"prompt_tokens_details", "cached_tokens"}
	u.CacheRead = count(first([]string{"cacheRead"}, []string{"cache_read"}, []string{"cache_read_input_tokens"},
		[]string{"cached_tokens"}, inDetails, promptDetails))
	input := first([]string{"input"}, []string{"inputTokens"}, []string{"input_tokens"}, []string{"promptTokens"},
		[]string{"prompt_tokens"}, []string{"prompt_n"}, []string{"timings", "prompt_n"})
	if f, ok := finite(input); ok {
		if u.CacheRead.Known && (has("cached_tokens") || has(inDetails...) || has(promptDetails...)) {
			f -= u.CacheRead.N
		}
		u.Input = Count{whole(f), true}
	}
	u.Output = count(first([]string{"output"}, []string{"outputTokens"}, []string{"output_tokens"},
		[]string{"completionTokens"}, []string{"completion_tokens"}, []string{"predicted_n"}, []string{"timings", "predicted_n"}))
	u.CacheWrite = count(first([]string{"cacheWrite"}, []string{"cache_write"}, []string{"cache_creation_input_tokens"}))
	u.Reasoning = count(first([]string{"reasoningTokens"}, []string{"reasoning_tokens"},
		[]string{"completion_tokens_details", "reasoning_tokens"}, []string{"output_tokens_details", "reasoning_tokens"}))
	u.Total = count(first([]string{"total"}, []string{"totalTokens"}, []string{"total_tokens"}))
	switch state, _ := span.Text(span.Path(raw, "contextUsage", "state")); state {
	case "unavailable":
		u.Window = WindowUnknown
	case "available":
		prompt, all := count(span.Path(raw, "contextUsage", "promptTokens")), count(span.Path(raw, "contextUsage", "totalTokens"))
		if prompt.Known && all.Known && all.N >= prompt.N {
			u.Window, u.Prompt, u.Context = WindowKnown, prompt.N, all.N
		}
	}
	if f, ok := finite(span.Path(raw, "cost", "total")); ok && f >= 0 {
		u.Cost = Count{f, true}
	}
	ok = u.Input.Known || u.Output.Known || u.CacheRead.Known || u.CacheWrite.Known || u.Reasoning.Known || u.Total.Known ||
		u.Window != WindowUnsaid
	return u, ok
}

func finite(raw []byte) (float64, bool) {
	f, ok := span.Float(raw)
	return f, ok && !math.IsInf(f, 0)
}

func whole(f float64) float64 { return math.Max(0, math.Min(math.Trunc(f), 1<<53-1)) }

func count(raw []byte) Count {
	f, ok := finite(raw)
	if !ok {
		return Count{}
	}
	return Count{whole(f), true}
}

// Used tells whether any count is more than zero, or the provider says that
// nothing can be known.
func (u Usage) Used() bool {
	for _, c := range [...]float64{u.Input.N, u.Output.N, u.CacheRead.N, u.CacheWrite.N, u.Reasoning.N, u.Total.N, u.Prompt, u.Context} {
		if c > 0 {
			return true
		}
	}
	return u.Window == WindowUnknown
}

// PromptSize is how many tokens the prompt had, which is what OpenClaw keeps as
// totalTokens of a session; ok is false where that is not known.
func (u Usage) PromptSize() (float64, bool) {
	switch u.Window {
	case WindowUnknown:
		return 0, false
	case WindowKnown:
		return u.Prompt, u.Prompt > 0
	}
	if sum := u.Input.N + u.CacheRead.N + u.CacheWrite.N; sum > 0 {
		return sum, true
	}
	if u.Total.N > 0 && u.Output.Known && u.Total.N > u.Output.N {
		return u.Total.N - u.Output.N, true
	}
	return 0, false
}

// An Answer is what a row tells about the model's work.
type Answer struct {
	Usage           Usage
	HasUsage        bool
	Provider, Model string // "" for rows that only mirror a delivery
	Mirror          bool   // a copy of what was delivered, made without a model
	Time            int64  // epoch ms, 0 if it is not known
	Silent          bool   // it only steers OpenClaw, as NO_REPLY does: nobody was shown anything
}

// ReadAnswer reads the answer in an entry; ok is false where the entry is none:
// no assistant's message, or one that says nothing about model and cost.
func ReadAnswer(e *Entry) (a Answer, ok bool) {
	if span.KindOf(e.Message) != span.Object {
		return a, false
	}
	if role, isText := span.Text(span.Member(e.Message, "role")); isText && role != "" && role != "assistant" {
		return a, false
	}
	raw := span.Member(e.Message, "usage")
	if span.KindOf(raw) != span.Object {
		raw = span.Member(e.Raw, "usage")
	}
	a.Usage, a.HasUsage = ParseUsage(raw)
	a.Provider, a.Model = identity(e)
	a.Time, _ = e.Time()
	a.Mirror = a.Provider == "openclaw" && a.Model == "delivery-mirror"
	_, sized := a.Usage.PromptSize()
	meaningful := a.HasUsage && a.Usage.Used() || sized || a.Usage.Cost.Known
	if !meaningful && (a.Mirror || a.Provider == "" && a.Model == "") {
		return a, false
	}
	if a.Mirror {
		a.Provider, a.Model = "", ""
	}
	a.Silent = steers(e.Message)
	return a, true
}

// steers tells whether all that an assistant's message says is one control
// answer (spec/transcript.md 5). Thoughts do not count; a call, an image or a
// second text does.
func steers(message []byte) bool {
	control := func(raw []byte) bool {
		// Most texts are decoded for nothing else, and none without a low line is one.
		if bytes.IndexByte(raw, '_') < 0 && !bytes.Contains(raw, []byte("u005")) {
			return false
		}
		s, ok := span.Text(raw)
		return ok && visible.Control(s)
	}
	content := span.Member(message, "content")
	if span.KindOf(content) == span.String {
		return control(content)
	}
	texts, other := 0, false
	_, _ = span.Items(content, 0, func(block []byte) error {
		switch kind, _ := span.Text(span.Member(block, "type")); kind {
		case "thinking", "reasoning", "redacted_thinking":
		case "text", "input_text", "output_text":
			texts++
			other = other || !control(span.Member(block, "text"))
		default:
			other = true
		}
		if other {
			return ErrStop
		}
		return nil
	})
	return texts == 1 && !other
}

func identity(e *Entry) (provider, model string) {
	read := func(name string) string {
		s, ok := span.Text(span.Member(e.Message, name))
		if !ok {
			s, _ = span.Text(span.Member(e.Raw, name))
		}
		return visible.Trim(s)
	}
	return read("provider"), read("model")
}

// Totals add up the answers of a conversation, each entry once: rows that were
// copied into archives and forks keep their ids. The zero Totals is empty.
type Totals struct {
	Usage   Usage // sums; Total, Window, Prompt and Context are those of the last answer
	Answers int
	Repeats int // entries that had been counted before

	Provider, Model string  // of the last answer that names them
	Size            float64 // tokens of the last prompt that is known; 0 if none is
	Estimated       bool    // Size was guessed from the length of the texts

	seen       map[string]bool
	chars      int
	identified bool
}

// Add counts an entry unless one with its id was counted.
func (t *Totals) Add(e *Entry) {
	if e.ID != nil {
		if t.seen[string(e.ID)] {
			t.Repeats++
			return
		}
	}
	counted := t.estimate(e)
	a, ok := ReadAnswer(e)
	if (ok || counted) && e.ID != nil {
		if t.seen == nil {
			t.seen = map[string]bool{}
		}
		t.seen[string(e.ID)] = true
	}
	if !ok {
		return
	}
	t.Answers++
	if a.Provider != "" {
		t.Provider = a.Provider
	}
	if a.Model != "" {
		t.Model = a.Model
	}
	u := &t.Usage
	u.Input.add(a.Usage.Input)
	u.Output.add(a.Usage.Output)
	u.CacheRead.add(a.Usage.CacheRead)
	u.CacheWrite.add(a.Usage.CacheWrite)
	u.Reasoning.add(a.Usage.Reasoning)
	u.Cost.add(a.Usage.Cost)
	u.Window, u.Prompt, u.Context, u.Total = a.Usage.Window, a.Usage.Prompt, a.Usage.Context, a.Usage.Total
	if a.Usage.Window == WindowUnknown {
		t.Size = 0
	} else if n, ok := a.Usage.PromptSize(); ok {
		t.Size = n
	}
}

// estimate keeps the length of what users and assistants said.
func (t *Totals) estimate(e *Entry) bool {
	role := Role(e.Message)
	if role != "user" && role != "assistant" {
		return false
	}
	provider, model := identity(e)
	if role == "assistant" && provider == "openclaw" && model == "delivery-mirror" {
		return false
	}
	chars := 0
	content := span.Member(e.Message, "content")
	said := func(raw []byte) {
		s, _ := span.Text(raw)
		chars += Chars(visible.Trim(visible.Undirect(s)))
	}
	if span.KindOf(content) == span.String {
		said(content)
	}
	_, _ = span.Items(content, 0, func(block []byte) error {
		kind, ok := span.Text(span.Member(block, "type"))
		if !ok || kind == "text" || kind == "output_text" || kind == "input_text" {
			said(span.Member(block, "text"))
		}
		return nil
	})
	if chars == 0 {
		return false
	}
	t.chars += chars
	t.identified = t.identified || role == "assistant" && (provider != "" || model != "")
	return true
}

// Finish fills in Size from the length of the texts if no answer told it.
func (t *Totals) Finish() {
	if t.Answers > 0 && t.Size == 0 && t.identified {
		t.Size, t.Estimated = float64(per(t.chars, 4)), true
	}
}

// Latest is the newest of entries, oldest first, that tells about usage, and
// how many bytes of entries stand behind it (spec/transcript.md 2.5). ok is
// false if none does.
func Latest(entries []Entry) (a Answer, behind int64, ok bool) {
	for i := len(entries) - 1; i >= 0; i-- {
		a, said := ReadAnswer(&entries[i])
		_, sized := a.Usage.PromptSize()
		u := a.Usage
		if said && (u.Window != WindowUnsaid || u.Input.Known || u.Output.Known || u.CacheRead.Known || u.CacheWrite.Known ||
			u.Cost.Known || sized) {
			return a, behind, true
		}
		behind += int64(len(entries[i].Raw)) + 1
	}
	return Answer{}, 0, false
}
