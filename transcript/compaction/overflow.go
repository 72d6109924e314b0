package compaction

import (
	"regexp"
	"strconv"
	"strings"

	"oc/store/lazy"
)

// An Overflow is what the text of a provider's error says about the size of a prompt. OpenClaw recognises it in layers that do
// not agree (spec/transcript.md 3.9, release 2026.7.35): what it recovers from, what its runtime compacts on, and what it says
// outright.
type Overflow struct {
	Explicit  bool // the text is known to mean it
	Recovers  bool // OpenClaw compacts and tries again
	Runtime   bool // the runtime below takes it for one
	Compacted bool // the compaction itself failed of it
	Tokens    int  // how many tokens the text says were sent; 0 for none
}

// ReadOverflow reads the text of an error.
func ReadOverflow(text string) Overflow {
	low := strings.ToLower(text)
	o := Overflow{Explicit: explicit(low), Runtime: runtime(text, low), Tokens: observed(low)}
	o.Recovers = o.likely(low)
	o.Compacted = anyOf(low, "compaction failed", "summarization failed", "auto-compaction failed") && (o.Recovers || strings.Contains(low, "context overflow"))
	return o
}

func anyOf(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

func allOf(s string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

var (
	perMinute = lazy.Regexp(`\btpm\b|tokens per min`)
	reasoning = lazy.Regexp(`reasoning.*(mandatory|required|cannot be disabled)`)
	billing   = lazy.Regexp(`\b402\b|payment required|insufficient (credits?|quota|balance)|credit balance|extra usage|spend(ing)? limit|billing`)
	tooSmall  = lazy.Regexp(`context window.*(too small|minimum is)`)
	rated     = lazy.Regexp(`rate.?limit|too many requests|\b429\b|quota exceeded|exceeded your current quota|throttl|usage limit|请求过于频繁|频率限制`)

	configured = lazy.Regexp(`prompt has [\d,]+ tokens, but the configured context size is [\d,]+ tokens`)
	totals     = lazy.Regexp(`total tokens?.*exceeds?.*(max|limit)`)
	available  = lazy.Regexp(`(request|prompt) \([\d,]+ tokens\) exceeds the available context size`)

	hints = lazy.Regexp(`context.*overflow|context window.*(too (large|long)|exceed|over|limit|max|requested|sent|tokens)|prompt.*(too (large|long)|exceed|over|limit|max)|` +
		`(request|input).*(context|window|length|token).*(too (large|long)|exceed|over|limit|max)`)

	ofRuntime = lazy.Regexp(`prompt is too long|request_too_large|input is too long for requested model|exceeds the context window|exceeds.*maximum context length of [\d,]+|` +
		`input token count.*exceeds the maximum|maximum prompt length is \d+|reduce the length of the messages|maximum context length is \d+ tokens|input \(\d+ tokens\) is longer than|` +
		`exceeds the limit of \d+|exceeds the available context size|greater than the context length|context window exceeds limit|exceeded model token limit|` +
		`too large for model with \d+|model_context_window_exceeded|prompt too long; exceeded (max )?context length|context[_ ]length[_ ]exceeded|too many tokens|token limit exceeded|` +
		`^4(00|13)\s*(status code)?\s*\(no body\)`)
	notRuntime = lazy.Regexp(`^(throttling error|service unavailable):|rate limit|too many requests`)

	counts = []func() *regexp.Regexp{
		lazy.Regexp(`input length(?: and .?max_tokens.?)? exceed context (?:limit|window).*\(i\.e\.? ([\d,]+) \+ ([\d,]+) >`),
		lazy.Regexp(`prompt is too long:? ([\d,]+) tokens > [\d,]+ maximum`),
		lazy.Regexp(`prompt is too long:? ([\d,]+), model maximum context length`),
		lazy.Regexp(`token limit: [\d,]+ \(requested: ([\d,]+)\)`),
		lazy.Regexp(`requested ([\d,]+) tokens`),
		lazy.Regexp(`resulted in ([\d,]+) tokens`),
	}
)

// explicit are the texts that are known to mean it.
func explicit(low string) bool {
	switch {
	case anyOf(low, "request_too_large", "request exceeds the maximum size", "context length exceeded", "maximum context length", "prompt is too long", "prompt too long",
		"exceeds model context window", "model token limit", "context overflow:", "exceed context limit", "exceeds the model's maximum context", "context_window_exceeded",
		"上下文过长", "上下文超出", "上下文长度超", "超出最大上下文", "请压缩上下文",
		"input token count exceeds the maximum number of input tokens", "input is too long for this model", "input is too long for the model", "input too long for this model", "input too long for the model",
		"input exceeds the maximum number of tokens", "total token count exceeds"),
		configured().MatchString(low), totals().MatchString(low), available().MatchString(low),
		allOf(low, "invalid_argument", "maximum number of tokens"),
		strings.Contains(low, "input exceeds") && strings.Contains(low, "maximum number of tokens"),
		anyOf(low, "context window", "context length") && (anyOf(low, "ran out of room", "ran out of space") || strings.Contains(low, "request size exceeds")),
		allOf(low, "max_tokens", "exceed", "context"),
		allOf(low, "input length", "exceed", "context"),
		strings.Contains(low, "413") && anyOf(low, "too large"):
		return true
	}
	return false
}

// likely is what OpenClaw recovers from.
func (o Overflow) likely(low string) bool {
	if perMinute().MatchString(low) || reasoning().MatchString(low) || billing().MatchString(low) || tooSmall().MatchString(low) || rated().MatchString(low) {
		return false
	}
	return o.Explicit || hints().MatchString(low)
}

func runtime(text, low string) bool {
	low = strings.TrimSpace(low)
	return !notRuntime().MatchString(low) && ofRuntime().MatchString(low)
}

// observed is the number of tokens that a text says were sent.
func observed(low string) int {
	for _, re := range counts {
		m := re().FindStringSubmatch(low)
		if m == nil {
			continue
		}
		n := 0
		for _, part := range m[1:] {
			v, err := strconv.Atoi(strings.ReplaceAll(part, ",", ""))
			if err != nil {
				return 0
			}
			n += v
		}
		return max(n, 0)
	}
	return 0
}
