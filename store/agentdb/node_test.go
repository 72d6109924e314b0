package agentdb

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oc/store/row"
	"oc/store/sqlfile"
)

// What oc makes of the entries that the real OpenClaw has written is what stands in their columns.
func TestColumnsOfRecordedEntries(t *testing.T) {
	for _, name := range []string{"migrated-19", "migrated-23", "gateway-main", "gateway-ops"} {
		nodes, windows := 0, 0
		err := sqlfile.Read(context.Background(), sample(t, name), func(tx *sqlfile.Tx) error {
			nodes, windows = 0, 0
			return tx.Each("SELECT session_key, entry_json, current_session_id FROM session_nodes WHERE entry_json <> '{}'", func(r *sqlfile.Row) error {
				e, err := row.New(r.Text(0), r.Bytes(1))
				if err != nil {
					return err
				}
				of, err := nodeColumns(&e)
				if err != nil {
					return err
				}
				same(t, tx, name, of, "session_nodes WHERE session_key = ?1", e.Key)
				nodes++
				if _, job := row.CronJob(e.Key); job {
					return nil // the window is that of its last run too, whose row may be gone
				}
				of, err = windowColumns(&e)
				if err != nil {
					return err
				}
				same(t, tx, name, of, "session_windows WHERE session_id = ?1", r.Text(2))
				windows++
				return nil
			})
		})
		if err != nil || windows == 0 {
			t.Errorf("%s: %d nodes, %d windows, %v", name, nodes, windows, err)
		}
	}
}

// same holds columns against a row of a database.
func same(t *testing.T, tx *sqlfile.Tx, where string, columns []column, from string, arg any) {
	t.Helper()
	var names []string
	var want []string
	for _, c := range columns {
		names = append(names, c.name)
		want = append(want, fmt.Sprintf("%s %T %v", c.name, c.value, c.value))
	}
	found := 0
	err := tx.Each("SELECT "+strings.Join(names, ", ")+" FROM "+from, func(r *sqlfile.Row) error {
		found++
		var got []string
		for i, name := range names {
			got = append(got, fmt.Sprintf("%s %T %v", name, r.Value(i), r.Value(i)))
		}
		if d := cmp.Diff(got, want); d != "" {
			t.Errorf("%s %v: stored, and as oc makes them:\n%s", where, arg, d)
		}
		return nil
	}, arg)
	if err != nil || found != 1 {
		t.Errorf("%s %v: %d rows, %v", where, arg, found, err)
	}
}

func TestColumns(t *testing.T) {
	for _, x := range []struct{ key, entry, name, want string }{
		{"agent:main:a", `{"sessionId":"s","updatedAt":5,"status":"interrupted"}`, "status", "failed"},
		{"agent:main:a", `{"sessionId":"s","updatedAt":5,"status":"odd"}`, "status", "<nil>"},
		{"agent:main:a", `{"sessionId":"s","updatedAt":5,"spawnedBy":" agent:main:b "}`, "parent_session_key", "agent:main:b"},
		{"agent:main:a", `{"sessionId":"s","updatedAt":5,"spawnedBy":"agent:main:b","parentSessionKey":"agent:main:c"}`, "parent_session_key", "agent:main:c"},
		{"agent:main:a", `{"sessionId":"s","updatedAt":5,"createdVia":"cron","createdActor":{"type":"agent","id":" x "}}`, "created_via", "cron"},
		{"agent:main:a", `{"sessionId":"s","updatedAt":5,"createdActor":{"type":"agent","id":" x "}}`, "created_actor_id", "x"},
		{"agent:main:a", `{"sessionId":"s","updatedAt":5,"createdActor":{"type":"robot","id":"x"}}`, "created_actor_type", "<nil>"},
		{"agent:main:a", `{"sessionId":"s","updatedAt":5,"createdActor":"x"}`, "created_actor_id", "<nil>"},
		{"agent:main:a", `{"sessionId":"s","updatedAt":5,"forkSource":{"sessionKey":"agent:main:b","sessionId":"t","entryId":"e"}}`, "fork_source_entry_id", "e"},
		{"agent:main:a", `{"sessionId":"s","updatedAt":5,"label":"  "}`, "label", "<nil>"},
		{"agent:main:a", `{"sessionId":"s","updatedAt":5,"label":7}`, "label", "<nil>"},
		{"agent:main:a", `{"sessionId":"s","updatedAt":5,"archivedAt":"5"}`, "archived_at", "<nil>"},
		{"agent:main:a", `{"sessionId":"s","updatedAt":5,"archivedAt":5e3}`, "archived_at", "5000"},
		{"agent:main:main", `{"chatType":"direct"}`, "window.session_scope", "shared-main"},
		{"agent:main:mymain", `{"chatType":"direct"}`, "window.session_scope", "conversation"},
		{"agent:main:g", `{"chatType":"channel"}`, "window.session_scope", "channel"},
		{"agent:main:g", `{"groupId":"g","subject":"s"}`, "window.display_name", "s"},
		{"agent:main:g", `{"delivery":{"kind":"external","context":{"channel":"telegram","accountId":"a"}}}`, "window.channel", "telegram"},
		{"agent:main:g", `{"delivery":{"kind":"external","context":{},"origin":{"provider":"signal"}}}`, "window.channel", "signal"},
		{"agent:main:g", `{"delivery":{"kind":"internal","context":{"channel":"telegram"}}}`, "window.channel", "<nil>"},
		{"agent:main:g", `{"delivery":[1]}`, "window.account_id", "<nil>"},
	} {
		e, err := row.New(x.key, []byte(x.entry))
		if err != nil {
			t.Fatal(err)
		}
		nodes, err := nodeColumns(&e)
		if err != nil {
			t.Fatal(err)
		}
		windows, err := windowColumns(&e)
		if err != nil {
			t.Fatal(err)
		}
		got := "not there"
		for i, c := range append(nodes, windows...) {
			if name := c.name; name == x.name && i < len(nodes) || "window."+name == x.name {
				got = fmt.Sprint(c.value)
			}
		}
		if got != x.want {
			t.Errorf("%s: %s is %s, want %s", x.entry, x.name, got, x.want)
		}
	}
	e, _ := row.New("k", []byte(`{"pinnedAt":1.5}`))
	if _, err := nodeColumns(&e); err == nil || !strings.Contains(err.Error(), "pinnedAt is 1.5") {
		t.Error(err)
	}
}
