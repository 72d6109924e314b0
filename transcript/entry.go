package transcript

import (
	"bytes"
	"errors"
	"time"

	"oc/store/span"
)

// Kind is the type of a row.
type Kind uint8

// The kinds of row. Opaque is every type that OpenClaw does not know: such rows
// are kept, and passed through on the way from a leaf to the root.
const (
	Opaque Kind = iota
	Header
	Message
	CustomMessage
	Custom
	Compaction
	BranchSummary
	ModelChange
	ThinkingChange
	Label
	SessionInfo
	Reset
	Leaf
)

var kindNames = [...]string{
	Header: "session", Message: "message", CustomMessage: "custom_message", Custom: "custom", Compaction: "compaction",
	BranchSummary: "branch_summary", ModelChange: "model_change", ThinkingChange: "thinking_level_change",
	Label: "label", SessionInfo: "session_info", Reset: "reset", Leaf: "leaf",
}

// String is the name of the kind in a row's type field, "" for Opaque.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return ""
}

// canonical rows move the leaf; Reset does too where the rules are those of a database.
func (k Kind) canonical() bool { return k >= Message && k <= SessionInfo }

// A Ref points at another row by its id. The zero Ref is an absent field.
type Ref struct {
	ID  []byte
	how refKind
}

type refKind uint8

const (
	refAbsent refKind = iota
	refNull
	refID
	refBad // a value that is no id: a number, blank text
)

// Absent tells whether the field is missing, Null whether it is null.
func (r Ref) Absent() bool { return r.how == refAbsent }

// Null tells whether the field is null: a root.
func (r Ref) Null() bool { return r.how == refNull }

// OK tells whether the field holds an id.
func (r Ref) OK() bool { return r.how == refID }

// An Entry is one row with the fields that its place in the tree hangs on. All
// byte slices are decoded text or raw JSON inside the row's own bytes, and
// valid as long as those are.
type Entry struct {
	Kind      Kind
	Type      []byte // the type field as text
	ID        []byte // nil where there is no usable id
	Parent    Ref
	Side      bool   // appendMode "side": does not move the leaf
	badMode   bool   // another appendMode
	Target    Ref    // of a leaf row
	AppendTo  Ref    // appendParentId of a leaf row
	KeptIndex []byte // raw firstKeptEntryIndex, up to version 1
	FirstKept Ref    // firstKeptEntryId of a compaction or a reset
	Stamp     []byte // raw timestamp
	Message   []byte // raw message
	Raw       []byte // the whole row
}

// ErrNotObject is the error of a row that is JSON but no object.
var ErrNotObject = errors.New("not an object")

// Parse reads one row. An error is a *span.SyntaxError or ErrNotObject; the
// fields in front of the error are set all the same, so that a row that is cut
// still tells what it was.
func Parse(row []byte) (Entry, error) {
	e := Entry{Raw: row}
	if span.KindOf(row) != span.Object {
		if err := span.Valid(row); err != nil {
			return e, err
		}
		return e, ErrNotObject
	}
	end, err := span.Each(row, 0, func(key, val []byte) error {
		e.field(key, val)
		return nil
	})
	if err == nil {
		err = span.End(row, end)
	}
	return e, err
}

func (e *Entry) field(key, val []byte) {
	if len(key) < 4 {
		return
	}
	switch key[1] {
	case 'i':
		if span.Is(key, "id") {
			e.ID = ref(val).ID
		}
	case 't':
		switch {
		case span.Is(key, "type"):
			e.Type = text(val)
			e.Kind = kindOf(e.Type)
		case span.Is(key, "timestamp"):
			e.Stamp = val
		case span.Is(key, "targetId"):
			e.Target = ref(val)
		}
	case 'p':
		if span.Is(key, "parentId") {
			e.Parent = ref(val)
		}
	case 'm':
		if span.Is(key, "message") {
			e.Message = val
		}
	case 'a':
		switch {
		case span.Is(key, "appendMode"):
			mode := text(val)
			e.Side = string(mode) == "side"
			e.badMode = !e.Side
		case span.Is(key, "appendParentId"):
			e.AppendTo = ref(val)
		}
	case 'f':
		switch {
		case span.Is(key, "firstKeptEntryId"):
			e.FirstKept = ref(val)
		case span.Is(key, "firstKeptEntryIndex"):
			e.KeptIndex = val
		}
	case '\\':
		// A name that is spelled with an escape in front.
		for _, name := range [...]string{
			`"id"`, `"type"`, `"parentId"`, `"timestamp"`, `"message"`, `"appendMode"`, `"targetId"`, `"appendParentId"`,
			`"firstKeptEntryId"`,
		} {
			if span.Is(key, name[1:len(name)-1]) {
				e.field([]byte(name), val)
			}
		}
	}
}

func kindOf(name []byte) Kind {
	for k := Header; k <= Leaf; k++ {
		if string(name) == kindNames[k] {
			return k
		}
	}
	return Opaque
}

// text decodes a string literal, nil for any other value.
func text(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return nil
	}
	in := raw[1 : len(raw)-1]
	if bytes.IndexByte(in, '\\') < 0 && ascii(in) {
		return in
	}
	s, _ := span.Text(raw)
	return []byte(s)
}

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

func ref(raw []byte) Ref {
	switch span.KindOf(raw) {
	case span.Null:
		return Ref{how: refNull}
	case span.String:
		if id := text(raw); !blank(id) {
			return Ref{ID: id, how: refID}
		}
	}
	return Ref{how: refBad}
}

// Time is when the row was written, in epoch milliseconds; ok is false where
// that is not known. It is the row's own timestamp, or its message's.
func (e *Entry) Time() (ms int64, ok bool) {
	if ms, ok := stamp(e.Stamp); ok {
		return ms, true
	}
	return stamp(span.Member(e.Message, "timestamp"))
}

// stamp reads an ISO time or a number of milliseconds.
func stamp(raw []byte) (int64, bool) {
	switch span.KindOf(raw) {
	case span.Number:
		if f, ok := span.Float(raw); ok && f >= -8.64e15 && f <= 8.64e15 {
			return int64(f), true
		}
	case span.String:
		s, _ := span.Text(raw)
		return isoTime(s)
	}
	return 0, false
}

func isoTime(s string) (int64, bool) {
	for _, layout := range [...]string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UnixMilli(), true
		}
	}
	return 0, false
}
