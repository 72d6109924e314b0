package store

import (
	"context"
	"hash/maphash"
	"slices"
	"strconv"

	"oc/store/span"
	"oc/transcript"
)

// A Difference is one entry that is not the same in two conversations, A and B.
type Difference struct {
	What   Change
	ID     string // "" for a row without one
	Kind   transcript.Kind
	Role   string
	Time   int64 // epoch ms; 0 if it is not known
	A, B   transcript.Place
	Parent [2]string // where it hangs in A and in B; "" at the root
	Active [2]bool   // whether it is on the active branch
}

// A Change is how an entry differs.
type Change string

// The changes. An entry that was changed and moved is Changed; its parents tell
// the rest.
const (
	OnlyA    Change = "only-a"
	OnlyB    Change = "only-b"
	Changed  Change = "changed"  // other bytes under the same id
	Moved    Change = "moved"    // the same entry below another one
	Switched Change = "switched" // the same entry in the same place, on the active branch of one only
)

// A Comparison is what differs between two conversations.
type Comparison struct {
	Counts map[Change]int
	Same   int    // entries that are alike
	Order  bool   // the entries that both have stand in another order
	Header bool   // the headers differ
	Rows   [2]int // entries
	Broken [2]int // rows that cannot be read
	Leaf   [2]string
	Flaws  []Flaw
}

// Identical tells that every entry is in both, alike and in the same place.
func (c *Comparison) Identical() bool {
	for _, n := range c.Counts {
		if n > 0 {
			return false
		}
	}
	return !c.Order && !c.Header && c.Broken[0] == c.Broken[1] && c.Leaf[0] == c.Leaf[1]
}

// entry is what a comparison keeps of a row.
type diffEntry struct {
	sum    uint64 // of all members but parentId
	parent uint64 // of the raw parentId
	at     transcript.Place
	ms     int64
	order  int // among the entries of A
	kind   transcript.Kind
	role   string
	name   string // of the parent
	id     string
	seen   bool
	active bool
}

// Diff compares two conversations by the ids of their entries and tells f of
// each that differs: those of A in its order, then those that only B has, in
// its order. Entries without an id are compared by what they say, and several
// with one id in their order. Memory is some 200 bytes for an entry.
func Diff(ctx context.Context, a, b *Conversation, f func(Difference) error) (*Comparison, error) {
	c := &Comparison{Counts: map[Change]int{}}
	seed := maphash.MakeSeed()
	left, err := c.read(ctx, seed, 0, a)
	if err != nil {
		return nil, err
	}
	right, err := c.read(ctx, seed, 1, b)
	if err != nil {
		return nil, err
	}
	index := make(map[string]*diffEntry, len(right.rows))
	for i := range right.rows {
		index[right.keys[i]] = &right.rows[i]
	}
	c.Header = left.header != right.header
	tell := func(d Difference) error {
		c.Counts[d.What]++
		return f(d)
	}
	var order []int
	for i := range left.rows {
		x := &left.rows[i]
		d := Difference{ID: x.id, Kind: x.kind, Role: x.role, Time: x.ms, A: x.at, Parent: [2]string{x.name}, Active: [2]bool{x.active}}
		y := index[left.keys[i]]
		if y == nil {
			d.What = OnlyA
			if err := tell(d); err != nil {
				return nil, err
			}
			continue
		}
		y.seen = true
		order = append(order, y.order)
		d.B, d.Parent[1], d.Active[1] = y.at, y.name, y.active
		switch {
		case x.sum != y.sum:
			d.What = Changed
		case x.parent != y.parent:
			d.What = Moved
		case x.active != y.active:
			d.What = Switched
		default:
			c.Same++
			continue
		}
		if err := tell(d); err != nil {
			return nil, err
		}
	}
	c.Order = !slices.IsSorted(order)
	for i := range right.rows {
		y := &right.rows[i]
		if y.seen {
			continue
		}
		d := Difference{What: OnlyB, ID: y.id, Kind: y.kind, Role: y.role, Time: y.ms, B: y.at, Parent: [2]string{1: y.name}, Active: [2]bool{1: y.active}}
		if err := tell(d); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// side is one of the two conversations.
type side struct {
	rows   []diffEntry
	keys   []string
	header uint64
}

func (c *Comparison) read(ctx context.Context, seed maphash.Seed, n int, from *Conversation) (*side, error) {
	s := &side{}
	var tree transcript.Tree
	met := map[string]int{}
	scan := transcript.Scanner{Tree: &tree, Report: func(f transcript.Finding) {
		switch f.Code {
		case transcript.TornTail, transcript.NotJSON, transcript.NotObject, transcript.NUL, transcript.NULTail, transcript.DamagedRow:
			if c.Broken[n]++; len(c.Flaws) < maxFlaws {
				c.Flaws = append(c.Flaws, Flaw{from, f})
			}
		}
	}}
	err := from.Scan(ctx, &scan, func(r *transcript.Row) error {
		if r.Err != nil || r.Blank {
			return nil
		}
		sum, parent := sums(seed, &r.Entry)
		if r.Kind == transcript.Header {
			s.header = sum
			return nil
		}
		e := diffEntry{sum: sum, parent: parent, at: r.Place, order: len(s.rows), kind: r.Kind, role: transcript.Role(r.Message), id: string(r.ID)}
		if r.Parent.OK() {
			e.name = string(r.Parent.ID)
		}
		e.ms, _ = r.Time()
		key := "id " + e.id
		if e.id == "" {
			key = "sum " + strconv.FormatUint(sum, 36)
		}
		if met[key]++; met[key] > 1 {
			key += " " + strconv.Itoa(met[key])
		}
		s.rows, s.keys = append(s.rows, e), append(s.keys, key)
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.Rows[n], c.Leaf[n] = len(s.rows), tree.Leaf()
	if !tree.Flags().ExplicitLeaf {
		for i := range s.rows {
			s.rows[i].active = true
		}
		return s, nil
	}
	rows, _ := tree.Branch()
	for _, at := range rows {
		if i, ok := slices.BinarySearchFunc(s.rows, at.Line, func(e diffEntry, line int) int { return e.at.Line - line }); ok {
			s.rows[i].active = true
		}
	}
	return s, nil
}

// sums are those of an entry without its parent, and of the parent. White space
// between members does not count.
func sums(seed maphash.Seed, e *transcript.Entry) (sum, parent uint64) {
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = span.Each(e.Raw, 0, func(key, val []byte) error {
		if span.Is(key, "parentId") {
			parent = maphash.Bytes(seed, val)
			return nil
		}
		_, _ = h.Write(key)
		_ = h.WriteByte(0)
		_, _ = h.Write(val)
		_ = h.WriteByte(0)
		return nil
	})
	return h.Sum64(), parent
}
