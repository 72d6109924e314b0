//go:build !amd64

package transcript

// blocks looks for signs in n blocks of 32 bytes at the start of in, which goes
// on for s.d and eight bytes more. It passes those without one, and tells where
// in the next there may be signs: a bit for each byte; 0 when all were passed.
func (s *sieve) blocks(in []byte, n int) (passed int, at uint32) { return s.words(in, n) }
