package gateway

import (
	"fmt"
	"strings"
	"time"

	"oc/store/lock"
)

// Run is what is written down about a session's run: the facts of its row and
// of its transcript. Stamps are epoch milliseconds, 0 when absent.
type Run struct {
	Status     string
	StartedAt  float64
	UpdatedAt  float64 // of the row; stands in where the start is not known
	EndedAt    float64
	ArchivedAt float64
	// Recovery is the row's restartRecoveryDeliveryRunId: a run that a gateway
	// may take up again after a restart.
	Recovery string
	// LastByte is when the transcript last grew; zero: unknown.
	LastByte time.Time
}

// Word is a verdict on a row whose status is running.
type Word string

const (
	Live          Word = "live"
	ProbablyDead  Word = "probably dead"
	Contradictory Word = "contradictory"
	Unknown       Word = "unknown"
)

// Judgement is a verdict and the facts that it rests on, one sentence each.
type Judgement struct {
	Word     Word
	Evidence []string
}

// Recent is how long after its last byte a transcript counts as being written.
const Recent = 5 * time.Minute

const drift = time.Minute // between stamps of different processes

// Verdict says whether a row that claims to run does (field-reports.md S14). It
// is pure: held is the transcript's lock, nil when it was not looked for, as in
// the SQLite era, which has none; boot is when the machine started, zero when
// unknown. Silence alone never makes a run dead: there must be a boot, a dead
// lock, a younger gateway or the proof that nobody owns the state.
func Verdict(r Run, o Ownership, held *lock.Report, boot, now time.Time) Judgement {
	j := Judgement{Word: Unknown}
	if r.Status != "running" {
		j.say("the status is %q", r.Status)
		return j
	}
	started, known := moment(r.StartedAt, now)
	begun := "it started"
	if !known {
		j.say("when it started is not known")
		started, known = moment(r.UpdatedAt, now)
		begun = "its row was last written"
	}

	contradiction := false
	if ended, ok := moment(r.EndedAt, now); ok && (!known || !ended.Before(started)) {
		contradiction = true
		j.say("it has an end, %s, and still says running", stamp(ended))
		if !r.LastByte.IsZero() && r.LastByte.After(ended.Add(drift)) {
			j.say("its transcript grew after that, at %s", stamp(r.LastByte))
		}
	}
	if r.ArchivedAt > 0 {
		contradiction = true
		j.say("it is archived and still says running")
	}

	// Signs of life.
	quiet := now.Sub(r.LastByte)
	fresh := !r.LastByte.IsZero() && quiet < Recent
	switch {
	case r.LastByte.IsZero():
	case fresh:
		j.say("its transcript grew at %s", stamp(r.LastByte))
	default:
		j.say("its transcript has been quiet for %s", spell(quiet))
	}
	alive, blocked, deadLock := false, false, false
	if held != nil {
		switch held.State {
		case lock.Held, lock.OverHold:
			alive = true
		case lock.Foreign, lock.Fresh:
			blocked = true
		case lock.Dead, lock.Recycled:
			deadLock = true
		}
		switch {
		case held.State != lock.Free:
			j.say("its transcript lock is %s: %s", held.State, strings.Join(held.Evidence, "; "))
		default:
			j.say("its transcript is not locked")
		}
	}

	// Signs of death.
	here := !o.elsewhere()
	// A machine without a battery clock boots in the past: a run of a gateway
	// that lives since before it began is of this boot, whatever the stamps say.
	within := known && o.Life == Alive && !o.Since.IsZero() && !started.Before(o.Since)
	rebooted := known && here && !within && !boot.IsZero() && started.Add(drift).Before(boot)
	if rebooted {
		j.say("%s at %s, before the last boot at %s", begun, stamp(started), stamp(boot))
	}
	outlived := o.Life == Alive && o.Role != "agent-embedded" && known && !o.Since.IsZero() && started.Add(drift).Before(o.Since)
	switch o.Life {
	case None:
		j.say("nobody owns the state: no gateway was found")
	case Alive:
		j.say("%s owns the state%s", role(o), since(o))
		if outlived {
			j.say("%s before that, at %s", begun, stamp(started))
		}
	default:
		j.say("whether a gateway owns the state is not known")
	}
	if r.Recovery != "" {
		j.say("it is marked to be taken up again after a restart")
	}

	growing := fresh && (boot.IsZero() || !r.LastByte.Before(boot))
	switch {
	case contradiction:
		j.Word = Contradictory
	case alive:
		j.Word = Live
	case blocked:
		j.Word = Unknown
	case growing && o.Life == Alive:
		j.Word = Live
	case growing:
		j.Word = Unknown // somebody wrote a moment ago
	case r.Recovery != "":
		j.Word = Unknown
	case rebooted, deadLock && o.Life == None, outlived, o.Life == None:
		j.Word = ProbablyDead
	}
	return j
}

// elsewhere says that the state may be used from another machine or container,
// whose boots are not this one's.
func (o Ownership) elsewhere() bool {
	for _, e := range o.Evidence {
		if e.Kind == Shared {
			return true
		}
	}
	return false
}

func (j *Judgement) say(format string, args ...any) {
	j.Evidence = append(j.Evidence, fmt.Sprintf(format, args...))
}

// moment reads a stamp. Impossible ones are not known: zero, negative, or more
// than a minute in the future.
func moment(ms float64, now time.Time) (time.Time, bool) {
	if !(ms > 0) || ms > float64(now.Add(drift).UnixMilli()) {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(ms)), true
}

func role(o Ownership) string {
	name := o.Role
	if name == "" {
		name = "somebody"
	}
	if o.PID != 0 {
		name = fmt.Sprintf("%s (process %d)", name, o.PID)
	}
	return name
}

func since(o Ownership) string {
	if o.Since.IsZero() {
		return ""
	}
	return " since " + stamp(o.Since)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// spell is a duration in the largest unit that says it well.
func spell(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d >= time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return d.Round(time.Second).String()
}
