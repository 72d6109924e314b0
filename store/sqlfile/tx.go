package sqlfile

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unsafe"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// Tx is one transaction on one database. It is for one goroutine.
type Tx struct {
	ctx      context.Context
	conn     driver.Conn
	path     string
	mode     Mode
	cost     Cost
	still    func() error
	idle     map[string]driver.Stmt     // prepared statements not in use, by text
	columns  map[string]map[string]bool // by table
	turn     *turn                      // of a Write: how it waits for other writers; else nil
	open     bool
	real     string                   // of an Immutable one: the file itself, links followed
	odd      *bool                    // of an Immutable one: its pages were no good for this room
	maps     []*pages                 // that Parts reads
	nameless bool                     // of a private copy: no directory lists it any more
	recorder *recorder                // of a Record
	broken   func(query string) error // of a test: see Breaking
	dead     bool                     // the engine stopped within it: it may hold locks of its own and is not to be called again
}

// guard calls the driver.
func (tx *Tx) guard(f func() error) error {
	if tx.dead {
		return errDead
	}
	err := guard(f)
	var p *panicked
	if errors.As(err, &p) {
		tx.dead = true
	}
	return err
}

// No busy timeout when reading: this room holds a lock of its own then, and must let go of it before it tries again.
const (
	readPragmas = "_pragma=query_only(1)&_pragma=temp_store(MEMORY)&_pragma=trusted_schema(0)&_pragma=cell_size_check(1)&_pragma=cache_size(-1024)"
	copyPragmas = readPragmas + "&_pragma=locking_mode(EXCLUSIVE)&_pragma=synchronous(OFF)"
)

// writePragmas are OpenClaw's own (spec/awareness.md 1.2), but for the busy timeout: see turn. With a write-ahead log,
// synchronous NORMAL never leaves a damaged file; the last commits before a power cut may be undone, which leaves the state
// before them.
const writePragmas = "_pragma=synchronous(NORMAL)&_pragma=foreign_keys(1)&_pragma=trusted_schema(0)"

// uri names a file so that no character of its name means anything to SQLite or the driver.
func uri(path string, params ...string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	b.WriteString("file:")
	for i := range len(path) {
		switch c := path[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '/', c == '.', c == '_', c == '-':
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	b.WriteByte('?')
	b.WriteString(strings.Join(params, "&"))
	return b.String()
}

// begin opens the database and fixes the snapshot: a deferred transaction begins with its first read.
func begin(ctx context.Context, dsn, path string, mode Mode, cost *Cost, sql string) (*Tx, error) {
	return beginIn(ctx, nil, dsn, path, mode, cost, sql)
}

func beginIn(ctx context.Context, t *turn, dsn, path string, mode Mode, cost *Cost, sql string) (*Tx, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tx := &Tx{ctx: ctx, path: path, mode: mode, cost: *cost, turn: t, idle: map[string]driver.Stmt{}, columns: map[string]map[string]bool{}}
	tx.still = func() error { return nil }
	err := tx.guard(func() (err error) {
		tx.conn, err = new(sqlite.Driver).Open(dsn)
		return err
	})
	if err == nil {
		err = tx.insist(sql)
	}
	if err == nil {
		tx.open = true
		_, _, err = tx.Int("PRAGMA user_version")
	}
	if err == nil && mode == Immutable {
		err = tx.whole()
	}
	if err == nil {
		return tx, nil
	}
	tx.close()
	if mode == SharedMemory || mode == Locked {
		switch code(err) & 0xff {
		case lib.SQLITE_CANTOPEN, lib.SQLITE_READONLY, lib.SQLITE_PROTOCOL:
			return nil, errUnusable
		}
	}
	return nil, tx.wrap(err)
}

// whole says whether the file ends with a whole page; SQLite would read zeros where one is cut.
func (tx *Tx) whole() error {
	page, _, err := tx.Int("PRAGMA page_size")
	if err != nil {
		return err
	}
	info, err := os.Stat(tx.path)
	if err == nil && info.Size()%page != 0 {
		err = &Error{Path: tx.path, Doing: "read", Kind: ErrCorrupt, Detail: fmt.Sprintf("it is cut short at byte %d, within a page", info.Size())}
	}
	return err
}

func (tx *Tx) wrap(err error) error {
	if err == nil {
		return nil
	}
	if canceled := canceled(tx.ctx, err); canceled != nil {
		return canceled
	}
	doing := "read"
	if tx.mode == Writing {
		doing = "write"
	}
	return wrap(tx.path, doing, err)
}

func (tx *Tx) close() {
	for _, m := range tx.maps {
		m.close()
	}
	tx.maps = nil
	if tx.conn == nil || tx.dead {
		return
	}
	_ = tx.guard(func() error { // nothing to be saved depends on these
		if tx.open {
			tx.ctx = context.WithoutCancel(tx.ctx)
			tx.exec("ROLLBACK")
		}
		for _, s := range tx.idle { // one left open would keep the file open
			s.Close()
		}
		return nil
	})
	_ = tx.guard(tx.conn.Close)
	tx.conn, tx.open = nil, false
}

func (tx *Tx) commit() error {
	err := tx.insist("COMMIT")
	if err == nil {
		tx.open = false
	}
	return tx.wrap(err)
}

// insist runs a statement that takes a lock, as often as its turn lasts.
func (tx *Tx) insist(sql string) error {
	for {
		_, err := tx.exec(sql)
		if tx.turn == nil || code(err)&0xff != lib.SQLITE_BUSY || !tx.turn.wait() {
			return err
		}
	}
}

// Mode is how the file was opened.
func (tx *Tx) Mode() Mode { return tx.mode }

// Cost is what the snapshot cost so far.
func (tx *Tx) Cost() Cost { return tx.cost }

// Still says whether the snapshot holds, which only an unlocked read must ask; f returns its error as it is and is
// called again.
func (tx *Tx) Still() error { return tx.still() }

// UserVersion is the file's PRAGMA user_version.
func (tx *Tx) UserVersion() (int64, error) {
	v, _, err := tx.Int("PRAGMA user_version")
	return v, err
}

// Columns are the names of a table's ordinary columns; empty if there is no such table. Views and virtual tables do
// not count: what they compute is not to be trusted.
func (tx *Tx) Columns(table string) (map[string]bool, error) {
	if c, ok := tx.columns[table]; ok {
		return c, nil
	}
	c := map[string]bool{}
	err := tx.Each(`SELECT i.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS i
		WHERE m.type = 'table' AND m.name = ?1 AND m.rootpage > 0`, func(r *Row) error {
		c[r.Text(0)] = true
		return nil
	}, table)
	if err != nil {
		return nil, err
	}
	if tx.mode != Writing {
		tx.columns[table] = c
	}
	return c, nil
}

// HasTable says whether there is an ordinary table of that name.
func (tx *Tx) HasTable(name string) (bool, error) {
	c, err := tx.Columns(name)
	return len(c) > 0, err
}

// Int is the first column of the first row as a whole number; false if there is no row or it holds none.
func (tx *Tx) Int(query string, args ...any) (n int64, ok bool, err error) {
	err = tx.Each(query, func(r *Row) error {
		n, ok = r.Int(0)
		return errEnough
	}, args...)
	return n, ok, err
}

// Text is the first column of the first row; false if there is no row or it holds no text.
func (tx *Tx) Text(query string, args ...any) (s string, ok bool, err error) {
	err = tx.Each(query, func(r *Row) error {
		s, ok = r.vals[0].(string)
		return errEnough
	}, args...)
	return s, ok, err
}

var errEnough = errors.New("enough")

// Each runs one query and calls f for every row, in order, until f fails. Args are int, int64, float64, string,
// []byte, bool or nil. Queries may be nested.
func (tx *Tx) Each(query string, f func(*Row) error, args ...any) error {
	stmt, err := tx.prepare(query)
	if err != nil {
		return tx.wrap(err)
	}
	var rows driver.Rows
	err = tx.guard(func() (err error) {
		rows, err = stmt.(driver.StmtQueryContext).QueryContext(tx.ctx, named(args))
		return err
	})
	if err != nil {
		_ = tx.guard(stmt.Close)
		return tx.wrap(err)
	}
	defer func() {
		_ = tx.guard(rows.Close)
		tx.release(query, stmt)
	}()
	row := Row{vals: make([]driver.Value, len(rows.Columns()))}
	next := func() error { return rows.Next(row.vals) }
	for {
		if err := tx.ctx.Err(); err != nil {
			return err
		}
		switch err := tx.guard(next); {
		case err == io.EOF:
			return nil
		case err != nil:
			return tx.wrap(err)
		}
		if err := f(&row); err == errEnough {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// Exec runs one statement of a Write and gives the number of rows it changed.
func (tx *Tx) Exec(query string, args ...any) (changed int64, err error) {
	changed, err = tx.exec(query, args...)
	return changed, tx.wrap(err)
}

func (tx *Tx) exec(query string, args ...any) (changed int64, err error) {
	if tx.broken != nil {
		if err := tx.broken(query); err != nil {
			return 0, err
		}
	}
	stmt, err := tx.prepare(query)
	if err != nil {
		return 0, err
	}
	defer tx.release(query, stmt)
	err = tx.guard(func() error {
		res, err := stmt.(driver.StmtExecContext).ExecContext(tx.ctx, named(args))
		if err == nil {
			changed, err = res.RowsAffected()
		}
		return err
	})
	if tx.recorder != nil {
		if e := tx.recorder.told(); e != nil {
			err = e
		} else if err == nil && makes(query) {
			err = tx.recorder.learn()
		}
	}
	return changed, err
}

// makes says that a statement may have made a table.
func makes(query string) bool {
	const word = "CREATE"
	query = strings.TrimSpace(query)
	return len(query) > len(word) && strings.EqualFold(query[:len(word)], word)
}

// prepare takes a statement out of the idle ones, so that a nested use of the same text gets its own.
func (tx *Tx) prepare(query string) (stmt driver.Stmt, err error) {
	if s, ok := tx.idle[query]; ok {
		delete(tx.idle, query)
		return s, nil
	}
	err = tx.guard(func() error {
		stmt, err = tx.conn.Prepare(query)
		return err
	})
	return stmt, err
}

// maxIdle is how many statements wait to be used again: taking rows back has three a table.
const maxIdle = 128

func (tx *Tx) release(query string, stmt driver.Stmt) {
	if _, taken := tx.idle[query]; taken || len(tx.idle) >= maxIdle {
		_ = tx.guard(stmt.Close)
		return
	}
	tx.idle[query] = stmt
}

func named(args []any) []driver.NamedValue {
	out := make([]driver.NamedValue, len(args))
	for i, a := range args {
		if n, ok := a.(int); ok {
			a = int64(n)
		}
		out[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return out
}

// Row is the row that Each is at, until it goes on. The values that it gives stay valid.
type Row struct{ vals []driver.Value }

// Clone is the row on its own, for when Each has gone on.
func (r *Row) Clone() Row { return Row{slices.Clone(r.vals)} }

// Null says whether column i holds nothing.
func (r *Row) Null(i int) bool { return r.vals[i] == nil }

// Int is column i if it holds a whole number.
func (r *Row) Int(i int) (n int64, ok bool) {
	n, ok = r.vals[i].(int64)
	return n, ok
}

// Text is column i if it holds text, else "".
func (r *Row) Text(i int) string {
	s, _ := r.vals[i].(string)
	return s
}

// Bytes are the bytes of a text or a blob in column i, else nil. They must not be written to.
func (r *Row) Bytes(i int) []byte {
	switch v := r.vals[i].(type) {
	case string:
		return unsafe.Slice(unsafe.StringData(v), len(v))
	case []byte:
		return v
	}
	return nil
}

// Value is column i as it is stored: nil, int64, float64, string or []byte.
func (r *Row) Value(i int) any { return r.vals[i] }
