package visible

import "strings"

// mask hides a value: all of a short one, else all but its ends.
func mask(v string) string {
	if Units(v) < 18 {
		return "***"
	}
	return head(v, 6) + "…" + tail(v, 4)
}

// split tells which part of a matched value is the secret and what behind it
// is only punctuation that the match took along.
func split(v string) (secret, rest string) {
	if v == "" {
		return "", ""
	}
	if q := v[0]; q == '"' || q == '\'' || q == '`' {
		if last := strings.LastIndexByte(v, q); last > 0 && closers(v[last+1:]) == 0 {
			return v[1:last], v[last+1:]
		}
		v = v[1:]
	}
	if n := closers(v); n > 0 {
		return v[:n], v[n:]
	}
	return v, ""
}

// closers is where the closing punctuation at the end of v begins.
func closers(v string) int {
	n := len(v)
	for n > 0 && strings.IndexByte("\"'`,;)}]", v[n-1]) >= 0 {
		n--
	}
	return n
}

// maskValue masks the secret part of a matched value.
func maskValue(v string) string {
	secret, rest := split(v)
	return mask(secret) + rest
}

// starValue is maskValue for values whose ends must not show either.
func starValue(v string) string {
	_, rest := split(v)
	return "***" + rest
}

const pemMark = "PRIVATE KEY-----"

// pem keeps the first and the last line of a key block.
func pem(block string) string {
	var first, last string
	n := 0
	for line := range strings.SplitSeq(block, "\n") {
		if line = strings.TrimSuffix(line, "\r"); line == "" {
			continue
		}
		if n == 0 {
			first = line
		}
		last = line
		n++
	}
	if n < 2 {
		return "***"
	}
	return first + "\n…redacted…\n" + last
}
