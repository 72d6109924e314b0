package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"oc/awareness"
	"oc/commands/term"
	"oc/gateway"
	"oc/store/row"
	"oc/store/span"
	"oc/transcript"
)

// longestMessage is what send and spawn take, in bytes: half of what a gateway reads, so that escapes have room.
const longestMessage = 1 << 20

func sessionsSend() *Command {
	return &Command{
		Name:  "send",
		Args:  "[KEY] [MESSAGE]",
		Short: "send a message to a session and wait for its answer",
		Long: "Sends a message from one session to another through the gateway, with OpenClaw's own tool sessions_send: the receiver is told which session it is from, may answer back, and " +
			"tells its channel. The answer, if one comes in time, is printed; when the time is over the run goes on. The receiver is a key, a session id or a label; --label names it by its label " +
			"alone, --agent an agent's main session, which is made where it does not exist.\n\n" +
			"A thread cannot be sent to: send to the channel that it is in. A gateway offers the tool to clients only when gateway.tools.allow has sessions_send. In a shell that an agent runs in " +
			"(OPENCLAW_SHELL=exec) nothing is sent, as OpenClaw has it: agents have the tool itself.",
		Flags: []Flag{
			{Name: "label", Value: "LABEL", Takes: "a label of 1 to 512 characters", Check: isLabel, Help: "the session with this label"},
			{Name: "agent", Value: "ID", Takes: "the id of an agent", Check: isSomething, Help: "the agent that the session belongs to; alone, its main session"},
			{Name: "wait", Value: "DURATION", Default: "30s", Takes: "a duration such as 30s or 5m, or 0", Check: IsDuration, Help: "wait that long for the answer; 0 sends and does not wait"},
			{Name: "watch", Help: "have the sender told of what happens to the receiver from now on"},
			{Name: "stdin", Help: "read the message from standard input"},
			speakerFlag,
		},
		Examples: []Example{
			{`oc sessions send agent:ops:main "How many boxes are left?"`, "ask, and print the answer"},
			{`oc sessions send --label "Night shift" "Lock the gate" --wait 0`, "send and go on"},
			{"df -h | oc sessions send --agent ops --stdin --as agent:main:main --json", "a message from a pipe, in the name of a session"},
		},
		Exits: append(liveExits, ExitNothing),
		Run:   sendMessage,
	}
}

func isLabel(s string) bool { return isSomething(s) && len(s) <= 4*512 && span.UTF16Len(s) <= 512 }

// letter is a message and whom it is for.
type letter struct {
	word, label, agent string // one of word and label at most; agent alone is its main session
	text               string
	wait               time.Duration
}

func (c *Call) letter() (l letter, err error) {
	l = letter{label: c.String("label"), agent: strings.TrimSpace(c.String("agent")), wait: c.Duration("wait")}
	words := c.Args
	if !c.Bool("stdin") {
		if len(words) == 0 {
			return l, Usagef("what is to be sent is missing: give it as the last word, or with --stdin")
		}
		l.text, words = words[len(words)-1], words[:len(words)-1]
	}
	switch {
	case len(words) > 1:
		return l, Usagef("%q is one word too many: with --stdin the message is not on the line; put a message of several words in quotes", words[1])
	case len(words) == 1 && l.label != "":
		return l, Usagef("--label names the session by itself; leave out %q, or put a message of several words in quotes", words[0])
	case len(words) == 1:
		l.word = strings.TrimSpace(words[0])
	}
	if l.word == "" && l.label == "" && l.agent == "" {
		return l, Usagef("whom to send it to is missing: give the key of a session before the message, or --label or --agent")
	}
	if c.Bool("stdin") {
		text, err := io.ReadAll(io.LimitReader(c.Stdin, longestMessage+1))
		if err != nil {
			return l, Failf("read the message from standard input: %w", err)
		}
		l.text = strings.TrimRight(string(text), "\r\n")
	}
	switch {
	case strings.TrimSpace(l.text) == "":
		return l, Usagef("the message is blank; nothing was sent")
	case len(l.text) > longestMessage:
		return l, Usagef("the message is longer than %s, which is what a gateway takes; nothing was sent", term.Bytes(longestMessage))
	case l.wait > 24*time.Hour:
		return l, Usagef("--wait takes at most 24h, not %s", c.String("wait"))
	}
	return l, noThread(l.word)
}

// noThread refuses what OpenClaw refuses before it looks whether there is such a session (spec/session-tools.md 4).
func noThread(key string) error {
	if parent, _, ok := row.Thread(key); ok {
		return &Error{Exit: ExitRefused, Code: "thread", Err: fmt.Errorf("nothing was sent: %s is a thread, and sessions do not speak to threads; send to its channel, %s", key, parent)}
	}
	return nil
}

func sendMessage(ctx context.Context, c *Call) error {
	l, err := c.letter()
	if err != nil {
		return err
	}
	tool := gateway.Tool{Name: "sessions_send"}
	if err := gateway.FromAgentShell(tool, c.Env); err != nil {
		return &Error{Exit: ExitRefused, Code: "agent-shell", Err: err}
	}
	g, err := c.connect(ctx, gateway.Read)
	if err != nil {
		return err
	}
	defer g.Close()
	if tool.Key, err = g.speaker(ctx); err != nil {
		return err
	}
	tool.Args = map[string]any{"message": l.text, "timeoutSeconds": int64((l.wait + time.Second - 1) / time.Second)}
	switch {
	case l.label != "":
		tool.Args["label"] = l.label
		if l.agent != "" {
			tool.Args["agentId"] = l.agent
		}
	case l.word != "":
		key, there, err := g.find(ctx, l.word, l.agent)
		if err == nil {
			err = noThread(key)
		}
		if err == nil && !there && !g.isMain(key) {
			err = g.noSession(l.word)
		}
		if err != nil {
			return err
		}
		tool.Args["sessionKey"] = key
	default:
		tool.Args["agentId"] = l.agent
	}
	if c.Bool("watch") {
		if err := g.canWatch(ctx); err != nil {
			return err
		}
		tool.Args["watch"] = true
	}
	got, err := g.tool(ctx, tool, l.wait)
	if err != nil {
		return err
	}
	a := sent{live: g, letter: l, from: tool.Key, to: cmp.Or(textIn(got, "sessionKey"), l.word, l.label, l.agent), raw: got, status: textIn(got, "status")}
	if a.status == "ok" {
		silent, err := a.silent(ctx)
		if err != nil {
			c.Warnf("whether %s answered with the very words of the message is not known: %v", a.to, err)
		}
		if silent {
			a.status = "no_reply"
		}
	}
	return a.tell(c)
}

// canWatch is an error where it can be seen that the gateway's release has no watches: it would drop the wish without a word.
func (g *live) canWatch(ctx context.Context) error {
	if !g.options.Target.Local {
		return nil
	}
	err := awareness.Read(ctx, awareness.Path(g.cfg.StateDir), func(s *awareness.Snapshot) error {
		if s.Schema().None {
			return &Error{Exit: ExitRefused, Code: "gateway-unsupported", Err: fmt.Errorf("nothing was sent: OpenClaw %s keeps no signal log, so that --watch would watch nothing; leave it out", g.Hello.Version)}
		}
		return nil
	})
	if e := (*Error)(nil); errors.As(err, &e) {
		return err
	}
	return nil // a log that cannot be read now is the gateway's to use
}

// textIn is a text in an answer.
func textIn(obj []byte, names ...string) string {
	s, _ := span.Text(span.Path(obj, names...))
	return s
}

// sent is what came of a message.
type sent struct {
	*live
	letter
	from, to string
	raw      json.RawMessage // the tool's own answer
	status   string          // ok, no_reply, accepted, timeout, error, forbidden; queued of other releases
}

func (a *sent) tell(c *Call) error {
	if c.JSON() {
		if err := c.Document(a.document); err != nil {
			return err
		}
	} else {
		a.text(c)
	}
	if c.Bool("watch") && a.went() && string(span.Member(a.raw, "watched")) != "true" {
		c.Warnf("%s is not watched: the gateway, %s, did not take --watch", a.to, a.Hello.Version)
	}
	why := cmp.Or(textIn(a.raw, "error"), "it gave no reason")
	switch a.status {
	case "ok", "no_reply", "queued":
		return nil
	case "accepted":
		if a.wait == 0 {
			return nil
		}
		c.Notef("no answer within %s; the run goes on, oc sessions history %s shows what comes of it", a.call.String("wait"), a.to)
		return Status(ExitNothing)
	case "forbidden":
		return Refusef("the message for %s was not sent: %s", a.to, why)
	}
	if a.went() {
		return Failf("%s has the message, and its run failed: %s", a.to, why)
	}
	return Failf("the message for %s was not sent: %s", a.to, why)
}

// silent tells whether nothing was answered. 2026.7.35 has no word for it: it leaves the reply out, or takes the newest thing said for it,
// which is then the message itself.
func (a *sent) silent(ctx context.Context) (bool, error) {
	reply := strings.TrimSpace(textIn(a.raw, "reply"))
	if reply == "" || reply != strings.TrimSpace(a.letter.text) {
		return reply == "", nil
	}
	got, err := a.do(ctx, gateway.History{Key: a.to, Limit: 20})
	if err != nil {
		return false, err
	}
	silent := true
	_, err = span.Items(span.Member(got, "messages"), 0, func(m []byte) error {
		var text string
		for _, p := range parts(m) {
			text += p.text
		}
		if strings.TrimSpace(text) == reply { // the newest one with these words decides
			silent = transcript.Role(m) != "assistant" || span.Member(m, "senderLabel") != nil || span.Member(m, "provenance") != nil
		}
		return nil
	})
	return silent, err
}

// went tells whether the receiver has the message.
func (a *sent) went() bool {
	switch a.status {
	case "ok", "no_reply", "accepted", "queued", "timeout":
		return true
	}
	return string(span.Member(a.raw, "sentBeforeError")) == "true"
}

// text is the answer alone, so that it can be read by a script; what is to be said about it goes to standard error.
func (a *sent) text(c *Call) {
	switch a.status {
	case "ok":
		c.Out.Printf("%s\n", asIs(textIn(a.raw, "reply")))
		c.Tracef("the answer of %s, run %s", a.to, textIn(a.raw, "runId"))
	case "no_reply":
		c.Out.Printf("%s has the message and ended its run without an answer.\n", a.to)
	case "accepted", "queued":
		c.Out.Printf("%s has the message: run %s\n", a.to, cmp.Or(textIn(a.raw, "runId"), term.Unknown))
	}
}

// asIs is a text of several lines as it is, but for control characters.
func asIs(text string) term.Styled {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
	for i, line := range lines {
		lines[i] = term.Escape(strings.ReplaceAll(line, "\t", "    "))
	}
	return term.Styled(strings.Join(lines, "\n"))
}

// document has the tool's own members, then oc's.
func (a *sent) document(p *span.Printer) error {
	p.Object()
	p.Key("status").String(a.status)
	but := []string{"status", "via", "gateway", "from", "sent"}
	if a.status == "no_reply" {
		but = append(but, "reply")
	}
	members(p, a.raw, but...)
	p.Key("from").String(a.from)
	p.Key("sent").Bool(a.went())
	a.print(p)
	p.End()
	return nil
}
