package commands

import (
	"os"
	"testing"

	xterm "golang.org/x/term"
)

// reviews are the changing commands that need a person at a terminal.
var reviews = []altering{
	{name: "review", line: []string{"review", "--agent", "work", "--older-than", "12h"}, keys: "dada\ry"},
	{name: "review, database", line: []string{"review", "--agent", "main", "--older-than", "2d"}, keys: "dada\ry", rows: true},
}

// seat is a terminal at which somebody has typed all keys already; done ends what reads them.
func seat(t *testing.T, keys string) (program *os.File, done func()) {
	t.Helper()
	person, program := terminal(t)
	if _, err := xterm.MakeRaw(int(program.Fd())); err != nil {
		t.Fatal(err)
	}
	if _, err := person.WriteString(keys); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for b := make([]byte, 4096); ; {
			if _, err := person.Read(b); err != nil {
				return
			}
		}
	}()
	return program, func() {
		program.Close()         //nolint:errcheck // as soon as nobody reads from it
		person.WriteString("x") //nolint:errcheck // so that nobody does
		<-over
		person.Close() //nolint:errcheck // nothing is kept
	}
}
