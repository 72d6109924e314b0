package maintenance

import (
	"bytes"
	"fmt"

	"oc/maintenance/journal"
	"oc/store/span"
)

// rowHook marks steps that swap a store: they are taken back row by row where
// the store was written since.
const rowHook = "rows"

type rowMerger struct{}

// Merge takes the run's changes back in the store as it is now: a row that the
// run dropped or changed gets its old bytes back, unless it was written since;
// a row that it added goes, unless it was written since.
func (rowMerger) Merge(s journal.Step, before, after, now []byte) (merged []byte, conflicts []string, err error) {
	if s.Hook != rowHook {
		return nil, nil, fmt.Errorf("oc does not know how to take back %q", s.Hook)
	}
	var was, ran, is rowSet
	for _, x := range []struct {
		set  *rowSet
		text []byte
		name string
	}{{&was, before, "the store before the run"}, {&ran, after, "the store after the run"}, {&is, now, "the store"}} {
		if err := x.set.read(x.text); err != nil {
			return nil, nil, fmt.Errorf("%s is damaged: %w", x.name, err)
		}
	}
	keep := map[string][]byte{}
	for name, v := range is.rows {
		keep[name] = v
	}
	for name, old := range was.rows {
		done, stayed := ran.rows[name]
		if stayed && bytes.Equal(old, done) {
			continue // the run did not touch it
		}
		current, there := is.rows[name]
		switch {
		case there == stayed && bytes.Equal(current, done), there && bytes.Equal(current, old), !there && !stayed:
			keep[name] = old
		default:
			conflicts = append(conflicts, fmt.Sprintf("the row %s was written since and is left as it is", name))
		}
	}
	for name, added := range ran.rows {
		if _, old := was.rows[name]; old {
			continue
		}
		if current, there := is.rows[name]; there && bytes.Equal(current, added) {
			delete(keep, name)
		} else if there {
			conflicts = append(conflicts, fmt.Sprintf("the row %s, which the run made, was written since and is left as it is", name))
		}
	}
	return was.print(&is, keep), conflicts, nil
}

// A rowSet is a store as rows: raw values by name, in the order of the text.
type rowSet struct {
	names []string
	rows  map[string][]byte
	quote map[string][]byte // the names as they stand
}

func (r *rowSet) read(text []byte) error {
	r.rows, r.quote = map[string][]byte{}, map[string][]byte{}
	end, err := span.Each(text, 0, func(key, val []byte) error {
		name, _ := span.Text(key)
		if _, twice := r.rows[name]; !twice {
			r.names = append(r.names, name)
		}
		r.rows[name], r.quote[name] = val, key
		return nil
	})
	if err != nil {
		return err
	}
	return span.End(text, end)
}

// print writes the rows that are kept: those of r in its order, then those that
// only now has.
func (r *rowSet) print(now *rowSet, keep map[string][]byte) []byte {
	out := []byte{'{'}
	write := func(quote, val []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, "\n  "...), quote...), ": "...), val...)
	}
	for _, name := range r.names {
		if val, ok := keep[name]; ok {
			write(r.quote[name], val)
		}
	}
	for _, name := range now.names {
		if _, old := r.rows[name]; old {
			continue
		}
		if val, ok := keep[name]; ok {
			write(now.quote[name], val)
		}
	}
	if len(out) == 1 {
		return append(out, '}')
	}
	return append(out, "\n}"...)
}
