package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// Conn is a connection to a gateway. Its methods may be called from several
// goroutines; answers may come in any order.
type Conn struct {
	Hello Hello

	ws      *websocket.Conn
	wire    io.Closer // what ws speaks over
	host    string
	secrets []Secret
	events  func(Event)

	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // nothing is read any more; ended says why
	ended  *Error

	closing atomic.Bool

	mu    sync.Mutex
	last  int // number of the last request
	waits map[string]chan frame
}

func newConn(ws *websocket.Conn, wire io.Closer, hello Hello, host string, secrets []Secret, events func(Event)) *Conn {
	ws.SetReadLimit(maxSkipped)
	c := &Conn{Hello: hello, ws: ws, wire: wire, host: host, secrets: secrets, events: events, last: 1, waits: map[string]chan frame{}, done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	go c.read()
	return c
}

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err says why the connection has ended; nil while it has not, and after Close.
func (c *Conn) Err() error {
	select {
	case <-c.done:
		if c.ended != nil {
			e := *c.ended
			e.Doing, e.Host = "hear from", c.host
			return &e
		}
	default:
	}
	return nil
}

// Close says goodbye and ends the connection, without waiting for an answer.
func (c *Conn) Close() error {
	c.closing.Store(true)
	// The goodbye is said at once; that it is answered is worth no wait, and a
	// gateway that goes on talking would be listened to for seconds.
	impatient := time.AfterFunc(2*time.Millisecond, func() {
		c.cancel()
		_ = c.wire.Close()
	})
	_ = c.ws.Close(websocket.StatusNormalClosure, "")
	impatient.Stop()
	c.cancel()
	<-c.done
	return nil
}

// Call asks the gateway to do something and waits for its answer until ctx
// ends. params are marshalled as JSON; nil leaves them out. The request is sent
// at most once, whatever happens. The error is an *Error: its Sent says that the
// request had gone out without an answer.
func (c *Conn) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	payload, e := c.call(ctx, method, params)
	if e != nil {
		e.Doing, e.Host = "call "+method+" on", c.host
		return nil, e
	}
	return payload, nil
}

func (c *Conn) call(ctx context.Context, method string, params any) (json.RawMessage, *Error) {
	id, answer := c.expect()
	defer c.forget(id)
	request, err := encode(id, method, params)
	if err != nil {
		return nil, &Error{Fault: Failed, Says: said(err.Error(), c.secrets...), Err: err}
	}
	if limit := c.Hello.MaxPayload; limit > 0 && len(request) > limit {
		return nil, &Error{Fault: Failed, Says: fmt.Sprintf("the request has %d bytes and the gateway takes %d", len(request), limit)}
	}
	if err := ctx.Err(); err != nil {
		return nil, explain(ctx, err, c.secrets)
	}
	select {
	case <-c.done:
		return nil, c.lost(false)
	default:
	}
	// From here on the gateway may have it, whatever the error says.
	if err := c.ws.Write(ctx, websocket.MessageText, request); err != nil {
		e := explain(ctx, err, c.secrets)
		e.Sent = true
		return nil, e
	}
	select {
	case f := <-answer:
		return c.weigh(f)
	case <-ctx.Done():
		e := explain(ctx, ctx.Err(), c.secrets)
		e.Sent = true
		return nil, e
	case <-c.done:
		select {
		case f := <-answer: // it came just before the end
			return c.weigh(f)
		default:
			return nil, c.lost(true)
		}
	}
}

// weigh tells an answer from an error.
func (c *Conn) weigh(f frame) (json.RawMessage, *Error) {
	if f.ok {
		return f.payload, nil
	}
	e := failure(f.failure, c.secrets)
	switch {
	case strings.HasPrefix(e.Says, "unknown method"), strings.Contains(e.Says, "unexpected property"):
		e.Fault = Unsupported
	case e.Code == "FORBIDDEN" || strings.HasPrefix(e.Says, "missing scope"):
		e.Fault, e.Detail = Denied, "MISSING_SCOPE"
	}
	return nil, e
}

// lost is the end of the connection as a call sees it.
func (c *Conn) lost(sent bool) *Error {
	e := Error{Fault: HungUp, Says: "oc had closed it"}
	if c.ended != nil {
		e = *c.ended
	}
	e.Sent = sent
	return &e
}

func (c *Conn) expect() (id string, answer chan frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	id, answer = strconv.Itoa(c.last), make(chan frame, 1)
	c.waits[id] = answer
	return id, answer
}

func (c *Conn) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waits, id)
}

// read takes frames until the connection ends.
func (c *Conn) read() {
	defer close(c.done)
	defer c.cancel()
	var silent atomic.Bool
	seen := func() {}
	if c.Hello.Tick > 0 {
		patience := max(c.Hello.Tick, time.Second) * 5 / 2
		watch := time.AfterFunc(patience, func() {
			silent.Store(true)
			c.cancel()
		})
		defer watch.Stop()
		seen = func() { watch.Reset(patience) }
	}
	switch err := c.take(seen); {
	case c.closing.Load():
	case silent.Load():
		c.ended = &Error{Fault: Silent, Says: "its regular sign of life did not come"}
	default:
		c.ended = explain(context.Background(), err, c.secrets)
	}
}

// take hands frames on: answers to whoever waits, events to Events. Answers that
// nobody waits for, and kinds of frames that oc does not know, are dropped.
func (c *Conn) take(seen func()) error {
	for {
		_, r, err := c.ws.Reader(c.ctx)
		if err != nil {
			return err
		}
		f, skipped, err := readFrame(r, maxAnswer, c.events != nil)
		if err != nil {
			return err
		}
		seen()
		switch {
		case skipped:
		case f.kind == "event":
			if c.events != nil {
				c.events(Event{f.event, f.payload})
			}
		case f.kind == "res":
			c.mu.Lock()
			if wait := c.waits[f.id]; wait != nil {
				delete(c.waits, f.id)
				wait <- f
			}
			c.mu.Unlock()
		}
	}
}

func encode(id, method string, params any) ([]byte, error) {
	raw, err := json.Marshal(struct {
		Type   string `json:"type"`
		ID     string `json:"id"`
		Method string `json:"method"`
		Params any    `json:"params,omitempty"`
	}{"req", id, method, params})
	if err != nil {
		return nil, err
	}
	// Go puts an escaped U+FFFD where a text is not Unicode: the gateway would
	// take it for another key.
	for at := 0; ; {
		i := bytes.Index(raw[at:], []byte(`\ufffd`))
		if i < 0 {
			return raw, nil
		}
		at += i
		if before := raw[:at]; (len(before)-len(bytes.TrimRight(before, `\`)))%2 == 0 {
			return nil, errors.New("the request holds text that is not Unicode, which a gateway cannot be told")
		}
		at++
	}
}
