package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"oc/commands/term"
	"oc/config"
	"oc/gateway"
	"oc/maintenance"
	"oc/maintenance/journal"
	"oc/store"
	"oc/store/span"
	"oc/store/sqlfile"
)

// upkeep is one of the two commands that keep databases in shape.
type upkeep struct {
	past  string // "written back", as an answer says it
	would string // of a dry run
	do    func(w *maintenance.Worker, ctx context.Context, path string) (*maintenance.Upkeep, error)
	needs func(path string) ([]maintenance.Room, error)
}

func dbCheckpoint() *Command {
	x := upkeep{past: "written back", would: "would be written back", do: (*maintenance.Worker).Checkpoint}
	return &Command{
		Name:  "checkpoint",
		Short: "write the log of a database back into it, while no gateway runs",
		Long: "A database's write-ahead log grows while readers or a busy gateway keep it from being written back; above 64 MB starts become slow. This has SQLite write it back and empty " +
			"it, of the database of an agent and of the one that all agents share. Nothing of what they hold changes: they are checked before and afterwards.\n\n" +
			"A gateway that lives does this itself; while one does, or may start, nothing is done.",
		Flags:    upkeepFlags,
		Examples: []Example{{"oc db checkpoint --dry-run", "how large the logs are"}, {"oc db checkpoint --all-agents", "of all databases"}},
		Exits:    []int{ExitBusy, ExitRefused},
		Run:      x.run,
	}
}

func dbVacuum() *Command {
	x := upkeep{past: "written anew", would: "would be written anew", do: (*maintenance.Worker).Vacuum, needs: maintenance.RoomFor}
	return &Command{
		Name:  "vacuum",
		Short: "give the free pages of a database back to the disk, while no gateway runs",
		Long: "OpenClaw gives a few free pages back at a time and never all of them. This has SQLite write the database of an agent, and the one that all agents share, anew without them, " +
			"each in one transaction, and says what was freed. Each is checked before and afterwards, and has as many rows in every table as before. What room it takes meanwhile is said first.\n\n" +
			"While a gateway lives nothing is done.",
		Flags:    upkeepFlags,
		Examples: []Example{{"oc db vacuum --dry-run", "what would be freed, and what room it takes"}, {"oc db vacuum --agent work", "one agent's, and the shared one"}},
		Exits:    []int{ExitBusy, ExitRefused},
		Run:      x.run,
	}
}

var upkeepFlags = []Flag{agentFlag, allAgentsFlag, storeFlag, dryFlag}

// kempt is one database and what upkeep did to it.
type kempt struct {
	path string
	d    *store.Database // of a dry run
	did  *maintenance.Upkeep
	room []maintenance.Room
	err  error
}

func (x upkeep) run(ctx context.Context, c *Call) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	if err := c.asWritten(cfg); err != nil {
		return err
	}
	targets, err := c.targets(cfg, c.Bool("all-agents"))
	if err != nil {
		return err
	}
	var all []kempt
	for _, t := range targets {
		for _, path := range store.Databases(t) {
			all = append(all, kempt{path: path})
		}
		if len(store.Databases(t)) == 0 {
			c.noDatabase(t)
		}
	}
	if shared := store.StateDatabase(cfg.StateDir); !c.Given("store") {
		if _, _, err := sqlfile.Sizes(shared); !errors.Is(err, fs.ErrNotExist) {
			all = append(all, kempt{path: shared})
		}
	}
	if len(all) == 0 {
		return Failf("there is no database here: %s; nothing was changed", targets[0].Databases[0])
	}
	dry := c.Bool("dry-run")
	hold := func() (func() error, error) { return func() error { return nil }, nil }
	if !dry {
		if hold, err = c.apart(ctx, cfg, all[0].path, "this"); err != nil {
			return err
		}
	}
	w := &maintenance.Worker{Config: cfg, Now: c.Now, Wait: patience, Hold: hold}
	for i := range all {
		k := &all[i]
		if x.needs != nil {
			if k.room, k.err = x.needs(k.path); k.err == nil {
				c.Notef("%s: this takes %s", k.path, rooms(k.room))
			}
		}
		switch {
		case k.err != nil:
		case dry:
			k.d, k.err = store.Examine(ctx, cfg, k.path, 0)
		default:
			k.did, k.err = x.do(w, ctx, k.path)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return c.reportUpkeep(x, all, dry)
}

// apart refuses while a gateway owns the state of a database, or may, and gives what keeps one from starting.
func (c *Call) apart(ctx context.Context, cfg *config.Config, path, what string) (hold func() (func() error, error), err error) {
	conn, err := c.way(ctx, cfg, path, true)
	if err != nil {
		return nil, err
	}
	if conn != nil {
		_ = conn.Close()
		return nil, &Error{Exit: ExitRefused, Code: "owned", Err: fmt.Errorf("nothing was changed: the gateway of this state lives, and %s cannot be done through it: stop it first", what)}
	}
	w := c.where(cfg)
	if !sameDir(stateOf(path), cfg.StateDir) && c.chose("store") {
		w.StateDir, w.StateDB = stateOf(path), ""
	}
	return c.hold(ctx, w), nil
}

func rooms(all []maintenance.Room) string {
	var said []string
	for _, r := range all {
		text := fmt.Sprintf("%s in %s", term.Bytes(r.Need), r.Dir)
		if r.Free >= 0 {
			text += ", where " + term.Bytes(r.Free) + " are free"
		}
		said = append(said, text)
	}
	return strings.Join(said, ", and ")
}

// upkeepError gives what was not done its exit status.
func upkeepError(err error) error {
	var unsound *maintenance.Unsound
	switch {
	case errors.Is(err, gateway.ErrOwned):
		return Busyf("%w", err)
	case errors.Is(err, sqlfile.ErrBusy):
		return Busyf("%w; nothing that it holds was changed", heldBy(err))
	case errors.As(err, &unsound):
		return &Error{Exit: ExitRefused, Code: "damaged", Err: fmt.Errorf("%w; nothing was changed", err)}
	case errors.Is(err, journal.ErrRefused):
		return Refusef("%w; nothing was changed", err)
	case errors.Is(err, sqlfile.ErrCorrupt), errors.Is(err, sqlfile.ErrNotDatabase):
		return &Error{Exit: ExitRefused, Code: "damaged", Err: fmt.Errorf("%w; nothing was changed", err)}
	}
	return err
}

func (c *Call) reportUpkeep(x upkeep, all []kempt, dry bool) error {
	exit := ExitDone
	for i := range all {
		if k := &all[i]; k.err != nil {
			k.err = upkeepError(k.err)
			if len(all) == 1 {
				return k.err
			}
			status, _ := classify(k.err)
			exit = max(exit, status)
		}
	}
	if c.JSON() {
		err := c.Document(func(p *span.Printer) error { printUpkeep(p, all, dry); return nil })
		if err != nil {
			return err
		}
	} else {
		for i := range all {
			k := &all[i]
			name := filepath.Base(k.path)
			switch {
			case k.err != nil:
			case dry:
				c.Out.Printf("%s %s: %s, a log of %s, %s free in it.\n", name, x.would, term.Bytes(k.d.File), term.Bytes(k.d.Log), term.Bytes(k.d.Shape.Free*k.d.Shape.PageSize))
			default:
				u := k.did
				c.Out.Printf("%s %s: %s and a log of %s before, %s and %s now; %s freed. %s, sound.\n", name, x.past, term.Bytes(u.FileBefore), term.Bytes(u.LogBefore), term.Bytes(u.File), term.Bytes(u.Log),
					term.Bytes(max(0, u.Freed())), plural(int(u.Rows), "row as before", "rows as before"))
			}
		}
		if dry {
			c.Out.Printf("Dry run: nothing was changed.\n")
		}
	}
	for i := range all {
		if all[i].err != nil {
			c.Warnf("%v", all[i].err)
		}
	}
	if exit != ExitDone {
		return Status(exit)
	}
	return nil
}

func printUpkeep(p *span.Printer, all []kempt, dry bool) {
	p.Object()
	p.Key("dryRun").Bool(dry)
	p.Key("databases").Array()
	for i := range all {
		k := &all[i]
		p.Object()
		p.Key("path").String(k.path)
		switch {
		case k.err != nil:
			p.Key("error").String(k.err.Error())
		case dry:
			p.Key("bytes").Int(k.d.File)
			p.Key("walBytes").Int(k.d.Log)
			p.Key("freeBytes").Int(k.d.Shape.Free * k.d.Shape.PageSize)
		default:
			u := k.did
			p.Key("bytesBefore").Int(u.FileBefore)
			p.Key("walBytesBefore").Int(u.LogBefore)
			p.Key("bytes").Int(u.File)
			p.Key("walBytes").Int(u.Log)
			p.Key("freedBytes").Int(u.Freed())
			p.Key("rows").Int(u.Rows)
			p.Key("sound").Bool(true)
		}
		if len(k.room) > 0 {
			needs(p, k.room)
		}
		p.End()
	}
	p.End()
	p.End()
}

// needs prints which directories a change needs how much room in.
func needs(p *span.Printer, room []maintenance.Room) {
	p.Key("needs").Array()
	for _, r := range room {
		p.Object()
		p.Key("directory").String(r.Dir)
		p.Key("bytes").Int(r.Need)
		if p.Key("free"); r.Free < 0 {
			p.Null()
		} else {
			p.Int(r.Free)
		}
		p.End()
	}
	p.End()
}
