package transcript

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// ids numbers the entry ids of one transcript, each stored once: 8 bytes, its
// text with its length, and a place in a table that is filled by two thirds
// at most.
type ids struct {
	seed  maphash.Seed
	text  [][]byte // pages; each id as its length and its bytes
	syms  paged[sym]
	marks paged[uint32] // by number; shorter than syms where the rest is 0
	table []int32       // number+1 by hash, 0 where free
}

// sym is one id: where its text is and the last node that has it.
type sym struct {
	text uint32 // page << 16 | place in it
	node int32  // index of the node, none if no row has had this id yet
}

// A mark of an id tells which reset row it descends from, counted from 1, and
// whether it is the id of a leaf row that pointed nowhere.
const invalid = 1 << 31

const none = int32(-1)

// textPage is how much text a page has room for; a longer id has its own.
const textPage = 1 << 16

// full tells that no further row may come: its ids could not be numbered.
func (x *ids) full() bool { return len(x.text) > textPage-16 }

func (x *ids) name(n int32) []byte {
	at := x.syms.at(n).text
	b := x.text[at>>16][at&(textPage-1):]
	size, w := binary.Uvarint(b)
	return b[w : w+int(size) : w+int(size)]
}

// find is the number of an id, none if it has not been seen.
func (x *ids) find(id []byte) int32 {
	if len(x.table) == 0 {
		return none
	}
	for i := x.slot(id); ; i = x.behind(i) {
		n := x.table[i] - 1
		if n < 0 || string(x.name(n)) == string(id) {
			return n
		}
	}
}

// slot is where an id is looked for first.
func (x *ids) slot(id []byte) int {
	high, _ := bits.Mul64(maphash.Bytes(x.seed, id), uint64(len(x.table)))
	return int(high)
}

func (x *ids) behind(slot int) int {
	if slot++; slot == len(x.table) {
		return 0
	}
	return slot
}

// add numbers an id.
func (x *ids) add(id []byte) int32 {
	if n := x.find(id); n >= 0 {
		return n
	}
	if 3*(x.syms.n+1) > 2*len(x.table) {
		x.grow()
	}
	n := int32(x.syms.n)
	x.syms.add(sym{text: x.keep(id), node: none})
	x.place(n)
	return n
}

// keep stores the text of an id.
func (x *ids) keep(id []byte) uint32 {
	last, need := len(x.text)-1, binary.MaxVarintLen32+len(id)
	switch {
	case last < 0:
		x.text, last = append(x.text, nil), 0
	case len(x.text[last])+need > textPage:
		x.text, last = append(x.text, make([]byte, 0, max(textPage, need))), last+1
	}
	page := x.text[last]
	at := len(page)
	x.text[last] = append(binary.AppendUvarint(page, uint64(len(id))), id...)
	return uint32(last)<<16 | uint32(at)
}

func (x *ids) place(n int32) {
	i := x.slot(x.name(n))
	for x.table[i] != 0 {
		i = x.behind(i)
	}
	x.table[i] = n + 1
}

// grow makes the table half again as large: that is little, but the old and the
// new one stand side by side for a while.
func (x *ids) grow() {
	if len(x.table) == 0 {
		x.seed = maphash.MakeSeed()
	}
	x.table = make([]int32, max(32, len(x.table)+len(x.table)/2))
	for n := range x.syms.n {
		x.place(int32(n))
	}
}

func (x *ids) mark(n int32) uint32 {
	if int(n) >= x.marks.n {
		return 0
	}
	return *x.marks.at(n)
}

func (x *ids) setMark(n int32, mark uint32) {
	if mark == x.mark(n) {
		return
	}
	for x.marks.n <= int(n) {
		x.marks.add(0)
	}
	*x.marks.at(n) = mark
}
