package awareness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"oc/store/sqlfile"
)

// World is what the log cannot know by itself. Its functions may be nil; what is not known is not guessed.
type World struct {
	// Store is the physical path of the agent database that a watcher's session is in; empty if it is not known.
	Store func(watcher string) string
	// Exists says whether a session has an entry.
	Exists func(key string) (exists, known bool)
}

func (w World) store(watcher string) string {
	if w.Store == nil {
		return ""
	}
	return w.Store(watcher)
}

func (w World) exists(key string) (exists, known bool) {
	if w.Exists == nil {
		return false, false
	}
	return w.Exists(key)
}

// Options are those of a change.
type Options struct {
	Now   int64         // ms since 1970
	Wait  time.Duration // how long to wait for another writer
	World World
}

// Edit is one immediate transaction on the state database. It reads what it has written.
type Edit struct {
	Snapshot
	now   int64
	world World
}

// Update calls f with one immediate transaction on an existing database and commits if f returns nil. It makes and alters
// no table. While f runs nobody else can write: f does nothing slow, and asks World only for what it has at hand.
//
// Errors are those of [sqlfile.Write] (errors.Is: [sqlfile.ErrBusy]), a [*SchemaError] where there is no log
// ([ErrNone]), where it is of a version that oc does not write ([ErrNewer]), is not as it should be ([ErrSchema]) or in
// quarantine ([ErrQuarantined]), or f's own.
func Update(ctx context.Context, path string, o Options, f func(e *Edit) error) error {
	// A mark that cannot be read keeps nobody from writing to a database that can be.
	if why, err := Quarantine(ctx, path); err == nil && why != "" {
		return &SchemaError{path, why + "; run openclaw doctor first", ErrQuarantined}
	}
	err := sqlfile.Write(ctx, path, o.Wait, func(tx *sqlfile.Tx) error {
		e := &Edit{Snapshot: Snapshot{tx: tx, path: path}, now: o.Now, world: o.World}
		if err := e.writable(); err != nil {
			return err
		}
		return f(e)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return &SchemaError{path, "the file does not exist; OpenClaw makes it when it starts", ErrNone}
	}
	return err
}

func (e *Edit) writable() error {
	if err := e.check(); err != nil {
		return err
	}
	if e.schema.None {
		return &SchemaError{e.path, "it has no tables of a signal log; OpenClaw makes them when it starts", ErrNone}
	}
	if e.schema.Newer || e.schema.Version < oldest {
		return &SchemaError{e.path, fmt.Sprintf("version %d, oc writes %d to %d; use the OpenClaw that made it, or a newer oc", e.schema.Version, oldest, newest), ErrNewer}
	}
	if !e.global {
		return &SchemaError{e.path, "it does not say that it is the shared state database (schema_meta)", ErrSchema}
	}
	_, err := e.need(events, heads, cursors)
	return err
}

// owner is the store that an event or a registration is to be compared with: none where cursors do not say theirs.
func (e *Edit) owner(watcher string) string {
	if !e.schema.Stores {
		return ""
	}
	return e.world.store(watcher)
}
