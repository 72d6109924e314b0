package maintenance

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"oc/store/row"
	"oc/store/span"
)

// The rules for sessions in a database are those of the release whose schema it has: 2026.9.6 (23) puts aside, where it is, what a person may
// want back, and deletes what machines made; 2026.8.2 (19) deletes both (spec/sqlite-store.md 3.2).

// synthetic23 tells whether machines make sessions with such a key.
func synthetic23(key string) bool {
	_, rest, scoped := row.Parse(key)
	if !scoped {
		rest = key
	}
	return isProbe(key) || synthetic(key, span.Lower(span.Trim(rest)), scoped)
}

// activity is when a session was last used, in epoch milliseconds; 0 where that is not known.
func activity(e *row.Entry) (at float64) {
	for _, f := range []row.Field{row.LastInteractionAt, row.LastActivityAt, row.SessionStartedAt, row.UpdatedAt} {
		if n, ok := e.Number(f); ok {
			at = max(at, n)
		}
	}
	return at
}

// reaches tells whether a key is of a conversation with somebody outside, or of direct messages.
func reaches(key string) bool {
	base := key
	if i := strings.LastIndex(span.Lower(key), ":thread:"); i >= 0 {
		base = key[:i]
	}
	_, rest, ok := row.Parse(base)
	if !ok {
		rest = span.Lower(span.Trim(key))
		return strings.HasPrefix(rest, "direct:") && len(rest) > len("direct:")
	}
	parts := strings.Split(rest, ":")
	if parts[0] == "direct" && len(rest) > len("direct:") {
		return true
	}
	some := func(from int) bool { return len(parts) > from && span.Trim(parts[from]) != "" }
	if parts[0] == "agent" || len(parts) < 3 || !some(0) {
		return false
	}
	if len(parts) >= 4 && (parts[2] == "direct" || parts[2] == "dm") {
		return some(1) && some(3)
	}
	return slices.Contains([]string{"channel", "direct", "dm", "group"}, parts[1]) && some(2)
}

// keep is the rule that protects a session of a database against every limit; "" where it may go.
func (d *draft) keep(e *row.Entry, schema int) Rule {
	if e.IsSet(row.ArchivedAt) {
		return Shelved
	}
	if e.IsSet(row.PinnedAt) && pinnable(e) {
		return Pinned
	}
	if modelLocked(e) {
		return ModelLocked
	}
	if status, _ := e.Text(row.Status); status == "running" && schema >= 23 {
		return Running
	}
	if synthetic23(e.Key) {
		return ""
	}
	if at := activity(e); d.p.PreserveRecent > 0 && at > 0 && d.now-at <= d.p.PreserveRecent {
		return Recent
	}
	if row.IsMain(e.Key, true) {
		return MainSession
	}
	if by := conversation(e); by != "" {
		return by
	}
	if kind, _ := span.Text(span.Path(e.Val, "delivery", "kind")); schema >= 23 && (kind == "external" || reaches(e.Key)) {
		return External
	}
	return ""
}

// pinnable tells whether pinning protects a session: not one of a subagent, nor one below another than the main session.
func pinnable(e *row.Entry) bool {
	agent, rest, ok := row.Parse(e.Key)
	if strings.HasPrefix(span.Lower(rest), "subagent:") || e.IsSet(row.SpawnedBy) {
		return false
	}
	parent, _ := e.Text(row.ParentSessionKey)
	parent = span.Trim(parent)
	return parent == "" || ok && parent == row.MainKey(agent)
}

// decideRows goes through the rules in the release's order.
func (d *draft) decideRows(schema int) {
	for i := range d.s.Rows {
		d.kept[i] = d.keep(&d.s.Rows[i].Entry, schema)
	}
	// The sessions above an active one are active, too.
	for key := range d.active {
		for range len(d.s.Rows) {
			i, ok := d.s.byKey[key]
			if !ok {
				break
			}
			parent, _ := d.s.Rows[i].Text(row.ParentSessionKey)
			if key = row.Canonical(parent); key == "" || d.active[key] {
				break
			}
			d.active[key] = true
		}
	}
	d.emptyRows()
	d.dmScope()
	d.cron()
	if d.p.ByHand() {
		d.byHand()
		return
	}
	d.probes(schema)
	d.dashboards()
	d.staleRows(schema)
	d.capRows(schema)
}

// unarchived tells whether a row is neither put aside, then or now, nor gone.
func (d *draft) unarchived(i int) bool {
	return d.gone[i] == "" && !d.shelved[i] && !d.s.Rows[i].IsSet(row.ArchivedAt)
}

// counted is how many rows the cap counts: 2026.8.2 counts those that are put aside, too.
func (d *draft) counted(schema int) (n int) {
	for i := range d.s.Rows {
		if d.gone[i] == "" && (schema < 23 || d.unarchived(i)) {
			n++
		}
	}
	return n
}

// emptyRows drops sessions without a message.
func (d *draft) emptyRows() {
	if !d.p.FixMissing {
		return
	}
	for i := range d.s.Rows {
		r := &d.s.Rows[i]
		_, _, scoped := row.Parse(r.Key)
		pending := row.Truthy(span.Member(r.Val, "initializationPending"))
		switch {
		case r.Content != Empty || r.IsSet(row.ArchivedAt), scoped && (pending || r.ID == r.Key):
			continue
		}
		if modelLocked(&r.Entry) {
			d.stay(i, ModelLocked, FixMissing)
			continue
		}
		if by := d.inUse(r); by != "" {
			d.stay(i, by, FixMissing)
			continue
		}
		d.drop(i, FixMissing, "its transcript holds no message")
	}
}

// shelve puts a session aside where it is.
func (d *draft) shelve(i int, rule Rule, reason, why string) {
	d.shelved[i] = true
	d.counts[rule]++
	r := &d.s.Rows[i]
	d.puts = append(d.puts, Action{
		Kind: PutRow, Key: r.Key, Rule: rule, Reason: why, Bytes: int64(len(r.Val)), Applies: true, file: -1,
		shelve: []row.Change{
			{Name: row.ArchivedAt.String(), Val: strconv.AppendInt(nil, d.at.UnixMilli(), 10)},
			{Name: row.ArchiveReason.String(), Val: span.Quote(nil, reason)},
			{Name: row.ArchivedBy.String()},
		},
	})
}

// dispose drops or puts aside, as the release does.
func (d *draft) dispose(i, schema int, rule Rule, reason, why string) {
	if schema >= 23 && !synthetic23(d.s.Rows[i].Key) {
		d.shelve(i, rule, reason, why+"; it is put aside and not deleted")
	} else {
		d.dropFor(i, rule, why)
	}
}

// spared tells whether a rule of age must leave a row, and says so.
func (d *draft) spared(i int, asked Rule) bool {
	by := d.shields(i)
	if by != "" {
		d.stay(i, by, asked)
	}
	return by != ""
}

func (d *draft) probes(schema int) {
	if d.p.MaxEntries == 0 || d.counted(schema) <= d.p.MaxEntries {
		return
	}
	for i := range d.s.Rows {
		r := &d.s.Rows[i]
		if d.unarchived(i) && r.Updated < d.now-d.p.ModelRunAfter && isProbe(r.Key) && !d.spared(i, ModelRun) {
			d.drop(i, ModelRun, "a probe of a model, last used %s ago, and there are more than %s", ago(d.now-r.Updated), rows(d.p.MaxEntries))
		}
	}
}

func (d *draft) dashboards() {
	if d.p.DashboardAfter <= 0 {
		return
	}
	for i := range d.s.Rows {
		r := &d.s.Rows[i]
		_, rest, ok := row.Parse(r.Key)
		at := activity(&r.Entry)
		if !ok || !strings.HasPrefix(rest, "dashboard:") || !d.unarchived(i) || at <= 0 || at >= d.now-d.p.DashboardAfter || d.spared(i, Dashboard) {
			continue
		}
		d.shelve(i, Dashboard, "stale-dashboard", fmt.Sprintf("a dashboard, last used %s ago, archiveDashboardAfter is %s; it is put aside and not deleted", ago(d.now-at), ago(d.p.DashboardAfter)))
	}
}

func (d *draft) staleRows(schema int) {
	if math.IsInf(d.p.PruneAfter, 1) || d.p.PruneAfter <= 0 {
		return
	}
	says := reasons{"last used ", " ago, pruneAfter is " + ago(d.p.PruneAfter), nil}
	for i := range d.s.Rows {
		r := &d.s.Rows[i]
		if d.unarchived(i) && r.Updated < d.now-d.p.PruneAfter && !d.spared(i, Stale) {
			d.dispose(i, schema, Stale, "age-retention", says.of(d.now-r.Updated))
		}
	}
}

func (d *draft) capRows(schema int) {
	limit := d.p.MaxEntries
	count := d.counted(schema)
	if limit == 0 || count <= limit {
		return
	}
	used := func(i int) float64 {
		if schema < 23 {
			return d.s.Rows[i].Updated
		}
		return activity(&d.s.Rows[i].Entry)
	}
	var free, kept []int
	for i := len(d.s.Rows) - 1; i >= 0; i-- { // of those used at one time the last key goes first
		switch {
		case !d.unarchived(i):
		case d.shields(i) == "":
			free = append(free, i)
		default:
			kept = append(kept, i)
		}
	}
	slices.SortStableFunc(free, func(a, b int) int { return cmp.Compare(used(a), used(b)) })
	for _, i := range free[:min(len(free), count-limit)] {
		d.dispose(i, schema, Cap, "active-session-cap", fmt.Sprintf("last used %s ago, and there are %s, at most %d stay", ago(d.now-used(i)), rows(count), limit))
	}
	if count-limit > len(free) {
		slices.Reverse(kept)
		for _, i := range kept {
			d.stay(i, d.shields(i), Cap)
		}
	}
}

func modelLocked(e *row.Entry) bool {
	return string(span.Member(e.Val, "modelSelectionLocked")) == "true"
}
