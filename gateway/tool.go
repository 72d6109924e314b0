package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"

	"oc/store/span"
)

// InvokeTool calls a tool over HTTP, on the port of the gateway (spec/gateway.md
// 4, releases 2026.7.35 and 2026.9.6), for what no method does. The result is
// the tool's own details. A shared secret makes oc the owner there; scopes do
// not count. ctx bounds it. The error is an *Error, with Sent as in Conn.Call.
func InvokeTool(ctx context.Context, o Options, t Tool) (json.RawMessage, error) {
	d := &dialing{Options: o, host: host(o.Target.URL)}
	e := d.penniless()
	var details json.RawMessage
	if o.Credentials.Problem == "" {
		details, e = d.invoke(ctx, t)
	}
	if e != nil {
		e.Doing, e.Host = "call the tool "+t.Name+" on", d.host
		return nil, e
	}
	return details, nil
}

func (d *dialing) invoke(ctx context.Context, t Tool) (json.RawMessage, *Error) {
	address, err := url.Parse(d.Target.URL)
	if err != nil {
		return nil, &Error{Fault: Unreachable, Says: "the address is not a URL"}
	}
	address.Scheme = map[string]string{"ws": "http", "wss": "https"}[address.Scheme]
	address.Path, address.RawQuery, address.User = "/tools/invoke", "", nil
	body, err := json.Marshal(struct {
		Tool string         `json:"tool"`
		Args map[string]any `json:"args"`
		Key  string         `json:"sessionKey,omitempty"`
		For  string         `json:"agentId,omitempty"`
		Once string         `json:"idempotencyKey,omitempty"`
	}{t.Name, orEmpty(t.Args), t.Key, t.Agent, t.IdempotencyKey})
	if err != nil {
		return nil, &Error{Fault: Failed, Says: said(err.Error(), d.secrets()...)}
	}
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(body))
	if err != nil {
		return nil, &Error{Fault: Unreachable, Says: "the address is not a URL"}
	}
	request.GetBody = nil // never sent twice
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "oc/"+d.Version)
	secret := d.Credentials.Token
	if secret == "" {
		secret = d.Credentials.Password
	}
	if secret != "" {
		request.Header.Set("Authorization", "Bearer "+string(secret))
	}
	response, err := d.client().Do(request)
	if err != nil {
		e := d.unreachable(ctx, err)
		e.Sent = sent.Load()
		return nil, e
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(answer) > maxAnswer {
		err = errOversize
	}
	if err != nil {
		e := explain(ctx, err, d.secrets())
		e.Sent = true
		return nil, e
	}
	return d.toolAnswer(response.StatusCode, answer, t)
}

// toolAnswer reads what came back; any bytes will do.
func (d *dialing) toolAnswer(status int, answer []byte, t Tool) (json.RawMessage, *Error) {
	answer = bytes.TrimSpace(answer)
	if span.Valid(answer) != nil || span.KindOf(answer) != span.Object {
		e := &Error{Fault: Strange, Status: status, Says: "HTTP status " + http.StatusText(status)}
		if status < 400 {
			e.Sent = true // something took the request
		}
		return nil, e
	}
	if status == http.StatusOK && string(span.Member(answer, "ok")) == "true" {
		if details := span.Path(answer, "result", "details"); details != nil {
			return details, nil
		}
		return span.Member(answer, "result"), nil
	}
	e := &Error{Fault: Failed, Status: status, Code: said(textAt(answer, "error", "type"), d.secrets()...), Says: said(textAt(answer, "error", "message"), d.secrets()...)}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Fault = Denied
	case http.StatusNotFound:
		e.Fault = ToolDenied
	case http.StatusServiceUnavailable:
		e.Fault = Starting
	case http.StatusTooManyRequests:
		e.Fault, e.Detail = Denied, "AUTH_RATE_LIMITED"
	}
	return nil, e
}

// toolOutput is what tools.invoke came back with: its own error is a failure
// too, else the tool's details.
func (c *Conn) toolOutput(payload json.RawMessage) (json.RawMessage, *Error) {
	if string(span.Member(payload, "ok")) == "true" {
		if details := span.Path(payload, "output", "details"); details != nil {
			return details, nil
		}
		return span.Member(payload, "output"), nil
	}
	e := failure(span.Member(payload, "error"), c.secrets)
	if e.Code == "not_found" {
		e.Fault = ToolDenied
	}
	return nil, e
}

func orEmpty(args map[string]any) map[string]any {
	if args == nil {
		return map[string]any{}
	}
	return args
}

// unreachable is why there was no exchange over HTTP.
func (d *dialing) unreachable(ctx context.Context, err error) *Error {
	e := explain(ctx, err, d.secrets())
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
	case !d.connected.Load() && refused(err):
		e.Fault = NoListener
	case !d.connected.Load():
		if e.Fault == Silent {
			e.Says = "none came about in the time that it was given"
		}
		e.Fault = Unreachable
	}
	return e
}
