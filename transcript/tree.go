package transcript

import (
	"hash/maphash"
	"strconv"

	"oc/store/span"
)

// Rules say how the links between rows are read.
type Rules uint8

const (
	// FileRules are those of JSONL files up to 2026.7.x: a parent that is not
	// there begins a branch.
	FileRules Rules = iota
	// DatabaseRules are those of 2026.9.6: what points outside the latest reset,
	// or nowhere, is hung on the current leaf.
	DatabaseRules
)

// A Tree is what the rows of a transcript point at: which of them lead from the
// root to the active leaf. Rows are added in the order of the file; the rules
// are those of spec/transcript.md 1.6 and sqlite-store.md 2.5. It takes at
// most 64 bytes a row with ids of 8 characters, and keeps nothing of a row but its
// place and its id.
//
// The zero Tree is empty and ready to use.
type Tree struct {
	Rules  Rules
	Report func(Finding) // told of links that are wrong; may be nil

	ids   ids
	nodes paged[node]
	kept  map[int32]int32 // what compactions and resets keep from, by node: number of the id

	leaf, appendTo int32 // numbers of ids; none for the root
	begun, headed  bool
	linear         bool    // version 1: rows in the order of the file, whatever their ids
	records        []int32 // of version 1: the node of each record, none for those without
	roots          int
	resets         uint32
	flags          TreeFlags
}

// TreeFlags tell what kinds of rows a tree has met.
type TreeFlags struct {
	LeafControl  bool // a leaf row took effect
	ExplicitLeaf bool // a row with a parentId moved the leaf
	InvalidLeaf  bool // a leaf row pointed at an unknown row and was ignored
}

// node is one row that has an id and a place in the tree, in 28 bytes.
type node struct {
	low    uint32 // of the offset
	line   int32
	size   uint32
	id     int32  // number of the id
	parent int32  // number of the parent's id; none for a root
	hash   uint32 // of the row
	high   uint16 // of the offset
	kind   Kind
	bits   nodeBits
}

type nodeBits uint8

const (
	leafRow nodeBits = 1 << iota // a leaf row that is well formed
	ignored                      // a leaf row that points nowhere
	speaks                       // the row has a message

	// What Check marks.
	continued // a row names it as its parent
	open      // on the walk that is made
	done      // on one that was made
	looped    // its own ancestor
)

// A Place is where a row stands: its line (from 1; 0 where only its offset is
// known), the offset of its first byte and its length without the line break.
// For rows of a database the offset is the sum of the rows before and their line
// breaks.
type Place struct {
	Line   int
	Offset int64
	Size   int
}

// latest is the index of the last node.
func (t *Tree) latest() int32 { return int32(t.nodes.n - 1) }

// Flags are what the tree has met so far.
func (t *Tree) Flags() TreeFlags { return t.flags }

// Len is the number of rows in the tree.
func (t *Tree) Len() int { return t.nodes.n }

func (t *Tree) canonical(k Kind) bool {
	return k.canonical() || k == Reset && t.Rules == DatabaseRules
}

// Add takes the next row and tells whether it has a place in the tree.
func (t *Tree) Add(e *Entry, at Place) bool {
	if !t.begun {
		t.begun, t.leaf, t.appendTo = true, none, none
	}
	if e.Kind == Header {
		t.header(e)
		if t.linear {
			t.records = append(t.records, none)
		}
		return false
	}
	n := node{low: uint32(at.Offset), high: uint16(at.Offset >> 32), line: int32(at.Line), size: uint32(at.Size), kind: e.Kind, parent: none}
	if len(e.Message) > 0 && span.KindOf(e.Message) == span.Object {
		n.bits |= speaks
	}
	canonical := t.canonical(e.Kind)
	if t.linear {
		t.records = append(t.records, none)
		if canonical {
			t.records[len(t.records)-1] = int32(t.nodes.n)
			return t.chain(e, n)
		}
	}
	if e.ID == nil || t.nodes.n == 1<<31-1 || t.ids.full() {
		return false
	}
	explicit := !e.Parent.Absent()
	switch {
	case explicit && e.Kind == Leaf:
		return t.control(e, n)
	case explicit && (e.Parent.OK() || e.Parent.Null()), !explicit && canonical:
		n.parent = t.parentOf(e, canonical, explicit)
	default:
		return false
	}
	t.push(e, n)
	n.id = t.nodes.at(t.latest()).id
	t.appendTo = n.id
	if canonical && !e.Side {
		t.leaf = n.id
		t.flags.ExplicitLeaf = t.flags.ExplicitLeaf || explicit
	}
	return true
}

// header takes the version of the first header that has an id.
func (t *Tree) header(e *Entry) {
	if t.headed || e.ID == nil {
		return
	}
	t.headed = true
	version := span.Member(e.Raw, "version")
	f, ok := span.Float(version)
	t.linear = t.Rules == FileRules && (version == nil || ok && f < 2)
}

// chain takes a row of version 1: it follows the one before it.
func (t *Tree) chain(e *Entry, n node) bool {
	n.parent = t.leaf
	row := *e
	if id := t.ids.find(row.ID); row.ID == nil || id >= 0 && t.index(id) >= 0 {
		row.ID = strconv.AppendInt([]byte("line "), int64(n.line), 10)
	}
	t.push(&row, n)
	if i, ok := span.Int(row.KeptIndex); ok && i >= 0 && i < int64(len(t.records)) && row.Kind == Compaction {
		if to := t.records[i]; to >= 0 {
			if t.kept == nil {
				t.kept = map[int32]int32{}
			}
			t.kept[t.latest()] = t.nodes.at(to).id
		}
	}
	t.leaf = t.nodes.at(t.latest()).id
	t.appendTo = t.leaf
	t.flags.ExplicitLeaf = true
	return true
}

// parentOf is the row that an entry hangs on, which need not be the one that it
// names.
func (t *Tree) parentOf(e *Entry, canonical, explicit bool) int32 {
	named := t.leaf
	if explicit {
		named = none
		if e.Parent.OK() {
			named = t.ids.add(e.Parent.ID)
		}
	}
	if !canonical {
		return named
	}
	if !e.Side {
		switch {
		case t.Rules == DatabaseRules && t.resets > 0 && !t.sinceReset(named),
			t.Rules == DatabaseRules && explicit && named >= 0 && t.at(named) == nil && t.leaf >= 0,
			explicit && named == t.appendTo && t.leaf != t.appendTo:
			named = t.leaf
		}
	}
	return t.target(named)
}

// sinceReset tells whether a row descends from the latest reset.
func (t *Tree) sinceReset(id int32) bool {
	return id >= 0 && t.ids.mark(id)&^invalid == t.resets
}

// control takes a leaf row: it points the tree at another leaf, or nowhere and
// is passed through on the way up.
func (t *Tree) control(e *Entry, n node) bool {
	ok := func(r Ref) bool { return r.OK() || r.Null() }
	target, appendTo := e.Target, e.AppendTo
	if appendTo.Absent() {
		appendTo = target
	}
	if !ok(e.Parent) || !ok(target) || !ok(appendTo) || e.badMode {
		return false
	}
	known := func(r Ref) (int32, bool) {
		if r.Null() {
			return none, true
		}
		s := t.ids.find(r.ID)
		return s, t.index(s) >= 0 && t.ids.mark(s)&invalid == 0
	}
	leaf, ok1 := known(target)
	to, ok2 := known(appendTo)
	if t.resets > 0 && t.leaf >= 0 && !t.sinceReset(leaf) {
		leaf, to = t.leaf, t.leaf
		ok1, ok2 = t.ids.mark(leaf)&invalid == 0, true
	}
	n.bits |= leafRow
	if !ok1 || !ok2 {
		t.flags.InvalidLeaf = true
		n.bits |= ignored
		if e.Parent.OK() {
			n.parent = t.ids.add(e.Parent.ID)
		}
		t.push(e, n)
		id := t.nodes.at(t.latest()).id
		t.ids.setMark(id, t.ids.mark(id)|invalid)
		t.report(InvalidLeaf, t.latest(), "")
		return true
	}
	n.parent = leaf
	t.push(e, n)
	t.leaf, t.appendTo = leaf, to
	t.flags.ExplicitLeaf, t.flags.LeafControl = true, true
	return true
}

func (t *Tree) push(e *Entry, n node) {
	n.id = t.ids.add(e.ID)
	if t.Report != nil {
		n.hash = uint32(maphash.Bytes(t.ids.seed, e.Raw))
	}
	s := t.ids.syms.at(n.id)
	i, first := int32(t.nodes.n), s.node
	s.node = i
	t.nodes.add(n)
	if e.FirstKept.OK() && (e.Kind == Compaction || e.Kind == Reset) {
		if t.kept == nil {
			t.kept = map[int32]int32{}
		}
		t.kept[i] = t.ids.add(e.FirstKept.ID)
	}
	if e.Kind == Reset && t.Rules == DatabaseRules {
		t.resets++
		t.ids.setMark(n.id, t.ids.mark(n.id)&invalid|t.resets)
	} else if t.resets > 0 && t.sinceReset(n.parent) {
		t.ids.setMark(n.id, t.ids.mark(n.id)&invalid|t.resets)
	}
	if t.Report == nil {
		return
	}
	if first >= 0 {
		was, code := t.nodes.at(first), DuplicateOther
		if was.hash == n.hash && was.size == n.size {
			code = DuplicateSame
		}
		t.Report(Finding{Code: code, At: n.place(), Byte: n.offset(), ID: string(e.ID), Other: was.place()})
	}
	if n.parent < 0 && n.bits&leafRow == 0 && t.canonical(n.kind) {
		if t.roots++; t.roots > 1 {
			t.report(SecondRoot, i, "")
		}
	}
	if e.Kind == Label && (!e.Target.OK() || t.at(t.ids.find(e.Target.ID)) == nil) {
		t.report(LabelTarget, i, "")
	}
}

func (t *Tree) report(c Code, i int32, why string) {
	if t.Report != nil {
		n := t.nodes.at(i)
		t.Report(Finding{Code: c, At: n.place(), Byte: n.offset(), ID: string(t.ids.name(n.id)), Why: why})
	}
}

// at is the node that an id names, nil if no row has it.
func (t *Tree) at(id int32) *node {
	if i := t.index(id); i >= 0 {
		return t.nodes.at(i)
	}
	return nil
}

func (t *Tree) index(id int32) int32 {
	if id < 0 {
		return none
	}
	return t.ids.syms.at(id).node
}

// target passes through leaf rows to the row that they stand for.
func (t *Tree) target(id int32) int32 {
	first := id
	for steps := 0; ; steps++ {
		n := t.at(id)
		if n == nil || n.bits&leafRow == 0 {
			return id
		}
		if steps > 64 {
			return t.targetFar(first)
		}
		id = n.parent
	}
}

// targetFar is target for long chains of leaf rows, which may be circles.
func (t *Tree) targetFar(id int32) int32 {
	met := map[int32]bool{}
	for n := t.at(id); n != nil && n.bits&leafRow != 0 && !met[id]; n = t.at(id) {
		met[id] = true
		id = n.parent
	}
	return id
}

// path is the way from the root to a row, by node. It starts behind an unknown
// parent. loop tells that the parents went in a circle, of which each row is met
// once.
func (t *Tree) path(id int32) (path []int32, loop bool) {
	met := make([]uint64, (t.nodes.n+63)/64)
	for i := t.index(id); i >= 0; i = t.index(t.nodes.at(i).parent) {
		if met[i>>6]&(1<<(i&63)) != 0 {
			loop = true
			break
		}
		met[i>>6] |= 1 << (i & 63)
		path = append(path, i)
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path, loop
}

// branch is the path without leaf rows and rows of unknown types.
func (t *Tree) branch(id int32) (branch []int32, loop bool) {
	path, loop := t.path(id)
	branch = path[:0]
	for _, i := range path {
		if t.canonical(t.nodes.at(i).kind) {
			branch = append(branch, i)
		}
	}
	return branch, loop
}

// Branch is the active branch: the rows from the root to the leaf, in that
// order, as OpenClaw's session manager walks them. Leaf rows and rows of unknown
// types are passed through. loop tells that the parents went in a circle, of
// which each row is given once.
func (t *Tree) Branch() (rows []Place, loop bool) {
	if !t.begun {
		return nil, false
	}
	branch, loop := t.branch(t.leaf)
	return t.places(branch), loop
}

// BranchTo is the branch that ends at the row with this id, nil if there is
// none.
func (t *Tree) BranchTo(id string) (rows []Place, loop bool) {
	branch, loop := t.branch(t.ids.find([]byte(id)))
	return t.places(branch), loop
}

// History is the part of the active branch that a reader is shown: all of it, or
// from the latest reset on, and before that the rows it kept, of which only what
// users and assistants said shows. Compactions hide nothing. kept is how many of
// the rows stand before the reset.
func (t *Tree) History() (rows []Place, kept int) {
	if !t.begun {
		return nil, 0
	}
	branch, _ := t.branch(t.leaf)
	reset := len(branch) - 1
	for reset >= 0 && t.nodes.at(branch[reset]).kind != Reset {
		reset--
	}
	if reset < 0 {
		return t.places(branch), 0
	}
	_, from := t.window(branch[:reset+1])
	return append(t.places(branch[from:reset]), t.places(branch[reset:])...), reset - from
}

// Tips are the ids of the rows that end a branch: those that no row names as
// its parent, and the active leaf. In the order of the file.
func (t *Tree) Tips() (list []string) {
	parent := make([]bool, t.ids.syms.n)
	for i := range int32(t.nodes.n) {
		if n := t.nodes.at(i); n.parent >= 0 && n.bits&leafRow == 0 {
			parent[n.parent] = true
		}
	}
	for i := range int32(t.nodes.n) {
		n := t.nodes.at(i)
		if n.bits&leafRow == 0 && t.index(n.id) == i && (!parent[n.id] || n.id == t.leaf) {
			list = append(list, string(t.ids.name(n.id)))
		}
	}
	return list
}

// Leaf is the id of the active leaf, "" at the root.
func (t *Tree) Leaf() string { return t.idOf(t.leaf) }

// AppendTo is the id that the next row would have as its parent, "" for none.
func (t *Tree) AppendTo() string { return t.idOf(t.appendTo) }

func (t *Tree) idOf(id int32) string {
	if !t.begun || id < 0 {
		return ""
	}
	return string(t.ids.name(id))
}

// Find is the place of the row with this id, the last of several.
func (t *Tree) Find(id string) (Place, bool) {
	n := t.at(t.ids.find([]byte(id)))
	if n == nil {
		return Place{}, false
	}
	return n.place(), true
}

// Counts are how many rows with a message a tree holds, and how many of them
// are on the active branch.
type Counts struct{ Stored, Active int }

// Messages counts the rows that hold a message.
func (t *Tree) Messages() (c Counts) {
	for i := range int32(t.nodes.n) {
		if t.nodes.at(i).bits&speaks != 0 {
			c.Stored++
		}
	}
	if t.begun {
		branch, _ := t.branch(t.leaf)
		for _, i := range branch {
			if t.nodes.at(i).bits&speaks != 0 {
				c.Active++
			}
		}
	}
	return c
}

func (t *Tree) places(path []int32) []Place {
	if len(path) == 0 {
		return nil
	}
	rows := make([]Place, len(path))
	for i, n := range path {
		rows[i] = t.nodes.at(n).place()
	}
	return rows
}

func (n *node) offset() int64 { return int64(n.high)<<32 | int64(n.low) }

func (n *node) place() Place { return Place{int(n.line), n.offset(), int(n.size)} }

// Check reports what can be told only when all rows are known: parents that are
// not there, circles, compactions beside another that was continued, and kept
// rows that are not there. Each in the order of the file.
func (t *Tree) Check() {
	if t.Report == nil {
		return
	}
	for i := range int32(t.nodes.n) {
		t.nodes.at(i).bits &^= continued | open | done | looped
	}
	for i := range int32(t.nodes.n) {
		if p := t.at(t.nodes.at(i).parent); p != nil {
			p.bits |= continued
		}
	}
	t.loops()
	alive := map[int32]int32{} // parent: the compaction that was continued
	for i := range int32(t.nodes.n) {
		if n := t.nodes.at(i); n.kind == Compaction && n.bits&continued != 0 {
			alive[n.parent] = i
		}
	}
	for i := range int32(t.nodes.n) {
		n := t.nodes.at(i)
		if n.parent >= 0 && t.at(n.parent) == nil {
			t.report(OrphanParent, i, "no row has the id "+strconv.Quote(string(t.ids.name(n.parent))))
		}
		if n.bits&looped != 0 {
			t.report(Cycle, i, "")
		}
		if n.kind == Compaction && n.bits&continued == 0 && n.id != t.leaf {
			if other, ok := alive[n.parent]; ok {
				t.Report(Finding{
					Code: DeadCompaction, At: n.place(), Byte: n.offset(), ID: string(t.ids.name(n.id)),
					Other: t.nodes.at(other).place(),
				})
			}
		}
		if id, ok := t.kept[i]; ok && t.at(id) == nil {
			t.report(FirstKept, i, "no row has the id "+strconv.Quote(string(t.ids.name(id))))
		}
	}
}

// loops marks the rows that are their own ancestors, each looked at once, and
// needs no memory for it.
func (t *Tree) loops() {
	for start := range int32(t.nodes.n) {
		i := start
		for i >= 0 && t.nodes.at(i).bits&(open|done) == 0 {
			n := t.nodes.at(i)
			n.bits |= open
			i = t.index(n.parent)
		}
		for i >= 0 && t.nodes.at(i).bits&(open|looped) == open { // once around
			n := t.nodes.at(i)
			n.bits |= looped
			i = t.index(n.parent)
		}
		for i = start; i >= 0 && t.nodes.at(i).bits&open != 0; {
			n := t.nodes.at(i)
			n.bits = n.bits&^open | done
			i = t.index(n.parent)
		}
	}
}
