package transcript

// A Tree is what the rows of a transcript point at: which of them lead from the
// root to the active leaf. Rows are added in the order of the file; the rules
// are those of spec/transcript.md 1.6 and, for reset rows, sqlite-store.md 2.5.
// It takes about 64 bytes a row and keeps nothing of a row but its place.
//
// The zero Tree is empty and ready to use.
type Tree struct {
	ids   ids
	nodes []node

	leaf, appendTo int32 // numbers of ids; none for the root
	begun          bool
	flags          TreeFlags
}

// TreeFlags tell what kinds of rows a tree has met.
type TreeFlags struct {
	LeafControl  bool // a leaf row took effect
	ExplicitLeaf bool // a row with a parentId moved the leaf
	InvalidLeaf  bool // a leaf row pointed at an unknown row and was ignored
}

// node is one row that has an id and a place in the tree.
type node struct {
	offset int64
	line   int32
	size   uint32
	id     int32 // number of the id
	parent int32 // number of the parent's id; none for a root
	kind   Kind
	leaf   bool // a leaf row that is well formed
	off    bool // a leaf row that was ignored
}

// A Place is where a row stands: its line (from 1), the offset of its first
// byte and its length without the line break. For rows of a database the
// offset is the sum of what came before.
type Place struct {
	Line   int
	Offset int64
	Size   int
}

// Flags are what the tree has met so far.
func (t *Tree) Flags() TreeFlags { return t.flags }

// Len is the number of rows in the tree.
func (t *Tree) Len() int { return len(t.nodes) }

// Add takes the next row and tells whether it has a place in the tree.
func (t *Tree) Add(e *Entry, at Place) bool {
	if !t.begun {
		t.begun, t.leaf, t.appendTo = true, none, none
	}
	if e.ID == nil || e.Kind == Header || len(t.nodes) == 1<<31-1 {
		return false
	}
	n := node{offset: at.Offset, line: int32(at.Line), size: uint32(at.Size), kind: e.Kind, parent: none}
	explicit := !e.Parent.Absent()
	switch {
	case explicit && e.Kind == Leaf:
		return t.control(e, n)
	case explicit && (e.Parent.OK() || e.Parent.Null()):
		if e.Parent.OK() {
			n.parent = t.ids.add(e.Parent.ID)
		}
		if e.Kind.canonical() {
			if !e.Side && n.parent == t.appendTo && t.leaf != t.appendTo {
				n.parent = t.leaf
			}
			n.parent = t.target(n.parent)
		}
	case !explicit && e.Kind.canonical():
		n.parent = t.target(t.leaf)
	default:
		return false
	}
	n.id = t.ids.add(e.ID)
	t.push(n)
	t.appendTo = n.id
	if e.Kind.canonical() && !e.Side {
		t.leaf = n.id
		t.flags.ExplicitLeaf = t.flags.ExplicitLeaf || explicit
	}
	return true
}

// control takes a leaf row: it points the tree at another leaf, or nowhere and
// is passed through on the way up.
func (t *Tree) control(e *Entry, n node) bool {
	appendTo := e.AppendTo
	if appendTo.Absent() {
		appendTo = e.Target
	}
	ok := func(r Ref) bool { return r.OK() || r.Null() }
	if !ok(e.Parent) || !ok(e.Target) || !ok(appendTo) || e.badMode {
		return false
	}
	known := func(r Ref) (int32, bool) {
		if r.Null() {
			return none, true
		}
		s := t.ids.find(r.ID)
		return s, s >= 0 && t.ids.syms[s].node >= 0 && !t.ids.syms[s].invalid
	}
	leaf, ok1 := known(e.Target)
	to, ok2 := known(appendTo)
	n.leaf = true
	if !ok1 || !ok2 {
		t.flags.InvalidLeaf = true
		n.off = true
		if e.Parent.OK() {
			n.parent = t.ids.add(e.Parent.ID)
		}
		n.id = t.ids.add(e.ID)
		t.ids.syms[n.id].invalid = true
		t.push(n)
		return true
	}
	n.parent = leaf
	n.id = t.ids.add(e.ID)
	t.push(n)
	t.leaf, t.appendTo = leaf, to
	t.flags.ExplicitLeaf, t.flags.LeafControl = true, true
	return true
}

func (t *Tree) push(n node) {
	t.ids.syms[n.id].node = int32(len(t.nodes))
	t.nodes = append(t.nodes, n)
}

// at is the node that an id names, nil if no row has it.
func (t *Tree) at(id int32) *node {
	if id < 0 {
		return nil
	}
	if i := t.ids.syms[id].node; i >= 0 {
		return &t.nodes[i]
	}
	return nil
}

// target passes through leaf rows to the row that they stand for.
func (t *Tree) target(id int32) int32 {
	// No row passed through twice: a second meeting needs as many steps as
	// there are rows, which the count stops.
	for steps := len(t.nodes); ; steps-- {
		n := t.at(id)
		if n == nil || !n.leaf || steps < 0 {
			return id
		}
		id = n.parent
	}
}

// branch is the path from the root to a row, by node, without leaf rows. It
// starts behind an unknown parent. loop tells that the parents went in a
// circle, of which each row is met once.
func (t *Tree) branch(id int32) (path []int32, loop bool) {
	met := make([]uint64, (len(t.nodes)+63)/64)
	for n := t.at(id); n != nil; n = t.at(n.parent) {
		i := t.ids.syms[n.id].node
		if met[i>>6]&(1<<(i&63)) != 0 {
			loop = true
			break
		}
		met[i>>6] |= 1 << (i & 63)
		if !n.leaf {
			path = append(path, i)
		}
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path, loop
}

// Branch is the active branch: the rows from the root to the leaf, in that
// order, as OpenClaw's session manager walks them. Rows of unknown types on the
// way are left in; leaf rows are not rows of a branch. loop tells that the
// parents went in a circle, of which each row is given once.
func (t *Tree) Branch() (rows []Place, loop bool) {
	path, loop := t.branch(t.leaf)
	return t.places(path), loop
}

// BranchTo is the branch that ends at the row with this id, nil if there is
// none.
func (t *Tree) BranchTo(id string) (rows []Place, loop bool) {
	path, loop := t.branch(t.ids.find([]byte(id)))
	return t.places(path), loop
}

// Leaf is the id of the active leaf, "" at the root.
func (t *Tree) Leaf() string {
	if !t.begun || t.leaf < 0 {
		return ""
	}
	return string(t.ids.name(t.leaf))
}

// AppendTo is the id that the next row would have as its parent, "" for none.
func (t *Tree) AppendTo() string {
	if !t.begun || t.appendTo < 0 {
		return ""
	}
	return string(t.ids.name(t.appendTo))
}

func (t *Tree) places(path []int32) []Place {
	rows := make([]Place, len(path))
	for i, n := range path {
		rows[i] = t.nodes[n].place()
	}
	return rows
}

func (n *node) place() Place { return Place{int(n.line), n.offset, int(n.size)} }
