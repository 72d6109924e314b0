package jsonfile

import (
	"bytes"
	"errors"
	"io"
	"runtime"

	"oc/store/row"
	"oc/store/span"
)

// A store of many megabytes is read and indexed in as many pieces at once as there are processors, none smaller than this.
const pieceBytes = 512 << 10

func pieces(size int) int { return max(1, min(runtime.GOMAXPROCS(0), size/pieceBytes)) }

// readAll reads size bytes, or what there is of them.
func readAll(f io.ReaderAt, size int64) ([]byte, error) {
	text := make([]byte, size)
	large(text)
	type part struct {
		n   int
		err error
	}
	n := pieces(len(text))
	each := len(text)/n + 1
	parts := make([]chan part, n)
	for i := range parts {
		parts[i] = make(chan part, 1)
		go func() {
			from := min(i*each, len(text))
			k, err := f.ReadAt(text[from:min(from+each, len(text))], int64(from))
			if errors.Is(err, io.EOF) {
				err = nil
			}
			parts[i] <- part{k, err}
		}()
	}
	end, whole := 0, true
	for i := range parts {
		p := <-parts[i]
		if p.err != nil {
			return nil, p.err
		}
		if whole {
			end += p.n
			whole = end == min((i+1)*each, len(text))
		}
	}
	return text[:end:end], nil
}

// A piece is the part of a store from one member to another, indexed.
type piece struct {
	entries []row.Entry
	next    int // the piece that goes on where this one stops; 0: none, it went to the end of the object
	end     int // the offset behind the object, of the piece that has its end
	err     error
}

// index walks the object that a store is, in n pieces at once, and returns its members, in the order of the text, and the offset behind it.
//
// A line break cannot stand inside a JSON string, so a line that starts as members of the outer object do in OpenClaw's own
// stores is the best guess of where one starts. A piece that starts at a guess counts only if the piece before it, walking
// from the start of the text or from a guess that counts, comes upon a member just there. What a wrong guess found is thrown
// away.
func index(text []byte, n int) ([]row.Entry, int, error) {
	starts := []int{0}
	for i := 1; i < n; i++ {
		from := len(text) / n * i
		if at := bytes.Index(text[from:], []byte("\n  \"")); at >= 0 && from+at+3 > starts[len(starts)-1] {
			starts = append(starts, from+at+3)
		}
	}
	found := make([]chan piece, len(starts))
	for i := range starts {
		found[i] = make(chan piece, 1)
		go func() { found[i] <- walk(text, starts, i) }()
	}
	var all []row.Entry
	for i := 0; ; {
		p := <-found[i]
		if p.err != nil {
			return nil, 0, p.err
		}
		if all == nil {
			all = p.entries
		} else {
			all = append(all, p.entries...)
		}
		if i = p.next; i == 0 {
			return all, p.end, nil
		}
	}
}

// walk indexes members from the start of piece i until another piece starts, or the object ends.
func walk(text []byte, starts []int, i int) (p piece) {
	p.entries = make([]row.Entry, 0, len(text)/len(starts)/2048)
	c := span.Cursor{B: text, At: starts[i]}
	first := c.Open
	if i > 0 {
		first = c.Name
	}
	var x row.Indexer
	next := i + 1
	key, err := first()
	for ; key != nil; key, err = c.Next() {
		at := span.At(text, key)
		for next < len(starts) && starts[next] < at {
			next++
		}
		if next < len(starts) && starts[next] == at {
			p.next = next
			return p
		}
		name, _ := span.Text(key)
		e, err := x.Index(name, &c)
		if err != nil {
			p.err = err
			return p
		}
		p.entries = append(p.entries, e)
	}
	p.end, p.err = c.At, err
	return p
}
