package sqlfile

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A Part is some rows of a table. f gets each of them, on another goroutine than the caller's perhaps, but never two at once; a row and its
// values are valid until f returns.
type Part func(f func(*Row) error) error

// Parts cuts a table, read from its rows and by no index, into parts that may be read at the same time: all rows are in one of them, in no
// order. A column that the table has not is read as NULL.
//
// Where nobody writes, and the file is of the ordinary kind, its pages are read by this room itself, by one part for each of the
// processors named; else there is one part, and SQLite reads it. Pages that make no sense are left to SQLite, to say what is wrong with
// them: Read then calls its function again, as if the file had changed.
func (tx *Tx) Parts(table string, columns []string, processors int) ([]Part, error) {
	has, err := tx.Columns(table)
	if err != nil {
		return nil, err
	}
	if p, err := tx.pages(table, columns, has, processors); err != nil || p != nil {
		return p, err
	}
	list := make([]string, len(columns))
	for i, c := range columns {
		if list[i] = "NULL"; has[c] {
			list[i] = quoted(c)
		}
	}
	query := "SELECT " + strings.Join(list, ", ") + " FROM " + quoted(table) + " NOT INDEXED"
	return []Part{func(f func(*Row) error) error { return tx.ahead(query, f) }}, nil
}

// ahead is Each with SQLite fetching rows while f looks at others.
func (tx *Tx) ahead(query string, f func(*Row) error) error {
	batches := make(chan []Row, 4)
	var failed error
	var done sync.WaitGroup
	stop := make(chan struct{})
	done.Go(func() {
		for batch := range batches {
			for i := range batch {
				if failed == nil {
					if failed = f(&batch[i]); failed != nil {
						close(stop)
					}
				}
			}
		}
	})
	var batch []Row
	err := tx.Each(query, func(r *Row) error {
		select {
		case <-stop:
			return errEnough
		default:
		}
		if batch = append(batch, r.Clone()); len(batch) == 64 {
			batches <- batch
			batch = make([]Row, 0, 64)
		}
		return nil
	})
	batches <- batch
	close(batches)
	done.Wait()
	return errors.Join(err, failed)
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// pages is the parts of a table whose pages this room reads by itself; nil where SQLite has to.
func (tx *Tx) pages(table string, columns []string, has map[string]bool, processors int) ([]Part, error) {
	if tx.mode != Immutable || tx.odd == nil || *tx.odd || len(has) == 0 {
		return nil, nil
	}
	t, err := tx.shape(table, columns)
	if err != nil || t == nil {
		return nil, err
	}
	b, err := mapped(tx.real)
	if err != nil {
		return nil, nil // SQLite says why, or can
	}
	tx.maps = append(tx.maps, b)
	leaves, err := b.leaves(t.root)
	if err != nil {
		return nil, tx.oddity()
	}
	n := max(1, min(processors, len(leaves)/16))
	parts := make([]Part, n)
	for i := range parts {
		mine := leaves[len(leaves)*i/n : len(leaves)*(i+1)/n]
		parts[i] = func(f func(*Row) error) error {
			defer faultsPanic()()
			r := records{pages: b, table: t, row: Row{vals: make([]driver.Value, len(columns))}}
			var failed error
			err := guard(func() error { return r.each(tx.ctx, mine, func(row *Row) error { failed = f(row); return failed }) })
			switch {
			case failed != nil:
				return failed
			case tx.ctx.Err() != nil:
				return tx.ctx.Err()
			case err != nil:
				return tx.oddity()
			}
			return nil
		}
	}
	return parts, nil
}

// oddity leaves the rest of this Read to SQLite.
func (tx *Tx) oddity() error {
	*tx.odd = true
	return errOdd
}

var errOdd = fmt.Errorf("%w: its pages are of a kind that is left to SQLite", errMoved)

// A shape is what has to be known of a table to read its records.
type shape struct {
	root     uint32
	want     []int  // for each column of a record, up to the last that is asked for, which value of a Row it is; -1: none
	fallback []bool // for the same columns, whether a record that ends before it does not mean NULL
}

// shape is nil for a table whose records do not simply hold what its columns do.
func (tx *Tx) shape(table string, columns []string) (*shape, error) {
	if enc, _, err := tx.Text("PRAGMA encoding"); err != nil || enc != "UTF-8" {
		return nil, err
	}
	t := &shape{}
	plain := false
	err := tx.Each(`SELECT l.wr, m.rootpage FROM pragma_table_list(?1) AS l JOIN sqlite_master AS m ON m.name = l.name AND m.type = 'table'
		WHERE l.schema = 'main'`, func(r *Row) error {
		without, _ := r.Int(0)
		root, _ := r.Int(1)
		t.root, plain = uint32(root), without == 0 && root > 0 && root < 1<<31
		return nil
	}, table)
	if err != nil || !plain {
		return nil, err
	}
	last := 0
	err = tx.Each(`SELECT name, type, dflt_value IS NOT NULL, pk, hidden FROM pragma_table_xinfo(?1) ORDER BY cid`, func(r *Row) error {
		fallback, _ := r.Int(2)
		key, _ := r.Int(3)
		hidden, _ := r.Int(4)
		plain = plain && hidden == 0 // one that is computed is not stored where it is counted
		want := slices.Index(columns, r.Text(0))
		t.want, t.fallback = append(t.want, want), append(t.fallback, fallback != 0)
		if want < 0 {
			return nil
		}
		last = len(t.want)
		switch kind := strings.ToUpper(r.Text(1)); {
		case kind == "TEXT", kind == "BLOB", kind == "INTEGER" && key == 0: // others may be read as another kind than they are stored
		default:
			plain = false
		}
		return nil
	}, table)
	if err != nil || !plain {
		return nil, err
	}
	t.want, t.fallback = t.want[:last], t.fallback[:last]
	return t, nil
}
