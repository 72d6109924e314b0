package span

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// Text decodes a string literal. ok is false for any other value.
func Text(raw []byte) (s string, ok bool) {
	if KindOf(raw) != String || len(raw) < 2 {
		return "", false
	}
	body := raw[1 : len(raw)-1]
	n := plain(body)
	if n == len(body) {
		return string(body), true
	}
	text := append(make([]byte, 0, len(body)), body[:n]...)
	text = unescape(text, body[n:])
	return unsafe.String(unsafe.SliceData(text), len(text)), true // nobody else has it
}

// plain is how much of a literal's body stands for itself, from its start:
// ASCII without a backslash, looked at eight bytes at a time.
func plain(body []byte) (n int) {
	for ; n+8 <= len(body); n += 8 {
		w := binary.LittleEndian.Uint64(body[n:])
		s := w ^ ones*'\\'
		if m := ((s-ones)&^s | w) & highs; m != 0 {
			return n + bits.TrailingZeros64(m)>>3
		}
	}
	for n < len(body) && body[n] != '\\' && body[n] < utf8.RuneSelf {
		n++
	}
	return n
}

// unescape appends the text of a literal's body to dst.
func unescape(dst, body []byte) []byte {
	for i := 0; i < len(body); {
		c := body[i]
		switch {
		case c == '\\' && i+1 < len(body):
			switch e := body[i+1]; e {
			case 'u':
				u := hex4(body[i+2:])
				i += 6
				if u >= 0xd800 && u < 0xdc00 && i+6 <= len(body) && body[i] == '\\' && body[i+1] == 'u' {
					if low := hex4(body[i+2:]); low >= 0xdc00 && low < 0xe000 {
						dst = utf8.AppendRune(dst, 0x10000+(u-0xd800)<<10+(low-0xdc00))
						i += 6
						continue
					}
				}
				dst = appendUnit(dst, u)
				continue
			case 'b':
				dst = append(dst, '\b')
			case 'f':
				dst = append(dst, '\f')
			case 'n':
				dst = append(dst, '\n')
			case 'r':
				dst = append(dst, '\r')
			case 't':
				dst = append(dst, '\t')
			default:
				dst = append(dst, e)
			}
			i += 2
		case c < utf8.RuneSelf:
			n := max(1, plain(body[i:])) // a backslash at the end stands for itself
			dst = append(dst, body[i:i+n]...)
			i += n
		default:
			n, good := sequence(body[i:])
			if good {
				dst = append(dst, body[i:i+n]...)
			} else {
				dst = append(dst, "\uFFFD"...)
			}
			i += n
		}
	}
	return dst
}

// appendUnit appends one UTF-16 unit; a surrogate as three bytes.
func appendUnit(dst []byte, u rune) []byte {
	if u >= 0xd800 && u < 0xe000 {
		return append(dst, 0xe0|byte(u>>12), 0x80|byte(u>>6)&0x3f, 0x80|byte(u)&0x3f)
	}
	return utf8.AppendRune(dst, u)
}

func hex4(b []byte) (u rune) {
	for _, c := range b[:4] {
		switch {
		case c <= '9':
			c -= '0'
		default:
			c = c | 0x20 - 'a' + 10
		}
		u = u<<4 | rune(c)
	}
	return u
}

// sequence measures the UTF-8 sequence at the start of b. A bad one is as long
// as the part that could have begun a good one, at least a byte: each such
// part is replaced by one U+FFFD, as decoders of the Encoding standard do.
func sequence(b []byte) (n int, good bool) {
	if r, size := utf8.DecodeRune(b); r != utf8.RuneError || size > 1 {
		return size, true
	}
	low, high := byte(0x80), byte(0xbf)
	var more int
	switch c := b[0]; {
	case c >= 0xc2 && c <= 0xdf:
		more = 1
	case c >= 0xe0 && c <= 0xef:
		more = 2
		if c == 0xe0 {
			low = 0xa0
		} else if c == 0xed {
			high = 0x9f
		}
	case c >= 0xf0 && c <= 0xf4:
		more = 3
		if c == 0xf0 {
			low = 0x90
		} else if c == 0xf4 {
			high = 0x8f
		}
	}
	n = 1
	for ; n <= more && n < len(b) && b[n] >= low && b[n] <= high; n++ {
		low, high = 0x80, 0xbf
	}
	return n, false
}

// surrogate decodes a three-byte lone surrogate at the start of s.
func surrogate(s string) (u rune, ok bool) {
	if len(s) >= 3 && s[0] == 0xed && s[1] >= 0xa0 && s[1] <= 0xbf && s[2]&0xc0 == 0x80 {
		return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), true
	}
	return 0, false
}

const hexDigits = "0123456789abcdef"

// Quote appends s as a string literal, as JSON.stringify writes it: <, >, &,
// U+2028 and U+2029 as they are, lone surrogates as \udxxx.
func Quote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			if r, n := utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			dst = append(dst, s[from:i]...)
			if u, ok := surrogate(s[i:]); ok {
				dst = append(dst, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
				i += 3
			} else {
				n, _ := sequence([]byte(s[i:min(len(s), i+4)]))
				dst = append(dst, "\uFFFD"...)
				i += n
			}
			from = i
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// UTF16Len is the length of s in UTF-16 units, as JavaScript counts.
func UTF16Len(s string) (n int) {
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			n++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			if _, ok := surrogate(s[i:]); ok {
				size = 3
			}
		}
		if r > 0xffff {
			n++
		}
		n++
		i += size
	}
	return n
}

// Float is the number that a raw value holds, as JSON.parse reads it: 1e400 is
// +Inf. ok is false for any other kind of value.
func Float(raw []byte) (f float64, ok bool) {
	if KindOf(raw) != Number {
		return 0, false
	}
	if n, ok := Int(raw); ok {
		return float64(n), true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// Int is the integer that a raw value spells in at most 15 digits, the common
// case, without a detour through float64.
func Int(raw []byte) (n int64, ok bool) {
	d := raw
	if len(d) > 0 && d[0] == '-' {
		d = d[1:]
	}
	if len(d) == 0 || len(d) > 15 || d[0] == '0' && len(raw) > 1 {
		return 0, false
	}
	for _, c := range d {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if len(d) != len(raw) {
		n = -n
	}
	return n, true
}

// AppendFloat appends f as JSON.stringify writes it: 1e+21, 2.5, and null for
// what JSON has no number for.
func AppendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	if f == 0 {
		return append(dst, '0')
	}
	if a := math.Abs(f); a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') { // e-07
		dst = append(dst[:n-2], dst[n-1])
	}
	return dst
}
