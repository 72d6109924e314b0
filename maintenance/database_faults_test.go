package maintenance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"oc/config"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/lock"
	"oc/store/sqlfile"
)

// everyRow is what a database holds, as text, but for what the search keeps of its own.
func everyRow(t *testing.T, path string) string {
	t.Helper()
	var all []string
	err := sqlfile.Read(context.Background(), path, func(tx *sqlfile.Tx) error {
		all = nil
		var names []string
		err := tx.Each(`SELECT name FROM pragma_table_list WHERE schema = 'main' AND (type = 'table' OR name LIKE '%\_content' ESCAPE '\') AND name NOT LIKE 'sqlite_%'`, func(r *sqlfile.Row) error {
			names = append(names, r.Text(0))
			return nil
		})
		for _, name := range names {
			err = errors.Join(err, tx.Each(`SELECT rowid, * FROM "`+name+`"`, func(r *sqlfile.Row) error {
				all = append(all, fmt.Sprint(name, *r))
				return nil
			}))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// Cleanup, delete and undo of a database, stopped as by a kill and with an error, at every operation on a file and at every statement: after the
// next change, or undo, every row of every table is as before or as after, and one undo brings the first back.
func TestDatabaseFaults(t *testing.T) {
	data, err := os.ReadFile("../store/agentdb/testdata/migrated-23.sqlite.zst")
	if err != nil {
		t.Fatal(err)
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	if data, err = dec.DecodeAll(data, nil); err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("/dev/shm", "oc-test-")
	if err != nil {
		root = t.TempDir()
	}
	defer os.RemoveAll(root)
	state := filepath.Join(root, "state")
	path := filepath.Join(state, "agents", "main", "agent", "openclaw-agent.sqlite")
	sessions := filepath.Join(state, "agents", "main", "sessions")
	fresh := func() {
		if err := errors.Join(os.RemoveAll(state), os.MkdirAll(filepath.Dir(path), 0o700), os.MkdirAll(sessions, 0o700), os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	fresh()
	c, err := config.Load(config.Options{StateDir: state, Cwd: root, Home: root})
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1796068900000)
	target := store.Target{Agent: "main", Index: filepath.Join(sessions, "sessions.json"), Databases: []string{path}}
	worker := func(fs journal.FS) *Worker {
		return &Worker{Config: c, Machine: lock.Local(), Now: func() time.Time { return now }, Wait: time.Second, FS: fs}
	}
	policy, _, err := ReadPolicy(c, Orders{FixMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	change := func(ctx context.Context, fs journal.FS, clean bool) (*Done, error) {
		return worker(fs).ApplyDatabase(ctx, path, func(tx *sqlfile.Tx) (*Plan, []journal.Step, error) {
			d, err := TakeDatabase(ctx, tx, c, target, path, policy, now)
			if err != nil {
				return nil, nil, err
			}
			if clean {
				return CleanDatabase(ctx, d, policy.ForDatabase(d.Schema))
			}
			return DeleteFromDatabase(ctx, d, []string{"agent:main:cron:job-1", "agent:main:explicit:scratch-1"})
		})
	}
	before := everyRow(t, path)
	names := func() string { all, _ := filepath.Glob(filepath.Join(sessions, "*")); return strings.Join(all, "\n") }
	undoAll := func(fs journal.FS) error {
		past, problems := worker(fs).Past(target.Index)
		err := errors.Join(problems...)
		for i := len(past) - 1; i >= 0; i-- {
			if past[i].Possible() == "" {
				_, _, e := past[i].Undo(context.Background(), false)
				err = errors.Join(err, e)
			}
		}
		return err
	}
	injected := errors.New("input/output error")
	for _, clean := range []bool{true, false} {
		fresh()
		if _, err := change(context.Background(), nil, clean); err != nil {
			t.Fatal(err)
		}
		after := everyRow(t, path)
		if after == before {
			t.Fatal("nothing was changed")
		}
		// An undo that fails stops where it is, and is given again.
		settled := func(where string, halfway bool) {
			t.Helper()
			if _, err := worker(nil).Recover(context.Background(), target.Index, false); err != nil {
				t.Fatalf("%s: %v", where, err)
			}
			if now := everyRow(t, path); !halfway && now != before && now != after {
				t.Fatalf("%s: neither as before nor as after", where)
			}
			if err := undoAll(nil); err != nil {
				t.Fatalf("%s: %v", where, err)
			}
			if everyRow(t, path) != before || names() != "" {
				t.Fatalf("%s: not as before, or files are left: %s", where, names())
			}
		}
		tried := 0
		for _, undoing := range []bool{false, true} {
			for _, fault := range []error{nil, injected} {
				stride := 1
				if fault != nil { // what an error leaves is what a kill leaves, or less
					stride = 5
				}
				for n := 1; ; n += stride {
					fresh()
					if undoing {
						if _, err := change(context.Background(), nil, clean); err != nil {
							t.Fatal(err)
						}
					}
					faults := &journal.Faults{FS: journal.OS(), At: n, Err: fault}
					func() {
						defer func() {
							if p := recover(); p != nil {
								if _, ok := p.(journal.Stopped); !ok {
									panic(p)
								}
							}
						}()
						if undoing {
							_ = undoAll(faults)
						} else {
							_, _ = change(context.Background(), faults, clean)
						}
					}()
					if faults.Count() < n {
						break
					}
					tried++
					settled(fmt.Sprintf("clean %v, undoing %v, error %v, operation %d", clean, undoing, fault, n), undoing && fault != nil)
				}
			}
		}
		for n := 1; ; n++ {
			fresh()
			i := 0
			ctx := sqlfile.Breaking(context.Background(), func(string) error {
				if i++; i == n {
					return injected
				}
				return nil
			})
			_, err := change(ctx, nil, clean)
			if i < n {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			if err == nil {
				t.Fatalf("clean %v: statement %d failed, and nobody said so", clean, n)
			}
			if everyRow(t, path) != before || names() != "" {
				t.Fatalf("clean %v: statement %d failed, and not all is as before", clean, n)
			}
			tried++
		}
		t.Logf("clean %v: %d faults", clean, tried)
		if tried < 100 {
			t.Errorf("only %d faults", tried)
		}
	}
}
