package doctor

import (
	"fmt"
	"strings"

	"oc/store/lock"
)

// Transcript locks (field-reports.md S3; spec/file-store.md 5, release
// 2026.7.35).
const (
	LockDead       Code = "lock-dead"
	LockRecycled   Code = "lock-recycled"
	LockAlone      Code = "lock-alone"
	LockOverHold   Code = "lock-over-hold"
	LockUnreadable Code = "lock-unreadable"
	LockForeign    Code = "lock-foreign"
	LockUnlisted   Code = "lock-unlisted"
)

var lockFamily = Family{
	Name: "locks",
	Checks: []Check{
		{
			Code: LockDead, Severity: Warn,
			Says:    "a transcript is locked by a process that is gone",
			Matters: "Messages for the session can wait for the lock and be dropped; some releases stay silent until a restart.",
		},
		{
			Code: LockRecycled, Severity: Warn,
			Says:    "a transcript is locked by a process whose number another one has now",
			Matters: "The lock looks alive and is not: messages for the session can wait for it and be dropped.",
		},
		{
			Code: LockAlone, Severity: Warn,
			Says:    "a lock is left of a transcript that does not exist",
			Matters: "A session that gets this file again begins with a lock that nobody gives back.",
		},
		{
			Code: LockOverHold, Severity: Warn, Remedy: ByHand,
			Says:    "a living process holds a transcript for longer than the lock allows",
			Matters: "Its run may be stuck: others give up on the session after a minute. The lock is held and is left alone.",
			Command: "restart the process that holds it",
		},
		{
			Code: LockUnreadable, Severity: Warn,
			Says:    "a lock names no process",
			Matters: "It was half written, or damaged. While it is fresh somebody may be writing it.",
		},
		{
			Code: LockForeign, Severity: Info, Remedy: None,
			Says:    "a lock may be that of another host or container",
			Matters: "Its process cannot be seen from here, so that the lock counts as held.",
		},
		{
			Code: LockUnlisted, Severity: Error, Remedy: ByHand,
			Says:    "the locks of a directory cannot be read",
			Matters: "It is not known which transcripts are in use.",
			Command: "run oc as the user that OpenClaw runs as",
		},
	},
	store: (*exam).locks,
}

// lockCodes are the codes of locks whose process is not the one that lives.
var lockCodes = map[lock.State]Code{
	lock.Dead: LockDead, lock.Recycled: LockRecycled, lock.OverHold: LockOverHold,
	lock.Fresh: LockUnreadable, lock.Unreadable: LockUnreadable, lock.Foreign: LockForeign,
}

func (x *exam) locks(s *site) {
	if !s.alone {
		return
	}
	reports, err := lock.Scan(s.dir, x.Machine, x.Now)
	if err != nil {
		x.find(Finding{Code: LockUnlisted, Subject: s.at(s.dir), Evidence: []string{err.Error()}})
	}
	for _, r := range reports {
		code := lockCodes[r.State]
		if r.Orphan && r.Removable() {
			code = LockAlone
		}
		if code == "" {
			continue // it is held, and may be
		}
		f := Finding{Code: code, Subject: s.at(r.Path), Evidence: r.Evidence}
		if r.State == lock.Fresh {
			f.Severity, f.Remedy = Info, None
		}
		if r.State == lock.OverHold && r.PID > 0 {
			f.Command = fmt.Sprintf("restart process %d, which holds it", r.PID)
		}
		f.Key = s.keyOf(strings.TrimSuffix(r.Path, lock.Suffix))
		x.find(f)
	}
}

// keyOf is the session whose transcript is at a path; "" where no row names it.
func (s *site) keyOf(path string) string {
	if s.index == nil {
		return ""
	}
	if s.byFile == nil {
		s.byFile = make(map[string]string, len(s.index.Rows))
		for i := range s.index.Rows {
			r := &s.index.Rows[i]
			if _, taken := s.byFile[r.File]; r.File != "" && !taken {
				s.byFile[r.File] = r.Key
			}
		}
	}
	return s.byFile[path]
}
