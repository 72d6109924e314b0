package transcript

// A Link is one row of a tree: where it stands, and what it hangs on.
type Link struct {
	Place
	Kind   Kind
	Parent int32  // its number in the list; -1 for a root, and for a row whose parent is not there
	ID     []byte // belongs to the tree
}

// Links are the rows of a tree in the order of the file, and the active branch by number, the root first. Leaf rows are passed through and
// left out, as are rows of which a later one has the id.
func (t *Tree) Links() (rows []Link, branch []int32) {
	if !t.begun {
		return nil, nil
	}
	stays := func(i int32) bool { n := t.nodes.at(i); return n.bits&leafRow == 0 && t.index(n.id) == i }
	number := make([]int32, t.nodes.n)
	count := int32(0)
	for i := range number {
		if number[i] = none; stays(int32(i)) {
			number[i] = count
			count++
		}
	}
	rows = make([]Link, 0, count)
	for i := range number {
		if number[i] < 0 {
			continue
		}
		n := t.nodes.at(int32(i))
		l := Link{Place: n.place(), Kind: n.kind, Parent: none, ID: t.ids.name(n.id)}
		if p := t.index(t.target(n.parent)); p >= 0 {
			l.Parent = number[p]
		}
		rows = append(rows, l)
	}
	way, _ := t.branch(t.leaf)
	for _, i := range way {
		branch = append(branch, number[i])
	}
	return rows, branch
}
