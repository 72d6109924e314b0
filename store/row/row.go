// Package row is what the stores of both eras have in common: the session key
// and the session entry.
//
// An Entry is the raw JSON of a row with an index of its members; a member is
// decoded when it is asked for. What the methods answer is what OpenClaw sees
// after it has loaded and normalised the row (spec/file-store.md 2.3, release
// 2026.7.35); the bytes of the row are never changed.
package row

import (
	"bytes"
	"errors"
	"math"
	"slices"

	"oc/store/span"
)

// An Entry is one row of a store.
type Entry struct {
	Key  string // the session key as it stands in the store, decoded
	Val  []byte // the raw value: an object, unless Check refuses it
	At   int    // the offset of Val in the text of the store; 0 for a row of a database
	mark []mark
}

// A mark is where a member of an entry stands, in bytes from the start of Val.
type mark struct {
	field    Field
	key, val uint32 // the name with its quotes, the value
	end      uint32
}

// ErrTooLarge is the answer for a single row of 4 GiB or more.
var ErrTooLarge = errors.New("the row is larger than 4 GiB")

// An Indexer indexes entries one after the other and keeps their marks in
// large pieces. The zero value is ready.
type Indexer struct{ free []mark }

// Index walks the object at the cursor, checks it, and returns the entry with
// its members marked. A value that is no object becomes an entry without
// members. The error is a *span.SyntaxError or ErrTooLarge.
func (x *Indexer) Index(key string, c *span.Cursor) (Entry, error) {
	e := Entry{Key: key, At: c.At}
	if c.At >= len(c.B) || c.B[c.At] != '{' {
		var err error
		e.Val, err = c.Value()
		return e, err
	}
	if cap(x.free) < 64 {
		x.free = make([]mark, 0, 8192)
	}
	marks, start := x.free[:0], c.At
	name, err := c.Open()
	for ; name != nil; name, err = c.Next() {
		val := c.At
		if _, err = c.Value(); err != nil {
			return e, err
		}
		if int64(c.At-start) > math.MaxUint32 {
			return e, ErrTooLarge
		}
		k := span.At(c.B, name)
		marks = append(marks, mark{fieldOf(name), uint32(k - start), uint32(val - start), uint32(c.At - start)})
	}
	if err != nil {
		return e, err
	}
	e.Val = c.B[start:c.At]
	e.mark = marks[:len(marks):len(marks)]
	if cap(marks) == cap(x.free) { // the marks lie in the piece: the rest is free
		x.free = marks[len(marks):]
	}
	return e, nil
}

// fieldOf is the field that a name with its quotes says.
func fieldOf(name []byte) Field {
	f := byName[string(name[1:len(name)-1])]
	if f == Undocumented && bytes.IndexByte(name, '\\') >= 0 {
		s, _ := span.Text(name)
		f = byName[s]
	}
	return f
}

// New indexes one row on its own, as it comes from a database.
func New(key string, val []byte) (Entry, error) {
	var x Indexer
	c := span.Cursor{B: val}
	e, err := x.Index(key, &c)
	if err != nil {
		return e, err
	}
	return e, span.End(val, c.At)
}

// Without is the entry without the given fields. Its bytes are a copy in room, if it holds them, else in room of its own;
// where the entry has none of the fields it is the entry itself. rest is the room that is left. The entry itself is not to be
// used any more.
func (e *Entry) Without(room []byte, fields ...Field) (without Entry, rest []byte) {
	gone := 0
	for _, m := range e.mark {
		if slices.Contains(fields, m.field) {
			gone += int(m.end - m.key)
		}
	}
	if gone == 0 {
		return *e, room
	}
	if cap(room) < len(e.Val)-gone {
		room = make([]byte, 0, max(len(e.Val)-gone, pieceBytes))
	}
	w := Entry{Key: e.Key, mark: e.mark[:0]}
	out := append(room[:0], '{')
	for _, m := range e.mark {
		if slices.Contains(fields, m.field) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		shift := m.key - uint32(len(out))
		out = append(out, e.Val[m.key:m.end]...)
		w.mark = append(w.mark, mark{m.field, m.key - shift, m.val - shift, m.end - shift})
	}
	out = append(out, '}')
	w.Val = out[:len(out):len(out)]
	return w, out[len(out):]
}

// pieceBytes is how much room is made at a time for small entries.
const pieceBytes = 256 << 10

// Raw is the raw value of a field, its last where it stands twice; nil where
// the row has none.
func (e *Entry) Raw(f Field) []byte {
	for i := len(e.mark) - 1; i >= 0; i-- {
		if m := &e.mark[i]; m.field == f {
			return e.Val[m.val:m.end]
		}
	}
	return nil
}

// A Member is a member of an entry as it stands there.
type Member struct {
	Field Field
	Name  string
	Val   []byte
}

// Members lists all members in the order of their properties, unknown ones
// included.
func (e *Entry) Members() []Member {
	ms := make([]Member, len(e.mark))
	for i, m := range e.mark {
		name := m.field.String()
		if m.field == Undocumented {
			end := m.val
			for e.Val[end-1] != '"' {
				end--
			}
			name, _ = span.Text(e.Val[m.key:end])
		}
		ms[i] = Member{m.field, name, e.Val[m.val:m.end]}
	}
	return span.Ordered(ms, func(m *Member) string { return m.Name })
}

// Text is the string that a field holds; ok is false where it holds none.
func (e *Entry) Text(f Field) (s string, ok bool) { return span.Text(e.Raw(f)) }

// Number is the number that a field holds, infinite ones included.
func (e *Entry) Number(f Field) (n float64, ok bool) { return span.Float(e.Raw(f)) }

// Flag tells whether a field is set, and whether it is a flag at all.
func (e *Entry) Flag(f Field) (set, ok bool) {
	raw := e.Raw(f)
	return len(raw) == 4 && raw[0] == 't', span.KindOf(raw) == span.Bool
}

// Stamp is the time that a field holds in epoch milliseconds; ok is false for
// what cannot be a time: no number, negative, infinite.
func (e *Entry) Stamp(f Field) (ms float64, ok bool) {
	n, ok := e.Number(f)
	return n, ok && n >= 0 && !math.IsInf(n, 0)
}

// Updated is updatedAt after loading: has is false where the row has none, and
// an impossible one (text, null, negative, infinite) is 0.
func (e *Entry) Updated() (ms float64, has bool) {
	raw := e.Raw(UpdatedAt)
	if raw == nil {
		return 0, false
	}
	if n, ok := e.Stamp(UpdatedAt); ok {
		return n, true
	}
	return 0, true
}

// IsSet tells whether a field is there and not null.
func (e *Entry) IsSet(f Field) bool { return !nullish(e.Raw(f)) }

// Truthy tells whether a raw value counts as true in JavaScript.
func Truthy(raw []byte) bool {
	switch span.KindOf(raw) {
	case span.Bool:
		return raw[0] == 't'
	case span.Number:
		f, _ := span.Float(raw)
		return f != 0
	case span.String:
		return len(raw) > 2
	case span.Array, span.Object:
		return true
	}
	return false
}

// Texts are the strings of a list, other members of it left out.
func (e *Entry) Texts(f Field) (all []string) {
	span.Items(e.Raw(f), 0, func(val []byte) error { //nolint:errcheck // not a list: none
		if s, ok := span.Text(val); ok {
			all = append(all, s)
		}
		return nil
	})
	return all
}
