package maintenance

import (
	"fmt"
	"math"
	"strings"

	"oc/config"
	"oc/store/row"
)

// A Mode says whether the configured limits are enforced.
type Mode string

// The modes. In warn mode only what the user asks for by name is applied.
const (
	Enforce Mode = "enforce"
	Warn    Mode = "warn"
)

// Never is a duration that nothing is older than: the rule is off.
var Never = math.Inf(1)

// OpenClaw's defaults and fixed limits (spec/maintenance.md 1, release
// 2026.7.35), in milliseconds.
const (
	second            = 1e3
	minute            = 60 * second
	hour              = 60 * minute
	day               = 24 * hour
	defaultPruneAfter = 30 * day
	defaultMaxEntries = 500
	modelRunAfter     = 24 * hour
	defaultCron       = 24 * hour
	tempAfter         = 5 * minute
	recently          = 5 * minute // a transcript that was written since is in use
)

// Orders are what the user asks for on the command line.
type Orders struct {
	Enforce          bool // whatever the configured mode
	FixMissing       bool
	FixDMScope       bool
	Cron             bool // apply cron.sessionRetention
	KeepUnlinked     bool // leave unlinked history where it is
	IncludeProtected bool // a selection by hand takes protected rows too
	ActiveKeys       []string

	// A selection by hand: rows that all of these fit, and no others. While
	// there is one the configured limits do nothing.
	OlderThan float64  // milliseconds since updatedAt; 0: of any age
	Kinds     []string // of these kinds or classes of key; none: of any
	Empty     bool     // without any message

	// Keys are rows that a verb takes out of the store by name, as their keys
	// stand there. While there are some nothing else happens.
	Keys []string

	// Named says that the store was named by its path. Then a selection by
	// hand needs no configuration.
	Named bool
}

// ByHand tells whether rows are selected by hand.
func (o *Orders) ByHand() bool { return o.OlderThan > 0 || len(o.Kinds) > 0 || o.Empty }

// A Policy is what session.maintenance and cron.sessionRetention say, and what
// the user asks for. Durations are milliseconds, Never where the rule is off.
type Policy struct {
	Orders
	Mode           Mode
	PruneAfter     float64 // rows, unlinked files and .deleted archives
	ModelRunAfter  float64
	ResetRetention float64 // .reset archives
	MaxEntries     int     // 0: no cap
	MaxDiskBytes   int64   // 0: no budget
	HighWaterBytes int64   // what a sweep goes down to
	CronRetention  float64
	Beside         bool // the store itself is not read: it is damaged, or there is none
	DirectToMain   bool // session.dmScope is main: rows of direct chats are of no use

	// Of databases alone.
	DashboardAfter float64 // sessions of dashboards that are not used for so long are put aside
	PreserveRecent float64 // sessions that were used within it stay; 0: there is no such rule
	capSet         bool    // maxEntries is configured: releases have other defaults
	budgetSet      bool    // maxDiskBytes is

	keepDeleted bool // resetArchiveRetention is off: .deleted archives go only along with others (spec/maintenance.md 2.9)
}

// An Unreadable is a configuration that cannot be relied on for removing.
type Unreadable struct{ File, Reason string }

func (e *Unreadable) Error() string {
	return fmt.Sprintf("the configuration %s cannot be read, so its limits are unknown: %s; repair it, or name the store with --store and select rows with --older-than, --kind or --empty", e.File, e.Reason)
}

// Alone is the policy of a change of single rows by name: of everything else
// in the store it asks nothing. keys are the rows that go, if any.
func Alone(keys ...string) *Policy {
	return &Policy{
		Orders: Orders{Keys: keys}, Mode: Enforce,
		PruneAfter: Never, ModelRunAfter: Never, ResetRetention: Never, CronRetention: Never, keepDeleted: true,
	}
}

// ReadPolicy reads the configured limits. A default stands in for a key that
// is absent, and for nothing else: a value that is zero, negative or cannot be
// read switches its limit off, and a warning names its key path
// (spec/maintenance.md 1; field-reports.md S7). Warnings come in the order of
// the keys here, those of c.Warnings not included.
//
// The error is an *Unreadable where the configuration as a whole cannot be
// read and something else than a selection by hand in a named store is wanted.
func ReadPolicy(c *config.Config, o Orders) (*Policy, []config.Warning, error) {
	p := &Policy{Orders: o, Mode: Enforce, PruneAfter: Never, ModelRunAfter: Never, ResetRetention: Never, CronRetention: Never, keepDeleted: true}
	if c.Broken {
		if !o.Named || !o.ByHand() {
			e := &Unreadable{File: c.ConfigFile, Reason: "it is damaged"}
			if len(c.Warnings) > 0 {
				e.File, e.Reason = c.Warnings[0].File, c.Warnings[0].Reason
			}
			return nil, nil, e
		}
		return p, nil, nil
	}
	r := reader{c: c}
	r.mode(p)
	p.PruneAfter = r.pruneAfter()
	p.ModelRunAfter = modelRunAfter
	p.MaxEntries = r.maxEntries()
	p.ResetRetention, p.keepDeleted = r.resetRetention(p.PruneAfter)
	p.MaxDiskBytes = r.bytes("maxDiskBytes", "no disk budget")
	p.HighWaterBytes = r.highWater(p.MaxDiskBytes)
	p.CronRetention = r.cron()
	p.DirectToMain = r.directToMain(o.FixDMScope)
	r.databases(p)
	return p, append(r.warnings, misplaced(c)...), nil
}

// reader reads keys and collects warnings.
type reader struct {
	c        *config.Config
	warnings []config.Warning
}

// look finds a key. A node comes back only where it may be relied on; refused
// says that something stands there that may not.
func (r *reader) look(path ...string) (n *config.Node, refused bool) {
	n, ok := r.c.Value(path...)
	if !r.c.Sound(path...) {
		return nil, true
	}
	if !ok {
		return nil, false
	}
	return n, false
}

// off warns that a value switches its limit off, or what else it does.
func (r *reader) off(n *config.Node, effect string, path ...string) {
	w := config.Warning{File: r.c.ConfigFile, KeyPath: strings.Join(path, "."), Reason: "cannot be used: " + effect}
	if n != nil {
		w.File, w.Line, w.Col = n.Place()
		if text, ok := n.Scalar(); ok {
			w.Reason = fmt.Sprintf("is %s: %s", text, effect)
		} else if n.False() {
			w.Reason = "is false: " + effect
		}
	}
	r.warnings = append(r.warnings, w)
}

func maintenanceKey(name string) []string { return []string{"session", "maintenance", name} }

// Defaults of the releases that keep sessions in databases (spec/sqlite-store.md 3.2).
const (
	defaultMaxEntries23 = 5000
	defaultMaxDiskBytes = 10 << 30
	defaultDashboard    = 7 * day
)

// databases reads what the releases with databases have beside.
func (r *reader) databases(p *Policy) {
	set := func(name string) bool { n, refused := r.look(maintenanceKey(name)...); return n != nil || refused }
	p.capSet, p.budgetSet = set("maxEntries"), set("maxDiskBytes")
	age := func(name string, absent float64, effect string) float64 {
		n, refused := r.look(maintenanceKey(name)...)
		switch {
		case n == nil && !refused:
			return absent
		case n.False():
			return 0
		}
		if ms, ok := r.duration(n, "d"); ok && ms >= 0 {
			return ms
		}
		r.off(n, effect, maintenanceKey(name)...)
		return 0
	}
	p.DashboardAfter = age("archiveDashboardAfter", defaultDashboard, "no session of a dashboard is put aside for its age")
	p.PreserveRecent = age("preserveRecent", 0, "there is no such rule")
}

// ForDatabase is the policy with the defaults of the release that makes databases of a schema.
func (p *Policy) ForDatabase(schema int) *Policy {
	q := *p
	if !q.capSet && q.MaxEntries == defaultMaxEntries && schema >= 23 {
		q.MaxEntries = defaultMaxEntries23
	}
	if !q.budgetSet && q.Mode != "" && q.capKnown() {
		q.MaxDiskBytes, q.HighWaterBytes = defaultMaxDiskBytes, defaultMaxDiskBytes/10*8
	}
	return &q
}

// capKnown tells whether the configured limits were read at all.
func (p *Policy) capKnown() bool { return !math.IsInf(p.ModelRunAfter, 1) }

func (r *reader) mode(p *Policy) {
	key := maintenanceKey("mode")
	n, refused := r.look(key...)
	text, ok := n.Str()
	switch {
	case refused || n != nil && (!ok || text != string(Enforce) && text != string(Warn)):
		r.off(n, "taken as warn, nothing is enforced", key...)
		p.Mode = Warn
	case n != nil:
		p.Mode = Mode(text)
	}
	if p.Enforce {
		p.Mode = Enforce
	}
}

// duration reads a key whose bare numbers are of the given unit.
func (r *reader) duration(n *config.Node, unit string) (ms float64, ok bool) {
	text, ok := n.Scalar()
	if !ok {
		return 0, false
	}
	return config.ParseDuration(text, unit)
}

func (r *reader) pruneAfter() float64 {
	for _, name := range []string{"pruneAfter", "pruneDays"} {
		key := maintenanceKey(name)
		n, refused := r.look(key...)
		if n == nil && !refused {
			continue
		}
		if ms, ok := r.duration(n, "d"); ok && ms > 0 {
			return ms
		}
		r.off(n, "no age rule, nothing is removed for its age", key...)
		return Never
	}
	return defaultPruneAfter
}

func (r *reader) maxEntries() int {
	key := maintenanceKey("maxEntries")
	n, refused := r.look(key...)
	if n == nil && !refused {
		return defaultMaxEntries
	}
	if f, ok := n.Num(); ok && f >= 1 && f == math.Trunc(f) {
		return int(min(f, math.MaxInt32))
	}
	r.off(n, "no cap on the number of rows", key...)
	return 0
}

// resetRetention is how long .reset archives stay, and whether .deleted ones
// stay too until something else is archived.
func (r *reader) resetRetention(pruneAfter float64) (ms float64, off bool) {
	key := maintenanceKey("resetArchiveRetention")
	n, refused := r.look(key...)
	switch {
	case n == nil && !refused:
		return pruneAfter, false
	case n.False():
		return Never, true
	}
	if ms, ok := r.duration(n, "d"); ok {
		return ms, false
	}
	r.off(n, "archives of resets are kept", key...)
	return Never, true
}

// bytes reads a size; 0 where there is none or it is no use.
func (r *reader) bytes(name, effect string) int64 {
	key := maintenanceKey(name)
	n, refused := r.look(key...)
	if n == nil && !refused {
		return 0
	}
	if text, ok := n.Scalar(); ok {
		if f, ok := config.ParseSize(text); ok && f > 0 {
			return int64(min(f, 1<<62))
		}
	}
	r.off(n, effect, key...)
	return 0
}

func (r *reader) highWater(budget int64) int64 {
	if budget == 0 {
		return 0
	}
	if n := r.bytes("highWaterBytes", "80 % of maxDiskBytes"); n > 0 {
		return min(n, budget)
	}
	// Divided first where the product would not fit.
	if budget > 1<<53 {
		return budget / 10 * 8
	}
	return max(1, budget*8/10)
}

func (r *reader) cron() float64 {
	n, refused := r.look("cron", "sessionRetention")
	switch {
	case n == nil && !refused:
		return defaultCron
	case n.False():
		return Never
	}
	if ms, ok := r.duration(n, "h"); ok && ms > 0 {
		return ms
	}
	r.off(n, "no run of a cron job is removed for its age", "cron", "sessionRetention")
	return Never
}

func (r *reader) directToMain(asked bool) bool {
	n, refused := r.look("session", "dmScope")
	if refused && asked {
		r.off(n, "no row of a direct chat is retired", "session", "dmScope")
	}
	return !refused && r.c.Session().DMScope == "main"
}

// activeKeys are the keys that are never removed, as they stand in a store.
func (p *Policy) activeKeys() map[string]bool {
	keys := map[string]bool{}
	for _, k := range p.ActiveKeys {
		if k = row.Canonical(k); k != "" {
			keys[k] = true
		}
	}
	return keys
}

// asked is the part of a policy that the user asks for by name: what is
// applied in warn mode.
func (p *Policy) asked() *Policy {
	q := *p
	q.PruneAfter, q.ModelRunAfter, q.ResetRetention, q.keepDeleted = Never, Never, Never, true
	q.MaxEntries, q.MaxDiskBytes, q.HighWaterBytes = 0, 0, 0
	q.DashboardAfter = 0
	return &q
}
