package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"oc/store/span"
)

// A Row is one line of a transcript. Its bytes belong to the scanner and last
// until the next row.
type Row struct {
	Entry
	Place
	Break int   // length of the line break behind it: 0 at a cut end, 1, or 2 for CR LF
	Blank bool  // nothing but white space
	Err   error // why the line is no entry: a *span.SyntaxError or ErrNotObject
}

// ErrStop ends a scan from within; the scan then returns no error.
var ErrStop = errors.New("stop")

// A Scanner reads rows from any source. Lines have no limit: memory is that of
// the longest one. The zero Scanner is ready to use, for one transcript.
type Scanner struct {
	Tree   *Tree         // if set, every entry is added to it
	Report func(Finding) // if set, told of what is wrong, before the row is given out

	stats   Stats
	crlf    bool
	records int
	headers int
	buf     []byte
}

// Reset makes the scanner ready for another transcript. It keeps the room that
// it has made for lines, but no very large one.
func (s *Scanner) Reset() {
	buf := s.buf
	if len(buf) > longLine {
		buf = nil
	}
	*s = Scanner{buf: buf}
}

// Stats are what a scan has passed so far.
type Stats struct {
	Bytes   int64 // with line breaks
	Lines   int   // with blank ones
	Entries int   // JSON objects
	Bad     int   // lines that are neither blank nor entries
	Longest Place // the longest line
	ID      string
	Version float64 // of the first header; 0 where it has none
}

// Stats are what the scan has passed so far.
func (s *Scanner) Stats() Stats { return s.stats }

const chunk = 256 << 10

// Read passes the lines of r, one call of row for each, and with a Tree checks
// it at the end. An error is one of r or of row, which may return ErrStop.
func (s *Scanner) Read(r io.Reader, row func(*Row) error) error {
	if s.buf == nil {
		s.buf = make([]byte, chunk)
	}
	buf, have, seen := s.buf, 0, 0
	for {
		n, err := r.Read(buf[have:])
		have += n
		at := 0
		for {
			nl := bytes.IndexByte(buf[at+seen:have], '\n')
			if nl < 0 {
				seen = have - at
				break
			}
			end := at + seen + nl
			seen = 0
			if err := s.line(buf[at:end], 1, row); err != nil {
				return s.stop(err)
			}
			at = end + 1
		}
		if rest := have - at; len(buf) > longLine && rest <= chunk/2 {
			s.buf = make([]byte, chunk) // the room of a long line is given back
			have = copy(s.buf, buf[at:have])
			buf = s.buf
		} else {
			have = copy(buf, buf[at:have])
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			if have > 0 {
				if err := s.line(buf[:have], 0, row); err != nil {
					return s.stop(err)
				}
			}
			s.end()
			return nil
		default:
			return fmt.Errorf("read the transcript at byte %d: %w", s.stats.Bytes+int64(have), err)
		}
		if have == len(buf) {
			next := make([]byte, s.room(r, have))
			copy(next, buf)
			buf, s.buf = next, next
		}
	}
}

// longLine is a line for which room is made with care.
const longLine = 4 << 20

// room is how large a buffer must be for a line of which have bytes were read:
// as large as the line, where r can be read ahead, so that nothing is copied
// twice and two large buffers do not stand side by side for longer than needed.
func (s *Scanner) room(r io.Reader, have int) int {
	if seeker, ok := r.(io.ReadSeeker); ok && have > longLine {
		if rest, ok := ahead(seeker); ok {
			return have + rest + chunk
		}
	}
	return have + min(have, 4*longLine)
}

// ahead is how far away the next line break or the end is.
func ahead(r io.ReadSeeker) (n int, ok bool) {
	start, err := r.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, false
	}
	piece := make([]byte, chunk)
	for {
		got, err := r.Read(piece)
		if nl := bytes.IndexByte(piece[:got], '\n'); nl >= 0 {
			n += nl + 1
			break
		}
		n += got
		if err != nil {
			break // the reader meets it again
		}
	}
	_, err = r.Seek(start, io.SeekStart)
	return n, err == nil
}

// Rows passes the rows of a database or another source of whole lines, which
// have no line breaks. It does what Read does.
func (s *Scanner) Rows(source func(yield func(line []byte) error) error, row func(*Row) error) error {
	err := source(func(line []byte) error { return s.line(line, 1, row) })
	if err != nil {
		return s.stop(err)
	}
	s.end()
	return nil
}

func (s *Scanner) stop(err error) error {
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

// line takes one line without its line feed.
func (s *Scanner) line(b []byte, brk int, row func(*Row) error) error {
	r := Row{Place: Place{Line: s.stats.Lines + 1, Offset: s.stats.Bytes}, Break: brk}
	s.stats.Lines++
	s.stats.Bytes += int64(len(b) + brk)
	if r.Line == 1 && bytes.HasPrefix(b, bom) {
		s.report(BOM, &r, 0, "")
		b = b[len(bom):]
		r.Offset += int64(len(bom))
	}
	if brk == 1 && len(b) > 0 && b[len(b)-1] == '\r' {
		b, r.Break = b[:len(b)-1], 2
		if !s.crlf {
			s.crlf = true
			s.report(CRLF, &r, len(b), "")
		}
	}
	r.Size = len(b)
	if r.Size > s.stats.Longest.Size {
		s.stats.Longest = r.Place
	}
	r.Entry, r.Err = Parse(b)
	if r.Err != nil && blank(b) {
		r.Blank, r.Err = true, nil
	}
	switch {
	case r.Blank:
	case r.Err != nil:
		s.stats.Bad++
		s.broken(&r)
	default:
		s.stats.Entries++
		if s.Report != nil {
			s.check(&r)
		}
		s.record(&r)
	}
	return row(&r)
}

// broken says what is wrong with a line that is no entry.
func (s *Scanner) broken(r *Row) {
	if s.Report == nil {
		return
	}
	var bad *span.SyntaxError
	at, why := 0, ""
	if errors.As(r.Err, &bad) {
		at, why = bad.Offset, bad.Reason
	}
	nul := bytes.IndexByte(r.Raw, 0)
	switch {
	case nul == 0 && r.Break == 0 && len(bytes.Trim(r.Raw, "\x00")) == 0:
		s.report(NULTail, r, 0, fmt.Sprintf("%d bytes", len(r.Raw)))
	case nul >= 0:
		s.report(NUL, r, nul, fmt.Sprintf("%d bytes", bytes.Count(r.Raw, []byte{0})))
	case r.Break == 0:
		s.report(TornTail, r, at, why)
	case errors.Is(r.Err, ErrNotObject):
		s.records++
		s.report(NotObject, r, 0, "")
	default:
		s.report(NotJSON, r, at, why)
	}
	s.utf8(r)
}

func (s *Scanner) utf8(r *Row) {
	if utf8.Valid(r.Raw) {
		return
	}
	for i := 0; i < len(r.Raw); {
		c, w := utf8.DecodeRune(r.Raw[i:])
		if c == utf8.RuneError && w == 1 {
			s.report(BadUTF8, r, i, "")
			return
		}
		i += w
	}
}

// check says what is wrong with an entry.
func (s *Scanner) check(r *Row) {
	s.utf8(r)
	if r.Break == 0 {
		s.report(NoBreak, r, r.Size, "")
	}
	switch {
	case r.Kind == Header:
		if r.ID == nil {
			s.report(BadHeader, r, 0, "it has no id")
		}
	case r.Kind == Opaque:
	case r.ID == nil:
		s.report(NoID, r, 0, "")
	}
	if r.Kind == Message {
		s.checkMessage(r)
	}
}

// record keeps what the first records tell, and feeds the tree.
func (s *Scanner) record(r *Row) {
	s.records++
	if r.Kind == Header {
		if s.headers++; s.headers == 1 {
			s.stats.ID = string(r.ID)
			s.stats.Version, _ = span.Float(span.Member(r.Raw, "version"))
		}
		switch {
		case s.headers > 1:
			s.report(SecondHeader, r, 0, "")
		case s.records > 1:
			s.report(LateHeader, r, 0, "")
		case s.stats.Version < 3:
			s.report(OldVersion, r, 0, "")
		case s.stats.Version > 4:
			s.report(NewVersion, r, 0, "")
		}
	}
	if s.Tree != nil {
		if s.Tree.Report == nil {
			s.Tree.Report = s.Report
		}
		s.Tree.Add(&r.Entry, r.Place)
	}
}

// end says what only the end can tell.
func (s *Scanner) end() {
	if s.headers == 0 && s.Report != nil {
		s.Report(Finding{Code: NoHeader})
	}
	if s.Tree != nil {
		if s.Tree.Report == nil {
			s.Tree.Report = s.Report
		}
		s.Tree.Check()
	}
}

func (s *Scanner) report(c Code, r *Row, at int, why string) {
	if s.Report != nil {
		s.Report(Finding{Code: c, At: r.Place, Byte: r.Offset + int64(at), ID: string(r.ID), Why: why})
	}
}
