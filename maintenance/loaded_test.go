package maintenance

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oc/store/span"
)

// Every row of a recorded store that OpenClaw has written is what loading it
// makes of it.
func TestRowsAsOpenClawWritesThem(t *testing.T) {
	rows := 0
	for _, c := range recordedCases(t) {
		want := c.Expect["real"]
		if len(want.Stores) == 0 || strings.Contains(strings.Join(c.Args["real"], " "), "--fix-missing") {
			continue
		}
		_, _, snaps, err := planned(t, &c, "real")
		if err != nil {
			continue // no store that oc reads
		}
		for _, s := range snaps {
			name := "after-sessions.json"
			if agent := filepath.Base(filepath.Dir(filepath.Dir(s.Store))); c.Recipe.Stores != nil && !strings.HasPrefix(c.Recipe.Stores[0].Path, "agents/"+agent+"/") {
				name = "after-sessions." + agent + ".json"
			}
			state := s.Store[:strings.Index(s.Store, ".openclaw")+len(".openclaw")]
			for _, after := range span.Members(want.Stores[name]) {
				key := strings.ReplaceAll(after.Name, "{{STATE}}", state)
				r, ok := s.Row(key)
				if !ok {
					t.Errorf("%s: no row %s", c.Name, key)
					continue
				}
				m, _ := loaded(&r.Entry, s.promptText)
				var got, expected any
				if err := json.Unmarshal(m.raw(), &got); err != nil {
					t.Errorf("%s: %s: %v", c.Name, key, err)
					continue
				}
				if err := json.Unmarshal([]byte(strings.ReplaceAll(string(after.Val), "{{STATE}}", state)), &expected); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(expected, got); d != "" {
					t.Errorf("%s: %s: %s", c.Name, key, d)
				}
				rows++
			}
		}
	}
	if rows < 50 {
		t.Errorf("only %d rows were compared", rows)
	}
}
