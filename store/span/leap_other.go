//go:build !amd64

package span

// leap would pass a part of a string literal; here skipString does it all.
func leap(_ []byte, i int) int { return i }
