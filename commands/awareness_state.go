package commands

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"oc/awareness"
	"oc/config"
	"oc/gateway"
	"oc/store"
	"oc/store/lock"
	"oc/store/row"
	"oc/store/span"
	"oc/store/sqlfile"
)

// busyWait is how long a change waits for another writer.
const busyWait = 5 * time.Second

// signals is the signal log of a state, as a command reads or changes it.
type signals struct {
	call       *Call
	cfg        *config.Config
	path       string
	schema     awareness.Schema // as of the last look
	quiet      bool             // that there is no log is nothing to tell
	unread     failures         // stores that could not say which sessions there are
	quarantine string           // why OpenClaw refuses to open the database; "" where it does not
}

func (c *Call) signals() (*signals, error) {
	cfg, err := c.load()
	if err != nil {
		return nil, err
	}
	return &signals{call: c, cfg: cfg, path: awareness.Path(cfg.StateDir)}, nil
}

// read calls f with one snapshot, and says on standard error what is special about the database.
func (s *signals) read(ctx context.Context, f func(*awareness.Snapshot) error) error {
	err := awareness.Read(ctx, s.path, func(snap *awareness.Snapshot) error {
		s.schema = snap.Schema()
		return f(snap)
	})
	if err != nil {
		return s.blame(ctx, err)
	}
	s.remark(ctx)
	return nil
}

// remark tells what a reader of the log has to know of it.
func (s *signals) remark(ctx context.Context) {
	why, err := awareness.Quarantine(ctx, s.path)
	if err != nil {
		s.call.Warnf("%v", err)
	}
	if s.quarantine = why; why != "" {
		s.call.Warnf("%s: OpenClaw has put it in quarantine (%s) and does not open it; it was read all the same", s.path, why)
	}
	if label := s.schema.Label(); label != "" {
		s.call.Warnf("%s: %s", s.path, label)
	}
	if s.schema.None && !s.quiet {
		s.call.Notef("no awareness data: %s holds no signal log; OpenClaw makes it when it starts, from 2026.7.2 on", s.path)
	}
}

// change calls f with one short transaction. It is for what may be done beside a live gateway.
func (s *signals) change(ctx context.Context, world awareness.World, f func(*awareness.Edit) error) error {
	if err := s.changeable(); err != nil {
		return err
	}
	err := awareness.Update(ctx, s.path, s.options(world), func(e *awareness.Edit) error {
		s.schema = e.Schema()
		return f(e)
	})
	return s.refused(ctx, err)
}

func (s *signals) options(world awareness.World) awareness.Options {
	return awareness.Options{Now: s.call.Now().UnixMilli(), Wait: busyWait, World: world}
}

// changeable refuses where the configuration is not known: which agent lives in which database stands there.
func (s *signals) changeable() error {
	if s.cfg.Broken {
		return Refusef("change %s: the configuration %s cannot be read, so it is not known whose sessions these are; mend it first", s.path, s.cfg.ConfigFile)
	}
	return nil
}

// alone refuses what only one who owns the state may do. verb says what it is: "sweep".
func (s *signals) alone(ctx context.Context, verb string) error {
	if err := s.changeable(); err != nil {
		return err
	}
	o := s.call.owner(ctx, s.cfg)
	if o.Life == gateway.None {
		return nil
	}
	return &Error{Exit: ExitRefused, Code: "gateway", Err: errors.New("the gateway does this by itself, and its notices are in its memory: " + ownerWords(o) + "; stop it to " + verb + ", or leave it to the gateway")}
}

// ownerWords says who owns the state.
func ownerWords(o gateway.Ownership) string {
	for _, e := range o.Evidence {
		if e.Points == o.Life {
			return e.Says
		}
	}
	if o.Life == gateway.Alive {
		return "a gateway lives"
	}
	return "a gateway may live"
}

// refused is an error of a change. What is only unreadable to a reader is a refusal to who would write.
func (s *signals) refused(ctx context.Context, err error) error {
	var damaged *sqlfile.Error
	switch {
	case errors.Is(err, awareness.ErrNone):
		return &Error{Exit: ExitFailed, Code: "no-log", Err: withRemedy(err, "for another harness, oc awareness init makes one")}
	case errors.Is(err, awareness.ErrWatcher):
		return Usagef("%w", err)
	case errors.Is(err, awareness.ErrSchema), errors.Is(err, sqlfile.ErrCorrupt), errors.Is(err, sqlfile.ErrNotDatabase):
		return Refusef("%w; nothing was changed", err)
	case errors.As(err, &damaged) && errors.Is(err, fs.ErrPermission):
		return Failf("%w; it belongs to the user who runs OpenClaw", err)
	}
	return s.blame(ctx, err)
}

// remedied is an error with what can be done about it.
type remedied struct {
	error
	remedy string
}

func withRemedy(err error, remedy string) error { return &remedied{err, remedy} }

func (e *remedied) Error() string { return e.error.Error() + "; " + e.remedy }
func (e *remedied) Unwrap() error { return e.error }

// blame is an error of a reader: it names who holds a database that is busy, where that can be known, and what helps one that is damaged.
func (s *signals) blame(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, sqlfile.ErrCorrupt), errors.Is(err, sqlfile.ErrNotDatabase):
		return &Error{Exit: ExitFailed, Code: "damaged", Err: withRemedy(err, "openclaw doctor may mend it, or put a copy of it back")}
	case !errors.Is(err, sqlfile.ErrBusy):
		return err
	}
	if pid := lock.SQLiteWriter(s.path); pid != 0 {
		return Busyf("%w: process %d holds it; try again", err, pid)
	}
	if o := s.call.owner(ctx, s.cfg); o.PID != 0 {
		return Busyf("%w: probably the %s, process %d; try again", err, or(o.Role, "gateway"), o.PID)
	}
	return Busyf("%w: who holds it cannot be seen; try again", err)
}

// print is the database in a document.
func (s *signals) print(p *span.Printer) {
	p.Key("log").Object()
	p.Key("path").String(s.path)
	p.Key("exists").Bool(!s.schema.None)
	if !s.schema.None {
		p.Key("schema").Int(s.schema.Version)
		optional(p, "appVersion", s.schema.App)
		if label := s.schema.Label(); label != "" {
			p.Key("label").String(label)
		}
		if s.quarantine != "" {
			p.Key("quarantine").String(s.quarantine)
		}
	}
	p.End()
	s.unread.print(p)
}

// line is the database in a line.
func (s *signals) line() string {
	if s.schema.None {
		return s.path + " (no awareness data)"
	}
	line := s.path + " (schema " + decimal(s.schema.Version)
	if s.schema.App != "" {
		line += ", made by " + s.schema.App
	}
	return line + ")"
}

// world is what the stores know of watchers and targets. With all it opens every store to learn which sessions there are, and those
// that cannot be read make the answer a partial one; without, it only looks where the databases of agents lie.
func (s *signals) world(ctx context.Context, all bool) awareness.World {
	places := map[string]string{}
	w := awareness.World{Store: func(watcher string) string {
		agent := row.KeyAgent(watcher)
		place, ok := places[agent]
		if !ok {
			for _, path := range s.cfg.DatabasePaths(agent) {
				if real, err := filepath.EvalSymlinks(path); err == nil {
					place = real
					break
				}
			}
			places[agent] = place
		}
		return place
	}}
	if !all {
		return w
	}
	keys, read, unread := map[string]bool{}, map[string]bool{}, false
	targets, _ := store.Targets(s.cfg, store.Pick{All: true}) // only --agent can be unknown
	for _, t := range append(targets, store.StrangerTargets(s.cfg)...) {
		found, err := store.Open(ctx, s.cfg, t)
		if s.unread.add(found, err); err != nil {
			unread = true
			continue
		}
		read[t.Agent] = true
		for i := range found.Rows {
			key := found.Rows[i].Key
			keys[key] = true
			keys[store.StoredKey(s.cfg, t.Agent, key)] = true
		}
	}
	w.Exists = func(key string) (exists, known bool) {
		if s.schema.App == awareness.App { // the sessions of other harnesses are in no store
			return false, false
		}
		agent := row.KeyAgent(key)
		if keys[key] || keys[store.StoredKey(s.cfg, agent, key)] {
			return true, true
		}
		_, _, qualified := row.Parse(key)
		return false, !unread || qualified && read[agent]
	}
	return w
}
