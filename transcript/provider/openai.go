package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// OpenAI is an endpoint that takes chat completions as OpenAI's does: Ollama, llama.cpp and many others do too.
type OpenAI struct {
	Base    string // without /chat/completions: http://127.0.0.1:11434/v1
	Model   string
	Key     string // "" for none; it is never part of an error
	Timeout time.Duration
	Client  *http.Client // nil for one of its own, which follows no redirect
}

// Name is "openai" and the address.
func (o OpenAI) Name() string { return "openai " + Address(o.Base) }

// Address is an address without what may be secret in it: the name and password of a user, and the values of a query.
func Address(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return "***"
	}
	if u.User != nil {
		u.User = url.User("***")
	}
	query := u.Query()
	for name := range query {
		query.Set(name, "***")
	}
	u.RawQuery = query.Encode()
	return strings.ReplaceAll(u.String(), "%2A%2A%2A", "***")
}

// Summarize asks the endpoint once.
func (o OpenAI) Summarize(ctx context.Context, r Request) (string, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	body, err := json.Marshal(struct {
		Model     string    `json:"model"`
		Messages  []message `json:"messages"`
		MaxTokens int       `json:"max_tokens,omitempty"`
		Stream    bool      `json:"stream"`
	}{o.Model, []message{{"system", r.Instructions}, {"user", Prompt(r)}}, r.MaxTokens, false})
	if err != nil {
		return "", err
	}
	outer := ctx
	if o.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("it did not answer within %s", o.Timeout))
		defer stop()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.endpoint(), bytes.NewReader(body))
	if err != nil {
		return "", errors.New("its address is none")
	}
	req.Header.Set("Content-Type", "application/json")
	if o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+o.Key)
	}
	client := o.Client
	if client == nil {
		client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	said, status, err := answer(client, req)
	switch {
	case outer.Err() != nil:
		return "", context.Cause(outer)
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", err
	}
	var a struct {
		Choices []struct {
			Message struct{ Content string } `json:"message"`
		} `json:"choices"`
		Error json.RawMessage `json:"error"`
	}
	parse := json.Unmarshal(said, &a)
	switch {
	case status != http.StatusOK && parse == nil && a.Error != nil:
		return "", fmt.Errorf("status %d: %s", status, why(a.Error))
	case status != http.StatusOK:
		return "", fmt.Errorf("status %d", status)
	case parse != nil:
		return "", errors.New("its answer is not the JSON of a chat completion")
	case len(a.Choices) == 0:
		return "", ErrNothing
	}
	return strings.TrimSpace(a.Choices[0].Message.Content), nil
}

// endpoint is where completions are asked for; a query of the address stays.
func (o OpenAI) endpoint() string {
	base, query, has := strings.Cut(o.Base, "?")
	base = strings.TrimRight(base, "/") + "/chat/completions"
	if has {
		base += "?" + query
	}
	return base
}

func answer(client *http.Client, req *http.Request) (said []byte, status int, err error) {
	resp, err := client.Do(req)
	var asked *url.Error
	if errors.As(err, &asked) { // which repeats the address
		err = asked.Err
	}
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	// The JSON around a summary, and its escapes, may make it six times as long.
	said, err = io.ReadAll(io.LimitReader(resp.Body, 6*maxSummary+1))
	if err == nil && len(said) > 6*maxSummary {
		err = ErrTooLong
	}
	return said, resp.StatusCode, err
}

// why is the text of an error in either of its usual forms, cut to a line.
func why(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		var obj struct{ Message string }
		_ = json.Unmarshal(raw, &obj)
		text = obj.Message
	}
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + " ..."
	}
	if text == "" {
		return "without a reason"
	}
	return text
}

// Prompt is a request as one text: the earlier summary and the conversation, each between marks of its own.
func Prompt(r Request) string {
	var b strings.Builder
	if r.Previous != "" {
		fmt.Fprintf(&b, "<earlier-summary>\n%s\n</earlier-summary>\n\n", r.Previous)
	}
	fmt.Fprintf(&b, "<conversation>\n%s\n</conversation>", Text(r.Conversation))
	return b.String()
}
