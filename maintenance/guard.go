package maintenance

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"oc/maintenance/journal"
	"oc/store/lock"
)

// mostLocks are taken for one run. What takes away more transcripts than that
// relies on their stamps, which are looked at right before each is touched.
const mostLocks = 512

// guard takes OpenClaw's locks of the transcripts that steps move, remove or
// replace, in the form that it respects (spec/file-store.md 5.5, release 2026.7.35), so
// that no turn begins in one meanwhile. One that somebody else has got by now
// is a journal.ErrChanged: the plan is made again and leaves it. Where a
// directory goes with all that is in it no lock can be put into it.
func (w *Worker) guard(steps []journal.Step) func() (func(), error) {
	var all []string
	for i := range steps {
		s := &steps[i]
		if s.Kind == journal.RemoveDir {
			return nil
		}
		if path := guarded(s); path != "" {
			all = append(all, path)
		}
	}
	if len(all) == 0 || len(all) > mostLocks {
		return nil
	}
	return func() (func(), error) {
		var held []*lock.Hand
		release := func() {
			for _, h := range held {
				_ = h.Release() // one that was taken away is not oc's any more
			}
		}
		for _, path := range all {
			if _, err := os.Lstat(path + lock.Suffix); err == nil {
				if lock.Look(path+lock.Suffix, w.Machine, w.Now()).State.Holds() {
					release()
					return nil, fmt.Errorf("%s is locked by now: %w", path, journal.ErrChanged)
				}
				continue // left behind by a process that is gone; it stays, as all that the plan does not name
			}
			h, err := lock.Hold(path, w.Machine, w.Now())
			if errors.Is(err, lock.ErrHeld) {
				release()
				return nil, fmt.Errorf("%s: %w: %w", path, journal.ErrChanged, err)
			}
			if err == nil { // where none can be made, stamps have to do
				held = append(held, h)
			}
		}
		return release, nil
	}
}

// guarded is the transcript that a step takes away, brings back or writes anew; "" for none.
func guarded(s *journal.Step) string {
	if s.Kind != journal.Move && s.Kind != journal.Remove && s.Kind != journal.Replace {
		return ""
	}
	for _, path := range []string{s.Path, s.To} {
		if strings.HasSuffix(path, ".jsonl") && !strings.HasSuffix(path, ".trajectory.jsonl") {
			return path
		}
	}
	return ""
}

// unlock removes the locks that runs which were cut short have left behind.
func unlock(all []journal.Recovery) {
	for _, r := range all {
		if slices.ContainsFunc(r.Run.Steps, func(s journal.Step) bool { return s.Kind == journal.RemoveDir }) {
			continue
		}
		for i := range r.Run.Steps {
			if path := guarded(&r.Run.Steps[i]); path != "" {
				lock.Abandon(path)
			}
		}
	}
}
