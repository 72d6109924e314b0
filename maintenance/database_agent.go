package maintenance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"oc/maintenance/journal"
	"oc/store"
	"oc/store/lock"
	"oc/store/sqlfile"
)

// RemoveAgentDatabase is [RemoveAgent] for an agent whose sessions, of which keys are its own, are in a database. One that lies in the agent's
// directory goes as a file, with its log and all that is in it, and with the rows by which the state's shared database knows it: no gateway then
// looks for it. From one elsewhere the sessions are deleted as [DeleteFromDatabase] does it. state is the directory of the state
// (spec/sqlite-store.md 1.4 and 3.3, releases 2026.8.2 and 2026.9.6).
//
// The error is a *Denied, one that is journal.ErrRefused where the shared database has a newer schema, or one of the system.
func RemoveAgentDatabase(ctx context.Context, d *Database, keys []string, f *Folder, state string, m lock.Machine) (*Plan, []journal.Step, error) {
	d.names = map[string]int{}
	for i := range d.Files {
		if x := &d.Files[i]; filepath.Dir(x.Path) == filepath.Clean(d.Dir) {
			d.names[x.Base] = i
		}
	}
	if err := d.locks(m, d.Taken); err != nil {
		return nil, nil, err
	}
	x := &databaseDraft{draft: newDraft(Alone(keys...), d.Snapshot, d.Taken), d: d, total: -1}
	x.whole = len(f.dirs) > 0 && within(realPath(d.path), realDir(f.Dir))
	for _, key := range keys {
		i, err := d.index(key)
		if err != nil {
			return nil, nil, err
		}
		x.idle(i)
	}
	if x.calm(f); len(x.protected) > 0 {
		return x.finish(ctx)
	}
	for _, key := range keys {
		x.drop(d.byKey[key], ByHand, "its agent is deleted")
	}
	x.empty(f)
	p, steps, err := x.finish(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, a := range f.removal() {
		p.Actions = append(p.Actions, a)
		steps = append(steps, journal.Step{Kind: journal.RemoveDir, Phase: journal.Clear, Path: realPath(a.Target)})
	}
	if !x.whole {
		return p, steps, nil
	}
	row, err := unregister(ctx, state, f.Dir)
	if err == nil && row != nil {
		p.Actions = append(p.Actions, Action{Kind: SQL, Target: row.Path, Rule: ByHand, Reason: "what is gone is no longer registered", Applies: true, file: -1})
		steps = append([]journal.Step{*row}, steps...)
	}
	return p, steps, err
}

// ofDatabase says that a file is a database or stands beside it as a part of it.
func ofDatabase(file, database string) bool {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if SameStore(file, database+suffix) {
			return true
		}
	}
	return false
}

// registered are the rows of agents' databases in the one that they share.
const registered = "agent_databases"

// unregister is the step that takes the rows of the databases in a directory out of the one that all agents of a state share; nil where there
// are none.
func unregister(ctx context.Context, state, dir string) (*journal.Step, error) {
	shared := store.StateDatabase(state)
	known := 0
	err := sqlfile.Read(ctx, shared, func(tx *sqlfile.Tx) error {
		known = 0
		return eachRegistered(tx, state, dir, func(int64) error { known++; return nil })
	})
	if errors.Is(err, fs.ErrNotExist) || err == nil && known == 0 {
		return nil, nil
	}
	if err == nil {
		err = changeable(ctx, shared)
	}
	if err != nil {
		return nil, err
	}
	return &journal.Step{Kind: journal.Rows, Phase: journal.Swap, Path: realStore(shared), Rows: &journal.Table{Change: func(tx *sqlfile.Tx) error {
		var gone []int64
		if err := eachRegistered(tx, state, dir, func(row int64) error { gone = append(gone, row); return nil }); err != nil {
			return err
		}
		for _, row := range gone {
			if _, err := tx.Exec("DELETE FROM "+registered+" WHERE rowid = ?1", row); err != nil {
				return err
			}
		}
		return nil
	}}}, nil
}

// eachRegistered goes through the rows of the databases in a directory; paths in them start at the state, or are absolute.
func eachRegistered(tx *sqlfile.Tx, state, dir string, f func(row int64) error) error {
	has, err := tx.Columns(registered)
	if err != nil || !has["path"] {
		return err
	}
	return tx.Each("SELECT rowid, path FROM "+registered, func(r *sqlfile.Row) error {
		path := filepath.FromSlash(strings.TrimSpace(r.Text(1)))
		if !filepath.IsAbs(path) {
			path = filepath.Join(state, path)
		}
		if row, ok := r.Int(0); ok && within(realPath(path), realDir(dir)) {
			return f(row)
		}
		return nil
	})
}

// changeable refuses the shared database where it is of a newer release, or would change under another name.
func changeable(ctx context.Context, shared string) error {
	if err := ownName(shared); err != nil {
		return err
	}
	d, err := store.Stamps(ctx, shared)
	if err == nil && d.Newer {
		err = fmt.Errorf("%s: %w: it has schema %d, newer than oc knows; use a newer oc", shared, journal.ErrRefused, d.Schema)
	}
	return err
}
