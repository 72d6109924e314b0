package awareness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"oc/store/sqlfile"
)

// ErrQuarantined is a change to a database that OpenClaw has found damaged and refuses to open.
var ErrQuarantined = errors.New("OpenClaw has put it in quarantine")

// Quarantine is why OpenClaw refuses to open a state database; empty if it does not, or if that cannot be known
// (spec/sqlite-store.md, quarantined_databases, release 2026.9.6). Such a database may still be read, with that label. A
// mark can be older than a repair: OpenClaw takes it off when its doctor has run.
func Quarantine(ctx context.Context, path string) (reason string, err error) {
	store := filepath.Join(filepath.Dir(path), "openclaw-quarantine.sqlite")
	names := []string{path, path}
	if abs, err := filepath.Abs(path); err == nil {
		names[0] = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		names[1] = real
	}
	err = sqlfile.Read(ctx, store, func(tx *sqlfile.Tx) error {
		reason = ""
		cols, err := tx.Columns("quarantined_databases")
		if err != nil || !cols["path"] || !cols["reason"] {
			return err
		}
		return tx.Each(`SELECT reason FROM quarantined_databases WHERE path IN (?1, ?2) LIMIT 1`, func(r *sqlfile.Row) error {
			if reason = text(r, 0); reason == "" {
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
