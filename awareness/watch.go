package awareness

import (
	"encoding/hex"
	"strings"

	"oc/store/sqlfile"
)

// State is how a watch stands.
type State string

// States of a watch.
const (
	Idle    State = "idle"
	Pending State = "pending"
	Dormant State = "dormant" // whatever happens, the watcher is told nothing
)

// Finding is what is odd about a watch.
type Finding string

// Findings, those that make a watch dormant first.
const (
	NoStore          Finding = "no-store"          // it does not say where the watcher lives: made by a release before 2026.9.6
	OtherStore       Finding = "other-store"       // the watcher now lives in another database than it says
	AmbiguousWatcher Finding = "ambiguous-watcher" // the watcher's key names no agent, so that nobody can be told
	WatcherGone      Finding = "watcher-gone"      // the watcher has no entry
	AmbiguousTarget  Finding = "ambiguous-target"  // the target's key is shared by several agents
	TargetGone       Finding = "target-gone"       // the target has no entry
	SelfWatch        Finding = "self-watch"        // both are the same
	Disordered       Finding = "disordered"        // the watermarks are in an order that OpenClaw never makes
	AheadOfLog       Finding = "ahead-of-log"      // they are beyond the target's head
	Expired          Finding = "expired"           // the next prune removes it
)

// Watch is a cursor and how it stands.
type Watch struct {
	Cursor
	State    State
	Findings []Finding
	Head     int64 // the target's last event; the latest if several agents share its key
	Behind   int64 // events that the watcher is to hear of and has not acknowledged
}

// Notice is what the watcher is told, or would be if it were not dormant; false if nothing is pending.
func (w Watch) Notice() (Notice, bool) { return w.notice(), w.Pending() }

// WatchFilter chooses watches. Zero fields choose all.
type WatchFilter struct {
	Watcher string // exact
	Target  string // exact
	Pending bool   // only those with something pending
}

// Watches calls f for the watches that the filter chooses, by watcher, then target. now is in ms since 1970. Looking
// acknowledges nothing.
func (s *Snapshot) Watches(filter WatchFilter, w World, now int64, f func(Watch) error) error {
	ok, err := s.need(cursors, heads, events)
	if !ok {
		return err
	}
	sql, args := s.selectCursors()+` WHERE 1`, []any(nil)
	if filter.Watcher != "" {
		sql, args = sql+` AND watcher_session_key = ?`, append(args, filter.Watcher)
	}
	if filter.Target != "" {
		sql, args = sql+` AND target_session_key = ?`, append(args, filter.Target)
	}
	if filter.Pending {
		sql += ` AND material_sequence > last_seen_sequence`
	}
	return s.tx.Each(sql+` ORDER BY watcher_session_key, target_session_key`, func(r *sqlfile.Row) error {
		c := scanCursor(r)
		if !s.schema.Provenance {
			if strings.HasPrefix(c.Watcher, sentinel) {
				return nil
			}
			mark, err := s.cursor(sentinel+hex.EncodeToString([]byte(c.Watcher)), c.Target)
			if err != nil {
				return err
			}
			c.Ambient = mark.Exists
		}
		watch, err := s.judge(c, w, now)
		if err != nil {
			return err
		}
		return f(watch)
	}, args...)
}

func (s *Snapshot) judge(c Cursor, w World, now int64) (Watch, error) {
	watch := Watch{Cursor: c, State: Idle}
	owners := 0
	err := s.tx.Each(`SELECT last_sequence FROM `+heads+` WHERE session_key = ?1`, func(r *sqlfile.Row) error {
		owners++
		watch.Head = max(watch.Head, number(r, 0))
		return nil
	}, c.Target)
	if err != nil {
		return watch, err
	}
	watch.Behind, _, err = s.tx.Int(`SELECT count(*) FROM `+events+` WHERE session_key = ?1 AND sequence > ?2 AND sequence <= ?3
		AND `+notifying+` AND actor_id IS NOT ?4`, c.Target, c.Seen, c.Material, c.Watcher)
	if err != nil {
		return watch, err
	}
	if c.Pending() {
		watch.State = Pending
	}
	find := func(is bool, f Finding) {
		if is {
			watch.Findings = append(watch.Findings, f)
		}
	}
	find(s.schema.owned() && c.Store == "", NoStore)
	find(s.schema.owned() && c.Store != "" && s.schema.dormant(c, w), OtherStore)
	find(!Notifiable(c.Watcher), AmbiguousWatcher)
	exists, known := w.exists(c.Watcher)
	find(known && !exists, WatcherGone)
	if len(watch.Findings) > 0 {
		watch.State = Dormant
	}
	find(owners > 1, AmbiguousTarget)
	exists, known = w.exists(c.Target)
	find(known && !exists, TargetGone)
	find(c.Watcher == c.Target, SelfWatch)
	find(!c.Sound(), Disordered)
	find(c.Material > watch.Head, AheadOfLog)
	expires, known := c.Expires()
	find(known && expires < now, Expired)
	return watch, nil
}

// dormant says that release 2026.9.6 tells the watcher nothing and acknowledges nothing, because the cursor is not of
// the watcher's present store (spec/awareness.md 3.2).
func (s Schema) dormant(c Cursor, w World) bool {
	if !s.owned() {
		return false
	}
	if c.Store == "" {
		return true
	}
	now := w.store(c.Watcher)
	return now != "" && now != c.Store
}

// Watched says whether anybody watches a session. OpenClaw records a human's message to one only if somebody does, or if
// another session made it.
func (s *Snapshot) Watched(target string) (bool, error) {
	ok, err := s.need(cursors)
	if !ok {
		return false, err
	}
	_, some, err := s.tx.Int(`SELECT 1 FROM `+cursors+` WHERE target_session_key = ?1 LIMIT 1`, target)
	return some, err
}
