package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oc/fixtures"
	"oc/store/agentdb"
)

// damagedAtRandom makes a state with an agent of each era, in which a handful of what doctor mends is wrong, and what it does not mend.
func damagedAtRandom(t *testing.T, rt *rapid.T, state string) (db string) {
	t.Helper()
	g := six()
	bodies := []string{
		lines(g...), lines(g...), lines(g...) + strings.Repeat("\x00", 100), lines(g[:5]...) + g[5][:20],
		lines(append(g[:4:4], said("d", "nowhere", "assistant", text("so")), said("e", "d", "user", text("three")))...),
		lines(append(g[:3:3], append([]string{g[2]}, g[3:]...)...)...), lines(append(g[:6:6], answer("f", "e", "k1", "k2"), result("r", "f", "k1"))...),
		lines(append(g[:6:6], answer("f", "e", "k1"), said("g", "f", "user", text("well?")), answer("h", "g"))...), lines(g[1:]...),
		lines(append([]string{`{"type":"session","cwd":"/w"}`}, g[1:]...)...), lines(append(g[:3:3], said("c", "c", "user", text("two")), g[4])...),
		lines(g[0], g[1], g[2], g[4], compacted("k", "d", "c"), said("e", "k", "user", text("three"))),
		lines(g[0], g[1], said("b", "a", "user", `[{"type":"image","mimeType":"image/png","data":"????"}]`), answer("c", "b")),
		lines(g[0], "{bad", g[1]), lines(g[0]), "", "\xef\xbb\xbf" + lines(g...) + "\x00", strings.Join(g, "\r\n"),
	}
	index := fixtures.Store(state, "main")
	dir := filepath.Dir(index)
	id := func(i int) string { return fmt.Sprintf("0a1b2c3d-0000-4000-8000-%012d", i) }
	body := func(name string) string {
		return strings.Replace(rapid.SampledFrom(bodies).Draw(rt, name), `"id":"t1"`, `"id":"`+name+`"`, 1)
	}
	var rows []string
	keys := []string{"agent:main:main", "agent:main:telegram:group:-1001", "agent:main:telegram:GROUP:-1001", "agent:main:explicit:one", "Agent:main:explicit:one", "agent:main:explicit:two"}
	for i, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 1, len(keys), rapid.ID[string]).Draw(rt, "keys") {
		more := rapid.SampledFrom([]string{
			"", "", `, "sessionFile": "/old/home/agents/main/sessions/` + id(i) + `.jsonl"`, `, "sessionFile": "` + id(90) + `.jsonl"`, `, "sessionFile": "/etc/hosts"`,
			fmt.Sprintf(`, "status": "running", "startedAt": %d`, fixtures.Now-9*fixtures.Day), fmt.Sprintf(`, "status": "running", "startedAt": %d, "endedAt": %d`, fixtures.Now-9*fixtures.Day, fixtures.Now-8*fixtures.Day),
			`, "label": "same", "odd": 1e2`,
		}).Draw(rt, "row")
		rows = append(rows, fmt.Sprintf(`%q: {"sessionId": %q, "updatedAt": %d%s}`, key, id(i), fixtures.Now-int64(3+i)*fixtures.Day, more))
		if rapid.IntRange(0, 5).Draw(rt, "there") > 0 {
			put(t, filepath.Join(dir, id(i)+".jsonl"), body(id(i)))
		}
	}
	put(t, index, "{\n  "+strings.Join(rows, ",\n  ")+"\n}\n")
	for i := range rapid.IntRange(0, 2).Draw(rt, "unlinked") {
		put(t, filepath.Join(dir, id(50+i)+".jsonl"), body(id(50+i)))
	}
	for name, text := range map[string]string{
		"sessions.json.4711." + id(1) + ".tmp": "{", id(0) + ".jsonl.lock": `{"pid":4194399,"createdAt":"2026-09-01T00:00:00.000Z"}`, id(50) + ".jsonl.lock": `{"pid":41943`,
		"gone.jsonl.lock": `{"pid":4194399,"createdAt":"2026-09-01T00:00:00.000Z"}`, id(1) + ".jsonl.lock": fmt.Sprintf(`{"pid":%d,"createdAt":"2026-09-01T00:00:00.000Z","starttime":1}`, os.Getpid()),
		"../../../openclaw.json": "{ session: { parentForkMaxTokens: 1, maintenance: { rotateBytes: 5 } }, x: [1] } // mine\n",
	} {
		if rapid.Bool().Draw(rt, name) {
			put(t, filepath.Join(dir, name), text)
		}
	}
	talk := func(key string) *fixtures.Transcript {
		return fixtures.Talk(fixtures.IDOf(key), fixtures.Now-2*fixtures.Day).Setup().User("Is the gate closed?").Assistant("Yes.")
	}
	schema := rapid.SampledFrom([]int{19, 23}).Draw(rt, "schema")
	a := fixtures.Agent{ID: "work", Era: fixtures.SQLiteEra, Schema: schema}
	for _, key := range []string{tableKey, tableKey2} {
		own := talk(key)
		a.Sessions = append(a.Sessions, fixtures.Session{Key: strings.Replace(key, ":main:", ":work:", 1), Updated: own.Last(), Talk: own, Entry: `{"label":"` + key + `"}`})
	}
	if err := (fixtures.State{Agents: []fixtures.Agent{a}}).Write(state); err != nil {
		t.Fatal(err)
	}
	db = fixtures.Database(state, "work")
	for _, h := range harms {
		if rapid.IntRange(0, 3).Draw(rt, h.name) > 0 {
			continue
		}
		sql := suited(h.sql, schema)
		for i := range sql {
			sql[i] = strings.ReplaceAll(strings.ReplaceAll(sql[i], "'"+tableKey+"'", "'agent:work:main'"), "'"+tableKey2+"'", "'agent:work:explicit:second'")
		}
		if err := fixtures.Alter(db, sql...); err != nil {
			t.Fatal(err)
		}
	}
	for path, mode := range map[string]os.FileMode{state: 0o755, filepath.Join(dir, id(0)+".jsonl"): 0o644, index: 0o666} {
		if rapid.Bool().Draw(rt, "open") {
			if err := os.Chmod(path, mode); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
	}
	aged(t, state)
	return db
}

// Whatever is wrong with a state, and whichever fixes are asked for, in two runs of them: no message is lost, the same fixes have nothing left to
// do, and undo brings back every byte of every file, mode and time, and every row of every table.
func TestRandomFixes(t *testing.T) {
	var fixable []Code
	for _, c := range Checks() {
		if remedyOf(c.Code) != "" {
			fixable = append(fixable, c.Code)
		}
	}
	fixed := map[Code]int{}
	rapid.Check(t, func(rt *rapid.T) {
		state := filepath.Join(t.TempDir(), "state")
		defer os.RemoveAll(filepath.Dir(state))
		db := damagedAtRandom(t, rt, state)
		now := func() string {
			own := filepath.Dir(db)
			files := slices.DeleteFunc(shown(t, state), func(line string) bool { return strings.HasPrefix(line, own) })
			return strings.Join(timeless(files), "\n") + "\n" + held(t, db)
		}
		before, messages := now(), spoken(t, state)
		for range 2 {
			codes := rapid.SliceOfNDistinct(rapid.SampledFrom(fixable), 1, len(fixable), rapid.ID[Code]).Draw(rt, "codes")
			if rapid.Bool().Draw(rt, "all") {
				codes = fixable
			}
			for run := range 2 {
				o, w := ward(t, state, nil)
				all, err := Fix(t.Context(), o, codes, w, false)
				if err != nil {
					rt.Fatal(err)
				}
				for _, m := range all {
					if m.Err != nil {
						rt.Fatalf("%s: %v", m.Store, m.Err)
					}
					for _, f := range m.Findings {
						fixed[f.Code]++
					}
					if run == 1 && m.Done.Plan != nil && !m.Done.Plan.Empty() {
						rt.Fatalf("the same fixes (%v) find something again: %q", codes, told(all))
					}
				}
			}
			for _, m := range missing(messages, spoken(t, state)) {
				rt.Fatalf("%v: a message can no longer be reached: %s", codes, m)
			}
		}
		back(t, state)
		if d := cmp.Diff(before, now()); d != "" {
			rt.Fatalf("after the undo:\n%s", d)
		}
	})
	t.Logf("fixes: %v", fixed)
	if len(fixed) < len(fixable)*2/3 {
		t.Errorf("only %d of %d fixes were at work", len(fixed), len(fixable))
	}
	if fixed[Code(agentdb.RowDoubted)] == 0 {
		t.Error("no database was mended")
	}
}
