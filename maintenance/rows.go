package maintenance

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"oc/store/row"
	"oc/store/span"
)

// fixMissing drops rows without a transcript and mends those whose own is
// there under another name than they say (spec/maintenance.md 2.5).
func (d *draft) fixMissing() {
	if !d.p.FixMissing {
		return
	}
	for i := range d.s.Rows {
		r := &d.s.Rows[i]
		_, rest, scoped := row.Parse(r.Key)
		switch {
		case r.ID == "" && scoped:
			continue
		case r.ID != "" && r.Mend != "":
			if by := d.inUse(r); by != "" {
				d.stay(i, by, Repair)
				continue
			}
			d.mends[i] = r.Mend
			continue
		case r.ID != "" && r.Content == Messages:
			continue
		}
		by := d.inUse(r)
		if by == "" && slashKey().MatchString(rest) {
			by = SlashRoute
		}
		switch {
		case by != "":
			d.stay(i, by, FixMissing)
		case r.ID == "":
			d.drop(i, FixMissing, "it has no session id and belongs to no agent")
		case r.Content == Empty:
			d.drop(i, FixMissing, "its transcript %s holds no message", r.File)
		default:
			d.drop(i, FixMissing, "its transcript %s is not there", r.File)
		}
	}
}

// dmScope retires the rows of direct chats (spec/maintenance.md 2.6).
func (d *draft) dmScope() {
	if !d.p.FixDMScope || !d.p.DirectToMain {
		return
	}
	for i := range d.s.Rows {
		r := &d.s.Rows[i]
		if d.gone[i] != "" || !isDirect(r.Key, d.s.Agent) {
			continue
		}
		by := d.inUse(r)
		if slices.Contains(d.p.ActiveKeys, r.Key) || d.active[r.Key] {
			by = ActiveKey
		}
		if by != "" {
			d.stay(i, by, DMScope)
			continue
		}
		d.drop(i, DMScope, "session.dmScope is main: the chat goes on in the main session")
	}
}

// cron drops isolated runs of cron jobs that are over, and the row of a job
// that is gone. Nothing else is a matter of cron.sessionRetention
// (spec/maintenance.md 5.3).
func (d *draft) cron() {
	if !d.p.Cron || math.IsInf(d.p.CronRetention, 1) {
		return
	}
	for i := range d.s.Rows {
		r := &d.s.Rows[i]
		_, rest, scoped := row.Parse(r.Key)
		job, ok := row.CronJob(r.Key)
		if d.gone[i] != "" || !scoped || !ok {
			continue
		}
		run := cronRunKey().MatchString(rest)
		if !run && rest != "cron:"+job || !(r.Updated < d.now-d.p.CronRetention) {
			continue
		}
		by := d.shields(i)
		switch {
		case by != "":
		case !r.HasTime:
			by = UnknownAge
		case run:
		case d.s.Jobs == nil:
			by = JobsUnknown
		case d.s.Jobs[job]:
			by = JobExists
		}
		switch {
		case by != "":
			d.stay(i, by, CronRetention)
		case run:
			d.drop(i, CronRetention, "the run was last used %s ago, cron.sessionRetention is %s", ago(d.now-r.Updated), ago(d.p.CronRetention))
		default:
			d.drop(i, CronRetention, "there is no cron job %s any more", job)
		}
	}
}

// byHand drops what the user selected.
func (d *draft) byHand() {
	for i := range d.s.Rows {
		r := &d.s.Rows[i]
		if d.gone[i] != "" || !d.fits(r) {
			continue
		}
		by := d.shields(i)
		if by == "" {
			if pinned, _ := r.Stamp(row.PinnedAt); pinned > 0 {
				by = Pinned
			}
			if row.IsMain(r.Key, true) {
				by = MainSession
			}
		}
		if d.p.OlderThan > 0 && (r.Odd || !r.HasTime) && by == "" {
			by = UnknownAge
		}
		if d.p.IncludeProtected && by != ActiveKey {
			by = d.inUse(r)
		}
		if by != "" {
			d.stay(i, by, ByHand)
			continue
		}
		d.drop(i, ByHand, "%s", d.selection(r))
	}
}

// fits tells whether a row is among those that were selected.
func (d *draft) fits(r *Row) bool {
	if d.p.OlderThan > 0 && !(r.Updated < d.now-d.p.OlderThan) {
		return false
	}
	if d.p.Empty && (r.Content != Gone && r.Content != Empty) {
		return false
	}
	return len(d.p.Kinds) == 0 || slices.Contains(d.p.Kinds, r.ListKind()) || slices.Contains(d.p.Kinds, string(row.ClassOf(r.Key)))
}

// selection says what a row was selected for.
func (d *draft) selection(r *Row) string {
	var parts []string
	if d.p.OlderThan > 0 {
		if r.Odd || !r.HasTime {
			parts = append(parts, "its age is unknown")
		} else {
			parts = append(parts, "it was last used "+ago(d.now-r.Updated)+" ago")
		}
	}
	if len(d.p.Kinds) > 0 {
		parts = append(parts, "it is of kind "+r.ListKind()+", class "+string(row.ClassOf(r.Key)))
	}
	if d.p.Empty {
		parts = append(parts, "it has no message")
	}
	return "selected: " + strings.Join(parts, ", ")
}

// modelRuns drops the gateway's probes of models while there are more rows
// than the cap. What a row is does not protect it from that.
func (d *draft) modelRuns() {
	if d.p.MaxEntries == 0 || d.left() <= d.p.MaxEntries {
		return
	}
	for i := range d.s.Rows {
		r := &d.s.Rows[i]
		if d.gone[i] != "" || !r.HasTime || !(r.Updated < d.now-d.p.ModelRunAfter) || !isProbe(r.Key) {
			continue
		}
		by := d.inUse(r)
		if r.Odd {
			by = UnknownAge
		}
		if d.active[r.Key] {
			by = ActiveKey
		}
		if by != "" {
			d.stay(i, by, ModelRun)
			continue
		}
		d.drop(i, ModelRun, "a probe of a model, last used %s ago, and there are more than %s", ago(d.now-r.Updated), rows(d.p.MaxEntries))
	}
}

// stale drops rows that have not been used for long. Without a time of use no
// row is stale.
func (d *draft) stale() {
	says := reasons{"last used ", " ago, pruneAfter is " + ago(d.p.PruneAfter), nil}
	for i := range d.s.Rows {
		r := &d.s.Rows[i]
		if d.gone[i] != "" || !r.HasTime || !(r.Updated < d.now-d.p.PruneAfter) {
			continue
		}
		if by := d.shields(i); by != "" {
			d.stay(i, by, Stale)
			continue
		}
		d.dropFor(i, Stale, says.of(d.now-r.Updated))
	}
}

// reasons are sentences around an age. Thousands of rows share a few of them.
type reasons struct {
	before, after string
	made          map[string]string
}

// of is the sentence for an age in milliseconds.
func (r *reasons) of(ms float64) string {
	age := ago(ms)
	s, ok := r.made[age]
	if !ok {
		if r.made == nil {
			r.made = map[string]string{}
		}
		s = r.before + age + r.after
		r.made[age] = s
	}
	return s
}

// used is the time that rows are compared by when there are too many: without
// one a row comes last.
func (r *Row) used() float64 {
	if !r.HasTime {
		return math.Inf(-1)
	}
	return r.Updated
}

// cap drops the rows used longest ago until no more than the cap are left.
// Protected rows count, but stay (spec/maintenance.md W8).
func (d *draft) cap() {
	limit := d.p.MaxEntries
	if limit == 0 || d.left() <= limit {
		return
	}
	var all, free []int
	for i := range d.s.Rows {
		if d.gone[i] != "" {
			continue
		}
		all = append(all, i)
		if d.shields(i) == "" {
			free = append(free, i)
		}
	}
	newest := func(rows []int) {
		slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(d.s.Rows[b].used(), d.s.Rows[a].used()) })
	}
	newest(all)
	for _, i := range all[limit:] {
		if by := d.shields(i); by != "" {
			d.stay(i, by, Cap)
		}
	}
	room := max(0, limit-(len(all)-len(free)))
	newest(free)
	says := reasons{
		fmt.Sprintf("%s, at most %d stay, and %d %s used later than ", rows(len(all)), limit, limit, wordFor(limit, "other was", "others were")), " ago or protected", nil,
	}
	for _, i := range free[min(room, len(free)):] {
		r := &d.s.Rows[i]
		if r.HasTime {
			d.dropFor(i, Cap, says.of(d.now-r.Updated))
		} else {
			d.drop(i, Cap, "%s, at most %d stay, and it has no time of use", rows(len(all)), limit)
		}
	}
}

// mended is a row with another sessionFile, all other bytes as they are.
func mended(r *Row, path string) []byte {
	old := r.Raw(row.SessionFile)
	at := span.At(r.Val, old)
	out := make([]byte, 0, len(r.Val)+len(path))
	out = append(out, r.Val[:at]...)
	out = span.Quote(out, path)
	return append(out, r.Val[at+len(old):]...)
}
