package commands

import (
	"context"
	"path/filepath"
	"strings"

	"oc/awareness"
	"oc/config"
	"oc/store/span"
)

func awarenessInit() *Command {
	return &Command{
		Name:  "init",
		Short: "make a signal log for other harnesses, in a directory of its own",
		Long: "Makes a state database that holds nothing but a signal log, in the directory that --state-dir names. A gateway does not start on such a database, so the directory must be one " +
			"that OpenClaw neither uses nor would use: no openclaw.json, agents or state in it, and not a place where OpenClaw looks by itself. Scripts and agents that give the same --state-dir to oc " +
			"then share the log.",
		Examples: []Example{{"oc awareness init --state-dir /srv/signals", "a log for agents that are not OpenClaw's"}},
		Exits:    []int{ExitRefused},
		Run:      initLog,
	}
}

func initLog(ctx context.Context, c *Call) error {
	if strings.TrimSpace(c.String("state-dir")) == "" {
		return Usagef("oc awareness init needs --state-dir DIR, an existing directory that is not OpenClaw's")
	}
	cfg, err := c.load()
	if err != nil {
		return err
	}
	path, err := awareness.Init(ctx, cfg.StateDir, c.places(cfg), c.Now().UnixMilli())
	if err != nil {
		return err
	}
	if c.JSON() {
		return c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("path").String(path)
			p.Key("stateDir").String(cfg.StateDir)
			p.End()
			return nil
		})
	}
	c.Out.Printf("Made %s.\nNext: oc awareness watch and record, with --state-dir %s\n", path, cfg.StateDir)
	return nil
}

// places are where OpenClaw would look for its state in this environment, whatever profile it runs under.
func (c *Call) places(cfg *config.Config) []string {
	all := []string{filepath.Join(cfg.Home, ".openclaw"), filepath.Join(cfg.Home, ".clawdbot")}
	for _, profile := range []string{"", c.String("profile"), c.Env("OPENCLAW_PROFILE")} {
		if at, err := config.Locate(config.Options{Env: c.Env, Cwd: c.Dir, Home: cfg.Home, Profile: profile}); err == nil {
			all = append(all, at.StateDir, filepath.Dir(at.ConfigFile))
		}
	}
	if filepath.Dir(cfg.StateDir) == cfg.Home && strings.HasPrefix(filepath.Base(cfg.StateDir), ".openclaw-") {
		all = append(all, cfg.StateDir) // that of a profile
	}
	return all
}
