package agentdb

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oc/store/sqlfile"
)

// filled is a schema 23 database with n sessions of about 4.3 KB each.
func filled(t testing.TB, n int) string {
	t.Helper()
	path := sample(t, "migrated-23")
	big := strings.Repeat(`{\"name\":\"skill\",\"description\":\"what it does\"},`, 70)
	err := sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
		for i := range n {
			id := fmt.Sprintf("%08d-1111-4222-8333-000000000000", i)
			at := int64(1796034048146) + int64(i)
			entry := fmt.Sprintf(`{"sessionId":"%s","updatedAt":%d,"systemSent":true,"sessionStartedAt":%d,"chatType":"direct","model":"gpt-5.2","modelProvider":"openai",`+
				`"inputTokens":2100,"outputTokens":70,"totalTokens":1130,"totalTokensFresh":true,"skillsSnapshot":{"prompt":"%s"},"delivery":{"kind":"external","route":{"channel":"telegram",`+
				`"accountId":"default","target":{"to":"telegram:%d"}},"context":{"channel":"telegram","to":"telegram:%d","accountId":"default"}}}`, id, at, at, big, i, i)
			if _, err := tx.Exec("INSERT INTO session_nodes (session_key, current_session_id, entry_json, updated_at) VALUES (?1, ?2, ?3, ?4)",
				fmt.Sprintf("agent:main:telegram:direct:n%07d", i*7919%n), id, entry, at); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	old := time.Unix(1796000000, 0)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(path + "-*"); len(left) != 0 {
		t.Fatal(left)
	}
	return path
}

func BenchmarkList(b *testing.B) {
	for _, n := range []int{500, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			path := filled(b, n)
			b.ReportAllocs()
			for b.Loop() {
				l, err := List(context.Background(), path, Options{})
				if err != nil || len(l.Rows) != n+12 {
					b.Fatal(len(l.Rows), err)
				}
			}
		})
	}
}

func BenchmarkDetect(b *testing.B) {
	path := sample(b, "migrated-23")
	for b.Loop() {
		if _, err := Detect(context.Background(), path); err != nil {
			b.Fatal(err)
		}
	}
}

// The ends of 1,000 transcripts of 40 events each, for titles and previews.
func BenchmarkEnds(b *testing.B) {
	path := sample(b, "migrated-23")
	err := sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
		for i := range 1000 {
			id := fmt.Sprintf("w%04d", i)
			if _, err := tx.Exec("INSERT INTO session_windows (session_id, session_key, created_at, updated_at) VALUES (?1, 'agent:main:main', 1, 1)", id); err != nil {
				return err
			}
			for seq := range 40 {
				line := fmt.Sprintf(`{"type":"message","id":"%d","parentId":null,"message":{"role":"user","content":"%s"}}`, seq, strings.Repeat("word ", 160))
				if _, err := tx.Exec("INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES (?1, ?2, ?3, 1)", id, seq, line); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	old := time.Unix(1796000000, 0)
	os.Chtimes(path, old, old)
	for b.Loop() {
		err := Read(context.Background(), path, func(db *DB) error {
			for i := range 1000 {
				if e, err := db.Ends(fmt.Sprintf("w%04d", i), 8<<10, 16<<10); err != nil || e.Whole {
					return fmt.Errorf("%v %w", e, err)
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// All events of 64 transcripts, 130 MB as they come out of real sessions: mostly some kilobytes, a few of them images.
func BenchmarkSweep(b *testing.B) {
	path, size := sample(b, "migrated-23"), int64(0)
	prose := strings.Repeat("the lamp of the lighthouse was lit again and nobody knew by whom; ", 2000)
	err := sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
		for i := range 64 {
			id := fmt.Sprintf("w%04d", i)
			if _, err := tx.Exec("INSERT INTO session_windows (session_id, session_key, created_at, updated_at) VALUES (?1, 'agent:main:main', 1, 1)", id); err != nil {
				return err
			}
			for seq := range 480 {
				n := 200 + seq*7919%6000
				if seq%50 == 10 {
					n = 80 << 10
				}
				line := fmt.Sprintf(`{"type":"message","id":"%d","parentId":null,"message":{"role":"user","content":"%s"}}`, seq, prose[:n])
				size += int64(len(line)) + 1
				if _, err := tx.Exec("INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES (?1, ?2, ?3, 1)", id, seq, line); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	old := time.Unix(1796000000, 0)
	os.Chtimes(path, old, old)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		passed := int64(0)
		err := Read(context.Background(), path, func(db *DB) error {
			return db.Sweep("w", "x", func(_ string, e Event) error {
				passed += int64(len(e.Line)) + 1
				return e.Damage
			})
		})
		if err != nil || passed != size {
			b.Fatal(passed, size, err)
		}
	}
}
