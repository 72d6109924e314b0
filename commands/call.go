package commands

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"oc/commands/term"
	"oc/store/span"
)

// Call is one run of a command: what stood on its line, and everything of the outside world that it may use.
type Call struct {
	Path []*Command // from the root to the command
	Args []string

	Stdin   io.Reader
	Out     *term.Out // standard output
	Err     *term.Out // standard error; say what is worth saying with Warnf, Notef and Tracef
	Environ []string  // NAME=value, for child processes; a command asks Env
	Now     func() time.Time
	Dir     string // working directory

	under    under
	flags    []setting
	env      map[string]string
	answered bool   // a JSON document is complete
	group    string // the first run that the command made
}

// Env is the value of an environment variable, "" when it is not set.
func (c *Call) Env(name string) string { return c.env[name] }

// Given says whether the flag stood on the line, with whatever value.
func (c *Call) Given(name string) bool { return len(c.values(name)) > 0 }

// Bool says whether the switch was set.
func (c *Call) Bool(name string) bool { return c.Given(name) }

// JSON says whether the answer is to be one JSON document.
func (c *Call) JSON() bool { return c.Bool("json") }

// String is the value of the flag, its default when it is not on the line. A blank value is "", so ask Given where that matters.
func (c *Call) String(name string) string {
	if v := c.values(name); len(v) > 0 {
		return v[len(v)-1]
	}
	return c.declared(name).Default
}

// Strings is every value of a repeatable flag, in the order of the line.
func (c *Call) Strings(name string) []string { return c.values(name) }

// Int is the value of a flag whose Check is one of the number checks (number.go); 0 when it has none.
func (c *Call) Int(name string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(c.String(name)), 10, 64)
	return n
}

// Duration is the value of a flag that is checked by IsDuration; 0 when it has none.
func (c *Call) Duration(name string) time.Duration {
	d, _ := parseDuration(c.String(name))
	return d
}

// Arg is the i-th word, "" when there are fewer.
func (c *Call) Arg(i int) string {
	if i < len(c.Args) {
		return c.Args[i]
	}
	return ""
}

func (c *Call) values(name string) []string {
	f := c.declared(name)
	var all []string
	for _, s := range c.flags {
		if s.flag == f {
			all = append(all, s.value)
		}
	}
	return all
}

// declared finds the flag of a getter; asking for one that the command does not have is a mistake in oc.
func (c *Call) declared(name string) *Flag {
	if f := find(c.Path[len(c.Path)-1].Flags, "--"+name); f != nil {
		return f
	}
	if f := find(globals, "--"+name); f != nil {
		return f
	}
	panic(fmt.Sprintf("%s asked for a flag --%s that it does not declare", words(c.Path), name))
}

// Document writes the one JSON document of a command. When write fails before much was written, what it wrote is dropped and the
// error becomes the document: so gather first, and put what fails on the way into errors[].
func (c *Call) Document(write func(p *span.Printer) error) error {
	p := span.NewPrinter(c.Out)
	if err := write(p); err != nil {
		return err
	}
	if err := p.Close(); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	c.answered = true
	return nil
}

// Warnf says on standard error what the user has to know, also under --quiet. Strings are shown escaped, as everywhere in term.
func (c *Call) Warnf(format string, args ...any) { c.Err.Printf("oc: "+format+"\n", args...) }

// Notef says on standard error what is good to know; --quiet hides it.
func (c *Call) Notef(format string, args ...any) {
	if !c.Bool("quiet") {
		c.Err.Printf("oc: "+format+"\n", args...)
	}
}

// Tracef says on standard error what was done and found on the way, under --verbose.
func (c *Call) Tracef(format string, args ...any) {
	if c.Bool("verbose") {
		c.Err.Printf("oc: "+format+"\n", args...)
	}
}

// Progress is a line on standard error that says how far the work is; it shows on a terminal only, and not under --quiet.
func (c *Call) Progress(label string) *term.Progress {
	if c.Bool("quiet") {
		return nil
	}
	return c.Err.Progress(label, c.Now)
}

// page hands standard output to a pager, if it is a terminal, until done is called: $PAGER, else less.
func (c *Call) page(ctx context.Context) (done func()) {
	pager, set := c.env["PAGER"]
	if !set {
		pager = "less"
	}
	if ctx.Err() != nil {
		return func() {}
	}
	return c.Out.Page(pager, c.Environ)
}

// Confirm asks a question on the terminal, and is true for yes. Where nobody can be asked it is a usage error that names the flag to
// give instead ("--yes").
func (c *Call) Confirm(ctx context.Context, instead, question string, args ...any) (bool, error) {
	if !c.Err.Terminal() || !term.IsTerminal(c.Stdin) {
		return false, Usagef("%s needs a terminal to ask on; give %s to do it without asking", words(c.Path), instead)
	}
	c.Err.Printf(question+" [y/N] ", args...)
	answer := make(chan string, 1)
	go func() {
		var said []byte
		for b := make([]byte, 1); ; {
			n, err := c.Stdin.Read(b)
			if n > 0 && b[0] != '\n' {
				said = append(said, b[0])
			}
			if err != nil || n > 0 && b[0] == '\n' {
				answer <- strings.ToLower(strings.TrimSpace(string(said)))
				return
			}
		}
	}()
	select {
	case said := <-answer:
		return said == "y" || said == "yes", nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
