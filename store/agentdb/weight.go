package agentdb

import (
	"cmp"
	"slices"

	"oc/store/span"
	"oc/store/sqlfile"
)

// A Load is what one session has in the database, in bytes of content: pages and compression are left out of it. What two
// sessions share is counted once.
type Load struct {
	Key         string // "" for what belongs to no session any more
	Transcripts int    // windows, the current one included
	Events      int64
	Transcript  int64 // bytes of the events as JSON lines, cold ones included
	Trajectory  int64 // bytes of what its runs left beside it
	Row         int64 // bytes of its JSON
	Archived    int64 // bytes of archived transcripts, as stored
	Fields      []Field
}

// Bytes is all of it.
func (l *Load) Bytes() int64 { return l.Transcript + l.Trajectory + l.Row + l.Archived }

// A Field is a member of rows: how many have it, and what it takes with its name.
type Field struct {
	Name  string
	Count int
	Bytes int64
}

// A Weight is where the bytes of the sessions are.
type Weight struct {
	Sessions int // rows, those of which only the history is kept left out
	Archived int // of them, archived in place
	Kept     int // rows of which only the history is kept
	Damaged  int // rows whose JSON cannot be read
	Windows  int // transcripts
	Events   int64
	Archives int // archived transcripts that are kept in the database
	Waiting  int // of them, those that are no file yet
	Cold     int // transcripts that were moved out
	Largest  []Load
	Fields   []Field // of all rows, the largest first
}

// Weigh adds up what the sessions have, and lists so many of the largest. It looks at every event's length and not at
// its content.
func (db *DB) Weigh(largest int) (*Weight, error) {
	w := &Weight{}
	loads := map[string]*Load{}
	of := func(key string) *Load {
		l := loads[key]
		if l == nil {
			l = &Load{Key: key}
			loads[key] = l
		}
		return l
	}
	current, err := db.weighRows(w, of)
	if err != nil {
		return nil, err
	}
	owner := current // of a window: the session that has it, which is not always the only one that uses it
	if has, err := db.tx.Columns(db.windows()); err != nil {
		return nil, err
	} else if has["session_id"] && has["session_key"] {
		err := db.tx.Each("SELECT session_id, session_key FROM "+db.windows(), func(r *sqlfile.Row) error {
			if key := r.Text(1); owner[r.Text(0)] == "" || loads[key] != nil {
				owner[r.Text(0)] = key
			}
			w.Windows++
			of(owner[r.Text(0)]).Transcripts++
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if err := db.weighEvents(w, func(id string) *Load { return of(owner[id]) }); err != nil {
		return nil, err
	}
	if err := db.weighArchives(w, of); err != nil {
		return nil, err
	}
	for _, l := range loads {
		if l.Bytes() > 0 {
			w.Largest = append(w.Largest, *l)
		}
	}
	slices.SortFunc(w.Largest, func(a, b Load) int { return cmp.Or(cmp.Compare(b.Bytes(), a.Bytes()), cmp.Compare(a.Key, b.Key)) })
	w.Largest = w.Largest[:min(len(w.Largest), largest)]
	for i := range w.Largest {
		if err := db.fieldsOf(&w.Largest[i]); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// weighRows adds up the JSON of the rows, and says which session has which window as its current one.
func (db *DB) weighRows(w *Weight, of func(key string) *Load) (current map[string]string, err error) {
	current = map[string]string{}
	has, err := db.tx.Columns(db.table())
	if err != nil {
		return nil, err
	}
	fields := map[string]*Field{}
	err = db.tx.Each("SELECT session_key, "+db.idColumn()+", entry_json, "+selected(has, "archived_at")+" FROM "+db.table()+" NOT INDEXED", func(r *sqlfile.Row) error {
		key, text := r.Text(0), r.Bytes(2)
		of(key).Row += int64(len(text))
		if _, taken := current[r.Text(1)]; !taken {
			current[r.Text(1)] = key
		}
		if string(text) == "{}" {
			w.Kept++
			return nil
		}
		w.Sessions++
		if !r.Null(3) {
			w.Archived++
		}
		if !members(text, fields) {
			w.Damaged++
		}
		return nil
	})
	w.Fields = listed(fields)
	return current, err
}

// members adds up the members of an object; false where it is none.
func members(text []byte, fields map[string]*Field) bool {
	if span.KindOf(text) != span.Object {
		return false
	}
	at, err := span.Each(text, 0, func(key, val []byte) error {
		f := fields[string(key)]
		if f == nil {
			name, _ := span.Text(key)
			f = &Field{Name: name}
			fields[string(key)] = f
		}
		f.Count++
		f.Bytes += int64(len(key) + len(val) + 2)
		return nil
	})
	return err == nil && span.End(text, at) == nil
}

func listed(fields map[string]*Field) []Field {
	all := make([]Field, 0, len(fields))
	for _, f := range fields {
		all = append(all, *f)
	}
	slices.SortFunc(all, func(a, b Field) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name)) })
	return all
}

// fieldsOf reads what the row of a session consists of, once it is known to be one of the largest.
func (db *DB) fieldsOf(l *Load) error {
	return db.tx.Each("SELECT entry_json FROM "+db.table()+" WHERE session_key = ?1", func(r *sqlfile.Row) error {
		fields := map[string]*Field{}
		members(r.Bytes(0), fields)
		l.Fields = listed(fields)
		return nil
	}, l.Key)
}

func (db *DB) weighEvents(w *Weight, of func(id string) *Load) error {
	bytes, err := db.eventBytes()
	if err != nil {
		return err
	}
	if has, err := db.tx.HasTable("transcript_events"); err != nil {
		return err
	} else if has {
		err := db.tx.Each("SELECT session_id, count(*), sum("+bytes+") + count(*) FROM transcript_events GROUP BY session_id", func(r *sqlfile.Row) error {
			l := of(r.Text(0))
			n, _ := r.Int(1)
			sum, _ := r.Int(2)
			l.Events, l.Transcript, w.Events = l.Events+n, l.Transcript+sum, w.Events+n
			return nil
		})
		if err != nil {
			return err
		}
	}
	cold, err := db.cold("", nil)
	if err != nil {
		return err
	}
	for _, c := range cold {
		l := of(c.SessionID)
		l.Events, l.Transcript, w.Events = l.Events+c.Events, l.Transcript+c.RawBytes+1, w.Events+c.Events
	}
	w.Cold = len(cold)
	for _, table := range []string{"trajectory_runtime_events", "acp_parent_stream_events"} {
		has, err := db.tx.Columns(table)
		if err != nil {
			return err
		}
		if !has["session_id"] || !has["event_json"] {
			continue
		}
		err = db.tx.Each("SELECT session_id, sum("+eventBytes+") FROM "+table+" GROUP BY session_id", func(r *sqlfile.Row) error {
			sum, _ := r.Int(1)
			of(r.Text(0)).Trajectory += sum
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (db *DB) weighArchives(w *Weight, of func(key string) *Load) error {
	const table = "session_transcript_archives"
	has, err := db.tx.Columns(table)
	if err != nil || !has["session_key"] || !has["archive_blob"] {
		return err
	}
	return db.tx.Each("SELECT session_key, octet_length(archive_blob), "+selected(has, "published_at")+" FROM "+table, func(r *sqlfile.Row) error {
		n, _ := r.Int(1)
		of(r.Text(0)).Archived += n
		if w.Archives++; r.Null(2) {
			w.Waiting++
		}
		return nil
	})
}
