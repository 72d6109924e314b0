package doctor

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/fixtures"
)

// S2: history that no row names is listed as such, with its times; nothing
// calls it an orphan or garbage, and looking twice finds the same.
func TestUnlinked(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	u, err := fixtures.S2(state, fixtures.Now)
	if err != nil {
		t.Fatal(err)
	}
	r := examine(t, state)
	history := map[string]Finding{}
	for _, f := range found(r, UnlinkedHistory) {
		history[filepath.Base(f.File)] = f
	}
	if len(history) != 2 {
		t.Fatalf("%d transcripts with messages are unlinked, want 2: %v", len(history), codes(r))
	}
	says(t, history[u.History], "first message "+when(float64(u.First)), "last message "+when(float64(u.Last)))
	says(t, history[u.Twin], "1 archive of resets")
	if f := one(t, r, UnlinkedEmpty); filepath.Base(f.File) != u.Empty {
		t.Errorf("%+v", f)
	}
	if !r.Healthy() {
		t.Errorf("history makes the state unhealthy: %v", worse(r))
	}
	for _, f := range r.Findings {
		if text := strings.ToLower(fmt.Sprint(f)); strings.Contains(text, "orphan") || strings.Contains(text, "safe to delete") {
			t.Errorf("%s: %s", f.Code, text)
		}
	}
	if d := cmp.Diff(codes(r), codes(examine(t, state))); d != "" {
		t.Errorf("looking again finds something else: %s", d)
	}
}

// S8: what is left over, by class, with what can go and why the rest is kept.
func TestGraveyard(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	store := fixtures.Store(state, "main")
	dir := filepath.Dir(store)
	key, id := "agent:main:main", fixtures.IDOf("agent:main:main")
	named := id + ".checkpoint.1f0c7a2b-8d3e-4a56-9b7c-0d1e2f3a4b5c.jsonl"
	unnamed := id + ".checkpoint.2f0c7a2b-8d3e-4a56-9b7c-0d1e2f3a4b5c.jsonl"
	talk := fixtures.Talk(id, fixtures.Now-2*fixtures.Day).User("Hello").Assistant("Hello!").String()
	put(t, store, fmt.Sprintf(`{%q: {"sessionId": %q, "updatedAt": %d, "compactionCheckpoints": [{"checkpointId": "c", "sessionKey": %q, "sessionId": %q, "createdAt": 1, "reason": "manual",
		"preCompaction": {"sessionId": %q, "sessionFile": %q}, "postCompaction": {"sessionId": %q}}]}}`, key, id, fixtures.Now-2*fixtures.Day, key, id, id, filepath.Join(dir, named), id))
	put(t, filepath.Join(dir, id+".jsonl"), talk)
	put(t, filepath.Join(dir, named), talk)
	put(t, filepath.Join(dir, unnamed), talk)
	put(t, filepath.Join(dir, id+".trajectory.jsonl"), "{}\n")
	pointer := `{"traceSchema":"openclaw-trajectory-pointer","schemaVersion":1,"sessionId":%q,"runtimeFile":%q}`
	put(t, filepath.Join(dir, id+".trajectory-path.json"), fmt.Sprintf(pointer, id, filepath.Join(dir, id+".trajectory.jsonl")))
	put(t, filepath.Join(dir, "gone.trajectory-path.json"), fmt.Sprintf(pointer, "gone", filepath.Join(dir, "gone.trajectory.jsonl")))
	for _, reason := range []string{"deleted", "reset"} {
		for _, days := range []int64{5, 60} {
			put(t, filepath.Join(dir, fixtures.Gone("old.jsonl", reason, fixtures.Now-days*fixtures.Day)), talk)
		}
	}
	for i := range 30 {
		put(t, filepath.Join(dir, fmt.Sprintf("%s.jsonl.bak-4711-178990000%04d", id, i)), talk)
	}
	put(t, filepath.Join(dir, "skills-prompts/sha256/ab", "ab"+strings.Repeat("0", 62)+".txt"), "a prompt")
	age(t, dir, 24*time.Hour)
	stale, fresh := "sessions.json.1f0c7a2b-8d3e-4a56-9b7c-0d1e2f3a4b5c.tmp", "sessions.json.2f0c7a2b-8d3e-4a56-9b7c-0d1e2f3a4b5c.tmp"
	put(t, filepath.Join(dir, stale), "{")
	put(t, filepath.Join(dir, fresh), "{")
	for name, age := range map[string]time.Duration{stale: time.Hour, fresh: 2 * time.Second} {
		if err := os.Chtimes(filepath.Join(dir, name), now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	r := examine(t, state)
	piles := map[string]string{}
	for _, f := range found(r, Archives) {
		piles[strings.SplitN(f.Evidence[0], ",", 2)[0]] = strings.Join(f.Evidence[1:], "; ")
	}
	want := map[string]string{
		"2 archives of deletions": fmt.Sprintf("1 of them, %d B, can go now; kept: younger than 30 days (session.maintenance.pruneAfter)", len(talk)),
		"2 archives of resets":    fmt.Sprintf("1 of them, %d B, can go now; kept: younger than 30 days (session.maintenance.resetArchiveRetention)", len(talk)),
		"30 backups of repairs":   "nothing of it can go now; kept: no rule of age takes them; a disk budget may",
	}
	if d := cmp.Diff(want, piles); d != "" {
		t.Error(d)
	}
	says(t, one(t, r, BackupCopies), "30 backups hold the same")
	for code, name := range map[Code]string{StaleTemp: stale, UnlinkedCheckpoint: unnamed, PointerDangling: "gone.trajectory-path.json", UnlinkedPrompt: "ab" + strings.Repeat("0", 62) + ".txt"} {
		if f := one(t, r, code); filepath.Base(f.File) != name {
			t.Errorf("%s: %s, want %s", code, f.File, name)
		}
	}
}

// What makes files unsafe where they are: second names, other users, open
// modes, tools that synchronise, capitals.
func TestUnsafeFiles(t *testing.T) {
	base := t.TempDir()
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(base), 0o755); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(base, "Dropbox", "state")
	u, err := fixtures.S2(state, fixtures.Now)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(fixtures.Store(state, "main"))
	mode := func(path string, m os.FileMode) {
		t.Helper()
		if err := os.Chmod(path, m); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{filepath.Dir(state), state, filepath.Join(state, "agents"), filepath.Join(state, "agents/main"), dir} {
		mode(d, 0o755)
	}
	mode(filepath.Join(dir, u.Linked), 0o644)
	if err := os.Link(filepath.Join(dir, u.Linked), filepath.Join(base, "another name")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(dir, u.Twin), 12345, -1); err != nil {
		t.Fatalf("the test must run as root: %v", err)
	}
	put(t, filepath.Join(dir, strings.ToUpper(u.Empty[:8])+u.Empty[8:]), "")
	put(t, filepath.Join(dir, ".tmp.driveupload"), "")
	r := examine(t, state, func(o *Options) { o.Only = mustSelect(t, "files") })
	for code, name := range map[Code]string{HardLink: u.Linked, OwnerForeign: u.Twin} {
		if f := one(t, r, code); filepath.Base(f.File) != name {
			t.Errorf("%s: %s", code, f.File)
		}
	}
	if n := len(found(r, CaseClash)); n != 1 {
		t.Errorf("%d names that differ in capitals", n)
	}
	if n := len(found(r, SyncFolder)); n != 2 {
		t.Errorf("%d signs of a tool that synchronises, want the folder and the mark", n)
	}
	if n := len(found(r, ModeOpen)); n != 2 {
		t.Errorf("%d open modes, want the state and the transcript: %+v", n, found(r, ModeOpen))
	}
}

// Bad input: what is no file, links in a circle, directories that cannot be
// read. All of it is found, and the rest is looked at.
func TestOddEntries(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	u, err := fixtures.S2(state, fixtures.Now)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(fixtures.Store(state, "main"))
	if err := mkfifo(filepath.Join(dir, "pipe.jsonl")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"loop.jsonl", "loop2.jsonl"} {
		to := map[string]string{"loop.jsonl": "loop2.jsonl", "loop2.jsonl": "loop.jsonl"}[name]
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	short, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	l, err := net.Listen("unix", filepath.Join(short, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Rename(filepath.Join(short, "s"), filepath.Join(dir, "socket.jsonl")); err != nil {
		t.Fatal(err)
	}
	done := make(chan *Report)
	go func() { done <- examine(t, state) }()
	select {
	case r := <-done:
		got := map[string]bool{}
		for _, f := range found(r, OddEntry) {
			got[filepath.Base(f.File)] = true
		}
		want := map[string]bool{"pipe.jsonl": true, "loop.jsonl": true, "loop2.jsonl": true, "folder.jsonl": true, "socket.jsonl": true}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if n := len(found(r, UnlinkedHistory)); n != 2 {
			t.Errorf("the rest was not looked at: %d transcripts with history of %s and another", n, u.History)
		}
	case <-time.After(time.Minute):
		t.Fatal("looking waits for a pipe")
	}
}

// A row whose transcript is a pipe.
func TestPipeForTranscript(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	put(t, fixtures.Store(state, "main"), `{"agent:main:main": {"sessionId": "t1", "updatedAt": 1789999000000}}`)
	if err := mkfifo(filepath.Join(filepath.Dir(fixtures.Store(state, "main")), "t1.jsonl")); err != nil {
		t.Fatal(err)
	}
	r := examine(t, state)
	says(t, one(t, r, TranscriptNoFile), "a pipe")
}

// A pipe in place of any file that is looked at, the index too, is not waited for, neither by looking nor by mending.
func TestPipesEverywhere(t *testing.T) {
	const id, temp = "0a1b2c3d-0000-4000-8000-000000000001", "1f0c7a2b-8d3e-4a56-9b7c-0d1e2f3a4b5c"
	for _, name := range []string{
		"sessions.json", "sessions.json.bak", "sessions.json." + temp + ".tmp", id + ".jsonl", id + ".jsonl.lock", id + ".trajectory.jsonl", id + ".trajectory-path.json",
		id + ".checkpoint." + temp + ".jsonl", id + ".jsonl.reset.2026-09-01T00-00-00.000Z", "other.jsonl", "../../../openclaw.json",
	} {
		state := filepath.Join(t.TempDir(), "state")
		dir := filepath.Dir(fixtures.Store(state, "main"))
		put(t, fixtures.Store(state, "main"), fmt.Sprintf(`{"agent:main:main": {"sessionId": %q, "updatedAt": 1789999000000}}`, id))
		put(t, filepath.Join(dir, id+".jsonl"), lines(six()...))
		aged(t, state)
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := mkfifo(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		before := shown(t, state)
		done := make(chan []Mended)
		go func() {
			examined(t, state)
			o, w := ward(t, state, nil)
			var all []Code
			for _, c := range Checks() {
				if remedyOf(c.Code) != "" {
					all = append(all, c.Code)
				}
			}
			m, err := Fix(t.Context(), o, all, w, false)
			if err != nil {
				t.Error(err)
			}
			done <- m
		}()
		select {
		case all := <-done:
			for _, m := range all {
				if m.Err != nil {
					t.Errorf("%s: %v", name, m.Err)
				}
			}
			if back(t, state); cmp.Diff(timeless(before), timeless(shown(t, state))) != "" {
				t.Errorf("%s: the state is another one after the undo", name)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: it waits for a pipe", name)
		}
	}
}

// A store that is a directory, an agent that is a link to nothing.
func TestNoStore(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	if err := os.MkdirAll(fixtures.Store(state, "main"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nowhere", filepath.Join(state, "agents", "lost")); err != nil {
		t.Fatal(err)
	}
	r := examine(t, state)
	says(t, one(t, r, IndexDamaged), "a directory")
	if f := one(t, r, AgentUnreadable); filepath.Base(filepath.Dir(f.File)) != "lost" && filepath.Base(f.File) != "lost" {
		t.Errorf("%+v", f)
	}
}

// Directories that are links in a circle: an agent's, one of transcripts, and one that leads back to all of them. The others are looked at.
func TestDirectoriesInCircle(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	if _, err := fixtures.S2(state, fixtures.Now); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(state, "agents", "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"loop": "loop", "work/sessions": "sessions", "up": ".", "main/sessions/down": ".."} {
		if err := os.Symlink(to, filepath.Join(state, "agents", name)); err != nil {
			t.Fatal(err)
		}
	}
	r := examine(t, state)
	unread := map[string]bool{}
	for _, code := range []Code{AgentUnreadable, IndexUnreadable} {
		for _, f := range found(r, code) {
			unread[f.File] = true
		}
	}
	for _, name := range []string{"loop", "work"} {
		met := false
		for path := range unread {
			met = met || strings.Contains(path, filepath.Join(state, "agents", name))
		}
		if !met {
			t.Errorf("the circle of %s is not found: %v", name, unread)
		}
	}
	if n := len(found(r, UnlinkedHistory)); n != 2 {
		t.Errorf("the rest was not looked at: %d transcripts with history", n)
	}
}

// A directory of 100,000 files is looked at in a moment.
func TestManyFiles(t *testing.T) {
	base, err := os.MkdirTemp("/dev/shm", "doctor") // in memory where that can be: making the files is what takes long
	if err != nil {
		base = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	state := filepath.Join(base, "state")
	if _, err := fixtures.S2(state, fixtures.Now); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(fixtures.Store(state, "main"))
	for i := range 100_000 {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%05d.jsonl.deleted.2026-09-01T00-00-00.000Z", i)))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	started := time.Now()
	r := examined(t, state)
	if d := time.Since(started); d > 30*time.Second {
		t.Errorf("took %v", d)
	}
	piles := found(r, Archives)
	if len(piles) != 2 || !strings.Contains(piles[0].Evidence[0]+piles[1].Evidence[0], "100000 archives of deletions") {
		t.Errorf("%+v", piles)
	}
}
