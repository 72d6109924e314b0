package span

import "unicode/utf8"

// Units is the length in UTF-16 units of the text that a raw string holds, which is not decoded for it; 0 for any other value.
func Units(raw []byte) (n int) {
	if KindOf(raw) != String || len(raw) < 2 {
		return 0
	}
	body := raw[1 : len(raw)-1]
	for i := 0; i < len(body); {
		if k := plain(body[i:]); k > 0 {
			i, n = i+k, n+k
			continue
		}
		switch c := body[i]; {
		case c == '\\' && i+1 < len(body) && body[i+1] == 'u':
			i, n = i+6, n+1
		case c == '\\':
			i, n = i+2, n+1
		case c < utf8.RuneSelf:
			i, n = i+1, n+1
		default:
			r, size := utf8.DecodeRune(body[i:])
			if r == utf8.RuneError && size == 1 { // what becomes of such bytes is Text's business
				s, _ := Text(raw)
				return UTF16Len(s)
			}
			if i, n = i+size, n+1; r > 0xffff {
				n++
			}
		}
	}
	return n
}
