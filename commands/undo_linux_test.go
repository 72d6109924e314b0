package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A disk without room: an undo says before its first step how much is missing, and other runs can be given up, though one is cut short.
func TestUndoOnAFullDisk(t *testing.T) {
	disk := mounted(t, t.TempDir(), "tmpfs", 0, "size=4m")
	state, _ := oldState(t, disk, 6, "")
	for _, args := range [][]string{{"--older-than", "39d"}, {"--older-than", "2h"}} {
		if a := at(t, state, append([]string{"sessions", "cleanup"}, args...)...); a.exit != ExitDone {
			t.Fatal(a.errout)
		}
	}
	filler := filepath.Join(disk, "filler")
	fill(t, filler)
	before := ownless(t, state)
	a := at(t, state, "undo")
	for _, want := range []string{"nothing was changed", "bytes are missing", "oc undo --expire"} {
		if a.exit != ExitFailed || !strings.Contains(a.errout, want) {
			t.Errorf("exit %d, without %q: %s", a.exit, want, a.errout)
		}
	}
	if now := ownless(t, state); now != before {
		t.Errorf("changed:\n%s", now)
	}
	runs, err := filepath.Glob(filepath.Join(state, ".oc/runs/*.json"))
	if err != nil || len(runs) != 2 {
		t.Fatal(runs, err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	cut, other := runs[0], strings.TrimSuffix(filepath.Base(runs[1]), ".json")
	restate(t, cut, "undoing")
	fill(t, filler)
	if a := at(t, state, "undo", "--expire", other); a.exit != ExitDone || !strings.Contains(a.out, "Gave up the saved bytes of 1 run:") {
		t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	if a := at(t, state, "undo", "--expire", "all"); a.exit != ExitFailed || !strings.Contains(a.errout, "was cut short and is left as it is") {
		t.Errorf("all: exit %d: %s%s", a.exit, a.out, a.errout)
	}
}

// The owner, who is not of a file's group, takes back what root cleaned: the file comes back, and its other group is told.
func TestUndoWithoutTheGroup(t *testing.T) {
	s := newStage(t)
	state, store := oldState(t, openDir(t), 6, "")
	s.give(state)
	if err := os.Chown(store, nobody, 12345); err != nil {
		t.Fatal(err)
	}
	if a := at(t, state, "sessions", "cleanup"); a.exit != ExitDone {
		t.Fatal(a.errout)
	}
	a := s.oc(state, "undo")
	if !strings.Contains(a.out, "Took back") || !strings.Contains(a.errout, "had 12345") {
		t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	if a := s.oc(state, "undo"); !strings.Contains(a.errout, "no run that can be taken back") {
		t.Errorf("the run is not closed: %s%s", a.out, a.errout)
	}
}
