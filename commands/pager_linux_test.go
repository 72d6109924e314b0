package commands

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"oc/fixtures"
)

// A conversation on a terminal goes through the pager of the reader; elsewhere, as a document, or with a pager that cannot be run it
// comes as it is.
func TestHistoryThroughAPager(t *testing.T) {
	state := talkState(t, fixtures.FileEra, fixtures.Talk(talkID, fixtures.Now-fixtures.Day).User("hi").Assistant("yo"))
	for _, c := range []struct {
		pager, want string
		args        []string
	}{
		{"sed s/^/P:/", "P:user  ", nil},
		{"sed s/^/P:/", "{\r\n  \"sessionKey\"", []string{"--json"}},
		{"", "user  2026", nil},
		{"cat", "user  2026", nil},
		{"no-such-pager -x", "user  2026", nil},
		{"head -n 1", "user  2026", nil}, // who has seen enough leaves
	} {
		person, screen := terminal(t)
		seen := make(chan string)
		go func() {
			var all strings.Builder
			b := make([]byte, 4096)
			for !strings.Contains(all.String(), "THE END") {
				n, err := person.Read(b)
				all.Write(b[:n])
				if err != nil && err != io.EOF {
					break
				}
			}
			seen <- all.String()
		}()
		environ := []string{"PAGER=" + c.pager, "TZ=UTC", "PATH=/usr/bin:/bin"}
		for k, v := range quiet(t, fixtures.Now) {
			environ = append(environ, k+"="+v)
		}
		var errout strings.Builder
		exit := Main(context.Background(), Process{
			Args: append([]string{"--state-dir", state, "sessions", "history", "main"}, c.args...), Stdin: strings.NewReader(""), Stdout: screen, Stderr: &errout,
			Environ: environ, Dir: state, Now: time.Now,
		})
		if _, err := screen.WriteString("THE END"); err != nil {
			t.Fatal(err)
		}
		got := <-seen
		if exit != ExitDone || !strings.HasPrefix(got, c.want) {
			t.Errorf("%q: exit %d, %q; %s", c.pager, exit, got, errout.String())
		}
	}
}
