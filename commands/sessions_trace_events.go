package commands

import (
	"context"
	"fmt"
	"slices"

	"oc/awareness"
	"oc/store"
	"oc/store/row"
)

// eventsNamed is how many events of the signal log a trace names, the newest.
const eventsNamed = 50

// tracedSignals are the events of the signal log about the session's keys. A state without a log has none.
func tracedSignals(ctx context.Context, stateDir string, trail *store.Trail) (all []traced, err error) {
	path := awareness.Path(stateDir)
	err = awareness.Read(ctx, path, func(s *awareness.Snapshot) error {
		all = nil
		for _, key := range trail.Keys {
			filter := awareness.Filter{SessionKey: key, Newest: true, Limit: eventsNamed}
			n := 0
			if err := s.Events(filter, func(e awareness.Event) error {
				n++
				x := traced{Sighting: store.Sighting{Kind: seenSignal, Key: e.SessionKey, ID: e.SessionID, Agent: e.AgentID, Path: path, Bytes: -1}, run: e.RunID}
				if !e.Undated {
					x.At = e.OccurredAt
				}
				x.Why = fmt.Sprintf("signal log, event %d: %s", e.Sequence, e.Kind)
				if e.Payload.Outcome != "" {
					x.Why += ", " + e.Payload.Outcome
				}
				if e.ActorID != "" && e.ActorID != e.SessionKey {
					x.Why += ", by " + e.ActorID
				}
				all = append(all, x)
				return nil
			}); err != nil {
				return err
			}
			total, err := s.CountEvents(awareness.Filter{SessionKey: key})
			if err != nil {
				return err
			}
			if left := int(total) - n; left > 0 {
				all = append(all, traced{
					Sighting: store.Sighting{Kind: seenSignal, Key: key, Path: path, Bytes: -1, Why: plural(left, "older event", "older events") + " in the signal log"},
					back:     "oc awareness log --session " + key,
				})
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the signal log is not in the trace: %w", err)
	}
	return all, nil
}

// tracedSpawns are the runs of sub-agents that the session was made for, or that it asked for.
func tracedSpawns(ctx context.Context, stateDir string, trail *store.Trail) (all []traced, err error) {
	is := func(key string) bool {
		return key != "" && slices.ContainsFunc(trail.Keys, func(k string) bool { return row.Canonical(k) == row.Canonical(key) })
	}
	err = store.SpawnedRuns(ctx, stateDir, func(r store.SpawnedRun) {
		x := traced{Sighting: store.Sighting{Kind: seenSpawn, Key: r.Child, Path: r.Path, Bytes: -1, At: r.Created}, spawn: r.ID}
		if x.At == 0 {
			x.At = max(r.Started, r.Ended)
		}
		switch {
		case is(r.Child):
			x.Why = "run " + r.ID + " as a sub-agent of " + r.Requester
		case is(r.Requester) || is(r.Controller):
			x.Why, x.back = "run "+r.ID+" of a sub-agent that it asked for, "+r.Child, "oc sessions trace "+r.Child
		default:
			return
		}
		switch {
		case r.Outcome != "":
			x.Why += ": " + r.Outcome
		case r.Ended == 0:
			x.Why += ": not ended"
		}
		all = append(all, x)
	})
	if err != nil {
		return all, fmt.Errorf("the runs of sub-agents are not in the trace: %w", err)
	}
	return all, nil
}
