package commands

import (
	"bytes"
	"iter"
	"strconv"

	"oc/store/span"
	"oc/transcript"
)

// A message above this size in bytes is written in pieces, each of which has about as much of a text as the next says: what is done to a text
// takes several times its size, and a transcript may have lines of 80 MB.
const (
	pieceOf   = 4 << 20
	pieceSize = 1 << 20
)

// pieces are a message as several that follow each other, each with a part of its texts and made when it is asked for; the message itself
// where it is not long. A text is cut between its lines, so that a credential stays whole.
func pieces(raw []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		parts, put := cut(raw)
		if len(raw) <= pieceOf || len(parts) < 2 {
			yield(raw)
			return
		}
		for len(parts) > 0 {
			n, size := 1, parts[0].size
			for n < len(parts) && size+parts[n].size <= pieceSize {
				size += parts[n].size
				n++
			}
			if !yield(put(parts[:n])) {
				return
			}
			parts = parts[n:]
		}
	}
}

// A slice is a part of a message that is made when it is needed.
type slice struct {
	size int
	make func() []byte
}

// cut is what a message says in parts, and how some of them are put into a message again.
func cut(raw []byte) (parts []slice, put func([]slice) []byte) {
	content := span.Member(raw, "content")
	array := func(parts []slice) []byte {
		list := []byte{'['}
		for i, p := range parts {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, p.make()...)
		}
		return withMember(raw, "content", append(list, ']'))
	}
	switch span.KindOf(content) {
	case span.String:
		for _, text := range cutText(content, pieceSize) {
			parts = append(parts, slice{len(text), func() []byte { return append(inQuotes([]byte(`{"type":"text","text":`), text), '}') }})
		}
		return parts, array
	case span.Array:
		_, _ = span.Items(content, 0, func(b []byte) error {
			parts = append(parts, cutBlock(b)...)
			return nil
		})
		return parts, array
	}
	for _, text := range cutText(span.Member(raw, "output"), pieceSize) {
		parts = append(parts, slice{pieceSize, func() []byte { return withMember(raw, "output", inQuotes(nil, text)) }})
	}
	return parts, func(parts []slice) []byte { return parts[0].make() }
}

// cutBlock is a block as several with parts of its text.
func cutBlock(b []byte) (parts []slice) {
	for _, name := range []string{"text", "thinking"} {
		if text := span.Member(b, name); len(text) > pieceSize && span.KindOf(text) == span.String {
			for _, part := range cutText(text, pieceSize) {
				parts = append(parts, slice{len(part), func() []byte { return withMember(b, name, inQuotes(nil, part)) }})
			}
			return parts
		}
	}
	return []slice{{len(b), func() []byte { return b }}}
}

// inQuotes is the inside of a JSON string with its quotes.
func inQuotes(dst, inner []byte) []byte { return append(append(append(dst, '"'), inner...), '"') }

// withMember is an object with another value of a member that it has.
func withMember(b []byte, name string, with []byte) []byte {
	out := make([]byte, 0, len(with)+256)
	out = append(out, '{')
	_, _ = span.Each(b, 0, func(key, val []byte) error {
		if len(out) > 1 {
			out = append(out, ',')
		}
		if span.Is(key, name) {
			val = with
		}
		out = append(append(append(out, key...), ':'), val...)
		return nil
	})
	return append(out, '}')
}

// cutText is the inside of a JSON string in parts of about a size in bytes; nothing for another value. It is cut behind a line break, best behind an empty line; a line that is too long is cut at a blank, or
// at last between two letters, and a private key is not cut at all.
func cutText(text []byte, size int) (all [][]byte) {
	if span.KindOf(text) != span.String {
		return nil
	}
	inner := text[1 : len(text)-1]
	start := 0
	var at [4]int // the last places behind an empty line, a line, a blank, a letter; 0: none
	give := func(end int) {
		all = append(all, inner[start:end])
		start, at = end, [4]int{}
	}
	breakAt := -1 // where the last line break ended
	for i := 0; i < len(inner); {
		n := 1
		switch c := inner[i]; {
		case c == '\\' && i+1 < len(inner):
			if n = 2; inner[i+1] == 'u' {
				n = 6
			}
			if inner[i+1] != 'u' || inner[i+2]|0x20 != 'd' { // not one of a pair
				at[3] = i + n
			}
			if inner[i+1] == 'n' {
				if i == breakAt {
					at[0] = i + n
				}
				if i == 0 || inner[i-1] != ':' && inner[i-1] != '=' { // where the value may stand in the next line
					at[1] = i + n
				}
				breakAt = i + n
			}
		case c == ' ':
			at[2] = i + 1
		case c < 0x80 || c >= 0xc0:
			if i > start && inner[i-1] != '\\' {
				at[3] = i
			}
		}
		i += n
		if i-start < size {
			continue
		}
		end := 0
		for k, place := range at {
			if place > start+size/2 || k == len(at)-1 && place > start {
				end = place
				break
			}
		}
		if key := openKey(inner[start:max(start, end)]); key > 0 {
			end = start + key
		} else if key == 0 && i-start < 4*size {
			continue // the key ends in what follows
		}
		if end > start {
			give(end)
			i, breakAt = end, -1
		}
	}
	if start < len(inner) || len(all) == 0 {
		give(len(inner))
	}
	return all
}

// openKey is where a private key begins that does not end in the text; -1 where there is none.
func openKey(text []byte) int {
	begin := bytes.LastIndex(text, []byte("-----BEGIN "))
	if begin < 0 || bytes.Contains(text[begin:], []byte("-----END ")) {
		return -1
	}
	return begin
}

// withoutData is a message whose large images say how large they are, and have no data.
func withoutData(raw []byte) []byte {
	content := span.Member(raw, "content")
	if len(raw) <= pieceOf || span.KindOf(content) != span.Array {
		return raw
	}
	var blocks [][]byte
	changed := false
	_, _ = span.Items(content, 0, func(b []byte) error {
		if data := span.Member(b, "data"); len(data) > pieceSize && span.KindOf(data) == span.String {
			b = without(b, "data")
			b = append(b[:len(b)-1], `,"bytes":`+strconv.Itoa(len(data)-2)+`}`...)
			changed = true
		}
		blocks = append(blocks, b)
		return nil
	})
	if !changed {
		return raw
	}
	return withMember(raw, "content", append(append([]byte{'['}, bytes.Join(blocks, []byte{','})...), ']'))
}

// speaksOnly tells whether a message has neither thoughts nor calls beside what it says.
func speaksOnly(raw []byte) bool {
	switch transcript.Role(raw) {
	case "user", "tool", "toolResult", "bashExecution":
		return true
	}
	return false
}
