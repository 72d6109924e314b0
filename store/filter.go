package store

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"oc/store/row"
	"oc/store/span"
)

// A Filter says which rows to keep. The zero value keeps all.
type Filter struct {
	ActiveMs float64  // written in the last so many milliseconds; 0: whenever
	Kinds    []string // of these kinds or classes; none: of any
	Label    string   // with exactly this label
	Search   string   // with this text, in any case, in a name, a key, an id or a model
	Archived bool     // archived rows only
	Pinned   bool     // pinned rows only
}

// Keep tells whether a row passes. now is epoch milliseconds. Rows without a
// time never pass ActiveMs, rows of the future do (spec/file-store.md 6.1).
func (f *Filter) Keep(r *Row, now float64) bool {
	switch {
	case f.ActiveMs > 0 && (!r.HasTime || now-r.Updated > f.ActiveMs),
		f.Archived && !r.Archived(),
		f.Pinned && !r.Pinned(),
		len(f.Kinds) > 0 && !slices.Contains(f.Kinds, r.ListKind()) && !slices.Contains(f.Kinds, string(row.ClassOf(r.Key))):
		return false
	}
	if f.Label != "" {
		if label, _ := r.Text(row.Label); span.Trim(label) != span.Trim(f.Label) {
			return false
		}
	}
	return f.Search == "" || r.matches(span.Lower(span.Trim(f.Search)))
}

// Archived tells whether the row is archived: archivedAt is set.
func (r *Row) Archived() bool { return r.IsSet(row.ArchivedAt) }

// Pinned tells whether the row is pinned: pinnedAt is set.
func (r *Row) Pinned() bool { return r.IsSet(row.PinnedAt) }

func isSet(raw []byte) bool {
	k := span.KindOf(raw)
	return k != span.Invalid && k != span.Null
}

func (r *Row) matches(low string) bool {
	if strings.Contains(span.Lower(r.Key), low) {
		return true
	}
	for _, f := range []row.Field{row.Label, row.DisplayName, row.Subject, row.Category, row.SessionID} {
		if s, ok := r.Text(f); ok && strings.Contains(span.Lower(s), low) {
			return true
		}
	}
	model, provider := r.ModelRef()
	return strings.Contains(span.Lower(provider+"/"+model), low)
}

// An Order is what rows are sorted by.
type Order string

// The orders. Those of numbers are descending, those of text ascending; rows
// that are alike stay in the order of their stores.
const (
	ByUpdated Order = "updated"
	ByStarted Order = "started"
	ByTokens  Order = "tokens"
	ByKey     Order = "key"
	ByKind    Order = "kind"
)

// Orders are all orders.
var Orders = []string{string(ByUpdated), string(ByStarted), string(ByTokens), string(ByKey), string(ByKind)}

// Sort sorts rows. ByUpdated is OpenClaw's order: the newest first, by value,
// so that times in the future come before all (spec/file-store.md 6.2).
func Sort(rows []*Row, by Order) {
	number := func(value func(*Row) float64) {
		slices.SortStableFunc(rows, func(a, b *Row) int { return cmp.Compare(value(b), value(a)) })
	}
	switch by {
	case ByStarted:
		number(func(r *Row) float64 { n, _ := r.Stamp(row.SessionStartedAt); return n })
	case ByTokens:
		number(func(r *Row) float64 { n, known, _ := r.Tokens(); return n + map[bool]float64{true: 1}[known] })
	case ByKey:
		slices.SortStableFunc(rows, func(a, b *Row) int { return strings.Compare(a.Key, b.Key) })
	case ByKind:
		slices.SortStableFunc(rows, func(a, b *Row) int { return strings.Compare(a.ListKind(), b.ListKind()) })
	default:
		number(func(r *Row) float64 { return r.Updated })
	}
}

func sortNewest[T any](all []T, at func(*T) time.Time) {
	slices.SortStableFunc(all, func(a, b T) int { return at(&b).Compare(at(&a)) })
}
