package maintenance

import (
	"fmt"
	"path/filepath"
	"slices"
	"sort"

	"oc/store/jsonfile"
	"oc/store/span"
)

// A sweep brings the directory below the budget: it says what goes, and
// changes nothing (spec/maintenance.md 2.11).
type sweep struct {
	d      *draft
	gone   func(file int) bool // no longer in the directory when the sweep begins
	total  int64
	before int64
	store  int64 // bytes of the store as OpenClaw would write it
	over   bool

	uses    []int
	ids     map[string]int
	prompts map[string]int // rows by the prompt that they would keep in a new file
	files   []int          // in the order of going
	taken   map[int]bool
	rows    []int
	owner   map[int]int // the row that a file goes with
	freed   int64
	full    int // files with bytes in them
}

// budget sweeps the directory if it is too large. OpenClaw's preview measures
// before the rules above have freed anything, its run afterwards; actions are
// those of the run, and both are known.
func (d *draft) budget() {
	if d.p.MaxDiskBytes == 0 {
		return
	}
	d.shadow = d.newSweep(func(int) bool { return false })
	d.sweep = d.newSweep(func(i int) bool { return d.moved[i] > 0 && d.files[d.moved[i]-1].Kind == Remove })
	if d.warnOnly {
		return
	}
	d.shadow.run(false)
	d.sweep.run(true)
	for _, i := range d.sweep.files {
		f := &d.s.Files[i]
		a := Action{Kind: Remove, Rule: Budget, Reason: fmt.Sprintf("the sessions take %d bytes, the budget is %d", d.sweep.before, d.p.MaxDiskBytes), file: i}
		if at, ok := d.sweep.owner[i]; ok {
			a.Key = d.s.Rows[at].Key
		} else if f.Class == jsonfile.Live && d.moved[i] == 0 {
			a.Reason += "; no row names it"
		}
		d.do(a)
	}
	for _, i := range d.sweep.rows {
		d.drop(i, Budget, "the sessions take %d bytes, the budget is %d, and no other row was used longer ago", d.sweep.before, d.p.MaxDiskBytes)
	}
}

func (d *draft) newSweep(gone func(int) bool) *sweep {
	w := &sweep{d: d, gone: gone, uses: d.uses(), ids: d.sessions(), taken: map[int]bool{}, owner: map[int]int{}, prompts: map[string]int{}, store: 2}
	for i := range d.s.Rows {
		if d.gone[i] == "" {
			w.store += d.row(i).line
			w.count(d.row(i).prompt, 1)
		}
	}
	base := filepath.Base(d.s.Store)
	for i := range d.s.Files {
		f := &d.s.Files[i]
		if (f.direct && f.Base != base || f.blob) && !gone(i) {
			w.total += f.Size
		}
	}
	w.total += w.store
	w.before = w.total
	w.over = w.total > d.p.MaxDiskBytes
	return w
}

// run takes what has to go, in OpenClaw's order. With notes, what is protected
// is noted in the draft.
func (w *sweep) run(notes bool) {
	if !w.over {
		return
	}
	d := w.d
	var prompts, others, rows []int
	for i := range d.s.Files {
		f := &d.s.Files[i]
		age := d.now - f.written()
		switch {
		case w.gone(i):
		case f.blob:
			if age >= tempAfter && (d.isTemp(f) || w.uses[i] == 0) {
				prompts = append(prompts, i)
			}
		case d.isTemp(f):
			if age >= tempAfter {
				others = append(others, i)
			}
		case f.direct && f.Class == jsonfile.Archive && !f.Zstd, f.isArtifact() && w.uses[i] == 0:
			others = append(others, i)
		}
	}
	w.takeAll(prompts, notes)
	w.takeAll(others, notes)
	for i := range d.s.Rows {
		if d.gone[i] == "" {
			rows = append(rows, i)
		}
	}
	sort.SliceStable(rows, func(a, b int) bool { return d.s.Rows[rows[a]].Updated < d.s.Rows[rows[b]].Updated })
	for _, i := range rows {
		if w.enough() {
			return
		}
		by := d.shields(i)
		if by == "" && slices.ContainsFunc(d.p.ActiveKeys, func(k string) bool { return lower(k) == lower(d.s.Rows[i].Key) }) {
			by = ActiveKey
		}
		if by == "" {
			w.evict(i)
		} else if notes {
			d.stay(i, by, Budget)
		}
	}
	if notes {
		// OpenClaw's next run would take what these rows alone named.
		w.takeAll(w.left(), notes)
	}
}

// takeAll takes files, the oldest first, until it is enough.
func (w *sweep) takeAll(files []int, notes bool) {
	d := w.d
	sort.SliceStable(files, func(a, b int) bool { return d.s.Files[files[a]].written() < d.s.Files[files[b]].written() })
	for _, i := range files {
		if w.enough() {
			return
		}
		f := &d.s.Files[i]
		by, why := d.guard(i)
		if by == "" && d.p.KeepUnlinked && f.Class == jsonfile.Live && d.moved[i] == 0 && f.Content != Empty {
			by, why = KeptUnlinked, keptUnlinked
		}
		if by == "" {
			w.take(i)
		} else if notes {
			d.leave(i, by, Budget, why)
		}
	}
}

// left are the files that no row names any more and that are still there.
func (w *sweep) left() (out []int) {
	for i := range w.d.s.Files {
		f := &w.d.s.Files[i]
		old := f.isArtifact() || f.blob && !w.d.isTemp(f) && w.d.now-f.written() >= tempAfter
		if old && w.uses[i] == 0 && !w.taken[i] && !w.gone(i) {
			out = append(out, i)
		}
	}
	return out
}

// count adds a row that would keep a prompt in a new file, or takes it off; the
// first and the last change the total.
func (w *sweep) count(p prompt, by int) {
	if _, there := w.d.s.prompts[p.hash]; p.hash == "" || there {
		return
	}
	before := w.prompts[p.hash]
	w.prompts[p.hash] += by
	switch {
	case before == 0:
		w.total += p.bytes
	case before+by == 0:
		w.total -= p.bytes
	}
}

func (w *sweep) enough() bool { return w.total <= w.d.p.HighWaterBytes }

func (w *sweep) take(i int) {
	if w.taken[i] || w.gone(i) {
		return
	}
	w.taken[i] = true
	w.files = append(w.files, i)
	f := &w.d.s.Files[i]
	if !f.direct && !f.blob {
		return // OpenClaw does not count what lies deeper
	}
	w.total -= f.Size
	w.freed += f.Size
	if f.Size > 0 {
		w.full++
	}
}

// evict takes a row with its files, those that no other row names.
func (w *sweep) evict(at int) {
	d := w.d
	r := d.row(at)
	w.rows = append(w.rows, at)
	old := w.store
	w.store = max(2, w.store-r.line)
	w.total += w.store - old
	w.count(r.prompt, -1)
	for _, i := range r.names {
		w.uses[i]--
		if f := &d.s.Files[i]; f.blob && w.uses[i] == 0 && d.now-f.written() >= tempAfter {
			w.take(i)
			w.owner[i] = at
		}
	}
	if r.ID == "" {
		return
	}
	if w.ids[r.ID]--; w.ids[r.ID] > 0 {
		return
	}
	for _, i := range r.traces {
		if w.uses[i] > 0 {
			continue
		}
		if by, _ := d.guard(i); by == "" || by == Neighbour {
			w.take(i)
			w.owner[i] = at
		}
	}
}

// unmet says which limits what is protected makes unreachable.
func (d *draft) unmet() (out []Unmet) {
	if d.p.Mode == Warn || d.p.ByHand() {
		return nil
	}
	by, n, bytes := map[Rule]int{}, 0, int64(0)
	for i := range d.s.Rows {
		if d.gone[i] != "" {
			continue
		}
		if rule := d.shields(i); rule != "" {
			by[rule]++
			n++
			bytes += d.weight(&d.s.Rows[i])
		}
	}
	if limit := d.p.MaxEntries; limit > 0 && d.left() > limit {
		out = append(out, Unmet{
			Rule: Cap, Limit: int64(limit), Left: int64(d.left()), Protected: n, Bytes: bytes, ByRule: by,
			Reason: fmt.Sprintf("%s %s, %d more than session.maintenance.maxEntries allows: %d of them %s protected", rows(d.left()), wordFor(d.left(), "stays", "stay"), d.left()-limit, n, wordFor(n, "is", "are")),
		})
	}
	if w := d.sweep; w != nil && w.total > d.p.MaxDiskBytes {
		out = append(out, Unmet{
			Rule: Budget, Limit: d.p.MaxDiskBytes, Left: w.total, Protected: n, Bytes: bytes, ByRule: by,
			Reason: fmt.Sprintf("%d bytes stay, %d more than session.maintenance.maxDiskBytes allows: %d protected %s %d of them", w.total, w.total-d.p.MaxDiskBytes, n, wordFor(n, "row takes", "rows take"), bytes),
		})
	}
	return out
}

func lower(key string) string { return span.Lower(span.Trim(key)) }
