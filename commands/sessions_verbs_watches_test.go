package commands

import (
	"database/sql"
	"strings"
	"testing"

	"oc/fixtures"
)

// A session that is deleted or reset offline watches nothing any more in the signal log; a log that cannot be written keeps nobody from it.
func TestVerbsForgetWatches(t *testing.T) {
	watches := []string{
		headSQL(targetT, "main", 19, 9), eventSQL(10, targetT, "main", "goal_changed", ""), eventSQL(11, targetT, "main", "goal_changed", ""),
		cursorSQL("agent:main:w1", targetT, 12, 14, 19), cursorSQL("agent:main:w2", targetT, 5, 14, 19), cursorSQL(targetT, "agent:main:w3", 0, 0, 0),
	}
	for _, c := range []struct {
		args    []string
		removed float64
		left    int
	}{
		{[]string{"delete", "--yes", targetT}, 3, 0},
		{[]string{"delete", "--yes", targetT, "--dry-run"}, -1, 3},
		{[]string{"reset", targetT}, 1, 2},
		{[]string{"reset", "agent:main:w1"}, 1, 2},
		{[]string{"archive", targetT}, -1, 3},
	} {
		state, database := signalState(t, watches...)
		env := quiet(t, fixtures.Now)
		a := ocRun(t, state, env, append([]string{"--state-dir", state, "--json", "sessions"}, c.args...)...)
		doc := a.doc(t)
		if got, there := doc["watchesRemoved"]; there != (c.removed >= 0) || there && got != c.removed {
			t.Errorf("%v: watchesRemoved %v: %s", c.args, got, a.errout)
		}
		if c.removed > 0 && !strings.Contains(a.errout, "watches in the signal log") {
			t.Errorf("%v: said %q", c.args, a.errout)
		}
		left := countRows(t, database, "session_watch_cursors")
		events := countRows(t, database, "session_state_events")
		if left != c.left || events != 2 {
			t.Errorf("%v: %d watches and %d events are left", c.args, left, events)
		}
	}
	state, database := signalState(t)
	write(t, database, strings.Repeat("this is no database. ", 100))
	a := ocRun(t, state, quiet(t, fixtures.Now), "--state-dir", state, "sessions", "delete", "--yes", targetT)
	if a.exit != ExitDone || !strings.Contains(a.errout, "its watches in the signal log stay") {
		t.Errorf("exit %d: %s", a.exit, a.errout)
	}
}

func countRows(t *testing.T, database, table string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
