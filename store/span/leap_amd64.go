package span

import "golang.org/x/sys/cpu"

// leap passes what a string literal may hold from i on, 32 bytes at a time:
// characters that stand for themselves and escapes of two characters. It may
// stop anywhere before the quote, the mistake or the end of b that ends it.
func leap(b []byte, i int) int {
	if n := len(b) - i; n >= 32 && cpu.X86.HasAVX2 {
		i += blocks(&b[i], n)
	}
	return i
}

// blocks is leap of n bytes at b, with the instructions of AVX2.
//
//go:noescape
func blocks(b *byte, n int) (passed int)
