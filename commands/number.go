package commands

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const maxSafe = 1<<53 - 1 // the greatest whole number that JavaScript keeps exactly

// IsCount is a Check: digits only, blanks around them allowed, 1 to 2^53-1. As OpenClaw 2026.7.35 reads --limit (file-store.md 6.1).
func IsCount(s string) bool {
	s = strings.TrimSpace(s)
	return s != "" && strings.Trim(s, "0123456789") == "" && isPositive(s)
}

// IsCountOrAll is IsCount, or the word all in any case. Read it with Call.CountOrAll.
func IsCountOrAll(s string) bool { return isAll(s) || IsCount(s) }

// IsMinutes is a Check: IsCount with an optional sign in front. As OpenClaw 2026.7.35 reads --active (file-store.md 6.1).
func IsMinutes(s string) bool {
	s = strings.TrimSpace(s)
	return IsCount(strings.TrimPrefix(s, "+")) && !strings.HasPrefix(s, "+ ")
}

// IsWhole is a Check: a whole number of at least 0, at most 2^53-1.
func IsWhole(s string) bool {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	return err == nil && n >= 0 && n <= maxSafe
}

// CountOrAll is the value of a flag that is checked by IsCountOrAll; all is true for the word.
func (c *Call) CountOrAll(name string) (n int64, all bool) {
	if isAll(c.String(name)) {
		return 0, true
	}
	return c.Int(name), false
}

func isAll(s string) bool { return strings.EqualFold(strings.TrimSpace(s), "all") }

func isPositive(s string) bool {
	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && n > 0 && n <= maxSafe
}

// IsDuration is a Check: numbers with their units, such as 500ms, 90s, 5m, 1h30m, 2d, 1w. A bare 0 is allowed, any other bare number
// is not, since nobody can see whether it means seconds or milliseconds.
func IsDuration(s string) bool {
	_, err := parseDuration(s)
	return err == nil
}

func parseDuration(s string) (time.Duration, error) {
	rest := strings.ToLower(strings.TrimSpace(s))
	if rest == "0" {
		return 0, nil
	}
	total, bad := 0.0, rest == ""
	for rest != "" && !bad {
		number, more := leading(rest, "0123456789.")
		letters, more := leading(more, "abcdefghijklmnopqrstuvwxyz")
		n, err := strconv.ParseFloat(number, 64)
		unit, known := units[letters]
		total, rest, bad = total+n*float64(unit), more, err != nil || !known
	}
	if bad || total > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is no duration", s)
	}
	return time.Duration(total), nil
}

// leading splits s after its first letters that are all in set.
func leading(s, set string) (head, rest string) {
	rest = strings.TrimLeft(s, set)
	return s[:len(s)-len(rest)], rest
}

var units = map[string]time.Duration{
	"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
}
