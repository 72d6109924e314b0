package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"oc/store/lock"
	"oc/store/span"
	"oc/store/sqlfile"
)

// Leased says who has a database of the state open, or keeps all of them closed for maintenance, as the shared state database tells it: nil
// where nobody does. A row of a process that is gone, or whose number another one has by now, says nothing; one of which that is not known is
// respected (spec/sqlite-store.md 4.1, releases 2026.8.2 and 2026.9.6). No row is no proof that nobody is there: ask [Owner] too. The error is
// ErrOwned with the holder, or that of the file.
func Leased(ctx context.Context, w Where, m lock.Machine, now time.Time) error {
	path := w.StateDB
	if path == "" {
		path = filepath.Join(w.StateDir, "state", "openclaw.sqlite")
	}
	var held error
	err := sqlfile.Read(ctx, path, func(tx *sqlfile.Tx) error {
		held = nil
		found := func(format string, args ...any) {
			if held == nil {
				held = fmt.Errorf("%s: %w: %s; try again when it is done", path, ErrOwned, fmt.Sprintf(format, args...))
			}
		}
		if has, err := tx.HasTable("agent_database_leases"); err != nil {
			return err
		} else if has {
			err := tx.Each("SELECT agent_id, path, owner_pid, owner_start_time FROM agent_database_leases", func(r *sqlfile.Row) error {
				pid, _ := r.Int(2)
				start, known := r.Int(3)
				p := m.Process(int(pid))
				if p.Life == lock.Gone && m.Nested(int(pid), uint64(max(0, start))) == 0 || known && p.Start != 0 && uint64(start) != p.Start {
					return nil
				}
				found("process %d has the database of agent %s open, %s", pid, r.Text(0), r.Text(1))
				return nil
			})
			if err != nil {
				return err
			}
		}
		has, err := tx.HasTable("state_leases")
		if err != nil || !has {
			return err
		}
		return tx.Each(`SELECT scope, owner, expires_at, payload_json FROM state_leases
			WHERE scope IN ('core:agent-database-maintenance', 'gateway-owner') AND lease_key = 'global'`, func(r *sqlfile.Row) error {
			if until, ok := r.Int(2); ok && until <= now.UnixMilli() {
				return nil
			}
			who := r.Text(1)
			if n, ok := span.Float(span.Member(span.Member(r.Bytes(3), "owner"), "pid")); ok {
				if p := m.Process(int(n)); p.Life == lock.Gone && m.Nested(int(n), 0) == 0 {
					return nil
				}
				who = fmt.Sprintf("process %.0f", n)
			}
			if r.Text(0) == "gateway-owner" {
				found("a gateway, %s, owns the state", who)
			} else {
				found("%s maintains its databases", who)
			}
			return nil
		})
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(held, err)
}
