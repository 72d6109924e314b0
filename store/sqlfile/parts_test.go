package sqlfile

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// table makes a database of one table t with the statements given, closed and without a log.
func table(t testing.TB, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.sqlite")
	db, err := sql.Open("sqlite", uri(path, "_pragma=synchronous(0)"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(s, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	return path
}

// both reads a table by Parts and by SQLite, and says in how many parts.
func both(t testing.TB, path string, columns ...string) (parts, whole []string, n int) {
	t.Helper()
	err := Read(context.Background(), path, func(tx *Tx) error {
		parts, whole = nil, nil
		list, err := tx.Parts("t", columns, 3)
		if err != nil {
			return err
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		errs := make([]error, len(list))
		for i, part := range list {
			all.Go(func() {
				errs[i] = part(func(r *Row) error {
					s := fmt.Sprintf("%#v", r.vals)
					mu.Lock()
					defer mu.Unlock()
					parts = append(parts, s)
					return nil
				})
			})
		}
		all.Wait()
		if n = len(list); len(tx.maps) == 0 {
			n = 0
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		return tx.Each("SELECT "+strings.Join(columns, ", ")+" FROM t NOT INDEXED", func(r *Row) error {
			whole = append(whole, fmt.Sprintf("%#v", r.vals))
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(parts)
	slices.Sort(whole)
	return parts, whole, n
}

// What this room reads of a table's pages is what SQLite reads.
func TestPartsAreTheTable(t *testing.T) {
	pages := []string{"512", "1024", "4096", "65536"}
	rapid.Check(t, func(r *rapid.T) {
		statements := []string{
			"PRAGMA page_size=" + rapid.SampledFrom(pages).Draw(r, "page"),
			"PRAGMA auto_vacuum=" + rapid.SampledFrom([]string{"0", "1", "2"}).Draw(r, "vacuum"),
			"CREATE TABLE t (a TEXT PRIMARY KEY, b INTEGER, c BLOB, d TEXT)",
		}
		seed := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		rows := rapid.IntRange(0, 400).Draw(r, "rows")
		long := rapid.SampledFrom([]int{3, 60, 700, 5000}).Draw(r, "long")
		insert := func(from, to int) {
			for i := from; i < to; i++ {
				b := "NULL"
				if seed.IntN(5) > 0 {
					b = fmt.Sprint(int64(seed.Uint64()) >> seed.IntN(64))
				}
				statements = append(statements, fmt.Sprintf("INSERT INTO t (a, b, c, d) VALUES ('k%d', %s, randomblob(%d), printf('%%.*c', %d, 'x'))", i, b, 1+seed.IntN(long), seed.IntN(long)))
			}
		}
		insert(0, rows/2)
		statements = append(statements, "DELETE FROM t WHERE length(d) % 3 = 1", "ALTER TABLE t ADD COLUMN e TEXT")
		insert(rows/2, rows)
		statements = append(statements, "UPDATE t SET e = a || d WHERE length(d) % 5 = 1")
		path := table(t, statements...)
		parts, whole, n := both(t, path, "a", "b", "c", "d", "e")
		if n == 0 {
			r.Fatal("it was left to SQLite")
		}
		if !slices.Equal(parts, whole) {
			r.Fatalf("%d rows by parts, %d by SQLite, or others", len(parts), len(whole))
		}
	})
}

// What this room does not know how to read is left to SQLite, and is all there.
func TestPartsLeftToSQLite(t *testing.T) {
	for name, make := range map[string][]string{
		"without rowid":    {"CREATE TABLE t (a TEXT PRIMARY KEY, b TEXT) WITHOUT ROWID", "INSERT INTO t VALUES ('x', 'y')"},
		"row's own number": {"CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)", "INSERT INTO t VALUES (7, 'y')"},
		"real":             {"CREATE TABLE t (a REAL, b TEXT)", "INSERT INTO t VALUES (7, 'y')"},
		"computed":         {"CREATE TABLE t (x INTEGER AS (1), a TEXT, b TEXT)", "INSERT INTO t (a, b) VALUES (7, 'y')"},
		"default":          {"CREATE TABLE t (a TEXT)", "INSERT INTO t VALUES (7)", "ALTER TABLE t ADD COLUMN b TEXT DEFAULT 'z'"},
		"encoding":         {"PRAGMA encoding='UTF-16le'", "CREATE TABLE t (a TEXT, b TEXT)", "INSERT INTO t VALUES (7, 'y')"},
	} {
		t.Run(name, func(t *testing.T) {
			parts, whole, n := both(t, table(t, make...), "a", "b")
			if n != 0 || len(whole) != 1 || !slices.Equal(parts, whole) {
				t.Errorf("%d parts: %v, SQLite says %v", n, parts, whole)
			}
		})
	}
	path := table(t, "CREATE TABLE t (a TEXT)", "INSERT INTO t VALUES (7)")
	err := Read(context.Background(), path, func(tx *Tx) error {
		parts, err := tx.Parts("t", []string{"a", "b"}, 2)
		if err != nil || len(parts) != 1 {
			return fmt.Errorf("%d parts: %w", len(parts), err)
		}
		stop := errors.New("enough now")
		if err := parts[0](func(r *Row) error {
			if r.Text(0) != "7" || !r.Null(1) {
				t.Errorf("%#v", r.vals)
			}
			return stop
		}); !errors.Is(err, stop) {
			return fmt.Errorf("it did not stop: %w", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A damaged file is told as SQLite tells it, or read as SQLite reads it.
func TestPartsOfDamage(t *testing.T) {
	path := table(t, "CREATE TABLE t (a TEXT, b TEXT)",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 3000) INSERT INTO t SELECT 'k' || i, printf('%.*c', i, 'x') FROM n")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 2))
		bad := slices.Clone(good)
		at := (2 + random.IntN(len(bad)/4096-2)) * 4096
		copy(bad[at:], []byte{byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32())})
		path := filepath.Join(t.TempDir(), "bad.sqlite")
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		count := func(f func(tx *Tx, n *int) error) (n int, err error) {
			err = Read(context.Background(), path, func(tx *Tx) error { n = 0; return f(tx, &n) })
			return n, err
		}
		byPart, partErr := count(func(tx *Tx, n *int) error {
			parts, err := tx.Parts("t", []string{"a", "b"}, 1)
			if err != nil {
				return err
			}
			return parts[0](func(*Row) error { *n++; return nil })
		})
		bySQL, sqlErr := count(func(tx *Tx, n *int) error {
			return tx.Each("SELECT a, b FROM t NOT INDEXED", func(*Row) error { *n++; return nil })
		})
		if errors.Is(partErr, ErrCorrupt) != errors.Is(sqlErr, ErrCorrupt) || sqlErr == nil && byPart != bySQL {
			t.Errorf("seed %d: by parts %d rows, %v; by SQLite %d rows, %v", seed, byPart, partErr, bySQL, sqlErr)
		}
		if sqlErr != nil {
			left++
		}
	}
	if left == 0 {
		t.Error("no damage was seen")
	}
}

// Whatever a file holds, its pages are read in bounded time and without a fault.
func FuzzPages(f *testing.F) {
	path := table(f, "PRAGMA page_size=512", "CREATE TABLE t (a TEXT, b TEXT)",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 40) INSERT INTO t SELECT 'k' || i, printf('%.*c', 40*i, 'x') FROM n")
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, uint32(2))
	f.Fuzz(func(t *testing.T, b []byte, root uint32) {
		p, err := asPages(b)
		if err != nil {
			return
		}
		leaves, err := p.leaves(root)
		if err != nil {
			return
		}
		r := records{pages: p, table: &shape{want: []int{1, 0}, fallback: make([]bool, 2)}, row: Row{vals: make([]driver.Value, 2)}}
		read := 0
		_ = r.each(context.Background(), leaves, func(row *Row) error { // its errors are what damage is
			read += len(row.Text(0)) + len(row.Text(1))
			return nil
		})
		if read > len(b) {
			t.Errorf("%d bytes of rows in a file of %d", read, len(b))
		}
	})
}
