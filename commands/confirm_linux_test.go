package commands

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal opens both ends of a pseudo-terminal: what a person types and sees, and what the program has.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// awaitText reads what the person sees until it holds text.
func awaitText(t *testing.T, person *os.File, text string) {
	t.Helper()
	person.SetReadDeadline(time.Now().Add(5 * time.Second)) //nolint:errcheck // else the test hangs
	var seen []byte
	for b := make([]byte, 400); !strings.Contains(string(seen), text); {
		n, err := person.Read(b)
		seen = append(seen, b[:n]...)
		if err != nil {
			t.Fatalf("the person saw %q, not %q (%v)", seen, text, err)
		}
	}
}

func TestConfirmAsksOnATerminal(t *testing.T) {
	for typed, want := range map[string]string{"y\n": "deleted k\n", "YES \n": "deleted k\n", "\n": "nothing deleted\n", "n\n": "nothing deleted\n", "yeah\n": "nothing deleted\n"} {
		person, program := terminal(t)
		if _, err := person.WriteString(typed); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		exit := run(context.Background(), demo(), Process{
			Args: []string{"sessions", "delete", "k"}, Stdin: program, Stdout: &out, Stderr: program, Now: time.Now,
		})
		if exit != 0 || out.String() != want {
			t.Errorf("%q: exit %d, %q", typed, exit, out.String())
		}
		awaitText(t, person, "Delete k? [y/N] ")
	}
}

func TestConfirmEndsWithTheContext(t *testing.T) {
	_, program := terminal(t)
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	time.AfterFunc(10*time.Millisecond, cancel)
	var out bytes.Buffer
	exit := run(ctx, demo(), Process{Args: []string{"sessions", "delete", "k"}, Stdin: program, Stdout: &out, Stderr: program, Now: time.Now})
	if exit != ExitInterrupted || out.Len() > 0 {
		t.Errorf("exit %d, %q", exit, out.String())
	}
	program.Close()
}

// The screen decides about colour and width.
func TestColourOnATerminal(t *testing.T) {
	for _, c := range []struct {
		environ []string
		args    []string
		colour  bool
	}{
		{[]string{"TERM=xterm"}, nil, true},
		{[]string{"TERM=dumb"}, nil, false},
		{nil, nil, false},
		{[]string{"TERM=xterm", "NO_COLOR=1"}, nil, false},
		{[]string{"TERM=xterm", "NO_COLOR="}, nil, true},
		{[]string{"TERM=xterm"}, []string{"--no-color"}, false},
	} {
		person, program := terminal(t)
		exit := run(context.Background(), demo(), Process{
			Args: append(c.args, "say", "-q"), Stdin: program, Stdout: program, Stderr: &bytes.Buffer{}, Environ: c.environ, Now: time.Now,
		})
		if exit != 0 {
			t.Errorf("%v %v: exit %d", c.environ, c.args, exit)
		}
		awaitText(t, person, fmt.Sprintf("colour=%t", c.colour))
	}
}
