package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"oc/commands/term"
	"oc/store/span"
)

// The scripts run oc itself, and "demo", which is the same machine over a tree of commands that show what they were given.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"oc":   func() { program(all()) },
		"demo": func() { program(demo()) },
		"nonet": func() {
			fmt.Fprintln(os.Stderr, withoutNetwork(os.Args[1:]))
			os.Exit(1)
		},
	})
}

func program(root *Command) {
	ctx, stop := signal.NotifyContext(context.Background(), Signals()...)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	dir, _ := os.Getwd()
	os.Exit(run(ctx, root, Process{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Dir: dir, Now: time.Now,
	}))
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("TZ", "UTC")
			e.Setenv("LANG", "C.UTF-8")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": exitStatus, "old": makeOld, "cut": cutShort},
	})
}

// status N COMMAND... runs a command and wants exit status N.
func exitStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitStatus N COMMAND...")
	}
	got := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}

// demo is a tree with every shape that commands may have.
func demo() *Command {
	list := &Command{
		Name: "list", Aliases: []string{"ls"}, Short: "list", Run: echo,
		Flags: []Flag{
			{Name: "limit", Short: "n", Value: "N|all", Default: "100", Help: "how many", Takes: `a positive whole number or "all", for example --limit 25`, Check: IsCountOrAll},
			{Name: "active", Value: "MINUTES", Help: "recent ones", Takes: "a positive whole number of minutes, for example --active 30", Check: IsMinutes},
			{Name: "search", Value: "TEXT", Help: "with a text"},
			{Name: "kind", Value: "KIND", Help: "of a kind", Choices: []string{"direct", "group", "cron"}, Repeatable: true},
			{Name: "wide", Short: "w", Help: "wide"},
			{Name: "all-agents", Help: "of all agents"},
			{Name: "label", Value: "LABEL", Help: "with a label", Repeatable: true},
			{Name: "store", Value: "PATH", Help: "the store"},
			{Name: "pin", Value: "PIN", Help: "a secret", Takes: "four digits", Check: func(s string) bool { return len(s) == 4 }, Secret: true},
		},
	}
	sessions := *list
	sessions.Name, sessions.Aliases, sessions.Sub = "sessions", nil, []*Command{
		list,
		{Name: "show", Args: "KEY", Short: "show", Run: echo},
		{Name: "diff", Args: "A B", Short: "diff", Run: echo},
		{Name: "delete", Args: "KEY...", Short: "delete", Run: erase, Flags: []Flag{{Name: "yes", Help: "do not ask"}}},
	}
	fail := func(err error) func(context.Context, *Call) error {
		return func(context.Context, *Call) error { return err }
	}
	return &Command{
		Name: "demo", Short: "show what arrives",
		Sub: []*Command{
			&sessions,
			help(),
			{Name: "undo", Args: "[RUN]", Short: "undo", Run: echo},
			{Name: "shell", Args: "bash|zsh|fish", Short: "shell", Run: echo},
			{Name: "group", Short: "group", Sub: []*Command{{Name: "inner", Short: "inner", Run: echo}, {Name: "other", Short: "other", Run: echo}}},
			{Name: "fail", Short: "fail", Sub: []*Command{
				{Name: "plain", Short: "fail", Run: fail(errors.New("read store /x\n/y: it is \x1b[31mcut"))},
				{Name: "busy", Short: "fail", Run: fail(Busyf("the store is locked"))},
				{Name: "refused", Short: "fail", Run: fail(Refusef("a gateway is alive"))},
				{Name: "findings", Short: "fail", Run: fail(Status(ExitFindings))},
				{Name: "ambiguous", Short: "fail", Run: fail(&Error{Exit: ExitUsage, Code: "ambiguous", Details: []string{"a", "b"}, Err: errors.New("two sessions are called x: a, b")})},
				{Name: "panic", Short: "fail", Run: func(context.Context, *Call) error { panic("index out of range") }},
				{Name: "undeclared", Short: "fail", Run: func(_ context.Context, c *Call) error { c.Bool("nope"); return nil }},
				{Name: "midway", Short: "fail", Run: midway},
				{Name: "partial", Short: "fail", Run: partial},
				{Name: "silent", Short: "says nothing", Run: func(context.Context, *Call) error { return nil }},
			}},
			{Name: "wait", Short: "wait for a signal", Run: func(ctx context.Context, c *Call) error {
				c.Notef("waiting")
				<-ctx.Done()
				return fmt.Errorf("run 7 stands, its step was finished: %w", ctx.Err())
			}},
			{Name: "forever", Short: "write until nobody reads", Run: func(ctx context.Context, c *Call) error {
				for ctx.Err() == nil {
					c.Out.Printf("%s\n", strings.Repeat("x", 1000))
				}
				return ctx.Err()
			}},
			{Name: "say", Short: "say things on standard error", Run: func(_ context.Context, c *Call) error {
				c.Warnf("warning: %s", "a\nb")
				c.Notef("note")
				c.Tracef("trace")
				c.Out.Printf("%s %s colour=%t\n", term.Time(c.Now().UnixMilli()), c.Env("GREETING"), c.Out.Color())
				return nil
			}},
		},
	}
}

func echo(_ context.Context, c *Call) error {
	l := line{path: c.Path, flags: c.flags, args: c.Args}
	if c.JSON() {
		return c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("argv")
			p.Array()
			for _, word := range l.argv() {
				p.String(word)
			}
			p.End()
			p.End()
			return nil
		})
	}
	for i, word := range l.argv() {
		if i > 0 {
			c.Out.Printf(" ")
		}
		c.Out.Printf("[%s]", word)
	}
	c.Out.Printf("\n")
	return nil
}

func erase(ctx context.Context, c *Call) error {
	if !c.Bool("yes") {
		yes, err := c.Confirm(ctx, "--yes", "Delete %s?", c.Arg(0))
		if err != nil {
			return err
		}
		if !yes {
			c.Out.Printf("nothing deleted\n")
			return nil
		}
	}
	c.Out.Printf("deleted %s\n", c.Arg(0))
	return nil
}

func midway(_ context.Context, c *Call) error {
	return c.Document(func(p *span.Printer) error {
		p.Object()
		p.Key("half")
		p.Array()
		return errors.New("the disk went away")
	})
}

func partial(_ context.Context, c *Call) error {
	if err := c.Document(func(p *span.Printer) error {
		p.Object()
		p.Key("errors")
		p.Array()
		p.String("one store is cut")
		p.End()
		p.End()
		return nil
	}); err != nil {
		return err
	}
	return Failf("one of two stores could not be read")
}

// makeOld makes files look as if nobody had written them for a long time.
func makeOld(ts *testscript.TestScript, _ bool, files []string) {
	for _, name := range files {
		ts.Check(os.Chtimes(ts.MkAbs(name), time.Unix(1767225600, 0), time.Unix(1767225600, 0)))
	}
}

// cutShort takes the last byte from files: in an archive of a script every file ends in a line break.
func cutShort(ts *testscript.TestScript, _ bool, files []string) {
	for _, name := range files {
		info, err := os.Stat(ts.MkAbs(name))
		ts.Check(err)
		ts.Check(os.Truncate(ts.MkAbs(name), info.Size()-1))
	}
}
