package transcript

import (
	"bytes"
	"encoding/binary"
)

const (
	backslashes = '\\' * ones
	us          = 'u' * ones
	highs       = 0x80 * ones
)

// words is blocks with nothing but whole numbers: eight bytes in one.
func (s *sieve) words(in []byte, n int) (passed int, at uint32) {
	first, second, firstCase, secondCase := s.first, s.second, s.firstCase, s.secondCase
	word := func(x, y, next uint64) uint64 {
		p := ((x | firstCase) ^ first) | ((y | secondCase) ^ second)
		e := (x ^ backslashes) | (next ^ us)
		// High where a byte of p or e is zero, and perhaps in the bytes behind it.
		return (((p - ones) &^ p) | ((e - ones) &^ e)) & highs
	}
	for ; passed < 32*n; passed += 32 {
		b, other := (*[40]byte)(in[passed:]), (*[32]byte)(in[passed+s.d:])
		m0 := word(binary.LittleEndian.Uint64(b[0:8]), binary.LittleEndian.Uint64(other[0:8]), binary.LittleEndian.Uint64(b[1:9]))
		m1 := word(binary.LittleEndian.Uint64(b[8:16]), binary.LittleEndian.Uint64(other[8:16]), binary.LittleEndian.Uint64(b[9:17]))
		m2 := word(binary.LittleEndian.Uint64(b[16:24]), binary.LittleEndian.Uint64(other[16:24]), binary.LittleEndian.Uint64(b[17:25]))
		m3 := word(binary.LittleEndian.Uint64(b[24:32]), binary.LittleEndian.Uint64(other[24:32]), binary.LittleEndian.Uint64(b[25:33]))
		if m0|m1|m2|m3 != 0 {
			return passed, bitOfEach(m0) | bitOfEach(m1)<<8 | bitOfEach(m2)<<16 | bitOfEach(m3)<<24
		}
	}
	return passed, 0
}

// bitOfEach gathers the high bits of eight bytes.
func bitOfEach(m uint64) uint32 { return uint32(m >> 7 * 0x0102040810204080 >> 56) }

const breaks = '\n' * ones

// lastBreak is where the last line feed stands, -1 if there is none: what
// bytes.LastIndexByte gives, 32 bytes at a time.
func lastBreak(b []byte) int {
	// High where a byte of a word is a line feed, and perhaps in those behind it.
	near := func(w uint64) uint64 { w ^= breaks; return (w - ones) &^ w }
	for len(b) >= 32 {
		w := (*[32]byte)(b[len(b)-32:])
		m := near(binary.LittleEndian.Uint64(w[0:8])) | near(binary.LittleEndian.Uint64(w[8:16])) |
			near(binary.LittleEndian.Uint64(w[16:24])) | near(binary.LittleEndian.Uint64(w[24:32]))
		if m&highs != 0 {
			break
		}
		b = b[:len(b)-32]
	}
	return bytes.LastIndexByte(b, '\n')
}
