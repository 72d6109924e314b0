//go:build unix

package commands

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"oc/fixtures"
)

const nobody = 65534

// stage is a place in which a user who may change nothing runs oc: root is not stopped by modes, so under root oc runs as another
// user; where that is impossible the test fails.
type stage struct {
	t    *testing.T
	bin  string
	tmp  string // TMPDIR of oc, which it may write
	root bool
}

func newStage(t *testing.T) *stage {
	t.Helper()
	dir := openDir(t)
	s := &stage{t: t, bin: filepath.Join(dir, "oc"), tmp: filepath.Join(dir, "tmp"), root: os.Getuid() == 0}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(s.bin, data, 0o755)
	}
	if err == nil {
		err = os.Mkdir(s.tmp, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.give(s.tmp)
	return s
}

// give makes the user the owner of everything in dir.
func (s *stage) give(dir string) {
	s.t.Helper()
	if !s.root {
		return
	}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// oc runs oc as that user.
func (s *stage) oc(state string, args ...string) answer {
	s.t.Helper()
	env := map[string]string{"OC_NOW": fmt.Sprint(fixtures.Now), "HOME": s.tmp, "TMPDIR": s.tmp, "OPENCLAW_GATEWAY_PORT": "1"}
	cmd := exec.Command(s.bin, append([]string{"--state-dir", state}, args...)...)
	cmd.Dir = "/"
	if s.root {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return runAs(s.t, cmd, env)
}

// openDir is a directory of the test's that every user may enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; len(d) > len(filepath.Clean(os.TempDir())); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// seal takes every right to write from a tree; its modes come back when the test ends.
func seal(t *testing.T, dir string) {
	t.Helper()
	t.Cleanup(func() { fixtures.Unseal(dir) }) //nolint:errcheck // it is removed next
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
			return nil
		}
		if err == nil {
			err = os.Chmod(path, 0o440)
		}
		return err
	})
	for _, d := range dirs {
		if err == nil {
			err = os.Chmod(d, 0o555)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// S17, as a user whom modes stop: directories 0555, files 0440, and the crash states of spec/sqlite-store.md 4.3.
func TestReadingSealedStates(t *testing.T) {
	s := newStage(t)
	dir := openDir(t)
	for _, name := range []string{"17", "16"} { // what fixtures makes is for its owner alone
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r := made[fixtures.ReadOnly](t)(fixtures.S17(filepath.Join(dir, "17"), fixtures.Now))
	t.Cleanup(func() { fixtures.Unseal(r.Sealed) }) //nolint:errcheck // it is removed next
	e := made[fixtures.Eras](t)(fixtures.S16(filepath.Join(dir, "16"), fixtures.Now))
	demo := filepath.Join(dir, "demo")
	if err := fixtures.Demo().Write(demo); err != nil {
		t.Fatal(err)
	}
	late := []string{r.Late, r.Keys[0], r.Keys[1]}
	for _, c := range []struct {
		state string
		keys  []string // of agent main
	}{
		{r.Log, late},
		{r.LogAlone, late},
		{r.Sealed, r.Keys[:]},
		{r.Rollback, r.Keys[:]},
		{e.Files, e.Keys[:]},
		{e.Both, e.Keys[:]},
		{demo, nil},
	} {
		t.Run(filepath.Base(c.state), func(t *testing.T) {
			s := *s
			s.t = t
			s.give(c.state)
			seal(t, c.state)
			before := tree(t, c.state)
			for _, args := range append(documents("agent:main:main"), []string{"sessions", "--json"}, []string{"status"}) { // some twice
				a := s.oc(c.state, args...)
				if a.exit != ExitDone {
					t.Errorf("oc %v: exit %d: %s", args, a.exit, a.errout)
				}
				if c.keys != nil && slices.Equal(args, []string{"sessions", "--json"}) {
					same(t, "keys", keysOf(a.doc(t)), sorted(c.keys...))
				}
			}
			if now := tree(t, c.state); now != before {
				t.Errorf("reading changed the tree:\n%s\nbefore:\n%s", now, before)
			}
			empty(t, s.tmp)
		})
	}
}

// A log without its index is read from a private copy. Where no copy can be made, that is said; rows are not left out.
func TestNoRoomForAPrivateCopy(t *testing.T) {
	s := newStage(t)
	dir := openDir(t)
	r := made[fixtures.ReadOnly](t)(fixtures.S17(dir, fixtures.Now))
	t.Cleanup(func() { fixtures.Unseal(r.Sealed) }) //nolint:errcheck // it is removed next
	s.give(r.LogAlone)
	seal(t, r.LogAlone)
	if err := os.Chmod(s.tmp, 0o500); err != nil {
		t.Fatal(err)
	}
	before := tree(t, r.LogAlone)
	a := s.oc(r.LogAlone, "sessions", "--json")
	want(t, "exit", a.exit, ExitFailed)
	want(t, "document", dig(a.doc(t), "error", "exit"), float64(ExitFailed))
	if lines := a.lines(); len(lines) != 1 || !strings.Contains(lines[0], fixtures.Database(r.LogAlone, "main")) || !strings.Contains(lines[0], s.tmp) {
		t.Errorf("want one line that names the database and the place without room: %q", a.errout)
	}
	if tree(t, r.LogAlone) != before {
		t.Error("a failure changed the tree")
	}
}

// What a user may not read is named, and never taken for nothing.
func TestUnreadable(t *testing.T) {
	s := newStage(t)
	for _, c := range []struct {
		name, path string // below the state
		era        fixtures.Era
		args       [][]string
		reason     string
		exit       int
		rows       float64 // of agent main by agents list; -1: unknown
	}{
		{"store", "agents/main/sessions/sessions.json", fixtures.FileEra, [][]string{{"sessions"}, {"sessions", "--all-agents"}, {"sessions", "--summary"}, {"sessions", "show", "agent:work:main"}, {"agents", "list"}, {"status"}, {}}, "permission denied", ExitFailed, -1},
		{"database", "agents/main/agent/openclaw-agent.sqlite", fixtures.SQLiteEra, [][]string{{"sessions"}, {"sessions", "--all-agents"}, {"sessions", "--summary"}, {"sessions", "show", "agent:work:main"}, {"agents", "list"}, {"status"}, {}}, "permission denied", ExitFailed, -1},
		{"directory of the store", "agents/main/sessions", fixtures.FileEra, [][]string{{"sessions"}, {"sessions", "--all-agents"}, {"agents", "list"}, {"status"}, {}}, "permission denied", ExitFailed, -1},
		{"directory of the database", "agents/main/agent", fixtures.SQLiteEra, [][]string{{"sessions"}, {"sessions", "--all-agents"}, {"agents", "list"}, {"status"}, {}}, "permission denied", ExitFailed, -1},
		{"configuration", "openclaw.json", fixtures.FileEra, [][]string{{"sessions"}, {"sessions", "--all-agents"}, {"sessions", "show", "agent:main:main"}, {"agents", "list"}, {"status"}, {}}, "permission denied", ExitDone, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := *s
			s.t = t
			state := filepath.Join(openDir(t), "state")
			twoAgents(t, state, c.era)
			path := filepath.Join(state, c.path)
			s.give(state)
			if s.root {
				if err := os.Lchown(path, 0, 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(path, 0); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Chmod(path, 0o700) }) //nolint:errcheck // it is removed next
			var before string
			if s.root { // tree reads every file
				before = tree(t, state)
			}
			for _, args := range c.args {
				a := s.oc(state, append(slices.Clone(args), "--json", "--quiet")...)
				doc := a.doc(t)
				want(t, fmt.Sprintf("exit of %v", args), a.exit, c.exit)
				// What cannot be opened can, for the commands that measure, not be measured either: a second line.
				_, measures := doc["agents"]
				lines := a.lines()
				if len(lines) == 0 || len(lines) > 1 && (!measures || len(lines) > 2) {
					t.Errorf("oc %v: want one line: %q", args, a.errout)
				}
				for _, line := range lines {
					if !strings.Contains(line, path) || !strings.Contains(line, c.reason) {
						t.Errorf("oc %v: want a line that names %s and says %q: %q", args, path, c.reason, line)
					}
				}
				if slices.Contains(args, "--all-agents") && c.exit == ExitFailed {
					same(t, "rows of the other agent", keysOf(doc), []string{"agent:work:main"})
				}
				if agents, ok := doc["agents"]; ok {
					if rows := dig(agents, 0, "rows"); c.rows < 0 && rows != nil || c.rows >= 0 && rows != c.rows {
						t.Errorf("oc %v: rows %v, want %v", args, rows, c.rows)
					}
				}
				text := s.oc(state, args...)
				want(t, fmt.Sprintf("exit of %v as text", args), text.exit, c.exit)
				if strings.Contains(text.out, "No sessions found") || strings.Contains(text.out, "no session was found") {
					t.Errorf("oc %v takes the unreadable for nothing:\n%s", args, text.out)
				}
			}
			want(t, "exit of version", s.oc(state, "version").exit, ExitDone)
			if s.root && tree(t, state) != before {
				t.Error("failing changed the tree")
			}
		})
	}
}

// A transcript that may not be read costs its own row's title and nothing else.
func TestUnreadableTranscript(t *testing.T) {
	s := newStage(t)
	state := filepath.Join(openDir(t), "state")
	twoAgents(t, state, fixtures.FileEra)
	path := filepath.Join(state, "agents", "main", "sessions", fixtures.IDOf("agent:main:main")+".jsonl")
	s.give(state)
	if s.root {
		if err := os.Lchown(path, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"sessions", "--titles", "--json"}, {"sessions", "--preview", "--json"}} {
		a := s.oc(state, args...)
		doc := a.doc(t)
		same(t, "keys", keysOf(doc), sorted("agent:main:main", "agent:main:explicit:second"))
		for _, row := range doc["sessions"].([]any) {
			problem, _ := dig(row, "transcriptError").(string)
			if unreadable := dig(row, "key") == "agent:main:main"; unreadable != strings.Contains(problem, "denied") {
				t.Errorf("oc %v: %v has the problem %q", args, dig(row, "key"), problem)
			}
		}
	}
	show := s.oc(state, "sessions", "show", "agent:main:main", "--json")
	if problem, _ := dig(show.doc(t), "transcript", "error").(string); !strings.Contains(problem, "denied") {
		t.Errorf("show does not say why it knows nothing of the transcript: %s%s", show.out, show.errout)
	}
}

// A log that this user may not write, with or without what the engine needs beside it, says so and changes nothing.
func TestRecordWithoutTheRight(t *testing.T) {
	s := newStage(t)
	for _, wal := range []bool{true, false} {
		state, database := signalState(t)
		if !wal {
			sqlExec(t, database, "PRAGMA journal_mode = DELETE")
		}
		place := filepath.Join(openDir(t), "state")
		if err := os.CopyFS(place, os.DirFS(state)); err != nil {
			t.Fatal(err)
		}
		s.give(place)
		seal(t, place)
		a := s.oc(place, "awareness", "record", targetT, "--kind", "goal_changed", "--summary", "s")
		if a.exit != ExitFailed || !strings.Contains(a.errout, "cannot be written to by this user") {
			t.Errorf("write-ahead log %v: exit %d: %s", wal, a.exit, a.errout)
		}
	}
}

// A tree that may not be written is not said to be mended, and is not changed.
func TestMendingASealedState(t *testing.T) {
	s := newStage(t)
	state := filepath.Join(openDir(t), "state")
	if _, err := fixtures.S2(state, fixtures.Now); err != nil {
		t.Fatal(err)
	}
	calm(t, filepath.Dir(fixtures.Store(state, "main")))
	s.give(state)
	seal(t, state)
	before := tree(t, state)
	a := s.oc(state, "doctor", "--fix", "unlinked-history", "--yes")
	if a.exit != ExitFailed || !strings.Contains(a.out, "could not change the row") || !strings.Contains(a.out, "Nothing was changed.") || !strings.Contains(a.errout, "permission denied") {
		t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	if a := s.oc(state, "doctor", "--fix", "unlinked-history", "--yes", "--json"); !strings.Contains(a.out, `"changes": 0,`) {
		t.Errorf("exit %d: %s", a.exit, a.out)
	}
	if tree(t, state) != before {
		t.Error("the state has changed")
	}
}
