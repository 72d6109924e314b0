package maintenance

import (
	"io"
	"io/fs"
	"time"

	"oc/store"
	"oc/store/agentdb"
	"oc/store/jsonfile"
	"oc/store/row"
)

// A Kind is what an action does.
type Kind string

// The kinds of action.
const (
	DropRow Kind = "drop-row" // take the row Key out of the store
	PutRow  Kind = "put-row"  // write Value as the row Key of the store
	Rewrite Kind = "rewrite"  // swap the store Target for what NewStore gives
	Move    Kind = "move"     // rename the file Target to To
	Remove  Kind = "remove"   // unlink the file Target
	Append  Kind = "append"   // add to the end of the transcript of Key, in a database
	Trim    Kind = "trim"     // take rows out of the transcript of Key, in a database

	RemoveDir Kind = "remove-dir" // remove the directory Target, empty by then
	Replace   Kind = "replace"    // give the file Target what Content writes; mode and owner stay
	Create    Kind = "create"     // make the file Target, which is not there, of what Content writes, for its owner alone
	Chmod     Kind = "chmod"      // give the file or directory Target the mode Mode
	SQL       Kind = "sql"        // take what the database Target, which all agents share, says of what is gone out of it
	Remake    Kind = "remake"     // take out, or have made anew, what a database has derived of the conversation Key
)

// An Action is one change.
type Action struct {
	Kind    Kind
	Key     string         // of the row, also where a file goes because its row does; "" for other files
	Target  string         // path of the file; "" where a row changes
	To      string         // where Target goes
	Place   bool           // it is done with the store or before it, because the new store says so: all of it is, or nothing
	Class   jsonfile.Class // of Target
	Rule    Rule
	Reason  string // a sentence for people
	Bytes   int64  // of the row in the store, of the file, of the new store
	Value   []byte // the new row, raw
	Applies bool   // false for what warn mode only shows

	// Content writes what a Replace puts in place of the file, or a Create makes
	// it of; it may be called more than once and streams. Mode is of a Chmod.
	Content func(io.Writer) error
	Mode    fs.FileMode

	write  func(*agentdb.Writer) error // of a database: what is done in its transaction
	shelve []row.Change                // of a session in a database that is put aside: what its row says then

	info fs.FileInfo // what Target was when it was looked at, where it is no file of the snapshot
	file int         // index in Snapshot.Files; -1
}

// Protected is a row or a file that stays although a rule asks for it to go.
type Protected struct {
	Key    string // of the row; "" for a file
	Target string // path of the file; "" for a row
	Rule   Rule   // that protects it
	Asked  Rule   // that asks for it to go
	Reason string
	Bytes  int64

	file int
}

// Unmet is a limit that cannot be met because of what is protected.
type Unmet struct {
	Rule      Rule // Cap or Budget
	Limit     int64
	Left      int64 // rows or bytes after the plan
	Protected int   // rows that stay by protection
	Bytes     int64 // of their transcripts and rows
	Reason    string
	ByRule    map[Rule]int
}

// A Plan is what should change in one store. It is a value: applying it is
// somebody else's work.
type Plan struct {
	Agent, Store string
	Mode         Mode
	Now          time.Time

	// Actions in the order of applying: rows in the order of the rules, the
	// store, then files.
	Actions   []Action
	Protected []Protected // rows in the order of the rules, then files
	Unmet     []Unmet
	Problems  []string // of the snapshot

	// Files of the directory by class, now and when what applies is done.
	Before, After map[jsonfile.Class]store.Amount

	preview, run Summary
	holds        []held
}

// held is a transcript that the plan is made from and leaves as it is: nobody may write it meanwhile.
type held struct {
	path string
	info fs.FileInfo
}

// Empty tells that applying the plan would change nothing.
func (p *Plan) Empty() bool {
	for i := range p.Actions {
		if p.Actions[i].Applies {
			return false
		}
	}
	return true
}

// changes is how many rows applying it drops or writes.
func (p *Plan) changes() (n int) {
	for i := range p.Actions {
		if a := &p.Actions[i]; a.Applies && (a.Kind == DropRow || a.Kind == PutRow) {
			n++
		}
	}
	return n
}

// Summary is OpenClaw's document for the plan: of a dry run, or of a run that
// applied all of it (spec/maintenance.md 3.1).
func (p *Plan) Summary(dryRun bool) Summary {
	if dryRun {
		return p.preview
	}
	return p.run
}

// File is the file of the snapshot that an action is about, as it was when the
// plan was made; nil for rows and for the store.
func (a *Action) File(s *Snapshot) *File {
	if a.file < 0 {
		return nil
	}
	return &s.Files[a.file]
}

// Make works out the plan. It is pure: the same policy, snapshot and time give
// the same plan. That of the time at which the snapshot was taken costs least.
//
// Where there is no store the plan is empty. In warn mode the plan has two parts: what the user asked for by name, which
// applies, and what enforcing would do besides, which does not.
func Make(p *Policy, s *Snapshot, now time.Time) *Plan {
	if s.Absent {
		return &Plan{Agent: s.Agent, Store: s.Store, Mode: p.Mode, Now: now, Problems: s.Problems, preview: none(p, s, true), run: none(p, s, false)}
	}
	full := s.first
	if s.first = nil; full == nil || full.p != p || !full.at.Equal(now) {
		full = newDraft(p, s, now)
		full.decide()
	}
	plan := full.plan()
	if p.Mode != Warn {
		return plan
	}
	part := newDraft(p.asked(), s, now)
	part.warnOnly = true
	part.decide()
	asked := part.plan()
	plan.merge(asked)
	plan.run = asked.run
	plan.run.warn(p, part)
	return plan
}

// merge makes the actions of the part the ones that apply.
func (p *Plan) merge(part *Plan) {
	type change struct {
		kind Kind
		key  string
	}
	rows, files := map[change]bool{}, map[int]bool{}
	for _, a := range part.Actions {
		if a.file >= 0 {
			files[a.file] = true
		} else {
			rows[change{a.Kind, a.Key}] = true
		}
	}
	all := part.Actions
	for _, a := range p.Actions {
		if a.Kind == Rewrite || a.file >= 0 && files[a.file] || a.file < 0 && rows[change{a.Kind, a.Key}] {
			continue
		}
		a.Applies = false
		all = append(all, a)
	}
	p.Actions, p.After = all, part.After
}
