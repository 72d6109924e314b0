package agentdb

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"oc/store/span"
	"oc/store/sqlfile"
	"oc/transcript"
)

const mainSession = "00000001-1111-4222-8333-000000000001"

func collect(t testing.TB, all func(context.Context, string, string, func(Event) error) error, path, id string) (lines []string, seqs []int64) {
	t.Helper()
	err := all(context.Background(), path, id, func(e Event) error {
		if e.Damage != nil {
			lines = append(lines, "damaged: "+e.Damage.Error())
		} else {
			lines = append(lines, string(e.Line))
		}
		seqs = append(seqs, e.Seq)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines, seqs
}

// What compressed rows decode to is what the rows of the older schema say, for the same conversation.
func TestEventsOfBothSchemas(t *testing.T) {
	new, old := sample(t, "migrated-23"), sample(t, "migrated-19")
	compressed := 0
	for _, id := range []string{mainSession, "00000002-1111-4222-8333-000000000002", "00000004-1111-4222-8333-000000000004", "none"} {
		a, seqs := collect(t, Events, new, id)
		b, _ := collect(t, Events, old, id)
		if d := cmp.Diff(b, a); d != "" {
			t.Errorf("%s: %s", id, d)
		}
		var size Size
		err := Read(context.Background(), new, func(db *DB) error {
			n, _, err := db.tx.Int("SELECT count(*) FROM transcript_events WHERE session_id = ?1 AND event_json IS NULL", id)
			compressed += int(n)
			if err != nil {
				return err
			}
			size, err = db.Size(id)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := int64(len(strings.Join(a, "\n")) + min(1, len(a))); size.Bytes != want || size.Events != int64(len(a)) {
			t.Errorf("%s: %+v, want %d bytes", id, size, want)
		}
		for i, seq := range seqs {
			if seq != int64(i) {
				t.Errorf("%s: %v", id, seqs)
			}
		}
	}
	if compressed == 0 {
		t.Error("the sample has no compressed rows")
	}
}

// OpenClaw's projection and the tree of the rows agree on the active branch of every recorded conversation.
func TestActiveTwice(t *testing.T) {
	for _, name := range []string{"migrated-23", "migrated-19", "gateway-main", "gateway-ops"} {
		path := sample(t, name)
		var ids []string
		err := Read(context.Background(), path, func(db *DB) error {
			ids = ids[:0]
			return db.tx.Each("SELECT session_id FROM session_windows ORDER BY 1", func(r *sqlfile.Row) error {
				ids = append(ids, r.Text(0))
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		projected := map[string][]int64{}
		for _, id := range ids {
			_, projected[id] = collect(t, Active, path, id)
		}
		change(t, path, "UPDATE session_transcript_index_state SET needs_rebuild = 1")
		for _, id := range ids {
			_, rebuilt := collect(t, Active, path, id)
			if d := cmp.Diff(projected[id], rebuilt); d != "" {
				t.Errorf("%s %s: %s", name, id, d)
			}
		}
	}
}

func TestActiveProjectionIsCheckedFirst(t *testing.T) {
	for name, spoil := range map[string]string{
		"behind":      "UPDATE session_transcript_index_state SET indexed_seq = indexed_seq - 1",
		"to rebuild":  "UPDATE session_transcript_index_state SET needs_rebuild = 1",
		"unfinished":  "UPDATE session_transcript_active_events SET context_eligible = NULL WHERE active_position = 0",
		"not there":   "DELETE FROM session_transcript_index_state",
		"no such one": "DROP TABLE session_transcript_active_events",
	} {
		path := sample(t, "migrated-23")
		usable := func() (ok bool) {
			err := Read(context.Background(), path, func(db *DB) (err error) {
				ok, err = db.projected(mainSession)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		if !usable() {
			t.Error("the sample's projection is not usable")
		}
		change(t, path, spoil)
		if usable() {
			t.Errorf("%s: usable", name)
		}
		if lines, _ := collect(t, Active, path, mainSession); len(lines) != 18 {
			t.Errorf("%s: %d events", name, len(lines))
		}
	}
}

func TestEventsDamaged(t *testing.T) {
	path := sample(t, "migrated-23")
	zeros, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := zeros.EncodeAll(make([]byte, 64<<20), nil)
	err = sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
		if _, err := tx.Exec("PRAGMA ignore_check_constraints = ON"); err != nil {
			return err
		}
		for seq, c := range []struct {
			frame any
			size  any
		}{{[]byte("no frame"), 10}, {bomb, 100}, {bomb, 64 << 20}, {zeros.EncodeAll([]byte("{}"), nil), 3}, {nil, nil}} {
			_, err := tx.Exec("INSERT INTO transcript_events (session_id, seq, created_at, event_zstd, event_utf8_bytes) VALUES (?1, ?2, 1, ?3, ?4)", mainSession, 1000+seq, c.frame, c.size)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	lines, _ := collect(t, Events, path, mainSession)
	damaged := 0
	for _, l := range lines {
		if strings.HasPrefix(l, "damaged: ") {
			damaged++
		}
	}
	if damaged != 5 || len(lines) != 25 {
		t.Errorf("%d of %d damaged: %q", damaged, len(lines), lines[len(lines)-5:])
	}
}

func TestEnds(t *testing.T) {
	path := sample(t, "migrated-23")
	lines, _ := collect(t, Events, path, mainSession)
	whole := strings.Join(lines, "\n") + "\n"
	err := Read(context.Background(), path, func(db *DB) error {
		all, err := db.Ends(mainSession, len(whole), 1)
		if err != nil {
			return err
		}
		got, _ := io.ReadAll(io.NewSectionReader(all, 0, all.Size))
		if !all.Whole || string(got) != whole {
			t.Errorf("%d bytes, want %d", len(got), len(whole))
		}
		for _, c := range [][2]int{{1, 1}, {300, 300}, {0, 0}, {1, len(whole)}, {len(whole) - 1, 1}} {
			e, err := db.Ends(mainSession, c[0], c[1])
			if err != nil {
				return err
			}
			head, tail := make([]byte, c[0]), make([]byte, c[1])
			if n, err := e.ReadAt(head, 0); n != len(head) || err != nil {
				t.Errorf("%v: %d %v", c, n, err)
			}
			if n, err := e.ReadAt(tail, e.Size-int64(c[1])); n != len(tail) || err != nil {
				t.Errorf("%v: %d %v", c, n, err)
			}
			if !strings.HasPrefix(whole, string(head)) || !strings.HasSuffix(whole, string(tail)) {
				t.Errorf("%v: not the ends", c)
			}
			if e.Whole && e.Size != int64(len(whole)) {
				t.Errorf("%v: whole with %d bytes", c, e.Size)
			}
			wide := make([]byte, len(whole)+500) // what lies between is blank
			n, _ := e.ReadAt(wide, max(0, e.Size-int64(len(wide))))
			if !strings.HasSuffix(whole, strings.TrimLeft(string(wide[:n]), "\n")) {
				t.Errorf("%v: the gap is not blank", c)
			}
		}
		e, err := db.Ends(mainSession, 8<<10, 16<<10)
		if err != nil {
			return err
		}
		g, err := transcript.Glance(e, e.Size)
		if err != nil || g.SessionID == "" || !g.Messages || g.FirstUser == "" || g.First == 0 || g.Last < g.First {
			t.Errorf("%+v %v", g, err)
		}
		none, err := db.Ends("none", 8, 8)
		if err != nil || none.Size != 0 || !none.Whole {
			t.Errorf("%+v %v", none, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWindowsAndArchives(t *testing.T) {
	path := sample(t, "gateway-main")
	change(t, path, `INSERT INTO session_windows (session_id, session_key, previous_session_id, reason, created_at, updated_at) VALUES ('older', 'agent:main:main', 'oldest', 'rollover', 5, 6)`)
	err := Read(context.Background(), path, func(db *DB) error {
		w, err := db.Windows("agent:main:main")
		if err != nil || len(w) != 2 || !w[0].Current || w[0].Size.Events != 55 || w[0].Size.Messages != 41 || w[1].Previous != "oldest" || w[1].Reason != "rollover" {
			t.Errorf("%+v %v", w, err)
		}
		n := 0
		l, err := db.List(Options{})
		if err != nil {
			return err
		}
		keys := map[string]bool{}
		for i := range l.Rows {
			keys[l.Rows[i].Key] = true
		}
		err = db.tx.Each("SELECT session_key FROM session_transcript_archives", func(r *sqlfile.Row) error {
			a, err := db.Archives(r.Text(0))
			n += len(a)
			if len(a) != 1 || a[0].Bytes == 0 || a[0].Reason != "deleted" || !a[0].Published || !strings.Contains(a[0].Name, a[0].SessionID) {
				t.Errorf("%+v", a)
			}
			return err
		})
		if n != 1 {
			t.Errorf("%d archives", n)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// cool moves a transcript into a cold archive as OpenClaw does, in the database or in a file.
func cool(t *testing.T, path, id, storage string) (file string) {
	t.Helper()
	lines, seqs := collect(t, Events, path, id)
	var text bytes.Buffer
	fmt.Fprintf(&text, `{"kind":"header","version":1,"sessionId":%q,"generation":"g"}`+"\n", id)
	raw := -1
	for i, l := range lines {
		fmt.Fprintf(&text, `{"kind":"event","row":{"seq":%d,"event_json":%s,"created_at":%d}}`+"\n", seqs[i], span.Quote(nil, l), 7+i)
		raw += len(l) + 1
	}
	text.WriteString(`{"kind":"active","row":{"active_position":0,"event_seq":1,"message_position":null,"context_eligible":1}}` + "\n")
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	data := z.EncodeAll(text.Bytes(), nil)
	sum := fmt.Sprintf("%x", sha256.Sum256(data))
	name := strings.Repeat("ab", 32) + ".jsonl.zst"
	var blob any
	if storage == "sqlite" {
		blob = data
	} else {
		file = filepath.Join(ArtifactDir(path), "cold", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	err = sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
		if _, err := tx.Exec("DELETE FROM transcript_events WHERE session_id = ?1", id); err != nil {
			return err
		}
		_, err := tx.Exec("INSERT INTO session_transcript_cold_archives VALUES (?1, 'g', ?2, ?3, ?4, ?5, ?6, ?7, 9, ?8, ?9)",
			id, name, sum, len(lines), raw, len(data), seqs[len(seqs)-1], storage, blob)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestColdArchives(t *testing.T) {
	for _, storage := range []string{"sqlite", "file"} {
		path := sample(t, "migrated-23")
		want, _ := collect(t, Events, path, mainSession)
		branch, _ := collect(t, Active, path, mainSession)
		file := cool(t, path, mainSession, storage)
		got, _ := collect(t, Events, path, mainSession)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", storage, d)
		}
		got, _ = collect(t, Active, path, mainSession)
		if d := cmp.Diff(branch, got); d != "" {
			t.Errorf("%s: %s", storage, d)
		}
		whole := strings.Join(want, "\n") + "\n"
		err := Read(context.Background(), path, func(db *DB) error {
			s, err := db.Size(mainSession)
			if err != nil || !s.Cold || s.Events != int64(len(want)) || s.Bytes != int64(len(whole)) {
				t.Errorf("%+v %v", s, err)
			}
			c, err := db.Cold(mainSession)
			if err != nil || c.InDatabase != (storage == "sqlite") || c.LastSeq != int64(len(want)-1) {
				t.Errorf("%+v %v", c, err)
			}
			e, err := db.Ends(mainSession, 100, 100)
			if err != nil {
				return err
			}
			tail := make([]byte, 100)
			if _, err := e.ReadAt(tail, e.Size-100); err != nil || !strings.HasSuffix(whole, string(tail)) || e.Whole {
				t.Errorf("%q %v", tail, err)
			}
			mine := errors.New("mine")
			if err := db.Events(mainSession, func(Event) error { return mine }); err != mine {
				t.Error(err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if file == "" {
			continue
		}
		none := func(Event) error { return nil }
		var cold *ColdError
		if err := os.Truncate(file, 50); err != nil {
			t.Fatal(err)
		}
		if err := Events(context.Background(), path, mainSession, none); !errors.As(err, &cold) || cold.Path != file {
			t.Error(err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := Events(context.Background(), path, mainSession, none); !errors.As(err, &cold) || !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		change(t, path, "UPDATE session_transcript_cold_archives SET archive_name = 'passwd'")
		if err := Events(context.Background(), path, mainSession, none); !errors.As(err, &cold) || !strings.Contains(err.Error(), "its name is not") {
			t.Error(err)
		}
	}
}

// A reader that writes out what it gets gets nothing twice, though the file changes under it.
func TestEventsWhileTheFileChanges(t *testing.T) {
	path := sample(t, "migrated-23")
	long := `{"type":"custom","id":"%d","data":"` + strings.Repeat("x", 1000) + `"}`
	err := sqlfile.Write(context.Background(), path, time.Second, func(tx *sqlfile.Tx) error {
		for i := range 2000 {
			if _, err := tx.Exec("INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES (?1, ?2, ?3, 1)", mainSession, 20+i, fmt.Sprintf(long, i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	touch := func() { // another process's change, as far as the reader can tell
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n, touched := int64(0), 0
	err = Events(context.Background(), path, mainSession, func(e Event) error {
		if e.Seq != n {
			t.Fatalf("event %d, want %d", e.Seq, n)
		}
		if n++; n%700 == 0 && touched < 2 {
			touched++
			touch()
		}
		return nil
	})
	if err != nil || n != 2020 || touched != 2 {
		t.Errorf("%d events, %d changes: %v", n, touched, err)
	}
}
