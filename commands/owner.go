package commands

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"oc/config"
	"oc/gateway"
	"oc/store"
	"oc/store/lock"
	"oc/store/row"
)

// owner looks for whoever owns the state. No connection is made.
func (c *Call) owner(ctx context.Context, cfg *config.Config) gateway.Ownership {
	return gateway.Owner(ctx, c.where(cfg), lock.Local(), c.Now())
}

// where is the state, and where the locks of its owners may be.
func (c *Call) where(cfg *config.Config) gateway.Where {
	w := gateway.Where{
		StateDir: cfg.StateDir, ConfigPath: cfg.ConfigFile, StateDB: store.StateDatabase(cfg.StateDir),
		TmpDirs: []string{os.TempDir()}, LockRoot: "/tmp", UID: os.Getuid(), Ports: gateway.Ports(cfg.Getenv, gateway.SettingsOf(cfg)),
	}
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
