package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"oc/commands/term"
	"oc/gateway"
	"oc/store/span"
)

func sessionsSpawn() *Command {
	return &Command{
		Name:  "spawn",
		Args:  "TASK",
		Short: "give a task to a sub-agent",
		Long: "Starts a session of its own for a task, through the gateway and with OpenClaw's own tool sessions_spawn, and says at once which session and which run it is. The session that asks " +
			"is its parent: it is told when the task is done, and oc sessions yield waits for that. Limits of depth and number are those of the configuration, agents.defaults.subagents.\n\n" +
			"A gateway offers the tool to clients only when gateway.tools.allow has sessions_spawn. In a shell that an agent runs in (OPENCLAW_SHELL=exec) say for whom with --as or OC_SESSION.",
		Flags: []Flag{
			{Name: "agent", Value: "ID", Takes: "the id of an agent", Check: isSomething, Help: "the agent that works on it; without it that of the parent"},
			{Name: "model", Value: "MODEL", Takes: "a model such as provider/name", Check: isSomething, Help: "the model of the new session"},
			{Name: "thinking", Value: "LEVEL", Takes: "a level such as low or high", Check: isSomething, Help: "how much it thinks"},
			{Name: "context", Value: "HOW", Choices: []string{"isolated", "fork"}, Help: "isolated begins with the task alone, fork with the parent's conversation"},
			{Name: "runtime", Value: "NAME", Choices: []string{"subagent", "acp"}, Help: "what runs it"},
			{Name: "thread", Help: "bind it to a new thread of the parent's channel, and keep it"},
			{Name: "sandbox", Value: "require", Choices: []string{"require"}, Help: "refuse where the new session would not be sandboxed"},
			{Name: "run-timeout", Value: "DURATION", Takes: "a duration such as 10m, or 0 for none", Check: IsDuration, Help: "how long it may work; 2026.7.35 knows only agents.defaults.subagents.runTimeoutSeconds"},
			speakerFlag,
		},
		Examples: []Example{
			{`oc sessions spawn "Count the boxes in the shed"`, "a task for the default agent, as a child of its main session"},
			{`oc sessions spawn "Read the logs" --agent ops --thinking low --json`, "another agent works on it"},
		},
		Exits: liveExits,
		Run:   spawnSession,
	}
}

func spawnSession(ctx context.Context, c *Call) error {
	task := c.Arg(0)
	switch {
	case strings.TrimSpace(task) == "":
		return Usagef("the task is blank; nothing was started")
	case len(task) > longestMessage:
		return Usagef("the task is longer than %s, which is what a gateway takes; nothing was started", term.Bytes(longestMessage))
	case c.Env("OPENCLAW_SHELL") == "exec" && !c.Given("as") && strings.TrimSpace(c.Env("OC_SESSION")) == "":
		return &Error{Exit: ExitRefused, Code: "agent-shell", Err: errors.New("an agent runs this (OPENCLAW_SHELL=exec), and whose child it would be is not known: use sessions_spawn, or say it with --as KEY")}
	case c.String("runtime") == "acp" && c.String("context") == "fork":
		return Usagef("--context fork does not go with --runtime acp: such a session begins with its task alone")
	}
	args := map[string]any{"task": task}
	for flag, name := range map[string]string{"agent": "agentId", "model": "model", "thinking": "thinking", "context": "context", "runtime": "runtime", "sandbox": "sandbox"} {
		if c.Given(flag) {
			args[name] = strings.TrimSpace(c.String(flag))
		}
	}
	if c.Bool("thread") {
		args["thread"] = true
	}
	if c.Given("run-timeout") {
		args["runTimeoutSeconds"] = int64((c.Duration("run-timeout") + time.Second - 1) / time.Second)
	}
	g, err := c.connect(ctx, gateway.Read)
	if err != nil {
		return err
	}
	defer g.Close()
	s := spawned{live: g}
	if s.parent, err = g.speaker(ctx); err != nil {
		return err
	}
	// A fork copies a conversation, and a thread asks a channel.
	if s.raw, err = g.tool(ctx, gateway.Tool{Name: "sessions_spawn", Key: s.parent, Args: args}, g.slack(20*time.Second)); err != nil {
		return err
	}
	return s.tell(c)
}

// spawned is a new session.
type spawned struct {
	*live
	parent string
	raw    json.RawMessage
}

func (s *spawned) tell(c *Call) error {
	status, why := textIn(s.raw, "status"), cmp.Or(textIn(s.raw, "error"), "it gave no reason")
	if c.JSON() {
		if err := c.Document(s.document); err != nil {
			return err
		}
	}
	switch status {
	case "accepted":
	case "forbidden":
		return Refusef("nothing was started: %s", why)
	default:
		return Failf("the task was not started: %s", why)
	}
	if c.JSON() {
		return nil
	}
	model := textIn(s.raw, "resolvedModel")
	if string(span.Member(s.raw, "modelApplied")) == "false" {
		model += " (not applied)"
	}
	c.Out.Facts(
		term.Fact{Label: "Session", Value: textIn(s.raw, "childSessionKey"), Style: term.Bold},
		term.Fact{Label: "Run", Value: textIn(s.raw, "runId")},
		term.Fact{Label: "Parent", Value: s.parent},
		term.Fact{Label: "Model", Value: model},
	)
	return nil
}

// document has the tool's own members, then oc's.
func (s *spawned) document(p *span.Printer) error {
	p.Object()
	members(p, s.raw, "via", "gateway", "parent")
	p.Key("parent").String(s.parent)
	s.print(p)
	p.End()
	return nil
}
