package maintenance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
//
// So are those that the plan is made from and leaves as they are, which must be what they were.
func (w *Worker) guard(steps []journal.Step, holds []held) func() (func(), error) {
	var all []string
	for _, h := range holds {
		all = append(all, h.path)
	}
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
		for _, h := range holds {
			if info, err := os.Lstat(h.path); err != nil || !os.SameFile(info, h.info) || info.Size() != h.info.Size() || !info.ModTime().Equal(h.info.ModTime()) {
				release()
				return nil, fmt.Errorf("%s was written meanwhile: %w", h.path, journal.ErrChanged)
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
func unlock(all []journal.Recovery, home string) {
	for _, r := range all {
		facts := FactsOf(r.Run, home)
		for _, rel := range facts.Held {
			if filepath.IsLocal(rel) {
				lock.Abandon(filepath.Join(filepath.Dir(facts.Store), filepath.FromSlash(rel)))
			}
		}
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
