package maintenance

import "oc/store/span"

// NewStore is the text of the store after the rows of a plan have changed:
// OpenClaw's format, two spaces a level and no newline at the end
// (spec/maintenance.md 2.12). Rows that stay keep their bytes, those that
// OpenClaw does not load included; rows that are new stand last. Where no row
// changes it is the text as it was read.
func NewStore(s *Snapshot, p *Plan) []byte {
	w := rewriter{drop: map[string]bool{}, put: map[string][]byte{}}
	if !w.read(p) {
		return s.Text
	}
	w.each(s, func(key, val []byte) { w.size += len("\n  : ,") + len(key) + len(val) })
	out := append(make([]byte, 0, w.size+3), '{')
	w.each(s, func(key, val []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, "\n  "...)
		out = append(out, key...)
		out = append(out, ": "...)
		out = append(out, val...)
	})
	if len(out) == 1 {
		return append(out, '}')
	}
	return append(out, "\n}"...)
}

// newSize is the length of NewStore.
func newSize(s *Snapshot, p *Plan) int {
	w := rewriter{drop: map[string]bool{}, put: map[string][]byte{}}
	if !w.read(p) {
		return len(s.Text)
	}
	w.each(s, func(key, val []byte) { w.size += len("\n  : ,") + len(key) + len(val) })
	return 2 + w.size // a comma less than rows, a newline more
}

// A rewriter is what the rows of a plan do to a store.
type rewriter struct {
	drop  map[string]bool
	put   map[string][]byte
	order []string // of put
	size  int
}

// read takes over the rows of a plan; false where none change.
func (w *rewriter) read(p *Plan) bool {
	for i := range p.Actions {
		a := &p.Actions[i]
		if !a.Applies {
			continue
		}
		switch a.Kind {
		case DropRow:
			w.drop[a.Key] = true
		case PutRow:
			if _, again := w.put[a.Key]; !again {
				w.order = append(w.order, a.Key)
			}
			w.put[a.Key] = a.Value
		}
	}
	return len(w.drop)+len(w.put) > 0
}

// each gives the members of the new store: the key with its quotes, and the
// raw value.
func (w *rewriter) each(s *Snapshot, member func(key, val []byte)) {
	written := map[string]bool{}
	if len(s.Text) > 0 {
		span.Each(s.Text, 0, func(key, val []byte) error { //nolint:errcheck // it was read before
			name, _ := span.Text(key)
			if w.drop[name] {
				return nil
			}
			if v, ok := w.put[name]; ok {
				if written[name] {
					return nil
				}
				written[name] = true
				val = v
			}
			member(key, val)
			return nil
		})
	}
	for _, name := range w.order {
		if !written[name] && !w.drop[name] {
			member(span.Quote(nil, name), w.put[name])
		}
	}
}
