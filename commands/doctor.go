package commands

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"oc/commands/term"
	"oc/config"
	"oc/maintenance/doctor"
	"oc/store"
)

func doctors() *Command {
	return &Command{
		Name:  "doctor",
		Args:  "[CODE...]",
		Short: "find what is wrong with the sessions, with the evidence and what to do",
		Long: "Looks at indexes, transcripts, files, locks, running sessions, the configuration, databases and the signal log, and says of each thing that it finds where it is, how it is " +
			"known, why it matters and what to do. Nothing is changed.\n\n" +
			"--fix mends what can be mended safely: each change is shown with its reason, and oc undo takes all of them back. With CODE only that is mended; what is not safe to be " +
			"mended unseen needs its code, and asks. No message and no session is ever deleted. While a gateway lives nothing is mended.\n\n" +
			"Large transcripts are read at their ends only; --deep reads them whole. Without --agent or --store every agent is looked at, configured or not. " +
			"Where both eras hold sessions the one that OpenClaw reads is looked at and the other one counted; with --both-eras both are looked at, and each finding is marked with its era.\n\n" +
			"Errors and warnings give exit status 3, notes do not.",
		Flags: []Flag{
			{Name: "agent", Value: "ID", Takes: "the id of an agent", Check: isSomething, Help: "only this agent; without it all of them, also those that are only on disk"},
			{Name: "all-agents", Help: "every agent, as without any flag"},
			storeFlag, bothErasFlag,
			{Name: "only", Value: "CODE,...", Repeatable: true, Takes: "codes or families of oc doctor --list", Check: isSomething, Help: "only these checks, by code or family"},
			{Name: "deep", Help: "read every transcript whole, and check databases on a private copy"},
			{Name: "list", Help: "list every check with what it finds"},
			{Name: "fix", Help: "mend what is wrong: what is safe, or what has one of the codes"},
			{Name: "dry-run", Help: "with --fix, show what would be mended and change nothing"},
			{Name: "yes", Help: "with --fix CODE, do not ask"},
		},
		Examples: []Example{
			{"oc doctor", "what is wrong, the worst first"},
			{"oc doctor --deep --json", "everything, for a script"},
			{"oc doctor --only locks,index-damaged", "some checks only"},
			{"oc doctor --list", "every check and its code"},
			{"oc doctor --fix --dry-run", "what would be mended"},
			{"oc doctor --fix", "mend what is safe to be mended"},
		},
		Exits: []int{ExitFindings, ExitBusy, ExitRefused},
		Run:   runDoctor,
	}
}

func runDoctor(ctx context.Context, c *Call) error {
	only, err := doctor.Select(c.Strings("only")...)
	var unknown *doctor.Unknown
	if errors.As(err, &unknown) {
		return Usagef("--only: %w", err)
	}
	if c.Bool("list") {
		return listChecks(c, only)
	}
	cfg, err := c.loadQuietly()
	if err != nil {
		return err
	}
	if c.Bool("fix") && !c.Bool("dry-run") {
		if err := c.knows(cfg); err != nil {
			return err
		}
	}
	targets, err := c.patients(cfg)
	if err != nil {
		return err
	}
	switch {
	case !c.Bool("fix") && len(c.Args) > 0:
		return Usagef("CODE goes with --fix; --only CODE looks for that alone")
	case !c.Bool("fix") && (c.Bool("dry-run") || c.Bool("yes")):
		return Usagef("--dry-run and --yes go with --fix; without it nothing is changed")
	case c.Bool("fix") && c.Bool("both-eras"):
		return Usagef("--fix and --both-eras exclude each other; what the other era has is mended with --store PATH")
	case c.Bool("fix") && len(only) > 0:
		return Usagef("--only and --fix exclude each other; the codes of what is to be mended stand behind --fix")
	}
	bar := c.Progress("reading transcripts")
	o := doctor.Options{
		Config: cfg, Targets: targets, State: !c.Given("agent") && !c.Given("store"), Both: c.Bool("both-eras"), Only: only, Deep: c.Bool("deep"),
		Machine: c.machine(), Owner: c.owner(ctx, cfg), Now: c.Now(),
		Sized:    func(s doctor.Size) { c.Notef("%s", sizeLine(s)) },
		Progress: func(done, total int64) { bar.Set(done, total) },
	}
	if c.Bool("fix") {
		defer bar.Done()
		return runFix(ctx, c, cfg, o)
	}
	// What is read is thrown away and little is kept: a heap of half the room costs no time.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	report, err := doctor.Examine(ctx, o)
	bar.Done()
	if err != nil {
		return err
	}
	if c.JSON() {
		err = c.Document(diagnosis{report, cfg, o.Both}.print)
	} else {
		diagnosis{report, cfg, o.Both}.text(c)
	}
	if err == nil && !report.Healthy() {
		err = Status(ExitFindings)
	}
	return err
}

// patients are the stores that are looked at: those that the flags name, else every agent's, also of agents that are on disk only.
func (c *Call) patients(cfg *config.Config) ([]store.Target, error) {
	all := !c.Given("agent") && !c.Given("store")
	has := find(c.Path[len(c.Path)-1].Flags, "--all-agents") != nil // oc repair paths has not
	targets, err := c.targets(cfg, all || has && c.Bool("all-agents"))
	if all {
		targets = append(targets, store.StrangerTargets(cfg)...)
	}
	return targets, err
}

func sizeLine(s doctor.Size) string {
	return fmt.Sprintf("looking at %s, %s and %s of %s", howMany(s.Stores, "store"), howMany(s.Rows, "session"), howMany(s.Transcripts, "transcript"), term.Bytes(s.Bytes))
}

// howMany counts things: "1 store", "12,000 stores".
func howMany(n int, what string) string { return plural(n, what, what+"s") }
