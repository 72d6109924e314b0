package visible

import (
	"unicode"
	"unicode/utf8"
)

// Silent tells whether the whole text is the silent token: once or repeated, in
// any case, with white space and punctuation around it (spec/transcript.md 5).
func Silent(s string) bool { return silent(s, "no_reply") }

// Control tells whether the whole text is one of the answers that only steer
// OpenClaw: NO_REPLY, REPLY_SKIP, ANNOUNCE_SKIP.
func Control(s string) bool {
	return Silent(s) || silent(s, "reply_skip") || silent(s, "announce_skip")
}

func silent(s, token string) bool {
	return exact(s, token) || exact(unpunctuated(Trim(s)), token)
}

// exact tells whether s is the token, repeated with white space between.
func exact(s, token string) bool {
	i := skip(s, 0)
	if !hasFold(s, i, token) {
		return false
	}
	for {
		i += len(token)
		j := skip(s, i)
		if j == len(s) {
			return true
		}
		if j == i || !hasFold(s, j, token) {
			return false
		}
		i = j
	}
}

// unpunctuated is s without punctuation at its ends.
func unpunctuated(s string) string {
	for s != "" {
		r, w := utf8.DecodeRuneInString(s)
		if !unicode.Is(unicode.P, r) {
			break
		}
		s = s[w:]
	}
	for s != "" {
		r, w := utf8.DecodeLastRuneInString(s)
		if !unicode.Is(unicode.P, r) {
			break
		}
		s = s[:len(s)-w]
	}
	return s
}
