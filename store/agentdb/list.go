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
	slices.SortFunc(l.Rows, func(a, b Row) int { return strings.Compare(a.Key, b.Key) })
	slices.SortStableFunc(l.Skipped, func(a, b row.Skipped) int { return strings.Compare(a.Key, b.Key) })
	return l, nil
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
	cut   cutter
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
	whole := int64(len(text))
	if !x.o.Whole {
		var err error
		if text, err = x.cut.cut(text); err != nil {
			skip("its JSON is damaged: " + err.Error())
			return
		}
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
	updated, ok := r.Int(3)
	if why := unreadable(&e, r.Text(1), float64(updated), ok); why != "" {
		skip(why)
		return
	}
	out := Row{Entry: e, Columns: Columns{SessionID: r.Text(1), Status: r.Text(4), Valid: 1, Bytes: whole, Participants: x.people[key]}}
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

// cutter takes the two large members out of entries and keeps what remains in large pieces.
type cutter struct{ free []byte }

func (c *cutter) cut(text []byte) ([]byte, error) {
	var spans [][2]int
	end, err := span.Each(text, 0, func(key, val []byte) error {
		if span.Is(key, "skillsSnapshot") || span.Is(key, "systemPromptReport") {
			spans = append(spans, [2]int{span.At(text, key), span.At(text, val) + len(val)})
		}
		return nil
	})
	if err != nil {
		if span.Valid(text) == nil { // valid, but no object
			return text, nil
		}
		return nil, err
	}
	if err := span.End(text, end); err != nil {
		return nil, err
	}
	if len(spans) == 0 {
		return text, nil // it is nobody else's: a copy would be one too many of a large row
	}
	rest := len(text)
	for _, s := range spans {
		rest -= s[1] - s[0]
	}
	if cap(c.free) < rest {
		c.free = make([]byte, 0, max(rest, 256<<10))
	}
	out := c.free[:0]
	from := 0
	for _, s := range spans {
		out = append(out, text[from:s[0]]...)
		from = s[1]
		if next := skipComma(text, from); next > from {
			from = next
		} else if n := lastComma(out); n >= 0 { // it was the last member: the comma in front goes with it
			out = out[:n]
		}
	}
	out = append(out, text[from:]...)
	c.free = out[len(out):cap(out)]
	return out[:len(out):len(out)], nil
}

func skipComma(b []byte, at int) int {
	for i := at; i < len(b); i++ {
		switch b[i] {
		case ' ', '\t', '\n', '\r':
		case ',':
			return i + 1
		default:
			return at
		}
	}
	return at
}

func lastComma(b []byte) int {
	for i := len(b) - 1; i >= 0; i-- {
		switch b[i] {
		case ' ', '\t', '\n', '\r':
		case ',':
			return i
		default:
			return -1
		}
	}
	return -1
}
