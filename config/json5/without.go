package json5

import "slices"

// Without is a text without the members of an object that have some key, all
// of them where it stands there more than once. Everything else keeps its
// bytes, comments included: only the white space of a line that is left empty
// goes too, and a comma that would stand behind the last member. doc must have
// been parsed from data, and object be of it.
func Without(data []byte, doc *Document, object *Node, key string) []byte {
	out := slices.Clone(data)
	cut := func(from, to int) {
		for i := from; i < to; i++ {
			out[i] = 0 // a byte that stands nowhere in JSON5 outside of a string
		}
	}
	last := -1 // the last member that stays
	for i, m := range object.Members {
		if m.Key != key {
			last = i
		}
	}
	for i, m := range object.Members {
		end := object.Span.End - 1 // the closing brace
		if i+1 < len(object.Members) {
			end = object.Members[i+1].KeySpan.Start
		}
		comma := doc.comma(data, m.Value.Span.End, end)
		if m.Key == key {
			cut(m.KeySpan.Start, m.Value.Span.End)
			if comma >= 0 {
				cut(comma, comma+1)
			}
		} else if i == last && i+1 < len(object.Members) && comma >= 0 {
			if tail := object.Members[len(object.Members)-1]; doc.comma(data, tail.Value.Span.End, object.Span.End-1) < 0 {
				cut(comma, comma+1) // there was none behind the last member, and so there is none now
			}
		}
	}
	return squeeze(out, data)
}

// comma is where a comma stands between two places, outside of comments; -1
// for none.
func (d *Document) comma(data []byte, from, to int) int {
	for i := from; i < to; i++ {
		for _, c := range d.Comments {
			if c.Span.Start <= i && i < c.Span.End {
				i = c.Span.End
			}
		}
		if i < to && data[i] == ',' {
			return i
		}
	}
	return -1
}

// squeeze takes out the bytes that were cut, and with them lines of which
// nothing but white space is left.
func squeeze(out, data []byte) []byte {
	kept := make([]byte, 0, len(out))
	for from := 0; from < len(out); {
		to := from
		for to < len(out) && data[to] != '\n' {
			to++
		}
		if to < len(out) {
			to++
		}
		touched, blank := false, true
		for i := from; i < to; i++ {
			switch {
			case out[i] == 0 && data[i] != 0:
				touched = true
			case out[i] != ' ' && out[i] != '\t' && out[i] != '\r' && out[i] != '\n':
				blank = false
			}
		}
		if !touched || !blank {
			for i := from; i < to; i++ {
				if out[i] != 0 || data[i] == 0 {
					kept = append(kept, out[i])
				}
			}
		}
		from = to
	}
	return kept
}
