package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"oc/commands/term"
)

// Process is what the process was given: everything that a command can know of the outside world comes in here.
type Process struct {
	Args    []string // without the program's name
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Environ []string // NAME=value
	Dir     string   // working directory, "" when it is gone
	Now     func() time.Time

	under under
}

// Signals are those that ask for an orderly end, as a terminal that is closed does too, but under nohup.
func Signals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// Main runs one command line and gives back its exit status. The context is cancelled when the process is told to stop. Main never
// panics and always leaves exactly one JSON document on standard output when --json was on the line.
func Main(ctx context.Context, p Process) int {
	return run(ctx, all(), p)
}

func run(ctx context.Context, root *Command, p Process) int {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	line, err := normalise(root, p.Args)
	env := variables(p.Environ)
	getenv := func(name string) string { return env[name] }
	noColor := false
	for _, s := range line.flags {
		noColor = noColor || s.global && s.flag.Name == "no-color"
	}
	c := &Call{
		Path: line.path, Args: line.args, flags: line.flags,
		Stdin: p.Stdin, Environ: p.Environ, Dir: p.Dir, under: p.under, env: env,
		Out: term.New(&stopping{p.Stdout, stop}, p.Stdout, term.Options{Env: getenv, NoColor: noColor}),
		Err: term.New(p.Stderr, p.Stderr, term.Options{Env: getenv, NoColor: noColor, Prompt: true}),
	}
	if err == nil {
		c.Now, err = clock(getenv("OC_NOW"), p.Now)
	}
	if err == nil {
		err = c.execute(ctx, line)
	}
	if errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), syscall.EPIPE) {
		err = syscall.EPIPE
	}
	return c.finish(err, line.json)
}

// execute hands the line, in its one spelling, to urfave/cli, which knows only the commands on the way. A panic is an error like
// others: what it says is for a bug report, not for a screen full of addresses.
func (c *Call) execute(ctx context.Context, l *line) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = Failf("mistake in oc itself while running %s: %v; please report this line", words(c.Path), broken)
		}
	}()
	if err := c.together(); err != nil {
		return err
	}
	target := l.command().Run
	switch {
	case l.help:
		target = func(_ context.Context, c *Call) error { return c.showHelp(c.Path) }
	case l.about:
		target = showVersion
	}
	action := func(*cli.Context) error { return target(ctx, c) }

	app := &cli.App{
		Name: l.path[0].Name, HideHelp: true, HideHelpCommand: true, HideVersion: true,
		Reader: c.Stdin, Writer: c.Out, ErrWriter: c.Err, Compiled: time.Unix(0, 0),
		ExitErrHandler: func(*cli.Context, error) {}, // exit.go decides
		Flags:          cliFlags(globals),
	}
	below := &app.Commands
	var leaf *cli.Command
	for _, cmd := range l.path[1:] {
		leaf = &cli.Command{Name: cmd.Name, HideHelp: true, HideHelpCommand: true}
		*below = []*cli.Command{leaf}
		below = &leaf.Subcommands
	}
	if leaf == nil {
		app.Action = action
	} else {
		leaf.Flags, leaf.Action = cliFlags(l.command().Flags), action
	}
	return app.RunContext(ctx, append([]string{app.Name}, l.argv()...))
}

// cliFlags declares flags to urfave/cli. Values were checked before, and a value is never split at its commas.
func cliFlags(flags []Flag) []cli.Flag {
	declared := make([]cli.Flag, len(flags))
	for i, f := range flags {
		if f.isSwitch() {
			declared[i] = &cli.BoolFlag{Name: f.Name}
		} else {
			declared[i] = &cli.GenericFlag{Name: f.Name, Value: new(anything)}
		}
	}
	return declared
}

// anything is a flag value that takes every string.
type anything struct{}

func (*anything) Set(string) error { return nil }
func (*anything) String() string   { return "" }

// finish says what went wrong, in one line on standard error and, under --json, in the document that standard output still lacks.
func (c *Call) finish(err error, asJSON bool) int {
	exit, code := classify(err)
	if asJSON && !c.answered && (c.Out.Empty() || c.Out.Discard()) {
		c.Out.Write(problem(exit, code, err)) //nolint:errcheck // flushed below
	}
	if written := c.Out.Flush(); written != nil && !errors.Is(written, syscall.EPIPE) && (err == nil || exit == ExitDone) {
		exit, err = ExitFailed, fmt.Errorf("write the answer to standard output: %w", written)
	}
	if err != nil && exit != ExitDone && hasMessage(err) {
		c.Err.Printf("oc: %s\n", message(err))
	}
	c.Err.Flush() //nolint:errcheck // nowhere left to say it
	return exit
}

func hasMessage(err error) bool {
	var e *Error
	return !errors.As(err, &e) || e.Err != nil
}

// message is the line about an error.
func message(err error) string {
	if errors.Is(err, context.Canceled) {
		if text, bare := strings.CutSuffix(err.Error(), context.Canceled.Error()); bare {
			return text + "interrupted"
		}
	}
	return err.Error()
}

// problem is the document of a command that has no answer.
func problem(exit int, code string, err error) []byte {
	if err == nil {
		return []byte("{}\n")
	}
	type failure struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Exit    int    `json:"exit"`
		Details any    `json:"details,omitempty"`
	}
	f := failure{Code: code, Message: message(err), Exit: exit}
	var e *Error
	if errors.As(err, &e) {
		f.Details = e.Details
	}
	return document(map[string]failure{"error": f})
}

// document prints small answers; large ones go through Call.Document.
func document(v any) []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return []byte("{\"error\": {\"code\": \"failed\", \"message\": \"the answer cannot be written as JSON\"}}\n")
	}
	return []byte(b.String())
}

// clock is the time of a run: OC_NOW, in milliseconds since 1970, stands still.
func clock(ocNow string, now func() time.Time) (func() time.Time, error) {
	if ocNow == "" {
		return now, nil
	}
	ms, err := strconv.ParseInt(ocNow, 10, 64)
	if err != nil || ms < 0 || ms > maxSafe {
		return nil, usage("OC_NOW takes milliseconds since 1970, such as 1790000000000, not %q; unset it to use the clock", ocNow)
	}
	return func() time.Time { return time.UnixMilli(ms) }, nil
}

// variables is an environment as a map; of a name that stands twice the last counts, as os/exec has it.
func variables(environ []string) map[string]string {
	env := make(map[string]string, len(environ))
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			env[name] = value
		}
	}
	return env
}

// stopping tells the command to stop once nobody reads its output any more.
type stopping struct {
	io.Writer
	stop context.CancelCauseFunc
}

func (s *stopping) Write(b []byte) (int, error) {
	n, err := s.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		s.stop(err)
	}
	return n, err
}
