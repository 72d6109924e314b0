package transcript

// Seen tells which rows of the active branch the model sees (spec/transcript.md 1.7): all of it, or the latest compaction or reset,
// then what it kept, then what follows.
type Seen struct {
	Branch   []Place // the active branch, the root first
	Kinds    []Kind  // of its rows
	Boundary int     // the compaction or reset that the context begins with; -1 for none
	From     int     // the first row that is kept; 0 where there is no boundary
	Loop     bool    // the way to the root does not end
}

// Seen is what Context loads, without loading it.
func (t *Tree) Seen() Seen {
	s := Seen{Boundary: -1}
	if !t.begun {
		return s
	}
	var branch []int32
	branch, s.Loop = t.branch(t.leaf)
	s.Boundary, s.From = t.window(branch)
	s.Branch = t.places(branch)
	for _, i := range branch {
		s.Kinds = append(s.Kinds, t.nodes.at(i).kind)
	}
	return s
}
