package gateway

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oc/fixtures"
	"oc/store/lock"
)

type leaseMachine struct{ lock.Machine }

func (leaseMachine) Process(pid int) lock.Process {
	switch pid {
	case 10:
		return lock.Process{PID: pid, Life: lock.Alive, Start: 777}
	case 11:
		return lock.Process{PID: pid, Life: lock.Dark}
	}
	return lock.Process{PID: pid, Life: lock.Gone}
}

func (leaseMachine) Nested(int, uint64) int { return 0 }

// A process that lives, or may, holds; one that is gone, or another of its number, does not.
func TestLeased(t *testing.T) {
	now := time.UnixMilli(1796037900000)
	for _, c := range []struct{ sql, holder string }{
		{"", ""},
		{"INSERT INTO agent_database_leases VALUES ('l', 'main', '/d', 10, 777, 1)", "process 10"},
		{"INSERT INTO agent_database_leases VALUES ('l', 'main', '/d', 10, NULL, 1)", "process 10"},
		{"INSERT INTO agent_database_leases VALUES ('l', 'main', '/d', 10, 778, 1)", ""},
		{"INSERT INTO agent_database_leases VALUES ('l', 'main', '/d', 11, 5, 1)", "process 11"},
		{"INSERT INTO agent_database_leases VALUES ('l', 'main', '/d', 12, 5, 1)", ""},
		{"INSERT INTO state_leases VALUES ('core:agent-database-maintenance', 'global', 'doctor-1', 1796037900001, 1, NULL, 1, 1)", "doctor-1"},
		{"INSERT INTO state_leases VALUES ('core:agent-database-maintenance', 'global', 'doctor-1', 1796037900000, 1, NULL, 1, 1)", ""},
		{`INSERT INTO state_leases VALUES ('gateway-owner', 'global', 'g', 1796037999999, 1, '{"owner":{"pid":10}}', 1, 1)`, "process 10"},
		{`INSERT INTO state_leases VALUES ('gateway-owner', 'global', 'g', 1796037999999, 1, '{"owner":{"pid":12}}', 1, 1)`, ""},
	} {
		path := filepath.Join(t.TempDir(), "openclaw.sqlite")
		if err := os.WriteFile(path, nil, 0o600); err != nil { // SQLite takes it for an empty database
			t.Fatal(err)
		}
		statements := []string{
			"CREATE TABLE state_leases (scope TEXT NOT NULL, lease_key TEXT NOT NULL, owner TEXT NOT NULL, expires_at INTEGER, heartbeat_at INTEGER, payload_json TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, PRIMARY KEY (scope, lease_key)) STRICT",
			"CREATE TABLE agent_database_leases (lease_id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, path TEXT NOT NULL, owner_pid INTEGER NOT NULL, owner_start_time INTEGER, opened_at INTEGER NOT NULL) STRICT",
		}
		if c.sql != "" {
			statements = append(statements, c.sql)
		}
		if err := fixtures.Alter(path, statements...); err != nil {
			t.Fatal(err)
		}
		err := Leased(context.Background(), Where{StateDB: path}, leaseMachine{}, now)
		if c.holder == "" && err != nil || c.holder != "" && (!errors.Is(err, ErrOwned) || !strings.Contains(err.Error(), c.holder)) {
			t.Errorf("%s: %v", c.sql, err)
		}
	}
	if err := Leased(context.Background(), Where{StateDir: t.TempDir()}, leaseMachine{}, now); err != nil {
		t.Errorf("no state database: %v", err)
	}
}
