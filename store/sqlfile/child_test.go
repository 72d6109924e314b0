package sqlfile

import (
	"bufio"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Some states of a file only another process can leave behind, or hold: the test binary starts itself as that process.
const childEnv = "OC_TEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		if err := child(role, os.Args[1:]); err != nil {
			fmt.Println("child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(role string, args []string) error {
	path := args[0]
	if role == "read" {
		return childRead(path, args[1], args[2])
	}
	if role == "copying" { // a process in the middle of a copy, whose names are there already
		r, err := makeRoom(path)
		if err == nil {
			err = os.WriteFile(r.dir+"/copy.sqlite", make([]byte, 1<<20), 0o600)
		}
		if err == nil {
			fmt.Println("ready")
			io.Copy(io.Discard, os.Stdin)
			err = r.clear()
		}
		return err
	}
	db, err := sql.Open("sqlite", uri(path, "_pragma=busy_timeout(2000)"))
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
	const table = "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, body TEXT)"
	row := "INSERT INTO t (body) VALUES (hex(randomblob(300)))"
	switch role {
	case "closed": // WAL mode, closed properly
		if err := run("PRAGMA journal_mode=WAL", table, row, row); err != nil {
			return err
		}
		return db.Close()
	case "crash": // one row in the file, two in the log only
		return run("PRAGMA journal_mode=WAL", "PRAGMA wal_autocheckpoint=0", table, row, "PRAGMA wal_checkpoint(TRUNCATE)", row, row)
	case "rollback": // rollback journal, closed properly
		if err := run(table, row, row); err != nil {
			return err
		}
		return db.Close()
	case "hot": // a transaction that was half written when the process died
		if err := run("PRAGMA cache_size=5", table, row, row); err != nil {
			return err
		}
		return run("BEGIN", "UPDATE t SET body = 'void'",
			"WITH n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 400) INSERT INTO t (body) SELECT hex(randomblob(900)) FROM n")
	case "hold": // a writer in the middle of a transaction, until it is told to go on
		if err := run("PRAGMA journal_mode="+args[1], table, row, row, "BEGIN IMMEDIATE", row); err != nil {
			return err
		}
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin)
		if err := run("COMMIT"); err != nil {
			return err
		}
		return db.Close()
	case "write": // commits without end; every tenth time it checkpoints; reports the slowest commit
		if err := run("PRAGMA journal_mode="+args[1], "PRAGMA synchronous=OFF", table,
			"CREATE TABLE pair (a INTEGER, b INTEGER)", "INSERT INTO pair VALUES (0, 0)"); err != nil {
			return err
		}
		fmt.Println("ready")
		stop := make(chan bool)
		go func() { io.Copy(io.Discard, os.Stdin); close(stop) }()
		var slowest time.Duration
		for i := 0; ; i++ {
			select {
			case <-stop:
				fmt.Println(slowest.Milliseconds())
				return db.Close()
			case <-time.After(time.Millisecond):
			}
			began := time.Now()
			if err := run("BEGIN IMMEDIATE", "UPDATE pair SET a = a + 1", row, "UPDATE pair SET b = b + 1", "COMMIT"); err != nil {
				return err
			}
			slowest = max(slowest, time.Since(began))
			if i%10 == 9 && args[1] == "WAL" {
				if err := run("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
					return err
				}
			}
			if i%25 == 24 && args[1] == "WAL" { // the last to close removes the log
				db.Close()
				if db, err = sql.Open("sqlite", uri(path, "_pragma=busy_timeout(2000)", "_pragma=synchronous(0)")); err != nil {
					return err
				}
				db.SetMaxOpenConns(1)
			}
		}
	}
	return fmt.Errorf("no such role: %s", role)
}

func childRead(path, rows, mode string) error {
	want, _ := strconv.ParseInt(rows, 10, 64)
	for range 2 {
		var got int64
		var how Mode
		err := Read(context.Background(), path, func(tx *Tx) error {
			how = tx.Mode()
			var err error
			got, _, err = tx.Int("SELECT count(*) FROM t WHERE body <> 'void'")
			return err
		})
		if err != nil {
			return err
		}
		if got != want || how.String() != mode {
			return fmt.Errorf("read %d rows by %s, want %d by %s", got, how, want, mode)
		}
	}
	return nil
}

// run starts a child and waits for its end.
func run(t testing.TB, role string, args ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"="+role)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", role, args, err, out)
	}
}

// start starts a child and waits until it is ready; stop ends it and gives what it said.
func start(t testing.TB, role string, args ...string) (stop func() string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"="+role)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, _ := lines.ReadString('\n'); line != "ready\n" {
		rest, _ := io.ReadAll(lines)
		t.Fatalf("%s: %s%s", role, line, rest)
	}
	done := false
	stop = func() string {
		if done {
			return ""
		}
		done = true
		in.Close()
		rest, _ := io.ReadAll(lines)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v: %s", role, err, rest)
		}
		return strings.TrimSpace(string(rest))
	}
	t.Cleanup(func() { stop() })
	return stop
}

// openDir is a directory of the test's that another user may enter.
func openDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// treeHash covers names, kinds, modes, times and bytes of everything below dir.
func treeHash(t testing.TB, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(p)
		if err != nil {
			return err
		}
		fmt.Fprintln(h, p, info.Mode(), info.Size(), info.ModTime().UnixNano(), identity(info))
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			h.Write(data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
