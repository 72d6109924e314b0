package awareness

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// Only another process can write at the same time in earnest: the test binary starts itself as that process.
const childEnv = "OC_TEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		if err := beChild(role, os.Args[1:]); err != nil {
			fmt.Println("child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
	if !chosen { // every step of a random run is a transaction on disk
		if err := flag.Set("rapid.checks", "25"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func beChild(role string, args []string) error {
	switch role {
	case "append": // path, name, number of events
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		for i := range n {
			err := Update(context.Background(), args[0], Options{Now: 1_767_225_600_000, Wait: 5 * time.Second}, func(e *Edit) error {
				_, err := e.Append(Entry{SessionKey: child, AgentID: "main", Kind: GoalChanged, ActorType: "agent", ActorID: args[1], Summary: strconv.Itoa(i), Watchers: []string{boss}})
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	case "wal": // path: turns it into a database with a write-ahead log
		db, err := sql.Open("sqlite", args[0])
		if err == nil {
			_, err = db.Exec("PRAGMA journal_mode=WAL")
		}
		if err == nil {
			err = db.Close()
		}
		return err
	case "commit": // path: commits 100 times a second until its input ends, then reports the slowest commit
		db, err := sql.Open("sqlite", args[0]+"?_pragma=busy_timeout(5000)&_pragma=synchronous(1)")
		if err != nil {
			return err
		}
		db.SetMaxOpenConns(1)
		if _, err := db.Exec("PRAGMA journal_mode=WAL"); err != nil {
			return err
		}
		fmt.Println("ready")
		stop := make(chan bool)
		go func() { io.Copy(io.Discard, os.Stdin); close(stop) }()
		var slowest time.Duration
		for {
			select {
			case <-stop:
				fmt.Println(slowest)
				return db.Close()
			case <-time.After(10 * time.Millisecond):
			}
			begun := time.Now()
			if _, err := db.Exec("UPDATE session_state_heads SET updated_at = updated_at + 1 WHERE session_key = ?", child); err != nil {
				return err
			}
			slowest = max(slowest, time.Since(begun))
		}
	case "crash": // path: dies with one event in the write-ahead log alone
		db, err := sql.Open("sqlite", args[0])
		if err != nil {
			return err
		}
		db.SetMaxOpenConns(1)
		for _, s := range []string{"PRAGMA journal_mode=WAL", "PRAGMA wal_autocheckpoint=0", event(1, child, GoalChanged, ""), head(child, "main", 1, 0)} {
			if _, err := db.Exec(s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	}
	return fmt.Errorf("no such role: %s", role)
}

func childProcess(t testing.TB, role string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), childEnv+"="+role)
	return cmd
}
