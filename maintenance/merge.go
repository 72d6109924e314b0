package maintenance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	"oc/maintenance/journal"
	"oc/store/span"
)

// rowHook marks steps that swap a store: they are taken back row by row where
// the store was written since.
const rowHook = "rows"

type rowMerger struct{}

// Merge takes the run's changes back in the store as it is now: a row that the
// run dropped or changed gets its old bytes back, unless it was written since,
// or its transcript is away; a row that it added goes, unless it was written
// since.
func (rowMerger) Merge(s journal.Step, v journal.Versions) (m journal.Merging, err error) {
	if s.Hook != rowHook {
		return m, fmt.Errorf("oc does not know how to take back %q", s.Hook)
	}
	var was, ran, is rowSet
	for _, x := range []struct {
		set  *rowSet
		text []byte
		name string
	}{{&was, v.Before, "the store before the run"}, {&ran, v.After, "the store after the run"}, {&is, v.Now, "the store"}} {
		if err := x.set.read(x.text); err != nil {
			return m, fmt.Errorf("%s is damaged: %w", x.name, err)
		}
	}
	keep := map[string][]byte{}
	for name, v := range is.rows {
		keep[name] = v
	}
	away := map[string]bool{}
	for path := range v.Away {
		away[filepath.Base(path)] = true
	}
	for _, name := range was.names {
		old := was.rows[name]
		done, stayed := ran.rows[name]
		if stayed && bytes.Equal(old, done) {
			continue // the run did not touch it
		}
		current, there := is.rows[name]
		switch lost := transcriptAway(old, away); {
		case !there && !stayed && lost != "":
			m.Conflicts = append(m.Conflicts, fmt.Sprintf("the row %s stays out: its transcript %s is not back; put that file in its place, then give this undo again", name, lost))
			m.Partly = true
		case there == stayed && bytes.Equal(current, done), there && bytes.Equal(current, old), !there && !stayed:
			keep[name] = old
		default:
			m.Conflicts = append(m.Conflicts, fmt.Sprintf("the row %s was written since and is left as it is", name))
		}
	}
	for _, name := range ran.names {
		added := ran.rows[name]
		if _, old := was.rows[name]; old {
			continue
		}
		current, there := is.rows[name]
		if !there {
			continue
		}
		file, written := transcriptOf(current, v.Placed)
		switch {
		case bytes.Equal(current, added) && !written:
			delete(keep, name)
			continue
		case bytes.Equal(current, added):
			m.Conflicts = append(m.Conflicts, fmt.Sprintf("the row %s, which the run made, is left as it is: its transcript was written since", name))
		default:
			m.Conflicts = append(m.Conflicts, fmt.Sprintf("the row %s, which the run made, was written since and is left as it is", name))
		}
		if file != "" {
			m.Held, m.Partly = append(m.Held, file), true
		}
	}
	m.Bytes = was.print(&is, keep)
	return m, nil
}

// transcriptAway is the name of a row's transcript if it is one of away, else "".
func transcriptAway(raw []byte, away map[string]bool) string {
	var r struct {
		ID   string `json:"sessionId"`
		File string `json:"sessionFile"`
	}
	_ = json.Unmarshal(raw, &r) // what cannot be read names no file
	for _, name := range []string{filepath.Base(r.File), r.ID + ".jsonl"} {
		if away[name] {
			return name
		}
	}
	return ""
}

// transcriptOf is the path of the transcript that a row names if it is one of those placed, else "", and whether that was written since.
func transcriptOf(raw []byte, placed map[string]bool) (path string, written bool) {
	names := map[string]bool{}
	for path := range placed {
		names[filepath.Base(path)] = true
	}
	base := transcriptAway(raw, names)
	for path, written := range placed {
		if base != "" && filepath.Base(path) == base {
			return path, written
		}
	}
	return "", false
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
