package commands

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oc/commands/term"
	"oc/fixtures"
)

// A sitting is a person at a terminal in which oc draws a screen.
type sitting struct {
	t       *testing.T
	person  *os.File
	program *os.File
	before  unix.Termios
	exit    chan int

	mu   sync.Mutex
	seen strings.Builder
}

// sit runs oc at a terminal of that size.
func sit(ctx context.Context, t *testing.T, columns, rows int, environ []string, args ...string) *sitting {
	t.Helper()
	s := &sitting{t: t, exit: make(chan int, 1)}
	s.person, s.program = terminal(t)
	s.resize(columns, rows)
	s.before = s.modes()
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := s.person.Read(b)
			s.mu.Lock()
			s.seen.Write(b[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() {
		s.exit <- Main(ctx, Process{Args: args, Stdin: s.program, Stdout: s.program, Stderr: s.program, Environ: environ, Dir: t.TempDir(), Now: time.Now})
	}()
	return s
}

func (s *sitting) modes() unix.Termios {
	s.t.Helper()
	m, err := unix.IoctlGetTermios(int(s.program.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return *m
}

func (s *sitting) resize(columns, rows int) {
	s.t.Helper()
	if err := unix.IoctlSetWinsize(int(s.program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(rows)}); err != nil {
		s.t.Fatal(err)
	}
	if err := unix.Kill(os.Getpid(), unix.SIGWINCH); err != nil { // a terminal tells its foreground group, which this process is not in
		s.t.Fatal(err)
	}
}

func (s *sitting) types(keys string) {
	s.t.Helper()
	if _, err := s.person.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sitting) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.String()
}

var controls = regexp.MustCompile(`\x1b\[[?0-9;]*[a-zA-Z]`)

// screen is what stands there now: the lines of the last page that was drawn whole.
func (s *sitting) screen() []string {
	pages := strings.Split(s.all(), "\x1b[?2026h")
	for i := len(pages) - 1; i > 0; i-- {
		if page, _, whole := strings.Cut(pages[i], "\x1b[?2026l"); whole {
			return strings.Split(controls.ReplaceAllString(page, ""), "\r\n")
		}
	}
	return nil
}

// await waits until the screen shows a text, or shows it no more.
func (s *sitting) await(text string, there bool) {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if page := s.screen(); page != nil && strings.Contains(strings.Join(page, "\n"), text) == there {
			return
		}
	}
	s.t.Fatalf("waited for %q (%t):\n%s", text, there, strings.Join(s.screen(), "\n"))
}

// said waits until a text stands after the screen was given back.
func (s *sitting) said(text string) {
	s.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, after, _ := strings.Cut(s.all(), "\x1b[?1049l")
		if strings.Contains(after, text) {
			return
		}
		if time.Now().After(end) {
			s.t.Errorf("waited for %q:\n%s", text, after)
			return
		}
	}
}

// ends waits for the end, with that status and the terminal as it was.
func (s *sitting) ends(exit int) {
	s.t.Helper()
	select {
	case got := <-s.exit:
		if got != exit {
			s.t.Errorf("exit %d, want %d:\n%s", got, exit, controls.ReplaceAllString(s.all(), ""))
		}
	case <-time.After(20 * time.Second):
		s.t.Fatal("it does not end")
	}
	if after := s.modes(); after != s.before {
		s.t.Errorf("the terminal is not as it was: %+v, not %+v", after, s.before)
	}
	const given = "\x1b[?7h\x1b[?25h\x1b[?1049l" // lines wrap, the cursor is seen, the page is the one from before
	for end := time.Now().Add(10 * time.Second); !strings.Contains(s.all(), given); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatal("the screen was not given back")
		}
	}
	if _, after, _ := strings.Cut(s.all(), given); strings.Contains(after, "\x1b[?") {
		s.t.Errorf("it goes on on the screen: %q", after)
	}
}

func watchable(t *testing.T) (state string, environ []string) {
	t.Helper()
	home := t.TempDir()
	state = filepath.Join(home, ".openclaw")
	if err := fixtures.Demo().Write(state); err != nil {
		t.Fatal(err)
	}
	return state, []string{"HOME=" + home, "TMPDIR=" + home, "TERM=xterm", "TZ=UTC", "LANG=C.UTF-8", "OPENCLAW_GATEWAY_PORT=1", fmt.Sprintf("OC_NOW=%d", int64(fixtures.Now))}
}

func TestStatusWatch(t *testing.T) {
	state, environ := watchable(t)
	s := sit(t.Context(), t, 80, 40, environ, "status", "--watch")
	s.await("q quits", true)
	page := s.screen()
	if len(page) != 40 {
		t.Errorf("%d lines on a screen of 40", len(page))
	}
	text := strings.Join(page, "\n")
	for _, want := range []string{"none seems to live here", "probably dead", "main    ", "garden *", "0%", "10/500"} {
		if !strings.Contains(text, want) {
			t.Errorf("the screen lacks %q:\n%s", want, text)
		}
	}
	for _, line := range page {
		if n := term.Columns(line); n > 200 {
			t.Errorf("a line of %d columns: %q", n, line)
		}
	}

	// A file that changes is seen, and so is one that cannot be read, and that it can again.
	index := filepath.Join(state, "agents/work/sessions/sessions.json")
	rows, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	write(t, index, strings.Replace(string(rows), "{", `{"agent:work:explicit:one-more": {"sessionId": "one-more", "updatedAt": 1790000000000, "status": "running"},`, 1))
	s.await("11/500", true)
	s.await("agent:work:explicit:one-more", true)
	if took := time.Since(at); took > 10*time.Second {
		t.Errorf("it took %v to be seen", took)
	}
	write(t, index, string(rows[:len(rows)/2]))
	s.await("damaged", true)
	write(t, index, string(rows))
	s.await("damaged", false)
	s.await("10/500", true)

	// Another size; and what there is no room for is scrolled to.
	s.resize(60, 12)
	s.await("q quits", true)
	for end := time.Now().Add(10 * time.Second); len(s.screen()) != 12; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d lines on a screen of 12", len(s.screen()))
		}
	}
	s.await("Newest", false)
	s.types("\x1b[6~\x1b[6~\x1b[B")
	s.await("Newest", true)
	s.types("\x1b[5~\x1b[5~\x1b[A\x1b[A")
	s.await("none seems to live here", true)
	s.types("q")
	s.ends(ExitDone)
}

// However it is ended, the terminal is as it was.
func TestStatusWatchEnds(t *testing.T) {
	_, environ := watchable(t)
	for keys, exit := range map[string]int{"\x03": ExitDone, "\x1b": ExitDone, "Q": ExitDone, "": ExitInterrupted} {
		ctx, stop := context.WithCancel(t.Context())
		s := sit(ctx, t, 80, 24, environ, "status", "--watch")
		s.await("q quits", true)
		if keys == "" {
			stop() // as SIGTERM does
		} else {
			s.types(keys)
		}
		s.ends(exit)
		stop()
	}
}

// Looking for long leaves the state as it was.
func TestStatusWatchChangesNothing(t *testing.T) {
	state, environ := watchable(t)
	before := shape(t, state)
	s := sit(t.Context(), t, 80, 24, environ, "status", "--watch")
	s.await("q quits", true)
	time.Sleep(3 * time.Second) // past a poll
	drawn := strings.Count(s.all(), "\x1b[?2026h")
	s.types("q")
	s.ends(ExitDone)
	if after := shape(t, state); after != before {
		t.Error("the state is not as it was")
	}
	if drawn > 6 {
		t.Errorf("it was drawn %d times although nothing happened", drawn)
	}
}

// shape is every file of a state with its size, mode and time.
func shape(t *testing.T, state string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(state, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			fmt.Fprintln(&b, path, info.Size(), info.Mode(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestStatusWatchNeedsATerminal(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	if err := fixtures.Demo().Write(state); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--watch"}, {"--watch", "--json"}, {"--watch", "--live"}, {"--watch", "--session", "main"}, {"--watch", "--changes-since", "1"}} {
		if a := at(t, state, append([]string{"status"}, args...)...); a.exit != ExitUsage {
			t.Errorf("%q: exit %d: %s", args, a.exit, a.errout)
		}
	}
}
