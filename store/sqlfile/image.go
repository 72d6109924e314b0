package sqlfile

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// An image is the values of one row, in the order of its table's columns: a tag each, then what it holds.
const (
	tagNull byte = iota
	tagInt       // varint
	tagReal      // eight bytes
	tagText      // length, bytes: whatever they are, UTF-8 or not, NUL or not
	tagBlob      // length, bytes
)

var (
	errMemory = errors.New("the database engine has no memory left")
	errImage  = errors.New("the saved rows are damaged")
)

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case int64:
		return binary.AppendVarint(append(b, tagInt), v)
	case float64:
		return binary.BigEndian.AppendUint64(append(b, tagReal), math.Float64bits(v))
	case string:
		return append(binary.AppendUvarint(append(b, tagText), uint64(len(v))), v...)
	case []byte:
		return append(binary.AppendUvarint(append(b, tagBlob), uint64(len(v))), v...)
	}
	return append(b, tagNull)
}

// cutValue takes the first value off b. Text and blobs of it share b's memory only as copies.
func cutValue(b []byte) (v any, rest []byte, err error) {
	if len(b) == 0 {
		return nil, nil, errImage
	}
	tag, b := b[0], b[1:]
	switch tag {
	case tagNull:
		return nil, b, nil
	case tagInt:
		n, used := binary.Varint(b)
		if used <= 0 {
			return nil, nil, errImage
		}
		return n, b[used:], nil
	case tagReal:
		if len(b) < 8 {
			return nil, nil, errImage
		}
		return math.Float64frombits(binary.BigEndian.Uint64(b)), b[8:], nil
	case tagText, tagBlob:
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			return nil, nil, errImage
		}
		b = b[used:]
		if tag == tagText {
			return string(b[:n]), b[n:], nil
		}
		return append(make([]byte, 0, n), b[:n]...), b[n:], nil // an empty blob is no NULL
	}
	return nil, nil, errImage
}

// cutValues takes n values off b.
func cutValues(b []byte, n int) (vals []any, rest []byte, err error) {
	vals = make([]any, n)
	for i := range vals {
		if vals[i], b, err = cutValue(b); err != nil {
			return nil, nil, err
		}
	}
	return vals, b, nil
}

// mark is what is kept of a row's image where the image itself is not wanted.
type mark [16]byte

// MarshalText and UnmarshalText make it hexadecimal in JSON.
func (m mark) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, m[:]), nil }

func (m *mark) UnmarshalText(b []byte) error {
	if len(b) != 2*len(m) {
		return errImage
	}
	_, err := hex.Decode(m[:], b)
	return err
}

func markOf(image []byte) mark {
	sum := sha256.Sum256(image)
	return mark(sum[:16])
}

// imaged is a table whose rows are kept.
type imaged struct {
	Name    string   `json:"name"`
	Virtual string   `json:"virtual,omitempty"` // the full-text table whose rows it holds, through which they are written
	Columns []string `json:"columns"`
	Named   []string `json:"named,omitempty"` // of the full-text table, for Columns[1:]
	Key     []int    `json:"key,omitempty"`   // its primary key; none: the rowid
	Rowids  bool     `json:"rowids,omitempty"`
	Rowid   int      `json:"rowid"` // the column that is the rowid; -1: none
	Ties    []int    `json:"ties,omitempty"`

	number  int
	odd     string         // why its rows cannot be kept
	touched map[int64]byte // what became of its rows, by rowid
	queries map[string]string
}

// What became of a row in the transaction.
const (
	wasThere byte = 1 << iota
	isThere
)

// tables lists the tables whose rows can change, by name. Shadow tables of the engine's own, which follow from others, have nil.
func (tx *Tx) tables(ties []string) (map[string]*imaged, error) {
	all := map[string]*imaged{}
	shadows := map[string]bool{}
	err := tx.Each(`SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main'`, func(r *Row) error {
		name, kind := r.Text(0), r.Text(1)
		wr, _ := r.Int(2)
		switch kind {
		case "table":
			all[name] = &imaged{Name: name, Rowids: wr == 0, Rowid: -1}
		case "shadow":
			all[name], shadows[name] = nil, true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// The rows of a full-text table that keeps its own content.
	virtual := map[string]string{}
	err = tx.Each(`SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage = 0 AND lower(sql) LIKE '%using fts5%'`, func(r *Row) error {
		if content := r.Text(0) + "_content"; shadows[content] {
			all[content] = &imaged{Name: content, Virtual: r.Text(0), Rowids: true, Rowid: -1}
			virtual[r.Text(0)] = content
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	named := map[string][]string{}
	err = tx.Each(`SELECT l.name, i.name, i.type, i.pk, i.hidden FROM pragma_table_list AS l JOIN pragma_table_xinfo(l.name) AS i
		WHERE l.schema = 'main' AND l.type IN ('table', 'shadow', 'virtual') ORDER BY l.name, i.cid`, func(r *Row) error {
		pk, _ := r.Int(3)
		hidden, _ := r.Int(4)
		if content, ok := virtual[r.Text(0)]; ok && hidden == 0 {
			named[content] = append(named[content], r.Text(1))
		}
		t := all[r.Text(0)]
		if t == nil {
			return nil
		}
		if hidden != 0 {
			t.odd = "it has a generated column"
		}
		if pk > 0 {
			for len(t.Key) < int(pk) {
				t.Key = append(t.Key, 0)
			}
			t.Key[pk-1] = len(t.Columns)
			if strings.EqualFold(r.Text(2), "INTEGER") {
				t.Rowid = len(t.Columns)
			}
		}
		t.Columns = append(t.Columns, r.Text(1))
		return nil
	})
	if err != nil {
		return nil, err
	}
	for name, t := range all {
		if t == nil {
			continue
		}
		if len(t.Key) != 1 || !t.Rowids {
			t.Rowid = -1
		}
		if t.Named = named[name]; t.Virtual != "" && len(t.Named) != len(t.Columns)-1 {
			t.odd = "its full-text table has other columns"
		}
		for i, c := range t.Columns {
			if t.Virtual != "" && i > 0 && i <= len(t.Named) {
				c = t.Named[i-1]
			}
			if slices.Contains(ties, c) {
				t.Ties = append(t.Ties, i)
			}
		}
	}
	return all, nil
}

// key gives the values by which a row is known.
func (t *imaged) key(rowid int64, vals []any) []any {
	if len(t.Key) == 0 {
		return []any{rowid}
	}
	key := make([]any, len(t.Key))
	for i, c := range t.Key {
		key[i] = vals[c]
	}
	return key
}

// id is a key as a name that is the only one in a transaction.
func (t *imaged) id(key []any) string {
	b := binary.AppendUvarint(nil, uint64(t.number))
	for _, v := range key {
		b = appendValue(b, v)
	}
	return string(b)
}

// said is a key for a person.
func (t *imaged) said(key []any) string {
	parts := make([]string, len(key))
	for i, v := range key {
		if b, ok := v.([]byte); ok {
			v = fmt.Sprintf("x'%x'", b)
		}
		parts[i] = fmt.Sprint(v)
	}
	name := t.Name
	if t.Virtual != "" {
		name = t.Virtual
	}
	return name + " " + strings.Join(parts, ", ")
}

// tied gives what ties the row to others: texts that are not empty.
func (t *imaged) tied(vals []any) (ties []string) {
	for _, c := range t.Ties {
		if s, ok := vals[c].(string); ok && s != "" {
			ties = append(ties, s)
		}
	}
	return ties
}

// query builds a statement once.
func (t *imaged) query(what string, build func() string) string {
	if q, ok := t.queries[what]; ok {
		return q
	}
	if t.queries == nil {
		t.queries = map[string]string{}
	}
	q := build()
	t.queries[what] = q
	return q
}

// listed are the columns as they are stored: a sign keeps the driver from making times of them.
func (t *imaged) listed() string {
	cols := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		cols[i] = "+" + quoted(c)
	}
	return strings.Join(cols, ", ")
}

func (t *imaged) where() string {
	if len(t.Key) == 0 {
		return "_rowid_ = ?1"
	}
	parts := make([]string, len(t.Key))
	for i, c := range t.Key {
		parts[i] = fmt.Sprintf("%s IS ?%d", quoted(t.Columns[c]), i+1)
	}
	return strings.Join(parts, " AND ")
}

func (t *imaged) rowidColumn() string {
	if t.Rowids {
		return "_rowid_"
	}
	return "0"
}

// find reads the row of a key.
func (t *imaged) find(tx *Tx, key []any) (rowid int64, vals []any, found bool, err error) {
	q := t.query("find", func() string {
		return "SELECT " + t.rowidColumn() + ", " + t.listed() + " FROM " + quoted(t.Name) + " WHERE " + t.where()
	})
	return t.one(tx, q, key)
}

// at reads the row of a rowid.
func (t *imaged) at(tx *Tx, rowid int64) (vals []any, found bool, err error) {
	q := t.query("at", func() string {
		return "SELECT _rowid_, " + t.listed() + " FROM " + quoted(t.Name) + " WHERE _rowid_ = ?1"
	})
	_, vals, found, err = t.one(tx, q, []any{rowid})
	return vals, found, err
}

func (t *imaged) one(tx *Tx, q string, args []any) (rowid int64, vals []any, found bool, err error) {
	err = tx.Each(q, func(r *Row) error {
		rowid, _ = r.Int(0)
		vals, found = make([]any, len(t.Columns)), true
		for i := range vals {
			vals[i] = r.Value(i + 1)
			if b, ok := vals[i].([]byte); ok && b == nil {
				vals[i] = []byte{}
			}
		}
		return errEnough
	}, args...)
	return rowid, vals, found, err
}

func imageOf(b []byte, vals []any) []byte {
	for _, v := range vals {
		b = appendValue(b, v)
	}
	return b
}

// remove and insert write a row, through the full-text table where it is one's.
func (t *imaged) remove(tx *Tx, key []any) (int64, error) {
	if t.Virtual != "" {
		return tx.Exec("DELETE FROM "+quoted(t.Virtual)+" WHERE rowid = ?1", key...)
	}
	q := t.query("remove", func() string { return "DELETE FROM " + quoted(t.Name) + " WHERE " + t.where() })
	return tx.Exec(q, key...)
}

func (t *imaged) insert(tx *Tx, rowid int64, vals []any) error {
	own := t.Rowids && t.Rowid < 0 && len(t.Key) > 0 // a rowid that nobody knows the row by
	if own {
		n, _, err := tx.Int(t.query("taken", func() string { return "SELECT count(*) FROM " + quoted(t.Name) + " WHERE _rowid_ = ?1" }), rowid)
		if err != nil {
			return err
		}
		own = n == 0 // else another row has it since: any will do
	}
	withRowid := own || t.Rowids && len(t.Key) == 0
	name := fmt.Sprint("insert", withRowid)
	q := t.query(name, func() string {
		into, columns := t.Name, t.Columns
		if t.Virtual != "" {
			into, columns = t.Virtual, append([]string{"rowid"}, t.Named...)
		}
		cols := make([]string, 0, len(columns)+1)
		for _, c := range columns {
			cols = append(cols, quoted(c))
		}
		if withRowid {
			cols = append(cols, "_rowid_")
		}
		return "INSERT INTO " + quoted(into) + " (" + strings.Join(cols, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(cols)-1) + ")"
	})
	if withRowid {
		vals = append(slices.Clone(vals), rowid)
	}
	_, err := tx.Exec(q, vals...)
	return err
}
