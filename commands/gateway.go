package commands

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"oc/commands/term"
	"oc/gateway"
	"oc/store/lock"
	"oc/store/span"
)

func gatewayCommands() *Command {
	return &Command{
		Name:  "gateway",
		Short: "does the gateway answer",
		Sub:   []*Command{gatewayPing(), gatewayPair()},
	}
}

func gatewayPing() *Command {
	return &Command{
		Name:  "ping",
		Short: "whether the gateway answers, and how long it takes",
		Long: "Connects to the gateway as OpenClaw's own commands do, shows which release it is and which state it has, and how long it took until it had let oc in. Nothing is asked of it. The address " +
			"is that of --url, OPENCLAW_GATEWAY_URL, gateway.remote.url where gateway.mode is remote, else this machine's, with the port of OPENCLAW_GATEWAY_PORT or gateway.port; a gateway of " +
			"this state that listens elsewhere is found by its lock. Exit 5 when nothing answers in time, 6 when it does not let oc in.",
		Examples: []Example{
			{"oc gateway ping", "the gateway of this state"},
			{"oc gateway ping --json --gateway-timeout 2s", "for a script"},
		},
		Exits: liveExits,
		Run:   pingGateway,
	}
}

func pingGateway(ctx context.Context, c *Call) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	began := c.Now()
	g, err := c.live(ctx, cfg, nil, gateway.Read)
	if err != nil {
		return err
	}
	took := c.Now().Sub(began)
	defer g.Close()
	h := &g.Hello
	if c.JSON() {
		return c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("ok").Bool(true)
			p.Key("url").String(g.options.Target.URL)
			p.Key("source").String(g.options.Target.Source)
			p.Key("version").String(h.Version)
			p.Key("protocol").Int(int64(h.Protocol))
			optional(p, "stateDir", h.StateDir)
			optional(p, "configPath", h.ConfigPath)
			optional(p, "authMode", h.AuthMode)
			optional(p, "defaultAgentId", h.DefaultAgent)
			optional(p, "mainSessionKey", h.MainSession)
			p.Key("uptimeMs").Int(h.Uptime.Milliseconds())
			p.Key("durationMs").Float(float64(took.Microseconds()) / 1000)
			p.End()
			return nil
		})
	}
	c.Out.Facts(
		term.Fact{Label: "Gateway", Value: "OpenClaw " + h.Version + " answers", Style: term.Green},
		term.Fact{Label: "Address", Value: g.options.Target.URL + " (" + g.options.Target.Source + ")"},
		term.Fact{Label: "State", Value: h.StateDir},
		term.Fact{Label: "Up for", Value: h.Uptime.Truncate(time.Second).String()},
		term.Fact{Label: "Took", Value: took.Round(100 * time.Microsecond).String()},
	)
	return nil
}

func gatewayPair() *Command {
	return &Command{
		Name:  "pair",
		Short: "make a device identity, for a gateway on another machine that wants one",
		Long: "A gateway on another machine may want to know the device beside the token. This makes a key pair, keeps it in .oc/identity.json of the state directory, readable for its owner alone, and " +
			"shows it to the gateway, which asks its owner to approve it. From then on oc shows it wherever a gateway wants one. OpenClaw's own identity is not touched.",
		Examples: []Example{{"oc gateway pair --url wss://desk.example:18789", "ask to be approved; the token is taken from OPENCLAW_GATEWAY_TOKEN or --token"}},
		Exits:    liveExits,
		Run:      pairGateway,
	}
}

func pairGateway(ctx context.Context, c *Call) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	o, err := c.gateway(cfg, gateway.Read)
	if err != nil {
		return err
	}
	path := gateway.IdentityFile(cfg.StateDir)
	_, err = gateway.LoadIdentity(path)
	made := errors.Is(err, fs.ErrNotExist)
	id, err := gateway.MakeIdentity(path)
	if err != nil {
		return Refusef("%w", err)
	}
	shown := false
	o.Identity = func() (*gateway.Identity, error) { shown = true; return id, nil }
	conn, _, err := gateway.Meet(ctx, c.where(cfg), lock.Local(), c.Now(), o)
	if err == nil {
		_ = conn.Close()
	}
	if c.JSON() && err == nil {
		return c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("deviceId").String(id.ID)
			p.Key("path").String(path)
			p.Key("made").Bool(made)
			p.Key("wanted").Bool(shown)
			p.End()
			return nil
		})
	}
	if made {
		c.Notef("the device identity is in %s", path)
	}
	if err != nil {
		return gatewayError(err)
	}
	c.Out.Facts(
		term.Fact{Label: "Device", Value: id.ID},
		term.Fact{Label: "Identity", Value: path},
		term.Fact{Label: "Gateway", Value: map[bool]string{true: "lets this device in", false: "lets oc in without it"}[shown]},
	)
	return nil
}
