package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oc/commands/term"
	"oc/config"
	"oc/maintenance"
	"oc/maintenance/doctor"
	"oc/store/lock"
	"oc/store/span"
)

// runFix mends what the codes on the command line name, or what is safe to be mended without being named.
func runFix(ctx context.Context, c *Call, cfg *config.Config, o doctor.Options) error {
	codes, err := doctor.Select(c.Args...)
	if err == nil {
		err = doctor.Fixable(codes)
	}
	if err != nil {
		return Usagef("%w", err)
	}
	if len(codes) == 0 {
		codes = doctor.SafeCodes()
	}
	o.Deep = o.Deep || doctor.ReadsWhole(codes)
	dry := c.Bool("dry-run")
	if !dry {
		if err := c.alone(ctx, cfg, "mending", ""); err != nil {
			return err
		}
		if doctor.Asks(codes) && !c.Bool("yes") {
			planned, err := doctor.Fix(ctx, o, codes, c.holder(ctx, cfg), true)
			if err != nil {
				return err
			}
			if n := changesOf(planned); n > 0 {
				for _, line := range (mending{all: planned, cfg: cfg, dry: true}).lines() {
					c.Err.Printf("%s\n", term.Styled(term.Escape(line)))
				}
				yes, err := c.Confirm(ctx, "--yes", "%s will be made. Go on?", howMany(n, "change"))
				if err != nil || !yes {
					if err == nil {
						c.Notef("nothing was changed")
					}
					return err
				}
			}
		}
	}
	all, err := doctor.Fix(ctx, o, codes, c.holder(ctx, cfg), dry)
	if err != nil {
		return err
	}
	if !dry { // what was looked at is another now
		if cfg, err = c.loadQuietly(); err != nil {
			return err
		}
		o.Config, o.Sized = cfg, nil
	}
	left, err := doctor.Examine(ctx, o)
	if err != nil {
		return err
	}
	m := mending{all: all, left: left, cfg: cfg, dry: dry, codes: codes}
	if c.JSON() {
		err = c.Document(m.print)
	} else {
		m.text(c)
	}
	if err != nil {
		return err
	}
	return m.outcome()
}

// changesOf counts the changes of some plans.
func changesOf(all []doctor.Mended) (n int) {
	for _, m := range all {
		if m.Done != nil && m.Done.Plan != nil && !undone(m) {
			n += len(actionsOf(m.Done.Plan))
		}
	}
	return n
}

// undone tells of a plan that failed before anything was changed.
func undone(m doctor.Mended) bool { return m.Err != nil && !m.Done.Changed() }

// actionsOf are the changes of a plan without the writing of the store, which is how its rows change.
func actionsOf(p *maintenance.Plan) (out []*maintenance.Action) {
	for i := range p.Actions {
		if a := &p.Actions[i]; a.Applies && a.Kind != maintenance.Rewrite {
			out = append(out, a)
		}
	}
	return out
}

// A mending is what was mended, or would be, and what is left.
type mending struct {
	all   []doctor.Mended
	left  *doctor.Report
	cfg   *config.Config
	dry   bool
	codes []doctor.Code

	sources []maintenance.Source // of an index that is made anew
}

// lines are what changes, an item a line.
func (m mending) lines() (out []string) {
	short := diagnosis{cfg: m.cfg}.short
	for _, x := range m.all {
		if x.Done != nil && x.Done.Plan != nil {
			skipped := map[*maintenance.Action]string{}
			for _, k := range x.Done.Skipped {
				skipped[k.Action] = k.Reason
			}
			for _, a := range actionsOf(x.Done.Plan) {
				line := m.verb(a) + " "
				if undone(x) {
					line = "could not " + strings.TrimPrefix(mending{dry: true}.verb(a), "would ") + " "
				}
				switch {
				case a.Target != "":
					line += short(a.Target)
				case a.Kind == maintenance.Remake:
					line += "what is derived of " + a.Key
				default:
					line += "the row " + a.Key
				}
				switch {
				case a.Kind == maintenance.Move:
					line += " to " + short(a.To)
				case a.Kind == maintenance.Chmod:
					line += fmt.Sprintf(" to %04o", a.Mode.Perm())
				}
				line += fmt.Sprintf(" (%s): %s", a.Rule, a.Reason)
				if why, ok := skipped[a]; ok {
					line = "not " + line + "; " + why
				}
				out = append(out, line)
			}
			if x.Err == nil {
				out = append(out, x.Done.Plan.Problems...)
			}
		}
		for _, f := range x.Left {
			out = append(out, fmt.Sprintf("leave %s (%s): %s", diagnosis{cfg: m.cfg}.place(f.Finding), f.Code, f.Why))
		}
	}
	return out
}

// verb is what an action does, in a word.
func (m mending) verb(a *maintenance.Action) string {
	word := map[maintenance.Kind][2]string{
		maintenance.Remove: {"remove", "removed"}, maintenance.Move: {"rename", "renamed"}, maintenance.Chmod: {"set", "set"},
		maintenance.Replace: {"write", "wrote"}, maintenance.Create: {"make", "made"}, maintenance.PutRow: {"change", "changed"}, maintenance.DropRow: {"merge away", "merged away"},
		maintenance.Remake: {"set right", "set right"},
	}[a.Kind]
	if word[0] == "" {
		return string(a.Kind)
	}
	if m.dry {
		return "would " + word[0]
	}
	return word[1]
}

func (m mending) text(c *Call) {
	lines := m.lines()
	for _, line := range lines {
		c.hang("", "- "+line)
	}
	for _, x := range m.all {
		if x.Err != nil {
			c.Warnf("%s: %v", or(x.Store, m.cfg.StateDir), heldBy(x.Err))
		}
	}
	if len(lines) > 0 {
		c.Out.Printf("\n")
	}
	n, runs := changesOf(m.all), m.runs()
	said := howMany(n, "change") + " made."
	switch {
	case n == 0 && slices.ContainsFunc(m.all, undone):
		said = "Nothing was changed."
	case n == 0:
		said = "There is nothing to mend."
	case m.dry:
		said = howMany(n, "change") + " would be made; nothing was changed."
	case len(runs) > 0:
		said += " oc undo takes all of it back (run " + strings.Join(runs, ", ") + ")."
	}
	verb := "left"
	if m.dry {
		verb = "there now"
	}
	if e, w := m.left.Count(string(doctor.Error)), m.left.Count(string(doctor.Warn)); e+w > 0 {
		said += fmt.Sprintf(" %s and %s are %s: oc doctor shows them.", howMany(e, "error"), howMany(w, "warning"), verb)
	} else {
		said += " No error and no warning is " + verb + "."
	}
	c.Out.Printf("%s\n", term.Styled(term.Wrap(term.Escape(said), c.Out.Width(), "")))
}

// runs are the runs that were made.
func (m mending) runs() (ids []string) {
	for _, x := range m.all {
		if x.Done.Changed() {
			ids = append(ids, x.Done.Run.ID)
		}
	}
	return ids
}

// outcome is the exit status: a plan that failed, else what is left.
func (m mending) outcome() error {
	for _, x := range m.all {
		if x.Err != nil {
			err := changeError(x.Err, x.Done)
			if errors.Is(x.Err, lock.ErrHeld) {
				return Status(ExitBusy)
			}
			var e *Error
			if errors.As(err, &e) {
				return Status(e.Exit)
			}
			return Status(ExitFailed)
		}
	}
	if !m.left.Healthy() {
		return Status(ExitFindings)
	}
	return nil
}

func (m mending) print(p *span.Printer) error {
	p.Object()
	p.Key("stateDir").String(m.cfg.StateDir)
	p.Key("dryRun").Bool(m.dry)
	p.Key("codes").Array()
	for _, code := range m.codes {
		p.String(string(code))
	}
	p.End()
	p.Key("changes").Int(int64(changesOf(m.all)))
	p.Key("stores").Array()
	for _, x := range m.all {
		p.Object()
		optional(p, "agentId", x.Agent)
		optional(p, "storePath", x.Store)
		if x.Err != nil {
			p.Key("error").String(heldBy(x.Err).Error())
		}
		if x.Done != nil && x.Done.Plan != nil {
			planMembers(p, x.Done, 0)
			if !m.dry {
				doneMembers(p, x.Done)
			}
		}
		p.Key("fixed").Array()
		for i := range x.Findings {
			printFinding(p, &x.Findings[i])
		}
		p.End()
		p.Key("refused").Array()
		for _, f := range x.Left {
			p.Object()
			p.Key("code").String(string(f.Code))
			optional(p, "file", f.File)
			optional(p, "key", f.Key)
			p.Key("reason").String(f.Why)
			p.End()
		}
		p.End()
		p.End()
	}
	p.End()
	p.Key("healthy").Bool(m.left.Healthy())
	p.Key("left").Array()
	for i := range m.left.Findings {
		printFinding(p, &m.left.Findings[i])
	}
	p.End()
	p.End()
	return nil
}

// mender applies plans of repairs.
func (c *Call) mender(cfg *config.Config) *maintenance.Worker {
	return &maintenance.Worker{Config: cfg, Machine: c.machine(), Now: c.Now, Wait: patience, Command: c.line(), FS: c.under.files}
}

// holder is a mender that keeps gateways out while it changes databases.
func (c *Call) holder(ctx context.Context, cfg *config.Config) *maintenance.Worker {
	w := c.mender(cfg)
	w.Hold = c.hold(ctx, c.where(cfg))
	return w
}
