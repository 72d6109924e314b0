package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A sieve looks at raw lines, at the speed of memory, for signs that a text may
// stand in their decoded strings. It gives false alarms, and never misses:
//
// A string in JSON is written as itself but for escapes, and only an escape can
// spell a character in another way. Quotes, the backslash and control
// characters are always escaped, and the slash may be, so what is looked for is
// split there, and one of its pieces is enough to look for. Its characters can
// be spelled otherwise only by \uXXXX of one of their UTF-16 units: such an
// escape anywhere in a line is a sign too. U+FFFD is a split, since it is also
// what broken UTF-8 is read as. Where case is ignored, all letters are splits
// that are the same as one outside of ASCII (k is the Kelvin sign, s the long
// s), and of the others both forms are looked for.
//
// Signs are found 32 bytes at a time: two bytes of the piece that are rare in
// transcripts, at their distance, or a backslash before a u. See blocks.
type sieve struct {
	piece []byte // small letters where case is ignored; empty: every line may hold the text
	fold  bool
	at, d int // where the first of the two bytes stands in piece, and how far behind it the other

	first, second         uint64                // the bytes, eight times
	firstCase, secondCase uint64                // 0x20 eight times for a letter in either case
	units                 *[1 << 16 / 64]uint64 // a set of the UTF-16 units that piece is made of
}

// pieceBytes is how much of a text is looked for; the rest is for the decoded
// line. It bounds the work at one place.
const pieceBytes = 48

func newSieve(all []literal) (best sieve) {
	least := 0.0
	for _, l := range all {
		for _, piece := range l.split() {
			s := sieve{piece: piece, fold: l.fold}
			if weight := s.choose(); best.piece == nil || weight < least {
				best, least = s, weight
			}
		}
	}
	best.units = new([1 << 16 / 64]uint64)
	for _, r := range string(best.piece) {
		for _, u := range utf16.AppendRune(nil, r) {
			best.units[u/64] |= 1 << (u % 64)
		}
		if best.fold && 'a' <= r && r <= 'z' {
			r -= 'a' - 'A'
			best.units[r/64] |= 1 << (r % 64)
		}
	}
	return best
}

// split gives the parts of a literal that every spelling without escapes holds.
func (l literal) split() (all [][]byte) {
	var piece []byte
	cut := func() {
		if len(piece) > 0 {
			all = append(all, piece)
		}
		piece = nil
	}
	for _, r := range l.runes {
		switch {
		case r < ' ', r == '"', r == '\\', r == '/', r == utf8.RuneError, !utf8.ValidRune(r):
			cut()
			continue
		case l.fold && !lonely(r):
			cut()
			continue
		case l.fold && 'A' <= r && r <= 'Z':
			r += 'a' - 'A'
		}
		if len(piece)+utf8.RuneLen(r) > pieceBytes {
			cut()
		}
		piece = utf8.AppendRune(piece, r)
	}
	cut()
	return all
}

// lonely tells whether r has no other case outside of ASCII.
func lonely(r rune) bool {
	if r >= utf8.RuneSelf {
		return unicode.SimpleFold(r) == r
	}
	return r|0x20 != 'k' && r|0x20 != 's'
}

const ones = 0x0101010101010101

// choose finds the two bytes of the piece that are rarest. The weight is small
// for a piece that is seldom met.
func (s *sieve) choose() (weight float64) {
	often := func(i int) float64 {
		c := s.piece[i]
		if s.fold && 'a' <= c && c <= 'z' {
			return frequency(c) + frequency(c-'a'+'A')
		}
		return frequency(c)
	}
	i, j := 0, 0
	for k := range s.piece {
		switch {
		case k == 0:
		case i == j || often(k) < often(i) && often(j) < often(i):
			i, j = j, k
		case often(k) < often(i):
			i, j = j, k
		case often(k) < often(j):
			j = k
		}
	}
	s.at, s.d = i, j-i
	eight := func(i int) (c, either uint64) {
		c = uint64(s.piece[i])
		if s.fold && 'a' <= c && c <= 'z' {
			either = 0x20
		}
		return c * ones, either * ones
	}
	s.first, s.firstCase = eight(i)
	s.second, s.secondCase = eight(j)
	weight = often(i)
	if i != j {
		weight *= often(j) / 1000
	}
	return weight / float64(min(len(s.piece), 8))
}

// frequency is about how often a byte stands in transcripts, in thousandths:
// prose and code as JSON, and images in base64.
func frequency(c byte) float64 {
	const common = "etaoinshrdlcumfpgwybvkxjqz"
	switch {
	case c == '"':
		return 50
	case c == ' ':
		return 90
	case c == ',', c == ':', c == '\\', c == '.', c == '-', c == '_', c == '/':
		return 14
	case '0' <= c && c <= '9':
		return 15
	case 'a' <= c && c <= 'z':
		return 4 + float64(len(common)-bytes.IndexByte([]byte(common), c))*2.2
	case 'A' <= c && c <= 'Z':
		return 5
	case c >= 0x80:
		return 3
	}
	return 2
}

// A sifting is one pass of a sieve over bytes.
type sifting struct {
	*sieve
	in    []byte
	spare int // how many places may still be looked at in vain
}

func (s *sieve) over(in []byte) sifting {
	return sifting{sieve: s, in: in, spare: 64 + len(in)/8}
}

func index(in []byte, from int, c byte) int {
	if from >= len(in) {
		return len(in)
	}
	if i := bytes.IndexByte(in[from:], c); i >= 0 {
		return from + i
	}
	return len(in)
}

// next is the first place from here on that is a sign, len(in) if there is
// none.
func (s *sifting) next(from int) int {
	if len(s.piece) == 0 {
		return from
	}
	i := from // everything before it was looked at
	for n := len(s.in) - max(s.d, 8) - i; n >= 32; n = len(s.in) - max(s.d, 8) - i {
		passed, m := s.blocks(s.in[i:], n/32)
		for ; m != 0; m &= m - 1 {
			if place := s.sign(i + passed + bits.TrailingZeros32(m)); place >= from {
				return place
			}
		}
		i += passed
		if passed < n&^31 {
			i += 32
		}
	}
	for ; i < len(s.in); i++ {
		if place := s.sign(i); place >= from {
			return place
		}
	}
	return len(s.in)
}

// sign is the place of a sign of which the first rare byte, or the backslash,
// is here; -1 for none.
func (s *sifting) sign(at int) int {
	if s.in[at] == '\\' && s.escape(at) {
		return at
	}
	if c := uint64(s.in[at]); c|s.firstCase&0xff != s.first&0xff || at+s.d >= len(s.in) {
		return -1
	}
	start := at - s.at
	switch {
	case uint64(s.in[at+s.d])|s.secondCase&0xff != s.second&0xff, start < 0:
		return -1
	case s.matches(start):
		return start
	}
	if s.spare--; s.spare < 0 {
		return start // a sign in every place that could be one is right too, and ends soon
	}
	return -1
}

func (s *sifting) matches(start int) bool {
	if start+len(s.piece) > len(s.in) {
		return false
	}
	there := s.in[start : start+len(s.piece)]
	if !s.fold {
		return string(there) == string(s.piece)
	}
	for i, c := range there {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != s.piece[i] {
			return false
		}
	}
	return true
}

// escapeBytes is how long the longest escape is.
const escapeBytes = len(`\uXXXX`)

// escape tells whether the escape at a backslash is one of a character of the
// piece. A cut one is of a broken line, or there is more to come.
func (s *sifting) escape(at int) bool {
	if at+escapeBytes > len(s.in) || s.in[at+1] != 'u' {
		return false
	}
	unit, ok := hex4(s.in[at+2:])
	return ok && s.units[unit/64]&(1<<(unit%64)) != 0
}

func hex4(b []byte) (n uint16, ok bool) {
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		n = n<<4 | uint16(c)
	}
	return n, true
}

// May tells whether the needle may stand in a raw line. It is true too often,
// never too seldom.
func (n *Needle) May(line []byte) bool {
	s := n.sieve.over(line)
	return s.next(0) < len(line) || len(s.piece) == 0
}

// Sift passes the lines of r that begin from that byte on and before the byte
// to, and gives those to f that may hold the needle, without their line breaks
// and with the byte they begin at. A line lasts until f returns. Memory is flat:
// a long line is held only if it is given out. f may return ErrStop.
func (n *Needle) Sift(r io.ReaderAt, from, to int64, f func(line []byte, at int64) error) error {
	p := sifter{needle: n, again: r, to: to, give: f}
	if from > 0 { // the line that the byte before is in is another's
		p.pos, p.skip = from-1, true
	}
	p.start = p.pos
	return p.run(io.NewSectionReader(r, p.pos, 1<<62-p.pos))
}

// SiftStream is Sift for all lines of a source that is read once. Its memory is
// that of the longest line.
func (n *Needle) SiftStream(r io.Reader, f func(line []byte, at int64) error) error {
	p := sifter{needle: n, to: 1 << 62, give: f}
	return p.run(r)
}

// A sifter keeps the place of a Sift.
type sifter struct {
	needle *Needle
	again  io.ReaderAt // to read a long line; nil: it has to be kept
	to     int64
	give   func(line []byte, at int64) error

	buf   []byte
	pos   int64 // of buf
	start int64 // of the line that buf begins in
	skip  bool  // that line is not asked for
	sign  bool  // that line has a sign in what has left buf
}

// rooms are buffers, which are worth more than a line: a corpus has thousands of files.
var rooms = sync.Pool{New: func() any { return new([chunk]byte) }}

func (p *sifter) run(r io.Reader) error {
	room := rooms.Get().(*[chunk]byte)
	defer rooms.Put(room)
	p.buf = room[:]
	have := 0
	for p.start < p.to {
		n, err := io.ReadAtLeast(r, p.buf[have:], 1)
		have += n
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return fmt.Errorf("read the transcript at byte %d: %w", p.pos+int64(have), err)
		}
		if ended {
			err := p.lines(p.buf[:have], true)
			if errors.Is(err, ErrStop) {
				return nil
			}
			return err
		}
		if have < len(p.buf) {
			continue // small reads: gather more
		}
		if have, err = p.take(have); err != nil {
			if errors.Is(err, ErrStop) {
				return nil
			}
			return err
		}
	}
	return nil
}

// take deals with the whole lines in a full buffer and moves the rest to its
// beginning.
func (p *sifter) take(have int) (int, error) {
	end := lastBreak(p.buf[:have]) + 1
	if end > 0 {
		if err := p.lines(p.buf[:end], false); err != nil {
			return 0, err
		}
		if len(p.buf) > longLine {
			rest := p.buf[end:have]
			p.buf = make([]byte, max(chunk, 2*len(rest)))
			return copy(p.buf, rest), nil
		}
		return copy(p.buf, p.buf[end:have]), nil
	}
	if p.again == nil {
		p.buf = append(p.buf, make([]byte, min(have, 4*longLine))...)
		return have, nil
	}
	// A long line: only whether it has a sign is kept.
	if !p.sign && !p.skip {
		p.sign = p.needle.May(p.buf[:have])
	}
	keep := max(pieceBytes, escapeBytes)
	p.pos += int64(have - keep)
	return copy(p.buf, p.buf[have-keep:have]), nil
}

// lines looks through whole lines; at the end of the source the last may lack
// its break.
func (p *sifter) lines(b []byte, last bool) error {
	base := p.pos
	p.pos += int64(len(b))
	at := 0
	if p.start < base || p.skip { // the end of a long line, or of one that is not asked for
		end := index(b, 0, '\n')
		sign, start := p.sign || !p.skip && p.needle.May(b[:end]), p.start
		p.sign = false
		if p.skip {
			sign, p.skip = false, false
		}
		if sign {
			line := make([]byte, base+int64(end)-start)
			if _, err := p.again.ReadAt(line, start); err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("read the line at byte %d again: %w", start, err)
			}
			if err := p.give(trimBreak(line), start); err != nil {
				return err
			}
		}
		at = end + 1
	}
	s := p.needle.sieve.over(b)
	for at < len(b) {
		sign := s.next(at)
		if sign >= len(b) {
			break
		}
		start := max(at, lastBreak(b[:sign])+1)
		if base+int64(start) >= p.to {
			break
		}
		end := index(b, sign, '\n')
		if err := p.give(trimBreak(b[start:end]), base+int64(start)); err != nil {
			return err
		}
		at = end + 1
	}
	p.start = p.pos
	return nil
}

func trimBreak(line []byte) []byte { return bytes.TrimSuffix(line, []byte{'\r'}) }

// Everything is a needle that every line may hold, to pass over all of them.
func Everything() *Needle { return &Needle{} }
