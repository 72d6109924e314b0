package store

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"oc/config"
	"oc/store/row"
	"oc/store/span"
	"oc/store/sqlfile"
)

// ACP is what the shared state database knows of sessions that an agent of the
// Agent Client Protocol runs, by stored key (table acp_sessions).
type ACP map[string]acpSession

type acpSession struct {
	id      string // of the session it is bound to; any where anyID
	anyID   bool
	backend string
}

// StateDatabase is the database that all agents of a state share.
func StateDatabase(stateDir string) string {
	return filepath.Join(stateDir, "state", "openclaw.sqlite")
}

// ReadACP reads the table. A state without the database, or a database without
// the table, knows of none.
func ReadACP(ctx context.Context, stateDir string) (ACP, error) {
	all := ACP{}
	err := sqlfile.Read(ctx, StateDatabase(stateDir), func(tx *sqlfile.Tx) error {
		clear(all)
		if ok, err := tx.HasTable("acp_sessions"); err != nil || !ok {
			return err
		}
		return tx.Each("SELECT session_key, session_id, backend FROM acp_sessions", func(r *sqlfile.Row) error {
			all[r.Text(0)] = acpSession{r.Text(1), r.Null(1), r.Text(2)}
			return nil
		})
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return all, err
}

// find tells whether a row is bound to an ACP runtime, and by which backend.
func (a ACP) find(storedKey, id string) (backend string, ok bool) {
	s, ok := a[storedKey]
	if !ok || !s.anyID && s.id != id {
		return "", false
	}
	return s.backend, true
}

// isACP tells whether a key has the shape of an ACP session's.
func isACP(key string) bool {
	if strings.HasPrefix(span.Lower(span.Trim(key)), "acp:") {
		return true
	}
	_, rest, ok := row.Parse(key)
	return ok && strings.HasPrefix(span.Trim(rest), "acp:")
}

// StoredKey is the key under which a session of an agent is stored, whatever
// alias of it is given (spec/file-store.md 3.2, release 2026.7.35).
func StoredKey(c *config.Config, agent, key string) string {
	raw := span.Trim(key)
	low := span.Lower(raw)
	if raw == "" || low == "global" || low == "unknown" {
		return low
	}
	id, rest, ok := row.Parse(raw)
	if !ok {
		if raw = row.Canonical(raw); !strings.HasPrefix(raw, "agent:") {
			raw = "agent:" + row.AgentID(agent) + ":" + raw
		}
		if id, rest, ok = row.Parse(raw); !ok {
			return row.Canonical(raw)
		}
	}
	owner := row.AgentID(id)
	key = row.Canonical(raw)
	if _, configured := c.Agent("main"); owner == "main" && !configured && rest == "main" && row.AgentID(agent) == c.DefaultAgent() {
		owner = c.DefaultAgent()
		key = row.MainKey(owner)
	}
	if key == row.MainKey(owner) || key == "agent:main:main" {
		if c.Session().Scope == "global" {
			return "global"
		}
		return row.MainKey(owner)
	}
	return key
}
