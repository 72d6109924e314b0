package agentdb

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

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
	columns := []string{"session_key", db.idColumn(), "entry_json", "updated_at"}
	for _, c := range []string{"status", "entry_valid", "created_at", "pinned_at", "archived_at"} {
		columns = append(columns, selected(has, c))
	}
	owned := true
	ownerColumns := []string{"owner_actor_type", "owner_actor_id", "owner_assigned_by_type", "owner_assigned_by_id", "owner_assigned_at"}
	for _, c := range ownerColumns {
		owned = owned && has[c]
		columns = append(columns, selected(has, c))
	}
	r := reader{l: l, o: o, people: people, sizes: sizes, owned: owned, era: db.schema.Era}
	// SQLite fetches rows on this thread while another one reads them.
	batches, done := make(chan []sqlfile.Row, 4), make(chan struct{})
	go func() {
		defer close(done)
		for batch := range batches {
			for i := range batch {
				r.take(&batch[i])
			}
		}
	}()
	var batch []sqlfile.Row
	// Not by the index of the key: it may be damaged, and would then leave out rows without a word.
	err = db.tx.Each("SELECT "+strings.Join(columns, ", ")+" FROM "+db.table()+" NOT INDEXED", func(r *sqlfile.Row) error {
		if batch = append(batch, r.Clone()); len(batch) == 64 {
			batches <- batch
			batch = make([]sqlfile.Row, 0, 64)
		}
		return nil
	})
	batches <- batch
	close(batches)
	<-done
	if err != nil {
		return nil, err
	}
	l.Rows = byKey(l.Rows)
	slices.SortStableFunc(l.Skipped, func(a, b row.Skipped) int { return strings.Compare(a.Key, b.Key) })
	return l, nil
}

// byKey sorts rows; they are large, so each is moved but once.
func byKey(rows []Row) []Row {
	type place struct {
		key string
		at  int
	}
	order := make([]place, len(rows))
	for i := range rows {
		order[i] = place{rows[i].Key, i}
	}
	slices.SortFunc(order, func(a, b place) int { return strings.Compare(a.key, b.key) })
	sorted := make([]Row, len(rows))
	for i, o := range order {
		sorted[i] = rows[o.at]
	}
	return sorted
}

// reader makes the rows of a listing from those of the table.
type reader struct {
	l      *Listing
	o      Options
	people map[string][]Participant
	sizes  map[string]Size
	owned  bool // the table has columns for the owner
	era    Era

	index row.Indexer
	room  []byte // for the entries, which are kept in large pieces
}

func (x *reader) take(r *sqlfile.Row) {
	key, text := r.Text(0), r.Bytes(2)
	skip := func(reason string) { x.l.Skipped = append(x.l.Skipped, row.Skipped{Key: key, Reason: reason}) }
	if isInternal(key) {
		x.l.Hidden++
		return
	}
	if string(text) == "{}" {
		skip("it was removed; only its history is kept")
		return
	}
	c := span.Cursor{B: text}
	e, err := x.index.Index(key, &c)
	if err == nil {
		err = span.End(text, c.At)
	}
	if err != nil {
		skip("its JSON is damaged: " + err.Error())
		return
	}
	e.At = 0
	if !x.o.Whole {
		e, x.room = e.Without(x.room, row.SkillsSnapshot, row.SystemPromptReport)
	}
	updated, ok := r.Int(3)
	if why := unreadable(&e, r.Text(1), float64(updated), ok); why != "" {
		skip(why)
		return
	}
	out := Row{Entry: e, Columns: Columns{SessionID: r.Text(1), Status: r.Text(4), Valid: 1, Bytes: int64(len(text)), Participants: x.people[key]}}
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
	x.l.Rows = append(x.l.Rows, out)
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
