package commands

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"
	"time"
)

// On a terminal deleting asks, and only yes is one.
func TestDeleteAsks(t *testing.T) {
	for typed, gone := range map[string]bool{"y\n": true, "n\n": false, "\n": false} {
		state, sessions, env := lived(t)
		person, program := terminal(t)
		if _, err := person.WriteString(typed); err != nil {
			t.Fatal(err)
		}
		environ := []string{"TERM=dumb"}
		for k, v := range env {
			environ = append(environ, k+"="+v)
		}
		var out bytes.Buffer
		exit := Main(context.Background(), Process{
			Args:  []string{"--state-dir", state, "--agent", "work", "sessions", "delete", hook},
			Stdin: program, Stdout: &out, Stderr: program, Environ: environ, Dir: filepath.Dir(state), Now: time.Now,
		})
		awaitText(t, person, "Go on?")
		_, there := rowsOf(t, sessions)[hook]
		if exit != ExitDone || there == gone {
			t.Errorf("%q: exit %d, the row is there: %t", typed, exit, there)
		}
	}
}
