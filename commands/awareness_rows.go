package commands

import (
	"context"

	"oc/awareness"
	"oc/commands/term"
	"oc/config"
	"oc/store/span"
)

// owned names a session in the log: the same key may be several agents'.
type owned struct{ agent, key string }

// versions are the state versions of the sessions that the log knows. Lists show them beside rows, so that what goes wrong is told and
// no more.
func (c *Call) versions(ctx context.Context, cfg *config.Config) map[owned]int64 {
	s := &signals{call: c, cfg: cfg, path: awareness.Path(cfg.StateDir), quiet: true}
	all := map[owned]int64{}
	err := s.read(ctx, func(snap *awareness.Snapshot) error {
		clear(all)
		return snap.Heads(func(h awareness.Head) error {
			all[owned{h.AgentID, h.SessionKey}] = h.Version
			return nil
		})
	})
	if err != nil {
		c.Warnf("which versions the sessions have is unknown: %v", err)
	}
	return all
}

const lastEvents = 5 // that oc sessions show shows

// heard is what the signal log knows of one session.
type heard struct {
	version  int64
	watchers []awareness.Watch
	events   []awareness.Event // the latest, oldest first
	err      error
}

// heard looks one session up; nil where there is no log.
func (c *Call) heard(ctx context.Context, cfg *config.Config, key, agent string) *heard {
	s := &signals{call: c, cfg: cfg, path: awareness.Path(cfg.StateDir), quiet: true}
	h := &heard{}
	h.err = s.read(ctx, func(snap *awareness.Snapshot) error {
		h.watchers, h.events = nil, nil
		head, err := snap.Head(key, agent)
		if err != nil {
			return err
		}
		h.version = head.Version
		if err := snap.Watches(awareness.WatchFilter{Target: key}, s.world(ctx, false), c.Now().UnixMilli(), func(w awareness.Watch) error {
			h.watchers = append(h.watchers, w)
			return nil
		}); err != nil {
			return err
		}
		f := awareness.Filter{SessionKey: key, AgentID: agent, Newest: true, Limit: lastEvents}
		return snap.Events(f, func(e awareness.Event) error {
			h.events = append([]awareness.Event{e}, h.events...)
			return nil
		})
	})
	if h.err != nil {
		c.Warnf("what the signal log knows of it is unknown: %v", h.err)
	} else if s.schema.None {
		return nil
	}
	return h
}

// print is the log's part of a document about one session.
func (h *heard) print(p *span.Printer) {
	p.Key("awareness").Object()
	if h.err != nil {
		p.Key("error").String(h.err.Error())
		p.End()
		return
	}
	p.Key("stateVersion").Int(h.version)
	p.Key("watchers").Array()
	for _, w := range h.watchers {
		printWatch(p, w)
	}
	p.End()
	p.Key("lastEvents").Array()
	for _, e := range h.events {
		p.Object()
		printEvent(p, e)
		p.End()
	}
	p.End()
	p.End()
}

// text shows the same to a person.
func (h *heard) text(c *Call) {
	if len(h.watchers) > 0 {
		c.Out.Printf("\nWatched by:\n")
		watchTable(c, h.watchers)
	}
	if len(h.events) > 0 {
		c.Out.Printf("\nLast events, up to version %d:\n", h.version)
		eventTable(c, h.events, false)
	}
	if h.err != nil {
		c.Out.Printf("\nSignal log: %s\n", term.Unknown)
	}
}
