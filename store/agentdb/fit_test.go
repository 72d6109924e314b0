package agentdb

import (
	"context"
	"errors"
	"strings"
	"testing"

	"oc/store/sqlfile"
)

func fit(t *testing.T, path, agent string) error {
	t.Helper()
	return sqlfile.Read(context.Background(), path, func(tx *sqlfile.Tx) error { return Fit(tx, agent) })
}

// What the two releases make may be changed, with what they may add; everything else is refused with the reason.
func TestFit(t *testing.T) {
	for _, release := range []string{"migrated-19", "migrated-23", "gateway-main"} {
		for name, c := range map[string]struct{ sql, why string }{
			"as made":         {"", ""},
			"column added":    {"ALTER TABLE session_nodes ADD COLUMN later TEXT", ""},
			"table added":     {"CREATE TABLE later (a TEXT NOT NULL) STRICT", ""},
			"index added":     {"CREATE INDEX later ON session_nodes(category)", ""},
			"newer":           {"PRAGMA user_version = 24", "schema is 24"},
			"older":           {"PRAGMA user_version = 22", "schema is 22"},
			"stamps differ":   {"UPDATE schema_meta SET schema_version = 18", "differ"},
			"state's":         {"UPDATE schema_meta SET role = 'global'", "no agent's"},
			"another agent's": {"UPDATE schema_meta SET agent_id = 'eve'", "eve"},
			"column with a default": {
				"ALTER TABLE session_nodes ADD COLUMN later TEXT DEFAULT 'x'", "session_nodes.later",
			},
			"column generated": {"ALTER TABLE session_nodes ADD COLUMN later TEXT AS (label)", "session_nodes.later"},
			"column gone":      {"ALTER TABLE session_nodes DROP COLUMN category", "session_nodes.category"},
			"table gone":       {"DROP TABLE session_transcript_index_state", "session_transcript_index_state"},
			"trigger added":    {"CREATE TRIGGER later AFTER DELETE ON session_nodes BEGIN SELECT 1; END", "trigger later"},
			"trigger altered": {
				"DROP TRIGGER session_nodes_entry_valid_after_insert; CREATE TRIGGER session_nodes_entry_valid_after_insert AFTER INSERT ON session_nodes BEGIN SELECT 1; END",
				"session_nodes_entry_valid_after_insert",
			},
		} {
			path := sample(t, release)
			if c.sql != "" {
				change(t, path, strings.Split(c.sql, "; CREATE")[0])
				if _, rest, ok := strings.Cut(c.sql, "; CREATE"); ok {
					change(t, path, "CREATE"+rest)
				}
			}
			err := fit(t, path, "main")
			switch {
			case c.why == "" && err != nil:
				t.Errorf("%s, %s: %v", release, name, err)
			case c.why != "" && (!errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), c.why)):
				t.Errorf("%s, %s: %v", release, name, err)
			}
		}
	}
}
