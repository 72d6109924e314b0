package sqlfile

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"math"
	"unsafe"
)

// Pages are a database file in memory. Its layout is the one that sqlite.org/fileformat2.html describes. Whatever does not hold is errPages;
// nothing in a file can make this code run on for longer than the file is large.
type pages struct {
	b            []byte
	size, usable int // of a page, in bytes
}

var errPages = errors.New("the page does not hold what it should")

// asPages takes b for a database file.
func asPages(b []byte) (*pages, error) {
	const magic = "SQLite format 3\x00"
	if len(b) < 512 || string(b[:len(magic)]) != magic {
		return nil, errPages
	}
	p := &pages{b: b, size: int(binary.BigEndian.Uint16(b[16:]))}
	if p.size == 1 {
		p.size = 1 << 16
	}
	p.usable = p.size - int(b[20])
	if p.size < 512 || p.size&(p.size-1) != 0 || p.usable < 480 || len(b)%p.size != 0 {
		return nil, errPages
	}
	return p, nil
}

// page is page n, counted from 1; nil where there is none.
func (p *pages) page(n uint32) []byte {
	if n == 0 || int64(n)*int64(p.size) > int64(len(p.b)) {
		return nil
	}
	end := int(n) * p.size
	return p.b[end-p.size : end : end][:p.usable]
}

// The kinds of pages of a table.
const (
	interior = 5
	leaf     = 13
)

// node is what the head of a page of a table says: where its cells are.
func (p *pages) node(n uint32) (page []byte, kind byte, cells []byte, right uint32, err error) {
	page = p.page(n)
	if page == nil {
		return nil, 0, nil, 0, errPages
	}
	at := 0
	if n == 1 {
		at = 100
	}
	kind = page[at]
	count := int(binary.BigEndian.Uint16(page[at+3:]))
	first := at + 8
	switch kind {
	case interior:
		right, first = binary.BigEndian.Uint32(page[at+8:]), at+12
	case leaf:
	default:
		return nil, 0, nil, 0, errPages
	}
	if first+2*count > len(page) {
		return nil, 0, nil, 0, errPages
	}
	return page, kind, page[first : first+2*count], right, nil
}

// leaves are the pages of the table at root that hold rows, in the order of the rows.
func (p *pages) leaves(root uint32) (all []uint32, err error) {
	seen := make([]uint64, len(p.b)/p.size/64+1)
	todo := []uint32{root}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		page, kind, cells, right, err := p.node(n)
		if err != nil {
			return nil, err
		}
		if seen[n/64]&(1<<(n%64)) != 0 {
			return nil, errPages
		}
		seen[n/64] |= 1 << (n % 64)
		if kind == leaf {
			all = append(all, n)
			continue
		}
		todo = append(todo, right)
		for i := len(cells) - 2; i >= 0; i -= 2 {
			at := int(binary.BigEndian.Uint16(cells[i:]))
			if at+4 > len(page) {
				return nil, errPages
			}
			todo = append(todo, binary.BigEndian.Uint32(page[at:]))
		}
	}
	return all, nil
}

// records reads the rows of leaves.
type records struct {
	pages *pages
	table *shape
	row   Row
	room  []byte // for a record that is on several pages
	read  int    // bytes, for the pages not to be read for ever
	kept  int    // of them, when memory was last given up
}

func (r *records) each(ctx context.Context, leaves []uint32, f func(*Row) error) error {
	for _, n := range leaves {
		if err := ctx.Err(); err != nil {
			return err
		}
		page, _, cells, _, err := r.pages.node(n)
		if err != nil {
			return err
		}
		if r.read-r.kept > 16<<20 {
			r.kept = r.read
			r.pages.forget()
		}
		for i := 0; i < len(cells); i += 2 {
			record, err := r.record(page, int(binary.BigEndian.Uint16(cells[i:])))
			if err != nil {
				return err
			}
			if err := r.columns(record); err != nil {
				return err
			}
			if err := f(&r.row); err != nil {
				return err
			}
		}
	}
	return nil
}

// record is what the cell at a place of a leaf holds. It stays until the next one is read.
func (r *records) record(page []byte, at int) ([]byte, error) {
	if at >= len(page) {
		return nil, errPages
	}
	size, n := uvarint(page[at:])
	if n == 0 || size > uint64(len(r.pages.b)) {
		return nil, errPages
	}
	at += n
	if _, n = uvarint(page[at:]); n == 0 { // the row's number
		return nil, errPages
	}
	at += n
	total, usable := int(size), r.pages.usable
	if r.read += total; r.read > len(r.pages.b) {
		return nil, errPages
	}
	here := total
	if most := usable - 35; total > most {
		least := (usable-12)*32/255 - 23
		if here = least + (total-least)%(usable-4); here > most {
			here = least
		}
	}
	if at+here > len(page) {
		return nil, errPages
	}
	if here == total {
		return page[at : at+total], nil
	}
	if at+here+4 > len(page) {
		return nil, errPages
	}
	r.room = append(r.room[:0], page[at:at+here]...)
	for next := binary.BigEndian.Uint32(page[at+here:]); len(r.room) < total; {
		more := r.pages.page(next)
		if more == nil {
			return nil, errPages
		}
		next = binary.BigEndian.Uint32(more)
		r.room = append(r.room, more[4:4+min(usable-4, total-len(r.room))]...)
	}
	return r.room, nil
}

// columns takes the row's values out of its record.
func (r *records) columns(record []byte) (err error) {
	size, n := uvarint(record)
	if n == 0 || size > uint64(len(record)) || int(size) < n {
		return errPages
	}
	head, body := record[n:size], record[size:]
	clear(r.row.vals)
	for column, want := range r.table.want {
		if len(head) == 0 {
			if r.table.fallback[column] {
				return errPages
			}
			continue
		}
		kind, n := uvarint(head)
		long := length(kind)
		if n == 0 || long > uint64(len(body)) {
			return errPages
		}
		if want >= 0 {
			if r.row.vals[want], err = value(kind, body[:long:long]); err != nil {
				return err
			}
		}
		head, body = head[n:], body[long:]
	}
	return nil
}

// length is how many bytes a value of a kind takes.
func length(kind uint64) uint64 {
	switch {
	case kind >= 12:
		return (kind - 12) / 2
	case kind == 5:
		return 6
	case kind == 6 || kind == 7:
		return 8
	case kind <= 4:
		return kind
	}
	return 0
}

// value is the value of a kind that b holds. Texts and blobs are not copied.
func value(kind uint64, b []byte) (driver.Value, error) {
	switch {
	case kind == 0:
		return nil, nil
	case kind <= 6:
		n := int64(int8(b[0]))
		for _, c := range b[1:] {
			n = n<<8 | int64(c)
		}
		return n, nil
	case kind == 7:
		return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
	case kind <= 9:
		return int64(kind - 8), nil
	case kind < 12:
		return nil, errPages
	case kind%2 == 1:
		return unsafe.String(unsafe.SliceData(b), len(b)), nil
	}
	return b, nil
}

// uvarint reads SQLite's own kind of number, at most nine bytes; n is 0 where b ends within it.
func uvarint(b []byte) (v uint64, n int) {
	for i, c := range b {
		if i == 8 {
			return v<<8 | uint64(c), 9
		}
		if v = v<<7 | uint64(c&0x7f); c < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
