package awareness

import "context"

// Pruned is what a prune removed.
type Pruned struct {
	Aged    int64 // events past Retention
	Excess  int64 // events beyond MaxRows
	Cursors int64 // watches without a change for Retention
}

// Prune removes what OpenClaw's retention would (spec/awareness.md 2.5), and notes in the heads up to where history is
// gone. Rows whose stamp is no time are never old. Not for beside a live gateway, which prunes by itself.
func (e *Edit) Prune() (Pruned, error) {
	var p Pruned
	cutoff := e.now - Retention.Milliseconds()
	var err error
	if p.Aged, err = e.drop(`typeof(occurred_at) = 'integer' AND occurred_at < ?1`, cutoff); err != nil {
		return p, err
	}
	last, some, err := e.tx.Int(`SELECT sequence FROM `+events+` ORDER BY sequence DESC LIMIT 1 OFFSET ?1`, MaxRows)
	if err != nil {
		return p, err
	}
	if some {
		if p.Excess, err = e.drop(`sequence <= ?1`, last); err != nil {
			return p, err
		}
	}
	p.Cursors, err = e.tx.Exec(`DELETE FROM `+cursors+` WHERE typeof(updated_at) = 'integer' AND updated_at < ?1`, cutoff)
	return p, err
}

// drop removes events and raises the pruned watermarks of their sessions, which never fall.
func (e *Edit) drop(where string, arg int64) (int64, error) {
	_, err := e.tx.Exec(`UPDATE `+heads+` SET pruned_max_sequence = gone.top, updated_at = ?2
		FROM (SELECT session_key AS k, agent_id AS a, max(sequence) AS top FROM `+events+` WHERE `+where+` GROUP BY 1, 2) AS gone
		WHERE session_key = gone.k AND agent_id = gone.a AND pruned_max_sequence < gone.top`, arg, e.now)
	if err != nil {
		return 0, err
	}
	return e.tx.Exec(`DELETE FROM `+events+` WHERE `+where, arg)
}

// Swept is what a sweep found.
type Swept struct {
	Notices []Notice // pending again
	Dormant int64    // pending, but their watchers have no entry, or it is not known: left as they are
	Pruned  Pruned
}

// Sweep does what OpenClaw does when it starts, after its queues were lost: what is pending is told anew to the watchers
// that exist; then it prunes. Not for beside a live gateway, whose queues are not lost.
func Sweep(ctx context.Context, path string, o Options) (Swept, error) {
	var out Swept
	var there []Cursor
	// Stores are asked before the transaction, which must be short.
	err := Read(ctx, path, func(s *Snapshot) error {
		there, out.Dormant = nil, 0
		return s.Watches(WatchFilter{Pending: true}, World{}, o.Now, func(w Watch) error {
			if exists, known := o.World.exists(w.Watcher); known && exists && Notifiable(w.Watcher) {
				there = append(there, w.Cursor)
			} else {
				out.Dormant++
			}
			return nil
		})
	})
	if err != nil {
		return out, err
	}
	err = Update(ctx, path, o, func(e *Edit) error {
		out.Notices = nil
		for _, old := range there {
			c, err := e.cursor(old.Watcher, old.Target)
			if err != nil {
				return err
			}
			next, n, told := c.Sweep(e.now)
			if !told {
				continue
			}
			if err := e.put(next); err != nil {
				return err
			}
			if !e.schema.dormant(next, e.world) {
				out.Notices = append(out.Notices, n)
			}
		}
		out.Pruned, err = e.Prune()
		return err
	})
	return out, err
}
