package maintenance

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"oc/maintenance/journal"
	"oc/store"
	"oc/store/jsonfile"
)

// A draft is a plan in the making.
type draft struct {
	p        *Policy
	s        *Snapshot
	at       time.Time
	now      float64 // epoch milliseconds
	active   map[string]bool
	kept     []Rule // by row: what protects it for what it is
	warnOnly bool   // the budget is measured, nothing is swept

	shelved []bool // by row: it is put aside, in a database
	gone    []Rule // by row: the rule that takes it; "" while it stays
	order   []int  // rows in the order of going
	why     []string
	moved   []int // by file: the action that moves or removes it, plus 1
	files   []Action
	mends   map[int]string
	notes   []string // what is to be known of what was asked
	puts    []Action // rows that change for another reason, and new ones
	holds   []held
	added   int // of them new

	protected []Protected
	shown     map[int]bool // rows that are in protected
	guarded   map[int]bool // files that are

	counts  map[Rule]int
	archive bool   // a transcript is archived
	sweep   *sweep // of the budget; nil without one
	shadow  *sweep // the same as OpenClaw's preview measures it
	unlinks unlinked
	names   map[string]bool // of archives to be
	stamp   string          // of archives
}

func newDraft(p *Policy, s *Snapshot, now time.Time) *draft {
	d := &draft{
		p: p, s: s, at: now, now: millis(now), stamp: Stamp(now), active: p.activeKeys(),
		gone: make([]Rule, len(s.Rows)), shelved: make([]bool, len(s.Rows)), kept: make([]Rule, len(s.Rows)), why: make([]string, len(s.Rows)),
		moved: make([]int, len(s.Files)), mends: map[int]string{},
		shown: map[int]bool{}, guarded: map[int]bool{}, counts: map[Rule]int{}, names: map[string]bool{},
	}
	for i := range s.Rows {
		d.kept[i] = conversation(&s.Rows[i].Entry)
	}
	return d
}

// decide goes through the rules in OpenClaw's order (spec/maintenance.md 2.4
// and 2.13).
func (d *draft) decide() {
	if len(d.p.Keys) > 0 {
		d.named()
		d.artifacts()
		return
	}
	d.fixMissing()
	d.dmScope()
	d.cron()
	if d.p.ByHand() {
		d.byHand()
	} else {
		d.modelRuns()
		d.stale()
		d.cap()
	}
	d.artifacts()
	if !d.p.ByHand() {
		d.retention()
		d.budget()
		d.unlinked()
	}
}

// drop takes a row out of the store.
func (d *draft) drop(i int, rule Rule, format string, args ...any) {
	d.dropFor(i, rule, fmt.Sprintf(format, args...))
}

func (d *draft) dropFor(i int, rule Rule, why string) {
	d.gone[i], d.why[i] = rule, why
	d.order = append(d.order, i)
	d.counts[rule]++
	delete(d.mends, i)
}

// stay notes that a row is protected from a rule that asks for it.
func (d *draft) stay(i int, by, asked Rule) {
	if d.shown[i] {
		return
	}
	d.shown[i] = true
	r := &d.s.Rows[i]
	d.protected = append(d.protected, Protected{Key: r.Key, Rule: by, Asked: asked, Reason: d.sentence(by, r), Bytes: d.weight(r)})
}

// weight is the bytes that go with a row: its own and those of its files.
func (d *draft) weight(r *Row) int64 {
	n := int64(len(r.Val))
	for _, i := range r.own {
		n += d.s.Files[i].Size
	}
	for _, i := range r.side {
		n += d.s.Files[i].Size
	}
	return n
}

// left is the number of rows that stay.
func (d *draft) left() int { return len(d.s.Rows) - len(d.order) }

// do changes what happens to a file.
func (d *draft) do(a Action) {
	f := &d.s.Files[a.file]
	a.Target, a.Class, a.Bytes, a.Applies = f.Path, f.Class, f.Size, true
	if at := d.moved[a.file]; at > 0 {
		a.Key = d.files[at-1].Key
		d.files[at-1] = a
		return
	}
	d.files = append(d.files, a)
	d.moved[a.file] = len(d.files)
}

// guard is the rule that protects a file; "" where it may go. Only files that
// no row of this store names are asked about.
func (d *draft) guard(i int) (Rule, string) {
	f := &d.s.Files[i]
	switch {
	case f.Held != "":
		return Locked, "its transcript is locked: " + f.Held
	case f.foreign != "":
		return SharedID, "a row of " + f.foreign + " names it"
	case d.s.Blind != "" && (f.isArtifact() || f.blob):
		return Neighbour, "which files another store in the directory names is unknown: " + d.s.Blind
	}
	return "", ""
}

// leave notes that a file is protected.
func (d *draft) leave(i int, by, asked Rule, reason string) {
	if !d.guarded[i] {
		d.guarded[i] = true
		f := &d.s.Files[i]
		d.protected = append(d.protected, Protected{Target: f.Path, Rule: by, Asked: asked, Reason: reason, Bytes: f.Size, file: i})
	}
}

// stayed is what is protected, without the rows and files that another rule
// took all the same.
func (d *draft) stayed() []Protected {
	return slices.DeleteFunc(slices.Clone(d.protected), func(x Protected) bool {
		if x.Key == "" {
			return d.moved[x.file] > 0
		}
		return d.gone[d.s.byKey[x.Key]] != ""
	})
}

// plan puts the draft in the order of applying.
func (d *draft) plan() *Plan {
	p := &Plan{Agent: d.s.Agent, Store: d.s.Store, Mode: d.p.Mode, Now: d.at, Protected: d.stayed(), Problems: slices.Concat(d.s.Problems, d.notes), holds: d.holds}
	p.Actions = make([]Action, 0, len(d.order)+len(d.mends)+len(d.puts)+len(d.files)+1)
	for _, i := range d.order {
		r := &d.s.Rows[i]
		p.Actions = append(p.Actions, Action{Kind: DropRow, Key: r.Key, Rule: d.gone[i], Reason: d.why[i], Bytes: int64(len(r.Val)), Applies: true, file: -1})
	}
	for i := range d.s.Rows {
		if path, ok := d.mends[i]; ok {
			r := &d.s.Rows[i]
			p.Actions = append(p.Actions, Action{
				Kind: PutRow, Key: r.Key, Rule: Repair, Reason: "it names " + r.File + ", but its own transcript is " + path,
				Bytes: int64(len(r.Val)), Value: mended(r, path), Applies: true, file: -1,
			})
		}
	}
	p.Actions = append(p.Actions, d.puts...)
	if len(p.Actions) > 0 && d.s.Schema == 0 {
		changed := len(d.mends) + len(d.puts) - d.added
		a := Action{Kind: Rewrite, Target: d.s.Store, Class: jsonfile.Store, Rule: RowsChanged, Applies: true, file: -1}
		a.Reason = fmt.Sprintf("of its %s %d %s, %d %s", rows(len(d.s.Rows)), len(d.order), wordFor(len(d.order), "goes", "go"), changed, wordFor(changed, "changes", "change"))
		if d.added > 0 {
			a.Reason += fmt.Sprintf(", %d %s new", d.added, wordFor(d.added, "is", "are"))
		}
		a.Bytes = int64(newSize(d.s, p))
		p.Actions = append(p.Actions, a)
	}
	p.Actions = append(p.Actions, d.files...)
	p.Problems = append(p.Problems, d.otherNames(p.Actions)...)
	p.Before, p.After = d.amounts(p.Actions)
	p.Unmet = d.unmet()
	p.preview = d.summary()
	p.run = p.preview
	p.run.DryRun = false
	return p
}

// otherNames tells of files that are replaced and have a second name, one of a backup perhaps: nothing is written through it, so that it
// keeps what was.
func (d *draft) otherNames(actions []Action) (notes []string) {
	for _, a := range actions {
		info := a.info
		switch {
		case a.Kind == Rewrite:
			info = d.s.Info
		case a.Kind != Replace:
			continue
		}
		if info == nil {
			continue
		}
		if n := journal.StampOf(info).Links; n > 1 {
			notes = append(notes, fmt.Sprintf("%s has %d names: it becomes a file of its own, and the other %s what it is now", a.Target, n, wordFor(int(n)-1, "keeps", "keep")))
		}
	}
	return notes
}

// amounts adds up the files of the directory by class, before and after.
func (d *draft) amounts(actions []Action) (before, after map[jsonfile.Class]store.Amount) {
	before, after = map[jsonfile.Class]store.Amount{}, map[jsonfile.Class]store.Amount{}
	add := func(m map[jsonfile.Class]store.Amount, c jsonfile.Class, files int, bytes int64) {
		a := m[c]
		m[c] = store.Amount{Files: a.Files + files, Bytes: a.Bytes + bytes}
	}
	for i := range d.s.Files {
		if f := &d.s.Files[i]; f.direct || f.blob {
			add(before, f.Class, 1, f.Size)
			add(after, f.Class, 1, f.Size)
		}
	}
	for _, a := range actions {
		switch a.Kind {
		case Rewrite:
			add(after, a.Class, 0, a.Bytes-int64(len(d.s.Text)))
		case Remove, Move:
			if a.file < 0 {
				continue
			}
			if f := &d.s.Files[a.file]; !f.direct && !f.blob {
				continue
			}
			add(after, a.Class, -1, -a.Bytes)
			if a.Kind == Move {
				add(after, jsonfile.NameOf(filepath.Base(a.To), filepath.Base(d.s.Store)).Class, 1, a.Bytes)
			}
		}
	}
	return before, after
}
