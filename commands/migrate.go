package commands

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"oc/commands/term"
	"oc/config"
	"oc/gateway"
	"oc/maintenance"
	"oc/store"
	"oc/store/lock"
	"oc/store/span"
)

// migrate are the commands for the border between the eras. They change nothing.
func migrate() *Command {
	return &Command{
		Name:  "migrate",
		Short: "before and after a move from files to databases: what it takes, lost or left",
		Long: "The first start of a gateway from 2026.8 on moves sessions from files into databases, and there is no way back in OpenClaw. These commands say beforehand what the move " +
			"takes, refuses or leaves, afterwards what each side holds that the other lacks, and what an older release would see. They only read.",
		Sub: []*Command{migrateCheck(), migrateCompare(), migrateDowngrade()},
	}
}

func releaseFlag(help string, names ...string) Flag {
	return Flag{Name: "to", Value: "RELEASE", Default: names[0], Help: help, Choices: names}
}

func migrateCheck() *Command {
	return &Command{
		Name:  "check",
		Short: "what an import into databases would take, refuse, leave or alter, and why",
		Long: "Reads the files of an agent as OpenClaw's import does it, every line of every transcript, and tells what is in its way: rows that are none, keys that become others, transcripts " +
			"that are missing, broken, linked, locked or cannot be read, what no row names, and the room that it needs at once. Each with what can be done about it beforehand.",
		Flags: []Flag{
			anyAgentFlag, storeFlag, releaseFlag("the release to move to", "2026.9.6", "2026.8.2"),
		},
		Examples: []Example{
			{"oc migrate check", "all agents, before an update"},
			{"oc migrate check --to 2026.8.2 --json", "for another release, for a program"},
		},
		Exits: []int{ExitFindings, ExitBusy},
		Run:   runMigrateCheck,
	}
}

func migrateCompare() *Command {
	return &Command{
		Name:  "compare",
		Short: "what files and database each hold that the other lacks, entry by entry",
		Long: "After an import, an import that was cut short, or work with an older release in between: which rows only the index has, and which only the database; which transcripts have entries " +
			"that the other side lacks, by the entries' own ids. The originals that an import has put away are compared where nothing else is left.",
		Flags:    []Flag{anyAgentFlag, storeFlag},
		Examples: []Example{{"oc migrate compare", "all agents"}, {"oc migrate compare --agent main --json", "every transcript, for a program"}},
		Exits:    []int{ExitFindings, ExitBusy},
		Run:      runMigrateCompare,
	}
}

func migrateDowngrade() *Command {
	var names []string
	for _, r := range maintenance.Releases {
		if r.Name == "2026.7.35" {
			names = append([]string{r.Name}, names...)
		} else {
			names = append(names, r.Name)
		}
	}
	return &Command{
		Name:  "downgrade-plan",
		Short: "what an older release would see, and the steps to it",
		Long: "Holds the schemas of the databases against what a release opens, says what it would show of each agent, and lists the steps that bring the sessions to it. Nothing is done: the " +
			"steps are for you.",
		Flags:    []Flag{anyAgentFlag, storeFlag, releaseFlag("the release to go back to", names...)},
		Examples: []Example{{"oc migrate downgrade-plan", "back to the files of 2026.7.35"}, {"oc migrate downgrade-plan --to 2026.8.2", "to another release of the SQLite era"}},
		Exits:    []int{ExitFindings},
		Run:      runMigrateDowngrade,
	}
}

func (c *Call) border() (*config.Config, []store.Target, error) {
	cfg, err := c.load()
	if err != nil {
		return nil, nil, err
	}
	if err := c.knows(cfg); err != nil {
		return nil, nil, err
	}
	targets, err := c.targets(cfg, !c.Given("agent") && !c.Given("store"))
	if err == nil && !c.Given("agent") && !c.Given("store") {
		targets = append(targets, store.StrangerTargets(cfg)...)
	}
	return cfg, targets, err
}

func runMigrateCheck(ctx context.Context, c *Call) error {
	cfg, targets, err := c.border()
	if err != nil {
		return err
	}
	p, err := maintenance.Foresee(ctx, cfg, targets, c.String("to"), lock.Local(), c.Now())
	if err != nil {
		return err
	}
	if owner := c.owner(ctx, cfg); owner.Life == gateway.Alive {
		p.Obstacles = append(p.Obstacles, maintenance.Obstacle{Code: "gateway_alive", Effect: maintenance.Refuses, Path: cfg.StateDir, Says: fmt.Sprintf("its owner lives, process %d", owner.PID), Remedy: "stop it before the import"})
	}
	exit := ExitDone
	for _, o := range p.All() {
		if o.Effect != maintenance.Notes {
			exit = ExitFindings
		}
	}
	if c.JSON() {
		err = c.Document(func(pr *span.Printer) error { printPreflight(pr, p); return nil })
	} else {
		c.preflightText(p)
	}
	if err == nil && exit != ExitDone {
		err = Status(exit)
	}
	return err
}

func (c *Call) preflightText(p *maintenance.Preflight) {
	o := c.Out
	o.Printf("%s\n\n", o.Paint(term.Bold, "What the import of "+p.Release+" would make of it"))
	t := o.Table(term.Column{Head: "Agent", Cut: term.End, Min: 8}, term.Column{Head: "State"}, term.Column{Head: "Rows", Right: true}, term.Column{Head: "Taken", Right: true}, term.Column{Head: "Transcripts", Right: true},
		term.Column{Head: "Events", Right: true}, term.Column{Head: "Unnamed", Right: true}, term.Column{Head: "Size", Right: true})
	for _, a := range p.Agents {
		t.Row(a.Agent, a.State, term.Count(int64(a.Rows)), term.Count(int64(a.Taken)), term.Count(int64(a.Transcripts)), term.Count(int64(a.Events)), term.Count(int64(a.Unlinked)), bytesOrDash(a.Bytes))
	}
	t.End()
	for _, what := range []struct{ effect, head string }{{maintenance.Refuses, "It would not begin"}, {maintenance.Leaves, "It would leave"}, {maintenance.Alters, "It would alter"}, {maintenance.Notes, "To know"}} {
		shown := 0
		for _, x := range p.All() {
			if x.Effect != what.effect {
				continue
			}
			if shown++; shown == 1 {
				o.Printf("\n%s\n", o.Paint(term.Bold, what.head))
			}
			if shown > 20 && !c.Bool("verbose") {
				continue
			}
			where := x.Key
			if where == "" {
				where = baseOf(x.Path)
			}
			text := fmt.Sprintf("- %s: %s.", where, x.Says)
			if x.Remedy != "" {
				text += " " + sentence(x.Remedy) + "."
			}
			c.hang("", text)
		}
		if shown > 20 && !c.Bool("verbose") {
			c.Notef("%s not shown; give --verbose to see them", plural(shown-20, "more is", "more are"))
		}
	}
	o.Printf("\nIt needs %s at once.\n", rooms(p.Room))
}

// sentence begins with a capital.
func sentence(s string) string {
	if s == "" || strings.HasPrefix(s, "oc ") || strings.HasPrefix(s, "openclaw ") {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func printPreflight(p *span.Printer, f *maintenance.Preflight) {
	p.Object()
	p.Key("release").String(f.Release)
	p.Key("agents").Array()
	for _, a := range f.Agents {
		p.Object()
		p.Key("agentId").String(a.Agent)
		p.Key("state").String(a.State)
		p.Key("storePath").String(a.Index)
		p.Key("sqlitePath").String(a.Database)
		for _, x := range []struct {
			name string
			n    int64
		}{{"rows", int64(a.Rows)}, {"taken", int64(a.Taken)}, {"transcripts", int64(a.Transcripts)}, {"events", int64(a.Events)}, {"unlinked", int64(a.Unlinked)}, {"bytes", a.Bytes}} {
			p.Key(x.name).Int(x.n)
		}
		p.End()
	}
	p.End()
	p.Key("obstacles").Array()
	for _, x := range f.All() {
		p.Object()
		p.Key("code").String(x.Code)
		p.Key("effect").String(x.Effect)
		optional(p, "agentId", x.Agent)
		optional(p, "sessionKey", x.Key)
		optional(p, "path", x.Path)
		p.Key("says").String(x.Says)
		p.Key("remedy").String(x.Remedy)
		p.End()
	}
	p.End()
	needs(p, f.Room)
	p.End()
}

func runMigrateCompare(ctx context.Context, c *Call) error {
	cfg, targets, err := c.border()
	if err != nil {
		return err
	}
	var all []*maintenance.Compared
	exit := ExitDone
	for _, t := range targets {
		if t.Index == "" {
			continue
		}
		x, err := maintenance.Compare(ctx, cfg, t)
		if err != nil {
			return err
		}
		all = append(all, x)
		for i := range x.Pairs {
			if p := &x.Pairs[i]; x.Database != "" && (p.Err != nil || p.OnlyFile > 0) {
				exit = ExitFindings
			}
		}
		if x.Database != "" && len(x.OnlyFile)+len(x.Newer) > 0 {
			exit = ExitFindings
		}
		if len(x.Unread) > 0 {
			exit = ExitFailed
		}
	}
	if c.JSON() {
		err = c.Document(func(p *span.Printer) error { printCompared(p, all); return nil })
		if err != nil {
			return err
		}
	} else {
		for i, x := range all {
			if i > 0 {
				c.Out.Printf("\n")
			}
			c.comparedText(x)
		}
	}
	for _, x := range all {
		for _, err := range x.Unread {
			c.Warnf("agent %s: %v", x.Agent, err)
		}
	}
	if exit != ExitDone {
		return Status(exit)
	}
	return nil
}

var eraStates = map[string]string{
	"both": "files and a database, and both hold sessions: OpenClaw from 2026.7.2 on reads the database alone", "migrated": "a database; the originals are put away",
	"database": "a database", "files": "files; nothing was imported", "none": "no sessions",
}

func (c *Call) comparedText(x *maintenance.Compared) {
	o := c.Out
	o.Printf("%s\n", o.Paint(term.Bold, "Agent "+x.Agent+": "+eraStates[x.State]))
	if x.Database == "" {
		return
	}
	same := 0
	for i := range x.Pairs {
		if x.Pairs[i].Same() {
			same++
		}
	}
	list := func(keys []string) string {
		if len(keys) > 5 {
			return strings.Join(keys[:5], ", ") + fmt.Sprintf(" and %d more", len(keys)-5)
		}
		return strings.Join(keys, ", ")
	}
	o.Facts(
		term.Fact{Label: "  Rows only in the index", Value: list(x.OnlyFile)},
		term.Fact{Label: "  Rows only in the database", Value: list(x.OnlyDB)},
		term.Fact{Label: "  Used later in the index", Value: list(x.Newer)},
		term.Fact{Label: "  Transcripts", Value: fmt.Sprintf("%s, %s the same on both sides", term.Count(int64(len(x.Pairs))), term.Count(int64(same)))},
	)
	if same == len(x.Pairs) {
		return
	}
	t := o.Table(term.Column{Head: "Transcript", Cut: term.Middle, Min: 20}, term.Column{Head: "Session", Cut: term.Middle, Min: 16}, term.Column{Head: "Only file", Right: true}, term.Column{Head: "Only database", Right: true}, term.Column{Head: "File", Cut: term.Middle, Min: 12, Drop: 1})
	for i := range x.Pairs {
		p := &x.Pairs[i]
		if p.Same() {
			continue
		}
		file := "none"
		if p.File != "" {
			file = filepath.Base(p.File)
		}
		only := [2]string{term.Count(int64(p.OnlyFile)), term.Count(int64(p.OnlyDB))}
		if p.Err != nil {
			only = [2]string{term.Unknown, term.Unknown}
			c.Warnf("%s: %v", p.Session, p.Err)
		}
		t.Row(p.Session, or(p.Key, "(none)"), only[0], only[1], file)
	}
	t.End()
}

func printCompared(p *span.Printer, all []*maintenance.Compared) {
	texts := func(name string, list []string) {
		p.Key(name).Array()
		for _, s := range list {
			p.String(s)
		}
		p.End()
	}
	p.Object()
	p.Key("agents").Array()
	for _, x := range all {
		p.Object()
		p.Key("agentId").String(x.Agent)
		p.Key("state").String(x.State)
		p.Key("storePath").String(x.Index)
		optional(p, "sqlitePath", x.Database)
		texts("rowsOnlyInIndex", x.OnlyFile)
		texts("rowsOnlyInDatabase", x.OnlyDB)
		texts("rowsNewerInIndex", x.Newer)
		p.Key("transcripts").Array()
		for i := range x.Pairs {
			t := &x.Pairs[i]
			p.Object()
			p.Key("sessionId").String(t.Session)
			optional(p, "sessionKey", t.Key)
			optional(p, "file", t.File)
			if t.Err != nil {
				p.Key("error").String(t.Err.Error())
			} else {
				p.Key("entriesInFile").Int(int64(t.InFile))
				p.Key("entriesInDatabase").Int(int64(t.InDatabase))
				p.Key("onlyInFile").Int(int64(t.OnlyFile))
				p.Key("onlyInDatabase").Int(int64(t.OnlyDB))
			}
			p.End()
		}
		p.End()
		var problems []string
		for _, err := range x.Unread {
			problems = append(problems, err.Error())
		}
		texts("errors", problems)
		p.End()
	}
	p.End()
	p.End()
}

func runMigrateDowngrade(ctx context.Context, c *Call) error {
	cfg, targets, err := c.border()
	if err != nil {
		return err
	}
	var release maintenance.Release
	for _, r := range maintenance.Releases {
		if r.Name == c.String("to") {
			release = r
		}
	}
	d, err := maintenance.PlanDowngrade(ctx, cfg, targets, release)
	if err != nil {
		return err
	}
	if c.JSON() {
		err := c.Document(func(p *span.Printer) error {
			p.Object()
			p.Key("release").String(d.Release.Name)
			p.Key("opensAgentSchema").Int(int64(d.Release.Agent))
			p.Key("opensStateSchema").Int(int64(d.Release.Shared))
			p.Key("stateSchema").Int(int64(d.Shared))
			p.Key("agents").Array()
			for i := range d.Agents {
				o := &d.Agents[i]
				p.Object()
				p.Key("agentId").String(o.Agent)
				p.Key("schema").Int(int64(o.Schema))
				p.Key("rowsInDatabase").Int(int64(o.Rows))
				p.Key("rowsInIndex").Int(int64(o.Files))
				p.Key("sees").String(o.Sees)
				p.End()
			}
			p.End()
			p.Key("steps").Array()
			for _, s := range d.Steps {
				p.String(s)
			}
			p.End()
			p.End()
			return nil
		})
		if err != nil {
			return err
		}
	} else {
		o := c.Out
		o.Printf("%s\n", o.Paint(term.Bold, "What "+d.Release.Name+" would see"))
		for i := range d.Agents {
			c.hang("", fmt.Sprintf("- %s: %s.", d.Agents[i].Agent, d.Agents[i].Sees))
		}
		if len(d.Steps) > 0 {
			o.Printf("\n%s\n", o.Paint(term.Bold, "The way there"))
			for i, s := range d.Steps {
				c.hang("", fmt.Sprintf("%d. %s", i+1, s))
			}
		}
	}
	if len(d.Steps) > 0 {
		return Status(ExitFindings)
	}
	return nil
}
