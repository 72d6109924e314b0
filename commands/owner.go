package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"oc/config"
	"oc/gateway"
	"oc/maintenance"
	"oc/store"
	"oc/store/lock"
	"oc/store/row"
)

// owner looks for whoever owns the state. No connection is made.
func (c *Call) owner(ctx context.Context, cfg *config.Config) gateway.Ownership {
	return gateway.Owner(ctx, c.where(cfg), c.machine(), c.Now())
}

// where is the state, and where the locks of its owners may be.
func (c *Call) where(cfg *config.Config) gateway.Where {
	w := gateway.Where{
		StateDir: cfg.StateDir, ConfigPath: cfg.ConfigFile, StateDB: store.StateDatabase(cfg.StateDir),
		TmpDirs: []string{os.TempDir()}, LockRoot: "/tmp", UID: os.Getuid(), Ports: gateway.Ports(cfg.Getenv, gateway.SettingsOf(cfg)),
	}
	w.Proc = c.under.proc
	if dir := c.Env("TMPDIR"); dir != "" {
		w.TmpDirs = []string{dir}
	}
	if !slices.Contains(w.TmpDirs, "/tmp") && os.PathSeparator == '/' {
		w.TmpDirs = append(w.TmpDirs, "/tmp")
	}
	if profile := c.Env("USERPROFILE"); os.PathSeparator == '\\' && profile != "" {
		w.LockRoot = filepath.Join(profile, "AppData", "Local", "OpenClaw", "locks")
	}
	return w
}

// way decides who makes a change (the delegation rule, see gateway.Decide): a connection means that the gateway of this state does, none
// that oc does it itself. It asks for the scope admin, whatever is to be done: to others 2026.7.35 does not say which state it has. The error says why nobody does. index is the store that --store named, and sqlite says that sessions in a
// database are to change. The caller closes the connection.
func (c *Call) way(ctx context.Context, cfg *config.Config, index string, sqlite bool) (*gateway.Conn, error) {
	w := c.where(cfg)
	f := gateway.Flags{Offline: c.Bool("offline"), Store: c.chose("store"), BesideGateway: c.chose("beside-gateway"), SQLite: sqlite}
	var o gateway.Options
	switch {
	case f.Store && index != "" && !sameDir(maintenance.Home(cfg, index), cfg.StateDir):
		w.StateDir, w.StateDB, w.Ports = stateOf(index), "", nil
		w.ConfigPath, f.Offline = filepath.Join(w.StateDir, "openclaw.json"), true // nobody's address is known
	case !f.Offline:
		var err error
		if o, err = c.gateway(cfg, gateway.Admin); err != nil {
			return nil, Refusef("%w; nothing was changed: give --offline if this state has no gateway", err)
		}
	}
	conn, d := gateway.Reach(ctx, w, c.machine(), c.Now(), o, f)
	if ctx.Err() != nil { // the search was cut short, and its answer is none
		if conn != nil {
			_ = conn.Close()
		}
		return nil, &Error{Exit: ExitInterrupted, Err: errors.New("interrupted; nothing was changed")}
	}
	for _, saw := range d.Saw {
		c.Tracef("%s", saw)
	}
	if err := d.Err(); err != nil {
		return nil, gatewayError(err)
	}
	return conn, nil
}

// chose says whether a flag was given that the command may not have.
func (c *Call) chose(flag string) bool {
	return find(c.Path[len(c.Path)-1].Flags, "--"+flag) != nil && c.Given(flag)
}

// stateOf is the state directory that a store by its path belongs to: agents/<id>/sessions in it, else its own directory.
func stateOf(index string) string {
	dir := filepath.Dir(index)
	if agents := filepath.Dir(filepath.Dir(dir)); filepath.Base(agents) == "agents" {
		return filepath.Dir(agents)
	}
	return dir
}

func sameDir(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return a == b || errX == nil && errY == nil && os.SameFile(x, y)
}

// alone refuses while a gateway owns the state, or may: what is to be done cannot be handed to one.
func (c *Call) alone(ctx context.Context, cfg *config.Config, what, index string) error {
	conn, err := c.way(ctx, cfg, index, false)
	if err != nil || conn == nil {
		return err
	}
	_ = conn.Close()
	return &Error{Exit: ExitRefused, Code: "owned", Err: fmt.Errorf(
		"nothing was changed: the gateway of this state lives, and %s cannot be done through it: stop it first%s", what, map[bool]string{true: ", or give --beside-gateway"}[find(c.Path[len(c.Path)-1].Flags, "--beside-gateway") != nil])}
}

// judge says whether a row that claims to run does.
func judge(ctx context.Context, c *Call, r *store.Row, o gateway.Ownership) gateway.Judgement {
	run := gateway.Run{}
	run.Status, _ = r.Text(row.Status)
	run.StartedAt, _ = r.Stamp(row.StartedAt)
	run.UpdatedAt = r.Updated
	run.EndedAt, _ = r.Stamp(row.EndedAt)
	run.ArchivedAt, _ = r.Stamp(row.ArchivedAt)
	run.Recovery, _ = r.Text(row.RestartRecoveryDeliveryRunID)
	run.LastByte = r.Grew(ctx)
	var held *lock.Report
	if r.Era() == store.FileEra {
		t, _, _ := r.Transcript()
		if t.Path != "" {
			report := lock.Look(t.Path+lock.Suffix, lock.Local(), c.Now())
			held = &report
		}
	}
	return gateway.Verdict(run, o, held, lock.Local().Boot(), c.Now())
}

// stuck tells rows that say they run and do not seem to.
func (c *Call) stuck(ctx context.Context, l *listing) func(*store.Row) bool {
	var owner *gateway.Ownership
	return func(r *store.Row) bool {
		if status, _ := r.Text(row.Status); status != "running" {
			return false
		}
		if owner == nil {
			o := c.owner(ctx, l.cfg)
			owner = &o
		}
		l.judged[r] = judge(ctx, c, r, *owner)
		return l.judged[r].Word != gateway.Live
	}
}

// hold keeps gateways out of a state while its databases are changed, and sees that nobody has them open, with gateway.ErrOwned: for Worker.Hold. Who
// calls it has asked way before, because a probe afterwards would let go.
func (c *Call) hold(ctx context.Context, w gateway.Where) func() (release func() error, err error) {
	return func() (func() error, error) {
		release, err := gateway.HoldLifecycle(w)
		if err != nil {
			return nil, err
		}
		if err := gateway.Leased(ctx, w, c.machine(), c.Now()); err != nil {
			return nil, errors.Join(err, release())
		}
		return release, nil
	}
}
