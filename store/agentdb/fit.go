package agentdb

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oc/store/sqlfile"
)

// ErrUnfit is the answer for a database that oc reads and does not change: its tables are not exactly those of a release that oc knows.
var ErrUnfit = errors.New("it is not exactly as a release makes it that oc knows to change")

// What the releases make: a line for each column (table, name, type, 1 for NOT NULL, default, place in the primary key), one for each virtual
// table and one for each trigger (2026.8.2 and 2026.9.6).
var (
	//go:embed known/19.txt
	known19 string
	//go:embed known/23.txt
	known23 string
)

// Tables without which there is nothing to change; OpenClaw makes others when it first needs them.
var needed = []string{
	"schema_meta", "session_nodes", "session_windows", "transcript_events", "transcript_event_identities", "session_transcript_index_state",
	"session_transcript_active_events", "session_transcript_fts", "transcript_rewrite_watermarks",
}

// Fit says whether the database may be changed: its schema is 19 or 23, its tables, columns and triggers are those of the release, and what was
// added is what OpenClaw may add without a new version, tables and columns that may be empty (spec/sqlite-store.md 1.2). agent is whose it
// must be, "" for anybody's. The error is ErrUnfit with the reason, or the file's.
func Fit(tx *sqlfile.Tx, agent string) error {
	unfit := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrUnfit, fmt.Sprintf(format, args...))
	}
	version, err := tx.UserVersion()
	if err != nil {
		return err
	}
	lines := map[int64]string{19: known19, 23: known23}[version]
	if lines == "" {
		return unfit("its schema is %d, and oc changes 19 (2026.8.2) and 23 (2026.9.6)", version)
	}
	var role, owner string
	var stamped int64
	err = tx.Each("SELECT role, agent_id, schema_version FROM schema_meta WHERE meta_key = 'primary'", func(r *sqlfile.Row) error {
		role, owner = r.Text(0), r.Text(1)
		stamped, _ = r.Int(2)
		return nil
	})
	switch {
	case err != nil:
		return err
	case role != "agent":
		return unfit("it says to be %q, and no agent's", role)
	case agent != "" && owner != agent:
		return unfit("it says to be of the agent %q, and not of %q", owner, agent)
	case stamped != version:
		return unfit("its two version stamps, %d and %d, differ", version, stamped)
	}
	want := map[string]map[string]string{}
	triggers, virtual := map[string]string{}, map[string]string{}
	for line := range strings.Lines(lines) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case len(f) == 3 && f[1] == "trigger":
			triggers[f[0]] = f[2]
		case len(f) == 3:
			virtual[f[0]] = f[2]
		default:
			if want[f[0]] == nil {
				want[f[0]] = map[string]string{}
			}
			want[f[0]][f[1]] = strings.Join(f[2:], "\t")
		}
	}
	have := map[string]map[string]string{}
	err = tx.Each(`SELECT m.name, i.name, i.type, i."notnull", i.dflt_value, i.pk, i.hidden
		FROM sqlite_master AS m JOIN pragma_table_xinfo(m.name) AS i WHERE m.type = 'table' AND m.rootpage > 0`, func(r *sqlfile.Row) error {
		notnull, _ := r.Int(3)
		pk, _ := r.Int(5)
		hidden, _ := r.Int(6)
		said := fmt.Sprintf("%s\t%d\t%s\t%d", r.Text(2), notnull, r.Text(4), pk)
		if hidden != 0 {
			said += "\thidden"
		}
		if have[r.Text(0)] == nil {
			have[r.Text(0)] = map[string]string{}
		}
		have[r.Text(0)][r.Text(1)] = said
		return nil
	})
	if err != nil {
		return err
	}
	for table, columns := range want {
		is := have[table]
		if is == nil {
			if slices.Contains(needed, table) {
				return unfit("it has no table %s", table)
			}
			continue
		}
		for name, said := range columns {
			if is[name] != said && !later[table+"."+name] {
				return unfit("its column %s.%s is another one", table, name)
			}
		}
		for name, said := range is {
			if _, ok := columns[name]; !ok && !slices.Contains([]string{"INTEGER", "INT", "TEXT", "BLOB", "REAL", "ANY"}, strings.TrimSuffix(said, "\t0\t\t0")) {
				return unfit("the column %s.%s was added", table, name)
			}
		}
	}
	return tx.Each("SELECT type, name, sql, tbl_name FROM sqlite_master WHERE type IN ('trigger', 'view') OR type = 'table' AND rootpage = 0", func(r *sqlfile.Row) error {
		said := strings.Join(strings.Fields(r.Text(2)), " ")
		switch kind, name := r.Text(0), r.Text(1); {
		case kind == "trigger" && triggers[name] != said && want[r.Text(3)] != nil && !strings.HasPrefix(r.Text(3), "memory_"): // that index is made when it is needed
			return unfit("its trigger %s is not known", name)
		case kind == "table" && virtual[name] != "" && virtual[name] != said:
			return unfit("its table %s is another one", name)
		}
		return nil
	})
}

// Columns that OpenClaw adds when it first needs them.
var later = map[string]bool{
	"session_nodes.legacy_acp_migration_json": true, "session_pending_inputs.consumed_event_id": true,
	"session_conversations.route_context_json": true, "session_transcript_active_events.context_eligible": true,
}

// Ties are the columns whose values tie the rows of a session together.
func Ties() []string { return []string{"session_key", "session_id", "current_session_id"} }

// Remade are the tables that OpenClaw makes anew of others: the search index.
func Remade() []string { return []string{"session_transcript_fts", "session_transcript_fts_rows"} }

// Stale is where it is noted that the search index and the active branch of a transcript must be made anew.
func Stale() sqlfile.Stale {
	return sqlfile.Stale{Table: "session_transcript_index_state", Key: "session_id", Column: "needs_rebuild"}
}
