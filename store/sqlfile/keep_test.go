package sqlfile

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Rows that somebody else removes come back. They leave memory while others are still read, and what was read before the file changed is passed
// over.
func TestKeep(t *testing.T) {
	path := three(t, t.TempDir())
	noise := make([]byte, 3*blockSize)
	rnd := rand.NewChaCha8([32]byte{6})
	_, _ = rnd.Read(noise)
	for i := range noise {
		noise[i] = ' ' + noise[i]%95
	}
	writeTo(t, path, func(tx *Tx) error {
		for i := range 3 {
			if _, err := tx.Exec("INSERT INTO events VALUES ('ida', ?, ?)", 100+i, string(noise[i*blockSize:(i+1)*blockSize])); err != nil {
				return err
			}
		}
		return nil
	})
	var b bytes.Buffer
	calls := 0
	choose := func(tx *Tx, _ []string, rows func(table, where string, args ...any) error) error {
		calls++
		for _, table := range []string{"nodes", "windows", "members", "inputs", "state", "events"} {
			where := "session_id = 'ida'"
			if table != "windows" && table != "state" && table != "events" {
				where = "session_key = 'a'"
			}
			for range 2 { // each is kept once
				if err := rows(table, where); err != nil {
					return err
				}
			}
		}
		if b.Len() < calls*blockSize {
			t.Errorf("%d bytes are out of memory at call %d", b.Len(), calls)
		}
		if calls == 1 {
			run(t, "closed", path) // somebody writes meanwhile
		}
		return nil
	}
	ready := false
	kept, err := Keep(context.Background(), path, Recording{W: &b, Ties: recordedTies, Ready: func() error { ready = true; return nil }}, choose)
	if want := (Changed{Removed: 5 + 6}); err != nil || kept != want || calls != 2 || !ready {
		t.Fatalf("%+v, %d calls: %v", kept, calls, err)
	}
	s, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	// As long as they are there nothing is to be done.
	if done, err := s.Restore(context.Background(), path, time.Second, Restoring{}); err != nil || done.Back != 0 || done.Already != 11 || done.Held != 0 {
		t.Fatalf("%+v %v", done, err)
	}
	dump := func() (all []string) {
		err := Read(context.Background(), path, func(tx *Tx) error {
			all = nil
			for _, q := range []string{"SELECT session_key, entry FROM nodes", "SELECT session_id, session_key FROM windows", "SELECT session_id, json FROM events ORDER BY 1, seq", "SELECT session_key, who FROM members ORDER BY 1"} {
				if err := tx.Each(q, func(r *Row) error { all = append(all, r.Text(0)+" "+r.Text(1)); return nil }); err != nil {
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
	before := dump()
	writeTo(t, path, func(tx *Tx) error { return remove(tx, "a", "ida") })
	done, err := s.Restore(context.Background(), path, time.Second, Restoring{})
	if err != nil || done.Back != 11 || done.Held != 0 {
		t.Fatalf("%+v %v", done, err)
	}
	if d := cmp.Diff(before, dump()); d != "" {
		t.Error(d)
	}
}
