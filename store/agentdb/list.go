package agentdb

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"oc/store/row"
	"oc/store/span"
	"oc/store/sqlfile"
)

// Row is one session.
type Row struct {
	row.Entry // its JSON, without the two large members unless they were asked for
	Columns   Columns
	Size      Size // of its current window, if it was asked for
}

// Removed is the reason of a row that is skipped because its session was deleted and has earlier conversations left.
const Removed = "it was removed; only its history is kept"

// Options say what a listing reads beside the rows.
type Options struct {
	Whole bool // keep skillsSnapshot and systemPromptReport
	Sizes bool // fill in Row.Size; this looks at every event of the database
}

// Listing is the session table.
type Listing struct {
	Schema  Schema
	Rows    []Row         // by session key, in the order of bytes
	Skipped []row.Skipped // rows that OpenClaw does not read, and participants that it could not
	Hidden  int           // rows that OpenClaw keeps for itself: sessions of suppressed side effects
}

// List reads the session table at path. The errors are those of Read.
func List(ctx context.Context, path string, o Options) (l *Listing, err error) {
	err = Read(ctx, path, func(db *DB) error {
		l, err = db.List(o)
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// List reads the session table. A row that OpenClaw treats as unreadable is skipped and reported: its JSON is no object,
// has no session id, or says another id or time than its columns. So is one of which only the history is kept.
func (db *DB) List(o Options) (*Listing, error) {
	l := &Listing{Schema: db.schema}
	skip := func(key, reason string) { l.Skipped = append(l.Skipped, row.Skipped{Key: key, Reason: reason}) }
	people, err := db.participants(skip)
	if err != nil {
		return nil, err
	}
	sizes := map[string]Size{}
	if o.Sizes {
		if sizes, err = db.sizes(); err != nil {
			return nil, err
		}
	}
	has, err := db.tx.Columns(db.table())
	if err != nil {
		return nil, err
	}
	columns := []string{"session_key", db.idColumn(), "entry_json", "updated_at", "status", "entry_valid", "created_at", "pinned_at", "archived_at"}
	owned := true
	for _, c := range []string{"owner_actor_type", "owner_actor_id", "owner_assigned_by_type", "owner_assigned_by_id", "owner_assigned_at"} {
		owned = owned && has[c]
		columns = append(columns, c)
	}
	// Not by the index of the key: it may be damaged, and would then leave out rows without a word.
	parts, err := db.tx.Parts(db.table(), columns, runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, err
	}
	readers, errs := make([]reader, len(parts)), make([]error, len(parts))
	var reading sync.WaitGroup
	for i, part := range parts {
		readers[i] = reader{o: o, people: people, sizes: sizes, owned: owned, era: db.schema.Era}
		reading.Go(func() { errs[i] = part(readers[i].take) })
	}
	reading.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i := range readers {
		l.Skipped = append(l.Skipped, readers[i].skipped...)
		l.Hidden += readers[i].hidden
	}
	l.Rows = byKey(readers)
	slices.SortStableFunc(l.Skipped, func(a, b row.Skipped) int { return strings.Compare(a.Key, b.Key) })
	return l, nil
}

// byKey is the rows of all readers, sorted; they are large, so each is moved but once.
func byKey(readers []reader) []Row {
	var order []*Row
	for i := range readers {
		order = append(order, readers[i].rows...)
	}
	slices.SortFunc(order, func(a, b *Row) int { return strings.Compare(a.Key, b.Key) })
	sorted := make([]Row, len(order))
	for i, r := range order {
		sorted[i] = *r
	}
	return sorted
}

// reader makes the rows of a listing from those of the table.
type reader struct {
	rows    []*Row
	free    []Row // for the next ones
	skipped []row.Skipped
	hidden  int

	o      Options
	people map[string][]Participant
	sizes  map[string]Size
	owned  bool // the table has columns for the owner
	era    Era

	index row.Indexer
	room  []byte // for the entries, which are kept in large pieces
}

func (x *reader) take(r *sqlfile.Row) error {
	key, text := strings.Clone(r.Text(0)), r.Bytes(2)
	skip := func(reason string) error {
		x.skipped = append(x.skipped, row.Skipped{Key: key, Reason: reason})
		return nil
	}
	if isInternal(key) {
		x.hidden++
		return nil
	}
	if string(text) == "{}" {
		return skip("it was removed; only its history is kept")
	}
	c := span.Cursor{B: text}
	e, err := x.index.Index(key, &c)
	if err == nil {
		err = span.End(text, c.At)
	}
	if err != nil {
		return skip("its JSON is damaged: " + err.Error())
	}
	e.At = 0
	if !x.o.Whole {
		e, x.room = e.Without(x.room, row.SkillsSnapshot, row.SystemPromptReport)
	}
	if len(e.Val) > 0 && &e.Val[0] == &text[0] {
		e.Val, x.room = kept(e.Val, x.room)
	}
	updated, ok := r.Int(3)
	if why := unreadable(&e, r.Text(1), float64(updated), ok); why != "" {
		return skip(why)
	}
	out := Row{Entry: e, Columns: Columns{SessionID: strings.Clone(r.Text(1)), Status: strings.Clone(r.Text(4)), Valid: 1, Bytes: int64(len(text)), Participants: x.people[key]}}
	if v, ok := r.Int(5); ok {
		out.Columns.Valid = int(v)
	}
	out.Columns.CreatedAt, _ = r.Int(6)
	out.Columns.PinnedAt, _ = r.Int(7)
	out.Columns.ArchivedAt, _ = r.Int(8)
	if x.owned {
		out.Columns.Owner = owner(r, 9)
	}
	out.Columns.fromEntry(&e)
	if x.era == Entries { // there are no such columns yet
		out.Columns.PinnedAt, out.Columns.ArchivedAt = stamp(&e, row.PinnedAt), stamp(&e, row.ArchivedAt)
	}
	out.Size = x.sizes[out.Columns.SessionID]
	if len(x.free) == 0 {
		x.free = make([]Row, 128)
	}
	x.free[0] = out
	x.rows, x.free = append(x.rows, &x.free[0]), x.free[1:]
	return nil
}

// kept is a copy of b in room, if it holds it, else in room of its own, and the room that is left.
func kept(b, room []byte) (copied, rest []byte) {
	if cap(room) < len(b) {
		room = make([]byte, 0, max(len(b), 256<<10))
	}
	copied = append(room[:0], b...)
	return copied[:len(b):len(b)], copied[len(b):]
}

func stamp(e *row.Entry, f row.Field) int64 {
	ms, ok := e.Stamp(f)
	if !ok || ms > math.MaxInt64/2 {
		return 0
	}
	return int64(ms)
}

// unreadable says why OpenClaw does not read the row; "" if it does (spec/sqlite-store.md 2.2, release 2026.9.6).
func unreadable(e *row.Entry, id string, updated float64, ok bool) string {
	if span.KindOf(e.Val) != span.Object {
		return "its JSON is no object"
	}
	said, isText := e.Text(row.SessionID)
	if !isText {
		return "its JSON has no session id"
	}
	at, isNumber := e.Number(row.UpdatedAt)
	switch {
	case !isNumber || math.IsInf(at, 0):
		return "its JSON has no time of its last change"
	case said != id:
		return fmt.Sprintf("its JSON says session %q, its column %q", said, id)
	case !ok || at != updated:
		return fmt.Sprintf("its JSON was last changed at %s, its column at %.0f", e.Raw(row.UpdatedAt), updated)
	}
	return ""
}

// isInternal tells the keys of sessions that hold suppressed side effects: agent:<id>:internal-session-effects:…
func isInternal(key string) bool {
	rest, ok := strings.CutPrefix(key, "agent:")
	if !ok {
		return false
	}
	_, rest, ok = strings.Cut(rest, ":")
	return ok && strings.HasPrefix(rest, "internal-session-effects:")
}
