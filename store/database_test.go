package store_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oc/config"
	"oc/fixtures"
	"oc/store"
	"oc/store/agentdb"
)

// demo is the demo state, its configuration and the path of its database.
func demoState(t *testing.T) (*config.Config, string) {
	t.Helper()
	root := t.TempDir()
	if err := fixtures.Demo().Write(root); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{Env: func(string) string { return "" }, StateDir: root, Home: root, Cwd: root})
	if err != nil {
		t.Fatal(err)
	}
	return c, filepath.Join(root, "agents", "main", "agent", "openclaw-agent.sqlite")
}

// alter runs statements on a database and leaves it without a log.
func alter(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// What is counted is what the listing and the transcripts say.
func TestExamineAddsUp(t *testing.T) {
	c, path := demoState(t)
	d, err := store.Examine(context.Background(), c, path, 1000)
	if err != nil || len(d.Problems) > 0 || len(d.Lost) > 0 {
		t.Fatalf("%v %v %v", err, d.Problems, d.Lost)
	}
	l, err := agentdb.List(context.Background(), path, agentdb.Options{Whole: true, Sizes: true})
	if err != nil {
		t.Fatal(err)
	}
	w := d.Weight
	if d.Role != "agent" || d.Agent != "main" || d.Schema != 23 || d.App != "2026.9.6" || d.Newer || w.Sessions != len(l.Rows)+l.Hidden || w.Damaged != 0 {
		t.Errorf("%+v\n%+v", d, w)
	}
	loads := map[string]agentdb.Load{}
	var rows, fields int64
	for _, x := range w.Largest {
		loads[x.Key] = x
		rows += x.Row
	}
	for _, f := range w.Fields {
		fields += f.Bytes
	}
	if rest := rows - fields; rest < 0 || rest > int64(len(l.Rows)*40) { // braces and commas
		t.Errorf("the rows have %d bytes, their fields %d", rows, fields)
	}
	for i := range l.Rows {
		r := &l.Rows[i]
		got := loads[r.Key]
		if got.Row != r.Columns.Bytes || got.Transcripts == 1 && (got.Events != r.Size.Events || got.Transcript != r.Size.Bytes) {
			t.Errorf("%s: %+v, the listing says %+v of %d bytes", r.Key, got, r.Size, r.Columns.Bytes)
		}
	}
	for i := 1; i < len(w.Largest); i++ {
		if w.Largest[i-1].Bytes() < w.Largest[i].Bytes() {
			t.Errorf("%s before %s", w.Largest[i-1].Key, w.Largest[i].Key)
		}
	}
	if said, err := store.CheckDatabase(context.Background(), path); err != nil || len(said) > 0 {
		t.Errorf("check: %q %v", said, err)
	}
}

// Each kind of trouble is told, and the rest is read.
func TestExamineBadInput(t *testing.T) {
	for name, x := range map[string]struct {
		spoil func(t *testing.T, path string)
		check func(t *testing.T, d *store.Database, err error)
	}{
		"a newer schema": {
			func(t *testing.T, path string) {
				alter(t, path, "PRAGMA user_version = 31", "UPDATE schema_meta SET schema_version = 31")
			},
			func(t *testing.T, d *store.Database, err error) {
				if err != nil || !d.Newer || d.Weight == nil || d.Weight.Sessions == 0 || len(d.Problems) > 0 {
					t.Errorf("%+v %v", d, err)
				}
			},
		},
		"two stamps": {
			func(t *testing.T, path string) { alter(t, path, "UPDATE schema_meta SET schema_version = 19") },
			func(t *testing.T, d *store.Database, err error) {
				if err != nil || len(d.Problems) != 1 || !strings.Contains(d.Problems[0].Error(), "23") || d.Weight == nil {
					t.Errorf("%+v %v", d, err)
				}
			},
		},
		"a row that is no JSON": {
			func(t *testing.T, path string) {
				alter(t, path, "UPDATE session_nodes SET entry_json = '{\"sessionId\":' WHERE session_key = 'agent:main:main'")
			},
			func(t *testing.T, d *store.Database, err error) {
				if err != nil || d.Weight.Damaged != 1 {
					t.Errorf("%+v %v", d.Weight, err)
				}
			},
		},
		"a missing cold file": {
			func(t *testing.T, path string) {
				alter(t, path, `INSERT INTO session_transcript_cold_archives (session_id, generation, archive_name, archive_sha256, event_count, raw_bytes, archive_bytes, last_seq, archived_at, storage)
					SELECT session_id, '`+strings.Repeat("a", 32)+`', '`+strings.Repeat("b", 64)+`.jsonl.zst', '`+strings.Repeat("b", 64)+`', 4, 400, 200, 3, 1, 'file' FROM session_windows LIMIT 1`)
			},
			func(t *testing.T, d *store.Database, err error) {
				if err != nil || len(d.Lost) != 1 || d.Weight.Cold != 1 {
					t.Errorf("%q %+v %v", d.Lost, d.Weight, err)
				}
			},
		},
		"no header": {
			func(t *testing.T, path string) {
				if err := os.WriteFile(path, []byte(strings.Repeat("nothing ", 500)), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			func(t *testing.T, _ *store.Database, err error) {
				if err == nil || !strings.Contains(err.Error(), "not an SQLite database") {
					t.Error(err)
				}
			},
		},
		"empty": {
			func(t *testing.T, path string) {
				if err := os.Truncate(path, 0); err != nil {
					t.Fatal(err)
				}
			},
			func(t *testing.T, _ *store.Database, err error) {
				var damage *store.Damage
				if !errors.As(err, &damage) {
					t.Error(err)
				}
			},
		},
		"gone": {
			func(t *testing.T, path string) {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			},
			func(t *testing.T, _ *store.Database, err error) {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, path := demoState(t)
			x.spoil(t, path)
			d, err := store.Examine(context.Background(), c, path, 5)
			x.check(t, d, err)
		})
	}
}

// A page of the events that is damaged spoils their sums, not the rest.
func TestExamineDamagedPage(t *testing.T) {
	c, path := demoState(t)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	var page int
	if err := db.QueryRow("SELECT pageno FROM dbstat WHERE name = 'transcript_events' AND pagetype = 'leaf' LIMIT 1").Scan(&page); err != nil {
		t.Fatal(err)
	}
	db.Close()
	for i := (page - 1) * 512; i < page*512; i++ {
		raw[i] = 0x5a
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := store.Examine(context.Background(), c, path, 5)
	if err != nil || len(d.Problems) == 0 || d.Schema != 23 || d.Shape.Pages == 0 {
		t.Errorf("%+v %v", d, err)
	}
	if said, err := store.CheckDatabase(context.Background(), path); err != nil || len(said) == 0 {
		t.Errorf("the check says %q: %v", said, err)
	}
}
