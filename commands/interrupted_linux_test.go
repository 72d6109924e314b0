package commands

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"oc/fixtures"
)

// Whatever asks for an end, be it a key, a service manager or a terminal that is closed, leaves nothing behind: of a file that was being
// written neither a part nor its temporary name, and of a reader that follows its exit status. Under nohup a closed terminal is nothing.
func TestToldToEnd(t *testing.T) {
	talk := fixtures.Talk(talkID, fixtures.Now-fixtures.Day)
	for i := range 40_000 {
		talk.User(fmt.Sprintf("%d %s", i, strings.Repeat("a word ", 20)))
	}
	state := talkState(t, fixtures.FileEra, talk)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		dir := t.TempDir()
		b := begin(t, quiet(t, fixtures.Now), "--state-dir", state, "sessions", "export", "main", "--archives", "--output", filepath.Join(dir, "main.md"))
		for until := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			if names, _ := os.ReadDir(dir); len(names) > 0 {
				break
			}
			if time.Now().After(until) {
				t.Fatal("nothing is written")
			}
		}
		_ = b.cmd.Process.Signal(sig)
		a := b.end()
		left, err := os.ReadDir(dir)
		if a.exit != ExitInterrupted || err != nil || len(left) > 0 {
			t.Errorf("%v: exit %d, %s, left: %v", sig, a.exit, a.errout, left)
		}
	}
	path, err := exec.LookPath("oc")
	if err != nil {
		t.Fatal(err)
	}
	kept := exec.Command("sh", "-c", `trap "" HUP; exec "$0" "$@"`, path, "--state-dir", state, "sessions", "tail", "main", "--follow", "--for", "1s", "--tail", "1")
	out, err := kept.StdoutPipe()
	if err == nil {
		err = kept.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1)
	if _, err := out.Read(first); err != nil {
		t.Fatal(err)
	}
	_ = kept.Process.Signal(syscall.SIGHUP)
	if err := kept.Wait(); err != nil {
		t.Errorf("under nohup: %v", err)
	}
}

// One that follows ends when its reader has left, also where nothing more is written.
func TestFollowEndsWithItsReader(t *testing.T) {
	state := talkState(t, fixtures.FileEra, fixtures.Talk(talkID, fixtures.Now-fixtures.Day).User("hello"))
	path, err := exec.LookPath("oc")
	if err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{nil, {"--json"}} {
		follow := exec.Command(path, append([]string{"--state-dir", state, "sessions", "tail", "main", "--follow", "--for", "20s"}, flags...)...)
		out, err := follow.StdoutPipe()
		if err == nil {
			err = follow.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		out.Close()
		if err := follow.Wait(); err != nil || time.Since(began) > 10*time.Second {
			t.Errorf("%v: %v after %v", flags, err, time.Since(began))
		}
	}
}
