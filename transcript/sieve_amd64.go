package transcript

import "golang.org/x/sys/cpu"

// blocks looks for signs in n blocks of 32 bytes at the start of in, which goes
// on for s.d and eight bytes more. It passes those without one, and tells where
// in the next there may be signs: a bit for each byte; 0 when all were passed.
func (s *sieve) blocks(in []byte, n int) (passed int, at uint32) {
	if !cpu.X86.HasAVX2 {
		return s.words(in, n)
	}
	_ = in[32*n+max(s.d, 8)-1]
	return pairs(&in[0], &in[s.d], n, s.first, s.firstCase, s.second, s.secondCase)
}

// pairs is words with the instructions of AVX2.
//
//go:noescape
func pairs(in, other *byte, n int, first, firstCase, second, secondCase uint64) (passed int, at uint32)
