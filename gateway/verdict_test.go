package gateway

import (
	"strings"
	"testing"
	"time"

	"oc/store/lock"

	"pgregory.net/rapid"
)

func TestVerdict(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	ms := func(ago time.Duration) float64 { return float64(now.Add(-ago).UnixMilli()) }
	at := func(ago time.Duration) time.Time { return now.Add(-ago) }
	locked := func(s lock.State) *lock.Report {
		return &lock.Report{State: s, Evidence: []string{"as the lock says"}}
	}
	owner := func(since time.Duration) Ownership {
		return Ownership{Life: Alive, PID: 7, Role: "gateway", Since: at(since)}
	}
	none := Ownership{Life: None}
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		run  Run
		own  Ownership
		lock *lock.Report
		boot time.Time
		want Word
		says string
	}{
		"live lock, recent bytes":          {Run{StartedAt: ms(time.Minute), LastByte: at(time.Second)}, owner(day), locked(lock.Held), at(2 * day), Live, "lock is held"},
		"live lock, quiet for a day":       {Run{StartedAt: ms(day), LastByte: at(day)}, none, locked(lock.OverHold), at(2 * day), Live, "quiet for 24h"},
		"no lock, silent three days":       {Run{StartedAt: ms(3 * day), LastByte: at(3 * day)}, none, locked(lock.Free), at(9 * day), ProbablyDead, "nobody owns the state"},
		"quiet, gateway older than it":     {Run{StartedAt: ms(3 * day), LastByte: at(3 * day)}, owner(4 * day), nil, at(9 * day), Unknown, "quiet for 3d"},
		"quiet, gateway younger than it":   {Run{StartedAt: ms(3 * day), LastByte: at(3 * day)}, owner(day), nil, at(9 * day), ProbablyDead, "started before that"},
		"growing under a gateway":          {Run{StartedAt: ms(time.Hour), LastByte: at(time.Minute)}, owner(day), nil, at(9 * day), Live, "grew at"},
		"growing under nobody":             {Run{StartedAt: ms(time.Hour), LastByte: at(time.Minute)}, none, nil, at(9 * day), Unknown, "grew at"},
		"started before the boot":          {Run{StartedAt: ms(3 * day), LastByte: at(3 * day)}, Ownership{Life: Maybe}, locked(lock.Free), at(day), ProbablyDead, "before the last boot"},
		"before the boot, on a share":      {Run{StartedAt: ms(3 * day)}, Ownership{Life: Maybe, Evidence: []Evidence{{Kind: Shared}}}, nil, at(day), Unknown, "not known"},
		"clock set after the boot":         {Run{StartedAt: ms(300 * day)}, owner(301 * day), nil, at(day), Unknown, "owns the state"},
		"dead lock, nobody there":          {Run{StartedAt: ms(day)}, none, locked(lock.Dead), at(9 * day), ProbablyDead, "lock is dead"},
		"dead lock beside a gateway":       {Run{StartedAt: ms(day)}, owner(2 * day), locked(lock.Recycled), at(9 * day), Unknown, "lock is recycled"},
		"lock of another host":             {Run{StartedAt: ms(9 * day)}, none, locked(lock.Foreign), at(day), Unknown, "lock is foreign"},
		"lock being written":               {Run{StartedAt: ms(9 * day)}, none, locked(lock.Fresh), at(day), Unknown, "unreadable-fresh"},
		"ended":                            {Run{StartedAt: ms(day), EndedAt: ms(time.Hour)}, owner(2 * day), nil, at(9 * day), Contradictory, "it has an end"},
		"ended, and grew after it":         {Run{StartedAt: ms(day), EndedAt: ms(time.Hour), LastByte: at(time.Second)}, owner(2 * day), locked(lock.Held), at(9 * day), Contradictory, "grew after that"},
		"ended before it started":          {Run{StartedAt: ms(time.Hour), EndedAt: ms(day), LastByte: at(time.Second)}, owner(2 * day), nil, at(9 * day), Live, "grew"},
		"archived":                         {Run{StartedAt: ms(time.Hour), ArchivedAt: ms(time.Minute)}, owner(2 * day), nil, at(9 * day), Contradictory, "archived"},
		"to be taken up again":             {Run{StartedAt: ms(3 * day), Recovery: "r1"}, owner(day), nil, at(2 * day), Unknown, "taken up again"},
		"no stamps, nobody":                {Run{}, none, nil, at(day), ProbablyDead, "not known"},
		"impossible stamps":                {Run{StartedAt: -5, EndedAt: ms(-2 * day)}, owner(day), nil, at(2 * day), Unknown, "not known"},
		"embedded agent":                   {Run{StartedAt: ms(day)}, Ownership{Life: Alive, Role: "agent-embedded", Since: at(time.Hour)}, nil, at(9 * day), Unknown, "agent-embedded owns"},
		"unknown owner":                    {Run{StartedAt: ms(day), LastByte: at(day)}, Ownership{Life: Maybe}, nil, at(9 * day), Unknown, "is not known"},
		"bytes of after the boot, no more": {Run{StartedAt: ms(3 * day), LastByte: at(time.Minute)}, none, nil, at(time.Hour), Unknown, "before the last boot"},
	} {
		c.run.Status = "running"
		got := Verdict(c.run, c.own, c.lock, c.boot, now)
		if all := strings.Join(got.Evidence, "\n"); got.Word != c.want || !strings.Contains(all, c.says) {
			t.Errorf("%s: %s, want %s with %q; evidence:\n%s", name, got.Word, c.want, c.says, all)
		}
	}
	if got := Verdict(Run{Status: "done"}, none, nil, now, now); got.Word != Unknown || len(got.Evidence) != 1 {
		t.Errorf("not running: %+v", got)
	}
}

// Age alone never kills: making a run older, with everything that lives older
// still, does not turn it into a dead one.
func TestSilenceIsNotDeath(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		started := time.Duration(rapid.Int64Range(0, 1e17).Draw(t, "started"))
		r := Run{Status: "running", StartedAt: float64(now.Add(-started).UnixMilli())}
		r.LastByte = now.Add(-time.Duration(rapid.Int64Range(0, int64(started)+1).Draw(t, "quiet")))
		o := Ownership{Life: Alive, Role: "gateway", Since: now.Add(-started - time.Minute)}
		boot := o.Since.Add(-time.Hour)
		if got := Verdict(r, o, nil, boot, now); got.Word == ProbablyDead {
			t.Fatalf("%+v", got)
		}
		held := &lock.Report{State: lock.Held}
		if got := Verdict(r, Ownership{Life: None}, held, now, now); got.Word != Live {
			t.Fatalf("under a live lock: %+v", got)
		}
	})
}
