//go:build unix

package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"oc/maintenance/journal"
)

// shortenings are the commands that ask somebody about a conversation and change its session. "WS" stands for a workspace.
var shortenings = []struct {
	name string
	line []string
	done string // stands in the row then
}{
	{"compact", []string{"compact", "cron:x", "--keep-recent-tokens", "400"}, `"compactionCount":2`},
	{"compact --successor", []string{"compact", "cron:x", "--keep-recent-tokens", "400", "--successor"}, `"compactionCount":2`},
	{"flush", []string{"flush", "cron:x", "--workspace", "WS"}, `"memoryFlushCompactionCount":1`},
}

// shortenedState is a state with a workspace in it and what its transcript holds.
type shortenedState struct {
	state, sessions, ws string
	old                 string
	before              []string
}

func newShortenedState(t *testing.T) *shortenedState {
	t.Helper()
	x := &shortenedState{}
	x.state, x.sessions, _ = longTalk(t, `{agents: {defaults: {userTimezone: "UTC"}}}`, invoices(12)...)
	x.ws = filepath.Join(x.state, "ws")
	if err := os.Mkdir(x.ws, 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(x.sessions, longTalkID+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	x.old, x.before = string(text), kept(t, x.state)
	return x
}

func (x *shortenedState) args(line []string, provider string) []string {
	args := append([]string{"--state-dir", x.state, "sessions"}, line...)
	if i := slices.Index(args, "WS"); i >= 0 {
		args[i] = x.ws
	}
	return append(args, "--provider", provider)
}

// whole holds that the store parses, and that the transcript that the row names has every line of the old one or, where it is the next one,
// the summary and the last message; and that the old one is there in any case.
func (x *shortenedState) whole(t *testing.T, where string) (row string) {
	t.Helper()
	row = rowsOf(t, x.sessions)["agent:main:cron:x"]
	var r struct{ SessionID, SessionFile string }
	if err := json.Unmarshal([]byte(row), &r); err != nil {
		t.Fatalf("%s: the row %s: %v", where, row, err)
	}
	text, err := os.ReadFile(filepath.Join(x.sessions, longTalkID+".jsonl"))
	rest, ok := strings.CutPrefix(string(text), x.old)
	if err != nil || !ok || rest != "" && (strings.Count(rest, "\n") != 1 || !strings.Contains(rest, `"type":"compaction"`) || !strings.HasSuffix(rest, "}\n")) {
		t.Errorf("%s: the transcript: %v, it goes on with %q", where, err, rest)
	}
	if r.SessionID == longTalkID {
		return row
	}
	text, err = os.ReadFile(r.SessionFile)
	if err != nil || strings.Count(string(text), `"type":"compaction"`) != 1 || !strings.Contains(string(text), "invoice 11 of") || !strings.HasSuffix(string(text), "}\n") {
		t.Errorf("%s: the next transcript: %v: %.2000s", where, err, text)
	}
	return row
}

// goesOn runs the command once more, after the five minutes in which a transcript counts as in use, and takes everything back.
func (x *shortenedState) goesOn(t *testing.T, where, done string, args []string, run func(clock time.Duration, args ...string) answer) {
	t.Helper()
	if a := run(20*time.Minute, args...); a.exit != ExitDone {
		t.Errorf("%s: the next command: exit %d: %s%s", where, a.exit, a.errout, a.out)
	}
	if row := x.whole(t, where+", and then"); !strings.Contains(row, done) {
		t.Errorf("%s: after the next command the row is %s", where, row)
	}
	for range 3 {
		a := run(40*time.Minute, "--state-dir", x.state, "undo")
		if strings.Contains(a.errout, "no run that can be taken back") {
			break
		}
		if a.exit != ExitDone {
			t.Errorf("%s: undo: exit %d: %s%s", where, a.exit, a.errout, a.out)
		}
	}
	if now := kept(t, x.state); !slices.Equal(now, x.before) {
		t.Errorf("%s: after undo:\n%s\nwant\n%s", where, strings.Join(now, "\n"), strings.Join(x.before, "\n"))
	}
}

// Stopped, as by a kill, at every operation on files: the transcript is whole at once, the same command then does it once, and undo brings
// every byte back. At every single one in CI, where OC_FAULTS is set; else at every seventh.
func TestShorteningStoppedAnywhere(t *testing.T) {
	step := 7
	if os.Getenv("OC_FAULTS") != "" {
		step = 1
	}
	for _, c := range shortenings {
		t.Run(c.name, func(t *testing.T) {
			for n, total := 0, 0; n <= total; n += step { // the first time nothing happens, and the operations are counted
				x := newShortenedState(t)
				args := x.args(c.line, "extract")
				now := time.Now()
				through := func(f journal.FS) func(time.Duration, ...string) answer {
					return func(clock time.Duration, args ...string) answer {
						var out, errout bytes.Buffer
						exit := Main(t.Context(), Process{
							Args: append([]string{"--offline"}, args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errout, Dir: x.state, Now: time.Now, under: under{f, lonely{}, x.state},
							Environ: []string{"HOME=" + x.state, "TZ=UTC", "NO_COLOR=1", "OPENCLAW_GATEWAY_PORT=1", fmt.Sprintf("OC_NOW=%d", now.Add(clock).UnixMilli())},
						})
						return answer{exit, out.String(), errout.String()}
					}
				}
				f := &journal.Faults{FS: quickly{journal.OS()}, At: n}
				a := through(f)(0, args...)
				if n == 0 {
					if total = f.Count(); total < 15 || a.exit != ExitDone {
						t.Fatalf("%d operations, exit %d: %s", total, a.exit, a.errout)
					}
				}
				where := fmt.Sprintf("operation %d of %d", n, total)
				x.whole(t, where)
				x.goesOn(t, where, c.done, args, through(quickly{journal.OS()}))
				if t.Failed() {
					return
				}
			}
		})
	}
}

// A process that SIGKILL ends, while it waits for a provider and at moments spread over its whole run: the same holds.
func TestShorteningKilled(t *testing.T) {
	for _, c := range shortenings {
		t.Run(c.name, func(t *testing.T) {
			now := time.Now()
			environ := func(clock time.Duration) map[string]string {
				return quiet(t, now.Add(clock).UnixMilli())
			}
			run := func(clock time.Duration, args ...string) answer { return begin(t, environ(clock), args...).end() }
			// By the provider that it asked.
			x := newShortenedState(t)
			if a := run(0, x.args(c.line, scripted(t, "cat >/dev/null; kill -9 $PPID"))...); a.exit != -1 {
				t.Fatalf("it was not killed: exit %d: %s%s", a.exit, a.errout, a.out)
			}
			if now := kept(t, x.state); !slices.Equal(now, x.before) {
				t.Errorf("it waited for an answer, and something was changed:\n%s", strings.Join(now, "\n"))
			}
			x.goesOn(t, "while it waits", c.done, x.args(c.line, "extract"), run)
			// And at six moments of a run.
			x = newShortenedState(t)
			began := time.Now()
			if a := run(0, x.args(c.line, "extract")...); a.exit != ExitDone {
				t.Fatalf("exit %d: %s", a.exit, a.errout)
			}
			length, killed := time.Since(began), 0
			for i := range 6 {
				x := newShortenedState(t)
				args := x.args(c.line, "extract")
				b := begin(t, environ(0), args...)
				time.Sleep(length * time.Duration(i+1) / 7)
				_ = b.cmd.Process.Signal(syscall.SIGKILL) // it may have ended
				a := b.end()
				if a.exit == -1 {
					killed++
				} else if a.exit != ExitDone {
					t.Errorf("exit %d: %s", a.exit, a.errout)
				}
				where := fmt.Sprintf("killed after %d/7", i+1)
				x.whole(t, where)
				x.goesOn(t, where, c.done, args, run)
				if t.Failed() {
					return
				}
			}
			t.Logf("%d of 6 were killed before they were done", killed)
		})
	}
}
