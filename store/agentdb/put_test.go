package agentdb

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oc/store/sqlfile"
)

// A call is what the gateway of 2026.9.6 did to its database on one request: rows before it, and each row that then was another one.
type call struct {
	Name, Key, ID string
	Params        struct{ MaxLines int }
	Before        map[string][]map[string]any
	Changes       []struct {
		Table, PK     string
		Before, After map[string]any
	}
}

func (c *call) after(table, pk string) map[string]any {
	for _, x := range c.Changes {
		if x.Table == table && x.PK == pk {
			return x.After
		}
	}
	return nil
}

// derived are the tables that OpenClaw makes anew where a transcript is marked.
var derived = []string{"session_transcript_active_events", "session_transcript_index_state"}

// keys of the tables that a change of a session touches.
var keysOf = map[string][]string{
	"conversations": {"conversation_id"}, "session_conversations": {"session_id", "conversation_id", "role"},
	"session_nodes": {"session_key"}, "session_windows": {"session_id"}, "session_canonical_validation_pending": {"session_key"},
	"transcript_events": {"session_id", "seq"}, "transcript_event_identities": {"session_id", "event_id"},
	"session_transcript_active_events": {"session_id", "active_position"}, "session_transcript_index_state": {"session_id"},
	"transcript_rewrite_watermarks": {"session_id"}, "session_progress_cards": {"session_key"},
}

// dumped is every row of those tables, by table, key and column. Blobs are told by their length.
func dumped(t *testing.T, path string) map[string]map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]map[string]any{}
	err := sqlfile.Read(context.Background(), path, func(tx *sqlfile.Tx) error {
		for table, keys := range keysOf {
			all[table] = map[string]map[string]any{}
			has, err := tx.Columns(table)
			if err != nil {
				return err
			}
			if len(has) == 0 {
				continue
			}
			columns := slices.Sorted(maps.Keys(has))
			err = tx.Each("SELECT "+strings.Join(columns, ", ")+" FROM "+table, func(r *sqlfile.Row) error {
				row := map[string]any{}
				for i, name := range columns {
					row[name] = r.Value(i)
					if b, is := row[name].([]byte); is {
						row[name] = fmt.Sprintf("blob:%d", len(b))
					}
				}
				var pk []string
				for _, k := range keys {
					pk = append(pk, fmt.Sprint(row[k]))
				}
				all[table][strings.Join(pk, "/")] = row
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sqlValue is a value of a recording as SQLite takes it.
func sqlValue(v any) any {
	if f, is := v.(float64); is && f == math.Trunc(f) {
		return int64(f)
	}
	return v
}

// begin puts the rows of a session as they were before a call.
func (c *call) begin(t *testing.T, path string) {
	t.Helper()
	err := sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
		for _, table := range []string{"conversations", "session_nodes", "session_windows", "session_conversations"} {
			for _, r := range c.Before[table] {
				var names, places []string
				var args []any
				for _, name := range slices.Sorted(maps.Keys(r)) {
					names, args = append(names, name), append(args, sqlValue(r[name]))
					places = append(places, fmt.Sprintf("%s = ?%d", name, len(args)))
				}
				where := []string{}
				for _, k := range keysOf[table] {
					where = append(where, fmt.Sprintf("%s = ?%d", k, 1+slices.Index(names, k)))
				}
				if n, err := tx.Exec("UPDATE "+table+" SET "+strings.Join(places, ", ")+" WHERE "+strings.Join(where, " AND "), args...); err != nil || n != 1 {
					return fmt.Errorf("%s: %d rows, %w", table, n, err)
				}
			}
		}
		if _, err := tx.Exec("UPDATE session_nodes SET entry_valid = 1"); err != nil {
			return err
		}
		_, err := tx.Exec("DELETE FROM session_canonical_validation_pending")
		return err
	})
	if err != nil {
		t.Fatal(c.Name, err)
	}
}

// What the gateway of 2026.9.6 did to every table on a request, the Writer does with the same entry and the same events.
func TestWriterDoesAsTheGateway(t *testing.T) {
	var calls []call
	recorded(t, "calls-23.json", &calls)
	path := sample(t, "migrated-23")
	for i := range calls {
		c := &calls[i]
		c.begin(t, path)
		before := dumped(t, path)
		node, window := c.after("session_nodes", c.Key), c.after("session_windows", c.ID)
		now := int64(node["updated_at"].(float64))
		if at, changed := window["transcript_updated_at"].(float64); changed {
			now = int64(at)
		}
		err := sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
			w, err := NewWriter(tx, path, now)
			if err != nil {
				return err
			}
			if n := c.Params.MaxLines; n > 0 {
				trimming, err := w.DB().Trim(c.ID, n)
				if err != nil {
					return err
				}
				if err := w.Trim(c.ID, trimming); err != nil {
					return err
				}
			} else {
				for _, x := range c.Changes { // in the order of their numbers
					if x.Table == "transcript_events" && x.Before == nil {
						if _, err := w.Append(c.ID, []byte(x.After["event_json"].(string))); err != nil {
							return err
						}
					}
				}
			}
			return w.Put(c.Key, []byte(node["entry_json"].(string)))
		})
		if err != nil {
			t.Fatal(c.Name, err)
		}
		c.compare(t, before, dumped(t, path))
	}
}

func (c *call) compare(t *testing.T, before, after map[string]map[string]map[string]any) {
	t.Helper()
	stale := fmt.Sprint(after["session_transcript_index_state"][c.ID]["needs_rebuild"]) == "1"
	want := map[string]map[string]string{}
	for table := range keysOf {
		want[table] = map[string]string{}
		for pk, r := range before[table] {
			want[table][pk] = said(r)
		}
	}
	for _, x := range c.Changes {
		if x.After == nil {
			delete(want[x.Table], x.PK)
		} else {
			want[x.Table][x.PK] = said(x.After)
		}
	}
	for table := range keysOf {
		if stale && slices.Contains(derived, table) {
			continue
		}
		got := map[string]string{}
		for pk, r := range after[table] {
			got[pk] = said(r)
		}
		if d := cmp.Diff(want[table], got); d != "" {
			t.Errorf("%s: %s, as recorded and as oc leaves it:\n%s", c.Name, table, d)
		}
	}
}

// said is a row as text, without what is drawn by lot and the milliseconds between two statements.
func said(r map[string]any) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r)) {
		v := sqlValue(r[name])
		switch name {
		case "generation":
			v = "some"
		case "transcript_updated_at", "transcript_observed_at":
			if n, is := v.(int64); is {
				v = n / 100
			}
		case "updated_at":
			if _, is := r["generation"]; is {
				v = v.(int64) / 100
			}
		case "event_zstd":
			if s, is := v.(string); is {
				v = strings.Join(strings.SplitN(s, ":", 3)[:2], ":")
			}
		}
		raw, _ := json.Marshal(v)
		fmt.Fprintf(&b, "%s=%s\n", name, raw)
	}
	return b.String()
}
