package commands

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// twinDone makes of the database of a state what a command of oc makes of that of another one that is the same, and puts beside it the files that
// came with it: so does a gateway that is asked.
func twinDone(t *testing.T, state, path, name string, args []string) func(fakeCall) fakeEnd {
	t.Helper()
	other, from, env := migrated(t, name)
	if a := ocRun(t, other, env, slices.Concat([]string{"--state-dir", other, "--json"}, args)...); a.exit != ExitDone {
		t.Fatalf("%v on a twin: exit %d: %s", args, a.exit, a.errout)
	}
	return func(fakeCall) fakeEnd {
		raw, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(path, raw, 0o600)
		}
		archived := []string{}
		files, e := filepath.Glob(filepath.Join(other, "agents/main/sessions/*.jsonl.*"))
		for _, file := range files {
			to := filepath.Join(state, "agents/main/sessions", filepath.Base(file))
			raw, e2 := os.ReadFile(file)
			e = errors.Join(e, e2, os.WriteFile(to, raw, 0o600))
			archived = append(archived, to)
		}
		if err := errors.Join(err, e); err != nil {
			t.Error(err)
		}
		return fakeEnd{payload: map[string]any{"ok": true, "deleted": true, "compacted": true, "mode": "enforce", "archived": append(archived, "/nowhere/x.jsonl.deleted.1.zst")}}
	}
}

// remade are the tables that OpenClaw makes anew of others, and notes that it has to.
var remade = []string{
	"session_transcript_fts_rows", "session_transcript_fts", "session_transcript_fts_content", "session_canonical_validation_pending",
}

// enduring are the rows of a database but for those, and for the mark that the search index of a transcript is to be made anew.
func enduring(t *testing.T, path string) map[string][]string {
	t.Helper()
	all := tables(t, path)
	for _, name := range remade {
		delete(all, name)
	}
	for i, line := range all["session_transcript_index_state"] {
		parts := strings.Split(line, "|") // session_id, indexed_seq, leaf_event_id, needs_rebuild, ...
		all["session_transcript_index_state"][i] = strings.Join(slices.Delete(parts, 3, 4), "|")
	}
	return all
}

// Whatever a gateway changes in a database when oc asks it to is taken back row for row once it has stopped, with the archives that it made; when
// oc did not hear its answer, too.
func TestWhatAGatewayChangesInADatabaseComesBack(t *testing.T) {
	const (
		scratch  = "agent:main:explicit:scratch-1"
		archived = "agent:main:explicit:archived-1"
		telegram = "agent:main:telegram:direct:777"
		group    = "agent:main:telegram:group:-100123"
		old      = "agent:main:explicit:old-1"
	)
	for _, args := range [][]string{
		{"sessions", "archive", scratch},
		{"sessions", "restore", archived},
		{"sessions", "patch", telegram, "--label", "Desk", "--pin"},
		{"sessions", "reset", telegram},
		{"sessions", "compact", group, "--max-lines", "4"},
		{"sessions", "delete", old, scratch, "--yes"},
		{"sessions", "cleanup", "--enforce"},
	} {
		for _, heard := range []bool{true, false} {
			t.Run(args[1]+map[bool]string{false: " unheard"}[heard], func(t *testing.T) {
				state, path, env := migrated(t, "migrated-23")
				does, once := twinDone(t, state, path, "migrated-23", args), false
				f := fake(t, "2026.9.6", state, func(c fakeCall) fakeEnd {
					if once { // the second session of a command: all is done already
						return fakeEnd{payload: map[string]any{"ok": true, "deleted": true}}
					}
					once = true
					end := does(c)
					end.hangUp = !heard
					return end
				})
				before, files := enduring(t, path), kept(t, filepath.Join(state, "agents", "main", "sessions"))
				a := ocRun(t, state, f.env(env), slices.Concat([]string{"--state-dir", state, "--json"}, args)...)
				switch {
				case !heard:
					if a.exit != ExitBusy || !strings.Contains(a.errout, "not known whether it was carried out") {
						t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
					}
				case a.exit != ExitDone || via(t, a) != viaGateway || undoRun(t, a) == "":
					t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
				case args[1] == "delete" && !strings.Contains(a.errout, "/nowhere/x.jsonl.deleted.1.zst, which is not there"):
					t.Errorf("an archive that is not there is not told: %s", a.errout)
				case dig(a.doc(t), "unsaved") != nil:
					t.Errorf("all was planned: %s", a.out)
				}
				if cmp.Equal(before, enduring(t, path)) {
					t.Fatal("nothing has changed")
				}
				u := ocRun(t, state, env, "--state-dir", state, "undo", "--json")
				if u.exit != ExitDone {
					t.Fatalf("undo: exit %d: %s%s", u.exit, u.out, u.errout)
				}
				if d := cmp.Diff(before, enduring(t, path)); d != "" {
					t.Errorf("after undo:\n%s", d)
				}
				if d := diffLines(files, kept(t, filepath.Join(state, "agents", "main", "sessions"))); heard && d != "" {
					t.Errorf("files after undo:\n%s", d)
				}
				if len(tables(t, path)["session_canonical_validation_pending"]) == 0 && args[1] == "delete" && !strings.Contains(strings.Join(tables(t, path)["session_transcript_index_state"], "\n"), "|int64 1|") {
					t.Error("no transcript is marked to be indexed anew")
				}
			})
		}
	}
}

// A session that oc planned to put aside is asked for with sessions.patch where the gateway's cleanup cannot say what is wanted; its row comes back.
func TestGatewayPutsAside(t *testing.T) {
	state, path, env := migrated(t, "migrated-23")
	args := []string{"sessions", "cleanup", "--enforce", "--active-key", "agent:main:explicit:scratch-1", "--active-key", "agent:main:telegram:direct:777"}
	does, asked := twinDone(t, state, path, "migrated-23", args), []string{}
	f := fake(t, "2026.9.6", state, func(c fakeCall) fakeEnd {
		asked = append(asked, c.String())
		if len(asked) > 1 {
			return fakeEnd{payload: map[string]any{"ok": true, "deleted": true}}
		}
		return does(c)
	})
	before := enduring(t, path)
	a := ocRun(t, state, f.env(env), slices.Concat([]string{"--state-dir", state, "--json"}, args)...)
	if via(t, a) != viaGateway || undoRun(t, a) == "" {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	patched := 0
	for _, call := range asked {
		if strings.HasPrefix(call, `sessions.patch {"archived":true,"expectedSessionId":"`) {
			patched++
		} else if !strings.HasPrefix(call, `sessions.delete {"expectedSessionId":"`) {
			t.Errorf("%s", call)
		}
	}
	rows := dig(a.doc(t), "committed", "rows")
	if patched == 0 || rows != float64(len(asked)) || dig(a.doc(t), "undo", "covers", "rows") != rows {
		t.Errorf("%d are put aside of %v: %s", patched, asked, a.out)
	}
	if u := ocRun(t, state, env, "--state-dir", state, "undo"); u.exit != ExitDone {
		t.Fatalf("undo: exit %d: %s%s", u.exit, u.out, u.errout)
	}
	if d := cmp.Diff(before, enduring(t, path)); d != "" {
		t.Errorf("after undo:\n%s", d)
	}
}

// A gateway that deletes an agent takes its database away: the run is closed all the same, and keeps the rows.
func TestGatewayTakesADatabaseAway(t *testing.T) {
	const key = "agent:main:explicit:scratch-1"
	state, path, env := migrated(t, "migrated-23")
	f := fake(t, "2026.9.6", state, func(fakeCall) fakeEnd {
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			t.Error(err)
		}
		return fakeEnd{payload: map[string]any{"ok": true, "deleted": true}}
	})
	a := ocRun(t, state, f.env(env), "--state-dir", state, "--json", "sessions", "delete", key, "--yes")
	if a.exit != ExitDone || undoRun(t, a) == "" {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	u := ocRun(t, state, env, "--state-dir", state, "undo")
	if u.exit != ExitFailed || !strings.Contains(u.errout, path) {
		t.Errorf("undo: exit %d: %s%s", u.exit, u.out, u.errout)
	}
}
