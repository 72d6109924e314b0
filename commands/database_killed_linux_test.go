package commands

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A process that SIGKILL ends at random moments of its run, which are spread over it and lie close together where it commits: every row of every
// table is as before or as after, or the run is known as cut short; and undo brings all of it back. A checkpoint or a vacuum changes no row at all,
// and an export that was cut short has left a whole one or none.
func TestDatabaseChangesKilled(t *testing.T) {
	const tries = 4
	changes := append(slices.Clone(databaseChanges), databaseChange{name: "export", args: []string{"db", "export", "main", "--to", "{out}"}, clean: true})
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			made, at, of, env := harmable(t)
			env["OC_NOW"] = fmt.Sprint(afterMigration + 60_000) // runs stand in the order of their times
			state := filepath.Join(t.TempDir(), "state")
			out := filepath.Join(t.TempDir(), "out")
			move := func(path string) string { return filepath.Join(state, strings.TrimPrefix(path, made)) }
			path, shared := move(at), move(of)
			fresh := func() {
				for _, dir := range []string{state, out} {
					if err := os.RemoveAll(dir); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.CopyFS(state, os.DirFS(made)); err != nil {
					t.Fatal(err)
				}
				if c.name == "checkpoint" || c.name == "vacuum" {
					bloat(t, path)
				}
			}
			line := c.line(state, c.database(path, shared))
			for i := range line {
				line[i] = strings.ReplaceAll(line[i], "{out}", out)
			}
			rows := func() map[string][]string { return tables(t, c.database(path, shared)) }
			files := func() (names []string) {
				all, err := filepath.Glob(filepath.Join(state, "agents/main/sessions/*"))
				if err != nil {
					t.Fatal(err)
				}
				return all
			}
			fresh()
			before, beside := rows(), files()
			began := time.Now()
			if a := begin(t, env, line...).end(); a.exit != ExitDone && a.exit != ExitFindings {
				t.Fatalf("exit %d: %s", a.exit, a.errout)
			}
			length, after := time.Since(began), rows()
			killed, was := 0, 0
			for i := range tries {
				fresh()
				b := begin(t, env, line...)
				moment := length * time.Duration(i+1) / (tries + 1)
				if i%2 == 0 {
					time.Sleep(moment)
				} else { // when it writes to the log, or soon after
					log := c.database(path, shared) + "-wal"
					for began := time.Now(); time.Since(began) < 2*length; time.Sleep(100 * time.Microsecond) {
						if info, err := os.Stat(log); err == nil && info.Size() > 0 && c.name != "checkpoint" && c.name != "vacuum" {
							break
						}
					}
					moment = rand.N(4 * time.Millisecond)
					time.Sleep(moment)
				}
				_ = b.cmd.Process.Signal(syscall.SIGKILL) // it may have ended
				a := b.end()
				if a.exit == -1 {
					killed++
				}
				where := fmt.Sprintf("killed after %s of %s", moment, length)
				if c.name == "export" {
					if _, err := os.Lstat(out); err == nil && a.exit == -1 {
						if e := begin(t, env, "--state-dir", state, "sessions", "list", "--store", filepath.Join(out, "sessions.json")).end(); e.exit != ExitDone {
							t.Errorf("%s: half an export: exit %d: %s", where, e.exit, e.errout)
						}
					}
				}
				now := rows()
				// Several transactions may be halfway: then that is known, and undo begins with them.
				cut := func() bool {
					return strings.Contains(begin(t, env, "--state-dir", state, "undo", "--list").end().out, "cut short")
				}
				if !cmp.Equal(now, before) && !alike(now, after) && !cut() {
					t.Errorf("%s: neither as before nor as after: %s", where, cmp.Diff(unmade(after), unmade(now)))
				}
				if !cmp.Equal(now, before) {
					was++
				}
				if c.name != "undo" && !c.clean {
					// The run before, which harmable made, is taken back last.
					for range 3 {
						if cmp.Equal(rows(), before) && slices.Equal(files(), beside) {
							break
						}
						if u := begin(t, env, "--state-dir", state, "undo").end(); u.exit != ExitDone {
							t.Errorf("%s: undo: exit %d: %s%s", where, u.exit, u.out, u.errout)
							break
						}
					}
					if now := rows(); !cmp.Equal(now, before) || !slices.Equal(files(), beside) {
						t.Errorf("%s: after undo: %v, and %s", where, files(), cmp.Diff(before, now))
					}
				} else if again := begin(t, env, line...).end(); c.name != "export" && again.exit != ExitDone && !strings.Contains(again.errout, "no run that can be taken back") {
					t.Errorf("%s: again: exit %d: %s", where, again.exit, again.errout)
				}
				if t.Failed() {
					return
				}
			}
			t.Logf("%d of %d were killed before they were done, and %d had changed something", killed, tries, was)
			if killed == 0 {
				t.Error("none was killed")
			}
		})
	}
}

// madeAnew is each part of a row that is made anew each time, such as ids and hashes.
var madeAnew = regexp.MustCompile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8,}")

// alike says whether two databases have the same rows, but for what is made anew each time.
func alike(a, b map[string][]string) bool {
	return cmp.Equal(unmade(a), unmade(b))
}

func unmade(all map[string][]string) map[string][]string {
	out := map[string][]string{}
	for table, rows := range all {
		for _, row := range rows {
			out[table] = append(out[table], madeAnew.ReplaceAllString(row, "x"))
		}
		slices.Sort(out[table])
	}
	return out
}
