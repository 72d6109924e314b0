package commands

import (
	"context"
	"errors"
	"slices"

	"oc/awareness"
	"oc/config"
	"oc/maintenance"
)

// unwatch is what comes after a session was deleted or reset: in the signal log it watches nothing any more, and nobody watches one that is
// gone (spec/awareness.md 3.5, release 2026.9.6). Its log stays: undo brings sessions back, and not what a log forgot. It never fails the
// change, which is done by then; where there is no log there is nothing to do.
func (c *Call) unwatch(ctx context.Context, cfg *config.Config, v verb, x *changed) {
	if !v.unwatches || !x.done.Changed() || maintenance.Home(cfg, x.target.Index) != maintenance.Home(cfg, cfg.StorePath(cfg.DefaultAgent())) {
		return
	}
	path := awareness.Path(cfg.StateDir)
	err := awareness.Update(context.WithoutCancel(ctx), path, awareness.Options{Now: c.Now().UnixMilli(), Wait: busyWait}, func(e *awareness.Edit) error {
		x.unwatched = 0
		for _, key := range x.keys {
			if x.outcome(key) != "" || slices.Contains(v.keep, key) {
				continue
			}
			n, err := e.Unwatch(key, v.goes)
			if err != nil {
				return err
			}
			x.unwatched += n
		}
		return nil
	})
	if err != nil {
		x.unwatched = 0
		if !errors.Is(err, awareness.ErrNone) {
			c.Warnf("the session is %s, but its watches in the signal log stay: %v", v.past, err)
		}
	}
}
