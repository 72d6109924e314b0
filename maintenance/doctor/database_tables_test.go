package doctor

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oc/fixtures"
	"oc/store/agentdb"
)

const (
	tableKey  = "agent:main:main"
	tableKey2 = "agent:main:explicit:second"
)

// tables is a state in the SQLite era: two sessions, one of them with an earlier conversation, and an archive.
func tables(t *testing.T) (dir, db string) {
	t.Helper()
	return tablesOf(t, 23)
}

// tablesOf is the same with one of the schemas that oc changes.
func tablesOf(t *testing.T, schema int) (dir, db string) {
	t.Helper()
	dir = t.TempDir()
	at := fixtures.Now - 2*fixtures.Day
	talk := func(id string) *fixtures.Transcript {
		return fixtures.Talk(id, at).Setup().User("Is the gate closed?").Assistant("Yes.")
	}
	a, b := talk(fixtures.IDOf(tableKey)), talk(fixtures.IDOf(tableKey2))
	s := fixtures.State{Agents: []fixtures.Agent{{
		ID: "main", Era: fixtures.SQLiteEra, Schema: schema,
		Sessions: []fixtures.Session{
			{Key: tableKey, Updated: a.Last(), Talk: a, Entry: `{"label":"Gate"}`},
			{Key: tableKey2, Updated: b.Last(), Talk: b, Past: []*fixtures.Transcript{talk(fixtures.IDOf("before"))}},
		},
		Archives: []fixtures.Archive{{Key: "agent:main:explicit:gone", Talk: talk(fixtures.IDOf("gone")), Reason: "deleted", At: at}},
	}}}
	if err := s.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir, fixtures.Database(dir, "main")
}

// set is a statement on a row that leaves it marked as sound, as OpenClaw's own writes do.
func set(key, what string) []string {
	return []string{
		"UPDATE session_nodes SET " + what + " WHERE session_key = '" + key + "'",
		"UPDATE session_nodes SET entry_valid = 1 WHERE session_key = '" + strings.Replace(key, "@", "", 1) + "'",
	}
}

// Each way in which tables contradict each other is found, where it is, and nothing else is.
func TestTables(t *testing.T) {
	id := fixtures.IDOf(tableKey)
	for _, c := range []struct {
		name  string
		sql   []string
		want  map[Code]int
		worst Severity
		key   string
		says  string
	}{
		{name: "sound", want: map[Code]int{EarlierWindows: 1}, worst: Info},
		{"doubted", []string{"UPDATE session_nodes SET entry_valid=-1 WHERE session_key='" + tableKey + "'"}, map[Code]int{Code(agentdb.RowDoubted): 1, EarlierWindows: 1}, Error, tableKey, "entry_valid is -1"},
		{"unverified", []string{"UPDATE session_nodes SET entry_valid=0"}, map[Code]int{Code(agentdb.RowUnverified): 2, EarlierWindows: 1}, Info, "", "entry_valid is 0"},
		{"label", set(tableKey, "label='Door'"), map[Code]int{Code(agentdb.ColumnsDiffer): 1, EarlierWindows: 1}, Warn, tableKey, `the column label holds "Door", the JSON says "Gate"`},
		{"archived", set(tableKey, "archived_at=5"), map[Code]int{Code(agentdb.ColumnsDiffer): 1, EarlierWindows: 1}, Warn, tableKey, `the column archived_at holds 5, the JSON says nothing`},
		{"lineage", set(tableKey, "spawned_by='agent:main:x'"), map[Code]int{Code(agentdb.LineageDiffers): 1, EarlierWindows: 1}, Error, tableKey, `spawned_by holds "agent:main:x"`},
		{
			"key", append([]string{"PRAGMA foreign_keys=OFF", "UPDATE session_windows SET session_key='agent:main:Explicit:Second' WHERE session_key='" + tableKey2 + "'"},
				"UPDATE session_nodes SET session_key='agent:main:Explicit:Second' WHERE session_key='"+tableKey2+"'"),
			map[Code]int{Code(agentdb.KeyNotCanonical): 1, EarlierWindows: 1},
			Error, "agent:main:Explicit:Second", "OpenClaw looks for agent:main:explicit:second",
		},
		{"no window", []string{"PRAGMA foreign_keys=ON", "DELETE FROM session_windows WHERE session_id='" + id + "'"}, map[Code]int{Code(agentdb.NoWindow): 1, EarlierWindows: 1, Code(agentdb.OrphanIndex): 1}, Warn, "", ""},
		{"no node", []string{"PRAGMA foreign_keys=OFF", "DELETE FROM session_nodes WHERE session_key='" + tableKey + "'"}, map[Code]int{Code(agentdb.NoNode): 1, EarlierWindows: 1}, Warn, tableKey, "no row has the key"},
		{
			"empty",
			[]string{"PRAGMA foreign_keys=ON", "DELETE FROM transcript_events WHERE session_id='" + id + "'", "DELETE FROM session_transcript_index_state WHERE session_id='" + id + "'", "DELETE FROM session_transcript_fts_rows WHERE session_id='" + id + "'"},
			map[Code]int{Code(agentdb.EmptyWindow): 1, EarlierWindows: 1},
			Info, "", "",
		},
		{
			"orphans",
			[]string{"PRAGMA foreign_keys=OFF", "INSERT INTO session_transcript_index_state(session_id,indexed_seq,updated_at) VALUES('nobody',3,1)", "INSERT INTO session_transcript_active_events(session_id,active_position,event_seq) VALUES('nobody',0,1),('nobody',1,2)"},
			map[Code]int{Code(agentdb.OrphanIndex): 2, EarlierWindows: 1},
			Info, "", "",
		},
		{"ahead", []string{"UPDATE session_transcript_index_state SET indexed_seq=99 WHERE session_id='" + id + "'"}, map[Code]int{Code(agentdb.BrokenIndex): 1, EarlierWindows: 1}, Warn, tableKey, "it reaches to event 99, and the last one is 4"},
		{"miscounted", []string{"DELETE FROM session_transcript_active_events WHERE session_id='" + id + "' AND event_seq=3"}, map[Code]int{Code(agentdb.BrokenIndex): 1, EarlierWindows: 1}, Warn, tableKey, "on the active branch, and lists"},
		{"lagging", []string{"UPDATE session_transcript_index_state SET needs_rebuild=1, indexed_seq=99"}, map[Code]int{EarlierWindows: 1}, Info, "", ""},
		{"archive", []string{"UPDATE session_transcript_archives SET archive_blob=x'00'"}, map[Code]int{Code(agentdb.DamagedArchive): 1, EarlierWindows: 1}, Error, "agent:main:explicit:gone", "is not what was archived"},
		{"waiting", []string{"UPDATE session_transcript_archives SET published_at=NULL"}, map[Code]int{Code(agentdb.WaitingArchive): 1, EarlierWindows: 1}, Info, "agent:main:explicit:gone", "in the database alone"},
		{
			"cold",
			[]string{fmt.Sprintf("INSERT INTO session_transcript_cold_archives VALUES('%s','g','%064x.jsonl.zst','%064x',5,100,50,4,1,'file',NULL)", id, 7, 7)},
			map[Code]int{Code(agentdb.LostCold): 1, EarlierWindows: 1},
			Error, tableKey, "the file is not there",
		},
		{"tombstone", []string{"UPDATE session_nodes SET entry_json='{}', label=NULL WHERE session_key='" + tableKey2 + "'", "UPDATE session_nodes SET entry_valid=-1 WHERE session_key='" + tableKey2 + "'"}, map[Code]int{EarlierWindows: 1}, Info, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, db := tables(t)
			if len(c.sql) > 0 {
				if err := fixtures.Alter(db, c.sql...); err != nil {
					t.Fatal(err)
				}
			}
			r := examine(t, dir, func(o *Options) { o.Only = mustSelect(t, "tables") })
			if d := cmp.Diff(c.want, codes(r)); d != "" {
				t.Fatalf("%s\n%+v", d, r.Findings)
			}
			f := r.Findings[0]
			if f.Severity != c.worst || c.key != "" && f.Key != c.key {
				t.Errorf("%s of %q, want %s of %q", f.Severity, f.Key, c.worst, c.key)
			}
			if c.says != "" && !strings.Contains(strings.Join(f.Evidence, "\n"), c.says) {
				t.Errorf("evidence %q, want %q", f.Evidence, c.says)
			}
		})
	}
}

// An archive whose file is gone, and a cold archive that was cut, are found by their files.
func TestTablesFiles(t *testing.T) {
	dir, db := tables(t)
	gone, err := filepath.Glob(filepath.Join(dir, "agents/main/sessions/*.deleted.*"))
	if err != nil || len(gone) != 1 {
		t.Fatal(gone, err)
	}
	if err := os.Remove(gone[0]); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("%064x.jsonl.zst", 7)
	cold := filepath.Join(dir, "agents/main/sessions/cold", name)
	if err := os.MkdirAll(filepath.Dir(cold), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cold, []byte("cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fixtures.Alter(db, fmt.Sprintf("INSERT INTO session_transcript_cold_archives VALUES('%s','g','%s','%064x',5,100,50,4,1,'file',NULL)", fixtures.IDOf(tableKey), name, 7)); err != nil {
		t.Fatal(err)
	}
	r := examine(t, dir, func(o *Options) { o.Only = []Code{Code(agentdb.LostArchive), Code(agentdb.LostCold)} })
	if f := one(t, r, Code(agentdb.LostArchive)); f.File != gone[0] {
		t.Errorf("%+v", f)
	}
	says(t, one(t, r, Code(agentdb.LostCold)), "it has 3 bytes, not 50")
}

// Beside a database too, files that nothing names are told: checkpoints, trajectories and prompts; those that a row names are not.
func TestUnlinkedBesideADatabase(t *testing.T) {
	dir := t.TempDir()
	prompt := strings.Repeat("Read the recipe first. ", 40)
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(prompt)))
	lost := fmt.Sprintf("%x", sha256.Sum256([]byte("nobody's")))
	id := fixtures.IDOf(tableKey)
	talk := fixtures.Talk(id, fixtures.Now-fixtures.Day).Setup().User("Hello").Assistant("Hello.")
	named := id + ".checkpoint.11111111-2222-4333-8444-555555555555.jsonl"
	other := id + ".checkpoint.66666666-2222-4333-8444-555555555555.jsonl"
	entry := fmt.Sprintf(`{"skillsSnapshot":{"skills":[],"promptRef":{"version":1,"algorithm":"sha256","hash":%q,"bytes":%d}},"compactionCheckpoints":[{"checkpointId":"c","sessionId":%q,"preCompaction":{"sessionId":%q,"sessionFile":%q},"postCompaction":{"sessionId":%q}}]}`,
		hash, len(prompt), id, id, "/srv/openclaw/agents/main/sessions/"+named, id)
	s := fixtures.State{Agents: []fixtures.Agent{{
		ID: "main", Era: fixtures.SQLiteEra, Sessions: []fixtures.Session{{Key: tableKey, Updated: talk.Last(), Entry: entry, Talk: talk}},
		Files: []fixtures.File{
			{Name: named, Data: talk.String()},
			{Name: other, Data: talk.String()},
			{Name: id + ".trajectory.jsonl", Data: "{}\n"},
			{Name: fixtures.IDOf("nobody") + ".trajectory.jsonl", Data: "{}\n"},
			{Name: "skills-prompts/sha256/" + hash[:2] + "/" + hash + ".txt", Data: prompt},
			{Name: "skills-prompts/sha256/" + lost[:2] + "/" + lost + ".txt", Data: "nobody's"},
		},
	}}}
	if err := s.Write(dir); err != nil {
		t.Fatal(err)
	}
	only := func(o *Options) { o.Only = []Code{UnlinkedCheckpoint, UnlinkedSidecar, UnlinkedPrompt} }
	r := examine(t, dir, only)
	if d := cmp.Diff(map[Code]int{UnlinkedCheckpoint: 1, UnlinkedSidecar: 1, UnlinkedPrompt: 1}, codes(r)); d != "" {
		t.Fatalf("%s\n%+v", d, r.Findings)
	}
	if f := one(t, r, UnlinkedCheckpoint); filepath.Base(f.File) != other {
		t.Errorf("%+v", f)
	}
	if f := one(t, r, UnlinkedPrompt); filepath.Base(f.File) != lost+".txt" {
		t.Errorf("%+v", f)
	}
	// With a row that cannot be read nobody knows what it names.
	if err := fixtures.Alter(fixtures.Database(dir, "main"), "INSERT INTO session_nodes(session_key,current_session_id,entry_json,updated_at) VALUES('agent:main:explicit:broken','x','[]',1)"); err != nil {
		t.Fatal(err)
	}
	if r := examine(t, dir, only); len(r.Findings) != 0 {
		t.Errorf("%+v", r.Findings)
	}
}
