package agentdb

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"oc/store/sqlfile"
)

// Event is one row of a transcript: what was a line of a file in the other era.
type Event struct {
	Seq       int64  // from 0, the header
	CreatedAt int64  // epoch milliseconds
	Line      []byte // its JSON, byte for byte as it was written, without a line break; valid as long as it is kept
	Damage    error  // why there is no Line; the rows around it are sound
}

// maxEvent is what OpenClaw compresses at most (spec/sqlite-store.md 2.5, release 2026.9.6).
const maxEvent = 4 << 20

// A batch is let go of only when it is known to be of the snapshot.
const batchBytes = 256 << 10

// ErrRewritten is the answer where a transcript was rewritten between two looks at it.
var ErrRewritten = errors.New("the transcript was rewritten while it was read; try again")

// Events calls f for every event of a window of the database at path, in the order of writing. Nothing is given twice,
// and nothing that is not of the snapshot, so f may write it out at once. Memory does not grow with the transcript. The
// errors are those of Read, ErrRewritten, a *ColdError or f's.
func Events(ctx context.Context, path, sessionID string, f func(Event) error) error {
	after, generation := int64(-1), ""
	return Read(ctx, path, func(db *DB) error {
		now, err := db.Generation(sessionID)
		if err != nil {
			return err
		}
		if after >= 0 && now != generation {
			return fmt.Errorf("session %s of %s: %w", sessionID, path, ErrRewritten)
		}
		generation = now
		return db.batches(func(give func(Event) error) error {
			return db.events(sessionID, after, give)
		}, func(e Event) error {
			after = e.Seq
			return f(e)
		})
	})
}

// Events calls f for every event of a window in the order of writing, from a cold archive if they are there. f may keep
// what it gets, but if the snapshot does not hold (see Read) it was given something void.
func (db *DB) Events(sessionID string, f func(Event) error) error {
	return db.events(sessionID, -1, f)
}

// Generation is the mark of a transcript's last rewrite; "" where there is none. Appending does not change it.
func (db *DB) Generation(sessionID string) (string, error) {
	has, err := db.tx.Columns("transcript_rewrite_watermarks")
	if err != nil || !has["session_id"] || !has["generation"] {
		return "", err
	}
	g, _, err := db.tx.Text("SELECT generation FROM transcript_rewrite_watermarks WHERE session_id = ?1", sessionID)
	return g, err
}

// batches holds back what from gives until the snapshot is known to hold.
func (db *DB) batches(from func(give func(Event) error) error, f func(Event) error) error {
	var held []Event
	size := 0
	flush := func() error {
		if err := db.tx.Still(); err != nil {
			return err
		}
		for i := range held {
			if err := f(held[i]); err != nil {
				return err
			}
		}
		clear(held)
		held, size = held[:0], 0
		return nil
	}
	err := from(func(e Event) error {
		held = append(held, e)
		if size += len(e.Line) + 64; size < batchBytes {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

func (db *DB) events(sessionID string, after int64, f func(Event) error) error {
	cold, err := db.Cold(sessionID)
	if err != nil {
		return err
	}
	if cold != nil {
		return db.coldEvents(cold, func(e Event) error {
			if e.Seq <= after {
				return nil
			}
			return f(e)
		})
	}
	return db.hot("WHERE session_id = ?1 AND seq > ?2 ORDER BY seq", f, sessionID, after)
}

// hot reads rows of the event table.
func (db *DB) hot(where string, f func(Event) error, args ...any) error {
	has, err := db.tx.Columns("transcript_events")
	if err != nil || len(has) == 0 {
		return err
	}
	if err := db.need("transcript_events", "session_id", "seq", "event_json"); err != nil {
		return err
	}
	query := "SELECT seq, event_json, " + selected(has, "created_at") + ", " + selected(has, "event_zstd") + ", " +
		selected(has, "event_utf8_bytes") + " FROM transcript_events " + where
	return db.tx.Each(query, func(r *sqlfile.Row) error {
		return f(readEvent(r, nil))
	}, args...)
}

// Seqs are the numbers of the events of a window that lie in the event table, ascending.
func (db *DB) Seqs(sessionID string) (all []int64, err error) {
	err = db.tx.Each("SELECT seq FROM transcript_events WHERE session_id = ?1 ORDER BY seq", func(r *sqlfile.Row) error {
		n, _ := r.Int(0)
		all = append(all, n)
		return nil
	}, sessionID)
	return all, err
}

// Event is one event of a window that lies in the event table. The error is its damage, or says that it is not there.
func (db *DB) Event(sessionID string, seq int64) (e Event, err error) {
	e.Damage = fmt.Errorf("event %d of session %s is not there", seq, sessionID)
	err = db.hot("WHERE session_id = ?1 AND seq = ?2", func(found Event) error {
		e = found
		return nil
	}, sessionID, seq)
	if err == nil {
		err = e.Damage
	}
	return e, err
}

// readEvent reads seq, event_json, created_at, event_zstd, event_utf8_bytes. A compressed line is put into room, if there
// is one, which grows as needed.
func readEvent(r *sqlfile.Row, room *[]byte) (e Event) {
	e.Seq, _ = r.Int(0)
	e.CreatedAt, _ = r.Int(2)
	switch {
	case !r.Null(1):
		e.Line = r.Bytes(1)
	case r.Null(3):
		e.Damage = errors.New("the row is empty")
	default:
		size, _ := r.Int(4)
		e.Line, e.Damage = expand(r.Bytes(3), size, room)
	}
	return e
}

// decoder serves as many at a time as there are processors.
var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxEvent))
})

// expand decodes a compressed event and holds it against its stated length.
func expand(frame []byte, size int64, room *[]byte) ([]byte, error) {
	d, err := decoder()
	if err != nil {
		return nil, err
	}
	if size < 1 || size > maxEvent {
		return nil, fmt.Errorf("the row is compressed and says that it has %d bytes", size)
	}
	var into []byte
	if room == nil {
		into = make([]byte, 0, size)
	} else if into = *room; int64(cap(into)) < size {
		into = make([]byte, 0, max(size, 64<<10))
		*room = into
	}
	line, err := d.DecodeAll(frame, into)
	if err != nil {
		return nil, fmt.Errorf("the row does not decompress: %w", err)
	}
	if int64(len(line)) != size {
		return nil, fmt.Errorf("the row has %d bytes, not %d as it says", len(line), size)
	}
	return line, nil
}
