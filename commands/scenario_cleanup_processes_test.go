//go:build unix

package commands

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"oc/fixtures"
	"oc/store/span"
)

// begun is a process of oc on its way.
type begun struct {
	cmd         *exec.Cmd
	out, errout bytes.Buffer
}

func begin(t *testing.T, env map[string]string, args ...string) *begun {
	t.Helper()
	path, err := exec.LookPath("oc")
	if err != nil {
		t.Fatal(err)
	}
	b := &begun{cmd: exec.Command(path, args...)}
	b.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TZ=UTC", "LANG=C.UTF-8", "NO_COLOR=1", "TERM=dumb", "GORACE=atexit_sleep_ms=0"}
	for k, v := range env {
		b.cmd.Env = append(b.cmd.Env, k+"="+v)
	}
	b.cmd.Stdout, b.cmd.Stderr = &b.out, &b.errout
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *begun) end() answer {
	_ = b.cmd.Wait() // its status is looked at
	return answer{b.cmd.ProcessState.ExitCode(), b.out.String(), b.errout.String()}
}

// Two processes at once: what one does not do the other does, nothing is lost, and all of it comes back.
func TestTwoCleanupsAtOnce(t *testing.T) {
	env := quiet(t, fixtures.Now)
	busy := 0
	for range 15 {
		state, store := oldState(t, t.TempDir(), 40, "")
		before := ownless(t, state)
		var all []*begun
		for range 2 {
			all = append(all, begin(t, env, "--state-dir", state, "sessions", "cleanup", "--json"))
			time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
		}
		for _, b := range all {
			switch a := b.end(); a.exit {
			case ExitDone:
			case ExitBusy:
				busy++
			default:
				t.Fatalf("exit %d: %s", a.exit, a.errout)
			}
		}
		whole(t, store)
		if a := ocRun(t, state, env, "--state-dir", state, "sessions", "cleanup"); a.exit != ExitDone || !strings.Contains(a.out, "Nothing to do.") || a.errout != "" {
			t.Fatalf("left over: exit %d %s%s", a.exit, a.out, a.errout)
		}
		text, err := os.ReadFile(store)
		if err != nil {
			t.Fatal(err)
		}
		if rows := len(span.Members(text)); rows != 20 {
			t.Fatalf("%d rows are left", rows)
		}
		takeAllBack(t, env, state)
		if now := ownless(t, state); now != before {
			t.Fatalf("after the undo:\n%s\nbefore:\n%s", now, before)
		}
	}
	t.Logf("15 rounds; %d times one of the two was told to try again", busy)
}

// Two states have one directory of sessions: they keep each other out of it, though each has its own journal, and nothing new stands there.
func TestTwoStatesOfOneStore(t *testing.T) {
	env := quiet(t, fixtures.Now)
	root := t.TempDir()
	state, store := oldState(t, root, 40, "")
	other := filepath.Join(root, "other")
	write(t, filepath.Join(other, "openclaw.json"), fmt.Sprintf(`{"session": {"store": %q}}`, store))
	before := ownless(t, state)
	dir := flock.New(filepath.Dir(store), flock.SetFlag(os.O_RDONLY))
	if err := dir.Lock(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"cleanup"}, {"delete", "--yes", "agent:main:explicit:0"}} {
		a := ocRun(t, state, env, append([]string{"--state-dir", other, "sessions"}, args...)...)
		if a.exit != ExitBusy || !strings.Contains(a.errout, filepath.Dir(store)) {
			t.Errorf("%v: exit %d: %s", args, a.exit, a.errout)
		}
		if now := ownless(t, state); now != before {
			t.Fatalf("changed all the same:\n%s", now)
		}
	}
	if err := dir.Unlock(); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		var all []*begun
		for _, s := range []string{state, other} {
			all = append(all, begin(t, env, "--state-dir", s, "sessions", "cleanup", "--json"))
			time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
		}
		for _, b := range all {
			if a := b.end(); a.exit != ExitDone && a.exit != ExitBusy {
				t.Fatalf("exit %d: %s", a.exit, a.errout)
			}
		}
		whole(t, store)
		if _, err := os.Lstat(filepath.Join(filepath.Dir(store), ".oc")); err == nil {
			t.Error("there is a .oc among the sessions")
		}
		if text := read(t, store); len(span.Members([]byte(text))) != 20 {
			t.Fatalf("left:\n%s", text)
		}
		takeAllBack(t, env, state)
		takeAllBack(t, env, other)
		if now := ownless(t, state); now != before {
			t.Fatalf("after the undo:\n%s\nbefore:\n%s", now, before)
		}
	}
}

// A process of OpenClaw's kind replaces the store again and again while oc cleans it: its last write stands in the end, or oc says that the
// store keeps changing.
func TestCleanupBesideAWriter(t *testing.T) {
	env := quiet(t, fixtures.Now)
	done, changed, writes := 0, 0, 0
	for round := range 30 {
		state, store := oldState(t, t.TempDir(), 20, "")
		stop := make(chan struct{})
		last := 0
		var failed error
		var wg sync.WaitGroup
		wg.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if failed = replaceStore(store, n); failed != nil {
					return
				}
				last = n
				time.Sleep(time.Duration(rand.IntN(100<<(round/2))) * time.Microsecond) // from far faster than oc to far slower, on any machine
			}
		})
		a := begin(t, env, "--state-dir", state, "sessions", "cleanup", "--json").end()
		close(stop)
		wg.Wait()
		if failed != nil {
			t.Fatal(failed)
		}
		switch a.exit {
		case ExitDone:
			done++
		case ExitBusy:
			changed++
			if !strings.Contains(a.errout, "keeps changing") {
				t.Errorf("exit 5: %s", a.errout)
			}
		default:
			t.Fatalf("exit %d: %s", a.exit, a.errout)
		}
		writes += last
		text, err := os.ReadFile(store)
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := span.Float(span.Path(text, "agent:main:main", "n")); !ok || int(n) != last {
			t.Fatalf("round %d, exit %d: the last write was %d, the store has %v", round, a.exit, last, n)
		}
	}
	t.Logf("%d rounds cleaned, %d gave up, beside %d writes", done, changed, writes)
	if changed == 0 || done == 0 {
		t.Error("one of the two never happened")
	}
}

// replaceStore writes a row as OpenClaw writes its store: read, change, replace.
func replaceStore(store string, n int) error {
	text, err := os.ReadFile(store)
	if err != nil {
		return err
	}
	out := []byte("{")
	for _, m := range span.Members(text) {
		if m.Name != "agent:main:main" {
			out = append(append(append(span.Quote(append(out, "\n  "...), m.Name), ": "...), m.Val...), ',')
		}
	}
	out = fmt.Appendf(out, "\n  \"agent:main:main\": {\"n\": %d, \"updatedAt\": %d}\n}", n, fixtures.Now)
	temp := fmt.Sprintf("%s.99999.%08d-1234-4234-8234-123456789012.tmp", store, n)
	if err := os.WriteFile(temp, out, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, store)
}

var runID = regexp.MustCompile(`[0-9]{8}-[0-9]{6}-[0-9a-f]{8}`)

// Ctrl-C and a kill at random moments: right after, no row is without its transcript; Ctrl-C exits with 130 and names the run, or says that
// nothing was changed, and then nothing is; the next run finishes, and undo brings all back.
func TestCleanupCutShort(t *testing.T) {
	env := quiet(t, fixtures.Now)
	const rows = 300
	state, _ := oldState(t, t.TempDir(), rows, "")
	began := time.Now()
	if a := begin(t, env, "--state-dir", state, "sessions", "cleanup").end(); a.exit != ExitDone {
		t.Fatal(a.errout)
	}
	length, after := time.Since(began), newer(t, state)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			seen := map[string]int{}
			for round := range 30 {
				state, store := oldState(t, t.TempDir(), rows, "")
				before := ownless(t, state)
				b := begin(t, env, "--state-dir", state, "sessions", "cleanup")
				if round%2 == 0 {
					time.Sleep(time.Duration(rand.Int64N(int64(length))))
				} else {
					swapped(store, length)
				}
				_ = b.cmd.Process.Signal(sig) // it may have ended
				a := b.end()
				whole(t, store)
				now := ownless(t, state)
				switch {
				case a.exit == ExitDone:
					seen["done"]++
				case sig == syscall.SIGKILL && a.exit == -1:
					seen["killed"]++
				case sig == syscall.SIGINT && a.exit == -1:
					seen["before it listened"]++ // in the first milliseconds of a process
				case a.exit != ExitInterrupted:
					t.Fatalf("exit %d: %s", a.exit, a.errout)
				case strings.Contains(a.errout, "nothing was changed"):
					seen["nothing changed"]++
					if now != before {
						t.Fatalf("it says that nothing was changed:\n%s\nbefore:\n%s", now, before)
					}
				default:
					seen["a run is named"]++
					id := runID.FindString(a.errout)
					if _, err := os.Lstat(filepath.Join(state, ".oc/runs", id+".json")); id == "" || err != nil {
						t.Fatalf("the run is not named: %s %v", a.errout, err)
					}
				}
				next := ocRun(t, state, env, "--state-dir", state, "sessions", "cleanup")
				if next.exit != ExitDone {
					t.Fatalf("the next run: exit %d: %s", next.exit, next.errout)
				}
				if now := newer(t, state); now != after {
					t.Fatalf("after the next run:\n%s\nwant:\n%s", now, after)
				}
				takeAllBack(t, env, state)
				if now := ownless(t, state); now != before {
					t.Fatalf("after the undo:\n%s\nbefore:\n%s", now, before)
				}
			}
			t.Logf("of 30: %v", seen)
		})
	}
}

// swapped waits until a new store stands, when files are still to be moved.
func swapped(store string, atMost time.Duration) {
	at := fixtures.Now - fixtures.Minute
	for end := time.Now().Add(2 * atMost); time.Now().Before(end); {
		if info, err := os.Lstat(store); err == nil && info.ModTime().UnixMilli() != at {
			return
		}
	}
}
