package lifecycle

import (
	"math"
	"time"

	"oc/config"
	"oc/store/row"
)

// Times are what a row says of itself, in epoch milliseconds. Negative, not a number or in the future: it says nothing.
type Times struct {
	Started     float64 // sessionStartedAt, else the time of the transcript's header
	Interaction float64 // lastInteractionAt
	Updated     float64 // updatedAt
}

// Unsaid is a time that a row does not say.
var Unsaid = math.NaN()

// A State is what a policy says of a session at a time. Instants are epoch milliseconds.
type State struct {
	Fresh  bool
	Reason Mode // what ended it first: Daily or Idle; "" while it is fresh

	Boundary float64 // the last daily reset; NaN where there are none
	Next     float64 // the next daily reset; NaN where there are none
	Expires  float64 // when it ends for want of messages; NaN where it does not
	Start    float64 // what counts as its start
	Last     float64 // what counts as its last message
}

// At tells whether a session is still fresh at now, in the given time zone: the host's, as OpenClaw sees it. A session that
// started just at the boundary is fresh, and so is one whose time runs out just now.
func (p Policy) At(now time.Time, times Times, release config.Release) State {
	ms := float64(now.UnixMilli())
	or := func(v, other float64) float64 {
		if math.IsNaN(v) || v < 0 || v > ms {
			return other
		}
		return v
	}
	s := State{Boundary: math.NaN(), Next: math.NaN(), Expires: math.NaN()}
	s.Start = or(times.Started, or(times.Updated, 0))
	s.Last = or(times.Interaction, s.Start)
	if p.Mode == Never {
		s.Fresh = true
		return s
	}
	daily, idle := false, false
	if p.Mode == Daily {
		last, next := boundaries(now, p.Hour, release)
		s.Boundary, s.Next = float64(last.UnixMilli()), float64(next.UnixMilli())
		daily = s.Start < s.Boundary
	}
	if p.Idle > 0 {
		s.Expires = s.Last + p.Idle*60_000
		idle = ms > s.Expires
	}
	switch {
	case daily && (!idle || s.Boundary <= s.Expires):
		s.Reason = Daily
	case idle:
		s.Reason = Idle
	}
	s.Fresh = s.Reason == ""
	return s
}

// boundaries are the daily resets at or before now, and after it.
func boundaries(now time.Time, hour int, release config.Release) (last, next time.Time) {
	y, m, d := now.Date()
	today := wall(y, m, d, hour, now.Location())
	if !now.Before(today) {
		return today, wall(y, m, d+1, hour, now.Location())
	}
	if release == config.Release735 { // it goes back a day from what the clock shows then, which a gap may have moved
		y, m, d = today.Date()
		hour = today.Hour()
		return wall(y, m, d-1, hour, now.Location()), today
	}
	return wall(y, m, d-1, hour, now.Location()), today
}

// wall is the instant at which clocks of a zone show a full hour, as JavaScript finds it: the first of two where clocks are set
// back, and where they skip it, the instant that the hour would have been.
func wall(y int, m time.Month, d, hour int, zone *time.Location) time.Time {
	naive := time.Date(y, m, d, hour, 0, 0, 0, time.UTC)
	with := func(at time.Time) time.Time {
		_, offset := at.In(zone).Zone()
		return naive.Add(-time.Duration(offset) * time.Second).In(zone)
	}
	shows := func(t time.Time) bool {
		_, offset := t.Zone()
		return t.Add(time.Duration(offset) * time.Second).Equal(naive)
	}
	// No zone is more than 14 hours away, so these two lie before and behind the instant.
	before, after := with(naive.Add(-15*time.Hour)), with(naive.Add(15*time.Hour))
	if !shows(before) && shows(after) {
		return after
	}
	return before
}

// Read takes the times from a row. Where it does not say when it started, the header of its transcript may.
func Read(e *row.Entry) Times {
	read := func(f row.Field) float64 {
		if ms, ok := e.Stamp(f); ok {
			return ms
		}
		return Unsaid
	}
	return Times{Started: read(row.SessionStartedAt), Interaction: read(row.LastInteractionAt), Updated: read(row.UpdatedAt)}
}
