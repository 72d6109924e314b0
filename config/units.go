package config

import (
	"math"
	"strconv"
	"strings"

	"oc/store/span"
)

var (
	durationUnits = map[string]float64{"ms": 1, "s": 1e3, "m": 60e3, "h": 3600e3, "d": 86400e3}
	sizeUnits     = map[string]float64{
		"b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30, "t": 1 << 40, "tb": 1 << 40,
	}
)

// maxSafe is the largest integer that JavaScript can trust.
const maxSafe = 1<<53 - 1

// ParseDuration reads a duration as OpenClaw's configuration writes it, in milliseconds: "30d", "1d12h", "1.5h", or a bare number of
// the unit given ("ms", "s", "m", "h" or "d"). It is false for anything else (spec/maintenance.md 1.1, release 2026.7.35).
func ParseDuration(text, unit string) (ms float64, ok bool) {
	text = span.Lower(span.Trim(text))
	total := 0.0
	for rest := text; ; {
		number, tail := cutNumber(rest)
		if number == "" {
			return 0, false
		}
		letters := len(tail) - len(strings.TrimLeft(tail, "smhd"))
		// "ms" is one unit, but "5m5s" has two: letters stand together only in ms.
		name := tail[:letters]
		if name == "" && rest == text && tail == "" {
			name = unit
		}
		factor, known := durationUnits[name]
		value, err := strconv.ParseFloat(number, 64)
		if !known || err != nil {
			return 0, false
		}
		total += value * factor
		if rest = tail[letters:]; rest == "" {
			break
		}
	}
	ms = math.Floor(total + 0.5)
	return ms, ms <= maxSafe
}

// ParseSize reads a size as OpenClaw's configuration writes it, in bytes: "500", "10mb", "1.5g". Units are powers of 1024. It is false
// for anything else (spec/maintenance.md 1.1, release 2026.7.35).
func ParseSize(text string) (bytes float64, ok bool) {
	number, name := cutNumber(span.Lower(span.Trim(text)))
	if number == "" {
		return 0, false
	}
	if name == "" {
		name = "b"
	}
	factor, known := sizeUnits[name]
	value, err := strconv.ParseFloat(number, 64)
	bytes = math.Floor(value*factor + 0.5)
	return bytes, known && err == nil && !math.IsInf(bytes, 0)
}

// cutNumber splits off a number without sign or exponent; it is empty if there is none.
func cutNumber(text string) (number, rest string) {
	digits := func(from int) int {
		for from < len(text) && text[from] >= '0' && text[from] <= '9' {
			from++
		}
		return from
	}
	end := digits(0)
	if end == 0 {
		return "", text
	}
	if end+1 < len(text) && text[end] == '.' {
		if more := digits(end + 1); more > end+1 {
			end = more
		}
	}
	return text[:end], text[end:]
}
