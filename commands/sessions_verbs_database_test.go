package commands

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"oc/store/sqlfile"
)

// afterMigration is when the recorded databases were calm, and nothing in them was written in the last minutes.
const afterMigration int64 = 1796068900000

// migrated is a state whose agent main has a recorded database of the real OpenClaw.
func migrated(t *testing.T, name string) (state, path string, env map[string]string) {
	t.Helper()
	data := made[[]byte](t)(os.ReadFile(filepath.Join("../store/agentdb/testdata", name+".sqlite.zst")))
	d := made[*zstd.Decoder](t)(zstd.NewReader(nil))
	defer d.Close()
	data = made[[]byte](t)(d.DecodeAll(data, nil))
	state = filepath.Join(t.TempDir(), "state")
	path = filepath.Join(state, "agents", "main", "agent", "openclaw-agent.sqlite")
	for _, dir := range []string{filepath.Dir(path), filepath.Join(state, "agents", "main", "sessions")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	config := `{"agents":{"defaults":{"workspace":"/home/demouser/ws","model":{"primary":"fake/fake-1"}},"list":[{"id":"main","default":true}]}}`
	if err := os.WriteFile(filepath.Join(state, "openclaw.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return state, path, quiet(t, afterMigration)
}

// tables are all rows of all tables of a database, as text, but for what SQLite's search keeps of its own.
func tables(t *testing.T, path string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := sqlfile.Read(context.Background(), path, func(tx *sqlfile.Tx) error {
		clear(all)
		var names []string
		err := tx.Each(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%_fts_data' AND name NOT LIKE '%_fts_idx' AND name NOT LIKE '%_fts_docsize' AND name NOT LIKE 'sqlite_%'`, func(r *sqlfile.Row) error {
			names = append(names, r.Text(0))
			return nil
		})
		if err != nil {
			return err
		}
		for _, name := range names {
			width := 0
			err := tx.Each(`SELECT count(*) FROM pragma_table_info('`+name+`')`, func(r *sqlfile.Row) error {
				n, _ := r.Int(0)
				width = int(n)
				return nil
			})
			if err == nil {
				err = tx.Each(`SELECT * FROM "`+name+`"`, func(r *sqlfile.Row) error {
					var b strings.Builder
					for i := range width {
						fmt.Fprintf(&b, "%T %v|", r.Value(i), r.Value(i))
					}
					all[name] = append(all[name], b.String())
					return nil
				})
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			slices.Sort(all[name])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Every verb changes a database as it changes a file, says so, and is taken back row by row in every table.
func TestVerbsOnDatabases(t *testing.T) {
	const (
		scratch  = "agent:main:explicit:scratch-1"
		archived = "agent:main:explicit:archived-1"
		telegram = "agent:main:telegram:direct:777"
		group    = "agent:main:telegram:group:-100123"
		missing  = "agent:main:explicit:missing-1"
	)
	for _, name := range []string{"migrated-19", "migrated-23"} {
		for _, x := range []struct {
			args []string
			key  string
			says string // of the row afterwards
			not  string
		}{
			{[]string{"archive", scratch}, scratch, `"archivedAt":1796068900000`, `"pinnedAt"`},
			{[]string{"restore", archived}, archived, `"updatedAt":1796068900000`, `"archivedAt"`},
			{[]string{"patch", telegram, "--label", "Desk é", "--pin"}, telegram, `"label":"Desk é"`, "\x00"},
			{[]string{"reset", telegram}, telegram, `"sessionStartedAt":1796068900000`, `"lastInteractionAt"`},
			{[]string{"reset", missing, "--reason", "new"}, missing, `"sessionId":"00000008-1111-4222-8333-000000000008"`, `"lastInteractionAt"`},
			{[]string{"compact", group, "--keep-recent-tokens", "10"}, group, `"compactionCount":1`, `"inputTokens"`},
			{[]string{"compact", group, "--max-lines", "4"}, group, `"updatedAt":1796068900000`, `"totalTokens"`},
		} {
			t.Run(name+" "+strings.Join(x.args[:1], " "), func(t *testing.T) {
				state, path, env := migrated(t, name)
				before, names := tables(t, path), tree(t, state)
				line := append([]string{"--state-dir", state, "sessions"}, x.args...)
				if a := ocRun(t, state, env, append(line, "--dry-run")...); a.exit != ExitDone || !strings.Contains(a.out, "Dry run: nothing was changed") && x.args[0] != "compact" || tree(t, state) != names {
					t.Fatalf("dry run: exit %d: %s%s", a.exit, a.out, a.errout)
				}
				a := ocRun(t, state, env, append(line, "--json")...)
				if a.exit != ExitDone {
					t.Fatalf("exit %d: %s", a.exit, a.errout)
				}
				doc := a.doc(t)
				want(t, "via", doc["via"], viaLocal)
				want(t, "storePath", doc["storePath"], path)
				want(t, "rows", dig(doc, "committed", "rows"), 1.0)
				row := ""
				for _, r := range tables(t, path)["session_nodes"] {
					if strings.HasPrefix(r, "string "+x.key+"|") {
						row = r
					}
				}
				if !strings.Contains(row, x.says) || strings.Contains(row, x.not) {
					t.Errorf("the row is %s", row)
				}
				if d := cmp.Diff(before, tables(t, path)); d == "" {
					t.Error("nothing has changed")
				}
				if a := ocRun(t, state, env, "--state-dir", state, "sessions", "list", "--json"); a.exit != ExitDone || !strings.Contains(a.out, x.key) {
					t.Errorf("list: exit %d %s", a.exit, a.errout)
				}
				if a := ocRun(t, state, env, "--state-dir", state, "undo", "--agent", "main"); a.exit != ExitDone {
					t.Fatalf("undo: exit %d %s%s", a.exit, a.out, a.errout)
				}
				if d := cmp.Diff(before, tables(t, path)); d != "" {
					t.Errorf("after undo:\n%s", d)
				}
			})
		}
	}
}

// What the gateway of 2026.9.6 made of a row on a request, oc makes of it on the command that says the same.
func TestVerbsDoAsTheGateway(t *testing.T) {
	var calls []struct {
		Name, Key string
		Before    map[string][]map[string]any
		Changes   []struct {
			Table, PK string
			After     map[string]any
		}
	}
	if err := json.Unmarshal(made[[]byte](t)(os.ReadFile("../store/agentdb/testdata/calls-23.json")), &calls); err != nil {
		t.Fatal(err)
	}
	args := map[string][]string{
		"archive": {"archive"}, "restore": {"restore"}, "reset": {"reset"}, "resetmissing": {"reset"}, "resetmain": {"reset", "--main", "--reason", "new"},
		"patch": {"patch", "--label", "Desk2", "--pin", "--verbose-level", "full"}, "unread": {"patch", "--unread"}, "read": {"patch", "--read"},
		"model": {"patch", "--model", "fake/fake-2"}, "modelnull": {"patch", "--unset", "model"}, "compactlines": {"compact", "--max-lines", "4"},
	}
	done := 0
	for _, c := range calls {
		if args[c.Name] == nil {
			continue // a summary is another one
		}
		done++
		t.Run(c.Name, func(t *testing.T) {
			state, path, env := migrated(t, "migrated-23")
			node := c.Before["session_nodes"][0]
			err := sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
				columns := slices.Sorted(maps.Keys(node))
				for _, name := range columns {
					v := node[name]
					if f, is := v.(float64); is {
						v = int64(f)
					}
					if _, err := tx.Exec("UPDATE session_nodes SET "+name+" = ?1 WHERE session_key = ?2", v, c.Key); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			var after map[string]any
			for _, x := range c.Changes {
				if x.Table == "session_nodes" {
					after = x.After
				}
			}
			env["OC_NOW"] = fmt.Sprint(int64(after["updated_at"].(float64)))
			verb := args[c.Name]
			if a := ocRun(t, state, env, slices.Concat([]string{"--state-dir", state, "sessions", verb[0], c.Key}, verb[1:])...); a.exit != ExitDone {
				t.Fatalf("exit %d: %s", a.exit, a.errout)
			}
			got := ""
			err = sqlfile.Read(context.Background(), path, func(tx *sqlfile.Tx) error {
				got, _, err = tx.Text("SELECT entry_json FROM session_nodes WHERE session_key = ?1", c.Key)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(lasting(t, after["entry_json"].(string)), lasting(t, got)); d != "" {
				t.Errorf("the gateway's row, and oc's:\n%s", d)
			}
		})
	}
	want(t, "calls", done, len(args))
}

// lasting are those of a row, without what is drawn by lot and what a gateway notes for a task of its own.
func lasting(t *testing.T, entry string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(entry), &m); err != nil {
		t.Fatal(err)
	}
	if m["lifecycleRevision"] != nil {
		m["lifecycleRevision"] = "some"
	}
	delete(m, "sessionDiffBaselineCapture")
	return m
}

// What cannot be changed stays as it is, and is told.
func TestVerbsLeaveDatabasesAlone(t *testing.T) {
	const scratch, old = "agent:main:explicit:scratch-1", "agent:main:explicit:old-1"
	change := func(sql ...string) func(t *testing.T, path string, env map[string]string) {
		return func(t *testing.T, path string, _ map[string]string) {
			err := sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
				for _, s := range sql {
					if _, err := tx.Exec(s); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	none := func(*testing.T, string, map[string]string) {}
	for _, x := range []struct {
		name string
		harm func(t *testing.T, path string, env map[string]string)
		args []string
		exit int
		says string
	}{
		{"an older schema", change("PRAGMA user_version = 22"), []string{"archive", scratch}, ExitRefused, "22"},
		{"a newer schema", change("PRAGMA user_version = 24"), []string{"patch", scratch, "--unpin"}, ExitRefused, "24"},
		{"a column that is not known", change("ALTER TABLE session_nodes ADD COLUMN more TEXT NOT NULL DEFAULT 'x'"), []string{"archive", scratch}, ExitRefused, "session_nodes"},
		{"written a minute ago", change("UPDATE session_windows SET transcript_updated_at = 1796068840000"), []string{"reset", old}, ExitRefused, "written 1 min ago"},
		{"another session's transcript", none, []string{"reset", "agent:main:cron:job-1"}, ExitFailed, "another session owns"},
		{"another session's transcript to compact", none, []string{"compact", "agent:main:cron:job-1", "--max-lines", "3"}, ExitFailed, "another session owns"},
		{"archived", none, []string{"reset", "agent:main:explicit:archived-1"}, ExitFailed, "archived"},
		{"archived to compact", none, []string{"compact", "agent:main:explicit:archived-1", "--max-lines", "3"}, ExitFailed, "archived"},
		{"in a cold archive", change(`INSERT INTO session_transcript_cold_archives VALUES ('00000006-1111-4222-8333-000000000006', 'g', 'x', '` + strings.Repeat("0", 64) + `', 1, 1, 1, 0, 1, 'file', NULL)`), []string{"reset", old}, ExitFailed, "cold archive"},
		{"a cron run", none, []string{"reset", old, "--cron-run"}, ExitFailed, "cron"},
		{"a successor of a cold archive", change(`INSERT INTO session_transcript_cold_archives VALUES ('00000006-1111-4222-8333-000000000006', 'g', 'x', '` + strings.Repeat("0", 64) + `', 1, 1, 1, 0, 1, 'file', NULL)`), []string{"compact", old, "--successor"}, ExitFailed, "cold archive"},
		{"a label that is taken", none, []string{"patch", old, "--label", "Scratch"}, ExitFailed, "in use"},
		{"not archived, and no archive", none, []string{"restore", old}, ExitFailed, "not archived"},
		{"nobody", none, []string{"archive", "agent:main:nobody"}, ExitFailed, "nobody"},
		{"a time that no column takes", change(`UPDATE session_nodes SET entry_json = json_set(entry_json, '$.lastReadAt', 1.5) WHERE session_key = '` + old + `'`), []string{"archive", old}, ExitRefused, "lastReadAt is 1.5"},
		{"lineage that is not canonical", change(`UPDATE session_nodes SET entry_json = json_set(entry_json, '$.spawnedBy', 'Agent:Main:X') WHERE session_key = '` + old + `'`), []string{"archive", old}, ExitRefused, "spawnedBy"},
	} {
		t.Run(x.name, func(t *testing.T) {
			state, path, env := migrated(t, "migrated-23")
			x.harm(t, path, env)
			before := tables(t, path)
			a := ocRun(t, state, env, append([]string{"--state-dir", state, "sessions"}, x.args...)...)
			if a.exit != x.exit || !strings.Contains(a.errout, x.says) {
				t.Errorf("exit %d, want %d: %s", a.exit, x.exit, a.errout)
			}
			if d := cmp.Diff(before, tables(t, path)); d != "" {
				t.Errorf("something changed:\n%s", d)
			}
		})
	}
}

// A session that was deleted comes back from its archive: from the database, or from the file where that is all there is.
func TestRestoreFromArchives(t *testing.T) {
	const key, id = "agent:main:explicit:old-1", "00000006-1111-4222-8333-000000000006"
	header := `{"type":"session","version":3,"id":"` + id + `","timestamp":"2026-11-28T11:18:48.146Z","cwd":"/w"}` + "\n"
	said := `{"type":"message","id":"a","parentId":null,"timestamp":"2026-11-28T11:18:49.000Z","message":{"role":"user","content":"where is it"}}` + "\n"
	name := id + ".jsonl.deleted.2026-11-30T10-00-00.000Z." + strings.Repeat("a", 32)
	pressed := made[*zstd.Encoder](t)(zstd.NewWriter(nil)).EncodeAll([]byte(header+said), nil)
	for _, x := range []struct {
		name         string
		blob, file   []byte
		encoding     string
		word         string
		says, listed string
		exit         int
	}{
		{"blob", pressed, nil, "zstd", id, "inferred", key, ExitDone},
		{"plain blob", []byte(header + said), nil, "identity", key, "inferred", key, ExitDone},
		{"file", nil, pressed, "", name + ".zst", "inferred", "agent:main:explicit:" + id, ExitDone},
		{"damaged blob", []byte(header + "{"), nil, "identity", id, "line 2", "", ExitFailed},
		{"no header", []byte(said), nil, "identity", id, "header", "", ExitFailed},
		{"empty", []byte(" "), nil, "identity", id, "empty", "", ExitFailed},
		{"nothing", nil, nil, "", id, "", "", ExitFailed},
	} {
		t.Run(x.name, func(t *testing.T) {
			state, path, env := migrated(t, "migrated-23")
			err := sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
				for _, sql := range []string{"DELETE FROM session_nodes WHERE session_key = '" + key + "'", "DELETE FROM session_transcript_fts_rows WHERE session_id = '" + id + "'"} {
					if _, err := tx.Exec(sql); err != nil {
						return err
					}
				}
				if x.blob == nil {
					return nil
				}
				sum := sha256.Sum256(x.blob)
				_, err := tx.Exec("INSERT INTO session_transcript_archives (session_id, generation, session_key, reason, encoding, archive_blob, archive_sha256, archive_name, created_at) VALUES (?1, ?2, ?3, 'deleted', ?4, ?5, ?6, ?7, 1796068000000)",
					id, strings.Repeat("a", 32), key, x.encoding, x.blob, hex.EncodeToString(sum[:]), name)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if x.file != nil {
				if err := os.WriteFile(filepath.Join(state, "agents", "main", "sessions", name+".zst"), x.file, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			before := tables(t, path)
			a := ocRun(t, state, env, "--state-dir", state, "sessions", "restore", x.word)
			if a.exit != x.exit || !strings.Contains(a.errout, x.says) {
				t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
			}
			if x.exit != ExitDone {
				if d := cmp.Diff(before, tables(t, path)); d != "" {
					t.Errorf("something changed:\n%s", d)
				}
				return
			}
			if h := ocRun(t, state, env, "--state-dir", state, "sessions", "history", x.listed); !strings.Contains(h.out, "where is it") {
				t.Errorf("history: %s%s", h.out, h.errout)
			}
			if a := ocRun(t, state, env, "--state-dir", state, "sessions", "restore", x.word); a.exit == ExitDone {
				t.Error("it came back twice")
			}
			if a := ocRun(t, state, env, "--state-dir", state, "undo"); a.exit != ExitDone {
				t.Fatalf("undo: exit %d %s", a.exit, a.errout)
			}
			if d := cmp.Diff(before, tables(t, path)); d != "" {
				t.Errorf("after undo:\n%s", d)
			}
		})
	}
}

// Before a gateway deletes sessions of a database all their rows are saved, and come back once it has stopped, also those of a transcript that
// a database packs. Nothing is saved of what it did not delete.
func TestGatewayDeletesFromADatabase(t *testing.T) {
	const group, run = "agent:main:telegram:group:-100123", "agent:main:cron:job-1:run:00000004-1111-4222-8333-000000000004"
	state, path, env := migrated(t, "migrated-23")
	refuse := false
	f := fake(t, "2026.9.6", state, func(c fakeCall) fakeEnd {
		if c.Method != "sessions.delete" || refuse {
			return fakeEnd{failure: map[string]any{"code": "INVALID_REQUEST", "message": "not now"}}
		}
		err := sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
			key := c.Params["key"]
			// A window that another session uses goes on as that one's, as with the gateway.
			for _, sql := range []string{
				`UPDATE session_windows SET session_key = (SELECT n.session_key FROM session_nodes AS n WHERE n.current_session_id = session_windows.session_id AND n.session_key <> ?1)
					WHERE session_key = ?1 AND EXISTS (SELECT 1 FROM session_nodes AS n WHERE n.current_session_id = session_windows.session_id AND n.session_key <> ?1)`,
				"DELETE FROM session_transcript_fts_rows WHERE session_id IN (SELECT session_id FROM session_windows WHERE session_key = ?1)",
				"DELETE FROM session_nodes WHERE session_key = ?1",
			} {
				if _, err := tx.Exec(sql, key); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return fakeEnd{payload: map[string]any{"ok": true, "deleted": true, "archived": []any{}}}
	})
	before := tables(t, path)
	line := []string{"--state-dir", state, "--json", "sessions", "delete", group, run, "--yes"}
	a := ocRun(t, state, f.env(env), line...)
	if a.exit != ExitDone || via(t, a) != viaGateway {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	if dig(a.doc(t), "undo", "run") == nil || dig(a.doc(t), "undo", "covers", "rows") != 2.0 {
		t.Errorf("%v", dig(a.doc(t), "undo"))
	}
	if after := tables(t, path); len(after["session_nodes"]) != len(before["session_nodes"])-2 || len(after["transcript_events"]) >= len(before["transcript_events"]) {
		t.Fatal("nothing was deleted")
	}
	refuse = true
	runs := func() int { return len(made[[]os.DirEntry](t)(os.ReadDir(filepath.Join(state, ".oc", "undo")))) }
	saved := runs()
	if a := ocRun(t, state, f.env(env), "--state-dir", state, "--json", "sessions", "delete", "agent:main:explicit:old-1", "--yes"); a.exit == ExitDone || runs() != saved {
		t.Errorf("refused: exit %d, %d saved, %d before: %s", a.exit, runs(), saved, a.errout)
	}
	if u := ocRun(t, state, env, "--state-dir", state, "undo"); u.exit != ExitDone {
		t.Fatalf("undo: exit %d %s%s", u.exit, u.out, u.errout)
	}
	after := tables(t, path)
	for _, made := range []string{"session_transcript_fts_rows", "session_transcript_fts", "session_transcript_fts_content", "session_transcript_active_events", "session_transcript_index_state", "session_canonical_validation_pending"} {
		delete(before, made)
		delete(after, made)
	}
	// The window that the two cron rows share went on as the other's.
	shared := func(rows []string) []string {
		out := slices.Clone(rows)
		for i := range out {
			out[i] = strings.ReplaceAll(out[i], "string "+run+"|", "string agent:main:cron:job-1|")
		}
		slices.Sort(out)
		return out
	}
	before["session_windows"], after["session_windows"] = shared(before["session_windows"]), shared(after["session_windows"])
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("after undo:\n%s", d)
	}
}

// What the gateway's own cleanup cannot express is asked for session by session, each with the id that was planned for, and saved before.
func TestGatewayCleansADatabaseByHand(t *testing.T) {
	state, path, env := migrated(t, "migrated-23")
	var asked []string
	f := fake(t, "2026.9.6", state, func(c fakeCall) fakeEnd {
		asked = append(asked, fmt.Sprint(c.Method, " ", c.Params["key"], " ", c.Params["expectedSessionId"]))
		err := sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
			_, err := tx.Exec("DELETE FROM session_nodes WHERE session_key = ?1", c.Params["key"])
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return fakeEnd{payload: map[string]any{"ok": true, "deleted": true}}
	})
	before := tables(t, path)
	a := ocRun(t, state, f.env(env), "--state-dir", state, "--json", "sessions", "cleanup", "--enforce", "--kind", "subagent", "--older-than", "20d")
	if a.exit != ExitDone {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	const key = "agent:main:subagent:00000050-1111-4222-8333-000000000050"
	if d := cmp.Diff([]string{"sessions.delete " + key + " 00000005-1111-4222-8333-000000000005"}, asked); d != "" {
		t.Error(d)
	}
	if u := ocRun(t, state, env, "--state-dir", state, "undo"); u.exit != ExitDone {
		t.Fatalf("undo: exit %d %s%s", u.exit, u.out, u.errout)
	}
	after := tables(t, path)
	for _, table := range []string{"session_nodes", "session_windows", "transcript_events", "transcript_event_identities", "transcript_rewrite_watermarks"} {
		if d := cmp.Diff(before[table], after[table]); d != "" {
			t.Errorf("%s:\n%s", table, d)
		}
	}
}

// Before the gateway's own cleanup of a database the rows that oc's plan drops are saved, and come back; what it takes beside them is said not to
// be saved.
func TestGatewayCleansADatabase(t *testing.T) {
	const also = "agent:main:explicit:old-1"
	state, path, env := migrated(t, "migrated-23")
	line := []string{"--state-dir", state, "--json", "sessions", "cleanup", "--enforce"}
	dry := ocRun(t, state, env, append(line, "--dry-run")...)
	var goes []string
	for _, a := range dig(dry.doc(t), "actions").([]any) {
		if dig(a, "action") == "drop-row" {
			goes = append(goes, dig(a, "key").(string))
		}
	}
	if len(goes) == 0 || slices.Contains(goes, also) {
		t.Fatalf("%s", dry.out)
	}
	does := false
	f := fake(t, "2026.9.6", state, func(c fakeCall) fakeEnd {
		if c.Method != "sessions.cleanup" {
			t.Errorf("%v was called", c)
		}
		if !does {
			return fakeEnd{failure: map[string]any{"code": "UNAVAILABLE", "message": "not now"}}
		}
		err := sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
			for _, key := range append(slices.Clone(goes), also) {
				if _, err := tx.Exec("DELETE FROM session_nodes WHERE session_key = ?1", key); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return fakeEnd{payload: map[string]any{"mode": "enforce"}}
	})
	before := tables(t, path)
	runs := func() int {
		all, err := os.ReadDir(filepath.Join(state, ".oc", "undo"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return len(all)
	}
	saved := runs()
	if a := ocRun(t, state, f.env(env), line...); a.exit == ExitDone || !strings.Contains(a.errout, "not now") || runs() != saved {
		t.Errorf("refused: exit %d, %d runs: %s", a.exit, runs(), a.errout)
	}
	does = true
	a := ocRun(t, state, f.env(env), line...)
	if a.exit != ExitDone || via(t, a) != viaGateway {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	d := a.doc(t)
	if rows := dig(d, "undo", "covers", "rows"); rows != float64(len(goes)) || dig(d, "committed", "rows") != float64(len(goes)+1) {
		t.Errorf("%d go: %s", len(goes), a.out)
	}
	if fmt.Sprint(dig(d, "unsaved")) != "["+also+"]" || !strings.Contains(a.errout, also+" too, which was not planned and was not saved") {
		t.Errorf("%s%s", a.out, a.errout)
	}
	if u := ocRun(t, state, env, "--state-dir", state, "undo"); u.exit != ExitDone {
		t.Fatalf("undo: exit %d %s%s", u.exit, u.out, u.errout)
	}
	after := tables(t, path)
	for _, table := range []string{"session_nodes", "session_windows", "transcript_events", "transcript_event_identities"} {
		lost := slices.DeleteFunc(slices.Clone(before[table]), func(row string) bool { return slices.Contains(after[table], row) })
		if len(after[table])+len(lost) != len(before[table]) || table == "session_nodes" && (len(lost) != 1 || !strings.Contains(lost[0], also)) {
			t.Errorf("%s: lost %v", table, lost)
		}
	}
}
