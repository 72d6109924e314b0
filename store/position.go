package store

import (
	"context"
	"crypto/sha256"
	"encoding/base64"

	"oc/config"
	"oc/store/agentdb"
	"oc/store/span"
)

// Later tells whether the row is one of release 2026.9.6, whose history says
// where messages stood, who sent them and what waits to become one.
func (r *Row) Later() bool { return r.sessions.release() == config.Release96 }

// Source is what OpenClaw's clients know the transcript in a window by: it is
// another one after each rewrite. "" where there is none: in files, archives,
// and the databases of older releases.
func (r *Row) Source(ctx context.Context, c *Conversation) string {
	if c.kept != inWindow || !r.Later() {
		return ""
	}
	generation := ""
	err := agentdb.Read(ctx, c.Path, func(db *agentdb.DB) (err error) {
		generation, err = db.Generation(c.ID)
		return err
	})
	if err != nil || generation == "" {
		return ""
	}
	parts := []byte{'['}
	for i, s := range []string{"sqlite", c.Path, r.sessions.Agent, c.ID, generation} {
		if i > 0 {
			parts = append(parts, ',')
		}
		parts = span.Quote(parts, s)
	}
	sum := sha256.Sum256(append(parts, ']'))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Pending are the inputs that wait to become messages of the session, the newest
// limit of them, the oldest first, and how many there are. known is false where
// the store does not keep them.
func (r *Row) Pending(ctx context.Context, limit int) (list []agentdb.Pending, total int, known bool, err error) {
	if r.sessions.Era != SQLiteEra {
		return nil, 0, false, nil
	}
	err = agentdb.Read(ctx, r.sessions.Path, func(db *agentdb.DB) (err error) {
		list, total, known, err = db.Pending(r.Key, r.Columns.SessionID, limit)
		return err
	})
	return list, total, known, err
}
