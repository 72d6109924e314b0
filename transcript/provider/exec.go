package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// Exec is a command that gets the request as JSON on its standard input and writes the summary to its standard output. It is run
// without a shell.
type Exec struct {
	Command []string
	Timeout time.Duration // 0 for none
	Environ []string      // nil for oc's own
}

// Name is "exec" and the name of the command.
func (e Exec) Name() string { return "exec " + e.Command[0] }

// Summarize runs the command. It is killed when its time is over, when its answer is too long and when ctx ends; exit statuses other
// than 0 are errors, with the first line of what it wrote to its standard error.
func (e Exec) Summarize(ctx context.Context, r Request) (string, error) {
	in, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	outer := ctx
	if e.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, e.Timeout, fmt.Errorf("it did not answer within %s", e.Timeout))
		defer stop()
	}
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	cmd := exec.CommandContext(ctx, e.Command[0], e.Command[1:]...)
	cmd.Env = e.Environ
	cmd.Stdin = bytes.NewReader(in)
	cmd.WaitDelay = 2 * time.Second // for children that keep its output open
	out := &limited{limit: maxSummary, over: func() { kill(ErrTooLong) }}
	problem := &limited{limit: 4 << 10}
	cmd.Stdout, cmd.Stderr = out, problem
	err = cmd.Run()
	switch cause := context.Cause(ctx); {
	case outer.Err() != nil:
		return "", context.Cause(outer)
	case cause != nil:
		return "", cause
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		said, _, _ := strings.Cut(strings.TrimSpace(string(problem.kept)), "\n")
		if said != "" {
			return "", fmt.Errorf("%w: %s", err, said)
		}
		return "", err
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(out.kept), "\uFFFD")), nil
}

// limited keeps the first bytes of what is written to it, and calls over when there are more.
type limited struct {
	kept  []byte
	limit int
	over  func()
}

func (l *limited) Write(b []byte) (int, error) {
	room := l.limit - len(l.kept)
	l.kept = append(l.kept, b[:min(room, len(b))]...)
	if len(b) > room && l.over != nil {
		l.over()
		return room, io.ErrShortWrite
	}
	return len(b), nil
}
