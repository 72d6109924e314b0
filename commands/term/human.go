package term

import (
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
)

// Unknown is shown for what cannot be known. It is never shown as 0.
const Unknown = "unknown"

// Bytes shows a size: "2.1 MiB". A negative one is unknown.
func Bytes(n int64) string {
	if n < 0 {
		return Unknown
	}
	return humanize.IBytes(uint64(n))
}

// Count shows a number with a comma at the thousands.
func Count(n int64) string { return humanize.Comma(n) }

// Age shows how long ago something was, given in milliseconds: "now", "40s", "5m", "3h", "2d". What lies ahead is "in 2d". Units are
// cut off, not rounded: "5m" is at least five minutes.
func Age(ms int64) string {
	if ms < 0 {
		if ms > -1000 {
			return "now"
		}
		return "in " + unit(uint64(-(ms+1))+1)
	}
	if ms < 1000 {
		return "now"
	}
	return unit(uint64(ms))
}

func unit(ms uint64) string {
	n, letter := ms/1000, "s"
	switch {
	case n >= 48*3600:
		n, letter = n/(24*3600), "d"
	case n >= 3600:
		n, letter = n/3600, "h"
	case n >= 60:
		n, letter = n/60, "m"
	}
	return strconv.FormatUint(n, 10) + letter
}

// lastStamp is the greatest time that JavaScript's Date can hold, in milliseconds.
const lastStamp = 8_640_000_000_000_000

// Time shows a moment in the local zone, which it names: "2026-09-21 14:13:20 UTC". ms is since 1970; what no clock can show is
// unknown.
func Time(ms int64) string { return TimeIn(ms, time.Local) }

// TimeIn is Time in a given zone.
func TimeIn(ms int64, zone *time.Location) string {
	if ms > lastStamp || ms < -lastStamp {
		return Unknown
	}
	return time.UnixMilli(ms).In(zone).Format("2006-01-02 15:04:05 MST")
}
