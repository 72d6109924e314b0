package span

import (
	"io"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"unicode/utf8"
)

// AppendValue appends what JSON.stringify(JSON.parse(raw), null, 2) prints
// where the value stands at the given depth: raw must be valid.
func AppendValue(dst, raw []byte, depth int) []byte {
	switch KindOf(raw) {
	case Number:
		if _, ok := Int(raw); ok {
			return append(dst, raw...)
		}
		f, _ := Float(raw)
		return AppendFloat(dst, f)
	case String:
		for i, c := range raw {
			if (c == '\\' && !simpleEscape(raw[i+1])) || c >= utf8.RuneSelf {
				s, _ := Text(raw)
				return Quote(dst, s)
			}
		}
		return append(dst, raw...)
	case Array:
		n := 0
		Items(raw, 0, func(val []byte) error { //nolint:errcheck // raw is valid
			dst = append(dst, ",["[b2i(n == 0)])
			dst = indent(dst, depth+1)
			dst = AppendValue(dst, val, depth+1)
			n++
			return nil
		})
		if n == 0 {
			return append(dst, "[]"...)
		}
		return append(indent(dst, depth), ']')
	case Object:
		ms := Members(raw)
		for i, m := range ms {
			dst = append(dst, ",{"[b2i(i == 0)])
			dst = indent(dst, depth+1)
			dst = Quote(dst, m.Name)
			dst = append(dst, ": "...)
			dst = AppendValue(dst, m.Val, depth+1)
		}
		if len(ms) == 0 {
			return append(dst, "{}"...)
		}
		return append(indent(dst, depth), '}')
	}
	return append(dst, raw...)
}

func simpleEscape(c byte) bool {
	switch c {
	case '"', 'b', 'f', 'n', 'r', 't':
		return true
	}
	return false
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func indent(dst []byte, depth int) []byte {
	dst = append(dst, '\n')
	for range depth {
		dst = append(dst, "  "...)
	}
	return dst
}

// A Prop is a member of an object, its name decoded.
type Prop struct {
	Name string
	Val  []byte
}

// Members are the properties that an object has after JSON.parse, in their
// order there: integer-like names ascending, then the others by first
// appearance, each with its last value. nil where obj is not an object.
func Members(obj []byte) []Prop {
	var out []Prop
	if _, err := Each(obj, 0, func(key, val []byte) error {
		s, _ := Text(key)
		out = append(out, Prop{s, val})
		return nil
	}); err != nil {
		return nil
	}
	return Ordered(out, func(p *Prop) string { return p.Name })
}

// Ordered puts members, given in the order of the text, into the order of
// their properties: of those with one name the last takes the place of the
// first, and integer-like names come first. It works in place.
func Ordered[T any](ms []T, name func(*T) string) []T {
	if len(ms) < 2 {
		return ms
	}
	seen, twice, ints := make(map[string]int, len(ms)), false, false
	kept := ms[:0]
	for i := range ms {
		n := name(&ms[i])
		if at, ok := seen[n]; ok {
			kept[at], twice = ms[i], true
			continue
		}
		seen[n] = len(kept)
		kept = append(kept, ms[i])
		if _, ok := Index(n); ok {
			ints = true
		}
	}
	if twice {
		clear(ms[len(kept):])
	}
	if ints {
		slices.SortStableFunc(kept, func(a, b T) int {
			x, xi := Index(name(&a))
			y, yi := Index(name(&b))
			switch {
			case xi && yi:
				return int(x - y)
			case xi:
				return -1
			case yi:
				return 1
			}
			return 0
		})
	}
	return kept
}

// Index is the number of an integer-like property name: canonical, 0 to
// 4294967294.
func Index(name string) (n int64, ok bool) {
	if name == "" || len(name) > 10 || name[0] == '0' && len(name) > 1 || name[0] == '-' || name[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(name, 10, 64)
	return n, err == nil && n < 1<<32-1
}

// A Printer writes one JSON document, two-space indented, with a newline at
// its end. Its methods are called in the order of the text; a value inside an
// object follows its [Printer.Key].
type Printer struct {
	w     io.Writer // nil: what is written stays in buf
	buf   []byte
	open  []byte // closing brackets
	first bool   // nothing stands in the innermost container yet
	keyed bool   // a name waits for its value
	err   error
}

// NewPrinter returns a Printer that writes to w in large pieces.
func NewPrinter(w io.Writer) *Printer { return &Printer{w: w} }

func (p *Printer) start() {
	if p.keyed {
		p.keyed = false
		return
	}
	if len(p.open) > 0 {
		p.separate()
	}
}

func (p *Printer) separate() {
	if !p.first {
		p.buf = append(p.buf, ',')
	}
	p.first = false
	p.buf = indent(p.buf, len(p.open))
	if len(p.buf) > 1<<16 && p.w != nil {
		p.flush()
	}
}

// Flush hands on what was written so far, of a document that takes its time.
func (p *Printer) Flush() error {
	p.flush()
	return p.err
}

func (p *Printer) flush() {
	if p.err == nil {
		_, p.err = p.w.Write(p.buf)
	}
	p.buf = p.buf[:0]
}

// Object opens an object, Array an array; End closes the innermost.
func (p *Printer) Object() { p.container('{', '}') }

// Array opens an array.
func (p *Printer) Array() { p.container('[', ']') }

func (p *Printer) container(open, end byte) {
	p.start()
	p.buf, p.open, p.first = append(p.buf, open), append(p.open, end), true
}

// End closes the innermost object or array.
func (p *Printer) End() {
	end := p.open[len(p.open)-1]
	p.open = p.open[:len(p.open)-1]
	if !p.first {
		p.buf = indent(p.buf, len(p.open))
	}
	p.buf, p.first = append(p.buf, end), false
}

// block is how many values of Each one goroutine prints at a time.
const block = 128

// Each prints n values, one a call of value, into the innermost container. Where they are many they are printed by as many
// goroutines as there are processors, and written in their order: value may read what others read, and writes to its Printer alone.
func (p *Printer) Each(n int, value func(p *Printer, i int)) {
	workers := min(runtime.GOMAXPROCS(0), (n+block-1)/block)
	if workers < 2 {
		for i := range n {
			value(p, i)
		}
		return
	}
	blocks := make([]chan []byte, (n+block-1)/block)
	for i := range blocks {
		blocks[i] = make(chan []byte, 1)
	}
	var next atomic.Int64
	ahead := make(chan []byte, 4*workers) // buffers that are free; no more are ever in use
	for range cap(ahead) {
		ahead <- nil
	}
	for range workers {
		go func() {
			for buf := range ahead {
				at := int(next.Add(1)) - 1
				if at >= len(blocks) {
					return
				}
				part := Printer{buf: buf[:0], open: slices.Clone(p.open), first: p.first && at == 0}
				for i := at * block; i < min(n, (at+1)*block); i++ {
					value(&part, i)
				}
				blocks[at] <- part.buf
			}
		}()
	}
	for _, ready := range blocks {
		buf := <-ready
		if p.buf = append(p.buf, buf...); len(p.buf) > 1<<16 && p.w != nil {
			p.flush()
		}
		ahead <- buf
	}
	close(ahead)
	p.first = false
}

// Key writes a member's name.
func (p *Printer) Key(name string) *Printer {
	p.separate()
	p.buf = Quote(p.buf, name)
	p.buf = append(p.buf, ": "...)
	p.keyed = true
	return p
}

// String writes a string.
func (p *Printer) String(s string) { p.start(); p.buf = Quote(p.buf, s) }

// Int writes an integer.
func (p *Printer) Int(n int64) { p.start(); p.buf = strconv.AppendInt(p.buf, n, 10) }

// Float writes a number as JavaScript prints it.
func (p *Printer) Float(f float64) { p.start(); p.buf = AppendFloat(p.buf, f) }

// Bool writes true or false.
func (p *Printer) Bool(b bool) { p.start(); p.buf = strconv.AppendBool(p.buf, b) }

// Null writes null.
func (p *Printer) Null() { p.start(); p.buf = append(p.buf, "null"...) }

// Raw writes a valid raw value as JSON.stringify would write it here.
func (p *Printer) Raw(raw []byte) { p.start(); p.buf = AppendValue(p.buf, raw, len(p.open)) }

// Close ends the document and returns the first error of writing it.
func (p *Printer) Close() error {
	p.buf = append(p.buf, '\n')
	p.flush()
	return p.err
}
