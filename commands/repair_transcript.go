package commands

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"oc/config"
	"oc/maintenance/doctor"
	"oc/store"
)

func repairTranscript() *Command {
	return &Command{
		Name:  "transcript",
		Args:  "FILE|KEY",
		Short: "mend all that can be mended in one transcript",
		Long: "Writes a mended copy of the transcript beside it and puts that in its place. Lines that nothing is wrong with keep their bytes. What cannot be read goes: cut lines, NUL bytes, lines that " +
			"are no entries, messages of nobody; what hung on them hangs on what was before. Entries whose parent is nowhere hang on the entry before them, doubles go once, and calls of tools " +
			"that were never answered get a result that says so.\n\n" +
			"The copy is read before it counts: where a message that is in the conversation would not be in it afterwards, nothing is changed. A transcript that is locked or was written in " +
			"the last five minutes stays as it is.",
		Flags: []Flag{agentFlag, storeFlag, dryFlag},
		Examples: []Example{
			{"oc repair transcript agent:main:main --dry-run", "what would be mended in the transcript of a session"},
			{"oc repair transcript ./0a1b2c3d-0000-4000-8000-000000000001.jsonl", "mend a file"},
		},
		Exits: []int{ExitFindings, ExitBusy, ExitRefused},
		Run:   runRepairTranscript,
	}
}

func runRepairTranscript(ctx context.Context, c *Call) error {
	cfg, path, err := c.transcriptOf(ctx, c.Arg(0))
	if err != nil {
		return err
	}
	dry := c.Bool("dry-run")
	if !dry {
		if err := c.alone(ctx, cfg, "mending a transcript", filepath.Join(filepath.Dir(path), config.StoreFile)); err != nil {
			return err
		}
	}
	o := doctor.Options{Config: cfg, Machine: c.machine(), Now: c.Now()}
	x := doctor.RepairTranscript(ctx, o, path, c.mender(cfg), dry)
	var busy *doctor.InUse
	var alien *doctor.NotTranscript
	switch {
	case errors.As(x.Err, &busy):
		return &Error{Exit: ExitBusy, Err: x.Err}
	case errors.As(x.Err, &alien):
		return Refusef("%w", alien)
	case x.Err != nil:
		return changeError(x.Err, x.Done)
	}
	if err := c.reportRepair(mending{all: []doctor.Mended{x}, cfg: cfg, dry: dry, left: &doctor.Report{}}); err != nil {
		return err
	}
	for _, f := range x.Left {
		if f.Severity != doctor.Info {
			return Status(ExitFindings)
		}
	}
	return nil
}

// transcriptOf is the transcript that a word means: a file, or that of a session.
func (c *Call) transcriptOf(ctx context.Context, word string) (*config.Config, string, error) {
	if path := c.absolute(word); strings.HasSuffix(word, ".jsonl") || strings.ContainsRune(word, os.PathSeparator) {
		if info, err := os.Stat(path); err == nil {
			if !info.Mode().IsRegular() {
				return nil, "", Failf("%s is no file", path)
			}
			cfg, err := c.load()
			return cfg, path, err
		}
	}
	l, err := c.forChange(ctx)
	if err != nil {
		return nil, "", err
	}
	r, err := c.find(ctx, l, word)
	if err != nil {
		return nil, "", c.unfit(l, err)
	}
	if r.Era() != store.FileEra {
		return nil, "", Refusef("the transcript of %s is in the database %s, which oc does not mend; nothing was changed", r.Key, r.Store().Path)
	}
	t, _, missing := r.Transcript()
	if missing || t.Path == "" {
		return nil, "", Failf("the session %s has no transcript; oc sessions trace %s looks where it went", r.Key, r.Key)
	}
	return l.cfg, t.Path, nil
}
