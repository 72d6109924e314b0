package doctor

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"oc/awareness"
	"oc/store"
	"oc/store/row"
)

// The signal log that the agents of a state share (field-reports.md S19;
// spec/awareness.md). Findings of watches are those of oc awareness watches.
const (
	SignalUnreadable Code = "signal-unreadable"
	SignalNewer      Code = "signal-newer"
	SignalGap        Code = "signal-gap"
	SignalKind       Code = "signal-unknown-kind"
	SignalSilent     Code = "signal-empty-head"
	SignalPrune      Code = "signal-prune-due"
	SignalPending    Code = "signal-pending"
)

// watchCheck is a check of oc/awareness.
func watchCheck(f awareness.Finding, s Severity, says, matters string) Check {
	return Check{Code: watchCode(f), Severity: s, Says: says, Matters: matters}
}

func watchCode(f awareness.Finding) Code { return Code("signal-" + string(f)) }

var signalFamily = Family{
	Name: "signals",
	Checks: []Check{
		{
			Code: SignalUnreadable, Severity: Error, Remedy: ByHand,
			Says:    "the signal log cannot be read",
			Matters: "What others did to a session is not known, and watchers are told nothing.",
			Command: "look at the shared state database; OpenClaw's own doctor mends it",
		},
		{
			Code: SignalNewer, Severity: Warn, Remedy: ByHand,
			Says:    "the shared state database has a schema that oc does not know",
			Matters: "It is read as far as it is understood, and never changed.",
			Command: "use a newer oc",
		},
		{
			Code: SignalGap, Severity: Warn, Remedy: ByHand,
			Says:    "a watcher has missed events that are gone",
			Matters: "It can no longer learn what happened from the log: only a look at the whole session helps.",
			Command: "refresh the watcher's view of the session, then oc awareness notices --ack",
		},
		watchCheck(awareness.WatcherGone, Warn, "a watcher has no session any more", "Its watch is kept up for nobody, until it expires."),
		watchCheck(awareness.AmbiguousWatcher, Warn, "a watcher's key names no agent", "Nobody can be told, and several agents may share the cursor. Whose it is is not guessed."),
		watchCheck(awareness.AmbiguousTarget, Warn, "a watched key is shared by several agents", "Events of one agent's session count for the other's. Whose it is is not guessed."),
		watchCheck(awareness.TargetGone, Info, "a watched session is gone", "No event will come; the watch expires by itself."),
		watchCheck(awareness.SelfWatch, Info, "a session watches itself", "Its own events are not for it: it is told nothing."),
		watchCheck(awareness.Disordered, Warn, "a watch has watermarks in an order that OpenClaw never makes", "Notices may be lost or repeated."),
		watchCheck(awareness.AheadOfLog, Warn, "a watch is ahead of the log", "Events up to there will not be told; the log may have been restored from an older copy."),
		watchCheck(awareness.NoStore, Info, "a watch does not say where its watcher lives", "A release before 2026.9.6 made it; a newer one does not serve it until it is registered again."),
		watchCheck(awareness.OtherStore, Warn, "a watcher lives in another database than its watch says", "It is told nothing until it watches anew."),
		watchCheck(awareness.Expired, Info, "a watch has expired", "The next prune removes it."),
		{
			Code: SignalKind, Severity: Info, Remedy: None,
			Says:    "the log has events of a kind that oc does not know",
			Matters: "They are kept and shown; a newer release or a plugin wrote them.",
		},
		{
			Code: SignalSilent, Severity: Info, Remedy: None,
			Says:    "the log has a head without events",
			Matters: "All of its events are gone. Recording is best effort: a head proves that something happened, never that nothing did.",
		},
		{
			Code: SignalPrune, Severity: Info, Remedy: None,
			Says:    "the log holds more than its retention keeps",
			Matters: "The gateway removes it at its next prune.",
		},
		{
			Code: SignalPending, Severity: Info, Remedy: None,
			Says:    "watchers have notices that they have not taken in",
			Matters: "They are told at their next turn.",
		},
	},
	state: (*exam).signals,
}

func (x *exam) signals() {
	path := awareness.Path(x.Config.StateDir)
	at := Subject{File: path, Byte: -1}
	now := x.Now.UnixMilli()
	var found []Finding
	err := awareness.Read(x.ctx, path, func(s *awareness.Snapshot) error {
		found = nil
		schema := s.Schema()
		if schema.None {
			return nil
		}
		if schema.Newer {
			found = append(found, Finding{Code: SignalNewer, Subject: at, Evidence: []string{fmt.Sprintf("schema %d, written by %s", schema.Version, or(schema.App, "an unknown release"))}})
		}
		pruned, count, err := heads(s)
		if err != nil {
			return err
		}
		pending := 0
		err = s.Watches(awareness.WatchFilter{}, x.world(schema), now, func(w awareness.Watch) error {
			if w.Pending() {
				pending++
			}
			at := at
			at.Key = w.Watcher
			for _, f := range w.Findings {
				if f == awareness.WatcherGone && slices.Contains(w.Findings, awareness.AmbiguousWatcher) || f == awareness.TargetGone && slices.Contains(w.Findings, awareness.AmbiguousTarget) {
					continue // a key of several agents is not missing
				}
				found = append(found, Finding{Code: watchCode(f), Subject: at, Evidence: []string{fmt.Sprintf("watches %s, seen %d, head %d, %s", w.Target, w.Seen, w.Head, w.State)}})
			}
			if p := pruned[w.Target]; w.Pending() && w.Seen < p && w.State != awareness.Dormant {
				found = append(found, Finding{Code: SignalGap, Subject: at, Evidence: []string{fmt.Sprintf("it has seen %s up to %d, events up to %d are gone", w.Target, w.Seen, p)}})
			}
			return nil
		})
		if err != nil {
			return err
		}
		stats, err := s.Stats(now)
		if err != nil {
			return err
		}
		for _, k := range stats.Kinds {
			if !known(k.Kind) {
				found = append(found, Finding{Code: SignalKind, Subject: at, Evidence: []string{fmt.Sprintf("%d events of the kind %q", k.Events, k.Kind)}})
			}
		}
		for _, h := range count {
			at := at
			at.Key, at.Agent = h.SessionKey, h.AgentID
			found = append(found, Finding{Code: SignalSilent, Subject: at, Evidence: []string{fmt.Sprintf("its head is %d, gone are events up to %d", h.Version, h.Pruned)}})
		}
		if stats.Aged+stats.Excess+stats.Expired > 0 {
			found = append(found, Finding{Code: SignalPrune, Subject: at, Evidence: []string{fmt.Sprintf("%d events are too old, %d too many, %d watches have expired", stats.Aged, stats.Excess, stats.Expired)}})
		}
		if pending > 0 {
			found = append(found, Finding{Code: SignalPending, Subject: at, Evidence: []string{fmt.Sprintf("%d watches", pending)}})
		}
		return nil
	})
	var schema *awareness.SchemaError
	switch {
	case x.ctx.Err() != nil:
		return
	case errors.As(err, &schema):
		at.File = schema.Path
		found = []Finding{{Code: SignalUnreadable, Subject: at, Evidence: []string{schema.Error()}}}
	case err != nil:
		found = []Finding{{Code: SignalUnreadable, Subject: at, Evidence: []string{err.Error()}}}
	}
	for _, f := range found {
		x.find(f)
	}
	if reason, err := awareness.Quarantine(x.ctx, path); err == nil && reason != "" {
		x.find(Finding{Code: DatabaseQuarantined, Subject: at, Evidence: []string{"OpenClaw's reason: " + reason}})
	}
}

// heads gives the last pruned event of each session, and the heads of sessions
// without any event.
func heads(s *awareness.Snapshot) (pruned map[string]int64, silent []awareness.Head, err error) {
	pruned = map[string]int64{}
	var all []awareness.Head
	if err := s.Heads(func(h awareness.Head) error {
		pruned[h.SessionKey] = max(pruned[h.SessionKey], h.Pruned)
		all = append(all, h)
		return nil
	}); err != nil {
		return nil, nil, err
	}
	for _, h := range all {
		n, err := s.CountEvents(awareness.Filter{SessionKey: h.SessionKey, AgentID: h.AgentID})
		if err != nil {
			return nil, nil, err
		}
		if n == 0 {
			silent = append(silent, h)
		}
	}
	return pruned, silent, nil
}

func known(kind string) bool {
	for _, k := range awareness.Kinds() {
		if k == kind {
			return true
		}
	}
	return false
}

// world is what the stores that were looked at know of watchers and targets.
func (x *exam) world(schema awareness.Schema) awareness.World {
	keys, read, unread := map[string]bool{}, map[string]bool{}, false
	for _, s := range x.sites {
		if s.indexErr != nil && s.database == nil || s.databaseErr != nil {
			unread = true
			continue
		}
		read[s.Agent] = true
		for _, r := range s.sessions() {
			keys[r.Key] = true
			keys[store.StoredKey(x.Config, s.Agent, r.Key)] = true
		}
	}
	return awareness.World{
		Store: func(watcher string) string {
			for _, path := range x.Config.DatabasePaths(row.KeyAgent(watcher)) {
				if real, err := filepath.EvalSymlinks(path); err == nil {
					return real
				}
			}
			return ""
		},
		Exists: func(key string) (exists, known bool) {
			if schema.App == awareness.App {
				return false, false // the sessions of other harnesses are in no store
			}
			if keys[key] || keys[store.StoredKey(x.Config, row.KeyAgent(key), key)] {
				return true, true
			}
			agent, _, qualified := row.Parse(key)
			return false, !unread || qualified && read[row.AgentID(agent)]
		},
	}
}
