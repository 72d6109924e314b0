package transcript

import (
	"bytes"
	"hash/maphash"
)

// ids numbers the entry ids of one transcript, each stored once.
type ids struct {
	seed  maphash.Seed
	text  []byte
	syms  []sym
	table []int32 // number+1 by hash, 0 where free; a power of two long
}

// sym is one id: where its text ends and the last node that has it.
type sym struct {
	end  uint32
	node int32  // index of the node, none if no row has had this id yet
	mark uint32 // which reset row it descends from, counted from 1, and invalid
}

// invalid marks the ids of leaf rows that pointed nowhere.
const invalid = 1 << 31

const none = int32(-1)

func (x *ids) name(n int32) []byte {
	from := uint32(0)
	if n > 0 {
		from = x.syms[n-1].end
	}
	return x.text[from:x.syms[n].end]
}

// find is the number of an id, none if it has not been seen.
func (x *ids) find(id []byte) int32 {
	if len(x.table) == 0 {
		return none
	}
	mask := len(x.table) - 1
	for i := int(maphash.Bytes(x.seed, id)) & mask; ; i = (i + 1) & mask {
		n := x.table[i] - 1
		if n < 0 || bytes.Equal(x.name(n), id) {
			return n
		}
	}
}

// add numbers an id.
func (x *ids) add(id []byte) int32 {
	if n := x.find(id); n >= 0 {
		return n
	}
	if 3*(len(x.syms)+1) > 2*len(x.table) {
		x.grow()
	}
	x.text = append(x.text, id...)
	n := int32(len(x.syms))
	x.syms = append(x.syms, sym{end: uint32(len(x.text)), node: none})
	x.place(n)
	return n
}

func (x *ids) place(n int32) {
	mask := len(x.table) - 1
	i := int(maphash.Bytes(x.seed, x.name(n))) & mask
	for x.table[i] != 0 {
		i = (i + 1) & mask
	}
	x.table[i] = n + 1
}

func (x *ids) grow() {
	if len(x.table) == 0 {
		x.seed = maphash.MakeSeed()
	}
	x.table = make([]int32, max(32, 2*len(x.table)))
	for n := range x.syms {
		x.place(int32(n))
	}
}
