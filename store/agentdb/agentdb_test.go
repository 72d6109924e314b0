package agentdb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"oc/store/row"
	"oc/store/span"
	"oc/store/sqlfile"
)

// sample unpacks a recorded database of the real OpenClaw into a folder agent, as it lies in a state directory.
func sample(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".sqlite.zst"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if data, err = d.DecodeAll(data, nil); err != nil {
		t.Fatal(err)
	}
	return database(t, data)
}

func database(t testing.TB, data []byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "agent")
	path := filepath.Join(dir, "openclaw-agent.sqlite")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
	old := time.Unix(1796000000, 0)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	return path
}

// made is a database built from statements. SQLite takes an empty file for an empty database.
func made(t testing.TB, statements ...string) string {
	t.Helper()
	path := database(t, nil)
	change(t, path, statements...)
	return path
}

func change(t testing.TB, path string, statements ...string) {
	t.Helper()
	err := sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
		for _, s := range statements {
			if _, err := tx.Exec(s); err != nil {
				return fmt.Errorf("%.100s: %w", s, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func recorded(t testing.TB, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestDetect(t *testing.T) {
	early := func(version int) string {
		return made(t, "CREATE TABLE session_entries (session_key TEXT, session_id TEXT, entry_json TEXT, updated_at INTEGER)",
			"CREATE TABLE sessions (session_id TEXT)", fmt.Sprintf("PRAGMA user_version = %d", version))
	}
	nodes := func(version int) string {
		return made(t, "CREATE TABLE session_nodes (session_key TEXT, current_session_id TEXT, entry_json TEXT, updated_at INTEGER)",
			fmt.Sprintf("PRAGMA user_version = %d", version))
	}
	for name, c := range map[string]struct {
		path string
		want Schema
		err  error
	}{
		"2026.9.6":                   {sample(t, "migrated-23"), Schema{23, "2026.9.6", "main", "agent", Nodes, true, false}, nil},
		"2026.8.2":                   {sample(t, "migrated-19"), Schema{19, "2026.8.2", "main", "agent", Nodes, true, false}, nil},
		"a gateway's":                {sample(t, "gateway-ops"), Schema{23, "2026.9.6", "ops", "agent", Nodes, true, false}, nil},
		"first beta":                 {early(4), Schema{UserVersion: 4, Era: Entries}, nil},
		"last of the early betas":    {early(13), Schema{UserVersion: 13, Era: Entries}, nil},
		"fifth beta":                 {nodes(16), Schema{UserVersion: 16, Era: Nodes}, nil},
		"newer":                      {nodes(31), Schema{UserVersion: 31, Era: Nodes, Newer: true}, nil},
		"file era":                   {made(t, "CREATE TABLE auth_profile_store (a)", "PRAGMA user_version = 1"), Schema{}, ErrNoSessions},
		"file era with session rows": {nodes(3), Schema{}, ErrOdd},
		"half of the tables":         {made(t, "CREATE TABLE session_entries (session_key TEXT)", "PRAGMA user_version = 7"), Schema{}, ErrOdd},
		"a view for a table":         {made(t, "CREATE VIEW session_nodes AS SELECT 1", "PRAGMA user_version = 23"), Schema{}, ErrOdd},
		"empty":                      {database(t, nil), Schema{}, ErrNoSessions},
		"no database":                {database(t, bytes.Repeat([]byte("text"), 999)), Schema{}, sqlfile.ErrNotDatabase},
		"absent":                     {filepath.Join(t.TempDir(), "none"), Schema{}, fs.ErrNotExist},
	} {
		got, err := Detect(context.Background(), c.path)
		if !errors.Is(err, c.err) || err == nil && got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	odd := made(t, "CREATE TABLE session_nodes (session_key TEXT, current_session_id TEXT, entry BLOB, updated_at INTEGER)", "PRAGMA user_version = 40")
	_, err := Detect(context.Background(), odd)
	var foreign *Foreign
	if !errors.As(err, &foreign) || foreign.Column != "entry_json" || foreign.Version != 40 {
		t.Error(err)
	}
}

// What the real list printed of a recorded gateway's rows, from the columns and their projections.
func TestListAsPrinted(t *testing.T) {
	path := sample(t, "gateway-main")
	change(t, path,
		"UPDATE session_nodes SET owner_actor_type='human', owner_actor_id=' alice ', owner_assigned_by_type='agent', owner_assigned_by_id='main', owner_assigned_at=1796039000000 WHERE session_key='agent:main:main'",
		"UPDATE session_nodes SET owner_actor_type='system', owner_actor_id='x', owner_assigned_by_type='bogus', owner_assigned_by_id='main' WHERE session_key='agent:main:long'")
	var want []json.RawMessage
	recorded(t, "gateway-main.printed.json", &want)
	l, err := List(context.Background(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Rows) != len(want) || len(l.Skipped) != 0 || l.Hidden != 0 {
		t.Fatalf("%d rows, %v skipped", len(l.Rows), l.Skipped)
	}
	for i := range l.Rows {
		r := &l.Rows[i]
		var out bytes.Buffer
		p := span.NewPrinter(&out)
		p.Object()
		p.Key("key").String(r.Key)
		p.Key("sessionId").Raw(r.Raw(row.SessionID))
		p.Key("updatedAt").Raw(r.Raw(row.UpdatedAt))
		r.Columns.Print(p)
		p.End()
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		var a, b bytes.Buffer
		if err := errors.Join(json.Compact(&a, out.Bytes()), json.Compact(&b, want[i])); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(b.String(), a.String()); d != "" {
			t.Error(d)
		}
		if r.Raw(row.SkillsSnapshot) != nil || r.Raw(row.SystemPromptReport) != nil {
			t.Errorf("%s: large members are there", r.Key)
		}
	}
}

func TestListMigrated(t *testing.T) {
	for _, name := range []string{"migrated-23", "migrated-19"} {
		path := sample(t, name)
		var want []string
		recorded(t, name+".keys.json", &want)
		l, err := List(context.Background(), path, Options{Sizes: true})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range l.Rows {
			got = append(got, l.Rows[i].Key)
		}
		if d := cmp.Diff(want, got); d != "" || len(l.Skipped) != 0 {
			t.Errorf("%s: %s %v", name, d, l.Skipped)
		}
		for _, r := range l.Rows {
			switch r.Key {
			case "agent:main:explicit:scratch-1":
				if r.Columns.PinnedAt != 1795605648146 {
					t.Errorf("%+v", r.Columns)
				}
			case "agent:main:explicit:archived-1":
				if r.Columns.ArchivedAt != 1795260048146 {
					t.Errorf("%+v", r.Columns)
				}
			case "agent:main:explicit:missing-1":
				if r.Size != (Size{}) {
					t.Errorf("%+v", r.Size)
				}
			case "agent:main:cron:job-1", "agent:main:cron:job-1:run:00000004-1111-4222-8333-000000000004":
				if r.Size.Events != 7 || r.Size.Messages != 4 {
					t.Errorf("%s: %+v", r.Key, r.Size)
				}
			}
		}
		n, err := Count(context.Background(), path)
		if err != nil || n != len(want) {
			t.Errorf("%d %v", n, err)
		}
	}
}

func TestListEarlyBeta(t *testing.T) {
	path := made(t,
		"CREATE TABLE session_entries (session_key TEXT NOT NULL PRIMARY KEY, session_id TEXT NOT NULL, entry_json TEXT NOT NULL, updated_at INTEGER NOT NULL, status TEXT)",
		"CREATE TABLE sessions (session_id TEXT NOT NULL PRIMARY KEY, session_key TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL)",
		"CREATE TABLE session_routes (session_key TEXT PRIMARY KEY, session_id TEXT)",
		"CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT NOT NULL, created_at INTEGER NOT NULL, PRIMARY KEY (session_id, seq))",
		`INSERT INTO session_entries VALUES
			('agent:main:main', 's1', '{"sessionId":"s1","updatedAt":1796034048146,"pinnedAt":5,"archivedAt":7,"label":"Desk"}', 1796034048146, 'done'),
			('agent:main:b', 's2', '{"sessionId":"s2","updatedAt":2}', 2, NULL)`,
		"INSERT INTO sessions VALUES ('s1','agent:main:main',1,2), ('s0','agent:main:main',0,1), ('s2','agent:main:b',1,2)",
		`INSERT INTO transcript_events VALUES ('s1',0,'{"type":"session","id":"s1"}',10), ('s1',1,'{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"hi"}}',11)`,
		"PRAGMA user_version = 7")
	err := Read(context.Background(), path, func(db *DB) error {
		l, err := db.List(Options{Sizes: true})
		if err != nil {
			return err
		}
		if len(l.Rows) != 2 || l.Rows[0].Key != "agent:main:b" || l.Schema.Era != Entries {
			t.Fatalf("%+v", l)
		}
		main := l.Rows[1]
		if main.Columns.PinnedAt != 5 || main.Columns.ArchivedAt != 7 || main.Columns.Status != "done" || main.Columns.Valid != 1 || main.Size.Events != 2 {
			t.Errorf("%+v %+v", main.Columns, main.Size)
		}
		w, err := db.Windows("agent:main:main")
		if err != nil || len(w) != 2 || !w[0].Current || w[1].Current || w[1].SessionID != "s0" {
			t.Errorf("%+v %v", w, err)
		}
		if a, err := db.Archives("agent:main:main"); a != nil || err != nil {
			t.Errorf("%v %v", a, err)
		}
		var lines []string
		err = db.Active("s1", func(e Event) error { lines = append(lines, string(e.Line)); return nil })
		if len(lines) != 1 || !strings.Contains(lines[0], `"hi"`) {
			t.Errorf("%q", lines)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Rows that OpenClaw does not read are skipped with a reason, and the rest of the listing goes on.
func TestListBadRows(t *testing.T) {
	path := made(t,
		"CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, current_session_id TEXT, entry_json, updated_at)",
		"CREATE TABLE session_participants (session_key TEXT, identity_namespace TEXT, actor_id TEXT, first_prompted_at INTEGER)",
		"PRAGMA user_version = 16")
	rows := []struct{ key, id, json, updated, reason string }{
		{"a-good", "s", `{"sessionId":"s","updatedAt":5}`, "5", ""},
		{"b-removed", "s", `{}`, "5", "it was removed; only its history is kept"},
		{"c-cut", "s", `{"sessionId":"s","updatedAt":5`, "5", "its JSON is damaged"},
		{"d-after", "s", `{"sessionId":"s","updatedAt":5} x`, "5", "its JSON is damaged"},
		{"e-array", "s", `[1]`, "5", "its JSON is no object"},
		{"f-null", "s", `null`, "5", "its JSON is no object"},
		{"g-no-id", "s", `{"updatedAt":5}`, "5", "its JSON has no session id"},
		{"h-odd-id", "s", `{"sessionId":7,"updatedAt":5}`, "5", "its JSON has no session id"},
		{"i-no-time", "s", `{"sessionId":"s"}`, "5", "its JSON has no time"},
		{"j-text-time", "s", `{"sessionId":"s","updatedAt":"5"}`, "5", "its JSON has no time"},
		{"k-endless", "s", `{"sessionId":"s","updatedAt":1e999}`, "5", "its JSON has no time"},
		{"l-other-id", "s", `{"sessionId":"t","updatedAt":5}`, "5", `its JSON says session "t", its column "s"`},
		{"m-other-time", "s", `{"sessionId":"s","updatedAt":6}`, "5", "its JSON was last changed at 6, its column at 5"},
		{"n-half", "s", `{"sessionId":"s","updatedAt":5.5}`, "5", "its JSON was last changed at 5.5"},
		{"o-text-column", "s", `{"sessionId":"s","updatedAt":5}`, "'soon'", "its JSON was last changed at 5"},
		{"p-last-wins", "s", `{"sessionId":"t","updatedAt":1,"sessionId":"s","updatedAt":5}`, "5", ""},
		{"q-negative", "s", `{"sessionId":"s","updatedAt":-5}`, "-5", ""},
		{"r-empty", "s", ``, "5", "its JSON is damaged"},
		{"agent:main:internal-session-effects:x", "s", `{"sessionId":"s","updatedAt":5}`, "5", "hidden"},
		{"agent:internal-session-effects:x", "s", `{"sessionId":"s","updatedAt":5}`, "5", ""},
	}
	err := sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
		for _, r := range rows {
			if _, err := tx.Exec("INSERT INTO session_nodes VALUES (?1, ?2, ?3, "+r.updated+")", r.key, r.id, r.json); err != nil {
				return err
			}
		}
		_, err := tx.Exec(`INSERT INTO session_participants VALUES ('a-good','{"type":"agent"}','ops',2), ('a-good','{"type":"profile","id":"old"}','p',1), ('a-good','nonsense','q',0)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, whole := range []bool{false, true} {
		l, err := List(context.Background(), path, Options{Whole: whole})
		if err != nil {
			t.Fatal(err)
		}
		listed := map[string]bool{}
		for i := range l.Rows {
			listed[l.Rows[i].Key] = true
		}
		for _, r := range rows {
			why := ""
			for _, s := range l.Skipped {
				if s.Key == r.key && r.key != "a-good" {
					why = s.Reason
				}
			}
			if listed[r.key] != (r.reason == "") || r.reason != "hidden" && !strings.HasPrefix(why, r.reason) {
				t.Errorf("%s: listed %v, %q", r.key, listed[r.key], why)
			}
		}
		if l.Hidden != 1 {
			t.Errorf("%d hidden", l.Hidden)
		}
		for i := range l.Rows {
			if r := &l.Rows[i]; r.Key == "a-good" {
				var out bytes.Buffer
				p := span.NewPrinter(&out)
				p.Object()
				r.Columns.Print(p)
				p.End()
				p.Close()
				var c bytes.Buffer
				json.Compact(&c, out.Bytes())
				const want = `{"visibility":"shared","participants":[{"identity":{"type":"profile","id":"p"}},{"identity":{"type":"agent","id":"ops"}}],"participantCount":2}`
				if c.String() != want {
					t.Error(c.String())
				}
			}
		}
	}
}
