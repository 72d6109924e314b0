package agentdb

import (
	"errors"
	"fmt"
	"io"
)

// Ends are the two ends of a transcript as the lines of a file, an io.ReaderAt of Size bytes. What lies between them
// reads as empty lines, more of them than there can be bytes; Size is the transcript's only where nothing does.
type Ends struct {
	Size  int64
	Whole bool // nothing lies between the ends

	head, tail []byte
}

// gap stands for what lies between the ends: nobody counted it.
const gap = 1 << 40

// Ends reads at least head bytes from the start of a window's transcript and tail bytes from its end, in whole lines.
// Damaged events are left out.
func (db *DB) Ends(sessionID string, head, tail int) (*Ends, error) {
	e := &Ends{}
	enough := errors.New("enough")
	if cold, err := db.Cold(sessionID); err != nil {
		return nil, err
	} else if cold != nil {
		return db.coldEnds(sessionID, head, tail)
	}
	last := int64(-1)
	err := db.Events(sessionID, func(ev Event) error {
		if ev.Damage == nil {
			e.head = append(append(e.head, ev.Line...), '\n')
		}
		last = ev.Seq
		if len(e.head) >= head {
			return enough
		}
		return nil
	})
	if err == nil {
		e.Size, e.Whole = int64(len(e.head)), true
		return e, nil
	}
	if err != enough {
		return nil, err
	}
	var lines [][]byte
	size := 0
	err = db.hot("WHERE session_id = ?1 AND seq > ?2 ORDER BY seq DESC", func(ev Event) error {
		if ev.Damage == nil {
			lines = append(lines, ev.Line)
			size += len(ev.Line) + 1
		}
		if size >= tail {
			return enough
		}
		return nil
	}, sessionID, last)
	if err != nil && err != enough {
		return nil, err
	}
	e.tail = make([]byte, 0, size)
	for i := len(lines) - 1; i >= 0; i-- {
		e.tail = append(append(e.tail, lines[i]...), '\n')
	}
	e.join(err == nil)
	return e, nil
}

// join settles what lies between the ends.
func (e *Ends) join(met bool) {
	if e.Whole = met; met {
		e.head, e.tail = append(e.head, e.tail...), nil
		e.Size = int64(len(e.head))
		return
	}
	e.Size = int64(len(e.head)) + gap + int64(len(e.tail))
}

func (db *DB) coldEnds(sessionID string, head, tail int) (*Ends, error) {
	e := &Ends{}
	var lines [][]byte
	size, dropped := 0, false
	err := db.Events(sessionID, func(ev Event) error {
		if ev.Damage != nil {
			return nil
		}
		if len(e.head) < head {
			e.head = append(append(e.head, ev.Line...), '\n')
			return nil
		}
		lines = append(lines, ev.Line)
		size += len(ev.Line) + 1
		for size-len(lines[0])-1 >= tail {
			size -= len(lines[0]) + 1
			lines = lines[1:]
			dropped = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		e.tail = append(append(e.tail, l...), '\n')
	}
	e.join(!dropped)
	return e, nil
}

// ReadAt reads like a file.
func (e *Ends) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 || off > e.Size {
		return 0, fmt.Errorf("read at %d of %d bytes", off, e.Size)
	}
	tailAt := e.Size - int64(len(e.tail))
	for n < len(p) {
		switch at := off + int64(n); {
		case at < int64(len(e.head)):
			n += copy(p[n:], e.head[at:])
		case at < tailAt:
			p[n] = '\n'
			n++
		case at < e.Size:
			n += copy(p[n:], e.tail[at-tailAt:])
		default:
			return n, io.EOF
		}
	}
	return n, nil
}
