package awareness

import (
	"strings"

	"oc/store/sqlfile"
)

// Cursor is that of one watcher and target, by their exact keys. It is one that does not exist if there is none.
func (s *Snapshot) Cursor(watcher, target string) (Cursor, error) {
	ok, err := s.need(cursors)
	if !ok {
		return Cursor{Watcher: watcher, Target: target}, err
	}
	return s.cursor(watcher, target)
}

func (s *Snapshot) cursor(watcher, target string) (Cursor, error) {
	c := Cursor{Watcher: watcher, Target: target}
	err := s.tx.Each(s.selectCursors()+` WHERE watcher_session_key = ?1 AND target_session_key = ?2`, func(r *sqlfile.Row) error {
		c = scanCursor(r)
		return nil
	}, watcher, target)
	return c, err
}

// selectCursors names the columns that this database has, in the order of scanCursor.
func (s *Snapshot) selectCursors() string {
	sql := `SELECT watcher_session_key, target_session_key, last_seen_sequence, notified_sequence, material_sequence, updated_at`
	for _, c := range []struct {
		has  bool
		name string
	}{{s.schema.Provenance, "provenance"}, {s.schema.Stores, "watcher_store_path"}} {
		if !c.has {
			c.name = "NULL"
		}
		sql += ", " + c.name
	}
	return sql + ` FROM ` + cursors
}

func scanCursor(r *sqlfile.Row) Cursor {
	c := Cursor{
		Watcher: text(r, 0), Target: text(r, 1), Exists: true, Seen: number(r, 2), Notified: number(r, 3), Material: number(r, 4),
		Ambient: text(r, 6) == ambientGroup, Store: text(r, 7),
	}
	var dated bool
	c.Updated, dated = r.Int(5)
	c.Undated = !dated
	return c
}

const (
	ambientGroup = "ambient-group"
	explicit     = "explicit"
	// sentinel begins the watcher of a row by which builds before schema 4 marked another row as ambient: behind it stands
	// that row's watcher in hexadecimal.
	sentinel = "ambient-group-watch:"
)

// put stores a cursor whole. Within the transaction nobody else can have changed it.
func (e *Edit) put(c Cursor) error {
	columns := "watcher_session_key, target_session_key, last_seen_sequence, notified_sequence, material_sequence, updated_at"
	values := []any{c.Watcher, c.Target, c.Seen, c.Notified, c.Material, c.Updated}
	if e.schema.Provenance {
		columns += ", provenance"
		if c.Ambient {
			values = append(values, ambientGroup)
		} else {
			values = append(values, explicit)
		}
	}
	if e.schema.Stores {
		columns += ", watcher_store_path"
		values = append(values, null(c.Store))
	}
	_, err := e.tx.Exec(`INSERT INTO `+cursors+` (`+columns+`) VALUES (?`+strings.Repeat(", ?", len(values)-1)+`)
		ON CONFLICT (watcher_session_key, target_session_key) DO UPDATE SET `+assign(columns), values...)
	return err
}

func assign(columns string) string {
	names := strings.Split(columns, ", ")
	for i, n := range names {
		names[i] = n + " = excluded." + n
	}
	return strings.Join(names[2:], ", ") // the first two are the key
}
