package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"oc/store/sqlfile"
)

// Quarantine is why OpenClaw refuses to open a database; "" if it does not, or
// if that cannot be known (spec/sqlite-store.md 4.1, release 2026.9.6). Such a
// database may still be read, with that label. A mark can be older than a
// repair: OpenClaw takes it off when its doctor has run.
func Quarantine(ctx context.Context, stateDir, path string) (reason string, err error) {
	names := []string{path, path}
	if abs, err := filepath.Abs(path); err == nil {
		names[0] = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		names[1] = real
	}
	err = sqlfile.Read(ctx, filepath.Join(stateDir, "state", "openclaw-quarantine.sqlite"), func(tx *sqlfile.Tx) error {
		reason = ""
		cols, err := tx.Columns("quarantined_databases")
		if err != nil || !cols["path"] || !cols["reason"] {
			return err
		}
		return tx.Each(`SELECT reason FROM quarantined_databases WHERE path IN (?1, ?2) LIMIT 1`, func(r *sqlfile.Row) error {
			if reason = r.Text(0); reason == "" {
				reason = "no reason is given"
			}
			return nil
		}, names[0], names[1])
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("look for a quarantine mark: %w", err)
	}
	return reason, nil
}
