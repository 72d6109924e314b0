package commands

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"modernc.org/sqlite"

	"oc/fixtures"
)

// writerEnv makes this test binary a process that writes a database: "commits" or "holds".
const writerEnv = "OC_SCENARIO_WRITER"

// S17: another process commits a hundred times a second and checkpoints, while every command that reads runs in parallel. It sees the
// rows, never half a transaction; the writer is never kept waiting; nothing is left behind.
func TestReadingBesideAWriter(t *testing.T) {
	if os.Getenv(writerEnv) != "" {
		if err := beWriter(os.Getenv(writerEnv), os.Getenv("OC_SCENARIO_DATABASE")); err != nil {
			t.Fatal(err)
		}
		return
	}
	dir := t.TempDir()
	r := made[fixtures.ReadOnly](t)(fixtures.S17(dir, fixtures.Now))
	t.Cleanup(func() { fixtures.Unseal(r.Sealed) }) //nolint:errcheck // it is removed next
	db := fixtures.Database(r.Log, "main")
	stop := startWriter(t, "commits", db)
	env := quiet(t, fixtures.Now)

	var wg sync.WaitGroup
	next := make(chan []string)
	for range 3 {
		wg.Go(func() {
			for args := range next {
				a := ocProcess(t, env, append([]string{"--state-dir", r.Log}, args...)...)
				if a.exit != ExitDone {
					t.Errorf("oc %v: exit %d: %s", args, a.exit, a.errout)
				}
				if !slices.Contains(args, "--json") {
					continue
				}
				doc := a.doc(t)
				switch {
				case slices.Equal(args, []string{"sessions", "--json"}):
					same(t, "keys", keysOf(doc), sorted(r.Late, r.Keys[0], r.Keys[1]))
					at := map[any]any{}
					for _, row := range doc["sessions"].([]any) {
						at[dig(row, "key")] = dig(row, "updatedAt")
					}
					if at[r.Keys[0]] != at[r.Keys[1]] {
						t.Errorf("half a transaction was read: %v", at)
					}
				case slices.Contains(args, "status") || slices.Contains(args, "agents"):
					want(t, "rows", dig(doc, "agents", 0, "rows"), 3.0)
				case slices.Contains(args, "show"):
					want(t, "key", dig(doc, "session", "key"), r.Late)
				}
			}
		})
	}
	began := time.Now() // long enough that the writer gets far, however busy the machine is
	for round := 0; round < 2 || time.Since(began) < 3*time.Second; round++ {
		for _, args := range documents(r.Late) {
			next <- args
			next <- []string{"sessions", "--json"}
		}
	}
	close(next)
	wg.Wait()
	for _, name := range names(t, filepath.Dir(db)) {
		if !slices.Contains([]string{filepath.Base(db), filepath.Base(db) + "-wal", filepath.Base(db) + "-shm"}, name) {
			t.Errorf("%s was made beside the database", name)
		}
	}
	said := stop()
	var commits, checkpoints, blocked int
	if _, err := fmt.Sscanf(said, "%d commits, %d checkpoints, blocked %d ms", &commits, &checkpoints, &blocked); err != nil {
		t.Fatalf("%q: %v", said, err)
	}
	t.Log(said)
	if commits < 30 || checkpoints < 2 || blocked > 100 {
		t.Errorf("%s; want many commits, some checkpoints and at most 100 ms", said)
	}
	same(t, "files after the writer is gone", names(t, filepath.Dir(db)), []string{filepath.Base(db)})
	empty(t, env["TMPDIR"])
}

// A writer in the middle of a transaction: what is committed is read, what is not is not, and its files stay as they are.
func TestReadingBesideAnOpenTransaction(t *testing.T) {
	dir := t.TempDir()
	r := made[fixtures.ReadOnly](t)(fixtures.S17(dir, fixtures.Now))
	t.Cleanup(func() { fixtures.Unseal(r.Sealed) }) //nolint:errcheck // it is removed next
	stop := startWriter(t, "holds", fixtures.Database(r.Log, "main"))
	env := quiet(t, fixtures.Now)
	before := tree(t, r.Log)
	for _, args := range documents(r.Late) {
		a := ocProcess(t, env, append([]string{"--state-dir", r.Log}, args...)...)
		if a.exit != ExitDone {
			t.Errorf("oc %v: exit %d: %s", args, a.exit, a.errout)
		}
		if slices.Equal(args, []string{"sessions", "--json"}) {
			doc := a.doc(t)
			same(t, "keys", keysOf(doc), sorted(r.Late, r.Keys[0], r.Keys[1]))
			for _, row := range doc["sessions"].([]any) {
				if dig(row, "updatedAt") == 1.0 {
					t.Error("a change that is not committed was read")
				}
			}
		}
		if now := tree(t, r.Log); now != before {
			t.Fatalf("oc %v changed the tree:\n%s\nbefore:\n%s", args, now, before)
		}
	}
	if said := stop(); said != "held" {
		t.Errorf("the writer: %q", said)
	}
	empty(t, env["TMPDIR"])
}

// startWriter starts this binary as a writer and waits until it has begun; stop ends it and gives its last word.
func startWriter(t *testing.T, role, db string) (stop func() string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestReadingBesideAWriter$", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), writerEnv+"="+role, "OC_SCENARIO_DATABASE="+db)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the writer does not begin: %q", lines.Text())
	}
	var once sync.Once
	said := ""
	stop = func() string {
		once.Do(func() {
			in.Close() //nolint:errcheck // its end is what tells the writer to stop
			if lines.Scan() {
				said = lines.Text()
			}
			io.Copy(io.Discard, out) //nolint:errcheck // what the test framework says
			if err := cmd.Wait(); err != nil {
				t.Errorf("the writer: %v", err)
			}
		})
		return said
	}
	t.Cleanup(func() { stop() })
	return stop
}

// beWriter is that process. It never waits for a lock by itself, so that being blocked is seen and measured apart from being slow.
func beWriter(role, path string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	run := func(statements ...string) error {
		for _, s := range statements {
			if _, err := db.Exec(s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	}
	touch := func(stamp int64) []string {
		at := strconv.FormatInt(stamp, 10)
		return []string{
			"BEGIN IMMEDIATE",
			"UPDATE session_nodes SET updated_at=" + at + ", entry_json=json_set(entry_json, '$.updatedAt', " + at + ") WHERE session_key LIKE '%:main'",
			"UPDATE session_nodes SET updated_at=" + at + ", entry_json=json_set(entry_json, '$.updatedAt', " + at + ") WHERE session_key LIKE '%:direct:%'",
			"UPDATE session_nodes SET entry_valid=1",
		}
	}
	if err := run("PRAGMA busy_timeout=0", "PRAGMA synchronous=NORMAL", "PRAGMA wal_autocheckpoint=50"); err != nil {
		return err
	}
	if role == "holds" {
		if err := run(touch(1)...); err != nil {
			return err
		}
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // until it ends
		if err := run("ROLLBACK"); err != nil {
			return err
		}
		fmt.Println("held")
		return db.Close()
	}
	var blocked time.Duration
	patiently := func(f func() error) error { // counts how long others keep it from its work
		var since time.Time
		for {
			err := f()
			var busy *sqlite.Error
			if !errors.As(err, &busy) || busy.Code()&0xff != 5 { // SQLITE_BUSY
				if !since.IsZero() {
					blocked = max(blocked, time.Since(since))
				}
				return err
			}
			if since.IsZero() {
				since = time.Now()
			}
			db.Exec("ROLLBACK") //nolint:errcheck // there may be none
			time.Sleep(time.Millisecond)
		}
	}
	stopped := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // until it ends
		close(stopped)
	}()
	commits, checkpoints := 0, 0
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		err := patiently(func() error { return run(append(touch(fixtures.Now-int64(commits+1)), "COMMIT")...) })
		if err != nil {
			return err
		}
		if commits++; commits == 1 {
			fmt.Println("ready")
		}
		if commits%10 == 0 {
			var busy, pages, moved int
			if err := db.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved); err == nil && busy == 0 {
				checkpoints++
			}
		}
		select {
		case <-stopped:
			fmt.Printf("%d commits, %d checkpoints, blocked %d ms\n", commits, checkpoints, blocked.Milliseconds())
			return db.Close()
		case <-tick.C:
		}
	}
}

// names are the files in a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
