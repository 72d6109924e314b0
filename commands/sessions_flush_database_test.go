package commands

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/store/sqlfile"
)

// saysIn is the text that a query gives first.
func saysIn(t *testing.T, path, query string, args ...any) (s string) {
	t.Helper()
	err := sqlfile.Read(t.Context(), path, func(tx *sqlfile.Tx) (err error) {
		s, _, err = tx.Text(query, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A flush of a session in a database puts notes behind those of the day and marks its row, and nothing else; in the same cycle nobody is asked
// again, and undo takes rows and notes back.
func TestFlushDatabase(t *testing.T) {
	for name, marked := range map[string]string{
		"migrated-23": `{"kind":"succeeded","compactionCount":0}`,
		"migrated-19": `0`,
	} {
		t.Run(name, func(t *testing.T) {
			state, path, env := migrated(t, name)
			workspace := t.TempDir()
			memory := filepath.Join(workspace, "memory")
			notes := filepath.Join(memory, time.UnixMilli(afterMigration).UTC().Format(time.DateOnly)+".md")
			if err := os.Mkdir(memory, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(notes, []byte("- tea at five\n"), 0o640); err != nil {
				t.Fatal(err)
			}
			asked := filepath.Join(t.TempDir(), "asked")
			args := []string{
				"--state-dir", state, "sessions", "flush", "agent:main:telegram:group:-100123", "--workspace", workspace,
				"--provider", scripted(t, "cat >"+asked+"; echo '- the family likes lists'"),
			}
			before := tables(t, path)
			if a := ocRun(t, state, env, append(args, "--dry-run")...); a.exit != ExitDone || !strings.Contains(a.out, "Would write") {
				t.Fatalf("dry run: exit %d %s%s", a.exit, a.errout, a.out)
			}
			if d := cmp.Diff(before, tables(t, path)); d != "" {
				t.Fatalf("a dry run changed %s", d)
			}
			a := ocRun(t, state, env, append(args, "--json")...)
			if a.exit != ExitDone || !strings.Contains(a.out, `"flushed": true`) || !strings.Contains(a.out, `"written": true`) || !strings.Contains(a.out, `"storePath": "`+path) {
				t.Fatalf("exit %d %s%s", a.exit, a.errout, a.out)
			}
			if text, err := os.ReadFile(notes); err != nil || string(text) != "- tea at five\n\n- the family likes lists\n" {
				t.Errorf("the notes: %v %q", err, text)
			}
			const entry = "FROM session_nodes WHERE session_key = 'agent:main:telegram:group:-100123'"
			if got := saysIn(t, path, "SELECT cast(coalesce(entry_json ->> 'memoryFlush', entry_json ->> 'memoryFlushCompactionCount') AS TEXT) "+entry); got != marked {
				t.Errorf("the row is marked with %s, want %s", got, marked)
			}
			if got := saysIn(t, path, "SELECT entry_valid || ' ' || (updated_at = entry_json ->> 'updatedAt') "+entry); got != "1 1" {
				t.Errorf("row and columns: %s", got)
			}
			if err := os.Remove(asked); err != nil {
				t.Fatal(err)
			}
			if a := ocRun(t, state, env, args...); a.exit != ExitDone || !strings.Contains(a.out, "flushed since its last compaction") {
				t.Errorf("again: exit %d %s%s", a.exit, a.errout, a.out)
			}
			if _, err := os.Stat(asked); err == nil {
				t.Error("somebody was asked again")
			}
			if a := ocRun(t, state, env, "--state-dir", state, "sessions", "context", "agent:main:telegram:group:-100123", "--json"); !strings.Contains(a.out, `"flushedThisCycle": true`) {
				t.Errorf("context: %s%s", a.errout, a.out)
			}
			if a := ocRun(t, state, env, "--state-dir", state, "undo"); a.exit != ExitDone {
				t.Fatalf("undo: exit %d %s%s", a.exit, a.errout, a.out)
			}
			if d := cmp.Diff(before, tables(t, path)); d != "" {
				t.Errorf("after undo:\n%s", d)
			}
			if text, err := os.ReadFile(notes); err != nil || string(text) != "- tea at five\n" {
				t.Errorf("after undo: %v %q", err, text)
			}
		})
	}
}

// A provider that fails leaves a session in a database, and the notes, as they are.
func TestFlushDatabaseFails(t *testing.T) {
	state, path, env := migrated(t, "migrated-23")
	workspace := t.TempDir()
	before := tables(t, path)
	a := ocRun(t, state, env, "--state-dir", state, "sessions", "flush", "agent:main:telegram:group:-100123", "--workspace", workspace, "--provider", scripted(t, "exit 1"))
	if a.exit != ExitFailed || !strings.Contains(a.errout, "nothing was changed") {
		t.Errorf("exit %d %s%s", a.exit, a.errout, a.out)
	}
	if d := cmp.Diff(before, tables(t, path)); d != "" {
		t.Error(d)
	}
	if all, err := os.ReadDir(workspace); err != nil || len(all) != 0 {
		t.Errorf("the workspace holds %v %v", all, err)
	}
}

// With --successor a session of a database goes on in a new transcript that has the summary and what is kept; the one so far stays row by row, as an
// earlier one of the session; undo takes the new one out again.
func TestCompactSuccessorDatabase(t *testing.T) {
	for _, name := range []string{"migrated-23", "migrated-19"} {
		t.Run(name, func(t *testing.T) {
			state, path, env := migrated(t, name)
			const key = "agent:main:telegram:group:-100123"
			before := tables(t, path)
			old := saysIn(t, path, "SELECT current_session_id FROM session_nodes WHERE session_key = ?1", key)
			rows := func(id string) string {
				return saysIn(t, path, "SELECT group_concat(event_json || coalesce(hex(created_at), '')) FROM (SELECT * FROM transcript_events WHERE session_id = ?1 ORDER BY seq)", id)
			}
			was := rows(old)
			args := []string{"--state-dir", state, "sessions", "compact", key, "--keep-recent-tokens", "40", "--successor", "--provider", "extract"}
			if a := ocRun(t, state, env, append(args, "--dry-run")...); a.exit != ExitDone || !strings.Contains(a.out, "Would go on in") {
				t.Fatalf("dry run: exit %d %s%s", a.exit, a.errout, a.out)
			}
			a := ocRun(t, state, env, append(args, "--json")...)
			if a.exit != ExitDone || !strings.Contains(a.out, `"compacted": true`) || !strings.Contains(a.out, `"sessionFile": null`) {
				t.Fatalf("exit %d %s%s", a.exit, a.errout, a.out)
			}
			id := saysIn(t, path, "SELECT current_session_id FROM session_nodes WHERE session_key = ?1", key)
			if id == old || !strings.Contains(a.out, `"sessionId": "`+id+`"`) {
				t.Fatalf("the session goes on in %s: %s", id, a.out)
			}
			if now := rows(old); now != was {
				t.Errorf("the transcript so far was changed: %s", cmp.Diff(was, now))
			}
			if got := saysIn(t, path, "SELECT session_key || ' ' || previous_session_id FROM session_windows WHERE session_id = ?1", id); got != key+" "+old {
				t.Errorf("the window of the new transcript: %s", got)
			}
			if got := saysIn(t, path, "SELECT session_key FROM session_windows WHERE session_id = ?1", old); got != key {
				t.Errorf("the one so far belongs to %q", got)
			}
			entry := saysIn(t, path, "SELECT entry_json FROM session_nodes WHERE session_key = ?1", key)
			for _, want := range []string{`"previousSessionId":"` + old + `"`, `"usageFamilySessionIds":["` + old + `","` + id + `"]`, `"usageFamilyKey":"` + key + `"`, `"compactionCount":1`} {
				if !strings.Contains(entry, want) {
					t.Errorf("the row lacks %s: %s", want, entry)
				}
			}
			if got := saysIn(t, path, "SELECT group_concat(event_json ->> 'type') FROM (SELECT * FROM transcript_events WHERE session_id = ?1 ORDER BY seq)", id); !strings.HasPrefix(got, "session,") || !strings.HasSuffix(got, ",compaction") {
				t.Errorf("the new transcript is made of %s", got)
			}
			if head := saysIn(t, path, "SELECT event_json FROM transcript_events WHERE session_id = ?1 AND seq = 0", id); !strings.Contains(head, `"parentSession":"`+old+`"`) {
				t.Errorf("its header is %s", head)
			}
			if a := ocRun(t, state, env, "--state-dir", state, "sessions", "context", key, "--json"); a.exit != ExitDone || !strings.Contains(a.out, `"compactions": 1`) {
				t.Errorf("context: exit %d %s%s", a.exit, a.errout, a.out)
			}
			if a := ocRun(t, state, env, "--state-dir", state, "doctor", "--agent", "main", "--only", "database,transcripts", "--json"); !slices.Contains([]int{ExitDone, ExitFindings}, a.exit) || strings.Contains(a.out, id) {
				t.Errorf("doctor: exit %d %s%s", a.exit, a.errout, a.out)
			}
			if a := ocRun(t, state, env, "--state-dir", state, "undo"); a.exit != ExitDone {
				t.Fatalf("undo: exit %d %s%s", a.exit, a.errout, a.out)
			}
			if d := cmp.Diff(before, tables(t, path)); d != "" {
				t.Errorf("after undo:\n%s", d)
			}
		})
	}
}
