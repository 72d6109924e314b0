// Package span reads JSON as spans of the bytes it stands in.
//
// Nothing is decoded until it is asked for: a value is the slice of the text
// that holds it, found by a scanner that checks the grammar of all it passes
// and runs over strings eight bytes at a time. What is decoded or printed
// follows JavaScript, because the files were written by it and are compared
// with what it prints: numbers are float64, a later member of the same name
// wins, integer-like names come first, lone surrogates survive.
//
// Strings hold lone surrogates as three bytes each (WTF-8); [Quote] writes
// them back as \udxxx. Bytes that are not UTF-8 become U+FFFD, as they do in a
// decoder that follows the Encoding standard.
package span

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// A SyntaxError says where a text stops being JSON. Offset counts bytes from
// the start of the text; at the text's length it means that the text is cut.
type SyntaxError struct {
	Offset int
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("byte %d: %s", e.Offset, e.Reason)
}

// Kind is what a raw value is, told by its first byte.
type Kind uint8

// The kinds of JSON value. Invalid is no value at all, as of an absent member.
const (
	Invalid Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// KindOf tells the kind of a raw value.
func KindOf(raw []byte) Kind {
	if len(raw) == 0 {
		return Invalid
	}
	switch c := raw[0]; {
	case c == '"':
		return String
	case c == '{':
		return Object
	case c == '[':
		return Array
	case c == 't', c == 'f':
		return Bool
	case c == 'n':
		return Null
	case c == '-', c >= '0' && c <= '9':
		return Number
	}
	return Invalid
}

// Valid reports whether b is exactly one JSON value, white space around it
// allowed. The error is a [*SyntaxError].
func Valid(b []byte) error {
	end, err := Skip(b, 0)
	if err != nil {
		return err
	}
	return End(b, end)
}

// End reports whether nothing but white space follows at.
func End(b []byte, at int) error {
	if at = white(b, at); at < len(b) {
		return &SyntaxError{at, "text goes on after the end of the document"}
	}
	return nil
}

// At is the offset of part in b, of which it must be a slice.
func At(b, part []byte) int { return cap(b) - cap(part) }

// Skip passes white space and one value, which it checks, and returns the
// offset behind it.
func Skip(b []byte, at int) (int, error) {
	var inline [64]byte
	open := inline[:0] // the closing bracket of each container that is open
	i := white(b, at)
	for {
		// A value starts at i.
		if i >= len(b) {
			return i, cut(b)
		}
		var err error
		switch c := b[i]; c {
		case '"':
			i, err = skipString(b, i)
		case '{':
			i = white(b, i+1)
			if i < len(b) && b[i] == '}' {
				i++
				break
			}
			if i, err = name(b, i); err != nil {
				return i, err
			}
			open = append(open, '}')
			continue
		case '[':
			i = white(b, i+1)
			if i < len(b) && b[i] == ']' {
				i++
				break
			}
			open = append(open, ']')
			continue
		case 't':
			i, err = word(b, i, "true")
		case 'f':
			i, err = word(b, i, "false")
		case 'n':
			i, err = word(b, i, "null")
		default:
			i, err = skipNumber(b, i)
		}
		if err != nil {
			return i, err
		}
		// A value ended before i: close what closes, go on behind a comma.
		for {
			if len(open) == 0 {
				return i, nil
			}
			if i = white(b, i); i >= len(b) {
				return i, cut(b)
			}
			end := open[len(open)-1]
			if b[i] == ',' {
				if i = white(b, i+1); end == '}' {
					if i, err = name(b, i); err != nil {
						return i, err
					}
				}
				break
			}
			if b[i] != end {
				return i, unexpected(b, i, fmt.Sprintf("',' or %q", end))
			}
			open = open[:len(open)-1]
			i++
		}
	}
}

// Items passes white space and one array and gives each raw value to f.
func Items(b []byte, at int, f func(val []byte) error) (int, error) {
	i := white(b, at)
	if i >= len(b) {
		return i, cut(b)
	}
	if b[i] != '[' {
		return i, unexpected(b, i, "an array")
	}
	if i = white(b, i+1); i < len(b) && b[i] == ']' {
		return i + 1, nil
	}
	for {
		start := i
		var err error
		if i, err = Skip(b, i); err != nil {
			return i, err
		}
		if err := f(b[start:i]); err != nil {
			return i, err
		}
		if i = white(b, i); i >= len(b) {
			return i, cut(b)
		}
		switch b[i] {
		case ',':
			i = white(b, i+1)
		case ']':
			return i + 1, nil
		default:
			return i, unexpected(b, i, "',' or ']'")
		}
	}
}

// Member is the raw value of the last member of that name; nil where obj is
// not an object or has none.
func Member(obj []byte, want string) (found []byte) {
	_, err := Each(obj, 0, func(key, val []byte) error {
		if Is(key, want) {
			found = val
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return found
}

// Path follows names inward from obj.
func Path(obj []byte, names ...string) []byte {
	for _, n := range names {
		obj = Member(obj, n)
	}
	return obj
}

// Is reports whether the string literal key says name.
func Is(key []byte, name string) bool {
	if len(key) == len(name)+2 && string(key[1:len(key)-1]) == name {
		return true
	}
	for _, c := range key {
		if c == '\\' {
			s, _ := Text(key)
			return s == name
		}
	}
	return false
}

// white returns the first offset at or after i that is not white space.
func white(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ' ', '\n', '\t', '\r':
			i++
		default:
			return i
		}
	}
	return i
}

// name passes a member's name, its colon and the white space around, and
// returns the offset where its value starts.
func name(b []byte, i int) (int, error) {
	if i >= len(b) {
		return i, cut(b)
	}
	if b[i] != '"' {
		return i, unexpected(b, i, "a name in quotes")
	}
	i, err := skipString(b, i)
	if err != nil {
		return i, err
	}
	if i = white(b, i); i >= len(b) {
		return i, cut(b)
	}
	if b[i] != ':' {
		return i, unexpected(b, i, "':'")
	}
	return white(b, i+1), nil
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// ends has a high bit where a byte of w is a quote, a backslash or a control
// character, and perhaps in the bytes above the first one: a borrow can mark
// only those. With one bit turned over a quote is a space, and beside the
// control characters, which stay what they are: one comparison finds both.
func ends(w uint64) uint64 {
	q, s := w^(ones*('"'^' ')), w^(ones*'\\')
	return ((q-ones*(' '+1))&^q | (s-ones)&^s) & highs
}

// skipString passes the string literal whose opening quote is at i.
func skipString(b []byte, i int) (int, error) {
	for i++; ; {
		if i+8 <= len(b) {
			m := ends(binary.LittleEndian.Uint64(b[i:]))
			if m == 0 { // it is not short
				for i = leap(b, i+8); i+8 <= len(b); i += 8 {
					if m = ends(binary.LittleEndian.Uint64(b[i:])); m != 0 {
						break
					}
				}
			}
			if m != 0 {
				i += bits.TrailingZeros64(m) >> 3
			}
		}
		if i >= len(b) {
			return i, cut(b)
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, nil
		case c == '\\':
			if i+1 >= len(b) {
				return len(b), cut(b)
			}
			switch b[i+1] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				i += 2
			case 'u':
				for k := i + 2; k < i+6; k++ {
					if k >= len(b) {
						return k, cut(b)
					}
					if !isHex(b[k]) {
						return k, unexpected(b, k, "a hexadecimal digit")
					}
				}
				i += 6
			default:
				return i, &SyntaxError{i, fmt.Sprintf("a string has the unknown escape \\%c", printable(b[i+1]))}
			}
		case c < 0x20:
			return i, &SyntaxError{i, fmt.Sprintf("a string has the control character 0x%02x", c)}
		default:
			i++
		}
	}
}

func skipNumber(b []byte, i int) (int, error) {
	start := i
	if b[i] == '-' {
		i++
	}
	if i >= len(b) {
		return i, cut(b)
	}
	switch {
	case b[i] == '0':
		i++
	case b[i] >= '1' && b[i] <= '9':
		i = digits(b, i)
	default:
		return start, unexpected(b, start, "a value")
	}
	if i < len(b) && b[i] == '.' {
		k := digits(b, i+1)
		if k == i+1 {
			return k, unexpected(b, k, "a digit")
		}
		i = k
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		k := i + 1
		if k < len(b) && (b[k] == '+' || b[k] == '-') {
			k++
		}
		if i = digits(b, k); i == k {
			return i, unexpected(b, i, "a digit")
		}
	}
	return i, nil
}

func digits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

func word(b []byte, i int, w string) (int, error) {
	for k := range len(w) {
		if i+k >= len(b) {
			return len(b), cut(b)
		}
		if b[i+k] != w[k] {
			return i, unexpected(b, i, "a value")
		}
	}
	return i + len(w), nil
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

func printable(c byte) rune {
	if c < 0x20 || c > 0x7e {
		return '?'
	}
	return rune(c)
}

func cut(b []byte) error {
	return &SyntaxError{len(b), "the text ends before the document does"}
}

func unexpected(b []byte, i int, want string) error {
	if i >= len(b) {
		return cut(b)
	}
	c := b[i]
	if c < 0x20 || c > 0x7e {
		return &SyntaxError{i, fmt.Sprintf("found byte 0x%02x where %s belongs", c, want)}
	}
	return &SyntaxError{i, fmt.Sprintf("found %q where %s belongs", c, want)}
}
