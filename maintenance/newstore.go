package maintenance

import "oc/store/span"

// NewStore is the text of the store after the rows of a plan have changed:
// OpenClaw's format, two spaces a level and no newline at the end
// (spec/maintenance.md 2.12). Rows that stay keep their bytes, those that
// OpenClaw does not load included; rows that are new stand last. Where no row
// changes it is the text as it was read.
func NewStore(s *Snapshot, p *Plan) []byte {
	drop, put := map[string]bool{}, map[string][]byte{}
	var order []string
	for i := range p.Actions {
		a := &p.Actions[i]
		if !a.Applies {
			continue
		}
		switch a.Kind {
		case DropRow:
			drop[a.Key] = true
		case PutRow:
			if _, again := put[a.Key]; !again {
				order = append(order, a.Key)
			}
			put[a.Key] = a.Value
		}
	}
	if len(drop)+len(put) == 0 {
		return s.Text
	}
	extra := 0
	for _, v := range put {
		extra += len(v) + 64
	}
	out := append(make([]byte, 0, len(s.Text)+extra), '{')
	member := func(key, val []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, "\n  "...)
		out = append(out, key...)
		out = append(out, ": "...)
		out = append(out, val...)
	}
	written := map[string]bool{}
	if len(s.Text) > 0 {
		span.Each(s.Text, 0, func(key, val []byte) error { //nolint:errcheck // it was read before
			name, _ := span.Text(key)
			if drop[name] {
				return nil
			}
			if v, ok := put[name]; ok {
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
	for _, name := range order {
		if !written[name] && !drop[name] {
			member(span.Quote(nil, name), put[name])
		}
	}
	if len(out) == 1 {
		return append(out, '}')
	}
	return append(out, "\n}"...)
}
