package row

import (
	"bytes"
	"slices"

	"oc/store/span"
)

// A Change gives a member of a row a value, raw JSON; nil takes it out.
type Change struct {
	Name string
	Val  []byte
}

// Edit is a row with some members changed. Whatever else stands in it keeps
// its bytes, order and white space: values are replaced where they stand, new
// members come last, indented like the others. Of a name that stands twice the
// last counts, as everywhere; taking it out takes out all. Val must be an
// object that Index has accepted; the bytes of val are not changed, and where
// no change changes anything val itself comes back.
func Edit(val []byte, changes ...Change) []byte {
	type member struct{ from, key, val, end int } // from: behind the comma or bracket before it
	var all []member
	var names []string
	from := 1 + bytes.IndexByte(val, '{')
	first := from
	span.Each(val, 0, func(key, v []byte) error { //nolint:errcheck // it was accepted before
		at := span.At(val, v)
		name, _ := span.Text(key)
		all = append(all, member{from, span.At(val, key), at, at + len(v)})
		names = append(names, name)
		from = at + len(v)
		for from < len(val) && val[from] != ',' && val[from] != '}' {
			from++
		}
		from++
		return nil
	})
	layout := []byte(nil) // the white space before a member
	if n := len(all); n > 0 {
		layout = val[all[n-1].from:all[n-1].key]
	}
	lines := bytes.IndexByte(layout, '\n') >= 0
	put := map[int][]byte{} // new values by member
	gone := map[int]bool{}
	var added []Change
	for _, c := range changes {
		at := -1
		for i, name := range names {
			if name != c.Name {
				continue
			}
			at = i
			if c.Val == nil {
				gone[i] = true
			}
		}
		switch {
		case c.Val == nil:
			added = slices.DeleteFunc(added, func(a Change) bool { return a.Name == c.Name })
		case at >= 0:
			delete(gone, at)
			if delete(put, at); !bytes.Equal(val[all[at].val:all[at].end], c.Val) {
				put[at] = c.Val
			}
		default:
			added = slices.DeleteFunc(added, func(a Change) bool { return a.Name == c.Name })
			added = append(added, c)
		}
	}
	if len(put)+len(gone)+len(added) == 0 {
		return val
	}
	depth := depthOf(layout)
	shaped := func(dst, v []byte) []byte {
		if lines {
			return span.AppendValue(dst, v, depth)
		}
		return append(dst, v...)
	}
	out := make([]byte, 0, len(val)+64*len(added))
	out = append(out, val[:first]...)
	count := 0
	begin := func(space []byte) {
		if count > 0 {
			out = append(out, ',')
		}
		out = append(out, space...)
		count++
	}
	for i, m := range all {
		if gone[i] {
			continue
		}
		begin(val[m.from:m.key])
		out = append(out, val[m.key:m.val]...)
		if v, ok := put[i]; ok {
			out = shaped(out, v)
		} else {
			out = append(out, val[m.val:m.end]...)
		}
	}
	colon := ":"
	if lines || len(all) > 0 && bytes.HasSuffix(val[all[0].key:all[0].val], []byte(" ")) {
		colon = ": "
	}
	for _, c := range added {
		begin(layout)
		out = append(span.Quote(out, c.Name), colon...)
		out = shaped(out, c.Val)
	}
	if count == 0 {
		return append(out, '}')
	}
	if n := len(all); n > 0 {
		return append(out, val[all[n-1].end:]...)
	}
	return append(out, '}')
}

// depthOf is how many levels deep a member stands, by the white space before
// it, two spaces a level.
func depthOf(space []byte) int {
	line := space[bytes.LastIndexByte(space, '\n')+1:]
	return (len(line) + 1) / 2
}
