package maintenance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"oc/config"
	"oc/store"
)

// A Release is what a release of OpenClaw can open (spec/sqlite-store.md 1.1).
type Release struct {
	Name   string
	Files  bool // it keeps sessions in files
	Agent  int  // the newest schema of an agent's database that it opens
	Shared int  // and of the shared one
}

// Releases are those whose schemas are known, the newest first.
var Releases = []Release{
	{"2026.9.6", false, 23, 18},
	{"2026.8.2", false, 19, 15},
	{"2026.7.35", true, 1, 1},
	{"2026.7.2-beta.5", false, 16, 6},
	{"2026.7.1", true, 1, 1},
	{"2026.6.11", true, 1, 1},
}

// A Downgrade is what an older release would see of a state, and the way there.
type Downgrade struct {
	Release Release
	Shared  int    // schema of the shared database; 0: there is none
	Path    string // of it
	Agents  []Older
	Steps   []string
}

// An Older is what an older release sees of an agent.
type Older struct {
	Agent    string
	Database string // "" for none
	Schema   int
	Rows     int // in the database; -1 unknown
	Files    int // rows of the index that it would read
	Sees     string
}

// Lost says that the release would not see what there is.
func (o *Older) Lost(r Release) bool {
	return r.Files && o.Rows != 0 && o.Database != "" || o.Schema > r.Agent
}

// PlanDowngrade says what a release would see, and what brings the sessions to it. It changes nothing.
func PlanDowngrade(ctx context.Context, c *config.Config, targets []store.Target, r Release) (*Downgrade, error) {
	d := &Downgrade{Release: r, Path: store.StateDatabase(c.StateDir)}
	switch shared, err := store.Stamps(ctx, d.Path); {
	case err == nil:
		d.Shared = shared.Schema
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	moved := false
	for _, t := range targets {
		s, err := store.Open(ctx, c, store.Target{Agent: t.Agent, Index: t.Index, Databases: t.Databases})
		o := Older{Agent: t.Agent}
		switch s.Era {
		case store.SQLiteEra:
			o.Database, o.Schema, o.Rows = s.Path, s.Schema.UserVersion, len(s.Rows)
			if err != nil {
				o.Rows = -1
			}
			if s.Other != nil {
				o.Files = s.Other.Rows
			}
		case store.FileEra:
			o.Files = len(s.Rows)
			if err != nil {
				o.Files = -1
			}
		}
		o.Sees = d.sees(&o)
		moved = moved || o.Lost(r)
		d.Agents = append(d.Agents, o)
	}
	if moved || d.Shared > r.Shared {
		d.steps(c)
	}
	return d, nil
}

func (d *Downgrade) sees(o *Older) string {
	r := d.Release
	blocked := d.Shared > r.Shared
	switch {
	case r.Files && o.Files > 0 && blocked:
		return fmt.Sprintf("the %d rows of its index, but every command ends with an error: the shared database has schema %d, and the release opens %d at most", o.Files, d.Shared, r.Shared)
	case r.Files && o.Files > 0 && o.Rows != 0:
		return fmt.Sprintf("the %d rows of its index, as they were left; nothing of the database", o.Files)
	case r.Files && o.Files > 0:
		return fmt.Sprintf("the %d rows of its index", o.Files)
	case r.Files && o.Database != "":
		return "no session at all, and no word of it: they are in the database"
	case r.Files:
		return "no session; there is none"
	case blocked:
		return fmt.Sprintf("nothing: it refuses the shared database, of schema %d, and opens %d at most", d.Shared, r.Shared)
	case o.Schema > r.Agent:
		return fmt.Sprintf("nothing: it refuses the database, of schema %d, and opens %d at most", o.Schema, r.Agent)
	case o.Database == "" && o.Files > 0:
		return fmt.Sprintf("no session until it has imported the %d rows of the index", o.Files)
	case o.Database != "" && o.Schema < r.Agent:
		return fmt.Sprintf("the %d sessions, once it has brought the database up from schema %d", o.Rows, o.Schema)
	case o.Database != "":
		return fmt.Sprintf("the %d sessions of the database", o.Rows)
	}
	return "no session; there is none"
}

func (d *Downgrade) steps(c *config.Config) {
	say := func(format string, args ...any) { d.Steps = append(d.Steps, fmt.Sprintf(format, args...)) }
	r := d.Release
	say("stop the gateway, and copy the whole of %s: no release goes back by itself, and no stamp may be lowered by hand", c.StateDir)
	if !r.Files {
		say("put back the copy of %s that was made before the update: %s opens it, but not what a newer release has made of it", c.StateDir, r.Name)
		say("without such a copy take the files' way: oc db export, then the import of %s (openclaw doctor --session-sqlite import) in an empty state", r.Name)
		return
	}
	for _, o := range d.Agents {
		if o.Database != "" && o.Rows != 0 {
			say("oc db export %s --format files --to /somewhere/%s", o.Agent, o.Agent)
		}
	}
	if d.Shared > r.Shared {
		say("move %s away, or put back its copy from before the update: without one pairings, approvals, cron jobs and run history begin anew", filepath.Dir(d.Path))
	}
	for _, o := range d.Agents {
		if o.Database != "" && o.Schema > r.Agent {
			say("move %s away, or put back its copy from before the update: without one credentials of agent %s have to be given again", filepath.Dir(o.Database), o.Agent)
		}
	}
	for _, o := range d.Agents {
		if o.Database != "" && o.Rows != 0 {
			say("move /somewhere/%s to %s; what stands there goes aside first", o.Agent, filepath.Dir(c.StorePath(o.Agent)))
		}
	}
	say("install openclaw@%s, and look: oc agents list and openclaw sessions show the same", r.Name)
	say("a gateway of a newer release that starts on this state imports the files again: keep it from starting by itself")
}
