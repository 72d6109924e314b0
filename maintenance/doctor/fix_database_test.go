package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oc/fixtures"
	"oc/maintenance"
	"oc/maintenance/journal"
	"oc/store/agentdb"
	"oc/store/sqlfile"
)

// held is every row of every table of a database, but for the full-text engine's own; what is found by the text index stands for those.
func held(t *testing.T, path string) string {
	t.Helper()
	var b strings.Builder
	err := sqlfile.Read(context.Background(), path, func(tx *sqlfile.Tx) error {
		b.Reset()
		var tables []string
		err := tx.Each("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' AND name NOT LIKE '%_fts_%' AND name NOT LIKE 'sqlite_%' OR name = 'session_transcript_fts_rows' ORDER BY name", func(r *sqlfile.Row) error {
			tables = append(tables, r.Text(0))
			return nil
		})
		if err != nil {
			return err
		}
		for _, name := range tables {
			columns, err := tx.Columns(name)
			if err != nil {
				return err
			}
			order := make([]string, len(columns))
			for i := range order {
				order[i] = fmt.Sprint(i + 1)
			}
			err = tx.Each("SELECT * FROM "+name+" ORDER BY "+strings.Join(order, ", "), func(r *sqlfile.Row) error {
				b.WriteString(name)
				for i := range order {
					fmt.Fprintf(&b, " %T:%q", r.Value(i), fmt.Sprint(r.Value(i)))
				}
				b.WriteByte('\n')
				return nil
			})
			if err != nil {
				return err
			}
		}
		return tx.Each("SELECT session_id, message_id FROM session_transcript_fts ORDER BY 1, 2", func(r *sqlfile.Row) error {
			fmt.Fprintf(&b, "found %s %s\n", r.Text(0), r.Text(1))
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// harms are ways to break a database, each with the check that finds it and what the fix leaves.
var harms = []struct {
	name string
	code Code
	sql  []string
	says string // of the plan
}{
	{"doubted", Code(agentdb.RowDoubted), []string{"UPDATE session_nodes SET entry_valid=-1 WHERE session_key='" + tableKey + "'"}, "it is marked as looked at"},
	{"label", Code(agentdb.ColumnsDiffer), set(tableKey, "label='Door', archived_at=5"), "its columns follow its JSON"},
	{"lineage", Code(agentdb.LineageDiffers), set(tableKey, "spawned_by='agent:main:x'"), "its columns follow its JSON"},
	{"index", Code(agentdb.BrokenIndex), []string{"UPDATE session_transcript_index_state SET active_event_count=99 WHERE session_id='" + fixtures.IDOf(tableKey) + "'"}, "OpenClaw makes it anew"},
	{"orphans", Code(agentdb.OrphanIndex), []string{
		"INSERT INTO session_windows(session_id,session_key,created_at,updated_at) VALUES('nobody','" + tableKey + "',1,1)",
		"INSERT INTO session_transcript_index_state(session_id,indexed_seq,updated_at) VALUES('nobody',3,1)",
		"INSERT INTO session_transcript_fts(rowid,text,session_id,message_id,role,timestamp) VALUES(9001,'ghostly words','nobody','m1','user','1')",
		"INSERT INTO session_transcript_fts_rows(id,session_id,message_id) VALUES(9001,'nobody','m1')",
	}, "the conversation is gone"},
	{"no window", Code(agentdb.NoWindow), []string{
		"PRAGMA foreign_keys=ON", "DELETE FROM session_windows WHERE session_id='" + fixtures.IDOf(tableKey2) + "'", "UPDATE session_nodes SET entry_valid=1",
		"DELETE FROM session_transcript_fts_rows WHERE session_id='" + fixtures.IDOf(tableKey2) + "'",
	}, "its conversation begins anew, empty"},
	{"dead", RunDead, []string{
		"UPDATE session_nodes SET entry_json=json_set(entry_json,'$.status','running','$.startedAt'," + fmt.Sprint(fixtures.Now-2*fixtures.Day) + "), status='running' WHERE session_key='" + tableKey + "'",
		"UPDATE session_windows SET status='running' WHERE session_id='" + fixtures.IDOf(tableKey) + "'",
		"UPDATE session_nodes SET entry_valid=1",
	}, "its run is dead"},
}

// suited are the statements that a schema knows: 19 has no table of what the text index holds.
func suited(all []string, schema int) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return schema < 23 && strings.Contains(s, "session_transcript_fts") })
}

// Each fix in a database, of both schemas that oc changes, mends what was found, leaves all that anybody said, is not found again, and undo brings every row of every table back.
func TestFixDatabase(t *testing.T) {
	for i := range 2 * len(harms) {
		h, schema := harms[i/2], []int{23, 19}[i%2]
		t.Run(fmt.Sprint(h.name, " ", schema), func(t *testing.T) {
			dir, db := tablesOf(t, schema)
			undoes(h.code)
			if err := fixtures.Alter(db, suited(h.sql, schema)...); err != nil {
				t.Fatal(err)
			}
			before := held(t, db)
			found := examined(t, dir, func(o *Options) { o.Only = []Code{h.code} })
			if found.Count(string(h.code)) == 0 {
				t.Fatalf("nothing is wrong: %+v", found.Findings)
			}
			o, w := ward(t, dir, nil)
			planned, err := Fix(context.Background(), o, []Code{h.code}, w, true)
			if err != nil {
				t.Fatal(err)
			}
			if held(t, db) != before {
				t.Fatal("a dry run changed the database")
			}
			all, err := Fix(context.Background(), o, []Code{h.code}, w, false)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(told(planned), told(all)); d != "" {
				t.Errorf("what was planned is not what was done:\n%s", d)
			}
			if len(all) != 1 || all[0].Err != nil || !all[0].Done.Changed() || len(all[0].Left) > 0 {
				t.Fatalf("%+v", all)
			}
			if text := strings.Join(told(all), "\n"); !strings.Contains(text, h.says) {
				t.Errorf("the plan does not say %q: %s", h.says, text)
			}
			if r := examined(t, dir, func(o *Options) { o.Only = append(mustSelect(t, "tables"), h.code) }); r.Count(string(Error))+r.Count(string(Warn)) > 0 || r.Count(string(h.code)) > 0 {
				t.Errorf("left: %+v", r.Findings)
			}
			if again, err := Fix(context.Background(), o, []Code{h.code}, w, false); err != nil || len(again) > 0 && (again[0].Err != nil || again[0].Done.Changed()) {
				t.Errorf("the second run: %v %+v", err, again)
			}
			back(t, dir)
			if d := cmp.Diff(before, held(t, db)); d != "" {
				t.Errorf("after the undo:\n%s", d)
			}
		})
	}
}

// Killed at every operation, and with an error at every fourth and at every second statement, a fix is done or not, and undo brings all of it back.
func TestFixDatabaseFaults(t *testing.T) {
	for _, schema := range []int{23, 19} {
		t.Run(fmt.Sprint(schema), func(t *testing.T) { databaseFaults(t, schema) })
	}
}

func databaseFaults(t *testing.T, schema int) {
	dir, db := tablesOf(t, schema)
	var codes []Code
	for _, h := range harms {
		if err := fixtures.Alter(db, suited(h.sql, schema)...); err != nil {
			t.Fatal(err)
		}
		codes = append(codes, h.code)
		survives(h.code)
	}
	if err := fixtures.Alter(db, "UPDATE session_nodes SET entry_valid=-1 WHERE session_key='"+tableKey2+"'"); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	step := map[int]int{23: 1, 19: 3}[schema] // what differs of the older one are columns
	before := held(t, db)
	count := &journal.Faults{FS: quick{journal.OS()}}
	o, w := ward(t, dir, count)
	statements := 0
	all, err := Fix(sqlfile.Breaking(ctx, func(string) error { statements++; return nil }), o, codes, w, false)
	if err != nil || len(all) != 1 || all[0].Err != nil {
		t.Fatalf("%v %+v", err, all)
	}
	after := held(t, db)
	if back(t, dir); held(t, db) != before {
		t.Fatal("the undo does not bring it back")
	}
	total := count.Count()
	t.Logf("%d operations, %d statements", total, statements)
	whole := func(what string) {
		t.Helper()
		if now := held(t, db); now != before && now != after {
			t.Errorf("%s: the database is neither as before nor as after:\n%s", what, cmp.Diff(before, now))
		}
		if back(t, dir); held(t, db) != before {
			t.Fatalf("%s, after the undo:\n%s", what, cmp.Diff(before, held(t, db)))
		}
	}
	for n := 1; n <= total; n += step {
		for _, fault := range []error{nil, syscall.EIO} {
			if fault != nil && n%4 != 0 {
				continue
			}
			o, w := ward(t, dir, &journal.Faults{FS: quick{journal.OS()}, At: n, Err: fault})
			func() {
				defer func() {
					if x := recover(); x != nil {
						if _, ours := x.(journal.Stopped); !ours {
							panic(x)
						}
					}
				}()
				if _, err := Fix(ctx, o, codes, w, false); err != nil {
					t.Error(err)
				}
			}()
			whole(fmt.Sprintf("operation %d (%v)", n, fault))
		}
	}
	broken := errors.New("broken")
	for n := 1; n <= statements; n += 2 * step {
		at := 0
		o, w := ward(t, dir, nil)
		all, err := Fix(sqlfile.Breaking(ctx, func(string) error {
			if at++; at == n {
				return broken
			}
			return nil
		}), o, codes, w, false)
		if err != nil || len(all) != 1 || !errors.Is(all[0].Err, broken) {
			t.Errorf("statement %d: %v %+v", n, err, all)
		}
		whole(fmt.Sprintf("statement %d", n))
	}
}

// What is not mended is left with its reason: a row that OpenClaw would refuse for something else too, and a database that oc only reads.
func TestFixDatabaseLeaves(t *testing.T) {
	dir, db := tables(t)
	if err := fixtures.Alter(db, "PRAGMA foreign_keys=OFF", "UPDATE session_windows SET session_key='agent:main:Explicit:Second' WHERE session_key='"+tableKey2+"'",
		"UPDATE session_nodes SET session_key='agent:main:Explicit:Second' WHERE session_key='"+tableKey2+"'", "UPDATE session_nodes SET entry_valid=-1 WHERE session_key='agent:main:Explicit:Second'"); err != nil {
		t.Fatal(err)
	}
	before := held(t, db)
	o, w := ward(t, dir, nil)
	all, err := Fix(context.Background(), o, []Code{Code(agentdb.RowDoubted)}, w, false)
	if err != nil || len(all) != 1 || len(all[0].Left) != 1 || !strings.Contains(all[0].Left[0].Why, "is not canonical") || all[0].Done.Changed() {
		t.Errorf("%v %+v", err, all)
	}
	if err := fixtures.Alter(db, "PRAGMA user_version=22", "UPDATE schema_meta SET schema_version=22"); err != nil {
		t.Fatal(err)
	}
	all, err = Fix(context.Background(), o, []Code{Code(agentdb.RowDoubted)}, w, false)
	if err != nil || len(all) != 1 || len(all[0].Left) != 1 || !strings.Contains(all[0].Left[0].Why, "its schema is 22") || all[0].Err != nil {
		t.Errorf("%v %+v", err, all)
	}
	if err := fixtures.Alter(db, "PRAGMA user_version=23", "UPDATE schema_meta SET schema_version=23"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, held(t, db)); d != "" {
		t.Errorf("it was changed:\n%s", d)
	}
	// Rows that refer to nothing could not come back, and stay.
	if err := fixtures.Alter(db, "PRAGMA foreign_keys=OFF", "INSERT INTO session_transcript_active_events(session_id,active_position,event_seq) VALUES('nobody',0,1)"); err != nil {
		t.Fatal(err)
	}
	all, err = Fix(context.Background(), o, []Code{Code(agentdb.OrphanIndex)}, w, false)
	if err != nil || len(all) != 1 || len(all[0].Left) != 1 || !strings.Contains(all[0].Left[0].Why, "could not be brought back") || all[0].Done.Changed() {
		t.Errorf("%v %+v", err, all)
	}
	// Somebody holds the state: nothing is changed, and the error says who.
	if err := fixtures.Alter(db, "UPDATE session_nodes SET session_key='"+tableKey2+"' WHERE session_key='agent:main:Explicit:Second'", "UPDATE session_nodes SET entry_valid=-1 WHERE session_key='"+tableKey2+"'"); err != nil {
		t.Fatal(err)
	}
	busy := errors.New("process 7 holds it")
	w.Hold = func() (func() error, error) { return nil, busy }
	all, err = Fix(context.Background(), o, []Code{Code(agentdb.RowDoubted)}, w, false)
	if err != nil || len(all) != 1 || !errors.Is(all[0].Err, busy) {
		t.Errorf("%v %+v", err, all)
	}
	var none *maintenance.Unfit
	if errors.As(all[0].Err, &none) {
		t.Error("a busy state is told as an unfit database")
	}
}
