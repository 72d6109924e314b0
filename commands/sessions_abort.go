package commands

import (
	"cmp"
	"context"

	"oc/commands/term"
	"oc/gateway"
	"oc/store/span"
)

func sessionsAbort() *Command {
	return &Command{
		Name:  "abort",
		Args:  "KEY",
		Short: "stop what a session is doing",
		Long: "Asks the gateway to stop the run of a session. What was said so far stays in its transcript. A session that does nothing is left as it is, and that is told. The session is a key, " +
			"a session id or a label.",
		Flags: []Flag{{Name: "agent", Value: "ID", Takes: "the id of an agent", Check: isSomething, Help: "the agent that the session belongs to, where its key does not say it"}},
		Examples: []Example{
			{"oc sessions abort agent:ops:main", "stop the run of a session"},
		},
		Exits: liveExits,
		Run:   abortSession,
	}
}

func abortSession(ctx context.Context, c *Call) error {
	g, err := c.connect(ctx, gateway.Write)
	if err != nil {
		return err
	}
	defer g.Close()
	key, err := g.session(ctx, c.Arg(0), c.String("agent"))
	if err != nil {
		return err
	}
	got, err := g.do(ctx, gateway.AbortSession{Key: key})
	if err != nil {
		return err
	}
	status, run := textIn(got, "status"), textIn(got, "abortedRunId")
	if c.JSON() {
		return c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("key").String(key)
			members(p, got, "key", "via", "gateway")
			g.print(p)
			p.End()
			return nil
		})
	}
	switch status {
	case "aborted":
		if run == "" { // 2026.9.6 does not say which
			c.Out.Printf("%s: its run was stopped\n", key)
			break
		}
		c.Out.Printf("%s: run %s was stopped\n", key, run)
	case "no-active-run":
		c.Out.Printf("%s does nothing; there was no run to stop\n", key)
	default:
		c.Out.Printf("%s: the gateway says %s\n", key, cmp.Or(status, term.Unknown))
	}
	return nil
}
