package awareness

import (
	"errors"
	"fmt"

	"oc/store/row"
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

// Unwatch forgets what a session watched and, when deleted is true, who watched it, and says how many watches that were. The log of the
// session stays, so that one that comes back has its history; Prune takes it in time.
func (e *Edit) Unwatch(key string, deleted bool) (int64, error) {
	where := `watcher_session_key = ?1`
	if deleted {
		where += ` OR target_session_key = ?1`
	}
	n, err := e.tx.Exec(`DELETE FROM `+cursors+` WHERE `+where, key)
	return int64(n), err
}
