package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"oc/store/span"
)

// TailLimits bound how far back a tail is read. The zero value reads OpenClaw's
// default of 200 messages.
type TailLimits struct {
	Messages int   // how many messages are wanted; 0 means 200
	Bytes    int64 // of lines that are kept; 0 means 12 MiB
	LongLine int   // lines above this are not kept whole, as Long tells; 0 means 256 KiB
}

// A Tail is the end of a transcript.
type Tail struct {
	// Rows of the active branch with a message, a compaction or a reset, the
	// oldest first; their bytes are their own, and their lines are not known.
	Rows  []TailRow
	Start int64 // everything from here on was read
	Whole bool  // Start is 0: nothing came before
	Bad   int   // lines that are no entries
	// Broken are the places of the first 100 of those that were met, from the
	// end; their lines are not known.
	Broken []Place
	Torn   bool // the last of them has no line break: it is cut, or being written
	Off    int  // messages that were read and are not on the active branch
	Lost   bool // a leaf row points at a row before Start, or nowhere: the branch is not known
}

// A TailRow is one row of a tail.
type TailRow struct {
	Entry
	Place
	// Long tells that the line was not kept whole: Raw is its start, and
	// Message is a StandIn.
	Long bool
}

// ends is how much of a long line is looked at from its start.
const ends = 64 << 10

// ReadTail reads a transcript of size bytes from its end until it has the newest
// messages of the active branch (spec/session-tools.md 2.2). What lies before
// them is not read. Of a long line only the start is kept, and the rest is
// passed over in small pieces.
func ReadTail(r io.ReaderAt, size int64, limits TailLimits) (Tail, error) {
	if limits.Messages <= 0 {
		limits.Messages = 200
	}
	if limits.Bytes <= 0 {
		limits.Bytes = 12 << 20
	}
	if limits.LongLine <= 0 {
		limits.LongLine = 256 << 10
	}
	b := backReader{r: r, limits: limits, end: size, from: size}
	t := Tail{Start: size}
	want, lines, kept := limits.Messages, limits.Messages*20+20, int64(0)
	var rows []TailRow // the newest first
	messages := 0
	for !t.Whole {
		row, err := b.line()
		if errors.Is(err, io.EOF) {
			t.Whole = true
		} else if err != nil {
			return t, fmt.Errorf("read the transcript before byte %d: %w", t.Start, err)
		} else {
			t.Start = row.Offset
			switch {
			case row.err != nil:
				if t.Bad++; t.Bad <= 100 {
					t.Broken = append(t.Broken, row.Place)
				}
				t.Torn = t.Torn || row.last
			case !row.blank:
				rows = append(rows, row.TailRow)
				lines--
				kept += int64(len(row.Raw))
				if shows(&row.Entry) {
					messages++
				}
			}
		}
		full := lines <= 0 || kept >= limits.Bytes
		if messages < want && !full && !t.Whole {
			continue
		}
		if t.pick(rows, messages); len(t.Rows) >= limits.Messages || full || t.Whole {
			break
		}
		want += max(1, limits.Messages-len(t.Rows)) // some of them were on other branches
	}
	if n := len(t.Rows) - limits.Messages; n > 0 {
		t.Rows = t.Rows[n:]
	}
	t.Whole = t.Start == 0
	return t, nil
}

// shows tells whether a row is one of a conversation.
func shows(e *Entry) bool {
	return span.KindOf(e.Message) == span.Object || e.Kind == Compaction || e.Kind == Reset
}

// pick selects what is on the active branch.
func (t *Tail) pick(newest []TailRow, messages int) {
	rows := slices.Clone(newest)
	slices.Reverse(rows)
	entries := make([]Entry, len(rows))
	for i := range rows {
		entries[i] = rows[i].Entry
	}
	active, known := ActiveRows(entries)
	t.Rows, t.Lost = nil, !known
	for _, i := range active {
		if shows(&rows[i].Entry) {
			t.Rows = append(t.Rows, rows[i])
		}
	}
	t.Off = messages - len(t.Rows)
}

// backReader reads lines from the end of a file to its start.
type backReader struct {
	r      io.ReaderAt
	limits TailLimits
	buf    []byte // the bytes [from, end)
	from   int64
	end    int64
	lines  int
}

type backLine struct {
	TailRow
	last, blank bool
	err         error
}

const step = 64 << 10

// line reads the line before the ones that were read, io.EOF at the start.
func (b *backReader) line() (backLine, error) {
	var l backLine
	if b.end == 0 {
		return l, io.EOF
	}
	l.last = b.lines == 0
	b.lines++
	// The line feed that ends this line, except at a cut end.
	if err := b.need(1); err != nil {
		return l, err
	}
	stop := b.end
	if b.buf[len(b.buf)-1] == '\n' {
		l.last = false
		stop--
		b.buf = b.buf[:len(b.buf)-1]
		b.end--
	}
	start, err := b.start()
	if err != nil {
		return l, err
	}
	l.Offset, l.Size = start, int(stop-start)
	raw, err := b.take(start, stop)
	if err != nil {
		return l, err
	}
	if l.Long = len(raw) < l.Size; !l.Long && len(raw) > 0 && raw[len(raw)-1] == '\r' {
		raw = raw[:len(raw)-1]
		l.Size--
	}
	if start == 0 {
		raw = bytes.TrimPrefix(raw, bom)
	}
	l.Entry, l.err = Parse(raw)
	switch {
	case l.Long:
		l.err = nil
		l.Message = StandIn(raw)
	case l.err != nil && blank(raw):
		l.blank, l.err = true, nil
	}
	return l, nil
}

// need makes the buffer hold at least n bytes before end, if there are so many.
func (b *backReader) need(n int) error {
	for len(b.buf) < n && b.from > 0 {
		if err := b.more(); err != nil {
			return err
		}
	}
	if len(b.buf) == 0 {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// more reads the piece before the buffer.
func (b *backReader) more() error {
	n := min(b.from, step)
	next := make([]byte, int(n)+len(b.buf))
	if _, err := b.r.ReadAt(next[:n], b.from-n); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	copy(next[n:], b.buf)
	b.buf, b.from = next, b.from-n
	return nil
}

// start finds where the line begins that ends at the end of the buffer. The
// buffer of a long line is given up.
func (b *backReader) start() (int64, error) {
	seen := 0
	for {
		if at := lastBreak(b.buf[:len(b.buf)-seen]); at >= 0 {
			return b.from + int64(at) + 1, nil
		}
		if b.from == 0 {
			return 0, nil
		}
		seen = len(b.buf)
		if seen > b.limits.LongLine {
			break
		}
		if err := b.more(); err != nil {
			return 0, err
		}
	}
	piece := make([]byte, 4*step)
	for at := b.from; at > 0; {
		n := min(at, int64(len(piece)))
		if _, err := b.r.ReadAt(piece[:n], at-n); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		at -= n
		if nl := lastBreak(piece[:n]); nl >= 0 {
			return at + int64(nl) + 1, nil
		}
	}
	return 0, nil
}

// take gives the bytes of a line, or the first of a long one, and leaves the
// buffer before it.
func (b *backReader) take(start, stop int64) ([]byte, error) {
	size := stop - start
	b.end = start
	if start >= b.from && size <= int64(b.limits.LongLine) {
		raw := bytes.Clone(b.buf[start-b.from : stop-b.from])
		b.buf = b.buf[:start-b.from]
		return raw, nil
	}
	if start < b.from {
		b.buf, b.from = nil, start
	} else {
		b.buf = b.buf[:start-b.from]
	}
	raw := make([]byte, min(size, ends))
	_, err := b.r.ReadAt(raw, start)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return raw, err
}

// StandIn is a message without content for a line that is too long, of which
// head is the start: the role is the first that this names. It is nil for a row
// that seems to have no message.
func StandIn(head []byte) []byte {
	role := "assistant"
	if at := bytes.Index(head, []byte(`"role":`)); at >= 0 {
		at += len(`"role":`)
		if end, err := span.Skip(head, at); err == nil {
			if s, ok := span.Text(bytes.TrimSpace(head[at:end])); ok {
				role = s
			}
		}
	} else if !bytes.Contains(head, []byte(`"message":`)) {
		return nil
	}
	return append(append([]byte(`{"role":`), span.Quote(nil, role)...),
		`,"content":[],"__openclaw":{"truncated":true,"reason":"oversized"}}`...)
}
