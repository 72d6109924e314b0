// Package json5 reads JSON5 (and so JSON) into a tree that knows where every value stands.
//
// The tree keeps what an editor of the file needs: byte spans of keys and values, the order of members, duplicate keys and comments.
// It accepts what the npm package json5 2.2.3 accepts, which is what OpenClaw reads its configuration with (spec/file-store.md 1.4,
// release 2026.7.35): a byte order mark and every Unicode space between tokens, \x41, identifiers with escapes, hexadecimal and
// signed numbers, Infinity and NaN, single quotes, line continuations, trailing commas, U+2028 and U+2029 inside strings.
package json5

import (
	"fmt"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may nest; deeper input is an error, not a stack overflow.
const MaxDepth = 1000

// Kind says what a Node is.
type Kind uint8

// The kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

var kindNames = [...]string{"null", "boolean", "number", "string", "array", "object"}

// String names the kind as an error message would.
func (k Kind) String() string { return kindNames[k] }

// Span is a range of bytes of the input, Start inclusive, End exclusive.
type Span struct{ Start, End int }

// Node is one value.
type Node struct {
	Kind    Kind
	Span    Span
	Bool    bool
	Number  float64  // as JavaScript would read it: rounded, NaN and infinities allowed
	Text    string   // of a String, decoded; a lone surrogate is kept as its three WTF-8 bytes
	Items   []*Node  // of an Array
	Members []Member // of an Object, in the order of the file, duplicates included
}

// Member is one key and value of an object.
type Member struct {
	Key      string // decoded, as Node.Text
	KeySpan  Span   // with its quotes, if it has any
	Value    *Node
	Shadowed bool // a later member of the same object has the same key, and wins
}

// Comment is one comment; Span includes its marks, but not the end of the line.
type Comment struct {
	Span  Span
	Block bool // between /* and */
}

// Document is a parsed input.
type Document struct {
	Root     *Node
	Comments []Comment // in the order of the file
}

// Error is a place where the input is not JSON5.
type Error struct {
	Byte   int // offset from 0
	Line   int // from 1; lines end at line feeds
	Column int // from 1, in characters
	Reason string
}

// Error says where and why in one line.
func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d (byte %d): %s", e.Line, e.Column, e.Byte, e.Reason)
}

// Position turns a byte offset of data into a line and a column, both from 1; the column counts characters.
func Position(data []byte, offset int) (line, column int) {
	offset = min(offset, len(data))
	start := 0
	line = 1
	for i := 0; i < offset; i++ {
		if data[i] == '\n' {
			line++
			start = i + 1
		}
	}
	return line, utf8.RuneCount(data[start:offset]) + 1
}

// Parse reads one JSON5 value, with nothing but white space and comments around it. The error is always an *Error.
// Bytes that are not UTF-8 stand for U+FFFD inside strings and are an error elsewhere.
func Parse(data []byte) (doc *Document, err error) {
	p := &parser{data: data}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			doc, err = nil, e
		}
	}()
	p.space()
	root := p.value(0)
	p.space()
	if p.pos < len(data) {
		p.fail(p.pos, "unexpected "+p.describe()+" after the end of the value")
	}
	return &Document{Root: root, Comments: p.comments}, nil
}
