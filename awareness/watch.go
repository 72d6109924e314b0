package awareness

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"oc/store/row"
	"oc/store/sqlfile"
)

// ErrWatcher is a watch that cannot be.
var ErrWatcher = errors.New("cannot watch")

// Watch registers an explicit watch from the target's present version on, or keeps the one there is
// (spec/awareness.md 3.1). agent is the target's, empty for the one that its key names.
func (e *Edit) Watch(watcher, target, agent string) (Cursor, error) {
	return e.register(watcher, target, agent, false)
}

// WatchGroup registers the watch that a group's main session has without asking; see [GroupWatcher]. Releases before
// 2026.7.2-beta.5 have none, and it fails with [ErrWatcher] on their databases.
func (e *Edit) WatchGroup(watcher, target, agent string) (Cursor, error) {
	if !e.schema.Provenance {
		return Cursor{}, fmt.Errorf("%w %s: schema %d knows no ambient watches", ErrWatcher, target, e.schema.Version)
	}
	return e.register(watcher, target, agent, true)
}

func (e *Edit) register(watcher, target, agent string, ambient bool) (Cursor, error) {
	switch {
	case target == "":
		return Cursor{}, fmt.Errorf("%w: no target is named", ErrWatcher)
	case watcher == target:
		return Cursor{}, fmt.Errorf("%w %s: a session does not watch itself", ErrWatcher, target)
	case !Notifiable(watcher):
		return Cursor{}, fmt.Errorf("%w %s as %q: a watcher's key must name its agent (agent:<id>:<rest>)", ErrWatcher, target, watcher)
	}
	if agent == "" {
		agent = row.KeyAgent(target)
	}
	c, err := e.cursor(watcher, target)
	if err != nil {
		return c, err
	}
	head, err := e.Head(target, agent)
	if err != nil {
		return c, err
	}
	next := c.Register(head.Version, ambient, e.owner(watcher), e.now)
	if next == c {
		return c, nil
	}
	return next, e.put(next)
}

// Ack moves the watcher's cursors of the targets to what their notices vouched for, and gives the notices for what came
// since. Targets that it does not watch, and dormant cursors, stay as they are (spec/awareness.md 4.1).
func (e *Edit) Ack(watcher string, targets ...string) (again []Notice, err error) {
	done := map[string]bool{}
	for _, target := range targets {
		if done[target] {
			continue
		}
		done[target] = true
		c, err := e.cursor(watcher, target)
		if err != nil {
			return nil, err
		}
		if !c.Exists || e.schema.dormant(c, e.world) {
			continue
		}
		next, n, told := c.Ack(e.now)
		if err := e.put(next); err != nil {
			return nil, err
		}
		if told {
			again = append(again, n)
		}
	}
	return again, nil
}

// Reset forgets what a session watched, as when it is reset. Its own log stays.
func (e *Edit) Reset(watcher string) error {
	_, err := e.tx.Exec(`DELETE FROM `+cursors+` WHERE watcher_session_key = ?1`, watcher)
	return err
}

// Delete removes all that belongs to a deleted session: its log, its head, whatever it watched or was watched by, and its
// upstream link.
func (e *Edit) Delete(key, agent string) error {
	for _, table := range []string{events, heads, links} {
		if len(e.cols[table]) == 0 {
			continue
		}
		if _, err := e.tx.Exec(`DELETE FROM `+table+` WHERE session_key = ?1 AND agent_id = ?2`, key, agent); err != nil {
			return err
		}
	}
	_, err := e.tx.Exec(`DELETE FROM `+cursors+` WHERE watcher_session_key = ?1 OR target_session_key = ?1`, key)
	return err
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

// Cursor is that of one watcher and target, by their exact keys. It is one that does not exist if there is none.
func (s *Snapshot) Cursor(watcher, target string) (Cursor, error) {
	ok, err := s.need(cursors)
	if !ok {
		return Cursor{Watcher: watcher, Target: target}, err
	}
	return s.cursor(watcher, target)
}

func (s *Snapshot) cursor(watcher, target string) (Cursor, error) {
	c := Cursor{Watcher: watcher, Target: target}
	err := s.tx.Each(s.selectCursors()+` WHERE watcher_session_key = ?1 AND target_session_key = ?2`, func(r *sqlfile.Row) error {
		c = scanCursor(r)
		return nil
	}, watcher, target)
	return c, err
}

// cursorColumns are those that this database has, in the order of scanCursor.
func (s *Snapshot) selectCursors() string {
	sql := `SELECT watcher_session_key, target_session_key, last_seen_sequence, notified_sequence, material_sequence, updated_at`
	for _, c := range []struct {
		has  bool
		name string
	}{{s.schema.Provenance, "provenance"}, {s.schema.Stores, "watcher_store_path"}} {
		if !c.has {
			c.name = "NULL"
		}
		sql += ", " + c.name
	}
	return sql + ` FROM ` + cursors
}

func scanCursor(r *sqlfile.Row) Cursor {
	c := Cursor{
		Watcher: text(r, 0), Target: text(r, 1), Exists: true, Seen: number(r, 2), Notified: number(r, 3), Material: number(r, 4),
		Ambient: text(r, 6) == ambientGroup, Store: text(r, 7),
	}
	var dated bool
	c.Updated, dated = r.Int(5)
	c.Undated = !dated
	return c
}

const (
	ambientGroup = "ambient-group"
	explicit     = "explicit"
	// sentinel begins the watcher of a row by which builds before schema 4 marked another row as ambient: behind it stands
	// that row's watcher in hexadecimal.
	sentinel = "ambient-group-watch:"
)

// put stores a cursor whole. Within the transaction nobody else can have changed it.
func (e *Edit) put(c Cursor) error {
	columns := "watcher_session_key, target_session_key, last_seen_sequence, notified_sequence, material_sequence, updated_at"
	values := []any{c.Watcher, c.Target, c.Seen, c.Notified, c.Material, c.Updated}
	if e.schema.Provenance {
		columns += ", provenance"
		if c.Ambient {
			values = append(values, ambientGroup)
		} else {
			values = append(values, explicit)
		}
	}
	if e.schema.Stores {
		columns += ", watcher_store_path"
		values = append(values, null(c.Store))
	}
	_, err := e.tx.Exec(`INSERT INTO `+cursors+` (`+columns+`) VALUES (?`+strings.Repeat(", ?", len(values)-1)+`)
		ON CONFLICT (watcher_session_key, target_session_key) DO UPDATE SET `+assign(columns), values...)
	return err
}

func assign(columns string) string {
	names := strings.Split(columns, ", ")
	for i, n := range names {
		names[i] = n + " = excluded." + n
	}
	return strings.Join(names[2:], ", ") // the first two are the key
}

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
