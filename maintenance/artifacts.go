package maintenance

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"oc/store/jsonfile"
	"oc/store/row"
)

// uses counts, for each file, the rows that stay and name it.
func (d *draft) uses() []int {
	n := make([]int, len(d.s.Files))
	for i := range d.s.Rows {
		if d.gone[i] == "" {
			for _, f := range d.row(i).names {
				n[f]++
			}
		}
	}
	return n
}

// row is a row as it will be.
func (d *draft) row(i int) *Row {
	r := &d.s.Rows[i]
	if _, ok := d.mends[i]; ok && r.mended != nil {
		return r.mended
	}
	return r
}

// sessions counts the rows that stay, by their session id.
func (d *draft) sessions() map[string]int {
	n := make(map[string]int, len(d.s.Rows))
	for i := range d.s.Rows {
		if id := d.s.Rows[i].ID; id != "" && d.gone[i] == "" {
			n[id]++
		}
	}
	return n
}

// artifacts archives the transcripts of the rows that go and removes their
// trajectories, except where another row has the same session or file
// (spec/maintenance.md 2.7, 2.8). Rows without a transcript leave nothing, and
// a retired direct chat leaves its trajectory, without a session id its
// transcript too: until they are unlinked and old.
func (d *draft) artifacts() {
	uses, ids := d.uses(), d.sessions()
	// Of rows with one session the last that names a file speaks for it; what
	// the others name stays until it is unlinked and old.
	speaks := make(map[string]int, len(d.order))
	for _, at := range d.order {
		r := &d.s.Rows[at]
		if _, ok := speaks[r.ID]; (!ok || r.Raw(row.SessionFile) != nil) && d.gone[at] != FixMissing && (d.gone[at] != DMScope || r.ID != "") {
			speaks[r.ID] = at
		}
	}
	d.files = slices.Grow(d.files, len(d.order))
	if len(d.names) == 0 {
		d.names = make(map[string]bool, len(d.order))
	}
	for _, at := range d.order {
		r, rule := &d.s.Rows[at], d.gone[at]
		if rule == FixMissing || rule == DMScope && r.ID == "" || speaks[r.ID] != at || r.ID != "" && ids[r.ID] > 0 {
			continue
		}
		for _, i := range r.own {
			if d.moved[i] == 0 && d.free(i, uses, rule) {
				d.toArchive(i, "deleted", r.Key, rule, "its row goes")
				d.archive = true
			}
		}
		for _, i := range r.names {
			if f := &d.s.Files[i]; f.Link && uses[i] == 0 {
				d.leave(i, Linked, rule, "it is a link: neither it nor what it leads to is touched")
			}
		}
		if rule == DMScope {
			continue
		}
		remove := func(i int) {
			if i >= 0 && d.moved[i] == 0 && d.free(i, uses, rule) {
				d.do(Action{Kind: Remove, Key: r.Key, Rule: rule, Reason: "the trajectory of a session whose row goes", file: i})
			}
		}
		for _, i := range r.side {
			remove(i)
		}
		remove(r.runtime)
	}
}

// free tells whether a file of a row that goes is nobody else's.
func (d *draft) free(i int, uses []int, asked Rule) bool {
	if uses[i] > 0 {
		d.leave(i, SharedID, asked, "another row of the store names it")
		return false
	}
	if by, why := d.guard(i); by != "" && by != Neighbour {
		d.leave(i, by, asked, why)
		return false
	}
	return true
}

// toArchive renames a transcript as OpenClaw does, as "deleted" or "reset"
// (spec/maintenance.md 2.7).
// Where that name is taken the next millisecond is.
func (d *draft) toArchive(i int, as, key string, rule Rule, reason string) {
	f := &d.s.Files[i]
	tail := "." + as + "." + d.stamp
	to := f.Path + tail
	for t := d.at; d.taken(to); to = f.Path + tail {
		t = t.Add(time.Millisecond)
		tail = "." + as + "." + Stamp(t)
	}
	d.names[to] = true
	d.do(Action{Kind: Move, Key: key, To: to, Rule: rule, Reason: reason, file: i})
}

// taken tells whether there is a file of that name, or will be.
func (d *draft) taken(path string) bool {
	if d.names[path] {
		return true
	}
	base, ok := d.s.local(path)
	_, there := d.s.names[base]
	return ok && there
}

// Stamp is a time as it stands in the names of archives: UTC with
// milliseconds, dashes for colons.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15-04-05.000Z") }

// retention removes archives that are older than they are kept, by the time in
// their names (spec/maintenance.md 2.9).
func (d *draft) retention() {
	if d.p.keepDeleted && !d.archive {
		return
	}
	for i := range d.s.Files {
		f := &d.s.Files[i]
		if !f.direct || d.moved[i] > 0 || f.Class != jsonfile.Archive || f.Zstd || f.At.IsZero() || !strings.HasSuffix(f.Base, "Z") {
			continue
		}
		limit := Never
		switch f.Reason {
		case "deleted":
			limit = d.p.PruneAfter
		case "reset":
			limit = d.p.ResetRetention
		}
		if age := d.now - millis(f.At); age > limit {
			d.do(Action{Kind: Remove, Rule: Retention, Reason: fmt.Sprintf("%s %s ago, kept for %s", verb(f.Reason), ago(age), ago(limit)), file: i})
		}
	}
}

func verb(reason string) string {
	if reason == "reset" {
		return "archived by a reset"
	}
	return "archived on deletion"
}

// isArtifact tells whether OpenClaw takes a file for one that a row should
// name: a transcript, a checkpoint, a trajectory or the pointer to one.
func (f *File) isArtifact() bool {
	return f.direct && (f.Class == jsonfile.Live || f.Class == jsonfile.Checkpoint || f.Class == jsonfile.Sidecar)
}

// isTemp tells whether a file was left behind by a write: of the store, or of
// a skill prompt.
func (d *draft) isTemp(f *File) bool {
	if f.blob {
		return !strings.HasSuffix(f.Base, ".txt")
	}
	return f.direct && isStoreTemp(f.Base, filepath.Base(d.s.Store))
}

// unlinked counts what OpenClaw's dry run reports.
type unlinked struct {
	scanned, removed int
	freed            int64
}

// unlinked removes files that no row names and that have not been written for
// as long as rows are kept: trajectories, checkpoints, skill prompts, what
// failed writes left, and transcripts without a message. Other transcripts are
// history: they are archived (spec/maintenance.md 2.10).
func (d *draft) unlinked() {
	uses := d.uses()
	hidden := d.hidden()
	var old []int
	for i := range d.s.Files {
		f := &d.s.Files[i]
		if !f.direct && !f.blob {
			continue
		}
		d.unlinks.scanned++
		if d.isUnlinkedAndOld(i, uses) {
			old = append(old, i)
		}
	}
	sort.SliceStable(old, func(a, b int) bool { return d.s.Files[old[a]].written() < d.s.Files[old[b]].written() })
	for _, i := range old {
		f := &d.s.Files[i]
		rule, reason := Unlinked, fmt.Sprintf("no row names it, and it was last written %s ago", ago(d.now-f.written()))
		if d.isTemp(f) {
			rule, reason = OldTemp, fmt.Sprintf("a write that did not end left it %s ago", ago(d.now-f.written()))
		}
		if by, why := d.guard(i); by != "" && (rule == Unlinked || by == Locked) {
			d.leave(i, by, rule, why)
			continue
		}
		history := f.Class == jsonfile.Live && f.Content != Empty
		if history && d.p.KeepUnlinked {
			d.leave(i, KeptUnlinked, rule, keptUnlinked)
			continue
		}
		if f.Size > 0 && !hidden[i] {
			d.unlinks.removed++
			d.unlinks.freed += f.Size
		}
		switch {
		case d.moved[i] > 0:
		case history:
			d.toArchive(i, "deleted", "", rule, reason+"; it may hold messages")
		default:
			d.do(Action{Kind: Remove, Rule: rule, Reason: reason, file: i})
		}
	}
}

const keptUnlinked = "--keep-unlinked leaves unlinked history where it is"

// isUnlinkedAndOld tells whether a file is one of those that the rule is for.
func (d *draft) isUnlinkedAndOld(i int, uses []int) bool {
	f := &d.s.Files[i]
	age := d.now - f.written()
	switch {
	case d.isTemp(f):
		return age >= tempAfter && !math.IsInf(d.p.PruneAfter, 1)
	case uses[i] > 0:
		return false
	case f.blob:
		return age >= max(d.p.PruneAfter, tempAfter)
	}
	return f.isArtifact() && age >= d.p.PruneAfter
}

// hidden are the files that OpenClaw's dry run does not count as unlinked,
// because it expects other rules to have removed them (spec/maintenance.md
// 2.13).
func (d *draft) hidden() []bool {
	out := make([]bool, len(d.s.Files))
	for _, at := range d.order {
		switch d.gone[at] {
		case FixMissing, Budget:
			continue
		}
		for _, i := range d.s.Rows[at].traces {
			out[i] = true
		}
	}
	if d.shadow != nil {
		for _, i := range d.shadow.files {
			out[i] = true
		}
	}
	return out
}
