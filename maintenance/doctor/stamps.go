package doctor

import (
	"fmt"
	"time"

	"oc/store/row"
	"oc/store/span"
)

// Times of rows that cannot be (field-reports.md S20; spec/transcript.md 6.2).
const (
	StampFuture     Code = "stamp-future"
	StampImpossible Code = "stamp-impossible"
	StampSeconds    Code = "stamp-seconds"
	StampMissing    Code = "stamp-missing"
)

var stampFamily = Family{
	Name: "stamps",
	Checks: []Check{
		{
			Code: StampFuture, Severity: Warn, Remedy: ByHand,
			Says:    "a row was last used at a time that has not come yet",
			Matters: "It counts as the newest: it is never removed for its age and stands first in every list, until then.",
			Command: "look at the clock of the machine; the session's next message sets the time right",
		},
		{
			Code: StampImpossible, Severity: Warn, Remedy: ByHand,
			Says:    "a row has a time that cannot be one",
			Matters: "OpenClaw takes it for 0, the oldest there is, and removes the row first. oc keeps it: its age is unknown.",
			Command: "correct the row while OpenClaw is down; the session's next message does it too",
		},
		{
			Code: StampSeconds, Severity: Warn, Remedy: ByHand,
			Says:    "a row has a time that seems to be in seconds",
			Matters: "Read as milliseconds it lies in 1970, and OpenClaw removes the row for its age. That it is seconds is a guess, which is not applied.",
			Command: "correct the row while OpenClaw is down; the session's next message does it too",
		},
		{
			Code: StampMissing, Severity: Info, Remedy: None,
			Says:    "a row has no time of use",
			Matters: "No rule removes it for its age, and it is the first to go when there are too many.",
		},
	},
	store: (*exam).stamps,
}

// clockDrift is how far ahead a stamp may be without a finding.
const clockDrift = 5 * time.Minute

func (x *exam) stamps(s *site) {
	for _, r := range s.sessions() {
		if !r.IsSet(row.UpdatedAt) && r.Raw(row.UpdatedAt) == nil {
			x.find(Finding{Code: StampMissing, Subject: s.row(r.Key), Evidence: []string{"it has no updatedAt"}})
		}
		for _, field := range []row.Field{row.UpdatedAt, row.SessionStartedAt, row.LastInteractionAt} {
			raw := r.Raw(field)
			if raw == nil {
				continue
			}
			f := Finding{Subject: s.row(r.Key)}
			ms, ok := r.Stamp(field)
			switch {
			case !ok || ms > 8.64e15 || field == row.UpdatedAt && ms == 0:
				f.Code, f.Evidence = StampImpossible, []string{fmt.Sprintf("%s is %s", field, kindOf(raw))}
			case inSeconds(ms):
				f.Code = StampSeconds
				f.Evidence = []string{fmt.Sprintf("%s is %.0f; as seconds it is %s", field, ms, when(ms*1000))}
			case ms < 1e12:
				f.Code, f.Evidence = StampImpossible, []string{fmt.Sprintf("%s is %s, before there was OpenClaw", field, when(ms))}
			case ms > x.nowMs()+float64(clockDrift.Milliseconds()):
				f.Code = StampFuture
				f.Evidence = []string{fmt.Sprintf("%s is %s, %s ahead of now", field, when(ms), roundly(ms-x.nowMs()))}
			default:
				continue
			}
			x.find(f)
		}
	}
}

// inSeconds tells a time that seems to be in seconds: as those it lies between
// 2001 and 2100.
func inSeconds(ms float64) bool { return ms > 978_307_200 && ms < 4_102_444_800 }

// kindOf says what a value is that is no time, without showing a text.
func kindOf(raw []byte) string {
	switch span.KindOf(raw) {
	case span.Number:
		return string(raw[:min(len(raw), 32)])
	case span.Null:
		return "null"
	case span.String:
		return "a text"
	case span.Bool:
		return "a flag"
	case span.Array:
		return "a list"
	}
	return "an object"
}

// when is a time for people.
func when(ms float64) string {
	return time.UnixMilli(int64(ms)).UTC().Format("2006-01-02 15:04:05 UTC")
}

// roundly is a duration of milliseconds for people.
func roundly(ms float64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}
