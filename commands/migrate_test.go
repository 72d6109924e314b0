package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oc/store/lock"
)

// obstructed is the recorded state of the file era with something of each kind in the way of an import.
func obstructed(t *testing.T) (root string) {
	t.Helper()
	root = goldenState(t, "2026.9.6-unmigrated")
	dir := filepath.Join(root, "agents", "main", "sessions")
	name := func(n int) string {
		return filepath.Join(dir, fmt.Sprintf("%08d-1111-4222-8333-%012d.jsonl", n, n))
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	rewrite := func(n int, f func(text string) string) {
		raw, err := os.ReadFile(name(n))
		must(err)
		must(os.WriteFile(name(n), []byte(f(string(raw))), 0o600))
	}
	must(os.Link(name(3), filepath.Join(t.TempDir(), "twin")))
	real := filepath.Join(t.TempDir(), "real.jsonl")
	copyTo(t, name(6), real)
	must(os.Remove(name(6)))
	must(os.Symlink(real, name(6)))
	rewrite(7, func(s string) string { return s + `{"type":"message",broken` + "\n" })
	rewrite(10, func(s string) string { return s + `{"type":"mess` })
	rewrite(9, func(s string) string { _, rest, _ := strings.Cut(s, "\n"); return rest })
	rewrite(5, func(s string) string { return strings.Replace(s, `"version":3`, `"version":2`, 1) })
	index := filepath.Join(dir, "sessions.json")
	raw, err := os.ReadFile(index)
	must(err)
	rows := map[string]any{}
	must(json.Unmarshal(raw, &rows))
	rows["agent:main:explicit:bad-1"] = 5
	rows["agent:main:explicit:bad-2"] = map[string]any{"updatedAt": 1}
	for key, n := range map[string]int{"agent:main:Explicit:Upper": 91, "telegram:direct:999": 92, "main": 93} {
		id := fmt.Sprintf("%08d-1111-4222-8333-%012d", n, n)
		copyTo(t, name(2), name(n))
		rewrite(n, func(s string) string { return strings.ReplaceAll(s, "00000002-1111-4222-8333-000000000002", id) })
		rows[key] = map[string]any{"sessionId": id, "updatedAt": int64(1796034048000)}
	}
	raw, err = json.Marshal(rows)
	must(err)
	must(os.WriteFile(index, raw, 0o600))
	return root
}

type preflightDoc struct {
	Agents []struct {
		AgentID                    string
		Rows, Taken, Events        int
		Transcripts, Unlinked      int
		StorePath, SQLitePath, Era string
	}
	Obstacles []struct{ Code, Effect, SessionKey, Path string }
}

func preflight(t *testing.T, root string, args ...string) preflightDoc {
	t.Helper()
	before := tree(t, root)
	a := at(t, root, append([]string{"migrate", "check", "--json"}, args...)...)
	var d preflightDoc
	if err := json.Unmarshal([]byte(a.out), &d); err != nil || a.exit != ExitDone && a.exit != ExitFindings {
		t.Fatalf("exit %d %v: %s%s", a.exit, err, a.out, a.errout)
	}
	if tree(t, root) != before {
		t.Error("the state was changed")
	}
	return d
}

func (d *preflightDoc) codes(agent string) (all []string) {
	for _, o := range d.Obstacles {
		if what := o.SessionKey; strings.Contains(o.Path, "/agents/"+agent+"/") {
			if what == "" {
				what = filepath.Base(o.Path)
			}
			all = append(all, o.Code+" "+o.Effect+" "+what)
		}
	}
	slices.Sort(all)
	return all
}

// What is foreseen is what the real import of 2026.9.6 did with the same state: 14 rows and 112 events, the same ones left
// and altered (recorded; TestInteropMigrateCheck asks the release itself).
func TestMigrateCheckForeseesEachObstacle(t *testing.T) {
	d := preflight(t, obstructed(t))
	if d.Agents[0].Rows != 16 || d.Agents[0].Taken != 14 || d.Agents[0].Events != 112 || d.Agents[0].Unlinked != 1 || d.Agents[1].Taken != 12 || d.Agents[1].Events != 87 {
		t.Errorf("%+v", d.Agents)
	}
	want := []string{
		"entry_invalid leaves agent:main:explicit:bad-1", "entry_invalid leaves agent:main:explicit:bad-2",
		"hardlinked_source leaves agent:main:explicit:scratch-1", "key_alias alters agent:main:Explicit:Upper", "key_alias alters main", "key_alias alters telegram:direct:999",
		"linked_source leaves agent:main:explicit:old-1", "transcript_headless alters agent:main:explicit:model-run-00000060-1111-4222-8333-000000000060",
		"transcript_malformed leaves agent:main:explicit:archived-1", "transcript_malformed leaves agent:main:telegram:direct:777",
		"transcript_missing note agent:main:explicit:missing-1", "transcript_old alters agent:main:subagent:00000050-1111-4222-8333-000000000050",
		"transcript_unlinked leaves 00000082-1111-4222-8333-000000000082.jsonl",
	}
	if got := d.codes("main"); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What stops the import as a whole.
func TestMigrateCheckRefusals(t *testing.T) {
	for name, x := range map[string]struct {
		spoil func(t *testing.T, dir string)
		code  string
	}{
		"an id that is no name": {func(t *testing.T, dir string) {
			alterIndex(t, dir, `{"agent:main:x":{"sessionId":"../x","updatedAt":1}}`)
		}, "session_id_invalid"},
		"no JSON":   {func(t *testing.T, dir string) { alterIndex(t, dir, `{"a":`) }, "store_unreadable"},
		"no object": {func(t *testing.T, dir string) { alterIndex(t, dir, `[1]`) }, "store_not_object"},
		"a linked folder": {func(t *testing.T, dir string) {
			away := filepath.Join(t.TempDir(), "away")
			if err := os.CopyFS(away, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(away, dir); err != nil {
				t.Fatal(err)
			}
		}, "linked_directory"},
		"a lock that is held": {func(t *testing.T, dir string) {
			held := fmt.Sprintf(`{"pid":%d,"createdAt":%q,"starttime":%d}`, os.Getpid(), time.Now().UTC().Format(time.RFC3339), lock.Local().Process(os.Getpid()).Start)
			if err := os.WriteFile(filepath.Join(dir, "00000001-1111-4222-8333-000000000001.jsonl.lock"), []byte(held), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "locked"},
	} {
		t.Run(name, func(t *testing.T) {
			root := goldenState(t, "2026.9.6-unmigrated")
			x.spoil(t, filepath.Join(root, "agents", "main", "sessions"))
			d := preflight(t, root)
			if !slices.ContainsFunc(d.Obstacles, func(o struct{ Code, Effect, SessionKey, Path string }) bool {
				return o.Code == x.code && o.Effect == "refuses"
			}) {
				t.Errorf("%+v", d.Obstacles)
			}
		})
	}
}

func alterIndex(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "sessions.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Each side's own entries and rows are told, by their ids.
func TestMigrateCompare(t *testing.T) {
	root := goldenState(t, "2026.9.6-both-present")
	if a := at(t, root, "migrate", "compare", "--agent", "main"); a.exit != ExitDone || !strings.Contains(a.out, "11 the same on both sides") {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	dir := filepath.Join(root, "agents", "main", "sessions")
	path := filepath.Join(dir, "00000003-1111-4222-8333-000000000003.jsonl")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	added := `{"type":"message","id":"after-1","parentId":null,"timestamp":"2026-12-01T00:00:00.000Z","message":{"role":"user","content":"went on"}}` + "\n"
	if err := os.WriteFile(path, append(raw, added...), 0o600); err != nil {
		t.Fatal(err)
	}
	alterDB(t, filepath.Join(root, "agents", "main", "agent", "openclaw-agent.sqlite"), "DELETE FROM session_nodes WHERE session_key = 'agent:main:explicit:old-1'")
	if err := os.Remove(filepath.Join(dir, "00000010-1111-4222-8333-000000000010.jsonl")); err != nil {
		t.Fatal(err)
	}
	before := tree(t, root)
	a := at(t, root, "migrate", "compare", "--agent", "main", "--json")
	var d struct {
		Agents []struct {
			State                               string
			RowsOnlyInIndex, RowsOnlyInDatabase []string
			Transcripts                         []struct {
				SessionID                  string
				File                       string
				OnlyInFile, OnlyInDatabase int
			}
		}
	}
	if err := json.Unmarshal([]byte(a.out), &d); err != nil || a.exit != ExitFindings {
		t.Fatalf("exit %d %v: %s%s", a.exit, err, a.out, a.errout)
	}
	x := d.Agents[0]
	if x.State != "both" || !slices.Equal(x.RowsOnlyInIndex, []string{"agent:main:explicit:old-1"}) || !slices.Equal(x.RowsOnlyInDatabase, []string{"agent:main:recovered:00000082-1111-4222-8333-000000000082"}) {
		t.Errorf("%+v", x)
	}
	differ := map[string][2]int{}
	for _, p := range x.Transcripts {
		if p.OnlyInFile+p.OnlyInDatabase > 0 {
			differ[p.SessionID[:8]] = [2]int{p.OnlyInFile, p.OnlyInDatabase}
		}
	}
	if differ["00000003"] != [2]int{1, 0} || differ["00000010"][1] == 0 || differ["00000010"][0] != 0 {
		t.Errorf("%v", differ)
	}
	if tree(t, root) != before {
		t.Error("the state was changed")
	}
	if a := at(t, goldenState(t, "2026.9.6-migrated"), "migrate", "compare"); a.exit != ExitDone || strings.Count(a.out, "11 the same on both sides") != 2 {
		t.Errorf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
}

// An older release sees what its schemas let it see (spec/sqlite-store.md 5.6).
func TestMigrateDowngradePlan(t *testing.T) {
	migrated, both, files := goldenState(t, "2026.9.6-migrated"), goldenState(t, "2026.9.6-both-present"), goldenState(t, "2026.9.6-unmigrated")
	for _, x := range []struct {
		root, release string
		exit          int
		says          []string
	}{
		{migrated, "2026.7.35", ExitFindings, []string{"no session at all", "oc db export main --format files", "put back its copy from before the"}},
		{migrated, "2026.8.2", ExitFindings, []string{"it refuses the shared database, of schema 18, and opens 15"}},
		{migrated, "2026.9.6", ExitDone, []string{"the 12 sessions of the database"}},
		{both, "2026.7.35", ExitFindings, []string{"every command ends with an error"}},
		{files, "2026.7.35", ExitDone, []string{"the 11 rows of its index"}},
	} {
		before := tree(t, x.root)
		a := at(t, x.root, "migrate", "downgrade-plan", "--to", x.release)
		flat := strings.Join(strings.Fields(a.out), " ")
		for _, want := range x.says {
			if a.exit != x.exit || !strings.Contains(flat, want) {
				t.Errorf("%s: exit %d, not %d, or without %q: %s%s", x.release, a.exit, x.exit, want, a.out, a.errout)
			}
		}
		if tree(t, x.root) != before {
			t.Error("the state was changed")
		}
	}
}
