package commands

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// golden unpacks a recorded state.
func goldenState(t *testing.T, name string) string {
	t.Helper()
	root := t.TempDir()
	if out, err := exec.Command("tar", "xzf", "../fixtures/golden/sqlite/"+name+".tar.gz", "-C", root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return root
}

func listedRows(t *testing.T, root string, args ...string) map[string]map[string]any {
	t.Helper()
	a := at(t, root, append([]string{"sessions", "list", "--json", "--limit", "all"}, args...)...)
	var doc struct{ Sessions []map[string]any }
	if err := json.Unmarshal([]byte(a.out), &doc); err != nil || a.exit != ExitDone {
		t.Fatalf("exit %d %v: %s", a.exit, err, a.errout)
	}
	all := map[string]map[string]any{}
	for _, s := range doc.Sessions {
		all[s["key"].(string)] = s
	}
	return all
}

// What an import has moved into a database comes out of it byte for byte, and the rows as they were before it.
func TestDBExportGivesBackWhatWasImported(t *testing.T) {
	files := goldenState(t, "2026.9.6-unmigrated")
	for _, release := range []string{"2026.9.6-migrated", "2026.8.2-migrated"} {
		root := goldenState(t, release)
		for _, agent := range []string{"main", "work"} {
			to := filepath.Join(t.TempDir(), "out")
			before := tree(t, root)
			a := at(t, root, "db", "export", agent, "--format", "files", "--to", to)
			if a.exit != ExitDone || a.errout != "" {
				t.Fatalf("%s %s: exit %d: %s", release, agent, a.exit, a.errout)
			}
			if tree(t, root) != before {
				t.Errorf("%s: the state was changed", release)
			}
			was := filepath.Join(files, "agents", agent, "sessions")
			originals, err := filepath.Glob(filepath.Join(was, "*.jsonl"))
			if err != nil || len(originals) == 0 {
				t.Fatal(originals, err)
			}
			for _, path := range originals {
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				got, err := os.ReadFile(filepath.Join(to, filepath.Base(path)))
				if os.IsNotExist(err) && release == "2026.8.2-migrated" && strings.HasPrefix(filepath.Base(path)[6:], "82-") {
					continue // which no row names: 8.2 moved it away without taking it in
				}
				if err != nil || string(got) != string(want) {
					t.Errorf("%s %s: %v, %d bytes of %d", release, filepath.Base(path), err, len(got), len(want))
				}
			}
			var old, now map[string]map[string]any
			for path, to := range map[string]*map[string]map[string]any{filepath.Join(was, "sessions.json"): &old, filepath.Join(to, "sessions.json"): &now} {
				raw, err := os.ReadFile(path)
				if err == nil {
					err = json.Unmarshal(raw, to)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for key, row := range old {
				for name, want := range row {
					switch name {
					case "sessionFile", "origin", "deliveryContext", "channel", "totalTokensFresh": // found by the id; filled from each other
						continue
					}
					w, _ := json.Marshal(want)
					g, _ := json.Marshal(now[key][name])
					if string(w) != string(g) {
						t.Errorf("%s %s: %s is %s, not %s", release, key, name, g, w)
					}
				}
				if now[key]["delivery"] != nil {
					t.Errorf("%s %s: delivery is still folded", release, key)
				}
			}
		}
	}
}

// oc lists of the files what it lists of the database, with the histories.
func TestDBExportIsReadBack(t *testing.T) {
	root, _ := demoTree(t)
	to := filepath.Join(t.TempDir(), "out")
	a := at(t, root, "db", "export", "main", "--to", to, "--json")
	if a.exit != ExitDone || !strings.Contains(a.out, `"sessions": 14`) {
		t.Fatalf("exit %d: %s%s", a.exit, a.out, a.errout)
	}
	want, got := listedRows(t, root), listedRows(t, root, "--store", filepath.Join(to, "sessions.json"))
	if len(got) != len(want) {
		t.Errorf("%d sessions, not %d", len(got), len(want))
	}
	for key, w := range want {
		for _, name := range []string{"sessionId", "updatedAt", "kind", "label", "spawnedBy", "model", "inputTokens", "status"} {
			x, _ := json.Marshal(w[name])
			y, _ := json.Marshal(got[key][name])
			if string(x) != string(y) {
				t.Errorf("%s: %s is %s, not %s", key, name, y, x)
			}
		}
		if w["sessionId"] == nil {
			continue
		}
		x := at(t, root, "sessions", "history", key, "--json")
		y := at(t, root, "sessions", "history", key, "--json", "--store", filepath.Join(to, "sessions.json"))
		var m, n struct{ Messages []any }
		if json.Unmarshal([]byte(x.out), &m) != nil || json.Unmarshal([]byte(y.out), &n) != nil || len(m.Messages) != len(n.Messages) {
			t.Errorf("%s: %d messages, not %d: %s%s", key, len(n.Messages), len(m.Messages), x.errout, y.errout)
		}
	}
	for name, want := range map[string]int{"*.reset.*": 1, "*.deleted.*": 1} {
		if all, _ := filepath.Glob(filepath.Join(to, name)); len(all) != want {
			t.Errorf("%s: %v", name, all)
		}
	}
}

// It is made whole or not at all, in no place of OpenClaw's, and what cannot be read is told.
func TestDBExportRefusals(t *testing.T) {
	root, path := demoTree(t)
	there := t.TempDir()
	for _, x := range []struct {
		args []string
		exit int
		says string
	}{
		{[]string{"main"}, ExitUsage, "needs --to"},
		{[]string{"main", "--to", there}, ExitRefused, "there already"},
		{[]string{"main", "--to", filepath.Join(there, "no", "where")}, ExitFailed, "is not there"},
		{[]string{"main", "--to", filepath.Join(root, "agents", "new")}, ExitRefused, "lies in the state of OpenClaw"},
		{[]string{"work", "--to", filepath.Join(there, "a")}, ExitFailed, "has no database"},
		{[]string{"nobody", "--to", filepath.Join(there, "a")}, ExitUsage, "there is no agent"},
	} {
		if a := at(t, root, append([]string{"db", "export"}, x.args...)...); a.exit != x.exit || !strings.Contains(a.errout, x.says) {
			t.Errorf("%v: exit %d, not %d, or without %q: %s", x.args, a.exit, x.exit, x.says, a.errout)
		}
	}
	alterDB(t, path, "UPDATE session_nodes SET entry_json = json_set(entry_json, '$.updatedAt', 7) WHERE session_key = 'agent:main:main'",
		"UPDATE session_transcript_archives SET archive_blob = x'00'",
		`INSERT INTO session_transcript_cold_archives (session_id, generation, archive_name, archive_sha256, event_count, raw_bytes, archive_bytes, last_seq, archived_at, storage)
			SELECT current_session_id, '`+strings.Repeat("a", 32)+`', '`+strings.Repeat("b", 64)+`.jsonl.zst', '`+strings.Repeat("b", 64)+`', 4, 400, 200, 3, 1, 'file' FROM session_nodes WHERE session_key LIKE '%:group:%' LIMIT 1`)
	to := filepath.Join(there, "out")
	a := at(t, root, "db", "export", "main", "--to", to)
	for _, want := range []string{"agent:main:main is not in sessions.json", "cold archive", "its bytes are not those that were archived"} {
		if a.exit != ExitFailed || !strings.Contains(a.errout, want) {
			t.Errorf("exit %d, without %q: %s", a.exit, want, a.errout)
		}
	}
	if _, err := os.Stat(filepath.Join(to, "sessions.json")); err != nil {
		t.Error(err) // the rest is there
	}
	if left, _ := filepath.Glob(filepath.Join(there, ".*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
