package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"oc/commands/term"
	"oc/config"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/agentdb"
	"oc/store/span"
	"oc/store/sqlfile"
)

func dbStatus() *Command {
	return &Command{
		Name:  "status",
		Short: "schema, sizes, log, free pages, bytes by table, and the largest sessions",
		Long: "Looks at the database of an agent and at the one that all agents share: which schema it has and which release stamped it, how large it and its write-ahead log are, " +
			"how much of it is free, which tables the bytes belong to, which sessions are the largest and which fields of their rows take the room. It reads one snapshot, changes " +
			"nothing and blocks nobody.\n\n" +
			"With --check SQLite goes over every page, row, index and reference. That takes a while, so it is done on a private copy in the directory for temporary files; what the " +
			"copy takes is said first.",
		Flags: []Flag{
			agentFlag, allAgentsFlag, storeFlag,
			{Name: "check", Help: "let SQLite check a private copy of each file"},
			{Name: "limit", Value: "N", Default: "5", Help: "how many tables and sessions to show", Takes: "a positive whole number, for example --limit 20", Check: IsCount},
		},
		Examples: []Example{
			{"oc db status", "the database of the default agent, and the shared one"},
			{"oc db status --all-agents --check", "all of them, checked"},
			{"oc db status --json --limit 50", "more tables and sessions, for a program"},
		},
		Exits: []int{ExitFindings, ExitBusy},
		Run:   showDatabases,
	}
}

// looked is one database as db status shows it.
type looked struct {
	path    string
	agent   string
	d       *store.Database
	err     error
	checked bool
	said    []string // by the check
	unsure  error    // why it could not be checked
}

func showDatabases(ctx context.Context, c *Call) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	targets, err := c.targets(cfg, c.Bool("all-agents"))
	if err != nil {
		return err
	}
	var all []looked
	for _, t := range targets {
		for _, path := range store.Databases(t) {
			all = append(all, looked{path: path, agent: t.Agent})
		}
		if len(store.Databases(t)) == 0 {
			c.noDatabase(t)
		}
	}
	if shared := store.StateDatabase(cfg.StateDir); !c.Given("store") {
		all = append(all, looked{path: shared})
	}
	exit := ExitDone
	for i := range all {
		c.look(ctx, cfg, &all[i])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if x := &all[i]; x.err != nil && !errors.Is(x.err, fs.ErrNotExist) || x.unsure != nil || x.d != nil && len(x.d.Problems) > 0 {
			exit = ExitFailed
		}
	}
	all = present(all)
	if len(all) == 0 {
		return Failf("there is no database here: %s", targets[0].Databases[0])
	}
	if len(all) == 1 && all[0].err != nil {
		return storeError(&store.Sessions{Target: store.Target{Agent: all[0].agent}}, all[0].err)
	}
	if c.JSON() {
		if err := c.Document(func(p *span.Printer) error { printDatabases(p, cfg, all); return nil }); err != nil {
			return err
		}
	} else {
		for i := range all {
			if i > 0 {
				c.Out.Printf("\n")
			}
			c.databaseText(&all[i])
		}
	}
	for i := range all {
		if c.remarkDatabase(&all[i]) && exit == ExitDone {
			exit = ExitFindings
		}
	}
	if exit != ExitDone {
		return Status(exit)
	}
	return nil
}

// noDatabase tells why an agent has none.
func (c *Call) noDatabase(t store.Target) {
	c.Notef("agent %s has no database: there is no %s", t.Agent, t.Databases[0])
}

// present leaves out the databases that are not there.
func present(all []looked) (there []looked) {
	for _, x := range all {
		if !errors.Is(x.err, fs.ErrNotExist) {
			there = append(there, x)
		}
	}
	return there
}

func (c *Call) look(ctx context.Context, cfg *config.Config, x *looked) {
	n := int(c.Int("limit"))
	if x.d, x.err = store.Examine(ctx, cfg, x.path, n); x.err != nil && !c.Bool("check") || errors.Is(x.err, fs.ErrNotExist) {
		return
	}
	if !c.Bool("check") {
		return
	}
	dir, bytes, err := sqlfile.CopyRoom(x.path)
	if err != nil {
		x.unsure = err
		return
	}
	free := ""
	if n, _, err := journal.OS().Space(dir); err == nil {
		free = fmt.Sprintf("; %s are free there", term.Bytes(n))
		if n < bytes {
			x.unsure = fmt.Errorf("%s: no check: a private copy takes %s, and %s has %s free; set TMPDIR to a directory with room for it", x.path, term.Bytes(bytes), dir, term.Bytes(n))
			return
		}
	}
	c.Notef("%s: checking a private copy in %s, which takes %s%s", x.path, dir, term.Bytes(bytes), free)
	x.said, x.unsure = store.CheckDatabase(ctx, x.path)
	x.checked = x.unsure == nil
}

// remarkDatabase tells what is wrong with a database; whether there is something to be done about it.
func (c *Call) remarkDatabase(x *looked) (found bool) {
	if x.err != nil {
		c.Warnf("%v", x.err)
	}
	if x.unsure != nil {
		c.Warnf("%v", x.unsure)
	}
	for _, text := range x.said {
		c.Warnf("%s: %s", x.path, text)
		found = true
	}
	if found {
		c.Warnf("%s does not pass SQLite's check: stop the gateway and keep a copy of the file before anything else; openclaw doctor --fix rebuilds what is derived, a backup brings back the rest", x.path)
	}
	d := x.d
	if d == nil {
		return found
	}
	for _, err := range d.Problems {
		c.Warnf("%v", err)
	}
	if d.Newer {
		c.Warnf("%s has schema %d, newer than oc knows; it was read as far as it is understood", d.Path, d.Schema)
		found = true
	}
	if d.Quarantine != "" {
		c.Warnf("OpenClaw has put %s in quarantine and does not open it: %s", d.Path, d.Quarantine)
		found = true
	}
	for i, name := range d.Lost {
		if i == 3 {
			c.Warnf("%s too; --json has them all", plural(len(d.Lost)-i, "other file is missing", "other files are missing"))
			break
		}
		c.Warnf("%s counts on %s, which is not there; bring it back from a backup", d.Path, name)
		found = true
	}
	if d.Log >= 64<<20 {
		c.Warnf("the write-ahead log of %s has %s: it is not written back; restart the gateway, or stop it and run oc db checkpoint", d.Path, term.Bytes(d.Log))
		found = true
	}
	return found
}

func (x *looked) title() string {
	switch {
	case x.d == nil:
		return filepath.Base(x.path)
	case x.d.Role == "state":
		return "The database that all agents share"
	case !x.d.Sessions:
		return "The database of agent " + or(x.d.Agent, x.agent) + ", without sessions"
	}
	return "The database of agent " + or(x.d.Agent, x.agent)
}

func (c *Call) databaseText(x *looked) {
	o, d := c.Out, x.d
	o.Printf("%s\n", o.Paint(term.Bold, x.title()))
	if d == nil || x.err != nil {
		o.Facts(term.Fact{Label: "  File", Value: x.path}, term.Fact{Label: "  Problem", Value: fmt.Sprint(x.err)}, term.Fact{Label: "  Check", Value: x.check()})
		return
	}
	s := d.Shape
	journalOf := "a rollback journal"
	if s.Ahead {
		journalOf = "a write-ahead log of " + term.Bytes(d.Log)
	}
	o.Facts(
		term.Fact{Label: "  File", Value: d.Path},
		term.Fact{Label: "  Schema", Value: fmt.Sprintf("%d, stamped by %s", d.Schema, or(d.App, "an unknown release"))},
		term.Fact{Label: "  Size", Value: fmt.Sprintf("%s, with %s; last written %s", term.Bytes(d.File), journalOf, term.Time(d.Written.UnixMilli()))},
		term.Fact{Label: "  Pages", Value: fmt.Sprintf("%s of %s, %s free (%s)", term.Count(s.Pages), term.Bytes(s.PageSize), term.Count(s.Free), term.Bytes(s.Free*s.PageSize))},
		term.Fact{Label: "  Holds", Value: holds(d.Weight)},
		term.Fact{Label: "  Quarantine", Value: d.Quarantine, Style: term.Red},
		term.Fact{Label: "  Check", Value: x.check()},
	)
	n := int(c.Int("limit"))
	if len(d.Tables) > 0 {
		o.Printf("\n")
		t := o.Table(term.Column{Head: "Table", Cut: term.End, Min: 16}, term.Column{Head: "Rows", Right: true}, term.Column{Head: "Indexes", Right: true}, term.Column{Head: "Unused", Right: true, Drop: 1}, term.Column{Head: "Of all", Right: true})
		for i := range d.Tables[:min(n, len(d.Tables))] {
			x := &d.Tables[i]
			t.Row(x.Name, term.Bytes(x.Data), bytesOrDash(x.Indexes), bytesOrDash(x.Unused), percent(x.Bytes(), s.Pages*s.PageSize))
		}
		t.End()
	}
	if w := d.Weight; w != nil && len(w.Largest) > 0 {
		o.Printf("\n")
		t := o.Table(term.Column{Head: "Largest sessions", Cut: term.Middle, Min: 24}, term.Column{Head: "Events", Right: true}, term.Column{Head: "Transcript", Right: true}, term.Column{Head: "Runs", Right: true, Drop: 2},
			term.Column{Head: "Row", Right: true}, term.Column{Head: "Archives", Right: true, Drop: 1}, term.Column{Head: "Largest field", Cut: term.End, Min: 12, Drop: 3})
		for i := range w.Largest {
			l := &w.Largest[i]
			field := ""
			if len(l.Fields) > 0 {
				field = fmt.Sprintf("%s %s", l.Fields[0].Name, term.Bytes(l.Fields[0].Bytes))
			}
			t.Row(or(l.Key, "(no session)"), term.Count(l.Events), bytesOrDash(l.Transcript), bytesOrDash(l.Trajectory), bytesOrDash(l.Row), bytesOrDash(l.Archived), field)
		}
		t.End()
		o.Printf("\n")
		t = o.Table(term.Column{Head: "Fields of rows", Cut: term.End, Min: 16}, term.Column{Head: "Rows", Right: true}, term.Column{Head: "Size", Right: true})
		for _, f := range w.Fields[:min(n, len(w.Fields))] {
			t.Row(f.Name, term.Count(int64(f.Count)), term.Bytes(f.Bytes))
		}
		t.End()
	}
}

func percent(part, whole int64) string {
	if whole == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

func holds(w *agentdb.Weight) string {
	if w == nil {
		return ""
	}
	text := plural(w.Sessions, "session", "sessions")
	for _, x := range []struct {
		n         int
		one, many string
	}{
		{w.Archived, "of them archived", "of them archived"},
		{w.Damaged, "of them unreadable", "of them unreadable"},
		{w.Kept, "removed session whose history is kept", "removed sessions whose history is kept"},
		{w.Windows, "transcript", "transcripts"},
		{int(w.Events), "event", "events"},
		{w.Cold, "cold transcript", "cold transcripts"},
		{w.Archives, "archived transcript", "archived transcripts"},
		{w.Waiting, "of these not yet a file", "of these not yet files"},
	} {
		if x.n > 0 {
			text += ", " + plural(x.n, x.one, x.many)
		}
	}
	return text
}

func (x *looked) check() string {
	switch {
	case x.unsure != nil:
		return "unknown: it could not be made"
	case !x.checked:
		return ""
	case len(x.said) > 0:
		return plural(len(x.said), "fault", "faults")
	}
	return "sound"
}

func printDatabases(p *span.Printer, cfg *config.Config, all []looked) {
	p.Object()
	p.Key("stateDir").String(cfg.StateDir)
	p.Key("databases").Array()
	for i := range all {
		p.Object()
		all[i].print(p)
		p.End()
	}
	p.End()
	p.End()
}

func (x *looked) print(p *span.Printer) {
	d := x.d
	p.Key("path").String(x.path)
	problems := []error{}
	if x.err != nil {
		problems = append(problems, x.err)
	}
	if d != nil {
		problems = append(problems, d.Problems...)
	}
	if d != nil && x.err == nil {
		p.Key("role").String(d.Role)
		if agent := or(d.Agent, x.agent); agent != "" {
			p.Key("agentId").String(agent)
		}
		p.Key("schema").Int(int64(d.Schema))
		p.Key("newer").Bool(d.Newer)
		optional(p, "appVersion", d.App)
		optional(p, "quarantine", d.Quarantine)
		p.Key("bytes").Int(d.File)
		p.Key("walBytes").Int(d.Log)
		p.Key("writtenAt").Int(d.Written.UnixMilli())
		p.Key("readAs").String(d.Mode.String())
		p.Key("pageSize").Int(d.Shape.PageSize)
		p.Key("pages").Int(d.Shape.Pages)
		p.Key("freePages").Int(d.Shape.Free)
		p.Key("autoVacuum").String(d.Shape.Vacuum)
		p.Key("writeAheadLog").Bool(d.Shape.Ahead)
		p.Key("tables").Array()
		for i := range d.Tables {
			t := &d.Tables[i]
			p.Object()
			p.Key("name").String(t.Name)
			p.Key("bytes").Int(t.Bytes())
			p.Key("indexBytes").Int(t.Indexes)
			p.Key("unusedBytes").Int(t.Unused)
			p.End()
		}
		p.End()
		if w := d.Weight; w != nil {
			printWeights(p, w)
		}
		p.Key("lostFiles").Array()
		for _, name := range d.Lost {
			p.String(name)
		}
		p.End()
	}
	if x.checked {
		p.Key("check").Object()
		p.Key("sound").Bool(len(x.said) == 0)
		p.Key("said").Array()
		for _, text := range x.said {
			p.String(text)
		}
		p.End()
		p.End()
	}
	if x.unsure != nil {
		problems = append(problems, x.unsure)
	}
	if len(problems) > 0 {
		p.Key("errors").Array()
		for _, err := range problems {
			p.String(err.Error())
		}
		p.End()
	}
}

func printWeights(p *span.Printer, w *agentdb.Weight) {
	p.Key("holds").Object()
	for _, x := range []struct {
		name string
		n    int64
	}{
		{"sessions", int64(w.Sessions)},
		{"archivedInPlace", int64(w.Archived)},
		{"unreadable", int64(w.Damaged)},
		{"keptHistories", int64(w.Kept)},
		{"transcripts", int64(w.Windows)},
		{"events", w.Events},
		{"coldTranscripts", int64(w.Cold)},
		{"archivedTranscripts", int64(w.Archives)},
		{"unpublishedArchives", int64(w.Waiting)},
	} {
		p.Key(x.name).Int(x.n)
	}
	p.End()
	fields := func(all []agentdb.Field) {
		p.Array()
		for _, f := range all {
			p.Object()
			p.Key("name").String(f.Name)
			p.Key("rows").Int(int64(f.Count))
			p.Key("bytes").Int(f.Bytes)
			p.End()
		}
		p.End()
	}
	p.Key("rowFields")
	fields(w.Fields)
	p.Key("largestSessions").Array()
	for i := range w.Largest {
		l := &w.Largest[i]
		p.Object()
		if p.Key("key"); l.Key == "" {
			p.Null()
		} else {
			p.String(l.Key)
		}
		p.Key("bytes").Int(l.Bytes())
		p.Key("events").Int(l.Events)
		p.Key("transcripts").Int(int64(l.Transcripts))
		p.Key("transcriptBytes").Int(l.Transcript)
		p.Key("trajectoryBytes").Int(l.Trajectory)
		p.Key("rowBytes").Int(l.Row)
		p.Key("archivedBytes").Int(l.Archived)
		p.Key("fields")
		fields(l.Fields)
		p.End()
	}
	p.End()
}
