package sqlfile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// Restoring says how rows come back.
type Restoring struct {
	// Derived are tables whose rows others can be made from anew. Where one of theirs cannot come back, because its number is in use, it is
	// left, and Stale is marked for what it is tied to.
	Derived []string
	Stale   Stale
}

// Stale is where it is noted that something must be made anew: Column becomes 1 in the rows of Table that have the tie in Key. Of is a table of
// which no row is taken back without that; "" where what is made of its rows is taken back with them.
type Stale struct {
	Table  string `json:"table"`
	Key    string `json:"key"`
	Column string `json:"column"`
	Of     string `json:"of,omitempty"`
}

// Restored is what came back, in rows.
type Restored struct {
	Back    int64
	Already int64 // were as before
	Held    int64 // stay as they are, because they, or what they are tied to, were changed since

	Conflicts []Conflict      // why, the first hundred
	Ties      map[string]bool // of what was held
	Stale     map[string]bool // ties that were marked
}

// A Conflict is a row that is not as the transaction left it.
type Conflict struct {
	Row  string // table and key
	Why  string
	Ties []string
}

const maxConflicts = 100

// Restore takes a transaction back, in one transaction: every row of it that is as it left it becomes as it was, with its rowid where that is
// free, and full-text tables follow. A row that is not so stays, with all that is tied to it. Triggers and foreign keys rest meanwhile, since
// what they did is among the rows; references are checked at the end. Doing it again changes nothing.
//
// Errors are those of [Write], ErrOther where the schema is another one, and ErrDamaged.
func (s *Saved) Restore(ctx context.Context, path string, wait time.Duration, how Restoring) (done Restored, err error) {
	err = write(ctx, path, wait, restorePragmas, func(tx *Tx) error {
		if err := s.fits(tx); err != nil {
			return err
		}
		b := &restore{s: s, tx: tx, how: how}
		if err := b.compare(); err != nil {
			return err
		}
		if err := b.rest(); err != nil {
			return err
		}
		for {
			again, err := b.put()
			if err != nil {
				return err
			}
			if !again {
				done = b.report()
				return nil
			}
		}
	})
	return done, err
}

// Rehearse says what Restore would do, as far as can be seen without doing it.
func (s *Saved) Rehearse(ctx context.Context, path string, how Restoring) (done Restored, err error) {
	err = Read(ctx, path, func(tx *Tx) error {
		if err := s.fits(tx); err != nil {
			return err
		}
		b := &restore{s: s, tx: tx, how: how}
		if err := b.compare(); err != nil {
			return err
		}
		done = b.report()
		return nil
	})
	return done, err
}

const restorePragmas = "_pragma=synchronous(FULL)&_pragma=foreign_keys(0)&_pragma=trusted_schema(0)"

// What is known of a row that was there.
const (
	isReady    byte = iota // it can come back
	isAlready              // it is back
	isConflict             // it was changed since
	isLeft                 // derived, and its number is in use
)

type restore struct {
	s      *Saved
	tx     *Tx
	how    Restoring
	after  map[string]*left
	states []byte // of the rows that were there, in order
	ties   ties
	clash  []Conflict
	clashs int64
	stale  map[string]bool
	count  Restored
	undone bool            // rows that were not there before went: what refers to them may be in any table
	wrote  map[string]bool // tables into which rows came back
}

// compare holds every row against what the transaction left.
func (b *restore) compare() (err error) {
	if b.after, err = b.s.after(); err != nil {
		return err
	}
	b.ties.above, b.stale = map[string]string{}, map[string]bool{}
	var image []byte
	err = b.s.before(func(t *imaged, rowid int64, vals []any) error {
		key := t.key(rowid, vals)
		ties := t.tied(vals)
		b.ties.tie(ties)
		at, now, found, err := t.find(b.tx, key)
		if err != nil {
			return err
		}
		l := b.after[t.id(key)]
		if l != nil {
			l.matched = true
			b.ties.tie(append(slices.Clone(ties), l.ties...))
		}
		state := isConflict
		if found {
			image = imageOf(image[:0], now)
			switch m := markOf(image); {
			case m == markOf(imageOf(nil, vals)) && (l == nil || at == rowid):
				state = isAlready
			case l != nil && m == l.mark:
				state, l.ready = isReady, true
			}
		} else if l == nil {
			state = isReady
		}
		if state == isConflict {
			if slices.Contains(b.how.Derived, t.named()) {
				state = isLeft
				for _, tie := range ties {
					b.stale[tie] = true
				}
			} else {
				why := "it was changed since"
				switch {
				case !found:
					why = "it is gone since"
				case l == nil:
					why = "there is another one since"
				}
				b.conflict(t, key, ties, why)
			}
		}
		b.states = append(b.states, state)
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(b.after)) {
		l := b.after[id]
		if l.matched {
			continue
		}
		b.ties.tie(l.ties)
		_, now, found, err := l.t.find(b.tx, l.key)
		if err != nil {
			return err
		}
		switch {
		case !found:
			l.gone = true
		case markOf(imageOf(nil, now)) == l.mark:
			l.ready = true
		case slices.Contains(b.how.Derived, l.t.named()): // another's by now
		default:
			b.conflict(l.t, l.key, l.ties, "it was changed since")
		}
	}
	return nil
}

func (t *imaged) named() string {
	if t.Virtual != "" {
		return t.Virtual
	}
	return t.Name
}

func (b *restore) conflict(t *imaged, key []any, ties []string, why string) {
	for _, tie := range ties {
		b.ties.hold(tie)
	}
	if b.clashs++; len(b.clash) < maxConflicts {
		b.clash = append(b.clash, Conflict{Row: t.said(key), Why: why, Ties: ties})
	}
}

// rest lets triggers rest. The driver tells its handle only to the hook of a change.
func (b *restore) rest() error {
	var h handle
	hooks := b.tx.conn.(sqlite.HookRegisterer)
	hooks.RegisterPreUpdateHook(func(d sqlite.SQLitePreUpdateData) { h = handleOf(&d) })
	_, err := b.tx.Exec("CREATE TEMP TABLE oc_handle (x)")
	if err == nil {
		_, err = b.tx.Exec("INSERT INTO temp.oc_handle VALUES (1)")
	}
	if err == nil {
		_, err = b.tx.Exec("DROP TABLE temp.oc_handle")
	}
	hooks.RegisterPreUpdateHook(nil)
	if err == nil && h.db == 0 {
		err = errors.New("the database driver tells nothing of changes")
	}
	if err != nil {
		return err
	}
	return b.tx.guard(func() error { return h.triggers(false) })
}

// put puts the rows back; again where one that could not be put back holds others that had been.
func (b *restore) put() (again bool, err error) {
	if _, err := b.tx.Exec("SAVEPOINT rows"); err != nil {
		return false, err
	}
	again, err = b.try()
	if err == nil && !again {
		again, err = b.refer()
	}
	if err != nil {
		return false, err
	}
	if again {
		_, err = b.tx.Exec("ROLLBACK TO rows")
	}
	if err == nil {
		_, err = b.tx.Exec("RELEASE rows")
	}
	return again, err
}

func (b *restore) try() (again bool, err error) {
	b.count = Restored{Held: b.clashs, Ties: map[string]bool{}}
	b.undone, b.wrote = false, map[string]bool{}
	// What the transaction wrote goes first, and makes room.
	for _, id := range slices.Sorted(maps.Keys(b.after)) {
		l := b.after[id]
		switch {
		case l.gone:
			b.count.Already++
		case !l.ready:
		case b.ties.held(l.ties):
			if !l.matched {
				b.count.Held++
			}
		default:
			if _, err := l.t.remove(b.tx, l.key); err != nil {
				return false, err
			}
			b.note(l.t, l.ties)
			if !l.matched {
				b.count.Back++
				b.undone = true
			}
		}
	}
	i := -1
	errAgain := errors.New("again")
	err = b.s.before(func(t *imaged, rowid int64, vals []any) error {
		i++
		switch {
		case b.states[i] == isAlready:
			b.count.Already++
			return nil
		case b.states[i] == isConflict || b.states[i] == isLeft:
			return nil // counted, or made anew
		}
		ties := t.tied(vals)
		if b.ties.held(ties) {
			b.count.Held++
			return nil
		}
		err := t.insert(b.tx, rowid, vals)
		if code(err)&0xff == lib.SQLITE_CONSTRAINT {
			switch {
			case slices.Contains(b.how.Derived, t.named()):
				b.states[i] = isLeft
				for _, tie := range ties {
					b.stale[tie] = true
				}
			default:
				b.states[i] = isConflict
				b.conflict(t, t.key(rowid, vals), ties, "another row is in its place")
			}
			return errAgain
		}
		b.count.Back++
		b.wrote[t.Name] = true
		b.note(t, ties)
		return err
	})
	if err == errAgain {
		return true, nil
	}
	return false, err
}

// note marks what is made of a row that is taken back.
func (b *restore) note(t *imaged, ties []string) {
	if t.Name != b.how.Stale.Of {
		return
	}
	for _, tie := range ties {
		b.stale[tie] = true
	}
}

// refer checks that no reference leads nowhere that led somewhere before, and notes what is to be made anew.
func (b *restore) refer() (again bool, err error) {
	type reference struct {
		table, parent string
		rowid, number int64
	}
	undone, wrote := b.undone, b.wrote
	check := func() (all []reference, err error) {
		take := func(r *Row) error {
			rowid, _ := r.Int(1)
			number, _ := r.Int(3)
			all = append(all, reference{r.Text(0), r.Text(2), rowid, number})
			return nil
		}
		if undone {
			err = b.tx.Each(`SELECT "table", rowid, parent, fkid FROM pragma_foreign_key_check`, take)
			return all, err
		}
		for _, name := range slices.Sorted(maps.Keys(wrote)) {
			err = errors.Join(err, b.tx.Each(`SELECT "table", rowid, parent, fkid FROM pragma_foreign_key_check(?1)`, take, name))
		}
		return all, err
	}
	if b.count.Back == 0 {
		return false, nil
	}
	now, err := check()
	if err != nil {
		return false, err
	}
	if len(now) > 0 {
		all, err := b.tx.tables(b.names())
		if err != nil {
			return false, err
		}
		var loose []func()
		for _, ref := range now {
			t := all[ref.table]
			if t == nil {
				continue
			}
			vals, found, err := t.at(b.tx, ref.rowid)
			if err != nil {
				return false, err
			}
			if found {
				key, ties := t.key(ref.rowid, vals), t.tied(vals)
				loose = append(loose, func() {
					if !b.ties.held(ties) {
						again = true
						b.conflict(t, key, ties, "what it refers to in "+ref.parent+" is gone")
					}
				})
			}
		}
		if _, err := b.tx.Exec("ROLLBACK TO rows"); err != nil {
			return false, err
		}
		was, err := check()
		if err != nil {
			return false, err
		}
		if len(was) < len(now) { // else they were loose before
			for _, f := range loose {
				f()
			}
			if !again {
				return false, &Error{Path: b.tx.path, Doing: "take back", Kind: ErrOther, Detail: fmt.Sprintf("%d references would lead nowhere", len(now)-len(was))}
			}
			return true, nil
		}
		if again, err := b.try(); again || err != nil {
			return again, err
		}
	}
	if s := b.how.Stale; len(b.stale) > 0 && s.Table != "" {
		cols, err := b.tx.Columns(s.Table)
		if err != nil || !cols[s.Key] || !cols[s.Column] {
			return false, err
		}
		for _, tie := range slices.Sorted(maps.Keys(b.stale)) {
			if _, err := b.tx.Exec("UPDATE "+quoted(s.Table)+" SET "+quoted(s.Column)+" = 1 WHERE "+quoted(s.Key)+" = ?1", tie); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// names are the columns that tie.
func (b *restore) names() []string {
	var names []string
	for _, t := range b.s.end.Tables {
		for _, c := range t.Ties {
			if t.Virtual == "" {
				names = append(names, t.Columns[c])
			}
		}
	}
	return names
}

func (b *restore) report() Restored {
	if b.count.Ties == nil { // rehearsed
		b.count = Restored{Held: b.clashs, Ties: map[string]bool{}}
		i := -1
		_ = b.s.before(func(t *imaged, _ int64, vals []any) error { // read before
			switch i++; {
			case b.states[i] == isAlready:
				b.count.Already++
			case b.states[i] == isConflict || b.states[i] == isLeft:
			case b.ties.held(t.tied(vals)):
				b.count.Held++
			default:
				b.count.Back++
			}
			return nil
		})
		for _, l := range b.after {
			switch {
			case l.gone:
				b.count.Already++
			case l.matched || !l.ready:
			case b.ties.held(l.ties):
				b.count.Held++
			default:
				b.count.Back++
			}
		}
	}
	b.count.Conflicts, b.count.Stale = b.clash, b.stale
	for tie := range b.ties.above {
		if b.ties.held([]string{tie}) {
			b.count.Ties[tie] = true
		}
	}
	return b.count
}

// ties says which texts belong together, and which of those sets are held.
type ties struct {
	above map[string]string
	kept  map[string]bool
}

func (t *ties) top(s string) string {
	for {
		up, ok := t.above[s]
		if !ok {
			t.above[s] = s
			return s
		}
		if up == s {
			return s
		}
		t.above[s] = t.above[up]
		s = up
	}
}

func (t *ties) tie(all []string) {
	for i, s := range all {
		a, b := t.top(all[0]), t.top(s)
		if i > 0 && a != b {
			t.above[b] = a
			if t.kept[b] {
				t.hold(a)
			}
		}
	}
}

func (t *ties) hold(s string) {
	if t.kept == nil {
		t.kept = map[string]bool{}
	}
	t.kept[t.top(s)] = true
}

func (t *ties) held(all []string) bool {
	for _, s := range all {
		if t.kept[t.top(s)] {
			return true
		}
	}
	return false
}
