package agentdb

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"oc/store/sqlfile"
)

// What would make OpenClaw refuse every session of the agent is not written.
func TestPutRefuses(t *testing.T) {
	for _, x := range []struct{ key, entry, why string }{
		{"agent:main:Upper", `{"sessionId":"s","updatedAt":5}`, `"agent:main:upper" is`},
		{" agent:main:a", `{"sessionId":"s","updatedAt":5}`, "not canonical"},
		{"main", `{"sessionId":"s","updatedAt":5}`, "not one of an agent"},
		{"agent:work:a", `{"sessionId":"s","updatedAt":5}`, "one of agent work"},
		{"agent:main:a", `{"sessionId":"","updatedAt":5}`, "no session id"},
		{"agent:main:a", `{"sessionId":"s"}`, "updatedAt is no time"},
		{"agent:main:a", `{"sessionId":"s","updatedAt":-5}`, "updatedAt is no time"},
		{"agent:main:a", `{"sessionId":"s","updatedAt":5.5}`, "updatedAt is 5.5"},
		{"agent:main:a", `{"sessionId":"s","updatedAt":5,"spawnedBy":"Main"}`, "its spawnedBy"},
		{"agent:main:a", `{"sessionId":"s","updatedAt":5,"parentSessionKey":"agent:main:X"}`, "its parentSessionKey"},
		{"agent:main:a", `{"sessionId":"s","updatedAt":5`, "damaged"},
		{"agent:main:a", `[1]`, "no object"},
		{"agent:main:matrix:channel:!abc:server", `{"sessionId":"s","updatedAt":5,"delivery":{"kind":"external","context":{"channel":"matrix","to":"!aBc:server"}}}`, "in another case"},
	} {
		path := sample(t, "migrated-23")
		err := write(t, path, func(w *Writer) error { return w.Put(x.key, []byte(x.entry)) })
		var unfit *Unfit
		if !errors.As(err, &unfit) || !strings.Contains(err.Error(), x.why) {
			t.Errorf("%s %s: %v, want %q", x.key, x.entry, err, x.why)
		}
	}
}

// A new row gets a window of its own, also with a schema that knows no pending table.
func TestPutNew(t *testing.T) {
	for _, name := range []string{"migrated-19", "migrated-23"} {
		path := sample(t, name)
		err := write(t, path, func(w *Writer) error {
			if err := w.Put("agent:main:explicit:new", []byte(`{"sessionId":"n1","updatedAt":1796034048146,"label":"New"}`)); err != nil {
				return err
			}
			if err := w.Window("agent:main:explicit:new", "n1", "/w"); err != nil {
				return err
			}
			_, err := w.Append("n1", []byte(`{"type":"message","id":"a","parentId":null,"timestamp":"2026-11-30T10:00:00.000Z","message":{"role":"user","content":"hi","idempotencyKey":" k "}}`))
			return err
		})
		if err != nil {
			t.Fatal(name, err)
		}
		l, err := List(context.Background(), path, Options{Sizes: true})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, r := range l.Rows {
			if r.Key == "agent:main:explicit:new" {
				found = r.Columns.Valid == 1 && r.Size.Events == 2 && r.Size.Messages == 1
			}
		}
		if !found {
			t.Error(name, "the new row is not listed with its events")
		}
		all := dumped(t, path)
		if p := all["session_canonical_validation_pending"]["agent:main:explicit:new"]; p != nil {
			t.Error(p)
		}
		if w := all["session_windows"]["n1"]; w["session_key"] != "agent:main:explicit:new" || w["display_name"] != "New" {
			t.Error(w)
		}
		if id := all["transcript_event_identities"]["n1/a"]; id["message_idempotency_key"] != "k" || id["created_at"] != int64(1796032800000) {
			t.Error(id)
		}
		if s := all["session_transcript_index_state"]["n1"]; s["needs_rebuild"] != int64(1) {
			t.Error("a message is not in the branch that is made of it, and nothing says so:", s)
		}
		version := `"version":4`
		if name == "migrated-19" {
			version = `"version":3`
		}
		if e := all["transcript_events"]["n1/0"]; !strings.Contains(e["event_json"].(string), version) {
			t.Error(e)
		}
	}
}

// A transcript that lies in a cold archive, or is another session's, is left alone; so is a database of another schema.
func TestWriterLeavesAlone(t *testing.T) {
	path := sample(t, "migrated-23")
	change(t, path, `INSERT INTO session_transcript_cold_archives VALUES ('00000003-1111-4222-8333-000000000003', 'g', 'x', '`+strings.Repeat("0", 64)+`', 1, 1, 1, 0, 1, 'file', NULL)`)
	for _, x := range []struct {
		key, id string
		want    error
	}{
		{"agent:main:explicit:scratch-1", "00000003-1111-4222-8333-000000000003", ErrCold},
		{"agent:main:cron:job-1", "00000004-1111-4222-8333-000000000004", ErrShared},
	} {
		if err := write(t, path, func(w *Writer) error { return w.Window(x.key, x.id, "/w") }); !errors.Is(err, x.want) {
			t.Errorf("%s: %v", x.key, err)
		}
	}
	change(t, path, "PRAGMA user_version = 22")
	var no *Unwritable
	if err := write(t, path, func(*Writer) error { return nil }); !errors.As(err, &no) || no.Version != 22 {
		t.Error(err)
	}
}

func write(t *testing.T, path string, f func(*Writer) error) error {
	t.Helper()
	return sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
		w, err := NewWriter(tx, path, 1796068930000)
		if err != nil {
			return err
		}
		return f(w)
	})
}
