package awareness

import (
	"strings"

	"oc/store/row"
)

// Cursor is what one watcher knows of one target: the state machine of spec/awareness.md 4.1 as a value. Its methods are
// the machine's events; each gives the next state and, where the watcher is to be told, the notice. It knows no database
// and no clock: times are ms since 1970. A cursor that does not exist keeps its two keys.
//
// Seen <= Notified <= Material holds in every reachable state, and Notified is ahead of Seen exactly when Material is.
type Cursor struct {
	Watcher  string
	Target   string
	Exists   bool
	Seen     int64  // up to here the watcher has reconciled
	Notified int64  // up to here the pending notice vouches; frozen while it is pending
	Material int64  // the last event that the watcher is to hear of
	Ambient  bool   // registered by taking part in a group, not by asking
	Store    string // the physical path of the agent database that the watcher lives in; empty if it is not known
	Updated  int64
	Undated  bool // what is stored for Updated is not a time
}

// Pending says that there is something the watcher has not acknowledged.
func (c Cursor) Pending() bool { return c.Material > c.Seen }

// Sound says that the watermarks are in an order that the machine can reach.
func (c Cursor) Sound() bool {
	return 0 <= c.Seen && c.Seen <= c.Notified && c.Notified <= c.Material && c.Pending() == (c.Notified > c.Seen)
}

// Expires is when a prune removes the cursor; false if that cannot be known.
func (c Cursor) Expires() (at int64, known bool) {
	return c.Updated + Retention.Milliseconds(), !c.Undated
}

// Notifiable says whether notices can be addressed to a key: it must name an agent. Bare keys, as global, are shared.
func Notifiable(watcher string) bool {
	_, _, ok := row.Parse(watcher)
	return ok
}

// Register begins to watch from the target's head on (rows 1 and 15). A watch of the same store is kept, and becomes
// explicit if it is asked for; one of another store begins anew and loses what was pending. An empty store is not known,
// and is the one that the cursor has.
func (c Cursor) Register(head int64, ambient bool, store string, now int64) Cursor {
	if c.Exists && (store == "" || store == c.Store) {
		c.Ambient = c.Ambient && ambient
		return c
	}
	return c.seed(head, ambient, store, now)
}

// Event takes in an event of the target (rows 2 to 6 and 14). A watcher is named if the event says that it should
// hear of it though it may not watch, as a child's parent does; store is where such a watcher lives, empty if it is not
// known. An event that the watcher itself caused is not for it.
func (c Cursor) Event(e Event, named bool, store string, now int64) (next Cursor, n Notice, told bool) {
	switch {
	case !Notifiable(c.Watcher) || !c.Exists && !named:
		return c, n, false
	case e.Kind == ChildSpawned && named:
		// Without stores (2026.8.2) the row keeps how it came about.
		return c.seed(e.Sequence, c.Ambient && store == "", store, now), n, false
	case !Notifies(e.Kind) || e.ActorID == c.Watcher:
		return c, n, false
	case c.Exists && named && store != "" && store != c.Store:
		return c, n, false
	case !c.Exists:
		c.Exists, c.Store = true, store
	}
	if c.Notified == c.Seen {
		c.Notified = e.Sequence
	}
	c.Material, c.Updated, c.Undated = e.Sequence, now, false
	return c, c.notice(), true
}

// Ack takes in that the watcher was given its notice (rows 8, 9 and 11): it has seen what the notice vouched for, not
// what came since. For that there is one more notice.
func (c Cursor) Ack(now int64) (next Cursor, n Notice, told bool) {
	if !c.Exists {
		return c, n, false
	}
	reopen := c.Material > c.Notified
	c.Seen, c.Updated, c.Undated = c.Notified, now, false
	if reopen {
		c.Notified = c.Material
		return c, c.notice(), true
	}
	return c, n, false
}

// Sweep takes in that all queues are lost, for a watcher whose session exists (row 12): what is pending is told again, as
// one notice that vouches for all of it.
func (c Cursor) Sweep(now int64) (next Cursor, n Notice, told bool) {
	if !c.Exists || !c.Pending() {
		return c, n, false
	}
	c.Notified, c.Updated, c.Undated = c.Material, now, false
	return c, c.notice(), true
}

func (c Cursor) seed(at int64, ambient bool, store string, now int64) Cursor {
	if store == "" {
		store = c.Store
	}
	return Cursor{Watcher: c.Watcher, Target: c.Target, Exists: true, Seen: at, Notified: at, Material: at, Ambient: ambient, Store: store, Updated: now}
}

func (c Cursor) notice() Notice {
	return Notice{Watcher: c.Watcher, Target: c.Target, Since: c.Seen, Ambient: c.Ambient}
}

// GroupWatcher is the session that watches a group of an agent without being asked: the agent's main one, from releases
// 2026.7.2-beta.5 on. It is false for sessions that are no group (spec/awareness.md 3.1). chatType is the entry's, and
// spawned says that another session made it.
func GroupWatcher(target, agent, mainKey, chatType string, spawned bool) (watcher string, ok bool) {
	switch class := row.ClassOf(target); {
	case class == row.ClassGlobal, class == row.ClassUnknown, class == row.ClassCron, class == row.ClassCronRun, spawned:
		return "", false
	case chatType != "group" && chatType != "channel" && !strings.Contains(target, ":group:") && !strings.Contains(target, ":channel:"):
		return "", false
	}
	if mainKey = row.Canonical(mainKey); mainKey == "" {
		mainKey = "main"
	}
	watcher = "agent:" + row.AgentID(agent) + ":" + mainKey
	return watcher, watcher != target
}
