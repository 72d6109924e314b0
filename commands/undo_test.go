package commands

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"oc/fixtures"
	"oc/maintenance"
	"oc/maintenance/journal"
)

// A conversation comes back together or not at all: while its transcript is away its row stays out, is named, and can come back later.
func TestUndoKeepsConversationsTogether(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(archive string) error
		mend func(archive, transcript string) error
	}{
		{"grown", func(archive string) error { return grow(archive) }, os.Rename},
		{"moved away", func(archive string) error { return os.Rename(archive, archive+".aside") }, func(a, t string) error { return os.Rename(a+".aside", t) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, store := oldState(t, t.TempDir(), 6, "")
			if a := at(t, state, "sessions", "cleanup"); a.exit != ExitDone {
				t.Fatal(a.errout)
			}
			archive := oneOf(t, filepath.Join(filepath.Dir(store), "s000*.jsonl.deleted.2*"))
			transcript, _, _ := strings.Cut(archive, ".deleted.")
			id := strings.TrimSuffix(filepath.Base(transcript), ".jsonl")
			if err := c.harm(archive); err != nil {
				t.Fatal(err)
			}
			dry := at(t, state, "undo", "--dry-run")
			a := at(t, state, "undo")
			for _, said := range []string{dry.errout, a.errout} {
				if !strings.Contains(said, "stays out: its transcript "+id+".jsonl is not back") {
					t.Errorf("not said: %s", said)
				}
			}
			if text := read(t, store); a.exit != ExitFailed || strings.Contains(text, `"`+id+`"`) {
				t.Errorf("exit %d; the row of %s is back without its transcript: %s", a.exit, id, text)
			}
			if err := c.mend(archive, transcript); err != nil {
				t.Fatal(err)
			}
			if a := at(t, state, "undo"); a.exit != ExitDone || !strings.Contains(read(t, store), `"`+id+`"`) {
				t.Errorf("the rest: exit %d: %s%s\n%s", a.exit, a.out, a.errout, read(t, store))
			}
			if a := at(t, state, "undo"); !strings.Contains(a.errout, "no run that can be taken back") {
				t.Errorf("the run is not closed: %s%s", a.out, a.errout)
			}
		})
	}
}

func grow(path string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("{\"type\":\"message\"}\n")
		_ = f.Close()
	}
	return err
}

func oneOf(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}
	return found[0]
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// restate makes a run look as if it had been cut short.
func restate(t *testing.T, manifest, state string) {
	t.Helper()
	text := read(t, manifest)
	now := strings.Replace(text, `"state":"done"`, `"state":"`+state+`"`, 1)
	if now == text {
		t.Fatalf("%s is not done", manifest)
	}
	write(t, manifest, now)
}

// What was cut short is closed first: finished and taken back, or rolled back, and then nothing older is touched.
func TestUndoOfACutShortRun(t *testing.T) {
	for _, c := range []struct {
		name, dry, did string
		back           bool // the cut came before the new store stood
	}{
		{"after the store", "It would be finished, and then taken back.", "It is finished, so that it can be taken back.", false},
		{"before the store", "It would be rolled back", "It is rolled back", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, store := oldState(t, t.TempDir(), 6, "")
			if a := at(t, state, "sessions", "cleanup", "--older-than", "39d"); a.exit != ExitDone { // an older run
				t.Fatal(a.errout)
			}
			write(t, filepath.Join(filepath.Dir(store), "stray.jsonl"), "{}\n")
			first := oneOf(t, filepath.Join(state, ".oc/runs/*.json"))
			before := ownless(t, state)
			aside := filepath.Join(t.TempDir(), "sessions")
			if out, err := exec.Command("cp", "-a", filepath.Dir(store), aside).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if a := at(t, state, "sessions", "cleanup", "--older-than", "1h"); a.exit != ExitDone {
				t.Fatal(a.errout)
			}
			runs, _ := filepath.Glob(filepath.Join(state, ".oc/runs/*.json"))
			if len(runs) != 2 {
				t.Fatal(runs)
			}
			for _, run := range runs {
				if run != first {
					restate(t, run, "applying")
				}
			}
			if c.back {
				if err := os.RemoveAll(filepath.Dir(store)); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(aside, filepath.Dir(store)); err != nil {
					t.Fatal(err)
				}
			}
			cut := ownless(t, state)
			if a := at(t, state, "undo", "--list"); !strings.Contains(a.out, "cut short") {
				t.Errorf("list: %s", a.out)
			}
			if a := at(t, state, "undo", "--dry-run"); a.exit != ExitDone || !strings.Contains(a.out, c.dry) || ownless(t, state) != cut {
				t.Errorf("dry run: exit %d: %s%s", a.exit, a.out, a.errout)
			}
			a := at(t, state, "undo")
			if a.exit != ExitDone || !strings.Contains(a.out, c.did) || strings.Contains(a.out, "Took back") == c.back {
				t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
			}
			if now := ownless(t, state); now != before {
				t.Errorf("now:\n%s\nbefore:\n%s", now, before)
			}
		})
	}
}

// One thing at a time.
func TestUndoFlags(t *testing.T) {
	state, _ := oldState(t, t.TempDir(), 6, "")
	if a := at(t, state, "sessions", "cleanup"); a.exit != ExitDone {
		t.Fatal(a.errout)
	}
	before := tree(t, state)
	for _, args := range [][]string{
		{"--list", "--expire", "all"}, {"--list", "--dry-run"}, {"--expire", "all", "--dry-run"}, {"--list", "20261130-154528-00000000"}, {"--expire", "all", "20261130-154528-00000000"},
	} {
		a := at(t, state, append([]string{"undo"}, args...)...)
		if a.exit != ExitUsage || !strings.Contains(a.errout, "exclude each other") || tree(t, state) != before {
			t.Errorf("%v: exit %d: %s%s", args, a.exit, a.out, a.errout)
		}
	}
}

// On 80 columns the list is whole: the newest run first, those that are over last, each with its command.
func TestUndoList(t *testing.T) {
	state, store := oldState(t, t.TempDir(), 6, "")
	for i, age := range []string{"39d", "2h"} {
		if a := ocRun(t, state, quiet(t, fixtures.Now+int64(i)*1000), "--state-dir", state, "sessions", "cleanup", "--older-than", age); a.exit != ExitDone {
			t.Fatal(a.errout)
		}
	}
	write(t, filepath.Join(filepath.Dir(store), "x.jsonl"), "{}\n")
	if a := at(t, state, "undo"); a.exit != ExitDone {
		t.Fatal(a.errout)
	}
	a := at(t, state, "undo", "--list")
	lines := strings.Split(strings.TrimSpace(a.out), "\n")
	if len(lines) != 5 || len(lines[0]) > 80 || !strings.Contains(lines[1], "possible") || !strings.HasSuffix(lines[2], "--older-than 39d") || !strings.Contains(lines[3], "taken back") ||
		strings.Contains(a.out, "…") {
		t.Errorf("%s", a.out)
	}
	for i, line := range lines {
		if i%2 == 1 && len(line) > 80 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// Who interrupts a change hears of the way back, where there is one.
func TestInterruptionNamesUndo(t *testing.T) {
	for _, purge := range []bool{false, true} {
		d := &maintenance.Done{Run: &journal.Run{ID: "r", State: journal.Applying, Purge: purge}}
		if err := changeError(context.Canceled, d); strings.Contains(err.Error(), "oc undo takes it back") == purge {
			t.Errorf("purge %v: %v", purge, err)
		}
	}
}

// A state that was moved since, or copied to another place, is taken back where it is now; and a manifest that names its files from the root
// of the file system, as older ones do, in its own place.
func TestUndoAfterAMove(t *testing.T) {
	env := quiet(t, fixtures.Now)
	cleaned := func() (state, before string) {
		state, _ = oldState(t, t.TempDir(), 6, "")
		before = ownless(t, state)
		if a := ocRun(t, state, env, "--state-dir", state, "sessions", "cleanup"); a.exit != ExitDone {
			t.Fatal(a.errout)
		}
		if manifest := read(t, oneOf(t, state+"/.oc/runs/*.json")); strings.Count(manifest, state) != 1 { // in the command
			t.Fatalf("the manifest names the place of the state: %s", manifest)
		}
		return state, before
	}
	back := func(t *testing.T, state, before string) {
		t.Helper()
		if a := ocRun(t, state, env, "--state-dir", state, "undo", "--store", state+"/agents/main/sessions/sessions.json"); a.exit != ExitDone {
			t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
		}
		if now := ownless(t, state); now != before {
			t.Errorf("before:\n%s\nnow:\n%s", before, now)
		}
	}
	t.Run("moved", func(t *testing.T) {
		state, before := cleaned()
		other := filepath.Join(t.TempDir(), "other name")
		if err := os.Rename(state, other); err != nil {
			t.Fatal(err)
		}
		list := ocRun(t, other, env, "--state-dir", other, "undo", "--list", "--json").doc(t)
		want(t, "store", dig(list, "runs", 0, "storePath"), other+"/agents/main/sessions/sessions.json")
		back(t, other, before)
	})
	t.Run("cut short, and then moved", func(t *testing.T) {
		state, before := cleaned()
		restate(t, oneOf(t, state+"/.oc/runs/*.json"), "applying")
		other := filepath.Join(t.TempDir(), "other")
		if err := os.Rename(state, other); err != nil {
			t.Fatal(err)
		}
		back(t, other, before)
	})
	t.Run("an older manifest", func(t *testing.T) {
		state, before := cleaned()
		path := oneOf(t, state+"/.oc/runs/*.json")
		text := read(t, path)
		for _, name := range []string{"path", "to", "temp", "dir", "store"} {
			text = strings.ReplaceAll(text, `"`+name+`":"agents/`, `"`+name+`":"`+state+`/agents/`)
			text = strings.ReplaceAll(text, `"`+name+`":".oc/`, `"`+name+`":"`+state+`/.oc/`)
		}
		text = strings.Replace(text, `"roots":["."`, `"roots":["`+state+`"`, 1)
		if strings.Count(text, state) < 15 {
			t.Fatalf("not as before: %s", text)
		}
		write(t, path, text)
		back(t, state, before)
	})
	t.Run("a name that leads elsewhere", func(t *testing.T) {
		state, _ := cleaned()
		path := oneOf(t, state+"/.oc/runs/*.json")
		write(t, path, strings.ReplaceAll(read(t, path), `"path":"agents/`, `"path":"../agents/`))
		if a := ocRun(t, state, env, "--state-dir", state, "undo"); a.exit == ExitDone || !strings.Contains(a.errout, "leads elsewhere") {
			t.Errorf("exit %d: %s", a.exit, a.errout)
		}
	})
}

// A restored session that was used since keeps its row and its transcript, also when the undo is given again; once the row is as the restore
// left it, both go.
func TestUndoOfARestoreThatWasUsed(t *testing.T) {
	const id = "60aa8ead-51b4-4fcb-a52f-af96c89778b6"
	for name, use := range map[string]func(t *testing.T, store, transcript string){
		"its row was written": func(t *testing.T, store, _ string) {
			text := read(t, store)
			now := strings.Replace(text, `"sessionId": "`+id+`"`, `"sessionId": "`+id+`", "label": "mine"`, 1)
			if now == text {
				t.Fatal(text)
			}
			write(t, store, now)
		},
		"its transcript was written": func(t *testing.T, _, transcript string) {
			if err := grow(transcript); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			state, sessions, env := lived(t)
			store, transcript := filepath.Join(sessions, "sessions.json"), filepath.Join(sessions, id+".jsonl")
			if a := ocRun(t, state, env, "--state-dir", state, "--agent", "work", "sessions", "restore", id); a.exit != ExitDone {
				t.Fatal(a.errout)
			}
			saved := read(t, store)
			use(t, store, transcript)
			used := read(t, store)
			for _, args := range [][]string{{"undo", "--dry-run"}, {"undo"}, {"undo"}} {
				a := ocRun(t, state, env, append([]string{"--state-dir", state}, args...)...)
				if !strings.Contains(a.out+a.errout, "written since") {
					t.Errorf("%v: exit %d: %s%s", args, a.exit, a.out, a.errout)
				}
				if now := read(t, store); now != used {
					t.Errorf("%v: the store is\n%s", args, now)
				}
				_ = read(t, transcript)
			}
			if used == saved {
				return
			}
			write(t, store, saved)
			if a := ocRun(t, state, env, "--state-dir", state, "undo"); a.exit != ExitDone {
				t.Errorf("exit %d: %s", a.exit, a.errout)
			}
			if _, err := os.Lstat(transcript); err == nil || strings.Contains(read(t, store), id) {
				t.Error("the session is still there")
			}
		})
	}
}

// What undo can take back, and what it takes on the disk, is shown by status.
func TestStatusCountsUndo(t *testing.T) {
	state, _ := oldState(t, t.TempDir(), 6, "")
	if a := at(t, state, "status"); strings.Contains(a.out, "taken back") {
		t.Errorf("nothing was changed yet: %s", a.out)
	}
	if a := at(t, state, "sessions", "cleanup", "--older-than", "39d"); a.exit != ExitDone {
		t.Fatal(a.errout)
	}
	doc := at(t, state, "status", "--json").doc(t)
	if saved, _ := dig(doc, "undo", "savedBytes").(float64); dig(doc, "undo", "runs") != 1.0 || dig(doc, "undo", "cutShort") != 0.0 || saved == 0 {
		t.Errorf("%v", dig(doc, "undo"))
	}
	if a := at(t, state, "status"); !strings.Contains(a.out, "1 run can be taken back") {
		t.Error(a.out)
	}
	if a := at(t, state, "undo"); a.exit != ExitDone {
		t.Fatal(a.errout)
	}
	want(t, "runs", dig(at(t, state, "status", "--json").doc(t), "undo", "runs"), 0.0)
}
