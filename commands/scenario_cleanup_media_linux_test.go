package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"oc/fixtures"
)

// mounted mounts something on a directory while the test runs. It takes root.
func mounted(t *testing.T, dir, kind string, flags uintptr, options string) string {
	t.Helper()
	err := syscall.Mount(dir, dir, kind, flags, options)
	if err == nil && flags&syscall.MS_BIND != 0 {
		err = syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, "")
	}
	if err != nil {
		t.Fatalf("mount (this test runs as root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Media that cannot be written: a dry run answers, a cleanup and an undo fail with 1, and nothing is touched.
func TestCleanupOfReadOnlyMedia(t *testing.T) {
	state, _ := oldState(t, t.TempDir(), 6, "")
	if a := at(t, state, "sessions", "cleanup", "--older-than", "39d"); a.exit != ExitDone {
		t.Fatal(a.errout)
	}
	before := tree(t, state)
	mounted(t, state, "", syscall.MS_BIND, "")
	if a := at(t, state, "sessions", "cleanup", "--dry-run"); a.exit != ExitDone || !strings.Contains(a.out, "lost.jsonl") {
		t.Errorf("dry run: exit %d: %s%s", a.exit, a.out, a.errout)
	}
	if a := at(t, state, "undo", "--dry-run"); a.exit != ExitDone {
		t.Errorf("rehearsal of an undo: exit %d: %s", a.exit, a.errout)
	}
	for _, args := range [][]string{{"sessions", "cleanup"}, {"sessions", "cleanup", "--purge", "--json"}, {"undo"}, {"undo", "--expire", "all"}} {
		a := at(t, state, args...)
		if a.exit != ExitFailed || !strings.Contains(a.errout, "read-only file system") {
			t.Errorf("%v: exit %d: %s", args, a.exit, a.errout)
		}
	}
	if now := tree(t, state); now != before {
		t.Errorf("changed:\n%s\nbefore:\n%s", now, before)
	}
}

// A disk that is full to the last byte: cleanup names --purge and changes nothing; --purge makes room with what no row names, then drops rows.
func TestCleanupOfAFullDisk(t *testing.T) {
	disk := mounted(t, t.TempDir(), "tmpfs", 0, "size=4m")
	state, store := oldState(t, disk, 40, "")
	sessions := filepath.Dir(store)
	for i := range 3 {
		write(t, filepath.Join(sessions, fmt.Sprintf("a%d.jsonl.reset.2020-01-01T00-00-00.000Z", i)), strings.Repeat("x", 100<<10))
	}
	fill(t, filepath.Join(disk, "filler"))
	before := ownless(t, state)
	a := at(t, state, "sessions", "cleanup")
	if a.exit != ExitFailed || !strings.Contains(a.errout, "not enough room") || !strings.Contains(a.errout, "--purge") || !strings.Contains(a.errout, "nothing was changed") {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	if now := ownless(t, state); now != before {
		t.Fatalf("changed:\n%s\nbefore:\n%s", now, before)
	}
	a = at(t, state, "sessions", "cleanup", "--purge", "--json")
	if a.exit != ExitDone || dig(a.doc(t), "afterCount") != 20.0 || dig(a.doc(t), "undo", "possible") != false || dig(a.doc(t), "committed", "savedBytes") != 0.0 {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	if freed, _ := dig(a.doc(t), "committed", "freedBytes").(float64); freed < 300<<10 {
		t.Errorf("%v bytes are said to be freed", freed)
	}
	whole(t, store)
	if a := at(t, state, "sessions", "cleanup"); a.exit != ExitDone || !strings.Contains(a.out, "Nothing to do.") {
		t.Errorf("again: exit %d: %s%s", a.exit, a.out, a.errout)
	}
	// Where nothing can make room, --purge is not named once more.
	state, _ = oldState(t, filepath.Join(disk, "b"), 4, `{"session":{"maintenance":{"resetArchiveRetention":false}}}`)
	for _, name := range []string{"gone.jsonl.deleted.2020-01-01T00-00-00.000Z", "sessions.json.12345678-1234-4234-8234-123456789012.tmp"} {
		if err := os.Remove(filepath.Join(state, "agents/main/sessions", name)); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, filepath.Join(disk, "filler"))
	before = ownless(t, state)
	a = at(t, state, "sessions", "cleanup", "--purge")
	if a.exit != ExitFailed || !strings.Contains(a.errout, "make room in another way") || ownless(t, state) != before {
		t.Errorf("exit %d: %s", a.exit, a.errout)
	}
}

// fill takes what is left of a disk.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
}

// A user who may not write there: exit 1, nothing changed; one who may, but cannot read a transcript that has to be saved: the same.
func TestCleanupWithoutPermission(t *testing.T) {
	s := newStage(t)
	for _, c := range []struct {
		name string
		harm func(state, sessions string) error
	}{
		{"state", func(state, _ string) error { return os.Chmod(state, 0o555) }},
		{"sessions", func(_, sessions string) error { return os.Chmod(sessions, 0o555) }},
		{"store", func(_, sessions string) error { return os.Chmod(filepath.Join(sessions, "sessions.json"), 0) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := *s
			s.t = t
			state, store := oldState(t, openDir(t), 6, "")
			s.give(state)
			t.Cleanup(func() { fixtures.Unseal(state) }) //nolint:errcheck // it is removed next
			before := ownless(t, state)
			if err := c.harm(state, filepath.Dir(store)); err != nil {
				t.Fatal(err)
			}
			modes := ownless(t, state)
			for _, args := range [][]string{nil, {"--purge"}, {"--json"}} {
				a := s.oc(state, append([]string{"sessions", "cleanup"}, args...)...)
				if a.exit != ExitFailed && a.exit != ExitRefused || !strings.Contains(a.errout, "permission denied") || !strings.Contains(a.errout, "nothing was changed") {
					t.Errorf("%v: exit %d: %s", args, a.exit, a.errout)
				}
				if now := ownless(t, state); now != modes {
					t.Fatalf("%v changed:\n%s\nbefore:\n%s", args, now, before)
				}
			}
		})
	}
	// What belongs to that user is cleaned by root for that user.
	state, store := oldState(t, openDir(t), 6, "")
	s.give(state)
	if a := at(t, state, "sessions", "cleanup"); a.exit != ExitDone {
		t.Fatalf("exit %d: %s", a.exit, a.errout)
	}
	info, err := os.Stat(store)
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid != nobody || info.Mode().Perm() != 0o600 || time.Since(info.ModTime()) > time.Minute {
		t.Errorf("the new store: %d %s %s", st.Uid, info.Mode(), info.ModTime())
	}
	if a := s.oc(state, "undo"); a.exit != ExitDone {
		t.Errorf("undo: exit %d: %s", a.exit, a.errout)
	}
}
