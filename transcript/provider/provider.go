// Package provider knows who writes a summary of a conversation: a command, an HTTP endpoint that speaks as OpenAI's does, or no
// model at all.
//
// None of them is trusted: each has a bound of time and size, and what comes back is plain text that somebody else judges. Nothing is
// sent anywhere but to the command or the address that was given.
package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// A Turn is one message of a conversation, or a part of one, as text.
type Turn struct {
	Role string `json:"role"` // user, assistant, thinking, calls, tool or summary
	Text string `json:"text"`
}

// Summary is the role of a summary that is to be merged with others: a line that says which part of the conversation it is of, and the
// summary.
const Summary = "summary"

var labels = map[string]string{
	"user": "User", "assistant": "Assistant", "thinking": "Assistant thinking", "calls": "Assistant tool calls", "tool": "Tool result", Summary: "Summary",
}

// Text is a conversation as one text: what OpenClaw's summariser gets to read (spec/transcript.md 3.3).
func Text(conversation []Turn) string {
	var b strings.Builder
	for i, t := range conversation {
		if i > 0 {
			b.WriteString("\n\n")
		}
		fmt.Fprintf(&b, "[%s]: %s", labels[t.Role], t.Text)
	}
	return b.String()
}

// A Request asks for a summary.
type Request struct {
	Instructions string `json:"instructions"`
	Previous     string `json:"previousSummary,omitempty"` // of what came before; "" for none
	Conversation []Turn `json:"conversation"`
	MaxTokens    int    `json:"maxTokens"` // of the summary
}

// A Provider writes summaries. Its errors say which provider failed and why.
type Provider interface {
	Name() string
	Summarize(ctx context.Context, r Request) (string, error)
}

// maxSummary is how much of an answer is read. OpenClaw keeps 16,000 characters of a summary.
const maxSummary = 256 << 10

// ErrNothing is the answer of a provider that has nothing to say.
var ErrNothing = errors.New("it answered nothing")

// ErrTooLong is the answer of a provider that does not end.
var ErrTooLong = fmt.Errorf("its answer is longer than %d KiB", maxSummary>>10)

// A Chain asks one provider after the other, until one answers. What the others said is told to Failed. Where ctx ends, the chain does
// too: a user who gives up wants no other provider.
type Chain struct {
	Providers []Provider
	Failed    func(p Provider, err error) // may be nil
}

// Summarize gives the first answer, and who gave it. The error is that of ctx, or of the last provider.
func (c Chain) Summarize(ctx context.Context, r Request) (summary string, by Provider, err error) {
	err = errors.New("no provider was given")
	for _, p := range c.Providers {
		if summary, err = p.Summarize(ctx, r); err == nil && strings.TrimSpace(summary) == "" {
			err = ErrNothing
		}
		if err == nil {
			return summary, p, nil
		}
		err = fmt.Errorf("%s: %w", p.Name(), err)
		if ctx.Err() != nil {
			return "", nil, context.Cause(ctx)
		}
		if c.Failed != nil {
			c.Failed(p, err)
		}
	}
	return "", nil, err
}
