package commands

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"oc/commands/term"
	"oc/maintenance"
	"oc/store"
	"oc/store/span"
)

func dbExport() *Command {
	return &Command{
		Name:  "export",
		Args:  "AGENT",
		Short: "take an agent's sessions out of its database as sessions.json and JSON lines",
		Long: "Writes the sessions of an agent into a new folder, as releases before 2026.7.2 and those of the line 2026.7.3x keep them: sessions.json, a file of JSON lines for each " +
			"transcript, and archives of what was reset or deleted. OpenClaw itself has no such way back: what was said after a move to databases is in no file. Cold and archived transcripts " +
			"are unpacked, and what the newer releases folded together, such as where answers go, is unfolded.\n\n" +
			"The folder is made whole or not at all, outside of any state, where OpenClaw would take it for its own; oc migrate downgrade-plan says what else an older release needs. The " +
			"database is only read. Nothing is masked: keep the folder as private as the state.",
		Flags: []Flag{
			{Name: "format", Value: "FORMAT", Default: "files", Help: "what to write", Choices: []string{"files"}},
			{Name: "to", Value: "DIR", Takes: "a directory that does not exist", Check: isSomething, Help: "the folder to make"},
		},
		Examples: []Example{
			{"oc db export main --format files --to ~/main-as-files", "the sessions of the agent main"},
			{"oc sessions list --store ~/main-as-files/sessions.json", "what an older release would list of them"},
		},
		Exits: []int{ExitBusy, ExitRefused},
		Run:   exportDatabase,
	}
}

func exportDatabase(ctx context.Context, c *Call) error {
	dir := c.String("to")
	if dir == "" {
		return Usagef("oc db export needs --to DIR, a folder that does not exist")
	}
	dir = c.absolute(dir)
	cfg, err := c.load()
	if err != nil {
		return err
	}
	targets, err := store.Targets(cfg, store.Pick{Agent: c.Arg(0)})
	var unknown *store.UnknownAgent
	if errors.As(err, &unknown) {
		for _, t := range store.StrangerTargets(cfg) {
			if t.Agent == c.Arg(0) {
				targets, err = []store.Target{t}, nil
			}
		}
	}
	if err != nil {
		return Usagef("AGENT: %w", err)
	}
	paths := store.Databases(targets[0])
	if len(paths) == 0 {
		return Failf("agent %s has no database, so there is nothing to take out of one; its sessions, if it has any, are files already: %s", targets[0].Agent, targets[0].Index)
	}
	switch _, err := os.Lstat(dir); {
	case err == nil:
		return Refusef("--to: %s is there already; name a folder that is not", dir)
	case !errors.Is(err, fs.ErrNotExist):
		return Failf("--to: %w", err)
	}
	if info, err := os.Stat(filepath.Dir(dir)); err != nil || !info.IsDir() {
		return Failf("--to: the folder %s that it would be made in is not there", filepath.Dir(dir))
	}
	for _, own := range []string{cfg.StateDir, filepath.Dir(paths[0])} {
		if within(filepath.Dir(dir), own) {
			return Refusef("--to: %s lies in the state of OpenClaw, %s, where it may be taken for its own; make it elsewhere", dir, own)
		}
	}
	x, err := maintenance.TakeOut(ctx, paths[0], dir)
	if err != nil {
		return storeError(&store.Sessions{Target: targets[0]}, err)
	}
	if c.JSON() {
		err = c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("agentId").String(targets[0].Agent)
			p.Key("database").String(paths[0])
			p.Key("to").String(x.Dir)
			p.Key("bytes").Int(x.Bytes)
			for _, n := range []struct {
				name string
				n    int
			}{{"sessions", x.Sessions}, {"transcripts", x.Transcripts}, {"earlierTranscripts", x.Earlier}, {"archives", x.Archives}, {"trajectories", x.Trajectories}, {"withResetMarks", x.Resets}} {
				p.Key(n.name).Int(int64(n.n))
			}
			p.Key("skipped").Array()
			for _, s := range x.Skipped {
				p.Object()
				p.Key("key").String(s.Key)
				p.Key("reason").String(s.Reason)
				p.End()
			}
			p.End()
			p.Key("errors").Array()
			for _, err := range x.Problems {
				p.String(err.Error())
			}
			p.End()
			p.End()
			return nil
		})
		if err != nil {
			return err
		}
	} else {
		c.Out.Printf("%s: %s, %s, %s of earlier ones, %s, %s; %s.\n", x.Dir, plural(x.Sessions, "session", "sessions"), plural(x.Transcripts, "transcript", "transcripts"),
			plural(x.Earlier, "file", "files"), plural(x.Archives, "archive", "archives"), plural(x.Trajectories, "trajectory", "trajectories"), term.Bytes(x.Bytes))
		c.Out.Printf("Read it with: oc sessions list --store %s\n", filepath.Join(x.Dir, "sessions.json"))
	}
	for i, s := range x.Skipped {
		if i == 5 {
			c.Warnf("%s left out too; --json has them all", plural(len(x.Skipped)-i, "other row was", "other rows were"))
			break
		}
		c.Warnf("%s is not in sessions.json: %s", s.Key, s.Reason)
	}
	if x.Resets > 0 {
		c.Warnf("%s a mark of a reset, which releases of the file era do not know: to them the conversation before it is part of the session", plural(x.Resets, "transcript has", "transcripts have"))
	}
	for _, err := range x.Problems {
		c.Warnf("%v", err)
	}
	if len(x.Problems) > 0 || len(x.Skipped) > 0 {
		return Status(ExitFailed)
	}
	return nil
}
