package store

import (
	"bytes"
	"io"
	"math"
	"os"
	"time"

	"oc/store/lifecycle"
	"oc/store/row"
	"oc/store/span"
)

// headerBytes is how much of a transcript OpenClaw reads to learn when it began.
const headerBytes = 8 << 10

// Times are what decides whether a session is still fresh. from tells where its start was found: a field of the row or "header".
// Where the row does not say when the session started, the header of its transcript does, if it is that of the same session
// (spec/transcript.md 6.3, release 2026.7.35).
func (r *Row) Times() (t lifecycle.Times, from string) {
	t = lifecycle.Read(&r.Entry)
	if !math.IsNaN(t.Started) {
		return t, row.SessionStartedAt.String()
	}
	if r.sessions.Era == FileEra {
		if ms, ok := r.headerTime(); ok {
			t.Started = ms
			return t, "header"
		}
	}
	return t, row.UpdatedAt.String()
}

func (r *Row) headerTime() (ms float64, ok bool) {
	c, _, missing := r.sessions.Place().Find(&r.Entry)
	if missing {
		return 0, false
	}
	f, err := os.Open(c.Path)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	head := make([]byte, headerBytes)
	n, _ := io.ReadFull(f, head)
	line, _, whole := bytes.Cut(head[:n], []byte("\n"))
	if !whole && n == len(head) || span.Valid(line) != nil {
		return 0, false
	}
	kind, _ := span.Text(span.Member(line, "type"))
	id, _ := span.Text(span.Member(line, "id"))
	stamp, _ := span.Text(span.Member(line, "timestamp"))
	at, err := time.Parse(time.RFC3339, stamp)
	if kind != "session" || id != r.ID() || err != nil {
		return 0, false
	}
	return float64(at.UnixMilli()), true
}

// A Prospect is what the next message would make of a session.
type Prospect struct {
	Type   lifecycle.Type
	Policy lifecycle.Policy
	State  lifecycle.State
	Next   lifecycle.Next
	From   string // where its start was found: a field of the row, or "header"
}

// Prospect is what a message at a time would make of the session. The zone of now is the host's.
func (r *Row) Prospect(m lifecycle.Message, now time.Time) Prospect {
	section, _ := r.sessions.config.Value("session")
	x := Prospect{Type: lifecycle.TypeOf(r.Key)}
	x.Policy = lifecycle.Resolve(section, x.Type, r.Delivery().Channel, r.sessions.release())
	var times lifecycle.Times
	times, x.From = r.Times()
	x.State = x.Policy.At(now, times, r.sessions.release())
	x.Next = lifecycle.Decide(&r.Entry, m, x.Policy, x.State, section)
	return x
}
