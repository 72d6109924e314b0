package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oc/config"
	"oc/gateway"
	"oc/store"
	"oc/store/lock"
	"oc/store/row"
	"oc/store/span"
)

// liveExits are the statuses of what only a gateway can do.
var liveExits = []int{ExitBusy, ExitRefused}

// speakerFlag names the session that oc speaks for.
var speakerFlag = Flag{Name: "as", Value: "KEY", Takes: "the key of a session", Check: isSomething, Help: "the session that asks; else OC_SESSION, else the main session of the gateway's default agent"}

// live is the gateway of this state, to which a command speaks.
type live struct {
	*gateway.Conn
	call    *Call
	cfg     *config.Config
	options gateway.Options
}

// live connects to the gateway of this state with the scopes; the caller closes it. events is called for what the gateway tells unasked,
// and may be nil.
func (c *Call) live(ctx context.Context, cfg *config.Config, events func(gateway.Event), scopes ...string) (*live, error) {
	o, err := c.gateway(cfg, scopes...)
	if err != nil {
		return nil, err
	}
	o.Events = events
	conn, met, err := gateway.Meet(ctx, c.where(cfg), lock.Local(), c.Now(), o)
	if err != nil {
		return nil, gatewayError(err)
	}
	c.Tracef("the gateway at %s (%s), %s, lets oc in", met.Target.URL, met.Target.Source, conn.Hello.Version)
	return &live{Conn: conn, call: c, cfg: cfg, options: met}, nil
}

// connect is live where nothing is asked of the configuration before.
func (c *Call) connect(ctx context.Context, scopes ...string) (*live, error) {
	cfg, err := c.load()
	if err != nil {
		return nil, err
	}
	return c.live(ctx, cfg, nil, scopes...)
}

// do calls a method that answers at once.
func (g *live) do(ctx context.Context, r gateway.Request) (json.RawMessage, error) {
	ctx, stop := context.WithTimeout(ctx, g.call.budget(g.cfg))
	defer stop()
	got, err := g.Do(ctx, r)
	if err != nil {
		return nil, gatewayError(err)
	}
	return got, nil
}

// tool calls a tool, which may work for as long as patience beside the time that a gateway has anyway. What the tool itself refused or
// failed at is in its answer.
func (g *live) tool(ctx context.Context, t gateway.Tool, patience time.Duration) (json.RawMessage, error) {
	ctx, stop := context.WithTimeout(ctx, patience+g.call.budget(g.cfg))
	defer stop()
	got, err := gateway.InvokeTool(ctx, g.options, t)
	if err != nil {
		return nil, gatewayError(err)
	}
	if span.KindOf(got) != span.Object {
		return nil, Failf("the tool %s of the gateway at %s gave an answer that is no JSON object", t.Name, g.host())
	}
	return got, nil
}

// slack is what some calls may need beyond the time that a gateway has anyway; --gateway-timeout says how much time there is in all.
func (g *live) slack(d time.Duration) time.Duration {
	if g.call.Given("gateway-timeout") {
		return 0
	}
	return d
}

// speaker is the session that asks, by its key. One that does not exist would have others told of a sender whom they cannot answer, so only an
// agent's main session may be missing.
func (g *live) speaker(ctx context.Context) (string, error) {
	word := cmp.Or(strings.TrimSpace(g.call.String("as")), strings.TrimSpace(g.call.Env("OC_SESSION")))
	if word == "" {
		return cmp.Or(g.Hello.MainSession, store.StoredKey(g.cfg, g.cfg.DefaultAgent(), "main")), nil
	}
	key, there, err := g.find(ctx, word, "")
	if err != nil || there {
		return key, err
	}
	agent, _, _ := row.Parse(key)
	if _, configured := g.cfg.Agent(agent); g.isMain(key) && (configured || agent == g.Hello.DefaultAgent) {
		return key, nil
	}
	return "", &Error{Exit: ExitFailed, Code: "not-found", Err: fmt.Errorf("the session that asks is not there: %w", g.noSession(word))}
}

// key is a word in the form of a key: one without an agent belongs to the one named, else to the gateway's default agent.
func (g *live) key(word, agent string) string {
	if _, _, ok := row.Parse(word); ok {
		return word
	}
	agent = cmp.Or(agent, g.Hello.DefaultAgent, g.cfg.DefaultAgent())
	return store.StoredKey(g.cfg, agent, word)
}

// find asks the gateway which session a word means: a key, a session id or a label, in this order. Where it knows none, ok is false and
// the key is the one that the word would be.
func (g *live) find(ctx context.Context, word, agent string) (key string, ok bool, err error) {
	word = strings.TrimSpace(word)
	for _, r := range []gateway.Resolve{{Key: g.key(word, agent)}, {SessionID: word, Agent: agent}, {Label: word, Agent: agent}} {
		if len(r.Label) > 512 {
			continue
		}
		r.AllowMissing = true
		got, err := g.do(ctx, r)
		switch {
		case ctx.Err() != nil:
			return "", false, err
		case several(err):
			return "", false, Usagef("%w; give the key of one", err)
		case err != nil && !missing(err):
			return "", false, err
		}
		if key, _ := span.Text(span.Member(got, "key")); err == nil && key != "" && string(span.Member(got, "ok")) != "false" {
			return key, true, nil
		}
	}
	return g.key(word, agent), false, nil
}

// missing tells an answer that there is no such session from other errors, and several one that a word means more than one.
func missing(err error) bool { return gatewaySays(err, "no session found") }

func several(err error) bool {
	return gatewaySays(err, "multiple sessions") || gatewaySays(err, "ambiguous")
}

func gatewaySays(err error, text string) bool {
	var failed *gateway.Error
	return errors.As(err, &failed) && failed.Fault == gateway.Failed && strings.Contains(strings.ToLower(failed.Says), text)
}

// session is find, and an error where there is no such session.
func (g *live) session(ctx context.Context, word, agent string) (string, error) {
	key, ok, err := g.find(ctx, word, agent)
	if err == nil && !ok {
		err = g.noSession(word)
	}
	return key, err
}

func (g *live) noSession(word string) error {
	return &Error{Exit: ExitFailed, Code: "not-found", Err: fmt.Errorf("the gateway at %s has no session %q: oc sessions --all-agents lists those that there are", g.host(), word)}
}

// isMain tells the main session of an agent, which OpenClaw makes when somebody speaks to it.
func (g *live) isMain(key string) bool {
	agent, _, ok := row.Parse(key)
	return ok && (key == g.Hello.MainSession || key == store.StoredKey(g.cfg, agent, "main"))
}

func (g *live) host() string {
	return strings.TrimPrefix(strings.TrimPrefix(g.options.Target.URL, "wss://"), "ws://")
}

// print writes which way an answer came.
func (g *live) print(p *span.Printer) {
	p.Key("via").String("gateway")
	p.Key("gateway").Object()
	p.Key("host").String(g.host())
	p.Key("version").String(g.Hello.Version)
	p.End()
}

// members copies the members of an answer into a document, but for the named ones.
func members(p *span.Printer, obj []byte, but ...string) {
	for _, m := range span.Members(obj) {
		if !slices.Contains(but, m.Name) {
			p.Key(m.Name).Raw(m.Val)
		}
	}
}
