package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"oc/config/json5"
	"oc/store/span"
)

// Node is a value of the configuration after includes and substitution; it knows which file says so, and where.
// The methods of a nil Node answer that nothing is there.
type Node struct {
	Kind    json5.Kind
	Bool    bool
	Number  float64
	Text    string   // of a string, after substitution
	Items   []*Node  // of an array
	Members []Member // of an object, in JavaScript's order: integer-like keys first, each key once
	Span    json5.Span

	file *file
}

// Member is a key of an object and its value.
type Member struct {
	Key     string
	KeySpan json5.Span
	Value   *Node
}

// file is one file that the configuration was read from.
type file struct {
	path string
	data []byte
}

// At follows keys down from the node.
func (n *Node) At(path ...string) *Node {
	for _, key := range path {
		n = n.member(key)
	}
	return n
}

func (n *Node) member(key string) *Node {
	if n == nil || n.Kind != json5.Object {
		return nil
	}
	for i := range n.Members {
		if n.Members[i].Key == key {
			return n.Members[i].Value
		}
	}
	return nil
}

// Null tells whether nothing is there, or null is.
func (n *Node) Null() bool { return n == nil || n.Kind == json5.Null }

// Str returns the text of a string.
func (n *Node) Str() (string, bool) {
	if n == nil || n.Kind != json5.String {
		return "", false
	}
	return n.Text, true
}

// Num returns a number.
func (n *Node) Num() (float64, bool) {
	if n == nil || n.Kind != json5.Number {
		return 0, false
	}
	return n.Number, true
}

// Flag returns a boolean.
func (n *Node) Flag() (value, ok bool) {
	if n == nil || n.Kind != json5.Bool {
		return false, false
	}
	return n.Bool, true
}

// False reports that the value is the literal false, which switches some limits off.
func (n *Node) False() bool { return n != nil && n.Kind == json5.Bool && !n.Bool }

// Scalar returns a string as it is and a number as JavaScript writes it: the text that durations and sizes are parsed from.
func (n *Node) Scalar() (string, bool) {
	if f, ok := n.Num(); ok {
		return string(span.AppendFloat(nil, f)), true
	}
	return n.Str()
}

// Place names the file of the value, and its line and column from 1.
func (n *Node) Place() (path string, line, col int) {
	if n == nil || n.file == nil {
		return "", 0, 0
	}
	line, col = json5.Position(n.file.data, n.Span.Start)
	return n.file.path, line, col
}

// truthy is JavaScript's idea of true.
func (n *Node) truthy() bool {
	if n == nil {
		return false
	}
	switch n.Kind {
	case json5.Null:
		return false
	case json5.Bool:
		return n.Bool
	case json5.Number:
		return n.Number != 0 && n.Number == n.Number
	case json5.String:
		return n.Text != ""
	}
	return true
}

// lift makes the tree of one file. Of duplicate keys the last value counts, at the first one's place; __proto__ never counts.
func lift(from *json5.Node, f *file) *Node {
	n := &Node{Kind: from.Kind, Bool: from.Bool, Number: from.Number, Text: from.Text, Span: from.Span, file: f}
	for _, item := range from.Items {
		n.Items = append(n.Items, lift(item, f))
	}
	for _, m := range from.Members {
		if m.Key != "__proto__" {
			n.Members = append(n.Members, Member{Key: m.Key, KeySpan: m.KeySpan, Value: lift(m.Value, f)})
		}
	}
	n.Members = ordered(n.Members)
	return n
}

// ordered puts members in JavaScript's order.
func ordered(members []Member) []Member {
	return span.Ordered(members, func(m *Member) string { return m.Key })
}

// merge lays source over target as OpenClaw does: arrays one after the other, objects key by key, anything else replaced.
func merge(target, source *Node) *Node {
	switch {
	case target.Kind == json5.Array && source.Kind == json5.Array:
		out := *target
		out.Items = slices.Concat(target.Items, source.Items)
		return &out
	case target.Kind == json5.Object && source.Kind == json5.Object:
		out := *target
		out.Members = slices.Clone(target.Members)
		index := make(map[string]int, len(out.Members))
		for i, m := range out.Members {
			index[m.Key] = i
		}
		for _, m := range source.Members {
			if m.Key == "prototype" || m.Key == "constructor" {
				continue
			}
			at, have := index[m.Key]
			if !have {
				index[m.Key] = len(out.Members)
				out.Members = append(out.Members, m)
				continue
			}
			out.Members[at].Value = merge(out.Members[at].Value, m.Value)
		}
		out.Members = ordered(out.Members)
		return &out
	}
	return source
}

// joinPath writes a path of keys as a warning shows it.
func joinPath(path ...string) string {
	out := ""
	for _, key := range path {
		out = keyPath(out, key)
	}
	return out
}

func indexPath(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// keyPath adds a key to a path; one that is no plain word is quoted, so that a path is one line and can be told apart.
func keyPath(path, key string) string {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return !agentRune(unicode.ToLower(r)) && r != '$' && r != '/' }) {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// within reports that the key path inner is outer or stands below it.
func within(inner, outer string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && (outer == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}
